"""How a market is played: what may be traded, when decisions are made, at which prices they are filled."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.time import parse_day

Decide = Literal["pre_open", "at_open", "close"]
"""When an agent is asked: before the open (it knows the bars up to yesterday), right at the open (plus today's
opening prices), or at the close (it knows today's whole bar)."""
At = Literal["open", "close"]


class MarketConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one episode, apart from the data and the agent.

    ``universe`` is an index whose dated members may be bought, or ``"all"`` for everything listed except index
    funds. ``IDX:20`` holds it to the 20 names most traded before the first session. ``first`` and ``last`` bound
    the sessions that are traded; everything before them is history.
    ``max_weight`` and ``max_positions`` limit single names and their number; None leaves the venue's own limits,
    and where both are given the stricter one holds.
    ``index`` is what results are compared with.

    Raises :class:`UserError` for values that contradict each other: nobody may be filled at a price that
    precedes the decision, and a session cannot be marked at a price older than its fills.
    """

    venue: str
    universe: str = "all"
    cash: float = 1_000_000.0
    decide: Decide = "pre_open"
    fill: At = "open"
    mark: At = "close"
    first: str
    last: str
    max_weight: float | None = None
    max_positions: int | None = None
    index: str | None = None

    def __post_init__(self) -> None:
        if parse_day(self.first) > parse_day(self.last):
            raise UserError(f"the window ends on {self.last}, before it starts on {self.first}", hint="swap them")
        if not (self.cash > 0 and math.isfinite(self.cash)):
            raise UserError(f"an episode cannot start with {self.cash} in cash", hint="give it a positive amount")
        if self.decide == "close" and self.fill == "open":
            raise UserError("who decides at the close cannot be filled at the open before it", hint="fill: close")
        if self.fill == "close" and self.mark == "open":
            raise UserError("a fill at the close cannot be marked at the open before it", hint="mark: close")
        if self.max_weight is not None and not 0 < self.max_weight <= 1:
            raise UserError(f"max_weight {self.max_weight} is not a share of NAV", hint="give 0 < max_weight <= 1")
        if self.max_positions is not None and self.max_positions < 1:
            raise UserError(
                f"max_positions {self.max_positions} allows no position", hint="give 1 or more, or none"
            )
