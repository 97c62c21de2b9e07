"""SysTradeBench as a benchmark of programs: what is asked for, its episodes and dialogues, the examination."""

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Final

import msgspec

from tradeassay.benchmarks.code_protocol import (
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
from tradeassay.benchmarks.exhibits import Filled, PaperPage
from tradeassay.benchmarks.systrade import STRATEGIES, hashes, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import (
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
from tradeassay.benchmarks.systrade.dialogue import BuildSettings, ReviewWanted, ScoreWanted, build
from tradeassay.benchmarks.systrade.examine import (
    examine_submission,
    pins_of,
    run_on,
    run_scenarios,
    twin_executor,
    with_secret,
)
from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.benchmarks.systrade.scores import SystradeScores, systrade_scores
from tradeassay.benchmarks.systrade.spec import (
    SYSTRADE,
    OnInstrument,
    ScoredIteration,
    StrategyOutcome,
    SystradeSpec,
)
from tradeassay.benchmarks.systrade.tables import systrade_paper, systrade_tables
from tradeassay.benchmarks.systrade.wording import StrategyShown
from tradeassay.code.bars import TaskBars
from tradeassay.code.drift import Runs, Traced, check_drift
from tradeassay.code.scores import ScoreConfig
from tradeassay.code.semantics.pins import Pins
from tradeassay.code.submission import StrategySpec, Submission, submission_config
from tradeassay.core.dialogue import AskModel
from tradeassay.core.drive import relay
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.data import load_dataset
from tradeassay.llm.scripted import teach_builder
from tradeassay.metrics import significant
from tradeassay.sandbox import JobExecutor, open_executor

_COMPUTING: Final = ("numpy", "pandas", "scipy", "TA-Lib", "numba")
_MOST_KEPT: Final = 4096


class SystradeProtocol(CodeProtocol):
    """SysTradeBench for one spec."""

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
                raise UserError(f"'{name}' has {legs} legs, {len(spec.symbols)} symbols are given", hint=hint)
            # Synthetic minutes are of one asset; what is run on minutes has their year.
            self.strategies[name] = load_spec(name, minutes=minutes and (spec.dataset is not None or legs == 1))
        self._found: dict[tuple[str, str], ScoredIteration] = {}
        self._busy: dict[tuple[str, str], threading.Lock] = {}
        self._asking = threading.Lock()
        self.year, self._groups = cache(self._year), cache(self._groups_of)
        self._scenarios: dict[tuple[str, str], Runs] = {}
        self._pins: dict[str, Pins] = {}

    def episodes(self) -> tuple[CodeItem, ...]:
        ways = product(self.spec.models, self.spec.chosen, self.spec.seeds)
        return tuple(CodeItem(model=model, task=name, seed=seed) for model, name, seed in ways)

    def facts(self) -> dict[str, str]:
        """Return the hashes of strategies, prompts, data and configuration, and the versions that code runs on."""
        found = {f"strategy {name}": sha256_of(hashes(name)) for name in self.spec.chosen}
        found["prompts"] = sha256_of([PROMPTS.version, *PROMPTS.files])
        found["score"] = sha256_of(self.score_config)
        for name in self.spec.chosen:
            for split in SPLITS:
                found[f"data {name} {split}"] = self.year(name, split).sha256
            others = self._groups(name)[1:] if self.spec.dataset is not None else ()
            for dataset, symbols in others:
                closes = (feed["close"] for feed in self._stored(name, "test", dataset, symbols).feeds.values())
                found[f"data {name} {','.join(symbols)}"] = sha256_bytes(b"".join(one.tobytes() for one in closes))
        for name, strategy in self.strategies.items():
            if strategy.semantics != load_spec(name).semantics:
                found[f"strategy {name} on minutes"] = strategy.semantics.sha256
        return found | installed_versions(_COMPUTING)

    def roles(self, item: Item) -> dict[str, Role]:
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        for reviewer in self.spec.reviewers:
            roles[f"reviewer {reviewer}"] = Role(model=reviewer, params=self.spec.review_params)
        return roles

    def dialogue(self, item: Item) -> CodeDialogue[StrategyOutcome]:
        strategy = self.strategies[item.task]
        reference = load_reference(item.task, minutes=strategy.semantics != load_spec(item.task).semantics)
        teach_builder({item.task: (reference.card, reference.source)})
        settings = BuildSettings(
            iterations=self.spec.iterations, reviewers=self.spec.reviewers, early_stop=self.spec.early_stop
        )

        def answer(request: AskModel | ScoreWanted | ReviewWanted) -> Generator[CodeAsk, Any, Any]:
            if isinstance(request, ScoreWanted):
                return (yield Examine(request=request))
            if isinstance(request, ReviewWanted):
                return (yield AskRole(role=f"reviewer {request.reviewer}", request=request.request))
            return (yield AskRole(role="writer", request=request))

        return (yield from relay(build(strategy, item.model, settings), answer))

    def check_installed(self) -> None:
        """Nothing is needed: submissions are promised the runtime's packages alone."""

    def open_executor(self, workers: int) -> JobExecutor:
        config = submission_config()
        return twin_executor(open_executor(config=config, workers=workers), config)

    @property
    def score_config(self) -> ScoreConfig:
        """How submissions are scored: as the spec says, with draws from its secret. Its trials are how many may be
        scored on the test year of one strategy."""
        trials = len(self.spec.models) * len(self.spec.seeds) * self.spec.iterations
        return with_secret(msgspec.structs.replace(self.spec.score, trials=trials), self.spec.secret or "")

    def examine(self, item: Item, request: ScoreWanted, executor: JobExecutor) -> ScoredIteration:
        """Score a submission on both years, and measure its drift since the first. No processor times are kept."""
        spec, made = self.strategies[request.strategy], request.submission
        key = (spec.id, made.sha256)
        with self._asking:
            busy = self._busy.setdefault(key, threading.Lock())
        with busy:  # whoever submits the same while it is examined waits for the findings
            known = self._found.get(key) or self._examine_anew(spec, made, executor)
            if len(self._found) < _MOST_KEPT:
                self._found[key] = known
        drift = None
        if request.first is not None:
            for one in (request.first, made):
                if (spec.id, one.sha256) not in self._scenarios:  # after a resume they have to be run again
                    runs = run_scenarios(one, spec, executor, self.score_config.gates)
                    self._scenarios[spec.id, one.sha256] = runs
            first, patched = (Traced(one, self._scenarios[spec.id, one.sha256]) for one in (request.first, made))
            drift = check_drift(spec, first, patched, previous=request.previous)
        return msgspec.structs.replace(
            known, scorecard=known.scorecard.named(made.name), develop=known.develop.named(made.name), drift=drift
        )

    def _examine_anew(self, spec: StrategySpec, submission: Submission, executor: JobExecutor) -> ScoredIteration:
        config = self.score_config
        year = self.year(spec.id, "test")
        with self._asking:
            if spec.id not in self._pins:
                self._pins[spec.id] = pins_of(spec, year, self.spec.secret or "")
        test = examine_submission(submission, spec, executor, year, config, pins=self._pins[spec.id])
        develop = examine_submission(
            submission, spec, executor, self.year(spec.id, "develop"), config, test.scenarios
        )
        self._scenarios[spec.id, submission.sha256] = test.scenarios
        found = ScoredIteration(scorecard=test.scorecard, develop=develop.scorecard, trail=test.trail)
        if self.spec.dataset is None or test.scored is None or len(self._groups(spec.id)) < 2:
            return found
        groups = self._groups(spec.id)
        years = [self._stored(spec.id, "test", *group) for group in groups]
        ran = run_on(years, submission, spec, executor, self.score_config.gates)
        instruments = []
        for (_, symbols), one in zip(groups, ran, strict=True):
            if one.account is None or one.trades is None:
                reason = "" if one.failure is None else one.failure.text
                instruments.append(OnInstrument(symbols=symbols, reason=reason))
            else:
                total = significant(float(one.account.equity[-1] / one.account.capital - 1.0))
                instruments.append(OnInstrument(symbols=symbols, total=total, trades=len(one.trades)))
        return msgspec.structs.replace(found, instruments=tuple(instruments))

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

    def inconsistencies(self, record: StrategyOutcome) -> Iterator[tuple[int, str]]:
        """Yield the iterations whose scorecard is about another submission."""
        for place, one in enumerate(record.iterations):
            if one.scored is not None and one.submission is not None:
                if one.scored.scorecard.submission_sha256 != one.submission.sha256:
                    yield place, f"iteration {one.number}: the scorecard is about another submission"

    def score(self, records: Mapping[str, StrategyOutcome]) -> SystradeScores:
        years = {name: self.year(name, "test") for name in self.spec.chosen}
        return systrade_scores(self.episodes(), self.strategies, years, records, iterations=self.spec.iterations)

    @classmethod
    def rows(cls, scores: SystradeScores) -> tuple[CodeRow, ...]:
        return tuple(row.row() for row in scores.models)

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return SysTradeBench with what some runs fill of it.

        Raises :class:`UserError` where two runs had different strategies, data or seeds."""
        first = runs[0]
        if len(runs) == 1:
            return systrade_paper(first.spec, first.scores, first.records(), latency)
        specs = [run.spec for run in runs]
        if len({(spec.benchmark, spec.chosen, spec.dataset, spec.seeds) for spec in specs}) > 1:
            hint = "name runs of the same items"
            raise UserError("the runs have other strategies, data or seeds", hint=hint)
        records = {key: record for run in runs for key, record in run.records().items()}
        merged = msgspec.structs.replace(
            first.spec,
            models=tuple(dict.fromkeys(model for spec in specs for model in spec.models)),
            iterations=max(spec.iterations for spec in specs),
            reviewers=tuple(dict.fromkeys(reviewer for spec in specs for reviewer in spec.reviewers)),
        )
        return systrade_paper(merged, cls(merged).score(records), records, latency)

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> SystradeSpec:
        """Return the spec of the paper's strategies, on synthetic years or on the data sets that are named."""
        if request.data is None:
            stored: dict[str, Any] = {"strategies": tuple(STRATEGIES)[: request.sample]} if request.sample else {}
        else:
            stored = _on_stored_data(request)
        return SystradeSpec(
            benchmark=SYSTRADE, models=request.models, reviewers=request.reviewers, seeds=request.seeds, **stored
        )

    @classmethod
    def sampled(cls, spec: SystradeSpec, count: int) -> SystradeSpec:
        """Return a spec with the first ``count`` of its strategies."""
        return msgspec.structs.replace(spec, strategies=spec.chosen[:count])

    tables = staticmethod(systrade_tables)

    def _year(self, strategy: str, split: SplitName) -> TaskBars:
        spec, run = self.strategies[strategy], self.spec
        timeframes, legs = spec.semantics.inputs.timeframes, len(spec.semantics.inputs.legs)
        if run.dataset is not None:
            if not self._groups(strategy):
                hint = "leave the strategy out, or name a data set with minutes"
                raise UserError(f"'{strategy}' needs minute bars of {legs} symbols of {run.dataset}", hint=hint)
            return self._stored(strategy, split, *self._groups(strategy)[0])
        minutes = run.minutes if "1m" in timeframes and legs == 1 else 0
        drawn = drawn_year(spec, run.secret, run.data_seed, minutes=minutes) if run.secret else run.data_seed
        return synthetic_year(spec, split, drawn, minutes=minutes)

    def _needs_minutes(self, strategy: str) -> bool:
        timeframes = self.strategies[strategy].semantics.inputs.timeframes
        return "1d" not in timeframes or bool(self.spec.minutes and "1m" in timeframes)

    def _groups_of(self, strategy: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        legs, minutes = len(self.strategies[strategy].semantics.inputs.legs), self._needs_minutes(strategy)
        return instrument_groups(str(self.spec.dataset), self.spec.symbols, legs, minutes=minutes)

    def _stored(self, strategy: str, split: SplitName, dataset: str, symbols: tuple[str, ...]) -> TaskBars:
        within = splits_of(self.spec.splits)[split]
        if self._needs_minutes(strategy):
            return stored_minutes(dataset, symbols, within, most=self.spec.minutes)
        return stored_year(dataset, symbols, within)


def _on_stored_data(request: PaperRequest) -> dict[str, Any]:
    """Return how named data sets are played: on the paper's number of symbols, with what their days allow."""
    names = [request.stored(part.strip()) for part in str(request.data).split(",") if part.strip()]
    symbols = request.symbols
    if not symbols:
        every: dict[str, None] = {}
        for name in names:
            snapshot = load_dataset(name)
            every |= dict.fromkeys(snapshot.at(len(snapshot.sessions) - 1, "close").symbols)
        symbols = tuple(every)[: sum(map(len, INSTRUMENTS.values()))]
    dataset, days, chosen = ",".join(names), covered_days(names), []
    for name in STRATEGIES[: request.sample]:
        inputs = load_spec(name).semantics.inputs
        if instrument_groups(dataset, symbols, len(inputs.legs), minutes="1d" not in inputs.timeframes):
            chosen.append(name)
        else:
            request.say(f"{name} is left out: it needs minute bars, or more symbols")
    request.say(f"symbols: {', '.join(symbols)} (--symbols names others)")
    if days != DAYS:
        request.say(f"the data does not cover the paper's years: developed from {days[0]}, tested from {days[1]}")
    return {"dataset": dataset, "symbols": symbols, "strategies": tuple(chosen), "splits": days}
