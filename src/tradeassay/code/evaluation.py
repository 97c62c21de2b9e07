"""One program on one task: compile, run, trade, look-ahead, judges; what each check found, and what it earned."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.code.backtrader import (
    POINTERS,
    SCORED_FED,
    Backtest,
    BacktestJob,
    Trick,
    fed_backtests,
    fed_together,
    terms_of,
)
from tradeassay.code.bars import SESSIONS_PER_YEAR, TaskBars, bars_per_session
from tradeassay.code.checks import (
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
from tradeassay.code.judges.behaviour import judge_decisions
from tradeassay.code.judges.decisions import (
    CLOSENESS,
    BehaviourVerdict,
    DecisionsConfig,
    LanguageVerdict,
    closeness,
    decision_events,
)
from tradeassay.code.judges.language import JudgeCase, JudgeClient, LanguageJudgeConfig, judge_dialogue
from tradeassay.code.judges.markets import SHARED_DRAWS, DrawConfig, DrawnAgain, JudgedMarket, Judging, drawn_bars
from tradeassay.code.lookahead.grow import LeakRecord
from tradeassay.code.lookahead.grow_frames import (
    AWAY,
    HOME,
    REWARDED,
    SHORT,
    GrownRun,
    GrowthPlan,
    frame_lookahead,
    run_grown,
)
from tradeassay.code.lookahead.trace import first_difference
from tradeassay.code.program_source import CHEATS, asks_length, check_compiles, terms_set
from tradeassay.code.running import Rules, reference_of, rules_of, run_programs
from tradeassay.code.task import CodeTask, Framework, Wording
from tradeassay.core.drive import drive
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import seed_from, sha256_bytes
from tradeassay.core.measure import plain_sum
from tradeassay.metrics import cumulative_return, max_drawdown, sharpe, simple_returns
from tradeassay.sandbox import ChildClaim, Crashed, JobExecutor, JobLimits, SyntaxFault, kind_of

_LONGEST: Final = 4_000


class ValuePath(msgspec.Struct, frozen=True, kw_only=True):
    """One value path: fractions over the whole run, and the yearly Sharpe ratio of its bars (risk-free rate 0).
    None where a number is not defined: a path that never moves has no Sharpe ratio.
    """

    total_return: float | None
    max_drawdown: float | None
    sharpe: float | None


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """The strategy on its home market after commission; equal-weight buy and hold from the first open, without."""

    market: str
    strategy: ValuePath
    hold: ValuePath
    trades: int
    final_value: float


StageName = Literal["compile", "backtest", "trade", "lookahead", "judge"]
STAGES: Final[tuple[StageName, ...]] = ("compile", "backtest", "trade", "lookahead", "judge")
"""In the order in which they are tried. Four are nested; ``lookahead`` is separate and voids what it convicts."""

Outcome = Literal["solved", "trick", "compile", "backtest", "trade", "lookahead", "judge", "not_scored"]


class EvaluateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to evaluate a program. A protocol yields it and is sent the :class:`Evaluation`."""

    task: str
    source: str
    framework: Framework = "backtrader"
    turn: int = 1


class EvaluationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation cost in the sandbox: runs of the program and their processor seconds. Runs of the
    look-ahead check are counted; their processor time is known only in part and is left out.
    """

    runs: int = 0
    cpu_s: float = 0.0


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole record of one program on one task. JSON-able; equal programs get equal records, usage aside.
    ``judge`` is the stage as it counts, by the rule in ``decided_by``; ``judge_behaviour`` and ``judge_language``
    are both verdicts in full. ``earned`` is shown and never scored. ``attempts`` are the calls that the kernel
    refused on any market, ``retried`` says why runs were made a second time. ``walls`` is the level of isolation
    that it ran behind and what was missing there, ``drawn_again`` are markets that were set aside, and
    ``immaterial`` names constants of the task that the judged markets do not exercise.
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
    walls: str = ""
    drawn_again: tuple[DrawnAgain, ...] = ()
    immaterial: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Where it ended. A grave trick comes before everything else: what it touched cannot be trusted."""
        if self.grave_tricks:
            return "trick"
        for name in STAGES:
            if self.stage(name).failed:
                return name
        return "solved" if all(self.stage(name).passed for name in STAGES) else "not_scored"

    @property
    def unopposed(self) -> bool:
        """Whether it runs, trades, was not seen to look ahead, kept its account's terms, and nobody judged it."""
        passed = self.outcome == "not_scored" and all(self.stage(name).passed for name in STAGES[:-1])
        return passed and not self.changed_terms

    @property
    def verdict(self) -> str:
        """Where it ended, in the words of the command line."""
        if self.unopposed:
            return "passed, not scored"
        if self.outcome == "not_scored" and self.changed_terms:
            return "not passed: it changes the terms of the account"
        return {"solved": "passed", "not_scored": "not scored"}.get(self.outcome, f"failed ({self.outcome})")

    @property
    def changed_terms(self) -> bool:
        """Whether its account is not that of its orders on these terms, or is filled at prices known before."""
        return any(trick.name in ("account-mismatch", "cheat-fills") for trick in self.tricks)

    @property
    def grave_tricks(self) -> tuple[Trick, ...]:
        return tuple(trick for trick in self.tricks if trick.grave)

    @property
    def score(self) -> float | None:
        """1 when solved, 0 when not, None when it could not be decided."""
        outcome = self.outcome
        return None if outcome == "not_scored" else float(outcome == "solved")

    @property
    def reason(self) -> str:
        outcome = self.outcome
        if outcome == "trick":
            return "; ".join(f"{trick.name}: {trick.detail}".rstrip(": ") for trick in self.grave_tricks)
        if outcome == "not_scored":
            open_stages = [stage for name in STAGES if (stage := self.stage(name)).status == "not_scored"]
            return "; ".join(stage.reason for stage in open_stages)
        return "" if outcome == "solved" else self.stage(outcome).reason

    @property
    def judges_disagree(self) -> bool:
        """Whether both judges reached a verdict, and not the same one."""
        said = {v.status for v in (self.judge_behaviour, self.judge_language) if v is not None}
        return said == {"passed", "failed"}

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of :mod:`tradeassay.code.checks`; None when solved or not scored."""
        by_outcome: dict[str, FailureClass] = {
            "trick": "trick",
            "compile": "compilation",
            "trade": "signals-never-activate",
            "lookahead": "look-ahead",
            "judge": "does-not-match",
        }
        outcome = self.outcome
        return classify_run(self.backtest) if outcome == "backtest" else by_outcome.get(outcome)

    def stage(self, name: str) -> Finding:
        if name not in STAGES:
            raise KeyError(name)
        found: Finding = getattr(self, name)
        return found


Decides = Literal["reference-first", "behaviour", "language", "both"]


class EvaluateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is evaluated. ``decides`` says which judge decides the judge stage: ``reference-first`` is the
    behavioural one, or the language judge where a task has no reference; ``both`` requires both. ``leak`` False
    leaves the look-ahead check out; the stage is then not scored, and nothing can be solved.
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
    rules: Rules | None = None,
) -> Evaluation:
    """Return everything there is to say about a program; a given ``judge`` is asked if it gets that far."""
    config = config or EvaluateConfig()
    found = examine(task, source, executor=executor, config=config, framework=framework, rules=rules)
    return found if judge is None else ask_judge(found, judge, task, source, config)


def ask_judge(
    found: Evaluation, judge: JudgeClient, task: CodeTask, source: str, config: EvaluateConfig
) -> Evaluation:
    if not wants_language_judge(found):
        return found
    case = judge_case(task, source, framework=found.framework)
    dialogue = judge_dialogue(case, judge.prompts, judge=judge.name, config=config.language)
    return with_language(found, drive(dialogue, judge.ask), config)


def examine(
    task: CodeTask,
    source: str,
    *,
    executor: JobExecutor,
    config: EvaluateConfig | None = None,
    framework: Framework = "backtrader",
    rules: Rules | None = None,
    strict: bool = False,
    home: TaskBars | None = None,
    unjudged: bool = False,
) -> Evaluation:
    """Return an evaluation without the language judge. ``strict`` makes every call that the kernel refused a
    failure, ``home`` are bars to run a task without a reference on; where it is ``unjudged`` nobody judges, and
    only the beginning of the home market is run.
    """
    config, rules = config or EvaluateConfig(), rules or rules_of(None)
    program = _Program(task, source, executor, config, framework, rules, given=home)
    program.strict, program.unjudged = strict, unjudged
    return program.examined()


def with_own_terms(found: Evaluation, task: CodeTask, source: str) -> Evaluation:
    """Return an evaluation that says which terms of the account a program names, and what they are here."""
    own = terms_set(source)
    named = ", ".join(f"{name} in line {line}" for name, line in own.items())
    here = f"cash {task.cash:,.0f}, commission {task.commission:.2%} and fills at the next open"
    name, detail = "cheat-fills" if CHEATS & own.keys() else "own-terms", f"it sets {named}; examined with {here}"
    one = Trick(name=name, detail=detail, grave=False)
    return msgspec.structs.replace(found, tricks=(*found.tricks, one)) if own else found


def examine_closely(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    framework: Framework,
    rules: Rules,
    config: EvaluateConfig,
    draws: DrawConfig,
) -> tuple[Evaluation, dict[str, float]]:
    """Return an evaluation on the markets of ``draws``, and how near the program comes to the reference: the parts
    of :func:`~tradeassay.code.judges.decisions.closeness`, averaged over the markets; none where no judge was
    reached, or the judge is content.
    """
    program = _Program(task, source, executor, config, framework, rules, draws)
    found = program.examined()
    unjudged = found.judge_behaviour is None or found.judge_behaviour.status == "not_scored"
    if program.judging is None or unjudged or found.judge.passed:
        return found, {}
    parts = [
        closeness(decision_events(run, market.bars, task.cash), market.events, market.bars.rows, draws.decisions)
        if run.ok
        else dict.fromkeys(CLOSENESS, 0.0)
        for run, market in zip(program.runs, program.judging.markets, strict=True)
    ]
    return found, {name: float(np.mean([part[name] for part in parts])) for name in CLOSENESS}


@dataclass(eq=False)
class _Program:
    """What is known about one program so far. Mutable, and discarded when the record is written."""

    task: CodeTask
    source: str
    executor: JobExecutor
    config: EvaluateConfig
    framework: Framework
    rules: Rules
    draws: DrawConfig = DRAWS
    unjudged: bool = False
    strict: bool = False
    given: TaskBars | None = None
    judging: Judging | None = None
    fed_failure: str = ""
    runs: list[Backtest] = field(default_factory=list)
    grown: list[GrownRun] = field(default_factory=list)
    spent: int = 0
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
    def home(self) -> Backtest:
        return self.runs[0]

    @property
    def bars(self) -> TaskBars:
        assert self.judging is not None
        return self.judging.markets[0].bars

    def compiles(self) -> Finding:
        """Read the source, then run it, fed where its framework can be fed."""
        found = check_compiles(self.source, self.framework, self.rules.longest_source)
        if not found.passed:
            return found
        brief = self.draws.shortest is not None and not self.unjudged
        self.judging = self._drawn(SHARED_DRAWS.of if brief else SHARED_DRAWS.home)
        if self.unjudged:
            self.judging = replace(self.judging, markets=(self.judging.markets[0].brief(),))
        self.runs = self._run([market.bars for market in self.judging.markets[: None if brief else 1]])
        refused = compile_failure(self.home)
        if self.framework != "backtrader" or refused is not None:
            return refused or found
        # It broke, reached for later bars, or makes no trade and asks how many there are; one that trades may ask.
        reached = POINTERS & {trick.name for trick in self.home.tricks}
        if self.home.ok and not reached and (self.home.trades or not asks_length(self.source)):
            return found
        # With all bars at hand it gains nothing; one that trades only then has looked ahead, and is told so.
        (whole,) = self._run([self.bars], fed=False)
        if whole.ok and self.home.failure is not None:
            self.fed_failure = f"fed bar by bar it breaks: {self.home.failure.text}"
        elif whole.ok and (differs := first_difference(self.home.trace(), whole.trace(), self.bars.rows, 1e-9)):
            row, fed, held = differs
            self.fed_failure = f"on bar {row} it decides {fed}, with all bars at hand {held}"
        self.runs = [whole] if self.fed_failure else self.runs
        return compile_failure(self.home) or found

    def looks_ahead(self) -> Finding:
        """Fed bar by bar nothing can look ahead; programs on frames are grown on every judged market."""
        if not self.config.leak:
            return not_scored("the look-ahead check was left out")
        if self.fed_failure:
            names = "".join(f"; {trick.name}: {trick.detail}" for trick in self.home.tricks if not trick.grave)
            reason = f"it depends on later bars: {self.fed_failure}{names}"
            self.leak = LeakRecord(verdict="leaky", reason=reason, runs=1, bars=self.bars.rows, fed="differs")
            return failed(reason, "look_ahead")
        if self.framework == "backtrader":
            self.leak = LeakRecord(verdict="clean", reason=SCORED_FED, runs=1, bars=self.bars.rows, fed="same")
            return PASSED
        if not self.unjudged:
            self._run_away()
        plans = [self._plan(number) for number in range(len(self.grown))]
        found, self.leak = frame_lookahead(self.executor, self.grown, plans)
        self.spent += self.leak.runs
        return found

    def _plan(self, number: int) -> tuple[GrowthPlan, np.random.Generator]:
        plan = SHORT if self.unjudged else AWAY if number else HOME
        if self.draws.shortest is not None and not self.unjudged:
            assert self.judging is not None
            # An order that is filled on a bar was decided on the row before, not yet on the one before that, and
            # must stay decided on the next.
            fills = {event.bar for event in self.judging.markets[number].events}
            hints = sorted({bar - before for bar in fills for before in range(3)})
            plan = msgspec.structs.replace(REWARDED, hints=tuple(hints))
        return plan, np.random.default_rng(seed_from(self.rules.secret, "growing", self.task.id, number))

    def judged(self) -> Finding:
        """Compare decisions with the reference's on every market, unless nobody wants the judge's word."""
        if self.unjudged:
            return not_scored("no judge was asked for")
        self.judging = self._drawn(SHARED_DRAWS.of)
        self.language = LanguageVerdict(status="not_scored", reason="no language judge was asked")
        markets = len(self.judging.markets)
        unjudged = f"the reference trades on {markets} markets, {self.draws.markets} are needed"
        if not reference_of(self.task, self.framework):
            unjudged, markets = "the task comes with no reference program", 0
        if markets < self.draws.markets:
            self.behaviour = BehaviourVerdict(status="not_scored", reason=unjudged)
        else:
            self._run_away()
            need = DECISIONS.threshold if self.task.agreement is None else self.task.agreement
            rule = msgspec.structs.replace(DECISIONS, threshold=need)
            self.behaviour = judge_decisions(self.task, self.judging, self.runs, rule)
        if any(trick.grave for trick in _tricks(self.runs)):
            return not_reached("a trick was found on another market")
        found, self.decided_by = _decide(self.behaviour, self.language, self.config.decides)
        return found

    def examined(self) -> Evaluation:
        """Ask every check, and write down what they found."""
        found = run_checks(CHECKS, self)
        run = self.runs[0] if self.runs else None
        tried = dict.fromkeys(attempt.text for run in self.runs for attempt in run.attempts)
        tier = self.executor.tier
        missing = f" (missing: {'; '.join(tier.missing)})" if tier.missing else ""
        honest = run if found["trick"].passed else None
        return Evaluation(
            task=self.task.id,
            framework=self.framework,
            source_sha256=sha256_bytes(self.source.encode("utf-8", "surrogatepass")),
            **{name: found[name] for name in STAGES},
            decided_by=self.decided_by,
            judge_behaviour=self.behaviour,
            judge_language=self.language,
            leak=self.leak,
            tricks=_tricks(self.runs),
            attempts=tuple(tried),
            retried=tuple(run.retried for run in self.runs if run.retried),
            trades=len(run.trades) if run is not None and found["backtest"].passed else None,
            earned=None if honest is None else earned(self.bars, honest, self.task.cash),
            usage=EvaluationUsage(runs=self.spent, cpu_s=self.cpu_s),
            walls=f"{tier.level}{missing}" if self.runs else "",
            drawn_again=() if self.judging is None else self.judging.again,
            immaterial=() if self.judging is None else self.judging.immaterial,
        )

    def _drawn(self, draw: Callable[..., Judging]) -> Judging:
        """Draw markets: home first, the others for programs that get so far. Given bars are the only market."""
        if self.given is not None:
            return Judging(markets=(JudgedMarket(bars=self.given, events=(), trades=0),))
        found = draw(self.executor, self.task, self.framework, self.rules, self.draws)
        if found.markets:
            return found
        bars = drawn_bars(self.task, self.task.market, self.rules.secret, 0, 0)
        return replace(found, markets=(JudgedMarket(bars=bars, events=(), trades=0),))

    def _run_away(self) -> None:
        self.judging = self._drawn(SHARED_DRAWS.of)
        while len(self.runs) < len(self.judging.markets):
            self.runs += self._run([market.bars for market in self.judging.markets[len(self.runs) :]])

    def _run(self, tables: list[TaskBars], *, fed: bool = True) -> list[Backtest]:
        """Run the program; where a child that was to see all tables fails, the first run may come alone."""
        terms, limits, steps = terms_of(self.task), self.config.limits, self.rules.steps
        job = BacktestJob(source=self.source, bars=self.bars, terms=terms, limits=limits, steps=steps)
        jobs = [replace(job, bars=bars) for bars in tables]
        if self.framework == "backtrader" and fed:
            together = self.draws.shortest is not None and not self.unjudged
            done = fed_together(self.executor, jobs) if together else list(fed_backtests(self.executor, jobs))
        elif self.framework == "frame" and self.config.leak:
            plans = [self._plan(len(self.grown) + number) for number in range(len(jobs))]
            grown = run_grown(self.executor, jobs, plans)
            self.grown += grown
            done = [one.run for one in grown]
        else:
            wanted = [(self.source, bars) for bars in tables]
            done = list(
                run_programs(self.executor, self.task, wanted, self.framework, limits=limits, rules=self.rules)
            )
        self.spent += len(done)
        self.cpu_s += plain_sum(run.usage.cpu_s for run in done)
        return done


def wants_language_judge(found: Evaluation) -> bool:
    """Return whether a program reached the judges and the language judge has not spoken yet."""
    return found.judge.status != "not_reached" and (
        found.judge_language is None or found.judge_language.status == "not_scored"
    )


def judge_case(task: CodeTask, source: str, *, framework: Framework, wording: Wording = "formal") -> JudgeCase:
    description = task.text(wording, framework) or task.text("formal", framework) or task.formal
    return JudgeCase(
        task_id=task.id,
        description=description,
        source=source,
        framework=framework,
        indicators=task.expect.indicators,
        direction=task.expect.direction,
    )


def with_language(found: Evaluation, verdict: LanguageVerdict, config: EvaluateConfig | None) -> Evaluation:
    config = config or EvaluateConfig()
    stage, by = _decide(found.judge_behaviour, verdict, config.decides)
    return msgspec.structs.replace(found, judge_language=verdict, judge=stage, decided_by=by)


def compile_failure(run: Backtest) -> Finding | None:
    """A fault of the stage before that only a run shows: no strategy after all, or a parser that refused"""
    failure = run.failure
    if isinstance(failure, ChildClaim) and failure.kind == "no_entry":
        return failed(failure.message, "no_strategy", claimed=True)
    if isinstance(failure, SyntaxFault):
        return failed(failure.text, "SyntaxError", line=failure.line)
    if isinstance(failure, Crashed) and failure.stage == "parse":
        return failed(failure.text, kind_of(failure))
    return None


def backtest_stage(run: Backtest, *, strict: bool = False) -> Finding:
    """Return whether a run finished; ``error_class`` is the exception that it claims, else the host's finding."""
    failure = run.failure
    if isinstance(failure, ChildClaim):
        where = f" (line {failure.line})" if failure.line is not None else ""
        text = f"{failure.error}: {failure.message}{where}"[:_LONGEST]
        return failed(text, failure.error, line=failure.line, claimed=True)
    if failure is not None:
        return failed(failure.text[:_LONGEST], kind_of(failure))
    if strict and run.attempts:
        first = run.attempts[0]
        return failed(f"a call was refused, and strict was asked for: {first.text}", f"{first.family}_attempt")
    return PASSED


