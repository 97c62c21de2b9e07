"""Measure our CPU time per question to a model, without the model's time.

A server in another process answers at once with a tool call. The same conversation of five research
questions and a submission (a KTD-Fin step) is sent through the bare SDK, through our code (Inspect,
raw arguments, budget), and through our code with a recording. Only the client's CPU is measured.
Then 20 tasks query a slow server, with few and with many connections: throughput must follow the
limit. Run it with ``python perf/llm_overhead.py`` (add ``--json`` for JSON). Limit: a step through
Inspect takes under 120 ms of CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from openai_answers import completion, read_request, write_answer
from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall, ToolSpec
from tradeassay_bench.llm import (
    Access,
    Budget,
    QuestionPlace,
    RecordingStore,
    load_prices,
    open_model,
)
from tradeassay_bench.llm.tables import Price, PriceTable

BAR_MS = 120.0
CALLS_PER_STEP = 6
STEPS = 30
SERVICE_S = 2.0

ORDERS = [
    {
        "stock_id": f"asset_{number:04d}",
        "side": "BUY",
        "confidence": 0.6,
        "target_weight": 0.09,
        "reason": "leads by momentum near its yearly high",
    }
    for number in range(8)
]
ARGUMENTS = json.dumps({"orders": ORDERS, "overall_reason": "hold what leads by momentum"})
ANSWER = completion(calls=[("ID", "submit_action", ARGUMENTS)], written=300)
ORDER_FIELDS = {
    "stock_id": {"type": "string"},
    "side": {"type": "string", "enum": ["BUY", "SELL"]},
    "confidence": {"type": "number"},
    "reason": {"type": "string"},
    "target_weight": {"type": "number"},
}
ORDER = {
    "type": "object",
    "properties": ORDER_FIELDS,
    "required": ["stock_id", "side", "confidence", "reason"],
}
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "orders": {"type": "array", "items": ORDER},
            "overall_reason": {"type": "string"},
        },
        "required": ["orders", "overall_reason"],
    }
)
NAMES = (
    "get_market_context",
    "screen_candidates",
    "get_stock_snapshot",
    "compare_candidates",
    "portfolio_state",
    "risk_check",
    "submit_action",
)
TOOLS = tuple(
    ToolSpec(
        name=name,
        description=f"What {name} is for, in a sentence of the usual length.",
        schema=SCHEMA,
    )
    for name in NAMES
)
FACTORS = {"MOM_12_1": 0.1234, "RV_60": 0.2345}
RESULT = json.dumps(
    [{"stock_id": f"asset_{number:04d}", "factors": FACTORS} for number in range(50)]
)


def serve(pipe: Any, delay: float) -> None:
    """Answer every request with the same call, after a delay."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count = 0
        try:
            while True:
                await read_request(reader)
                if delay:
                    await asyncio.sleep(delay)
                count += 1
                await write_answer(writer, ANSWER.replace(b"ID", b"call_%d" % count))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def step_requests() -> list[AskModel]:
    """A day's conversation, growing with every tool result."""
    payload = "```json\n" + json.dumps({"kind": "ktdfin.observation", "rows": RESULT}) + "\n```"
    messages = [
        Message(role="system", text="You trade. " * 150),
        Message(role="user", text=payload),
    ]
    requests = []
    for turn in range(CALLS_PER_STEP - 1):
        requests.append(
            AskModel(purpose="research", messages=tuple(messages), tools=TOOLS, attempt=turn + 1)
        )
        call = ToolCall(
            id=f"call_{turn}", name="screen_candidates", arguments='{"factors": ["MOM_12_1"]}'
        )
        messages += [
            Message(role="assistant", text="", calls=(call,)),
            Message(role="tool", text=RESULT, call_id=call.id),
        ]
    messages.append(Message(role="user", text="Submit now."))
    requests.append(
        AskModel(
            purpose="submit", messages=tuple(messages), tools=TOOLS[-1:], must_call="submit_action"
        )
    )
    return requests


