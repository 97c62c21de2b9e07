"""What an episode leaves behind for scoring: one number per session, nothing that knows a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.metrics.measures import simple_returns


@dataclass(frozen=True, slots=True)
class EpisodeSeries:
    """One episode, session by session.

    ``nav`` has shape (n + 1,) and starts with the initial value; everything else has shape (n,):
    ``cash`` at the end of a session, ``traded`` the value of its fills, ``costs`` its fees, taxes, borrowing
    and interest, ``hhi`` the concentration of the holdings (NaN when there are none), ``orders`` how many were
    placed in a session and ``rejected`` how many of those were refused, then or later, wholly or in part,
    ``abstained`` and ``failed`` what the decision was. ``index`` holds index levels of shape (n + 1,), the first
    from the session before, or None; ``index_note`` goes with every measure against it. ``rejections`` and
    ``failures`` count reasons. ``failure`` says why the whole episode has no result, None when it has one.
    Raises :class:`UserError` for arrays of other lengths and for more orders refused than placed.
    """

    sessions: tuple[str, ...]
    nav: Floats
    cash: Floats
    traded: Floats
    costs: Floats
    hhi: Floats
    orders: Ints
    rejected: Ints
    abstained: Bools
    failed: Bools
    periods_per_year: int = 252
    index: Floats | None = None
    index_note: str | None = None
    rejections: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None

    def __post_init__(self) -> None:
        n = len(self.sessions)
        if self.nav.shape != (n + 1,):
            raise UserError(
                f"a path of {self.nav.shape[0]} values for {n} sessions", hint="include the initial value"
            )
        if self.index is not None and self.index.shape != (n + 1,):
            raise UserError(
                f"{self.index.shape[0]} index levels for {n} sessions",
                hint="give one per session and the level of the session before the first",
            )
        for name in ("cash", "traded", "costs", "hhi", "orders", "rejected", "abstained", "failed"):
            if getattr(self, name).shape != (n,):
                raise UserError(f"'{name}' does not have one number per session ({n})")
        if (self.rejected > self.orders).any():
            raise UserError(
                "more orders were refused than placed in a session",
                hint="count a refusal in the session in which the order was placed, once per order",
            )

    @property
    def returns(self) -> Floats:
        """Session returns, shape (n,)."""
        return simple_returns(self.nav)

    @property
    def ruined(self) -> str | None:
        """The first session that ended at zero or below, None if there was none."""
        gone = np.flatnonzero(~(self.nav[1:] > 0))
        return self.sessions[int(gone[0])] if gone.size else None


def series_from_nav(
    nav: Floats,
    *,
    sessions: tuple[str, ...] | None = None,
    periods_per_year: int = 252,
    index: Floats | None = None,
) -> EpisodeSeries:
    """Return the series of a bare value path (a foreign backtest, an index): fully invested, nothing traded.

    ``nav`` has shape (n + 1,) with the initial value first. Trading, concentration and conduct are those of
    somebody who never acted, so only results and risk mean anything.
    """
    nav = np.asarray(nav, dtype=np.float64)
    n = nav.shape[0] - 1
    zeros, counts = np.zeros(n), np.zeros(n, dtype=np.int64)
    return EpisodeSeries(
        sessions=tuple(str(step) for step in range(n)) if sessions is None else sessions,
        nav=nav,
        cash=zeros,
        traded=zeros,
        costs=zeros,
        hhi=np.full(n, np.nan),
        orders=counts,
        rejected=counts,
        abstained=np.ones(n, dtype=np.bool_),
        failed=np.zeros(n, dtype=np.bool_),
        periods_per_year=periods_per_year,
        index=None if index is None else np.asarray(index, dtype=np.float64),
    )
