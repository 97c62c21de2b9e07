"""Run the code on changed futures and compare what it decides before the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.code.leak.compare import equal_traces, first_difference
from tradeassay.code.leak.config import LeakConfig
from tradeassay.code.leak.cuts import choose_cuts, middle
from tradeassay.code.leak.feeds import Feeds
from tradeassay.code.leak.futures import other_future
from tradeassay.code.leak.inquiry import Inquiry
from tradeassay.code.leak.report import Cause, LeakReport, Method, Placebo
from tradeassay.code.leak.speed import LONG, SHORT, probe_speed
from tradeassay.code.leak.splice import Splice, hits, make_splice
from tradeassay.code.leak.subject import RunFailure, Subject
from tradeassay.code.leak.trace import Array, Columns, Trace

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
    subject: Subject,
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
    else points at; they are tried before all others. The same seed gives the same cuts,
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
    _run(subject, _suspected(feeds, suspects, config, rng), inquiry)
    if not inquiry.evidence:
        _run(subject, _trials(feeds, inquiry, config, rng), inquiry)
    if not inquiry.evidence and config.mode == "sampled":
        _screen(subject, feeds, inquiry, config, rng)
    if config.placebo:
        _placebo(subject, feeds, inquiry, rng)
    return inquiry.verdict()


def _probe(
    subject: Subject, feeds: Feeds, config: LeakConfig, inquiry: Inquiry
) -> LeakReport | Sequence[tuple[int, Trace | RunFailure]]:
    """Try 5,000 and 20,000 bars of a long series; the report is there only when there is no point in going on."""
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
    subject: Subject, columns: Columns, inquiry: Inquiry, scored: Trace | None, deterministic: bool
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
    """Yield runs with other rows after each suspected bar, and with none: more futures than elsewhere, because one
    alone may lead to the same decision by chance.
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
    """Yield the runs to make, those that find most first."""
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
        mirror = config.mode == "every" or number % 2 == 0  # one chance a bar: take the one that turns every sign
        changed = other_future(feeds, cut + 1, length, rng, mirror=mirror)
        yield Trial("other future", cut, cut + 1, changed)
        yield _truncation(feeds, cut, config)


def _truncation(feeds: Feeds, cut: int, config: LeakConfig) -> Trial:
    return Trial("truncation", cut, cut + 1 - config.end_rows, feeds.head(cut + 1))


def _run(subject: Subject, trials: Iterator[Trial], inquiry: Inquiry) -> None:
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


def _run_batch(subject: Subject, batch: list[Trial], inquiry: Inquiry) -> None:
    outcomes = subject.run_many([trial.columns for trial in batch]) if batch else ()
    for trial, outcome in zip(batch, outcomes, strict=True):
        inquiry.take(trial, outcome)


def _screen(
    subject: Subject, feeds: Feeds, inquiry: Inquiry, config: LeakConfig, rng: np.random.Generator
) -> None:
    """Splice, and try every hit on the true past."""
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


def _confirmation(feeds: Feeds, splice: Splice, number: int, config: LeakConfig) -> Trial:
    end = int(splice.ends[number])
    return Trial("block splice", end, end + 1, splice.confirmation(feeds, number, config.tail_rows))


def _placebo(subject: Subject, feeds: Feeds, inquiry: Inquiry, rng: np.random.Generator) -> None:
    assert inquiry.scored is not None
    outcome = subject.run(other_future(feeds, 1, len(feeds), rng, mirror=False))
    inquiry.spend([len(feeds)])
    if isinstance(outcome, RunFailure):
        inquiry.note(f"no placebo: {outcome.text}")
        return
    inquiry.placebo = Placebo(actions=len(inquiry.scored), repeated=_repeated(inquiry.scored, outcome))


def _repeated(scored: Trace, placebo: Trace) -> int:
    """Return how many actions come again on the same bar with the same discrete fields."""

    def keys(trace: Trace) -> list[tuple[object, ...]]:
        kept = [values.tolist() for values in trace.fields.values() if values.dtype.kind != "f"]
        return list(zip(trace.rows.tolist(), *kept, strict=True))

    again = set(keys(placebo))
    return sum(key in again for key in keys(scored))


def _rows(columns: Columns) -> int:
    return max(len(values) for values in columns.values())
