"""Options that several commands share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from tradeassay.core.errors import UserError, absent

F = TypeVar("F", bound=Callable[..., Any])


class Advanced(click.Option):
    """An option for which a :class:`FoldedCommand` lists only the name in ``--help``."""


class FoldedCommand(click.Command):
    """A command with many options. ``--help-advanced`` describes the advanced options.

    ``--help`` lists only the names of the advanced options.
    """

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        said = "Show this message with the advanced options, and exit."
        whole: dict[str, Any] = {
            "is_eager": True,
            "expose_value": False,
            "callback": self._help_advanced,
        }
        self.params.append(click.Option(["--help-advanced"], is_flag=True, help=said, **whole))

    @staticmethod
    def _help_advanced(context: click.Context, option: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            context.meta["advanced"] = True
            click.echo(context.get_help())
            context.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, with a separate section for the advanced options.

        The section lists either names or full descriptions.
        """
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
            names = (
                f"{', '.join(one.opts[-1] for one in folded)}: see\N{NO-BREAK SPACE}--help-advanced"
            )
            indent = " " * formatter.current_indent
            wrapper = textwrap.TextWrapper(formatter.width, indent, indent, break_on_hyphens=False)
            text = wrapper.fill(names)
            formatter.write(text.replace("\N{NO-BREAK SPACE}", " ") + "\n")


class Fraction(click.FloatRange):
    """A finite number within bounds. Unlike ``float`` it rejects "nan", "inf" and 1e400."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isfinite(click.FLOAT.convert(value, param, ctx)):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return super().convert(value, param, ctx)

    def _describe_range(self) -> str:
        """Return the bounds for the help text, or an empty text if there are no bounds."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def option(names: str, help: str | None = None, **fields: Any) -> Callable[[F], F]:
    """Return a decorator for an option whose help shows its default.

    ``names`` contains the flags, a METAVAR for the help text and the parameter: ``-m
    --model=METAVAR models``.
    """
    parts = [part.partition("=") for part in names.split()]
    metavar = dict([("metavar", metavar) for _, _, metavar in parts if metavar])
    shown = {"show_default": fields.get("default") != "", **metavar, **fields}
    return click.option(*(name for name, _, _ in parts), help=help, **shown)


def flag(names: str, help: str) -> Callable[[F], F]:
    """Return a decorator for an option without a value."""
    return option(names, help, is_flag=True)


def several(names: str, help: str | None = None, **fields: Any) -> Callable[[F], F]:
    """Return a decorator for an option that may be given more than once."""
    return option(names, help, multiple=True, **fields)


def advanced(names: str, help: str, **fields: Any) -> Callable[[F], F]:
    """Return a decorator for an advanced option. ``--help`` lists only its name."""
    return option(names, help, cls=Advanced, **fields)


def add_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Return a decorator that adds options to a command in the given order."""

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

workers = advanced("--workers", "Processes to use. Default: one per core.", type=COUNT)


def page(what: str = "page", **fields: Any) -> Callable[[F], F]:
    """Return the option ``-o``, ``--out``, which names the output file."""
    return option(
        "-o --out page",
        f"Where to write the {what}.",
        **{"type": FILE, "metavar": "FILE", **fields},
    )


def executor(
    default: str = "inline", choices: Sequence[str] = ("local", "inline", "ray")
) -> Callable[[F], F]:
    """Return the option ``--executor``, which selects where the parts of a job run."""

    def with_ray(context: click.Context, option: click.Parameter, chosen: str) -> str:
        # Report a missing Ray before the command does any work.
        if chosen == "ray" and not context.resilient_parsing and find_spec("ray") is None:
            raise absent("ray", "ray", "--executor ray")
        return chosen

    words = {"local": "local processes", "inline": "this process", "ray": "a Ray cluster"}
    said = f"Where to run: {', '.join(words[one] for one in choices)}. The result is the same."
    return advanced(
        "--executor", said, type=click.Choice(choices), default=default, callback=with_ray
    )


def refuse_seal(name: str) -> None:
    """Raise :class:`UserError` if ``name`` is a sealed run instead of a folder or a table."""
    if Path(name).suffix.lower() == ".seal" and Path(name).is_file():
        hint = (
            f"tradeassay verify {name}; to view it, unpack it into a folder: python -m zipfile "
            f"-e {name} FOLDER"
        )
        raise UserError(f"{name} is a sealed run", hint=hint)
