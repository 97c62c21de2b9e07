"""Measure readers and agents together: 100 people on the pages, 50 agents at the API, one server,
two cores.

    python perf/arena_load.py                 # 60 s; the season with 100,000 decisions is built
    once (perf/.work)
    python perf/arena_load.py --readers 20 --agents 10 --seconds 10
    python perf/arena_load.py --profile server.txt    # profile of the server (needs py-spy on the
    path)

The server is a normal ``tradeassay arena serve``. It sends the pages of a season of 100,000
decisions, which are written in advance. It also plays another season whose entries all decide
outside, and writes its pages. Readers send about one request per second, a third of them for the
running season, and have no cache. Agents fetch packets and post choices as fast as rounds open.
Server and clients share the cores. The clients are therefore plain sockets, and the output shows
their CPU time separately.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import httpx
import numpy as np

import arena_pages
from machine import conditions

SEASON = "agents"
FILE = """id = "agents"
benchmark = "ama-v1"
first = "2021-01-02"
last = "2022-12-30"
timeout_s = 60
assets = [
    {{ symbol = "AHVQ", kind = "crypto", dataset = "synthetic/crypto:7" }},
    {{ symbol = "COQJ", kind = "crypto", dataset = "synthetic/crypto:7" }},
]
entries = [{entries}]
"""


def found(db: Path, file: Path, agents: int) -> list[str]:
    """Create the running season and return its agents' tokens."""
    from tradeassay_arena.api.agent_api import AgentApi
    from tradeassay_arena.season import load_season
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store

    listed = ", ".join(f'{{ id = "agent-{n}", architecture = "http" }}' for n in range(agents))
    file.write_text(FILE.format(entries=listed))
    store = Store(open_engine(str(db)))
    now = "2021-01-01T00:00:00Z"
    store.create_season(load_season(file), now)
    api = AgentApi(store)
    made = [api.register(SEASON, f"agent-{n}", now=now) for n in range(agents)]
    store.engine.dispose()
    return made


class Serving:
    """A server process, and the waiting times of its clients."""

    def __init__(self, db: Path, port: int, *more: str) -> None:
        self.base = f"http://127.0.0.1:{port}"
        command = [
            sys.executable,
            "-m",
            "tradeassay",
            "arena",
            "serve",
            "--db",
            str(db),
            "--port",
            str(port),
            *more,
        ]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Serving:
        arena_pages.await_server(self.base)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def cpu_s(self) -> float:
        """Return the server's CPU seconds (Linux)."""
        told = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def profile(self, file: str, seconds: float) -> subprocess.Popen[bytes]:
        """Profile the process."""
        asked = [
            "py-spy",
            "record",
            "-p",
            str(self._process.pid),
            "-d",
            str(int(seconds)),
            "-f",
            "raw",
        ]
        return subprocess.Popen(
            [*asked, "-r", "50", "--gil", "-o", file], stdout=subprocess.DEVNULL
        )

    def first_page(self) -> float:
        """Return the time to load the large season's first page, in seconds."""
        began = time.perf_counter()
        httpx.get(f"{self.base}/seasons/{arena_pages.SEASON}/", timeout=120).raise_for_status()
        return time.perf_counter() - began


class Line:
    """One keep-alive connection: plain HTTP/1.1 with minimal work, because clients share the
    cores.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, head: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return status and body.

        Raises SystemExit if the answer is an error.
        """
        if self._ends is None:
            self._ends = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        came, gone = self._ends
        gone.write(
            f"{head}\r\nHost: arena\r\nAccept-Encoding: gzip\r\nContent-Length: "
            f"{len(body)}\r\n\r\n".encode()
        )
        gone.write(body)
        told = (await came.readuntil(b"\r\n\r\n")).lower()
        status = int(told[9:12])
        if status >= 400 and status != 409:
            raise SystemExit(f"{head.splitlines()[0]}: {told[:300]!r}")
        _, found, rest = told.partition(b"content-length:")
        text = await came.readexactly(int(rest.partition(b"\r\n")[0])) if found else b""
        if b"connection: close" in told:
            gone.close()
            self._ends = None
        return status, text


