"""tradeassay measures how much of a track record is skill.

Importing this package is cheap: everything heavy is loaded on first use.
"""

from __future__ import annotations

from tradeassay.core import __version__ as __version__

# `typing` sets this name too, but takes longer to load than this whole module. If a user stops a
# command during the import, Python prints a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tradeassay import plot as plot
    from tradeassay.api import (
        ShownAssay as ShownAssay,
        assay as assay,
    )
    from tradeassay.metrics import (
        BootstrapConfig as BootstrapConfig,
    )
    from tradeassay.tables.account import (
        TableReading as TableReading,
    )
    from tradeassay.verdict.own_account import (
        OwnAccount as OwnAccount,
    )
    from tradeassay.verdict.record import (
        VerdictConfig as VerdictConfig,
    )
else:
    from tradeassay.core.lazy import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay.metrics": ["BootstrapConfig"],
            "tradeassay.api": ["ShownAssay", "assay"],
            "tradeassay.tables.account": ["TableReading"],
            "tradeassay.verdict.own_account": ["OwnAccount"],
            "tradeassay.verdict.record": ["VerdictConfig"],
        },
        submodules=["plot"],
    )
    __all__ += ["__version__"]
