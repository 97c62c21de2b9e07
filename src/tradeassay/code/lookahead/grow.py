"""Whole-table code, asked on growing tables in the order of time, before any process sees the whole one.

A short table grows by a bar at a time, with a false bar behind it: no bar is left out, so nothing is left to
chance, and closing everything because the data ends happens on the false bar. A decision that was out must not
change when the next bar arrives, nor in the scored run. Long tables are asked at some places, each followed by
false rows, and changed in place at hundreds of places at once: code that looks back over fewer rows than lie
between two changes holds, just before each, what it holds in the scored run. Where it does not, the change is
tried by itself behind the true past, and only that convicts.

What is asked after the scored run (where it decides something, what looked like a leak) can convict and never
clears. ``record = check_leaks(FunctionSubject(function), columns, seed=7)``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Final, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from tradeassay.code.lookahead.futures import (
    Feeds,
    InPlace,
    change_in_place,
    choose_places,
    false_next_bars,
    other_future,
)
from tradeassay.code.lookahead.trace import Array, Columns, RunFailure, Trace, first_difference
from tradeassay.core.errors import UserError
from tradeassay.core.view import Ints
from tradeassay.sandbox import Job, JobExecutor, kind_of

Outcome = Trace | RunFailure
Enough = Callable[[int, Outcome], bool]
"""Whether nothing after an outcome, of a row, is wanted any more."""

Method = Literal["next bar", "prefix", "in place"]
Cause = Literal["", "run_failed", "nondeterministic", "too_slow", "too_short", "untried", "length"]

SHORT: Final = 5_000
LONG: Final = 20_000
"""The rows on which code is timed before it gets more than the latter."""
PASSING: Final = (
    "Passing is evidence, not proof: a leak that acts on very few bars can be missed. "
    "Only a strategy that is fed bar by bar cannot look ahead."
)
_FEWEST_ROWS: Final = 4
_NEAR_START: Final = 4_000
_NEAR: Final = 8
"""A difference that begins so few rows before a change has to be tried by itself."""
_SAME: Final = 1e-6


class LeakConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How hard to look. The benches are measured with the defaults.

    Up to ``every_bar`` rows the code is asked at every bar. Longer series are asked at ``cuts`` places all over
    them and some near their start, with ``tail_rows`` false rows behind, and changed in place in ``runs`` runs,
    ``gap`` rows apart at first; ``confirmations`` bounds how many hits are tried by themselves. ``rtol``: floats
    that differ by less are one decision (libraries of linear algebra may round the last digit by the length of
    their input); everything else is compared exactly. ``probe``: from 20,000 rows on, run 5,000 and 20,000 first,
    and refuse code whose scored run would take more than ``run_s`` seconds. ``placebo`` adds a run on other prices
    with the same dates.
    """

    every_bar: int = 3_000
    runs: int = 4
    gap: int = 250
    cuts: int = 3
    confirmations: int = 12
    tail_rows: int = 64
    rtol: float = 1e-9
    probe: bool = True
    run_s: float = 60.0
    placebo: bool = False

    def __post_init__(self) -> None:
        for name in ("every_bar", "runs", "cuts", "confirmations"):
            if getattr(self, name) < 0:
                raise UserError(f"'{name}' cannot be negative", hint="0 leaves it out")
        for name in ("gap", "tail_rows", "run_s"):
            if getattr(self, name) <= 0:
                raise UserError(f"'{name}' must be more than 0", hint="leave it out to take the default")
        if not 0 <= self.rtol < 1e-3:
            raise UserError(f"rtol {self.rtol} is outside 0 .. 0.001")


class ChangedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision that changed when only the rows after it did. ``cut_row`` is the last row that was the same in
    both runs, ``row`` the bar of the first decision that differs; ``scored`` and ``other`` say in words what each
    run decided there.
    """

    method: Method
    cut_row: int
    row: int
    scored: str
    other: str

    @property
    def text(self) -> str:
        other = {"next bar": "one false bar", "prefix": "other rows", "in place": "a few other rows"}[self.method]
        decided = f"on bar {self.row} the scored run decides {self.scored}"
        return f"{self.method}: {decided}; with {other} after {self.cut_row} it decides {self.other}"


class LeakRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a look-ahead check found, as it is written down; the verdict is None where nobody could tell, and
    ``cause`` is why.

    ``runs`` are those made for the check and ``bars`` the rows given to them. ``fed`` says what feeding the
    program showed, where that was done: ``same`` decisions as in the scored run on every bar (then ``clean`` is a
    proof), or others (``differs``). ``screened`` counts changes in place, ``cleared`` the bars that were tried and
    decide the same, ``bound`` the number of leaking bars from which on a leak would have been met with 95 %
    chance. ``repeated`` is the share of actions that recur on other prices with the same dates: near 1 the code
    follows dates, a calendar rule or remembered history.
    """

    verdict: Literal["leaky", "clean"] | None
    reason: str
    cause: Cause = ""
    evidence: tuple[ChangedDecision, ...] = ()
    runs: int = 0
    bars: int = 0
    failed_runs: int = 0
    screened: int = 0
    fed: Literal["", "same", "differs"] = ""
    notes: tuple[str, ...] = ()
    cleared: int | None = None
    bound: int | None = None
    repeated: float | None = None

    @property
    def leaky(self) -> bool:
        return self.verdict == "leaky"


class LeakSubject(Protocol):
    """Runs the code on given rows, each time from scratch: no run may know of another. Columns are arrays by name;
    ``A/close`` is column ``close`` of feed ``A``, a plain ``close`` belongs to the only feed.
    """

    def run(self, columns: Columns) -> Outcome: ...

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterable[Outcome]:
        """Run on the first row, the first two, and so on (or up to each of ``rows``), with the false bar of its
        row behind it. What follows an outcome that is ``enough`` may be left out: runs cost with the square of
        their number.
        """
        return map(self.run, with_false_bars(columns, false, rows))


def with_false_bars(columns: Columns, false: Columns, rows: Ints | None) -> Iterator[dict[str, Array]]:
    """Yield the tables of :meth:`LeakSubject.next_bars`, for subjects that run each by itself."""
    bars = len(next(iter(columns.values())))
    for row in range(bars - 1) if rows is None else rows.tolist():
        yield {name: np.append(values[: row + 1], false[name][row]) for name, values in columns.items()}


