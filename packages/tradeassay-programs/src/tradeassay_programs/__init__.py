"""Examine programs that trade: a sandbox, look-ahead tests, two benchmarks, and a training reward.

The main path is :func:`tradeassay_programs.code.evaluation.examine`.
"""

from __future__ import annotations

# Set like typing.TYPE_CHECKING. A zygote imports this package and must load few modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tradeassay_programs import reward as reward
else:
    from tradeassay.core.lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__, {}, submodules=["reward"])
