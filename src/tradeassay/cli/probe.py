"""``tradeassay probe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._output import json_option, print_json, print_table, say

if TYPE_CHECKING:
    from tradeassay.assay.probe import ProbeReport, ProbeRow
    from tradeassay.core.measure import Measure


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@click.command()
@click.option("--benchmark", default="ktdfin-v1", show_default=True, help="A benchmark with masks.")
@click.option("--dataset", help="Another data set than the benchmark's own.")
@click.option("--mask", "masks", default="blinded", show_default=True, metavar="LEVEL[,LEVEL]",
              help="bright, stock-blind, date-blind, blinded.")  # fmt: skip
@click.option("--hardening", "hardenings", default="plain", show_default=True, metavar="NAME[,NAME]",
              help="plain, rebased, scaled, scrubbed, or all; each has what the one before has.")  # fmt: skip
@click.option("--attackers", default="levels", show_default=True, metavar="NAME[,NAME]",
              help="Models, and the programs match (always there), levels, reader.")  # fmt: skip
@click.option("--probes", type=click.IntRange(1), default=200, show_default=True, help="Pairs of stock and day.")
@click.option("--mode", type=click.Choice(["memory-only", "fixed-candidate", "open-research"]),
              default="open-research", show_default=True, help="What the model is shown.")  # fmt: skip
@click.option("--window", "windows", default="", metavar="CODE[,CODE]", help="Named windows. Default: all short.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Draws other pairs.")
@click.option("--max-usd", type=float, metavar="DOLLARS", help="Hard cap on what all models may spend.")
@click.option("--cassettes", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Record answers here, and ask nothing twice.")  # fmt: skip
@click.option("--replay", is_flag=True, help="Recorded answers only: no network, no key.")
@json_option
def probe(
    benchmark: str,
    dataset: str | None,
    attackers: str,
    max_usd: float | None,
    cassettes: Path | None,
    replay: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Try to tell which stock and which day it is from what a mask shows.

    The same pairs are shown to every attacker under every mask, exactly as a model would get them. One attacker
    that matches returns against the price archive is always asked: whoever has data access can do that.
    """
    from tradeassay.assay.probe import probe_mask

    report = probe_mask(
        benchmark,
        _listed(attackers),
        dataset=dataset,
        config=_config(**asked),
        max_usd=max_usd,
        cassettes=cassettes,
        replay=replay,
    )
    if as_json:
        print_json(report)
        return
    print_table(f"{report.benchmark} on {report.dataset}", _COLUMNS, _rows(report))
    say("shares of all probes; --json also has those among the probes that were answered")
    for note in report.notes:
        say(note)


def _config(masks: str, hardenings: str, windows: str, **rest: Any) -> Any:
    from tradeassay.assay.probe import HARDENINGS, ProbeConfig

    chosen = tuple(HARDENINGS) if hardenings == "all" else _listed(hardenings)
    levels: Any = _listed(masks)
    return ProbeConfig(masks=levels, hardenings=chosen, windows=_listed(windows), **rest)


_SHOWN = ("top_1", "top_5", "date_1", "date_7", "date_30", "sector", "board", "joint")
_COLUMNS = (
    "attacker",
    "mask",
    "answers",
    "top 1",
    "top 5",
    "day ±1",
    "day ±7",
    "day ±30",
    "sector",
    "board",
    "joint",
)


def _rows(report: ProbeReport) -> list[tuple[str, ...]]:
    chance = tuple("" if (by := report.random[name].value) is None else f"{by:.1%}" for name in _SHOWN)
    return [("by chance", "", "", *chance), *(_row(row) for row in report.rows)]


def _row(row: ProbeRow) -> tuple[str, ...]:
    mask = row.mask if row.hardening == "plain" else f"{row.mask}, {row.hardening}"
    return (row.attacker, mask, _share(row.response), *(_share(row.of_all[name]) for name in _SHOWN))


def _share(measure: Measure) -> str:
    if measure.value is None:
        return "none"
    return f"{measure.value:.0%} ({measure.low:.0%}-{measure.high:.0%})"
