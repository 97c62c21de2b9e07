"""The options that say how models are asked; ``run``, ``resume`` and ``plan`` share them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tradeassay.runs import Asking

F = TypeVar("F", bound=Callable[..., Any])

_CONCURRENCY = click.option(
    "--concurrency", type=click.IntRange(1), default=8, show_default=True,
    help="Episodes that talk to models at the same time.",
)  # fmt: skip
_PRICES = click.option(
    "--prices", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
    help="Prices of models, laid over the packaged ones.",
)  # fmt: skip
_PLAYING = (
    click.option("--max-usd", type=float, metavar="DOLLARS", help="Hard cap on what the whole run may spend."),
    click.option("--replay", is_flag=True, help="Recorded answers only: no network, no key, the same bytes."),
    click.option(
        "--cassettes", type=click.Path(path_type=Path), metavar="RUN",
        help="Take over the answers that another run recorded.",
    ),
    click.option("--base-url", metavar="URL", help="Another server that speaks the provider's language."),
)  # fmt: skip


def planning_options(command: F) -> F:
    """Add what a plan needs to know about asking."""
    return _CONCURRENCY(_PRICES(command))


def asking_options(command: F) -> F:
    """Add everything about asking."""
    for option in reversed((_CONCURRENCY, *_PLAYING, _PRICES)):
        command = option(command)
    return command


def take_asking(options: dict[str, Any], out: Path | None = None) -> Asking:
    """Take the options of this file out of ``options``; raises :class:`UserError` for what makes no sense.

    ``out`` holds the runs, for naming one by its slug.
    """
    from tradeassay.cli._run_folder import find_run
    from tradeassay.runs import Asking

    names = ("concurrency", "max_usd", "replay", "cassettes", "base_url", "prices")
    taken = {name: options.pop(name) for name in names if name in options}
    source = taken.get("cassettes")
    if source is not None and out is not None and not (source / "models").is_dir():
        taken["cassettes"] = find_run(str(source), out)
    return Asking(**taken)
