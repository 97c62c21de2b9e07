"""The agents' checker: everything registered passes, and every kind of bad agent is caught."""

import datetime
import itertools
import random
import time
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from msgspec import Meta

from tradeassay.core.our_code import is_ours
from tradeassay_bench.agents import AgentConfig, agents, plays_alone
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.testing import check_agent

# Other tests register agents of their own (slow ones, dying ones); this one is about those that ship.
SHIPPED = [name for name, cls in agents.items() if is_ours(cls.__module__) and plays_alone(name)]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in SHIPPED),
        ("momentum-12-1", {"k": 3, "every": 1, "band": 0.0, "buffer": 0.0}),
        ("momentum-12-1", {"lookback": 2, "skip": 1, "every": 1}),
        ("min-variance", {"lookback": 10, "every": 2, "cap": 0.01, "floor": 0.0}),
        ("random", {"k": 500, "turnover": 1.0, "every": 1}),
        ("vol-target", {"lookback": 5, "every": 1, "volatility": 5.0}),
        ("sector-equal", {"every": 1, "band": 0.0}),
    ],
)
def test_everything_registered_passes_with_unusual_parameters_too(name, params):
    check_agent(name, params)


class NoConfig(AgentConfig, frozen=True, kw_only=True):
    pass


class Good:
    """Buys the first name of the universe; the bad ones below change one thing each."""

    summary: ClassVar[str] = "buys the first name"
    Config: ClassVar[type[AgentConfig]] = NoConfig

    def __init__(self, config: Any) -> None:
        self.config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.rng = rng

    def answer(self, request: AskDecision) -> Any:
        return self.buy(request.observation, 0.1)

    def buy(self, seen: Observation, weight: Any) -> Decision:
        symbol = seen.universe[0] if seen.universe else None
        return Decision(
            orders=(Order(symbol=symbol, amount=weight, unit="target_weight"),) if symbol else ()
        )


def answers(how: Callable[[Good, Observation], Any]) -> type[Good]:
    """Return an agent that answers in a way of its own."""
    return type("Bad", (Good,), {"answer": lambda self, asked: how(self, asked.observation)})


def buys(weigh: Callable[[Observation], Any]) -> type[Good]:
    """Return an agent that gives the first name a weight of its own making."""
    return answers(lambda self, seen: self.buy(seen, weigh(seen)))


def from_the_last_close(seen: Observation) -> float:
    closes = seen.view.bars("close", 1)
    return float(closes.mean()) * 0.0 + 0.1 if len(closes) else 0.1


def tomorrow(seen: Observation) -> float:
    """Read the whole future out of the view's private parts."""
    history = getattr(seen.view, "_history", None)
    return (
        0.1
        if history is None
        else float(np.nansum(history.fields["close"][seen.view.row + 1])) % 0.5
    )


class SeedsNumpy(Good):
    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        np.random.seed(info.seed)  # noqa: NPY002 - the fault


STRANGE = Decision(orders=(Order(symbol="TSLA", amount=1.0, side="BUY"),))
COUNT = itertools.count(2)


class RequiredConfig(AgentConfig, frozen=True, kw_only=True):
    k: int


class ThawedConfig(AgentConfig, frozen=False, kw_only=True):
    k: Annotated[int, Meta(ge=1)] = 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (buys(lambda seen: 0.1 if time.time() > 0 else 0.2), "reads the clock (time.time)"),
        (
            buys(lambda seen: datetime.datetime.now(datetime.UTC) and 0.1),
            "reads the clock (datetime.now)",
        ),
        (buys(lambda seen: random.random() / 2), "Python's global random"),
        (buys(lambda seen: np.random.uniform(0, 0.5)), "numpy's global random"),  # noqa: NPY002 - the fault
        (SeedsNumpy, "numpy's global random"),
        (
            buys(lambda seen: float(np.random.default_rng().uniform(0, 0.5))),
            "randomness from the operating system",
        ),
        (buys(lambda seen: 1 / 0), "raised ZeroDivisionError: division by zero on "),
        (
            buys(lambda seen: 0.1 if seen.view.bars("close")[-1].size else 0.2),
            "from the first session on",
        ),
        (buys(lambda seen: 0.1 + 0.0 * len(seen.universe[0])), "on a day without a universe"),
        (buys(lambda seen: 0.1 * seen.account.cash / seen.account.nav), "on a day without money"),
        (answers(lambda self, seen: None), "NoneType, not a Decision"),
        (buys(from_the_last_close), "amount nan"),
        (buys(lambda seen: np.float64(0.1)), "np.float64(0.1) is no finite plain number"),
        (answers(lambda self, seen: STRANGE), "TSLA: no such symbol"),
        (buys(lambda seen: seen.account.positions.clear() or 0.1), "modified its observation"),
        (buys(lambda seen: 1.0 / next(COUNT)), "different answers to the same questions"),
        (buys(tomorrow), "if only the future after step"),
    ],
)
def test_each_fault_is_caught_and_named(bad, said):
    with pytest.raises(CheckFailed) as caught:
        check_agent(bad)
    assert said in str(caught.value) and f"agent '{bad.__name__}'" in str(caught.value)


def test_a_plain_class_can_be_checked_before_it_is_registered():
    check_agent(Good)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"summary": " "}, "no summary"),
        ({"Config": dict}, "no Config derived from AgentConfig"),
        ({"Config": RequiredConfig}, "parameter 'k' without a default"),
        ({"Config": ThawedConfig}, "not frozen"),
        ({"answer": None}, "no method 'answer'"),
    ],
)
def test_a_class_without_its_papers_is_refused(changes, said):
    with pytest.raises(CheckFailed, match=said):
        check_agent(type("Paperless", (Good,), changes))
