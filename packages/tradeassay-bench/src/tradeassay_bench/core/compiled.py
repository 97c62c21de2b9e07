"""Compile functions with numba and cache the result.

Numba stores compiled code next to the source and checks only that one file for changes. Our
functions call each other across files, so a cached caller would continue to use outdated functions.
The result is therefore stored in a folder named by the hash of all sources of a package. Any change
leads to a new folder. If ``NUMBA_CACHE_DIR`` is set, these folders are in it.
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
    """Compiles the functions of the package in ``sources`` and stores them in the data home.

    ``calls`` lists the folders of other packages whose compiled functions are called.

    With ``counted=False`` arrays have no reference counts. This is several times as fast if small
    functions pass arrays to each other. In return no function may create an array, and every caller
    must be compiled with the same setting.

    A module with a compiler imports numba, so import such modules on first use. Without numba
    (extra ``fast``) functions run as plain Python.
    """

    def __init__(
        self, sources: Path, *, calls: tuple[Path, ...] = (), counted: bool = True
    ) -> None:
        self._folders = (sources, *calls)
        self._counted = counted

    def compiled(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function that Python calls."""
        return self._compile(function)

    def inner(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function that only compiled code calls.

        Such a function has no Python entry point and therefore compiles faster.
        """
        return self._compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)

    def inlined(self, function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
        """Compile a function into its callers. Use it for functions called in hot loops."""
        return self._compile(
            function, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
        )

    def module(self, name: str, source: str) -> ModuleType:
        """Return generated source as a module. Its file is stored next to the compiled code.

        Numba caches only functions with a source file. Different sources need different names.
        """
        module = ModuleType(name)
        # Numba looks up a module's globals in sys.modules when it loads cached code.
        sys.modules[name] = module
        if self._folder is None:
            exec(compile(source, f"{name}.py", "exec"), module.__dict__)
            return module
        path = self._folder / f"{name}.py"
        if not path.exists():
            # Write under a temporary name first, so that no process reads half a file.
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(source, encoding="utf-8")
            partial.replace(path)
        module.__file__ = str(path)
        exec(compile(source, str(path), "exec"), module.__dict__)
        return module

    def _compile(self, function: Callable[_Args, _Out], **options: Any) -> Callable[_Args, _Out]:
        """Return a compiled function, or the function itself if numba is not installed."""
        try:
            from numba import config, njit
        except ImportError:
            # Plain Python produces the same numbers, slowly: pip install 'tradeassay[fast]'.
            return function
        if not self._counted:
            options["_nrt"] = False
        folder, previous = self._folder, config.CACHE_DIR
        # Numba reads this setting when a function is decorated. Other packages keep their cache
        # folders.
        config.CACHE_DIR = str(folder or previous)
        try:
            compiled: Callable[_Args, _Out] = njit(
                cache=folder is not None, nogil=True, error_model="numpy", **options
            )(function)
        finally:
            config.CACHE_DIR = previous
        return compiled

    @cached_property
    def _folder(self) -> Path | None:
        """Return the folder of the compiled code, or None if no folder is writable.

        Without a folder each process compiles the functions again.
        """
        try:
            import numba
        except ImportError:
            return None
        sources = []
        for source_folder in self._folders:
            sources += [sha256_file(path) for path in sorted(source_folder.rglob("*.py"))]
        root = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else data_home() / "compiled"
        folder = root / sha256_of((numba.__version__, sources))[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "writable").touch()
        except OSError:
            return None
        return folder
