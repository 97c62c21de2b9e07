"""The root command. Its parts are imported when they are called, which keeps ``--help`` fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from tradeassay import __version__
from tradeassay.core.near import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name -> (module, attribute, one line for --help); the line stands here so that help imports nothing.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "start": ("start", "start", "Show the four ways in, with commands that work as they stand."),
    "demo": ("demo", "demo", "Rules and models on small markets, a verdict, and a page to open; no key."),
    "run": ("runs", "run", "Run agents over benchmarks and score them."),
    "plan": ("runs", "plan", "Say what a run would cost before it is started."),
    "resume": ("runs", "resume", "Continue a stopped run; the result has the same bytes."),
    "verify": ("runs", "verify", "Make a recorded run again and compare, claim by claim."),
    "seal": ("runs", "seal", "Write a run, or the plan of one, into one file under one hash."),
    "compare": ("runs", "compare", "Put runs side by side, with a paired test."),
    "report": ("runs", "report", "Show a run's leaderboard and write its HTML page."),
    "site": ("site", "site", "Write a leaderboard site over all runs of a folder; no server needed."),
    "export": ("export", "export", "Hand a run's numbers to MLflow or Weights & Biases."),
    "record": ("recordings", "record", "Play a spec with a model and pack its answers into a file to pass on."),
    "recordings": ("recordings", "recordings", "List, check and replay recorded answers of real models."),
    "assay": ("assay", "assay", "Say what a result is made of: skill, luck, style, leaked future or memory."),
    "luck": ("assay", "luck", "Place a result among random portfolios under the same rules and costs."),
    "power": ("assay", "power", "Say how many sessions and seeds it takes to see skill."),
    "probe": ("assay", "probe", "Try to tell stocks and days from what a mask shows."),
    "leak-test": ("assay", "leak_test", "Test whether an agent sees ahead, and through which channel."),
    "arena": ("arena", "arena", "Play a season of the arena and watch it in the browser."),
    "mcp": ("mcp", "mcp", "Let clients of the Model Context Protocol trade."),
    "data": ("data", "data", "List, get, fetch, import and examine market data."),
    "code": ("code", "code", "Models write strategies; programs are checked in a sandbox."),
    "new": ("new", "new", "Make a folder for an agent, benchmark, source or task of your own, with a test."),
    "agents": ("agents", "agents", "List the agents that can trade."),
    "models": ("agents", "models", "List the models that can be asked, with price and cutoff; get a local one."),
    "baselines": ("agents", "baselines", "Train and list the factor-model baselines."),
    "benchmarks": ("benchmarks", "benchmarks", "List the benchmarks, or show the rules of one."),
    "reproduce": ("reproduce", "reproduce", "Run a paper's cells on your data, with its tables beside ours."),
    "completion": ("completion", "completion", "Print what bash, zsh or fish reads to complete commands and ids."),
    "doctor": ("doctor", "doctor", "Check this machine and its optional parts."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table above."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"tradeassay.cli.{module}"), attribute)
        if ctx.resilient_parsing:  # somebody presses the tabulator key
            from tradeassay.cli._complete import completed

            return completed(command, cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what is logged shows no secrets. (The screen is clean already, for --help too.)"""
        from tradeassay.core.screen import clean_log

        with clean_log():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any of them."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(n, help=line) for n, (_, _, line) in _COMMANDS.items() if n.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; an unknown one gets near names."""
        name = args[0]
        if name not in _COMMANDS:
            hint = did_you_mean(name, _COMMANDS, "see tradeassay --help")
            raise click.UsageError(f"no command '{name}' ({hint})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="tradeassay")
def root() -> None:
    """What is a trading model's result made of: skill, luck, style, leaked future, or memory?

    tradeassay evaluates and paper-trades. It never sends a real order.
    """
