"""Clients of MCP: an episode of KTD-Fin over the same conversation that models have."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from tradeassay.cli import main, root
from tradeassay.core.errors import UserError
from tradeassay_bench.agents.registry import make_conversing
from tradeassay_bench.frontends.mcp_episode import EpisodeSession, open_episode, server_for
from tradeassay_bench.runs import Run
from tradeassay_bench.runs.verify.report import verify

TOOLS = (
    "get_market_context screen_candidates get_stock_snapshot compare_candidates "
    "portfolio_state risk_check"
)
NAMES = {"observe", *TOOLS.split(), "submit_action"}
NO_TRADE = {"orders": [], "overall_reason": "nothing is worth a trade today"}


class Caller:
    """Calls tools and keeps their texts."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, **arguments: Any) -> tuple[str, bool]:
        found = await self.client.call_tool(name, arguments)
        return found.content[0].text, bool(found.is_error)


@asynccontextmanager
async def client_of(session: EpisodeSession) -> AsyncIterator[Caller]:
    async with Client(server_for(session)) as client:
        yield Caller(client)


async def test_a_client_plays_sessions_with_the_markets_own_tools():
    session = open_episode(sessions=2)
    async with client_of(session) as call:
        assert {tool.name for tool in (await call.client.list_tools()).tools} == NAMES
        text, wrong = await call("observe")
        assert "before the market opens" in text and not wrong
        text, wrong = await call("screen_candidates", factors=["MOM_12_1"], top_k=3)
        assert not wrong
        stock = re.findall(r'"stock_id":"([^"]+)"', text)[0]
        order = {
            "stock_id": stock,
            "side": "BUY",
            "confidence": 0.6,
            "reason": "first in the list",
            "target_weight": 0.05,
        }
        text, wrong = await call(
            "submit_action", orders=[order], overall_reason="one small position to begin with"
        )
        assert text.startswith("Accepted.") and not wrong
        assert stock in text, "the next session's observation shows the position"
        text, wrong = await call("submit_action", **NO_TRADE)
        assert "The episode is over." in text and not wrong
        assert (await call("submit_action", **NO_TRADE))[1]
        assert "over" in (await call("observe"))[0]
    assert session.over
    first, second = (record.decision for record in session.journal)
    assert (first.status, first.tool_calls, len(first.orders)) == ("ok", 1, 1)
    assert (second.status, second.orders) == ("ok", ())
    assert session.earned is not None and session.earned != 0.0
    # The client saw masked ids; the journal holds true ones.
    assert not re.search(re.escape(first.orders[0].symbol), "".join(NAMES))


async def test_the_benchmarks_rules_count_for_clients_too():
    session = open_episode(sessions=1, settings={"tool_calls": 2})
    async with client_of(session) as call:
        text, _ = await call("get_stock_snapshot", nonsense=1)
        assert json.loads(text)["kind"] == "parse"
        text, _ = await call("portfolio_state")
        assert "error" not in json.loads(text)
        # the budget is used up: from now on only a submission is on offer
        text, wrong = await call("portfolio_state")
        assert wrong and "submit_action" in text
        text, wrong = await call("submit_action", orders="buy")
        assert wrong and text.startswith("This was not accepted"), "what is known is not told again"
        text, wrong = await call("submit_action", orders=[], overall_reason=7)
        assert wrong
        text, wrong = await call("submit_action", **NO_TRADE)
        assert not wrong
    (record,) = session.journal
    assert [failure.kind for failure in record.decision.failures] == [
        "parse",
        "no_submit",
        "schema",
        "schema",
    ]


async def test_after_the_last_attempt_nothing_is_traded():
    session = open_episode(sessions=1, settings={"mode": "memory-only", "retries": 0})
    async with client_of(session) as call:
        assert {tool.name for tool in (await call.client.list_tools()).tools} == {
            "observe",
            "submit_action",
        }
        assert "research" not in session.instructions
        text, wrong = await call("submit_action", orders=1)
        assert wrong and text.startswith("Nothing is traded")
    assert session.journal[0].decision.status == "failed"


async def test_no_true_name_or_date_reaches_a_client():
    session = open_episode(sessions=2)
    heard: list[str] = []
    async with client_of(session) as call:
        for name, more in (
            ("observe", {}),
            ("get_market_context", {}),
            ("screen_candidates", {"factors": ["RV_60"]}),
        ):
            text, wrong = await call(name, **more)
            assert not wrong, text
            heard.append(text)
        heard.append((await call("submit_action", **NO_TRADE))[0])
    told = "".join(heard)
    symbols = session.play.market.snapshot.at(400, "close").symbols
    assert not [symbol for symbol in symbols if re.search(rf"\b{re.escape(symbol)}\b", told)]
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", told)


