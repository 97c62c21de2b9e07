"""Check whether a submission is governed software: eight gates, each with a question and evidence.

Use ``report = pass_gates(submission, spec, executor).report``; see ``docs/concepts/gates.md``. A
gate that could not run is ``not_run``, never passed. Gates that need the same run share it.

The audit log has five rows for each trade: a ``signal``, a ``risk_check`` whose parent is the
signal, an ``order`` (the trade's ``order_id``) whose parent is the risk check, a ``position`` and a
``pnl``. The host reads only time, side, quantity and signal from the logs. It computes every price,
position, P&L and equity itself. A claim that differs from the host's figure fails.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.syntax import SourceFault
from tradeassay_bench.account.shares import DecisionList, TradedAccount, realised_by
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.checks import (
    Check,
    Exhibit,
    Finding,
    Measures,
    convicted,
    not_run,
    passed,
    run_checks,
    to_junit,
    to_sarif,
)
from tradeassay_programs.code.lookahead.grow import LeakConfig, LookaheadProbe, probe_speed
from tradeassay_programs.code.lookahead.trace import Columns, Flags, Trace, first_difference
from tradeassay_programs.code.program_source import LONGEST_SOURCE, read_source, source_advice
from tradeassay_programs.code.semantics.interpreter import Semantics
from tradeassay_programs.code.semantics.sensitivity import Sensitivity
from tradeassay_programs.code.submission import (
    CAPITAL,
    CARD,
    CLASS,
    LIMITS,
    AuditLog,
    Scenario,
    StrategySpec,
    Submission,
    SubmissionRun,
    SubmissionRunner,
    TradeLog,
    Variation,
    check_depth,
    closes_of,
    market_columns,
)
from tradeassay_programs.sandbox import JobExecutor, JobLimits
from tradeassay_programs.sandbox.sandbox_config import PRELOAD
from tradeassay_programs.sandbox.strategy import allowed_modules, first_forbidden

GateName = Literal[
    "parse", "schema", "exec", "determinism", "leak", "audit", "scenarios", "agreement"
]

Trust = Literal["untrusted", "reference"]
NOT_CLEARED: Final = "not_cleared"
"""The error class of a leak gate that neither passed nor failed.

Look-ahead is neither excluded nor proven.
"""
PAPER_GATES: Final[tuple[GateName, ...]] = (
    "parse",
    "schema",
    "exec",
    "determinism",
    "leak",
    "audit",
)
"""The six gates that a submission must pass to be valid by the paper's definition."""
GATES: Final[tuple[GateName, ...]] = (*PAPER_GATES, "scenarios", "agreement")
"""All gates, in order. The last gate uses bars that the author never sees."""