def as_openai(request: AskModel) -> dict[str, Any]:
    def message(one: Message) -> dict[str, Any]:
        body: dict[str, Any] = {"role": one.role, "content": one.text}
        if one.calls:
            body["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in one.calls
            ]
        if one.call_id:
            body["tool_call_id"] = one.call_id
        return body

    choice: Any = "auto"
    if request.must_call:
        choice = {"type": "function", "function": {"name": request.must_call}}
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.schema)}
        for tool in request.tools
    ]
    return {
        "model": "m",
        "temperature": 0.0,
        "max_tokens": 4096,
        "tool_choice": choice,
        "messages": [message(one) for one in request.messages],
        "tools": [{"type": "function", "function": function} for function in functions],
    }


async def cpu_ms(step: Callable[[int], Awaitable[None]], steps: int) -> float:
    """Return the CPU time of a step in milliseconds: the best third of all steps, after two warm-up
    steps.
    """
    spent = []
    for at in range(steps + 2):
        start = time.process_time()
        await step(at)
        spent.append((time.process_time() - start) * 1e3)
        gc.collect()
    best = sorted(spent[2:])[: max(1, steps // 3)]
    return sum(best) / len(best)


async def bare(url: str, steps: int) -> float:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=url)
    requests = step_requests()

    async def step(at: int) -> None:
        for request in requests:
            answer = await client.chat.completions.create(**as_openai(request))
            calls: Any = answer.choices[0].message.tool_calls
            assert json.loads(calls[0].function.arguments)

    try:
        return await cpu_ms(step, steps)
    finally:
        await client.close()


async def house(url: str, steps: int, store: RecordingStore | None) -> float:
    requests = step_requests()
    access = Access(base_url=url, prices=prices())
    async with open_model(
        "openai-api/perf/m", recording=store, budget=Budget(1e6), access=access
    ) as model:

        async def step(at: int) -> None:
            for index, request in enumerate(requests):
                reply = await model.ask(
                    request, QuestionPlace(episode="e", step=at, sample=0, index=index)
                )
                assert reply.calls[0].arguments == ARGUMENTS, reply

        return await cpu_ms(step, steps)


async def throughput(url: str, connections: int, tasks: int, each: int) -> float:
    """Return answers per second of concurrent episodes."""
    request = step_requests()[-1]
    async with open_model(
        "openai-api/perf/m", connections=connections, access=Access(base_url=url)
    ) as model:

        async def episode(number: int) -> None:
            for step in range(each):
                await model.ask(
                    request, QuestionPlace(episode=f"e{number}", step=step, sample=0, index=0)
                )

        await model.ask(request, QuestionPlace(episode="warm", step=0, sample=0, index=0))
        start = time.perf_counter()
        await asyncio.gather(*(episode(number) for number in range(tasks)))
        return tasks * each / (time.perf_counter() - start)


def prices() -> PriceTable:
    free = load_prices().of("local/any")
    assert isinstance(free, Price)
    return PriceTable({"openai-api/perf/m": free})


async def measure(instant: str, slow: str, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "sdk_ms_per_step": await bare(instant, steps),
            "house_ms_per_step": await house(instant, steps, None),
            "house_with_recording_ms_per_step": await house(
                instant, steps, RecordingStore(Path(folder))
            ),
        }
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    results["recording_kb_per_step"] = size / (steps + 2) / 1e3
    results["house_ms_per_call"] = results["house_ms_per_step"] / CALLS_PER_STEP
    for connections in (10, 20):
        rate = await throughput(slow, connections, 20, 2)
        results[f"share_of_limit_at_{connections}_connections"] = rate / (connections / SERVICE_S)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    os.environ["PERF_API_KEY"] = "none"
    logging.getLogger("inspect_ai").setLevel(logging.ERROR)
    urls, servers = [], []
    for delay in (0.0, SERVICE_S):
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(
            target=serve, args=(theirs, delay), daemon=True
        )
        server.start()
        servers.append(server)
        urls.append(f"http://127.0.0.1:{ours.recv()}/v1")
    try:
        results = asyncio.run(measure(urls[0], urls[1], args.steps))
    finally:
        for server in servers:
            server.terminate()
    shown = {key: round(value, 3) for key, value in results.items()} | {"bar_ms_per_step": BAR_MS}
    print(
        json.dumps(shown)
        if args.json
        else "\n".join(f"{key}: {value}" for key, value in shown.items())
    )
    return 0 if results["house_ms_per_step"] < BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
