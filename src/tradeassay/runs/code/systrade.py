"""SysTradeBench as a code protocol: its items, its conversations, and the scoring of a hand-in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, ClassVar

import msgspec

from tradeassay.benchmarks.systrade import hashes, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import SPLITS, SplitName, stored_year, synthetic_year
from tradeassay.benchmarks.systrade.dialogue import (
    BuildSettings,
    Scored,
    ScoreWanted,
    StrategyOutcome,
    build,
)
from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.codegen.bars import TaskBars
from tradeassay.codegen.drift import DriftReport, compare_submissions
from tradeassay.codegen.gates.spec import StrategySpec
from tradeassay.codegen.scores.scorecard import ScoreConfig, score_submission
from tradeassay.codegen.submission_run import submission_config
from tradeassay.core.dialogue import AskModel
from tradeassay.core.hashing import sha256_of
from tradeassay.llm.scripted import teach_builder
from tradeassay.runs.code.protocol import Ask, CodeItem, Compute, Ended, Role, Talk, code_protocols
from tradeassay.runs.code.systrade_scores import SystradeScores, systrade_scores
from tradeassay.runs.code.systrade_spec import SYSTRADE, SystradeSpec
from tradeassay.runs.spec import safe_name
from tradeassay.sandbox import Executor, open_executor

_COMPUTING = ("numpy", "pandas", "scipy", "TA-Lib", "numba")


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
                closes = [[float(x) for x in feed["close"]] for feed in year.feeds.values()]
                found[f"data {name} {split}"] = sha256_of([year.name, year.rows, closes])
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
        return open_executor("local", submission_config(), workers=workers)

    def compute(self, item: CodeItem, request: ScoreWanted, executor: Executor) -> Scored:
        """Score a hand-in on both years, and say how it moved since the first. Processor seconds are left out."""
        spec = self.strategies[request.strategy]
        config: ScoreConfig = msgspec.structs.replace(self.spec.score, trials=self.spec.trials)
        cards = {
            split: score_submission(request.submission, spec, executor, self.year(spec.id, split), config)
            for split in SPLITS
        }
        timeless = {
            split: msgspec.structs.replace(card, gates=msgspec.structs.replace(card.gates, cpu_s=0.0))
            for split, card in cards.items()
        }
        return Scored(
            scorecard=timeless["test"], develop=timeless["develop"], drift=self._drift(spec, request, executor)
        )

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
        if run.dataset is not None:
            legs = len(spec.semantics.inputs.legs)
            return stored_year(run.dataset, run.symbols[:legs], SPLITS[split])
        minutes = run.minutes if "1m" in spec.semantics.inputs.timeframes else 0
        return synthetic_year(spec, split, run.data_seed, minutes=minutes)

    def _drift(self, spec: StrategySpec, request: ScoreWanted, executor: Executor) -> DriftReport | None:
        if request.first is None:
            return None
        return compare_submissions(request.first, request.submission, spec, executor)
