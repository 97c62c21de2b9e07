"""Check market data for faults. Every panel is checked before it becomes a snapshot.

The checks on bars accept arrays of any shape, so they apply to raw tables and panels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tradeassay.core.arrays import Days
from tradeassay.tables.faults import DataFault, Severity
from tradeassay_bench.core.orders import LARGEST_PRICE, LEAST_PRICE
from tradeassay_bench.core.time import DAY, iso, midnight, parse_day
from tradeassay_bench.core.view import Field
from tradeassay_bench.data.calendars import known_range, sessions_between
from tradeassay_bench.data.source import Panel, ex_rows, factors, previous_close

LISTED_FAULTS = 1000
"""Maximum number of faults listed in a manifest. The counts always cover all faults."""


class AcceptedFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults that the user has accepted: the number per check, and the first faults in full."""

    counts: dict[str, int]
    listed: tuple[DataFault, ...]

    def __bool__(self) -> bool:
        return bool(self.counts)


def accept(faults: Iterable[DataFault]) -> AcceptedFaults:
    """Return the record of accepted faults for a manifest."""
    every = tuple(faults)
    counts = Counter(fault.check for fault in every)
    return AcceptedFaults(counts=dict(sorted(counts.items())), listed=every[:LISTED_FAULTS])


def _group_faults(
    faults: Iterable[DataFault], *fields: str
) -> Iterator[tuple[list[str], list[DataFault], str]]:
    """Yield faults in groups that share the values of some fields.

    Each group is a tuple of the values, the faults, and the number of rows as text ("3 rows").
    """
    groups: dict[tuple[str, ...], list[DataFault]] = {}
    for fault in faults:
        groups.setdefault(tuple(getattr(fault, name) for name in fields), []).append(fault)
    for values, group in groups.items():
        yield [*values], group, f"{len(group):,} {'row' if len(group) == 1 else 'rows'}"


def fault_lines(faults: Iterable[DataFault], *, limit: int | None = 3) -> list[str]:
    """Return lines for the terminal: the faults grouped by severity and check.

    Each group has the numbers of faulty rows and files, and its first ``limit`` faults (None: all).
    """
    lines = []
    for (severity, check), group, rows in _group_faults(faults, "severity", "check"):
        files = len({fault.file for fault in group})
        lines.append(
            f"{severity}: {check}: {rows} in {files:,} {'file' if files == 1 else 'files'}"
        )
        lines += [f"  {fault}" for fault in group[:limit]]
        if limit is not None and limit < len(group):
            lines.append(f"  and {len(group) - limit:,} more (--all shows them)")
    return lines


def faults_by_file(faults: Iterable[DataFault]) -> list[str]:
    """Return one line per check and file: the number of rows and the first fault."""
    return [
        f"{check}: {rows} of {file}, e.g. {group[0]}"
        for (check, file), group, rows in _group_faults(faults, "check", "file")
    ]


DROPS = {"bad-actions": "bad action", "undated": "undated record", "bad-figures": "bad figure"}
"""The values of the option ``drop``. Each value is mapped to the check whose faulty rows an import
skips.
"""


def describe(faults: Iterable[DataFault], *, limit: int = 3) -> str:
    """Return one line: the number of faults per check, and the first ``limit`` faults in full."""
    every = tuple(faults)
    counts = Counter(fault.check for fault in every)
    kinds = ", ".join(f"{count} {check}" for check, count in counts.most_common())
    shown = "; ".join(str(fault) for fault in every[:limit])
    more = f"; and {len(every) - limit} more" if len(every) > limit else ""
    return f"{kinds}: {shown}{more}"


TOLERANCE = 1e-6
"""Relative tolerance of comparisons within a bar, because vendors round adjusted prices separately.
"""

GAP = 0.30
"""Largest move from a close to the next open *and* close that needs no split or dividend as
explanation.
"""

Array = np.ndarray[Any, np.dtype[np.float64]]


class Suspicion(NamedTuple):
    """The bars that fail a check.

    ``mask`` marks the bars. ``reason`` returns the reason for one of them, given its index.
    """

    check: str
    mask: np.ndarray[Any, np.dtype[np.bool_]]
    reason: Callable[[Any], str]


