"""TradingAgents plays: -a ./examples/known_agents/tradingagents_agent.py:TradingAgents,names=3

Install it yourself (its repository says how) and set its keys. It fetches prices, news and fundamentals by itself,
which no benchmark can hold to a date: see docs/howto/known-agents.md before you believe a result.
"""

import importlib.util
import re
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tradeassay.agents import AgentConfig
from tradeassay.core.agent import AskDecision
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision, Order

RATINGS = re.compile(r"\b(?:BUY|OVERWEIGHT|HOLD|UNDERWEIGHT|SELL)\b")


class TradingAgentsConfig(AgentConfig, frozen=True, kw_only=True):
    names: Annotated[int, Meta(ge=1, le=50, description="how many names of the universe it is asked about")] = 5
    every: Annotated[int, Meta(ge=1, description="sessions between two decisions")] = 5
    most: Annotated[float, Meta(gt=0, le=1, description="largest share in one name; KTD-Fin allows a tenth")] = (
        0.095
    )
    model: Annotated[str, Meta(description="its deep and quick model; empty keeps its own default")] = ""


class TradingAgents:
    """Buy is an equal share of the account, Overweight half the way there, Underweight half of what is held, Sell
    is out, Hold is what is held. Older versions know Buy, Sell and Hold only.
    """

    summary: ClassVar[str] = "the TradingAgents graph, asked name by name"
    Config: ClassVar[type[AgentConfig]] = TradingAgentsConfig

    def __init__(self, config: TradingAgentsConfig) -> None:
        if importlib.util.find_spec("tradingagents") is None:
            raise UserError("TradingAgents is not installed", hint="install it as its repository says")
        self.config = config
        self.graph: Any = None

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        if seen.step % self.config.every:
            return Decision()
        chosen = tuple(seen.universe)[: self.config.names]
        known = str(seen.view.sessions(1)[-1])[:10]  # the last day whose close is known: it reads that day whole
        words = {symbol: self._ask(symbol, known) for symbol in chosen}
        share = min(0.98 / len(chosen), self.config.most)
        orders = []
        for symbol, word in words.items():
            held = seen.account.weight(symbol)
            target = {
                "BUY": share,
                "OVERWEIGHT": max(held, (held + share) / 2),
                "UNDERWEIGHT": held / 2,
                "SELL": 0.0,
            }
            if word in target and (target[word] > 0.0 or symbol in seen.account.positions):
                orders.append(Order(symbol=symbol, amount=target[word], unit="target_weight", reason=word))
        told = ", ".join(f"{symbol} {word}" for symbol, word in words.items())
        return Decision(orders=tuple(orders), reason=f"{known}: {told}")

    def _ask(self, symbol: str, day: str) -> str:
        if self.graph is None:
            from tradingagents.default_config import DEFAULT_CONFIG
            from tradingagents.graph.trading_graph import TradingAgentsGraph

            config = dict(DEFAULT_CONFIG)
            if self.config.model:
                config |= {"deep_think_llm": self.config.model, "quick_think_llm": self.config.model}
            self.graph = TradingAgentsGraph(debug=False, config=config)
        _, said = self.graph.propagate(symbol, day)
        words = set(RATINGS.findall(str(said).upper()))
        # An answer that names two of them, or none, is no decision about this name.
        return str(words.pop()) if len(words) == 1 else "HOLD"
