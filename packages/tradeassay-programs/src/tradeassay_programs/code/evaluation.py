"""Evaluate one program on one task: does it compile, run, trade, look ahead, and follow the task?

:func:`examine` runs the checks in ``CHECKS`` and returns an :class:`Evaluation`. Benchmarks call
this function. :func:`evaluate` also asks a language judge.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.metrics import cumulative_return, max_drawdown, sharpe, simple_returns
from tradeassay_bench.core.drive import drive
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.backtrader import (
    POINTERS,
    SCORED_FED,
    Backtest,
    BacktestJob,
    Trick,
    fed_backtests,
    fed_together,
    terms_of,
)
from tradeassay_programs.code.bars import SESSIONS_PER_YEAR, TaskBars, bars_per_session
from tradeassay_programs.code.checks import (
    PASSED,
    Check,
    FailureClass,
    Finding,
    classify_run,
    failed,
    not_reached,
    not_scored,
    run_checks,
)
from tradeassay_programs.code.judges.behaviour import judge_decisions
from tradeassay_programs.code.judges.decisions import (
    CLOSENESS,
    BehaviourVerdict,
    DecisionsConfig,
    LanguageVerdict,
    closeness,
    decision_events,
)
from tradeassay_programs.code.judges.language import (
    JudgeCase,
    JudgeClient,
    LanguageJudgeConfig,
    judge_dialogue,
)
from tradeassay_programs.code.judges.markets import (
    SHARED_DRAWS,
    DrawConfig,
    DrawnAgain,
    JudgedMarket,
    Judging,
    drawn_bars,
)
from tradeassay_programs.code.lookahead.grow import LeakRecord
from tradeassay_programs.code.lookahead.grow_frames import (
    AWAY,
    HOME,
    REWARDED,
    SHORT,
    GrownRun,
    GrowthPlan,
    frame_lookahead,
    run_grown,
)
from tradeassay_programs.code.lookahead.trace import first_difference
from tradeassay_programs.code.program_source import CHEATS, asks_length, check_compiles, terms_set
from tradeassay_programs.code.running import ExamSettings, exam_settings, reference_of, run_programs
from tradeassay_programs.code.task import CodeTask, Framework, Wording
from tradeassay_programs.sandbox import (
    ChildClaim,
    Crashed,
    JobExecutor,
    JobLimits,
    SyntaxFault,
    kind_of,
)

_LONGEST: Final = 4_000


class ValuePath(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one value path.

    Return and drawdown are fractions over the whole run. The Sharpe ratio is annualised from the
    returns of bars, at a risk-free rate of 0. A measure is None if it is not defined. For example,
    a constant path has no Sharpe ratio.
    """

    total_return: float | None
    max_drawdown: float | None
    sharpe: float | None


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of a strategy and of buy and hold on the home market.

    The strategy's account is net of commission. Buy and hold starts with equal weights at the first
    open and pays no commission.
    """

    market: str
    strategy: ValuePath
    hold: ValuePath
    trades: int
    final_value: float


StageName = Literal["compile", "backtest", "trade", "lookahead", "judge"]
STAGES: Final[tuple[StageName, ...]] = ("compile", "backtest", "trade", "lookahead", "judge")
"""The stages of an evaluation: all checks except ``trick``, in the order in which they run.

``outcome`` names the first stage that failed. A grave trick is an outcome of its own.
"""

Outcome = Literal[
    "solved", "trick", "compile", "backtest", "trade", "lookahead", "judge", "not_scored"
]


class EvaluateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to evaluate a program.

    A protocol yields the request and receives the :class:`Evaluation`.
    """

    task: str
    source: str
    framework: Framework = "backtrader"
    turn: int = 1


class EvaluationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of an evaluation in the sandbox: runs of the program and their processor seconds.

    ``runs`` includes the runs of the look-ahead check. ``cpu_s`` leaves out their processor time,
    because only part of it is known.
    """

    runs: int = 0
    cpu_s: float = 0.0


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one program on one task.

    Equal programs get equal records, except for ``usage``.

    - ``judge`` is the finding of the judge stage. ``decided_by`` names the judge or judges that
      decided.
    - ``judge_behaviour`` and ``judge_language`` are the complete verdicts.
    - ``earned`` is displayed and never scored.
    - ``attempts`` are the calls that the kernel refused on any market.
    - ``retried`` contains the reasons why runs were repeated.
    - ``isolation`` is the sandbox's level of isolation with its missing mechanisms. It is recorded
      as ``walls``.
    - ``drawn_again`` lists the markets that were drawn again or added, with reasons.
    - ``immaterial`` names constants and branches of the reference that the judged markets do not
      test.
    """

    task: str
    framework: Framework
    source_sha256: str
    compile: Finding
    backtest: Finding
    trade: Finding
    lookahead: Finding
    judge: Finding
    decided_by: str = ""
    judge_behaviour: BehaviourVerdict | None = None
    judge_language: LanguageVerdict | None = None
    leak: LeakRecord | None = None
    tricks: tuple[Trick, ...] = ()
    attempts: tuple[str, ...] = ()
    retried: tuple[str, ...] = ()
    trades: int | None = None
    earned: Earned | None = None
    usage: EvaluationUsage = EvaluationUsage()
    isolation: str = msgspec.field(name="walls", default="")
    drawn_again: tuple[DrawnAgain, ...] = ()
    immaterial: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The stage at which the program failed, ``solved``, ``trick`` or ``not_scored``.

        A grave trick takes precedence over all stages, because no affected result can be trusted.
        """
        if self.grave_tricks:
            return "trick"
        for name in STAGES:
            if self.stage(name).failed:
                return name
        return "solved" if all(self.stage(name).passed for name in STAGES) else "not_scored"

    @property
    def passed_unjudged(self) -> bool:
        """Whether the program passed every stage before the judge stage, which could not decide.

        A program that changes the terms of its account has not passed.
        """
        earlier = STAGES[:-1]
        passed = self.outcome == "not_scored" and all(self.stage(name).passed for name in earlier)
        return passed and not self.changes_account_terms

    @property
    def verdict(self) -> str:
        """A phrase for the outcome, for the command line."""
        if self.passed_unjudged:
            return "passed, not scored"
        if self.outcome == "not_scored" and self.changes_account_terms:
            return "not passed: it changes the terms of the account"
        words = {"solved": "passed", "not_scored": "not scored"}
        return words.get(self.outcome, f"failed ({self.outcome})")

    @property
    def changes_account_terms(self) -> bool:
        """Whether the program's account differs from the task's, or its orders fill at known
        prices.
        """
        return any(trick.name in ("account-mismatch", "cheat-fills") for trick in self.tricks)

    @property
    def grave_tricks(self) -> tuple[Trick, ...]:
        """The tricks that void the result."""
        return tuple(trick for trick in self.tricks if trick.grave)

    @property
    def score(self) -> float | None:
        """1 if the program solved the task, 0 if not, and None without a decision."""
        outcome = self.outcome
        return None if outcome == "not_scored" else float(outcome == "solved")

    @property
    def reason(self) -> str:
        """The reason why the program failed or was not scored. Empty if it solved the task."""
        outcome = self.outcome
        if outcome == "solved":
            return ""
        if outcome == "trick":
            tricks = [f"{trick.name}: {trick.detail}".rstrip(": ") for trick in self.grave_tricks]
            return "; ".join(tricks)
        if outcome == "not_scored":
            stages = [self.stage(name) for name in STAGES]
            return "; ".join(stage.reason for stage in stages if stage.status == "not_scored")
        return self.stage(outcome).reason

    @property
    def judges_disagree(self) -> bool:
        """Whether both judges reached a verdict, and the verdicts differ."""
        verdicts = (self.judge_behaviour, self.judge_language)
        statuses = {verdict.status for verdict in verdicts if verdict is not None}
        return statuses == {"passed", "failed"}

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of failure, or None if the program solved the task or was not scored.

        The classes are defined in :mod:`tradeassay_programs.code.checks`.
        """
        by_outcome: dict[str, FailureClass] = {
            "trick": "trick",
            "compile": "compilation",
            "trade": "signals-never-activate",
            "lookahead": "look-ahead",
            "judge": "does-not-match",
        }
        if self.outcome == "backtest":
            return classify_run(self.backtest)
        return by_outcome.get(self.outcome)

    def stage(self, name: str) -> Finding:
        """Return the finding of a stage. Raises KeyError for an unknown name."""
        if name not in STAGES:
            raise KeyError(name)
        finding: Finding = getattr(self, name)
        return finding


