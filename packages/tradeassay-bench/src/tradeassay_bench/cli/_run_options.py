"""Define options of commands about runs: the folder of runs, model access, and the run itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._options import (
    COUNT,
    FILE,
    FOLDER,
    NUMBER,
    PATH,
    F,
    add_options,
    advanced,
    flag,
    option,
    refuse_seal,
    several,
)
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean

if TYPE_CHECKING:
    from tradeassay_bench.benchmarks.code_protocol import CodeSpec
    from tradeassay_bench.runs import Asking, RunSpec


out = advanced("--runs=FOLDER out", "Folder of the runs.", type=FOLDER, default=Path("runs"))


def one_each(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the values of an option. Raises UserError if one value names several models."""
    for value in values:
        if "," in value and all("/" in part for part in value.split(",")):
            raise UserError(f"'{value}' names several models", hint="use one -m per model")
    return values


def models(help: str, **fields: Any) -> Callable[[F], F]:
    """Return a decorator that adds the option ``--model``, which may be repeated."""
    return several(
        "-m --model models", help, **{"metavar": "PROVIDER/MODEL", "callback": one_each, **fields}
    )


def holds_an_arena(path: Path) -> bool:
    """Return whether a file is a SQLite database, the format of an arena."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def find_run(name: str, out: Path) -> Path:
    """Return a run's folder, given its name or path.

    Raises :class:`UserError` with similar names if there is no such run.
    """
    for folder in (Path(name), out / name):
        if (folder / "manifest.json").is_file():
            return folder
    refuse_seal(name)
    if Path(name).is_file():
        problem = f"{name} is a file, not a recorded run"
        raise UserError(
            problem, hint=f"name a run or its folder; to judge a table: tradeassay assay {name}"
        )
    if Path(name).suffix.lower() in (".csv", ".tsv", ".parquet", ".seal"):
        raise UserError(f"no file {name}", hint="check the path")
    if Path(name).is_dir():
        raise UserError(
            f"{name} does not contain a run: manifest.json is missing",
            hint="give the folder of a run",
        )
    names = sorted(path.parent.name for path in out.glob("*/manifest.json"))
    hint = f"there are no runs in {out}; start one with: tradeassay demo"
    if names:
        hint = did_you_mean(name, names, f"runs in {out}: {', '.join(names)}")
    raise UserError(f"no recorded run '{name}'", hint=hint)


def asking(command: F, *, several: bool = False) -> F:
    """Add the options for model access to a command.

    ``several`` allows recordings of several models.
    """
    text = "Reuse recorded answers from another run, a recording's file, or recorded/MODEL"
    text += "; repeat for several models." if several else "."
    return add_options(
        (
            option("--recordings=RUN|FILE|recorded/MODEL", text, type=PATH, multiple=several),
            option("--max-usd=DOLLARS", "Spending cap of the whole run.", type=NUMBER),
            flag("--replay", "Use recorded answers only: no network, no key, the same bytes."),
            advanced("--base-url=URL", "Another server with the provider's API."),
            advanced("--concurrency", "Number of concurrent conversations.", type=COUNT, default=8),
            advanced(
                "--prices=FILE.toml", "Model prices that override the packaged ones.", type=FILE
            ),
        )
    )(command)


def take_asking(
    options: dict[str, Any], out: Path | None = None, benchmark: str | None = None
) -> Asking:
    """Remove the options for model access from ``options`` and return them as ``Asking``.

    ``out`` is the folder in which a run named in the options is searched. ``benchmark`` selects one
    of a model's recordings. It is ignored if it is a spec file. Raises :class:`UserError` for
    invalid options.
    """
    from tradeassay_bench.runs import Asking

    names = ("concurrency", "max_usd", "replay", "recordings", "base_url", "prices")
    fields = {name: options.pop(name) for name in names if name in options}
    source = fields.get("recordings")
    if source is not None and (source.is_file() or source.parts[0] == "recorded"):
        from tradeassay_bench.runs.store.archive import find_recording, open_recording

        benchmarks = () if benchmark is None or is_spec_file(benchmark) else (benchmark,)
        fields["recordings"] = open_recording(find_recording(str(source), *benchmarks)).folder
    elif source is not None and out is not None and not (source / "models").is_dir():
        fields["recordings"] = find_run(str(source), out)
    return Asking(**fields)


spec = add_options(
    (
        click.argument("what", nargs=-1, required=True, metavar="BENCHMARK... | SPEC.toml"),
        several(
            "-a --agent=NAME[:KEY=VALUE,...] agents",
            "An agent, with parameters; repeat for several. Default: every rule, or only the "
            "models.",
        ),
        models("A language model, e.g. openai/gpt-5 or scripted/sensible; repeat for several."),
        several(
            "--mask=LEVEL[,LEVEL] masks",
            "Information hidden from models: bright, stock-blind, date-blind, blinded.",
        ),
        several(
            "--mode=MODE[,MODE] modes",
            "The tools that models may use: memory-only, fixed-candidate, open-research.",
        ),
        several(
            "--window=CODE[,CODE] windows",
            "Named sessions of the benchmark, e.g. W4 or long; after-cutoff, after-2025-06-01.",
        ),
        advanced(
            "-p --set=KEY=VALUE[,VALUE] settings",
            "Any other option of the conversation; several values make a grid.",
            multiple=True,
        ),
        option("--seeds", "Run every agent under this many seeds.", default=1),
        option("--dataset=NAME", "Trade a data set other than the benchmark's own."),
        option("--first=DAY", "First session to trade, YYYY-MM-DD."),
        option("--last=DAY", "Last session to trade, YYYY-MM-DD."),
        advanced("--index=NAME", "Index to compare with, or none. Default: the data's own."),
        advanced(
            "--universe=NAME[:N]",
            "The universe: an index's members, all, or the N most traded, e.g. hs300:50.",
        ),
        advanced(
            "--secret=HEX",
            "Secret from which aliases are drawn; reuse one to repeat a run. Default: random.",
        ),
        option(
            "--name=NAME",
            "Name of the run's folder; an existing run is resumed. Default: from its content.",
        ),
    )
)
"""The arguments that describe a run."""


def is_spec_file(what: str) -> bool:
    return what.endswith((".toml", ".json"))


def parse_settings(
    masks: Sequence[str], modes: Sequence[str], settings: Sequence[str]
) -> dict[str, tuple[bool | int | float | str, ...]]:
    """Return the settings of the conversation. Each setting has a tuple of values.

    Raises :class:`UserError` for a malformed setting.
    """
    from tradeassay_bench.runs.spec.run_spec import parse_value

    parsed: dict[str, tuple[bool | int | float | str, ...]] = {}
    pairs = [("mask", text) for text in masks] + [("mode", text) for text in modes]
    for text in settings:
        key, equals, values = text.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise UserError(f"'{text}' is not a setting", hint="write KEY=VALUE or KEY=VALUE,VALUE")
        pairs.append((key.strip(), values))
    for key, text in pairs:
        parsed[key] = (*parsed.get(key, ()), *(parse_value(value) for value in split_list(text)))
    return parsed


def split_list(texts: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the comma-separated parts of one or several texts. Empty parts are dropped."""
    if texts is None:
        return ()
    parts: list[str] = []
    for text in [texts] if isinstance(texts, str) else texts:
        parts += (part.strip() for part in text.split(","))
    return tuple(filter(None, parts))


