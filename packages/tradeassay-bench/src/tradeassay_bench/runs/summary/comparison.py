"""Compare two runs of one kind: the difference of every score, and a paired test by session."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

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
from tradeassay.metrics.horizon import Horizon
from tradeassay.metrics.reliability import Reliability, reliability
from tradeassay_bench.benchmarks.code_protocol import CodeRow
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors.task import one_thread
from tradeassay_bench.runs.score import AgentScores
from tradeassay_bench.runs.store.run import CodeRun, Run, load_run
from tradeassay_bench.runs.summary.figures import PLAYED, plays_of
from tradeassay_bench.runs.summary.reading import summary_of

AnyRun = Run | CodeRun


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A measure in both runs, as medians over seeds.

    ``difference`` is the second value minus the first value. It is None if ``reason`` states why
    there is no difference.
    """

    first: float | None
    second: float | None
    difference: float | None
    reason: str | None = None


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one setting of a benchmark, in both runs.

    ``datasets`` contains the data set of each run; empty texts for programs. ``reason`` states why
    the two runs are not comparable, or is None. ``paired`` compares the account values session by
    session, with the first run as the baseline. ``horizon`` is the period of the sessions, or None
    if the runs are not comparable.
    """

    benchmark: str
    agent: str
    datasets: tuple[str, str]
    reason: str | None
    measures: dict[str, Difference]
    paired: AgainstBaseline
    horizon: Horizon | None = None

    @property
    def comparable(self) -> bool:
        """Return whether the two runs are comparable for this agent."""
        return self.reason is None


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two runs.

    ``pairs`` compares the agents that are in both runs. ``only_first`` and ``only_second`` list the
    agents that are in one run only, as ``benchmark: agent``.
    """

    first: str
    second: str
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    reliability: Reliability | None = None


def compare(
    first: AnyRun | Path | str, second: AnyRun | Path | str, *, home: Path | str | None = None
) -> RunComparison:
    """Return the comparison of two finished runs, agent by agent.

    Raises :class:`~tradeassay_bench.core.errors.RunError` if a run cannot be read or is unfinished,
    and if the runs are of different kinds.
    """
    one, other = (
        run if isinstance(run, Run | CodeRun) else load_run(run, home=home)
        for run in (first, second)
    )
    names = _name(one, other), _name(other, one)
    if isinstance(one, CodeRun) and isinstance(other, CodeRun):
        return _compare_programs(one, other, names)
    if not (isinstance(one, Run) and isinstance(other, Run)):
        raise RunError(
            f"{one.name} and {other.name} are runs of different kinds: a trading run and a run of "
            "programs",
            hint="compare two runs of one kind",
        )
    # Rows of the same agent are paired: first rows of the same setting, then the remaining rows of
    # the same benchmark, in order.
    matched: list[tuple[AgentScores, AgentScores]] = []
    left, right = one.scores.agents, other.scores.agents
    unmatched, waiting = list(left), list(right)
    for field in ("setting", "benchmark"):
        for row in tuple(unmatched):
            place = getattr(row, field), row.agent
            same = next(
                (rival for rival in waiting if (getattr(rival, field), rival.agent) == place), None
            )
            if same is not None:
                matched.append((row, same))
                waiting.remove(same)
                unmatched.remove(row)
    with one_thread():
        found = [_pair(one, other, a, b) for a, b in matched]
    pairs = []
    versus = corrected([pair.paired for pair in found], one.spec.bootstrap.level)
    for pair, paired in zip(found, versus, strict=True):
        # A label may belong to different agents in the two runs.
        called = " and ".join(dict.fromkeys((one.names[pair.agent], other.names[pair.agent])))
        pairs.append(msgspec.structs.replace(pair, paired=paired, agent=called))
    shared = {(row.benchmark, row.agent) for row, _ in matched}
    only = [
        tuple(
            dict.fromkeys(
                f"{row.benchmark}: {run.names[row.agent]}"
                for row in rows
                if (row.benchmark, row.agent) not in shared
            )
        )
        for run, rows in ((one, left), (other, right))
    ]
    # Reliability is computed for agents in common settings. The name of the run is the wording.
    plays = [
        list(plays_of(summary_of(run, details=False).settings, name))
        for run, name in zip((one, other), names, strict=True)
    ]
    both = set.intersection(*({(play.model, play.window) for play in some} for some in plays))
    called_run = msgspec.structs.replace(PLAYED, wording="run")
    return RunComparison(
        first=names[0],
        second=names[1],
        pairs=tuple(pairs),
        only_first=only[0],
        only_second=only[1],
        reliability=reliability(
            [play for play in chain.from_iterable(plays) if (play.model, play.window) in both],
            called=called_run,
            level=one.spec.bootstrap.level,
        ),
    )


