"""Who finds what: the leak check, source rules and the guard printed in a paper, on every case of the bench."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradeassay.code.leak.bench.cases import BenchCase, load_bench
from tradeassay.code.leak.bench.data import bench_columns
from tradeassay.code.leak.check import check_leaks
from tradeassay.code.leak.config import LeakConfig
from tradeassay.code.leak.paper_guard import guard_objects, paper_rules
from tradeassay.code.leak.source_rules import source_advice


class BenchLine(msgspec.Struct, frozen=True, kw_only=True):
    """One case: whether it leaks, and who says so.

    ``method`` is what convicted it, ``runs`` and ``bars`` are what it took.
    """

    name: str
    what: str
    leaky: bool
    check: bool
    method: str
    runs: int
    bars: int
    rules: bool
    paper_rules: bool
    paper_guard: bool


def measure_bench(
    seed: int, config: LeakConfig | None = None, cases: Iterable[BenchCase] | None = None
) -> list[BenchLine]:
    """Return a line for each case. A case that cannot be checked counts as not found."""
    lines = []
    for case in load_bench() if cases is None else cases:
        columns = bench_columns(case.data)
        report = check_leaks(case.subject(), columns, config, seed=seed)
        lines.append(
            BenchLine(
                name=case.name,
                what=case.what,
                leaky=case.leaky,
                check=report.leaky,
                method=report.evidence[0].method if report.evidence else "",
                runs=report.record.runs,
                bars=report.record.bars,
                rules=bool(source_advice(case.source)),
                paper_rules=bool(paper_rules(case.source)),
                paper_guard=guard_objects(case.source, columns),
            )
        )
    return lines
