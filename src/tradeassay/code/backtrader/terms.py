"""What a strategy starts with and pays: cash, commission, and the size of an order that names none."""

from __future__ import annotations

import math

import msgspec

from tradeassay.code.task import CodeTask, Sizing
from tradeassay.core.errors import UserError


class BrokerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The broker's terms. ``commission`` is a share of the traded value. Raises UserError for impossible ones."""

    cash: float = 10_000.0
    commission: float = 0.001
    sizing: Sizing = Sizing(kind="fixed", value=1.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cash) and self.cash > 0):
            raise UserError(f"{self.cash:g} is no cash to start with", mend="give more than 0")
        if not 0 <= self.commission < 1:
            raise UserError(f"a commission of {self.commission:g} is no share of a trade", mend="0.001 is 0.1 %")


def terms_of(task: CodeTask) -> BrokerTerms:
    """Return the terms that a task states."""
    return BrokerTerms(cash=task.cash, commission=task.commission, sizing=task.sizing)