Decides = Literal["reference-first", "behaviour", "language", "both"]


class EvaluateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an evaluation.

    ``decides`` names the judge whose verdict counts. ``reference-first`` is the behavioural judge,
    or the language judge if the behavioural judge could not decide. ``both`` requires that both
    judges accept the program. With ``leak=False`` the look-ahead check does not run. Its stage is
    then not scored, and no program can solve its task.
    """

    decides: Decides = "reference-first"
    language: LanguageJudgeConfig = LanguageJudgeConfig()
    leak: bool = True
    limits: JobLimits | None = None


DECISIONS: Final = DecisionsConfig()
DRAWS: Final = DrawConfig()


def evaluate(
    task: CodeTask,
    source: str,
    *,
    executor: JobExecutor,
    config: EvaluateConfig | None = None,
    judge: JudgeClient | None = None,
    framework: Framework = "backtrader",
    rules: ExamSettings | None = None,
) -> Evaluation:
    """Return the evaluation of a program, as :func:`examine` does.

    The language ``judge``, if given, also judges programs that reach the judge stage.
    """
    config = config or EvaluateConfig()
    evaluation = examine(
        task, source, executor=executor, config=config, framework=framework, rules=rules
    )
    if judge is None:
        return evaluation
    return ask_judge(evaluation, judge, task, source, config)


def ask_judge(
    evaluation: Evaluation, judge: JudgeClient, task: CodeTask, source: str, config: EvaluateConfig
) -> Evaluation:
    """Return the evaluation with the language judge's verdict.

    Returns the evaluation unchanged if the program did not reach the judge stage or already has a
    verdict.
    """
    if not wants_language_judge(evaluation):
        return evaluation
    case = judge_case(task, source, framework=evaluation.framework)
    dialogue = judge_dialogue(case, judge.prompts, judge=judge.name, config=config.language)
    return with_language(evaluation, drive(dialogue, judge.ask), config)


def examine(
    task: CodeTask,
    source: str,
    *,
    executor: JobExecutor,
    config: EvaluateConfig | None = None,
    framework: Framework = "backtrader",
    rules: ExamSettings | None = None,
    strict: bool = False,
    home: TaskBars | None = None,
    unjudged: bool = False,
) -> Evaluation:
    """Return the evaluation of a program without a language judge.

    ``strict`` fails a program if the kernel refused any of its calls. ``home``, if given, replaces
    all drawn markets. It is for a task without a reference. ``unjudged`` leaves the behavioural
    judge out too, and runs only the first part of the home market. The default ``rules`` have a
    secret drawn for this process.
    """
    program = _Program(
        task,
        source,
        executor,
        config or EvaluateConfig(),
        framework,
        rules or exam_settings(None),
        stored_bars=home,
    )
    program.strict = strict
    program.unjudged = unjudged
    return program.evaluate()


def note_account_terms(evaluation: Evaluation, task: CodeTask, source: str) -> Evaluation:
    """Return the evaluation with a note on the account terms that the program sets."""
    own_terms = terms_set(source)
    if not own_terms:
        return evaluation
    settings = ", ".join(f"{name} in line {line}" for name, line in own_terms.items())
    terms = f"cash {task.cash:,.0f}, commission {task.commission:.2%} and fills at the next open"
    note = Trick(
        name="cheat-fills" if CHEATS & own_terms.keys() else "own-terms",
        detail=f"it sets {settings}; examined with {terms}",
        grave=False,
    )
    return msgspec.structs.replace(evaluation, tricks=(*evaluation.tricks, note))


def examine_closely(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    framework: Framework,
    rules: ExamSettings,
    config: EvaluateConfig,
    draws: DrawConfig,
) -> tuple[Evaluation, dict[str, float]]:
    """Return an evaluation on the markets of ``draws``, and the closeness to the reference.

    The closeness is a dict with the parts of
    :func:`~tradeassay_programs.code.judges.decisions.closeness`, averaged over the markets. The
    dict is empty if the program did not reach the behavioural judge, or the judge could not decide
    or accepted the program.
    """
    program = _Program(task, source, executor, config, framework, rules, draws)
    evaluation = program.evaluate()
    verdict = evaluation.judge_behaviour
    unjudged = verdict is None or verdict.status == "not_scored"
    if program.judging is None or unjudged or evaluation.judge.passed:
        return evaluation, {}
    parts = []
    for run, market in zip(program.runs, program.judging.markets, strict=True):
        if not run.ok:
            parts.append(dict.fromkeys(CLOSENESS, 0.0))
            continue
        events = decision_events(run, market.bars, task.cash)
        parts.append(closeness(events, market.events, market.bars.rows, draws.decisions))
    averages = {name: float(np.mean([part[name] for part in parts])) for name in CLOSENESS}
    return evaluation, averages


@dataclass(eq=False)
class _Program:
    """The mutable state of one evaluation, and its checks as methods.

    ``stored_bars``, if set, replaces the drawn markets. ``fed_failure`` describes how the program
    fails or differs when it gets its bars one at a time. It is empty if there is no difference.
    """

    task: CodeTask
    source: str
    executor: JobExecutor
    config: EvaluateConfig
    framework: Framework
    rules: ExamSettings
    draws: DrawConfig = DRAWS
    unjudged: bool = False
    strict: bool = False
    stored_bars: TaskBars | None = None
    judging: Judging | None = None
    fed_failure: str = ""
    runs: list[Backtest] = field(default_factory=list)
    grown: list[GrownRun] = field(default_factory=list)
    run_count: int = 0
    cpu_s: float = 0.0
    leak: LeakRecord | None = None
    behaviour: BehaviourVerdict | None = None
    language: LanguageVerdict | None = None
    decided_by: str = ""

    def __post_init__(self) -> None:
        if self.framework == "frame" and self.task.frame is None:
            hint = "run it with the framework backtrader"
            raise UserError(f"task '{self.task.id}' has no variant for frames", hint=hint)

    @property
    def home_run(self) -> Backtest:
        """The backtest on the home market."""
        return self.runs[0]

    @property
    def bars(self) -> TaskBars:
        """The bars of the home market."""
        assert self.judging is not None
        return self.judging.markets[0].bars

    @property
    def short_draws(self) -> bool:
        """Whether the program runs on all judged markets in the first check, as for a reward."""
        return self.draws.shortest is not None and not self.unjudged

    def parse_and_run(self) -> Finding:
        """Return whether the source compiles, and run the program on the home market.

        A Backtrader program gets its bars one at a time. The later checks read the run.
        """
        finding = check_compiles(self.source, self.framework, self.rules.longest_source)
        if not finding.passed:
            return finding
        self.judging = self._draw(
            SHARED_DRAWS.all_markets if self.short_draws else SHARED_DRAWS.home
        )
        if self.unjudged:
            self.judging = replace(self.judging, markets=(self.judging.markets[0].brief(),))
        markets = self.judging.markets if self.short_draws else self.judging.markets[:1]
        self.runs = self._run([market.bars for market in markets])
        refused = compile_failure(self.home_run)
        if self.framework != "backtrader" or refused is not None:
            return refused or finding
        # A second run, with all bars available, is made for programs that failed, that read later
        # bars, or that make no trade and query the number of bars. A program that trades may query
        # it.
        reached = POINTERS & {trick.name for trick in self.home_run.tricks}
        if (
            self.home_run.ok
            and not reached
            and (self.home_run.trades or not asks_length(self.source))
        ):
            return finding
        # The second run gives the program no credit. If the program works or trades only in this
        # run, it looks ahead, and the reason can state it.
        (whole,) = self._run([self.bars], fed=False)
        if whole.ok and self.home_run.failure is not None:
            self.fed_failure = f"fed bar by bar it breaks: {self.home_run.failure.text}"
        elif whole.ok:
            difference = first_difference(
                self.home_run.trace(), whole.trace(), self.bars.rows, 1e-9
            )
            if difference:
                row, fed, held = difference
                self.fed_failure = f"on bar {row} it decides {fed}, with all bars at hand {held}"
        if self.fed_failure:
            self.runs = [whole]
        return compile_failure(self.home_run) or finding

    def check_tricks(self) -> Finding:
        """Return a failure for the first grave trick on the home market, or a pass."""
        grave = self.home_run.grave
        return failed(grave[0].detail, grave[0].name) if grave else PASSED

    def check_lookahead(self) -> Finding:
        """Return whether no decision depends on later bars.

        A Backtrader program is scored on bars that it gets one at a time, so its decisions cannot
        depend on later bars. It fails if it decides differently with all bars available. A program
        on frames runs on growing frames of every judged market.
        """
        if not self.config.leak:
            return not_scored("the look-ahead check was left out")
        if self.fed_failure:
            names = "".join(
                f"; {trick.name}: {trick.detail}"
                for trick in self.home_run.tricks
                if not trick.grave
            )
            reason = f"it depends on later bars: {self.fed_failure}{names}"
            self.leak = LeakRecord(
                verdict="leaky", reason=reason, runs=1, bars=self.bars.rows, fed="differs"
            )
            return failed(reason, "look_ahead")
        if self.framework == "backtrader":
            self.leak = LeakRecord(
                verdict="clean", reason=SCORED_FED, runs=1, bars=self.bars.rows, fed="same"
            )
            return PASSED
        if not self.unjudged:
            self._run_on_remaining_markets()
        plans = [self._plan(number) for number in range(len(self.grown))]
        finding, self.leak = frame_lookahead(self.executor, self.grown, plans)
        self.run_count += self.leak.runs
        return finding

    def _plan(self, number: int) -> tuple[GrowthPlan, np.random.Generator]:
        """Return the plan for growing frames on one market, and a generator for false rows."""
        if self.unjudged:
            plan = SHORT
        elif self.short_draws:
            assert self.judging is not None
            # An order that fills on a bar was decided on the previous row. It was not yet decided
            # on the row before that, and it must stay decided on the next row. All three rows are
            # tested.
            fills = {event.bar for event in self.judging.markets[number].events}
            hints = set[int]()
            for bar in fills:
                hints |= {bar, bar - 1, bar - 2}
            plan = msgspec.structs.replace(REWARDED, hints=tuple(sorted(hints)))
        else:
            plan = AWAY if number else HOME
        seed = seed_from(self.rules.secret, "growing", self.task.id, number)
        return plan, np.random.default_rng(seed)

    def check_judge(self) -> Finding:
        """Return whether the program's decisions match the reference's on every market.

        Not scored without a judge, without a reference, or with too few markets.
        """
        if self.unjudged:
            return not_scored("no judge was asked for")
        self.judging = self._draw(SHARED_DRAWS.all_markets)
        self.language = LanguageVerdict(status="not_scored", reason="no language judge was asked")
        markets = len(self.judging.markets)
        unjudged = f"the reference trades on {markets} markets, {self.draws.markets} are needed"
        if not reference_of(self.task, self.framework):
            unjudged, markets = "the task comes with no reference program", 0
        if markets < self.draws.markets:
            self.behaviour = BehaviourVerdict(status="not_scored", reason=unjudged)
        else:
            self._run_on_remaining_markets()
            threshold = DECISIONS.threshold if self.task.agreement is None else self.task.agreement
            rule = msgspec.structs.replace(DECISIONS, threshold=threshold)
            self.behaviour = judge_decisions(self.task, self.judging, self.runs, rule)
        if any(trick.grave for trick in _tricks(self.runs)):
            return not_reached("a trick was found on another market")
        finding, self.decided_by = _decide(self.behaviour, self.language, self.config.decides)
        return finding

    def evaluate(self) -> Evaluation:
        """Run the checks and return the record of the program."""
        findings = run_checks(CHECKS, self)
        run = self.runs[0] if self.runs else None
        attempts: dict[str, None] = {}
        for each in self.runs:
            attempts |= dict.fromkeys(attempt.text for attempt in each.attempts)
        tier = self.executor.tier
        missing = f" (missing: {'; '.join(tier.missing)})" if tier.missing else ""
        honest = run if findings["trick"].passed else None
        return Evaluation(
            task=self.task.id,
            framework=self.framework,
            source_sha256=sha256_bytes(self.source.encode("utf-8", "surrogatepass")),
            **{name: findings[name] for name in STAGES},
            decided_by=self.decided_by,
            judge_behaviour=self.behaviour,
            judge_language=self.language,
            leak=self.leak,
            tricks=_tricks(self.runs),
            attempts=tuple(attempts),
            retried=tuple(run.retried for run in self.runs if run.retried),
            trades=len(run.trades) if run is not None and findings["backtest"].passed else None,
            earned=None if honest is None else earned(self.bars, honest, self.task.cash),
            usage=EvaluationUsage(runs=self.run_count, cpu_s=self.cpu_s),
            isolation=f"{tier.level}{missing}" if self.runs else "",
            drawn_again=() if self.judging is None else self.judging.again,
            immaterial=() if self.judging is None else self.judging.immaterial,
        )

    def _draw(self, draw: Callable[..., Judging]) -> Judging:
        """Return the markets that ``draw`` returns, or the only market with stored bars.

        If the reference trades on no draw, the home market is its first draw.
        """
        if self.stored_bars is not None:
            return Judging(markets=(JudgedMarket(bars=self.stored_bars, events=(), trades=0),))
        judging = draw(self.executor, self.task, self.framework, self.rules, self.draws)
        if judging.markets:
            return judging
        bars = drawn_bars(self.task, self.task.market, self.rules.secret, 0, 0)
        return replace(judging, markets=(JudgedMarket(bars=bars, events=(), trades=0),))

    def _run_on_remaining_markets(self) -> None:
        """Run the program on every judged market that it has not run on yet."""
        self.judging = self._draw(SHARED_DRAWS.all_markets)
        # One call of _run may return fewer runs than markets.
        while len(self.runs) < len(self.judging.markets):
            remaining = self.judging.markets[len(self.runs) :]
            self.runs += self._run([market.bars for market in remaining])

    def _run(self, tables: list[TaskBars], *, fed: bool = True) -> list[Backtest]:
        """Return the program's backtests on tables of bars, in order.

        With ``fed``, a Backtrader program gets its bars one at a time. If one child process runs
        all tables and fails, the list contains only the first backtest.
        """
        terms, limits, steps = terms_of(self.task), self.config.limits, self.rules.steps
        job = BacktestJob(
            source=self.source, bars=self.bars, terms=terms, limits=limits, steps=steps
        )
        jobs = [replace(job, bars=bars) for bars in tables]
        if self.framework == "backtrader" and fed:
            if self.short_draws:
                runs = fed_together(self.executor, jobs)
            else:
                runs = list(fed_backtests(self.executor, jobs))
        elif self.framework == "frame" and self.config.leak:
            plans = [self._plan(len(self.grown) + number) for number in range(len(jobs))]
            grown = run_grown(self.executor, jobs, plans)
            self.grown += grown
            runs = [growth.run for growth in grown]
        else:
            programs = [(self.source, bars) for bars in tables]
            results = run_programs(
                self.executor,
                self.task,
                programs,
                self.framework,
                limits=limits,
                rules=self.rules,
            )
            runs = list(results)
        self.run_count += len(runs)
        self.cpu_s += sum(run.usage.cpu_s for run in runs)
        return runs


def wants_language_judge(evaluation: Evaluation) -> bool:
    """Return whether a program reached the judge stage and has no verdict of the language judge."""
    if evaluation.judge.status == "not_reached":
        return False
    verdict = evaluation.judge_language
    return verdict is None or verdict.status == "not_scored"


def judge_case(
    task: CodeTask, source: str, *, framework: Framework, wording: Wording = "formal"
) -> JudgeCase:
    """Return the language judge's input: the task's wording and the program."""
    description = task.text(wording, framework) or task.text("formal", framework) or task.formal
    return JudgeCase(
        task_id=task.id,
        description=description,
        source=source,
        framework=framework,
        indicators=task.expect.indicators,
        direction=task.expect.direction,
    )


def with_language(
    evaluation: Evaluation, verdict: LanguageVerdict, config: EvaluateConfig | None
) -> Evaluation:
    """Return the evaluation with a language judge's verdict and the new finding of the stage."""
    config = config or EvaluateConfig()
    stage, decided_by = _decide(evaluation.judge_behaviour, verdict, config.decides)
    return msgspec.structs.replace(
        evaluation, judge_language=verdict, judge=stage, decided_by=decided_by
    )


