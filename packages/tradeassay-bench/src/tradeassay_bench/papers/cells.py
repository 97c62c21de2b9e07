"""Group the results of several runs by their setting, because a table may combine several runs.

Each model's recorded answers are usually a separate run with a separate secret. Results belong
together if their benchmark, dataset, window and settings are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.core.errors import DataError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import EpisodeSeries, significant
from tradeassay_bench.benchmarks import Benchmark
from tradeassay_bench.benchmarks.exhibits import Filled, median_of, row
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.tables import table
from tradeassay_bench.examine.attribute import AgentAttribution, attribute_run
from tradeassay_bench.llm.recording import read_recording
from tradeassay_bench.runs import CodeRun, Run
from tradeassay_bench.runs.score import AgentScores

_IGNORED_SETTINGS = ("max_tokens", "timeout_s")
"""Limits on the length of an answer. They may differ between the models of a table."""


@dataclass(frozen=True, slots=True)
class Line:
    """The results of one agent in one setting of one run.

    ``model`` is the full name of the model, or None for a rule.
    """

    run: Run
    scores: AgentScores
    name: str
    model: str | None

    @property
    def done(self) -> tuple[str, ...]:
        """Return the keys of the episodes that have a result."""
        return tuple(
            key for key in self.scores.episodes if self.run.scores.episode(key).status == "done"
        )

    @property
    def unranked(self) -> str | None:
        """Return the reason why the agent is not ranked.

        Returns None if it is ranked or has no result.
        """
        return self.scores.unranked if self.done else None

    def median(self, name: str) -> Measure:
        """Return the median of a measure over the episodes."""
        summary = self.scores.measures.get(name)
        if summary is None:
            return not_scored("not measured in this version of the benchmark")
        return summary.median

    def values(self, name: str) -> list[float]:
        """Return the known values of a measure, one per episode."""
        values = []
        for key in self.scores.episodes:
            measure = self.run.scores.episode(key).measures.get(name)
            if measure is not None and measure.value is not None:
                values.append(measure.value)
        return values

    def series(self) -> list[EpisodeSeries]:
        """Return the accounts of all episodes that have a result."""
        return [self.run.series(key) for key in self.done]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a benchmark, and the results of all agents in it."""

    benchmark: Benchmark
    dataset: str
    window: str
    settings: Mapping[str, object]
    lines: tuple[Line, ...] = ()

    @property
    def asked(self) -> tuple[Line, ...]:
        """Return the results of models."""
        return tuple(line for line in self.lines if line.model is not None)

    @property
    def trained(self) -> tuple[Line, ...]:
        """Return the results of factor models."""
        trained = []
        for line in self.lines:
            episode = line.run.episode(line.scores.episodes[0])
            if episode.agent.name == "factor-model":
                trained.append(line)
        return tuple(trained)

    @property
    def title(self) -> str:
        """Return the benchmark, the settings in which groups differ, and the window."""
        parts = [self.benchmark.id]
        for key in ("mask", "mode", "inputs"):
            value = str(self.settings.get(key, "all"))
            if value != "all":
                parts.append(value)
        return ", ".join((*parts, self.window))

    @property
    def size(self) -> int | None:
        """Return the number of names in the universe, or None if the benchmark does not limit
        it.
        """
        size = self.benchmark.market.universe.partition(":")[2]
        return int(size) if size.isdigit() else None

    @property
    def sample(self) -> tuple[Run, str] | None:
        """Return a run and the key of an episode with a result, as a source of data and
        sessions.
        """
        for line in self.lines:
            if line.done:
                return line.run, line.done[0]
        return None


