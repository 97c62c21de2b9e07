"""The benchmarks of the family: the twelve strategies, and the twelve of the authors' public repository."""

from __future__ import annotations

from typing import Final

from tradeassay.benchmarks.systrade.loading import STRATEGIES, SYSTB_STRATEGIES

SYSTRADE: Final = "systrade-v1"
SYSTRADE_SYSTB: Final = "systrade-systb-v1"
STRATEGIES_OF: Final[dict[str, tuple[str, ...]]] = {SYSTRADE: STRATEGIES, SYSTRADE_SYSTB: SYSTB_STRATEGIES}
