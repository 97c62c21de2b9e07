"""Twenty agents, four assets, 250 replayed days, every architecture with its full call graph: how long?

``python perf/arena_season.py [days]`` plays a season with scripted models on a fresh SQLite file, verifies it, and
prints decisions, model calls, wall and CPU seconds of both (bars for 250 days: 2 minutes on 2 cores to play it, 60
CPU-seconds to verify it).
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import time

import msgspec
import sqlalchemy
from sqlalchemy import func, select

from machine import conditions
from tradeassay.arena.rounds.feed import SnapshotFeed
from tradeassay.arena.season import ARCHITECTURES, Entry, Season, demo_season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import calls, slots
from tradeassay.arena.verifying import verify_arena
from tradeassay.arena.web.serving import play

AGENTS = 20


def season(days: int) -> Season:
    entries = tuple(
        Entry(id=f"{kind}-{number}", architecture=kind, model="scripted/sensible")
        for kind in ARCHITECTURES
        for number in range(AGENTS // len(ARCHITECTURES))
    )
    whole = demo_season(first="2021-06-01", last="2022-12-30", warmup=0)
    sessions = SnapshotFeed.open(whole).due(whole)
    stock = [due.session for due in sessions if due.asset == whole.assets[0].symbol]
    return msgspec.structs.replace(whole, id="speed", entries=entries, last=stock[days - 1])


def main() -> int:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    spec = season(days)
    print(f"python {platform.python_version()}, SQLAlchemy {sqlalchemy.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        store = Store(open_engine(f"{folder}/arena.db", durable=False))
        wall, cpu = time.perf_counter(), time.process_time()
        rounds = asyncio.run(play(spec, store, None))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        with store.read() as db:
            decided = db.execute(select(func.count()).select_from(slots)).scalar_one()
            asked = db.execute(select(func.count()).select_from(calls)).scalar_one()
        store.engine.dispose()
        verify_wall, verify_cpu = time.perf_counter(), time.process_time()
        found = verify_arena(f"{folder}/arena.db")
        verify_wall, verify_cpu = time.perf_counter() - verify_wall, time.process_time() - verify_cpu
        size = os.path.getsize(f"{folder}/arena.db") / 1e6
    print(f"{rounds} rounds, {decided} decisions, {asked} model calls, {size:.0f} MB")
    print(f"{wall:.0f} s wall, {cpu:.0f} s CPU, {conditions()} (bar: 120 s for 250 days)")
    print(f"verified: {verify_wall:.0f} s wall, {verify_cpu:.0f} s CPU (bar: 60), exit {found.exit_code}")
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main())
