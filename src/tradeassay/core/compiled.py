"""How functions are compiled with numba, and where the result is kept.

Numba keeps compiled code beside the source and looks at that one file to see whether it is still good. Our
functions call each other across files, so that an old caller would go on with old insides. The result is therefore
kept in a folder of its own, named by the content of all sources of a package: another source, another folder.
These folders lie in ``NUMBA_CACHE_DIR`` where that is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from tradeassay.core.hashing import sha256_file, sha256_of
from tradeassay.core.home import data_home

_Args = ParamSpec("_Args")
_Out = TypeVar("_Out")


class Compiler:
    """Compiles the functions of the package in ``sources`` and keeps them under ``home`` (None: the data home).

    ``calls`` are the folders of other packages whose compiled functions are called.

    A module that has one imports numba when it is imported itself, so such modules are imported on use.
    """

    def __init__(self, sources: Path, home: Path | None = None, *, calls: tuple[Path, ...] = ()) -> None:
        self._folders = (sources, *calls)
        self._home = home

    def compiled(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function that Python calls."""
        return self._compile(function)

    def inner(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function that only compiled code calls: without a door for Python it compiles faster."""
        return self._compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)

    def module(self, name: str, source: str) -> ModuleType:
        """Return generated source as a module; it lies with the compiled code, so that this is kept as well.

        ``name`` must be another for another source.
        """
        made = sys.modules[name] = ModuleType(name)  # numba looks its globals up there when it loads what it kept
        if self._folder is None:
            exec(compile(source, f"{name}.py", "exec"), made.__dict__)
            return made
        path = self._folder / f"{name}.py"
        if not path.exists():
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(source, encoding="utf-8")
            fresh.replace(path)
        made.__file__ = str(path)
        exec(compile(source, str(path), "exec"), made.__dict__)
        return made

    def _compile(self, function: Callable[_Args, _Out], **options: Any) -> Callable[_Args, _Out]:
        from numba import config, njit

        folder, before = self._folder, config.CACHE_DIR
        # Numba reads its setting while it decorates; others' functions keep the place they had.
        config.CACHE_DIR = str(folder or before)
        try:
            made: Callable[_Args, _Out] = njit(
                cache=folder is not None, nogil=True, error_model="numpy", **options
            )(function)
        finally:
            config.CACHE_DIR = before
        return made

    @cached_property
    def _folder(self) -> Path | None:
        """Where compiled code is kept, None where nothing can be written: then it is compiled every time."""
        import numba

        sources = [sha256_file(path) for folder in self._folders for path in sorted(folder.rglob("*.py"))]
        root = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else data_home(self._home) / "compiled"
        folder = root / sha256_of((numba.__version__, sources))[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "writable").touch()
        except OSError:
            return None
        return folder
