"""How a sandbox is set up. Small, frozen, and the same on every machine that shares a run."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

PRELOAD: Final = (
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "talib",
    "matplotlib.pyplot",
    "backtrader",
    "calendar",
    "csv",
    "decimal",
    "fractions",
    "graphlib",
    "statistics",
    "uuid",
    "zoneinfo",
)
"""Imported once by the zygote, when installed; a job pays nothing for them."""

HIDDEN: Final = ("pyarrow", "polars")
"""Made unimportable: both start threads, and a process with threads must not fork."""


class SandboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the zygote loads and which walls are requested.

    ``preload`` modules are skipped when they are not installed, ``harnesses`` are not: they must import.
    ``require`` is the weakest level that is acceptable; ``namespaces=False`` goes without them (for tests, and for
    machines where they are forbidden). ``start_s`` bounds how long the zygote may take to load its libraries.
    """

    preload: tuple[str, ...] = PRELOAD
    hidden: tuple[str, ...] = HIDDEN
    harnesses: tuple[str, ...] = ()
    require: Literal["strong", "standard"] = "standard"
    namespaces: bool = True
    start_s: float = 120.0


ENVIRONMENT: Final[dict[str, str]] = {
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
}
"""The zygote's whole environment; none of the host's reaches it."""
