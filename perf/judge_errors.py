"""How often the behavioural judge of quantcode-v2 is wrong, on programs whose right verdict is known.

Right programs are variants of the references that change nothing about the strategy: comparisons mirrored,
conditions nested or inverted, comparisons with a difference, indicators written by hand, explicit sizes, whole
units, and a start three bars late. Wrong ones have one constant changed (``tradeassay.code.mutants``); those that
decide the same as the reference on ``--same-on`` markets of their own are equivalent, and left out.

    python perf/judge_errors.py --secrets 3 --tasks 24
    python perf/judge_errors.py --secrets 50 --tasks 144      a long time: about half a second a program and secret
"""

from __future__ import annotations

import argparse
import ast
import time
from collections import Counter
from collections.abc import Iterator

from tradeassay.benchmarks.quantcode import load_tasks
from tradeassay.code.evaluation import DECISIONS, DRAWS
from tradeassay.code.judges.behaviour import judge_decisions
from tradeassay.code.judges.decisions import decision_events
from tradeassay.code.judges.drawn import draw_markets, drawn_bars
from tradeassay.code.mutants import mutants_of
from tradeassay.code.rules import rules_of
from tradeassay.code.running import open_code_executor, run_programs
from tradeassay.code.task import CodeTask, Expectations
from tradeassay.core.hashing import sha256_bytes

_MIRRORED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
_BY_HAND = """
class HandAverage(bt.Indicator):
    lines = ("value",)
    params = (("period", 30),)

    def __init__(self):
        self.addminperiod(self.p.period)

    def next(self):
        self.lines.value[0] = sum(self.data[-k] for k in range(self.p.period)) / self.p.period


class HandHighest(HandAverage):
    def next(self):
        self.lines.value[0] = max(self.data[-k] for k in range(self.p.period))


class HandLowest(HandAverage):
    def next(self):
        self.lines.value[0] = min(self.data[-k] for k in range(self.p.period))
"""
_HANDS = {
    "SMA": "HandAverage",
    "SimpleMovingAverage": "HandAverage",
    "Highest": "HandHighest",
    "Lowest": "HandLowest",
}


