"""SysTradeBench as a code protocol: what is asked for, its episodes, its dialogues, the scoring of a hand-in."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from tradeassay.benchmarks.systrade import hashes, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import (
    DAYS,
    SPLITS,
    SplitName,
    drawn_year,
    splits_of,
    stored_minutes,
    stored_year,
    synthetic_year,
)
from tradeassay.benchmarks.systrade.dialogue import BuildSettings, ReviewWanted, ScoreWanted, build
from tradeassay.benchmarks.systrade.examine import (
    examine_submission,
    run_scenarios,
    twin_executor,
    with_secret,
)
from tradeassay.benchmarks.systrade.outcome import ScoredIteration, StrategyOutcome
from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.benchmarks.systrade.versions import STRATEGIES_OF, SYSTRADE, SYSTRADE_SYSTB
from tradeassay.code.bars import TaskBars
from tradeassay.code.drift import Runs, Traced, check_drift
from tradeassay.code.scores import ScoreConfig
from tradeassay.code.submission import StrategySpec, Submission, submission_config
from tradeassay.core.dialogue import AskModel
from tradeassay.core.drive import relay
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.core.suggest import did_you_mean
from tradeassay.llm import ModelParams
from tradeassay.llm.scripted import teach_builder
from tradeassay.runs.code_protocol import (
    AskRole,
    CodeAsk,
    CodeDialogue,
    CodeProtocolOf,
    CodeRow,
    CodeSpec,
    Ending,
    Examine,
    Role,
    code_episode,
    code_protocols,
)
from tradeassay.runs.quantcode import LONG_ANSWERS, installed_version
from tradeassay.runs.score.systrade_scores import SystradeScores, systrade_scores
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.run_spec import safe_name
from tradeassay.sandbox import JobExecutor, open_executor


class SystradeSpec(CodeSpec, frozen=True, kw_only=True):
    """A SysTradeBench run. Every combination of model, strategy and seed is an episode.

    ``strategies`` empty takes all twelve. ``reviewers`` mark every hand-in, blind; a model's marks of its own work
    are kept but not counted. ``dataset`` with ``symbols`` takes stored daily bars instead of the synthetic year of
    ``data_seed``; ``splits`` are the days on which development and test begin and on which the test has ended.
    ``minutes`` is how many minutes strategies with a minute version get. Raises :class:`UserError` for nonsensical
    values.
    """

    benchmark: str = SYSTRADE
    strategies: tuple[str, ...] = ()
    iterations: int = 4
    early_stop: bool = True
    reviewers: tuple[str, ...] = ()
    dataset: str | None = None
    symbols: tuple[str, ...] = ()
    splits: tuple[str, ...] = DAYS
    data_seed: int = 1
    minutes: int = 0
    score: ScoreConfig = ScoreConfig()
    params: ModelParams = LONG_ANSWERS
    review_params: ModelParams = ModelParams(temperature=0.7)

    def __post_init__(self) -> None:
        self.refuse_bad(("strategies", "reviewers"), self.reviewers, example="scripted/builder-gold")
        known = self._known
        for strategy in self.strategies:
            if strategy not in known:
                hint = did_you_mean(strategy, known, f"one of {', '.join(known)}")
                raise UserError(f"there is no strategy '{strategy}'", hint=hint)
        if not 1 <= self.iterations <= 10 or not self.seeds or self.minutes < 0:
            raise UserError("iterations are 1 to 10, seeds at least one", hint="the paper has four iterations")
        splits_of(self.splits)
        if (self.dataset is None) != (not self.symbols):
            raise UserError("a data set needs symbols, and symbols a data set", hint="give both or neither")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The strategies, in the benchmark's order."""
        return tuple(s for s in self._known if not self.strategies or s in self.strategies)

    @property
    def _known(self) -> tuple[str, ...]:
        """All strategies of its benchmark; raises :class:`UserError` for an unknown one."""
        try:
            return STRATEGIES_OF[self.benchmark]
        except KeyError:
            hint = did_you_mean(self.benchmark, STRATEGIES_OF, f"one of {', '.join(STRATEGIES_OF)}")
            raise UserError(f"there is no benchmark '{self.benchmark}'", hint=hint) from None

    @property
    def trials(self) -> int:
        """How many hand-ins may be scored on the test year of one strategy."""
        return len(self.models) * len(self.seeds) * self.iterations


_COMPUTING = ("numpy", "pandas", "scipy", "TA-Lib", "numba")
_MOST_KEPT = 4096


