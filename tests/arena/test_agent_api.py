"""The api: an agent comes with its token, fetches its packet, decides once, and sees nobody
else's cards.
"""

import asyncio
import re
import socket
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI
from sqlalchemy import event, select
from tests.arena.conftest import seated

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.api import router as http_routes
from tradeassay_arena.api.agent_api import (
    AgentApi,
    Notification,
    Offer,
    Offered,
    RegisteredAgent,
    Rejected,
)
from tradeassay_arena.api.outside import OfferWatch, PollingAgent, RemoteAgent, outside_agents
from tradeassay_arena.api.router import RequestLimits, SharedCounts, router
from tradeassay_arena.clock import ReplayClock
from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.rounds.deciding import Batcher
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.season import Asset, Entry, OptionalRules, Season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import door_agents, seasons, slots
from tradeassay_arena.verifying import verify_arena
from tradeassay_arena.web.serving import Serving, play, serve
from tradeassay_bench.agents.foreign.ama import MAX_REASONING
from tradeassay_bench.core.arena import AgentChoice, Contribution, Packet
from tradeassay_bench.core.time import SECOND, FixedClock, parse_iso

NOW, SCRIPT = "2022-06-01T00:00:00Z", "<script>alert(1)</script>"
SEASON = Season(
    id="agents",
    assets=(Asset(symbol="AHVQ", kind="crypto", dataset="synthetic/crypto:7"),),
    entries=(Entry(id="anna", architecture="http"), Entry(id="bert", architecture="mcp")),
    first="2022-06-01",
    last="2022-06-03",
    timeout_s=20,
    rules=OptionalRules(feedback=True),
)


def founded(store: Store, season: Season = SEASON) -> AgentApi:
    store.create_season(season, NOW)
    return AgentApi(store)


@pytest.fixture
def api(store):
    return founded(store)


def runner(
    store: Store, feed: SnapshotFeed, deciding: dict[str, Any], season: Season = SEASON
) -> Runner:
    return Runner(
        season=season, store=store, feed=feed, clock=ReplayClock(), agents=seated(**deciding)
    )


@asynccontextmanager
async def under_way(api: AgentApi, feed: SnapshotFeed) -> AsyncIterator[list[Notification]]:
    """Play the season until anna and bert are waited for; gives what each is told."""
    deciding = {id: PollingAgent(OfferWatch(api, poll_s=0.01), id) for id in ("anna", "bert")}
    season = asyncio.create_task(runner(api.store, feed, deciding).run())
    while None in (told := api.all_waiting([*api.registered("agents").values()])):
        await asyncio.sleep(0.01)
    yield told
    season.cancel()
    await asyncio.gather(season, return_exceptions=True)


@pytest.fixture
def both(api):
    """Anna and bert, who are registered."""
    return [api.agent_of(api.register("agents", id, now=NOW)) for id in ("anna", "bert")]


class Client:
    """Sends requests with a token."""

    def __init__(self, http: httpx.AsyncClient, token: str) -> None:
        self.http, self.head = http, {"Authorization": f"Bearer {token}"}

    async def get(self, path: str) -> httpx.Response:
        return await self.http.get(f"/agents/me{path}", headers=self.head)

    async def packet(self) -> dict[str, Any]:
        while (found := await self.get("/packet?wait=2")).status_code == 204:
            pass
        assert found.status_code == 200, found.text
        return found.json()

    async def choose(
        self, told: dict[str, Any], action: str, key: str, **more: Any
    ) -> httpx.Response:
        named = {"slot": told["slot"], "packet_sha256": told["packet_sha256"]}
        body = {**named, "recommended_action": action, "reasoning": SCRIPT, **more}
        head = {**self.head, "Idempotency-Key": key}
        return await self.http.post("/agents/me/choice", json=body, headers=head)


def through(
    api: AgentApi, talk: Callable[[httpx.AsyncClient], Awaitable[None]], **changed: Any
) -> None:
    app = FastAPI()
    app.include_router(router(api, **changed))

    async def run() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://arena") as http:
            await talk(http)

    asyncio.run(run())


