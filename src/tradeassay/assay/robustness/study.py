"""A recorded run, disturbed in six ways: what is left of its returns, its edge and its decisions?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.account_days import account_days
from tradeassay.assay.inputs import MarketQuery, market_inputs
from tradeassay.assay.robustness import disturb
from tradeassay.assay.robustness.compare import Played, scaling, score
from tradeassay.assay.robustness.records import (
    Disturbance,
    RobustnessConfig,
    RobustnessReport,
    RobustnessScore,
)
from tradeassay.assay.robustness.replay import replayed
from tradeassay.benchmarks import Benchmark
from tradeassay.core.events import StepRecord
from tradeassay.data import Panel, Snapshot, load_dataset, write_snapshot
from tradeassay.data.store.read import read_panel
from tradeassay.metrics.attribution import decompose

if TYPE_CHECKING:
    from tradeassay.runs import Asking, Episode, Run

Row = tuple[str, str]
"""An agent's place: a cell of the undisturbed run, and its label."""


def robustness_of_run(
    run: Run,
    folder: Path | str,
    config: RobustnessConfig | None = None,
    *,
    home: Path | str | None = None,
    asking: Asking | None = None,
) -> RobustnessReport:
    """Disturb a recorded run and say what changes; copies of data and the new runs are kept in ``folder``.

    Costs and delay repeat the recorded decisions in a harsher market, which asks nobody anything. Universe and
    news are played again by the run's own spec on disturbed copies of its data: models are asked again, as
    ``asking`` says. Raises :class:`~tradeassay.core.errors.RunError` while the run is unfinished.
    """
    config = config or RobustnessConfig()
    study = _Study(run, Path(folder), config, home, asking)
    scores: list[RobustnessScore] = []
    if "costs" in config.what:
        for multiple in config.costs:
            how = f"the same decisions at {multiple:g} times the costs"
            scores += study.again("costs", f"x{multiple:g}", how, costs=multiple)
    if "delay" in config.what:
        scores += study.again("delay", "one session", "the same decisions, carried out a session later", delay=1)
    for kind, variant, how, change in study.copies():
        scores += study.anew(kind, variant, how, change)
    return RobustnessReport(
        config=config,
        scores=tuple(scores),
        scaling=tuple(scaling(row, made) for row, made in study.sizes.items()),
        notes=tuple(study.notes),
    )


