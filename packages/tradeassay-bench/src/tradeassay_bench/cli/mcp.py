"""Define the command ``mcp``, which serves an episode or an arena to MCP clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import say
from tradeassay_bench.cli import _run_options as run_opt


@click.command()
@click.argument("what", default="ktdfin-v1", metavar="[BENCHMARK | ARENA.db]")
@opt.several("--mask masks", "The mask of KTD-Fin, e.g. date-blind.")
@opt.several("--mode modes", "The tools that the model may use in KTD-Fin, e.g. memory-only.")
@opt.several("-p --set=KEY=VALUE settings", "Any other option of the conversation.")
@opt.option("--dataset=NAME", "A data set other than the benchmark's own.")
@opt.option("--window", "Named sessions, e.g. W4.")
@opt.option("--sessions", "Stop after this many sessions.", type=opt.COUNT)
@opt.option(
    "--run folder",
    "Record a run in this folder; repeat the command to continue it.",
    type=click.Path(path_type=Path),
)
@opt.option("--host", "For an arena: the address to listen on.", default="127.0.0.1")
@opt.option(
    "--port", "For an arena: the port to listen on.", type=click.IntRange(1, 65535), default=8001
)
@opt.several("--allow-host hosts", "For an arena: another host name, as sent by a proxy.")
def mcp(
    what: str,
    window: str | None,
    dataset: str | None,
    sessions: int | None,
    folder: Path | None,
    **given: Any,
) -> None:
    """Let clients of the Model Context Protocol trade a benchmark's episode or an arena's entries.

    An episode of BENCHMARK is served over standard input and output. Clients start this command
    themselves. The entries of an arena (the file or URL of its database) are served over streamable
    HTTP at /mcp. Agents send their token with every request.
    """
    from tradeassay.core.errors import require

    require("mcp", "serve")
    if "://" in what or what.endswith(".db") or Path(what).is_file():
        from tradeassay_bench.runs.seasons import arena

        arena().serve_mcp(what, given["host"], given["port"], say, given["hosts"])
        return
    from tradeassay_bench.benchmarks.code_protocol import refuse_other_kind
    from tradeassay_bench.frontends.mcp_episode import serve_episode

    refuse_other_kind(what, trades=True)
    settings = run_opt.parse_settings(*(given[name] for name in ("masks", "modes", "settings")))
    last_values = {key: values[-1] for key, values in settings.items()}
    earned = serve_episode(
        what, last_values, window=window, dataset=dataset, sessions=sessions, folder=folder
    )
    say("no session was decided" if earned is None else f"return {earned:+.2%}")
