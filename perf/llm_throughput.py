"""Measure the share of a server's capacity that the harness uses, with 64 concurrent episodes.

    python perf/llm_throughput.py [SLOTS [SECONDS [QUESTIONS]]]

The server is a stand-in on loopback, in a separate process. It processes SLOTS questions at a time
and takes SECONDS for each, varied by half in both directions, like answers of different lengths.
Its capacity is SLOTS / SECONDS answers per second. (If all answers took equally long, they would
arrive in bursts, and the script would measure the client's time for a burst.) Each of 64 episodes
asks QUESTIONS in sequence: first through the bare client of OpenAI, then through the same path as a
run. The rate is measured between a tenth and eight tenths of the answers, while all episodes are
active.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from machine import conditions
from openai_answers import completion, read_request, write_answer
from tradeassay_bench.core.dialogue import AskModel, Message
from tradeassay_bench.llm import Access, ModelParams, QuestionPlace, open_model

EPISODES = 64
BODY = completion("hold", asked=900)


def serve(slots: int, seconds: float, ports: Any) -> None:
    """Answer on a free port, with a number of slots and a delay."""

    async def main() -> None:
        free, draw = asyncio.Semaphore(slots), random.Random(0)

        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                try:
                    await read_request(reader)
                except (asyncio.IncompleteReadError, ConnectionError):
                    return
                async with free:
                    await asyncio.sleep(seconds * (0.5 + draw.random()))
                await write_answer(writer, BODY)

        server = await asyncio.start_server(one, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


MESSAGES = (
    Message(role="system", text="You trade."),
    Message(role="user", text="What do you do today? " * 200),
)


async def timed(ask: Callable[[int, int], Awaitable[str]], questions: int) -> tuple[float, float]:
    """Return answers per second while all episodes are active, and the total CPU seconds, after a
    warm-up.
    """
    ends: list[float] = []

    async def episode(number: int) -> None:
        for step in range(questions):
            said = await ask(number, step)
            assert said == "hold", said
            ends.append(time.perf_counter())

    await ask(EPISODES, 0)
    cpu = time.process_time()
    await asyncio.gather(*(episode(number) for number in range(EPISODES)))
    first, last = len(ends) // 10, len(ends) * 8 // 10
    return (last - first) / (ends[last] - ends[first]), time.process_time() - cpu


async def bare(url: str, questions: int) -> tuple[float, float]:
    """Ask through the provider's own client."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url, timeout=600.0) as client:

        async def ask(number: int, step: int) -> str:
            messages: Any = [{"role": one.role, "content": one.text} for one in MESSAGES]
            answer = await client.chat.completions.create(
                model="m", messages=messages, temperature=0.0
            )
            return answer.choices[0].message.content or ""

        return await timed(ask, questions)


async def play(url: str, questions: int) -> tuple[float, float]:
    """Ask as a run does."""
    request = AskModel(purpose="perf", messages=MESSAGES)
    access = Access(base_url=url)
    async with open_model(
        "local/perf", ModelParams(), connections=EPISODES, access=access
    ) as model:

        async def ask(number: int, step: int) -> str:
            place = QuestionPlace(episode=f"e{number}", step=step, sample=0, index=0)
            return (await model.ask(request, place)).text

        return await timed(ask, questions)


def main() -> None:
    given = sys.argv[1:] + ["64", "4.0", "6"][len(sys.argv) - 1 :]
    slots, seconds, questions = int(given[0]), float(given[1]), int(given[2])
    context = multiprocessing.get_context("spawn")
    ports = context.Queue()
    server = context.Process(target=serve, args=(slots, seconds, ports), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ports.get()}/v1"
    total = EPISODES * questions
    limit = slots / seconds
    print(f"server's limit {limit:.1f} answers/s; {conditions()}")
    for name, side in (("bare client", bare), ("harness", play)):
        rate, cpu = asyncio.run(side(url, questions))
        share, each = rate / limit, cpu / total * 1e3
        print(f"{name}: {rate:.1f} answers/s ({share:.0%} of the limit), {each:.1f} ms of CPU each")
    server.terminate()


if __name__ == "__main__":
    main()
