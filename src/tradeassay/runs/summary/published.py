"""The papers' printed figures next to our own, and whether the two may be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tradeassay.benchmarks import Benchmark, ktdfin, stockbench
from tradeassay.benchmarks.published import Published
from tradeassay.core.errors import DataError, RunError
from tradeassay.metrics import BY_ID
from tradeassay.metrics.intervals import significant
from tradeassay.runs.store.run import Run
from tradeassay.runs.summary.rows import AgentSummary, PrintedFigure, PrintedFigures

_SAME = {"total_return": "cumulative_return"}
"""What a paper calls a measure of ours."""


def printed_figures(
    run: Run,
    key: str,
    sessions: Sequence[str],
    agents: Sequence[AgentSummary],
    index: Sequence[float] | None = None,
) -> PrintedFigures | None:
    """Return the printed figures for the cell of episode ``key``; None for a benchmark without a paper.

    ``index`` has one level per session and one before.
    """
    benchmark = run.manifest.benchmark(run.episode(key))
    if not any(agent.model for agent in agents):
        return None
    if benchmark.protocol == "ktdfin":
        mine = _ktdfin_setting(run, key, benchmark)
        levels = index[1:] if index is not None and benchmark.convention == "paper" else index
        return _beside(
            ktdfin.published(), lambda figure: ktdfin.compare_with(figure, mine).reasons, agents, levels
        )
    if benchmark.protocol == "stockbench" and sessions:
        ours = _stockbench_setting(run, key, benchmark, sessions)
        return _beside(
            stockbench.published(), lambda figure: stockbench.compare_with(figure, ours).reasons, agents
        )
    return None


def _ktdfin_setting(run: Run, key: str, benchmark: Benchmark) -> ktdfin.KtdfinSetting:
    cell = run.episode(key).cell
    badges, named, record = run.cell_badges(cell), run.manifest.windows.get(cell), run.manifest.protocols.get(cell)
    config: dict[str, Any] = {} if record is None else dict(record.config)
    return ktdfin.KtdfinSetting(
        data=badges.data,
        market=benchmark.market.venue.split("-")[0],
        index=_index_name(run, key, benchmark.index),
        window=named.code if named is not None else f"{benchmark.market.first} to {benchmark.market.last}",
        structural=named is not None and named.structural,
        convention=badges.convention,
        mask=config.get("mask"),
        mode=config.get("mode"),
    )


def _index_name(run: Run, key: str, index: str | None) -> str | None:
    """Return what the data calls the index; its role where the data cannot be read."""
    if index is None:
        return None
    try:
        snapshot = run.snapshot(key)
        return snapshot.at(len(snapshot.sessions) - 1, "close").index_name(index)
    except (DataError, RunError):
        return index


def _stockbench_setting(
    run: Run, key: str, benchmark: Benchmark, sessions: Sequence[str]
) -> stockbench.StockbenchSetting:
    cell = run.episode(key).cell
    badges, record = run.cell_badges(cell), run.manifest.protocols.get(cell)
    inputs: Any = "all" if record is None else record.config.get("inputs", "all")
    known = _contents(run, key, benchmark, sessions[-1]) if badges.data == "real" else ((), False, False)
    symbols, news, fundamentals = known
    return stockbench.StockbenchSetting(
        data=badges.data,
        symbols=symbols,
        first=sessions[0],
        last=sessions[-1],
        convention=badges.convention,
        inputs=inputs,
        has_news=news or badges.data == "synthetic",
        has_fundamentals=fundamentals or badges.data == "synthetic",
    )


def _contents(run: Run, key: str, benchmark: Benchmark, last: str) -> tuple[tuple[str, ...], bool, bool]:
    """Return the names that could be bought, and whether the data has news and fundamentals on them."""
    try:
        snapshot = run.snapshot(key)
        view = snapshot.at(snapshot.rows(last, last).start, "close")
        universe = benchmark.market.universe
        symbols = view.symbols if universe == "all" else view.members(universe.split(":")[0])
        return symbols, bool(view.news(0, limit=1)), any(view.fundamentals(symbol) for symbol in symbols)
    except (DataError, RunError):
        return (), False, False


def _beside(
    printed: Published[Any],
    reasons: Callable[[Any], tuple[str, ...]],
    agents: Sequence[AgentSummary],
    index: Sequence[float] | None = None,
) -> PrintedFigures:
    rows = []
    for figure in printed.figure:
        measure = _SAME.get(figure.measure, figure.measure)
        if measure not in BY_ID:
            continue
        value: float | None
        if (
            "buy and hold" in figure.who
            and measure == "cumulative_return"
            and index is not None
            and len(index) > 1
        ):
            # Buy and hold is the index itself, which nobody has to hold for it.
            value, by, why = significant(index[-1] / index[0] - 1.0), "the index's levels", None
        else:
            ours, why = _counterpart(figure.who, agents)
            value = None if ours is None else ours.measures[measure].median.value
            by = "" if ours is None else ours.name
        rows.append(
            PrintedFigure(
                who=figure.who,
                measure=measure,
                printed=figure.value,
                where=figure.where,
                ours=value,
                ours_by=by,
                reasons=(*([why] if why else []), *reasons(figure)),
            )
        )
    return PrintedFigures(source=printed.source, second_hand=printed.second_hand, rows=tuple(rows))


def _counterpart(who: str, agents: Sequence[AgentSummary]) -> tuple[AgentSummary | None, str | None]:
    """Return our counterpart of a printed agent, and how it differs."""
    if "buy and hold" in who:
        wanted = "equal-weight" if "equal-weight" in who else "index-hold"
        exact = next((agent for agent in agents if agent.name == wanted), None)
        base = exact or next((agent for agent in agents if agent.baseline), None)
        return base, None if exact is not None else "ours holds something else"
    models = [
        (agent, agent.model) for agent in agents if agent.model is not None and agent.result.value is not None
    ]
    models.sort(key=lambda pair: -(pair[0].result.value or 0.0))
    named = next((agent for agent, model in models if _plain(who) in _plain(model.model)), None)
    if named is not None:
        return named, None
    if not models:
        return None, "none of our models has a result"
    best, model = models[0]
    if who == "best language model":
        return best, "ours is a script, not a language model" if model.answers == "scripted" else None
    return best, "ours is another model"


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())
