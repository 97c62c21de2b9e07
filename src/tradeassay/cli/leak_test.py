"""``tradeassay leak-test``."""

from __future__ import annotations

import click

from tradeassay.cli._output import json_option, print_json, print_table, say


@click.command("leak-test")
@click.argument("agent")
@click.option("--benchmark", default="daily-us-v1", show_default=True, help="What is played.")
@click.option("--dataset", help="Another data set than the benchmark's own.")
@click.option("--first", metavar="DAY", help="First session, YYYY-MM-DD. Default: the benchmark's.")
@click.option(
    "--sessions", type=click.IntRange(2), default=40, show_default=True, help="Decisions that are played."
)
@click.option("--cuts", type=click.IntRange(1), default=3, show_default=True,
              help="Moments after which the future is rewritten, twice each.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws other futures.")
@json_option
@click.pass_context
def leak_test(
    ctx: click.Context,
    agent: str,
    benchmark: str,
    dataset: str | None,
    first: str | None,
    sessions: int,
    cuts: int,
    seed: int,
    as_json: bool,
) -> None:
    """Test whether AGENT's decisions depend on what lies after its clock, and say through which channel.

    AGENT is a registered agent or a model (scripted/sensible). A model is asked for the sessions once. Exits with
    1 when something leaks.
    """
    from tradeassay.assay.leaks import LeakTestConfig
    from tradeassay.assay.leaks import leak_test as examine
    from tradeassay.benchmarks import benchmarks
    from tradeassay.runs import Window

    window = None if first is None else Window(first=first, last=max(first, benchmarks.get(benchmark).market.last))
    config = LeakTestConfig(sessions=sessions, cuts=cuts, seed=seed)
    report = examine(agent, benchmark, dataset, window=window, config=config)
    if as_json:
        print_json(report)
    else:
        rows = [
            (name, f"{share.value:.0%}", "none" if share.high is None else f"{share.high:.0%}")
            for name, share in report.moved.items()
        ]
        rows += [(name, "not tested", why) for name, why in report.untested.items()]
        print_table(f"{report.agent}: futures that moved the past", ("channel", "moved", "could be at most"), rows)
        for finding in report.findings:
            where = finding.channel or "a time stamp"
            say(f"{where} through {finding.through} on {finding.session}: {finding.detail}")
        for note in report.notes:
            say(note)
        say(report.sentence)
    if report.leaks:
        ctx.exit(1)
