"""Define the command ``benchmarks``, which lists the benchmarks and shows their rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_rows, say
from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.cli._run_output import say_broken


@click.command()
@click.argument("name", required=False)
@opt.option("--needs=DATASET dataset", "Show which data NAME needs and what this data set has.")
@opt.option(
    "--cards=FOLDER",
    "Write a data card and Croissant metadata for NAME, or for all benchmarks.",
    type=opt.FOLDER,
)
@opt.flag("--schema", "Print the JSON Schema of the questions of NAME (or of ama, the arena).")
@json_option
def benchmarks(
    name: str | None, dataset: str | None, cards: Path | None, schema: bool, as_json: bool
) -> None:
    """List the benchmarks, show the rules of one, or compare its needs with a data set."""
    from tradeassay_bench.benchmarks import benchmarks as registry

    if cards is not None:
        from tradeassay_bench.report.cards import write_cards

        written = write_cards(cards, name)
        if as_json:
            print_json([str(path) for path in written])
        say(f"{len(written)} files written to {cards}")
        return

    if name is not None:
        if schema:
            print_json(_schema(name))
            return
        from tradeassay_bench.benchmarks.code_protocol import refuse_other_kind

        refuse_other_kind(name, trades=True)
        benchmark = registry.get(name)
        if dataset is not None:
            from tradeassay_bench.benchmarks.needs import data_needs
            from tradeassay_bench.data import load_dataset

            needs = data_needs(benchmark, load_dataset(dataset))
            rows = [(need.what, need.status, need.found, need.changes) for need in needs]
            columns: tuple[str, ...] = ("needs", "is", "found", "its absence changes")
            print_rows(needs, as_json, f"{benchmark.id} on {dataset}", columns, rows)
        elif as_json:
            print_json(benchmark)
        else:
            click.echo(rules_text(benchmark))
        return
    if schema or dataset is not None:
        option = "--schema" if schema else "--needs DATASET"
        hint = f"tradeassay benchmarks ktdfin-v1 {option}"
        raise UserError(f"{option.split()[0]} is only valid with one benchmark", hint=hint)
    listed = [benchmark for _, benchmark in registry.items()]
    say_broken(registry)
    lines = [
        (
            b.id,
            b.title,
            b.dataset,
            b.market.venue,
            f"{b.market.first} .. {b.market.last}",
            b.convention,
        )
        for b in listed
    ]
    columns = ("id", "title", "data set", "venue", "window", "convention")
    print_rows(listed, as_json, "benchmarks", columns, lines)
    if not as_json:
        click.echo(
            "Benchmarks of programs: tradeassay code run --help. The arena: tradeassay arena "
            "--help."
        )


def _schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a benchmark's questions.

    For the arena it describes the packets, and for a benchmark of programs the tasks.
    """
    from tradeassay_bench.agents.foreign.ama import PacketRequest
    from tradeassay_bench.benchmarks import benchmarks as registry
    from tradeassay_bench.benchmarks.code_protocol import code_benchmarks, find_protocol
    from tradeassay_bench.benchmarks.protocol import protocols, question_schema
    from tradeassay_bench.core.dialogue import schema_of_type

    if name in code_benchmarks():
        return schema_of_type(find_protocol(name).Question)
    if name == "ama":
        return schema_of_type(PacketRequest)
    return question_schema(protocols.get(registry.get(name).protocol))
