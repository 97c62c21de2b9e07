"""Measure pages under load: 100,000 stored decisions and 50 concurrent readers. Prints percentiles
of their waiting times.

    python perf/arena_pages.py          # locust, from a separate environment under perf/.work
    python perf/arena_pages.py --loop   # without locust: an asyncio loop with httpx

First the site is written, and the time for the whole site and for one more settlement is printed.
Then readers open pages and poll the small file with the page versions. They pause half a second to
one and a half seconds between requests. The server is one process that sends files.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WORK = Path(__file__).parent / ".work"
ARCHITECTURES = ("investor", "trade", "hedge-fund", "deep-fund")
MODELS = tuple(f"test/model-{n}" for n in range(5))
ASSETS = ("AAJX", "ACXJ", "AHVQ", "COQJ")
SESSIONS = 1250
SEASON = "load"


def build(path: Path) -> None:
    """Write a season of 20 entries, 4 assets and 1,250 sessions, with texts of realistic length."""
    import msgspec
    from sqlalchemy import insert

    from tradeassay.core.hashing import sha256_of
    from tradeassay_arena.season import Asset, Entry, Season
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store
    from tradeassay_arena.state.tables import bookings, decisions, events, rounds
    from tradeassay_bench.core.arena import NewsShown, Packet, PricePoint

    entries = tuple(
        Entry(id=f"{a}-{m.rsplit('-', 1)[1]}", architecture=a, model=m)
        for a in ARCHITECTURES
        for m in MODELS
    )
    kinds = ("stock", "stock", "crypto", "crypto")
    assets = tuple(
        Asset(symbol=s, kind=k, dataset=f"synthetic/{'us' if k == 'stock' else 'crypto'}:7")  # type: ignore[arg-type]
        for s, k in zip(ASSETS, kinds, strict=True)
    )
    season = Season(
        id=SEASON, title="Load", assets=assets, entries=entries, first="2020-01-01", warmup=0
    )
    store = Store(open_engine(str(path), durable=False))
    store.create_season(season, "1970-01-01T00:00:00Z")
    random_ = np.random.default_rng(7)
    days = [str(np.datetime64("2020-01-01") + n) for n in range(SESSIONS)]
    moves = random_.normal(0.0004, 0.02, (len(ASSETS), SESSIONS))
    prices = 100 * np.cumprod(1 + moves, axis=1)
    talk = json.dumps(
        [{"role": f"role {n}", "step": "view", "text": "word " * 40} for n in range(8)]
    )
    all_entries = [entry.id for entry in season.all_entries]
    held = random_.integers(-1, 2, (len(all_entries), len(ASSETS), SESSIONS))
    held[-1] = 1
    nav = np.ones((len(all_entries), len(ASSETS)))
    for t, day in enumerate(days):
        with store.engine.begin() as db:
            for a, asset in enumerate(ASSETS):
                last = t == SESSIONS - 1
                price, later = float(prices[a, t]), None if last else float(prices[a, t + 1])
                packet = Packet(
                    season=SEASON,
                    date=day,
                    decided_at=f"{day}T20:00:00Z",
                    symbol=asset,
                    kind=kinds[a],
                    price=price,
                    history=tuple(PricePoint(date=d, price=1.0) for d in days[max(0, t - 10) : t]),
                    news=(
                        NewsShown(
                            id=f"{asset}-{day}",
                            published_at=f"{day}T10:00:00Z",
                            source="wire",
                            title="News",
                            text="word " * 60,
                        ),
                    ),
                )  # type: ignore[arg-type]
                row = {
                    "season": SEASON,
                    "asset": asset,
                    "session": day,
                    "decision_time": f"{day}T20:00:00Z",
                    "stage": "live",
                    "phase": "executed" if last else "settled",
                    "price": price,
                    "base_price": price,
                    "next_price": later,
                    "momentum": float(moves[a, max(0, t - 20) : t + 1].sum()),
                    "packet": msgspec.json.encode(packet).decode(),
                    "packet_sha256": sha256_of(packet),
                    "opened_at": f"{day}T20:00:00Z",
                }
                id = db.execute(insert(rounds).values(**row).returning(rounds.c.id)).scalar_one()
                for decision, booked in _slots(
                    all_entries, held, nav, moves, (a, t), (id, asset, day, last), talk
                ):
                    slot = db.execute(
                        insert(decisions).values(**decision).returning(decisions.c.id)
                    ).scalar_one()
                    where = {name: decision[name] for name in ("season", "stage", "entry", "asset")}
                    db.execute(
                        insert(bookings), [{"slot": slot, **where, **booking} for booking in booked]
                    )
                told = {
                    "season": SEASON,
                    "at": f"{day}T20:00:00Z",
                    "body": json.dumps({"asset": asset, "session": day}),
                }
                db.execute(
                    insert(events), [{**told, "kind": k} for k in ("opened", "executed", "settled")]
                )
    store.engine.dispose()


def _slots(all_entries, held, nav, moves, place, round_, talk):
    a, t = place
    id, asset, day, last = round_
    rows = []
    for e, entry in enumerate(all_entries):
        position = int(held[e, a, t])
        earned = None if last else position * float(moves[a, t + 1])
        before = int(held[e, a, t - 1]) if t else 0
        money = {
            "position_before": before,
            "position": position,
            "nav_before": float(nav[e, a]),
            "fee": 0.0,
        }
        booked = [{"number": 0, "kind": "executed", **money, "nav": float(nav[e, a])}]
        if earned is not None:
            nav[e, a] *= 1 + earned
            booked.append(
                {"number": 1, "kind": "settled", **money, "earned": earned, "nav": float(nav[e, a])}
            )
            booked[0]["earned"] = None
        rows.append(
            (
                {
                    "round": id,
                    "season": SEASON,
                    "asset": asset,
                    "session": day,
                    "stage": "live",
                    "entry": entry,
                    "status": "failed" if (t * 7 + e) % 97 == 0 else "decided",
                    "action": ("SELL", "HOLD", "BUY")[position + 1],
                    "confidence": 0.6,
                    "reasoning": "word " * 30,
                    "talk": talk,
                    "failures": "[]",
                    "decided_at": f"{day}T20:00:00Z",
                    "calls": 4,
                    "input_tokens": 900,
                    "output_tokens": 80,
                    "usd": 0.002,
                },
                booked,
            )
        )
    return rows


def paths(random_: random.Random) -> str:
    """Return a reader's next pages: mostly the first page and entries, and the file that pages
    poll.
    """
    entry = f"{random_.choice(ARCHITECTURES)}-{random_.randrange(5)}"
    asset, day = (
        random_.choice(ASSETS),
        str(np.datetime64("2020-01-01") + random_.randrange(SESSIONS - 1)),
    )
    home = f"/seasons/{SEASON}/"
    return random_.choice(
        [
            home,
            home,
            *(f"{home}{one}" for one in ("feed/", "information/", "rules/", "standings.json")),
            *(f"{home}assets/{asset}/{one}" for one in ("", f"{day}/", f"{day}/index.json")),
            f"{home}entries/{entry}/",
            *[f"{home}now.json"] * 5,
        ]
    )


def write(path: Path, folder: Path) -> None:
    """Write the site if it is missing, and print the time taken. Then do the same for one more
    settlement.
    """
    from tradeassay_arena.queries.seasons import read_season
    from tradeassay_arena.queries.snapshot import SeasonSnapshot
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store
    from tradeassay_arena.web.site import PageWriter, render

    store = Store(open_engine(str(path)))
    began = time.process_time()
    written = PageWriter(store, folder).update()
    took = time.process_time() - began
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    print(f"the whole site: {written} files written in {took:.1f} s of CPU, {size:.0f} MiB in all")
    season = read_season(store, SEASON)
    assert season is not None
    began = time.process_time()
    made = dict(render(SeasonSnapshot(store, season), [(ASSETS[0], "2023-06-01")], ()))
    print(
        f"after a settlement: {len(made)} files made in {time.process_time() - began:.1f} s of CPU"
    )
    store.engine.dispose()


def serve(path: Path, folder: Path, port: int) -> None:
    import uvicorn

    from tradeassay_arena.api.agent_api import AgentApi
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store
    from tradeassay_arena.web.app import Arena, create_app

    app = create_app(Arena(api=AgentApi(Store(open_engine(str(path)))), folder=folder))
    uvicorn.run(app, port=port, log_level="error", access_log=False)


async def loop(base: str, readers: int, seconds: float) -> np.ndarray:
    import httpx

    waits: list[float] = []
    limits = httpx.Limits(max_connections=readers)

    async def reader(number: int) -> None:
        random_ = random.Random(number)
        await asyncio.sleep(random_.random())
        while time.perf_counter() < end:
            path = paths(random_)
            began = time.perf_counter()
            answer = await client.get(path)
            answer.raise_for_status()
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.5 + random_.random())

    async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits) as client:
        end = time.perf_counter() + seconds
        await asyncio.gather(*(reader(number) for number in range(readers)))
    return np.array(waits) * 1000


LOCUST = """
import random, sys
sys.path.insert(0, {here!r})
from locust import HttpUser, between, task
import arena_pages

