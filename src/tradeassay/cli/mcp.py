"""``tradeassay mcp``."""

from __future__ import annotations

from pathlib import Path

import click

from tradeassay.cli._options import COUNT, option, parse_settings, several
from tradeassay.cli._output import say


@click.command()
@click.argument("what", default="ktdfin-v1", metavar="[BENCHMARK | ARENA.db]")
@click.option("--mask", "masks", multiple=True, help="What is hidden in KTD-Fin, e.g. date-blind.")
@click.option("--mode", "modes", multiple=True, help="What the model may use in KTD-Fin, e.g. memory-only.")
@click.option("-p", "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any other setting.")
@click.option("--dataset", metavar="NAME", help="A data set other than the benchmark's own.")
@click.option("--window", help="Named sessions, e.g. W4.")
@click.option("--sessions", type=COUNT, help="Stop after this many sessions.")
@click.option(
    "--run",
    "folder",
    type=click.Path(path_type=Path),
    help="Make a run of it here; started again, it goes on behind the last answer.",
)
@option("--host", default="127.0.0.1", help="For an arena: where to listen.")
@option("--port", type=click.IntRange(1, 65535), default=8001, help="For an arena.")
@several("--allow-host", "hosts", help="For an arena: another host name, as passed on by a proxy.")
def mcp(
    what: str,
    masks: tuple[str, ...],
    modes: tuple[str, ...],
    settings: tuple[str, ...],
    dataset: str | None,
    window: str | None,
    sessions: int | None,
    folder: Path | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
) -> None:
    """Let clients of the Model Context Protocol trade an episode of a benchmark, or entries of an arena.

    An episode of BENCHMARK is served over standard input and output: clients start this command themselves. The
    entries of an arena (a database's file or URL) are served over streamable HTTP at /mcp; agents send their token
    with every request.
    """
    from tradeassay.core.errors import require

    arena = "://" in what or what.endswith(".db") or Path(what).is_file()
    for module, extra in (("mcp", "mcp"), *((("sqlalchemy", "arena"), ("uvicorn", "arena")) if arena else ())):
        require(module, extra)
    if arena:
        from tradeassay.arena.api.mcp_desk import serve_seats

        serve_seats(what, host, port, say, hosts)
        return
    from tradeassay.benchmarks.programs import refuse_other_kind
    from tradeassay.frontends.mcp_episode import serve_episode

    refuse_other_kind(what, trades=True)
    earned = serve_episode(
        what,
        {key: values[-1] for key, values in parse_settings(masks, modes, settings).items()},
        window=window,
        dataset=dataset,
        sessions=sessions,
        folder=folder,
    )
    say("no session was decided" if earned is None else f"return {earned:+.2%}")
