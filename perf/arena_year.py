"""A season as real processes while parts fail: nginx, PostgreSQL, two workers and 20 entries, five of them foreign
over HTTP and two hostile.

    python perf/arena_year.py --sessions 365      # a year of two coins
    python perf/arena_year.py --sessions 60 --folder /tmp/season

Workers and the database are killed, both workers are replaced one after the other as in an upgrade, and one joins.
Afterwards every account is compared with plain arithmetic on the data's own prices, every acknowledged answer with
what was booked, ``verify`` plays the season again, and alarms at the webhook are counted. Time is a replay's: the
habits of live vendors, dying feeds and jumping clocks are tried on a virtual clock (tests/arena) and not here, and
a full disk is not tried at all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
from sqlalchemy import func, select

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
from arena_stack import Stack

from tradeassay.arena.amending import Asked, amend
from tradeassay.arena.api.doors import Doors
from tradeassay.arena.queries.seasons import read_season, state_of
from tradeassay.arena.season import Asset, Entry, Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import bookings, decisions, rounds
from tradeassay.data import load_dataset

FIRST, DATA, COINS = date(2021, 1, 4), "synthetic/crypto:7", ("AHVQ", "COQJ")
FOREIGN, HOSTILE = 5, 2
RULES = ("buy", "sell", "hold", "trend")


def season_of(sessions: int) -> Season:
    desks = ("vanilla", "investor", "trade")
    models = ("scripted/sensible", "scripted/contrarian")
    inside = [Entry(id=f"{d}-{m[9:]}", architecture=d, model=m) for d in desks for m in models]
    rules = [
        Entry(id=f"rule-{n}", architecture="rule", params={"rule": n}) for n in ("buy", "sell", "hold", "trend")
    ]
    outside = [Entry(id=f"guest-{n}", architecture="http") for n in range(FOREIGN)]
    outside += [Entry(id=f"rogue-{n}", architecture="http") for n in range(HOSTILE)]
    more = [Entry(id=f"trend-{n}", architecture="rule", params={"rule": "trend"}) for n in range(3)]
    return Season(
        id="year",
        assets=tuple(Asset(symbol=coin, kind="crypto", dataset=DATA) for coin in COINS),
        entries=(*inside, *rules, *more, *outside),
        first=str(FIRST),
        last=str(FIRST + timedelta(days=sessions - 1)),
        timeout_s=4,
        window_s=600,
    )


class Alarms:
    """Hears what the arena posts to its operator."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        hear = self.texts.append

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hear(json.loads(self.rfile.read(int(self.headers["content-length"])))["text"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/"


def guest(address: str, token: str, seed: int, over: threading.Event, told: dict[int, str], hostile: bool) -> None:
    """Fetch packets and answer them; a hostile one lies, repeats itself, claims others' slots, or says nothing."""
    dice, mine = random.Random(seed), {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, timeout=30, headers=mine) as web:
        while not over.is_set():
            try:
                found = web.get("/agents/me/packet?wait=2")
                if found.status_code != 200:
                    time.sleep(0.2)
                    continue
                packet = found.json()
                act = dice.choice(("BUY", "SELL", "HOLD"))
                sent = {"slot": packet["slot"], "packet_sha256": packet["packet_sha256"]}
                sent |= {"recommended_action": act, "reasoning": "dice"}
                if hostile:
                    for forged in (
                        {**sent, "slot": sent["slot"] + 1},
                        {**sent, "packet_sha256": "0" * 64},
                        {"x": 1},
                    ):
                        fresh = {"idempotency-key": os.urandom(8).hex()}
                        bad = web.post("/agents/me/choice", json=forged, headers=fresh)
                        assert bad.status_code in (404, 409, 422, 429, 503, 502), bad.text
                    if dice.random() < 0.2:
                        time.sleep(3)
                        continue
                key = {"idempotency-key": os.urandom(8).hex()}
                if web.post("/agents/me/choice", json=sent, headers=key).status_code == 200:
                    told[packet["slot"]] = act
            except httpx.HTTPError:
                time.sleep(0.3)


def farthest_from_arithmetic(store: Store, season: Season) -> tuple[float, int]:
    """Return how far an account is from its decisions played on the data's own closes, at most, and how many."""
    snapshot = load_dataset(DATA)
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    closes = {
        coin: dict(zip(map(str, view.sessions()), view.bars("close")[:, view.column(coin)].tolist(), strict=True))
        for coin in COINS
    }
    query = select(decisions, rounds.c.next_session).join(rounds, rounds.c.id == decisions.c.round)
    query = query.where(rounds.c.phase == "settled").order_by(decisions.c.session)
    worth: dict[tuple[str, str], tuple[int, float]] = {}
    with store.read() as db:
        for row in db.execute(query):
            held, nav = worth.get((row.entry, row.asset), (0, 1.0))
            now = {"BUY": 1, "SELL": -1}.get(row.action, held)
            move = closes[row.asset][row.next_session] / closes[row.asset][row.session] - 1.0
            nav *= (1.0 - abs(now - held) * season.money.fee_bp / 10_000) * (1.0 + now * move)
            worth[row.entry, row.asset] = now, max(nav, 0.0)
        newest = select(func.max(bookings.c.id)).group_by(bookings.c.entry, bookings.c.asset)
        booked = {(r.entry, r.asset): r for r in db.execute(select(bookings).where(bookings.c.id.in_(newest)))}
    apart = [abs(booked[key].nav - nav) / max(1.0, nav) for key, (_, nav) in worth.items()]
    return max(apart), len(apart)


def run(folder: Path, sessions: int) -> dict[str, Any]:
    """Play it and return what came of it."""
    season, alarms, over, told = season_of(sessions), Alarms(), threading.Event(), dict[int, str]()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "season.json"
    spec = {
        key: value for key, value in msgspec.to_builtins(season).items() if key not in ("amendments", "founded")
    }
    file.write_bytes(msgspec.json.encode(spec))
    stack = Stack(folder, ["--season", str(file), "--speed", "max", "--webhook", alarms.address])
    began, done = time.monotonic(), list[str]()
    with stack:
        stack.wait(lambda: _ok(stack.address))
        store = Store(open_engine(stack.db))
        doors, now = Doors(store), "2021-01-01T00:00:00Z"
        outside = [entry.id for entry in season.entries if entry.architecture == "http"]
        tokens = {id: doors.register("year", id, now=now).token for id in outside}
        guests = [
            threading.Thread(
                target=guest, args=(stack.address, token, seed, over, told, id.startswith("rogue")), daemon=True
            )
            for seed, (id, token) in enumerate(tokens.items())
        ]
        for one in guests:
            one.start()

        def played() -> int:
            with store.read() as db:
                return int(db.execute(select(func.count()).select_from(rounds)).scalar_one())

        def replace(number: int) -> None:
            stack.stop(f"worker-{number}")
            stack.start_worker(number)

        def join() -> None:
            here = read_season(store, "year")
            assert here is not None
            values = {"architecture": "rule", "rule": "sell"}
            amend(store, here, Asked(change="join", what="late", values=values, now="2021-06-01T00:00:00Z"))

        def crash() -> None:
            store.engine.dispose()
            stack.stop("db", signal.SIGQUIT)
            time.sleep(3)
            stack.start_database()

        steps = [
            (0.15, "worker killed", lambda: stack.running["worker-0"].kill()),  # tend() starts it again
            (0.35, "database crashed", crash),
            (0.50, "first worker upgraded", lambda: replace(0)),
            (0.55, "second worker upgraded", lambda: replace(1)),
            (0.65, "an entry joined", join),
            (
                0.80,
                "worker killed",
                lambda: stack.running["worker-1"].kill(),
            ),
        ]
        total = sessions * len(COINS)
        while state_of(store, season).status != "finished" or played() < total:
            if time.monotonic() - began > 60 + 20 * sessions:
                raise TimeoutError(f"{played()} of {total} rounds; see {folder}/stack.log")
            while steps and played() >= steps[0][0] * total:
                _, what, do = steps.pop(0)
                do()
                done.append(what)
            stack.tend()
            time.sleep(0.3)
        over.set()
        apart, accounts = farthest_from_arithmetic(store, season)
        with store.read() as db:
            query = select(decisions.c.id, decisions.c.action).where(decisions.c.id.in_(list(told)))
            booked = dict(db.execute(query).tuples().all())
        lost = [slot for slot, act in told.items() if booked.get(slot) != act]
        store.engine.dispose()
        again = [sys.executable, "-m", "tradeassay", "verify", stack.db]
        checked = subprocess.run(again, capture_output=True, text=True)
    expected = [text for text in alarms.texts if "database" in text or "all is well" in text or "plan" in text]
    return {
        "sessions": sessions,
        "rounds": total,
        "accounts": accounts,
        "farthest from arithmetic": apart,
        "answers acknowledged": len(told),
        "answers lost": len(lost),
        "what was done": done,
        "database alarm raised": any("database" in text for text in alarms.texts),
        "alarms": len(alarms.texts),
        "false alarms": [text for text in alarms.texts if text not in expected],
        "verify": {0: "re-derived", 3: "nothing contradicted"}.get(checked.returncode, checked.stdout[-2000:]),
        "seconds": round(time.monotonic() - began),
    }


def _ok(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=365)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    found = run(asked.folder or Path(tempfile.mkdtemp(prefix="year-")), asked.sessions)
    print(json.dumps(found, indent=2))
    good = found["farthest from arithmetic"] <= 1e-12 and not found["answers lost"] and not found["false alarms"]
    return 0 if good and found["database alarm raised"] and "contradicted" in found["verify"] else 1


if __name__ == "__main__":
    sys.exit(main())
