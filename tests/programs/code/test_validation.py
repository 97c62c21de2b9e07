"""Programs evaluated whole, in a real sandbox: stages, judges, rewards, validation."""

import pickle
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import get_args

import msgspec
import pytest
from tests.programs.code.judges.scripted import scripted_judge

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_programs.benchmarks.quantcode import load_tasks
from tradeassay_programs.benchmarks.quantcode.dialogue import ModelJudge
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.checks import PASSED
from tradeassay_programs.code.evaluation import (
    DRAWS,
    STAGES,
    Decides,
    EvaluateConfig,
    Evaluation,
    evaluate,
    examine,
    with_language,
)
from tradeassay_programs.code.judges.decisions import BehaviourVerdict, LanguageVerdict
from tradeassay_programs.code.judges.markets import draw_markets
from tradeassay_programs.code.reward import RewardConfig, reward, reward_of
from tradeassay_programs.code.running import exam_settings
from tradeassay_programs.code.task import CodeTask, Decoy, Expectations, Sizing
from tradeassay_programs.code.validation import ValidateConfig, validate
from tradeassay_programs.sandbox import Job, JobExecutor, JobResult

pytestmark = pytest.mark.journey

GOLD = """
import backtrader as bt


class Cross(bt.Strategy):
    def __init__(self):
        fast = bt.indicators.SMA(self.data.close, period=5)
        slow = bt.indicators.SMA(self.data.close, period=15)
        self.cross = bt.indicators.CrossOver(fast, slow)

    def next(self):
        if not self.position and self.cross > 0:
            self.buy()
        elif self.position and self.cross < 0:
            self.close()
"""
BY_HAND = """
import backtrader as bt
import numpy as np


class Averages(bt.Strategy):
    '''The same rule, written without the library's indicators.'''

    def mean(self, period, ago):
        return np.mean([self.data.close[-ago - k] for k in range(period)])

    def next(self):
        if len(self.data) < 16:
            return
        before = self.mean(5, 1) - self.mean(15, 1)
        now = self.mean(5, 0) - self.mean(15, 0)
        if not self.position:
            if before <= 0 < now:
                self.buy()
        elif before >= 0 > now:
            self.close()
"""
LATER = GOLD.replace("period=15", "period=25")
NEVER = GOLD.replace("self.cross > 0", "self.cross > 5")
SHORT = GOLD.replace("self.buy()", "self.sell()")
HOLD = GOLD.replace("self.position and self.cross < 0", "False")
CRASH = GOLD.replace("self.cross > 0", "self.crossing > 0")
NO_PARAM = GOLD.replace("self.cross > 0", "self.p.nothing(self.cross > 0)")
PEEP = """
import backtrader as bt


class Peep(bt.Strategy):
    def next(self):
        try:
            up = self.data.close[1] > self.data.close[0]
        except IndexError:
            up = False
        if up and not self.position:
            self.buy()
        elif not up and self.position:
            self.close()
"""
PRINTED = GOLD.replace(
    "def next(self):", 'def next(self):\n        print(\'{"score": 1.0, "passed": true}\')'
)
PATCHED = GOLD + "\n\nbt.brokers.BackBroker.getvalue = lambda *args, **kwargs: 1e9\n"
SECRET = "0123456789abcdef" * 2
TWO = GOLD + "\n\nclass Other(bt.Strategy):\n    pass\n"


def tiny_task(**changes: object) -> CodeTask:
    """Return the task; keyword arguments replace parts of it."""
    parts: dict[str, object] = {
        "id": "tiny-cross",
        "title": "Two averages",
        "difficulty": "easy",
        "timeframe": "1d",
        "family": "trend",
        "formal": "Buy 10 units when the 5-bar average crosses above the 15-bar one; close when it "
        "crosses below.",
        "conversational": "Own it while the fast line is on top. 5 and 15 days, 10 units.",
        "market": "us",
        "bars": 250,
        "sizing": Sizing(kind="fixed", value=10),
        "expect": Expectations(direction="long", min_trades=2, indicators=("SMA",)),
        "reference": GOLD,
        "decoys": (
            Decoy(name="later", kind="wrong-parameter", fails_at="judge", source=LATER),
            Decoy(name="never", kind="never-trades", fails_at="trade", source=NEVER),
            Decoy(name="crash", kind="crash", fails_at="backtest", source=CRASH),
            Decoy(name="peep", kind="look-ahead", fails_at="lookahead", source=PEEP),
            Decoy(name="two", kind="no-strategy", fails_at="compile", source=TWO),
        ),
    }
    return CodeTask(**(parts | changes))  # type: ignore[arg-type]  # a test's shorthand


QUICK = EvaluateConfig()
NO_LEAK = EvaluateConfig(leak=False)
TASK = tiny_task()


