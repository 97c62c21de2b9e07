"""All gates of one submission, in order, each run made once and shared by the gates that need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tradeassay.code.bars import TaskBars
from tradeassay.code.gates.audit import audit_gate
from tradeassay.code.gates.config import GateConfig
from tradeassay.code.gates.determinism import determinism_gate
from tradeassay.code.gates.execution import exec_gate, probe_gate
from tradeassay.code.gates.leak import leak_gate
from tradeassay.code.gates.parse import parse_gate
from tradeassay.code.gates.result import GATES, GateName, GateReport, GateResult, not_run
from tradeassay.code.gates.scenarios import scenarios_gate
from tradeassay.code.gates.schema import schema_gate
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.leak.trace import Columns
from tradeassay.code.submission import Submission
from tradeassay.code.submission_run import SubmissionRun, SubmissionRunner, closes_of, market_columns
from tradeassay.sandbox import Executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """The report, and the runs that it rests on: what scores are computed from.

    ``scored`` is None when nothing could be run. ``scenarios`` are the runs on micro-scenarios by name.
    """

    report: GateReport
    bars: TaskBars
    scored: SubmissionRun | None = None
    scenarios: Mapping[str, SubmissionRun] = field(default_factory=dict)


def run_gates(
    submission: Submission,
    spec: StrategySpec,
    executor: Executor,
    config: GateConfig | None = None,
    bars: TaskBars | None = None,
) -> GateReport:
    """Return what each gate says. ``executor`` needs :func:`submission_config`; without ``bars`` the scored run is
    on 500 synthetic ones. A bad submission is a report; only a broken executor raises.
    """
    return pass_gates(submission, spec, executor, config, bars).report


def pass_gates(
    submission: Submission,
    spec: StrategySpec,
    executor: Executor,
    config: GateConfig | None = None,
    bars: TaskBars | None = None,
    *,
    trust: Literal["untrusted", "reference"] = "untrusted",
) -> Gated:
    """Run the gates and keep the runs. ``trust`` is ``reference`` for sources that the project itself ships."""
    config = config or GateConfig()
    bars = bars if bars is not None else spec.practice_bars()
    runner = SubmissionRunner(
        executor=executor,
        source=submission.source,
        semantics=spec.semantics,
        limits=config.limits,
        capital=config.capital,
        trust=trust,
    )
    inquiry = _Inquiry(submission, spec, runner, config, bars)
    gates = inquiry.gates()
    report = GateReport(
        strategy=spec.id,
        semantics_sha256=spec.semantics.sha256,
        submission=submission.name,
        submission_sha256=submission.sha256,
        bars=bars.name,
        rows=bars.rows,
        tier=executor.tier.level,
        gates=gates,
        cpu_s=round(runner.spent.cpu_s, 3),
        runs=runner.spent.runs,
    )
    return Gated(report=report, bars=bars, scored=inquiry.scored, scenarios=inquiry.scenarios)


class _Inquiry:
    """The running account of one submission. Mutable, and gone when the report is written."""

    def __init__(
        self,
        submission: Submission,
        spec: StrategySpec,
        runner: SubmissionRunner,
        config: GateConfig,
        bars: TaskBars,
    ) -> None:
        self.submission, self.spec, self.runner, self.config = submission, spec, runner, config
        legs = spec.semantics.inputs.legs
        self.columns: Columns = market_columns(bars, legs)
        self.tables = {one.name: market_columns(one.bars, legs) for one in spec.scenarios}
        self.scored: SubmissionRun | None = None
        self.seeds: dict[int, SubmissionRun] = {}
        self.scenarios: dict[str, SubmissionRun] = {}

    def gates(self) -> tuple[GateResult, ...]:
        made: dict[GateName, GateResult] = {
            "parse": parse_gate(self.submission),
            "schema": schema_gate(self.submission, self.spec.semantics),
        }
        if made["parse"].status == "failed":
            made["schema"] = made["schema"] if _card_was_read(made["parse"]) else _after("schema", "parse")
            return _whole(made, "parse")
        made["exec"] = probe_gate(self.runner, self.columns, self.config) or self._run_all()
        if not made["exec"].passed:
            return _whole(made, "exec")
        assert self.scored is not None
        made["determinism"] = determinism_gate(self.seeds)
        made["leak"] = (
            self._leaks() if made["determinism"].passed else _after("leak", "determinism", "two equal runs differ")
        )
        legs = self.spec.semantics.inputs.legs
        made["audit"] = audit_gate(self.scored, closes_of(self.columns, legs), self.config)
        made["scenarios"] = scenarios_gate(self.spec, self.scenarios, self.config.agreement)
        return _whole(made, "")

    def _run_all(self) -> GateResult:
        """Make the runs with all seeds and on all scenarios, in one batch; they are independent of each other."""
        first = self.config.seeds[0]
        wanted = [(self.columns, seed) for seed in self.config.seeds]
        wanted += [(columns, first) for columns in self.tables.values()]
        runs = list(self.runner.logs(wanted))
        count = len(self.config.seeds)
        self.seeds = dict(zip(self.config.seeds, runs[:count], strict=True))
        self.scenarios = dict(zip(self.tables, runs[count:], strict=True))
        self.scored = runs[0]
        return exec_gate(self.scored, self.scenarios)

    def _leaks(self) -> GateResult:
        assert self.scored is not None
        pairs = {name: (self.tables[name], run) for name, run in self.scenarios.items()}
        return leak_gate(self.runner, self.columns, self.scored, pairs, self.config)


def _whole(made: Mapping[GateName, GateResult], after: GateName | Literal[""]) -> tuple[GateResult, ...]:
    return tuple(made[name] if name in made else _after(name, after or "exec") for name in GATES)


def _after(name: GateName, before: GateName, why: str = "") -> GateResult:
    return not_run(name, f"the gate '{before}' did not hold" + (f": {why}" if why else ""))


def _card_was_read(parse: GateResult) -> bool:
    return all(finding.file != "strategy_card.json" for finding in parse.evidence)
