"""How functions are compiled with numba, and where the result is kept.

Numba keeps compiled code beside the source and looks at that one file alone to see whether it is up to date. Our
functions call each other across files, so a cached caller would keep using outdated callees. The result is
therefore kept in a folder named by the hash of all of a package's sources, so that any change gets a new folder.
These folders are in ``NUMBA_CACHE_DIR`` where that is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_file, sha256_of

_Args = ParamSpec("_Args")
_Out = TypeVar("_Out")


class Compiler:
    """Compiles the functions of the package in ``sources`` and keeps them in the data home.

    ``calls`` are the folders of other packages whose compiled functions are called. Without ``counted`` arrays
    carry no reference counts: several times as fast where small functions hand them to each other, but no function
    may make an array, and whoever calls them is compiled in the same way.

    A module with a compiler imports numba on import, so such modules are imported on first use. Without numba
    (extra ``fast``) functions stay plain Python.
    """

    def __init__(self, sources: Path, *, calls: tuple[Path, ...] = (), counted: bool = True) -> None:
        self._folders = (sources, *calls)
        self._counted = counted

    def compiled(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        return self._compile(function)

    def inner(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function that only compiled code calls: without a Python entry point it compiles faster."""
        return self._compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)

    def inlined(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile an inner function into its callers: for what a hot loop calls all the time."""
        return self._compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)

    def module(self, name: str, source: str) -> ModuleType:
        """Return generated source as a module, kept beside the compiled code so that it is cached too. Different
        sources need different names."""
        made = sys.modules[name] = ModuleType(name)  # numba looks up its globals there when it loads cached code
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
        try:
            from numba import config, njit
        except ImportError:
            return function  # plain Python: the same numbers, slowly; pip install 'tradeassay[fast]'
        if not self._counted:
            options["_nrt"] = False
        folder, before = self._folder, config.CACHE_DIR
        # Numba reads this setting at decoration time; functions of other packages keep their own place.
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
        """Return where compiled code is kept; None if nothing can be written and each process compiles."""
        try:
            import numba
        except ImportError:
            return None
        sources = [sha256_file(path) for folder in self._folders for path in sorted(folder.rglob("*.py"))]
        root = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else data_home() / "compiled"
        folder = root / sha256_of((numba.__version__, sources))[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "writable").touch()
        except OSError:
            return None
        return folder
