"""Register the commands about programs that trade."""

from __future__ import annotations

from tradeassay.cli._group import CommandEntry, CommandTable

COMMANDS: CommandTable = {
    "Run": {
        "code": CommandEntry(
            "tradeassay_programs.cli.code",
            "code",
            "Have models write strategies, and check programs in a sandbox.",
        ),
    },
}