def compile_failure(run: Backtest) -> Finding | None:
    """Return the finding of a failure to compile that only a run shows, or None.

    The child's parser may refuse the source, or the program may not define exactly one strategy
    when it runs.
    """
    failure = run.failure
    if isinstance(failure, ChildClaim) and failure.kind == "no_entry":
        return failed(failure.message, "no_strategy", claimed=True)
    if isinstance(failure, SyntaxFault):
        return failed(failure.text, "SyntaxError", line=failure.line)
    if isinstance(failure, Crashed) and failure.stage == "parse":
        return failed(failure.text, kind_of(failure))
    return None


def backtest_stage(run: Backtest, *, strict: bool = False) -> Finding:
    """Return a finding that passes if a run finished.

    ``error_class`` of a failure is the exception that the program reported, or the name of the
    host's verdict. ``strict`` fails the run if the kernel refused any call.
    """
    failure = run.failure
    if isinstance(failure, ChildClaim):
        where = f" (line {failure.line})" if failure.line is not None else ""
        text = f"{failure.error}: {failure.message}{where}"[:_LONGEST]
        return failed(text, failure.error, line=failure.line, claimed=True)
    if failure is not None:
        return failed(failure.text[:_LONGEST], kind_of(failure))
    if strict and run.attempts:
        first = run.attempts[0]
        return failed(
            f"a call was refused, and strict was asked for: {first.text}", f"{first.family}_attempt"
        )
    return PASSED


