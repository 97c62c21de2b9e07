"""Two runs of one kind side by side: the difference of every score, and a paired test where sessions coincide."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.errors import RunError
from tradeassay.core.executors.task import one_thread
from tradeassay.core.hashing import sha256_of
from tradeassay.core.measure import Measure
from tradeassay.metrics import (
    MEASURES,
    AgainstBaseline,
    compare_to_baseline,
    corrected,
    nothing_to_compare,
    significant,
)
from tradeassay.metrics.reliability import Reliability, reliability
from tradeassay.runs.score import AgentScores
from tradeassay.runs.store.run import CodeRun, Run, load_run
from tradeassay.runs.summary.figures import PLAYED, plays_of
from tradeassay.runs.summary.reading import summary_of

AnyRun = Run | CodeRun


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs (medians over seeds); ``difference`` is second minus first, or None with a reason."""

    first: float | None
    second: float | None
    difference: float | None
    reason: str | None = None


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one cell of a benchmark, in both runs. ``datasets`` are empty for programs. ``reason`` says why
    the two are not comparable, None when they are. ``paired`` compares the value paths session by session, the
    first run in the role of the baseline."""

    benchmark: str
    agent: str
    datasets: tuple[str, str]
    reason: str | None
    measures: dict[str, Difference]
    paired: AgainstBaseline

    @property
    def comparable(self) -> bool:
        return self.reason is None


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What two runs share, compared; and what is in only one of them (``benchmark: agent``)."""

    first: str
    second: str
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    reliability: Reliability | None = None


def compare(
    first: AnyRun | Path | str, second: AnyRun | Path | str, *, home: Path | str | None = None
) -> RunComparison:
    """Compare two finished runs agent by agent. Raises :class:`~tradeassay.core.errors.RunError` when one of them
    cannot be read or is unfinished, or when one trades and the other writes programs."""
    one, other = _open(first, home), _open(second, home)
    if isinstance(one, Run) and isinstance(other, Run):
        left, right = one.scores.agents, other.scores.agents
        with one_thread():
            found = [_pair(one, other, a, b) for a, b in _match(left, right)]
        versus = corrected([pair.paired for pair in found], one.spec.bootstrap.level)
        pairs = tuple(
            msgspec.structs.replace(pair, paired=paired) for pair, paired in zip(found, versus, strict=True)
        )
        shared = {(pair.benchmark, pair.agent) for pair in pairs}
        return RunComparison(
            first=_name(one, other),
            second=_name(other, one),
            pairs=tuple(msgspec.structs.replace(pair, agent=_called(pair.agent, one, other)) for pair in pairs),
            only_first=_rest(one, left, shared),
            only_second=_rest(other, right, shared),
            reliability=_reliable(one, other),
        )
    if isinstance(one, CodeRun) and isinstance(other, CodeRun):
        return _compare_programs(one, other)
    raise RunError(
        f"{one.name} and {other.name} are runs of different kinds: one trades, the other consists of programs",
        hint="compare two runs of one kind",
    )


def _reliable(one: Run, other: Run) -> Reliability | None:
    """Return how reliable agents are in what both runs played; what differs between the two is a wording."""
    plays = [
        list(plays_of(summary_of(run, details=False).cells, _name(run, rival)))
        for run, rival in ((one, other), (other, one))
    ]
    both = set.intersection(*({(play.model, play.window) for play in some} for some in plays))
    shared = [play for some in plays for play in some if (play.model, play.window) in both]
    called = msgspec.structs.replace(PLAYED, wording="run")
    return reliability(shared, called=called, level=one.spec.bootstrap.level)


def _called(label: str, one: Run, other: Run) -> str:
    """Return what an agent is called; a label may stand for another agent in each run."""
    return " and ".join(dict.fromkeys((one.names[label], other.names[label])))


def _compare_programs(one: CodeRun, other: CodeRun) -> RunComparison:
    """Compare models by their rates. Two runs of different tasks are not comparable, whatever their rates."""
    left, right = ({(row.cell, row.agent): row for row in run.kind.rows(run.scores)} for run in (one, other))
    reason = _other_work(one, other)
    name, alone = _name(one, other), reason and f"not comparable, {reason}"
    pairs = tuple(
        Pair(
            benchmark=f"{one.benchmark}, {place[0]}",
            agent=place[1],
            datasets=("", ""),
            reason=reason,
            measures={
                measure: _change(found, right[place].measures[measure], reason)
                for measure, found in left[place].measures.items()
                if measure in right[place].measures
            },
            paired=nothing_to_compare(name, alone or "programs have no sessions"),
        )
        for place in left
        if place in right
    )
    return RunComparison(
        first=name,
        second=_name(other, one),
        pairs=pairs,
        only_first=tuple(": ".join(place) for place in left if place not in right),
        only_second=tuple(": ".join(place) for place in right if place not in left),
    )


