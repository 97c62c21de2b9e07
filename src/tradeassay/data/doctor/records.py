"""Checks on a panel's dated records: actions, memberships, figures, news."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tradeassay.core.time import DAY, iso, midnight, parse_day
from tradeassay.data.fault import Fault, Severity
from tradeassay.data.panel import Panel
from tradeassay.data.store.adjustment import ex_rows


def check_records(panel: Panel) -> Iterator[Fault]:
    """Yield faults of records; ``row`` counts records from 1 in the order the panel holds them."""
    yield from _check_actions(panel)
    yield from _check_memberships(panel)
    yield from _check_fundamentals(panel)
    yield from _check_news(panel)


def _fault(panel: Panel, table: str, row: int, check: str, reason: str, severity: Severity = "error") -> Fault:
    return Fault(check=check, file=f"{panel.name}/{table}", row=row + 1, reason=reason, severity=severity)


def _check_actions(panel: Panel) -> Iterator[Fault]:
    seen: set[tuple[str, str, str]] = set()
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    close = panel.bars["close"]
    for number, (row, action) in enumerate(
        zip(ex_rows(panel.actions, panel.sessions).tolist(), panel.actions, strict=True)
    ):
        key = (action.symbol, action.kind, action.ex_date)
        if key in seen:
            yield _fault(panel, "actions", number, "duplicate action",
                         f"a second {action.kind} of {action.symbol} on {action.ex_date}")  # fmt: skip
        seen.add(key)
        if not 0 <= row < panel.sessions.size:
            continue
        if str(panel.sessions[row]) != action.ex_date:
            yield _fault(panel, "actions", number, "ex-date is no session",
                         f"{action.symbol}: ex-date {action.ex_date} is no session, {panel.sessions[row]} is used",
                         "warning")  # fmt: skip
        earlier = close[:row, column[action.symbol]]
        quoted = earlier[np.isfinite(earlier)]
        if action.kind == "dividend" and quoted.size and action.value >= quoted[-1]:
            yield _fault(panel, "actions", number, "dividend above price",
                         f"{action.symbol} on {action.ex_date}: dividend {action.value:g} for a price of "
                         f"{quoted[-1]:g}")  # fmt: skip


def _check_memberships(panel: Panel) -> Iterator[Fault]:
    listed = {entry.instrument.symbol: entry.listed for entry in panel.listings}
    last_end: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(panel.memberships):
        if entry.end is not None and entry.end < entry.start:
            yield _fault(panel, "memberships", number, "membership ends before it starts",
                         f"{entry.symbol} in {entry.index}: from {entry.start} to {entry.end}")  # fmt: skip
        if entry.start < listed[entry.symbol] and entry.start >= str(panel.sessions[0]):
            yield _fault(panel, "memberships", number, "member before its listing",
                         f"{entry.symbol} is in {entry.index} from {entry.start}, listed {listed[entry.symbol]}",
                         "warning")  # fmt: skip
        key = (entry.index, entry.symbol)
        if key in last_end and entry.start <= last_end[key]:
            yield _fault(panel, "memberships", number, "overlapping membership",
                         f"{entry.symbol} is twice in {entry.index} on {entry.start}")  # fmt: skip
        last_end[key] = max(entry.end or "9999-12-31", last_end.get(key, ""))


def _check_fundamentals(panel: Panel) -> Iterator[Fault]:
    ends: dict[str, int] = {}
    for number, figure in enumerate(panel.fundamentals):
        end = ends.get(figure.period_end)
        if end is None:
            end = ends[figure.period_end] = midnight(parse_day(figure.period_end))
        if figure.known_at < end:
            yield _fault(panel, "fundamentals", number, "known before the period ended",
                         f"{figure.symbol} {figure.field}: known at {iso(figure.known_at)}, "
                         f"period ends {figure.period_end}")  # fmt: skip
        if not math.isfinite(figure.value):
            yield _fault(panel, "fundamentals", number, "no number",
                         f"{figure.symbol} {figure.field} of {figure.period_end} is {figure.value}")  # fmt: skip


def _check_news(panel: Panel) -> Iterator[Fault]:
    for number, item in enumerate(panel.news):
        if not item.title.strip() and not item.body.strip():
            yield _fault(
                panel, "news", number, "empty news", f"item {item.id} has neither title nor text", "warning"
            )
        if item.published_at < DAY:
            yield _fault(
                panel, "news", number, "undated news", f"item {item.id} is dated {iso(item.published_at)}"
            )
