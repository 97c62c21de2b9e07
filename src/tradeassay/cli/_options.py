"""Options that several commands share: where runs are kept, how models are asked, what is run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.core.errors import UserError, absent
from tradeassay.core.registry import did_you_mean

if TYPE_CHECKING:
    from tradeassay.benchmarks.code_protocol import CodeSpec
    from tradeassay.runs import Asking, RunSpec

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", "RunSpec", "CodeSpec")


class Advanced(click.Option):
    """An option that a :class:`FoldedCommand` only names in ``--help``."""


class FoldedCommand(click.Command):
    """A command with more options than a person can hold: ``--help-advanced`` describes the advanced ones."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        said = "Show this message with the advanced options, and exit."
        whole: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": self._help_advanced}
        self.params.append(click.Option(["--help-advanced"], is_flag=True, help=said, **whole))

    @staticmethod
    def _help_advanced(context: click.Context, option: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta["advanced"] = True
            click.echo(context.get_help())
            context.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; the advanced ones in a section of their own, by name or in full."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        folded = [one for one in options if isinstance(one, Advanced)]

        def write(some: Iterable[click.Option]) -> None:
            records = [one.get_help_record(ctx) for one in some]
            formatter.write_dl([record for record in records if record is not None])

        with formatter.section("Options"):
            write(one for one in options if one not in folded)
        with formatter.section("Advanced options"):
            if ctx.meta.get("advanced"):
                write(folded)
                return
            names = f"{', '.join(one.opts[-1] for one in folded)}: see\N{NO-BREAK SPACE}--help-advanced"
            indent = " " * formatter.current_indent
            wrapper = textwrap.TextWrapper(formatter.width, indent, indent, break_on_hyphens=False)
            text = wrapper.fill(names)
            formatter.write(text.replace("\N{NO-BREAK SPACE}", " ") + "\n")


class Fraction(click.FloatRange):
    """A finite number within bounds: ``float`` reads "nan", "inf" and 1e400 as well, which no option can mean."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isfinite(click.FLOAT.convert(value, param, ctx)):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        """Say nothing in the help about bounds that are not there."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def option(names: str, help: str | None = None, **fields: Any) -> Callable[[F], F]:
    """Return an option whose help shows its default; ``-m --model=METAVAR models`` are its flags, what stands for
    its value in the help, and its parameter."""
    parts = [part.partition("=") for part in names.split()]
    metavar = dict([("metavar", metavar) for _, _, metavar in parts if metavar])
    shown = {"show_default": fields.get("default") != "", **metavar, **fields}
    return click.option(*(name for name, _, _ in parts), help=help, **shown)


def flag(names: str, help: str) -> Callable[[F], F]:
    return option(names, help, is_flag=True)


def several(names: str, help: str | None = None, **fields: Any) -> Callable[[F], F]:
    return option(names, help, multiple=True, **fields)


def advanced(names: str, help: str, **fields: Any) -> Callable[[F], F]:
    return option(names, help, cls=Advanced, **fields)


def add_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Return a decorator that adds options to a command, in their order."""

    def add(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return add


COUNT, NATURAL = click.IntRange(1), click.IntRange(0)
NUMBER = Fraction()
PATH, FILE = click.Path(path_type=Path), click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
THERE = click.Path(path_type=Path, dir_okay=False, exists=True)

out = advanced("--runs=FOLDER out", "Folder of the runs.", type=FOLDER, default=Path("runs"))
workers = advanced("--workers", "Processes to use. Default: one per core.", type=COUNT)


def page(what: str = "page", **fields: Any) -> Callable[[F], F]:
    """Return ``-o``, ``--out``: where a page or another file is written."""
    return option("-o --out page", f"Where to write the {what}.", **{"type": FILE, "metavar": "FILE", **fields})


def executor(default: str = "inline", choices: Sequence[str] = ("local", "inline", "ray")) -> Callable[[F], F]:
    """Return the option that says where many independent pieces are worked on."""

    def with_ray(context: click.Context, option: click.Parameter, chosen: str) -> str:
        # That Ray is missing is said before anything is done.
        if chosen == "ray" and not context.resilient_parsing and find_spec("ray") is None:
            raise absent("ray", "ray", "--executor ray")
        return chosen

    words = {"local": "local processes", "inline": "this process", "ray": "a Ray cluster"}
    said = f"Where to run: {', '.join(words[one] for one in choices)}. The result is the same."
    return advanced("--executor", said, type=click.Choice(choices), default=default, callback=with_ray)


def one_each(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse several models with commas between them, as masks may be given."""
    for value in values:
        if "," in value and all("/" in part for part in value.split(",")):
            raise UserError(f"'{value}' is several models", hint="give each its own -m")
    return values


def models(help: str, **fields: Any) -> Callable[[F], F]:
    return several("-m --model models", help, **{"metavar": "PROVIDER/MODEL", "callback": one_each, **fields})


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
    if Path(name).is_file():
        problem = f"{name} is a file, not a recorded run"
        raise UserError(problem, hint=f"name a run or its folder; a table is judged by tradeassay assay {name}")
    if Path(name).suffix.lower() in (".csv", ".tsv", ".parquet", ".seal"):
        raise UserError(f"no file {name}", hint="check the path")
    if Path(name).is_dir():
        raise UserError(f"{name} does not hold a run: manifest.json is missing", hint="give the folder of a run")
    known = sorted(path.parent.name for path in out.glob("*/manifest.json"))
    hint = f"there are no runs in {out}; start one with: tradeassay demo"
    if known:
        hint = did_you_mean(name, known, f"runs in {out}: {', '.join(known)}")
    raise UserError(f"no recorded run '{name}'", hint=hint)


def asking(command: F, *, several: bool = False) -> F:
    """Add how models are asked; with ``several`` recordings of several models can be named."""
    said = "Reuse recorded answers: of another run, a recording's file, or recorded/MODEL"
    said += "; repeat for several models." if several else "."
    return add_options(
        (
            option("--cassettes=RUN|FILE|recorded/MODEL", said, type=PATH, multiple=several),
            option("--max-usd=DOLLARS", "Hard cap on what the whole run may spend.", type=NUMBER),
            flag("--replay", "Recorded answers only: no network, no key, the same bytes."),
            advanced("--base-url=URL", "Another server that speaks the provider's API."),
            advanced("--concurrency", "Episodes in conversation at the same time.", type=COUNT, default=8),
            advanced("--prices=FILE.toml", "Prices of models that override the packaged ones.", type=FILE),
        )
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

        named = () if benchmark is None or is_spec_file(benchmark) else (benchmark,)
        taken["cassettes"] = open_recording(find_recording(str(source), *named)).folder
    elif source is not None and out is not None and not (source / "models").is_dir():
        taken["cassettes"] = find_run(str(source), out)
    return Asking(**taken)


spec = add_options(
    (
        click.argument("what", nargs=-1, required=True, metavar="BENCHMARK... | SPEC.toml"),
        several(
            "-a --agent=NAME[:KEY=VALUE,...] agents",
            "An agent, with parameters; repeat for several. Default: every rule, or only the models.",
        ),
        models("A language model, e.g. openai/gpt-5 or scripted/sensible; repeat for several."),
        several(
            "--mask=LEVEL[,LEVEL] masks",
            "What is hidden from models: bright, stock-blind, date-blind, blinded.",
        ),
        several("--mode=MODE[,MODE] modes", "What models may use: memory-only, fixed-candidate, open-research."),
        several(
            "--window=CODE[,CODE] windows",
            "Named sessions of the benchmark, e.g. W4 or long; after-cutoff, after-2025-06-01.",
        ),
        advanced(
            "-p --set=KEY=VALUE[,VALUE] settings",
            "Any other setting of the conversation; several values make a grid.",
            multiple=True,
        ),
        option("--seeds", "Run every agent under this many seeds.", default=1),
        option("--dataset=NAME", "Trade a data set other than the benchmark's own."),
        option("--first=DAY", "First session to trade, YYYY-MM-DD."),
        option("--last=DAY", "Last session to trade, YYYY-MM-DD."),
        advanced("--index=NAME", "The index to compare with, or none. Default: by its role."),
        advanced(
            "--universe=NAME[:N]",
            "What may be bought: an index's members, all, or the N most traded, e.g. hs300:50.",
        ),
        advanced(
            "--secret=HEX",
            "Secret that aliases are drawn from; give an earlier run's to repeat it. Default: random.",
        ),
        option("--slug=NAME", "Name of the run's folder; the same slug resumes. Default: from its content."),
    )
)
"""The arguments that describe a run."""


def is_spec_file(what: str) -> bool:
    return what.endswith((".toml", ".json"))


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
    table, last_days = load_cutoffs(), []
    for model in models:
        if (cutoff := table.of(model)) is None:
            hint = f"write --window after-YYYY-MM-DD, or into {own_file()}: {cutoff_line(model)}"
            raise UserError(f"the knowledge cutoff of {model} is not known", hint=hint)
        last_days.append(cutoff.last_day)
    return f"after-{max(last_days).isoformat()}"


def program_spec(what: Sequence[str]) -> CodeSpec | None:
    """Return the spec of a run of programs that a file holds; None for anything else."""
    if len(what) != 1 or not is_spec_file(what[0]) or not Path(what[0]).is_file():
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

    if len(what) == 1 and is_spec_file(what[0]):
        if agents or options.pop("seeds") != 1 or any(options.values()):
            hint = "drop the other options, or put them into the file"
            raise UserError(f"{what[0]} already says what to run", hint=hint)
        return load_spec(Path(what[0]), slug=slug)
    settings = parse_settings(*(options.pop(name) for name in ("masks", "modes", "settings")))
    windows = [after_cutoff(code, options["models"]) for code in split_list(options.pop("windows"))]
    protocol = {key: values[0] if len(values) == 1 else values for key, values in settings.items()}
    return make_spec(
        benchmarks=what, agents=agents or None, slug=slug, windows=windows, protocol=protocol, **options
    )
