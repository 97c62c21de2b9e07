"""Run SysTradeBench: its episodes, dialogues, examinations of submissions, and scores."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Final

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.metrics import significant
from tradeassay_bench.benchmarks.code_protocol import (
    AskRole,
    CodeAsk,
    CodeDialogue,
    CodeItem,
    CodeProtocol,
    CodeRow,
    Ending,
    Examine,
    FinishedRun,
    Item,
    PaperRequest,
    Role,
    installed_versions,
)
from tradeassay_bench.benchmarks.exhibits import Filled, PaperPage
from tradeassay_bench.core.dialogue import AskModel
from tradeassay_bench.core.drive import relay
from tradeassay_bench.data import load_dataset
from tradeassay_bench.llm.scripted import teach_builder
from tradeassay_programs.benchmarks.systrade import STRATEGIES, hashes, load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.data import (
    DAYS,
    INSTRUMENTS,
    SPLITS,
    SplitName,
    covered_days,
    drawn_year,
    instrument_groups,
    splits_of,
    stored_minutes,
    stored_year,
    synthetic_year,
)
from tradeassay_programs.benchmarks.systrade.dialogue import (
    BuildSettings,
    ReviewWanted,
    ScoreWanted,
    build,
)
from tradeassay_programs.benchmarks.systrade.examine import (
    examine_submission,
    run_on,
    run_scenarios,
    sensitivity_of,
    twin_executor,
    with_secret,
)
from tradeassay_programs.benchmarks.systrade.prompts import PROMPTS
from tradeassay_programs.benchmarks.systrade.scores import SystradeScores, systrade_scores
from tradeassay_programs.benchmarks.systrade.spec import (
    SYSTRADE,
    OnInstrument,
    ScoredIteration,
    StrategyOutcome,
    SystradeSpec,
)
from tradeassay_programs.benchmarks.systrade.tables import systrade_paper, systrade_tables
from tradeassay_programs.benchmarks.systrade.wording import StrategyShown
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.drift import Runs, Traced, check_drift
from tradeassay_programs.code.scores import ScoreConfig
from tradeassay_programs.code.semantics.sensitivity import Sensitivity
from tradeassay_programs.code.submission import StrategySpec, Submission, submission_config
from tradeassay_programs.sandbox import JobExecutor, TimeoutTeller, open_executor

_COMPUTING: Final = ("numpy", "pandas", "scipy", "TA-Lib", "numba")
_MOST_KEPT: Final = 4096


class SystradeProtocol(CodeProtocol):
    """The protocol of SysTradeBench for one spec."""

    title = "SysTradeBench: governed strategies"
    listing = "tradeassay code strategies"
    fixed = ("score",)
    Question = StrategyShown
    Spec = SystradeSpec
    Record = StrategyOutcome
    Result = ScoredIteration
    Scores = SystradeScores

    def __init__(self, spec: SystradeSpec) -> None:
        self.spec = spec
        self.strategies: dict[str, StrategySpec] = {}
        for name in spec.chosen:
            inputs = load_spec(name).semantics.inputs
            legs, minutes = len(inputs.legs), bool(spec.minutes) and "1m" in inputs.timeframes
            if spec.dataset is not None and len(spec.symbols) < legs:
                hint = f"give {legs} symbols, or leave the strategy out"
                raise UserError(
                    f"expected {legs} symbols for '{name}', got {len(spec.symbols)}", hint=hint
                )
            # Synthetic minutes exist for one asset only.
            on_minutes = minutes and (spec.dataset is not None or legs == 1)
            self.strategies[name] = load_spec(name, minutes=on_minutes)
        self._examined: dict[tuple[str, str], ScoredIteration] = {}
        self._examining: dict[tuple[str, str], threading.Lock] = {}
        self._lock = threading.Lock()
        self.year, self._groups = cache(self._year), cache(self._groups_of)
        self._scenarios: dict[tuple[str, str], Runs] = {}
        self._sensitivity: dict[str, Sensitivity] = {}

    def episodes(self) -> tuple[CodeItem, ...]:
        """Return one episode for every combination of model, strategy and seed."""
        combinations = product(self.spec.models, self.spec.chosen, self.spec.seeds)
        return tuple(
            CodeItem(model=model, task=name, seed=seed) for model, name, seed in combinations
        )

    def facts(self) -> dict[str, str]:
        """Return the hashes of strategies, prompts, data and configuration, and the versions of
        packages.
        """
        facts = {f"strategy {name}": sha256_of(hashes(name)) for name in self.spec.chosen}
        facts["prompts"] = sha256_of([PROMPTS.version, *PROMPTS.files])
        facts["score"] = sha256_of(self.score_config)
        for name in self.spec.chosen:
            for split in SPLITS:
                facts[f"data {name} {split}"] = self.year(name, split).sha256
            others = self._groups(name)[1:] if self.spec.dataset is not None else ()
            for dataset, symbols in others:
                bars = self._stored(name, "test", dataset, symbols)
                closes = b"".join(feed["close"].tobytes() for feed in bars.feeds.values())
                facts[f"data {name} {','.join(symbols)}"] = sha256_bytes(closes)
        for name, strategy in self.strategies.items():
            if strategy.semantics != load_spec(name).semantics:
                facts[f"strategy {name} on minutes"] = strategy.semantics.sha256
        return facts | installed_versions(_COMPUTING)

    def roles(self, item: Item) -> dict[str, Role]:
        """Return the models of the writer and of the reviewers."""
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        for reviewer in self.spec.reviewers:
            roles[f"reviewer {reviewer}"] = Role(model=reviewer, params=self.spec.review_params)
        return roles

    def dialogue(self, item: Item) -> CodeDialogue[StrategyOutcome]:
        """Conduct the dialogue of an item, and return its outcome.

        The dialogue has submissions, their scores, and reviews.
        """
        strategy = self.strategies[item.task]
        on_minutes = strategy.semantics != load_spec(item.task).semantics
        reference = load_reference(item.task, minutes=on_minutes)
        teach_builder({item.task: (reference.card, reference.source)})
        settings = BuildSettings(
            iterations=self.spec.iterations,
            reviewers=self.spec.reviewers,
            early_stop=self.spec.early_stop,
        )

        def answer(request: AskModel | ScoreWanted | ReviewWanted) -> Generator[CodeAsk, Any, Any]:
            if isinstance(request, ScoreWanted):
                return (yield Examine(request=request))
            if isinstance(request, ReviewWanted):
                return (yield AskRole(role=f"reviewer {request.reviewer}", request=request.request))
            return (yield AskRole(role="writer", request=request))

        return (yield from relay(build(strategy, item.model, settings), answer))

    def check_installed(self) -> None:
        """Do nothing. Submissions may use only packages that are always installed."""

    def open_executor(self, workers: int) -> JobExecutor:
        """Return an open sandbox with a twin whose processes use another hash seed."""
        config = submission_config()
        return twin_executor(open_executor(config=config, workers=workers), config)

    def with_timeout_callback(
        self, executor: JobExecutor, on_timeout: Callable[[], None]
    ) -> JobExecutor:
        """Return an executor that calls ``on_timeout`` for every submission that times out."""
        return TimeoutTeller(executor, on_timeout)

    @property
    def score_config(self) -> ScoreConfig:
        """The configuration of scores, with draws from the run's secret.

        ``trials`` is the maximum number of submissions scored on the test year of one strategy.
        """
        trials = len(self.spec.models) * len(self.spec.seeds) * self.spec.iterations
        config = msgspec.structs.replace(self.spec.score, trials=trials)
        return with_secret(config, self.spec.secret or "")

    def examine(self, item: Item, request: ScoreWanted, executor: JobExecutor) -> ScoredIteration:
        """Return the scores of a submission on both years, and its drift from the first submission.

        A submission that was already examined is not run again. Processor times are not recorded.
        """
        spec, submission = self.strategies[request.strategy], request.submission
        key = (spec.id, submission.sha256)
        with self._lock:
            lock = self._examining.setdefault(key, threading.Lock())
        # Another thread with the same submission waits here for the result.
        with lock:
            scored = self._examined.get(key) or self._examine_new(spec, submission, executor)
            if len(self._examined) < _MOST_KEPT:
                self._examined[key] = scored
        drift = None
        if request.first is not None:
            first = self._trace(spec, request.first, executor)
            patched = self._trace(spec, submission, executor)
            drift = check_drift(spec, first, patched, previous=request.previous)
        return msgspec.structs.replace(
            scored,
            scorecard=scored.scorecard.named(submission.name),
            develop=scored.develop.named(submission.name),
            drift=drift,
        )

    def _trace(self, spec: StrategySpec, submission: Submission, executor: JobExecutor) -> Traced:
        """Return a submission with its runs on the micro-scenarios."""
        key = (spec.id, submission.sha256)
        # After a resume the runs are not in memory, so they are repeated.
        if key not in self._scenarios:
            gates = self.score_config.gates
            self._scenarios[key] = run_scenarios(submission, spec, executor, gates)
        return Traced(submission, self._scenarios[key])

    def _examine_new(
        self, spec: StrategySpec, submission: Submission, executor: JobExecutor
    ) -> ScoredIteration:
        """Return the scores of a submission on both years, and on the instruments of a data set."""
        config = self.score_config
        year = self.year(spec.id, "test")
        with self._lock:
            if spec.id not in self._sensitivity:
                self._sensitivity[spec.id] = sensitivity_of(spec, year, self.spec.secret or "")
        test = examine_submission(
            submission, spec, executor, year, config, sensitivity=self._sensitivity[spec.id]
        )
        develop = examine_submission(
            submission, spec, executor, self.year(spec.id, "develop"), config, test.scenarios
        )
        self._scenarios[spec.id, submission.sha256] = test.scenarios
        scored = ScoredIteration(
            scorecard=test.scorecard, develop=develop.scorecard, trail=test.trail
        )
        if self.spec.dataset is None or test.scored is None or len(self._groups(spec.id)) < 2:
            return scored
        groups = self._groups(spec.id)
        years = [self._stored(spec.id, "test", *group) for group in groups]
        runs = run_on(years, submission, spec, executor, self.score_config.gates)
        instruments = []
        for (_, symbols), run in zip(groups, runs, strict=True):
            if run.account is None or run.trades is None:
                reason = "" if run.failure is None else run.failure.text
                instruments.append(OnInstrument(symbols=symbols, reason=reason))
            else:
                total = significant(float(run.account.equity[-1] / run.account.capital - 1.0))
                instruments.append(
                    OnInstrument(symbols=symbols, total=total, trades=len(run.trades))
                )
        return msgspec.structs.replace(scored, instruments=tuple(instruments))

    def ended(self, record: StrategyOutcome) -> Ending:
        """Return how an episode ended. An episode without an answer from the model has failed."""
        if record.stopped == "no answer" and record.last is None:
            return Ending(status="failed", reason=record.iterations[-1].reason, words="no answer")
        last = record.last
        if last is None:
            return Ending(reason=record.iterations[-1].reason, words="nothing handed in")
        failure = last.scorecard.gates.first_failure
        words = "all gates held" if failure is None else f"failed at {failure.name}"
        return Ending(reason="" if failure is None else failure.reason, words=words)

    def inconsistencies(self, record: StrategyOutcome) -> Iterator[tuple[int, str]]:
        """Yield iterations whose recorded scorecard is about a different submission, with the
        reason.
        """
        for place, iteration in enumerate(record.iterations):
            if iteration.scored is None or iteration.submission is None:
                continue
            if iteration.scored.scorecard.submission_sha256 != iteration.submission.sha256:
                text = f"iteration {iteration.number}: the scorecard is about another submission"
                yield place, text

    def score(self, records: Mapping[str, StrategyOutcome]) -> SystradeScores:
        """Return the scores of a run from its records."""
        years = {name: self.year(name, "test") for name in self.spec.chosen}
        return systrade_scores(
            self.episodes(), self.strategies, years, records, iterations=self.spec.iterations
        )

    @classmethod
    def rows(cls, scores: SystradeScores) -> tuple[CodeRow, ...]:
        """Return the rows of a leaderboard, one for each model."""
        return tuple(row.row() for row in scores.models)

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return the exhibits of SysTradeBench, filled from runs.

        Raises :class:`UserError` if two runs have different strategies, data or seeds.
        """
        first = runs[0]
        if len(runs) == 1:
            return systrade_paper(first.spec, first.scores, first.records(), latency)
        specs = [run.spec for run in runs]
        if len({(spec.benchmark, spec.chosen, spec.dataset, spec.seeds) for spec in specs}) > 1:
            hint = "name runs with the same strategies, data and seeds"
            raise UserError("the runs have different strategies, data or seeds", hint=hint)
        records: dict[str, StrategyOutcome] = {}
        models: dict[str, None] = {}
        reviewers: dict[str, None] = {}
        for run in runs:
            records |= run.records()
            models |= dict.fromkeys(run.spec.models)
            reviewers |= dict.fromkeys(run.spec.reviewers)
        merged = msgspec.structs.replace(
            first.spec,
            models=tuple(models),
            iterations=max(spec.iterations for spec in specs),
            reviewers=tuple(reviewers),
        )
        return systrade_paper(merged, cls(merged).score(records), records, latency)

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> SystradeSpec:
        """Return the spec of the paper's strategies, on synthetic years or on named data sets."""
        fields: dict[str, Any] = {}
        if request.data is not None:
            fields = _stored_data_fields(request)
        elif request.sample:
            fields["strategies"] = tuple(STRATEGIES)[: request.sample]
        return SystradeSpec(
            benchmark=SYSTRADE,
            models=request.models,
            reviewers=request.reviewers,
            seeds=request.seeds,
            **fields,
        )

    @classmethod
    def sampled(cls, spec: SystradeSpec, count: int) -> SystradeSpec:
        """Return a spec with the first ``count`` of its strategies."""
        return msgspec.structs.replace(spec, strategies=spec.chosen[:count])

    tables = staticmethod(systrade_tables)

    def _year(self, strategy: str, split: SplitName) -> TaskBars:
        """Return the bars of a split for a strategy: stored bars or a synthetic year."""
        spec, run = self.strategies[strategy], self.spec
        timeframes, legs = spec.semantics.inputs.timeframes, len(spec.semantics.inputs.legs)
        if run.dataset is not None:
            if not self._groups(strategy):
                hint = "leave the strategy out, or name a data set with minutes"
                raise UserError(
                    f"'{strategy}' needs minute bars of {legs} symbols of {run.dataset}", hint=hint
                )
            return self._stored(strategy, split, *self._groups(strategy)[0])
        minutes = run.minutes if "1m" in timeframes and legs == 1 else 0
        seed = run.data_seed
        if run.secret:
            seed = drawn_year(spec, run.secret, run.data_seed, minutes=minutes)
        return synthetic_year(spec, split, seed, minutes=minutes)

    def _needs_minutes(self, strategy: str) -> bool:
        timeframes = self.strategies[strategy].semantics.inputs.timeframes
        return "1d" not in timeframes or bool(self.spec.minutes and "1m" in timeframes)

    def _groups_of(self, strategy: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the symbol groups of the data set for a strategy, each with its data set."""
        legs = len(self.strategies[strategy].semantics.inputs.legs)
        minutes = self._needs_minutes(strategy)
        return instrument_groups(str(self.spec.dataset), self.spec.symbols, legs, minutes=minutes)

    def _stored(
        self, strategy: str, split: SplitName, dataset: str, symbols: tuple[str, ...]
    ) -> TaskBars:
        within = splits_of(self.spec.splits)[split]
        if self._needs_minutes(strategy):
            return stored_minutes(dataset, symbols, within, most=self.spec.minutes)
        return stored_year(dataset, symbols, within)


def _stored_data_fields(request: PaperRequest) -> dict[str, Any]:
    """Return the fields of a spec on named data sets.

    These are the paper's number of symbols and the available days.
    """
    names = [request.stored(part.strip()) for part in str(request.data).split(",") if part.strip()]
    symbols = request.symbols
    if not symbols:
        known_symbols: dict[str, None] = {}
        for name in names:
            snapshot = load_dataset(name)
            last = len(snapshot.sessions) - 1
            known_symbols |= dict.fromkeys(snapshot.at(last, "close").symbols)
        symbols = tuple(known_symbols)[: sum(map(len, INSTRUMENTS.values()))]
    dataset, days, chosen = ",".join(names), covered_days(names), []
    for name in STRATEGIES[: request.sample]:
        inputs = load_spec(name).semantics.inputs
        minutes = "1d" not in inputs.timeframes
        if instrument_groups(dataset, symbols, len(inputs.legs), minutes=minutes):
            chosen.append(name)
        else:
            request.say(f"{name} is left out: it needs minute bars or more symbols")
    request.say(f"symbols: {', '.join(symbols)} (use --symbols to choose others)")
    if days != DAYS:
        request.say(
            "the data does not cover the paper's years: "
            f"development begins on {days[0]}, the test on {days[1]}"
        )
    return {"dataset": dataset, "symbols": symbols, "strategies": tuple(chosen), "splits": days}
