"""Agents in a process of their own, and objects in this one."""

import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.bench.frontends.packet_sample import PACKET

from tradeassay.core.errors import UserError
from tradeassay_bench.agents.foreign.ama import PythonAgent, SubprocessAgent, load_agent
from tradeassay_bench.core.arena import AgentChoice, Packet

COUNTS = """
import json, sys
for n, line in enumerate(sys.stdin):
    seen = json.loads(line)
    said = f"{n} {seen['symbol'][0]} {seen['own']['position']}"
    print(json.dumps({"id": seen["id"], "recommended_action": "BUY", "reasoning": said}))
"""
FLOODS = "import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 10000)"
ENDS = "import sys\nsys.stdin.readline()\nsys.exit(3)"
TELLS = """
import json, os, sys
seen = json.loads(sys.stdin.readline())
told = json.dumps([dict(os.environ), os.getcwd()])
print(json.dumps({"id": seen["id"], "recommended_action": "HOLD", "reasoning": told}))
sys.stdin.readline()
"""
HANGS = """
import os, subprocess, sys, time
sys.stdin.readline()
child = subprocess.Popen(["sleep", "60"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(60)
"""


async def play(code: str, *args: str, times: int = 1, **changed: Any) -> list[AgentChoice]:
    agent = SubprocessAgent([sys.executable, "-Iu", "-c", code, *args], **changed)
    found = [await agent.decide(PACKET) for _ in range(times)]
    await agent.close()
    return found


async def test_a_process_is_asked_line_by_line_and_remembers():
    found = await play(COUNTS, times=3)
    assert [choice.reasoning for choice in found] == ["0 TSLA 1", "1 TSLA 1", "2 TSLA 1"]
    assert {choice.action for choice in found} == {"BUY"}


TWICE = COUNTS.replace("    print", "    for _ in range(2 if n == 0 else 1): print")


async def test_a_surplus_line_holds_once_and_nothing_is_taken_for_another_day():
    """The second packet gets the first one's surplus line; the process then starts afresh."""

    agent = SubprocessAgent([sys.executable, "-Iu", "-c", TWICE])
    days = [msgspec.structs.replace(PACKET, date=f"2025-08-0{day}") for day in (1, 2, 3)]
    first, second, third = [await agent.decide(day) for day in days]
    await agent.close()
    assert (first.status, third.status, third.reasoning) == ("decided", "decided", "0 TSLA 1")
    assert second.action == "HOLD" and second.failures[0].kind == "stray"
    (nameless,) = await play(COUNTS.replace('"id": seen["id"], ', ""))
    assert (
        nameless.failures[0].kind == "schema"
        and "repeat the request's" in nameless.failures[0].text
    )


@pytest.mark.parametrize(
    ("code", "kind"), [(FLOODS, "too_large"), (ENDS, "exit"), ("input(); print('BUY')", "parse")]
)
async def test_failures_hold_are_counted_and_the_process_is_started_afresh(code, kind):
    found = await play(code, times=2, max_answer=20_000)
    assert [(c.action, c.status, c.failures[0].kind) for c in found] == [
        ("HOLD", "failed", kind)
    ] * 2


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_a_process_that_hangs_is_killed_with_its_children(tmp_path):
    told = tmp_path / "pids"
    for timeout_s in (1.5, 15.0, 60.0):  # on a loaded machine it may not have begun to hang by then
        (choice,) = await play(HANGS, str(told), timeout_s=timeout_s)
        assert choice.failures[0].kind == "timeout"
        if told.exists() and len(told.read_text().split()) == 2:
            break
    pids = [int(word) for word in told.read_text().split()]
    until = time.monotonic() + 60
    while not all(gone(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert all(gone(pid) for pid in pids)


async def test_nothing_of_ours_is_in_its_environment(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    (choice,) = await play(TELLS, env={"MINE": "1"})
    environment, folder = json.loads(choice.reasoning)
    assert "SOME_API_KEY" not in environment and environment["MINE"] == "1"
    assert set(environment) <= set(
        "PATH HOME TMPDIR PYTHONUNBUFFERED LANG LC_ALL LC_CTYPE TZ MINE".split()
    )
    assert folder != os.getcwd() and not Path(folder).exists()


async def test_a_command_that_cannot_be_run():
    agent = SubprocessAgent(["/no/such/program"])
    assert (await agent.decide(PACKET)).failures[0].kind == "start"
    with pytest.raises(UserError):
        SubprocessAgent([])


class Says:
    def __init__(self, said: Any) -> None:
        self.said = said

    def decide(self, packet: Packet) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Later:
    async def decide(self, packet: Packet) -> str:
        await asyncio.sleep(0)
        return "SELL"


@pytest.mark.parametrize(
    ("said", "action", "kinds"),
    [
        ("BUY", "BUY", []),
        ({"recommended_action": "SELL", "reasoning": "r"}, "SELL", []),
        (AgentChoice(action="HOLD", reasoning=""), "HOLD", []),
        *((said, "HOLD", ["schema"]) for said in ("buy", 1, None, {})),
        (ValueError("x"), "HOLD", ["agent"]),
    ],
)
async def test_an_object_may_answer_in_three_ways_and_holds_with_any_other(said, action, kinds):
    choice = await PythonAgent(Says(said)).decide(PACKET)
    assert (choice.action, [failure.kind for failure in choice.failures]) == (action, kinds)
    assert choice.status == ("failed" if kinds else "decided")


async def test_an_async_object_and_one_that_hangs():
    assert (await PythonAgent(Later()).decide(PACKET)).action == "SELL"

    released = threading.Event()

    class Sleeps:
        def decide(self, packet: Packet) -> str:
            released.wait(60)
            return "BUY"

    agent = PythonAgent(Sleeps(), timeout_s=0.05)
    first, second = await agent.decide(PACKET), await agent.decide(PACKET)
    released.set()
    assert first.failures[0].kind == second.failures[0].kind == "timeout"
    assert "still hangs" in second.failures[0].text


async def test_one_late_answer_does_not_cost_the_decisions_after_it():
    class Late:
        asked = 0

        def decide(self, packet: Packet) -> str:
            self.asked += 1
            time.sleep(0.6 if self.asked == 1 else 0)
            return "BUY"

    agent = PythonAgent(Late(), timeout_s=0.5)
    late, after = await agent.decide(PACKET), await agent.decide(PACKET)
    assert late.failures[0].kind == "timeout"
    assert (after.action, after.failures) == ("BUY", ())


def test_an_agent_by_name():
    for name in ("nothing", "no.such:Thing", "json:JSONDecoder"):
        with pytest.raises(UserError):
            load_agent(name)