def check_bars(bars: Mapping[Field, Array]) -> Iterator[Suspicion]:
    """Yield the checks that individual bars fail.

    A bar whose prices are all NaN is "no bar" and never fails.
    """
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
    allowed = f"a price must be between {LEAST_PRICE:g} and {LARGEST_PRICE:g}"
    yield Suspicion(
        "impossible price",
        absurd,
        lambda at: f"prices from {lowest[at]:g} to {highest[at]:g}; {allowed}",
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
    """Return a mask of bars with a jump of more than :data:`GAP` from the previous close.

    Open and close must both have moved, because a crash during the session moves only the close.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        opened, closed = open_ / previous - 1, close / previous - 1
    sane = (previous > 0) & (open_ > 0) & (close > 0)
    return sane & (((opened > GAP) & (closed > GAP)) | ((opened < -GAP) & (closed < -GAP)))


def _fault(
    panel: Panel,
    table: str,
    row: int | None,
    check: str,
    reason: str,
    severity: Severity = "error",
    **at: str,
) -> DataFault:
    """Return a fault in one of the panel's tables, with rows counted from 1."""
    number = None if row is None else row + 1
    return DataFault(
        check=check,
        file=f"{panel.name}/{table}",
        row=number,
        reason=reason,
        severity=severity,
        **at,
    )


def _check_actions(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for repeated, misdated or impossible corporate actions."""
    fault = partial(_fault, panel, "actions")
    seen: set[tuple[str, str, str]] = set()
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    close = panel.bars["close"]
    rows = ex_rows(panel.actions, panel.sessions).tolist()
    for number, (row, action) in enumerate(zip(rows, panel.actions, strict=True)):
        key = (action.symbol, action.kind, action.ex_date)
        label = f"{action.symbol} on {action.ex_date}"
        if key in seen:
            yield fault(number, "duplicate action", f"a second {action.kind} of {label}")
        seen.add(key)
        if not 0 <= row < panel.sessions.size:
            continue
        if str(panel.sessions[row]) != action.ex_date:
            reason = (
                f"{action.symbol}: {action.ex_date} is not a session, {panel.sessions[row]} is used"
            )
            yield fault(number, "ex-date is not a session", reason, "warning")
        earlier = close[:row, column[action.symbol]]
        quoted = earlier[np.isfinite(earlier)]
        if action.kind == "dividend" and quoted.size and action.value >= quoted[-1]:
            reason = f"{label}: dividend {action.value:g} for a price of {quoted[-1]:g}"
            yield fault(number, "dividend above price", reason)


def _check_memberships(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for periods of membership that overlap or contradict listings."""
    fault = partial(_fault, panel, "memberships")
    listed = {entry.instrument.symbol: entry.listed for entry in panel.listings}
    last_end: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(panel.memberships):
        if entry.end is not None and entry.end < entry.start:
            reason = f"{entry.symbol} in {entry.index}: from {entry.start} to {entry.end}"
            yield fault(number, "membership ends before it starts", reason)
        if entry.start < listed[entry.symbol] and entry.start >= str(panel.sessions[0]):
            reason = (
                f"{entry.symbol} is in {entry.index} from {entry.start}, listed "
                f"{listed[entry.symbol]}"
            )
            yield fault(number, "member before its listing", reason, "warning")
        key = (entry.index, entry.symbol)
        if key in last_end and entry.start <= last_end[key]:
            reason = f"{entry.symbol} is twice in {entry.index} on {entry.start}"
            yield fault(number, "overlapping membership", reason)
        last_end[key] = max(entry.end or "9999-12-31", last_end.get(key, ""))


def _check_texts_and_figures(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for undated or empty news and for impossible fundamentals."""
    ends: dict[str, int] = {}
    fault = partial(_fault, panel, "fundamentals")
    for number, figure in enumerate(panel.fundamentals):
        end = ends.get(figure.period_end)
        if end is None:
            end = midnight(parse_day(figure.period_end))
            ends[figure.period_end] = end
        label = f"{figure.symbol} {figure.field}"
        if figure.known_at < end:
            reason = f"{label}: known at {iso(figure.known_at)}, period ends {figure.period_end}"
            yield fault(number, "known before the period ended", reason)
        if not math.isfinite(figure.value):
            yield fault(number, "no number", f"{label} of {figure.period_end} is {figure.value}")
    fault = partial(_fault, panel, "news")
    for number, item in enumerate(panel.news):
        if not item.title.strip() and not item.body.strip():
            reason = f"item {item.id} has neither title nor text"
            yield fault(number, "empty news", reason, "warning")
        if item.published_at < DAY:
            yield fault(number, "undated news", f"item {item.id} is dated {iso(item.published_at)}")


NAN_WARNING, NAN_ERROR = 0.05, 0.50
"""Missing bars as a fraction of an instrument's listed sessions: thresholds of a warning and of an
error.
"""


def diagnose_panel(panel: Panel) -> tuple[DataFault, ...]:
    """Return all faults of a panel, errors first.

    A synthetic panel may have any sessions, and its price gaps are intended.
    """
    checks = (
        _check_calendar,
        _check_bars,
        _check_presence,
        _check_gaps,
        _check_minutes,
        _check_actions,
        _check_memberships,
        _check_texts_and_figures,
    )
    faults: list[DataFault] = []
    for check in checks:
        faults.extend(check(panel))
    return tuple(sorted(faults, key=lambda fault: fault.severity))


def _bad_bar(
    panel: Panel, check: str, row: int, column: int, reason: str, severity: Severity = "error"
) -> DataFault:
    symbol, session = panel.listings[column].instrument.symbol, str(panel.sessions[row])
    located = f"{symbol} on {session}: {reason}"
    return _fault(panel, "bars", row, check, located, severity, symbol=symbol, session=session)


def _check_calendar(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for days that are not sessions of the calendar, and for missing sessions."""
    if panel.facts.kind == "synthetic":
        return
    days, calendar = panel.sessions.astype("datetime64[D]"), panel.facts.calendar
    earliest, latest = known_range(calendar)
    begin = days[0] if earliest is None else np.datetime64(parse_day(earliest), "D")
    end = days[-1] if latest is None else np.datetime64(parse_day(latest), "D")
    inside = days[(days >= begin) & (days <= end)]
    if inside.size < days.size:
        outside = days.size - inside.size
        reason = f"{outside} sessions are outside the years whose {calendar} holidays are known"
        yield _fault(panel, "bars", None, "calendar unknown", reason, "warning")
    if not inside.size:
        return
    expected = sessions_between(calendar, str(inside[0]), str(inside[-1])).days
    for odd_days, check, reason in (
        (np.setdiff1d(inside, expected), "bar on a holiday", "{0} is not a session of {1}"),
        (np.setdiff1d(expected, inside), "missing session", "the session {0} of {1} is missing"),
    ):
        for day in odd_days:
            row = int(np.searchsorted(days, day))
            yield _fault(panel, "bars", row, check, reason.format(day, calendar), session=str(day))


def _check_bars(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for invalid bars and for index levels that are not positive."""
    for suspicion in check_bars(panel.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            yield _bad_bar(panel, suspicion.check, row, column, suspicion.reason((row, column)))
    for index, levels in panel.indices.items():
        for row in np.flatnonzero(levels <= 0).tolist():
            day = str(panel.sessions[row])
            reason = f"index {index} on {day}: level {levels[row]:g} is not positive"
            yield _fault(panel, "indices", row, "price not positive", reason, session=day)


def _check_presence(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for bars outside listings or in suspensions, and for missing bars."""
    present = np.isfinite(panel.bars["close"])
    days: Days = panel.sessions.astype("datetime64[D]")[:, None]
    first = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    last = np.array(
        [entry.delisted or "9999-12-31" for entry in panel.listings], dtype="datetime64[D]"
    )
    listed = (days >= first) & (days <= last)
    for row, column in np.argwhere(present & ~listed).tolist():
        yield _bad_bar(panel, "bar while unlisted", row, column, "a bar outside its listing dates")
    traded = present & panel.suspended & (panel.bars["volume"] > 0)
    for row, column in np.argwhere(traded).tolist():
        yield _bad_bar(
            panel, "bar while suspended", row, column, "it traded while marked as suspended"
        )
    due = listed & ~panel.suspended
    sessions, missing = due.sum(axis=0), (due & ~present).sum(axis=0)
    for column, entry in enumerate(panel.listings):
        share = missing[column] / sessions[column] if sessions[column] else 0.0
        nothing, symbol = not present[:, column].any(), entry.instrument.symbol
        if share > NAN_WARNING or nothing:
            how = "at all" if nothing else f"in {missing[column]} of {sessions[column]} sessions"
            severity: Severity = "error" if nothing or share > NAN_ERROR else "warning"
            reason = f"{symbol} has no bar {how}"
            yield _fault(panel, "bars", None, "missing bars", reason, severity, symbol=symbol)


def _check_gaps(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for large moves between two sessions that no action explains."""
    close = panel.bars["close"]
    previous = previous_close(close, factors(panel)[1])
    yesterday = np.zeros(close.shape, dtype=np.bool_)
    yesterday[1:] = np.isfinite(close[:-1])
    for row, column in np.argwhere(gaps(panel.bars["open"], close, previous)).tolist():
        with np.errstate(over="ignore"):
            move = close[row, column] / previous[row, column] - 1
        resumed = not yesterday[row, column]
        reason = (
            f"close moved {move:+.0%} from the previous one{' before a pause' if resumed else ''}, "
            f"more than {GAP:.0%}, and no split or dividend explains it"
        )
        severity: Severity = "warning" if resumed or panel.facts.kind == "synthetic" else "error"
        yield _bad_bar(panel, "gap without corporate action", row, column, reason, severity)


def _check_minutes(panel: Panel) -> Iterator[DataFault]:
    """Yield faults for invalid intraday bars and for bars outside every session."""
    minutes = panel.minutes
    if minutes is None:
        return
    where = np.searchsorted(panel.close_time, minutes.close_time)
    outside = where >= panel.sessions.size
    outside |= minutes.close_time <= panel.open_time[np.minimum(where, panel.sessions.size - 1)]
    ends = minutes.close_time.astype("datetime64[ns]").astype("datetime64[s]")
    for row in np.flatnonzero(outside).tolist():
        reason = f"the minute ending {ends[row]}Z is outside every session"
        yield _fault(panel, "minutes", row, "minute outside a session", reason, "warning")
    for suspicion in check_bars(minutes.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            symbol = minutes.symbols[column]
            reason = f"{symbol} at {ends[row]}Z: {suspicion.reason((row, column))}"
            yield _fault(panel, "minutes", row, suspicion.check, reason, symbol=symbol)
