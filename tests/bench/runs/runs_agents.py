"""Agents that exist to test the runner. They live in a module of their own, as a user's would."""

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from tradeassay_bench.agents import AgentConfig, agents
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.orders import Decision, Order


class ToyConfig(AgentConfig, frozen=True, kw_only=True):
    ms: float = 0.0
    log: str = ""
    marker: str = ""
    times: int = 1


class Base:
    summary: ClassVar[str] = "for tests"
    Config: ClassVar[type[ToyConfig]] = ToyConfig

    def __init__(self, config: ToyConfig) -> None:
        self.config = config
        self.rng = np.random.default_rng(0)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.rng = rng


@agents.register("test-provoker")
class Provoker(Base):
    """Sends every kind of order, many of which must be refused."""

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        names = seen.universe
        if seen.step % 5 == 4:
            return Decision(reason="rests")
        picks = self.rng.permutation(len(names))[:5]
        orders: list[Order] = []
        for place, pick in enumerate(picks.tolist()):
            symbol = names[pick]
            close = float(seen.view.bars("close", 1, adjust="none")[-1, seen.columns[pick]])
            if not close > 0:
                close = 10.0
            held = seen.account.positions.get(symbol)
            kind = int(self.rng.integers(0, 8))
            amount = held.quantity if held else 100
            wish = (
                {"amount": 0.2, "unit": "target_weight"},
                {"amount": 300, "side": "BUY", "kind": "limit", "limit_price": close * 0.99},
                {
                    "amount": amount,
                    "side": "SELL",
                    "kind": "stop",
                    "stop_price": close * 0.98,
                    "tif": "gtc",
                },
                {"amount": 1e9, "side": "SELL"},
                {"amount": 30_000, "side": "BUY", "tif": "gtc"},
                {"amount": 0.0, "unit": "target_weight"},
                {"amount": 3_333, "unit": "dollars", "side": "BUY"},
                {"amount": 17, "side": "BUY", "reason": f"odd lot {place}"},
            )
            orders.append(Order(symbol=symbol, **wish[kind]))
        return Decision(orders=tuple(orders), reason="provokes")


@agents.register("test-cannot-begin")
class CannotBegin(Base):
    """Fails before its first day."""

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        raise RuntimeError(f"no <b>key</b>\nfor {object()}")

    def answer(self, request: AskDecision) -> Decision:
        return Decision()


@agents.register("test-never-answers")
class NeverAnswers(Base):
    """Raises on every day."""

    def answer(self, request: AskDecision) -> Decision:
        raise TimeoutError("no answer")


def _buys(seen: Observation) -> Decision:
    if seen.step % 3:
        return Decision(reason="holds")
    symbol = seen.universe[seen.step % len(seen.universe)]
    return Decision(orders=(Order(symbol=symbol, amount=100, side="BUY"),), reason="buys")


@agents.register("test-slow")
class Slow(Base):
    """Decides slowly, so that there is a moment in which to kill it; uses its dice every day."""

    def answer(self, request: AskDecision) -> Decision:
        time.sleep(self.config.ms / 1000)
        seen = request.observation
        symbol = seen.universe[int(self.rng.integers(len(seen.universe)))]
        side = "BUY" if self.rng.random() < 0.7 else "SELL"
        return Decision(
            orders=(Order(symbol=symbol, amount=100, side=side),), reason="tosses a coin"
        )


@agents.register("test-costly")
class Costly(Base):
    """Writes down every question it is asked and every answer it is reminded of."""

    def _note(self, text: str) -> None:
        with Path(self.config.log).open("a") as file:
            file.write(text + "\n")

    def answer(self, request: AskDecision) -> Decision:
        time.sleep(self.config.ms / 1000)
        self._note(f"asked {request.observation.step}")
        return _buys(request.observation)

    def recall(self, observation: Observation, decision: Decision) -> None:
        self._note(f"told {observation.step} {decision.reason}")


@agents.register("test-fickle")
class Fickle(Base):
    """Breaks the rule that an agent has no other randomness than its own."""

    def answer(self, request: AskDecision) -> Decision:
        return Decision(reason=os.urandom(4).hex())


@agents.register("test-dies")
class Dies(Base):
    """Kills its own process at the tenth day, a number of times."""

    def answer(self, request: AskDecision) -> Decision:
        if request.observation.step == 10:
            marker = Path(self.config.marker)
            deaths = len(marker.read_text()) if marker.exists() else 0
            if deaths < self.config.times:
                marker.write_text("x" * (deaths + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return _buys(request.observation)


@agents.register("test-special-floats")
class SpecialFloats(Base):
    """Buys a little, and sends numbers that are no size or price; every tenth day one that is
    refused whole.
    """

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        good, size, target, price, *_ = seen.universe
        wrong = (1.7e308, 5e-324, 1e-308, 2.0**60)[seen.step % 4]
        if seen.step % 10 == 9:
            wrong = float(("nan", "inf", "-inf")[seen.step // 10 % 3])
        orders = (
            Order(symbol=size, amount=wrong, side="BUY"),
            Order(symbol=target, amount=-wrong, unit="target_weight"),
            Order(symbol=price, amount=1, side="BUY", kind="limit", limit_price=wrong),
            Order(symbol=good, amount=100, side="BUY"),
        )
        return Decision(orders=orders, reason="everything a float holds")
