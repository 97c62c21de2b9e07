"""Is a submission governed software? Eight checks, one question each, with evidence.

``report = pass_gates(submission, spec, executor).report``; see ``docs/concepts/gates.md``. A gate that could not
be asked is ``not_run``, never passed. Each run is made once and shared by the checks that need it.

The audit: for each trade the audit log has five rows: a ``signal``, a ``risk_check`` whose parent it is, an
``order`` (the trade's ``order_id``) whose parent that is, a ``position`` and a ``pnl``. From the logs the host
takes time, side, quantity and signal; every price, position, P&L and equity is the host's own, and a claim that
differs fails.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from tradeassay.account.shares import DecisionList, TradedAccount, realised_by
from tradeassay.code.bars import TaskBars
from tradeassay.code.checks import (
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
from tradeassay.code.lookahead.grow import Growth, LeakConfig, probe_speed
from tradeassay.code.lookahead.trace import Columns, Flags, Trace, first_difference
from tradeassay.code.program_source import LONGEST_SOURCE, read_source, source_advice
from tradeassay.code.semantics.interpreter import Semantics
from tradeassay.code.semantics.pins import Pins
from tradeassay.code.submission import (
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
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import seed_from
from tradeassay.core.syntax import SourceFault
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox import JobExecutor, JobLimits
from tradeassay.sandbox.sandbox_config import PRELOAD
from tradeassay.sandbox.strategy import allowed_modules, first_forbidden

GateName = Literal["parse", "schema", "exec", "determinism", "leak", "audit", "scenarios", "agreement"]

Trust = Literal["untrusted", "reference"]
NOT_CLEARED: Final = "not_cleared"
"""The class of a finding that is neither passed nor failed: look-ahead could not be excluded nor shown."""
PAPER_GATES: Final[tuple[GateName, ...]] = ("parse", "schema", "exec", "determinism", "leak", "audit")
"""The six that make a submission valid in the paper's sense."""
GATES: Final[tuple[GateName, ...]] = (*PAPER_GATES, "scenarios", "agreement")
"""The last is asked about bars that the author is told nothing of."""

_ROUNDING = 1e-12

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class GateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a gate run. The first of ``seeds`` is the scored run's. ``completeness`` is the share of
    required cells, and of traceable trades, that the audit requires; ``tolerance`` is how far a claimed price,
    position or P&L may be from the host's, relative to the price or to the capital. ``agreement`` is how far a
    traded share of equity may be from that of the frozen semantics on a micro-scenario. ``secret`` is what the
    other futures of the leak gate are drawn from.
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
        """The surroundings in which the trades have to be the same as in the scored run."""
        places = (("EAST-5:30", 200, False), ("WEST+8", -1000, True))
        return tuple(
            Variation(seed=seed, zone=zone, days=days, hashing=hashing)
            for seed, (zone, days, hashing) in zip(self.seeds[1:], cycle(places), strict=False)
        )

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < 2:
            raise UserError("determinism needs at least two different seeds", hint="the default has three")
        if self.capital <= 0:
            raise UserError("the capital must be more than 0")


