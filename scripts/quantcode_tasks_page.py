"""Write the tables of docs/reference/quantcode-tasks.md from the tasks themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tradeassay.benchmarks.quantcode import load_tasks
from tradeassay.code.task import DIFFICULTIES, FAMILIES, ORDER_KINDS, TIMEFRAMES, CodeTask

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "quantcode-tasks.md"
_MARKS = re.compile(r"(<!-- tables: begin -->\n).*(<!-- tables: end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def families(tasks: Sequence[CodeTask]) -> str:
    """Return families by difficulty, with sums."""
    rows: list[list[object]] = []
    for family in (*FAMILIES, None):
        of = [task for task in tasks if family is None or task.family == family]
        count = Counter(task.difficulty for task in of)
        rows.append([family or "all", *(count[name] for name in DIFFICULTIES), len(of)])
    return table(["family", *DIFFICULTIES, "all"], rows)


def timeframes(tasks: Sequence[CodeTask]) -> str:
    """Return timeframes by difficulty."""
    rows: list[list[object]] = []
    for timeframe in TIMEFRAMES:
        of = [task for task in tasks if task.timeframe == timeframe]
        count = Counter(task.difficulty for task in of)
        many = sum(task.assets > 1 for task in of)
        rows.append([timeframe, *(count[name] for name in DIFFICULTIES), len(of), many])
    return table(["timeframe", *DIFFICULTIES, "all", "of them with several assets"], rows)


def orders_and_decoys(tasks: Sequence[CodeTask]) -> str:
    """Return how many tasks ask for each kind of order, and where decoys must fail."""
    kinds = Counter(kind for task in tasks for kind in task.expect.order_kinds)
    stages = Counter(decoy.fails_at for task in tasks for decoy in task.decoys)
    orders = table(["order kind", "tasks that ask for it"], [[kind, kinds[kind]] for kind in ORDER_KINDS])
    decoys = table(["decoys fail at", "decoys"], [[stage, stages[stage]] for stage in sorted(stages)])
    return f"{orders}\n{decoys}"


def render(page: str) -> str:
    """Return the page with its tables made new."""
    tasks = load_tasks()
    text = "\n".join((families(tasks), timeframes(tasks), orders_and_decoys(tasks)))
    return _MARKS.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
