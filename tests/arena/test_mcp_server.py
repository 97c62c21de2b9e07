"""A client of MCP in an arena's seat."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from mcp import Client
from tests.arena.conftest import listening
from tests.arena.test_agent_api import NOW, SEASON as AGENTS, founded, runner as playing

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.api.agent_api import AgentApi, RequestBatcher
from tradeassay_arena.api.mcp_server import ArenaSession, mcp_app
from tradeassay_arena.api.outside import OfferWatch, PollingAgent
from tradeassay_arena.api.router import RequestLimits
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.rounds.running import Runner
from tradeassay_arena.web.app import Arena
from tradeassay_bench.core.time import SECOND, FixedClock
from tradeassay_bench.frontends.mcp_episode import server_for

pytestmark = pytest.mark.journey

HEAD = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
SEASON = msgspec.structs.replace(AGENTS, id="mcp", last="2022-06-02")


@pytest.fixture
def api(store):
    return founded(store, SEASON)


def runner(api: AgentApi, *outside: str) -> Runner:
    watch = OfferWatch(api, poll_s=0.01)
    deciding = {
        id: PollingAgent(watch, id) if id in outside else ConstantAction("HOLD")
        for id in ("anna", "bert")
    }
    return playing(api.store, SnapshotFeed.open(SEASON), deciding, SEASON)


def test_a_client_plays_its_seat(api):
    agent = api.agent_of(api.register("mcp", "anna", now=NOW))

    async def play() -> None:
        season = asyncio.create_task(runner(api, "anna").run())
        async with Client(server_for(ArenaSession(RequestBatcher(api), agent))) as client:

            async def call(name: str, **given: Any) -> tuple[str, bool]:
                found = await client.call_tool(name, given)
                return found.content[0].text, bool(found.is_error)

            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [
                "next_decision",
                "price_history",
                "news",
                "filings",
                "own_outcomes",
                "submit_action",
            ]
            for day in (1, 2):
                text, wrong = await call("next_decision", wait_s=5)
                told = json.loads(text)
                assert told["date"] == f"2022-06-0{day}" and not wrong
                for name in ("price_history", "news", "filings", "own_outcomes"):
                    assert not (await call(name))[1]
                assert len(json.loads((await call("own_outcomes"))[0])) == day - 1
                bad = {"slot": told["slot"], "recommended_action": "buy", "reasoning": ""}
                assert (await call("submit_action", **bad))[1]
                given = {"slot": told["slot"], "recommended_action": "SELL", "reasoning": "r"}
                assert (await call("submit_action", **{**given, "slot": told["slot"] + 1}))[1]
                taken = f"Accepted: SELL for slot {told['slot']}."
                assert (await call("submit_action", **given)) == (taken, False)
                assert (await call("submit_action", **given))[1]
            assert (await call("nonsense"))[1] and (await call("next_decision", wait_s="long"))[1]
        assert await season == 2

    asyncio.run(play())
    assert [decision.action for decision in api.decisions(agent)] == ["SELL", "SELL"]


@asynccontextmanager
async def alive(app: Any):
    """Run an application's lifespan."""
    into: asyncio.Queue[Any] = asyncio.Queue()
    out: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(
        app({"type": "lifespan", "asgi": {"version": "3.0"}}, into.get, out.put)
    )
    await into.put({"type": "lifespan.startup"})
    assert (await out.get())["type"] == "lifespan.startup.complete"
    yield
    await into.put({"type": "lifespan.shutdown"})
    await out.get()
    await task


