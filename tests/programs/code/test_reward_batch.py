"""Rewards by the batch: whatever a policy writes is a number, the same on any number of workers."""

import asyncio
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

import tradeassay_programs
from tradeassay.core.errors import SandboxError, UserError
from tradeassay_programs.benchmarks.quantcode import draw_tasks, load_task, load_tasks
from tradeassay_programs.code.judges.decisions import DecisionEvent
from tradeassay_programs.code.judges.markets import DrawnMarkets, JudgedMarket, Judging
from tradeassay_programs.code.reward import QUICK, RewardConfig, reward
from tradeassay_programs.code.running import task_bars
from tradeassay_programs.code.task import Sizing
from tradeassay_programs.reward import Pool, ScoredAnswer, batch, perform, read_answer

SECRET = "5e" * 16
TASK = load_task("d-sma-cross-long")
CRASHES = (
    "import backtrader as bt\n\nclass S(bt.Strategy):\n    def next(self):\n        "
    "self.nothing.buy()\n"
)


@pytest.mark.parametrize(
    "answer", [None, 3, 1.5, b"import backtrader", ["x"], {}, object(), "", "  \n", "I cannot."]
)
def test_whatever_is_no_program_is_worth_nothing_and_says_why(answer):
    (scored,) = batch([answer], TASK)
    assert (scored.value, scored.outcome) == (0.0, "no_code") and scored.reason


def test_a_program_is_found_in_a_fence():
    for text in (
        CRASHES,
        f"Here:\n```python\n{CRASHES}```\nDone.",
        f"<think>hm</think>\n```\n{CRASHES}\n```",
    ):
        found = read_answer(text)
        assert not isinstance(found, ScoredAnswer) and found[0].strip() == CRASHES.strip()


@pytest.mark.parametrize(
    ("answers", "tasks", "more", "said"),
    [
        (["a", "b"], [TASK], {}, "2 answers and 1 tasks"),
        (["a"], "no-such-task", {}, "no task"),
        (
            ["a"],
            next(task for task in load_tasks() if task.frame is None),
            {"framework": "frame"},
            "frames",
        ),
        (["a"], TASK, {"judge": "behavior"}, "unknown judge"),
        (["a"], TASK, {"framework": "qlib"}, "unknown framework"),
        (["a"], TASK, {"workers": 0}, "expected 1 or more workers, got 0"),
        ("a", TASK, {}, "expected a list of answers"),
    ],
)
def test_bad_requests_are_told(answers, tasks, more, said):
    with pytest.raises(UserError, match=said):
        batch(answers, tasks, **more)


def test_one_program_and_none_are_requests_too():
    with pytest.raises(UserError, match="unknown judge 'behavior'"):
        reward(TASK, "a", "behavior")
    assert batch([], TASK) == []
    assert tradeassay_programs.reward.batch is batch


def test_a_worker_that_is_told_to_stop_opens_no_sandbox(monkeypatch):
    monkeypatch.setattr(
        "tradeassay_programs.reward.open_sandbox", lambda: pytest.fail("a sandbox was opened")
    )
    chunk = {"task": TASK.id, "answers": [[0, CRASHES]], "framework": "backtrader", "judge": None}
    asked = msgspec.json.encode(chunk | {"secret": SECRET, "config": {}})
    assert msgspec.json.decode(perform(asked, lambda count: None, lambda: True)) == {
        "answers": [],
        "markets": "",
    }


def test_what_one_worker_has_drawn_another_need_not_draw():
    drawer, taker = DrawnMarkets(), DrawnMarkets()
    market = JudgedMarket(bars=task_bars(TASK), events=(), trades=0)
    drawer.once(("key",), lambda: Judging(markets=(market,)))
    taker.add_markets(pickle.loads(pickle.dumps(drawer.pop_new_markets())))
    (found,) = taker.once(("key",), lambda: pytest.fail("it draws again")).markets
    assert (found.bars.times == market.bars.times).all() and found.bars.name == market.bars.name
    assert not drawer.pop_new_markets() and not taker.pop_new_markets()


@pytest.mark.parametrize(
    ("entries", "rows"),
    [(range(0, 60, 10), 250), (range(0, 600, 100), 501), (range(0, 500, 100), 1000), ((), 1000)],
)
def test_without_a_judge_a_market_ends_where_the_reference_has_traded_enough(entries, rows):
    events = tuple(
        DecisionEvent(bar=bar, asset=0, kind="entry", direction=1, units=1.0, share=1.0, opened=bar)
        for bar in entries
    )
    whole = JudgedMarket(bars=task_bars(TASK), events=events, trades=len(events))
    brief = whole.brief()
    assert whole.bars.rows == TASK.bars == 1000 and brief.bars.rows == rows
    assert brief.events == events and (brief.bars.times == whole.bars.times[:rows]).all()


def test_a_pool_keeps_its_markets_and_serves_coroutines():
    async def twice(pool: Pool) -> list[list[ScoredAnswer]]:
        return list(
            await asyncio.gather(
                *(pool.abatch([TASK.reference, None, CRASHES], TASK) for _ in range(2))
            )
        )

    with Pool(secret=SECRET, workers=1) as pool:
        first, second = asyncio.run(twice(pool))
        assert first == second == pool.batch([TASK.reference, None, CRASHES], TASK)
        assert [scored.value for scored in first] == [1.0, 0.0, 0.2]
        with pytest.raises(UserError, match="no task"):  # and the pool lives on
            pool.batch(["a"], "no-such-task")
        assert pool.batch([], TASK) == []


