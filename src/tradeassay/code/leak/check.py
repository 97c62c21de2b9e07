"""Run the code on changed futures and compare what it decides before the change.

Where to cut matters more than how often: at decisions, in the warm-up, and at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import msgspec
import numpy as np

from tradeassay.code.leak.futures import Feeds, Splice, hits, make_splice, on_grid, other_future
from tradeassay.code.leak.report import (
    PASSING,
    Cause,
    ChangedDecision,
    LeakConfig,
    LeakRecord,
    LeakReport,
    Method,
    Placebo,
    Verdict,
    WholeSeries,
)
from tradeassay.code.leak.subject import LONG, SHORT, LeakSubject, RunFailure, Stepper, probe_speed
from tradeassay.code.leak.trace import Array, Columns, Trace, equal_traces, first_difference
from tradeassay.code.leak.whole import (
    bound_of,
    change_in_place,
    change_one,
    choose_places,
    false_next_bars,
    preferred,
    screen,
    spread_cuts,
)


def choose_cuts(scored: Trace, bars: int, config: LeakConfig, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the last true rows to cut after, in increasing order and without repeats.

    In mode ``every``, every row up to the last but one; short prefixes are preferred on long series.
    """
    last = bars - 2
    if last < 0:
        return ()
    if config.mode == "every":
        return tuple(range(last + 1))
    reach = min(last, config.short_rows)
    changes = np.unique(scored.rows)
    near = changes[changes <= reach]
    warm = min(config.warm_up_rows, reach)
    chosen = [
        _draw(np.arange(min(1, warm), warm + 1), config.warm_up_cuts, rng),
        _draw(near if near.size else np.arange(reach + 1), config.change_cuts, rng),
        _draw(np.arange(reach + 1), config.random_cuts, rng),
    ]
    return tuple(int(row) for row in np.unique(np.concatenate(chosen)))


