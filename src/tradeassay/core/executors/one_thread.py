"""One thread per process for linear algebra.

The last bits of a matrix product depend on how many threads share it, so "different worker counts, same bytes"
needs a fixed number. Worker processes get it through their environment; in the caller's own process the libraries
already loaded must be told at run time.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ENVIRONMENT = {
    name: "1"
    for name in (
        "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
    )
}  # fmt: skip

_LIBRARY = re.compile(r"(openblas|mkl_rt|blis)[^/]*\.(so|dylib)[^/]*$")
# (getter, setter) as named in the builds of numpy, scipy and Linux distributions.
_SWITCHES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra use one thread inside the ``with`` block, then as many as before."""
    import numpy as np  # the library must be loaded before it can be configured

    switches = [found for path in _loaded(Path(np.__file__).parent) if (found := _switch(path)) is not None]
    before = [int(getter()) for getter, _ in switches]
    for _, setter in switches:
        setter(1)
    try:
        yield
    finally:
        for (_, setter), count in zip(switches, before, strict=True):
            setter(count)


def _loaded(numpy_folder: Path) -> list[Path]:
    if Path("/proc/self/maps").exists():
        names = {line.split(maxsplit=5)[-1].strip() for line in Path("/proc/self/maps").read_text().splitlines()}
        return [Path(name) for name in sorted(names) if _LIBRARY.search(name)]
    beside = (numpy_folder / ".dylibs", numpy_folder.parent / "numpy.libs")
    return [path for folder in beside for path in sorted(folder.glob("*")) if _LIBRARY.search(str(path))]


def _switch(path: Path) -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer] | None:
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    for getter, setter in _SWITCHES:
        if hasattr(library, getter) and hasattr(library, setter):
            return getattr(library, getter), getattr(library, setter)
    return None