class Reader(HttpUser):
    wait_time = between(0.5, 1.5)
    def on_start(self):
        self.random = random.Random()
    @task
    def read(self):
        self.client.get(arena_pages.paths(self.random), name="pages")
"""


def locust(base: str, readers: int, seconds: float) -> dict[str, float]:
    home = WORK / "locust"
    if not (home / "bin" / "locust").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "-q", "locust", "numpy"], check=True)
    script = WORK / "arena_readers.py"
    script.write_text(LOCUST.format(here=str(Path(__file__).parent)))
    stem = WORK / "arena_load"
    subprocess.run(
        [
            str(home / "bin" / "locust"),
            "-f",
            str(script),
            "--headless",
            "-u",
            str(readers),
            "-r",
            "25",
            "-t",
            f"{int(seconds)}s",
            "-H",
            base,
            "--csv",
            str(stem),
            "--only-summary",
            "--loglevel",
            "ERROR",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    rows = list(csv.DictReader(Path(f"{stem}_stats.csv").open()))
    total = next(row for row in rows if row["Name"] == "Aggregated")
    wanted = {
        "50%": "50%",
        "95%": "95%",
        "99%": "99%",
        "requests": "Request Count",
        "failed": "Failure Count",
    }
    return {name: float(total[column]) for name, column in wanted.items()}


def main() -> None:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("--loop", action="store_true", help="asyncio and httpx instead of locust")
    ask.add_argument("--readers", type=int, default=50)
    ask.add_argument("--seconds", type=float, default=30)
    ask.add_argument("--port", type=int, default=8791)
    ask.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = ask.parse_args()
    WORK.mkdir(exist_ok=True)
    path = WORK / "arena_load.db"
    folder = WORK / "arena_load.pages"
    if chosen.serve:
        serve(path, folder, chosen.port)
        return
    if not path.exists():
        began = time.process_time()
        build(path)
        print(
            f"built in {time.process_time() - began:.0f} s of CPU, "
            f"{path.stat().st_size / 2**20:.0f} MiB"
        )
    write(path, folder)
    base = f"http://127.0.0.1:{chosen.port}"
    server = subprocess.Popen([sys.executable, __file__, "--serve", "--port", str(chosen.port)])
    try:
        await_server(base)
        if chosen.loop:
            waits = asyncio.run(loop(base, chosen.readers, chosen.seconds))
            found = {f"{q}%": float(np.percentile(waits, q)) for q in (50, 95, 99)} | {
                "requests": waits.size
            }
        else:
            found = locust(base, chosen.readers, chosen.seconds)
        print(
            f"{chosen.readers} readers, {chosen.seconds:.0f} s: "
            + ", ".join(f"{k} {v:.0f}" for k, v in found.items())
        )
        print("ms at the 95th percentile: bar 200,", "met" if found["95%"] < 200 else "NOT met")
    finally:
        server.terminate()
        server.wait(10)


def await_server(base: str, path: str = "/healthz") -> None:
    """Wait until a newly started server answers at ``path``."""
    import httpx

    for _ in range(200):
        try:
            httpx.get(f"{base}{path}", timeout=30).raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main()