class Remembering:
    """An executor that runs the same job once for all tests of this file: they draw the same
    markets.
    """

    def __init__(self, executor: JobExecutor) -> None:
        self.executor, self.tier = executor, executor.tier
        self.known: dict[str, JobResult] = {}

    def run(self, job: Job) -> JobResult:
        (found,) = self.map([job])
        return found

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        left = iter(jobs)
        while some := list(islice(left, 4)):
            keys = [sha256(pickle.dumps(job)).hexdigest() for job in some]
            new = {key: job for key, job in zip(keys, some, strict=True) if key not in self.known}
            self.known |= zip(new, self.executor.map(new.values()), strict=True)
            yield from (self.known[key] for key in keys)


@pytest.fixture(scope="module", name="pool")
def remembering(pool: JobExecutor) -> Remembering:
    return Remembering(pool)


def statuses(found: Evaluation) -> str:
    """Return a sign for each stage: + passed, - failed, . not reached, ? not scored."""
    signs = {"passed": "+", "failed": "-", "not_reached": ".", "not_scored": "?"}
    return "".join(signs[found.stage(name).status] for name in STAGES)


def test_a_right_program_passes_whoever_wrote_it(pool):
    found = evaluate(TASK, BY_HAND, executor=pool, config=QUICK, judge=scripted_judge())
    assert (
        found.outcome == "solved"
        and found.score == 1.0
        and found.reason == ""
        and found.failure_class is None
    )
    assert found.judge_behaviour is not None and found.judge_behaviour.agreement == pytest.approx(
        1.0
    )
    markets = [market.market for market in found.judge_behaviour.markets]
    assert len(set(markets)) == 3 and markets[0].startswith("us/1d/market 1")
    assert found.isolation in ("strong", "standard")
    assert found.judge_language is not None and found.judge_language.criteria
    assert found.earned is not None and found.earned.trades == found.trades
    assert found.earned.hold.sharpe is not None
    assert msgspec.json.decode(msgspec.json.encode(found), type=Evaluation) == found


@pytest.mark.parametrize(
    ("source", "outcome", "stages", "failure"),
    [
        ("class (", "compile", "-....", "compilation"),
        (TWO, "compile", "-....", "compilation"),
        (CRASH, "backtest", "+-...", "missing-attribute"),
        (NO_PARAM, "backtest", "+-...", "missing-attribute"),
        (NEVER, "trade", "++-..", "signals-never-activate"),
        (LATER, "judge", "+++?-", "does-not-match"),
        (PATCHED, "trick", "+++..", "trick"),
    ],
)
def test_stages_are_nested_and_never_failed_unreached(pool, source, outcome, stages, failure):
    found = evaluate(TASK, source, executor=pool, config=NO_LEAK)
    assert (found.outcome, statuses(found), found.score) == (outcome, stages, 0.0)
    assert found.failure_class == failure and found.reason


def test_looking_ahead_scores_zero_and_is_named(pool):
    found = evaluate(TASK, PEEP, executor=pool, config=QUICK, judge=scripted_judge())
    assert (found.outcome, statuses(found), found.score) == ("lookahead", "+++-.", 0.0)
    assert "index [1] in line 8" in found.lookahead.reason
    assert found.leak is not None and found.leak.verdict == "leaky" and not found.grave_tricks
    assert reward_of(found, judged=False).value == 0.0
    assert found.judge_language is None  # nobody is asked about a program that is void


GUARDED = """
import backtrader as bt


class Guarded(bt.Strategy):
    def next(self):
        if len(self.data) >= self.data.buflen():
            return
        if not self.position and self.data.close[1] > self.data.close[0]:
            self.buy()
        elif self.position and self.data.close[1] < self.data.close[0]:
            self.close()
"""


def test_who_asks_how_many_bars_there_are_is_told_apart_by_what_it_does_with_them(pool):
    """Fed bar by bar the careful peeper never trades; who closes on its last bar trades as ever."""
    found = evaluate(TASK, GUARDED, executor=pool, config=QUICK)
    assert (
        found.outcome == "lookahead"
        and "with all bars at hand" in found.reason
        and found.score == 0.0
    )
    tidy = GOLD.replace(
        "def next(self):",
        "def next(self):\n        last = len(self.data) == self.data.buflen() - 1",
    )
    assert tidy != GOLD and evaluate(TASK, tidy, executor=pool, config=QUICK).outcome == "solved"
    idle = NEVER.replace("def next(self):", "def next(self):\n        self.data.buflen()")
    assert idle != NEVER and evaluate(TASK, idle, executor=pool, config=QUICK).outcome == "trade"


