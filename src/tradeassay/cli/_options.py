"""Options that several commands share: where runs are kept, how models are asked, what is run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.core.errors import UserError, absent
from tradeassay.core.registry import did_you_mean

if TYPE_CHECKING:
    from tradeassay.benchmarks.programs import CodeSpec
    from tradeassay.runs import Asking, RunSpec

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", "RunSpec", "CodeSpec")


class Advanced(click.Option):
    """An option that a :class:`FoldedCommand` only names in ``--help``."""


class FoldedCommand(click.Command):
    """A command with more options than a person can hold: ``--help-advanced`` describes the advanced ones."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.params.append(
            click.Option(
                ["--help-advanced"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_help_advanced,
                help="Show this message with the advanced options, and exit.",
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; the advanced ones in a section of their own, by name or in full."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        advanced = [one for one in options if isinstance(one, Advanced)]
        with formatter.section("Options"):
            _write(formatter, ctx, [one for one in options if one not in advanced])
        with formatter.section("Advanced options"):
            if ctx.meta.get("advanced"):
                _write(formatter, ctx, advanced)
            else:
                names = f"{', '.join(one.opts[-1] for one in advanced)}: see\N{NO-BREAK SPACE}--help-advanced"
                indent = " " * formatter.current_indent
                text = textwrap.fill(
                    names, formatter.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
                )
                formatter.write(text.replace("\N{NO-BREAK SPACE}", " ") + "\n")


def _write(formatter: click.HelpFormatter, ctx: click.Context, options: Sequence[click.Option]) -> None:
    records = [one.get_help_record(ctx) for one in options]
    formatter.write_dl([record for record in records if record is not None])


def _help_advanced(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta["advanced"] = True
        click.echo(context.get_help())
        context.exit()


def add_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Return a decorator that adds options to a command, in their order."""

    def add(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return add


COUNT, NATURAL = click.IntRange(1), click.IntRange(0)
FILE, FOLDER = click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path, file_okay=False)


def option(*names: str, **fields: Any) -> Callable[[F], F]:
    """Return an option whose help shows its default."""
    return click.option(*names, **{"show_default": True, **fields})


def several(*names: str, **fields: Any) -> Callable[[F], F]:
    """Return an option that may be given more than once."""
    return click.option(*names, multiple=True, **fields)


def advanced(*names: str, **fields: Any) -> Callable[[F], F]:
    """Return an option that ``--help`` only names; it shows its default."""
    return option(*names, cls=Advanced, **fields)


out_option = advanced(
    "--runs", "out", type=FOLDER, default=Path("runs"), metavar="FOLDER", help="Folder of the runs."
)
workers_option = advanced("--workers", type=COUNT, help="Processes to use. Default: one per core.")


def page_option(what: str = "page", **fields: Any) -> Callable[[F], F]:
    """Return ``-o``, ``--out``: where a page or another file is written."""
    fields.setdefault("type", click.Path(path_type=Path, dir_okay=False))
    fields.setdefault("metavar", "FILE")
    return click.option("-o", "--out", "page", help=f"Where to write the {what}.", **fields)


def file_option(name: str, help: str, metavar: str = "FILE") -> Callable[[F], F]:
    """Return an option that names a file which is there."""
    return click.option(
        name, type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar=metavar, help=help
    )


def executor_option(
    default: str = "inline", choices: Sequence[str] = ("local", "inline", "ray")
) -> Callable[[F], F]:
    """Return the option that says where many independent pieces are worked on."""
    words = {"local": "local processes", "inline": "this process", "ray": "a Ray cluster"}
    return advanced(
        "--executor",
        type=click.Choice(choices),
        default=default,
        callback=_with_ray,
        help=f"Where to run: {', '.join(words[one] for one in choices)}. The result is the same.",
    )


def _with_ray(context: click.Context, option: click.Parameter, chosen: str) -> str:
    """Say that Ray is missing before anything is done."""
    if chosen == "ray" and not context.resilient_parsing and find_spec("ray") is None:
        raise absent("ray", "ray", "--executor ray")
    return chosen


def one_each(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse several models with commas between them, as masks may be given."""
    for value in values:
        if "," in value and all("/" in part for part in value.split(",")):
            raise UserError(f"'{value}' is several models", hint="give each its own -m")
    return values


def holds_an_arena(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def refuse_seal(name: str) -> None:
    """Raise :class:`UserError` for a sealed run where a folder or a table is wanted."""
    if Path(name).suffix.lower() == ".seal" and Path(name).is_file():
        hint = f"tradeassay verify {name}; to see it, unpack it into a folder: python -m zipfile -e {name} FOLDER"
        raise UserError(f"{name} is a sealed run", hint=hint)


def find_run(name: str, out: Path) -> Path:
    """Return the run's folder; raises :class:`UserError` with near names when there is none."""
    for folder in (Path(name), out / name):
        if (folder / "manifest.json").is_file():
            return folder
    refuse_seal(name)
    if Path(name).suffix.lower() in (".csv", ".tsv", ".parquet", ".seal"):
        raise UserError(f"no file {name}", hint="check the path")
    if Path(name).is_dir():
        raise UserError(f"{name} does not hold a run: manifest.json is missing", hint="give the folder of a run")
    known = sorted(path.parent.name for path in out.glob("*/manifest.json"))
    if known:
        hint = did_you_mean(name, known, f"runs in {out}: {', '.join(known)}")
    else:
        hint = f"there are no runs in {out}; start one with: tradeassay demo"
    raise UserError(f"no recorded run '{name}'", hint=hint)


_ASKING = (
    click.option("--max-usd", type=float, metavar="DOLLARS", help="Hard cap on what the whole run may spend."),
    click.option("--replay", is_flag=True, help="Recorded answers only: no network, no key, the same bytes."),
    advanced("--base-url", metavar="URL", help="Another server that speaks the provider's API."),
    advanced("--concurrency", type=COUNT, default=8, help="Episodes in conversation at the same time."),
    advanced("--prices", type=FILE, metavar="FILE.toml", help="Prices of models that override the packaged ones."),
)


def asking_options(command: F, *, several: bool = False) -> F:
    """Add how models are asked; with ``several`` recordings of several models can be named."""
    command = add_options(_ASKING)(command)
    return click.option(
        "--cassettes",
        type=click.Path(path_type=Path),
        multiple=several,
        metavar="RUN|FILE|recorded/MODEL",
        help="Reuse recorded answers: of another run, a recording's file, or recorded/MODEL"
        + ("; repeat for several models." if several else "."),
    )(command)


def take_asking(options: dict[str, Any], out: Path | None = None, benchmark: str | None = None) -> Asking:
    """Take the options of this file out of ``options``; raises :class:`UserError` for what makes no sense.

    ``out`` holds the runs, for naming one by its slug; ``benchmark`` chooses among a model's recordings (a spec's
    file does not).
    """
    from tradeassay.runs import Asking

    names = ("concurrency", "max_usd", "replay", "cassettes", "base_url", "prices")
    taken = {name: options.pop(name) for name in names if name in options}
    source = taken.get("cassettes")
    if source is not None and (source.is_file() or source.parts[0] == "recorded"):
        from tradeassay.runs.store.archive import find_recording, open_recording

        named = () if benchmark is None or benchmark.endswith((".toml", ".json")) else (benchmark,)
        taken["cassettes"] = open_recording(find_recording(str(source), *named)).folder
    elif source is not None and out is not None and not (source / "models").is_dir():
        taken["cassettes"] = find_run(str(source), out)
    return Asking(**taken)


spec_options = add_options(
    (
        click.argument("what", nargs=-1, required=True, metavar="BENCHMARK... | SPEC.toml"),
        several(
            "-a",
            "--agent",
            "agents",
            metavar="NAME[:KEY=VALUE,...]",
            help="An agent, with parameters; repeat for several. Default: every rule, or only the models.",
        ),
        several(
            "-m",
            "--model",
            "models",
            metavar="PROVIDER/MODEL",
            callback=one_each,
            help="A language model, e.g. openai/gpt-5 or scripted/sensible; repeat for several.",
        ),
        several(
            "--mask",
            "masks",
            metavar="LEVEL[,LEVEL]",
            help="What is hidden from models: bright, stock-blind, date-blind, blinded.",
        ),
        several(
            "--mode",
            "modes",
            metavar="MODE[,MODE]",
            help="What models may use: memory-only, fixed-candidate, open-research.",
        ),
        several(
            "--window",
            "windows",
            metavar="CODE[,CODE]",
            help="Named sessions of the benchmark, e.g. W4 or long; after-cutoff, after-2025-06-01.",
        ),
        advanced(
            "-p",
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE[,VALUE]",
            help="Any other setting of the conversation; several values make a grid.",
        ),
        option("--seeds", default=1, help="Run every agent under this many seeds."),
        click.option("--dataset", metavar="NAME", help="Trade a data set other than the benchmark's own."),
        click.option("--first", metavar="DAY", help="First session to trade, YYYY-MM-DD."),
        click.option("--last", metavar="DAY", help="Last session to trade, YYYY-MM-DD."),
        advanced("--index", metavar="NAME", help="The index to compare with, or none. Default: by its role."),
        advanced(
            "--universe",
            metavar="NAME[:N]",
            help="What may be bought: an index's members, all, or the N most traded, e.g. hs300:50.",
        ),
        advanced(
            "--secret",
            metavar="HEX",
            help="Secret that aliases are drawn from; give an earlier run's to repeat it. Default: random.",
        ),
        click.option(
            "--slug",
            metavar="NAME",
            help="Name of the run's folder; the same slug resumes. Default: from its content.",
        ),
    )
)
"""The arguments that describe a run."""


def only_benchmark(described: dict[str, Any]) -> bool:
    """Tell whether nothing but one benchmark's id was given to describe a run, and perhaps how to call it."""
    plain = {"what": described["what"], "slug": described["slug"], "seeds": 1}
    named = len(described["what"]) == 1 and not described["what"][0].endswith((".toml", ".json"))
    return named and not any(value for key, value in described.items() if value != plain.get(key))


def parse_settings(
    masks: Sequence[str], modes: Sequence[str], settings: Sequence[str]
) -> dict[str, tuple[bool | int | float | str, ...]]:
    """Read the settings of the conversation; raises :class:`UserError` on a malformed or repeated one."""
    from tradeassay.runs.spec.run_spec import parse_value

    found: dict[str, tuple[bool | int | float | str, ...]] = {}
    given = [("mask", text) for text in masks] + [("mode", text) for text in modes]
    for text in settings:
        key, equals, values = text.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise UserError(f"'{text}' is not a setting", hint="write KEY=VALUE or KEY=VALUE,VALUE")
        given.append((key.strip(), values))
    for key, text in given:
        found[key] = (*found.get(key, ()), *(parse_value(value) for value in split_list(text)))
    return found


def split_list(texts: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the parts of comma-separated texts."""
    given = [texts] if isinstance(texts, str) else texts or ()
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())


def after_cutoff(code: str, models: Sequence[str]) -> str:
    """Return a window's code; ``after-cutoff`` becomes the day after which none of the models knows anything.

    Raises :class:`UserError` where no model is named or a cutoff is not known.
    """
    if code != "after-cutoff":
        return code
    from tradeassay.llm.tables import cutoff_line, load_cutoffs, own_file

    if not models:
        raise UserError("after-cutoff goes with models: it is their cutoff", hint="name one with -m")
    table = load_cutoffs()
    found = {model: table.of(model) for model in models}
    unknown = [model for model, cutoff in found.items() if cutoff is None]
    if unknown:
        raise UserError(
            f"the knowledge cutoff of {unknown[0]} is not known",
            hint=f"write --window after-YYYY-MM-DD, or into {own_file()}: {cutoff_line(unknown[0])}",
        )
    return f"after-{max(cutoff.last_day for cutoff in found.values() if cutoff is not None).isoformat()}"


def program_spec(what: Sequence[str]) -> CodeSpec | None:
    """Return the spec of a run of programs that a file holds; None for anything else."""
    if len(what) != 1 or not what[0].endswith((".toml", ".json")) or not Path(what[0]).is_file():
        return None
    from tradeassay.runs.spec.run_spec import load_code_spec

    return load_code_spec(Path(what[0]))


def with_beacon(spec: S, value: str | None) -> S:
    """Return a spec with the value of its beacon; raises :class:`UserError` where it has none to give it to."""
    import msgspec

    if value is None:
        return spec
    if not spec.beacon:
        raise UserError("the spec draws no secret from a beacon", hint='write beacon = {source = "", round = ""}')
    return msgspec.structs.replace(spec, beacon=msgspec.structs.replace(spec.beacon, value=value.lower()))


def build_spec(what: tuple[str, ...], agents: tuple[str, ...], slug: str | None, **options: Any) -> RunSpec:
    """Make the spec from a file, or from benchmark ids and options; raises :class:`UserError`."""
    from tradeassay.api import make_spec
    from tradeassay.runs import load_spec

    if len(what) == 1 and what[0].endswith((".toml", ".json")):
        if agents or options.pop("seeds") != 1 or any(options.values()):
            raise UserError(
                f"{what[0]} already says what to run", hint="drop the other options, or put them into the file"
            )
        return load_spec(Path(what[0]), slug=slug)
    settings = parse_settings(*(options.pop(name) for name in ("masks", "modes", "settings")))
    return make_spec(
        benchmarks=what,
        agents=agents or None,
        slug=slug,
        windows=[after_cutoff(code, options["models"]) for code in split_list(options.pop("windows"))],
        protocol={key: values[0] if len(values) == 1 else values for key, values in settings.items()},
        **options,
    )