def _other_work(one: CodeRun, other: CodeRun) -> str | None:
    """Return why two runs of programs cannot be compared, or None when they can."""
    if one.benchmark != other.benchmark:
        return f"benchmarks differ: {one.benchmark} and {other.benchmark}"
    left, right = one.manifest.facts, other.manifest.facts
    differ = sorted(name for name in {*left, *right} if left.get(name) != right.get(name))
    if not differ:
        return None
    first = one.manifest.secret
    if first is not None and first != other.manifest.secret and differ == ["rules"]:
        return (
            f"other markets were drawn: ask all models in one run, or run {other.name} anew with --secret {first}"
        )
    some = f"{', '.join(differ[:3])}{' ...' if len(differ) > 3 else ''}"
    return f"the runs do not share {some}: ask all models in one run, or with the first one's tasks and --secret"


def _open(run: AnyRun | Path | str, home: Path | str | None) -> AnyRun:
    return run if isinstance(run, Run | CodeRun) else load_run(run, home=home)


def _name(run: AnyRun, other: AnyRun) -> str:
    return run.name if run.name != other.name else str(run.folder)


def _match(left: Iterable[AgentScores], right: Iterable[AgentScores]) -> list[tuple[AgentScores, AgentScores]]:
    """Pair rows of the same benchmark and agent: those on the same data set first, the rest in order."""
    pairs: list[tuple[AgentScores, AgentScores]] = []
    waiting, unmatched = list(right), list(left)
    for field in ("cell", "benchmark"):
        for row in tuple(unmatched):
            place = getattr(row, field), row.agent
            same = next((other for other in waiting if (getattr(other, field), other.agent) == place), None)
            if same is not None:
                pairs.append((row, same))
                waiting.remove(same)
                unmatched.remove(row)
    return pairs


def _rest(run: Run, rows: Iterable[AgentScores], shared: set[tuple[str, str]]) -> tuple[str, ...]:
    names = (
        f"{row.benchmark}: {run.names[row.agent]}" for row in rows if (row.benchmark, row.agent) not in shared
    )
    return tuple(dict.fromkeys(names))


def _pair(one: Run, other: Run, a: AgentScores, b: AgentScores) -> Pair:
    reason = _why_not(one, other, a, b)
    return Pair(
        benchmark=a.benchmark,
        agent=a.agent,
        datasets=(a.dataset, b.dataset),
        reason=reason,
        measures={
            info.id: _change(a.measures[info.id].median, b.measures[info.id].median, reason) for info in MEASURES
        },
        paired=_paired(one, other, a, b, reason),
    )


def _why_not(one: Run, other: Run, a: AgentScores, b: AgentScores) -> str | None:
    left, right = one.manifest, other.manifest
    if left.convention != right.convention:
        return f"conventions differ: {left.convention} and {right.convention}"
    data_a, data_b = left.datasets[a.dataset].sha256, right.datasets[b.dataset].sha256
    if data_a != data_b:
        return f"data differ: '{a.dataset}' ({data_a[:8]}) and '{b.dataset}' ({data_b[:8]})"
    setting_a = left.benchmark(one.episode(a.episodes[0]))
    setting_b = right.benchmark(other.episode(b.episodes[0]))
    window_a, window_b = ((s.market.first, s.market.last) for s in (setting_a, setting_b))
    if window_a != window_b:
        return f"windows differ: {' to '.join(window_a)} and {' to '.join(window_b)}"
    rules = (left.benchmarks[a.benchmark].venue_sha256, right.benchmarks[b.benchmark].venue_sha256)
    if sha256_of(setting_a) != sha256_of(setting_b) or rules[0] != rules[1]:
        return f"the rules of benchmark '{a.benchmark}' differ"
    return None


def _change(first: Measure, second: Measure, reason: str | None) -> Difference:
    why, gap = first.reason or second.reason if reason is None else f"not comparable: {reason}", None
    if why is None and first.value is not None and second.value is not None:
        gap = significant(second.value - first.value)
    return Difference(first=first.value, second=second.value, difference=gap, reason=why)


def _paired(one: Run, other: Run, a: AgentScores, b: AgentScores, reason: str | None) -> AgainstBaseline:
    name = _name(one, other)
    if reason is not None:
        return nothing_to_compare(name, f"not comparable, {reason}")
    left, right = ([run.series(key) for key in row.episodes] for run, row in ((one, a), (other, b)))
    for series in (*left, *right):
        if series.failure is not None:
            return nothing_to_compare(name, f"an episode failed ({series.failure})")
    if len({series.sessions for series in (*left, *right)}) != 1:
        return nothing_to_compare(name, "the sessions differ")
    return compare_to_baseline(
        np.stack([series.nav for series in right]),
        np.stack([series.nav for series in left]),
        periods_per_year=left[0].periods_per_year,
        baseline=name,
        bootstrap=one.spec.bootstrap,
    )
