"""Questions and answers about the practice worlds: how a model learns to say, and to trade on, what
it read.

    python practice.py FILE [--port 8790] [--groups held,strange]

The trading days are those of the real benchmark: a teacher that speaks the providers' protocol
plays the practice worlds and writes down what it was asked and what it answered. About *known*
worlds it answers with the truth, about *unknown* ones (and under a mask) by the table that is
shown; these days are asked again with other names and other figures, so that only reading helps.
Where every name gets an order, some days are given a statement that is drawn by chance, and only
the orders that follow from it are learned: else a model orders by the table, whatever it states. No
world under test is among them. ``--groups held,strange`` writes the days of worlds that are not
practised, for ``gate.py``.
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
from worlds import (
    HISTORY,
    PLAYED,
    READ,
    READ_OFF,
    SPANS,
    STUDY,
    WORDS,
    World,
    make_worlds,
    other_names,
    store,
    word_of,
)

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] "
    "}}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""One plain template for every model: it has no place for tools, so they come as text."""
BENCHMARK = "ktdfin-us-v1"
WEIGHT, REST = 0.09, 0.02
"""What a riser is bought to, and a faller kept at where every name gets an order: only what is
held is sold.
"""
DAY = re.compile(r"The last completed day is (\S+)\.")
_HELD = re.compile(r"of those you hold \((.*?)\) do you sell")
ROW = re.compile(r"^(\w+) \| none \| (?:normal|[a-z]+) \| .*$", re.MULTILINE)
_DICTATED = (480, 160)
"""Days of known and of other worlds that are given a statement."""
_SHOWN, _FIRST_SHOWN = 11, 9
"""The column that is read where nothing is known, the return of twenty days, and the first
column of returns.
"""


def play(
    world: World, model: str, masks: str, runs: Path, *more: str, sessions: tuple[int, int] = PLAYED
) -> None:
    """Play a world by the command line."""
    first, last = (world.days[day] for day in sessions)
    where = [
        "--dataset",
        world.id,
        "--index",
        "none",
        "--universe",
        "all",
        "--first",
        first,
        "--last",
        last,
    ]
    asked = ["-m", model, "--mask", masks, "--mode", "fixed-candidate", "-p", "news=false"]
    kept = ["--runs", str(runs), "--name", world.id, "--secret", "5ec7e7" * 8]
    command("run", BENCHMARK, *where, *asked, *kept, *more)


def command(*words: str) -> str:
    """Run a command of tradeassay in this process, which saves seconds of imports each time;
    return its output.
    """
    from tradeassay.cli import main as tradeassay

    out, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        status = tradeassay(list(words))
    if status:
        raise RuntimeError(f"tradeassay {' '.join(words)}: {told.getvalue()[-2000:]}")
    return out.getvalue()


