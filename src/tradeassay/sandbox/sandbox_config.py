"""How a sandbox is set up. Small, frozen, and the same on every machine that shares a run."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

PRELOAD: Final = tuple(
    "numpy pandas scipy.stats scipy.signal scipy.optimize talib matplotlib.pyplot backtrader calendar csv "
    "decimal fractions graphlib statistics uuid zoneinfo".split()
)
"""Imported once by the zygote, when installed; a job pays nothing for them."""

HIDDEN: Final = ("pyarrow", "polars")
"""Made unimportable: both start threads, and a process with threads must not fork."""


OURS: Final = (
    "tradeassay",
    "tradeassay.core",
    "tradeassay.core.errors",
    "tradeassay.core.hashing",
    "tradeassay.core.lazy",
    "tradeassay.core.order_columns",
    "tradeassay.core.printable",
    "tradeassay.core.secrets",
    "tradeassay.core.syntax",
    "tradeassay.sandbox.",
    "tradeassay.code",
    "tradeassay.code.harness.",
    "tradeassay.code.systrade_child",
)
"""All that a child may have of this package; a name that ends in a dot stands for a package and what is in it.

Code in a child reaches whatever is loaded there. Generators of markets, tasks, references and judges know what a
later bar holds or what the examiner will ask: the zygote does not start when one of them is loaded.
"""


def not_for_children(loaded: Iterable[str]) -> list[str]:
    """Return the modules of this package among ``loaded`` that no child may have."""
    own = __name__.partition(".")[0]
    inside = tuple(name for name in OURS if name.endswith("."))
    return sorted(
        name
        for name in loaded
        if name.partition(".")[0] == own and name not in OURS and not f"{name}.".startswith(inside)
    )


class SandboxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the zygote loads and which walls are requested. ``preload`` modules are skipped when they are not
    installed, ``harnesses`` are not: they must import. ``require`` is the weakest level that is acceptable;
    ``namespaces=False`` goes without them (for tests, and for machines where they are forbidden). ``start_s``
    bounds how long the zygote may take to load its libraries. ``hash_seed`` is what texts are hashed with in every
    child.
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
"""The zygote's whole environment; none of the host's reaches it."""
