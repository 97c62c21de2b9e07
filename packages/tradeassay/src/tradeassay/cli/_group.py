"""The root command. Each command is imported only when it is called, so ``--help`` is fast."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import click

from tradeassay.core import __version__
from tradeassay.core.errors import TradeassayError
from tradeassay.core.registry import Registry, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """The import location of a command, and its line in ``--help``.

    Storing the line here lets ``--help`` work without importing the command.
    """

    module: str
    attribute: str
    line: str

    def load(self) -> click.Command:
        """Import the command and return it."""
        command: click.Command = getattr(importlib.import_module(self.module), self.attribute)
        return command


CommandTable = dict[str, dict[str, CommandEntry]]
"""Commands by section of the help and by name. A name of two words is a subcommand of a group."""

command_tables: Registry[CommandTable] = Registry("command")
"""Entry-point group that installed packages use to add commands, with one command table per
package."""

_SECTIONS = ("Start", "Run", "Judge", "Show and check", "List")
_OWN: CommandTable = {
    "Judge": {
        "assay": CommandEntry(
            "tradeassay.cli.assay",
            "assay",
            "Judge a result: is it skill, luck, style, a leaked future or memory?",
        ),
    },
}


@cache
def _all_commands() -> CommandTable:
    """Return the commands and subcommands of all packages by section."""
    merged: CommandTable = {section: dict(_OWN.get(section, {})) for section in _SECTIONS}
    order = ["bench", "programs", "arena"]
    names = sorted(
        command_tables.names(), key=lambda name: order.index(name) if name in order else len(order)
    )
    for name in names:
        for section, entries in command_tables.get(name).items():
            merged.setdefault(section, {}).update(entries)
    return {section: entries for section, entries in merged.items() if entries}


def root_commands() -> dict[str, CommandEntry]:
    """Return the top-level commands by name."""
    commands = {}
    for entries in _all_commands().values():
        for name, entry in entries.items():
            if " " not in name:
                commands[name] = entry
    return commands


def subcommands(group: str) -> dict[str, CommandEntry]:
    """Return the subcommands that packages add to a group, by their second word."""
    commands = {}
    for entries in _all_commands().values():
        for name, entry in entries.items():
            first, _, second = name.partition(" ")
            if first == group and second:
                commands[second] = entry
    return commands


_ELSEWHERE = {
    "plan": "run --plan",
    "probe": "memory probe",
    "record": "recordings record",
    "export": "report --to",
    "completion": "--completion",
}
"""Words that a user may try as a command, with the command or option that does the same."""


class CommandGroup(click.Group):
    """A group that replaces Python keywords in error hints by options of the called command."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TradeassayError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if not error.hint or command is None or isinstance(command, click.Group):
                raise
            from tradeassay.cli._output import as_options

            raise type(error)(error.message, hint=as_options(error.hint, command)) from error


class _LazyGroup(CommandGroup):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(root_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for entries in _OWN.values():
            if (
                cmd_name in entries
            ):  # A built-in command is found without searching the installed packages.
                return entries[cmd_name].load()
        entry = root_commands().get(cmd_name)
        return None if entry is None else entry.load()

    def invoke(self, ctx: click.Context) -> object:
        """Run a command and remove secrets from its log.

        :func:`main` removes them from the screen.
        """
        from tradeassay.core.screen import clean_log

        with clean_log():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        named = {
            name: entry for name, entry in root_commands().items() if name.startswith(incomplete)
        }
        return [CompletionItem(name, help=entry.line) for name, entry in named.items()]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not any(name in entries for entries in _OWN.values()) and name not in root_commands():
            hint = did_you_mean(name, root_commands(), "see tradeassay --help")
            if name in _ELSEWHERE:
                hint = f"did you mean {_ELSEWHERE[name]}?"
            if not command_tables.names():
                hint = (
                    "only the instrument is installed; pip install 'tradeassay[all]' installs "
                    "the rest"
                )
            raise click.UsageError(f"no command '{name}' ({hint})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, root_commands()))
        for title, commands in _all_commands().items():
            shown = [
                (name.ljust(width), entry.line)
                for name, entry in commands.items()
                if " " not in name
            ]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)


def _completion(context: click.Context, option: click.Parameter, shell: str | None) -> None:
    """Print the completion script of a shell."""
    if shell is None or context.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click.Choice guarantees one of the three shells.
    click.echo(made(root, {}, "tradeassay", "_TRADEASSAY_COMPLETE").source())
    context.exit()


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--completion",
    help="Print a completion script for a shell, and exit.",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_completion,
)
@click.version_option(__version__, "-V", "--version", prog_name="tradeassay")
def root() -> None:
    """What is a trading model's result made of: skill, luck, style, leaked future, or memory?

    tradeassay evaluates and paper-trades. It never sends a real order.

    \b
    eval "$(tradeassay --completion bash)"    in ~/.bashrc; zsh likewise
    """
