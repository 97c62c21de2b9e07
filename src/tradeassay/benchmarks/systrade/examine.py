"""Examine one submission: the gates, both conventions of the four dimensions, and a trail for people."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.benchmarks.systrade import load_spec
from tradeassay.benchmarks.systrade.data import DAYS, splits_of, stored_minutes, stored_year, synthetic_year
from tradeassay.benchmarks.systrade.trail import Trail, bar_log, make_trail
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import GateConfig, GateReport, parse_gate, pass_gates
from tradeassay.code.scores.scorecard import Scorecard, ScoreConfig, frozen_decisions, score_gated
from tradeassay.code.submission import StrategySpec, Submission, read_submission
from tradeassay.code.submission_run import (
    SubmissionRun,
    SubmissionRunner,
    TwinExecutor,
    market_columns,
    submission_config,
)
from tradeassay.core.draws import draw_secret
from tradeassay.core.errors import UserError
from tradeassay.sandbox import JobExecutor, SandboxConfig, open_executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The findings about a submission, its scored run, and its runs on the micro-scenarios."""

    scorecard: Scorecard
    trail: Trail | None
    scenarios: Mapping[str, SubmissionRun]
    scored: SubmissionRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionCheck:
    """The result of ``code eval`` for a folder. ``bar_log`` is the audit log by bars; None where nothing ran."""

    scorecard: Scorecard
    trail: Trail | None
    submission: Submission
    bar_log: str | None = None

    @property
    def gates(self) -> GateReport:
        """The verdict of each gate."""
        return self.scorecard.gates

    @property
    def passed(self) -> bool:
        """Whether every gate was run and passed."""
        return self.gates.passed

    def junit(self) -> str:
        """Return the gates as JUnit XML."""
        return self.gates.junit()

    def sarif(self) -> str:
        """Return the findings as SARIF."""
        return self.gates.sarif()


def examine_submission(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    bars: TaskBars,
    config: ScoreConfig,
    scenarios: Mapping[str, SubmissionRun] | None = None,
) -> Examined:
    """Run gates and scores on bars. Times are left out of the record: they never repeat.

    ``scenarios`` are its runs on the micro-scenarios from an examination on other bars.
    """
    gated = pass_gates(submission, spec, executor, config.gates, bars, scenarios=scenarios)
    card = score_gated(submission, spec, executor, gated, config)
    trail = make_trail(spec, bars, gated.scored, frozen_decisions(spec, bars)) if gated.scored else None
    return Examined(scorecard=timeless(card), trail=trail, scenarios=gated.scenarios, scored=gated.scored)


def strict_config(config: ScoreConfig, secret: str) -> ScoreConfig:
    """Return a configuration with the rules of the second version, and draws that follow from a secret."""
    gates = msgspec.structs.replace(config.gates, strict=True, secret=secret)
    return msgspec.structs.replace(config, gates=gates)


def twin_executor(opened: JobExecutor, config: SandboxConfig) -> TwinExecutor:
    """Return an executor with a second sandbox beside it whose processes hash texts differently."""
    other = msgspec.structs.replace(config, hash_seed=1)
    return TwinExecutor(opened, lambda: open_executor(config=other, workers=1))


def timeless(card: Scorecard) -> Scorecard:
    """Return a scorecard without processor times."""
    gates = tuple(
        msgspec.structs.replace(gate, measures={k: v for k, v in gate.measures.items() if k != "cpu_s"})
        for gate in card.gates.gates
    )
    return msgspec.structs.replace(card, gates=msgspec.structs.replace(card.gates, cpu_s=0.0, gates=gates))


def run_scenarios(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, config: GateConfig
) -> dict[str, SubmissionRun]:
    """Run a submission on the micro-scenarios alone."""
    legs = spec.semantics.inputs.legs
    runner = SubmissionRunner(
        executor=executor,
        source=submission.source,
        semantics=spec.semantics,
        limits=config.limits,
        capital=config.capital,
    )
    wanted = [(market_columns(one.bars, legs), config.seeds[0]) for one in spec.scenarios]
    return dict(zip((one.name for one in spec.scenarios), runner.logs(wanted), strict=True))


def check_submission(
    folder: Path,
    strategy: str,
    *,
    bars: TaskBars | None = None,
    config: ScoreConfig | None = None,
    executor: JobExecutor | None = None,
    workers: int = 2,
    secret: str | None = None,
) -> SubmissionCheck:
    """Examine the submission in a folder against one of the strategies, with no model at all, by the rules of the
    second version. ``secret`` is that of the run to be repeated; one is drawn without it.

    Without ``bars`` the synthetic test year is used. Raises :class:`UserError` for an unknown strategy or a folder
    without its two files, SandboxRefused where code cannot be sandboxed.
    """
    spec = load_spec(strategy)
    submission = read_submission(folder)
    bars = bars if bars is not None else synthetic_year(spec)
    config = strict_config(config or ScoreConfig(), secret or draw_secret())
    if executor is None:
        # Unparsable code is never run. The executor without a sandbox refuses submissions anyway.
        kind: Literal["sandbox", "trusted-in-process"] = "trusted-in-process"
        if parse_gate(submission).passed:
            kind = "sandbox"
        sandboxed = submission_config()
        with open_executor(kind, config=sandboxed, workers=workers) as first:
            with twin_executor(first, sandboxed) if kind == "sandbox" else nullcontext(first) as opened:
                found = examine_submission(submission, spec, opened, bars, config)
    else:
        found = examine_submission(submission, spec, executor, bars, config)
    ran = found.scored is not None and found.scored.ok
    return SubmissionCheck(
        scorecard=found.scorecard,
        trail=found.trail,
        submission=submission,
        bar_log=bar_log(spec, bars, found.scored) if ran and found.scored is not None else None,
    )


def bars_for(
    strategy: str, dataset: str | None, symbols: tuple[str, ...], seed: int = 1, splits: tuple[str, ...] = DAYS
) -> TaskBars:
    """Return the test year of a strategy: synthetic, or stored bars of a data set's symbols.

    Raises :class:`UserError` for an unknown strategy, and for a data set without symbols or the other way round.
    """
    spec = load_spec(strategy)
    if (dataset is None) != (not symbols):
        raise UserError("a data set needs symbols, and symbols a data set", mend="give both or neither")
    if dataset is None:
        return synthetic_year(spec, seed=seed)
    test = splits_of(splits)["test"]
    if "1d" in spec.semantics.inputs.timeframes:
        return stored_year(dataset, symbols, test)
    return stored_minutes(dataset, symbols, test)
