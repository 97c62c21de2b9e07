"""Define the command ``reproduce``: a paper's tables and figures with your own models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say
from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.exhibits import PAPERS
from tradeassay_bench.cli import _run_options as run_opt

if TYPE_CHECKING:
    from tradeassay_bench.runs.store.archive import OpenRecording

_ONLY = {
    "judge": ("quantcode",),
    "dataset": ("quantcode",),
    "symbols": ("systrade",),
    "reviewers": ("systrade",),
    "sample": ("quantcode", "systrade"),
}
"""Options that are valid only with some papers."""


@click.command(cls=opt.FoldedCommand)
@click.argument("paper", type=click.Choice(tuple(PAPERS)))
@opt.option(
    "--data=NAME|PATH", "A stored data set, or a folder to import (or a task or season file)."
)
@opt.several(
    "-m --model=PROVIDER/MODEL models",
    "A model to run; repeat for several.",
    callback=run_opt.one_each,
)
@opt.option("--seeds", "Number of runs of every agent.", default=1)
@opt.option("--sample=N", "quantcode, systrade: only N of the tasks.", type=opt.COUNT)
@opt.flag("--grid", "Run all settings of the paper, not only its main table.")
@opt.option("--judge=MODEL", "quantcode: the model that judges programs, as in the paper.")
@opt.option("--dataset=NAME", "quantcode: stored bars for the tasks of a task file.")
@opt.option("--symbols=A,B", "systrade: symbols of the data set. Default: the first ones.")
@opt.several("--reviewer=MODEL reviewers", "systrade: a model that grades submissions; repeat.")
@opt.advanced(
    "--probes",
    "ktdfin --grid: number of pairs of stock and day in the attack on the mask.",
    type=opt.COUNT,
    default=200,
)
@opt.option(
    "--attribution/--no-attribution",
    "Split returns into market, style, selection and trading.",
    default=True,
)
@opt.option("--name=NAME", "Name of the folder. Default: paper-PAPER.")
@partial(run_opt.asking, several=True)
@run_opt.out
@opt.workers
@json_option
def reproduce(
    paper: str,
    out: Path,
    workers: int | None,
    as_json: bool,
    recordings: tuple[Path, ...],
    **given: Any,
) -> int:
    """Run a paper's settings, and write every table and figure of the paper with your results.

    \b
    tradeassay reproduce ktdfin --recordings recorded/qwen2.5-coder-1.5b --replay
    tradeassay reproduce stockbench --data REFERENCE -m openai/gpt-5 --max-usd 50 --grid

    The page is paper.html. Every table is also written as Markdown, LaTeX and CSV to tables/ next
    to it. Recordings are replayed with their own settings, and -m models and rules run the same
    settings. Without recordings the paper's window is run under its conventions.

    --grid adds sizes, regimes and ablations, or masks, modes, windows and the probe, or agentic
    turns. --data is the public task file for quantcode, data sets (a,b) for systrade, a season file
    for ama. Without --data, synthetic data is used, and no figure is comparable with the paper's.
    """
    for name, papers in _ONLY.items():
        if given[name] and paper not in papers:
            option = "tasks to sample" if name == "sample" else f"--{name.removesuffix('s')}"
            raise UserError(f"{paper} has no {option}", hint="drop this option")
    opened, others = _recordings(paper, recordings, grid=given["grid"])
    asking = run_opt.take_asking({**given, "recordings": others[0] if others else None}, out)
    from tradeassay_bench.cli._papers import play_runs
    from tradeassay_bench.report.paper_page import print_paper
    from tradeassay_bench.report.verifying import compose_paper, compose_seasons, record_paper
    from tradeassay_bench.runs.seasons import PaperPlay, arena

    request = PaperPlay(
        paper=paper,
        **{name: given[name] for name in ("data", "models", "seeds", "sample", "grid")},
        folder=out / (given["name"] or f"paper-{paper}"),
        workers=workers,
        recordings=opened,
        options=given,
        say=say,
    )
    if paper == "ama":
        seasons = arena()
        record, failed = seasons.play_paper(request, asking)
        page, badges = compose_seasons(request.folder, record, seasons.export)
    else:
        record, failed = play_runs(request, asking)
        page, badges = compose_paper(request.folder, record)
    place = record_paper(request.folder, record, page, badges)
    runs = [str(request.folder / name) for name in record.runs]
    if as_json:
        print_json({"page": str(place), "runs": runs, "paper": page})
    else:
        print_paper(page)
        for folder in runs:
            say(f"run: {folder}")
        say(f"page: {place}")
    return 1 if failed else 0


def _recordings(
    paper: str, sources: Sequence[Path], *, grid: bool
) -> tuple[tuple[tuple[str, OpenRecording], ...], list[Path]]:
    """Return a paper's recordings with their labels, and the folders of runs among the sources.

    Raises :class:`UserError` for more than one folder.
    """
    from tradeassay_bench.runs.store.archive import find_recording, list_recordings, open_recording

    opened_recordings, runs = [], []
    for source in sources:
        if not source.is_file() and source.parts[0] != "recorded":
            runs.append(source)
            continue
        names = [str(source)]
        if len(source.parts) == 2 and not source.is_file():
            names = [
                f"recorded/{recording.name}"
                for recording in list_recordings()
                if recording.name.startswith(f"{source.parts[1]}/")
                and f"{paper}-v1" in recording.label.benchmarks
            ]
            # A recording of conversations is part of the grid.
            names = [name for name in names if grid or not name.endswith("-agentic")] or names
        for name in names or [str(source)]:
            opened = open_recording(find_recording(name, f"{paper}-v1"))
            label = "-".join(Path(name).parts[-2:]).removesuffix(".tar.xz")
            opened_recordings.append((label, opened))
    if len(runs) > 1:
        raise UserError(
            "--recordings names several runs", hint="give one run, or packed recordings"
        )
    return tuple(opened_recordings), runs
