"""``get_market_context``: indices, calendar, sector tone."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tradeassay.benchmarks.ktdfin.account import Headline, headlines
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool, refuse_other_day
from tradeassay.benchmarks.ktdfin.wire import Day, all_rounded, rounded
from tradeassay.core.view import Floats

HORIZONS = (1, 5, 20, 60)


class ContextArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``as_of`` may only name the last completed day: there is no other context."""

    as_of: Day | None = None


class IndexTone(msgspec.Struct, frozen=True, kw_only=True):
    """An index's returns, and its annualised volatility over 20 sessions. Its level is never shown."""

    name: str
    return_1d: float | None
    return_5d: float | None
    return_20d: float | None
    return_60d: float | None
    volatility_20d: float | None
    drawdown_60d: float | None


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """Where we are: the last completed day, the day whose open fills orders, and the step of the episode."""

    data_cutoff: Day | None
    trade_day: Day
    step: int


class Breadth(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the universe rose, fell, closed at a limit or are suspended."""

    names: int
    advancing: int
    declining: int
    at_limit_up: int
    at_limit_down: int
    suspended: int


class SectorTone(msgspec.Struct, frozen=True, kw_only=True):
    """A sector's equal-weighted return."""

    sector: str
    names: int
    return_1d: float | None
    return_5d: float | None
    return_20d: float | None


class MarketContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the market at the last close."""

    as_of: Day | None
    calendar: Calendar
    indices: tuple[IndexTone, ...]
    breadth: Breadth
    sector_tone: tuple[SectorTone, ...]
    news: tuple[Headline, ...] = ()


def market_context(desk: Desk, arguments: ContextArguments) -> MarketContext:
    """Return the state of the market at the last close."""
    refuse_other_day(desk, arguments.as_of)
    index = desk.rules.benchmark_index
    return MarketContext(
        as_of=desk.as_of,
        calendar=Calendar(data_cutoff=desk.as_of, trade_day=desk.today, step=desk.observation.step),
        indices=() if index is None else (_index_tone(desk.view.index_levels(index, HORIZONS[-1] + 1)),),
        breadth=_breadth(desk),
        sector_tone=_sectors(desk),
        news=headlines(desk, None) if desk.config.news else (),
    )


def _index_tone(levels: Floats) -> IndexTone:
    returns = [_over(levels, sessions) for sessions in HORIZONS]
    daily = levels[-21:]
    with np.errstate(all="ignore"):
        spread = _spread(daily[1:] / daily[:-1] - 1.0) * np.sqrt(252.0) if daily.size > 2 else np.nan
        fall = levels[-1] / levels.max() - 1.0 if levels.size else np.nan
    return IndexTone(
        name="benchmark_index",
        return_1d=returns[0],
        return_5d=returns[1],
        return_20d=returns[2],
        return_60d=returns[3],
        volatility_20d=rounded(spread),
        drawdown_60d=rounded(fall),
    )


def _spread(values: Floats) -> float:
    """Return what ``np.std`` with one degree of freedom less does, to the last bit, without its detours."""
    off = values - np.add.reduce(values) / values.size
    return math.sqrt(np.add.reduce(off * off) / (values.size - 1))


def _over(levels: Floats, sessions: int) -> float | None:
    return rounded(levels[-1] / levels[-1 - sessions] - 1.0) if levels.size > sessions else None


def _breadth(desk: Desk) -> Breadth:
    columns = desk.observation.columns
    change = desk.last_change[columns]
    return Breadth(
        names=int(columns.size),
        advancing=int(np.count_nonzero(change > 0)),
        declining=int(np.count_nonzero(change < 0)),
        at_limit_up=int(np.count_nonzero(desk.at_limit_up[columns])),
        at_limit_down=int(np.count_nonzero(desk.at_limit_down[columns])),
        suspended=int(columns.size - np.count_nonzero(desk.tradable[columns])),
    )


def _sectors(desk: Desk) -> tuple[SectorTone, ...]:
    columns = desk.observation.columns
    group = desk.roster.sector_of[columns]
    known = group >= 0
    group, columns = group[known], columns[known]
    sectors = desk.roster.sectors
    counts = np.bincount(group, minlength=len(sectors)).tolist()
    shown = [_means(group, desk.change(sessions)[columns], len(sectors)) for sessions in HORIZONS[:3]]
    return tuple(
        SectorTone(sector=sector, names=count, return_1d=day, return_5d=week, return_20d=month)
        for sector, count, day, week, month in zip(sectors, counts, *shown, strict=True)
        if count
    )


def _means(group: np.ndarray[tuple[int], np.dtype[np.int64]], values: Floats, sectors: int) -> list[float | None]:
    known = np.isfinite(values)
    group = group[known]
    sums = np.bincount(group, weights=values[known], minlength=sectors)
    with np.errstate(all="ignore"):
        return all_rounded(sums / np.bincount(group, minlength=sectors))


TOOL = Tool(
    name="get_market_context",
    description=(
        "The market at the last close: returns, volatility and drawdown of the benchmark index, where we are in "
        "the calendar, how many names rose and fell, and the tone of every sector. Takes no arguments."
    ),
    arguments=ContextArguments,
    answer=market_context,
)