def groups_of(runs: Sequence[Run], protocol: str) -> tuple[Group, ...]:
    """Return the results of a protocol in some runs, grouped by setting.

    A rule that occurs in several runs is included once. A run of rules alone has no settings of a
    conversation. Its rules join every group of the same benchmark, dataset and window.
    """
    groups: dict[tuple[object, ...], Group] = {}
    for run in runs:
        models = {episode.label: episode.model for episode in run.episodes if episode.model}
        for scores in run.scores.agents:
            benchmark = run.manifest.benchmark(run.episode(scores.episodes[0]))
            if benchmark.protocol != protocol:
                continue
            record = run.manifest.protocols.get(scores.setting)
            named_window = run.manifest.windows.get(scores.setting)
            window = f"{benchmark.market.first} to {benchmark.market.last}"
            if named_window is not None:
                window = named_window.code
            config = {} if record is None else record.config
            settings = {key: value for key, value in config.items() if key not in _IGNORED_SETTINGS}
            setting = (
                benchmark.id,
                benchmark.market.universe,
                scores.dataset,
                window,
                str(sorted(settings.items())),
            )
            group = groups.get(setting) or Group(
                benchmark=benchmark, dataset=scores.dataset, window=window, settings=settings
            )
            name, model = run.names.get(scores.agent, scores.agent), models.get(scores.agent)
            known = any(line.name == name for line in group.lines)
            if not known or model is not None:
                line = Line(run, scores, f"{name} ({run.name})" if known else name, model)
                group = msgspec.structs.replace(group, lines=(*group.lines, line))
            groups[setting] = group
    return _with_rules_joined(tuple(groups.values()))


def _with_rules_joined(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Add the rules of groups without settings to the matching groups.

    Groups match if their benchmark, data and window are equal.
    """
    rules = [group for group in groups if not group.settings]
    joined: list[Group] = []
    added: set[int] = set()
    for group in groups:
        if not group.settings:
            continue
        lines = list(group.lines)
        for place, other in enumerate(rules):
            if _basis_of_rules(other) != _basis_of_rules(group):
                continue
            added.add(place)
            known = {line.name for line in lines}
            lines += [line for line in other.lines if line.name not in known]
        joined.append(msgspec.structs.replace(group, lines=tuple(lines)))
    return (*joined, *(other for place, other in enumerate(rules) if place not in added))


def _basis_of_rules(group: Group) -> tuple[str, str, str, str]:
    """Return all properties that determine the account of a rule."""
    return (group.benchmark.id, group.benchmark.market.universe, group.dataset, group.window)


class Attributed:
    """The attributions of runs, computed on first use and only if required."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._by_folder: dict[str, dict[str, AgentAttribution]] = {}
        self.reason = "attribution was not requested"

    def of(self, line: Line) -> AgentAttribution | None:
        """Return an agent's attribution. If there is none, ``reason`` states why."""
        if not self._wanted:
            return None
        folder = str(line.run.folder)
        if folder not in self._by_folder:
            by_episode: dict[str, AgentAttribution] = {}
            try:
                for attribution in attribute_run(line.run).agents:
                    by_episode |= dict.fromkeys(attribution.episodes, attribution)
            except (RunError, DataError) as error:
                self.reason = str(error.message)
            self._by_folder[folder] = by_episode
        return self._by_folder[folder].get(line.scores.episodes[0])


# Exhibits of every paper


def latency(runs: Sequence[Run | CodeRun]) -> Filled:
    """Return the answer times of every model, from the recordings of real calls."""
    times: dict[str, list[float | None]] = {}
    for run in runs:
        for path in sorted((run.folder / "models").glob("*.jsonl")):
            for line in read_recording(path).answers:
                if line.reply.error_kind is None:
                    seconds = line.seconds if isinstance(line.seconds, float) else None
                    times.setdefault(line.asked.model, []).append(seconds)
    rows = []
    for model, answers in times.items():
        known = [seconds for seconds in answers if seconds is not None]
        reason = "its recording has no times"
        if model.startswith("scripted/"):
            reason = "a script answers immediately"
        slow = not_scored(reason)
        if known:
            slow = Measure(value=significant(float(np.percentile(known, 90))), n=len(known))
        timed = Measure(value=float(len(known)))
        untimed = Measure(value=float(len(answers) - len(known)))
        cells = (
            (median_of(known, reason), "{:.2f}"),
            (slow, "{:.2f}"),
            (timed, "{:,.0f}"),
            (untimed, "{:,.0f}"),
        )
        rows.append(row(model, cells))
    latencies = table(
        "Seconds per answer",
        ("model", "median", "nine of ten within", "answers timed", "answers without a time"),
        rows,
        note="with the middle half; waiting for a free connection and attempts that failed are "
        "left out",
    )
    return Filled(tables=(latencies,)) if rows else Filled(missing="no model was queried")
