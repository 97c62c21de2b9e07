"""Cells of one or several runs, put together by how they were played: a table's rows may come from several runs.

A model's recorded answers are a run of their own, with a secret of their own; what makes two cells one is their
benchmark, data, window and settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.assay.attribute import AgentAttribution, attribute_run
from tradeassay.benchmarks import Benchmark
from tradeassay.benchmarks.exhibits import Filled, middle, row
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import table
from tradeassay.llm.cassette import read_cassette
from tradeassay.metrics import EpisodeSeries, significant
from tradeassay.runs import CodeRun, Run
from tradeassay.runs.score import AgentScores

_NOT_A_WAY = ("max_tokens", "timeout_s")
"""Settings of how long an answer may be: models have limits of their own in one table."""


@dataclass(frozen=True, slots=True)
class Line:
    """One agent in one cell of one run; ``model`` is the full name of the model that answered, if one did."""

    run: Run
    scores: AgentScores
    name: str
    model: str | None

    @property
    def done(self) -> tuple[str, ...]:
        return tuple(key for key in self.scores.episodes if self.run.scores.episode(key).status == "done")

    @property
    def unranked(self) -> str | None:
        """Why it is not ranked; None where it may be, or where it has no result at all."""
        return self.scores.unranked if self.done else None

    def median(self, name: str) -> Measure:
        summary = self.scores.measures.get(name)
        return not_scored("not measured in this version of the benchmark") if summary is None else summary.median

    def values(self, name: str) -> list[float]:
        found = (self.run.scores.episode(key).measures.get(name) for key in self.scores.episodes)
        return [one.value for one in found if one is not None and one.value is not None]

    def series(self) -> list[EpisodeSeries]:
        return [self.run.series(key) for key in self.done]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One way of playing a benchmark, and everybody who did."""

    benchmark: Benchmark
    dataset: str
    window: str
    settings: Mapping[str, object]
    lines: tuple[Line, ...] = ()

    @property
    def asked(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.model is not None)

    @property
    def trained(self) -> tuple[Line, ...]:
        """Factor models."""
        first = ((line, line.run.episode(line.scores.episodes[0])) for line in self.lines)
        return tuple(line for line, episode in first if episode.agent.name == "factor-model")

    @property
    def title(self) -> str:
        """What it is called: benchmark, settings that tell groups apart, window."""
        shown = [str(self.settings[key]) for key in ("mask", "mode", "inputs") if key in self.settings]
        return ", ".join((self.benchmark.id, *(one for one in shown if one != "all"), self.window))

    @property
    def size(self) -> int | None:
        """How many names may be bought, where the benchmark says so."""
        size = self.benchmark.market.universe.partition(":")[2]
        return int(size) if size.isdigit() else None

    @property
    def sample(self) -> tuple[Run, str] | None:
        """A run and one of its episodes that has a result, to read the data and sessions of."""
        return next(((line.run, line.done[0]) for line in self.lines if line.done), None)


def groups_of(runs: Sequence[Run], protocol: str) -> tuple[Group, ...]:
    """Return the ways in which a protocol was played in some runs; a rule that several runs have is taken once.

    A run of rules alone has no settings of a conversation. Its rules join every group of the same benchmark, data
    and window."""
    found: dict[tuple[object, ...], Group] = {}
    for run in runs:
        models = {episode.label: episode.model for episode in run.episodes if episode.model}
        for scores in run.scores.agents:
            benchmark = run.manifest.benchmark(run.episode(scores.episodes[0]))
            if benchmark.protocol != protocol:
                continue
            record, named = run.manifest.protocols.get(scores.cell), run.manifest.windows.get(scores.cell)
            window = named.code if named is not None else f"{benchmark.market.first} to {benchmark.market.last}"
            config = {} if record is None else record.config
            settings = {key: value for key, value in config.items() if key not in _NOT_A_WAY}
            way = (benchmark.id, benchmark.market.universe, scores.dataset, window, str(sorted(settings.items())))
            group = found.get(way) or Group(
                benchmark=benchmark, dataset=scores.dataset, window=window, settings=settings
            )
            name, model = run.names.get(scores.agent, scores.agent), models.get(scores.agent)
            known = any(line.name == name for line in group.lines)
            if not known or model is not None:
                line = Line(run, scores, f"{name} ({run.name})" if known else name, model)
                group = msgspec.structs.replace(group, lines=(*group.lines, line))
            found[way] = group
    return _rules_joined(tuple(found.values()))


def _rules_joined(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Return the groups with the lines of those that have no settings added to the groups that they belong to."""
    rules = [group for group in groups if not group.settings]
    joined: list[Group] = []
    at_home: set[int] = set()
    for group in groups:
        if not group.settings:
            continue
        lines = list(group.lines)
        for place, other in enumerate(rules):
            if _days_of(other) != _days_of(group):
                continue
            at_home.add(place)
            known = {line.name for line in lines}
            lines += [line for line in other.lines if line.name not in known]
        joined.append(msgspec.structs.replace(group, lines=tuple(lines)))
    return (*joined, *(other for place, other in enumerate(rules) if place not in at_home))


def _days_of(group: Group) -> tuple[str, str, str, str]:
    """Return what a rule's account depends on: benchmark, universe, data and window."""
    return (group.benchmark.id, group.benchmark.market.universe, group.dataset, group.window)


class Attributed:
    """Attribution of runs, each once, where it is wanted and can be had."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._found: dict[str, dict[str, AgentAttribution]] = {}
        self.reason = "attribution was not asked for"

    def of(self, line: Line) -> AgentAttribution | None:
        """Return what an agent's return is made of; None where it is not known (``reason`` says why)."""
        if not self._wanted:
            return None
        folder = str(line.run.folder)
        if folder not in self._found:
            try:
                agents = attribute_run(line.run).agents
            except (RunError, DataError) as error:
                agents, self.reason = (), str(error.message)
            self._found[folder] = {key: one for one in agents for key in one.episodes}
        return self._found[folder].get(line.scores.episodes[0])


# Beside every paper


def latency(runs: Sequence[Run | CodeRun]) -> Filled:
    """Return how long every model took to answer, from the cassettes of calls that were really made."""
    timed: dict[str, list[float | None]] = {}
    for run in runs:
        for path in sorted((run.folder / "models").glob("*.jsonl")):
            for line in read_cassette(path).answers:
                if line.reply.error_kind is None:
                    seconds = line.seconds if isinstance(line.seconds, float) else None
                    timed.setdefault(line.asked.model, []).append(seconds)
    rows = []
    for model, answers in timed.items():
        known = [seconds for seconds in answers if seconds is not None]
        why = "a script answers at once" if model.startswith("scripted/") else "its recording has no times"
        slow = not_scored(why)
        if known:
            slow = Measure(value=significant(float(np.percentile(known, 90))), n=len(known))
        counts = ((Measure(value=float(n)), "{:,.0f}") for n in (len(known), len(answers) - len(known)))
        rows.append(row(model, ((middle(known, why), "{:.2f}"), (slow, "{:.2f}"), *counts)))
    made = table(
        "Seconds per answer",
        ("model", "median", "nine of ten within", "answers timed", "answers without a time"),
        rows,
        note="with the middle half; waiting for a free connection and attempts that failed are left out",
    )
    return Filled(tables=(made,)) if rows else Filled(missing="no model was asked")
