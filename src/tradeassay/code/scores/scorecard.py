"""One submission's scorecard: gates, four dimensions in both conventions, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from tradeassay.account.shares import DecisionList
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import PAPER_GATES, GateConfig, Gated, GateReport
from tradeassay.code.lookahead import NOT_CLEARED
from tradeassay.code.review import Review, peer_mark
from tradeassay.code.scores.discipline import STRESSES, Discipline, discipline, examine, stressed
from tradeassay.code.scores.paper import PaperScore, complexity, d3, d4
from tradeassay.code.scores.robustness import Robustness, robustness
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.submission import StrategySpec, Submission
from tradeassay.code.submission_run import SubmissionRun, SubmissionRunner, closes_of, market_columns
from tradeassay.core.draws import seed_from
from tradeassay.core.measure import Measure, not_scored
from tradeassay.sandbox import JobExecutor

NEAR = 0.01
"""Two exposures that differ by less than this share of equity are the same decision."""


class DecisionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions both made at the same bar, in the same leg and size, out of how many either made."""

    both: int
    either: int

    @property
    def share(self) -> float:
        """1 when neither decided anything: doing nothing is right where there is nothing to do."""
        return self.both / self.either if self.either else 1.0


def agree(ours: DecisionList, theirs: DecisionList, *, near: float = NEAR) -> DecisionAgreement:
    """Return the agreement of two decision lists; the last decision of a bar and leg counts."""
    mine, other = _by_place(ours), _by_place(theirs)
    both = sum(abs(mine[place] - other[place]) <= near for place in mine.keys() & other.keys())
    return DecisionAgreement(both=both, either=len(mine.keys() | other.keys()))


def fidelity(
    spec: StrategySpec,
    scenarios: Mapping[str, SubmissionRun],
    scored: SubmissionRun | None,
    expected: DecisionList | None,
) -> Measure:
    """Return D1, 0 to 10: half from the micro-scenarios, half from the test data.

    ``expected`` is what the frozen semantics decide on the data of ``scored``. A scenario that could not be run
    counts as no agreement. Not scored when there is no run at all.
    """
    if scored is None or scored.decisions is None or expected is None:
        return not_scored("it could not be run on the test data")
    parts = []
    for scenario in spec.scenarios:
        run = scenarios.get(scenario.name)
        found = None if run is None else run.decisions
        parts.append(0.0 if found is None else agree(found, scenario.expected).share)
    test = agree(scored.decisions, expected)
    small = float(np.mean(parts)) if parts else test.share
    note = f"scenarios {small:.3f}, test data {test.share:.3f} of {test.either} decisions"
    return Measure(value=10.0 * (small + test.share) / 2.0, n=test.either, note=note)


def _by_place(decisions: DecisionList) -> dict[tuple[int, int], float]:
    return {
        (int(row), int(leg)): float(fraction)
        for row, leg, fraction in zip(decisions.row, decisions.leg, decisions.fraction, strict=True)
    }


WEIGHTS: Final = {"exec": 0.20, "determinism": 0.25, "leak": 0.30, "audit": 0.25}
"""What each gate is worth; ours, near the paper's weights."""


CAP: Final = 5.0
"""The most that work which is not valid can get in any dimension (second version)."""


def reliability(report: GateReport, *, strict: bool = False) -> Measure:
    """Return D3, 0 to 10. The audit counts by its share of complete cells and of traceable trades.

    With ``strict`` false prices and claims cost the audit's part: by the share of trades that hold one, and at
    least half of it.

    A gate that could not be asked counts as not held, because nothing speaks in its favour. Not scored when
    the submission could not even be parsed.
    """
    if not report.gate("parse").passed:
        return not_scored("it could not be parsed")
    total = 0.0
    for name, weight in WEIGHTS.items():
        gate = report.gate(name)  # type: ignore[arg-type]  # names of gates
        part = _audit_share(report) if name == "audit" else float(gate.passed)
        if strict and name == "audit":
            part *= _true_share(report)
        total += weight * part
    return Measure(value=10.0 * total, n=len(WEIGHTS))


def _audit_share(report: GateReport) -> float:
    gate = report.gate("audit")
    if gate.status == "not_run":
        return 0.0
    complete, traced = gate.measures.get("completeness"), gate.measures.get("traceable")
    if not isinstance(complete, float | int) or not isinstance(traced, float | int):
        return float(gate.passed)  # no trade to follow
    return (float(complete) + float(traced)) / 2.0