def trade_stage(run: Backtest) -> Finding:
    if run.trades:
        return PASSED
    orders = run.orders.orders
    what = f"{orders} orders were given and none was filled" if orders else "no order was given"
    return failed(f"no trade was opened: {what}", "no_fill" if orders else "no_order")


def earned(bars: TaskBars, run: Backtest, cash: float) -> Earned:
    equity = run.equity
    per_year = SESSIONS_PER_YEAR[bars.clock] * bars_per_session(bars.clock, bars.timeframe)
    hold = np.mean([feed["close"] / feed["open"][0] for feed in bars.feeds.values()], axis=0)
    paths = []
    for path in (np.concatenate([[cash], equity]), np.concatenate([[1.0], hold])):
        with np.errstate(invalid="ignore", divide="ignore"):
            numbers = (cumulative_return(path), max_drawdown(path), sharpe(simple_returns(path), per_year))
        known = (float(number) if math.isfinite(number) else None for number in numbers)
        paths.append(ValuePath(**dict(zip(ValuePath.__struct_fields__, known, strict=True))))
    final = float(equity[-1]) if equity.size else cash
    return Earned(market=bars.name, strategy=paths[0], hold=paths[1], trades=len(run.trades), final_value=final)


def _decide(
    behaviour: BehaviourVerdict | None, language: LanguageVerdict | None, decides: Decides
) -> tuple[Finding, str]:
    stages: dict[str, Finding] = {}
    for by, verdict in (("behaviour", behaviour), ("language", language)):
        if verdict is None or verdict.status == "not_scored":
            stages[by] = not_scored(verdict.reason if verdict is not None else "no judge was asked")
        else:
            stages[by] = PASSED if verdict.status == "passed" else failed(verdict.reason, "does_not_match")
    if decides == "reference-first":
        decides = "language" if stages["behaviour"].status == "not_scored" else "behaviour"
        if decides == "language" and stages["language"].status == "not_scored" and behaviour is not None:
            return not_scored(f"{behaviour.reason}; {stages['language'].reason}"), "language"
    if decides != "both":
        return stages[decides], decides
    if against := [part.reason for part in stages.values() if part.failed]:
        return failed("; ".join(against), "does_not_match"), "both"
    silent = [part.reason for part in stages.values() if part.status == "not_scored"]
    return (not_scored("; ".join(silent)) if silent else PASSED), "both"


