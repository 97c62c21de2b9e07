"""Examine one submission: the gates, both conventions of the four dimensions, and a trail for people.

The trail is what a scorecard shows of one run: its decisions next to the frozen ones, prices, and an audit sample.
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

from tradeassay.account.shares import DecisionList
from tradeassay.benchmarks.systrade import load_spec
from tradeassay.benchmarks.systrade.data import drawn_year, splits_of, stored_minutes, stored_year, synthetic_year
from tradeassay.code.bars import TaskBars
from tradeassay.code.drift import DriftReport, Traced, check_drift
from tradeassay.code.gates import CHAIN, GateConfig, GateReport, audit_chains, parse_gate, pass_gates, runner_of
from tradeassay.code.scores import NEAR, Scorecard, ScoreConfig, broken_bars, robustness_on, score_gated
from tradeassay.code.semantics.interpreter import calendar_of, indicators
from tradeassay.code.semantics.pins import Pins, draw_pins
from tradeassay.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRun,
    TwinExecutor,
    market_columns,
    read_submission,
    submission_config,
)
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import draw_secret, seed_from
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.printable import printable
from tradeassay.core.view import Floats
from tradeassay.metrics.intervals import student_reach
from tradeassay.sandbox import JobExecutor, SandboxConfig, open_executor

MarkKind = Literal["both", "other size", "only submission", "only frozen"]

_MOST_MARKS: Final = 240
_MOST_POINTS: Final = 480
_SAMPLE: Final = 5
_YEAR_OF_BARS: Final = 3_000
"""Longer bars are not tried for mutants: the paths alone have to show them."""
_WORD: Final = 60


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One bar and leg where the submission or the frozen semantics decided. Sizes are shares of net equity.

    ``both``: same bar, leg and size. ``share`` or ``frozen`` is None where that side decided nothing."""

    kind: MarkKind
    row: int
    time: str
    leg: str
    share: float | None = None
    frozen: float | None = None
    signal: str = ""
    frozen_signal: str = ""


class LegPath(msgspec.Struct, frozen=True, kw_only=True):
    """The closes of one leg, thinned for a chart; highs and lows between kept points are kept too."""

    leg: str
    asset: str
    rows: tuple[int, ...]
    closes: tuple[float, ...]


