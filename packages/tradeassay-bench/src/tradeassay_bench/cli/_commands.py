"""List the commands for benchmarks, runs and agents, with one-line descriptions."""

from __future__ import annotations

from tradeassay.cli._group import CommandEntry, CommandTable

COMMANDS: CommandTable = {
    "Start": {
        "start": CommandEntry(
            "tradeassay_bench.cli.new",
            "start",
            "Show four ways to start, with commands to copy.",
        ),
        "demo": CommandEntry(
            "tradeassay_bench.cli.demo",
            "demo",
            "Judge accounts of known nature and a recorded model. Needs no key.",
        ),
        "new": CommandEntry(
            "tradeassay_bench.cli.new",
            "new",
            "Make a folder for your own agent, benchmark, source or task, with a test.",
        ),
        "doctor": CommandEntry(
            "tradeassay_bench.cli.doctor", "doctor", "Check this machine and its optional parts."
        ),
    },
    "Run": {
        "run": CommandEntry(
            "tradeassay_bench.cli.runs",
            "run",
            "Run agents on benchmarks and score them, or estimate the run.",
        ),
        "resume": CommandEntry(
            "tradeassay_bench.cli.runs",
            "resume",
            "Continue a stopped run. The result has the same bytes.",
        ),
        "mcp": CommandEntry(
            "tradeassay_bench.cli.mcp", "mcp", "Let clients of the Model Context Protocol trade."
        ),
        "reproduce": CommandEntry(
            "tradeassay_bench.cli.reproduce",
            "reproduce",
            "Run a paper's settings and show its tables next to ours.",
        ),
        "recordings": CommandEntry(
            "tradeassay_bench.cli.recordings",
            "recordings",
            "Record, list, check and replay answers of models.",
        ),
    },
    "Judge": {
        "luck": CommandEntry(
            "tradeassay_bench.cli.assay_run",
            "luck",
            "Rank a result among random portfolios with the same rules and costs.",
        ),
        "power": CommandEntry(
            "tradeassay_bench.cli.assay_run",
            "power",
            "Show how many sessions and seeds are needed to detect skill.",
        ),
        "leak-test": CommandEntry(
            "tradeassay_bench.cli.assay_run",
            "leak_test",
            "Test whether an agent uses future data, and through which channel.",
        ),
        "memory": CommandEntry(
            "tradeassay_bench.cli.memory",
            "memory",
            "Test what models remember, and what a mask hides from them.",
        ),
        "assay run": CommandEntry(
            "tradeassay_bench.cli.assay_run", "assay_run", "Judge the agents of a recorded run."
        ),
        "assay self-test": CommandEntry(
            "tradeassay_bench.cli.assay_run",
            "self_test",
            "Test the verdict on agents of known skill.",
        ),
    },
    "Show and check": {
        "report": CommandEntry(
            "tradeassay_bench.cli.runs",
            "report",
            "Show a run's leaderboard, write its page, print tables to paste.",
        ),
        "compare": CommandEntry(
            "tradeassay_bench.cli.runs", "compare", "Compare runs, with a paired test."
        ),
        "verify": CommandEntry(
            "tradeassay_bench.cli.runs",
            "verify",
            "Replay a recorded run and compare it claim by claim.",
        ),
        "seal": CommandEntry(
            "tradeassay_bench.cli.runs",
            "seal",
            "Write a run, or its plan, into one file with one hash.",
        ),
        "site": CommandEntry(
            "tradeassay_bench.cli.site",
            "site",
            "Write a static site for all runs of a folder, or for an arena.",
        ),
    },
    "List": {
        "benchmarks": CommandEntry(
            "tradeassay_bench.cli.benchmarks",
            "benchmarks",
            "List the benchmarks, or show the rules of one.",
        ),
        "agents": CommandEntry(
            "tradeassay_bench.cli.agents", "agents", "List the agents that can trade."
        ),
        "models": CommandEntry(
            "tradeassay_bench.cli.agents",
            "models",
            "List the known models with price and cutoff, or download a local one.",
        ),
        "baselines": CommandEntry(
            "tradeassay_bench.cli.agents",
            "baselines",
            "List the factor-model baselines, or train some.",
        ),
        "data": CommandEntry(
            "tradeassay_bench.cli.data", "data", "List, get, import and check market data."
        ),
    },
}
