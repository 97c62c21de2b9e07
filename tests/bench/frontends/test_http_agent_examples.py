"""The examples are agents: each is asked and answers, and none has more than twenty lines of
code.
"""

import ast
import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from tests.bench.frontends.packet_sample import PACKET, served_at

from tradeassay_bench.agents.foreign.ama import HttpAgent, PythonAgent, SubprocessAgent, load_agent

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "agents"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_twenty_lines_are_enough(path):
    """Counted in statements, so that a formatter does not decide."""
    tree = ast.parse(path.read_text())
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    assert len(statements) - 1 <= 20  # the docstring is one


def test_the_http_agent():
    pytest.importorskip("fastapi")

    through = httpx.ASGITransport(app=module("http_agent").app)
    agent = HttpAgent("http://agent.example", resolve=served_at("93.184.216.34"), through=through)
    choice = asyncio.run(agent.decide(PACKET))
    assert (choice.status, choice.action) == (
        "decided",
        "BUY",
    ) and "average 24.50" in choice.reasoning


def test_the_python_agent(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    try:
        choice = asyncio.run(PythonAgent(load_agent("python_agent:Reversal")).decide(PACKET))
    finally:
        sys.modules.pop("python_agent", None)
    assert (choice.status, choice.action) == ("decided", "SELL")


async def test_the_agent_that_speaks_json_lines():
    agent = SubprocessAgent([sys.executable, "-I", str(FOLDER / "jsonlines_agent.py")])
    choice = await agent.decide(PACKET)
    await agent.close()
    assert (choice.status, choice.action, choice.reasoning) == ("decided", "BUY", "month +5.0%")
