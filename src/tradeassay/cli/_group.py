"""The root command. Its parts are imported when they are called, which keeps ``--help`` fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from tradeassay import __version__
from tradeassay.core.errors import TradeassayError
from tradeassay.core.registry import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# section -> name -> (module, attribute, one line for --help); the line stands here so that help imports nothing.
_SECTIONS: dict[str, dict[str, tuple[str, str, str]]] = {
    "Start": {
        "start": ("new", "start", "Show the four ways in, with commands that work as they stand."),
        "demo": ("demo", "demo", "Judge accounts of known nature and a recorded model; no key."),
        "new": ("new", "new", "Make a folder for your own agent, benchmark, source or task, with a test."),
        "doctor": ("doctor", "doctor", "Check this machine and its optional parts."),
    },
    "Run": {
        "run": ("runs", "run", "Run agents over benchmarks and score them, or plan it."),
        "resume": ("runs", "resume", "Continue a stopped run; the result has the same bytes."),
        "code": ("code", "code", "Have models write strategies, and check programs in a sandbox."),
        "arena": ("arena", "arena", "Play a season of the arena and watch it in the browser."),
        "mcp": ("mcp", "mcp", "Let clients of the Model Context Protocol trade."),
        "reproduce": ("reproduce", "reproduce", "Play a paper's cells, with its tables beside ours."),
        "recordings": ("recordings", "recordings", "Make, list, check and replay recorded answers of models."),
    },
    "Judge": {
        "assay": ("assay", "assay", "Say what a result is made of: skill, luck, style, leaked future or memory."),
        "luck": ("assay", "luck", "Rank a result among random portfolios with the same rules and costs."),
        "power": ("assay", "power", "Say how many sessions and seeds it takes to detect skill."),
        "leak-test": ("assay", "leak_test", "Test whether an agent sees ahead, and through which channel."),
        "memory": ("memory", "memory", "Try what models remember, and what a mask hides from them."),
    },
    "Show and check": {
        "report": ("runs", "report", "Show a run's leaderboard and write its page; tables to paste; trackers."),
        "compare": ("runs", "compare", "Compare runs, with a paired test."),
        "verify": ("runs", "verify", "Make a recorded run again and compare, claim by claim."),
        "seal": ("runs", "seal", "Write a run, or the plan of one, into one file under one hash."),
        "site": ("site", "site", "Write a site over all runs of a folder, or of an arena; no server needed."),
    },
    "List": {
        "benchmarks": ("benchmarks", "benchmarks", "List the benchmarks, or show the rules of one."),
        "agents": ("agents", "agents", "List the agents that can trade."),
        "models": ("agents", "models", "List the known models with price and cutoff, or download a local one."),
        "baselines": ("agents", "baselines", "List the factor-model baselines, or train some."),
        "data": ("data", "data", "List, get, import and check market data."),
    },
}
_ELSEWHERE = {
    "plan": "run --plan",
    "probe": "memory probe",
    "record": "recordings record",
    "export": "report --to",
    "completion": "--completion",
}
"""Words that somebody may look for among the commands, and where they are."""
_COMMANDS = {name: found for section in _SECTIONS.values() for name, found in section.items()}


class CommandGroup(click.Group):
    """A group in which the library's hints, which name Python's keywords, name the called command's options."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except TradeassayError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if not error.hint or command is None or isinstance(command, click.Group):
                raise
            from tradeassay.cli._output import as_options

            raise type(error)(error.message, hint=as_options(error.hint, command)) from error


class LazyGroup(CommandGroup):
    """A group whose commands live in modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"tradeassay.cli.{module}"), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what is logged shows no secrets. (The screen is clean already, for --help too.)"""
        from tradeassay.core.screen import clean_log

        with clean_log():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(n, help=line) for n, (_, _, line) in _COMMANDS.items() if n.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS:
            hint = did_you_mean(name, _COMMANDS, "see tradeassay --help")
            if name in _ELSEWHERE:
                hint = f"did you mean {_ELSEWHERE[name]}?"
            raise click.UsageError(f"no command '{name}' ({hint})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, _, line) in commands.items()])


def _completion(context: click.Context, option: click.Parameter, shell: str | None) -> None:
    """Print the script with which a shell completes commands and options."""
    if shell is None or context.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # one of the three
    click.echo(made(root, {}, "tradeassay", "_TRADEASSAY_COMPLETE").source())
    context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