_ROUNDING = 1e-12

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class GateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a gate run.

    - The first of ``seeds`` is the seed of the scored run.
    - ``completeness`` is the share of required cells, and of traceable trades, that the audit
      requires.
    - ``tolerance`` is the largest accepted difference between a claimed price, position or P&L and
      the host's figure, relative to the price or to the capital.
    - ``agreement`` is the largest accepted difference, as a share of equity, between a trade and
      the frozen semantics on a micro-scenario.
    - ``secret`` seeds the alternative futures of the leak gate.
    """

    capital: float = CAPITAL
    seeds: tuple[int, ...] = (42, 123, 2024)
    limits: JobLimits = LIMITS
    leak: LeakConfig = LeakConfig()
    completeness: Share = 0.95
    tolerance: float = 1e-6
    agreement: float = 1e-6
    secret: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def variations(self) -> tuple[Variation, ...]:
        """The environments in which the trades must equal the trades of the scored run."""
        places = (("EAST-5:30", 200, False), ("WEST+8", -1000, True))
        return tuple(
            Variation(seed=seed, zone=zone, days=days, hashing=hashing)
            for seed, (zone, days, hashing) in zip(self.seeds[1:], cycle(places), strict=False)
        )

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < 2:
            raise UserError(
                "determinism needs at least two different seeds", hint="the default has three"
            )
        if self.capital <= 0:
            raise UserError("the capital must be more than 0")


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of all gates in order, with the data, the isolation and the cost of the runs.

    ``tier`` is the sandbox's level of isolation. ``cpu_s`` is the processor time of all ``runs`` in
    seconds.
    """

    strategy: str
    semantics_sha256: str
    submission: str
    submission_sha256: str
    bars: str
    rows: int
    tier: str
    gates: tuple[Finding, ...]
    cpu_s: float = 0.0
    runs: int = 0

    @property
    def questions(self) -> dict[str, str]:
        """The question of each gate, by its name."""
        return QUESTIONS

    def gate(self, name: str) -> Finding:
        """Return the finding of the gate with a name."""
        return next(gate for gate in self.gates if gate.name == name)

    @property
    def passed(self) -> bool:
        """Whether every gate ran and passed, including the scenarios."""
        return all(gate.passed for gate in self.gates)

    @property
    def valid(self) -> bool:
        """Whether the paper's six gates passed."""
        return all(gate.passed for gate in self.gates if gate.name in PAPER_GATES)

    @property
    def not_cleared(self) -> bool:
        """Whether all gates of the paper passed except the leak gate, which reached no decision."""
        open_gates = [gate for gate in self.gates if gate.name in PAPER_GATES and not gate.passed]
        return [(gate.name, gate.error_class) for gate in open_gates] == [("leak", NOT_CLEARED)]

    @property
    def first_failure(self) -> Finding | None:
        """The first gate that failed, or None if no gate failed."""
        return next((gate for gate in self.gates if gate.failed), None)

    def junit(self) -> str:
        """Return the report as JUnit XML."""
        case = f"{self.strategy}.{self.submission or 'submission'}"
        return to_junit(
            self.gates, suite=f"tradeassay.{self.strategy}", case=case, cpu_s=self.cpu_s
        )

    def sarif(self) -> str:
        """Return the report as SARIF."""
        properties = {"strategy": self.strategy, "submission_sha256": self.submission_sha256}
        return to_sarif(self.gates, questions=QUESTIONS, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """A gate report and its runs. The scores are computed from the runs.

    ``scored`` is the run on ``bars``, or None if the submission could not be run. ``scenarios``
    contains the runs on micro-scenarios by name.
    """

    report: GateReport
    bars: TaskBars
    scored: SubmissionRun | None = None
    scenarios: Mapping[str, SubmissionRun] = field(default_factory=dict)


def runner_of(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: GateConfig,
    trust: Trust = "untrusted",
) -> SubmissionRunner:
    """Return a runner for a submission, with the limits and the capital of ``config``."""
    return SubmissionRunner(
        executor=executor,
        source=submission.source,
        semantics=spec.semantics,
        limits=config.limits,
        capital=config.capital,
        trust=trust,
    )


def pass_gates(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    config: GateConfig | None = None,
    bars: TaskBars | None = None,
    *,
    trust: Trust = "untrusted",
    scenarios: Mapping[str, SubmissionRun] | None = None,
    sensitivity: Sensitivity | None = None,
) -> Gated:
    """Run every gate, and return the report with its runs.

    A failing submission returns a report. Only a broken executor raises. ``executor`` must be
    opened with :func:`submission_config`. ``trust`` is ``reference`` for sources that the project
    ships.

    ``scenarios`` are earlier runs on the micro-scenarios. Without ``sensitivity`` the agreement
    gate does not run, because its finding would reveal too much about the scored bars to the
    author.
    """
    config = config or GateConfig()
    bars = bars if bars is not None else spec.practice_bars()
    runner = runner_of(submission, spec, executor, config, trust)
    legs = spec.semantics.inputs.legs
    gate_run = _GateRun(
        submission=submission,
        spec=spec,
        runner=runner,
        config=config,
        bars=bars,
        columns=market_columns(bars, legs),
        tables={scenario.name: market_columns(scenario.bars, legs) for scenario in spec.scenarios},
        known=scenarios or {},
        sensitivity=sensitivity,
    )
    checks = CHECKS if sensitivity is not None else CHECKS[:-1]
    findings = run_checks(checks, gate_run, not_run)
    report = GateReport(
        strategy=spec.id,
        semantics_sha256=spec.semantics.sha256,
        submission=submission.name,
        submission_sha256=submission.sha256,
        bars=bars.name,
        rows=bars.rows,
        tier=executor.tier.level,
        gates=tuple(finding.named(name) for name, finding in findings.items()),
        cpu_s=round(runner.spent.cpu_s, 3),
        runs=runner.spent.runs,
    )
    return Gated(report=report, bars=bars, scored=gate_run.scored, scenarios=gate_run.scenarios)


def parse_gate(submission: Submission) -> Finding:
    """Return a finding that passes if both files can be parsed.

    The card must be a JSON object, and the source must define one ``TradingStrategy``.
    """
    faults = _card_faults(submission.card)
    source_fault = _source_fault(submission.source)
    if source_fault is not None:
        faults.append(source_fault)
    if faults:
        return convicted(faults)
    return passed("", {"lines": len(submission.source.splitlines())})


def _source_fault(source: str) -> Exhibit | None:
    """Return the first fault of a strategy's source, or None."""
    if len(source) > LONGEST_SOURCE:
        text = f"the source has more than {LONGEST_SOURCE:,} characters"
        return Exhibit(code="too_long", text=text)
    tree = read_source(source, compiles=True)
    if isinstance(tree, SourceFault):
        error = "syntax error" if tree.syntax else tree.error
        return Exhibit(code="syntax", text=f"{error}: {tree.words}", line=tree.line)
    allowed = allowed_modules(name.partition(".")[0] for name in PRELOAD)
    forbidden = first_forbidden(tree, allowed)
    if forbidden is not None:
        text = (
            f"imports '{forbidden.module}', which is not on the list of modules a strategy may "
            "import"
        )
        return Exhibit(code="forbidden_import", text=text, line=forbidden.line)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASS]
    if len(classes) != 1:
        count = f"{len(classes)} classes called" if classes else "no class"
        return Exhibit(code="no_class", text=f"there is {count} {CLASS} at the top level")
    (strategy,) = classes
    methods = [
        node for node in strategy.body if isinstance(node, ast.FunctionDef) and node.name == "run"
    ]
    if not methods:
        if strategy.bases:
            return None  # A base class may define the method.
        text = f"{CLASS} has no method run(self, market_data, initial_capital)"
        return Exhibit(code="no_run", text=text, line=strategy.lineno)
    arguments = methods[-1].args
    count_of_arguments = len(arguments.posonlyargs) + len(arguments.args)
    if count_of_arguments < 3 and arguments.vararg is None:
        text = "run() takes two arguments: market_data and initial_capital"
        return Exhibit(code="run_arguments", text=text, line=methods[-1].lineno)
    return None