async def load(
    port: int, tokens: list[str], readers: int, seconds: float
) -> dict[str, list[float]]:
    waits: dict[str, list[float]] = {"pages": [], "packet": [], "choice": []}
    end = time.perf_counter() + seconds

    async def timed(what: str, line: Line, head: str, body: bytes = b"") -> tuple[int, bytes]:
        began = time.perf_counter()
        answer = await line.ask(head, body)
        waits[what].append((time.perf_counter() - began) * 1000)
        return answer

    async def reader(number: int) -> None:
        drawn, line = random.Random(number), Line(port)
        own = [
            f"/seasons/{SEASON}/{one}"
            for one in ("", "feed/", "entries/agent-0/", "now.json", "now.json")
        ]
        await asyncio.sleep(drawn.random())
        while time.perf_counter() < end:
            path = drawn.choice(own) if drawn.random() < 1 / 3 else arena_pages.paths(drawn)
            await timed("pages", line, f"GET {path} HTTP/1.1")
            await asyncio.sleep(0.5 + drawn.random())

    async def agent(token: str) -> None:
        drawn, line = random.Random(token), Line(port)
        mine = f"HTTP/1.1\r\nAuthorization: Bearer {token}"
        await asyncio.sleep(drawn.random())
        while time.perf_counter() < end:
            status, told = await timed("packet", line, f"GET /agents/me/packet {mine}")
            if status == 204:
                await asyncio.sleep(1.0)
                continue
            packet = json.loads(told)
            answer = {
                "slot": packet["slot"],
                "packet_sha256": packet["packet_sha256"],
                "reasoning": "a coin",
            }
            answer["recommended_action"] = drawn.choice(["BUY", "SELL", "HOLD"])
            kind = f"Content-Type: application/json\r\nIdempotency-Key: {uuid.uuid4().hex}"
            await timed(
                "choice",
                line,
                f"POST /agents/me/choice {mine}\r\n{kind}",
                json.dumps(answer).encode(),
            )

    await asyncio.gather(*(reader(n) for n in range(readers)), *(agent(token) for token in tokens))
    return waits


def main() -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("--readers", type=int, default=100)
    ask.add_argument("--agents", type=int, default=50)
    ask.add_argument("--seconds", type=float, default=60)
    ask.add_argument("--cores", type=int, default=2)
    ask.add_argument("--port", type=int, default=8797)
    ask.add_argument("--speed", default="1d/6s", help="of the season that is played")
    ask.add_argument("--profile", help="write the server's stacks here")
    chosen = ask.parse_args()
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: chosen.cores]))
    arena_pages.WORK.mkdir(exist_ok=True)
    large = arena_pages.WORK / "arena_load.db"
    if not large.exists():
        arena_pages.build(large)
    db = arena_pages.WORK / "arena_agents.db"
    for part in ("", "-wal", "-shm"):
        Path(f"{db}{part}").unlink(missing_ok=True)
    shutil.copy(large, db)
    file = arena_pages.WORK / "agents.toml"
    tokens = found(db, file, chosen.agents)
    print(f"python {platform.python_version()}, {chosen.cores} cores used, {conditions()}")
    folder = arena_pages.WORK / "arena_load.pages"
    arena_pages.write(large, folder)
    with Serving(
        db, chosen.port, "--season", str(file), "--speed", chosen.speed, "--pages", str(folder)
    ) as server:
        print(f"the first page after a start: {server.first_page():.2f} s (bar 1)")
        time.sleep(5)  # the pages of the season that is played are there then
        watching = server.profile(chosen.profile, chosen.seconds) if chosen.profile else None
        before, own, began = server.cpu_s(), time.process_time(), time.perf_counter()
        waits = asyncio.run(load(chosen.port, tokens, chosen.readers, chosen.seconds))
        took = time.perf_counter() - began
        served, own = (server.cpu_s() - before) / took, (time.process_time() - own) / took
        if watching is not None:
            watching.wait(60)
    print(f"{chosen.readers} readers and {chosen.agents} agents, {took:.0f} s, ", end="")
    print(f"{conditions()}; cores used: server {served:.2f}, clients {own:.2f}")
    waits["agents"] = waits["packet"] + waits["choice"]
    for name, bar in (("pages", 100), ("agents", 100), ("packet", 100), ("choice", 100)):
        middle, late, last = np.percentile(waits[name] or [0], (50, 95, 99))
        told = (
            f"{len(waits[name])} requests, ms: median {middle:.0f}, 95th {late:.0f}, 99th "
            f"{last:.0f}"
        )
        print(
            f"{name}: {told} (bar {bar} at the 95th: {'met' if late < bar else 'NOT met'})",
            flush=True,
        )


if __name__ == "__main__":
    main()
