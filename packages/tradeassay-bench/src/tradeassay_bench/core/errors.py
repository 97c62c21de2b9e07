"""Define the errors of agents, markets, accounts and runs, named after the boundary they cross."""

from __future__ import annotations

from tradeassay.core.errors import DataError, TradeassayError


class FutureDataError(DataError):
    """Data was requested that was not yet known at the view's clock."""


class DataRefused(DataError):
    """The data doctor found faults, and loading was not configured to accept them."""


class SourceError(DataError):
    """A data vendor returned an error, was too slow, or used an unexpected format."""


class AgentError(TradeassayError):
    """An agent raised, timed out, or returned an object that is not a decision."""


class ModelError(TradeassayError):
    """A language model was unreachable or returned no usable answer."""


class ExchangeError(TradeassayError):
    """A call to the exchange was invalid. (A refused order is an event, not an error.)"""


class LedgerError(TradeassayError):
    """An accounting identity does not hold.

    This error is never caught, because wrong money is worse than no result.
    """


class NotFinite(LedgerError):
    """An event would make an amount, a price or a holding infinite or NaN.

    The error ends the episode.
    """


class RunError(TradeassayError):
    """A recorded run cannot be started, resumed, verified or read."""


class CheckFailed(AssertionError):
    """A registered object violates its contract.

    The message states the violation, its place, and how it was detected.
    """