def test_a_token_is_shown_once_and_only_its_hash_is_kept(store, api):
    token = api.register("agents", "anna", now=NOW)
    kept = repr(store.rows(select(door_agents)))
    secret = token.split("-", 2)[2]
    assert token not in kept and secret not in kept
    agent = api.agent_of(token)
    assert agent is not None and (agent.season, agent.entry) == ("agents", "anna")
    assert api.agent_of(token[:-1] + ("A" if token[-1] != "A" else "B")) is None
    assert api.agent_of("") is None and api.agent_of("ta-000000000000-" + "x" * 43) is None
    with pytest.raises(UserError, match="registered already"):
        api.register("agents", "anna", now=NOW)
    fresh = api.renew("agents", "anna")
    assert api.agent_of(token) is None and api.agent_of(fresh) is not None
    assert api.revoke("agents", "anna", now=NOW) and api.agent_of(fresh) is None
    assert not api.revoke("agents", "anna", now=NOW)
    for season, entry, address in (
        ("none", "anna", None),
        ("agents", "carl", None),
        ("agents", "buy-and-hold", None),
        ("agents", "bert", "ftp://x"),
    ):
        with pytest.raises(UserError):
            api.register(season, entry, now=NOW, address=address)
    with pytest.raises(UserError):
        api.renew("agents", "bert")


def test_an_operator_registers_and_makes_keys_at_the_database(store, api, tmp_path, tell):

    def amend(
        *words: str, status: int = 0, db: str = str(store.engine.url.database)
    ) -> tuple[str, str]:
        out, err = tell(["arena", "amend", *words, "--db", db], status)
        return out.strip(), err

    token, _ = amend("register", "anna", "--address", "https://agent.example")
    assert api.agent_of(token).address == "https://agent.example"
    again, _ = amend("register", "anna", "--renew")
    assert api.agent_of(again) is not None and api.agent_of(token) is None
    amend("register", "anna", "--renew", "--address", "https://o.it", status=2)
    amend("revoke", "anna")
    assert api.agent_of(again) is None and api.status(again).status == "revoked"
    amend("revoke", "anna", status=2)
    assert amend("key", "expert", "ann")[0].startswith("ta-") and "ann" in api.key_names("expert")
    amend("key", "expert", "ann", "--revoke")
    assert api.key_names("expert") == ()
    assert "names with a key: nobody" in amend("key", "expert", "ann", "--revoke", status=2)[1]
    misspelt = tmp_path / "misspelt.db"
    assert "there is no database" in amend("key", "expert", "ann", status=2, db=str(misspelt))[1]
    assert not misspelt.exists()


def test_two_agents_play_a_season_through_the_door(store, api, feed):
    tokens = [api.register("agents", id, now=NOW) for id in ("anna", "bert")]
    deciding = {id: PollingAgent(OfferWatch(api, poll_s=0.01), id) for id in ("anna", "bert")}
    answered: list[tuple[Client, dict[str, Any]]] = []

    async def play(client: Client, other: Client, action: str) -> None:
        for day in range(3):
            told, key = await client.packet(), f"{action}-key-{day}"
            assert (
                told["packet"]["date"] == f"2022-06-0{day + 1}"
                and len(told["packet"]["outcomes"]) == day
            )
            for status, who, about, choice, named in (
                (404, other, told, "SELL", f"theft-{day}-{action}"),  # whatever one knows of it
                (
                    409,
                    client,
                    {**told, "packet_sha256": "0" * 64},
                    action,
                    key,
                ),  # which does not use the key up
                (200, client, told, action, key),
                (409, client, told, action, key),
                (409, client, told, "HOLD", key),
                (409, client, told, "HOLD", f"{action}-new-{day}"),
            ):
                answer = await who.choose(about, choice, named)
                assert answer.status_code == status, answer.text
            answered.append((client, told))

    async def talk(http: httpx.AsyncClient) -> None:
        anna, bert = (Client(http, token) for token in tokens)
        season = asyncio.create_task(runner(store, feed, deciding).run())
        await asyncio.gather(play(anna, bert, "BUY"), play(bert, anna, "SELL"))
        assert await season == 3
        own = (await anna.get("/decisions")).json()["items"]
        assert [(d["session"], d["action"]) for d in own] == [
            (f"2022-06-0{n}", "BUY") for n in (3, 2, 1)
        ]
        assert all(d["earned"] is not None for d in own)  # the session after the last settles it
        rewards = (await bert.get("/rewards")).json()["items"]
        assert [r["action"] for r in rewards] == ["SELL"] * 3
        assert len((await bert.get(f"/rewards?after={rewards[0]['slot']}")).json()["items"]) == 2
        for number, (client, told) in enumerate(answered):  # when everything is over, too
            assert (await client.choose(told, "HOLD", f"again-key-{number}")).status_code == 409
        assert (await anna.get("")).json()["entry"] == "anna"

    through(api, talk, limits=RequestLimits(per_minute=6000))
    found = store.rows(select(*slots.c["entry", "action", "status", "reasoning"]).distinct())
    played = {("anna", "BUY"), ("bert", "SELL"), ("buy-and-hold", "BUY")}
    assert {row[:3] for row in found} == {(*one, "decided") for one in played}
    said = {row.reasoning for row in found if row.entry != "buy-and-hold"}
    assert said == {SCRIPT}  # kept as it was said; pages escape it


