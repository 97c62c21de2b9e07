"""ai-hedge-fund plays: -a ./examples/known_agents/ai_hedge_fund_agent.py:AiHedgeFund,names=3

Clone it, put its folder on PYTHONPATH and set its keys (a data key for other names than its free ones). It fetches
prices and fundamentals by itself: see docs/howto/known-agents.md before you believe a result.
"""

from datetime import date, timedelta
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tradeassay.agents import AgentConfig
from tradeassay.core.agent import AskDecision
from tradeassay.core.orders import Decision, Order


class AiHedgeFundConfig(AgentConfig, frozen=True, kw_only=True):
    names: Annotated[int, Meta(ge=1, le=50, description="how many names of the universe it is asked about")] = 5
    every: Annotated[int, Meta(ge=1, description="sessions between two decisions")] = 5
    model: Annotated[str, Meta(description="model_name; empty keeps its own default")] = ""
    provider: Annotated[str, Meta(description="model_provider, e.g. OpenAI")] = "OpenAI"
    days: Annotated[int, Meta(ge=5, description="days of history it is told to look at")] = 90


class AiHedgeFund:
    """Its buys and sells become orders in shares; short sells what is held, cover is nothing."""

    summary: ClassVar[str] = "the ai-hedge-fund workflow, asked once a decision for all names"
    Config: ClassVar[type[AgentConfig]] = AiHedgeFundConfig

    def __init__(self, config: AiHedgeFundConfig) -> None:
        self.config = config

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        if seen.step % self.config.every:
            return Decision()
        from src.main import run_hedge_fund

        names = list(seen.universe)[: self.config.names]
        held = {symbol: seen.account.positions[symbol] for symbol in names if symbol in seen.account.positions}
        result = run_hedge_fund(
            tickers=names,
            start_date=str(date.fromisoformat(seen.session) - timedelta(days=self.config.days)),
            end_date=seen.session,
            portfolio=_portfolio(names, held, seen.account.cash),
            show_reasoning=False,
            **(
                {"model_name": self.config.model, "model_provider": self.config.provider}
                if self.config.model
                else {}
            ),
        )
        decided = result.get("decisions") or {}
        orders = []
        for symbol in names:
            said = decided.get(symbol) or {}
            action, quantity = str(said.get("action", "hold")).lower(), int(said.get("quantity") or 0)
            owned = held[symbol].quantity if symbol in held else 0.0
            if action == "buy" and quantity > 0:
                orders.append(Order(symbol=symbol, amount=quantity, side="BUY", reason=_why(said)))
            elif action in ("sell", "short") and quantity > 0 and owned > 0:
                orders.append(Order(symbol=symbol, amount=min(quantity, owned), side="SELL", reason=_why(said)))
        return Decision(
            orders=tuple(orders), reason="; ".join(f"{s} {d.get('action')}" for s, d in decided.items())
        )


def _portfolio(names: list[str], held: dict[str, Any], cash: float) -> dict[str, Any]:
    flat = {"short": 0, "short_cost_basis": 0.0, "short_margin_used": 0.0}
    return {
        "cash": cash,
        "margin_requirement": 0.0,
        "margin_used": 0.0,
        "positions": {
            name: {
                "long": int(held[name].quantity) if name in held else 0,
                "long_cost_basis": float(held[name].cost) if name in held else 0.0,
                **flat,
            }
            for name in names
        },
        "realized_gains": {name: {"long": 0.0, "short": 0.0} for name in names},
    }


def _why(said: dict[str, Any]) -> str:
    return str(said.get("reasoning", ""))[:500]
