"""The charts of a run's page: what its accounts earned, fell, held and traded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec
import numpy as np
from markupsafe import Markup

from tradeassay.core.measure import plain_sum
from tradeassay.report.charts import (
    INDEX,
    INDEX_LINE,
    MOST_HELD,
    MOST_LINES,
    PERIODS,
    ChartLook,
    Curve,
    Equity,
    LineStyle,
    Marks,
    area_chart,
    curve_chart,
    day_number,
    kept,
    line_chart,
    picked,
    since_start,
)
from tradeassay.runs.summary import AgentSummary, CellSummary

HELD_POINTS = 64
"""Points of a chart of holdings."""
PRICE_POINTS = 110
"""Points of the closes on which trades are put."""


class CellCharts(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of a cell; ``holdings`` and ``trades`` by the agents' places on the page.

    ``prices`` are the charts on which ``charts.js`` puts the trades, by symbol; ``trades`` are (place in
    ``prices``, purchases and sales as (day, price, size)), the largest traded value first."""

    equity: Markup
    underwater: Markup
    holdings: dict[str, Markup]
    trades: dict[str, list[tuple[int, list[tuple[int, float, float]]]]]
    prices: dict[str, Markup]


def cell_charts(cell: CellSummary, place: str, look: dict[str, LineStyle], ids: dict[str, str]) -> CellCharts:
    """Return the charts of a cell at ``place`` of a page; ``ids`` are the agents' places there."""
    equity, underwater = account_curves(cell)
    detailed = [agent for agent in cell.agents if agent.name in ids]
    traded_by = {ids[agent.name]: traded(agent) for agent in detailed}
    prices: dict[str, list[tuple[int, float, float]]] = {}
    for by_symbol in traded_by.values():
        for symbol, trades in by_symbol.items():
            prices.setdefault(symbol, []).extend(trades)
    places = {symbol: number for number, symbol in enumerate(prices)}
    holdings = {ids[agent.name]: holdings_chart(agent, cell.sessions) for agent in detailed}
    styled = look | {INDEX_LINE: INDEX}
    about = "Line chart of every agent's return since the start; the same results are in the leaderboard"
    grown = line_chart(equity, ChartLook(styles=styled), about, cell=place, periods=PERIODS)
    about, low = (
        "Line chart of every agent's fall from its last peak",
        ChartLook(styles=styled, size="low", names="room"),
    )
    return CellCharts(
        equity=grown,
        underwater=line_chart(underwater, low, about, cell=place, periods=PERIODS),
        holdings={id: chart for id, chart in holdings.items() if chart is not None},
        trades={id: [(places[name], made) for name, made in known.items()] for id, known in traded_by.items()},
        prices={symbol: _price_chart(cell, symbol, trades) for symbol, trades in prices.items()},
    )


def account_curves(cell: CellSummary) -> tuple[Equity, Equity]:
    """Return the first accounts' return since the start beside one market, and their fall from the last peak.

    The market is the baseline that all are compared with, or the index where there is none."""
    every = [agent for agent in cell.ranked if agent.paths and agent.path[0] > 0]
    first = [agent.name for agent in every if not agent.baseline][:MOST_LINES]
    drawn = [agent for agent in every if agent.baseline or agent.name in first]
    places = kept(len(cell.sessions) + 1, [agent.path for agent in drawn])
    lines = [(agent.name, agent.name, agent.baseline, since_start(agent.path)) for agent in drawn]
    if cell.index is not None and cell.index_name and not any(agent.baseline for agent in drawn):
        lines.append((INDEX_LINE, f"index {cell.index_name}", False, since_start(cell.index)))
    falls = [
        (one.name, one.name, one.baseline, one.detail.falls) for one in drawn if one.detail and one.detail.falls
    ]
    return curve_chart(cell.sessions, places, lines), curve_chart(cell.sessions, places, falls)


def holdings_chart(agent: AgentSummary, sessions: Sequence[str]) -> Markup | None:
    """Return the holdings of the shown repetition over time, largest names first; None when nothing was held."""
    held = None if agent.detail is None else agent.detail.holdings
    if held is None or not held.symbols:
        return None
    weights = np.asarray(held.weights, dtype=np.float64)
    order = np.argsort(-np.abs(weights).mean(axis=1), kind="stable")
    places = kept(weights.shape[1], [], HELD_POINTS)
    rows = [(held.symbols[place], weights[place]) for place in order[:MOST_HELD]]
    if len(order) > MOST_HELD:
        rows.append((f"{len(order) - MOST_HELD} others", weights[order[MOST_HELD:]].sum(axis=0)))
    days = [sessions[place] for place in places]
    return area_chart(days, [(name, picked(row.tolist(), places, 3)) for name, row in rows])


def traded(agent: AgentSummary) -> dict[str, list[tuple[int, float, float]]]:
    """Return trades (day, price, size) by symbol, the largest traded value first."""
    by_symbol: dict[str, list[tuple[int, float, float]]] = {}
    for trade in () if agent.detail is None else agent.detail.trades:
        size = float(f"{trade.quantity:.3g}")
        place = (day_number(trade.session), float(f"{trade.price:.5g}"), int(size) if size.is_integer() else size)
        by_symbol.setdefault(trade.symbol, []).append(place)
    value = {name: plain_sum(abs(price * size) for _, price, size in made) for name, made in by_symbol.items()}
    return {symbol: by_symbol[symbol] for symbol in sorted(by_symbol, key=lambda symbol: -value[symbol])}


def _price_chart(cell: CellSummary, symbol: str, trades: Sequence[tuple[int, float, float]]) -> Markup:
    """Return the closes of a symbol in a frame that has room for every agent's trades."""
    known = cell.prices.get(symbol)
    places = kept(len(cell.sessions), [], PRICE_POINTS) if known is not None else []
    closes = [None if known is None else known[place] for place in places]
    values = tuple(None if one is None or not np.isfinite(one) else float(f"{one:.5g}") for one in closes)
    points = [(date.fromordinal(day).isoformat(), price, "") for day, price, _ in trades]
    chart = Equity(
        days=tuple(cell.sessions[place] for place in places),
        curves=(Curve(entry="", label="close", returns=values),),
        sessions=len(cell.sessions),
    )
    room = Marks(label="", glyph="", tone="", points=tuple(points))
    look = ChartLook(size="mid", form="number", names="none")
    return line_chart(chart, look, f"Closing price of {symbol} with purchases and sales", marks=(room,))