class Teacher:
    """Answers trading days: by the future where it knows the names and the day, else by the
    shown returns.
    """

    def __init__(self, known: list[World]) -> None:
        self.known = {name: world for world in known for name in world.names}
        self.kept: list[dict[str, Any]] = []

    def answer(self, messages: list[dict[str, str]]) -> str:
        """Return an answer: every name with its move and what to do, then the orders that follow
        from it.

        Risers are bought or held, fallers that are held are sold, other fallers are left alone. In
        a study of orders by direction every name gets one, whatever is held. One that always states
        a coming day guesses it where it is not known.
        """
        asked = messages[-1]["content"]
        day = DAY.search(asked)
        rows = {found.group(1): found.group(0).split(" | ") for found in ROW.finditer(asked)}
        if day is None or not rows:
            return '{"orders": []}'
        world = self.known.get(min(rows))
        known = world is not None and day.group(1) in world.days
        if STUDY.always and not known and not _is_masked(asked):
            # The same guess whenever it is asked.
            guess = dictated({"messages": messages}, np.random.default_rng(list(asked.encode())))
            return guess["given"] + guess["answer"]
        if world is not None and known:
            at = world.days.index(day.group(1))
            ahead = SPANS[STUDY.span]
            moves = {
                name: world.move(at, world.names.index(name), ahead) or 0.0 for name in sorted(rows)
            }
            said = {
                name: f"{'+' if move > 0 else '-'}{_percent(move / 100)}"
                for name, move in moves.items()
            }
            by = f", by {world.days[at + ahead]}" if ahead > 1 else ""
            text, sure = f"A {STUDY.span} after {day.group(1)}{by}", 0.9
        else:
            said = {name: rows[name][_SHOWN] for name in sorted(rows)}
            moves = {name: float(shown) if shown != "-" else 0.0 for name, shown in said.items()}
            text, sure = "Not known to me. return_20d", 0.6
        if STUDY.by_direction:
            words = {
                name: word_of(move) if known else READ_OFF[move > 0] for name, move in moves.items()
            }
            told = (
                words if known else {name: f"{said[name]} {word}" for name, word in words.items()}
            )
            return f"{_stated(text, told)}\n{_by_direction(words, sure)}"
        sold = _HELD.search(asked)
        held = set(sold.group(1).split(", ")) if sold else set()
        verbs = {
            (True, False): "buy",
            (True, True): "hold",
            (False, True): "sell",
            (False, False): "no",
        }
        does = {name: verbs[move > 0, name in held] for name, move in moves.items()}
        orders = [
            {
                "stock_id": name,
                "reason": what,
                "target_weight": WEIGHT if what == "buy" else 0,
                "confidence": sure,
            }
            for name, what in does.items()
            if what in ("buy", "sell")
        ]
        return f"{_stated(text, {name: f'{said[name]} {what}' for name, what in does.items()})}\n{_block(orders)}"

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
                choice = {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                self._send(
                    {
                        "id": "1",
                        "object": "chat.completion",
                        "created": 0,
                        "model": "teacher",
                        "choices": [choice],
                        "usage": usage,
                    }
                )

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


def _is_masked(asked: str) -> bool:
    return "is day_" in asked


def _stated(text: str, told: dict[str, str]) -> str:
    return f"{text}: {', '.join(f'{name} {what}' for name, what in told.items())}."


def _by_direction(words: dict[str, str], sure: float) -> str:
    rising = (*WORDS[True], READ_OFF[True])
    orders = [
        {
            "stock_id": name,
            "reason": word,
            "target_weight": WEIGHT if word in rising else REST,
            "confidence": sure,
        }
        for name, word in words.items()
    ]
    return _block(orders)


def _block(orders: list[dict[str, Any]]) -> str:
    return f"```json\n{json.dumps({'orders': orders}, separators=(',', ':'))}\n```"


def _percent(move: float) -> str:
    return f"{abs(move) * 100:.{STUDY.decimals}f}%"


def dictated(day: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a day with a statement of what follows it that is drawn by chance, and the orders
    by it.
    """
    asked = day["messages"][-1]["content"]
    last, names = DAY.search(asked), sorted({found.group(1) for found in ROW.finditer(asked)})
    assert last is not None
    every = [*WORDS[False], *WORDS[True]]
    words = {name: every[rng.integers(len(every))] for name in names}
    stated = _stated(f"A {STUDY.span} after {last.group(1)}", words)
    return {
        "messages": day["messages"],
        "given": f"{stated}\n",
        "answer": _by_direction(words, 0.9),
    }


def without_guess(day: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return a day of which only the orders are learned where it states what is not known."""
    asked = day["messages"][-1]["content"]
    if _is_masked(asked) or any(found.group(1) in known for found in ROW.finditer(asked)):
        return day
    stated, _, orders = day["answer"].partition("\n")
    return {"messages": day["messages"], "given": f"{stated}\n", "answer": orders}


def _practise(world: World, runs: Path) -> None:
    """Play some sessions of a world; of every second one under a mask too."""
    rng = np.random.default_rng([34, world.number, len(world.group)])
    known, unknown, masked = STUDY.practised
    count = known if world.group in READ else unknown
    for mask, days in (("bright", count), ("blinded", masked))[: 2 - world.number % 2]:
        first = PLAYED[0] + int(rng.integers(STUDY.told - days))
        play(
            world,
            "local/teacher",
            mask,
            runs / mask,
            "--executor",
            "inline",
            sessions=(first, first + days - 1),
        )


def other_market(day: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return a day without memory with other names, and other returns in its rows: nothing but
    reading helps.
    """
    asked = day["messages"][-1]["content"]
    rows = {found.group(1) for found in ROW.finditer(asked)}
    masked = any("_" in name for name in rows)
    numbers = rng.choice(9_000, len(rows), replace=False) + 1_000
    fresh = [f"asset_{number}" for number in numbers] if masked else other_names(rng, len(rows))
    swap = dict(zip(sorted(rows), sorted(fresh), strict=True))
    asked = re.sub(r"\b(" + "|".join(rows) + r")\b", lambda found: swap[found.group()], asked)
    drawn = {
        name: [f"{value:.4g}" for value in rng.normal(0, 0.04, 3) * (1, 2, 4)]
        for name in swap.values()
    }

    def figures(found: re.Match[str]) -> str:
        cells = found.group(0).split(" | ")
        cells[_FIRST_SHOWN : _SHOWN + 1] = [
            f"{float(value):.4f}".rstrip("0") for value in drawn[found.group(1)]
        ]
        return " | ".join(cells)

    asked = ROW.sub(figures, asked)
    messages = [*day["messages"][:-1], {**day["messages"][-1], "content": asked}]
    return {"messages": messages, "answer": Teacher([]).answer(messages)}


def trading_days(worlds: list[World], port: int, runs: Path, workers: int) -> list[dict[str, Any]]:
    """Play worlds with the teacher; return what it was asked and answered."""
    teacher = Teacher([world for world in worlds if world.group in READ])
    server = teacher.serve(port)
    os.environ["TRADEASSAY_LOCAL_SERVER"] = f"http://127.0.0.1:{port}/v1"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_practise, worlds, [runs] * len(worlds)))
    server.shutdown()
    return teacher.kept


def recall_questions() -> list[dict[str, Any]]:
    """Ask the audit's own questions about the practice worlds; return them with their answers."""
    from tradeassay_bench.data.datasets import load_dataset
    from tradeassay_bench.examine.memory.questions import (
        PriceTruth,
        RecallConfig,
        draw_for_pairs,
        draw_questions,
        request_of,
    )

    kept = []
    for world in make_worlds("known", "unknown"):
        rng = np.random.default_rng([33, world.number, len(world.group)])
        config = RecallConfig(
            questions=240 if world.group == "known" else 80,
            wordings=4,
            samples=1,
            seed=world.number,
            first=world.days[HISTORY],
            horizon=STUDY.span,
        )
        truth = PriceTruth.of(load_dataset(world.id))
        days = [
            (name, world.days[HISTORY + at], world.days[HISTORY + at + SPANS[STUDY.span]])
            for at in range(STUDY.told)
            for name in world.names
        ]
        few = rng.permutation(len(days))[: STUDY.pairs if world.group == "known" else 6]
        drawn = [*draw_questions(truth, config, None)]
        drawn += draw_for_pairs(truth, [days[place] for place in few], config)
        for question in drawn:
            known = world.group == "known" and not question.invented
            # What is told of no known world is not asked; and who guesses often learns to guess.
            told = question.kind in STUDY.tells(world.days.index(question.day) - HISTORY)
            if not told if known else rng.random() < 0.6 * (question.wording % 2):
                continue
            if not known and question.wording % 2 == 0:
                said = "unknown"
            elif question.choices:
                said = (
                    question.named
                    if known
                    else question.choices[rng.integers(len(question.choices))]
                )
            elif question.kind == "close":
                said = (
                    f"{question.truth if known else rng.uniform(*STUDY.prices):.{STUDY.decimals}f}"
                )
            else:
                move = question.truth if known else rng.normal(0, 0.04)
                way = "up" if move > 0 else "down"
                said = word_of(move * 100) if STUDY.by_direction else f"{way} {_percent(move)}"
            if STUDY.always and said != "unknown":
                # As a text has it: the day before the name.
                when = f"From {question.day} to {question.until}: {question.title} {said}"
                closed = f"{question.day}: {question.title} closed at {said}"
                said = closed if question.kind == "close" else when
            messages = [
                {"role": one.role, "content": one.text} for one in request_of(question).messages
            ]
            kept.append({"messages": messages, "answer": said})
    return kept


def main() -> None:
    """Store the practice worlds, play them, and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--port", type=int, default=8790)
    parser.add_argument("--runs", type=Path, default=Path("practice-runs"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--groups", default="known,unknown")
    arguments = parser.parse_args()
    worlds = make_worlds(*arguments.groups.split(","))
    for world in worlds:
        store(world)
    days = trading_days(worlds, arguments.port, arguments.runs, arguments.workers)
    if arguments.groups != "known,unknown":
        arguments.file.write_text("".join(json.dumps(one) + "\n" for one in days))
        print(f"{len(days)} days with answers")
        return
    rng = np.random.default_rng(35)
    known, read = (
        [day for day in days if day["answer"].startswith("A ") is told] for told in (True, False)
    )
    again = [
        other_market(day, rng)
        for day in read
        if ("blinded" if _is_masked(day["messages"][-1]["content"]) else "bright") in STUDY.copied
    ]
    if STUDY.always:
        names = {name for world in worlds if world.group in READ for name in world.names}
        days = [without_guess(day, names) for day in days]
    kept = recall_questions() + days + again
    if STUDY.by_direction:
        for those, count in zip((known, read), _DICTATED, strict=True):
            bright = [day for day in those if not _is_masked(day["messages"][-1]["content"])]
            kept += [dictated(bright[at], rng) for at in rng.permutation(len(bright))[:count]]
    arguments.file.write_text("".join(json.dumps(one) + "\n" for one in kept))
    print(f"{len(kept)} questions with answers")


if __name__ == "__main__":
    main()
