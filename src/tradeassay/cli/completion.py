"""The command ``completion``: what a shell reads to complete commands, options and ids."""

from __future__ import annotations

import click

_HOW = {
    "bash": 'eval "$(tradeassay completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(tradeassay completion zsh)"     # in ~/.zshrc',
    "fish": "tradeassay completion fish > ~/.config/fish/completions/tradeassay.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    """Print a completion script for commands, options, and ids of benchmarks, agents, models and runs.

    \b
    eval "$(tradeassay completion bash)"    # in ~/.bashrc
    eval "$(tradeassay completion zsh)"     # in ~/.zshrc
    tradeassay completion fish > ~/.config/fish/completions/tradeassay.fish
    """
    from click.shell_completion import get_completion_class

    from tradeassay.cli._group import root

    made = get_completion_class(shell)
    assert made is not None  # one of the three
    click.echo(made(root, {}, "tradeassay", "_TRADEASSAY_COMPLETE").source())