async def test_stockbench_is_played_by_answers():
    """Stages without tools are answered as JSON or as text; feedback and attempts are the
    protocol's.
    """
    session = open_episode("stockbench-v1", sessions=2)
    async with client_of(session) as call:
        assert {tool.name for tool in (await call.client.list_tools()).tools} == {
            "observe",
            "answer",
        }
        text, wrong = await call("observe")
        assert '{"analyse": ["<symbol>"' in text and not wrong
        symbol = re.findall(r"^([A-Z]{4}) \|", text, re.MULTILINE)[0]
        text, wrong = await call("answer", answer={"names": []})
        assert wrong and "analyse" in text
        text, wrong = await call(
            "answer", answer={"analyse": [symbol], "reason": "it stands first"}
        )
        assert not wrong and '{"notes": {"<symbol>"' in text
        text, wrong = await call("answer", text="It has moved little.")
        assert not wrong and '{"decisions": {"<symbol>"' in text
        held = {"action": "hold", "reasons": ["nothing to do"], "confidence": 0.5}
        text, wrong = await call("answer", text=json.dumps({"decisions": {symbol: held}}))
        assert not wrong and text.startswith("Accepted.") and '{"analyse": ["<symbol>"' in text
        for _ in range(2):  # the same answer twice ends the attempts
            text, wrong = await call("answer", text="I would rather not say.")
            assert wrong
        assert text.startswith("Nothing is traded today") and text.endswith("The episode is over.")
    first, second = (record.decision for record in session.journal)
    assert first.status == "ok" and [failure.kind for failure in first.failures] == ["schema"]
    assert second.status == "failed" and second.failures[-1].kind == "give_up"


@pytest.mark.journey
def test_what_is_served_over_standard_input_and_output_ends_in_an_ordinary_run(tmp_path):
    """A client leaves in the middle of the second day; another process goes on, and all commands
    read the run.
    """
    folder = tmp_path / "mine"
    command = ["-m", "tradeassay", "mcp", "--sessions", "2", "--run", str(folder)]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    heard: list[str] = []

    async def play(*calls: tuple[str, dict[str, Any]]) -> str:
        async with Client(parameters) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
            for name, arguments in calls:
                heard.append((await client.call_tool(name, arguments)).content[0].text)
        return heard[-1]

    screen = ("screen_candidates", {"factors": ["MOM_12_1"], "top_k": 3})
    assert "error" not in json.loads(asyncio.run(play(("submit_action", NO_TRADE), screen)))
    assert not folder.exists(), "one session is left"
    stock = re.findall(r'"stock_id":"([^"]+)"', heard[-1])[0]
    order = {
        "stock_id": stock,
        "side": "BUY",
        "confidence": 0.6,
        "reason": "first of all",
        "target_weight": 0.05,
    }
    submit = (
        "submit_action",
        {"orders": [order], "overall_reason": "one small position to begin with"},
    )
    assert "The episode is over." in asyncio.run(play(submit))
    done = Run.load(folder)
    (key,) = [episode.key for episode in done.episodes if episode.label == "client"]
    first, second = (record.decision for record in done.records(key))
    assert not done.failed and not first.orders and len(second.orders) == 1
    assert (first.tool_calls, second.tool_calls) == (0, 1), (
        "what was asked before the restart counts"
    )
    assert verify(folder, workers=1).exit_code == 3, "nobody can ask a client again"
    for name in (["report", str(folder)], ["luck", str(folder)], ["assay", str(folder)]):
        said = CliRunner().invoke(root, [*name])
        assert said.exit_code == 0 and "Traceback" not in said.output, (
            name,
            said.output,
            said.exception,
        )
    assert "client over MCP: client" in CliRunner().invoke(root, ["report", str(folder)]).output
    with pytest.raises(UserError, match="cannot be queried"):
        make_conversing("mcp").transport(1.0)


def test_where_no_run_can_be_made_nobody_is_asked(tmp_path, tell):
    command = ["mcp", "daily-us-v1", "--sessions", "2", "--run"]
    (tmp_path / "file").write_text("mine")
    for name, inside in (
        ("notes", "notes.txt"),
        ("broken", "manifest.json"),
        ("begun.mcp", "work"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / inside).write_text("{")
    days = ["--first", "2022-03-01", "--last", "2022-03-03", "--executor", "inline"]
    assert (
        main(
            ["run", "daily-us-v1", "-a", "cash", *days, "--runs", str(tmp_path), "--name", "theirs"]
        )
        == 0
    )
    tell(["agents"])
    for name, said in (
        ("file", "is a file"),
        ("notes", "is not empty and does not contain a run"),
        ("broken", "is damaged"),
        ("begun", "begun.mcp contains the answers of a different episode"),
        ("theirs", "contains a different run"),
    ):
        assert said in tell([*command, str(tmp_path / name)], 2).err
    for name, said in (
        ("quantcode-v1", "models that write programs"),
        ("daily-uss", "did you mean daily-us"),
    ):
        assert said in tell(["mcp", name, "--run", str(tmp_path / "new")], 2).err
    assert {one.name for one in tmp_path.iterdir()} == {
        "file",
        "notes",
        "broken",
        "begun.mcp",
        "theirs",
    }


async def test_who_knows_the_program_does_not_know_the_aliases():
    async def shown(secret: str | None) -> str:
        async with client_of(open_episode(sessions=1, secret=secret)) as call:
            return (await call("screen_candidates", factors=["MOM_12_1"], top_k=3))[0]

    assert await shown("5e" * 16) == await shown("5e" * 16) != await shown(None)