class _Mirror(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        other = _MIRRORED.get(type(node.ops[0])) if len(node.ops) == 1 else None
        return node if other is None else ast.Compare(node.comparators[0], [other()], [node.left])


class _Nest(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse or not (isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)):
            return node
        body = node.body
        for test in reversed(node.test.values):
            body = [ast.If(test, body, [])]
        return body[0]


class _Invert(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body) if node.orelse else node


class _Difference(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        plain = not any(isinstance(part, ast.Call | ast.Constant) for part in ast.walk(node))
        if len(node.ops) == 1 and type(node.ops[0]) in _MIRRORED and plain:
            return ast.Compare(ast.BinOp(node.left, ast.Sub(), node.comparators[0]), node.ops, [ast.Constant(0)])
        return node


class _Hand(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        plain = len(node.args) <= 1 and all(word.arg == "period" for word in node.keywords)
        if name.startswith(("bt.ind.", "bt.indicators.")) and name.rpartition(".")[2] in _HANDS and plain:
            node.func = ast.Name(_HANDS[name.rpartition(".")[2]])
        return node


class _Sized(ast.NodeTransformer):
    def __init__(self, size: str) -> None:
        self.size = size

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == "self.buy" and not node.args and not node.keywords:
            node.keywords = [ast.keyword("size", ast.parse(self.size, mode="eval").body)]
        return node


def variants_of(task: CodeTask) -> Iterator[tuple[str, str]]:
    """Yield right programs that are written differently, each with the name of what was changed."""
    changes: list[tuple[str, ast.NodeTransformer]] = [
        ("mirrored", _Mirror()), ("nested", _Nest()), ("inverted", _Invert()), ("difference", _Difference()),
        ("by hand", _Hand()),
    ]  # fmt: skip
    if task.sizing.kind == "percent" and task.assets == 1:
        cash = f"self.broker.getcash() * {task.sizing.value} / 100.0 / self.data.close[0]"
        changes += [
            ("sized", _Sized(f"(abs(self.position.size) if self.position else {cash})")),
            ("whole units", _Sized(f"(abs(self.position.size) if self.position else int({cash}))")),
        ]
    for name, change in changes:
        tree = ast.parse(task.reference)
        before = ast.dump(tree)
        tree = ast.fix_missing_locations(change.visit(tree))
        if ast.dump(tree) != before:
            text = ast.unparse(tree)
            yield name, text.replace("import backtrader as bt", f"import backtrader as bt\n{_BY_HAND}", 1)
    tree = ast.parse(task.reference)
    late = ast.parse("self.calls_ = getattr(self, 'calls_', 0) + 1\nif self.calls_ <= 3:\n    return").body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "next":
            node.body = [*late, *node.body]
    yield "three bars late", ast.unparse(ast.fix_missing_locations(tree))


def main() -> None:
    """Print the errors of the judge, by secret and by kind of program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--secrets", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="Leave out so many tasks at the beginning.")
    parser.add_argument("--same-on", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=160.0, help="Begin no further task after so long.")
    given = parser.parse_args()
    tasks = load_tasks()
    chosen = tasks[given.first :: max(1, len(tasks) // given.tasks)][: given.tasks]
    started, cpu = time.monotonic(), time.process_time()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with open_code_executor() as executor:
        for number in range(given.secrets):
            rules = rules_of(sha256_bytes(f"judge errors {number}".encode())[:32])
            for task in chosen:
                if time.monotonic() - started > given.seconds:
                    break
                judging = draw_markets(executor, task, "backtrader", rules, DRAWS)
                free = without_expectations(task)
                programs = [(True, name, source) for name, source in variants_of(task)]
                programs += [
                    (False, f"{one.change} in line {one.line}", one.source)
                    for one in mutants_of(task.reference)
                    if one.kind == "constant"
                ]
                for right, name, source in programs:
                    runs = list(
                        run_programs(
                            executor, task, ((source, market.bars) for market in judging.markets), rules=rules
                        )
                    )
                    accepted = judge_decisions(free, judging, runs, DECISIONS).status == "passed"
                    if not right and accepted and same_elsewhere(executor, task, source, rules, given.same_on):
                        counts["equivalent"] += 1
                        continue
                    counts["right" if right else "wrong"] += 1
                    if accepted != right:
                        counts["rejected" if right else "accepted"] += 1
                        wrong.append(f"{task.id}: {name} ({'right, rejected' if right else 'wrong, accepted'})")
    print(f"right variants {counts['right']}, rejected {counts['rejected']}")
    print(f"wrong constants {counts['wrong']}, accepted {counts['accepted']} (equivalent: {counts['equivalent']})")
    print("\n".join(wrong))
    print(f"host {time.process_time() - cpu:.0f} CPU-s, {time.monotonic() - started:.0f} s by the clock")


def without_expectations(task: CodeTask) -> CodeTask:
    """Return a task without expectations: only decisions are to be judged here."""
    import msgspec

    return msgspec.structs.replace(task, expect=Expectations(direction="both", order_kinds=()))


def same_elsewhere(executor: object, task: CodeTask, source: str, rules: object, markets: int) -> bool:
    """Return whether a program decides what the reference does on ten further markets."""
    for number in range(markets):
        bars = drawn_bars(task, task.market, rules.secret, 100 + number, 0)  # type: ignore[attr-defined]
        pair = run_programs(executor, task, ((one, bars) for one in (task.reference, source)), rules=rules)  # type: ignore[arg-type]
        mine, other = (decision_events(run, bars, task.cash) if run.ok else None for run in pair)
        if mine != other:
            return False
    return True


if __name__ == "__main__":
    main()
