"""The thresholds of a verdict, in one place. All of them are ours; the page of a verdict says which were used."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError

Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class VerdictConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a word is deserved.

    ``level`` is the confidence of every test, shared among the agents of a cell and among ``trials``: how many
    strategies were tried before these were shown (the best of many is lucky by construction, and nothing in a
    record says how many there were). ``portfolios`` random ones make the luck baseline, 0 leaves it out.
    ``style_variance`` is the share of active variance from which a result counts as style, if one exposure is at
    least ``exposure`` standard deviations; below ``market_variance`` of the whole variance an account follows
    the market. ``too_good`` is a yearly information ratio that nobody has: a leak is suspected. A share of
    sessions without a usable answer above ``failed_sessions`` keeps a verdict from being firm. ``least`` sessions
    are needed for any test; ``skilled`` is the information ratio that the statement on power is about.

    Raises :class:`UserError` for numbers that mean nothing.
    """

    level: float = 0.95
    trials: int = 1
    portfolios: int = 10_000
    seed: int = 0
    draws: int = 1000
    style_variance: Share = 0.25
    exposure: float = 0.5
    market_variance: Share = 0.02
    too_good: float = 6.0
    failed_sessions: Share = 0.2
    least: int = 60
    skilled: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise UserError(f"a confidence level of {self.level}", mend="choose one between 0 and 1, e.g. 0.95")
        if self.trials < 1:
            raise UserError(f"{self.trials} trials", mend="count at least the one that is shown")
        if self.portfolios != 0 and self.portfolios < 100:
            raise UserError(
                f"{self.portfolios} random portfolios make no distribution",
                mend="ask for 0 (none) or 100 and more",
            )
        if self.draws < 100 or self.least < 20:
            raise UserError("too few draws or sessions for an interval", mend="draws >= 100, least >= 20")

    def tail(self, comparisons: int) -> float:
        """Return the chance of error on one side that one test of ``comparisons`` may have (Bonferroni)."""
        return (1.0 - self.level) / 2.0 / max(1, comparisons * self.trials)
