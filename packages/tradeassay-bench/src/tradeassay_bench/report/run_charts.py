"""Draw the charts of a run's page: returns, drawdowns, holdings and trades of its accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec
import numpy as np
from markupsafe import Markup

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
    day_number,
    line_chart,
    picked,
)
from tradeassay_bench.report.curves import curve_chart, kept, since_start
from tradeassay_bench.runs.summary import AgentSummary, SettingSummary

HELD_POINTS = 64
"""The maximum number of points of a chart of holdings."""
PRICE_POINTS = 110
"""The maximum number of closing prices of a chart with trades."""


class SettingCharts(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of a setting.

    ``holdings`` and ``trades`` map the agents' ids on the page to charts and trades. ``prices``
    contains a chart per symbol, to which ``charts.js`` adds the trades. A trade list contains the
    index of its chart in ``prices``, and the purchases and sales as (day, price, size). The largest
    traded value is first.
    """

    equity: Markup
    underwater: Markup
    holdings: dict[str, Markup]
    trades: dict[str, list[tuple[int, list[tuple[int, float, float]]]]]
    prices: dict[str, Markup]


def setting_charts(
    setting: SettingSummary, place: str, look: dict[str, LineStyle], ids: dict[str, str]
) -> SettingCharts:
    """Return the charts of a setting.

    ``place`` is the id of the setting on the page. ``ids`` contains the ids of the agents.
    """
    equity, underwater = account_curves(setting)
    detailed = [agent for agent in setting.agents if agent.name in ids]
    traded_by = {ids[agent.name]: traded(agent) for agent in detailed}
    prices: dict[str, list[tuple[int, float, float]]] = {}
    for by_symbol in traded_by.values():
        for symbol, trades in by_symbol.items():
            prices.setdefault(symbol, []).extend(trades)
    places = {symbol: number for number, symbol in enumerate(prices)}
    holdings = {ids[agent.name]: holdings_chart(agent, setting.sessions) for agent in detailed}
    styled = look | {INDEX_LINE: INDEX}
    about = (
        "Line chart of every agent's return since the start; the same results are in the "
        "leaderboard"
    )
    grown = line_chart(equity, ChartLook(styles=styled), about, cell=place, periods=PERIODS)
    about, low = (
        "Line chart of every agent's fall from its last peak",
        ChartLook(styles=styled, size="low", names="room"),
    )
    return SettingCharts(
        equity=grown,
        underwater=line_chart(underwater, low, about, cell=place, periods=PERIODS),
        holdings={id: chart for id, chart in holdings.items() if chart is not None},
        trades={
            id: [(places[name], made) for name, made in known.items()]
            for id, known in traded_by.items()
        },
        prices={symbol: _price_chart(setting, symbol, trades) for symbol, trades in prices.items()},
    )


def account_curves(setting: SettingSummary) -> tuple[Equity, Equity]:
    """Return two charts of the first accounts: returns since the start, and drawdowns.

    One line is the market: the baseline, or the index if there is no baseline.
    """
    every = [agent for agent in setting.ranked if agent.paths and agent.path[0] > 0]
    first = [agent.name for agent in every if not agent.baseline][:MOST_LINES]
    drawn = [agent for agent in every if agent.baseline or agent.name in first]
    places = kept(len(setting.sessions) + 1, [agent.path for agent in drawn])
    lines = [(agent.name, agent.name, agent.baseline, since_start(agent.path)) for agent in drawn]
    if (
        setting.index is not None
        and setting.index_name
        and not any(agent.baseline for agent in drawn)
    ):
        lines.append((INDEX_LINE, f"index {setting.index_name}", False, since_start(setting.index)))
    falls = [
        (one.name, one.name, one.baseline, one.detail.falls)
        for one in drawn
        if one.detail and one.detail.falls
    ]
    return curve_chart(setting.sessions, places, lines), curve_chart(
        setting.sessions, places, falls
    )


def holdings_chart(agent: AgentSummary, sessions: Sequence[str]) -> Markup | None:
    """Return a chart of the holdings of the displayed episode over time, largest first.

    Returns None if the account never held anything.
    """
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
        place = (
            day_number(trade.session),
            float(f"{trade.price:.5g}"),
            int(size) if size.is_integer() else size,
        )
        by_symbol.setdefault(trade.symbol, []).append(place)
    value = {
        name: sum(abs(price * size) for _, price, size in made) for name, made in by_symbol.items()
    }
    return {
        symbol: by_symbol[symbol] for symbol in sorted(by_symbol, key=lambda symbol: -value[symbol])
    }


def _price_chart(
    setting: SettingSummary, symbol: str, trades: Sequence[tuple[int, float, float]]
) -> Markup:
    """Return a chart of a symbol's closes, with a price range that includes every agent's
    trades.
    """
    known = setting.prices.get(symbol)
    places = kept(len(setting.sessions), [], PRICE_POINTS) if known is not None else []
    closes = [None if known is None else known[place] for place in places]
    values = tuple(
        None if one is None or not np.isfinite(one) else float(f"{one:.5g}") for one in closes
    )
    points = [(date.fromordinal(day).isoformat(), price, "") for day, price, _ in trades]
    chart = Equity(
        days=tuple(setting.sessions[place] for place in places),
        curves=(Curve(entry="", label="close", returns=values),),
        sessions=len(setting.sessions),
    )
    room = Marks(label="", glyph="", tone="", points=tuple(points))
    look = ChartLook(size="mid", form="number", names="none")
    return line_chart(
        chart, look, f"Closing price of {symbol} with purchases and sales", marks=(room,)
    )
