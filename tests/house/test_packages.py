"""The four packages that the code is to become: an import points down, from an upper package to a lower one.

Until the folders are moved, a module's package is that of the longest name below that it begins with. What still
points up is listed; the list may only become shorter."""

from __future__ import annotations

import grimp

INSTRUMENT = (
    "core metrics factors assay.verdict assay.staleness data.dates data.markets"
    " data.tables.account data.tables.cells data.tables.columns data.tables.faults data.tables.flows"
    " data.tables.trades report.charts report.formatting report.numbers report.page report.shell"
    " report.verdicts report.words"
)
PROGRAMS = (
    "sandbox code reward benchmarks.quantcode benchmarks.systrade benchmarks.programs cli.code"
    " frontends.inspect_programs frontends.training report.code_board report.scorecard testing.sandbox"
)
ARENA = "arena agents.ama benchmarks.ama cli.arena account.daily_target"
BENCH = "bench"
"""Everything else."""

PACKAGES = dict.fromkeys(INSTRUMENT.split(), "instrument")
PACKAGES |= dict.fromkeys(PROGRAMS.split(), "programs")
PACKAGES |= dict.fromkeys(ARENA.split(), "arena")
BELOW = {
    "instrument": {"instrument"},
    BENCH: {"instrument", BENCH},
    "programs": {"instrument", BENCH, "programs"},
    "arena": {"instrument", BENCH, "arena"},
}

UPWARDS = """
agents.own_file -> sandbox
agents.own_file -> sandbox.kernel
agents.own_file -> sandbox.seccomp
cli.doctor -> code.running
cli.doctor -> sandbox
report.page -> assay.assay_file
report.page -> assay.papers
report.page -> benchmarks.exhibits
report.page -> report.code_page
report.page -> report.decisions
report.page -> report.run_charts
report.page -> report.run_page
report.page -> report.run_words
report.page -> runs
report.page -> runs.summary
runs.play.programs -> sandbox
testing -> testing.sandbox
tradeassay -> reward
"""
"""Imports that still point up."""


def package_of(module: str) -> str:
    """Return the package of a module, by the longest known name that it begins with."""
    parts = module.split(".")[1:]
    for length in range(len(parts), 0, -1):
        package = PACKAGES.get(".".join(parts[:length]))
        if package is not None:
            return package
    return BENCH


def test_imports_point_down_the_four_packages():
    graph = grimp.build_graph("tradeassay")
    found = set()
    for module in graph.modules:
        below = BELOW[package_of(module)]
        for imported in graph.find_modules_directly_imported_by(module):
            if package_of(imported) not in below:
                found.add(f"{short(module)} -> {short(imported)}")
    listed = set(UPWARDS.strip().splitlines())
    assert not found - listed, "an import points up"
    assert not listed - found, "an import that is listed here is gone: take it off the list"


def short(module: str) -> str:
    """Return the name of a module within the package."""
    return module.removeprefix("tradeassay.")
