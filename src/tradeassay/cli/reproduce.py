"""``tradeassay reproduce``: a paper, table by table and figure by figure, filled by the models that are named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.benchmarks.exhibits import PAPERS
from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, say
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.runs.store.archive import OpenRecording

_ONLY = {
    "judge": ("quantcode",),
    "dataset": ("quantcode",),
    "symbols": ("systrade",),
    "reviewers": ("systrade",),
    "sample": ("quantcode", "systrade"),
}
"""Options that belong to some papers alone."""


@click.command(cls=opt.FoldedCommand)
@click.argument("paper", type=click.Choice(tuple(PAPERS)))
@opt.option("--data=NAME|PATH", "A data set of the store, or a folder to import (or a task or season file).")
@opt.several("-m --model=PROVIDER/MODEL models", "A model to ask; repeat for several.", callback=opt.one_each)
@opt.option("--seeds", "Repetitions of every agent.", default=1)
@opt.option("--sample=N", "quantcode, systrade: only N of the tasks.", type=opt.COUNT)
@opt.flag("--grid", "All cells of the paper instead of its main table only.")
@opt.option("--judge=MODEL", "quantcode: the language judge, as the paper has one.")
@opt.option("--dataset=NAME", "quantcode: stored bars for the tasks of a task file.")
@opt.option("--symbols=A,B", "systrade: which symbols of the data set. Default: its first ones.")
@opt.several("--reviewer=MODEL reviewers", "systrade: marks submissions; repeat.")
@opt.advanced(
    "--probes",
    "ktdfin --grid: pairs of stock and day that attackers of the mask are asked about.",
    type=opt.COUNT,
    default=200,
)
@opt.option(
    "--attribution/--no-attribution", "Split returns into market, style, selection and trading.", default=True
)
@opt.option("--slug=NAME", "Name of the folder. Default: paper-PAPER.")
@partial(opt.asking, several=True)
@opt.out
@opt.workers
@json_option
def reproduce(
    paper: str, out: Path, workers: int | None, as_json: bool, cassettes: tuple[Path, ...], **given: Any
) -> int:
    """Play a paper's cells, and write the paper with ours in it: every table and figure, in its order.

    \b
    tradeassay reproduce ktdfin --cassettes recorded/qwen2.5-coder-1.5b --cassettes recorded/smollm2 --replay
    tradeassay reproduce stockbench --data path/to/the/reference -m openai/gpt-5 --max-usd 50 --grid

    The page is paper.html, with every table as Markdown, LaTeX and CSV in tables/ beside it. Recordings are played
    as they were recorded, and -m models and rules in the same cells; without recordings the paper's window is
    played under its conventions. --grid adds sizes, regimes and ablations, or masks, modes, windows and the probe,
    or agentic turns. quantcode takes the public task file as --data, systrade data sets (a,b), ama a season file.
    Without --data, synthetic data stands in, and no figure is comparable.
    """
    for name, papers in _ONLY.items():
        if given[name] and paper not in papers:
            what = "tasks to sample" if name == "sample" else f"--{name.removesuffix('s')}"
            raise UserError(f"{paper} has no {what}", hint="leave it out, or plan it first")
    recordings, others = _recordings(paper, cassettes, grid=given["grid"])
    asking = opt.take_asking({**given, "cassettes": others[0] if others else None}, out)
    from tradeassay.cli._papers import play_runs
    from tradeassay.report.paper_page import print_paper
    from tradeassay.report.verifying import compose_paper, record_paper
    from tradeassay.runs.seasons import PaperPlay, arena

    request = PaperPlay(
        paper=paper,
        **{name: given[name] for name in ("data", "models", "seeds", "sample", "grid")},
        folder=out / (given["slug"] or f"paper-{paper}"),
        workers=workers,
        recordings=recordings,
        options=given,
        say=say,
    )
    if paper == "ama":
        seasons = arena()
        record, failed = seasons.play_paper(request, asking)
        page, badges = seasons.compose_paper(request.folder, record)
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
    """Return the recordings of a paper's benchmark by what they are called, and the runs named beside them."""
    from tradeassay.runs.store.archive import find_recording, list_recordings, open_recording

    found, others = [], []
    for source in sources:
        if not source.is_file() and source.parts[0] != "recorded":
            others.append(source)
            continue
        names = [str(source)]
        if len(source.parts) == 2 and not source.is_file():
            mine = [one for one in list_recordings() if one.name.startswith(f"{source.parts[1]}/")]
            names = [f"recorded/{one.name}" for one in mine if f"{paper}-v1" in one.label.benchmarks]
            # A recording of conversations is part of the grid.
            names = [name for name in names if grid or not name.endswith("-agentic")] or names
        for name in names or [str(source)]:
            opened = open_recording(find_recording(name, f"{paper}-v1"))
            found.append(("-".join(Path(name).parts[-2:]).removesuffix(".tar.xz"), opened))
    if len(others) > 1:
        raise UserError("several runs are named as cassettes", hint="only recordings can be several")
    return tuple(found), others
