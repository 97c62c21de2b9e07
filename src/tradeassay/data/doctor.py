"""Checks on a whole panel, before it may become a snapshot: its bars, and its dated records.

Bars are checked the same way in raw tables and in panels, whatever the array's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradeassay.core.orders import LARGEST_PRICE, LEAST_PRICE
from tradeassay.core.time import DAY, iso, midnight, parse_day
from tradeassay.core.view import Bools, Days, Field
from tradeassay.data.calendars import known_range, sessions_between
from tradeassay.data.fault import DataFault, Severity
from tradeassay.data.panel import Panel
from tradeassay.data.store.adjustment import ex_rows, factors, previous_close

TOLERANCE = 1e-6
"""Relative slack of comparisons inside a bar: vendors round adjusted prices field by field."""

GAP = 0.30
"""A move of more than this from one close to the next open *and* close calls for a corporate action."""

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Where a check fails: a mask over the bars, and a function that says why at one of them."""

    check: str
    mask: np.ndarray[Any, np.dtype[np.bool_]]
    reason: Callable[[Any], str]


def check_bars(bars: Mapping[Field, Array]) -> Iterator[Suspicion]:
    """Yield what is wrong inside single bars. NaN in every price means "no bar" and is never wrong."""
    o, h, l, c = bars["open"], bars["high"], bars["low"], bars["close"]  # noqa: E741 - the trade's own letters
    prices = {"open": o, "high": h, "low": l, "close": c}
    present = [np.isfinite(values) for values in prices.values()]
    some, every = np.logical_or.reduce(present), np.logical_and.reduce(present)

    def names(where: Any) -> str:
        return ", ".join(name for name, values in prices.items() if not np.isfinite(values[where]))

    yield Suspicion("incomplete bar", some & ~every, lambda at: f"the bar has no {names(at)}")
    lowest, highest = np.fmin.reduce([o, h, l, c]), np.fmax.reduce([o, h, l, c])
    wrong = lowest <= 0
    yield Suspicion("price not positive", wrong, lambda at: f"price {lowest[at]:g} is not positive")
    absurd = ((lowest < LEAST_PRICE) & ~wrong) | (highest > LARGEST_PRICE)
    yield Suspicion(
        "impossible price",
        absurd,
        lambda at: (
            f"prices from {lowest[at]:g} to {highest[at]:g}; one lies between {LEAST_PRICE:g} and "
            f"{LARGEST_PRICE:g}"
        ),
    )
    slack = 1 + TOLERANCE
    inverted = (h * slack < l) & ~wrong
    yield Suspicion("high below low", inverted, lambda at: f"high {h[at]:g} is below low {l[at]:g}")
    top, bottom = np.fmax(o, c), np.fmin(o, c)
    yield Suspicion(
        "high below open or close",
        (h * slack < top) & ~inverted & ~wrong,
        lambda at: f"high {h[at]:g} is below {'open' if o[at] >= c[at] else 'close'} {top[at]:g}",
    )
    yield Suspicion(
        "low above open or close",
        (l > bottom * slack) & ~inverted & ~wrong,
        lambda at: f"low {l[at]:g} is above {'open' if o[at] <= c[at] else 'close'} {bottom[at]:g}",
    )
    volume, amount = bars["volume"], bars["amount"]
    yield Suspicion("negative volume", volume < 0, lambda at: f"volume {volume[at]:g} is negative")
    yield Suspicion("negative amount", amount < 0, lambda at: f"amount {amount[at]:g} is negative")