def _card_faults(text: str) -> list[Exhibit]:
    """Return the reasons why a strategy card is not a JSON object.

    The list is empty for a valid card.
    """
    try:
        check_depth(text)
        if isinstance(msgspec.json.decode(text), dict):
            return []
        return [Exhibit(code="card_no_object", text=f"{CARD} is no JSON object", file=CARD)]
    except UNDECODABLE as error:
        return [Exhibit(code="card_no_json", text=f"{CARD} is no JSON: {error}", file=CARD)]


def schema_gate(submission: Submission, semantics: Semantics) -> Finding:
    """Return a finding that passes if a card follows its schema and agrees with the semantics."""
    try:
        card = submission.read_card()
    except UserError as error:
        return convicted([Exhibit(code="card_schema", text=error.message, file=CARD)])
    faults: list[tuple[str, str]] = []
    if (card.strategy, card.version) != (semantics.id, semantics.version):
        expected = f"'{semantics.id}' version {semantics.version}"
        text = f"the card is for '{card.strategy}' version {card.version}, not {expected}"
        faults.append(("strategy", text))
    if card.legs != semantics.inputs.legs:
        text = f"the card trades {list(card.legs)}, not {list(semantics.inputs.legs)}"
        faults.append(("legs", text))
    for name in sorted(set(card.parameters) ^ set(semantics.parameters)):
        fault = "is missing" if name in semantics.parameters else "is not one of the strategy's"
        faults.append(("parameter_names", f"parameter '{name}' {fault}"))
    for name, frozen in semantics.parameters.items():
        value = card.parameters.get(name)
        # The comparison is negated so that a NaN fails.
        if value is not None and not abs(value - frozen.value) <= frozen.tolerance + _ROUNDING:
            text = (
                f"parameter '{name}' is {value:g}; frozen at {frozen.value:g}, tolerance "
                f"{frozen.tolerance:g}"
            )
            faults.append(("parameter_value", text))
    limits = msgspec.to_builtins(card.constraints)
    for name, limit in msgspec.to_builtins(semantics.constraints).items():
        if limits.get(name) != limit:
            text = f"constraint '{name}' is {limits.get(name)}; frozen at {limit}"
            faults.append(("constraint", text))
    if faults:
        return convicted([Exhibit(code=code, text=text, file=CARD) for code, text in faults])
    return passed("", {"parameters": len(card.parameters), "core_sha256": card.core_sha256})


