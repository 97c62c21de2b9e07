"""How much of the local engine's own speed is left through the house: tokens for the same questions, both ways.

    python perf/local_engine.py MODEL.gguf [QUESTIONS [TOKENS]]

The engine runs inside this process on loopback, as in a run. Every question is asked twice: with a plain HTTP
request, and through the path of a run (Inspect, our translation, a cassette). The order changes from question to
question, and every text is new to the engine, so that its prompt cache helps neither. CPU of the whole process is
counted, engine included, because the clock measures everybody else's load too. Bar: 90 %.
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

import msgspec

from tradeassay.core.dialogue import AskModel, Message
from tradeassay.llm import Access, CassetteStore, ModelParams, QuestionPlace, open_model
from tradeassay.llm.local.files import LocalSettings
from tradeassay.llm.local.provider import Engine

BAR = 0.9


class Spent(msgspec.Struct):
    """What one way has cost so far."""

    tokens: int = 0
    cpu: float = 0.0
    wall: float = 0.0

    def line(self, name: str) -> str:
        per_cpu, per_wall = self.tokens / self.cpu, self.tokens / self.wall
        return f"| {name} | {self.tokens} | {per_cpu:.1f} | {per_wall:.1f} |"


def question(number: int, side: str) -> tuple[Message, ...]:
    """Return a question of some 400 tokens whose beginning nobody has asked before."""
    rows = "\n".join(f"asset_{number:03d}{at:02d}: {(number * 37 + at * 11) % 97 / 100:.2f}" for at in range(40))
    text = f"Day {number} ({side}). Momentum by asset:\n{rows}\nWrite a long report about every asset, one by one."
    return (Message(role="user", text=text),)


def plain(engine: Engine, messages: tuple[Message, ...], tokens: int) -> int:
    """Ask the engine with nothing between; return how many tokens it wrote."""
    body = {
        "model": "m",
        "messages": [{"role": one.role, "content": one.text} for one in messages],
        "max_tokens": tokens,
        "temperature": 0.0,
    }
    headers = {"Authorization": f"Bearer {engine.key}", "content-type": "application/json"}
    address = f"{engine.base_url}/chat/completions"
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as response:
        return int(json.load(response)["usage"]["completion_tokens"])


async def measure(file: Path, questions: int, tokens: int) -> tuple[Spent, Spent]:
    """Ask every question both ways."""
    settings = LocalSettings(parallel=1, threads=1, context=4096)
    engine = await asyncio.to_thread(Engine, file, settings)
    bare, ours = Spent(), Spent()
    # The engine that runs already is asked, with its key: a second one would halve the cores of the first.
    os.environ["LOCAL_API_KEY"] = engine.key
    params = ModelParams(max_tokens=tokens, timeout_s=600.0)
    access = Access(base_url=engine.base_url)
    with tempfile.TemporaryDirectory() as folder:
        store = CassetteStore(Path(folder))
        async with open_model("openai-api/local/m", params, cassette=store, access=access) as model:

            async def house(number: int) -> int:
                request = AskModel(purpose="perf", messages=question(number, "house"))
                place = QuestionPlace(episode="e", step=number, sample=0, index=0)
                reply = await model.ask(request, place)
                assert reply.error is None, reply.error
                return reply.usage.output_tokens

            for number in range(questions + 1):
                for side in (bare, ours) if number % 2 else (ours, bare):
                    wall, cpu = time.perf_counter(), time.process_time()
                    if side is bare:
                        written = await asyncio.to_thread(plain, engine, question(number, "plain"), tokens)
                    else:
                        written = await house(number)
                    if number:  # the first question of each way warms it up
                        side.tokens += written
                        side.cpu += time.process_time() - cpu
                        side.wall += time.perf_counter() - wall
    engine.close()
    return bare, ours


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(str(__doc__))
    given = [*sys.argv[1:], *["6", "96"][len(sys.argv) - 2 :]]
    bare, ours = asyncio.run(measure(Path(given[0]), int(given[1]), int(given[2])))
    share = (bare.cpu / bare.tokens) / (ours.cpu / ours.tokens)
    print("| way | tokens | tokens per CPU second | tokens per second |\n|---|---|---|---|")
    print(bare.line("the engine, plain HTTP"))
    print(ours.line("through the house, recorded"))
    engine = version("xllamacpp")
    print(
        f"\n{share:.0%} of the engine's own speed (bar {BAR:.0%}); {Path(given[0]).name}, xllamacpp {engine}, one"
    )
    print(f"one thread, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