def after_cutoff(code: str, models: Sequence[str]) -> str:
    """Return the code of a window. ``after-cutoff`` becomes ``after-DAY``.

    ``DAY`` is the latest knowledge cutoff of the models. Raises :class:`UserError` if no model is
    named or a cutoff is unknown.
    """
    if code != "after-cutoff":
        return code
    from tradeassay_bench.llm.tables import cutoff_line, load_cutoffs, own_file

    if not models:
        raise UserError("after-cutoff needs a model with a known cutoff", hint="name one with -m")
    table, last_days = load_cutoffs(), []
    for model in models:
        if (cutoff := table.of(model)) is None:
            hint = f"use --window after-YYYY-MM-DD, or add to {own_file()}: {cutoff_line(model)}"
            raise UserError(f"the knowledge cutoff of {model} is unknown", hint=hint)
        last_days.append(cutoff.last_day)
    return f"after-{max(last_days).isoformat()}"


def program_spec(what: Sequence[str]) -> CodeSpec | None:
    """Return the spec of a run of programs from its file, or None for any other target."""
    if len(what) != 1 or not is_spec_file(what[0]) or not Path(what[0]).is_file():
        return None
    from tradeassay_bench.runs.spec.run_spec import load_code_spec

    return load_code_spec(Path(what[0]))


def build_spec(
    what: tuple[str, ...], agents: tuple[str, ...], name: str | None, **options: Any
) -> RunSpec:
    """Return the spec from a file, or a spec built from benchmark ids and options.

    Raises :class:`UserError` for options next to a spec file, and for an invalid description.
    """
    from tradeassay_bench.api import make_spec
    from tradeassay_bench.runs import load_spec

    if len(what) == 1 and is_spec_file(what[0]):
        if agents or options.pop("seeds") != 1 or any(options.values()):
            hint = "drop the other options, or add them to the file"
            raise UserError(f"{what[0]} is a spec, which already describes the run", hint=hint)
        return load_spec(Path(what[0]), name=name)
    settings = parse_settings(*(options.pop(name) for name in ("masks", "modes", "settings")))
    windows = [after_cutoff(code, options["models"]) for code in split_list(options.pop("windows"))]
    protocol = {key: values[0] if len(values) == 1 else values for key, values in settings.items()}
    return make_spec(
        benchmarks=what,
        agents=agents or None,
        name=name,
        windows=windows,
        protocol=protocol,
        **options,
    )
