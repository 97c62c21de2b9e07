"""Measure the error rates of the behavioural judge of quantcode-v1, on programs with known right
verdicts.

Right programs are variants of the references that do not change the strategy: comparisons mirrored,
conditions nested or inverted, comparisons with a difference, indicators written by hand, explicit
sizes, whole units, and a start three bars late (unless the words fix the first bar). Wrong programs
have one constant changed (``code.judges.markets``). Those with the reference's decisions on
``--same-on`` other markets are equivalent, and left out.

    python perf/judge_errors.py --tasks 8 --each 1
    python perf/judge_errors.py --keep found.jsonl --seconds 200     continues until all are done

With all tasks, 50 secrets in turn and two of each kind, there are about 570 programs (``--each 3``:
813). Rates have Wilson intervals.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import cache
from pathlib import Path

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay.metrics import rate_measure
from tradeassay_programs.benchmarks.quantcode import load_tasks
from tradeassay_programs.code.evaluation import DECISIONS, DRAWS
from tradeassay_programs.code.judges.behaviour import judge_decisions
from tradeassay_programs.code.judges.decisions import decision_events
from tradeassay_programs.code.judges.markets import Judging, draw_markets, drawn_bars, mutants_of
from tradeassay_programs.code.running import (
    ExamSettings,
    exam_settings,
    open_code_executor,
    run_programs,
)
from tradeassay_programs.code.task import CodeTask, Expectations
from tradeassay_programs.sandbox import ChildClaim, JobExecutor

_BEGINNING = re.compile(r"the first bar on which [^.;]* (exists?|has)\b")
"""If the words fix the first bar, a late start is not a right program."""
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
        if node.orelse or not (
            isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        ):
            return node
        body = node.body
        for test in reversed(node.test.values):
            body = [ast.If(test, body, [])]
        return body[0]


class _Invert(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        return (
            ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
            if node.orelse
            else node
        )


class _Difference(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        plain = not any(isinstance(part, ast.Call | ast.Constant) for part in ast.walk(node))
        if len(node.ops) == 1 and type(node.ops[0]) in _MIRRORED and plain:
            return ast.Compare(
                ast.BinOp(node.left, ast.Sub(), node.comparators[0]), node.ops, [ast.Constant(0)]
            )
        return node


class _Hand(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        plain = len(node.args) <= 1 and all(word.arg == "period" for word in node.keywords)
        if (
            name.startswith(("bt.ind.", "bt.indicators."))
            and name.rpartition(".")[2] in _HANDS
            and plain
        ):
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
    """Yield right programs in different forms, each with the name of its change."""
    changes: list[tuple[str, ast.NodeTransformer]] = [
        ("mirrored", _Mirror()),
        ("nested", _Nest()),
        ("inverted", _Invert()),
        ("difference", _Difference()),
        ("by hand", _Hand()),
    ]
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
            yield (
                name,
                text.replace("import backtrader as bt", f"import backtrader as bt\n{_BY_HAND}", 1),
            )
    if _BEGINNING.search(" ".join(task.formal.split())):
        return
    tree = ast.parse(task.reference)
    late = ast.parse(
        "self.calls_ = getattr(self, 'calls_', 0) + 1\nif self.calls_ <= 3:\n    return"
    ).body
    strategies = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any("Strategy" in ast.unparse(base) for base in node.bases)
    ]
    for node in (part for strategy in strategies for part in strategy.body):
        if isinstance(node, ast.FunctionDef) and node.name == "next":
            node.body = [*late, *node.body]
    yield "three bars late", ast.unparse(ast.fix_missing_locations(tree))


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The results for the programs of one task under one secret."""

    task: str
    secret: int
    right: int = 0
    rejected: int = 0
    wrong: int = 0
    accepted: int = 0
    beginnings: int = 0
    equivalent: int = 0
    broken: int = 0
    markets: int = 0
    added: int = 0
    immaterial: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    cpu_s: float = 0.0


@cache
def opened() -> JobExecutor:
    """Open the sandbox of this process, once."""
    executor = open_code_executor()
    atexit.register(executor.close)
    return executor


def measure(place: tuple[int, int, int, int, str, bool]) -> Counted:
    """Judge some drawn programs of one task, half of them right."""
    number, secrets, most, same_on, named, plain = place
    task = load_tasks()[number]
    started, spent = time.monotonic(), processor_seconds()
    chance = random.Random(f"{named} {number}")
    secret = number % secrets
    rules = exam_settings(sha256_bytes(f"{named} {secret}".encode())[:32])
    executor = opened()
    draws = msgspec.structs.replace(DRAWS, redraws=0, extra_markets=0) if plain else DRAWS
    judging = draw_markets(executor, task, "backtrader", rules, draws)
    free = without_expectations(task)
    right = [(True, name, source) for name, source in variants_of(task)]
    wrong = [
        (False, f"{one.change} in line {one.line}", one.source)
        for one in mutants_of(task.reference)
        if one.kind == "constant"
    ]
    counts: Counter[str] = Counter()
    faults = []
    for programs in (right, wrong):
        chance.shuffle(programs)
        done = 0
        for is_right, name, source in programs:
            if done >= most:
                break
            verdict = judged(executor, free, source, judging, rules)
            if is_right and verdict == "broken":
                counts["broken"] += 1  # rewriting broke it: a time less a time is none
                continue
            accepted = verdict == "passed"
            if not is_right and accepted and same_elsewhere(executor, task, source, rules, same_on):
                counts["equivalent"] += 1
                continue
            done += 1
            counts["right" if is_right else "wrong"] += 1
            if (
                accepted
                and not is_right
                and same_elsewhere(executor, task, source, rules, same_on, late=True)
            ):
                counts["beginnings"] += 1
            if accepted != is_right:
                counts["rejected" if is_right else "accepted"] += 1
                faults.append(f"{name} ({'right, rejected' if is_right else 'wrong, accepted'})")
    return Counted(
        task=task.id,
        secret=secret,
        **counts,
        markets=len(judging.markets),
        added=max(0, len(judging.markets) - DRAWS.markets),
        immaterial=judging.immaterial,
        faults=tuple(faults),
        seconds=round(time.monotonic() - started, 1),
        cpu_s=round(processor_seconds() - spent, 1),
    )


