"""How much of a server's own limit the harness uses: 64 episodes that talk at the same time.

    python perf/llm_throughput.py [SLOTS [SECONDS [QUESTIONS]]]

The server is a stand-in on loopback, in a process of its own, that works on SLOTS questions at a time and takes
SECONDS for each: its limit is SLOTS / SECONDS answers a second, exactly. 64 episodes ask QUESTIONS each, one after
the other, through the same path as a run's.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from typing import Any

from tradeassay.core.dialogue import AskModel, Message
from tradeassay.llm import ModelParams, QuestionPlace, open_model

EPISODES = 64
BODY = (
    b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"hold"}}],"usage":{"prompt_tokens":900,"completion_tokens":100,'
    b'"total_tokens":1000}}'
)


def serve(slots: int, seconds: float, ports: Any) -> None:
    """Answer on a free port, so many at a time, so slowly."""

    async def main() -> None:
        free = asyncio.Semaphore(slots)

        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except (asyncio.IncompleteReadError, ConnectionError):
                    return
                lines = head.lower().split(b"\r\n")
                size = next((int(one.split(b":")[1]) for one in lines if one.startswith(b"content-length")), 0)
                await reader.readexactly(size)
                async with free:
                    await asyncio.sleep(seconds)
                kind = b"content-type: application/json"
                writer.write(b"HTTP/1.1 200 OK\r\n%b\r\ncontent-length: %d\r\n\r\n" % (kind, len(BODY)))
                writer.write(BODY)
                await writer.drain()

        server = await asyncio.start_server(one, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def play(port: int, questions: int) -> tuple[float, float]:
    """Return wall and CPU seconds of all episodes' questions, after one that warms up."""
    text = "What do you do today? " * 200
    messages = (Message(role="system", text="You trade."), Message(role="user", text=text))
    request = AskModel(purpose="perf", messages=messages)

    async def episode(number: int) -> None:
        for step in range(questions):
            place = QuestionPlace(episode=f"e{number}", step=step, sample=0, index=0)
            reply = await model.ask(request, place)
            assert reply.text == "hold", reply

    from tradeassay.llm import Access

    access = Access(base_url=f"http://127.0.0.1:{port}/v1")
    async with open_model("local/perf", ModelParams(), connections=EPISODES, access=access) as model:
        await model.ask(request, QuestionPlace(episode="warm", step=0, sample=0, index=0))
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(episode(number) for number in range(EPISODES)))
        return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    given = sys.argv[1:] + ["64", "4.0", "6"][len(sys.argv) - 1 :]
    slots, seconds, questions = int(given[0]), float(given[1]), int(given[2])
    context = multiprocessing.get_context("spawn")
    ports = context.Queue()
    server = context.Process(target=serve, args=(slots, seconds, ports), daemon=True)
    server.start()
    wall, cpu = asyncio.run(play(ports.get(), questions))
    server.terminate()
    total = EPISODES * questions
    limit = slots / seconds
    print(f"server's limit {limit:.1f} answers/s; harness {total / wall:.1f} ({total / wall / limit:.0%})")
    print(f"{total} answers in {wall:.1f} s, {cpu / total * 1e3:.1f} ms of CPU each")


if __name__ == "__main__":
    main()