def test_over_http_a_token_reaches_its_own_seat_only(api):
    api.clock = FixedClock(6000 * SECOND)  # a new minute would begin the count anew
    tokens = {id: api.register("mcp", id, now=NOW) for id in ("anna", "bert")}

    async def talk() -> None:
        app = mcp_app(api, limits=RequestLimits(per_minute=9, body=5000))
        season = asyncio.create_task(runner(api, "anna", "bert").run())
        transport = httpx.ASGITransport(app=app)
        async with (
            alive(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http,
        ):

            async def post(
                method: str, params: Any, token: str | None, size: int = 0
            ) -> httpx.Response:
                head = HEAD | ({} if token is None else {"Authorization": f"Bearer {token}"})
                body = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": method,
                    "params": {**params, "x": "y" * size},
                }
                return await http.post("/mcp", json=body, headers=head)

            async def call(token: str, name: str, **given: Any) -> tuple[str, bool]:
                found = (
                    await post("tools/call", {"name": name, "arguments": given}, token)
                ).json()["result"]
                return found["content"][0]["text"], bool(found.get("isError"))

            assert (await post("tools/list", {}, None)).status_code == 401
            assert (await post("tools/list", {}, "ta-000000000000-" + "x" * 43)).status_code == 401
            assert (await post("tools/list", {}, tokens["anna"], size=6000)).status_code == 413
            mine = json.loads((await call(tokens["anna"], "next_decision", wait_s=5))[0])
            his = json.loads((await call(tokens["bert"], "next_decision", wait_s=5))[0])
            assert mine["slot"] != his["slot"]
            said = {"recommended_action": "SELL", "reasoning": "mine now"}
            assert (await call(tokens["bert"], "submit_action", slot=mine["slot"], **said))[1]
            assert not (await call(tokens["anna"], "submit_action", slot=mine["slot"], **said))[1]
            codes = [(await post("tools/list", {}, tokens["anna"])).status_code for _ in range(8)]
            assert (codes[0], codes[-1]) == (200, 429)
        season.cancel()
        await asyncio.gather(season, return_exceptions=True)

    asyncio.run(talk())


def test_an_arena_that_is_served_answers_mcp_clients_too(api, tmp_path):
    """The proxy knows the arena's workers only, whatever it calls them."""
    token = api.register("mcp", "anna", now=NOW)
    with listening(Arena(api=api, folder=tmp_path)) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        for host in ("workers", "arena.example.org"):
            head = {**HEAD, "Authorization": f"Bearer {token}", "Host": host}
            found = httpx.post(url, json=LIST, headers=head, timeout=60)
            assert [tool["name"] for tool in found.json()["result"]["tools"]][-1] == "submit_action"
            assert found.headers["x-content-type-options"] == "nosniff"
        assert httpx.post(url, json=LIST, headers=HEAD, timeout=60).status_code == 401


def test_behind_a_proxy_only_the_names_that_were_configured_are_answered(api):
    token = api.register("mcp", "anna", now=NOW)

    async def asked(hosts: tuple[str, ...], host: str) -> int:
        app = mcp_app(api, hosts=hosts)
        head = {**HEAD, "Authorization": f"Bearer {token}", "Host": host}
        transport = httpx.ASGITransport(app=app)
        async with (
            alive(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http,
        ):
            return (await http.post("/mcp", json=LIST, headers=head)).status_code

    proxy = ("arena.example.org",)
    assert (
        asyncio.run(asked(proxy, "arena.example.org"))
        == asyncio.run(asked(proxy, "127.0.0.1:8000"))
        == 200
    )
    assert (
        asyncio.run(asked(proxy, "evil.example"))
        == asyncio.run(asked((), "arena.example.org"))
        == 421
    )


def test_the_command_serves_the_seats_of_a_season_that_is_there(api, store, tmp_path, tell):
    file, token = store.engine.url.database, api.register("mcp", "anna", now=NOW)
    (empty := tmp_path / "empty.db").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for database, words in (
            (tmp_path / "misspelt.db", "there is no database"),
            (empty, "is not an arena"),
            (file, f"cannot listen at 127.0.0.1:{port}"),
        ):
            said = tell(["mcp", str(database), "--port", port], 2)[1].strip()
            assert words in said and "\n" not in said
    assert not (tmp_path / "misspelt.db").exists()
    command = [sys.executable, "-m", "tradeassay", "mcp", file, "--port", port]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as served:
        assert f"entries: http://127.0.0.1:{port}/mcp" in served.stderr.readline()
        head = {**HEAD, "Authorization": f"Bearer {token}"}
        found = httpx.post(
            f"http://127.0.0.1:{port}/mcp", json=LIST, headers=head, timeout=60
        ).json()
        assert [tool["name"] for tool in found["result"]["tools"]][-1] == "submit_action"
        served.send_signal(signal.SIGINT)
        assert served.wait(60) == 130 and "Traceback" not in served.stderr.read()


def test_the_example_client_plays_a_season(api):
    import importlib.util

    path = Path(__file__).resolve().parents[2] / "examples" / "agents" / "mcp_client.py"
    spec = importlib.util.spec_from_file_location("mcp_client", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    agent = api.agent_of(api.register("mcp", "anna", now=NOW))

    async def play() -> None:
        season = asyncio.create_task(runner(api, "anna").run())
        await example.play(server_for(ArenaSession(RequestBatcher(api), agent)), decisions=2)
        await season

    asyncio.run(play())
    assert {decision.status for decision in api.decisions(agent)} == {"decided"}