def test_wrong_directions_and_sizes_are_told_without_the_reference(pool):
    short = evaluate(TASK, SHORT, executor=pool, config=NO_LEAK).judge_behaviour
    assert short is not None and short.status == "failed" and short.agreement == 0.0
    assert any("short trades" in violation for violation in short.violations)
    bigger = evaluate(
        TASK, GOLD.replace("self.buy()", "self.buy(size=20)"), executor=pool, config=NO_LEAK
    )
    assert bigger.judge_behaviour is not None and any(
        "sizes" in hint for hint in bigger.judge_behaviour.hints
    )
    held = evaluate(TASK, HOLD, executor=pool, config=NO_LEAK)
    assert held.outcome == "judge"


def test_a_task_may_ask_for_less_agreement_and_a_reference_that_hardly_trades_cannot_judge(pool):
    rules = exam_settings(
        "0123456789abcdef"
    )  # markets on which some decisions of the two agree and some do not
    found = evaluate(TASK, LATER, executor=pool, config=NO_LEAK, rules=rules).judge_behaviour
    assert found is not None and found.agreement is not None and 0 < found.agreement < 0.9
    easier = tiny_task(agreement=found.agreement / 2)
    assert evaluate(easier, LATER, executor=pool, config=NO_LEAK, rules=rules).judge.passed
    lazy = evaluate(tiny_task(reference=HOLD), GOLD, executor=pool, config=NO_LEAK)
    assert lazy.judge_behaviour is not None and lazy.judge_behaviour.status == "not_scored"
    assert "3 are needed" in lazy.judge_behaviour.reason and lazy.drawn_again


PUBLIC = tiny_task(reference="", decoys=(), conversational="")


def test_without_a_reference_or_a_judge_nothing_is_scored(pool):
    found = evaluate(PUBLIC, GOLD, executor=pool, config=NO_LEAK)
    assert found.outcome == "not_scored" and found.score is None
    assert "reference" in found.judge.reason and "no language judge" in found.judge.reason
    gone = ModelJudge(
        name="gone", answer=lambda _: ModelReply(error="no", error_kind="unreachable", stop="error")
    )
    found = evaluate(PUBLIC, GOLD, executor=pool, config=NO_LEAK, judge=gone)
    assert found.judge.status == "not_scored" and "unreachable" in found.judge.reason
    assert reward_of(found, judged=True).value is None
    judged = evaluate(PUBLIC, GOLD, executor=pool, config=NO_LEAK, judge=scripted_judge())
    assert judged.judge.passed and judged.decided_by == "language"


def test_a_task_without_a_reference_runs_on_bars_that_are_given(pool):
    bars = make_bars("trend", "1d", 1, 300, 3)
    found = examine(PUBLIC, GOLD, executor=pool, config=QUICK, home=bars)
    assert found.outcome == "not_scored" and found.lookahead.passed and not found.drawn_again
    assert found.earned is not None and found.earned.market == bars.name and found.trades
    peeping = examine(PUBLIC, PEEP, executor=pool, config=QUICK, home=bars)
    assert peeping.outcome == "lookahead" and peeping.score == 0.0


def test_who_decides_is_said(pool):
    judge = scripted_judge()
    found = evaluate(TASK, LATER, executor=pool, config=NO_LEAK, judge=judge)
    verdict = found.judge_language
    # The crude one is taken in.
    assert verdict is not None and verdict.status == "passed" and found.judges_disagree
    silent = LanguageVerdict(status="not_scored", reason="nobody asked")
    for decides in get_args(Decides):
        said = [
            with_language(found, one, EvaluateConfig(decides=decides)).judge.status
            for one in (verdict, silent)
        ]
        assert said == (
            ["passed", "not_scored"] if decides == "language" else ["failed", "failed"]
        ), decides
    # A verdict that gives no reason counts all the same.
    for status in ("failed", "not_scored", "passed"):
        mute = msgspec.structs.replace(found, judge_behaviour=BehaviourVerdict(status=status))
        both = with_language(mute, LanguageVerdict(status="passed"), EvaluateConfig(decides="both"))
        assert (both.judge.status, both.decided_by) == (status, "both")


def test_markets_come_from_the_secret(pool):
    one, same, other = (
        draw_markets(pool, TASK, "backtrader", exam_settings(secret), DRAWS)
        for secret in (SECRET, SECRET, "ff" * 16)
    )
    closes = [
        [market.bars.feeds["A"]["close"][0] for market in judging.markets]
        for judging in (one, same, other)
    ]
    assert closes[0] == closes[1] and not set(closes[0]) & set(closes[2]) and not one.immaterial


def test_a_frame_needs_a_variant_and_weights_add_up(pool):
    with pytest.raises(UserError, match="frames"):
        evaluate(TASK, "def signals(frame):\n    return 0", executor=pool, framework="frame")
    with pytest.raises(UserError, match="do not add up to 1"):
        RewardConfig(compile=0.9)
    with pytest.raises(UserError, match="closeness_weight"):
        RewardConfig(closeness_weight=1.0)