def scenarios_gate(
    spec: StrategySpec, runs: Mapping[str, SubmissionRun], agreement: float
) -> Finding:
    """Return a finding that passes if the decisions on every micro-scenario match the stored
    decisions.

    Bar, leg, signal and share of equity must agree.
    """
    if not spec.scenarios:
        return not_run("the strategy has no micro-scenarios")
    cases = ((scenario, runs[scenario.name]) for scenario in spec.scenarios)
    departures = _departures(spec, cases, agreement)
    measures: Measures = {"scenarios": len(spec.scenarios), "departures": len(departures)}
    return convicted(departures, measures) if departures else passed("", measures)


def _departures(
    spec: StrategySpec, cases: Iterable[tuple[Scenario, SubmissionRun]], agreement: float
) -> list[Exhibit]:
    """Return the first departure of each run from its expected decisions.

    Runs that agree are left out.
    """
    departures = []
    for case, run in cases:
        if run.decisions is None:
            text = "no log" if run.failure is None else run.failure.text
            departures.append(
                Exhibit(code="fails", text=f"{case.name}: {text}", line=run.line, where=case.name)
            )
            continue
        departure = first_departure(spec, case, run.decisions, agreement)
        departure = departure or _traded_twice(case, run)
        if departure is not None:
            departures.append(departure)
    return departures


def first_departure(
    spec: StrategySpec, scenario: Scenario, decisions: DecisionList, agreement: float
) -> Exhibit | None:
    """Return the first decision that differs from the frozen decisions, or None if all agree."""
    frozen = scenario.expected
    shared = min(len(decisions), len(frozen))
    agree = decisions.row[:shared] == frozen.row[:shared]
    agree &= decisions.leg[:shared] == frozen.leg[:shared]
    agree &= decisions.signal[:shared] == frozen.signal[:shared]
    agree &= np.abs(decisions.fraction[:shared] - frozen.fraction[:shared]) <= agreement
    differing = np.flatnonzero(~agree)
    place = int(differing[0]) if differing.size else shared
    if place == len(decisions) == len(frozen):
        return None
    row = int(min(side.row[place] for side in (decisions, frozen) if place < len(side)))
    drawn = scenario.what in ("drawn", "the scored year")
    where = scenario.name if drawn else f"scenario {scenario.name}"

    def words(decisions: DecisionList) -> str:
        if place >= len(decisions) or int(decisions.row[place]) != row:
            return "nothing"
        signal = int(decisions.signal[place])
        name = spec.signals[signal] if signal >= 0 else "an unknown signal"
        leg = spec.semantics.inputs.legs[int(decisions.leg[place])]
        return f"{leg} to {float(decisions.fraction[place]):.6g} of equity ({name})"

    decided = (
        f"the frozen semantics decide {words(frozen)}; the submission decides {words(decisions)}"
    )
    text = f"{where} ({scenario.what}), bar {row}: {decided}"
    return Exhibit(code="departs", text=text, bar=row, where=where)


def _traded_twice(scenario: Scenario, run: SubmissionRun) -> Exhibit | None:
    """Return the first bar on which a leg trades more than once, or None.

    The frozen semantics reach a target with one trade.
    """
    assert run.trades is not None and run.decisions is not None
    if len(run.trades) == len(run.decisions):
        return None
    traded = list(zip(run.trades.row.tolist(), run.trades.leg.tolist(), strict=True))
    row = next(bar for place, (bar, leg) in enumerate(traded) if (bar, leg) in traded[:place])
    text = f"{scenario.name}, bar {row}: a leg is traded more than once"
    return Exhibit(code="splits", text=text, bar=row, where=scenario.name)


