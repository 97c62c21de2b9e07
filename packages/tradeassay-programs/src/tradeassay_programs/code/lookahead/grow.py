"""Test code that takes a whole table for look-ahead, by running it on growing tables in the order
of time.

Use ``record = check_leaks(FunctionSubject(function), columns, seed=7)``.

A short table grows by one bar at a time. Each run has one false bar at the end, so that code which
closes its positions at the end of the data does so on the false bar. No bar is left out, so nothing
depends on chance. A decision must not change when the next bar arrives, nor in the scored run.

A long table is cut at some places only, with false rows behind each cut. Then it is changed in
place, at hundreds of places at once. If the code's look-back is shorter than the distance between
two changes, it has the same positions just before each change as in the scored run. Where it does
not, the change is tested alone after the true past. Only that run convicts.

Some runs are made after the scored run: on rows with a decision, and on changes that looked like a
leak. They can convict code and never clear it.
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

from tradeassay.core.arrays import Ints
from tradeassay.core.errors import UserError
from tradeassay_programs.code.lookahead.futures import (
    Feeds,
    InPlace,
    change_in_place,
    choose_places,
    false_next_bars,
    other_future,
)
from tradeassay_programs.code.lookahead.trace import (
    Array,
    Columns,
    RunFailure,
    Trace,
    first_difference,
)
from tradeassay_programs.sandbox import Job, JobExecutor, kind_of

Outcome = Trace | RunFailure
Enough = Callable[[int, Outcome], bool]
"""A function of a row and its outcome that returns whether later outcomes are no longer needed."""

Method = Literal["next bar", "prefix", "in place"]
Cause = Literal["", "run_failed", "nondeterministic", "too_slow", "too_short", "untried", "length"]

SHORT: Final = 5_000
LONG: Final = 20_000
"""The numbers of rows on which code is timed before a table longer than the second number."""
PASSING: Final = (
    "Passing is evidence, not proof: a leak that acts on very few bars can be missed. "
    "Only a strategy that is fed bar by bar cannot look ahead."
)
_FEWEST_ROWS: Final = 4
_NEAR_START: Final = 4_000
_NEAR: Final = 8
"""A difference that starts fewer than this number of rows before a change must be tested alone."""
_SAME: Final = 1e-6


class LeakConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the look-ahead check. The published rates are measured with the defaults.

    - ``every_bar`` is the length of the longest table that is tested at every bar.
    - ``cuts`` is the number of cuts spread over a longer table, in addition to cuts near its start.
      ``tail_rows`` false rows follow each cut.
    - ``runs`` is the number of runs that change a longer table in place. The changes are ``gap``
      rows apart at first.
    - ``confirmations`` is the maximum number of suspicious changes that are tested alone.
    - ``rtol`` is the relative difference below which floats are the same decision, because
      linear-algebra libraries may round the last digit depending on the length of their input. All
      other values are compared exactly.
    - ``probe`` is whether a table of more than 20,000 rows is run on 5,000 and 20,000 rows first.
      Code whose scored run would take more than ``run_s`` seconds is refused.
    - ``placebo`` is whether a run on other prices with the same dates is added.
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
                raise UserError(f"'{name}' cannot be negative", hint="use 0 to turn it off")
        for name in ("gap", "tail_rows", "run_s"):
            if getattr(self, name) <= 0:
                raise UserError(
                    f"'{name}' must be more than 0", hint="leave it out to take the default"
                )
        if not 0 <= self.rtol < 1e-3:
            raise UserError(
                f"rtol must be at least 0 and below 0.001, got {self.rtol}",
                hint="1e-9 is the default",
            )


class ChangedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that changed although only later rows changed.

    ``cut_row`` is the last row that was the same in both runs. ``row`` is the bar of the first
    decision that differs. ``scored`` and ``other`` are the decisions of the two runs on that bar,
    in words.
    """

    method: Method
    cut_row: int
    row: int
    scored: str
    other: str

    @property
    def text(self) -> str:
        other = {
            "next bar": "one false bar",
            "prefix": "other rows",
            "in place": "a few other rows",
        }[self.method]
        decided = f"on bar {self.row} the scored run decides {self.scored}"
        return (
            f"{self.method}: {decided}; with {other} after {self.cut_row} it decides {self.other}"
        )


class LeakRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded result of a look-ahead check.

    The verdict is None if the check could not decide. ``cause`` is the reason.

    - ``runs`` is the number of runs of the check, and ``bars`` the number of rows passed to them.
    - ``fed`` is set if the program also got its bars one at a time. ``same`` means the same
      decisions as in the scored run on every bar. ``clean`` is then a proof. ``differs`` means
      different decisions.
    - ``screened`` is the number of changes in place, and ``cleared`` the number of bars that were
      tested and have the same decision.
    - ``bound``: a leak on this number of bars or more would have been found with a probability of
      95 %.
    - ``repeated`` is the share of actions that recur on other prices with the same dates. Near 1,
      the code follows dates: a calendar rule or remembered history.
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
    """Code under test. Each run starts from scratch and must not know of another run.

    Columns are arrays by name. ``A/close`` is column ``close`` of feed ``A``. A plain ``close``
    belongs to the only feed.
    """

    def run(self, columns: Columns) -> Outcome:
        """Run the code on a table, and return its decisions or the failure."""
        ...

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterable[Outcome]:
        """Run on the first row, the first two rows, and so on, each time with a false bar at the
        end.

        ``rows`` restricts the runs to tables that end at these rows. Outcomes after the first
        ``enough`` outcome may be left out, because the cost grows with the square of the number of
        runs.
        """
        return map(self.run, with_false_bars(columns, false, rows))


def with_false_bars(
    columns: Columns, false: Columns, rows: Ints | None
) -> Iterator[dict[str, Array]]:
    """Yield the tables of :meth:`LeakSubject.next_bars`, for subjects that run each table alone."""
    bars = len(next(iter(columns.values())))
    for row in range(bars - 1) if rows is None else rows.tolist():
        yield {
            name: np.append(values[: row + 1], false[name][row]) for name, values in columns.items()
        }


