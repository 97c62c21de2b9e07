"""``work.jsonl``: results of an item that is under way, so that a killed run does not work them out again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.hashing import sha256_of
from tradeassay.core.secrets import clean_bytes


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    result: msgspec.Raw


class WorkLog:
    """The results so far, in order. A line that does not fit, or is torn, and all that follow it are dropped."""

    def __init__(self, path: Path, kind: type[Any]) -> None:
        self._path = path
        self._kind = kind
        self._known = _read(path)
        self._place = 0

    def find(self, request: msgspec.Struct) -> Any | None:
        """Return the recorded result of the next request, None where it has to be worked out."""
        if self._place < len(self._known):
            line = self._known[self._place]
            if line.request == sha256_of(request):
                self._place += 1
                return msgspec.json.decode(line.result, type=self._kind)
            self._known = self._known[: self._place]
        return None

    def add(self, request: msgspec.Struct, result: msgspec.Struct) -> Any:
        """Write down a result that was worked out, and return it as it will be read again."""
        encoded = clean_bytes(msgspec.json.encode(result))
        line = _Line(request=sha256_of(request), result=msgspec.Raw(encoded))
        fresh = self._place == 0
        with self._path.open("wb" if fresh else "r+b") as file:
            if not fresh:
                file.truncate(sum(len(msgspec.json.encode(known)) + 1 for known in self._known[: self._place]))
                file.seek(0, os.SEEK_END)
            file.write(msgspec.json.encode(line) + b"\n")
        self._known = [*self._known[: self._place], line]
        self._place += 1
        return msgspec.json.decode(encoded, type=self._kind)


def _read(path: Path) -> list[_Line]:
    lines: list[_Line] = []
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return lines
    for raw in content.split(b"\n")[:-1]:
        try:
            lines.append(msgspec.json.decode(raw, type=_Line))
        except msgspec.DecodeError:
            break
    return lines
