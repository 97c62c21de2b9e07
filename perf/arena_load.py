"""Readers and agents at once: 100 people on the pages, 50 agents at the doors, one server, two cores.

    python perf/arena_load.py                 # 60 s; the season with 100,000 decisions is built once (perf/.work)
    python perf/arena_load.py --readers 20 --agents 10 --seconds 10

The server is ``tradeassay arena serve`` as anybody would start it: it shows a season of 100,000 decisions and
plays another whose entries all decide outside. Readers open a page about once a second, one in three of the season
that is being played. Agents ask for packets and post choices as fast as rounds come. Server and clients share the
cores. A "cold" page is the first after a start: with standings kept in the database, and without.
"""

from __future__ import annotations

import argparse
import asyncio
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

SEASON = "doors"
FILE = """id = "doors"
benchmark = "ama-v2"
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
    """Found the season that is played and return its agents' tokens."""
    from tradeassay.arena.doors.doors import Doors
    from tradeassay.arena.season import load_season
    from tradeassay.arena.state.engine import open_engine
    from tradeassay.arena.state.store import Store

    listed = ", ".join(f'{{ id = "agent-{n}", architecture = "http" }}' for n in range(agents))
    file.write_text(FILE.format(entries=listed))
    store = Store(open_engine(str(db)))
    now = "2021-01-01T00:00:00Z"
    store.found_season(load_season(file), now)
    doors = Doors(store)
    made = [doors.register(SEASON, f"agent-{n}", now=now).token for n in range(agents)]
    store.engine.dispose()
    return made


class Serving:
    """A server process, and what its clients waited."""

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
        for _ in range(400):
            try:
                httpx.get(f"{self.base}/static/mark.svg", timeout=5).raise_for_status()
                return self
            except httpx.TransportError:
                time.sleep(0.1)
        raise SystemExit("the server did not start")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def first_page(self) -> float:
        """Return the seconds of the first page of the large season."""
        began = time.perf_counter()
        httpx.get(f"{self.base}/season/{arena_pages.SEASON}", timeout=120).raise_for_status()
        return time.perf_counter() - began


async def load(base: str, tokens: list[str], readers: int, seconds: float) -> dict[str, list[float]]:
    waits: dict[str, list[float]] = {"pages": [], "packet": [], "choice": []}
    end = time.perf_counter() + seconds

    async def timed(what: str, asked: object) -> httpx.Response:
        began = time.perf_counter()
        answer = await asked  # type: ignore[misc]  # a request
        waits[what].append((time.perf_counter() - began) * 1000)
        answer.raise_for_status()
        return answer

    async def reader(number: int) -> None:
        drawn = random.Random(number)
        own = [f"/season/{SEASON}", f"/season/{SEASON}/feed", f"/season/{SEASON}/entries/agent-0"]
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:
            await asyncio.sleep(drawn.random())
            while time.perf_counter() < end:
                path = drawn.choice(own) if drawn.random() < 1 / 3 else arena_pages.paths(drawn)
                await timed("pages", client.get(path))
                await asyncio.sleep(0.5 + drawn.random())

    async def agent(token: str) -> None:
        drawn = random.Random(token)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=base, timeout=60, headers=headers) as client:
            await asyncio.sleep(drawn.random())
            while time.perf_counter() < end:
                told = await timed("packet", client.get("/agents/me/packet"))
                if told.status_code == 204:
                    await asyncio.sleep(1.0)
                    continue
                packet = told.json()
                answer = {"slot": packet["slot"], "packet_sha256": packet["packet_sha256"], "reasoning": "a coin"}
                answer["recommended_action"] = drawn.choice(["BUY", "SELL", "HOLD"])
                key = {"Idempotency-Key": uuid.uuid4().hex}
                await timed("choice", client.post("/agents/me/choice", json=answer, headers=key))

    await asyncio.gather(*(reader(n) for n in range(readers)), *(agent(token) for token in tokens))
    return waits


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--readers", type=int, default=100)
    ask.add_argument("--agents", type=int, default=50)
    ask.add_argument("--seconds", type=float, default=60)
    ask.add_argument("--cores", type=int, default=2)
    ask.add_argument("--port", type=int, default=8797)
    ask.add_argument("--speed", default="1d/6s", help="of the season that is played")
    chosen = ask.parse_args()
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: chosen.cores]))
    arena_pages.WORK.mkdir(exist_ok=True)
    large = arena_pages.WORK / "arena_load.db"
    if not large.exists():
        arena_pages.build(large)
    db = arena_pages.WORK / "arena_doors.db"
    for part in ("", "-wal", "-shm"):
        Path(f"{db}{part}").unlink(missing_ok=True)
    shutil.copy(large, db)
    file = arena_pages.WORK / "doors.toml"
    tokens = found(db, file, chosen.agents)
    print(f"python {platform.python_version()}, {chosen.cores} cores, load {os.getloadavg()[0]:.1f}")
    with Serving(db, chosen.port) as server:
        print(f"cold first page, nothing kept: {server.first_page():.2f} s")
        time.sleep(3)  # the standings are kept beside the pages
    with Serving(db, chosen.port) as server:
        print(f"cold first page, standings kept: {server.first_page():.2f} s (bar 1)")
    with Serving(db, chosen.port, "--season", str(file), "--speed", chosen.speed) as server:
        print(f"the same while a season starts in the process: {server.first_page():.2f} s")
        arena_pages.warm(server.base)
        waits = asyncio.run(load(server.base, tokens, chosen.readers, chosen.seconds))
    both = {"pages": waits["pages"], "doors": waits["packet"] + waits["choice"]}
    busy = os.getloadavg()[0]
    print(f"{chosen.readers} readers and {chosen.agents} agents, {chosen.seconds:.0f} s, load {busy:.1f}")
    for name, bar in (("pages", 300), ("doors", 100)):
        middle, late, last = np.percentile(both[name], (50, 95, 99))
        told = f"{len(both[name])} requests, ms: median {middle:.0f}, 95th {late:.0f}, 99th {last:.0f}"
        print(f"{name}: {told} (bar {bar} at the 95th: {'met' if late < bar else 'NOT met'})")
    print(f"choices: {len(waits['choice'])}, ms at the 95th: {np.percentile(waits['choice'] or [0], 95):.0f}")


if __name__ == "__main__":
    main()