def processor_seconds(pid: str = "self") -> float:
    """Return the CPU seconds of a process and all its descendants, including ended ones."""
    ticks = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    below = [
        child
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, below))


def main() -> None:
    """Print the judge's errors, by task and in total."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--secrets", type=int, default=50, help="Tasks take them in turn.")
    parser.add_argument("--tasks", type=int, default=144)
    parser.add_argument(
        "--each", type=int, default=2, help="Right programs a task, and as many wrong ones."
    )
    parser.add_argument("--same-on", type=int, default=10)
    parser.add_argument(
        "--named", default="judge errors", help="Other names give other secrets and programs."
    )
    parser.add_argument(
        "--plain", action="store_true", help="Three markets as they are drawn: half the time."
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=660.0, help="Begin no further task after so long."
    )
    parser.add_argument(
        "--keep", type=Path, help="Lines of tasks already done are counted; new ones are added."
    )
    given = parser.parse_args()
    names = [task.id for task in load_tasks()]
    kept = given.keep.read_text().splitlines() if given.keep and given.keep.exists() else []
    found = [msgspec.json.decode(line, type=Counted) for line in kept]
    known = {one.task for one in found}
    chosen = [round(place * len(names) / given.tasks) for place in range(given.tasks)]
    started = time.monotonic()
    with ProcessPoolExecutor(given.cores) as pool:
        asked = (given.secrets, given.each, given.same_on, given.named, given.plain)
        left = [(number, *asked) for number in reversed(chosen) if names[number] not in known]
        waiting = {pool.submit(measure, left.pop()) for _ in range(min(given.cores, len(left)))}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for one in (future.result() for future in done):
                line = msgspec.json.encode(one).decode()
                print(line, flush=True)
                found.append(one)
                if given.keep:
                    with given.keep.open("a") as file:
                        file.write(f"{line}\n")
                if left and time.monotonic() - started < given.seconds:
                    waiting.add(pool.submit(measure, left.pop()))
    tell(found, unfinished=len(left))
    print(f"{time.monotonic() - started:.0f} s by the clock on {given.cores} cores")


def tell(found: list[Counted], unfinished: int) -> None:
    """Print the total, with intervals."""
    total: Counter[str] = Counter()
    for one in found:
        for name in (
            "right",
            "rejected",
            "wrong",
            "accepted",
            "beginnings",
            "equivalent",
            "broken",
            "added",
        ):
            total[name] += getattr(one, name)
    secrets = len({one.secret for one in found})
    cpu = sum(one.cpu_s for one in found)
    print(
        f"{len(found)} tasks, {secrets} secrets, {total['added']} markets added, {cpu:.0f} "
        "CPU-seconds"
    )
    for of, errors, left_out in (
        ("right", "rejected", "broken"),
        ("wrong", "accepted", "equivalent"),
    ):
        rate = rate_measure(total[errors], total[of], nothing="none")
        between = (
            "n/a" if rate.low is None or rate.high is None else f"{rate.low:.1%} to {rate.high:.1%}"
        )
        print(
            f"{of} {total[of]}, {errors} {total[errors]} (95 %: {between}); {left_out} "
            f"{total[left_out]}"
        )
    print(
        f"of those accepted, {total['beginnings']} enter and leave alike from the second quarter "
        "of the bars on"
    )
    unexercised = [f"{one.task} {what}" for one in found for what in one.immaterial]
    print(
        f"{len(unexercised)} constants or branches that no market exercises: "
        f"{'; '.join(unexercised)}"
    )
    if unfinished:
        print(f"{unfinished} tasks are left: run it again with the same --keep")


def judged(
    executor: JobExecutor, task: CodeTask, source: str, judging: Judging, rules: ExamSettings
) -> str:
    """Return the judge's verdicts by market. The first market that is not passed decides."""
    for market in judging.markets:
        (run,) = run_programs(executor, task, [(source, market.bars)], rules=rules)
        if isinstance(run.failure, ChildClaim):
            return "broken"
        if judge_decisions(task, Judging(markets=(market,)), [run], DECISIONS).status != "passed":
            return "failed"
    return "passed"


def without_expectations(task: CodeTask) -> CodeTask:
    """Return a task without expectations, so that only decisions are judged."""
    return msgspec.structs.replace(task, expect=Expectations(direction="both", order_kinds=()))


def same_elsewhere(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    rules: ExamSettings,
    markets: int,
    *,
    late: bool = False,
) -> bool:
    """Return whether a program decides what the reference does on further markets; ``late``:
    sizes aside, from the second quarter of the bars on.
    """
    for number in range(markets):
        bars = drawn_bars(task, task.market, rules.secret, 100 + number, 0)
        pair = run_programs(
            executor, task, ((one, bars) for one in (task.reference, source)), rules=rules
        )
        mine, other = (decision_events(run, bars, task.cash) if run.ok else None for run in pair)
        if late and mine is not None and other is not None:
            mine, other = (
                [one.key for one in found if one.bar >= bars.rows // 4] for found in (mine, other)
            )
        if mine != other:
            return False
    return True


if __name__ == "__main__":
    main()
