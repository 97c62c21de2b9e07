"""Define the configuration of a sandbox, the same on all machines that share a run."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from tradeassay.core.our_code import is_ours

PRELOAD: Final = tuple(
    "numpy pandas scipy.stats scipy.signal scipy.optimize talib matplotlib.pyplot backtrader "
    "calendar csv "
    "decimal fractions graphlib statistics uuid zoneinfo".split()
)
"""Modules that the zygote imports once, if installed, to save every job the import."""

HIDDEN: Final = ("pyarrow", "polars")
"""Modules that cannot be imported. Both start threads, and a process with threads must not fork."""


OURS: Final = (
    "tradeassay",
    "tradeassay_programs",
    "tradeassay.core",
    "tradeassay.core.errors",
    "tradeassay.core.hashing",
    "tradeassay.core.lazy",
    "tradeassay.core.order_columns",
    "tradeassay.core.our_code",
    "tradeassay.core.printable",
    "tradeassay.core.secrets",
    "tradeassay.core.syntax",
    "tradeassay_programs.sandbox.",
    "tradeassay_programs.code",
    "tradeassay_programs.code.harness.",
    "tradeassay_programs.code.systrade_child",
)
"""The modules of this project that may be loaded in a child.

A trailing dot stands for a whole package.

Code in a child can reach every loaded module. Market generators, tasks, references and judges
contain later bars or the examiner's questions. The zygote therefore does not start if one of them
is loaded.
"""


def not_for_children(loaded: Iterable[str]) -> list[str]:
    """Return the modules of this project among ``loaded`` that must not be loaded in a child."""
    inside = tuple(name for name in OURS if name.endswith("."))
    return sorted(
        name
        for name in loaded
        if is_ours(name) and name not in OURS and not f"{name}.".startswith(inside)
    )


class SandboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The modules that the zygote loads, and the required isolation.

    - ``preload`` modules are skipped if they are not installed. ``harnesses`` must import.
    - ``require`` is the weakest acceptable level of isolation.
    - ``namespaces=False`` disables namespaces, for tests and for machines that forbid them.
    - ``start_s`` is the time limit for loading the libraries, in seconds.
    - ``hash_seed`` is the seed for hashing strings in every child.
    """

    preload: tuple[str, ...] = PRELOAD
    harnesses: tuple[str, ...] = ()
    require: Literal["strong", "standard"] = "standard"
    namespaces: bool = True
    start_s: float = 120.0
    hash_seed: int = 0


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
"""The zygote's whole environment. It inherits no variable of the host."""
