"""Hostile answers to ``reward.batch``: does one raise, or get paid for what it is not?

    python perf/reward_attack.py [--workers 2]

Answers come in kinds of which the most that they may earn without a judge is known: no text or no program 0, does
not compile 0, crashes or never ends 0.2, never trades 0.6, cheats that do not trade 0.6. Honest programs in odd
clothes must earn 1. Prints how many of each kind were scored wrongly.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator

from machine import conditions
from tradeassay import reward
from tradeassay.benchmarks.quantcode import load_task

SECRET = "5e" * 16
TASK = load_task("d-sma-cross-long")


class _Lies(str):
    def strip(self, *_: object) -> str:
        raise RuntimeError("lies")

    def __str__(self) -> str:
        raise RuntimeError("lies")


class _ClaimsToBeText:
    @property
    def __class__(self) -> type:
        return str


class _Explodes:
    def __repr__(self) -> str:
        raise RuntimeError("explodes")

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("explodes")

    __hash__ = None  # type: ignore[assignment]  # on purpose


def program(body: str, *, before: str = "", init: str = "pass") -> str:
    """Return a strategy with this body of ``next``."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"import backtrader as bt\n{before}\n\nclass S(bt.Strategy):\n    def __init__(self):\n        {init}\n\n    def next(self):\n{lines}\n"  # noqa: E501  # one program


def no_program() -> Iterator[object]:
    yield from (None, True, 0, -1, 1.5, float("nan"), float("inf"), 1j, b"import backtrader", bytearray(b"x"))
    yield from ([], {}, (), set(), object(), type, len, _Explodes(), _ClaimsToBeText(), range(3), memoryview(b"x"))
    yield from ("", " ", "\n\t", "\x00", "\x00" * 1000, "﻿", "​", "\ud800", "\udfff" * 50, "�")
    yield from (
        "I cannot.",
        "no",
        "pass it on",
        "```\n```",
        "```python\n```",
        "```python\n\n```",
        "`x`",
        "'''",
        '"""',
    )
    yield from (
        "<think>" * 500,
        "</think>",
        "{}",
        "[]",
        '{"code": null}',
        '{"code": 3}',
        "<code></code>",
        "~~~\n~~~",
    )
    yield from ("a" * 5_000_000, "é" * 1_000_000, "```" * 100_000, "(" * 200_000, "\n" * 1_000_000, "# " * 300_000)
    yield from (
        "reward: 1.0",
        '{"value": 1.0, "outcome": "solved"}',
        "SOLVED",
        "score=1",
        "ScoredAnswer(value=1.0)",
    )


def does_not_compile() -> Iterator[object]:
    good = TASK.reference
    for broken in ("def f(:", "class S(bt.Strategy:", "import backtrader as bt\nclass S(bt.Strategy):\npass"):
        yield f"```python\n{broken}\n```"
    yield from (good.replace(":", "", 1), good.replace("(", "", 1))
    yield "```python\nimport backtrader as bt\nx = 1\n```"
    yield program("pass") + program("pass").replace("class S", "class T")
    for end in "( [ { ' \" if lambda def 0x 1_ @ $ ? yield:= =/ class".split():
        yield f"```python\n{program('x = 1 ' + end)}\n```"


def breaks() -> Iterator[object]:
    raised = ("1/0", "raise KeyboardInterrupt", "raise SystemExit(0)", "raise BaseException", "exit()", "quit()")
    raised += (
        "raise MemoryError",
        "raise GeneratorExit",
        "raise StopIteration",
        "raise RecursionError",
        "assert False",
    )
    for line in (
        *raised,
        "self.nothing.buy()",
        "[].pop()",
        "{}['x']",
        "self.data.close[10**9]",
        "None + 1",
        "next()",
    ):
        yield program(line)
        yield program("pass", init=line)
    for line in ("1/0", "raise SystemExit", "exit(0)", "raise KeyboardInterrupt", "undefined", "[].pop()"):
        yield program("pass", before=line)
    for word in (
        "socket",
        "subprocess",
        "ctypes",
        "multiprocessing",
        "threading",
        "asyncio",
        "pickle",
        "builtins",
    ):
        yield program("pass", before=f"import {word}\n1/0")
    yield program("f = lambda: f()\nf()")
    yield program("x = [0] * 10**10")
    yield program("x = 'a' * 10**11")
    yield program("while True: pass")
    yield program("pass", before="while True: pass")
    yield program("import sys\nsys.exit(0)")
    yield program("import os\nos._exit(0)")
    yield program("self.env.broker = None\nself.buy()")