def middle(bars: int, rng: np.random.Generator) -> int:
    """Return a row near the middle of the sample, varied so that code cannot wait for it."""
    return int(rng.integers(max(bars * 2 // 5, 0), max(bars * 3 // 5, 1)))


def _draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(rng.choice(rows, size=min(count, len(rows)), replace=False), dtype=np.int64)


class _Trial(Protocol):
    @property
    def method(self) -> Method: ...
    @property
    def cut(self) -> int: ...
    @property
    def before(self) -> int: ...


class Inquiry:
    """The running account of one check. Mutable, and discarded when the report is written."""

    def __init__(self, bars: int, config: LeakConfig) -> None:
        self.bars = bars
        self.scored: Trace | None = None
        self.middle: int | None = None
        self.evidence: list[ChangedDecision] = []
        self.placebo: Placebo | None = None
        self.compared = self.screened = self.unconfirmed = self.untried = 0
        self.lengthy = False
        self.clear: set[int] = set()
        self.every_bar = False
        self._config = config
        self._strict = isinstance(config.whole, WholeSeries)
        self._left = config.budget(bars)
        self._runs = self._bars = self._unaffordable = 0
        self._cuts: set[int] = set()
        self._failures: list[tuple[int, RunFailure]] = []
        self._notes: list[str] = []

    def spend(self, rows: Sequence[int], *, free: bool = False) -> None:
        """Book runs of the given numbers of rows; ``free`` ones do not count against the budget."""
        self._runs += len(rows)
        self._bars += sum(rows)
        self._left -= 0 if free else sum(rows)

    def afford(self, rows: int) -> bool:
        """Book a run of ``rows`` rows if the budget allows it."""
        if rows > self._left:
            self._unaffordable += 1
            return False
        self.spend([rows])
        return True

    def note(self, text: str) -> None:
        """Record a remark for the report."""
        self._notes.append(text)

    def fail(self, cut: int, failure: RunFailure) -> None:
        """Note a run on another future that failed."""
        self._failures.append((cut, failure))

    @property
    def tried_cuts(self) -> set[int]:
        """The rows after which something else followed in some run."""
        return self._cuts

    def screen_failed(self, failure: RunFailure) -> None:
        """Note that a splice could not be run; code may legitimately refuse a series of pieces."""
        self.note(f"a block-splice screen failed and found nothing out: {failure.text}")

    def take(self, trial: _Trial, outcome: Trace | RunFailure) -> None:
        """Compare one run with the scored one."""
        if isinstance(outcome, RunFailure):
            self._failures.append((trial.cut, outcome))
            return
        assert self.scored is not None
        self.compared += 1
        self._cuts.add(trial.cut)
        found = first_difference(self.scored, outcome, trial.before, self._config.rtol)
        if found is not None:
            row, scored, other = found
            self.evidence.append(
                ChangedDecision(method=trial.method, cut_row=trial.cut, row=row, scored=scored, other=other)
            )

    def not_checked(self, cause: Cause, reason: str) -> LeakReport:
        """Return the report of a check that could not be made."""
        record = LeakRecord(
            verdict="not_checked",
            reason=reason,
            cause=cause,
            runs=self._runs,
            bars=self._bars,
            notes=tuple(self._notes),
        )
        return LeakReport(record=record, scored=self.scored)

    def verdict(self) -> LeakReport:
        """Return the report of a check that was made."""
        if self._strict:
            return self._whole_verdict()
        failed = len(self._failures)
        if not self.evidence and (self.middle not in self._cuts or failed > self.compared):
            _, last = max(self._failures, key=lambda pair: pair[0], default=(0, None))
            why = f"the last of them says: {last.text}" if last is not None else "the budget is too small"
            tried = failed + self.compared
            return self.not_checked(
                "fails_on_prefixes", f"{failed} of {tried} runs on other futures failed; {why}"
            )
        if self.evidence:
            reason = self.evidence[0].text
        else:
            reason = f"no decision changed in {self.compared} comparisons. {PASSING}"
        record = LeakRecord(
            verdict="leaky" if self.evidence else "clean",
            reason=reason,
            evidence=tuple(self.evidence),
            runs=self._runs,
            bars=self._bars,
            cuts=tuple(sorted(self._cuts)),
            failed_runs=failed,
            screened=self.screened,
            unconfirmed=self.unconfirmed,
            placebo=self.placebo,
            notes=tuple(self._closing_notes()),
        )
        return LeakReport(record=record, scored=self.scored)

    def _whole_verdict(self) -> LeakReport:
        """Return the report where the whole series was looked at: anything left open is not cleared."""
        verdict: Verdict = "clean"
        cause: Cause = ""
        tried = self.bars - 1 if self.every_bar else len(self.clear)
        bound = 1 if self.every_bar else bound_of(self.bars, tried)
        if self.evidence:
            verdict, reason = "leaky", self.evidence[0].text
            if self.lengthy:
                cause = "length"
                reason = (
                    "it depends on how long the table is (with other later prices in a table of the same length "
                    f"it decided the same): {reason}"
                )
        elif self._failures:
            verdict, cause = "not_cleared", "run_failed"
            total = len(self._failures) + self.compared
            reason = f"{len(self._failures)} of {total} runs on other futures failed: {self._failures[0][1].text}"
        elif self.untried > 0:
            verdict, cause = "not_cleared", "untried"
            reason = f"{self.untried} bars looked as if they knew later ones and could not be tried by themselves"
        elif self.every_bar:
            reason = f"no decision changed in {self.compared} comparisons, one of them at every bar"
        else:
            reason = (
                f"no decision changed in {self.compared} comparisons, {tried:,} bars cleared in place; "
                f"leaks in fewer than {bound:,} of {self.bars:,} bars are not excluded. {PASSING}"
            )
        record = LeakRecord(
            verdict=verdict,
            reason=reason,
            cause=cause,
            evidence=tuple(self.evidence),
            runs=self._runs,
            bars=self._bars,
            cuts=tuple(sorted(self._cuts))[:_MOST_CUTS],
            failed_runs=len(self._failures),
            screened=self.screened,
            unconfirmed=self.unconfirmed,
            placebo=self.placebo,
            notes=tuple(self._closing_notes()),
            cleared=tried,
            bound=bound,
        )
        return LeakReport(record=record, scored=self.scored)

    def _closing_notes(self) -> list[str]:
        notes = list(self._notes)
        if self.scored is not None and not len(self.scored):
            notes.append("the scored run decided nothing")
        if self._unaffordable:
            notes.append(f"{self._unaffordable} runs were left out for want of budget")
        if self.untried > 0:
            notes.append(f"{self.untried} hits of the block-splice screen were not tried")
        if self._failures:
            notes.append(f"{len(self._failures)} runs on other futures failed: {self._failures[0][1].text}")
        return notes


_MOST_CUTS = 200
_BATCH = 8
_FEWEST_ROWS = 4
_TAILS = (64, 64, 1, 2, 4, 8)
"""How many other rows follow a suspected bar, by trial. A single row decides what a long path may hide."""
_OUT_OF_TIME = frozenset({"cpu_timeout", "wall_timeout"})


@dataclass(frozen=True, slots=True)
class Trial:
    """One run on a changed future. Rows up to ``cut`` are true; decisions before row ``before`` are compared."""

    method: Method
    cut: int
    before: int
    columns: dict[str, Array]


def check_leaks(
    subject: LeakSubject,
    columns: Columns,
    config: LeakConfig | None = None,
    *,
    seed: int | np.random.Generator,
    scored: Trace | None = None,
    deterministic: bool = False,
    suspects: Sequence[int] = (),
) -> LeakReport:
    """Return whether any decision of the code on ``columns`` was seen to depend on later rows.

    ``scored`` is the run whose result counts, when it has been made already; it is made here otherwise. It is
    compared with every other run, so code gains nothing by behaving well in the check alone. ``deterministic``
    skips the repetition of the scored run, for callers that have made one. ``suspects`` are bars that something
    else points to; they are tried before all others. The same seed gives the same cuts,
    futures and report.

    A verdict ``not_checked`` is a failure of something else, named in ``cause``: the run failed, two equal runs
    differ, the code fails on most prefixes, it would take too long, or there are too few rows. Raises UserError
    for columns that cannot be cut.
    """
    config = config or LeakConfig()
    feeds = Feeds.of(columns)
    inquiry = Inquiry(len(feeds), config)
    rng = np.random.default_rng(seed)
    if len(feeds) < _FEWEST_ROWS:
        return inquiry.not_checked("too_short", f"{len(feeds)} rows are too few to cut")
    probes = _probe(subject, feeds, config, inquiry) if scored is None else ()
    if isinstance(probes, LeakReport):
        return probes
    refused = _settle_scored(subject, columns, inquiry, scored, deterministic)
    if refused is not None:
        return refused
    for rows, outcome in probes:
        inquiry.take(Trial("truncation", rows - 1, rows - config.end_rows, {}), outcome)
    if isinstance(config.whole, WholeSeries):
        _look_at_whole(subject, feeds, inquiry, config.whole, suspects, config, rng)
    else:
        _run(subject, _suspected(feeds, suspects, config, rng), inquiry)
        if not inquiry.evidence:
            _run(subject, _trials(feeds, inquiry, config, rng), inquiry)
        if not inquiry.evidence and config.mode == "sampled":
            _screen(subject, feeds, inquiry, config, rng)
    if config.placebo:
        _placebo(subject, feeds, inquiry, rng)
    return inquiry.verdict()


def _probe(
    subject: LeakSubject, feeds: Feeds, config: LeakConfig, inquiry: Inquiry
) -> LeakReport | Sequence[tuple[int, Trace | RunFailure]]:
    """Try 5,000 and 20,000 bars of a long series; a report only when going on is pointless."""
    if not config.probe or len(feeds) <= LONG:
        return ()
    probe, outcomes = probe_speed(subject, feeds.head(len(feeds)))
    inquiry.spend((SHORT, LONG)[: len(outcomes)])
    failed = outcomes[-1]
    if isinstance(failed, RunFailure):
        rows = (SHORT, LONG)[len(outcomes) - 1]
        cause: Cause = "too_slow" if failed.kind in _OUT_OF_TIME else "run_failed"
        return inquiry.not_checked(cause, f"on the first {rows:,} of {len(feeds):,} bars: {failed.text}")
    if probe is not None and probe.expected_s > config.run_s:
        return inquiry.not_checked("too_slow", f"{probe.text}; {config.run_s:g} s are allowed")
    return tuple(zip((SHORT, LONG), outcomes, strict=True))


def _settle_scored(
    subject: LeakSubject, columns: Columns, inquiry: Inquiry, scored: Trace | None, deterministic: bool
) -> LeakReport | None:
    """Make the scored run and its repetition; returns a report when they settle the matter."""
    missing = (scored is None) + (not deterministic)
    made = list(subject.run_many([columns] * missing)) if missing else []
    inquiry.spend([inquiry.bars] * missing, free=True)
    for outcome in made:
        if isinstance(outcome, RunFailure):
            return inquiry.not_checked("run_failed", f"the run itself failed: {outcome.text}")
    runs = [run for run in (scored, *made) if isinstance(run, Trace)]
    inquiry.scored = runs[0]
    if len(runs) > 1 and not equal_traces(runs[0], runs[1]):
        end = inquiry.bars
        row, first, second = first_difference(runs[0], runs[1], end, 0.0) or (end, "more", "less")
        text = f"two runs on the same rows differ on bar {row}: {first} against {second}"
        return inquiry.not_checked("nondeterministic", text)
    return None


def _suspected(
    feeds: Feeds, suspects: Sequence[int], config: LeakConfig, rng: np.random.Generator
) -> Iterator[Trial]:
    """Yield runs with other rows after each suspected bar, and with none: more futures than elsewhere, because a
    single one may lead to the same decision by chance.
    """
    for cut in suspects:
        if not 0 <= cut <= len(feeds) - 2:
            continue
        for number, tail in enumerate(_TAILS):
            changed = other_future(feeds, cut + 1, min(cut + 1 + tail, len(feeds)), rng, mirror=number % 2 == 0)
            yield Trial("other future", cut, cut + 1, changed)
        yield Trial("perturbation", cut, cut + 1, other_future(feeds, cut + 1, len(feeds), rng, mirror=True))
        yield _truncation(feeds, cut + 1, config)


def _trials(feeds: Feeds, inquiry: Inquiry, config: LeakConfig, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield the runs to make, the most productive first."""
    bars = len(feeds)
    half = middle(bars, rng)
    inquiry.middle = half
    yield _truncation(feeds, half, config)
    for number in range(config.perturbations):
        cut = half if number == 0 else int(rng.integers(0, bars - 1))
        changed = other_future(feeds, cut + 1, bars, rng, mirror=number % 2 == 0)
        yield Trial("perturbation", cut, cut + 1, changed)
    assert inquiry.scored is not None
    for number, cut in enumerate(rng.permutation(choose_cuts(inquiry.scored, bars, config, rng)).tolist()):
        length = min(cut + 1 + config.tail_rows, bars)
        mirror = config.mode == "every" or number % 2 == 0  # one chance per bar: use the one that flips every sign
        changed = other_future(feeds, cut + 1, length, rng, mirror=mirror)
        yield Trial("other future", cut, cut + 1, changed)
        yield _truncation(feeds, cut, config)


def _truncation(feeds: Feeds, cut: int, config: LeakConfig) -> Trial:
    return Trial("truncation", cut, cut + 1 - config.end_rows, feeds.head(cut + 1))


def _run(subject: LeakSubject, trials: Iterator[Trial], inquiry: Inquiry) -> None:
    """Run trials in batches until one convicts, the budget is spent, or there are no more."""
    batch: list[Trial] = []
    for trial in trials:
        if not inquiry.afford(_rows(trial.columns)):
            continue
        batch.append(trial)
        if len(batch) == _BATCH:
            _run_batch(subject, batch, inquiry)
            batch = []
            if inquiry.evidence:
                return
    _run_batch(subject, batch, inquiry)


def _run_batch(subject: LeakSubject, batch: list[Trial], inquiry: Inquiry) -> None:
    outcomes = subject.run_many([trial.columns for trial in batch]) if batch else ()
    for trial, outcome in zip(batch, outcomes, strict=True):
        inquiry.take(trial, outcome)


def _screen(
    subject: LeakSubject, feeds: Feeds, inquiry: Inquiry, config: LeakConfig, rng: np.random.Generator
) -> None:
    """Run splices, and retry every hit on the true past."""
    assert inquiry.scored is not None
    visits: Counter[int] = Counter()
    for number in range(config.splice_runs):
        splice = make_splice(feeds, inquiry.scored, config, visits, rng, mirror=number % 2 == 0)
        if splice is None or not inquiry.afford(_rows(splice.columns)):
            return
        spliced = subject.run(splice.columns)
        if isinstance(spliced, RunFailure):
            inquiry.screen_failed(spliced)
            continue
        found = hits(splice, inquiry.scored, spliced)
        inquiry.screened += len(splice.ends)
        tried = found[: config.confirmations]
        before = inquiry.compared
        _run(subject, (_confirmation(feeds, splice, piece, config) for piece in tried), inquiry)
        if inquiry.evidence:
            return
        inquiry.unconfirmed += inquiry.compared - before
        inquiry.untried += len(found) - (inquiry.compared - before)


def _look_at_whole(
    subject: LeakSubject,
    feeds: Feeds,
    inquiry: Inquiry,
    whole: WholeSeries,
    suspects: Sequence[int],
    config: LeakConfig,
    rng: np.random.Generator,
) -> None:
    """Put a false bar behind every bar of a short series; change a long one in place, and its rest at cuts."""
    bars = len(feeds)
    short = bars <= whole.every_bar and feeds.aligned and isinstance(subject, Stepper)
    if short:
        _every_bar(subject, feeds, inquiry, suspects, config, rng)
    if not inquiry.evidence:
        _run_free(subject, _rest_changed(feeds, 2 if short else whole.cuts, config, rng), inquiry)
    if not inquiry.evidence and not short:
        _run_free(subject, _near_start(feeds, inquiry, config, rng), inquiry)
    if not inquiry.evidence and not short and feeds.aligned and bars > 4 * whole.gap:
        _in_place(subject, feeds, inquiry, whole, suspects, rng)
    elif not inquiry.evidence and not short:
        _run_free(subject, _trials(feeds, inquiry, config, rng), inquiry)
        inquiry.clear |= inquiry.tried_cuts
    if inquiry.evidence:
        _ask_about_length(subject, feeds, inquiry, rng)


def _every_bar(
    subject: LeakSubject,
    feeds: Feeds,
    inquiry: Inquiry,
    suspects: Sequence[int],
    config: LeakConfig,
    rng: np.random.Generator,
) -> None:
    assert isinstance(subject, Stepper)
    assert inquiry.scored is not None
    count = 0
    columns, false = feeds.head(len(feeds)), false_next_bars(feeds, rng, preferred(inquiry.scored, suspects))
    enough = partial(_shows_leak, inquiry.scored, config.rtol)
    for row, outcome in enumerate(subject.next_bars(columns, false.first, enough)):
        inquiry.take(Trial("next bar", row, row + 1, {}), outcome)
        count += 1
        if inquiry.evidence:
            break
    inquiry.spend([len(feeds) // 2] * count, free=True)
    inquiry.every_bar = count >= len(feeds) - 1
    if inquiry.evidence or not inquiry.every_bar or not false.again.size:
        return
    again = subject.next_bars(columns, false.second, enough, false.again)
    for row, outcome in zip(false.again.tolist(), again, strict=False):  # one comparison with the one before
        if isinstance(outcome, RunFailure) or enough(row, outcome):
            inquiry.take(Trial("next bar", row, row + 1, {}), outcome)
            return


def _shows_leak(scored: Trace, rtol: float, row: int, outcome: Trace | RunFailure) -> bool:
    return isinstance(outcome, Trace) and first_difference(scored, outcome, row + 1, rtol) is not None


def _rest_changed(feeds: Feeds, count: int, config: LeakConfig, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield runs of the whole length whose rest differs after a cut, the latest first; then one cut short."""
    cuts = spread_cuts(len(feeds), count, rng)
    for number, cut in enumerate(cuts):
        yield Trial("perturbation", cut, cut + 1, _on_grid(feeds, cut, mirror=number % 2 == 0, rng=rng))
    if cuts:
        yield _truncation(feeds, cuts[-1], config)


def _near_start(feeds: Feeds, inquiry: Inquiry, config: LeakConfig, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield short runs whose cuts lie in the warm-up and where the first decisions are made."""
    assert inquiry.scored is not None
    few = msgspec.structs.replace(config, warm_up_cuts=3, change_cuts=2, random_cuts=1)
    for number, cut in enumerate(choose_cuts(inquiry.scored, len(feeds), few, rng)):
        length = min(cut + 1 + config.tail_rows, len(feeds))
        changed = other_future(feeds, cut + 1, length, rng, mirror=number % 2 == 0)
        yield Trial("other future", cut, cut + 1, on_grid(feeds, changed, cut + 1))


def _on_grid(feeds: Feeds, cut: int, *, mirror: bool, rng: np.random.Generator) -> dict[str, Array]:
    return on_grid(feeds, other_future(feeds, cut + 1, len(feeds), rng, mirror=mirror), cut + 1)


def _in_place(
    subject: LeakSubject,
    feeds: Feeds,
    inquiry: Inquiry,
    whole: WholeSeries,
    suspects: Sequence[int],
    rng: np.random.Generator,
) -> None:
    """Change the series in place, several times, and try what looks like a leak by itself.

    A hit that there is no budget for is looked at again in a later run, farther from other changes; what stays
    open at the end is not cleared.
    """
    assert inquiry.scored is not None
    bars, gap = len(feeds), whole.gap
    wanted = preferred(inquiry.scored, suspects)
    visited = np.zeros(bars, dtype=bool)
    left = whole.confirmations
    unsettled: set[int] = set()
    for number in range(2 * whole.runs):
        if number >= whole.runs and not unsettled:
            break
        rows = np.array(sorted(unsettled), dtype=np.int64) if unsettled else wanted
        visited[rows] &= not unsettled
        made = change_in_place(feeds, choose_places(bars, rows, visited, gap, rng), gap, rng)
        visited[made.cuts] = True
        outcome = subject.run(made.columns)
        inquiry.spend([bars], free=True)
        if isinstance(outcome, RunFailure):
            inquiry.fail(int(made.cuts[0]), outcome)
            continue
        found = screen(made, inquiry.scored, outcome, bars)
        inquiry.screened += made.cuts.size
        tried = found.hits[: min(left, max(found.near, 2))]
        left -= len(tried)
        before = inquiry.compared
        trials = (
            Trial("in place", int(made.cuts[place]), int(made.cuts[place]) + 1, change_one(feeds, made, place))
            for place in tried
        )
        _run_free(subject, trials, inquiry)
        if inquiry.evidence:
            return
        inquiry.unconfirmed += inquiry.compared - before
        settled = {*found.clear.tolist(), *(int(made.cuts[place]) for place in tried)}
        inquiry.clear |= settled
        unsettled |= {int(made.cuts[place]) for place in found.hits[len(tried) : found.near]}
        unsettled -= settled
        if (unsettled or found.clear.size < made.cuts.size // 2) and bars > 64 * gap:
            gap *= 4  # it remembers for longer than a gap: fewer cuts, farther apart
    if gap > whole.gap:
        inquiry.note(f"what it remembers reaches back far: the last cuts lay {gap} rows apart")
    inquiry.untried = len(unsettled)


def _ask_about_length(subject: LeakSubject, feeds: Feeds, inquiry: Inquiry, rng: np.random.Generator) -> None:
    """Note where other prices in a table of the same length change nothing: then the length is what it knows."""
    assert inquiry.scored is not None
    first = inquiry.evidence[0]
    if first.method not in ("truncation", "next bar", "other future"):
        return
    for mirror in (True, False):
        outcome = subject.run(_on_grid(feeds, first.cut_row, mirror=mirror, rng=rng))
        inquiry.spend([len(feeds)], free=True)
        if isinstance(outcome, RunFailure):
            return
        if first_difference(inquiry.scored, outcome, first.cut_row + 1, 1e-9) is not None:
            return
    inquiry.lengthy = True


def _run_free(subject: LeakSubject, trials: Iterator[Trial], inquiry: Inquiry) -> None:
    """Run trials one after the other, without a budget, until one convicts."""
    for trial in trials:
        inquiry.spend([_rows(trial.columns)], free=True)
        inquiry.take(trial, subject.run(trial.columns))
        if inquiry.evidence:
            return


def _confirmation(feeds: Feeds, splice: Splice, number: int, config: LeakConfig) -> Trial:
    end = int(splice.ends[number])
    return Trial("block splice", end, end + 1, splice.confirmation(feeds, number, config.tail_rows))


def _placebo(subject: LeakSubject, feeds: Feeds, inquiry: Inquiry, rng: np.random.Generator) -> None:
    assert inquiry.scored is not None
    outcome = subject.run(other_future(feeds, 1, len(feeds), rng, mirror=False))
    inquiry.spend([len(feeds)])
    if isinstance(outcome, RunFailure):
        inquiry.note(f"no placebo: {outcome.text}")
        return
    inquiry.placebo = Placebo(actions=len(inquiry.scored), repeated=_repeated(inquiry.scored, outcome))


def _repeated(scored: Trace, placebo: Trace) -> int:
    """Return how many actions recur on the same bar with the same discrete fields."""

    def keys(trace: Trace) -> list[tuple[object, ...]]:
        kept = [values.tolist() for values in trace.fields.values() if values.dtype.kind != "f"]
        return list(zip(trace.rows.tolist(), *kept, strict=True))

    again = set(keys(placebo))
    return sum(key in again for key in keys(scored))


def _rows(columns: Columns) -> int:
    return max(len(values) for values in columns.values())
