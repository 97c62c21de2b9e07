"""The shell of every page: templates, styles, scripts and filters that format records.

A report is one self-contained file: it sends no request, and only its own scripts can run. The
arena serves its pages from the same templates and files.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup, escape

from tradeassay.core import __version__
from tradeassay.core.errors import UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.tables import counted
from tradeassay.metrics import BY_ID
from tradeassay.report import numbers
from tradeassay.report.formatting import UNIT, cell_shown, shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

_TEMPLATES = "templates"


@cache
def page_environment(*packages: str) -> Environment:
    """Return the template environment. Templates of ``packages`` take precedence.

    All text is escaped, and an unknown name is an error.
    """
    from jinja2 import (
        ChoiceLoader,
        Environment,
        FileSystemBytecodeCache,
        PackageLoader,
        StrictUndefined,
    )

    class Compiled(FileSystemBytecodeCache):
        """A cache of compiled templates in a folder that only its owner can write."""

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):  # a full disk costs time, but the page is still written
                super().dump_bytecode(bucket)

    try:
        compiled = Compiled()
    except (RuntimeError, OSError):  # the folder cannot be created on this machine
        compiled = None
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader(name, _TEMPLATES) for name in (*packages, "tradeassay.report")]
        ),
        autoescape=True,
        auto_reload=False,
        bytecode_cache=compiled,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        # Compact JSON has no spaces for line breaks. Allow a break after a comma.
        breakable=lambda text: Markup(str(escape(text)).replace(",", ",<wbr>")),
        cell=cell_shown,
        dollars=numbers.dollars,
        json_text=lambda value: msgspec.json.encode(value).decode(),
        script_json=lambda value: Markup(_script_json(value)),
        share=lambda measure, bar=False: shown(measure, "share", UNIT if bar else None),
        short=numbers.short,
        shown=shown,
        spaced=lambda text: str(text).replace("_", " "),
        written=numbers.written,
    )
    environment.globals.update(
        count=counted, form_of=numbers.form_of, info=BY_ID.__getitem__, NONE=numbers.NONE
    )
    environment.globals.update(VERSION=__version__)
    return environment


def render_page(template: str, context: dict[str, Any], *, scripts: Sequence[str] = ()) -> str:
    """Return a self-contained page. ``scripts`` are the scripts that only some pages need.

    All text in ``context`` is escaped. The page works from a file, offline.
    """
    run = {
        "theme": template_text("theme.js"),
        "page": "".join(map(template_text, ("shell.js", *scripts))),
    }
    # The content security policy names our scripts by hash, so no other script runs.
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run.values()
    ]
    shell = {
        "style": Markup(template_text("page.css")),
        "scripts": {name: Markup(text) for name, text in run.items()},
        "allowed": " ".join(f"'sha256-{one}'" for one in hashes),
    }
    return page_environment().get_template(template).render(context, shell=shell)


def write_page(path: Path, text: str) -> Path:
    if path.is_dir():
        raise UserError(
            f"{path} is a folder", hint=f"name the page too, e.g. {path / 'report.html'}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    # A model's text may contain lone surrogates, which cannot be encoded.
    write_atomic(path, text.encode("utf-8", "replace"))
    return path


def _script_json(value: object) -> str:
    """Return JSON that cannot close the script element around it."""
    text = msgspec.json.encode(value).decode()
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def template_text(name: str) -> str:
    return (
        resources.files("tradeassay.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")
    )
