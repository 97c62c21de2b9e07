"""Checkers that ship: run them over your own agent, source or venue before you trust its numbers.

Each raises :class:`CheckFailed` with one sentence about what is wrong. They are imported on first use.
"""

from typing import TYPE_CHECKING

from tradeassay.core.errors import CheckFailed as CheckFailed
from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.testing.agent import check_agent as check_agent
    from tradeassay.testing.check_source import check_source as check_source
    from tradeassay.testing.exchange import check_exchange as check_exchange
    from tradeassay.testing.masks import check_masks as check_masks, mask_cells as mask_cells
    from tradeassay.testing.sandbox import check_sandbox as check_sandbox
else:
    __getattr__, __dir__, _lazy = lazily(__name__)
    __all__ = ["CheckFailed", *_lazy]
