"""Errors of agents, markets, accounts and runs, named by the boundary that was crossed."""

from __future__ import annotations

from tradeassay.core.errors import DataError, TradeassayError


class FutureDataError(DataError):
    """Somebody asked for a datum that was not known at the view's clock."""


class DataRefused(DataError):
    """The data doctor found faults, and loading was not told to proceed regardless."""


class SourceError(DataError):
    """A data vendor answered with an error, too late, or in an unexpected shape."""


class AgentError(TradeassayError):
    """An agent raised, timed out or answered something that is not a decision."""


class ModelError(TradeassayError):
    """A language model could not be reached or gave no usable answer."""


class ExchangeError(TradeassayError):
    """The exchange was asked for something impossible. (A refused order is an event, not an error.)"""


class LedgerError(TradeassayError):
    """An accounting identity does not hold. Never caught: wrong money is worse than no result."""


class NotFinite(LedgerError):
    """An event would make a sum of money, a price or a holding that is no finite number. It ends the episode."""


class RunError(TradeassayError):
    """A recorded run cannot be started, resumed, verified or read."""


class CheckFailed(AssertionError):
    """Something registered does not keep its contract; the message says what, where and how it was seen."""
