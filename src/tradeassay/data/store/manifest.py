"""What a snapshot says about itself: facts, shapes, and the hash of every file and of the whole."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.core.errors import DataError
from tradeassay.core.secrets import clean_bytes
from tradeassay.data.fault import AcceptedFaults
from tradeassay.data.panel import PanelFacts

FORMAT = "tradeassay-snapshot"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Size and SHA-256 of one file of a snapshot."""

    bytes: int
    sha256: str


class Shapes(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything."""

    sessions: int
    instruments: int
    minutes: int = 0
    minute_symbols: int = 0
    indices: int = 0
    actions: int = 0
    memberships: int = 0
    fundamentals: int = 0
    news: int = 0


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a snapshot.

    ``sha256`` covers the content (numbers, records and the facts that change their meaning) and neither the
    name nor when, how and with which library version it was written: equal data, equal hash, anywhere.
    """

    format: str
    format_version: int
    package_version: str
    name: str
    sha256: str
    facts: PanelFacts
    shapes: Shapes
    first_session: str
    last_session: str
    faults: AcceptedFaults
    files: dict[str, FileEntry]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``manifest.json`` into a folder, indented for people."""
    content = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=2)
    (folder / MANIFEST_FILE).write_bytes(clean_bytes(content) + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """Read a snapshot's manifest; raises :class:`DataError` when there is none or it is not one of ours."""
    path = folder / MANIFEST_FILE
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{folder} is no snapshot: it has no {MANIFEST_FILE}", mend="get or import it again"
        ) from None
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise DataError(f"{path} is not a snapshot manifest", mend="point to a snapshot's folder")
        if head.format_version != FORMAT_VERSION:
            raise DataError(
                f"{path} has format {head.format_version}, this version reads {FORMAT_VERSION}",
                mend="get or import the data again",
            )
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is damaged: {error}", mend="get or import the data again") from error


class _Head(msgspec.Struct):
    format: str = ""
    format_version: int = 0