def trade_stage(run: Backtest) -> Finding:
    """Return a finding that passes if a run opened a trade."""
    if run.trades:
        return PASSED
    orders = run.orders.orders
    if not orders:
        return failed("no trade was opened: no order was given", "no_order")
    return failed(f"no trade was opened: {orders} orders were given and none was filled", "no_fill")


def earned(bars: TaskBars, run: Backtest, cash: float) -> Earned:
    """Return the measures of a run and of buy and hold on the same bars.

    ``cash`` is the starting capital.
    """
    equity = run.equity
    per_year = SESSIONS_PER_YEAR[bars.clock] * bars_per_session(bars.clock, bars.timeframe)
    hold = np.mean([feed["close"] / feed["open"][0] for feed in bars.feeds.values()], axis=0)
    paths = []
    for path in (np.concatenate([[cash], equity]), np.concatenate([[1.0], hold])):
        with np.errstate(invalid="ignore", divide="ignore"):
            total_return = cumulative_return(path)
            drawdown = max_drawdown(path)
            ratio = sharpe(simple_returns(path), per_year)
        paths.append(
            ValuePath(
                total_return=_finite(total_return),
                max_drawdown=_finite(drawdown),
                sharpe=_finite(ratio),
            )
        )
    final = float(equity[-1]) if equity.size else cash
    return Earned(
        market=bars.name,
        strategy=paths[0],
        hold=paths[1],
        trades=len(run.trades),
        final_value=final,
    )


