"""Agents that lie, hurry, repeat themselves and talk without end: how much of it gets through."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
from sqlalchemy import func, select
from tests.arena.conftest import EchoModel, Table, TwoQuestions, seated
from tests.arena.test_doors import NOW, SEASON, Client, founded, runner, through

from tradeassay.agents.foreign.ama import MAX_REASONING
from tradeassay.arena.agents import ConstantAction, EntryAgent
from tradeassay.arena.api import router as door
from tradeassay.arena.api.outside import DoorAgent, OfferWatch
from tradeassay.arena.api.router import DoorLimits
from tradeassay.arena.season import BudgetRules
from tradeassay.arena.state.tables import calls, decisions, slots
from tradeassay.core.dialogue import Usage

ROOM = DoorLimits(per_minute=70_000)


def test_of_forty_attacks_on_a_seat_none_gets_through(store, feed, monkeypatch):
    season = msgspec.structs.replace(SEASON, id="one", last="2022-06-01", timeout_s=120)
    doors = founded(store, season)
    tokens = {id: doors.register("one", id, now=NOW) for id in ("anna", "bert")}
    through_: list[str] = []
    tried: Counter[str] = Counter()

    async def talk(http: httpx.AsyncClient) -> None:
        anna, bert = (Client(http, tokens[id]) for id in ("anna", "bert"))
        watch = OfferWatch(doors, poll_s=0.01)
        playing = asyncio.create_task(
            runner(store, feed, {id: DoorAgent(watch, id) for id in tokens}, season).run()
        )
        told, theirs = await anna.packet(), await bert.packet()
        named = {"slot": told["slot"], "packet_sha256": told["packet_sha256"]}
        good = {**named, "recommended_action": "SELL", "reasoning": "r"}

        async def attack(what: str, body: object, head: dict[str, str] | None = None, times: int = 1) -> None:
            content = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else msgspec.json.encode(body)
            for number in range(times):
                tried[what] += 1
                sent = {"Content-Type": "application/json", "Idempotency-Key": f"{what[:20]}-{number:08d}"}
                answer = await http.post(
                    "/agents/me/choice", content=content, headers={**bert.head, **sent, **(head or {})}
                )
                if answer.status_code < 400:
                    through_.append(what)
                assert answer.status_code < 500, (what, answer.text)

        async def drip() -> AsyncIterator[bytes]:
            for letter in msgspec.json.encode({**good, "slot": theirs["slot"]}):
                yield bytes((letter,))
                await asyncio.sleep(0.02)

        own = {**good, "slot": theirs["slot"], "packet_sha256": theirs["packet_sha256"]}
        await attack("the slot of another agent", good, times=3)
        await attack("the packet of another agent's past", {**own, "packet_sha256": "0" * 64}, times=3)
        await attack("ten megabytes", b'{"reasoning": "' + b"x" * 10_000_000, times=2)
        with monkeypatch.context() as hurried:  # not for those who are to be heard
            hurried.setattr(door, "BODY_S", 0.05)
            await attack("one byte at a time", drip())
        await attack("brackets without end", b"[" * 60_000, times=2)
        await attack("usage of its own making", {**own, "usage": {"usd": -5.0, "input_tokens": -(10**9)}}, times=3)
        for odd in ("NaN", "1e999", "-1", "2", '"BUY"'):
            raw = msgspec.json.encode(own).replace(b'"r"', b'"r","confidence":' + odd.encode())
            await attack("a confidence that is none", raw)
        for odd_slot in (b"-1", b"0", b"1e9", b"99999999999999999999", b"null", b'"1"'):
            raw = msgspec.json.encode(own).replace(f'"slot":{own["slot"]}'.encode(), b'"slot":' + odd_slot)
            await attack("a slot that is none", raw)
        await attack("packed", b"\x1f\x8b\x08" + b"\0" * 100, {"Content-Encoding": "gzip"}, times=2)
        await attack("half a character", b'{"reasoning": "\xd8\x00"}', times=2)
        await attack("a key of line breaks", own, {"Idempotency-Key": "a\tb\tc\td\te"})
        await attack("a key without end", own, {"Idempotency-Key": "k" * 5000})
        await attack("a token in capitals", own, {"Authorization": bert.head["Authorization"].upper()})
        await attack("a token cut short", own, {"Authorization": bert.head["Authorization"][:-1]})
        many = await asyncio.gather(*(anna.choose(told, "BUY", f"storm-{n:08d}") for n in range(24)))
        assert Counter(answer.status_code for answer in many) == {200: 1, 409: 23}
        odd_name = "\u202eанна\u0000 \U0001f600" + "é" * 9000
        last = await bert.choose(theirs, "HOLD", "key-00001", reasoning=odd_name, message=odd_name)
        assert last.status_code == 200
        await attack("another word after the first", own, times=3)
        await playing
        await attack("after the round", own, times=4)

    through(doors, talk, limits=ROOM)
    assert sum(tried.values()) >= 40 and not through_, (through_, tried)
    with store.read() as db:
        rows = db.execute(select(slots.c.entry, slots.c.action, slots.c.status, slots.c.reasoning)).all()
    kept = {row.entry: row for row in rows}
    assert (kept["anna"].action, kept["bert"].action) == ("BUY", "HOLD")
    assert "\0" not in kept["bert"].reasoning and len(kept["bert"].reasoning) <= MAX_REASONING


class Lying(EchoModel):
    """Costs a dollar a question and says something else."""

    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self._usage = usage

    async def ask(self, request, place):
        reply = await super().ask(request, place)
        return msgspec.structs.replace(reply, usage=self._usage)


def spend(table: Table, model: EchoModel, budget: BudgetRules) -> tuple[int, int]:
    """Play a season and return how many decisions asked a model, and how many were refused for the budget."""
    season = msgspec.structs.replace(table.season, budget=budget, warmup=0, last="2022-06-06")
    agents = {"thinker": EntryAgent(TwoQuestions(), model), **seated(trend=ConstantAction("HOLD"))}
    table.play(season=season, agents=agents)
    found = table.runner()
    with found.store.read() as db:
        asked = db.execute(select(func.count(func.distinct(calls.c.slot)))).scalar_one()
        over = decisions.c.failures.contains("over_budget")
        refused = db.execute(select(func.count()).select_from(decisions).where(over)).scalar_one()
    found.store.engine.dispose()
    return asked, refused


@pytest.mark.parametrize(
    ("usage", "budget", "most"),
    [
        (Usage(input_tokens=10, output_tokens=1, usd=1.0), BudgetRules(usd=6.0), 4),
        (Usage(input_tokens=10, output_tokens=1, usd=None), BudgetRules(usd=6.0), 2),
        (Usage(input_tokens=10, output_tokens=1, usd=-1.0), BudgetRules(tokens=66), 4),
        (Usage(input_tokens=-99, output_tokens=100, usd=0.0), BudgetRules(tokens=6), 4),
    ],
)
def test_a_budget_is_kept_whatever_a_model_says_about_its_price(table, usage, budget, most):
    asked, refused = spend(table, Lying(usage), budget)
    assert 1 <= asked <= most  # of those under way when it ran out none is cut off: two assets, one more each
    assert refused >= 4


def test_a_budget_of_a_day_begins_anew_and_a_restart_does_not(table):
    table.model = Lying(Usage(input_tokens=10, output_tokens=1, usd=1.0))
    for _ in range(2):  # the same season, continued
        asked, _ = spend(table, table.model, BudgetRules(usd_per_day=1.0))
    assert 6 <= asked <= 2 * 6  # six days; those of a stock and a coin are decided side by side