def _true_share(report: GateReport) -> float:
    measures = report.gate("audit").measures
    false, trades = measures.get("false_claims"), measures.get("trades")
    if not isinstance(false, float | int) or not isinstance(trades, float | int) or not false or not trades:
        return 1.0
    return min(0.5, max(0.0, 1.0 - false / trades))


DIMENSIONS = ("D1", "D2", "D3", "D4")
TARGET = 8.5
"""What D1 to D3 have to reach for the loop to stop: the paper's 0.85 on a scale of 10."""


class ScoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How submissions are scored. ``trials`` counts submissions and iterations scored on the split so far."""

    gates: GateConfig = GateConfig()
    trials: int = 1
    stresses: tuple[str, ...] = tuple(STRESSES)
    stress_rows: int = 500
    year: int = 252
    seed: int = 0


WINDOW: Final = 10
"""Bars of one of the paper's out-of-sample tests (section 5.4)."""
WINDOWS: Final = 5
"""Such tests of each valid hand-in."""


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a valid hand-in also runs on short pieces of the test data; ``failures`` say where it did not."""

    tests: int
    passed: int
    failures: tuple[str, ...] = ()


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a submission.

    ``sound`` are our measured dimensions, ``paper`` those of the printed formulas (D1 and D2 only where peers have
    marked it). ``overall`` is the mean of the four, not scored when one of them is not. ``windows`` is there from
    the second version on, for valid work.
    """

    strategy: str
    submission: str
    submission_sha256: str
    gates: GateReport
    sound: dict[str, Measure]
    paper: dict[str, Measure]
    paper_parts: dict[str, PaperScore]
    overall: Measure
    regimes: tuple[Discipline, ...]
    year: Robustness | None
    year_reason: str | None
    complexity: float
    data: str
    windows: Windows | msgspec.UnsetType = msgspec.UNSET

    @property
    def reached(self) -> bool:
        """Whether D1 to D3 have reached the target."""
        return all((self.sound[name].value or 0.0) >= TARGET for name in DIMENSIONS[:3])

    def named(self, submission: str) -> Scorecard:
        """Return the same card for equal files handed in by another author."""
        gates = msgspec.structs.replace(self.gates, submission=submission)
        return msgspec.structs.replace(self, submission=submission, gates=gates)


def score_gated(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    gated: Gated,
    config: ScoreConfig,
    reviews: Sequence[Review] = (),
) -> Scorecard:
    """Score a submission that has been through the gates. What could not be run is not scored, with the reason."""
    expected = frozen_decisions(spec, gated.bars)
    regimes = _regimes(submission, spec, executor, gated, config)
    year, why = _year(spec, gated, config)
    sound = {
        "D1": fidelity(spec, gated.scenarios, gated.scored, expected),
        "D2": discipline(regimes) if gated.scored is not None else not_scored("it could not be run"),
        "D3": reliability(gated.report, strict=config.gates.is_strict),
        "D4": year.score if year is not None else not_scored(why or "it could not be run"),
    }
    if config.gates.is_strict and not gated.report.valid and not gated.report.not_cleared:
        sound = {name: _capped(measure, gated.report) for name, measure in sound.items()}
    complete = gated.report.gate("audit").measures.get("completeness") if config.gates.is_strict else None
    printed = {
        "D3": d3(submission.source, complete if isinstance(complete, float | int) else None),
        "D4": d4(submission.source),
    }
    paper = {
        "D1": peer_mark(reviews, submission.name, spec.id),
        "D2": peer_mark(reviews, submission.name, spec.id, risk=True),
        **{name: Measure(value=found.score) for name, found in printed.items()},
    }
    if config.gates.is_strict and not gated.report.valid:
        paper = dict.fromkeys(DIMENSIONS, not_scored(_why_invalid(gated.report)))
    return Scorecard(
        strategy=spec.id,
        submission=submission.name,
        submission_sha256=submission.sha256,
        gates=gated.report,
        sound=sound,
        paper=paper,
        paper_parts=printed,
        overall=overall(sound),
        regimes=tuple(regimes.values()),
        year=year,
        year_reason=why,
        complexity=complexity(spec.semantics),
        data=gated.bars.name,
        windows=_windows(submission, spec, executor, gated, config),
    )