def _finite(measure: Floats) -> float | None:
    value = float(measure)
    return value if math.isfinite(value) else None


def _decide(
    behaviour: BehaviourVerdict | None, language: LanguageVerdict | None, decides: Decides
) -> tuple[Finding, str]:
    """Return the finding of the judge stage, and the name of the judge that decided."""
    verdicts = (("behaviour", behaviour), ("language", language))
    findings = {judge: _verdict_finding(verdict) for judge, verdict in verdicts}
    if decides == "reference-first":
        decides = "language" if findings["behaviour"].status == "not_scored" else "behaviour"
        undecided = decides == "language" and findings["language"].status == "not_scored"
        if undecided and behaviour is not None:
            return not_scored(f"{behaviour.reason}; {findings['language'].reason}"), "language"
    if decides != "both":
        return findings[decides], decides
    rejections = [finding.reason for finding in findings.values() if finding.failed]
    if rejections:
        return failed("; ".join(rejections), "does_not_match"), "both"
    undecided_reasons = [
        finding.reason for finding in findings.values() if finding.status == "not_scored"
    ]
    if undecided_reasons:
        return not_scored("; ".join(undecided_reasons)), "both"
    return PASSED, "both"


def _verdict_finding(verdict: BehaviourVerdict | LanguageVerdict | None) -> Finding:
    if verdict is None:
        return not_scored("no judge was asked")
    if verdict.status == "not_scored":
        return not_scored(verdict.reason)
    if verdict.status == "passed":
        return PASSED
    return failed(verdict.reason, "does_not_match")


