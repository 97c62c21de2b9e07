"""Chart specifications as plain JSON values, for the plotly.js inside the page.

Two shorthands keep a page small, both resolved by the page's script: ``"xs"`` names a list of dates that
several traces share, and a colour that begins with ``@`` stands for one of the palette's in the present theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradeassay.metrics import drawdowns
from tradeassay.report.data import AgentData, CellData
from tradeassay.report.palette import LineStyle
from tradeassay.report.thin import kept, rounded

Spec = dict[str, Any]

_MARKS_PER_LINE = 9
_MOST_HELD = 9


def dates(cell: CellData) -> list[str]:
    """Return the x axis of paths: the start, then every session, thinned to what is drawn."""
    return [_axis(cell)[place] for place in places(cell)]


def places(cell: CellData) -> list[int]:
    """Return which points of the paths are drawn."""
    return kept(len(cell.sessions) + 1, [shown_path(agent) for agent in cell.agents if agent.paths])


def shown_path(agent: AgentData) -> Sequence[float]:
    """Return the path that stands for an agent: that of the shown repetition."""
    return agent.paths[agent.shown]


def equity(cell: CellData, styles: Mapping[str, LineStyle]) -> Spec:
    """Return the big chart: the return since the start of every agent, labelled at its end by the page."""
    keep = places(cell)
    traces: list[Spec] = []
    for agent in _drawn(cell):
        path = np.asarray(shown_path(agent), dtype=np.float64)
        traces += _line(agent.name, (path / path[0] - 1.0)[keep], styles[agent.name], len(traces) // 2)
    if cell.index is not None and cell.index_name:
        levels = np.asarray(cell.index, dtype=np.float64)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"index {cell.index_name}",
                "xs": "path",
                "y": rounded(list((levels / levels[0] - 1.0)[keep])),
                "line": {"color": "@index", "width": 1.2, "dash": "dot"},
                "meta": {"role": "index", "label": f"index {cell.index_name}"},
                "hovertemplate": "%{y:+.1%}",
            }
        )
    return {"data": traces, "layout": {"yaxis": {"tickformat": ".0%"}, "hovermode": "x unified"}}


def underwater(cell: CellData, styles: Mapping[str, LineStyle]) -> Spec:
    """Return the fall from the last peak of every agent."""
    keep = places(cell)
    traces: list[Spec] = []
    for agent in _drawn(cell):
        falls = drawdowns(np.asarray(shown_path(agent), dtype=np.float64))
        line = _line(agent.name, falls[keep], styles[agent.name], len(traces))[0]
        line["line"]["width"] = 1.6
        traces.append(line)
    return {
        "data": traces,
        "layout": {"yaxis": {"tickformat": ".0%", "rangemode": "tozero"}, "hovermode": "x unified"},
    }


def holdings(agent: AgentData) -> Spec | None:
    """Return the holdings of the shown repetition over time, largest names first; None when nothing was held."""
    held = agent.holdings
    if held is None or not held.symbols:
        return None
    weights = np.asarray(held.weights, dtype=np.float64)
    order = np.argsort(-np.abs(weights).mean(axis=1), kind="stable")
    keep = kept(weights.shape[1], [], 400)
    rows = [(held.symbols[place], weights[place]) for place in order[:_MOST_HELD]]
    if len(order) > _MOST_HELD:
        rows.append((f"{len(order) - _MOST_HELD} others", weights[order[_MOST_HELD:]].sum(axis=0)))
    short = bool((weights < 0).any())
    traces = []
    for place, (name, row) in enumerate(rows):
        rest = place == _MOST_HELD
        trace: Spec = {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "xs": "holdings",
            "y": rounded(list(row[keep]), 4),
            "line": {"color": "@rest" if rest else f"@slot{place}", "width": 1.5 if short else 0.6},
            "hovertemplate": "%{y:.1%}",
        }
        traces.append(
            trace if short else {**trace, "stackgroup": "held", "fillpattern": _pattern(0 if rest else place)}
        )
    layout = {"yaxis": {"tickformat": ".0%", "rangemode": "tozero"}, "hovermode": "x unified", "legend": True}
    return {"data": traces, "layout": layout, "keep": keep}


def trades(agent: AgentData, cell: CellData) -> Spec | None:
    """Return trades on the price, one entry per symbol; the page shows the one that is chosen.

    Symbols come by traded value, largest first. None when there was no trade.
    """
    by_symbol: dict[str, list[tuple[str, float, float]]] = {}
    for trade in agent.trades:
        by_symbol.setdefault(trade.symbol, []).append((trade.session, trade.quantity, trade.price))
    if not by_symbol:
        return None
    order = sorted(by_symbol, key=lambda symbol: -sum(abs(q * p) for _, q, p in by_symbol[symbol]))
    entries = []
    for symbol in order:
        fills = by_symbol[symbol]
        bought = [[day, _number(price), _number(size)] for day, size, price in fills if size > 0]
        sold = [[day, _number(price), _number(-size)] for day, size, price in fills if size < 0]
        entries.append({"symbol": symbol, "priced": symbol in cell.prices, "buys": bought, "sells": sold})
    return {"symbols": entries}


def _axis(cell: CellData) -> list[str]:
    """Return the dates of a path: its initial value is drawn one day before the first session."""
    if not cell.sessions:
        return []
    first = np.datetime64(cell.sessions[0][:10]) - np.timedelta64(1, "D")
    return [str(first), *cell.sessions]


def _drawn(cell: CellData) -> list[AgentData]:
    """Return agents with a path, the baseline last so that it is drawn on top."""
    drawn = [agent for agent in cell.agents if agent.paths and min(shown_path(agent)[:1]) > 0]
    return sorted(drawn, key=lambda agent: agent.baseline)


def _line(name: str, values: Any, style: LineStyle, place: int) -> list[Spec]:
    """Return a line, and a few markers on it that show whose it is without its colour."""
    y = rounded(list(values))
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "xs": "path",
        "y": y,
        "line": {"color": style.ref, "width": style.width, "dash": style.dash},
        "meta": {"role": "agent", "agent": name},
        "hovertemplate": "%{y:+.1%}",
    }
    every = max(1, len(y) // _MARKS_PER_LINE)
    # Staggered, so that markers of neighbouring lines do not sit on one another.
    spots = list(range((place * 5) % every if every > 1 else 0, len(y), every))
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "xs": "path",
        "at": spots,
        "y": [y[spot] for spot in spots],
        "marker": {"color": style.ref, "size": 7, "symbol": style.marker},
        "meta": {"role": "marks", "agent": name},
        "hoverinfo": "skip",
    }
    return [line, marks]


def _pattern(place: int) -> Spec:
    shapes = ("", "/", "", "\\", "", ".", "", "-", "", "x")
    return {"shape": shapes[place % len(shapes)], "size": 7, "solidity": 0.18}


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def prices(values: Sequence[float | None]) -> list[float | None]:
    """Return closing prices for the page, with six significant digits."""
    return [None if value is None or not np.isfinite(value) else _number(value) for value in values]