@dataclass(slots=True, kw_only=True, eq=False)
class _GateRun:
    """The mutable state of one run of the gates, and the gates as methods.

    ``tables`` are the columns of the micro-scenarios by name, and ``known`` are earlier runs on
    them. The gate ``exec`` sets ``scored``, ``scenarios`` and ``probe``.
    """

    submission: Submission
    spec: StrategySpec
    runner: SubmissionRunner
    config: GateConfig
    bars: TaskBars
    columns: Columns
    tables: Mapping[str, Columns]
    known: Mapping[str, SubmissionRun]
    sensitivity: Sensitivity | None
    scored: SubmissionRun | None = None
    scenarios: dict[str, SubmissionRun] = field(default_factory=dict)
    probe: LookaheadProbe | None = None

    def check_parse(self) -> Finding:
        """Return whether both files can be parsed."""
        return parse_gate(self.submission)

    def check_schema(self) -> Finding:
        """Return whether the card agrees with the frozen semantics."""
        if _card_faults(self.submission.card):
            return not_run(_PARSED["parse"])
        return schema_gate(self.submission, self.spec.semantics)

    def check_audit(self) -> Finding:
        """Return whether every trade can be traced from its signal to its P&L."""
        closes = closes_of(self.columns, self.runner.semantics.inputs.legs)
        return audit_gate(self.scored, closes, self.config.completeness, self.config.tolerance)

    def check_execution(self) -> Finding:
        """Run the submission, and return whether every run succeeded.

        The runs are on the scenarios, then on growing bars, then on the scored bars. No process may
        contain a later bar while the submission can still decide on an earlier bar. The look-ahead
        probe must therefore finish before the scored run starts.
        """
        slow = probe_speed(self.runner, self.columns, self.config.leak)
        if slow is not None:
            return convicted([Exhibit(code=slow.kind, text=slow.text)])
        seed, frozen = self.config.seeds[0], self.spec.frozen_decisions(self.bars)
        missing = [name for name in self.tables if name not in self.known]
        new_runs = self.runner.logs((self.tables[name], seed) for name in missing)
        all_runs = {**self.known, **dict(zip(missing, new_runs, strict=True))}
        # Earlier runs count like new runs, so that equal submissions get equal reports.
        self.runner.spent.runs += len(self.tables) - len(missing)
        self.scenarios = {name: all_runs[name] for name in self.tables}
        # A submission that fails on every scenario is not probed bar by bar.
        if not all_runs or any(run.ok for run in all_runs.values()):
            self.probe = LookaheadProbe(
                self.runner,
                self.columns,
                self.config.leak,
                seed=seed_from(self.config.secret or "", "leak", self.spec.id, self.bars.name),
                hints=np.unique(frozen.row).tolist(),
            )
        (self.scored,) = self.runner.logs([(self.columns, seed)])
        runs = {
            "scored bars": self.scored,
            **{f"scenario {name}": run for name, run in self.scenarios.items()},
        }
        cpu_s = round(self.scored.cpu_s, 3)
        broken = [
            Exhibit(
                code=run.failure.kind,
                text=f"{where}: {run.failure.text}",
                line=run.line,
                where=where,
            )
            for where, run in runs.items()
            if run.failure is not None
        ]
        if broken:
            return convicted(broken, {"cpu_s": cpu_s})
        trades = 0 if self.scored.trades is None else len(self.scored.trades)
        if len(frozen) and not trades:
            text = f"it never trades; on the same bars the frozen rules decide {len(frozen)} times"
            never = Exhibit(code="never_trades", text=text, where="scored bars")
            return convicted([never], {"cpu_s": cpu_s, "trades": 0})
        return passed("", {"cpu_s": cpu_s, "trades": trades})

    def check_determinism(self) -> Finding:
        """Return whether repetitions of the scored run have the same decisions.

        The repetitions have different seeds, time zones, dates and hash seeds.
        """
        scored, first = self.scored, f"seed {self.config.seeds[0]}"
        variations = self.config.variations
        assert scored is not None and scored.trades is not None
        measures: Measures = {first: scored.trades.sha256}
        differences: list[Exhibit] = []
        repeats = self.runner.varied(self.columns, variations)
        for variation, run in zip(variations, repeats, strict=True):
            if run.trades is None:
                reason = run.failure.text if run.failure is not None else "no log"
                text = f"with {variation.text} it fails: {reason}"
                differences.append(Exhibit(code="fails_with_a_seed", text=text, line=run.line))
                continue
            measures[variation.text] = run.trades.sha256
            if run.trades.sha256 != scored.trades.sha256:
                left, right = scored.outcome, run.outcome
                assert isinstance(left, Trace) and isinstance(right, Trace)
                last_rows = [int(trace.rows[-1]) for trace in (left, right) if len(trace)]
                end = 1 + max(last_rows, default=0)
                difference = first_difference(left, right, end, 0.0) or (end, "more", "less")
                row, in_scored, in_repeat = difference
                text = (
                    f"on bar {row} it decides {in_scored} with {first} and {in_repeat} with "
                    f"{variation.text}"
                )
                differences.append(
                    Exhibit(code="seeds_differ", text=text, bar=row, where="scored bars")
                )
        return convicted(differences, measures) if differences else passed("", measures)

    def check_leak(self) -> Finding:
        """Return whether the scored run agrees with the earlier answers of the look-ahead probe."""
        assert self.scored is not None and self.probe is not None
        scored = self.scored.outcome
        assert isinstance(scored, Trace)
        record = self.probe.compare(scored)
        measures: Measures = {
            "runs": record.runs,
            "screened": record.screened,
            "cleared_bars": record.cleared,
            "not_excluded_below_bars": record.bound,
        }
        if record.cause == "too_short":
            finding = not_run(record.reason)
        elif record.verdict is None:
            reason = f"not cleared: {record.reason}"
            finding = Finding(
                status="not_scored", reason=reason, error_class=NOT_CLEARED, measures=measures
            )
        elif record.verdict == "clean":
            finding = passed(record.reason, measures)
        else:
            (change,) = record.evidence
            exhibit = Exhibit(
                code=change.method.replace(" ", "_"),
                text=change.text,
                bar=change.row,
                where="scored bars",
            )
            finding = convicted([exhibit], measures)
        advice = tuple(
            Exhibit(code="source_rule", text=hint.text, line=hint.line)
            for hint in source_advice(self.runner.source)
        )
        return msgspec.structs.replace(finding, advice=advice)

    def check_agreement(self) -> Finding:
        """Return whether the decisions agree with the frozen decisions.

        The scored bars are compared first, then the drawn paths.
        """
        assert self.scored is not None and self.scored.decisions is not None
        assert self.sensitivity is not None
        sensitivity, legs = self.sensitivity, self.spec.semantics.inputs.legs
        measures: Measures = {
            "paths": len(sensitivity.paths),
            "mutants": sensitivity.mutants,
            "not_shown": len(sensitivity.undetected),
        }
        seed = self.config.seeds[0]
        runs = self.runner.logs((market_columns(path, legs), seed) for path in sensitivity.paths)
        expected = self.spec.frozen_decisions(self.bars)
        cases: list[tuple[Scenario, SubmissionRun]] = []
        if sensitivity.compares_year:
            year = Scenario("scored bars", "the scored year", self.bars, expected)
            cases.append((year, self.scored))
        for path, run in zip(sensitivity.paths, runs, strict=True):
            drawn = Scenario(path.name, "drawn", path, self.spec.frozen_decisions(path))
            cases.append((drawn, run))
        departures = _departures(self.spec, cases, self.config.agreement)
        return convicted(departures, measures) if departures else passed("", measures)


