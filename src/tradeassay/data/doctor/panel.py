"""Checks on a whole panel, before it may become a snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tradeassay.core.time import parse_day
from tradeassay.core.view import Bools, Days
from tradeassay.data.calendars import known_range, sessions_between
from tradeassay.data.doctor.bars import GAP, check_bars, gaps
from tradeassay.data.doctor.records import check_records
from tradeassay.data.fault import Fault, Severity
from tradeassay.data.panel import Panel
from tradeassay.data.store.adjustment import factors, previous_close

NAN_WARNING, NAN_ERROR = 0.05, 0.50
"""Share of a listed name's sessions without a bar from which it is mentioned, and from which it is refused."""


def diagnose_panel(panel: Panel) -> tuple[Fault, ...]:
    """Return everything that looks wrong in a panel of correct form, errors before warnings.

    A synthetic panel's sessions are its own (no calendar check) and its moves are meant (a gap is a warning).
    """
    faults = [*_check_calendar(panel), *_check_bars(panel), *_check_presence(panel), *_check_gaps(panel),
              *_check_levels(panel), *_check_minutes(panel), *check_records(panel)]  # fmt: skip
    return tuple(sorted(faults, key=lambda fault: fault.severity))


def _fault(panel: Panel, check: str, row: int, column: int, reason: str, severity: Severity = "error") -> Fault:
    symbol, session = panel.listings[column].instrument.symbol, str(panel.sessions[row])
    return Fault(
        check=check,
        file=f"{panel.name}/bars",
        row=row + 1,
        reason=f"{symbol} on {session}: {reason}",
        severity=severity,
        symbol=symbol,
        session=session,
    )


def _check_calendar(panel: Panel) -> Iterator[Fault]:
    if panel.facts.kind == "synthetic":
        return
    days = panel.sessions.astype("datetime64[D]")
    earliest, latest = known_range(panel.facts.calendar)
    inside = days[(days >= _bound(earliest, days[0])) & (days <= _bound(latest, days[-1]))]
    if inside.size < days.size:
        yield Fault(
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
        yield Fault(
            check="bar on a holiday",
            file=f"{panel.name}/bars",
            row=row + 1,
            reason=f"{day} is no session of {panel.facts.calendar}",
            session=str(day),
        )
    for day in np.setdiff1d(expected, inside):
        yield Fault(
            check="missing session",
            file=f"{panel.name}/bars",
            row=int(np.searchsorted(days, day)) + 1,
            reason=f"the session {day} of {panel.facts.calendar} is missing",
            session=str(day),
        )


def _bound(day: str | None, otherwise: np.datetime64) -> np.datetime64:
    return otherwise if day is None else np.datetime64(parse_day(day), "D")


def _check_bars(panel: Panel) -> Iterator[Fault]:
    for suspicion in check_bars(panel.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            yield _fault(panel, suspicion.check, row, column, suspicion.reason((row, column)))


def listed_mask(panel: Panel) -> Bools:
    """Return where an instrument may trade, by its listing dates."""
    days: Days = panel.sessions.astype("datetime64[D]")[:, None]
    first = np.array([entry.listed for entry in panel.listings], dtype="datetime64[D]")
    last = np.array([entry.delisted or "9999-12-31" for entry in panel.listings], dtype="datetime64[D]")
    return (days >= first) & (days <= last)


def _check_presence(panel: Panel) -> Iterator[Fault]:
    present = np.isfinite(panel.bars["close"])
    listed = listed_mask(panel)
    for row, column in np.argwhere(present & ~listed).tolist():
        yield _fault(panel, "bar while unlisted", row, column, "a bar outside its listing dates")
    traded = present & panel.suspended & (panel.bars["volume"] > 0)
    for row, column in np.argwhere(traded).tolist():
        yield _fault(panel, "bar while suspended", row, column, "it traded while marked as suspended")
    due = listed & ~panel.suspended
    sessions, missing = due.sum(axis=0), (due & ~present).sum(axis=0)
    for column, entry in enumerate(panel.listings):
        share = missing[column] / sessions[column] if sessions[column] else 0.0
        if share <= NAN_WARNING and present[:, column].any():
            continue
        symbol = entry.instrument.symbol
        nothing = not present[:, column].any()
        yield Fault(
            check="missing bars",
            file=f"{panel.name}/bars",
            row=None,
            reason=f"{symbol} has no bar at all" if nothing
            else f"{symbol} has no bar in {missing[column]} of {sessions[column]} sessions",
            severity="error" if nothing or share > NAN_ERROR else "warning",
            symbol=symbol,
        )  # fmt: skip


def _check_gaps(panel: Panel) -> Iterator[Fault]:
    close = panel.bars["close"]
    previous = previous_close(close, factors(panel).total)
    yesterday = np.zeros(close.shape, dtype=np.bool_)
    yesterday[1:] = np.isfinite(close[:-1])
    for row, column in np.argwhere(gaps(panel.bars["open"], close, previous)).tolist():
        move = close[row, column] / previous[row, column] - 1
        resumed = not yesterday[row, column]
        synthetic = panel.facts.kind == "synthetic"
        yield _fault(
            panel,
            "gap without corporate action",
            row,
            column,
            f"close moved {move:+.0%} from the previous one{' before a pause' if resumed else ''}, "
            f"more than {GAP:.0%}, and no split or dividend explains it",
            "warning" if resumed or synthetic else "error",
        )


def _check_levels(panel: Panel) -> Iterator[Fault]:
    for index, levels in panel.indices.items():
        for row in np.flatnonzero(levels <= 0).tolist():
            yield Fault(
                check="price not positive",
                file=f"{panel.name}/indices",
                row=row + 1,
                reason=f"index {index} on {panel.sessions[row]}: level {levels[row]:g} is not positive",
                session=str(panel.sessions[row]),
            )


def _check_minutes(panel: Panel) -> Iterator[Fault]:
    minutes = panel.minutes
    if minutes is None:
        return
    where = np.searchsorted(panel.close_time, minutes.close_time)
    outside = where >= panel.sessions.size
    outside |= minutes.close_time <= panel.open_time[np.minimum(where, panel.sessions.size - 1)]
    for row in np.flatnonzero(outside).tolist():
        moment = np.datetime64(int(minutes.close_time[row]), "ns").astype("datetime64[s]")
        yield Fault(
            check="minute outside a session",
            file=f"{panel.name}/minutes",
            row=row + 1,
            reason=f"the minute ending {moment}Z lies outside every session",
            severity="warning",
        )
    for suspicion in check_bars(minutes.bars):
        for row, column in np.argwhere(suspicion.mask).tolist():
            moment = np.datetime64(int(minutes.close_time[row]), "ns").astype("datetime64[s]")
            yield Fault(
                check=suspicion.check,
                file=f"{panel.name}/minutes",
                row=row + 1,
                reason=f"{minutes.symbols[column]} at {moment}Z: {suspicion.reason((row, column))}",
                symbol=minutes.symbols[column],
            )
