"""Where the page of a run is written: beside its record, unless a page is there that came with the run."""

from __future__ import annotations

from pathlib import Path

from tradeassay.core.errors import UserError
from tradeassay.core.secrets import without_secrets
from tradeassay.report.shell import write_page
from tradeassay.runs.verify.attested import vouch, vouched


class PageKept(UserError):
    """A run's page that was written elsewhere is in the way of a new one, and stays: it is evidence."""


def write_run_page(folder: Path, path: Path | None, text: str) -> Path:
    """Write the page of the run in a folder to ``path`` (default: ``report.html`` in the folder).

    Without a ``path``, raises :class:`PageKept` where another page is that was not written on this machine."""
    usual, content = folder / "report.html", without_secrets(text.encode("utf-8", "replace"))  # as it is written
    place = path or usual
    if path is None and place.is_file() and (there := place.read_bytes()) != content and not vouched(there):
        hint = "name a file for a new one"
        raise PageKept(f"{place} was not written on this machine and is kept", hint=hint)
    write_page(place, text)
    if place.resolve() == usual.resolve():
        vouch(content)
    return place