async def test_when_a_round_opens_the_packets_are_made_once_for_all(store, api, both, feed):
    anna, bert = both
    read: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *given: read.append(given[2]))

    def packets_read() -> int:
        return len([one for one in read if "rounds.packet " in one])

    async with under_way(api, feed) as (hers, his):
        other, before = AgentApi(store), packets_read()
        assert other.waiting(anna) == hers and packets_read() == before + 1
        assert other.waiting(bert) == his and packets_read() == before + 1
        # What is remembered of a slot is looked at again when an answer is written down.
        offer = Offer(
            slot=hers.slot,
            packet_sha256=hers.packet_sha256,
            recommended_action="BUY",
            reasoning="r",
        )
        sent = api.sent[hers.slot]
        moved = SimpleNamespace(**{**sent[0]._mapping, "session": "2022-06-02"})
        api.sent[hers.slot] = (moved, hers.packet_sha256)
        with pytest.raises(Rejected, match="closed"):
            api.submit(anna, "key-00001", offer)
        AgentApi(store).submit(anna, "key-00001", offer)


async def test_answers_that_come_at_once_are_one_transaction_and_judged_each_by_itself(
    store, api, both, feed
):
    anna, bert = both
    commits: list[object] = []

    def made(
        agent: RegisteredAgent, told: Notification, key: str, sha256: str = "", **more: Any
    ) -> Offered:
        answer = {"recommended_action": "BUY", "reasoning": "r", **more}
        offer = Offer(slot=told.slot, packet_sha256=sha256 or told.packet_sha256, **answer)
        return agent, key, offer

    async with under_way(api, feed) as (hers, his):
        event.listen(store.engine, "commit", commits.append)
        assert api.all_waiting((anna, bert, anna)) == [hers, his, hers] and hers.slot != his.slot
        del commits[:]
        judged = (
            (None, made(anna, hers, "key-00001")),
            (409, made(anna, hers, "key-00001")),  # sent twice
            (409, made(anna, hers, "key-00002", recommended_action="SELL")),  # changed her mind
            (404, made(bert, hers, "key-00003")),  # somebody else's slot
            (409, made(bert, his, "key-00004", "0" * 64)),
            (422, made(bert, his, "short")),
            (422, made(bert, his, "key-00005", confidence=7.0)),
            (None, made(bert, his, "key-00006")),
        )
        refused = api.submit_all([offered for _, offered in judged])
        assert [one and one.status for one in refused] == [status for status, _ in judged]
        assert len(commits) == 1