class FunctionSubject(LeakSubject):
    """A Python function of columns, run in this process.

    Use it for trusted code only: a global variable could carry later rows from one run to another.
    """

    def __init__(self, function: Callable[[Columns], Trace]) -> None:
        self._function = function

    def run(self, columns: Columns) -> Outcome:
        """Call the function, and measure its time."""
        before = time.process_time()
        try:
            trace = self._function(columns)
        except Exception as error:
            return RunFailure(kind="exception", text=f"{type(error).__name__}: {error}")
        return replace(trace, cpu_s=time.process_time() - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubject:
    """Code that runs as ``job`` in a sandbox, in a fresh child for each table.

    The returned columns are decisions by row.
    """

    executor: JobExecutor
    job: Job

    def run(self, columns: Columns) -> Outcome:
        """Run the job on one table."""
        return next(self._outcomes([columns]))

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterator[Outcome]:
        """Run a job for each table, a few at a time, and yield the outcomes.

        Jobs after a leak need not run.
        """
        tables = with_false_bars(columns, false, rows)
        while some := list(islice(tables, 16)):
            yield from self._outcomes(some)

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
    """Return the record of a look-ahead check on ``columns``.

    The verdict is None if the check could not decide. ``deterministic`` skips the repetition of the
    scored run. The same seed gives the same record.
    """
    config, bars = config or LeakConfig(), len(Feeds.of(columns))
    if bars < _FEWEST_ROWS:
        return LeakRecord(verdict=None, cause="too_short", reason=f"{bars} rows are too few to cut")
    slow = probe_speed(subject, columns, config)
    if slow is not None:
        timed_out = slow.kind in ("too_slow", "cpu_timeout", "wall_timeout")
        cause: Cause = "too_slow" if timed_out else "run_failed"
        return LeakRecord(verdict=None, cause=cause, reason=slow.text)
    probe = LookaheadProbe(subject, columns, config, seed=seed)
    scored = subject.run(columns)
    repeat = scored if deterministic else subject.run(columns)
    for outcome in (scored, repeat):
        if isinstance(outcome, RunFailure):
            reason = f"the run itself failed: {outcome.text}"
            return LeakRecord(verdict=None, cause="run_failed", reason=reason, runs=probe.runs)
    assert isinstance(scored, Trace) and isinstance(repeat, Trace)
    difference = first_difference(scored, repeat, bars, 0.0)
    if difference is not None:
        row, first, second = difference
        reason = f"two runs on the same rows differ on bar {row}: {first} against {second}"
        return LeakRecord(verdict=None, cause="nondeterministic", reason=reason, runs=probe.runs)
    return probe.compare(scored)


def probe_speed(subject: LeakSubject, columns: Columns, config: LeakConfig) -> RunFailure | None:
    """Time the first 5,000 and 20,000 rows of a longer table.

    Returns the reason why a run on the whole table is pointless: the code fails, or would take too
    long. Returns None if the run is worthwhile.
    """
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
    # Below 0.2 s the measured time does not show growth, and an exponent of up to 1.15 is noise.
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
    text = (
        f"{took}, {len(feeds):,} bars would take about {span}{advice}; {config.run_s:g} s are "
        "allowed"
    )
    return RunFailure(kind="too_slow", text=text)


class _Answer(NamedTuple):
    """The decisions of the code on a table with different rows after row ``cut``."""

    method: Method
    cut: int
    trace: Trace


@dataclass(slots=True)
class _Chain:
    """Answers in the order of time.

    Each answer is compared with the previous answer, because past decisions must not change.
    ``contradiction`` contains the last two answers if they disagree about an earlier bar.
    """

    rtol: float
    last: _Answer | None = None
    contradiction: list[_Answer] = field(default_factory=list)
    failures: list[RunFailure] = field(default_factory=list)
    count: int = 0

    def add(self, row: int, outcome: Outcome) -> bool:
        """Add an answer and return whether it changed a past decision."""
        self.count += 1
        if isinstance(outcome, RunFailure):
            self.failures.append(outcome)
            return False
        answer = _Answer("next bar", row, outcome)
        before, self.last = self.last, answer
        if before is not None:
            known = before.cut + 1
            if first_difference(outcome, before.trace, known, self.rtol):
                self.contradiction = [before, answer]
        return bool(self.contradiction)


class LookaheadProbe:
    """Runs of code on the first rows of a table, kept for comparison with the scored run.

    The constructor makes the runs, so it must be called before the scored run. ``hints`` are rows
    on which decisions are expected, such as the decisions of a reference. These rows are tested
    twice: with a false bar that moves against the true next bar, and with a false bar that moves
    along with it.
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
        self._screened = 0
        self._untried = 0
        self._compared = 0
        self.runs = 0
        self.rows = 0
        bars, expected = len(self._feeds), np.asarray(hints, dtype=np.int64)
        self._visited = np.zeros(bars, dtype=bool)
        self._short = _FEWEST_ROWS <= bars <= config.every_bar
        if self._short:
            self._false = false_next_bars(self._feeds, self._rng, expected)
            if self._walk(self._false.first, None):
                self._walk(self._false.second, self._false.again)
        elif bars >= _FEWEST_ROWS:
            self._probe_long_table(expected)

    def _walk(self, false: Columns, rows: Ints | None) -> bool:
        """Grow the table bar by bar.

        Returns whether every run answered and no run changed a past decision.
        """
        bars = len(self._feeds)
        wanted = range(bars - 1) if rows is None else rows.tolist()
        # The subject may run ahead of this loop. A separate chain tells it when to stop.
        chain, stopping_chain = _Chain(self._config.rtol), _Chain(self._config.rtol)
        outcomes = self._subject.next_bars(self._feeds.head(bars), false, stopping_chain.add, rows)
        for row, outcome in zip(wanted, outcomes, strict=False):
            if chain.add(row, outcome):
                break
        self.runs += chain.count
        self.rows += chain.count * (bars // 2)
        self._compared += chain.count
        self._failures += chain.failures
        if chain.contradiction:
            self._answers += chain.contradiction
        elif chain.last is not None:
            self._answers.append(chain.last)
        if chain.count < len(wanted) and not chain.contradiction and not chain.failures:
            self._failures.append(RunFailure(kind="bad_result", text="it stopped answering"))
        return not chain.contradiction and chain.count >= len(wanted)

    def _probe_long_table(self, hints: Ints) -> None:
        """Cut a long table at some places, in the order of time. Then change it in place."""
        config, bars, rng = self._config, len(self._feeds), self._rng
        in_place = bars > 4 * config.gap
        early = min(bars - 2, _NEAR_START)
        expected = hints[hints <= early] if hints.size else np.arange(early + 1)
        drawn, count = 6 if in_place else 40, config.cuts
        # One cut is in the last hundredth, one in the last tenth, and the rest evenly before. The
        # generator varies them.
        edges = [0.9, 0.999]
        if count > 1:
            edges = [*np.linspace(0.05, 0.9, max(count - 1, 1)), 0.99, 0.999]
        spread = list(pairwise(edges))[::-1][:count] if bars > 20 else []
        cuts = [
            *(int(bars * rng.uniform(low, high)) for low, high in spread),
            *rng.integers(0, min(120, early) + 1, drawn // 2).tolist(),
            *rng.choice(expected, min(drawn // 3, expected.size), replace=False).tolist(),
            *rng.integers(0, early + 1, drawn // 6).tolist(),
        ]
        for number, cut in enumerate(sorted(set(cuts))):
            length = min(cut + 1 + config.tail_rows, bars)
            table = other_future(self._feeds, cut + 1, length, rng, mirror=number % 2 == 0)
            outcome = self._run(table)
            if outcome is not None:
                self._answers.append(_Answer("prefix", cut, outcome))
                self._clear.add(cut)
        for _ in range(-(-config.runs // 2) if in_place else 0):
            self._change(hints, config.gap)

    def _run(self, columns: Columns) -> Trace | None:
        """Run the code on a table and count the run. Returns None if the run failed."""
        self.runs += 1
        self.rows += max(len(values) for values in columns.values())
        outcome = self._subject.run(columns)
        if isinstance(outcome, RunFailure):
            self._failures.append(outcome)
            return None
        self._compared += 1
        return outcome

    def _change(self, wanted: Ints, gap: int) -> None:
        """Run the code on a table with changes at many places, near the wanted rows
        first.
        """
        cuts = choose_places(len(self._feeds), wanted, self._visited, gap, self._rng)
        changed = change_in_place(self._feeds, cuts, gap, self._rng)
        self._visited[cuts] = True
        outcome = self._run(changed.columns)
        if outcome is not None:
            self._screens.append((changed, outcome))

    def compare(self, scored: Trace) -> LeakRecord:
        """Compare the scored run with the earlier runs, test more rows, and return the record."""
        evidence, bars = self._convict(scored), len(self._feeds)
        if evidence is None and not self._failures:
            evidence = self._probe_decisions(scored)
        by_length = evidence is not None and evidence.method != "in place"
        # If the decisions are the same in another table of the same length, the code knew only the
        # length.
        for mirror in (True, False):
            if evidence is not None and by_length:
                known, rtol = evidence.cut_row + 1, self._config.rtol
                table = other_future(self._feeds, known, bars, self._rng, mirror=mirror)
                outcome = self._run(table)
                if outcome is None:
                    by_length = False
                else:
                    by_length = not first_difference(scored, outcome, known, rtol)
        tried = bars - 1 if self._short else len(self._clear)
        bound = 1 if self._short else bound_of(bars, tried)
        verdict: Literal["leaky", "clean"] | None = "clean"
        cause: Cause = ""
        if evidence is not None:
            verdict, reason = "leaky", evidence.text
            if by_length:
                other = "with other later prices in a table of the same length it decided the same"
                cause, reason = "length", f"it depends on how long the table is ({other}): {reason}"
        elif self._failures:
            verdict, cause = None, "run_failed"
            total = len(self._failures) + self._compared
            reason = (
                f"{len(self._failures)} of {total} runs on other futures failed: "
                f"{self._failures[0].text}"
            )
        elif self._untried:
            verdict, cause = None, "untried"
            reason = (
                f"{self._untried} bars looked as if they knew later ones and could not be "
                "tried by themselves"
            )
        elif self._short:
            reason = (
                f"no decision changed in {self._compared} comparisons, one of them at every bar"
            )
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
        """Compare the scored run with the answers, and return the first contradiction.

        The answers are used up.
        """
        while self._answers:
            method, cut, trace = self._answers.pop(0)
            difference = first_difference(scored, trace, cut + 1, self._config.rtol)
            if difference is not None:
                row, in_scored, in_other = difference
                return ChangedDecision(
                    method=method, cut_row=cut, row=row, scored=in_scored, other=in_other
                )
        return None

    def _probe_decisions(self, scored: Trace) -> ChangedDecision | None:
        """Test the rows on which the scored run makes a decision, and return the first
        contradiction.
        """
        decided = np.unique(scored.rows)
        if self._short:
            remaining = np.setdiff1d(decided[decided < len(self._feeds) - 1], self._false.again)
            if remaining.size:
                self._walk(self._false.second, remaining)
            return self._convict(scored)
        config, gap = self._config, self._config.gap
        # ``open_cuts`` are the changes that looked like a leak and have not been tested alone yet.
        confirmations, open_cuts = config.confirmations, set[int]()
        for number in range(2 * config.runs if self._screens else 0):
            if not self._screens:
                if number >= config.runs and not open_cuts:
                    break
                wanted = np.array(sorted(open_cuts), dtype=np.int64) if open_cuts else decided
                self._visited[wanted[wanted < len(self._feeds)]] &= not open_cuts
                self._change(wanted, gap)
                if not self._screens:
                    continue
            changed, trace = self._screens.pop(0)
            hits, near, clear = screen(changed, scored, trace, len(self._feeds))
            self._screened += changed.cuts.size
            tried = hits[: min(confirmations, max(near, 2))]
            confirmations -= len(tried)
            for place in tried:
                outcome = self._run(changed.alone(self._feeds, place))
                if outcome is not None:
                    self._answers.append(_Answer("in place", int(changed.cuts[place]), outcome))
            evidence = self._convict(scored)
            if evidence is not None:
                return evidence
            settled = {*clear.tolist(), *(int(changed.cuts[place]) for place in tried)}
            self._clear |= settled
            open_cuts |= {int(changed.cuts[place]) for place in hits[len(tried) : near]}
            open_cuts -= settled
            mostly_unclear = clear.size < changed.cuts.size // 2
            if (open_cuts or mostly_unclear) and len(self._feeds) > 64 * gap:
                # The code's look-back is longer than a gap. Make fewer changes, farther apart.
                gap *= 4
        self._untried = len(open_cuts)
        return None

    def _repeated(self, scored: Trace) -> float | None:
        """Return the share of actions that recur on other prices with the same dates, or None if
        unknown.
        """
        outcome = self._run(other_future(self._feeds, 1, len(self._feeds), self._rng, mirror=False))
        if outcome is None or not len(scored):
            return None
        actions = []
        for trace in (scored, outcome):
            # Floats are left out, because sizes and prices differ on other prices.
            fields = [
                values.tolist() for values in trace.fields.values() if values.dtype.kind != "f"
            ]
            actions.append(list(zip(trace.rows.tolist(), *fields, strict=True)))
        recurring = set(actions[1])
        return sum(action in recurring for action in actions[0]) / len(scored)


def screen(changed: InPlace, scored: Trace, other: Trace, bars: int) -> tuple[list[int], int, Ints]:
    """Compare the positions before each change in place with the positions of the scored run.

    Returns three values:

    - the numbers of the cuts with a difference, the nearest difference first;
    - the number of these differences that start within a few rows of their cut and must be tested
      alone;
    - the rows of the cuts without a difference.

    All other cuts are undecided, because earlier changes still have an effect on them.
    """
    held, other_held = scored.held(bars), other.held(bars)
    differs = np.zeros(bars, dtype=bool)
    nothing = np.zeros(bars)
    for name in held.keys() | other_held.keys():
        a, b = held.get(name, nothing), other_held.get(name, nothing)
        differs |= ~np.isclose(a, b, rtol=_SAME, atol=_SAME, equal_nan=True)
    starts, ends = np.flatnonzero(differs[1:] & ~differs[:-1]) + 1, changed.cuts
    after_changes = changed.cuts + changed.lengths + changed.gap // 2
    begins = np.concatenate([[0], after_changes[:-1]]).astype(np.int64)
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
    return [number for _, number in sorted(hits)], near, changed.cuts[clear]


def bound_of(bars: int, clear: int) -> int:
    """Return the number of leaking bars that would have been found with a probability of 95 %.

    ``clear`` is the number of bars that were tested and do not leak.
    """
    if clear < 1:
        return bars
    return min(bars, int(np.ceil(bars * (1.0 - 0.05 ** (1.0 / clear)))))