def _tricks(runs: list[Backtest]) -> tuple[Trick, ...]:
    """Return the tricks of all runs, one for each name, sorted by name.

    If several runs have a trick of the same name, the first run's trick is returned.
    """
    tricks: dict[str, Trick] = {}
    for run in reversed(runs):
        tricks |= {trick.name: trick for trick in run.tricks}
    return tuple(tricks[name] for name in sorted(tricks))


_RUNS: Final = {"compile": "it does not compile", "backtest": "it did not run to its end"}
_TRADES: Final = {**_RUNS, "trade": "it opened no trade", "trick": "a trick was found"}

CHECKS: Final[tuple[Check[_Program], ...]] = (
    Check(
        "compile", "Does it compile, and define exactly what was asked for?", _Program.parse_and_run
    ),
    Check(
        "backtest",
        "Does it run to its end?",
        lambda program: backtest_stage(program.home_run, strict=program.strict),
        {"compile": _RUNS["compile"]},
    ),
    Check("trade", "Does it open a trade?", lambda program: trade_stage(program.home_run), _RUNS),
    Check(
        "trick",
        "Does it play by the rules?",
        _Program.check_tricks,
        {**_RUNS, "trade": _TRADES["trade"]},
    ),
    Check("lookahead", "Does no decision depend on later bars?", _Program.check_lookahead, _TRADES),
    Check(
        "judge",
        "Is it the strategy of the task?",
        _Program.check_judge,
        {**_TRADES, "lookahead": "it was found to look ahead"},
    ),
)
"""The checks of a program, in order.

No check runs after a failed check, because each check needs all earlier checks.
"""

QUESTIONS: Final = {check.name: check.question for check in CHECKS}
