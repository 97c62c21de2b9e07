"""Figures of runs, verdicts and tables of returns, as plotly figures (extra ``plot``).

::

    tradeassay.plot.equity(run)                 # every agent's growth
    tradeassay.plot.drawdown(frame)             # a pandas or polars table, or a CSV file
    tradeassay.plot.made_of(tradeassay.assay(frame, against=spy))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tradeassay.assay.verdict.record import AgentAssay
from tradeassay.core.errors import UserError, require
from tradeassay.core.view import Floats

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from tradeassay.assay.verdict import Assay
    from tradeassay.runs import Run

__all__ = ["drawdown", "equity", "made_of"]

_COLOURS = ("#0f6fc0", "#f08a4b", "#3a9b6e", "#9b59b6", "#c0392b", "#16a085", "#7f8c8d", "#d4a017")
_MARKET = {"color": "#8894a4", "dash": "dash"}


@dataclass(frozen=True, slots=True)
class GrowthPath:
    """Cumulative returns by session; ``market`` marks what others are compared with."""

    name: str
    sessions: tuple[str, ...]
    growth: Floats
    market: bool = False


def equity(source: Run | Assay | Path | str | object, *, against: object = None) -> Figure:
    """Return the growth of every account in a run, an assay, or a table of returns, session by session.

    ``against`` is another table of returns, or a column of the same, drawn dashed. Raises :class:`MissingExtra`
    without plotly, :class:`UserError` for a table that cannot be read.
    """
    figure = _figure("growth")
    for place, path in enumerate(_paths(source, against)):
        _line(figure, path, path.growth, place)
    return figure


def drawdown(source: Run | Assay | Path | str | object, *, against: object = None) -> Figure:
    """Return how far every account lay below its highest value. Takes what :func:`equity` takes."""
    figure = _figure("below the highest value")
    for place, path in enumerate(_paths(source, against)):
        worth = np.concatenate(([1.0], 1.0 + path.growth))
        _line(figure, path, (worth / np.maximum.accumulate(worth) - 1.0)[1:], place, fill=not path.market)
    return figure


def made_of(assay: Assay | AgentAssay, agent: str | None = None) -> Figure:
    """Return what one account's return is made of, as steps with intervals.

    ``agent`` chooses one of several. Raises :class:`UserError` where the return could not be taken apart.
    """
    from tradeassay.assay.verdict.record import waterfall

    one = _one(assay, agent)
    steps = waterfall(one)
    if not steps:
        raise UserError(f"the return of {one.agent} is not taken apart", hint=one.verdict.sentence)
    figure = _figure("return")
    figure.add_trace(
        _graphs().Waterfall(
            x=[step.label for step in steps],
            y=[step.value for step in steps],
            measure=["total" if step.kind == "total" else "relative" for step in steps],
            increasing={"marker": {"color": "#3a9bdc"}},
            decreasing={"marker": {"color": "#f08a4b"}},
            totals={"marker": {"color": "#7a8594"}},
            text=[f"{step.value:+.1%}" for step in steps],
            name=one.agent,
        )
    )
    levels, level = [], 0.0
    for step in steps:
        level = step.value if step.kind == "total" else level + step.value
        levels.append(level)
    known = [(step, at) for step, at in zip(steps, levels, strict=True) if step.low is not None]
    figure.add_trace(
        _graphs().Scatter(
            x=[step.label for step, _ in known],
            y=[at for _, at in known],
            mode="markers",
            marker={"color": "#151a21", "size": 1},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [(step.high or 0.0) - step.value for step, _ in known],
                "arrayminus": [step.value - (step.low or 0.0) for step, _ in known],
            },
            name="interval",
        )
    )
    figure.update_layout(title=one.verdict.sentence, showlegend=False)
    return figure


def _one(assay: Assay | AgentAssay, agent: str | None) -> AgentAssay:
    if isinstance(assay, AgentAssay):
        return assay
    several = assay.agents
    found = [one for one in several if agent is None or one.agent == agent or one.agent.endswith(f": {agent}")]
    if len(found) != 1:
        names = ", ".join(dict.fromkeys(one.agent for one in several))
        raise UserError("one account has to be chosen", hint=f"give agent=, one of {names}")
    return found[0]


def _paths(source: Any, against: object) -> list[GrowthPath]:
    """Return what is drawn of a run (the first repetition of every agent), an assay, or a table of returns."""
    from tradeassay.runs import Run

    found: dict[str, GrowthPath] = {}
    if isinstance(source, Run):
        several = len({episode.cell for episode in source.episodes}) > 1
        for episode in source.episodes:
            series = source.series(episode.key)
            called = source.names[episode.label]
            name = f"{called} ({episode.cell})" if several else called
            if name not in found and series.failure is None:
                nav = np.asarray(series.nav, dtype=float)
                growth = nav[-len(series.sessions) :] / nav[0] - 1.0
                found[name] = GrowthPath(name, tuple(series.sessions), growth)
        if not found:
            raise UserError("no episode of the run has a result", hint="see run.failed")
        return list(found.values())
    if not hasattr(source, "agents"):
        return _of_table(source, against)
    paths = [
        GrowthPath(one.agent, one.curve.sessions, np.asarray(one.curve.account))
        for one in source.agents
        if one.curve is not None
    ]
    if not paths:
        raise UserError("nobody in the assay has a result to draw", hint="see the verdicts")
    compared = [one.curve for one in source.agents if one.curve is not None and one.curve.market]
    if compared:
        paths.append(GrowthPath("market", compared[0].sessions, np.asarray(compared[0].market), market=True))
    return paths


def _of_table(source: object, against: object) -> list[GrowthPath]:
    from tradeassay.data.tables.account import TableReading, read_series

    reading = TableReading(against=against) if isinstance(against, str) and not Path(against).is_file() else None
    series = read_series(source, reading)
    found = [_grown("account", series.returns)]
    if series.against is not None:
        found.append(_grown("benchmark", series.against, market=True))
    elif against is not None and reading is None:
        found.append(_grown("benchmark", read_series(against).returns, market=True))
    return found


def _grown(name: str, returns: dict[str, float], *, market: bool = False) -> GrowthPath:
    grown = np.cumprod(1.0 + np.array(list(returns.values()), dtype=np.float64)) - 1.0
    return GrowthPath(name, tuple(returns), np.asarray(grown, dtype=np.float64), market)


def _graphs() -> Any:
    require("plotly", "plot")
    import plotly.graph_objects as graphs

    return graphs


def _figure(title: str) -> Any:
    figure = _graphs().Figure()
    figure.update_layout(
        template="plotly_white",
        margin={"l": 60, "r": 20, "t": 50, "b": 40},
        yaxis={"title": title, "tickformat": ".0%", "zeroline": True},
        legend={"orientation": "h"},
    )
    return figure


def _line(figure: Any, path: GrowthPath, values: Floats, place: int, *, fill: bool = False) -> None:
    line = _MARKET if path.market else {"color": _COLOURS[place % len(_COLOURS)]}
    figure.add_trace(
        _graphs().Scatter(
            x=list(path.sessions),
            y=values.tolist(),
            name=path.name,
            mode="lines",
            line=line,
            fill="tozeroy" if fill else None,
        )
    )
