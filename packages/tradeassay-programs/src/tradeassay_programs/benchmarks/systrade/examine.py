"""Examine one submission: its gates, its scores by both conventions, and a trail for readers.

The trail is the part of a run that a scorecard shows: its decisions next to the frozen decisions,
prices, and a sample of the audit log.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.printable import printable
from tradeassay.metrics.intervals import student_reach
from tradeassay_bench.account.shares import DecisionList
from tradeassay_bench.core.run_secret import draw_secret, seed_from
from tradeassay_programs.benchmarks.systrade import load_spec
from tradeassay_programs.benchmarks.systrade.data import (
    drawn_year,
    splits_of,
    stored_minutes,
    stored_year,
    synthetic_year,
)
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.drift import DriftReport, Traced, check_drift
from tradeassay_programs.code.gates import (
    CHAIN,
    GateConfig,
    GateReport,
    audit_chains,
    parse_gate,
    pass_gates,
    runner_of,
)
from tradeassay_programs.code.scores import (
    NEAR,
    Scorecard,
    ScoreConfig,
    broken_bars,
    robustness_on,
    score_gated,
)
from tradeassay_programs.code.semantics.interpreter import calendar_of, indicators
from tradeassay_programs.code.semantics.sensitivity import Sensitivity, draw_sensitivity
from tradeassay_programs.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRun,
    TwinExecutor,
    market_columns,
    read_submission,
    submission_config,
)
from tradeassay_programs.sandbox import JobExecutor, SandboxConfig, open_executor

MarkKind = Literal["both", "other size", "only submission", "only frozen"]

_MOST_MARKS: Final = 240
_MOST_POINTS: Final = 480
_SAMPLE: Final = 5
_YEAR_OF_BARS: Final = 3_000
"""Maximum number of bars of a table on which mutants are tried.

On longer tables, only the drawn paths distinguish the mutants.
"""
_WORD: Final = 60


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One bar and leg with a decision of the submission or the frozen semantics.

    Sizes are shares of net equity. The kind ``both`` means the same bar, leg and size. ``share`` or
    ``frozen`` is None if that side has no decision.
    """

    kind: MarkKind
    row: int
    time: str
    leg: str
    share: float | None = None
    frozen: float | None = None
    signal: str = ""
    frozen_signal: str = ""


class LegPath(msgspec.Struct, frozen=True, kw_only=True):
    """The closes of one leg, thinned for a chart.

    The extremes between the remaining points are kept.
    """

    leg: str
    asset: str
    rows: tuple[int, ...]
    closes: tuple[float, ...]


