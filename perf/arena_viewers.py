"""Measure 5,000 viewers and 50 agents through the proxy of compose.yaml: nginx, PostgreSQL, two
workers on two cores.

    python perf/arena_viewers.py              # a minute of ours, half a minute of a bare nginx:
    under 4 minutes
    python perf/arena_viewers.py --viewers 200 --agents 5 --seconds 20

A viewer uses one connection, polls the season's ``now.json`` every 15 seconds with its ETag, and
fetches its page after every eighth poll. Agents fetch packets and post choices in every round. Then
the same viewers request the same files from a second nginx that is configured only with ``root``.
Clients share the cores, and the output shows their CPU time. The last line is the verdict, and the
exit status is 0 if every limit is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
from arena_stack import NGINX, Stack, free, program

import arena_load
from machine import conditions

PLAIN = "server {{ listen 127.0.0.1:{port}; root {root}; access_log off; }}"


async def fetch(port: int, ends: list, request: str, body: bytes = b"") -> tuple[int, str, bytes]:
    """Send a request on a kept connection. Returns status, ETag and body."""
    if not ends:
        ends.extend(await asyncio.open_connection("127.0.0.1", port, limit=2**20))
    came, gone = ends
    gone.write(f"{request}\r\nHost: arena\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    head = (await came.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    found = b""
    if "chunked" in fields.get("transfer-encoding", ""):
        while size := int(await came.readline(), 16):
            found += (await came.readexactly(size + 2))[:-2]
        await came.readline()
    elif int(fields.get("content-length", 0)):
        found = await came.readexactly(int(fields["content-length"]))
    if fields.get("connection") == "close":
        gone.close()
        ends.clear()
    return int(head[9:12]), fields.get("etag", ""), found


async def watch(port: int, viewers: int, seconds: float) -> dict[str, list[float]]:
    waits: dict[str, list[float]] = {"now.json": [], "pages": [], "failed": []}
    end, home = time.perf_counter() + seconds, f"/seasons/{arena_load.SEASON}/"

    async def viewer(number: int) -> None:
        dice, ends, etag = random.Random(number), [], ""
        shown = dice.choice(("", "", "", "feed/", "entries/agent-0/", "assets/AHVQ/"))
        await asyncio.sleep(15 * dice.random())
        while time.perf_counter() < end:
            for kind, path in (("now.json", f"{home}now.json"), ("pages", f"{home}{shown}")):
                if kind == "pages" and dice.random() > 1 / 8:
                    continue
                began = time.perf_counter()
                try:
                    known = f"\r\nIf-None-Match: {etag}" if etag and kind == "now.json" else ""
                    asked = f"GET {path} HTTP/1.1\r\nAccept-Encoding: gzip{known}"
                    status, found, _ = await asyncio.wait_for(fetch(port, ends, asked), 30)
                except (OSError, TimeoutError, asyncio.IncompleteReadError):
                    ends.clear()
                    status = 0
                waits[kind if status in (200, 304) else "failed"].append(
                    (time.perf_counter() - began) * 1000
                )
                if status == 200 and kind == "now.json":
                    etag = found
            await asyncio.sleep(15 * (0.9 + 0.2 * dice.random()))

    await asyncio.gather(*(viewer(number) for number in range(viewers)))
    return waits


async def agents(port: int, tokens: list[str], seconds: float) -> tuple[list[float], int]:
    """Fetch packets and post choices for some seconds. Returns the waiting time of each request in
    ms, and how many answers had another status than 200 or 204.
    """
    waits, statuses, end = list[float](), list[int](), time.perf_counter() + seconds

    async def agent(token: str) -> None:
        dice, ends = random.Random(token), []
        mine = f"HTTP/1.1\r\nAuthorization: Bearer {token}"
        await asyncio.sleep(dice.random())
        while time.perf_counter() < end:
            began = time.perf_counter()
            status, _, told = await fetch(port, ends, f"GET /agents/me/packet {mine}")
            waits.append((time.perf_counter() - began) * 1000)
            statuses.append(status)
            if status != 200:
                await asyncio.sleep(1.0)
                continue
            packet = json.loads(told)
            answer = {
                "slot": packet["slot"],
                "packet_sha256": packet["packet_sha256"],
                "reasoning": "a coin",
            }
            answer["recommended_action"] = dice.choice(["BUY", "SELL", "HOLD"])
            kind = f"Content-Type: application/json\r\nIdempotency-Key: {os.urandom(16).hex()}"
            began = time.perf_counter()
            sent = f"POST /agents/me/choice {mine}\r\n{kind}"
            status, _, _ = await fetch(port, ends, sent, json.dumps(answer).encode())
            statuses.append(status)
            waits.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(agent(token) for token in tokens))
    return waits, sum(status not in (200, 204) for status in statuses)


def cpu_s(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(told[11]) + int(told[12])
    return total / os.sysconf("SC_CLK_TCK")


BAR_MS = 100.0


def say(what: str, waits: list[float]) -> float:
    """Print the waiting times of one kind of request. Returns the 95th percentile, in ms."""
    middle, late, last = np.percentile(waits, (50, 95, 99)) if waits else (np.nan,) * 3
    print(
        f"  {what}: {len(waits)} requests, ms: median {middle:.1f}, 95th {late:.1f}, 99th "
        f"{last:.1f}",
        flush=True,
    )
    return float(late)


def main() -> int:
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("--viewers", type=int, default=5000)
    ask.add_argument("--agents", type=int, default=50)
    ask.add_argument("--seconds", type=float, default=60)
    ask.add_argument("--speed", default="1d/20s", help="of the season that is played")
    chosen, start = ask.parse_args(), time.perf_counter()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    folder = Path(tempfile.mkdtemp(prefix="ta-", dir="/tmp"))
    folder.chmod(0o755)
    file = folder / "agents.toml"
    listed = ", ".join(
        f'{{ id = "agent-{n}", architecture = "http" }}' for n in range(chosen.agents)
    )
    file.write_text(arena_load.FILE.format(entries=listed))
    with Stack(folder, ["--season", str(file), "--speed", chosen.speed]) as stack:
        stack.wait(lambda: _there(f"{stack.address}/healthz"), 600)
        tokens = arena_load.found(stack.db, file, chosen.agents)  # type: ignore[arg-type]  # an address
        # A season's first pages take seconds to be written, and what viewers poll comes last.
        for page in ("entries/agent-0/", "assets/AHVQ/", "feed/", "now.json"):
            stack.wait(
                lambda page=page: _there(f"{stack.address}/seasons/{arena_load.SEASON}/{page}"), 600
            )
        port = free()
        server = PLAIN.format(port=port, root=folder / "pages")
        place = folder / "plain"
        place.mkdir()
        (place / "nginx.conf").write_text(NGINX.format(folder=place, server=server))
        plain = subprocess.Popen(
            [program("nginx", "usr/sbin/nginx"), "-c", str(place / "nginx.conf"), "-p", str(place)]
        )
        try:
            print(f"{chosen.viewers} viewers, {conditions()}")
            verdict, held = "", False
            for name, where, proxy, seconds in (
                (
                    "through the arena's proxy",
                    stack.port,
                    stack.running["proxy"].pid,
                    chosen.seconds,
                ),
                ("bare nginx", port, plain.pid, chosen.seconds / 2),
            ):
                workers = [
                    one.pid for key, one in stack.running.items() if key.startswith("worker")
                ]
                before, own, began = (
                    (cpu_s([proxy]), cpu_s(workers)),
                    time.process_time(),
                    time.perf_counter(),
                )

                async def both(
                    where: int = where, seconds: float = seconds
                ) -> tuple[dict[str, list[float]], tuple[list[float], int]]:
                    api = agents(stack.port, tokens, seconds)
                    return await asyncio.gather(watch(where, chosen.viewers, seconds), api)

                waits, (api, refused) = asyncio.run(both())
                took = time.perf_counter() - began
                served = [
                    (now - then) / took
                    for now, then in zip((cpu_s([proxy]), cpu_s(workers)), before, strict=True)
                ]
                rate = (len(waits["now.json"]) + len(waits["pages"])) / took
                own = (time.process_time() - own) / took
                print(
                    f"{name}: {rate:.0f} requests a second, {len(waits['failed'])} failed; "
                    f"{conditions()}"
                )
                print(f"  cores: proxy {served[0]:.2f}, workers {served[1]:.2f}, clients {own:.2f}")
                late = {kind: say(kind, waits[kind]) for kind in ("now.json", "pages")} | {
                    "agents": say("agents", api)
                }
                if not verdict:
                    held = (
                        all(one <= BAR_MS for one in late.values())
                        and not waits["failed"]
                        and not refused
                    )
                    told = ", ".join(f"{kind} {one:.0f}" for kind, one in late.items())
                    verdict = (
                        f"verdict: {'met' if held else 'NOT met'}: 95th percentiles {told} ms (bar "
                        f"{BAR_MS:g}), "
                        f"{len(waits['failed'])} failed, {refused} refused by the API, {rate:.0f} "
                        "requests "
                        f"a second of {chosen.viewers} viewers, {len(tokens)} agents, generator "
                        f"{own:.2f} cores"
                    )
            print(f"{verdict}; {time.perf_counter() - start:.0f} s in all, {conditions()}")
            return 0 if held else 1
        finally:
            plain.terminate()
            plain.wait(30)


def _there(address: str) -> bool:
    try:
        return httpx.get(address, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    sys.exit(main())