class FunctionSubject(LeakSubject):
    """A Python function of columns, run in this process. Trusted code only: a global could carry the future."""

    def __init__(self, function: Callable[[Columns], Trace]) -> None:
        self._function = function

    def run(self, columns: Columns) -> Outcome:
        before = time.process_time()
        try:
            trace = self._function(columns)
        except Exception as error:
            return RunFailure(kind="exception", text=f"{type(error).__name__}: {error}")
        return replace(trace, cpu_s=time.process_time() - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubject:
    """Code that runs as ``job``, a fresh child for each table; the columns it returns are decisions by row."""

    executor: JobExecutor
    job: Job

    def run(self, columns: Columns) -> Outcome:
        return next(self._outcomes([columns]))

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterator[Outcome]:
        """Run a job for each table, a few at a time: what follows a leak need not be run."""
        tables = with_false_bars(columns, false, rows)
        while few := list(islice(tables, 16)):
            yield from self._outcomes(few)

    def _outcomes(self, tables: Sequence[Columns]) -> Iterator[Outcome]:
        for result in self.executor.map(replace(self.job, columns=table) for table in tables):
            if result.failure is not None:
                yield RunFailure(kind=kind_of(result.failure), text=result.failure.text)
                continue
            try:
                assert result.columns is not None
                yield replace(Trace.of_rows(result.columns), cpu_s=result.usage.cpu_s)
            except (UserError, ValueError) as error:
                yield RunFailure(kind="bad_decisions", text=str(error))


def check_leaks(
    subject: LeakSubject,
    columns: Columns,
    config: LeakConfig | None = None,
    *,
    seed: int | np.random.Generator,
    deterministic: bool = False,
) -> LeakRecord:
    """Return whether any decision on ``columns`` was seen to depend on later rows; None where nobody could tell.
    ``deterministic`` skips the repetition of the scored run. The same seed gives the same record.
    """
    config, bars = config or LeakConfig(), len(Feeds.of(columns))
    if bars < _FEWEST_ROWS:
        return LeakRecord(verdict=None, cause="too_short", reason=f"{bars} rows are too few to cut")
    slow = probe_speed(subject, columns, config)
    if slow is not None:
        cause: Cause = "too_slow" if slow.kind in ("too_slow", "cpu_timeout", "wall_timeout") else "run_failed"
        return LeakRecord(verdict=None, cause=cause, reason=slow.text)
    growth = Growth(subject, columns, config, seed=seed)
    scored = subject.run(columns)
    again = scored if deterministic else subject.run(columns)
    for outcome in (scored, again):
        if isinstance(outcome, RunFailure):
            reason = f"the run itself failed: {outcome.text}"
            return LeakRecord(verdict=None, cause="run_failed", reason=reason, runs=growth.runs)
    assert isinstance(scored, Trace) and isinstance(again, Trace)
    differs = first_difference(scored, again, bars, 0.0)
    if differs is not None:
        row, first, second = differs
        reason = f"two runs on the same rows differ on bar {row}: {first} against {second}"
        return LeakRecord(verdict=None, cause="nondeterministic", reason=reason, runs=growth.runs)
    return growth.compare(scored)


def probe_speed(subject: LeakSubject, columns: Columns, config: LeakConfig) -> RunFailure | None:
    """Run the first 5,000 and 20,000 rows; returns why running all of a longer table is pointless, if it is."""
    feeds = Feeds.of(columns)
    if not config.probe or len(feeds) <= LONG:
        return None
    times: list[float] = []
    for rows in (SHORT, LONG):
        outcome = subject.run(feeds.head(rows))
        if isinstance(outcome, RunFailure):
            text = f"on the first {rows:,} of {len(feeds):,} bars: {outcome.text}"
            return RunFailure(kind=outcome.kind, text=text)
        if outcome.cpu_s is None:
            return None
        times.append(max(outcome.cpu_s, 1e-6))
    short, long = times
    # Below 0.2 s the clock says nothing about growth, and an exponent of up to 1.15 is noise.
    exponent = math.log(long / short) / math.log(LONG / SHORT) if long >= 0.2 else 1.0
    expected = long * (len(feeds) / LONG) ** (exponent if exponent > 1.15 else 1.0)
    if expected <= config.run_s:
        return None
    growth, advice = "time grows evenly", ""
    if exponent >= 1.5:
        growth = f"time grows with the power {exponent:.1f} of the bars"
        advice = "; a loop that walks or copies the whole table on every bar is the usual cause"
    span = f"{expected:.0f} s" if expected < 120 else f"{expected / 60:.0f} minutes"
    took = f"{SHORT:,} bars take {short:.2f} s and {LONG:,} bars {long:.2f} s: {growth}"
    text = f"{took}, {len(feeds):,} bars would take about {span}{advice}; {config.run_s:g} s are allowed"
    return RunFailure(kind="too_slow", text=text)


class _Answer(NamedTuple):
    """What the code said with other rows behind row ``cut``."""

    method: Method
    cut: int
    trace: Trace


@dataclass(slots=True)
class _Chain:
    """Answers in the order of time, each compared with the one before: what was decided must stay decided."""

    rtol: float
    last: _Answer | None = None
    parted: list[_Answer] = field(default_factory=list)
    failures: list[RunFailure] = field(default_factory=list)
    count: int = 0

    def take(self, row: int, outcome: Outcome) -> bool:
        """Add an answer; returns whether it changed something that was decided."""
        self.count += 1
        if isinstance(outcome, RunFailure):
            self.failures.append(outcome)
            return False
        answer = _Answer("next bar", row, outcome)
        before, self.last = self.last, answer
        if before is not None and first_difference(outcome, before.trace, before.cut + 1, self.rtol):
            self.parted = [before, answer]
        return bool(self.parted)


class Growth:
    """What code said on the beginnings of a table, kept until the scored run can be compared with it. All of it is
    asked when this is made, which must be before the scored run. ``hints`` are rows on which decisions are
    expected (those of a reference): there both ways are tried.
    """

    def __init__(
        self,
        subject: LeakSubject,
        columns: Columns,
        config: LeakConfig,
        *,
        seed: int | np.random.Generator,
        hints: Sequence[int] = (),
    ) -> None:
        self._subject, self._config = subject, config
        self._feeds, self._rng = Feeds.of(columns), np.random.default_rng(seed)
        self._answers: list[_Answer] = []
        self._failures: list[RunFailure] = []
        self._screens: list[tuple[InPlace, Trace]] = []
        self._clear: set[int] = set()
        self._screened = self._untried = self._compared = self.runs = self.rows = 0
        bars, expected = len(self._feeds), np.asarray(hints, dtype=np.int64)
        self._visited = np.zeros(bars, dtype=bool)
        self._short = _FEWEST_ROWS <= bars <= config.every_bar
        if self._short:
            self._false = false_next_bars(self._feeds, self._rng, expected)
            if self._walk(self._false.first, None):
                self._walk(self._false.second, self._false.again)
        elif bars >= _FEWEST_ROWS:
            self._ask_at_some(expected)

    def _walk(self, false: Columns, rows: Ints | None) -> bool:
        """Grow the table bar by bar; returns whether every answer came and none changed a decision."""
        bars = len(self._feeds)
        wanted = range(bars - 1) if rows is None else rows.tolist()
        chain, stops = _Chain(self._config.rtol), _Chain(self._config.rtol)
        said = self._subject.next_bars(self._feeds.head(bars), false, stops.take, rows)
        for row, outcome in zip(wanted, said, strict=False):
            if chain.take(row, outcome):
                break
        self.runs += chain.count
        self.rows += chain.count * (bars // 2)
        self._compared += chain.count
        self._failures += chain.failures
        self._answers += chain.parted or ([chain.last] if chain.last is not None else [])
        if chain.count < len(wanted) and not chain.parted and not chain.failures:
            self._failures.append(RunFailure(kind="bad_result", text="it stopped answering"))
        return not chain.parted and chain.count >= len(wanted)

    def _ask_at_some(self, hints: Ints) -> None:
        """Ask at some places of a long table in the order of time; then change it in place."""
        config, bars, rng = self._config, len(self._feeds), self._rng
        in_place = bars > 4 * config.gap
        early = min(bars - 2, _NEAR_START)
        expected = hints[hints <= early] if hints.size else np.arange(early + 1)
        drawn, count = 6 if in_place else 40, config.cuts
        # In the last hundredth, in the last tenth and, evenly, before: the rows of the plan, varied by the rng.
        edges = [*np.linspace(0.05, 0.9, max(count - 1, 1)), 0.99, 0.999] if count > 1 else [0.9, 0.999]
        spread = list(pairwise(edges))[::-1][:count] if bars > 20 else []
        cuts = [
            *(int(bars * rng.uniform(low, high)) for low, high in spread),
            *rng.integers(0, min(120, early) + 1, drawn // 2).tolist(),
            *rng.choice(expected, min(drawn // 3, expected.size), replace=False).tolist(),
            *rng.integers(0, early + 1, drawn // 6).tolist(),
        ]
        for number, cut in enumerate(sorted(set(cuts))):
            length = min(cut + 1 + config.tail_rows, bars)
            outcome = self._run(other_future(self._feeds, cut + 1, length, rng, mirror=number % 2 == 0))
            if outcome is not None:
                self._answers.append(_Answer("prefix", cut, outcome))
                self._clear.add(cut)
        for _ in range(-(-config.runs // 2) if in_place else 0):
            self._change(hints, config.gap)

    def _run(self, columns: Columns) -> Trace | None:
        self.runs += 1
        self.rows += max(len(values) for values in columns.values())
        outcome = self._subject.run(columns)
        if isinstance(outcome, RunFailure):
            self._failures.append(outcome)
            return None
        self._compared += 1
        return outcome

    def _change(self, wanted: Ints, gap: int) -> None:
        cuts = choose_places(len(self._feeds), wanted, self._visited, gap, self._rng)
        made = change_in_place(self._feeds, cuts, gap, self._rng)
        self._visited[cuts] = True
        outcome = self._run(made.columns)
        if outcome is not None:
            self._screens.append((made, outcome))

    def compare(self, scored: Trace) -> LeakRecord:
        """Return what the answers say about the scored run; asks more where it decides something."""
        evidence, bars = self._convict(scored), len(self._feeds)
        if evidence is None and not self._failures:
            evidence = self._ask_where_it_decides(scored)
        lengthy = evidence is not None and evidence.method != "in place"
        # The same decisions in a table of the same length: then that was what it knew.
        for mirror in (True, False):
            if evidence is not None and lengthy:
                known, rtol = evidence.cut_row + 1, self._config.rtol
                outcome = self._run(other_future(self._feeds, known, bars, self._rng, mirror=mirror))
                lengthy = outcome is not None and not first_difference(scored, outcome, known, rtol)
        tried = bars - 1 if self._short else len(self._clear)
        # A leak in so many bars, anywhere, would have been met with a probability of 95 %.
        bound = 1 if self._short else bound_of(bars, tried)
        verdict: Literal["leaky", "clean"] | None = "clean"
        cause: Cause = ""
        if evidence is not None:
            verdict, reason = "leaky", evidence.text
            if lengthy:
                other = "with other later prices in a table of the same length it decided the same"
                cause, reason = "length", f"it depends on how long the table is ({other}): {reason}"
        elif self._failures:
            verdict, cause = None, "run_failed"
            total = len(self._failures) + self._compared
            reason = f"{len(self._failures)} of {total} runs on other futures failed: {self._failures[0].text}"
        elif self._untried:
            verdict, cause = None, "untried"
            reason = f"{self._untried} bars looked as if they knew later ones and could not be tried by themselves"
        elif self._short:
            reason = f"no decision changed in {self._compared} comparisons, one of them at every bar"
        else:
            reason = (
                f"no decision changed in {self._compared} comparisons, {tried:,} bars cleared; "
                f"leaks in fewer than {bound:,} of {bars:,} bars are not excluded. {PASSING}"
            )
        return LeakRecord(
            verdict=verdict,
            reason=reason,
            cause=cause,
            evidence=() if evidence is None else (evidence,),
            runs=self.runs,
            bars=self.rows,
            failed_runs=len(self._failures),
            screened=self._screened,
            notes=() if len(scored) else ("the scored run decided nothing",),
            cleared=tried,
            bound=bound,
            repeated=self._repeated(scored) if self._config.placebo else None,
        )

    def _convict(self, scored: Trace) -> ChangedDecision | None:
        while self._answers:
            method, cut, trace = self._answers.pop(0)
            found = first_difference(scored, trace, cut + 1, self._config.rtol)
            if found is not None:
                row, here, there = found
                return ChangedDecision(method=method, cut_row=cut, row=row, scored=here, other=there)
        return None

    def _ask_where_it_decides(self, scored: Trace) -> ChangedDecision | None:
        decided = np.unique(scored.rows)
        if self._short:
            more = np.setdiff1d(decided[decided < len(self._feeds) - 1], self._false.again)
            if more.size:
                self._walk(self._false.second, more)
            return self._convict(scored)
        config, gap = self._config, self._config.gap
        left, open_cuts = config.confirmations, set[int]()
        for number in range(2 * config.runs if self._screens else 0):
            if not self._screens:
                if number >= config.runs and not open_cuts:
                    break
                wanted = np.array(sorted(open_cuts), dtype=np.int64) if open_cuts else decided
                self._visited[wanted[wanted < len(self._feeds)]] &= not open_cuts
                self._change(wanted, gap)
                if not self._screens:
                    continue
            made, trace = self._screens.pop(0)
            hits, near, clear = screen(made, scored, trace, len(self._feeds))
            self._screened += made.cuts.size
            tried = hits[: min(left, max(near, 2))]
            left -= len(tried)
            for place in tried:
                outcome = self._run(made.alone(self._feeds, place))
                if outcome is not None:
                    self._answers.append(_Answer("in place", int(made.cuts[place]), outcome))
            evidence = self._convict(scored)
            if evidence is not None:
                return evidence
            settled = {*clear.tolist(), *(int(made.cuts[place]) for place in tried)}
            self._clear |= settled
            open_cuts |= {int(made.cuts[place]) for place in hits[len(tried) : near]}
            open_cuts -= settled
            far = clear.size < made.cuts.size // 2
            if (open_cuts or far) and len(self._feeds) > 64 * gap:
                gap *= 4  # it remembers for longer than a gap: fewer changes, farther apart
        self._untried = len(open_cuts)
        return None

    def _repeated(self, scored: Trace) -> float | None:
        outcome = self._run(other_future(self._feeds, 1, len(self._feeds), self._rng, mirror=False))
        if outcome is None or not len(scored):
            return None
        both = []
        for trace in (scored, outcome):
            kept = [values.tolist() for values in trace.fields.values() if values.dtype.kind != "f"]
            both.append(list(zip(trace.rows.tolist(), *kept, strict=True)))
        again = set(both[1])
        return sum(key in again for key in both[0]) / len(scored)


def screen(made: InPlace, scored: Trace, other: Trace, bars: int) -> tuple[list[int], int, Ints]:
    """Compare what was held before each cut with the scored run: return the hits by the number of their cut, the
    nearest first; how many begin within a few rows of it, which have to be tried; and the rows of the cuts before
    which nothing happened. The others were lost in what earlier changes had done.
    """
    one, two = scored.held(bars), other.held(bars)
    differs = np.zeros(bars, dtype=bool)
    for name in one.keys() | two.keys():
        a, b = one.get(name, np.zeros(bars)), two.get(name, np.zeros(bars))
        differs |= ~np.isclose(a, b, rtol=_SAME, atol=_SAME, equal_nan=True)
    starts, ends = np.flatnonzero(differs[1:] & ~differs[:-1]) + 1, made.cuts
    begins = np.concatenate([[0], (made.cuts + made.lengths + made.gap // 2)[:-1]]).astype(np.int64)
    begins = np.minimum(begins, ends)
    counts = np.concatenate([[0], np.cumsum(differs)])
    clear = (counts[ends + 1] - counts[begins]) == 0
    hits: list[tuple[int, int]] = []
    for number in np.flatnonzero(~clear).tolist():
        low, high = np.searchsorted(starts, (int(begins[number]) + 1, int(ends[number]) + 1))
        if low < high and not differs[begins[number]]:
            hits.append((int(ends[number]) - int(starts[low]), number))
        elif ends[number] == 0 and differs[0]:
            hits.append((0, number))
    near = sum(distance < _NEAR for distance, _ in hits)
    return [number for _, number in sorted(hits)], near, made.cuts[clear]


def bound_of(bars: int, clear: int) -> int:
    """Return the number of bars such that a leak in as many, anywhere, would have been met with 95 % chance."""
    return bars if clear < 1 else min(bars, int(np.ceil(bars * (1.0 - 0.05 ** (1.0 / clear)))))
