"""Equal-weight buy and hold: the baseline that most models do not beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tradeassay.agents.history import buyable
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Buffer, Rule
from tradeassay.agents.trades import trades_towards
from tradeassay.core.agent import Observation
from tradeassay.core.orders import Decision

SESSIONS = 60
"""Sessions over which trading is summed up when not every name can be held."""


class EqualWeightConfig(AgentConfig, frozen=True, kw_only=True):
    """How much stays in cash on the day of the purchase."""

    buffer: Buffer = 0.005


@agents.register("equal-weight")
class EqualWeight(Rule[EqualWeightConfig]):
    """Buys the same amount of every name that trades on the first session, then never trades again.

    Where only so many positions are allowed, it buys those names that were traded most over the last 60 sessions:
    a baseline that leaves most of the money idle would be beaten by anybody in a rising market.
    Dividends and pay-outs stay in cash. Should the account come to hold nothing (every order of the first
    session was refused, or every holding left the exchange), it buys once more.
    """

    summary: ClassVar[str] = "buys the whole universe in equal amounts once, then holds"
    Config: ClassVar[type[AgentConfig]] = EqualWeightConfig

    def decide(self, observation: Observation) -> Decision:
        """Buy once, then hold."""
        if observation.account.positions:
            return _HOLDS
        can = buyable(observation)
        names = [symbol for symbol, ok in zip(observation.universe, can.tolist(), strict=True) if ok]
        most = observation.rules.max_positions
        if most is not None and len(names) > most:
            names = most_traded(observation, names, most)
        if not names:
            return Decision(reason="no name of the universe has a price yet")
        targets = dict.fromkeys(names, 1.0 / len(names))
        orders = trades_towards(observation, targets, buffer=self.config.buffer, band=0.0)
        if not orders:
            return Decision(reason="the account cannot pay for one lot of any name")
        return Decision(orders=orders, reason=f"buys equal amounts of {len(names)} names")


def most_traded(observation: Observation, names: list[str], count: int) -> list[str]:
    """Return the ``count`` names with the highest mean traded amount, in the order given; ties go to the first."""
    amounts = observation.view.bars("amount", SESSIONS)
    if not len(amounts):
        return names[:count]
    columns = [observation.view.column(name) for name in names]
    means = np.nan_to_num(amounts[:, columns]).sum(axis=0)
    chosen = set(np.argsort(-means, kind="stable")[:count].tolist())
    return [name for place, name in enumerate(names) if place in chosen]


_HOLDS = Decision(reason="holds")
