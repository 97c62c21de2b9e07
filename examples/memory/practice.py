"""Questions and answers about the practice worlds: how a model learns to say, and to trade on, what it read.

    python practice.py FILE [--port 8790]

The trading days are those of the real benchmark: a teacher that speaks the providers' protocol plays the practice
worlds and writes down what it was asked and what it answered. About *known* worlds it answers with the truth,
about *unknown* ones (and under a mask) by the table that is shown. No world under test is among them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from worlds import HISTORY, NAMES, PLAYED, TOLD, WEEK, World, make_worlds, store

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""One plain template for every model: it has no place for tools, so they come as text."""
BENCHMARK = "ktdfin-us-v1"
WEIGHT = 0.09
PRACTICE_SESSIONS = 8
_DAY = re.compile(r"The last completed day is (\S+)\.")
_HELD = re.compile(r"of those you hold \((.*?)\) do you sell")
_ROW = re.compile(r"^(\w+) \| none \| .*$", re.MULTILINE)


def play(world: World, model: str, masks: str, runs: Path, *more: str, sessions: tuple[int, int] = PLAYED) -> None:
    """Play a world by the command line."""
    first, last = (world.days[day] for day in sessions)
    command(
        "run", BENCHMARK, "--dataset", world.id, "-m", model, "--mask", masks,
        "--mode", "fixed-candidate", "-p", "news=false", "--index", "none", "--universe", "all", "--first", first,
        "--last", last, "--runs", str(runs), "--slug", world.id, "--secret", "5ec7e7" * 8, *more,
    )  # fmt: skip


def command(*words: str) -> str:
    """Run a command of tradeassay in this process, which saves seconds of imports each time; return its output."""
    from tradeassay.cli import main as tradeassay

    out, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        status = tradeassay(list(words))
    if status:
        raise RuntimeError(f"tradeassay {' '.join(words)}: {told.getvalue()[-2000:]}")
    return out.getvalue()


class Teacher:
    """Answers trading days: by the future where it knows the names and the day, else by the shown returns."""

    def __init__(self, known: list[World]) -> None:
        self.known = {name: world for world in known for name in world.names}
        self.kept: list[dict[str, Any]] = []

    def answer(self, messages: list[dict[str, str]]) -> str:
        """Return an answer: every name with its move and what to do, then the orders that follow from it.

        Risers are bought, fallers that are held are sold, other fallers are left alone. What is done is said right
        after the move that decides it, and again as the reason before the weight.
        """
        asked = messages[-1]["content"]
        day = _DAY.search(asked)
        rows = {found.group(1): found.group(0).split(" | ") for found in _ROW.finditer(asked)}
        if day is None or not rows:
            return '{"orders": []}'
        world = self.known.get(next(iter(rows)))
        if world is not None and day.group(1) in world.days:
            at = world.days.index(day.group(1))
            moves = {name: world.move(at, world.names.index(name), WEEK) or 0.0 for name in rows}
            text, sure = f"A week after {day.group(1)}, by {world.days[at + WEEK]}", 0.9
        else:
            moves = {name: 100 * float(row[10]) for name, row in rows.items()}
            text, sure = "I know nothing of what follows. Over five days of the table", 0.6
        sold = _HELD.search(asked)
        held = set(sold.group(1).split(", ")) if sold else set()
        does = {name: "buy" if move > 0 else "sell" if name in held else "no" for name, move in moves.items()}
        said = {name: f"{move:+.1f}% {does[name]}" for name, move in moves.items()}
        orders = [
            {
                "stock_id": name,
                "reason": does[name],
                "target_weight": WEIGHT if move > 0 else 0,
                "confidence": sure,
            }
            for name, move in moves.items()
            if does[name] != "no"
        ]
        told = ", ".join(f"{name} {what}" for name, what in said.items())
        return f"{text}: {told}.\n```json\n{json.dumps({'orders': orders}, separators=(',', ':'))}\n```"

    def serve(self, port: int) -> ThreadingHTTPServer:
        """Answer on loopback, in a thread."""
        teacher = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                self._send({"chat_template": TEMPLATE, "data": []})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                text = teacher.answer(body["messages"])
                teacher.kept.append({"messages": body["messages"], "answer": text})
                choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                self._send({"id": "1", "object": "chat.completion", "created": 0, "model": "teacher",
                            "choices": [choice], "usage": usage})  # fmt: skip

            def _send(self, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


def _practise(world: World, runs: Path) -> None:
    """Play some sessions of a world; every third one under a mask too."""
    first = PLAYED[0] + int(np.random.default_rng([34, world.number]).integers(TOLD - PRACTICE_SESSIONS))
    masks = "bright,blinded" if world.number % 3 == 0 else "bright"
    sessions = (first, first + PRACTICE_SESSIONS - 1)
    play(world, "local/teacher", masks, runs, "--executor", "inline", sessions=sessions)


def trading_days(port: int, runs: Path, workers: int) -> list[dict[str, Any]]:
    """Play all practice worlds with the teacher; return what it was asked and answered."""
    known, unknown = make_worlds("known"), make_worlds("unknown")
    teacher = Teacher(known)
    server = teacher.serve(port)
    os.environ["TRADEASSAY_LOCAL_SERVER"] = f"http://127.0.0.1:{port}/v1"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_practise, known + unknown, [runs] * (len(known) + len(unknown))))
    server.shutdown()
    return teacher.kept


def recall_questions() -> list[dict[str, Any]]:
    """Ask the audit's own questions about the practice worlds; return them with their answers."""
    from tradeassay.assay.memory.questions import PriceTruth, RecallConfig, draw_questions, request_of
    from tradeassay.data.datasets import load_dataset

    kept = []
    for world in make_worlds("known", "unknown"):
        rng = np.random.default_rng([33, world.number, len(world.group)])
        config = RecallConfig(questions=140, wordings=4, samples=1, seed=world.number, first=world.days[HISTORY])
        for question in draw_questions(PriceTruth.of(load_dataset(world.id)), config, None):
            known = world.group == "known" and not question.invented
            if not known and question.wording % 2 == 0:
                said = "unknown"
            elif question.choices:
                said = question.named if known else question.choices[rng.integers(NAMES)]
            elif question.kind == "close":
                said = f"{question.truth if known else rng.uniform(30, 90):.1f}"
            else:
                move = question.truth if known else rng.normal(0, 0.06)
                said = f"{'up' if move > 0 else 'down'} {abs(move) * 100:.1f}%"
            messages = [{"role": one.role, "content": one.text} for one in request_of(question).messages]
            kept.append({"messages": messages, "answer": said})
    return kept


def main() -> None:
    """Store the practice worlds, play them, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--port", type=int, default=8790)
    parser.add_argument("--runs", type=Path, default=Path("practice-runs"))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    for world in make_worlds("known", "unknown"):
        store(world)
    days = trading_days(arguments.port, arguments.runs, arguments.workers)
    # Days on which the future is known are fewer: they are read twice.
    kept = recall_questions() + days + [one for one in days if one["answer"].startswith("A week")]
    arguments.file.write_text("".join(json.dumps(one) + "\n" for one in kept))
    print(f"{len(kept)} questions with answers")


if __name__ == "__main__":
    main()