_PARSED: Final = {"parse": "the gate 'parse' did not hold"}
_RAN: Final = {**_PARSED, "exec": "the gate 'exec' did not hold"}
_REPEATED: Final = {
    **_RAN,
    "determinism": "the gate 'determinism' did not hold: two equal runs differ",
}

CHECKS: Final[tuple[Check[_GateRun], ...]] = (
    Check(
        "parse",
        "Can both files be read, and is there a TradingStrategy in them?",
        _GateRun.check_parse,
    ),
    Check(
        "schema",
        "Is the card well-formed, and does it say what the frozen semantics say?",
        _GateRun.check_schema,
    ),
    Check(
        "exec",
        "Does it run to its end and return trades that can have been?",
        _GateRun.check_execution,
        _PARSED,
    ),
    Check(
        "determinism",
        "Does it decide the same in fresh processes with other seeds?",
        _GateRun.check_determinism,
        _RAN,
    ),
    Check(
        "leak",
        "Does any decision depend on bars that came after it?",
        _GateRun.check_leak,
        _REPEATED,
    ),
    Check(
        "audit",
        "Can every trade be followed from its signal to its P&L, and are its figures true?",
        _GateRun.check_audit,
        _RAN,
    ),
    Check(
        "scenarios",
        "Does it do on the micro-scenarios what the frozen semantics do?",
        lambda run: scenarios_gate(run.spec, run.scenarios, run.config.agreement),
        _RAN,
    ),
    Check(
        "agreement",
        "Does it decide like the frozen semantics on the scored bars, and on paths drawn until "
        "every word shows?",
        _GateRun.check_agreement,
        _RAN,
    ),
)
"""The gates of a submission, in order.

``needs`` states the gates that each gate needs.
"""