class GateReport(msgspec.Struct, frozen=True, kw_only=True):
    """All gates in order, the data of the scored run, the walls it ran behind and the time that runs used."""

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
        return QUESTIONS

    def gate(self, name: str) -> Finding:
        return next(gate for gate in self.gates if gate.name == name)

    @property
    def passed(self) -> bool:
        """Whether every gate was run and held, including the scenarios."""
        return all(gate.passed for gate in self.gates)

    @property
    def valid(self) -> bool:
        """Whether the paper's six gates hold."""
        return all(gate.passed for gate in self.gates if gate.name in PAPER_GATES)

    @property
    def not_cleared(self) -> bool:
        """Whether it holds every gate of the paper but that nobody could tell whether it looks ahead."""
        open_gates = [gate for gate in self.gates if gate.name in PAPER_GATES and not gate.passed]
        return [(gate.name, gate.error_class) for gate in open_gates] == [("leak", NOT_CLEARED)]

    @property
    def first_failure(self) -> Finding | None:
        return next((gate for gate in self.gates if gate.failed), None)

    def junit(self) -> str:
        case = f"{self.strategy}.{self.submission or 'submission'}"
        return to_junit(self.gates, suite=f"tradeassay.{self.strategy}", case=case, cpu_s=self.cpu_s)

    def sarif(self) -> str:
        about = {"strategy": self.strategy, "submission_sha256": self.submission_sha256}
        return to_sarif(self.gates, questions=QUESTIONS, properties=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """The report, and the runs that it rests on: what scores are computed from. ``scored`` is None when nothing
    could be run. ``scenarios`` are the runs on micro-scenarios by name.
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
    pins: Pins | None = None,
) -> Gated:
    """Ask every gate and keep the runs. ``executor`` needs :func:`submission_config`. A bad submission is a
    report; only a broken executor raises. ``trust`` is ``reference`` for sources that the project itself ships.
    Without ``pins`` nobody asks about agreement: what it finds on bars says more than their author may know.
    """
    config = config or GateConfig()
    bars = bars if bars is not None else spec.practice_bars()
    runner = runner_of(submission, spec, executor, config, trust)
    legs = spec.semantics.inputs.legs
    inquiry = _Inquiry(
        submission=submission,
        spec=spec,
        runner=runner,
        config=config,
        bars=bars,
        columns=market_columns(bars, legs),
        tables={one.name: market_columns(one.bars, legs) for one in spec.scenarios},
        known=scenarios or {},
        pins=pins,
    )
    found = run_checks(CHECKS if pins is not None else CHECKS[:-1], inquiry, not_run)
    report = GateReport(
        strategy=spec.id,
        semantics_sha256=spec.semantics.sha256,
        submission=submission.name,
        submission_sha256=submission.sha256,
        bars=bars.name,
        rows=bars.rows,
        tier=executor.tier.level,
        gates=tuple(gate.named(name) for name, gate in found.items()),
        cpu_s=round(runner.spent.cpu_s, 3),
        runs=runner.spent.runs,
    )
    return Gated(report=report, bars=bars, scored=inquiry.scored, scenarios=inquiry.scenarios)


def parse_gate(submission: Submission) -> Finding:
    source, found = submission.source, _card_faults(submission.card)
    made: list[ast.ClassDef] = []
    forbidden, line, text, code = None, None, "", ""
    tree = read_source(source, compiles=True) if len(source) <= LONGEST_SOURCE else None
    if isinstance(tree, ast.Module):
        forbidden = first_forbidden(tree, allowed_modules(name.partition(".")[0] for name in PRELOAD))
        made = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASS]
    methods = [
        node for one in made for node in one.body if isinstance(node, ast.FunctionDef) and node.name == "run"
    ]
    run = methods[-1] if methods else None
    if tree is None:
        code, text = "too_long", f"the source has more than {LONGEST_SOURCE:,} characters"
    elif isinstance(tree, SourceFault):
        what = "syntax error" if tree.syntax else tree.error
        code, text, line = "syntax", f"{what}: {tree.words}", tree.line
    elif forbidden is not None:
        text = f"imports '{forbidden.module}', which is not on the list of modules a strategy may import"
        code, line = "forbidden_import", forbidden.line
    elif len(made) != 1:
        how = "no class" if not made else f"{len(made)} classes called"
        code, text = "no_class", f"there is {how} {CLASS} at the top level"
    elif run is None and not made[0].bases:
        text, line = f"{CLASS} has no method run(self, market_data, initial_capital)", made[0].lineno
        code = "no_run"
    elif run is not None and len(run.args.posonlyargs) + len(run.args.args) < 3 and run.args.vararg is None:
        text, line = "run() takes two arguments: market_data and initial_capital", run.lineno
        code = "run_arguments"
    if code:
        found.append(Exhibit(code=code, text=text, line=line))
    return convicted(found) if found else passed("", {"lines": len(source.splitlines())})


def _card_faults(text: str) -> list[Exhibit]:
    try:
        check_depth(text)
        if isinstance(msgspec.json.decode(text), dict):
            return []
        return [Exhibit(code="card_no_object", text=f"{CARD} is no JSON object", file=CARD)]
    except UNDECODABLE as error:
        return [Exhibit(code="card_no_json", text=f"{CARD} is no JSON: {error}", file=CARD)]


def schema_gate(submission: Submission, semantics: Semantics) -> Finding:
    try:
        card = submission.read_card()
    except UserError as error:
        return convicted([Exhibit(code="card_schema", text=error.message, file=CARD)])
    said: list[tuple[str, str]] = []
    if (card.strategy, card.version) != (semantics.id, semantics.version):
        asked = f"'{semantics.id}' version {semantics.version}"
        said.append(("strategy", f"the card is for '{card.strategy}' version {card.version}, not {asked}"))
    if card.legs != semantics.inputs.legs:
        said.append(("legs", f"the card trades {list(card.legs)}, not {list(semantics.inputs.legs)}"))
    for name in sorted(set(card.parameters) ^ set(semantics.parameters)):
        what = "is missing" if name in semantics.parameters else "is not one of the strategy's"
        said.append(("parameter_names", f"parameter '{name}' {what}"))
    for name, frozen in semantics.parameters.items():
        given = card.parameters.get(name)
        if given is not None and not abs(given - frozen.value) <= frozen.tolerance + _ROUNDING:
            text = f"parameter '{name}' is {given:g}; frozen at {frozen.value:g}, tolerance {frozen.tolerance:g}"
            said.append(("parameter_value", text))
    limits = msgspec.to_builtins(card.constraints)
    for name, value in msgspec.to_builtins(semantics.constraints).items():
        if limits.get(name) != value:
            said.append(("constraint", f"constraint '{name}' is {limits.get(name)}; frozen at {value}"))
    if said:
        return convicted([Exhibit(code=code, text=text, file=CARD) for code, text in said])
    return passed("", {"parameters": len(card.parameters), "core_sha256": card.core_sha256})


def scenarios_gate(spec: StrategySpec, runs: Mapping[str, SubmissionRun], agreement: float) -> Finding:
    """Compare each run's decisions with the stored ones: bar, leg, signal, and share of equity."""
    if not spec.scenarios:
        return not_run("the strategy has no micro-scenarios")
    found = _departures(spec, ((scenario, runs[scenario.name]) for scenario in spec.scenarios), agreement)
    measures: Measures = {"scenarios": len(spec.scenarios), "departures": len(found)}
    return convicted(found, measures) if found else passed("", measures)


def _departures(
    spec: StrategySpec, cases: Iterable[tuple[Scenario, SubmissionRun]], agreement: float
) -> list[Exhibit]:
    """Return of each run where it first departs from what was expected of it."""
    found = []
    for case, run in cases:
        if run.decisions is None:
            text = "no log" if run.failure is None else run.failure.text
            found.append(Exhibit(code="fails", text=f"{case.name}: {text}", line=run.line, where=case.name))
        elif one := first_departure(spec, case, run.decisions, agreement) or _traded_twice(case, run):
            found.append(one)
    return found


def first_departure(
    spec: StrategySpec, scenario: Scenario, found: DecisionList, agreement: float
) -> Exhibit | None:
    """Return the first decision that differs from the frozen one; None when all agree."""
    frozen = scenario.expected
    shared = min(len(found), len(frozen))
    agree = (found.row[:shared] == frozen.row[:shared]) & (found.leg[:shared] == frozen.leg[:shared])
    agree &= found.signal[:shared] == frozen.signal[:shared]
    agree &= np.abs(found.fraction[:shared] - frozen.fraction[:shared]) <= agreement
    wrong = np.flatnonzero(~agree)
    place = int(wrong[0]) if wrong.size else shared
    if place == len(found) == len(frozen):
        return None
    row = int(min(one.row[place] for one in (found, frozen) if place < len(one)))
    drawn = scenario.what in ("drawn", "the scored year")
    where = scenario.name if drawn else f"scenario {scenario.name}"

    def words(decisions: DecisionList) -> str:
        if place >= len(decisions) or int(decisions.row[place]) != row:
            return "nothing"
        signal = int(decisions.signal[place])
        name = spec.signals[signal] if signal >= 0 else "an unknown signal"
        leg = spec.semantics.inputs.legs[int(decisions.leg[place])]
        return f"{leg} to {float(decisions.fraction[place]):.6g} of equity ({name})"

    decided = f"the frozen semantics decide {words(frozen)}; the submission decides {words(found)}"
    text = f"{where} ({scenario.what}), bar {row}: {decided}"
    return Exhibit(code="departs", text=text, bar=row, where=where)


def _traded_twice(scenario: Scenario, run: SubmissionRun) -> Exhibit | None:
    """Return the first bar on which a leg is traded more than once: the frozen semantics go to a target in one."""
    assert run.trades is not None and run.decisions is not None
    if len(run.trades) == len(run.decisions):
        return None
    legs = list(zip(run.trades.row.tolist(), run.trades.leg.tolist(), strict=True))
    row = next(here[0] for place, here in enumerate(legs) if here in legs[:place])
    text = f"{scenario.name}, bar {row}: a leg is traded more than once"
    return Exhibit(code="splits", text=text, bar=row, where=scenario.name)


@dataclass(slots=True, kw_only=True, eq=False)
class _Inquiry:
    """The running account of one submission. Mutable, and discarded when the report is written."""

    submission: Submission
    spec: StrategySpec
    runner: SubmissionRunner
    config: GateConfig
    bars: TaskBars
    columns: Columns
    tables: Mapping[str, Columns]
    known: Mapping[str, SubmissionRun]
    pins: Pins | None
    scored: SubmissionRun | None = None
    scenarios: dict[str, SubmissionRun] = field(default_factory=dict)
    growth: Growth | None = None

    def parses(self) -> Finding:
        return parse_gate(self.submission)

    def says_the_same(self) -> Finding:
        unread = _card_faults(self.submission.card)
        return not_run(_PARSED["parse"]) if unread else schema_gate(self.submission, self.spec.semantics)

    def accounts(self) -> Finding:
        closes = closes_of(self.columns, self.runner.semantics.inputs.legs)
        return audit_gate(self.scored, closes, self.config.completeness, self.config.tolerance)

    def runs(self) -> Finding:
        """Keep the order: no process may know a later bar while an earlier one can be answered for."""
        slow = probe_speed(self.runner, self.columns, self.config.leak)
        if slow is not None:
            return convicted([Exhibit(code=slow.kind, text=slow.text)])
        seed, frozen = self.config.seeds[0], self.spec.frozen_decisions(self.bars)
        missing = [name for name in self.tables if name not in self.known]
        others = self.runner.logs((self.tables[name], seed) for name in missing)
        made = {**self.known, **dict(zip(missing, others, strict=True))}
        self.runner.spent.runs += len(self.tables) - len(missing)
        self.scenarios = {name: made[name] for name in self.tables}
        if not made or any(run.ok for run in made.values()):  # what fails everywhere is not asked bar by bar
            self.growth = Growth(
                self.runner,
                self.columns,
                self.config.leak,
                seed=seed_from(self.config.secret or "", "leak", self.spec.id, self.bars.name),
                hints=np.unique(frozen.row).tolist(),
            )
        (self.scored,) = self.runner.logs([(self.columns, seed)])
        runs = {"scored bars": self.scored, **{f"scenario {name}": run for name, run in self.scenarios.items()}}
        cpu_s = round(self.scored.cpu_s, 3)
        broken = [
            Exhibit(code=run.failure.kind, text=f"{where}: {run.failure.text}", line=run.line, where=where)
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

    def repeats(self) -> Finding:
        """Compare the scored run with others in time zones, on dates and with hash seeds that must not matter."""
        scored, first, others = self.scored, f"seed {self.config.seeds[0]}", self.config.variations
        assert scored is not None and scored.trades is not None
        measures: Measures = {first: scored.trades.sha256}
        found: list[Exhibit] = []
        for one, run in zip(others, self.runner.varied(self.columns, others), strict=True):
            if run.trades is None:
                text = run.failure.text if run.failure is not None else "no log"
                text = f"with {one.text} it fails: {text}"
                found.append(Exhibit(code="fails_with_a_seed", text=text, line=run.line))
                continue
            measures[one.text] = run.trades.sha256
            if run.trades.sha256 != scored.trades.sha256:
                left, right = scored.outcome, run.outcome
                assert isinstance(left, Trace) and isinstance(right, Trace)
                end = 1 + max((int(trace.rows[-1]) for trace in (left, right) if len(trace)), default=0)
                row, mine, theirs = first_difference(left, right, end, 0.0) or (end, "more", "less")
                text = f"on bar {row} it decides {mine} with {first} and {theirs} with {one.text}"
                found.append(Exhibit(code="seeds_differ", text=text, bar=row, where="scored bars"))
        return convicted(found, measures) if found else passed("", measures)

    def leaks(self) -> Finding:
        assert self.scored is not None and self.growth is not None
        scored = self.scored.outcome
        assert isinstance(scored, Trace)
        record = self.growth.compare(scored)
        measures: Measures = {
            "runs": record.runs,
            "screened": record.screened,
            "cleared_bars": record.cleared,
            "not_excluded_below_bars": record.bound,
        }
        if record.cause == "too_short":
            found = not_run(record.reason)
        elif record.verdict is None:
            reason = f"not cleared: {record.reason}"
            found = Finding(status="not_scored", reason=reason, error_class=NOT_CLEARED, measures=measures)
        elif record.verdict == "clean":
            found = passed(record.reason, measures)
        else:
            (one,) = record.evidence
            code = one.method.replace(" ", "_")
            found = convicted([Exhibit(code=code, text=one.text, bar=one.row, where="scored bars")], measures)
        hints = source_advice(self.runner.source)
        advice = tuple(Exhibit(code="source_rule", text=one.text, line=one.line) for one in hints)
        return msgspec.structs.replace(found, advice=advice)

    def agrees(self) -> Finding:
        """Compare decisions with the frozen ones on the scored bars, then on the drawn paths."""
        assert self.scored is not None and self.scored.decisions is not None and self.pins is not None
        pins, legs, room = self.pins, self.spec.semantics.inputs.legs, self.config.agreement
        measures: Measures = {"paths": len(pins.paths), "mutants": pins.mutants, "not_shown": len(pins.unshown)}
        drawn = self.runner.logs((market_columns(path, legs), self.config.seeds[0]) for path in pins.paths)
        expected = self.spec.frozen_decisions(self.bars)
        cases = [(Scenario("scored bars", "the scored year", self.bars, expected), self.scored)] * pins.year_shows
        for path, run in zip(pins.paths, drawn, strict=True):
            cases.append((Scenario(path.name, "drawn", path, self.spec.frozen_decisions(path)), run))
        found = _departures(self.spec, cases, room)
        return convicted(found, measures) if found else passed("", measures)


_PARSED: Final = {"parse": "the gate 'parse' did not hold"}
_RAN: Final = {**_PARSED, "exec": "the gate 'exec' did not hold"}
_REPEATED: Final = {**_RAN, "determinism": "the gate 'determinism' did not hold: two equal runs differ"}

CHECKS: Final[tuple[Check[_Inquiry], ...]] = (
    Check("parse", "Can both files be read, and is there a TradingStrategy in them?", _Inquiry.parses),
    Check(
        "schema", "Is the card well-formed, and does it say what the frozen semantics say?", _Inquiry.says_the_same
    ),
    Check("exec", "Does it run to its end and return trades that can have been?", _Inquiry.runs, _PARSED),
    Check("determinism", "Does it decide the same in fresh processes with other seeds?", _Inquiry.repeats, _RAN),
    Check("leak", "Does any decision depend on bars that came after it?", _Inquiry.leaks, _REPEATED),
    Check(
        "audit",
        "Can every trade be followed from its signal to its P&L, and are its figures true?",
        _Inquiry.accounts,
        _RAN,
    ),
    Check(
        "scenarios",
        "Does it do on the micro-scenarios what the frozen semantics do?",
        lambda one: scenarios_gate(one.spec, one.scenarios, one.config.agreement),
        _RAN,
    ),
    Check(
        "agreement",
        "Does it decide like the frozen semantics on the scored bars, and on paths drawn until every word shows?",
        _Inquiry.agrees,
        _RAN,
    ),
)
"""What is asked about a submission, in order. ``parse`` and ``exec`` are stages, the others gates."""

QUESTIONS: Final = {check.name: check.question for check in CHECKS}


CHAIN: Final = ("signal", "risk_check", "order", "position", "pnl")
TRADE_CELLS: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id")
_ROW_CELLS: Final = ("id", "time", "symbol", "value")
_SHOWN: Final = 5
_WORDS: Final = {"risk_check": "a risk check", "order": "an order", "position": "a position", "pnl": "a P&L"}


def audit_gate(scored: SubmissionRun | None, closes: Floats, completeness: float, tolerance: float) -> Finding:
    assert scored is not None and scored.trades is not None
    assert scored.audit is not None and scored.account is not None
    trades, audit = scored.trades, scored.audit
    if not len(trades):
        nothing: Measures = {"trades": 0, "completeness": None, "traceable": None}
        return passed("there was no trade to be followed", nothing)

    def shown(code: str, number: int, text: str) -> Exhibit:
        row = int(trades.row[number])
        return Exhibit(code=code, text=f"trade {number} on bar {row} {text}", bar=row, where="scored bars")

    chain = audit_chains(audit, trades.order_id.tolist())
    present, required = _cells(trades, audit, chain)
    whole = (chain >= 0).all(axis=0)
    wrong, own = _wrong(trades, audit, chain, scored.account, tolerance)
    lying = np.flatnonzero(whole & (wrong != 0).any(axis=0))
    followed = int(whole.sum()) - lying.size
    complete, traceable = present / required, followed / len(trades)
    found: list[Exhibit] = []
    for number in lying[: 4 * _SHOWN].tolist():
        at = int(np.flatnonzero(wrong[:, number])[0])
        kind = CHAIN[at]
        if wrong[at, number] == 1:
            found.append(shown(f"other_{kind}", number, f"is linked to a {kind} of another bar or asset"))
        else:
            value, ours = float(audit.value[chain[at, number]]), float(own[kind][number])
            text = f"claims {_WORDS[kind]} of {value:.10g}; the host finds {ours:.10g}"
            found.append(shown(f"false_{kind}", number, text))
    # What the trade log itself says: prices, and P&L and equity where they are given.
    equity, price = scored.account.equity[trades.row], closes[trades.leg, trades.row]
    room = tolerance * np.maximum(scored.account.capital, np.abs(equity))
    pairs = [("price", trades.price, price, tolerance * np.abs(price)), ("equity", trades.equity, equity, room)]
    if not np.isnan(trades.pnl).all():
        pairs.insert(1, ("pnl", trades.pnl, realised_by(trades, closes), room))
    claims = 0
    for name, claimed, ours_of, allowed in pairs:
        for number in np.flatnonzero(_false(claimed, ours_of, allowed))[:_SHOWN].tolist():
            text = f"claims the {name} {claimed[number]:.10g}; the host finds {ours_of[number]:.10g}"
            found.append(shown(f"false_{name}", number, text))
            claims += 1
    if complete < completeness:
        text = f"{complete:.1%} of the required cells are filled; {completeness:.0%} are asked for"
        found.append(Exhibit(code="incomplete", text=text))
    if traceable < completeness:
        text = f"{followed} of {len(trades)} trades can be followed from signal to P&L"
        found.append(Exhibit(code="untraceable", text=text))
        for number in np.flatnonzero(~whole)[:_SHOWN].tolist():
            kind = CHAIN[int(np.flatnonzero(chain[:, number] < 0)[0])]
            found.append(shown(f"no_{kind}", number, f"has no {kind} row in the audit log"))
    measures: Measures = {
        "trades": len(trades),
        "completeness": round(complete, 6),
        "traceable": round(traceable, 6),
        "false_claims": int(lying.size) + claims,
    }
    return convicted(found[: 4 * _SHOWN], measures) if found else passed("", measures)


def _false(claimed: Floats, own: Floats, room: Floats | float) -> Flags:
    """Return which claims differ from the host's figures: infinite ones do, NaN claims nothing."""
    with np.errstate(invalid="ignore"):
        return ~np.isnan(claimed) & ~(np.abs(claimed - own) <= room)


def _cells(trades: TradeLog, audit: AuditLog, chain: Ints) -> tuple[int, int]:
    """Return how many of the required cells are filled: of the trades, and of the rows of their chains."""
    number = len(trades)
    required = number * (len(TRADE_CELLS) + len(CHAIN) * (len(_ROW_CELLS) + 1) - 1)
    present = number * len(TRADE_CELLS)
    present -= sum(word is None for column in (trades.signal, trades.order_id) for word in column.tolist())
    present -= int(np.isnan(trades.price).sum())
    named, hung = (np.array([word is not None for word in column.tolist()]) for column in (audit.id, audit.parent))
    for kind, places in zip(CHAIN, chain, strict=True):
        rows = places[places >= 0]
        filled = named[rows] * 1 + (audit.row[rows] >= 0) + (audit.leg[rows] >= 0) + np.isfinite(audit.value[rows])
        present += int(filled.sum()) + (int(hung[rows].sum()) if kind != "signal" else 0)
    return present, required


def _wrong(
    trades: TradeLog, audit: AuditLog, chain: Ints, account: TradedAccount, tolerance: float
) -> tuple[Ints, dict[str, Floats]]:
    """For each row of a chain 1 (another bar or asset), 2 (false figure) or 0; and the host's own figures"""
    scale = tolerance * float(np.abs(trades.quantity).max())
    worth = tolerance * max(account.capital, float(np.abs(account.equity).max()))
    rooms = {"risk_check": 1e-9, "order": scale, "position": scale, "pnl": worth}
    own = {
        "risk_check": np.ones(len(trades)),
        "order": trades.quantity,
        "position": account.position,
        "pnl": account.equity[trades.row] - account.capital,
    }
    made = np.zeros(chain.shape, dtype=np.int64)
    for at, (kind, places) in enumerate(zip(CHAIN, chain, strict=True)):
        row, leg = audit.row[places], audit.leg[places]
        strange = ((row != trades.row) & (row != -1)) | ((leg != trades.leg) & (leg != -1))
        false = _false(audit.value[places], own[kind], rooms[kind]) if kind in own else np.zeros(len(trades), bool)
        made[at] = np.where(places < 0, 0, np.where(strange, 1, np.where(false, 2, 0)))
    return made, own


def audit_chains(audit: AuditLog, order_ids: Sequence[object]) -> Ints:
    """Return the audit rows from each order's signal to its P&L, (kinds, orders), -1 if missing."""
    ids, parents, kinds = audit.id.tolist(), audit.parent.tolist(), audit.kind.tolist()
    by_id = {name: place for place, name in enumerate(ids) if name is not None}
    by_parent = {
        (kind, parent): place
        for place, (kind, parent) in enumerate(zip(kinds, parents, strict=True))
        if parent is not None
    }

    def named(name: object, kind: str) -> int:
        place = by_id.get(name, -1)
        return place if place >= 0 and kinds[place] == kind else -1

    found = []
    for order_id in order_ids:
        order = named(order_id, "order")
        check = named(parents[order], "risk_check") if order >= 0 else -1
        signal = named(parents[check], "signal") if check >= 0 else -1
        position = by_parent.get(("position", order_id), -1) if order >= 0 else -1
        pnl = by_parent.get(("pnl", ids[position]), -1) if position >= 0 else -1
        found.append((signal, check, order, position, pnl))
    return np.array(found, dtype=np.int64).reshape(len(found), len(CHAIN)).T
