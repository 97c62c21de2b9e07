"""What the reward can be climbed by: nearer is never worth less, and ignoring the task is worth
little.
"""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from tradeassay_programs.benchmarks.quantcode import draw_tasks, families, load_task
from tradeassay_programs.code.evaluation import EvaluateConfig, evaluate
from tradeassay_programs.code.judges.decisions import (
    CLOSENESS,
    DecisionEvent,
    DecisionsConfig,
    closeness,
)
from tradeassay_programs.code.reward import QUICK, RewardConfig, fitting_limits, reward
from tradeassay_programs.code.running import exam_settings
from tradeassay_programs.sandbox import JobExecutor

SECRET = "5e" * 16
ROWS = 400
Events = tuple[DecisionEvent, ...]


def traded(entries: list[int], *, hold: int = 6, direction: int = 1, share: float = 0.9) -> Events:
    made: list[DecisionEvent] = []
    for bar in entries:
        entry = DecisionEvent(
            bar=bar,
            asset=0,
            kind="entry",
            direction=direction,
            units=100 * share,
            share=share,
            opened=bar,
        )
        made += [entry, replace(entry, bar=bar + hold, kind="exit", share=1.0)]
    return tuple(made)


BARS = sorted(np.random.default_rng(4).choice(np.arange(40, 380, 10), 14, replace=False).tolist())
THEIRS = traded(BARS)


def near(mine: Events) -> dict[str, float]:
    return closeness(mine, THEIRS, ROWS, DecisionsConfig())


def worth(mine: Events) -> float:
    return sum(CLOSENESS[name] * value for name, value in near(mine).items())


def test_the_same_trades_are_as_near_as_can_be():
    assert sum(CLOSENESS.values()) == pytest.approx(1.0)
    assert near(THEIRS) == pytest.approx(dict.fromkeys(CLOSENESS, 1.0))


def test_parts_tell_what_is_wrong():
    other = near(traded(BARS, direction=-1))
    assert (
        other["entries"] == 1.0 and other["direction"] == other["sizing"] == other["timing"] == 0.0
    )
    held = near(traded(BARS, hold=9))
    assert held["entries"] == held["sizing"] == 1.0 and 0.0 < held["exits"] < 1.0
    small = near(traded(BARS, share=0.45))
    assert small["direction"] == 1.0 and 0.4 < small["sizing"] < 0.6
    late = near(traded([bar + 1 for bar in BARS]))
    assert late["timing"] == 0.0 and 0.5 < late["entries"] < 1.0


@pytest.mark.parametrize(
    "steps",
    [
        [traded([bar + late for bar in BARS]) for late in range(8)],
        [traded(BARS, hold=6 + more) for more in range(6)],
        [traded(BARS, share=0.9 / (1 + less)) for less in range(6)],
        [traded(BARS[missing:]) for missing in range(14)],
        [traded(sorted(BARS + [bar + 5 for bar in BARS[:more]])) for more in range(8)],
    ],
    ids=["later", "held longer", "smaller", "fewer", "more"],
)
def test_nearer_is_never_worth_less(steps):
    values = [worth(one) for one in steps]
    assert values[0] == pytest.approx(1.0) and values[-1] < 0.95
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(values))


def test_trading_often_or_at_random_is_worth_next_to_nothing():
    always = worth(traded(list(range(30, 390, 2)), hold=1))
    draws = np.random.default_rng(1)
    chance = [
        worth(traded(sorted(draws.choice(np.arange(40, 380), 14, replace=False).tolist())))
        for _ in range(40)
    ]
    assert always < 0.1 and np.mean(chance) < 0.1
    assert worth(()) == 0.0


def test_an_endless_program_is_stopped_by_a_limit_that_fits():
    daily, minutes = load_task("d-sma-cross-long"), load_task("m-rsi-quarter-hour")
    assert fitting_limits(daily).cpu_s == 1 and 1 < fitting_limits(minutes).cpu_s <= 10


IGNORING = {
    "every fifth bar": "if not self.position:\n            self.buy()\n        elif len(self) % 5 "
    "== 0:\n"
    "            self.close()",
    "every bar": "if not self.position:\n            self.buy()\n        else:\n            "
    "self.close()",
    "a cross of averages": "if not self.position:\n            if self.cross > 0:\n                "
    "self.buy()\n"
    "        elif self.cross < 0:\n            self.close()",
}
FORM = """import backtrader as bt


class Same(bt.Strategy):
    def __init__(self):
        self.cross = bt.indicators.CrossOver(bt.indicators.SMA(period=10), bt.indicators.SMA(period=30))

    def next(self):
        {body}
"""


def paid(pool: JobExecutor, task: str, source: str) -> float:
    config = RewardConfig(draws=QUICK)
    found = reward(
        load_task(task), source, "behaviour", executor=pool, config=config, secret=SECRET
    )
    return found.value or 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", IGNORING)
def test_a_program_that_ignores_its_task_earns_little_over_all_families(pool, name):
    tasks = draw_tasks("all", len(families()), 41)
    values = [paid(pool, task.id, FORM.format(body=IGNORING[name])) for task in tasks]
    assert np.mean(values) <= 0.15


@pytest.mark.slow
def test_nearer_periods_earn_more_on_average(pool):
    names = ("price-sma", "price-ema", "roc-zero", "di-cross", "hull-turn", "force-zero")
    ladder: dict[int, list[float]] = {0: [], 1: [], 4: [], 12: []}
    for name in names:
        for task in draw_tasks(name, 2, 5):
            for far, values in ladder.items():
                other = re.sub(
                    r"period=(\d+)",
                    lambda found, by=far: f"period={int(found[1]) + by}",
                    task.reference,
                    count=1,
                )
                values.append(paid(pool, task.id, other))
    means = [float(np.mean(values)) for values in ladder.values()]
    assert means == sorted(means, reverse=True) and means[0] == 1.0


@pytest.mark.slow
def test_a_leak_is_paid_nothing(pool):
    task = next(one for one in draw_tasks("price-sma", 20, 6) if one.expect.direction == "long")
    known = "self.data.close[1] if len(self) < self.data.buflen() else 0.0"
    leak = task.reference.replace(
        "if not self.position:", f"later = {known}\n        if not self.position:", 1
    )
    leak = leak.replace(
        "            if self", "            if later > self.data.close[0] and self", 1
    )
    assert "later >" in leak and paid(pool, task.id, leak) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["77" * 16, "5e" * 16])
def test_a_textbook_indicator_is_not_refused_for_a_guard_nobody_asked_for(pool, secret):
    task = load_task("d-rsi2-pullback")
    plain = re.sub(r",\s*safediv=True", "", task.reference)
    assert plain != task.reference
    config = EvaluateConfig(decides="behaviour")
    assert (
        evaluate(task, plain, executor=pool, config=config, rules=exam_settings(secret)).outcome
        == "solved"
    )
