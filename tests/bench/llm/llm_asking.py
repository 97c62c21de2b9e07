"""Requests that tests ask, and how they ask them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llm_servers import Heard, Said, StandIn

from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolSpec
from tradeassay_bench.llm import ModelParams, QuestionPlace, load_prices
from tradeassay_bench.llm.model import Attempt

ACTION = ToolSpec(
    name="submit_action",
    description="Submit the orders of the day.",
    schema='{"type":"object","properties":{"orders":{"type":"array","items":{"type":"object","properties":'
    '{"stock_id":{"type":"string"},"side":{"type":"string","enum":["BUY","SELL"]},"shares":{"type":"integer"}},'
    '"required":["stock_id","side"]}},"overall_reason":{"type":"string"}},"required":["orders","overall_reason"]}',
)
STATE = ToolSpec(
    name="portfolio_state", description="The account.", schema='{"type":"object","properties":{}}'
)
SCREEN = ToolSpec(
    name="screen_candidates",
    description="Rank names.",
    schema='{"type":"object","properties":{"factors":{"type":"array","items":{"type":"string"}},'
    '"top_k":{"type":"integer"}},"required":["factors"]}',
)
TOOLS = (STATE, SCREEN, ACTION)
GOOD = '{"orders": [], "overall_reason": "nothing today"}'
BROKEN = '{"orders": [{"stock_id": "asset_0001", "side": }'

OPENING = (Message(role="system", text="You trade."), Message(role="user", text="Decide."))
SUBMIT = AskModel(purpose="submit", messages=OPENING, tools=TOOLS, must_call="submit_action")
RESEARCH = AskModel(purpose="research", messages=OPENING, tools=TOOLS)
PLAIN = AskModel(purpose="overview", messages=OPENING)


def place(
    index: int = 0, step: int = 0, sample: int = 0, episode: str = "episode-1"
) -> QuestionPlace:
    return QuestionPlace(episode=episode, step=step, sample=sample, index=index)


class Listed:
    """A provider that answers from a list, and breaks at its end."""

    name = "test/listed"

    def __init__(self, *attempts: Attempt) -> None:
        self.attempts = list(attempts)
        self.asked: list[AskModel] = []

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        self.asked.append(request)
        return self.attempts.pop(0)


def ask_provider(
    name: str,
    says: Sequence[Said],
    request: AskModel = SUBMIT,
    params: ModelParams | None = None,
    **model_args: Any,
) -> tuple[list[Attempt], list[Heard]]:
    """Open a model at a stand-in server and make one attempt for each of its answers."""
    from tradeassay_bench.llm.via_inspect.provider import open_provider

    async def main() -> tuple[list[Attempt], list[Heard]]:
        async with StandIn(*says) as server:
            url = server.url if name.startswith(("anthropic", "google")) else f"{server.url}/v1"
            price = load_prices().of(name)
            provider = open_provider(
                name, params or ModelParams(), price, base_url=url, **model_args
            )
            try:
                return [
                    await provider.attempt(request, place(at)) for at in range(len(says))
                ], server.heard
            finally:
                await provider.aclose()

    return asyncio.run(main())


def replies(attempts: Sequence[Attempt]) -> list[ModelReply]:
    return [attempt.reply for attempt in attempts]
