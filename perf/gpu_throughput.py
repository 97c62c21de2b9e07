"""Measure which share of a GPU server's capacity a run of 64 episodes uses.

    python perf/gpu_throughput.py URL MODEL TOKENS FOLDER [FIRST LAST]

``tradeassay run`` plays 64 concurrent episodes of KTD-Fin (four masks, two modes, eight seeds) with
the server at URL (``examples/gpu_server.py``, whose ``/stats`` counts answers). They play the
window W4, or the sessions from FIRST to LAST (a third of the window takes about four minutes in
total). Then eight processes send the same questions again, in the same order within an episode,
with prepared bodies over 64 kept connections. The resulting rate is the server's capacity. Rates
are measured between a tenth and eight tenths of the answers, while all episodes are active. Limit:
90 %.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlparse

from llm_overhead import as_openai
from machine import conditions
from tradeassay_bench.core.dialogue import AskModel
from tradeassay_bench.llm import RecordingStore

BAR = 0.9
EPISODES, PROCESSES = 64, 8
GRID = (
    "--mask",
    "bright,stock-blind,date-blind,blinded",
    "--mode",
    "memory-only,fixed-candidate",
    "--seeds",
    "8",
)


class Watch(threading.Thread):
    """Polls a server's counts several times a second."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.address = url.removesuffix("/v1") + "/stats"
        self.seen: list[tuple[float, int, int, int]] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            counts = json.load(urllib.request.urlopen(self.address, timeout=30))
            self.seen.append((time.perf_counter(), counts["requests"], counts["in"], counts["out"]))

    def rates(self) -> dict[str, float]:
        """Return answers and tokens per second while all episodes are active, and the number of
        answers.
        """
        self.over.set()
        self.join()
        first, last = self.seen[0], self.seen[-1]
        total = last[1] - first[1]
        inside = [one for one in self.seen if 0.1 <= (one[1] - first[1]) / max(1, total) <= 0.8]
        begin, end = inside[0], inside[-1]
        span = end[0] - begin[0]
        named = zip(("answers_per_s", "read_per_s", "written_per_s"), range(1, 4), strict=True)
        return {name: (end[at] - begin[at]) / span for name, at in named} | {
            "answers": total,
            "span_s": span,
        }


def ask_all(url: str, episodes: list[list[bytes]]) -> None:
    """Ask the questions of some episodes over one connection, each episode in order."""
    place = urlparse(url)

    def one(bodies: list[bytes]) -> None:
        wire = http.client.HTTPConnection(str(place.hostname), place.port, timeout=600)
        for body in bodies:
            wire.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            wire.getresponse().read()

    threads = [threading.Thread(target=one, args=(bodies,)) for bodies in episodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bodies_of(run: Path, tokens: int) -> list[list[bytes]]:
    """Return every question of a run in the form in which it was sent."""
    store = RecordingStore(run / "models")
    found = []
    for episode in store.episodes():
        asked = []
        for one in store.recorded(episode):
            tools, force = one.tools, one.asked.must_call
            body = as_openai(
                AskModel(purpose="perf", messages=one.messages, tools=tools, must_call=force)
            )
            if not tools:
                del body["tools"], body["tool_choice"]
            asked.append(json.dumps({**body, "max_tokens": tokens}).encode())
        found.append(asked)
    return found


def main() -> int:
    if len(sys.argv) not in (5, 7):
        sys.exit(str(__doc__))
    days = (
        ("--window", "W4")
        if len(sys.argv) == 5
        else ("--first", sys.argv[5], "--last", sys.argv[6])
    )
    url, model, tokens, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    command = [
        "tradeassay",
        "run",
        "ktdfin-v1",
        "-m",
        model,
        *days,
        *GRID,
        "-p",
        f"max_tokens={tokens}",
        "--concurrency",
        str(EPISODES),
        "--base-url",
        url,
        "--runs",
        str(folder),
        "--name",
        "throughput",
        "--json",
    ]
    watch = Watch(url)
    watch.start()
    before = os.times()
    subprocess.run(
        command, check=False, stdout=subprocess.DEVNULL
    )  # 1 says that a model gave no usable answer
    after = os.times()
    ours = watch.rates()
    spent = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    episodes = bodies_of(folder / "throughput", tokens)
    watch = Watch(url)
    watch.start()
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=ask_all, args=(url, episodes[number::PROCESSES]))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    limit = watch.rates()
    share = ours["answers_per_s"] / limit["answers_per_s"]
    print(
        json.dumps(
            {
                "harness": ours,
                "server": limit,
                "share": share,
                "cpu_ms": spent / ours["answers"] * 1e3,
            }
        )
    )
    rate, most = ours["answers_per_s"], limit["answers_per_s"]
    print(
        f"{model}: {len(episodes)} episodes, {rate:.1f} answers/s of {most:.1f} ({share:.0%} of "
        "the limit, bar "
        f"{BAR:.0%}), {spent / ours['answers'] * 1e3:.1f} ms of CPU an answer (start and scores "
        "included), "
        f"{conditions()}"
    )
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
