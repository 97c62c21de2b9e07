"""The pages' own files: styles and scripts, each under an address that changes with its content."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib import resources

import msgspec

from tradeassay.report.shell import template_text

YEAR_S = 365 * 86_400


class StaticFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is sent."""

    body: bytes
    packed: bytes
    media_type: str
    version: str


_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_SHELL = ("page.css", "theme.js", "shell.js", "charts.js")
NAMES = (*_SHELL, "arena.css", "arena.js", "mark.svg")


@cache
def asset(name: str) -> StaticFile:
    """Return one of :data:`NAMES`; the look is that of the reports, with what the arena adds."""
    if name in _SHELL:
        text = template_text(name)
    else:
        text = resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")
    body = text.encode()
    kind = _KINDS[name[name.rindex(".") :]]
    version = hashlib.sha256(body).hexdigest()[:12]
    return StaticFile(body=body, packed=gzip.compress(body, 6, mtime=0), media_type=kind, version=version)


def address(name: str) -> str:
    """Return where a file is found; browsers may keep it for a year."""
    return f"/static/{name}?v={asset(name).version}"
