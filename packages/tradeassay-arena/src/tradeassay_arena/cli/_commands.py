"""The command-line entry of the arena."""

from __future__ import annotations

from tradeassay.cli._group import CommandEntry, CommandTable

COMMANDS: CommandTable = {
    "Run": {
        "arena": CommandEntry(
            "tradeassay_arena.cli.arena",
            "arena",
            "Play a season of the arena and watch it in the browser.",
        ),
    },
}
