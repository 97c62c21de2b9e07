"""The examples are agents: each is asked and answers, and none has more than twenty lines of code."""

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from tradeassay.agents.foreign.ama import HttpAgent, PythonAgent, SubprocessAgent, load_agent
from tradeassay.core.arena import AgentChoice, Packet, PricePoint

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "agents"
PACKET = Packet(
    season="s",
    date="2025-08-01",
    decided_at="2025-08-01T20:00:00Z",
    symbol="TSLA",
    kind="stock",
    price=300.0,
    history=tuple(PricePoint(date=f"2025-07-{d}", price=200.0 + d) for d in range(20, 30)),
    momentum=0.05,
)


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_twenty_lines_are_enough(path):
    code = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith('"""')]
    assert len(code) <= 20


def test_the_http_agent():
    pytest.importorskip("fastapi")

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    app = module("http_agent").app
    agent = HttpAgent("http://agent.example", resolve=public, through=httpx.ASGITransport(app=app))
    choice = asyncio.run(agent.decide(PACKET))
    assert (choice.status, choice.action) == ("decided", "BUY") and "average 224.50" in choice.reasoning


def test_the_python_agent(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    try:
        choice = asyncio.run(PythonAgent(load_agent("python_agent:Reversal")).decide(PACKET))
    finally:
        sys.modules.pop("python_agent", None)
    assert (choice.status, choice.action) == ("decided", "SELL")


def test_the_agent_that_speaks_json_lines():
    async def run() -> AgentChoice:
        agent = SubprocessAgent([sys.executable, "-I", str(FOLDER / "jsonlines_agent.py")])
        try:
            return await agent.decide(PACKET)
        finally:
            await agent.close()

    choice = asyncio.run(run())
    assert (choice.status, choice.action, choice.reasoning) == ("decided", "BUY", "month +5.0%")
