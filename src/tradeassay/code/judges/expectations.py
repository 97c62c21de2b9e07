"""What a task expects of any right solution, checked on the host's own trades."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tradeassay.code.backtrader.account import Trade
from tradeassay.code.bars import TaskBars
from tradeassay.code.task import Expectations


def check_expectations(
    expect: Expectations, trades: Sequence[Trade], order_kinds: Collection[str], bars: TaskBars
) -> tuple[str, ...]:
    """Return every expectation that a run violates, in words; empty when it keeps them all."""
    found: list[str] = []
    if len(trades) < expect.min_trades:
        found.append(f"{len(trades)} trades, at least {expect.min_trades} are expected")
    if expect.max_trades is not None and len(trades) > expect.max_trades:
        found.append(f"{len(trades)} trades, at most {expect.max_trades} are expected")
    found += _directions(expect, trades)
    if expect.max_open_positions is not None:
        most = most_open(trades, bars.rows)
        if most > expect.max_open_positions:
            found.append(f"{most} assets held at once, at most {expect.max_open_positions} are expected")
    if expect.max_holding_bars is not None:
        longest = max(
            (min(_end(trade, bars.rows), bars.rows - 1) - trade.entry_bar for trade in trades), default=0
        )
        if longest > expect.max_holding_bars:
            found.append(f"a trade held for {longest} bars, at most {expect.max_holding_bars} are expected")
    if expect.flat_by_session_end and _overnight(trades, bars):
        found.append(f"{_overnight(trades, bars)} trades held over the end of a session, none is expected")
    missing = [kind for kind in expect.order_kinds if kind not in order_kinds]
    if missing:
        found.append(f"no order of the kind {' or '.join(missing)}, which the task asks for")
    return tuple(found)


def most_open(trades: Sequence[Trade], rows: int) -> int:
    """Return the largest number of assets held at one bar's close."""
    assets = sorted({trade.asset for trade in trades})
    held = np.zeros((rows, len(assets)), dtype=bool)
    for trade in trades:
        held[trade.entry_bar : _end(trade, rows), assets.index(trade.asset)] = True
    return int(held.sum(axis=1).max()) if held.size else 0


def _directions(expect: Expectations, trades: Sequence[Trade]) -> list[str]:
    longs = sum(trade.long for trade in trades)
    shorts = len(trades) - longs
    if expect.direction == "long" and shorts:
        return [f"{shorts} short trades, only long ones are expected"]
    if expect.direction == "short" and longs:
        return [f"{longs} long trades, only short ones are expected"]
    return []


def _end(trade: Trade, rows: int) -> int:
    return rows if trade.exit_bar is None else trade.exit_bar


def _overnight(trades: Sequence[Trade], bars: TaskBars) -> int:
    """Count trades that were open at the close of a session's last bar; the data's own last bar ends no
    session.
    """
    sessions = bars.sessions
    last = np.flatnonzero(sessions[1:] != sessions[:-1])
    count = 0
    for trade in trades:
        start, stop = np.searchsorted(last, (trade.entry_bar, _end(trade, bars.rows)))
        count += bool(stop > start)
    return count