def test_rewards_grow_with_the_stages(pool):
    found = {
        name: msgspec.structs.replace(
            evaluate(TASK, source, executor=pool, config=NO_LEAK), lookahead=PASSED
        )
        for name, source in (("crash", CRASH), ("never", NEVER), ("later", LATER), ("gold", GOLD))
    }
    plain = {name: reward_of(one, judged=False).value for name, one in found.items()}
    # Any program that trades is worth 1 without a judge: hence the judge, and the detector of collapse.
    assert plain == pytest.approx({"crash": 0.2, "never": 0.6, "later": 1.0, "gold": 1.0})
    near = {"entries": 0.5, "exits": 0.4, "direction": 0.5, "sizing": 0.0, "timing": 0.25}
    judged = {
        name: reward_of(one, judged=True, closeness_parts=near).value for name, one in found.items()
    }
    later = 0.08 + 0.92 * 0.6 * (0.25 * 0.5 + 0.25 * 0.4 + 0.15 * 0.5 + 0.2 * 0.25)
    assert judged == pytest.approx({"crash": 0.016, "never": 0.048, "later": later, "gold": 1.0})
    flat = reward_of(
        found["later"], judged=True, config=RewardConfig(graded=False), closeness_parts=near
    )
    assert flat.value == pytest.approx(0.08) and "agreement" in flat.reason


def test_reward_is_one_call(pool):
    config = RewardConfig(evaluate=QUICK)
    printed = reward(TASK, PRINTED, "behaviour", executor=pool, config=config, secret=SECRET)
    assert (printed.value, printed.outcome) == (1.0, "solved"), (
        "what is printed is never believed, nor punished"
    )
    peeping = reward(TASK, PEEP, "behaviour", executor=pool, config=config, secret=SECRET)
    assert (peeping.value, peeping.outcome, set(peeping.parts.values())) == (
        0.0,
        "lookahead",
        {0.0},
    )
    asked = reward(TASK, GOLD, scripted_judge(), executor=pool, config=config)
    assert asked.value == 1.0 and asked.judged and asked.evaluation.decided_by == "language"


def test_gold_passes_and_decoys_fail_where_they_say(pool):
    seen: list[str] = []
    wrong = tiny_task(id="tiny-wrong", decoys=(TASK.decoys[1],), reference=NEVER)
    report = validate(
        [TASK, wrong], pool, judge=scripted_judge(), tell=lambda line: seen.append(line.name)
    )
    assert [line.name for line in report.wrong] == ["tiny-wrong/gold"] and not report.ok
    assert [line.program for line in report.lines[:6]] == [
        "gold",
        *(decoy.name for decoy in TASK.decoys),
    ]
    assert sorted(seen) == sorted(line.name for line in report.lines)
    behaviour, language = report.judges
    assert (behaviour.false_rejects.value, behaviour.false_accepts.value) == (
        0.0,
        0.0,
    ) and behaviour.note
    assert language.judge == "scripted/code-judge" and language.false_accepts.n == 1


def test_a_decoy_without_an_occasion_to_trade_gets_another_market(pool):
    """Only on some markets it trades at all: which, hangs on a price.

    One that never trades stays wrong.
    """
    moody = LATER.replace(
        "def next(self):",
        "def next(self):\n        if self.data.close.get(ago=1 - len(self))[0] * 100 % 3 >= 1: "
        "return",
    )
    decoys = tuple(
        Decoy(name=name, kind="wrong-entry", fails_at="judge", source=source)
        for name, source in (("moody", moody), ("never", NEVER))
    )
    config = ValidateConfig(rules=exam_settings(SECRET))
    _, rare, never = validate([tiny_task(decoys=decoys)], pool, config=config).lines
    assert rare.ok and rare.redrawn > 0 and rare.outcome == "judge", rare
    assert not never.ok and never.outcome == "trade" and never.redrawn == 7


PARTS = 16
"""Of the tasks, each checked by itself: all in one test take ten minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_tasks_hold(pool, part):
    report = validate(load_tasks()[part::PARTS], pool)
    assert report.ok, report.wrong
    assert report.judges[0].false_accepts.value in (0.0, None)
    assert all(twin.accepted for twin in report.twins)


@pytest.mark.slow
def test_a_thorough_look_finds_no_more(pool):
    """Every program ends where it should.

    Which constants matter on the drawn markets is not asked here.
    """
    report = validate(load_tasks()[::10], pool, config=ValidateConfig(thorough=True))
    assert [line.name for line in report.lines if line.outcome != line.expected] == [], report.wrong
