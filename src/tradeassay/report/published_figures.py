"""What the papers printed, beside our own numbers, and whether the two may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tradeassay.benchmarks import Benchmark, ktdfin, stockbench
from tradeassay.core.errors import DataError, RunError
from tradeassay.metrics import BY_ID
from tradeassay.report.data import AgentData
from tradeassay.report.model_data import FigureRow, Figures
from tradeassay.report.words import ranked, result

if TYPE_CHECKING:
    from tradeassay.core.badges import Badges
    from tradeassay.data import Snapshot
    from tradeassay.runs import Run

_SAME = {"total_return": "cumulative_return"}
"""What a paper calls a measure of ours."""


def figures(
    run: Run, key: str, badges: Badges, sessions: Sequence[str], agents: Sequence[AgentData]
) -> Figures | None:
    """Return the printed figures for the cell of episode ``key``; None for a benchmark that no paper has."""
    benchmark = run.manifest.benchmark(run.episode(key))
    if not any(agent.model for agent in agents):
        return None
    if benchmark.protocol == "ktdfin":
        judge = _Ktdfin(run, key, benchmark, badges)
        return _all(ktdfin.published(), judge.reasons, agents)
    if benchmark.protocol == "stockbench" and sessions:
        stock = _Stockbench(run, key, benchmark, badges, sessions)
        return _all(stockbench.published(), stock.reasons, agents)
    return None


class _Ktdfin:
    def __init__(self, run: Run, key: str, benchmark: Benchmark, badges: Badges) -> None:
        episode = run.episode(key)
        named = run.manifest.windows.get(episode.cell)
        record = run.manifest.protocols.get(episode.cell)
        config: dict[str, Any] = {} if record is None else dict(record.config)
        self._ours = ktdfin.OurSetting(
            data=badges.data,
            market=benchmark.market.venue.split("-")[0],
            index=benchmark.index,
            window=named.code if named is not None else f"{benchmark.market.first} to {benchmark.market.last}",
            structural=named is not None and named.structural,
            convention=badges.convention,
            mask=config.get("mask"),
            mode=config.get("mode"),
        )

    def reasons(self, figure: Any) -> tuple[str, ...]:
        return ktdfin.compare_with(figure, self._ours).reasons


class _Stockbench:
    def __init__(self, run: Run, key: str, benchmark: Benchmark, badges: Badges, sessions: Sequence[str]) -> None:
        record = run.manifest.protocols.get(run.episode(key).cell)
        inputs: Any = "all" if record is None else record.config.get("inputs", "all")
        known = _contents(run, key, benchmark, sessions[-1]) if badges.data == "real" else ((), False, False)
        self._ours = stockbench.OurSetting(
            data=badges.data,
            symbols=known[0],
            first=sessions[0],
            last=sessions[-1],
            convention=badges.convention,
            inputs=inputs,
            has_news=known[1] or badges.data == "synthetic",
            has_fundamentals=known[2] or badges.data == "synthetic",
        )

    def reasons(self, figure: Any) -> tuple[str, ...]:
        return stockbench.compare_with(figure, self._ours).reasons


def _contents(run: Run, key: str, benchmark: Benchmark, last: str) -> tuple[tuple[str, ...], bool, bool]:
    """Return the names that could be bought, and whether the data has news and fundamentals on them."""
    try:
        snapshot: Snapshot = run.snapshot(key)
        view = snapshot.at(snapshot.rows(last, last).start, "close")
        universe = benchmark.market.universe
        symbols = view.symbols if universe == "all" else view.members(universe.split(":")[0])
        return symbols, bool(view.news(0, limit=1)), any(view.fundamentals(symbol) for symbol in symbols)
    except (DataError, RunError):
        return (), False, False


def _all(printed: Any, reasons: Any, agents: Sequence[AgentData]) -> Figures:
    rows = []
    for figure in printed.figure:
        measure = _SAME.get(figure.measure, figure.measure)
        if measure not in BY_ID:
            continue
        ours, why = _counterpart(figure.who, agents)
        rows.append(
            FigureRow(
                who=figure.who,
                measure=measure,
                printed=figure.value,
                where=figure.where,
                ours=None if ours is None else ours.measures[measure].median.value,
                ours_by="" if ours is None else ours.name,
                reasons=(*([why] if why else []), *reasons(figure)),
            )
        )
    return Figures(source=printed.source, second_hand=printed.second_hand, rows=tuple(rows))


def _counterpart(who: str, agents: Sequence[AgentData]) -> tuple[AgentData | None, str | None]:
    """Return our agent that stands beside a printed one, and what is different about it."""
    if "buy and hold" in who:
        wanted = "equal-weight" if "equal-weight" in who else "index-hold"
        exact = next((agent for agent in agents if agent.name == wanted), None)
        base = exact or next((agent for agent in agents if agent.baseline), None)
        return base, None if exact is not None else "ours holds something else"
    models = [agent for agent in ranked(agents) if agent.model is not None and result(agent).value is not None]
    named = next(
        (agent for agent in models if _plain(who) in _plain(str(agent.model and agent.model.model))), None
    )
    if named is not None:
        return named, None
    if not models:
        return None, "none of our models has a result"
    kind = models[0].model.answers if models[0].model is not None else ""
    if who == "best language model":
        return models[0], "ours is a script, not a language model" if kind == "scripted" else None
    return models[0], "ours is another model"


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())