def _tricks(runs: list[Backtest]) -> tuple[Trick, ...]:
    found = {trick.name: trick for run in reversed(runs) for trick in run.tricks}
    return tuple(found[name] for name in sorted(found))


_RUNS: Final = {"compile": "it does not compile", "backtest": "it did not run to its end"}
_TRADES: Final = {**_RUNS, "trade": "it opened no trade", "trick": "a trick was found"}

CHECKS: Final[tuple[Check[_Program], ...]] = (
    Check("compile", "Does it compile, and define exactly what was asked for?", _Program.compiles),
    Check(
        "backtest",
        "Does it run to its end?",
        lambda one: backtest_stage(one.home, strict=one.strict),
        {"compile": _RUNS["compile"]},
    ),
    Check("trade", "Does it open a trade?", lambda one: trade_stage(one.home), _RUNS),
    Check(
        "trick",
        "Does it play by the rules?",
        lambda one: failed(one.home.grave[0].detail, one.home.grave[0].name) if one.home.grave else PASSED,
        {**_RUNS, "trade": _TRADES["trade"]},
    ),
    Check("lookahead", "Does no decision depend on later bars?", _Program.looks_ahead, _TRADES),
    Check(
        "judge",
        "Is it the strategy of the task?",
        _Program.judged,
        {**_TRADES, "lookahead": "it was found to look ahead"},
    ),
)
"""What is asked about a program, in order. All but the last are stages: nothing is asked after one that failed."""

QUESTIONS: Final = {check.name: check.question for check in CHECKS}