QUESTIONS: Final = {check.name: check.question for check in CHECKS}


CHAIN: Final = ("signal", "risk_check", "order", "position", "pnl")
TRADE_CELLS: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id")
_ROW_CELLS: Final = ("id", "time", "symbol", "value")
_SHOWN: Final = 5
_WORDS: Final = {
    "risk_check": "a risk check",
    "order": "an order",
    "position": "a position",
    "pnl": "a P&L",
}


def audit_gate(
    scored: SubmissionRun | None, closes: Floats, completeness: float, tolerance: float
) -> Finding:
    """Return a finding that passes if the audit log is complete and true.

    Every trade must be traceable through the log, and its claims must match the host's figures.
    ``closes`` has shape (legs, bars). ``completeness`` and ``tolerance`` are defined in
    :class:`GateConfig`.
    """
    assert scored is not None and scored.trades is not None
    assert scored.audit is not None and scored.account is not None
    trades, audit = scored.trades, scored.audit
    if not len(trades):
        no_trades: Measures = {"trades": 0, "completeness": None, "traceable": None}
        return passed("there was no trade to be followed", no_trades)

    def exhibit(code: str, number: int, text: str) -> Exhibit:
        row = int(trades.row[number])
        return Exhibit(
            code=code, text=f"trade {number} on bar {row} {text}", bar=row, where="scored bars"
        )

    chains = audit_chains(audit, trades.order_id.tolist())
    filled, required = _count_cells(trades, audit, chains)
    complete = (chains >= 0).all(axis=0)
    errors, own_figures = _chain_errors(trades, audit, chains, scored.account, tolerance)
    false_chains = np.flatnonzero(complete & (errors != 0).any(axis=0))
    followed = int(complete.sum()) - false_chains.size
    filled_share, traceable = filled / required, followed / len(trades)
    exhibits: list[Exhibit] = []
    for number in false_chains[: 4 * _SHOWN].tolist():
        link = int(np.flatnonzero(errors[:, number])[0])
        kind = CHAIN[link]
        if errors[link, number] == _OTHER_TRADE:
            text = f"is linked to a {kind} of another bar or asset"
            exhibits.append(exhibit(f"other_{kind}", number, text))
        else:
            claim = float(audit.value[chains[link, number]])
            figure = float(own_figures[kind][number])
            text = f"claims {_WORDS[kind]} of {claim:.10g}; the host finds {figure:.10g}"
            exhibits.append(exhibit(f"false_{kind}", number, text))
    # Claims in the trade log: prices, and P&L and equity if present.
    equity, price = scored.account.equity[trades.row], closes[trades.leg, trades.row]
    allowance = tolerance * np.maximum(scored.account.capital, np.abs(equity))
    comparisons = [("price", trades.price, price, tolerance * np.abs(price))]
    if not np.isnan(trades.pnl).all():
        comparisons.append(("pnl", trades.pnl, realised_by(trades, closes), allowance))
    comparisons.append(("equity", trades.equity, equity, allowance))
    false_claims = 0
    for name, claims, figures, allowed in comparisons:
        for number in np.flatnonzero(_false(claims, figures, allowed))[:_SHOWN].tolist():
            text = f"claims the {name} {claims[number]:.10g}; the host finds {figures[number]:.10g}"
            exhibits.append(exhibit(f"false_{name}", number, text))
            false_claims += 1
    if filled_share < completeness:
        text = (
            f"{filled_share:.1%} of the required cells are filled; {completeness:.0%} are asked for"
        )
        exhibits.append(Exhibit(code="incomplete", text=text))
    if traceable < completeness:
        text = f"{followed} of {len(trades)} trades can be followed from signal to P&L"
        exhibits.append(Exhibit(code="untraceable", text=text))
        for number in np.flatnonzero(~complete)[:_SHOWN].tolist():
            kind = CHAIN[int(np.flatnonzero(chains[:, number] < 0)[0])]
            exhibits.append(exhibit(f"no_{kind}", number, f"has no {kind} row in the audit log"))
    measures: Measures = {
        "trades": len(trades),
        "completeness": round(filled_share, 6),
        "traceable": round(traceable, 6),
        "false_claims": int(false_chains.size) + false_claims,
    }
    return convicted(exhibits[: 4 * _SHOWN], measures) if exhibits else passed("", measures)