def _compare_programs(one: CodeRun, other: CodeRun, names: tuple[str, str]) -> RunComparison:
    """Return the comparison of two runs of programs. Runs with different facts are not comparable.

    ``names`` contains the displayed names of the runs.
    """
    then, now = one.manifest.facts, other.manifest.facts
    differ = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    secret, reason = one.manifest.secret, None
    if one.benchmark != other.benchmark:
        reason = f"benchmarks differ: {one.benchmark} and {other.benchmark}"
    elif differ == ["rules"] and secret is not None and secret != other.manifest.secret:
        anew = f"run {other.name} again with --secret {secret}"
        reason = f"the markets were drawn differently: run all models in one run, or {anew}"
    elif differ:
        some = f"{', '.join(differ[:3])}{' ...' if len(differ) > 3 else ''}"
        same = "run all models in one run, or with the first one's tasks and --secret"
        reason = f"the runs do not share {some}: {same}"
    alone = reason and f"not comparable, {reason}"
    left, right = (
        {(row.setting, row.agent): row for row in run.kind.rows(run.scores)} for run in (one, other)
    )
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
            paired=nothing_to_compare(
                names[0],
                alone
                or _unranked((names[0], left[place]), (names[1], right[place]))
                or "programs have no sessions",
            ),
        )
        for place in left
        if place in right
    )
    return RunComparison(
        first=names[0],
        second=names[1],
        pairs=pairs,
        only_first=tuple(": ".join(place) for place in left if place not in right),
        only_second=tuple(": ".join(place) for place in right if place not in left),
    )


def _unranked(*rows: tuple[str, AgentScores | CodeRow]) -> str | None:
    """Return the runs in which an agent is not ranked, with reasons; None if ranked in all runs."""
    reasons = [
        f"{run}: not ranked, {row.unranked}" for run, row in rows if row.unranked is not None
    ]
    return "; ".join(reasons) or None


def _name(run: AnyRun, other: AnyRun) -> str:
    """Return the name of a run, or its folder if the other run has the same name."""
    return run.name if run.name != other.name else str(run.folder)


def _pair(one: Run, other: Run, a: AgentScores, b: AgentScores) -> Pair:
    """Return the comparison of an agent's rows in two runs, by session if sessions are equal."""
    then, now, name, reason = one.manifest, other.manifest, _name(one, other), None
    data_a, data_b = then.datasets[a.dataset].sha256, now.datasets[b.dataset].sha256
    played = then.benchmark(one.episode(a.episodes[0])), now.benchmark(other.episode(b.episodes[0]))
    windows = [(benchmark.market.first, benchmark.market.last) for benchmark in played]
    venues = then.benchmarks[a.benchmark].venue_sha256, now.benchmarks[b.benchmark].venue_sha256
    if then.convention != now.convention:
        reason = f"conventions differ: {then.convention} and {now.convention}"
    elif data_a != data_b:
        reason = f"data differ: '{a.dataset}' ({data_a[:8]}) and '{b.dataset}' ({data_b[:8]})"
    elif windows[0] != windows[1]:
        reason = f"windows differ: {' to '.join(windows[0])} and {' to '.join(windows[1])}"
    elif sha256_of(played[0]) != sha256_of(played[1]) or venues[0] != venues[1]:
        reason = f"the rules of benchmark '{a.benchmark}' differ"
    horizon = None
    if reason is not None:
        paired = nothing_to_compare(name, f"not comparable, {reason}")
    else:
        left, right = (
            [run.series(key) for key in row.episodes] for run, row in ((one, a), (other, b))
        )
        if left and left[0].sessions:
            horizon = Horizon(len(left[0].sessions), left[0].periods_per_year)
        failed = next(
            (series.failure for series in (*left, *right) if series.failure is not None), None
        )
        why = _unranked((name, a), (_name(other, one), b))
        if failed is not None:
            paired = nothing_to_compare(name, f"an episode failed ({failed})")
        elif why is not None:
            paired = nothing_to_compare(name, why)
        elif len({series.sessions for series in (*left, *right)}) != 1:
            paired = nothing_to_compare(name, "the sessions differ")
        else:
            paired = compare_to_baseline(
                np.stack([series.nav for series in right]),
                np.stack([series.nav for series in left]),
                periods_per_year=left[0].periods_per_year,
                baseline=name,
                bootstrap=one.spec.bootstrap,
            )
    first, second = ({info.id: row.measures[info.id].median for info in MEASURES} for row in (a, b))
    if horizon is not None:
        first, second = horizon.scored(first), horizon.scored(second)
    return Pair(
        benchmark=a.benchmark,
        agent=a.agent,
        datasets=(a.dataset, b.dataset),
        reason=reason,
        measures={info.id: _change(first[info.id], second[info.id], reason) for info in MEASURES},
        paired=paired,
        horizon=horizon,
    )


def _change(first: Measure, second: Measure, reason: str | None) -> Difference:
    """Return the difference of a measure between two runs.

    ``reason`` states why the runs are not comparable, or is None.
    """
    why = first.reason or second.reason if reason is None else f"not comparable: {reason}"
    gap = None
    if why is None and first.value is not None and second.value is not None:
        gap = significant(second.value - first.value)
    return Difference(first=first.value, second=second.value, difference=gap, reason=why)
