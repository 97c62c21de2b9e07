"""Check your own agents and sources before you trust a result.

Each checker raises :class:`CheckFailed` with one sentence about the problem. The checkers are
imported on first use.
"""

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach
from tradeassay_bench.core.errors import CheckFailed as CheckFailed

if TYPE_CHECKING:
    from tradeassay_bench.testing.agent import check_agent as check_agent
    from tradeassay_bench.testing.check_source import check_source as check_source
else:
    __getattr__, __dir__, _lazy = attach(
        __name__,
        {
            "tradeassay_bench.testing.agent": ["check_agent"],
            "tradeassay_bench.testing.check_source": ["check_source"],
        },
    )
    __all__ = ["CheckFailed", *_lazy]