class AuditStep(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the audit log in the chain of a trade; ``found`` is None where it is missing.

    ``claimed`` is the submission's figure, ``own`` the host's (None where the host has none to compare)."""

    kind: str
    id: str | None = None
    claimed: float | None = None
    own: float | None = None

    @property
    def true(self) -> bool:
        """Whether the row exists and its figure equals the host's, where both state one."""
        if self.id is None or self.claimed is None or self.own is None:
            return self.id is not None
        room = 1e-6 * max(1.0, abs(self.own), 100_000.0 if self.kind == "pnl" else 0.0)
        return abs(self.claimed - self.own) <= room


class FollowedTrade(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the sample, followed from its signal to its P&L."""

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
    """The scored run as a page shows it. ``counts`` are over all decisions; ``marks`` may be fewer, differences
    first."""

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
    """Return the trail of a scored run against what the frozen semantics decide; None when there was no run."""
    if run is None or run.decisions is None or run.trades is None:
        return None
    times = [str(stamp) for stamp in bars.times.astype("M8[D]" if bars.timeframe == "1d" else "M8[m]")]
    marks = compare(spec, run.decisions, frozen, times)
    legs, paths = spec.semantics.inputs.legs, []
    for leg, (asset, feed) in zip(legs, bars.feeds.items(), strict=False):
        closes = feed["close"]
        rows = np.arange(closes.size)
        if closes.size > _MOST_POINTS:
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


def compare(spec: StrategySpec, found: DecisionList, frozen: DecisionList, times: Sequence[str]) -> list[Mark]:
    """Return a mark for every bar and leg where either decided, in order; the last of a bar and leg counts."""
    mine, other = (
        {
            (int(row), int(leg)): (float(share), int(signal))
            for row, leg, share, signal in zip(one.row, one.leg, one.fraction, one.signal, strict=True)
        }
        for one in (found, frozen)
    )
    legs, words = spec.semantics.inputs.legs, dict(enumerate(spec.signals))
    made = []
    for row, leg in sorted(mine.keys() | other.keys()):
        (share, signal), (wanted, meant) = (one.get((row, leg), (None, -1)) for one in (mine, other))
        kind: MarkKind = "only frozen" if share is None else "only submission"
        if share is not None and wanted is not None:
            kind = "both" if abs(share - wanted) <= NEAR else "other size"
        told = {"signal": words.get(signal, ""), "frozen_signal": words.get(meant, "")}
        made.append(Mark(kind=kind, row=row, time=times[row], leg=legs[leg], share=share, frozen=wanted, **told))
    return made


def thin_marks(marks: Sequence[Mark]) -> list[Mark]:
    """Return as many marks as a page shows, in order: differences before agreements, each spread evenly."""
    if len(marks) <= _MOST_MARKS:
        return list(marks)
    kept: list[Mark] = []
    for agree in (False, True):
        some, room = [mark for mark in marks if (mark.kind == "both") == agree], _MOST_MARKS - len(kept)
        if len(some) > room:
            some = [some[place] for place in np.linspace(0, len(some) - 1, room).astype(int)] if room else []
        kept += some
    return sorted(kept, key=lambda mark: (mark.row, mark.leg))


def _sample(
    run: SubmissionRun, closes: Floats, legs: Sequence[str], times: Sequence[str]
) -> tuple[FollowedTrade, ...]:
    assert run.trades is not None and run.audit is not None and run.account is not None
    trades, account = run.trades, run.account
    if not len(trades):
        return ()
    chosen = np.unique(np.linspace(0, len(trades) - 1, min(_SAMPLE, len(trades))).astype(int))
    chains = audit_chains(run.audit, trades.order_id[chosen].tolist())
    found = []
    for number, places in zip(chosen.tolist(), chains.T.tolist(), strict=True):
        row, leg = int(trades.row[number]), int(trades.leg[number])
        own = {
            "order": float(trades.quantity[number]),
            "position": float(account.position[number]),
            "pnl": float(account.equity[row]) - account.capital,
        }
        # The chain of an order from its signal to its P&L; what is missing is a step without an id.
        steps = tuple(
            AuditStep(
                kind=kind,
                id=None if place < 0 else _word(run.audit.id[place]),
                claimed=None if place < 0 else _number(run.audit.value[place]),
                own=own.get(kind),
            )
            for kind, place in zip(CHAIN, places, strict=True)
        )
        found.append(
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
    return tuple(found)


def bar_log(spec: StrategySpec, bars: TaskBars, run: SubmissionRun) -> str:
    """Return the audit log by bars as CSV (B.6 of the paper), every figure the host's own.

    Columns: ``datetime``; of each leg ``close`` and ``position``; the strategy's indicators by its frozen
    semantics; ``signal``, ``position_state``, ``equity``, and ``constraint_check`` (``pass``, or what is broken).
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
    longs, shorts = ((sign * run.account.held > 0).any(axis=0) for sign in (1.0, -1.0))
    table["signal"] = signals.astype(str)
    table["position_state"] = np.select([longs & shorts, longs, shorts], ["LONG+SHORT", "LONG", "SHORT"], "FLAT")
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
    """The findings about a submission, its scored run, and its runs on the micro-scenarios."""

    scorecard: Scorecard
    trail: Trail | None
    scenarios: Mapping[str, SubmissionRun]
    scored: SubmissionRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionCheck:
    """The result of ``code eval`` for a folder. ``write_log`` makes its log; None where nothing ran. ``drift`` is
    what became of an earlier submission, None where none was named or this one cannot be parsed. ``years`` is D4
    over several drawn years, the scored one first, with the interval of its mean; None where one was asked for."""

    scorecard: Scorecard
    trail: Trail | None
    submission: Submission
    write_log: Callable[[], str] | None = None
    drift: DriftReport | None = None
    years: Measure | None = None

    @property
    def bar_log(self) -> str | None:
        """The audit log by bars, made when it is asked for; None where nothing ran."""
        return None if self.write_log is None else self.write_log()

    @property
    def gates(self) -> GateReport:
        return self.scorecard.gates

    @property
    def passed(self) -> bool:
        """Whether every gate was run and passed, and an earlier submission was not changed into something else."""
        return self.gates.passed and (self.drift is None or self.drift.accepted)

    def junit(self) -> str:
        return self.gates.junit()

    def sarif(self) -> str:
        return self.gates.sarif()


def examine_submission(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    bars: TaskBars,
    config: ScoreConfig,
    scenarios: Mapping[str, SubmissionRun] | None = None,
    pins: Pins | None = None,
) -> Examined:
    """Run gates and scores on bars. Times are left out of the record: they never repeat.

    ``scenarios`` are its runs on the micro-scenarios from an examination on other bars. ``pins`` are for the
    examination that counts, of which its author learns nothing."""
    gated = pass_gates(submission, spec, executor, config.gates, bars, scenarios=scenarios, pins=pins)
    card = score_gated(submission, spec, executor, gated, config)
    trail = make_trail(spec, bars, gated.scored, spec.frozen_decisions(bars)) if gated.scored else None
    gates = tuple(
        msgspec.structs.replace(gate, measures={k: v for k, v in gate.measures.items() if k != "cpu_s"})
        for gate in card.gates.gates
    )
    card = msgspec.structs.replace(card, gates=msgspec.structs.replace(card.gates, cpu_s=0.0, gates=gates))
    return Examined(scorecard=card, trail=trail, scenarios=gated.scenarios, scored=gated.scored)


def pins_of(spec: StrategySpec, bars: TaskBars, secret: str) -> Pins:
    """Return the paths that a secret draws for a strategy, besides the bars that it is scored on."""
    rng = np.random.default_rng(seed_from(secret, "pins", spec.id))
    return draw_pins(spec.semantics, rng, bars if bars.rows <= _YEAR_OF_BARS else None)


def with_secret(config: ScoreConfig, secret: str) -> ScoreConfig:
    """Return a configuration whose draws follow from a secret."""
    gates = msgspec.structs.replace(config.gates, secret=secret)
    return msgspec.structs.replace(config, gates=gates)


def twin_executor(opened: JobExecutor, config: SandboxConfig) -> TwinExecutor:
    """Return an executor with a second sandbox beside it whose processes hash texts differently."""
    other = msgspec.structs.replace(config, hash_seed=1)
    return TwinExecutor(opened, lambda: open_executor(config=other, workers=1))


def run_scenarios(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, config: GateConfig
) -> dict[str, SubmissionRun]:
    ran = run_on([one.bars for one in spec.scenarios], submission, spec, executor, config)
    return dict(zip((one.name for one in spec.scenarios), ran, strict=True))


def run_on(
    markets: Sequence[TaskBars],
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: GateConfig,
) -> Iterator[SubmissionRun]:
    """Run a submission on several bars, with the first seed and without any check."""
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
    """Examine the submission in a folder against one of the strategies, with no model at all.
    ``secret`` is that of the run to be repeated; one is drawn without it. ``since`` is the folder of an earlier
    submission: whether this one repaired or changed it is said too. With ``years`` D4 is measured on more of them.

    Without ``bars`` the synthetic test year that the secret draws is used: a program that knows a year by heart
    could not be told from one that trades it. Raises :class:`UserError` for an unknown strategy or a folder
    without its two files, SandboxRefused where code cannot be sandboxed."""
    spec = load_spec(strategy)
    submission = read_submission(folder)
    before = None if since is None else read_submission(since)
    secret = secret or draw_secret()
    bars = bars if bars is not None else synthetic_year(spec, seed=drawn_year(spec, secret))
    config = with_secret(ScoreConfig(), secret)
    # Unparsable code is never run. The executor without a sandbox refuses submissions anyway.
    parsed = parse_gate(submission).passed
    sandboxed, drift, over = submission_config(), None, None
    with open_executor("sandbox" if parsed else "trusted-in-process", config=sandboxed, workers=2) as one:
        with twin_executor(one, sandboxed) if parsed else nullcontext(one) as opened:
            found = examine_submission(
                submission, spec, opened, bars, config, pins=pins_of(spec, bars, secret) if parsed else None
            )
            if before is not None and parsed:
                first = Traced(before, run_scenarios(before, spec, opened, config.gates))
                drift = check_drift(spec, first, Traced(submission, found.scenarios))
            if years > 1:
                drawn = [synthetic_year(spec, seed=drawn_year(spec, secret, n)) for n in range(2, years + 1)]
                over = _over_years(found.scorecard.sound["D4"], drawn, submission, spec, opened, config)
    ran = found.scored is not None and found.scored.ok
    return SubmissionCheck(
        scorecard=found.scorecard,
        trail=found.trail,
        submission=submission,
        write_log=partial(bar_log, spec, bars, found.scored) if ran and found.scored is not None else None,
        drift=drift,
        years=over,
    )


def _over_years(
    first: Measure,
    drawn: Sequence[TaskBars],
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: ScoreConfig,
) -> Measure:
    """Return D4 over the scored year, whose score is ``first``, and more of them."""
    if first.value is None:
        return first
    found = [first.value]
    for bars, run in zip(drawn, run_on(drawn, submission, spec, executor, config.gates), strict=True):
        if run.decisions is None or run.account is None or run.account.ruined:
            return not_scored(f"it could not be run on year {len(found) + 1}, or was ruined there")
        found.append(robustness_on(bars, run.decisions, spec, config).score.value or 0.0)
    mean, count = float(np.mean(found)), len(found)
    room = float(student_reach(count - 1, 0.95) * np.std(found, ddof=1) / np.sqrt(count))
    note = f"{count} years, {min(found):.2f} to {max(found):.2f}"
    return Measure(value=mean, low=max(0.0, mean - room), high=min(10.0, mean + room), n=count, note=note)


def bars_for(
    strategy: str, dataset: str | None, symbols: tuple[str, ...], splits: tuple[str, ...], secret: str, number: int
) -> TaskBars:
    """Return the test year of a strategy: stored bars of a data set's symbols, or the synthetic one that a run
    with this secret and data seed is scored on.

    Raises :class:`UserError` for an unknown strategy, and for a data set without symbols or the other way round.
    """
    spec = load_spec(strategy)
    if (dataset is None) != (not symbols):
        raise UserError("a data set needs symbols, and symbols a data set", hint="give both or neither")
    if dataset is None:
        return synthetic_year(spec, seed=drawn_year(spec, secret, number))
    test = splits_of(splits)["test"]
    if "1d" in spec.semantics.inputs.timeframes:
        return stored_year(dataset, symbols, test)
    return stored_minutes(dataset, symbols, test)