@code_protocols.register(SYSTRADE)
@code_protocols.register(SYSTRADE_SYSTB)
class SystradeProtocol(CodeProtocolOf[SystradeSpec, ScoreWanted, StrategyOutcome, SystradeScores]):
    """SysTradeBench for one spec."""

    Spec: ClassVar[type[CodeSpec]] = SystradeSpec
    Record: ClassVar[type[msgspec.Struct]] = StrategyOutcome
    Result: ClassVar[type[msgspec.Struct]] = ScoredIteration
    Scores: ClassVar[type[msgspec.Struct]] = SystradeScores

    def __init__(self, spec: SystradeSpec) -> None:
        self.spec = spec
        self.strategies: dict[str, StrategySpec] = {
            name: load_spec(name, minutes=self._on_minutes(name)) for name in spec.chosen
        }
        self._years: dict[tuple[str, SplitName], TaskBars] = {}
        self._found: dict[tuple[str, str], ScoredIteration] = {}
        self._busy: dict[tuple[str, str], threading.Lock] = {}
        self._asking = threading.Lock()
        self._scenarios: dict[tuple[str, str], Runs] = {}
        self._refuse_too_few_symbols()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()

    def episodes(self) -> tuple[EpisodeSpec, ...]:
        """Return every combination of model, strategy and seed."""
        return tuple(
            code_episode(
                "__".join((safe_name(model), name, f"s{seed}")), self.spec.benchmark, model, name, seed=seed
            )
            for model in self.spec.models
            for name in self.spec.chosen
            for seed in self.spec.seeds
        )

    def facts(self) -> dict[str, str]:
        """Return the hashes of strategies, prompts, data and configuration, and the versions that code runs on."""
        found = {f"strategy {name}": sha256_of(hashes(name)) for name in self.spec.chosen}
        found["prompts"] = sha256_of([PROMPTS.version, *PROMPTS.files])
        found["score"] = sha256_of(self.score_config)
        for name in self.spec.chosen:
            for split in SPLITS:
                year = self.year(name, split)
                digest = sha256_bytes(b"".join(column.tobytes() for column in year.columns().values()))
                found[f"data {name} {split}"] = sha256_of([year.name, year.rows, digest])
        for name in self.spec.chosen:
            used = self.strategies[name].semantics.sha256
            if used != load_spec(name).semantics.sha256:
                found[f"strategy {name} on minutes"] = used
        found |= {f"package {name}": installed_version(name) for name in _COMPUTING}
        return found

    def roles(self, episode: EpisodeSpec) -> dict[str, Role]:
        """Return the writer and the reviewers."""
        roles = {"writer": Role(model=episode.model, params=self.spec.params)}
        for reviewer in self.spec.reviewers:
            roles[f"reviewer {reviewer}"] = Role(model=reviewer, params=self.spec.review_params)
        return roles

    def dialogue(self, episode: EpisodeSpec) -> CodeDialogue[StrategyOutcome]:
        """Carry the loop of build, test and patch."""
        reference = load_reference(episode.task, minutes=self._on_minutes(episode.task))
        teach_builder({episode.task: (reference.card, reference.source)})
        settings = BuildSettings(
            iterations=self.spec.iterations,
            reviewers=self.spec.reviewers,
            early_stop=self.spec.early_stop,
        )
        return (yield from relay(build(self.strategies[episode.task], episode.model, settings), _asked))

    def check_installed(self) -> None:
        """Nothing is needed: submissions are promised the runtime's packages alone."""

    def open_executor(self, workers: int) -> JobExecutor:
        """Open the sandbox with the harness of submissions."""
        config = submission_config()
        opened = open_executor(config=config, workers=workers)
        return twin_executor(opened, config)

    @property
    def score_config(self) -> ScoreConfig:
        """How hand-ins are scored: as the spec says, with draws from its secret."""
        config = msgspec.structs.replace(self.spec.score, trials=self.spec.trials)
        return with_secret(config, self.spec.secret or "")

    def examine(self, episode: EpisodeSpec, request: ScoreWanted, executor: JobExecutor) -> ScoredIteration:
        """Score a hand-in on both years, and measure its drift since the first. Processor seconds are left out."""
        spec = self.strategies[request.strategy]
        found = self._examined(spec, request.submission, executor)
        drift = None
        if request.first is not None:
            drift = check_drift(
                spec,
                Traced(request.first, self._on_scenarios(spec, request.first, executor)),
                Traced(request.submission, self._on_scenarios(spec, request.submission, executor)),
                previous=request.previous,
            )
        return msgspec.structs.replace(found, drift=drift)

    def ended(self, record: StrategyOutcome) -> Ending:
        """A model that did not answer has no result."""
        if record.stopped == "no answer" and record.last is None:
            return Ending(status="failed", reason=record.iterations[-1].reason, words="no answer")
        last = record.last
        if last is None:
            return Ending(reason=record.iterations[-1].reason, words="nothing handed in")
        failure = last.scorecard.gates.first_failure
        words = "all gates held" if failure is None else f"failed at {failure.name}"
        return Ending(reason="" if failure is None else failure.reason, words=words)

    def score(self, records: Mapping[str, StrategyOutcome]) -> SystradeScores:
        """Sum up a run."""
        closes = {name: self.year(name, "test") for name in self.spec.chosen}
        return systrade_scores(
            self.episodes(),
            self.strategies,
            closes,
            records,
            iterations=self.spec.iterations,
        )

    def inconsistencies(self, record: StrategyOutcome) -> Iterator[tuple[int, str]]:
        """Yield the iterations whose scorecard is about another hand-in."""
        for place, one in enumerate(record.iterations):
            if one.scored is None or one.submission is None:
                continue
            if one.scored.scorecard.submission_sha256 != one.submission.sha256:
                yield place, f"iteration {one.number}: the scorecard is about another hand-in"

    def rows(self, scores: SystradeScores) -> tuple[CodeRow, ...]:
        """Return the totals of every model."""
        return tuple(row.row() for row in scores.models)

    def year(self, strategy: str, split: SplitName) -> TaskBars:
        """Return the bars of a split for a strategy."""
        if (strategy, split) not in self._years:
            self._years[strategy, split] = self._make_year(strategy, split)
        return self._years[strategy, split]

    def _on_minutes(self, strategy: str) -> bool:
        """Whether a strategy with a daily version is run on minutes, and by the year of minutes."""
        inputs = load_spec(strategy).semantics.inputs
        asked = bool(self.spec.minutes) and "1m" in inputs.timeframes
        return asked and (self.spec.dataset is not None or len(inputs.legs) == 1)

    def _make_year(self, strategy: str, split: SplitName) -> TaskBars:
        spec, run = self.strategies[strategy], self.spec
        timeframes, legs = spec.semantics.inputs.timeframes, len(spec.semantics.inputs.legs)
        if run.dataset is not None:
            within = splits_of(run.splits)[split]
            if "1d" not in timeframes or (run.minutes and "1m" in timeframes):
                return stored_minutes(run.dataset, run.symbols[:legs], within, most=run.minutes)
            return stored_year(run.dataset, run.symbols[:legs], within)
        minutes = run.minutes if "1m" in timeframes and legs == 1 else 0
        seed = run.data_seed
        if run.secret:
            seed = drawn_year(spec, run.secret, run.data_seed, minutes=minutes)
        return synthetic_year(spec, split, seed, minutes=minutes)

    def _refuse_too_few_symbols(self) -> None:
        for name, strategy in self.strategies.items():
            legs = len(strategy.semantics.inputs.legs)
            if self.spec.dataset is not None and len(self.spec.symbols) < legs:
                raise UserError(
                    f"'{name}' has {legs} legs, {len(self.spec.symbols)} symbols are given",
                    hint=f"give {legs} symbols, or leave the strategy out",
                )

    def _examined(self, spec: StrategySpec, submission: Submission, executor: JobExecutor) -> ScoredIteration:
        """Return the findings from when the same files were handed in before, or examine them now."""
        key = (spec.id, submission.sha256)
        with self._asking:
            busy = self._busy.setdefault(key, threading.Lock())
        with busy:  # whoever hands in the same while it is examined waits for the findings
            known = self._found.get(key) or self._examine_anew(spec, submission, executor)
            if len(self._found) < _MOST_KEPT:
                self._found[key] = known
        return msgspec.structs.replace(
            known,
            scorecard=known.scorecard.named(submission.name),
            develop=known.develop.named(submission.name),
        )

    def _examine_anew(self, spec: StrategySpec, submission: Submission, executor: JobExecutor) -> ScoredIteration:
        config = self.score_config
        test = examine_submission(submission, spec, executor, self.year(spec.id, "test"), config)
        develop = examine_submission(
            submission, spec, executor, self.year(spec.id, "develop"), config, test.scenarios
        )
        self._scenarios[spec.id, submission.sha256] = test.scenarios
        return ScoredIteration(scorecard=test.scorecard, develop=develop.scorecard, trail=test.trail)

    def _on_scenarios(self, spec: StrategySpec, submission: Submission, executor: JobExecutor) -> Runs:
        """Return runs on the micro-scenarios. After a resume the first hand-in has to be run on them again."""
        key = (spec.id, submission.sha256)
        if key not in self._scenarios:
            self._scenarios[key] = run_scenarios(submission, spec, executor, self.score_config.gates)
        return self._scenarios[key]


def _asked(request: AskModel | ScoreWanted | ReviewWanted) -> Generator[CodeAsk, Any, Any]:
    if isinstance(request, ScoreWanted):
        return (yield Examine(request=request))
    if isinstance(request, ReviewWanted):
        return (yield AskRole(role=f"reviewer {request.reviewer}", request=request.request))
    return (yield AskRole(role="writer", request=request))