class AuditStep(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the audit log in the chain of a trade. ``id`` is None if the row is missing.

    ``claimed`` is the submission's figure. ``own`` is the host's, or None if the host has no figure
    to compare.
    """

    kind: str
    id: str | None = None
    claimed: float | None = None
    own: float | None = None

    @property
    def true(self) -> bool:
        """Whether the row exists, and its figure equals the host's figure if both state one."""
        if self.id is None or self.claimed is None or self.own is None:
            return self.id is not None
        # A P&L is compared relative to the capital.
        scale = max(1.0, abs(self.own), 100_000.0 if self.kind == "pnl" else 0.0)
        return abs(self.claimed - self.own) <= 1e-6 * scale


class FollowedTrade(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the sample, traced from its signal to its P&L."""

    number: int
    row: int
    time: str
    leg: str
    quantity: float
    claimed_price: float | None
    price: float
    signal: str
    order_id: str
    steps: tuple[AuditStep, ...]


class Trail(msgspec.Struct, frozen=True, kw_only=True):
    """The scored run in the form of a page.

    ``counts`` are over all decisions, by kind. ``marks`` may contain fewer decisions. Differences
    are kept before agreements.
    """

    bars: str
    rows: int
    timeframe: str
    first: str
    last: str
    trades: int
    counts: dict[str, int]
    marks: tuple[Mark, ...]
    paths: tuple[LegPath, ...]
    audit: tuple[FollowedTrade, ...]


def make_trail(
    spec: StrategySpec, bars: TaskBars, run: SubmissionRun | None, frozen: DecisionList
) -> Trail | None:
    """Return the trail of a scored run next to the frozen decisions, or None without a run."""
    if run is None or run.decisions is None or run.trades is None:
        return None
    unit = "M8[D]" if bars.timeframe == "1d" else "M8[m]"
    times = [str(stamp) for stamp in bars.times.astype(unit)]
    marks = compare(spec, run.decisions, frozen, times)
    legs, paths = spec.semantics.inputs.legs, []
    for leg, (asset, feed) in zip(legs, bars.feeds.items(), strict=False):
        closes = feed["close"]
        rows = np.arange(closes.size)
        if closes.size > _MOST_POINTS:
            # Keep the lowest and the highest close of every stretch.
            edges = np.linspace(0, closes.size, _MOST_POINTS // 2 + 1).astype(int)
            kept = {0, closes.size - 1}
            for low, high in pairwise(edges.tolist()):
                part = closes[low:high]
                kept |= {int(low + part.argmin()), int(low + part.argmax())}
            rows = np.array(sorted(kept))
        shown = tuple(float(f"{x:.6g}") for x in closes[rows])
        paths.append(LegPath(leg=leg, asset=asset, rows=tuple(rows.tolist()), closes=shown))
    return Trail(
        bars=bars.name,
        rows=bars.rows,
        timeframe=bars.timeframe,
        first=times[0],
        last=times[-1],
        trades=len(run.trades),
        counts=dict(Counter[str](mark.kind for mark in marks)),
        marks=tuple(thin_marks(marks)),
        paths=tuple(paths),
        audit=_sample(run, np.stack([feed["close"] for feed in bars.feeds.values()]), legs, times),
    )


def compare(
    spec: StrategySpec, decisions: DecisionList, frozen: DecisionList, times: Sequence[str]
) -> list[Mark]:
    """Return a mark for every bar and leg with a decision of either side, in order.

    If a bar and leg have several decisions, the last counts.
    """
    submitted, expected = _by_bar_and_leg(decisions), _by_bar_and_leg(frozen)
    legs, names = spec.semantics.inputs.legs, dict(enumerate(spec.signals))
    marks = []
    for row, leg in sorted(submitted.keys() | expected.keys()):
        share, signal = submitted.get((row, leg), (None, -1))
        frozen_share, frozen_signal = expected.get((row, leg), (None, -1))
        kind: MarkKind = "only frozen" if share is None else "only submission"
        if share is not None and frozen_share is not None:
            kind = "both" if abs(share - frozen_share) <= NEAR else "other size"
        marks.append(
            Mark(
                kind=kind,
                row=row,
                time=times[row],
                leg=legs[leg],
                share=share,
                frozen=frozen_share,
                signal=names.get(signal, ""),
                frozen_signal=names.get(frozen_signal, ""),
            )
        )
    return marks


def _by_bar_and_leg(decisions: DecisionList) -> dict[tuple[int, int], tuple[float, int]]:
    """Return the share and the signal of each decision, by bar and leg."""
    columns = (decisions.row, decisions.leg, decisions.fraction, decisions.signal)
    return {
        (int(row), int(leg)): (float(share), int(signal))
        for row, leg, share, signal in zip(*columns, strict=True)
    }


def thin_marks(marks: Sequence[Mark]) -> list[Mark]:
    """Return at most the number of marks that a page shows, in order.

    Differences are kept before agreements. Both are spread evenly.
    """
    if len(marks) <= _MOST_MARKS:
        return list(marks)
    kept: list[Mark] = []
    for agree in (False, True):
        candidates = [mark for mark in marks if (mark.kind == "both") == agree]
        room = _MOST_MARKS - len(kept)
        if len(candidates) > room:
            places = np.linspace(0, len(candidates) - 1, room).astype(int)
            candidates = [candidates[place] for place in places]
        kept += candidates
    return sorted(kept, key=lambda mark: (mark.row, mark.leg))


def _sample(
    run: SubmissionRun, closes: Floats, legs: Sequence[str], times: Sequence[str]
) -> tuple[FollowedTrade, ...]:
    """Return a sample of trades, spread evenly, with the chains of their audit rows."""
    assert run.trades is not None and run.audit is not None and run.account is not None
    trades, account = run.trades, run.account
    if not len(trades):
        return ()
    chosen = np.unique(np.linspace(0, len(trades) - 1, min(_SAMPLE, len(trades))).astype(int))
    chains = audit_chains(run.audit, trades.order_id[chosen].tolist())
    sample = []
    for number, places in zip(chosen.tolist(), chains.T.tolist(), strict=True):
        row, leg = int(trades.row[number]), int(trades.leg[number])
        own = {
            "order": float(trades.quantity[number]),
            "position": float(account.position[number]),
            "pnl": float(account.equity[row]) - account.capital,
        }
        # The chain of an order extends from its signal to its P&L. A missing row is a step without
        # an id.
        steps = tuple(
            AuditStep(
                kind=kind,
                id=None if place < 0 else _word(run.audit.id[place]),
                claimed=None if place < 0 else _number(run.audit.value[place]),
                own=own.get(kind),
            )
            for kind, place in zip(CHAIN, places, strict=True)
        )
        sample.append(
            FollowedTrade(
                number=number,
                row=row,
                time=times[row],
                leg=legs[leg],
                quantity=float(trades.quantity[number]),
                claimed_price=_number(trades.price[number]),
                price=float(closes[leg, row]),
                signal=_word(trades.signal[number]) or "",
                order_id=_word(trades.order_id[number]) or "",
                steps=steps,
            )
        )
    return tuple(sample)


def bar_log(spec: StrategySpec, bars: TaskBars, run: SubmissionRun) -> str:
    """Return the audit log by bars as CSV (B.6 of the paper). The host computes every figure.

    The columns are ``datetime``, ``close`` and ``position`` of each leg, the indicators of the
    frozen semantics, ``signal``, ``position_state``, ``equity``, and ``constraint_check`` (``pass``
    or the broken constraints).
    """
    import pyarrow as pa
    from pyarrow import csv

    assert run.account is not None and run.trades is not None
    legs = spec.semantics.inputs.legs
    feeds = dict(zip(legs, bars.feeds.values(), strict=False))
    table: dict[str, Any] = {"datetime": bars.times.astype("M8[us]")}
    for leg, held in zip(legs, run.account.held, strict=True):
        table |= {f"{leg}.close": feeds[leg]["close"], f"{leg}.position": held}
    series = indicators(spec.semantics, feeds, calendar_of(bars.times))
    table |= {name: series[name] for name in spec.semantics.indicators}
    signals = np.full(bars.rows, "", dtype=object)
    for row, word in zip(run.trades.row, run.trades.signal, strict=True):
        signals[row] = "+".join(filter(None, (signals[row], _word(word))))
    longs = (run.account.held > 0).any(axis=0)
    shorts = (run.account.held < 0).any(axis=0)
    table["signal"] = signals.astype(str)
    table["position_state"] = np.select(
        [longs & shorts, longs, shorts], ["LONG+SHORT", "LONG", "SHORT"], "FLAT"
    )
    table["equity"] = run.account.equity
    checks = np.full(bars.rows, "", dtype=object)
    for name, (at, _) in broken_bars(run, bars, legs, spec.semantics.constraints).items():
        checks[at] += f"{name} "
    table["constraint_check"] = [text.strip() or "pass" for text in checks]
    written = io.BytesIO()
    csv.write_csv(pa.table(table), written, csv.WriteOptions(quoting_style="needed"))
    return written.getvalue().decode("utf-8")


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _word(value: object) -> str | None:
    return None if value is None else printable(str(value)[:_WORD])


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The scorecard of a submission, its scored run, and its runs on the micro-scenarios."""

    scorecard: Scorecard
    trail: Trail | None
    scenarios: Mapping[str, SubmissionRun]
    scored: SubmissionRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionCheck:
    """The result of ``code eval`` for a folder.

    - ``write_log`` makes the audit log by bars. It is None if the submission did not run.
    - ``drift`` compares the submission with an earlier submission. It is None if no earlier one was
      named or this one cannot be parsed.
    - ``years`` is D4 over several drawn years, the scored year first, with the interval of its
      mean. It is None if only one year was requested.
    """

    scorecard: Scorecard
    trail: Trail | None
    submission: Submission
    write_log: Callable[[], str] | None = None
    drift: DriftReport | None = None
    years: Measure | None = None

    @property
    def bar_log(self) -> str | None:
        """The audit log by bars, computed on access, or None if the submission did not run."""
        return None if self.write_log is None else self.write_log()

    @property
    def gates(self) -> GateReport:
        """The gate report of the scorecard."""
        return self.scorecard.gates

    @property
    def passed(self) -> bool:
        """Whether every gate passed and the drift from an earlier submission is accepted."""
        return self.gates.passed and (self.drift is None or self.drift.accepted)

    def junit(self) -> str:
        """Return the gates as JUnit XML."""
        return self.gates.junit()

    def sarif(self) -> str:
        """Return the gates as SARIF."""
        return self.gates.sarif()


def examine_submission(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    bars: TaskBars,
    config: ScoreConfig,
    scenarios: Mapping[str, SubmissionRun] | None = None,
    sensitivity: Sensitivity | None = None,
) -> Examined:
    """Run the gates of a submission on bars, and return its scores and runs.

    Processor times are not recorded, because they differ from run to run. ``scenarios`` are runs on
    the micro-scenarios from an examination on other bars. Pass ``sensitivity`` only for the final
    examination, because its findings must not reach the author.
    """
    gated = pass_gates(
        submission, spec, executor, config.gates, bars, scenarios=scenarios, sensitivity=sensitivity
    )
    card = score_gated(submission, spec, executor, gated, config)
    trail = None
    if gated.scored:
        trail = make_trail(spec, bars, gated.scored, spec.frozen_decisions(bars))
    gates = []
    for gate in card.gates.gates:
        measures = {name: value for name, value in gate.measures.items() if name != "cpu_s"}
        gates.append(msgspec.structs.replace(gate, measures=measures))
    report = msgspec.structs.replace(card.gates, cpu_s=0.0, gates=tuple(gates))
    card = msgspec.structs.replace(card, gates=report)
    return Examined(scorecard=card, trail=trail, scenarios=gated.scenarios, scored=gated.scored)


def sensitivity_of(spec: StrategySpec, bars: TaskBars, secret: str) -> Sensitivity:
    """Return the sensitivity paths that a secret draws for a strategy, in addition to the scored
    bars.
    """
    rng = np.random.default_rng(seed_from(secret, "pins", spec.id))
    return draw_sensitivity(spec.semantics, rng, bars if bars.rows <= _YEAR_OF_BARS else None)


def with_secret(config: ScoreConfig, secret: str) -> ScoreConfig:
    """Return a configuration that draws everything from a secret."""
    gates = msgspec.structs.replace(config.gates, secret=secret)
    return msgspec.structs.replace(config, gates=gates)


def twin_executor(opened: JobExecutor, config: SandboxConfig) -> TwinExecutor:
    """Return an executor with a second sandbox whose processes use another hash seed."""
    other = msgspec.structs.replace(config, hash_seed=1)
    return TwinExecutor(opened, lambda: open_executor(config=other, workers=1))


def run_scenarios(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, config: GateConfig
) -> dict[str, SubmissionRun]:
    """Run a submission on the micro-scenarios, and return the runs by name."""
    bars = [scenario.bars for scenario in spec.scenarios]
    names = [scenario.name for scenario in spec.scenarios]
    runs = run_on(bars, submission, spec, executor, config)
    return dict(zip(names, runs, strict=True))


def run_on(
    markets: Sequence[TaskBars],
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: GateConfig,
) -> Iterator[SubmissionRun]:
    """Yield a submission's runs on several tables of bars, with the first seed and no gates."""
    legs = spec.semantics.inputs.legs
    tables = [(market_columns(bars, legs), config.seeds[0]) for bars in markets]
    return runner_of(submission, spec, executor, config).logs(tables)


def check_submission(
    folder: Path,
    strategy: str,
    *,
    bars: TaskBars | None = None,
    secret: str | None = None,
    since: Path | None = None,
    years: int = 1,
) -> SubmissionCheck:
    """Examine the submission in a folder against one of the strategies, without a model.

    - ``bars`` are the test bars. By default the secret draws a synthetic year, so that no program
      can have memorised it.
    - ``secret`` repeats an earlier examination. By default a secret is drawn.
    - ``since`` is the folder of an earlier submission. The check then decides whether the new
      submission repairs or changes the earlier submission.
    - ``years`` is the number of years on which D4 is measured.

    Raises :class:`UserError` for an unknown strategy or a folder without its two files, and
    SandboxRefused if this machine cannot contain code.
    """
    spec = load_spec(strategy)
    submission = read_submission(folder)
    before = None if since is None else read_submission(since)
    secret = secret or draw_secret()
    bars = bars if bars is not None else synthetic_year(spec, seed=drawn_year(spec, secret))
    config = with_secret(ScoreConfig(), secret)
    # Code that cannot be parsed never runs, so it needs no sandbox. The other executor refuses
    # submissions anyway.
    parsed = parse_gate(submission).passed
    kind: Literal["sandbox", "trusted-in-process"] = "sandbox" if parsed else "trusted-in-process"
    sandboxed, drift, d4_over_years = submission_config(), None, None
    with open_executor(kind, config=sandboxed, workers=2) as first_executor:
        twin = twin_executor(first_executor, sandboxed) if parsed else nullcontext(first_executor)
        with twin as executor:
            examined = examine_submission(
                submission,
                spec,
                executor,
                bars,
                config,
                sensitivity=sensitivity_of(spec, bars, secret) if parsed else None,
            )
            if before is not None and parsed:
                first = Traced(before, run_scenarios(before, spec, executor, config.gates))
                drift = check_drift(spec, first, Traced(submission, examined.scenarios))
            if years > 1:
                more_years = [
                    synthetic_year(spec, seed=drawn_year(spec, secret, number))
                    for number in range(2, years + 1)
                ]
                d4 = examined.scorecard.corrected["D4"]
                d4_over_years = _over_years(d4, more_years, submission, spec, executor, config)
    write_log = None
    if examined.scored is not None and examined.scored.ok:
        write_log = partial(bar_log, spec, bars, examined.scored)
    return SubmissionCheck(
        scorecard=examined.scorecard,
        trail=examined.trail,
        submission=submission,
        write_log=write_log,
        drift=drift,
        years=d4_over_years,
    )


def _over_years(
    first: Measure,
    more_years: Sequence[TaskBars],
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: ScoreConfig,
) -> Measure:
    """Return the mean of D4 over the scored year and ``more_years``.

    ``first`` is the scored year's D4.
    """
    if first.value is None:
        return first
    scores = [first.value]
    runs = run_on(more_years, submission, spec, executor, config.gates)
    for bars, run in zip(more_years, runs, strict=True):
        if run.decisions is None or run.account is None or run.account.ruined:
            return not_scored(f"it could not be run on year {len(scores) + 1}, or was ruined there")
        scores.append(robustness_on(bars, run.decisions, spec, config).score.value or 0.0)
    mean, count = float(np.mean(scores)), len(scores)
    reach = float(student_reach(count - 1, 0.95) * np.std(scores, ddof=1) / np.sqrt(count))
    note = f"{count} years, {min(scores):.2f} to {max(scores):.2f}"
    return Measure(
        value=mean, low=max(0.0, mean - reach), high=min(10.0, mean + reach), n=count, note=note
    )


def bars_for(
    strategy: str,
    dataset: str | None,
    symbols: tuple[str, ...],
    splits: tuple[str, ...],
    secret: str,
    number: int,
) -> TaskBars:
    """Return the test year of a strategy.

    These are stored bars of a data set's symbols, or the synthetic year on which a run with this
    secret and data seed is scored. Raises :class:`UserError` for an unknown strategy, a data set
    without symbols, or symbols without a data set.
    """
    spec = load_spec(strategy)
    if (dataset is None) != (not symbols):
        raise UserError(
            "a data set needs symbols, and symbols need a data set", hint="give both or neither"
        )
    if dataset is None:
        return synthetic_year(spec, seed=drawn_year(spec, secret, number))
    test = splits_of(splits)["test"]
    if "1d" in spec.semantics.inputs.timeframes:
        return stored_year(dataset, symbols, test)
    return stored_minutes(dataset, symbols, test)