def _capped(measure: Measure, report: GateReport) -> Measure:
    if measure.value is None or measure.value <= CAP:
        return measure
    return Measure(value=CAP, n=measure.n, note=f"at most {CAP:g}: {_why_invalid(report)}")


def _why_invalid(report: GateReport) -> str:
    if report.not_cleared:
        return "look-ahead is not cleared"
    open_gate = next((gate.name for gate in report.gates if gate.name in PAPER_GATES and not gate.passed), "")
    return f"the gate '{open_gate}' does not hold"


def overall(scores: Mapping[str, Measure]) -> Measure:
    """Return the mean of the four dimensions; not scored when one of them is not."""
    values = [scores[name].value for name in DIMENSIONS]
    known = [value for value in values if value is not None]
    if len(known) < len(DIMENSIONS):
        missing = ", ".join(name for name, value in zip(DIMENSIONS, values, strict=True) if value is None)
        return not_scored(f"{missing} not scored")
    return Measure(value=float(np.mean(known)), n=len(known))


def frozen_decisions(spec: StrategySpec, bars: TaskBars) -> DecisionList:
    """Return what the frozen semantics decide on long bars, by the compiled strategy tested against them."""
    return spec.compiled_decisions(bars)


def _regimes(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, gated: Gated, config: ScoreConfig
) -> dict[str, Discipline]:
    legs, constraints = spec.semantics.inputs.legs, spec.semantics.constraints
    if gated.scored is None:
        return {}
    graded = config.gates.is_strict
    found = {"normal": examine("normal", gated.scored, gated.bars, legs, constraints, graded=graded)}
    if not gated.scored.ok:
        return found
    runner = _runner(submission, spec, executor, config)
    calm = gated.bars.first(config.stress_rows)
    tables = {name: stressed(calm, name, config.seed) for name in config.stresses}
    wanted = [(market_columns(bars, legs), config.gates.seeds[0]) for bars in tables.values()]
    runs: list[SubmissionRun] = list(runner.logs(wanted))
    for (name, bars), run in zip(tables.items(), runs, strict=True):
        found[name] = examine(name, run, bars, legs, constraints, graded=graded)
    return found


def _runner(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, config: ScoreConfig
) -> SubmissionRunner:
    return SubmissionRunner(
        executor=executor,
        source=submission.source,
        semantics=spec.semantics,
        limits=config.gates.limits,
        capital=config.gates.capital,
    )


def _windows(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, gated: Gated, config: ScoreConfig
) -> Windows | msgspec.UnsetType:
    """Run valid work on pieces of ten bars, at places drawn from the secret, as section 5.4 of the paper does."""
    if not config.gates.is_strict or not gated.report.valid or gated.bars.rows < WINDOW:
        return msgspec.UNSET
    draws = np.random.default_rng(seed_from(config.gates.secret or "", "windows", spec.id))
    starts = sorted(draws.integers(0, gated.bars.rows - WINDOW + 1, WINDOWS).tolist())
    whole = market_columns(gated.bars, spec.semantics.inputs.legs)
    wanted = [
        ({name: column[start : start + WINDOW] for name, column in whole.items()}, config.gates.seeds[0])
        for start in starts
    ]
    runs = list(_runner(submission, spec, executor, config).logs(wanted))
    failures = tuple(
        f"bars {start} to {start + WINDOW - 1}: {run.failure.kind}: {run.failure.text}"[:300]
        for start, run in zip(starts, runs, strict=True)
        if run.failure is not None
    )
    return Windows(tests=len(runs), passed=len(runs) - len(failures), failures=failures)


def _year(spec: StrategySpec, gated: Gated, config: ScoreConfig) -> tuple[Robustness | None, str | None]:
    run = gated.scored
    if run is None or run.decisions is None or run.account is None:
        return None, "it could not be run on the test year"
    if gated.report.gate("leak").error_class == NOT_CLEARED:
        return None, "look-ahead is not cleared"
    if not gated.report.gate("leak").passed:
        return None, "a result that may know the future says nothing about robustness"
    if run.account.ruined:
        return None, "the account was ruined"
    legs = spec.semantics.inputs.legs
    closes = closes_of(market_columns(gated.bars, legs), legs)
    session = None if gated.bars.timeframe == "1d" else calendar_of(gated.bars.times).session.astype(np.float64)
    strict = config.gates.is_strict
    found = robustness(run.decisions, closes, session, trials=config.trials, year=config.year, per_turnover=strict)
    return found, None