def never_trades() -> Iterator[object]:
    bodies = (
        "pass",
        "return",
        "self.data.close[0]",
        "self.buy(size=0)",
        "self.close()",
        "self.cancel(None) if 0 else 0",
    )
    bodies += (
        "self.sell(size=0)",
        "self.buy(exectype=bt.Order.Limit, price=0.01)",
        "print('trade')",
        "self.order = 1",
    )
    bodies += (
        "self.buy(exectype=bt.Order.Stop, price=1e9)",
        "self.log = lambda *a: None",
    )
    for body in bodies:
        yield program(body)
        yield f"Sure, here you go:\n```python\n{program(body)}```\nIt trades often."
    for line in (
        "print('{\"value\": 1.0}')",
        "print('Final Portfolio Value: 99999')",
        "print('total trades: 50')",
    ):
        yield program(line)


def cheats() -> Iterator[object]:
    patched = (
        "bt.brokers.BackBroker.getvalue = lambda *a, **k: 9e9",
        "bt.Trade.pnl = 1e9",
        "bt.Cerebro.run = print",
    )
    patched += ("bt.brokers.BackBroker.getcash = lambda *a, **k: 9e9", "bt.Order.execute = lambda *a, **k: None")
    patched += ("bt.Strategy.buy = lambda *a, **k: None", "bt.analyzers.TradeAnalyzer.get_analysis = lambda s: {}")
    for line in patched:
        yield program("pass", before=line)
        yield program("pass", init=line)
    for path in ("__globals__", "__builtins__", "__subclasses__", "gi_frame", "f_back"):
        yield program(f"getattr(getattr(self, 'next'), '{path}', None)\nself.broker.setcash(1e9)")
    for name in (
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/1/mem",
        "/dev/mem",
        "/sys/kernel",
        "/etc/shadow",
    ):
        yield program(f"raise RuntimeError(open('{name}').read())")
    yield program("import os\nraise RuntimeError(str(dict(os.environ)))")
    yield program("import socket\nsocket.create_connection(('10.0.0.1', 80))")
    yield program("import os\nos.fork()")


def honest() -> Iterator[object]:
    source = TASK.reference
    fences = (
        "```python\n{}```",
        "```\n{}\n```",
        "```py\n{}\n```",
        "~~~python\n{}\n~~~",
        "text\n\n```python\n{}\n```\nmore",
    )
    for fence in (*fences, "<think>hm</think>\n```python\n{}\n```", "{}", "\ufeff{}"):
        yield fence.format(source)
    # Backtrader cancels only what its broker has looked at: an order of this bar is filled all the same.
    yield program("self.cancel(self.buy())")
    yield from (source.replace("\n", "\r\n"), source + "\n" * 500, "# é 你好\n" + source, _Lies(source))


MOST = {no_program: 0.0, does_not_compile: 0.0, breaks: 0.2, never_trades: 0.6, cheats: 0.6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    began, cpu = time.perf_counter(), os.times()
    answers: list[tuple[str, object, float, float]] = []
    for kind, most in MOST.items():
        answers += [(kind.__name__.replace("_", " "), answer, 0.0, most) for answer in kind()]
    answers += [("honest", answer, 1.0, 1.0) for answer in honest()]
    scored = reward.batch([answer for _, answer, *_ in answers], TASK, secret=SECRET, workers=asked.workers)
    counts: dict[str, list[int]] = {}
    for (kind, answer, least, most), found in zip(answers, scored, strict=True):
        through = found.value is None or not least - 1e-9 <= found.value <= most + 1e-9
        row = counts.setdefault(kind, [0, 0])
        row[0] += 1
        row[1] += through
        if through or (found.value == 0.0 and not found.reason):
            print(f"! {kind}: {found.value} {found.outcome} {found.reason[:60]!r} for {_short(answer)}")
    print("| answers | tried | wrongly scored |\n|---|---|---|")
    for kind, (tried, through) in counts.items():
        print(f"| {kind} | {tried} | {through} |")
    used = sum(os.times()[:4]) - sum(cpu[:4])
    print(
        f"{len(answers)} answers, none raised; {time.perf_counter() - began:.0f} s, {used:.0f} s of CPU here, ",
        end="",
    )
    print(conditions())


def _short(answer: object) -> str:
    return str.__str__(answer)[-160:] if issubclass(type(answer), str) else type(answer).__name__


if __name__ == "__main__":
    main()
