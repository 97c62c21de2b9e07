"""How functions are compiled here, and where the result is kept.

Numba keeps compiled code beside the source and looks at that one file to see whether it is still good. Our
functions call each other across files, so that an old caller would go on with old insides. The result is
therefore kept in the data home, in a folder named by the content of all sources: another source, another
folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba import config, njit

from tradeassay.core.hashing import sha256_file, sha256_of
from tradeassay.data.home import data_home

_Args = ParamSpec("_Args")
_Out = TypeVar("_Out")


def compiled(function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
    """Compile a function that Python calls."""
    return _compile(function)


def inner(function: Callable[_Args, _Out]) -> Callable[_Args, _Out]:
    """Compile a function that only compiled code calls: without a door for Python it compiles much faster."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compile(function: Callable[_Args, _Out], **options: Any) -> Callable[_Args, _Out]:
    folder, before = _folder(), config.CACHE_DIR
    # Numba reads its setting while it decorates; others' functions keep the place they had.
    config.CACHE_DIR = str(folder or before)
    try:
        made: Callable[_Args, _Out] = njit(cache=folder is not None, nogil=True, error_model="numpy", **options)(
            function
        )
    finally:
        config.CACHE_DIR = before
    return made


@cache
def _folder() -> Path | None:
    """Return where compiled code is kept, None where nothing can be written: then it is compiled every time."""
    sources = [sha256_file(path) for path in sorted(Path(__file__).parent.glob("*.py"))]
    folder = data_home() / "compiled" / sha256_of((numba.__version__, sources))[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "writable").touch()
    except OSError:
        return None
    return folder
