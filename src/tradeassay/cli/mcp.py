"""``tradeassay mcp``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._options import parse_settings
from tradeassay.cli._output import say


@click.group()
def mcp() -> None:
    """Let clients of the Model Context Protocol trade: an episode of a benchmark, or entries of an arena."""


@mcp.command()
@click.argument("benchmark", default="ktdfin-v1")
@click.option("--mask", "masks", multiple=True, help="What is hidden in KTD-Fin, e.g. date-blind.")
@click.option("--mode", "modes", multiple=True, help="What the model may use in KTD-Fin, e.g. memory-only.")
@click.option("-p", "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other setting.")
@click.option("--dataset", metavar="NAME", help="A data set other than the benchmark's own.")
@click.option("--window", help="Named sessions, e.g. W4.")
@click.option("--sessions", type=click.IntRange(1), help="Stop after this many sessions.")
@click.option(
    "--journal", type=click.Path(path_type=Path), help="Keep every session's record here, and continue from it."
)
def episode(
    benchmark: str,
    masks: tuple[str, ...],
    modes: tuple[str, ...],
    settings: tuple[str, ...],
    dataset: str | None,
    window: str | None,
    sessions: int | None,
    journal: Path | None,
) -> None:
    """Serve one episode of BENCHMARK (ktdfin-v1 if none is named) over standard input and output.

    MCP clients start this command themselves.
    """
    from tradeassay.core.errors import require

    require("mcp", "mcp")
    from tradeassay.frontends.mcp_episode import serve_episode

    earned = serve_episode(
        benchmark,
        {key: values[-1] for key, values in parse_settings(masks, modes, settings).items()},
        window=window,
        dataset=dataset,
        sessions=sessions,
        journal=journal,
    )
    say("no session was decided" if earned is None else f"return {earned:+.2%}")


@mcp.command()
@click.option(
    "--db", default="arena.db", show_default=True, metavar="URL", help="A file, or postgresql+psycopg://..."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(1, 65535), default=8001, show_default=True)
@click.option(
    "--allow-host", "hosts", multiple=True, help="Another host name that clients use, as passed on by a proxy."
)
def arena(db: str, host: str, port: int, hosts: tuple[str, ...]) -> None:
    """Serve the entries of an arena over streamable HTTP at /mcp; agents send their token with every request."""
    from tradeassay.core.errors import require

    for module, extra in (("mcp", "mcp"), ("sqlalchemy", "arena"), ("uvicorn", "arena")):
        require(module, extra)
    from tradeassay.arena.api.mcp_desk import serve_seats

    serve_seats(db, host, port, say, hosts)
