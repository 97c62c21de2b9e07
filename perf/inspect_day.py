"""What does a KTD-Fin day of six calls cost through Inspect, in CPU and memory, over the paper's long window?

A server in another process answers at once: five tool calls, then the action. The two documented doors play the
same days against it, each in a process of its own: ``tradeassay run`` and ``inspect eval tradeassay/ktdfin``.
A short episode is played as well, and a day costs what the longer one took more; memory is the peak of the
process, interpreter and libraries included. ``bare`` is the floor: a task of Inspect's that asks the six questions
of the eval's first day again and again, and nothing else. The bars: 45 ms of CPU a day, 200 MB for 548 days.
Run it with ``python perf/inspect_day.py`` (``--days 60`` for a quick look, ``--json`` for a machine).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from machine import conditions
from openai_answers import completion

BAR_MS, BAR_MB = 45.0, 200.0
SHORT, LONG = 20, 548
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("get_market_context", {}),
    ("screen_candidates", {"factors": ["MOM_12_1", "-RV_60"], "top_k": 20}),
    ("screen_candidates", {"factors": ["HIGH_52W"], "top_k": 20}),
    ("portfolio_state", {}),
    ("get_market_context", {}),
)
ACTION = {"orders": [], "overall_reason": "nothing looks better than what is held"}
MODEL = "openai-api/perf/m"


class Instant(BaseHTTPRequestHandler):
    """Answers a day's questions by how many tool results it has seen."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = sum(message["role"] == "tool" for message in asked["messages"])
        offered = {tool["function"]["name"] for tool in asked["tools"]}
        name, arguments = ("submit_action", ACTION) if offered == {"submit_action"} else CALLS[min(results, 4)]
        if results >= len(CALLS) and offered != {"submit_action"}:
            name, arguments = "submit_action", ACTION
        body = completion(calls=[(f"call_{results}", name, json.dumps(arguments))])
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def serve(pipe: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Instant)
    pipe.send(server.server_port)
    server.serve_forever()


def spent(command: list[str], folder: Path, env: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its CPU seconds and its peak memory in MB."""
    child = os.posix_spawn(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit((folder / "out").read_text()[-3000:])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def door(name: str, days: int, folder: Path, first: str, last: str) -> list[str]:
    if name == "run":
        return [
            sys.executable,
            "-m",
            "tradeassay",
            "run",
            "ktdfin-v1",
            "-m",
            MODEL,
            "--mask",
            "blinded",
            "--mode",
            "open-research",
            "--dataset",
            "synthetic/csi300:7",
            "--first",
            first,
            "--last",
            last,
            "--base-url",
            os.environ["PERF_BASE_URL"],
            "--executor",
            "inline",
            "--runs",
            str(folder / f"runs{days}"),
            "--prices",
            str(folder / "prices.toml"),
            "--json",
        ]
    if name == "bare":
        (log,) = (folder / f"logs{SHORT}").glob("*.eval")
        return [sys.executable, __file__, "--ask-again", str(log), "--days", str(days), "--log-dir", str(folder)]
    return [
        sys.executable,
        "-m",
        "inspect_ai",
        "eval",
        "tradeassay/ktdfin",
        "--model",
        MODEL,
        "-T",
        f"days={days}",
        "-T",
        "window=long",
        "-T",
        "dataset=synthetic/csi300:7",
        "--log-dir",
        str(folder / f"logs{days}"),
        "--display",
        "none",
    ]


def ask_again(log: str, days: int, folder: str) -> None:
    """Ask the questions of a log's first day through Inspect, once for every day, and do nothing else."""
    from inspect_ai import Task, eval_async
    from inspect_ai.dataset import Sample
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import get_model
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    (sample,) = read_eval_log(log, resolve_attachments=True).samples or []
    asked = [event for event in sample.events if isinstance(event, ModelEvent)][: len(CALLS) + 1]

    @solver
    def ask() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            for _ in range(days):
                for event in asked:
                    await get_model().generate(list(event.input), tools=list(event.tools))
            return state

        return solve

    task = Task(dataset=[Sample(input="six questions a day")], solver=ask())
    (done,) = asyncio.run(eval_async(task, model=MODEL, log_dir=folder))
    assert done.status == "success", done.error


def measure(days: int, doors: Sequence[str]) -> dict[str, float]:
    from tradeassay.benchmarks.benchmark import find_window
    from tradeassay.data import load_dataset

    snapshot = load_dataset("synthetic/csi300:7")
    window = find_window("ktdfin", "long", snapshot, "sound")
    sessions = [str(day) for day in snapshot.sessions if window.first <= str(day) <= window.last]
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prices.toml").write_text(
            f'[prices."{MODEL}"]\ninput = 0.0\noutput = 0.0\nsource = "perf"\nas_of = 2026-01-01\n'
        )
        for one in doors:
            seconds = {}
            for count in (SHORT, days):
                command = door(one, count, folder, sessions[0], sessions[count - 1])
                seconds[count], results[f"{one}_mb_{count}_days"] = spent(command, folder, dict(os.environ))
            results[f"{one}_ms_per_day"] = (seconds[days] - seconds[SHORT]) / (days - SHORT) * 1e3
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--days", type=int, default=LONG)
    parser.add_argument("--door", choices=("run", "eval", "bare"), action="append")
    parser.add_argument("--ask-again", metavar="LOG", help=argparse.SUPPRESS)
    parser.add_argument("--log-dir", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask_again:
        ask_again(args.ask_again, args.days, args.log_dir)
        return 0
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    os.environ |= {"PERF_API_KEY": "none", "PERF_BASE_URL": f"http://127.0.0.1:{ours.recv()}/v1"}
    try:
        results = measure(args.days, args.door or ("run", "eval", "bare"))
    finally:
        server.terminate()
    shown = {key: round(value, 1) for key, value in results.items()} | {"bar_ms": BAR_MS, "bar_mb": BAR_MB}
    told = {**shown, "machine": conditions()}
    print(json.dumps(told) if args.json else "\n".join(f"{key}: {value}" for key, value in told.items()))
    ours = {key: value for key, value in results.items() if not key.startswith("bare")}
    fast = all(value < BAR_MS for key, value in ours.items() if key.endswith("per_day"))
    return 0 if fast and all(value < BAR_MB for key, value in ours.items() if "_mb_" in key) else 1


if __name__ == "__main__":
    sys.exit(main())
