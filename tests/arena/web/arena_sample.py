"""A small season with everything a page must show: failures, a missed session, words that would
like to run.
"""

import asyncio
from pathlib import Path

import msgspec

from tradeassay.metrics import BootstrapConfig
from tradeassay_arena.agents import ConstantAction, EntryAgent, Trend
from tradeassay_arena.clock import ReplayClock
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, Season
from tradeassay_arena.standings import BoardConfig
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.stream import stream_publisher
from tradeassay_bench.core.arena import (
    AgentChoice,
    ChoiceFailure,
    Contribution,
    Deliberation,
    Packet,
)
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay_bench.core.time import parse_iso
from tradeassay_bench.llm import QuestionPlace

ATTACK = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


class Talker:
    """Asks once, remembers, says things that are dangerous if shown as they are, and fails every
    ninth day.
    """

    def __init__(self, side: int) -> None:
        self.side = side

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        answer = yield AskModel(
            purpose="look", messages=(Message(role="user", text=f"{packet.date} {ATTACK}"),)
        )
        body = msgspec.json.encode(
            {"items": [{"layer": "short", "text": ATTACK, "made": 1, "importance": 0.5}]}
        )
        day = int(packet.date[-2:])
        if day % 9 == 0:
            why = ChoiceFailure(kind="parse", text=f"no JSON {ATTACK}")
            return AgentChoice(
                action="HOLD", status="failed", reasoning="", failures=(why,), memory=body
            )
        action = "BUY" if (day // 3 + self.side) % 2 else "SELL"
        said = (Contribution(role="analyst", step="look", text=answer.text),)
        return AgentChoice(
            action=action, reasoning=f"because {ATTACK}", confidence=0.6, talk=said, memory=body
        )  # type: ignore[arg-type]  # one of two


class Echo:
    name = "test/echo"

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        return ModelReply(
            text=f"heard {ATTACK}", usage=Usage(input_tokens=10, output_tokens=2, usd=0.001)
        )


def make_season(**changed: object) -> Season:
    plan: dict[str, object] = {
        "id": "small",
        "title": f"Small {ATTACK}",
        "assets": (
            Asset(symbol="AAJX", kind="stock", dataset="synthetic/us:7"),
            Asset(symbol="AHVQ", kind="crypto", dataset="synthetic/crypto:7"),
        ),
        "entries": (
            Entry(id="one-a", architecture="investor", model="test/a"),
            Entry(id="one-b", architecture="investor", model="test/b", label=f"B {ATTACK}"),
            Entry(id="two-a", architecture="trade", model="test/a"),
            Entry(id="two-b", architecture="trade", model="test/b"),
            Entry(id="trend", architecture="rule", params={"rule": "trend"}),
        ),
        "first": "2022-05-01",
        "last": "2022-06-14",
        "warmup": 2,
    }
    return Season(**{**plan, **changed})  # type: ignore[arg-type]  # a test's own mapping


SIDES = {"one-a": 0, "one-b": 1, "two-a": 0}
AGENTS = {id: EntryAgent(Talker(side), Echo(), each_call=False) for id, side in SIDES.items()}
RULES = {"two-b": ConstantAction("SELL"), "trend": Trend(), "buy-and-hold": ConstantAction("BUY")}
AGENTS |= {id: EntryAgent(rule) for id, rule in RULES.items()}
FAST = BoardConfig(bootstrap=BootstrapConfig(draws=100))


def open_store(path: Path) -> Store:
    return Store(open_engine(str(path), durable=False))


def play(store: Store, season: Season, feed: SnapshotFeed, until: str, **changed: object) -> int:
    plan = {
        "season": season,
        "store": store,
        "feed": feed,
        "clock": ReplayClock(),
        "agents": AGENTS,
    }
    plan["publish"] = stream_publisher(store)
    runner = Runner(**{**plan, **changed})  # type: ignore[arg-type]  # a test's own mapping
    return asyncio.run(runner.run(parse_iso(f"{until}T23:59:59Z")))


class Late(ReplayClock):
    """A clock that is live and always a day late: what is due now is missed."""

    live = True

    def now(self) -> int:
        return super().now() + 86_400 * 1_000_000_000
