"""What the charts of a page are drawn from, as plain records for ``charts.js``: accounts, holdings, trades.

Points are thinned for a picture, never for a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from tradeassay.report.palette import INDEX, LineStyle
from tradeassay.runs.summary import AgentSummary, CellSummary

LIMIT = 220
"""Points of a line that are drawn; its highest and lowest and its deepest fall are always among them."""
INDEX_LINE = "@index"
_MOST_HELD = 9
_HELD_POINTS = 110


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One account: its return since the start (or its fall from the last peak) at every day of the chart."""

    entry: str
    label: str
    baseline: bool
    returns: tuple[float | None, ...]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """Where 90 % of the random accounts lie, and their middle, as returns since the start."""

    low: tuple[float | None, ...]
    middle: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Equity(msgspec.Struct, frozen=True, kw_only=True):
    """The chart. ``days`` begins the day before the first session; ``thinned``: not every session is a point."""

    days: tuple[str, ...]
    curves: tuple[Curve, ...]
    band: Band | None
    sessions: int
    thinned: bool


class HeldChart(msgspec.Struct, frozen=True, kw_only=True):
    """Holdings of the largest names over time, ``others`` last as one; ``places`` are the sessions drawn."""

    names: tuple[str, ...]
    weights: tuple[tuple[float | None, ...], ...]
    places: tuple[int, ...]
    others: bool
    short: bool


class TradedSymbol(msgspec.Struct, frozen=True, kw_only=True):
    """Trades in one symbol: (session, price, size) of purchases and of sales."""

    symbol: str
    buys: tuple[tuple[str, float, float], ...]
    sells: tuple[tuple[str, float, float], ...]


class AgentCharts(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of one agent."""

    holdings: HeldChart | None
    trades: tuple[TradedSymbol, ...]


class CellCharts(msgspec.Struct, frozen=True, kw_only=True):
    """All charts of a cell; ``look`` is every agent's line style, ``prices`` are those under the trades, at the
    sessions ``priced``."""

    look: dict[str, LineStyle]
    sessions: tuple[str, ...]
    equity: Equity
    underwater: Equity
    agents: dict[str, AgentCharts]
    priced: tuple[int, ...]
    prices: dict[str, tuple[float | None, ...]]


def cell_charts(cell: CellSummary, look: dict[str, LineStyle], ids: dict[str, str]) -> CellCharts:
    """Return the charts of a cell; ``ids`` are the agents' places on the page."""
    drawn = [agent for agent in cell.ranked if agent.paths and agent.path[0] > 0]
    places = kept(len(cell.sessions) + 1, [agent.path for agent in drawn])
    lines = [(agent.name, agent.name, agent.baseline, _since_start(agent.path)) for agent in drawn]
    if cell.index is not None and cell.index_name:
        lines.append((INDEX_LINE, f"index {cell.index_name}", False, _since_start(cell.index)))
    falls = [
        (agent.name, agent.name, agent.baseline, agent.detail.falls)
        for agent in drawn
        if agent.detail is not None and agent.detail.falls
    ]
    agents = {
        ids[agent.name]: AgentCharts(holdings=holdings(agent), trades=traded(agent)) for agent in cell.agents
    }
    wanted = {one.symbol for charts in agents.values() for one in charts.trades}
    priced = kept(len(cell.sessions), [])
    return CellCharts(
        look=look | {INDEX_LINE: INDEX},
        sessions=cell.sessions,
        equity=curve_chart(cell.sessions, places, lines),
        underwater=curve_chart(cell.sessions, places, falls),
        agents=agents,
        priced=tuple(priced),
        prices={
            symbol: tuple(_price(values[place]) for place in priced)
            for symbol, values in cell.prices.items()
            if symbol in wanted
        },
    )


def curve_chart(
    sessions: Sequence[str],
    places: Sequence[int],
    lines: Iterable[tuple[str, str, bool, Sequence[float]]],
    band: Band | None = None,
) -> Equity:
    """Return lines (id, label, whether it is the baseline, values from before the first session on) as a chart."""
    if not sessions:
        return Equity(days=(), curves=(), band=None, sessions=0, thinned=False)
    axis = [str(np.datetime64(sessions[0][:10]) - np.timedelta64(1, "D")), *sessions]
    return Equity(
        days=tuple(axis[place] for place in places),
        curves=tuple(
            Curve(entry=entry, label=label, baseline=baseline, returns=picked(values, places))
            for entry, label, baseline, values in lines
        ),
        band=band,
        sessions=len(sessions),
        thinned=len(places) <= len(sessions),
    )


def kept(n: int, paths: Sequence[Sequence[float]], limit: int = LIMIT) -> list[int]:
    """Return which of ``n`` points to draw: all when there are few, else evenly spaced ones.

    The highest and lowest point and the deepest drawdown of every path are always among them, as are both ends.
    """
    if n <= limit:
        return list(range(n))
    places = {int(place) for place in np.linspace(0, n - 1, limit)}
    for path in paths:
        values = np.asarray(path, dtype=np.float64)
        if values.shape[0] == n:
            fall = values / np.maximum.accumulate(values)
            places |= {int(values.argmax()), int(values.argmin()), int(fall.argmin())}
    return sorted(places)


def picked(values: Sequence[float], places: Sequence[int], digits: int = 5) -> tuple[float | None, ...]:
    """Return the values at ``places`` with ``digits`` decimals; what is not finite becomes None."""
    found = (float(values[place]) for place in places)
    return tuple(round(value, digits) if np.isfinite(value) else None for value in found)


def holdings(agent: AgentSummary) -> HeldChart | None:
    """Return the holdings of the shown repetition over time, largest names first; None when nothing was held."""
    held = None if agent.detail is None else agent.detail.holdings
    if held is None or not held.symbols:
        return None
    weights = np.asarray(held.weights, dtype=np.float64)
    order = np.argsort(-np.abs(weights).mean(axis=1), kind="stable")
    places = kept(weights.shape[1], [], _HELD_POINTS)
    rows = [(held.symbols[place], weights[place]) for place in order[:_MOST_HELD]]
    others = len(order) - _MOST_HELD
    if others > 0:
        rows.append((f"{others} others", weights[order[_MOST_HELD:]].sum(axis=0)))
    return HeldChart(
        names=tuple(name for name, _ in rows),
        weights=tuple(picked(row.tolist(), places, 4) for _, row in rows),
        places=tuple(places),
        others=others > 0,
        short=bool((weights < 0).any()),
    )


def traded(agent: AgentSummary) -> tuple[TradedSymbol, ...]:
    """Return trades by symbol, the largest traded value first; the page shows the symbol that is chosen."""
    by_symbol: dict[str, list[tuple[str, float, float]]] = {}
    for trade in () if agent.detail is None else agent.detail.trades:
        by_symbol.setdefault(trade.symbol, []).append((trade.session, trade.price, trade.quantity))
    order = sorted(by_symbol, key=lambda symbol: -sum(abs(price * size) for _, price, size in by_symbol[symbol]))
    return tuple(
        TradedSymbol(
            symbol=symbol,
            buys=tuple((day, _six(price), _six(size)) for day, price, size in by_symbol[symbol] if size > 0),
            sells=tuple((day, _six(price), _six(-size)) for day, price, size in by_symbol[symbol] if size < 0),
        )
        for symbol in order
    )


def _since_start(path: Sequence[float]) -> list[float]:
    values = np.asarray(path, dtype=np.float64)
    return list((values / values[0] - 1.0).tolist())


def _price(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _six(value: float) -> float:
    """Return a value with six significant digits."""
    return float(f"{value:.6g}")