def test_one_question_that_cannot_be_asked_spoils_no_other():
    asked: list[int] = []

    def do(numbers: Sequence[int]) -> list[int]:
        asked.append(len(numbers))
        return [12 // number for number in numbers]

    async def talk() -> list[Any]:
        together = Batcher(do)
        return await asyncio.gather(
            *(together.ask(number) for number in (1, 0, 4)), return_exceptions=True
        )

    one, broken, three = asyncio.run(talk())
    assert (one, three) == (12, 3) and isinstance(broken, ZeroDivisionError)
    assert asked == [3, 1, 1, 1]


def test_of_forty_attacks_on_a_seat_none_gets_through(store, feed, monkeypatch):
    """Each is refused with the status that says why, while both seats wait for their agents'
    answers.
    """
    season = msgspec.structs.replace(SEASON, id="one", last="2022-06-01", timeout_s=120)
    api = founded(store, season)
    tokens = {id: api.register("one", id, now=NOW) for id in ("anna", "bert")}
    odd = "\u202eанна\u0000 \U0001f600" + "é" * 9000

    async def talk(http: httpx.AsyncClient) -> None:
        anna, bert = (Client(http, token) for token in tokens.values())
        deciding = {id: PollingAgent(OfferWatch(api, poll_s=0.01), id) for id in tokens}
        playing = asyncio.create_task(runner(store, feed, deciding, season).run())
        hers, his = await anna.packet(), await bert.packet()
        own = {
            "slot": his["slot"],
            "packet_sha256": his["packet_sha256"],
            "recommended_action": "SELL",
        }
        own["reasoning"] = "r"
        written, tried = msgspec.json.encode(own), 0

        async def attack(status: int, body: Any, **head: str) -> None:
            nonlocal tried
            tried += 1
            content = msgspec.json.encode(body) if isinstance(body, dict) else body
            key = {"Idempotency-Key": f"attack-{tried:08d}", "Content-Type": "application/json"}
            answer = await http.post(
                "/agents/me/choice", content=content, headers={**bert.head, **key, **head}
            )
            assert answer.status_code == status, (body, head, answer.text[:300])

        async def drip() -> AsyncIterator[bytes]:
            for letter in written:
                yield bytes((letter,))
                await asyncio.sleep(0.02)

        token = bert.head["Authorization"]
        for wrong in ("", "Bearer nonsense", token.upper(), token[:-1]):
            await attack(401, own, Authorization=wrong)
        two = [("Authorization", token), ("Authorization", "Bearer ta-other")]
        assert (await http.get("/agents/me", headers=two)).status_code == 401
        refused = await http.get("/agents/me/packet")
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        await attack(404, {**own, "slot": hers["slot"], "packet_sha256": hers["packet_sha256"]})
        await attack(404, {**own, "slot": his["slot"] + hers["slot"]})
        await attack(409, {**own, "packet_sha256": "0" * 64})
        await attack(415, own, **{"Content-Type": "text/plain"})
        for key in ("short", "a\tb\tc\td\te", "k" * 5000):
            await attack(422, own, **{"Idempotency-Key": key})
        for long in (
            written.replace(b'"r"', b'"%s"' % (b"x" * size)) for size in (70_000, 10_000_000)
        ):
            await attack(413, long)
        with monkeypatch.context() as hurried:  # not for those who are to be heard
            hurried.setattr(http_routes, "BODY_S", 0.05)
            await attack(422, drip())
        for broken in (
            b"",
            b"{",
            b"\xff",
            b"[]",
            b"null",
            b"[" * 60_000,
            b'{"reasoning": "\xd8\x00"}',
        ):
            await attack(422, broken)
        await attack(422, b"\x1f\x8b\x08" + b"\0" * 100, **{"Content-Encoding": "gzip"})
        for changed in (
            *({"slot": slot} for slot in (-1, 0, 2**40, 10**20, None, "1")),
            {"packet_sha256": "zz"},
            {"recommended_action": "buy"},
            *({"confidence": told} for told in (2, -1, "BUY")),
            {"allocation": -1},
            {"reasoning": None},
            {"unknown": 1},
            {"usage": {"usd": -5.0, "input_tokens": -(10**9)}},
        ):
            await attack(422, {**own, **changed})
        for number in (b'"slot":1e9', b'"confidence":NaN', b'"confidence":1e999'):
            await attack(422, written[:-1] + b"," + number + b"}")
        assert (await bert.get("/packet?wait=1000")).status_code == 422
        many = await asyncio.gather(
            *(anna.choose(hers, "BUY", f"storm-{n:08d}") for n in range(24))
        )
        assert Counter(answer.status_code for answer in many) == {200: 1, 409: 23}
        assert (
            await bert.choose(his, "HOLD", "key-00001", reasoning=odd, message=odd)
        ).status_code == 200
        await attack(409, own)  # another word after the first
        await playing
        await attack(409, own)
        assert (await anna.get("/packet")).status_code == 204 and tried >= 40

    through(api, talk, limits=RequestLimits(per_minute=70_000))
    kept = {row.entry: row for row in store.rows(select(*slots.c["entry", "action", "reasoning"]))}
    assert (kept["anna"].action, kept["bert"].action) == ("BUY", "HOLD")
    assert "\0" not in kept["bert"].reasoning and len(kept["bert"].reasoning) <= MAX_REASONING


def test_an_agent_that_waits_is_sent_away_when_the_arena_stops(api):
    token = api.register("agents", "anna", now=NOW)

    async def talk(http: httpx.AsyncClient) -> None:
        waiting = asyncio.create_task(Client(http, token).get("/packet?wait=25"))
        await asyncio.sleep(0)
        api.closing.set()
        assert (await asyncio.wait_for(waiting, 20)).status_code == 204

    through(api, talk)


def test_too_many_requests_and_wrong_tokens_that_lock_no_right_one_out(api):
    api.clock = FixedClock(6000 * SECOND)  # a new minute would begin the count anew
    token, other = (api.register("agents", id, now=NOW) for id in ("anna", "bert"))

    async def talk(http: httpx.AsyncClient) -> None:
        anna = Client(http, token)
        codes = [(await anna.get("")).status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        refused = await anna.get("")
        assert int(refused.headers["retry-after"]) >= 1
        stranger = Client(http, "ta-000000000000-" + "x" * 43)
        assert [(await stranger.get("")).status_code for _ in range(9)] == [401, 401, *[429] * 7]
        assert (await Client(http, other).get("")).status_code == 200  # from the same address

    through(api, talk, limits=RequestLimits(per_minute=3, strangers=2))


def test_limits_are_shared_between_processes(store, api):
    clocks = [FixedClock(6000 * SECOND) for _ in range(2)]
    mine, theirs = (SharedCounts(AgentApi(store, clock), every_s=0.0) for clock in clocks)
    found = []
    for counts, name in (
        (mine, "anna"),
        (theirs, "anna"),
        (mine, "anna"),
        (theirs, "bert"),
        (theirs, "anna"),
    ):
        found.append(counts.add(name))
        counts.tell()
    assert found == [1, 1, 2, 1, 3] and mine.add("anna") == 4  # as heard when they were told last
    clocks[1].advance(6060 * SECOND)
    assert theirs.add("anna") == 1 and api.count({}, 101) == {}
    with pytest.raises(UserError):
        RequestLimits(strangers=0)


def test_the_operator_registers_over_http(store, api):
    key = api.issue_key("operator", "operator", now=NOW)

    async def talk(http: httpx.AsyncClient) -> None:
        body = {"season": "agents", "entry": "anna", "address": "https://agent.example"}
        for wrong in ({}, {"Authorization": "Bearer guess"}):
            assert (await http.post("/agents", json=body, headers=wrong)).status_code == 403
        head = {"Authorization": f"Bearer {key}"}
        made = await http.post("/agents", json=body, headers=head)
        assert api.agent_of(made.json()["token"]).address == "https://agent.example"
        assert made.headers["cache-control"] == "no-store"
        assert (await http.post("/agents", json=body, headers=head)).status_code == 422
        assert (
            await http.post("/agents", json={**body, "entry": "A\0"}, headers=head)
        ).status_code == 422

    through(api, talk, operator=True)
    again = AgentApi(store)  # a restarted process knows the key, until it is revoked
    assert again.key_owner("operator", key) == "operator" and again.key_owner("expert", key) is None
    assert (
        again.revoke_key("operator", "operator", now=NOW) and api.key_owner("operator", key) is None
    )

    async def absent(http: httpx.AsyncClient) -> None:
        assert (await http.post("/agents", json={})).status_code == 404

    through(api, absent)


def test_registrations_count_from_the_next_decision_on_and_are_looked_up_once_for_all_seats(
    store, monkeypatch
):
    api, looks = founded(store), []
    seat = RemoteAgent(SEASON, SEASON.entry("anna"), OfferWatch(api))
    assert asyncio.run(seat.address()) == ""  # it fetches its packets itself
    api.register("agents", "anna", now=NOW, address="https://agent.example")
    look = api.registered
    monkeypatch.setattr(api, "registered", lambda season: looks.append(season) or look(season))
    watch = OfferWatch(api)
    seats = [RemoteAgent(SEASON, SEASON.entry(id), watch) for id in ("anna", "bert", "anna")]

    async def run() -> list[str]:
        return list(await asyncio.gather(*(seat.address() for seat in seats)))

    assert asyncio.run(run()) == ["https://agent.example", "", "https://agent.example"]
    assert looks == ["agents"]
    api.revoke("agents", "anna", now=NOW)
    assert asyncio.run(seat.address()) == ""


def test_players_are_made_from_a_season(api):
    api.register("agents", "anna", now=NOW, address="https://agent.example")
    season = msgspec.structs.replace(
        SEASON,
        entries=(
            *SEASON.entries,
            Entry(id="carl", architecture="subprocess", params={"command": "cat -u"}),
            Entry(id="dora", architecture="python"),
            Entry(id="emil", architecture="http", params={"url": "https://other.example"}),
        ),
    )

    class Dora:
        def decide(self, packet: Packet) -> str:
            return "BUY"

    async def run(**objects: Any) -> dict[str, str]:
        async with outside_agents(season, api, objects=objects) as found:
            return {id: type(player).__name__ for id, player in found.items()}

    seated = dict.fromkeys(("anna", "bert", "emil"), "RemoteAgent")
    assert asyncio.run(run(dora=Dora())) == {
        **seated,
        "carl": "SubprocessAgent",
        "dora": "PythonAgent",
    }
    with pytest.raises(UserError, match=r"no .class."):
        asyncio.run(run())


def test_no_season_is_spent_on_an_address_that_nobody_allowed(store):
    for url in ("http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "http://10.0.0.1"):
        emil = Entry(id="emil", architecture="http", params={"url": url})
        with pytest.raises(UserError, match=r"'emil'.*not a public address.*allow='127"):
            asyncio.run(play(msgspec.structs.replace(SEASON, entries=(emil,)), store, None))
    assert not list(store.rows(select(seasons)))


def test_an_address_in_use_is_said_before_anything_is_played(tmp_path):
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        how = Serving(db=str(tmp_path / "arena.db"), port=taken.getsockname()[1], register=True)
        with pytest.raises(UserError, match="another port or host"):
            serve(None, how, said.append)
    assert said == []


@pytest.mark.parametrize(
    "broken", [b"no database at all, just text" * 40, b"SQLite format 3\0" + b"\7" * 3000]
)
def test_a_file_that_is_no_database_is_one_line(tmp_path, broken):
    (tmp_path / "arena.db").write_bytes(broken)
    with pytest.raises(UserError, match="cannot be read"):
        open_engine(str(tmp_path / "arena.db"))
    assert (tmp_path / "arena.db").read_bytes() == broken
    with pytest.raises(TradeassayError, match=re.escape(f"{tmp_path}/arena.db' cannot be read")):
        verify_arena(str(tmp_path / "arena.db"))


def test_a_database_that_turns_out_damaged_is_one_line(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    open_engine(str(db)).dispose()
    with closing(sqlite3.connect(db)) as held:
        held.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = held.execute(
            "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'seasons'"
        ).fetchall()
        (size,) = held.execute("PRAGMA page_size").fetchone()
    content = bytearray(db.read_bytes())
    for (page,) in pages:
        content[(page - 1) * size : page * size] = b"\xff" * size
    db.write_bytes(content)
    said = r"arena.db' cannot be read: database disk image is malformed .*copy back"
    with pytest.raises(UserError, match=said), opened_season(str(db)):
        pass
    with pytest.raises(TradeassayError):
        verify_arena(str(db))


def test_nobody_comes_and_the_slot_fails_by_time(store, feed):
    season = msgspec.structs.replace(SEASON, id="late", last="2022-06-01", timeout_s=1)
    api = founded(store, season)
    token = api.register("late", "anna", now=NOW)
    deciding = {"anna": PollingAgent(OfferWatch(api), "anna"), "bert": ConstantAction("HOLD")}
    asyncio.run(runner(store, feed, deciding, season).run())
    (own,) = api.decisions(api.agent_of(token))
    assert (own.status, own.action, own.failures) == ("failed", "HOLD", ("timeout",))


async def test_an_answer_survives_the_process_that_was_waiting_for_it(store, api, both, feed):
    """The choice is in the database: a round that is played again after a crash takes it, and
    asks nobody.
    """
    async with under_way(api, feed) as told:
        pass
    for agent, waits in zip(both, told, strict=True):
        offer = Offer(
            slot=waits.slot,
            packet_sha256=waits.packet_sha256,
            recommended_action="SELL",
            reasoning="",
        )
        api.submit(agent, "key-00001", offer)
    assert api.all_waiting(both) == [None, None]  # though both slots are open
    assert [api.decisions(agent) for agent in both] == [(), ()]
    deciding = {id: PollingAgent(OfferWatch(api), id) for id in ("anna", "bert")}
    await runner(store, feed, deciding).run(parse_iso("2022-06-02T12:00:00Z"))
    assert [[one.action for one in api.decisions(agent)] for agent in both] == [
        ["SELL"],
        ["SELL"],
    ]


def test_no_page_or_interface_shows_what_is_not_settled(store, api, feed, tmp_path):
    """Everything anybody can read from the arena while anna still thinks: bert's decision is
    nowhere in it.
    """
    from tradeassay_arena.web.app import Arena, create_app
    from tradeassay_arena.web.site import PageWriter

    token = api.register("agents", "anna", now=NOW)
    app = create_app(Arena(api=api, folder=tmp_path / "site"))
    paths = [path for path, item in app.openapi()["paths"].items() if "get" in item]

    class Bert:
        async def decide(self, packet: Packet) -> AgentChoice:
            talk = (Contribution(role="BERT-ROLE", step="s", text="BERT-TALK"),)
            return AgentChoice(
                action="SELL",
                reasoning="BERT-REASON",
                message="BERT-SAYS",
                memory=b"BERT-MEMORY",
                talk=talk,
            )

    async def run() -> None:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://arena") as http:
            anna = Client(http, token)
            deciding = {"anna": PollingAgent(OfferWatch(api), "anna"), "bert": Bert()}
            season = asyncio.create_task(runner(store, feed, deciding).run())
            told = await anna.packet()
            while store.memory("agents", "bert", "AHVQ") is None:  # until bert has decided
                await asyncio.sleep(0.01)
            PageWriter(store, tmp_path / "site").update()
            written = [file for file in (tmp_path / "site").rglob("*") if file.is_file()]
            addresses = [f"/{file.relative_to(tmp_path / 'site')}" for file in written]
            read = 0
            for path in [*paths, "/health", "/api/openapi.json", *addresses]:
                found = await http.get(path, headers={"authorization": f"Bearer {token}"})
                assert found.status_code < 500, (path, found.text[:300])
                read += found.status_code == 200
                assert "BERT-" not in found.text, path
                assert '"SELL"' not in found.text or "openapi" in path, path
            assert read > 40
            assert not any(b"BERT-" in file.read_bytes() for file in written)
            # What anna is sent holds nothing of bert's, in later rounds neither.
            for day in range(3):
                told = told if day == 0 else await anna.packet()
                own = "".join(
                    [
                        (await anna.get(path)).text
                        for path in ("", "/packet", "/decisions", "/rewards")
                    ]
                )
                assert "BERT" not in own and "bert" not in own
                assert (await anna.choose(told, "HOLD", f"key-{day:06d}")).status_code == 200
            await season

    asyncio.run(run())
