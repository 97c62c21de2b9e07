"""SysTradeBench as a code protocol: its items, its conversations, and the scoring of a hand-in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, ClassVar

import msgspec

from tradeassay.benchmarks.systrade import hashes, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import (
    SPLITS,
    SplitName,
    splits_of,
    stored_minutes,
    stored_year,
    synthetic_year,
)
from tradeassay.benchmarks.systrade.dialogue import (
    BuildSettings,
    Scored,
    ScoreWanted,
    StrategyOutcome,
    build,
)
from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.code.bars import TaskBars
from tradeassay.code.drift import Runs, check_drift
from tradeassay.code.submission import StrategySpec, Submission
from tradeassay.code.submission_run import submission_config
from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.llm.scripted import teach_builder
from tradeassay.runs.code.protocol import Ask, CodeItem, Compute, Ended, Role, Talk, code_protocols
from tradeassay.runs.code.systrade_examine import examine_submission, run_scenarios
from tradeassay.runs.code.systrade_scores import SystradeScores, systrade_scores
from tradeassay.runs.code.systrade_spec import SYSTRADE, SystradeSpec
from tradeassay.runs.spec import safe_name
from tradeassay.sandbox import Executor, open_executor

_COMPUTING = ("numpy", "pandas", "scipy", "TA-Lib", "numba")
_MOST_KEPT = 4096


@code_protocols.register(SYSTRADE)
class SystradeProtocol:
    """SysTradeBench for one spec."""

    Spec: ClassVar[type[msgspec.Struct]] = SystradeSpec
    Record: ClassVar[type[msgspec.Struct]] = StrategyOutcome
    Result: ClassVar[type[msgspec.Struct]] = Scored
    Scores: ClassVar[type[msgspec.Struct]] = SystradeScores

    def __init__(self, spec: SystradeSpec) -> None:
        self.spec = spec
        self.strategies: dict[str, StrategySpec] = {name: load_spec(name) for name in spec.chosen}
        self._years: dict[tuple[str, SplitName], TaskBars] = {}
        self._found: dict[tuple[str, str], Scored] = {}
        self._scenarios: dict[tuple[str, str], Runs] = {}
        self._refuse_too_few_symbols()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()

    def items(self) -> tuple[CodeItem, ...]:
        """Return every model at every strategy."""
        return tuple(
            CodeItem(
                key="__".join((safe_name(model), name, f"s{seed}")), model=model, task=name, labels={}, seed=seed
            )
            for model in self.spec.models
            for name in self.spec.chosen
            for seed in self.spec.seeds
        )

    def facts(self) -> dict[str, str]:
        """Return the hashes of strategies, prompts, data and configuration, and the versions that code runs on."""
        found = {f"strategy {name}": sha256_of(hashes(name)) for name in self.spec.chosen}
        found["prompts"] = sha256_of([PROMPTS.version, *PROMPTS.files])
        found["score"] = sha256_of(self.spec.score)
        for name in self.spec.chosen:
            for split in SPLITS:
                year = self.year(name, split)
                digest = sha256_bytes(b"".join(column.tobytes() for column in year.columns().values()))
                found[f"data {name} {split}"] = sha256_of([year.name, year.rows, digest])
        found |= {f"package {name}": version(name) for name in _COMPUTING}
        return found

    def roles(self, item: CodeItem) -> dict[str, Role]:
        """Return the writer and the reviewers."""
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        for reviewer in self.spec.reviewers:
            roles[f"reviewer {reviewer}"] = Role(model=reviewer, params=self.spec.review_params)
        return roles

    def talk(self, item: CodeItem) -> Talk:
        """Carry the loop of build, test and patch."""
        reference = load_reference(item.task)
        teach_builder({item.task: (reference.card, reference.source)})
        settings = BuildSettings(
            iterations=self.spec.iterations, reviewers=self.spec.reviewers, early_stop=self.spec.early_stop
        )
        talk = build(self.strategies[item.task], item.model, settings)
        request = next(talk)
        try:
            while True:
                if isinstance(request, AskModel):
                    answer: Any = yield Ask(role="writer", request=request)
                elif isinstance(request, ScoreWanted):
                    answer = yield Compute(request=request)
                else:
                    answer = yield Ask(role=f"reviewer {request.reviewer}", request=request.request)
                request = talk.send(answer)
        except StopIteration as done:
            return done.value

    def open_executor(self, workers: int) -> Executor:
        """Open the sandbox with the harness of submissions."""
        return open_executor(config=submission_config(), workers=workers)

    def compute(self, item: CodeItem, request: ScoreWanted, executor: Executor) -> Scored:
        """Score a hand-in on both years, and say how it moved since the first. Processor seconds are left out."""
        spec = self.strategies[request.strategy]
        found = self._examined(spec, request.submission, executor)
        drift = None
        if request.first is not None:
            drift = check_drift(
                spec,
                request.first,
                request.submission,
                self._on_scenarios(spec, request.first, executor),
                self._on_scenarios(spec, request.submission, executor),
                previous=request.previous,
            )
        return msgspec.structs.replace(found, drift=drift)

    def ended(self, record: StrategyOutcome) -> Ended:
        """A model that did not answer has no result."""
        if record.stopped == "no answer" and record.last is None:
            return Ended(status="failed", reason=record.iterations[-1].reason, words="no answer")
        last = record.last
        if last is None:
            return Ended(reason=record.iterations[-1].reason, words="nothing handed in")
        failure = last.scorecard.gates.first_failure
        words = "all gates held" if failure is None else f"failed at {failure.name}"
        return Ended(reason="" if failure is None else failure.reason, words=words)

    def score(self, records: Mapping[str, StrategyOutcome]) -> SystradeScores:
        """Sum up a run."""
        closes = {name: self.year(name, "test") for name in self.spec.chosen}
        return systrade_scores(self.spec, self.items(), self.strategies, closes, records)

    def year(self, strategy: str, split: SplitName) -> TaskBars:
        """Return the bars of a split for a strategy."""
        if (strategy, split) not in self._years:
            self._years[strategy, split] = self._make_year(strategy, split)
        return self._years[strategy, split]

    def _make_year(self, strategy: str, split: SplitName) -> TaskBars:
        spec, run = self.strategies[strategy], self.spec
        timeframes, legs = spec.semantics.inputs.timeframes, len(spec.semantics.inputs.legs)
        if run.dataset is not None:
            within = splits_of(run.splits)[split]
            if "1d" not in timeframes or (run.minutes and "1m" in timeframes):
                return stored_minutes(run.dataset, run.symbols[:legs], within, most=run.minutes)
            return stored_year(run.dataset, run.symbols[:legs], within)
        minutes = run.minutes if "1m" in timeframes and legs == 1 else 0
        return synthetic_year(spec, split, run.data_seed, minutes=minutes)

    def _refuse_too_few_symbols(self) -> None:
        for name, strategy in self.strategies.items():
            legs = len(strategy.semantics.inputs.legs)
            if self.spec.dataset is not None and len(self.spec.symbols) < legs:
                raise UserError(
                    f"'{name}' has {legs} legs, {len(self.spec.symbols)} symbols are given",
                    mend=f"give {legs} symbols, or leave the strategy out",
                )

    def _examined(self, spec: StrategySpec, submission: Submission, executor: Executor) -> Scored:
        """Return what was found when the same files were handed in before, or find it."""
        key = (spec.id, submission.sha256)
        known = self._found.get(key)
        if known is None:
            config = msgspec.structs.replace(self.spec.score, trials=self.spec.trials)
            test, develop = (
                examine_submission(submission, spec, executor, self.year(spec.id, split), config)
                for split in ("test", "develop")
            )
            self._scenarios[spec.id, submission.sha256] = test.scenarios
            known = Scored(scorecard=test.scorecard, develop=develop.scorecard, trail=test.trail)
            if len(self._found) < _MOST_KEPT:
                self._found[key] = known
        return msgspec.structs.replace(
            known,
            scorecard=known.scorecard.named(submission.name),
            develop=known.develop.named(submission.name),
        )

    def _on_scenarios(self, spec: StrategySpec, submission: Submission, executor: Executor) -> Runs:
        """Return runs on the micro-scenarios. After a resume the first hand-in has to be run on them again."""
        key = (spec.id, submission.sha256)
        if key not in self._scenarios:
            self._scenarios[key] = run_scenarios(submission, spec, executor, self.spec.score.gates)
        return self._scenarios[key]
