"""ai-hedge-fund 2 plays: -a ./examples/known_agents/ai_hedge_fund_agent.py:AiHedgeFund,names=3

Install it yourself (pip install aihf) and export its keys. It fetches prices and fundamentals by itself: see
docs/howto/known-agents.md before you believe a result.
"""

import os
from typing import Annotated, ClassVar

from msgspec import Meta

from tradeassay.agents import AgentConfig
from tradeassay.core.agent import AskDecision
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision, Order


class AiHedgeFundConfig(AgentConfig, frozen=True, kw_only=True):
    names: Annotated[int, Meta(ge=1, le=50, description="how many names of the universe it is asked about")] = 5
    every: Annotated[int, Meta(ge=1, description="sessions between two decisions")] = 5
    most: Annotated[float, Meta(gt=0, le=1, description="largest share in one name; KTD-Fin allows a tenth")] = (
        0.095
    )
    mandate: Annotated[str, Meta(description="its fund as a YAML file; empty is the example it ships")] = ""
    model: Annotated[str, Meta(description="the model of its investors; empty keeps its own default")] = ""


class AiHedgeFund:
    """Its target weights, cut to long positions of at most ``most``, become orders; a name that it could not price
    is left as it is.
    """

    summary: ClassVar[str] = "a fund of ai-hedge-fund, one cycle a decision over all names"
    Config: ClassVar[type[AgentConfig]] = AiHedgeFundConfig

    def __init__(self, config: AiHedgeFundConfig) -> None:
        try:
            from hedge_fund.fund import Fund, load_spec
            from hedge_fund.paths import EXAMPLE_MANDATE
        except ImportError as error:
            raise UserError(f"ai-hedge-fund 2 cannot be imported: {error}", hint="pip install aihf") from None
        if config.model:
            os.environ["HEDGE_FUND_LLM_MODEL"] = config.model
        self.config = config
        self.fund = Fund(load_spec(config.mandate or EXAMPLE_MANDATE))

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        if seen.step % self.config.every:
            return Decision()
        from hedge_fund.brokers import SimBroker
        from hedge_fund.data import CachedDataClient, FDClient
        from hedge_fund.pipeline import run_cycle

        names = list(seen.universe)[: self.config.names]
        known = str(seen.view.sessions(1)[-1])[:10]  # the last day whose close is known: it reads that day whole
        with FDClient() as client:
            broker = SimBroker(cash=seen.account.nav)  # its weights say where to go, wherever the account is now
            record = run_cycle(self.fund, known, broker, CachedDataClient(client), names)
        wanted = {name: min(max(0.0, record.final_weights[name]), self.config.most) for name in names
                  if name in record.final_weights}  # fmt: skip
        orders = tuple(
            Order(symbol=name, amount=weight, unit="target_weight", reason=f"weight {weight:.3f}")
            for name, weight in wanted.items()
            if weight > 0.0 or name in seen.account.positions
        )
        said = ", ".join(f"{name} {record.final_weights[name]:+.3f}" for name in wanted)
        return Decision(orders=orders, reason=f"{known}: {said}")
