"""``tradeassay reproduce``: a paper's cells on data of one's own, its tables beside ours, what may be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._options import (
    FoldedCommand,
    asking_options,
    one_each,
    out_option,
    take_asking,
    workers_option,
)
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import DataError, UserError, require

if TYPE_CHECKING:
    from tradeassay.arena.queries.snapshot import CitedFigures
    from tradeassay.benchmarks.programs import Paper
    from tradeassay.benchmarks.quantcode.dialogue import Setting
    from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec
    from tradeassay.benchmarks.systrade.spec import SystradeSpec
    from tradeassay.runs import AgentSpec, RunSpec
    from tradeassay.runs.summary.rows import PrintedFigures

PAPERS = ("stockbench", "ktdfin", "ama", "quantcode", "systrade")


@click.command(cls=FoldedCommand)
@click.argument("paper", type=click.Choice(PAPERS))
@click.option(
    "--data", metavar="NAME|PATH", help="A data set of the store, or a folder to import (or a task file)."
)
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    metavar="PROVIDER/MODEL",
    callback=one_each,
    help="A model to ask; repeat for several.",
)
@click.option("--seeds", default=1, show_default=True, help="Repetitions of every agent.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="quantcode, systrade: only N of the tasks.")
@click.option("--grid", is_flag=True, help="All cells of the paper instead of its main table only.")
@click.option(
    "--attribution/--no-attribution",
    default=True,
    show_default=True,
    help="Split returns into market, style, selection and trading.",
)
@click.option("--slug", metavar="NAME", help="Name of the run's folder. Default: from its content.")
@asking_options
@out_option
@workers_option
@json_option
def reproduce(
    paper: str,
    data: str | None,
    models: tuple[str, ...],
    seeds: int,
    sample: int | None,
    grid: bool,
    attribution: bool,
    slug: str | None,
    out: Path,
    workers: int | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Play a paper's cells with its rules and the named models, and show its tables beside ours.

    \b
    tradeassay reproduce stockbench --data path/to/the/reference
    tradeassay reproduce ktdfin --data my-csi300 -m openai/gpt-5 --max-usd 50

    stockbench and ktdfin play the paper's window under its conventions; --grid adds sizes, regimes and ablations,
    or masks, modes and windows. quantcode takes the public task file (--grid: agentic turns too), systrade a data
    set, ama a season file. Without --data, synthetic data stands in, and no figure is comparable.
    """
    wanted = _Wanted(
        paper=paper,
        data=data,
        models=models,
        seeds=seeds,
        sample=sample,
        grid=grid,
        slug=slug,
        out=out,
        workers=workers,
        as_json=as_json,
    )
    if paper in ("stockbench", "ktdfin"):
        if sample is not None:
            raise UserError(f"{paper} has no tasks to sample", hint="leave --sample out, or plan it first")
        return _trading(wanted, attribution, take_asking(asked, out))
    if grid and paper != "quantcode":
        raise UserError(f"{paper} has one main table and no --grid", hint="leave it out")
    if paper == "ama":
        return _season(wanted)
    return _programs(wanted, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A paper, how much of it is to be played with whom, and where the result goes."""

    paper: str
    data: str | None
    models: tuple[str, ...]
    seeds: int
    sample: int | None
    grid: bool
    slug: str | None
    out: Path
    workers: int | None
    as_json: bool


def _trading(wanted: _Wanted, attribution: bool, asking: Any) -> int:
    from tradeassay.assay.papers import paper_studies
    from tradeassay.report import write_html
    from tradeassay.report.studies import print_studies
    from tradeassay.runs import Run, run
    from tradeassay.runs.summary import summary_of

    dataset = None if wanted.data is None else _dataset(wanted.paper, wanted.data)
    if dataset is not None and not wanted.as_json:
        from tradeassay.benchmarks import benchmarks
        from tradeassay.benchmarks.needs import data_needs
        from tradeassay.data import load_dataset

        played = benchmarks.get(_main_benchmark(wanted.paper, dataset))
        for need in data_needs(played, load_dataset(dataset)):
            if need.status != "there":
                say(f"{need.what}: {need.found}; {need.changes}")
    spec = _spec(wanted, dataset)
    done = run(spec, wanted.out / spec.slug, workers=wanted.workers, progress="auto", asking=asking)
    recorded = Run.load(done.folder)
    studies = paper_studies(recorded, attribution=attribution)
    page = write_html(recorded)
    printed = [cell.published for cell in summary_of(recorded).cells if cell.published is not None]
    if wanted.as_json:
        print_json({"run": str(done.folder), "studies": studies, "printed": printed})
    else:
        print_studies(studies)
        for figures in printed:
            _show_printed(figures)
        say(f"run: {done.folder}")
        say(f"report: {page}")
    return 1 if recorded.failed else 0


def _dataset(paper: str, data: str) -> str:
    """Return a data set of the store; a folder is imported first, in the layout it plainly has."""
    from tradeassay.data import list_datasets
    from tradeassay.data.datasets import import_files
    from tradeassay.data.tables.columns import FilesConfig

    path = Path(data).expanduser()
    if not path.exists():
        return data
    from tradeassay.data.tables.layouts import guess_layout, unpacked

    layout = guess_layout(path)
    name = f"{paper}-{path.resolve().name}".lower().replace("_", "-").replace(" ", "-")
    if any(info.name == name and info.problem is None for info in list_datasets()):
        say(f"data set '{name}' is in the store already; remove it there to import again")
        return name
    config = FilesConfig(path=str(path), name=name)
    try:
        if layout is None:
            result = import_files(config, allow_faults=("gap without corporate action",))
        else:
            with unpacked(layout, path, config) as made:
                result = import_files(made, allow_faults=True)
    except (UserError, DataError) as error:
        # What the importer advises are options of its own command.
        raise UserError(
            f"{path} cannot be taken as it is: {error.message}",
            hint=f"tradeassay data import {path} --name NAME has options for it (--columns, --layout, --drop); "
            "then --data NAME",
        ) from error
    say(f"imported {path} as '{name}'" + (f" (layout {layout})" if layout else ""))
    say(str(result.report))
    return name


def _main_benchmark(paper: str, dataset: str | None) -> str:
    if paper == "ktdfin":
        return "ktdfin-paper-v1"
    return "stockbench-paper-v1" if dataset is None else "stockbench-djia-paper-v1"


def _spec(wanted: _Wanted, dataset: str | None) -> RunSpec:
    from tradeassay.api import make_spec

    paper, models, grid = wanted.paper, wanted.models, wanted.grid
    main = _main_benchmark(paper, dataset)
    rules = ["equal-weight", "momentum-weighted", "sector-equal"] if paper == "stockbench" else ["momentum-12-1"]
    fields: dict[str, Any] = {"agents": rules, "models": models, "seeds": wanted.seeds, "slug": wanted.slug}
    if dataset is not None:
        fields["dataset"] = dataset
    elif paper == "ktdfin":
        # The synthetic stand-in of the paper's size: 300 members, 548 sessions.
        fields["dataset"] = "synthetic/csi300:7"
    if paper == "ktdfin":
        fields["windows"] = [f"W{n}" for n in range(1, 11)] if grid else ["long"]
        fields["protocol"] = PRUNED_GRID if grid else {"mask": "blinded", "mode": "open-research"}
        fields["agents"] = [*rules, *_trained(fields["dataset"], fields["windows"])]
        return make_spec(main, **_known(fields, models))
    names = [main]
    if dataset is None and grid:
        names = [f"stockbench{part}-v1" for part in ("-5", "-10", "", "-30", "-down", "-up")]
    elif dataset is not None and grid:
        fields["windows"] = _regimes(dataset)
    if grid and models:
        fields["protocol"] = {"inputs": ["all", "no-news", "no-fundamentals", "neither"]}
    return make_spec(*names, **_known(fields, models))


def _trained(dataset: str, codes: list[str]) -> list[AgentSpec]:
    """Return the factor models that were trained on this data and have seen nothing of the windows."""
    from tradeassay.agents.factor_models.trained import list_trained
    from tradeassay.benchmarks.windows import find_window
    from tradeassay.data import load_dataset
    from tradeassay.runs import AgentSpec

    snapshot = load_dataset(dataset)
    of_it = [
        one for one in list_trained() if one.recipe.data_sha256 == snapshot.sha256 and not one.recipe.shuffled
    ]
    first = min(find_window("ktdfin", code, snapshot, "paper").first for code in codes)
    fit = [one for one in of_it if one.seen_until < first]
    if len(fit) < len(of_it):
        say(f"{len(of_it) - len(fit)} trained factor models have seen sessions from {first} on and are left out")
    if not fit:
        say(f"no factor model was trained on sessions before {first} of this data: tradeassay baselines")
    named: dict[str, AgentSpec] = {}
    for one in fit:
        label = one.recipe.model if one.recipe.size == "full" else f"{one.recipe.model}-{one.recipe.size}"
        label = label if label not in named else f"{label}-{one.key[:6]}"
        named[label] = AgentSpec(
            name="factor-model", params={"key": one.key, "model": one.recipe.model}, label=label
        )
    return list(named.values())


def _regimes(dataset: str) -> list[str]:
    """Return the paper's windows, or where the data does not cover one the stretch found with hindsight."""
    from tradeassay.benchmarks.stockbench.specs import windows
    from tradeassay.data import load_dataset

    known = {window.code for window in windows(load_dataset(dataset), "paper")}
    wanted = (("main",), ("down-2025", "down"), ("up-2025", "up"))
    found = [next((code for code in codes if code in known), None) for codes in wanted]
    for codes, code in zip(wanted, found, strict=True):
        if code != codes[0]:
            say(f"the data does not cover {codes[0]}; " + (f"{code} is played instead" if code else "left out"))
    return [code for code in found if code is not None]


PRUNED_GRID: dict[str, list[str]] = {
    "mask": ["bright", "blinded"],
    "mode": ["memory-only", "fixed-candidate", "open-research"],
}
"""The paper's informative cells: both ends of the masks in all three modes."""


def _known(fields: dict[str, Any], models: tuple[str, ...]) -> dict[str, Any]:
    """Leave out the settings of a conversation where nobody is asked."""
    return fields if models else {key: value for key, value in fields.items() if key != "protocol"}


def _show_printed(figures: PrintedFigures) -> None:
    rows = [
        (
            row.who,
            row.measure,
            f"{row.printed:+.2%}" if abs(row.printed) < 10 else f"{row.printed:g}",
            "" if row.ours is None else f"{row.ours:+.2%}",
            row.ours_by,
            "yes" if not row.reasons else "no: " + "; ".join(row.reasons),
        )
        for row in figures.rows
    ]
    print_table(figures.source, ("printed by", "measure", "printed", "ours", "of", "comparable"), rows)


def _season(wanted: _Wanted) -> int:
    """Play a season, and print its standings and the paper's figures beside ours."""
    from tradeassay.cli import main

    if wanted.models:
        raise UserError("a season names its own entries", hint="put the models into the season file")
    if wanted.sample is not None:
        raise UserError("a season is played whole", hint="leave --sample out, or shorten the season file")
    if wanted.seeds != 1:
        raise UserError("a season is played once", hint="leave --seeds out; other entries are other seasons")
    require("sqlalchemy", "arena")
    season = (
        ["--replay", "synthetic", "--convention", "paper"] if wanted.data is None else ["--season", wanted.data]
    )
    db = str(wanted.out / f"{wanted.slug or 'ama-paper'}.db")
    wanted.out.mkdir(parents=True, exist_ok=True)
    say(f"a season takes minutes and is kept in {db}: stopped, the same command goes on where it was")
    ended = main(["arena", "run", *season, "--db", db, "--speed", "max"])
    if ended:
        return ended
    from tradeassay.arena.queries.snapshot import board_of, cited_of

    cited = cited_of(db)
    if wanted.as_json:
        print_json({"db": db, "standings": board_of(db), "printed": cited})
        return 0
    ended = main(["arena", "standings", "--db", db])
    _show_cited(cited)
    return ended


def _show_cited(cited: CitedFigures) -> None:
    """Print every figure of the paper on agents in a season with what ours of the same kind made."""
    rows = []
    for one in cited.figures:
        figure = one.figure
        ratio = figure.measure == "SR"
        printed = (
            figure.architecture,
            figure.model,
            figure.asset,
            figure.measure,
            f"{figure.value:+.2f}" if ratio else f"{figure.value:+.2%}",
        )
        for ours in one.ours:
            value = ours.measure.value
            made = "" if value is None else f"{value:+.2f}" if ratio else f"{value:+.2%}"
            why = [*ours.reasons, *([ours.measure.reason] if value is None and ours.measure.reason else [])]
            comparable = _comparable(why, yes=ours.comparable and value is not None)
            rows.append((*printed, made, f"{ours.label} ({', '.join(ours.assets)})", comparable))
        if not one.ours:
            why = [f"none of our entries is of the kind '{figure.architecture}'"]
            rows.append((*printed, "", "", _comparable(why, yes=False)))
    second = " (figures at second hand)" if cited.second_hand else ""
    columns = ("printed for", "model", "asset", "measure", "printed", "ours", "of", "comparable")
    print_table(f"{cited.source}, {cited.first} to {cited.last}{second}", columns, rows)


def _programs(wanted: _Wanted, asked: dict[str, Any]) -> int:
    """Let models write a paper's programs, and print its tables with ours in them."""
    from tradeassay.cli._output import finish
    from tradeassay.cli.code import default_slug
    from tradeassay.report.code_page import shown_run
    from tradeassay.runs import run

    gold = {"quantcode": "coder-gold", "systrade": "builder-gold"}[wanted.paper]
    if not wanted.models:
        raise UserError(
            f"{wanted.paper} is about programs that models write: name one", hint=f"-m scripted/{gold}"
        )
    asking = take_asking(asked, wanted.out)
    spec = _program_spec(wanted)
    folder = wanted.out / (wanted.slug or default_slug(spec.benchmark, spec))
    done = run(spec, folder, workers=wanted.workers, progress="auto", asking=asking)
    ended = finish(done, quiet=wanted.as_json)
    printed = shown_run(done).paper
    if wanted.as_json:
        print_json({"run": str(done.folder), "scores": done.scores, "printed": printed})
    else:
        _show_paper(printed)
    return ended


def _program_spec(wanted: _Wanted) -> QuantCodeSpec | SystradeSpec:
    from tradeassay.benchmarks.quantcode.spec import QuantCodeSpec
    from tradeassay.benchmarks.systrade import STRATEGIES
    from tradeassay.benchmarks.systrade.spec import SystradeSpec

    data, models, sample, repeated = wanted.data, wanted.models, wanted.sample, tuple(range(wanted.seeds))
    if wanted.paper == "systrade":
        chosen = () if sample is None else tuple(STRATEGIES)[:sample]
        return SystradeSpec(
            benchmark="systrade-v1", models=models, strategies=chosen, dataset=data, seeds=repeated
        )
    settings: tuple[Setting, ...] = ("single-turn", "agentic") if wanted.grid else ("single-turn",)
    return QuantCodeSpec(
        benchmark="quantcode-v1", models=models, task_file=data, sample=sample, settings=settings, seeds=repeated
    )


def _show_paper(paper: Paper) -> None:
    """Print a paper's tables with ours among the rows, and below them why they may not be compared."""
    from tradeassay.report.code_page import plain_rows

    for table in paper.tables:
        print_table(table.title, table.columns, plain_rows(table))
        if table.note:
            say(table.note)
    print_table(paper.source, ("comparable",), [(_comparable(paper.reasons, yes=not paper.reasons),)])
    for note in paper.notes:
        say(note)


def _comparable(reasons: Iterable[str], *, yes: bool) -> str:
    return "yes" if yes else "no, because " + "; ".join(reasons)
