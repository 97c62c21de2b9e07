"""The audit of a recorded episode: its journal against the hashed data, session by session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tradeassay.account import venues
from tradeassay.account.audit import AuditDay, AuditFinding, Auditor
from tradeassay.core.events import StepRecord
from tradeassay.data import Snapshot
from tradeassay.play import MarketConfig, most_traded, parse_universe


def audit(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig, *, complete: bool
) -> Iterator[tuple[int | None, AuditFinding]]:
    """Yield (step, finding) for everything in a journal that the data or the rules contradict.

    With ``complete`` the journal must reach the end of the window.
    """
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield (
            None,
            AuditFinding("sessions", f"{len(records)} steps are recorded, the window has {len(rows)} sessions"),
        )
    auditor, days = Auditor(), _days(snapshot, config)
    for place, (row, record) in enumerate(zip(rows, records, strict=False)):
        day = days.get(row)
        if day is None:
            day = _day(snapshot, config, row)
            if len(days) < _MOST_DAYS:
                days[row] = day
        for finding in auditor.step(place, day, record, config.cash):
            yield place, finding


_MOST_DAYS = 1_000
"""As many sessions are kept: memory is bounded, a longer market is read again for every episode."""


@lru_cache(maxsize=2)
def _days(snapshot: Snapshot, config: MarketConfig) -> dict[int, AuditDay]:
    """Keep the sessions of a market: its episodes mostly follow one another, and the data says the same to all."""
    return {}


@lru_cache(maxsize=2)
def _kept(snapshot: Snapshot, config: MarketConfig) -> frozenset[str] | None:
    """Return the stocks that a universe of limited size has."""
    return most_traded(config.universe, snapshot.at(snapshot.rows(config.first, config.last)[0], "pre_open"))


def _day(snapshot: Snapshot, config: MarketConfig, row: int) -> AuditDay:
    """Return what the data says about a session."""
    kept = _kept(snapshot, config)
    before = snapshot.at(row, "pre_open")
    seen = snapshot.at(row, "open" if config.decide == "at_open" else config.decide)
    gone = frozenset(before.delisted_now())
    index = parse_universe(config.universe).of
    stocks = seen.symbols if index == "all" else seen.members(index)
    funds = (symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index")
    return AuditDay(
        venue=venues.get(config.venue),
        bars=snapshot.at(row, "close").session_bars(),
        actions=before.todays_actions(),
        delisted=gone,
        members=frozenset((*(one for one in stocks if kept is None or one in kept), *funds)) - gone,
        fill=config.fill,
        mark=config.mark,
        max_weight=config.max_weight,
        max_positions=config.max_positions,
        decided_at=seen.clock,
    )
