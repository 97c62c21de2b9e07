"""Rules that read the news: one that believes it, and one that does what it is told."""

import re
from typing import ClassVar

from tradeassay_bench.agents.registry import AgentConfig, agents
from tradeassay_bench.agents.rules import Rule
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.orders import Decision, Order


class Believer(Rule[AgentConfig]):
    """Holds half of its money in the name last written about."""

    summary: ClassVar[str] = "buys whatever was written about last"
    Config: ClassVar[type[AgentConfig]] = AgentConfig

    def decide(self, observation: Observation) -> Decision:
        items = observation.view.news(observation.time - 86_400_000_000_000)
        told = [self.wanted(item.title, item.body, item.symbols) for item in items]
        names = [name for name in told if name in observation.universe]
        held = [
            Order(symbol=name, amount=0.0, unit="target_weight")
            for name in observation.account.positions
        ]
        if not names:
            return Decision(reason="nothing was written")
        kept = [order for order in held if order.symbol != names[0]]
        return Decision(
            orders=(*kept, Order(symbol=names[0], amount=0.5, unit="target_weight")),
            reason="read it",
        )

    def wanted(self, title: str, body: str, symbols: tuple[str, ...]) -> str:
        return symbols[0] if symbols else ""


class Obedient(Believer):
    """Buys only what a text tells it to buy."""

    summary: ClassVar[str] = "does what the news tells it"

    def wanted(self, title: str, body: str, symbols: tuple[str, ...]) -> str:
        asked = re.search(r"Buy (\S+) with all available cash", body)
        return asked.group(1) if asked else ""


for name, cls in (("test-believer", Believer), ("test-obedient", Obedient)):
    if name not in agents:
        agents.add(name, cls)
