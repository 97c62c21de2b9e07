"""The arena's wire against servers typed from the published contracts: they take our requests as
they are.

Both servers refuse a field that their contract does not have.
"""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from tests.bench.frontends.packet_sample import PACKET, served_at

from tradeassay.core.errors import UserError
from tradeassay_bench.agents.foreign.ama import HttpAgent
from tradeassay_bench.core.arena import AgentChoice


class DayPrice(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    date: str
    price: float


class AmaRequest(BaseModel):
    """What the arena's own documentation says a request is: news a text, reports lists of texts."""

    model_config = ConfigDict(extra="forbid", strict=True)
    date: str
    price: dict[str, float]
    news: dict[str, str]
    symbol: list[str]
    model: str
    ten_k: dict[str, list[str]] | None = Field(default=None, alias="10k")
    ten_q: dict[str, list[str]] | None = Field(default=None, alias="10q")
    history_price: dict[str, list[DayPrice]]


class EvalRequest(BaseModel):
    """What FinMMEval's example takes: news a list, momentum a word; it gives no reason."""

    model_config = ConfigDict(extra="forbid", strict=True)
    date: str
    price: dict[str, float]
    news: dict[str, list[str]]
    symbol: list[str]
    model: str = ""
    momentum: dict[str, str] | None = None
    ten_k: dict[str, list[str]] | None = Field(default=None, alias="10k")
    ten_q: dict[str, list[str]] | None = Field(default=None, alias="10q")
    history_price: dict[str, list[DayPrice]] = {}


SEEN: list[Any] = []
app = FastAPI()


@app.post("/ama/trading_action/")
async def ama(request: AmaRequest) -> dict[str, str]:
    SEEN.append(request)
    return {"recommended_action": "SELL", "reasoning": "because"}


@app.post("/eval/trading_action/")
async def evaluated(request: EvalRequest) -> dict[str, str]:
    SEEN.append(request)
    return {"recommended_action": "BUY"}


def asked(path: str, wire: str) -> AgentChoice:
    agent = HttpAgent(
        f"https://agent.example/{path}/trading_action/",
        model="gpt-4o",
        wire=wire,
        resolve=served_at("93.184.216.34"),
        through=httpx.ASGITransport(app=app),
    )
    return asyncio.run(agent.decide(PACKET))


def test_a_server_of_the_published_arena_takes_our_request_at_its_own_address():
    choice = asked("ama", "ama")
    assert (choice.status, choice.action, choice.reasoning) == ("decided", "SELL", "because")
    told = SEEN.pop()
    assert (
        told.news == {"TSLA": "A. B"}
        and told.ten_k == {"TSLA": ["Revenue: 1"]}
        and told.ten_q is None
    )
    assert [point.price for point in told.history_price["TSLA"]] == [
        float(day) for day in range(20, 30)
    ]


def test_a_server_of_finmmeval_needs_no_reason():
    choice = asked("eval", "finmmeval")
    assert (choice.status, choice.action, choice.reasoning) == ("decided", "BUY", "")
    told = SEEN.pop()
    assert told.news == {"TSLA": ["A. B"]} and told.momentum == {"TSLA": "bullish"}


def test_the_wrong_wire_is_a_counted_failure_and_no_wire_is_refused():
    assert asked("ama", "finmmeval").failures[0].kind == "status"
    assert asked("eval", "ama").failures[0].kind == "status"
    with pytest.raises(UserError, match="unknown wire 'amma'"):
        asked("ama", "amma")