def gaps(open_: Array, close: Array, previous: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where open and close both lie more than :data:`GAP` from the previous close: a crash moves the close
    alone.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        opened, closed = open_ / previous - 1, close / previous - 1
    sane = (previous > 0) & (open_ > 0) & (close > 0)
    return sane & (((opened > GAP) & (closed > GAP)) | ((opened < -GAP) & (closed < -GAP)))


def check_records(panel: Panel) -> Iterator[DataFault]:
    """Yield faults of records; ``row`` counts records from 1 in the order the panel holds them."""
    yield from _check_actions(panel)
    yield from _check_memberships(panel)
    yield from _check_fundamentals(panel)
    yield from _check_news(panel)


def _bad_row(
    panel: Panel, table: str, row: int, check: str, reason: str, severity: Severity = "error"
) -> DataFault:
    return DataFault(check=check, file=f"{panel.name}/{table}", row=row + 1, reason=reason, severity=severity)


def _check_actions(panel: Panel) -> Iterator[DataFault]:
    seen: set[tuple[str, str, str]] = set()
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    close = panel.bars["close"]
    for number, (row, action) in enumerate(
        zip(ex_rows(panel.actions, panel.sessions).tolist(), panel.actions, strict=True)
    ):
        key = (action.symbol, action.kind, action.ex_date)
        if key in seen:
            yield _bad_row(
                panel,
                "actions",
                number,
                "duplicate action",
                f"a second {action.kind} of {action.symbol} on {action.ex_date}",
            )
        seen.add(key)
        if not 0 <= row < panel.sessions.size:
            continue
        if str(panel.sessions[row]) != action.ex_date:
            yield _bad_row(
                panel,
                "actions",
                number,
                "ex-date is not a session",
                f"{action.symbol}: {action.ex_date} is not a session, {panel.sessions[row]} is used",
                "warning",
            )
        earlier = close[:row, column[action.symbol]]
        quoted = earlier[np.isfinite(earlier)]
        if action.kind == "dividend" and quoted.size and action.value >= quoted[-1]:
            yield _bad_row(
                panel,
                "actions",
                number,
                "dividend above price",
                f"{action.symbol} on {action.ex_date}: dividend {action.value:g} for a price of {quoted[-1]:g}",
            )


def _check_memberships(panel: Panel) -> Iterator[DataFault]:
    listed = {entry.instrument.symbol: entry.listed for entry in panel.listings}
    last_end: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(panel.memberships):
        if entry.end is not None and entry.end < entry.start:
            yield _bad_row(
                panel,
                "memberships",
                number,
                "membership ends before it starts",
                f"{entry.symbol} in {entry.index}: from {entry.start} to {entry.end}",
            )
        if entry.start < listed[entry.symbol] and entry.start >= str(panel.sessions[0]):
            yield _bad_row(
                panel,
                "memberships",
                number,
                "member before its listing",
                f"{entry.symbol} is in {entry.index} from {entry.start}, listed {listed[entry.symbol]}",
                "warning",
            )
        key = (entry.index, entry.symbol)
        if key in last_end and entry.start <= last_end[key]:
            yield _bad_row(
                panel,
                "memberships",
                number,
                "overlapping membership",
                f"{entry.symbol} is twice in {entry.index} on {entry.start}",
            )
        last_end[key] = max(entry.end or "9999-12-31", last_end.get(key, ""))


def _check_fundamentals(panel: Panel) -> Iterator[DataFault]:
    ends: dict[str, int] = {}
    for number, figure in enumerate(panel.fundamentals):
        end = ends.get(figure.period_end)
        if end is None:
            end = ends[figure.period_end] = midnight(parse_day(figure.period_end))
        if figure.known_at < end:
            yield _bad_row(
                panel,
                "fundamentals",
                number,
                "known before the period ended",
                f"{figure.symbol} {figure.field}: known at {iso(figure.known_at)}, "
                f"period ends {figure.period_end}",
            )
        if not math.isfinite(figure.value):
            yield _bad_row(
                panel,
                "fundamentals",
                number,
                "no number",
                f"{figure.symbol} {figure.field} of {figure.period_end} is {figure.value}",
            )


def _check_news(panel: Panel) -> Iterator[DataFault]:
    for number, item in enumerate(panel.news):
        if not item.title.strip() and not item.body.strip():
            yield _bad_row(
                panel, "news", number, "empty news", f"item {item.id} has neither title nor text", "warning"
            )
        if item.published_at < DAY:
            yield _bad_row(
                panel, "news", number, "undated news", f"item {item.id} is dated {iso(item.published_at)}"
            )


NAN_WARNING, NAN_ERROR = 0.05, 0.50
"""Shares of a listed name's sessions without a bar at which it is mentioned, and at which it is refused."""


def diagnose_panel(panel: Panel) -> tuple[DataFault, ...]:
    """Return everything that looks wrong, errors first. A synthetic panel's sessions are its own and its gaps
    intended.
    """
    faults = [
        *_check_calendar(panel),
        *_check_bars(panel),
        *_check_presence(panel),
        *_check_gaps(panel),
        *_check_levels(panel),
        *_check_minutes(panel),
        *check_records(panel),
    ]
    return tuple(sorted(faults, key=lambda fault: fault.severity))


def _bad_bar(
    panel: Panel, check: str, row: int, column: int, reason: str, severity: Severity = "error"
) -> DataFault:
    symbol, session = panel.listings[column].instrument.symbol, str(panel.sessions[row])
    return DataFault(
        check=check,
        file=f"{panel.name}/bars",
        row=row + 1,
        reason=f"{symbol} on {session}: {reason}",
        severity=severity,
        symbol=symbol,
        session=session,
    )


def _check_calendar(panel: Panel) -> Iterator[DataFault]:
    if panel.facts.kind == "synthetic":
        return
    days = panel.sessions.astype("datetime64[D]")
    earliest, latest = known_range(panel.facts.calendar)
    inside = days[(days >= _bound(earliest, days[0])) & (days <= _bound(latest, days[-1]))]
    if inside.size < days.size:
        yield DataFault(
            check="calendar unknown",
            file=f"{panel.name}/bars",
            row=None,
            reason=f"{days.size - inside.size} sessions lie outside {panel.facts.calendar}'s known holidays",
            severity="warning",
        )
    if not inside.size:
        return
    expected = sessions_between(panel.facts.calendar, str(inside[0]), str(inside[-1])).days
    for day in np.setdiff1d(inside, expected):
        row = int(np.searchsorted(days, day))
        yield DataFault(
            check="bar on a holiday",
            file=f"{panel.name}/bars",
            row=row + 1,
            reason=f"{day} is not a session of {panel.facts.calendar}",
            session=str(day),
        )
    for day in np.setdiff1d(expected, inside):
        yield DataFault(
            check="missing session",
            file=f"{panel.name}/bars",
            row=int(np.searchsorted(days, day)) + 1,
            reason=f"the session {day} of {panel.facts.calendar} is missing",
            session=str(day),
        )


def _bound(day: str | None, otherwise: np.datetime64) -> np.datetime64:
    return otherwise if day is None else np.datetime64(parse_day(day), "D")


def _check_bars(panel: Panel) -> Iterator[DataFault]:
    for suspicion in check_bars(panel.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            yield _bad_bar(panel, suspicion.check, row, column, suspicion.reason((row, column)))


def listed_mask(panel: Panel) -> Bools:
    days: Days = panel.sessions.astype("datetime64[D]")[:, None]
    first = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    last = np.array([entry.delisted or "9999-12-31" for entry in panel.listings], dtype="datetime64[D]")
    return (days >= first) & (days <= last)


def _check_presence(panel: Panel) -> Iterator[DataFault]:
    present = np.isfinite(panel.bars["close"])
    listed = listed_mask(panel)
    for row, column in np.argwhere(present & ~listed).tolist():
        yield _bad_bar(panel, "bar while unlisted", row, column, "a bar outside its listing dates")
    traded = present & panel.suspended & (panel.bars["volume"] > 0)
    for row, column in np.argwhere(traded).tolist():
        yield _bad_bar(panel, "bar while suspended", row, column, "it traded while marked as suspended")
    due = listed & ~panel.suspended
    sessions, missing = due.sum(axis=0), (due & ~present).sum(axis=0)
    for column, entry in enumerate(panel.listings):
        share = missing[column] / sessions[column] if sessions[column] else 0.0
        if share <= NAN_WARNING and present[:, column].any():
            continue
        symbol = entry.instrument.symbol
        nothing = not present[:, column].any()
        yield DataFault(
            check="missing bars",
            file=f"{panel.name}/bars",
            row=None,
            reason=f"{symbol} has no bar at all"
            if nothing
            else f"{symbol} has no bar in {missing[column]} of {sessions[column]} sessions",
            severity="error" if nothing or share > NAN_ERROR else "warning",
            symbol=symbol,
        )


def _check_gaps(panel: Panel) -> Iterator[DataFault]:
    close = panel.bars["close"]
    previous = previous_close(close, factors(panel).total)
    yesterday = np.zeros(close.shape, dtype=np.bool_)
    yesterday[1:] = np.isfinite(close[:-1])
    for row, column in np.argwhere(gaps(panel.bars["open"], close, previous)).tolist():
        with np.errstate(over="ignore"):
            move = close[row, column] / previous[row, column] - 1
        resumed = not yesterday[row, column]
        synthetic = panel.facts.kind == "synthetic"
        yield _bad_bar(
            panel,
            "gap without corporate action",
            row,
            column,
            f"close moved {move:+.0%} from the previous one{' before a pause' if resumed else ''}, "
            f"more than {GAP:.0%}, and no split or dividend explains it",
            "warning" if resumed or synthetic else "error",
        )


def _check_levels(panel: Panel) -> Iterator[DataFault]:
    for index, levels in panel.indices.items():
        for row in np.flatnonzero(levels <= 0).tolist():
            yield DataFault(
                check="price not positive",
                file=f"{panel.name}/indices",
                row=row + 1,
                reason=f"index {index} on {panel.sessions[row]}: level {levels[row]:g} is not positive",
                session=str(panel.sessions[row]),
            )


def _check_minutes(panel: Panel) -> Iterator[DataFault]:
    minutes = panel.minutes
    if minutes is None:
        return
    where = np.searchsorted(panel.close_time, minutes.close_time)
    outside = where >= panel.sessions.size
    outside |= minutes.close_time <= panel.open_time[np.minimum(where, panel.sessions.size - 1)]
    for row in np.flatnonzero(outside).tolist():
        moment = np.datetime64(int(minutes.close_time[row]), "ns").astype("datetime64[s]")
        yield DataFault(
            check="minute outside a session",
            file=f"{panel.name}/minutes",
            row=row + 1,
            reason=f"the minute ending {moment}Z lies outside every session",
            severity="warning",
        )
    for suspicion in check_bars(minutes.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            moment = np.datetime64(int(minutes.close_time[row]), "ns").astype("datetime64[s]")
            yield DataFault(
                check=suspicion.check,
                file=f"{panel.name}/minutes",
                row=row + 1,
                reason=f"{minutes.symbols[column]} at {moment}Z: {suspicion.reason((row, column))}",
                symbol=minutes.symbols[column],
            )
