"""TradingAgents plays: -a ./examples/known_agents/tradingagents_agent.py:TradingAgents,names=3

Install it yourself (its repository says how) and set its keys. It fetches prices, news and fundamentals by itself,
which no benchmark can hold to a date: see docs/howto/known-agents.md before you believe a result.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tradeassay.agents import AgentConfig
from tradeassay.core.agent import AskDecision
from tradeassay.core.orders import Decision, Order


class TradingAgentsConfig(AgentConfig, frozen=True, kw_only=True):
    names: Annotated[int, Meta(ge=1, le=50, description="how many names of the universe it is asked about")] = 5
    every: Annotated[int, Meta(ge=1, description="sessions between two decisions")] = 5
    most: Annotated[float, Meta(gt=0, le=1, description="largest share in one name; KTD-Fin allows a tenth")] = (
        0.095
    )
    model: Annotated[str, Meta(description="its deep and quick model; empty keeps its own default")] = ""


class TradingAgents:
    """BUY is an equal share of the account, SELL is out, HOLD is what is held."""

    summary: ClassVar[str] = "the TradingAgents graph, asked name by name"
    Config: ClassVar[type[AgentConfig]] = TradingAgentsConfig

    def __init__(self, config: TradingAgentsConfig) -> None:
        self.config = config
        self.graph: Any = None

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        if seen.step % self.config.every:
            return Decision()
        chosen = tuple(seen.universe)[: self.config.names]
        words = {symbol: self._ask(symbol, seen.session) for symbol in chosen}
        share = min(0.98 / len(chosen), self.config.most)
        orders = tuple(
            Order(symbol=symbol, amount=share if word == "BUY" else 0.0, unit="target_weight", reason=word)
            for symbol, word in words.items()
            if word == "BUY" or (word == "SELL" and symbol in seen.account.positions)
        )
        return Decision(orders=orders, reason=", ".join(f"{symbol} {word}" for symbol, word in words.items()))

    def _ask(self, symbol: str, session: str) -> str:
        if self.graph is None:
            from tradingagents.default_config import DEFAULT_CONFIG
            from tradingagents.graph.trading_graph import TradingAgentsGraph

            config = dict(DEFAULT_CONFIG)
            if self.config.model:
                config |= {"deep_think_llm": self.config.model, "quick_think_llm": self.config.model}
            self.graph = TradingAgentsGraph(debug=False, config=config)
        _, said = self.graph.propagate(symbol, session)
        words = [word for word in ("BUY", "SELL", "HOLD") if word in str(said).upper()]
        # An answer that names two of them, or none, is no decision about this name.
        return words[0] if len(words) == 1 else "HOLD"