class _Study:
    """One run while it is disturbed."""

    def __init__(
        self, run: Run, folder: Path, config: RobustnessConfig, home: Path | str | None, asking: Asking | None
    ) -> None:
        self.run, self.folder, self.config = run, folder, config
        self.home = None if home is None else Path(home)
        self.asking = asking
        self.notes: list[str] = []
        self.base: dict[Row, Played] = _rows_of(run)
        self.sizes: dict[Row, dict[str, float | None]] = {
            row: {"1": played.total} for row, played in self.base.items() if "universe" in config.what
        }

    def again(
        self, kind: Disturbance, variant: str, how: str, *, costs: float = 1.0, delay: int = 0
    ) -> Iterable[RobustnessScore]:
        """Repeat the decisions of every agent."""
        for row, episodes in _episodes(self.run).items():
            base = self.base[row]
            made = []
            for episode in episodes:
                if self.run.series(episode.key).failure is not None:
                    continue
                benchmark = self.run.manifest.benchmark(episode)
                snapshot = self.run.snapshot(episode.key)
                records = replayed(
                    tuple(self.run.records(episode.key)), snapshot, benchmark, costs=costs, delay=delay
                )
                made.append(_taken(records, snapshot, benchmark))
            yield score(row, base, Played.of(made, base.year), kind, variant, how, decisions=False)

    def copies(self) -> Iterable[tuple[Disturbance, str, str, Callable[[Panel, str, str], Panel]]]:
        """Yield what is to be played anew, and how the data is disturbed."""
        config = self.config
        if "universe" in config.what:
            for size in config.sizes:
                yield "universe", f"{size:g}", f"only the most traded {size:.0%} of the names", _smaller(size)
        if "no news" in config.what:
            yield "no news", "none", "all news taken out", lambda panel, _, __: disturb.without_news(panel)
        if "false news" in config.what:
            how = f"{config.false_items} made-up items a session"
            yield (
                "false news",
                f"{config.false_items}",
                how,
                lambda panel, first, last: disturb.with_false_news(
                    panel, first, last, config.false_items, config.seed
                ),
            )
        if "instructions" in config.what:
            yield (
                "instructions",
                "in the news",
                "news tells traders to buy one name with all cash",
                lambda panel, first, last: disturb.with_instructions(
                    panel, first, last, disturb.target_of(panel, first, config.seed)
                ),
            )

    def anew(
        self, kind: Disturbance, variant: str, how: str, change: Callable[[Panel, str, str], Panel]
    ) -> Iterable[RobustnessScore]:
        """Play the spec again on disturbed copies of its data."""
        from tradeassay.runs import run as play

        name = f"{kind}-{variant}".replace(" ", "-").replace(".", "")
        datasets, targets = self._written(name, change)
        spec = msgspec.structs.replace(self.run.spec, slug=name, datasets=datasets)
        made = play(spec, self.folder / "runs" / name, executor="inline", home=self.home, asking=self.asking)
        there = _rows_of(made)
        for row, twin in zip(self.base, there, strict=True):
            base, other = self.base[row], there[twin]
            target = targets.get(self._dataset(row)) if kind == "instructions" else None
            yield score(row, base, other, kind, variant, how, target=target)
            if kind == "universe":
                self.sizes[row][variant] = other.total

    def _dataset(self, row: Row) -> str:
        return next(one.dataset for one in self.run.episodes if (one.cell, one.label) == row)

    def _written(
        self, name: str, change: Callable[[Panel, str, str], Panel]
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """Write disturbed copies and return where they are, by benchmark, and who is named in each data set."""
        found: dict[str, dict[str, str]] = {}
        targets: dict[str, str] = {}
        for episode in self.run.episodes:
            done = found.setdefault(episode.benchmark, {})
            if episode.dataset in done:
                continue
            market = self.run.manifest.benchmark(episode).market
            snapshot = self.run.snapshot(episode.key)
            panel = read_panel(snapshot.folder)
            # A copy is disturbed from its first session on: cells of one data set may have several windows.
            first = min(self._firsts(episode.benchmark, episode.dataset), default=market.first)
            place = (self.folder / "data" / name / f"{len(done)}-{episode.benchmark}").absolute()
            write_snapshot(change(panel, first, market.last), place, allow_faults=True, replace_existing=True)
            load_dataset(str(place))
            done[episode.dataset] = str(place)
            targets[episode.dataset] = disturb.target_of(panel, first, self.config.seed)
        return {benchmark: tuple(places.values()) for benchmark, places in found.items()}, targets

    def _firsts(self, benchmark: str, dataset: str) -> list[str]:
        return [
            self.run.manifest.benchmark(one).market.first
            for one in self.run.episodes
            if (one.benchmark, one.dataset) == (benchmark, dataset)
        ]


def _smaller(size: float) -> Callable[[Panel, str, str], Panel]:
    def change(panel: Panel, first: str, last: str) -> Panel:
        return disturb.smaller(panel, size, first)

    return change


def _episodes(run: Run) -> dict[Row, list[Episode]]:
    found: dict[Row, list[Episode]] = {}
    for episode in run.episodes:
        found.setdefault((episode.cell, episode.label), []).append(episode)
    return found


def _rows_of(run: Run) -> dict[Row, Played]:
    """Return every agent of a run session by session, in the spec's order."""
    found = {}
    for row, episodes in _episodes(run).items():
        made = []
        year = run.manifest.benchmark(episodes[0]).periods_per_year
        for episode in episodes:
            if run.series(episode.key).failure is None:
                records = tuple(run.records(episode.key))
                made.append(_taken(records, run.snapshot(episode.key), run.manifest.benchmark(episode)))
        found[row] = Played.of(made, year)
    return found


def _taken(
    records: Sequence[StepRecord], snapshot: Snapshot, benchmark: Benchmark
) -> tuple[
    tuple[str, ...], Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]], tuple[StepRecord, ...]
]:
    """Return an account's sessions, its daily total and edge, and its records."""
    market = benchmark.market
    query = MarketQuery(first=market.first, last=market.last, universe=market.universe, price=market.mark)
    inputs = market_inputs(snapshot, query)
    days = account_days(records, inputs.symbols, inputs.futures)
    cut = inputs if len(days.sessions) == len(inputs.sessions) else inputs.until(len(days.sessions))
    daily = decompose(cut.model, days.weights, days.returns)
    return days.sessions, {"total": daily.total, "edge": daily.selection + daily.trading}, tuple(records)
