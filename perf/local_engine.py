"""How much of the local engine's own speed is left through the house.

    python perf/local_engine.py MODEL.gguf [DAYS [TOKENS]]

A day is a conversation of five questions that grows, as a day of KTD-Fin is: the engine's prompt cache has to find
what it has read before. Every day is played twice against one engine in this process: with plain HTTP requests,
and along the path of a run (Inspect, our translation, retries, a cassette). Who plays first changes from day to
day; the first line of a day is new to the engine, so that neither lives on the other's cache. Time is the CPU time
of the whole process, engine included: the clock would measure everybody else's load. One question each way warms
up and is not counted. Bar: 90 %.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from machine import conditions
from tradeassay.core.dialogue import AskModel, Message
from tradeassay.llm import Access, CassetteStore, Model, ModelParams, QuestionPlace, open_model
from tradeassay.llm.local import Engine, LocalSettings

BAR = 0.9
QUESTIONS = 5


class Spent(msgspec.Struct):
    """What one way has cost so far."""

    name: str
    prompt: int = 0
    read: int = 0
    """Tokens of prompts that were not in the cache."""
    written: int = 0
    cpu: float = 0.0
    wall: float = 0.0

    def row(self) -> str:
        """Return a line of the table."""
        read = f"{self.read:,}" if self.read else ""
        pace = f"{self.written / self.cpu:.1f} | {self.written / self.wall:.1f}"
        return f"| {self.name} | {self.prompt:,} | {read} | {self.written:,} | {self.cpu:.1f} | {pace} |"


class Answer(msgspec.Struct, frozen=True):
    """What came back of one question: its text and tokens; ``read`` only where the engine tells."""

    text: str
    prompt: int
    read: int
    written: int


def asked(day: int, number: int, side: str) -> Message:
    """Return the question with which a day goes on."""
    rows = "\n".join(
        f"asset_{day:02d}{at:02d}: {(day * 37 + number * 5 + at * 11) % 97 / 100:.2f}"
        for at in range(4 if number else 12)
    )
    text = f"Day {day} ({side}), list {number}.\n{rows}\nWrite a long report about every asset, one by one."
    return Message(role="user", text=text)


def plain(engine: Engine, talk: list[Message], tokens: int) -> Answer:
    """Ask the engine with nothing between."""
    body = {
        "model": "m",
        "messages": [{"role": one.role, "content": one.text} for one in talk],
        "max_tokens": tokens,
        "temperature": 0.0,
    }
    headers = {"Authorization": f"Bearer {engine.key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{engine.base_url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as response:
        said: dict[str, Any] = json.load(response)
    usage, timings = said["usage"], said.get("timings", {})
    text = said["choices"][0]["message"]["content"]
    return Answer(text, usage["prompt_tokens"], timings.get("prompt_n", 0), usage["completion_tokens"])


async def house(model: Model, talk: list[Message], day: int) -> Answer:
    """Ask along the path of a run."""
    place = QuestionPlace(episode=f"day-{day}", step=len(talk), sample=0, index=0)
    reply = await model.ask(AskModel(purpose="perf", messages=tuple(talk)), place)
    if reply.error is not None:
        sys.exit(f"the engine did not answer: {reply.error}")
    return Answer(reply.text, reply.usage.input_tokens, 0, reply.usage.output_tokens)


async def measure(file: Path, days: int, tokens: int) -> tuple[Spent, Spent]:
    """Play every day both ways."""
    engine = await asyncio.to_thread(Engine, file, LocalSettings(parallel=1, threads=1, context=4096))
    bare, ours = Spent("the engine, plain HTTP"), Spent("through the house, recorded")
    # The engine that runs already is asked, with its key: a second one would halve the cores of the first.
    os.environ["LOCAL_API_KEY"] = engine.key
    with tempfile.TemporaryDirectory() as folder:
        params = ModelParams(max_tokens=tokens, timeout_s=600.0)
        store, access = CassetteStore(Path(folder)), Access(base_url=engine.base_url)
        async with open_model("openai-api/local/m", params, cassette=store, access=access) as model:
            for day in range(days + 1):
                for side in (bare, ours) if day % 2 else (ours, bare):
                    talk: list[Message] = []
                    for number in range(QUESTIONS if day else 1):
                        talk.append(asked(day, number, side.name))
                        wall, cpu = time.perf_counter(), time.process_time()
                        if side is bare:
                            answer = await asyncio.to_thread(plain, engine, talk, tokens)
                        else:
                            answer = await house(model, talk, day)
                        if day:
                            side.cpu += time.process_time() - cpu
                            side.wall += time.perf_counter() - wall
                            side.prompt += answer.prompt
                            side.read += answer.read
                            side.written += answer.written
                        talk.append(Message(role="assistant", text=answer.text))
                print(f"{day} of {days} days played both ways", file=sys.stderr, flush=True)
    engine.close()
    return bare, ours


def main() -> int:
    """Print both ways and return 1 when the bar is missed."""
    if len(sys.argv) < 2:
        sys.exit(str(__doc__))
    days, tokens = (int(one) for one in [*sys.argv[2:], *["3", "32"][len(sys.argv) - 2 :]])
    file = Path(sys.argv[1])
    bare, ours = asyncio.run(measure(file, days, tokens))
    share = (ours.written / ours.cpu) / (bare.written / bare.cpu)
    print("| way | prompt tokens | of them read anew | written | CPU s | written per CPU s | per s |")
    print("|---|---|---|---|---|---|---|")
    print(f"{bare.row()}\n{ours.row()}")
    print(
        f"\n{share:.0%} of the engine's own speed (bar {BAR:.0%}): {file.name}, xllamacpp {version('xllamacpp')}, "
        f"one thread, {conditions()}"
    )
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