def test_a_program_that_opens_a_path_with_two_slashes_costs_its_own_reward_only():
    stops = f'{CRASHES[: CRASHES.index("        self.nothing")]}        open("//data/x.csv")\n'
    with Pool(secret=SECRET, workers=1) as pool:
        first, second = pool.batch([stops, TASK.reference], TASK)
        assert first.value is not None and first.value < 1.0 and "/data/x.csv" in first.reason
        assert second.value == 1.0
        assert pool.batch([TASK.reference], TASK)[0].value == 1.0


def test_answers_asked_for_one_at_a_time_are_scored_together(monkeypatch):
    asked = [TASK.reference, CRASHES, "no program", TASK.reference, CRASHES, TASK.reference]
    sizes: list[int] = []
    with Pool(secret=SECRET, workers=1) as pool, ThreadPoolExecutor(len(asked)) as threads:
        score = pool.score_requests

        def counted(together: Any) -> Any:
            if not sizes:  # the others come while the first is scored
                while len(pool.waiting) < len(asked) - 1:
                    time.sleep(0.01)
            sizes.append(sum(len(one.programs) for one in together))
            return score(together)

        monkeypatch.setattr(pool, "score_requests", counted)
        found = list(threads.map(lambda answer: pool.batch([answer], TASK), asked))
        assert [one.value for (one,) in found] == [1.0, 0.2, 0.0, 1.0, 0.2, 1.0]
        assert sizes == [1, len(asked) - 1]

        def broken(together: Any) -> Any:
            raise SandboxError("no isolation")

        monkeypatch.setattr(pool, "score_requests", broken)  # whoever waits hears of it
        for future in [threads.submit(pool.batch, [answer], TASK) for answer in asked]:
            with pytest.raises(SandboxError, match="no isolation"):
                future.result()


def test_callers_who_are_scored_together_do_not_share_errors_or_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One caller's task is broken, one has a task of its own under an id that another uses, one
    is interrupted.
    """
    broken = msgspec.structs.replace(TASK, id="broken", market="no such market")
    silent = msgspec.structs.replace(
        TASK, reference="", sizing=Sizing(kind="fixed", value=1e9)
    )  # buys nothing
    tasks = [TASK, broken, silent, TASK.id]
    with Pool(secret=SECRET, workers=1) as pool, ThreadPoolExecutor(len(tasks)) as threads:
        score, calls = pool.score_requests, list[int]()

        def counted(together: Any) -> Any:
            calls.append(len(together))
            if len(calls) == 1:
                while len(pool.waiting) < len(tasks):
                    time.sleep(0.01)
                raise KeyboardInterrupt
            return score(together)

        monkeypatch.setattr(pool, "score_requests", counted)
        first = threads.submit(pool.batch, ["stopped"], TASK)
        while not calls:
            time.sleep(0.01)
        later = ThreadPoolExecutor(len(tasks))
        futures = [later.submit(pool.batch, [TASK.reference], task) for task in tasks]
        with pytest.raises(KeyboardInterrupt):
            first.result()
        with pytest.raises(KeyError, match="no such market"):
            futures[1].result()
        found = [futures[place].result()[0] for place in (0, 2, 3)]
        assert [one.outcome for one in found] == ["not_scored", "trade", "not_scored"]
        assert [one.value for one in found] == [1.0, 0.6, 1.0]
        assert calls == [1, 4, 1, 1, 1, 1]
        later.shutdown()


@pytest.mark.slow
def test_programs_that_ignore_their_tasks_are_told_from_those_that_do_them():
    tasks = draw_tasks("train", 3, 5)
    with Pool(
        judge="behaviour", secret=SECRET, workers=1, config=RewardConfig(draws=QUICK)
    ) as pool:
        right = pool.task_specificity([task.reference for task in tasks], tasks)
        same = pool.task_specificity([tasks[0].reference] * 3, tasks)
        assert pool.task_specificity([CRASHES] * 3, tasks).reason == "fewer than two programs trade"
    assert right.n == 3 and right.value is not None and right.value > 0.7
    assert same.value is not None and same.low is not None and same.low < 0.0 and same.value < 0.4
    assert (
        right.low is not None
        and same.high is not None
        and right.note
        and "to their own task" in right.note
    )
    with Pool(secret=SECRET, workers=1) as unjudged:
        assert (
            unjudged.task_specificity([tasks[0].reference] * 2, tasks[:2]).reason
            == "no judge was asked for"
        )


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_rewards():
    answers = [TASK.reference, f"```python\n{CRASHES}```", None, TASK.reference, "def f(:"]
    one = batch(answers, "d-sma-cross-long", secret=SECRET, executor="inline")
    assert [scored.value for scored in one] == [1.0, 0.2, 0.0, 1.0, 0.0]
    with Pool(secret=SECRET, workers=2) as pool:
        assert pool.batch(answers, [TASK] * 5) == pool.batch(answers, TASK) == one
    assert (
        batch(answers[:1], TASK, secret=SECRET, judge="behaviour", workers=1)[0].outcome == "solved"
    )


@pytest.mark.slow
def test_a_cluster_gives_the_same_rewards():
    pytest.importorskip("ray")
    answers = [TASK.reference, CRASHES, 7]
    assert batch(answers, TASK, secret=SECRET, executor="ray", workers=2) == batch(
        answers, TASK, secret=SECRET
    )