def _false(claims: Floats, figures: Floats, allowance: Floats | float) -> Flags:
    """Return a mask of the claims that differ from the host's figures.

    An infinite claim always differs. A NaN means that there is no claim.
    """
    with np.errstate(invalid="ignore"):
        return ~np.isnan(claims) & ~(np.abs(claims - figures) <= allowance)


def _count_cells(trades: TradeLog, audit: AuditLog, chains: Ints) -> tuple[int, int]:
    """Return the numbers of filled and required cells in the trades and their audit chains."""
    count = len(trades)
    # A signal has no parent, so it has one required cell fewer.
    required = count * (len(TRADE_CELLS) + len(CHAIN) * (len(_ROW_CELLS) + 1) - 1)
    filled = count * len(TRADE_CELLS)
    for column in (trades.signal, trades.order_id):
        filled -= sum(word is None for word in column.tolist())
    filled -= int(np.isnan(trades.price).sum())
    has_id = np.array([word is not None for word in audit.id.tolist()])
    has_parent = np.array([word is not None for word in audit.parent.tolist()])
    for kind, places in zip(CHAIN, chains, strict=True):
        rows = places[places >= 0]
        cells = (
            has_id[rows] * 1
            + (audit.row[rows] >= 0)
            + (audit.leg[rows] >= 0)
            + np.isfinite(audit.value[rows])
        )
        filled += int(cells.sum())
        if kind != "signal":
            filled += int(has_parent[rows].sum())
    return filled, required


_OTHER_TRADE: Final = 1
_FALSE_FIGURE: Final = 2


def _chain_errors(
    trades: TradeLog, audit: AuditLog, chains: Ints, account: TradedAccount, tolerance: float
) -> tuple[Ints, dict[str, Floats]]:
    """Return the error of each row of the chains, and the host's figures by kind of row.

    An error is ``_OTHER_TRADE`` (the row is of another bar or asset), ``_FALSE_FIGURE`` or 0.
    """
    quantity_allowance = tolerance * float(np.abs(trades.quantity).max())
    money_allowance = tolerance * max(account.capital, float(np.abs(account.equity).max()))
    allowances = {
        "risk_check": 1e-9,
        "order": quantity_allowance,
        "position": quantity_allowance,
        "pnl": money_allowance,
    }
    figures = {
        "risk_check": np.ones(len(trades)),
        "order": trades.quantity,
        "position": account.position,
        "pnl": account.equity[trades.row] - account.capital,
    }
    errors = np.zeros(chains.shape, dtype=np.int64)
    for link, (kind, places) in enumerate(zip(CHAIN, chains, strict=True)):
        row, leg = audit.row[places], audit.leg[places]
        other = ((row != trades.row) & (row != -1)) | ((leg != trades.leg) & (leg != -1))
        if kind in figures:
            false = _false(audit.value[places], figures[kind], allowances[kind])
        else:
            false = np.zeros(len(trades), bool)
        present = places >= 0
        errors[link, present & false] = _FALSE_FIGURE
        errors[link, present & other] = _OTHER_TRADE
    return errors, figures


def audit_chains(audit: AuditLog, order_ids: Sequence[object]) -> Ints:
    """Return the audit rows from each order's signal to its P&L.

    The shape is (kinds of row, orders). A missing row is -1.
    """
    ids, parents, kinds = audit.id.tolist(), audit.parent.tolist(), audit.kind.tolist()
    by_id = {name: place for place, name in enumerate(ids) if name is not None}
    by_parent = {
        (kind, parent): place
        for place, (kind, parent) in enumerate(zip(kinds, parents, strict=True))
        if parent is not None
    }

    def find(name: object, kind: str) -> int:
        place = by_id.get(name, -1)
        return place if place >= 0 and kinds[place] == kind else -1

    chains = []
    for order_id in order_ids:
        order = find(order_id, "order")
        check = find(parents[order], "risk_check") if order >= 0 else -1
        signal = find(parents[check], "signal") if check >= 0 else -1
        position = by_parent.get(("position", order_id), -1) if order >= 0 else -1
        pnl = by_parent.get(("pnl", ids[position]), -1) if position >= 0 else -1
        chains.append((signal, check, order, position, pnl))
    return np.array(chains, dtype=np.int64).reshape(len(chains), len(CHAIN)).T
