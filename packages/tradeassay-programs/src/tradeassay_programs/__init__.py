"""Programs that trade: a sandbox, tests for look-ahead, two benchmarks, a reward."""

from __future__ import annotations

# As in typing: a zygote imports this package, and must load little.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tradeassay_programs import reward as reward
else:
    from tradeassay.core.lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__, {}, submodules=["reward"])
