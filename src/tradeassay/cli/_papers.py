"""How a paper's cells are played: the runs of a trading paper, and of one about programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from tradeassay import runs
from tradeassay.agents.factor_models import fitting
from tradeassay.api import make_spec
from tradeassay.assay.probe import ProbeConfig, ProbeReport, probe_mask
from tradeassay.benchmarks import benchmarks
from tradeassay.benchmarks.benchmark import find_window
from tradeassay.benchmarks.code_protocol import PaperRequest, find_protocol
from tradeassay.benchmarks.needs import data_needs
from tradeassay.benchmarks.stockbench import INPUTS, SIZES
from tradeassay.benchmarks.stockbench.specs import LENGTH, NAMES, windows
from tradeassay.cli import _options as opt
from tradeassay.cli._output import say
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.measure import plain_sum
from tradeassay.data import Snapshot, list_datasets, load_dataset
from tradeassay.data.datasets import import_files
from tradeassay.data.tables.files import FilesConfig
from tradeassay.llm import CassetteStore
from tradeassay.report.verifying import PaperRecord
from tradeassay.runs import AgentSpec, Asking
from tradeassay.runs.seasons import PaperPlay
from tradeassay.runs.spec.episode import CapReached
from tradeassay.runs.store.archive import recorded_spec
from tradeassay.runs.store.folder import RunFolder

_GOLD = {"quantcode": "coder-gold", "systrade": "builder-gold"}
_RULES = {"stockbench": ("equal-weight", "momentum-weighted", "sector-equal"), "ktdfin": ("momentum-12-1",)}
PRUNED_GRID: dict[str, tuple[str, ...]] = {
    "mask": ("bright", "blinded"),
    "mode": ("memory-only", "fixed-candidate", "open-research"),
}
"""The paper's informative cells: both ends of the masks in all three modes."""
_HEADLINE = {"mask": "blinded", "mode": "open-research"}


def play_runs(wanted: PaperPlay, asking: Asking) -> tuple[PaperRecord, bool]:
    """Play every run of a page; return which they are, and whether an episode failed.

    One cap on dollars binds all of them, with what an earlier call of the same command has spent."""
    if wanted.paper in _GOLD and not wanted.models and not wanted.recordings:
        hint = f"-m scripted/{_GOLD[wanted.paper]}, or --cassettes recorded/MODEL"
        raise UserError(f"{wanted.paper} is about programs that models write: name one", hint=hint)
    planned = list(_programs(wanted) if wanted.paper in _GOLD else _trading(wanted))
    paying = [RunFolder(wanted.folder / name).models for name, _, cassettes in planned if cassettes is None]
    made = []
    for name, spec, cassettes in planned:
        how = _with_spent(asking, paying, RunFolder(wanted.folder / name).models)
        if cassettes is not None:
            how = msgspec.structs.replace(asking, cassettes=cassettes, replay=True)
        elif asking.replay and asking.cassettes is None:
            # What is left to play is asked of scripts alone.
            for model in (name for name in wanted.models if not name.startswith("scripted/")):
                raise UserError(f"--replay asks nobody, and {model} has no recording here", hint="leave it out")
            how = msgspec.structs.replace(asking, replay=False)
        done = runs.run(spec, wanted.folder / name, workers=wanted.workers, progress="auto", asking=how)
        say(f"played {name}")
        made.append(runs.load_run(done.folder))
    if any(reason.startswith("over_budget") for one in made for reason in one.failed.values()):
        hint = "tradeassay resume RUN --retry-failed --max-usd DOLLARS continues one of these runs"
        say(f"the cap on dollars is reached: episodes are not played to their end ({hint})")
    probe, failed = None, any(one.failed for one in made)
    if wanted.paper == "ktdfin" and wanted.grid:
        say("asking the attackers of the mask")
        answers = wanted.folder / "probe"
        how = msgspec.structs.replace(_with_spent(asking, paying, answers), cassettes=answers)
        try:
            probe = _probe(wanted, cast("runs.Run", made[0]), how)
        except CapReached as reached:
            say(f"{reached.message}; the mask is attacked by programs alone (give a larger --max-usd)")
            probe, failed = _probe(replace(wanted, models=()), cast("runs.Run", made[0]), how), True
    names = tuple(one.folder.name for one in made)
    record = PaperRecord(runs=names, attribution=bool(wanted.options["attribution"]), probe=probe)
    return record, failed


def _probe(wanted: PaperPlay, played: runs.Run, asking: Asking) -> ProbeReport:
    """Attack the mask with programs, and with the models that were named."""
    first = played.episodes[0]
    attackers = ("levels", "grid", *(() if asking.replay else wanted.models))
    config = ProbeConfig(probes=wanted.options["probes"])
    return probe_mask(
        played.manifest.benchmark(first), attackers, dataset=first.dataset, config=config, asking=asking
    )


def _with_spent(asking: Asking, paying: Sequence[Path], own: Path) -> Asking:
    """Return how one part of a paper is asked: what all other parts have spent counts under the same cap."""
    others = [folder for folder in paying if folder != own]
    spent = plain_sum(CassetteStore(folder).spent_usd() for folder in others)
    return msgspec.structs.replace(asking, spent_usd=spent)


# Runs that trade


def _trading(wanted: PaperPlay) -> Iterator[tuple[str, Any, Path | None]]:
    """Yield the runs of a trading paper: a name, what is played, and the recording it is answered from."""
    like: Any = None
    for name, opened in wanted.recordings:
        spec: Any = recorded_spec(opened.folder)
        if wanted.paper == "ktdfin" and not wanted.grid:
            spec = msgspec.structs.replace(spec, protocol={**spec.protocol, **_HEADLINE})
        like = like or spec
        yield name, msgspec.structs.replace(spec, slug=name), opened.folder
    rules: list[str | AgentSpec] = [*_RULES[wanted.paper]]
    if wanted.paper == "stockbench":
        rules.append(AgentSpec(name="sector-equal", params={"best": 3, "every": 21}))
    fields: dict[str, Any] = {"models": wanted.models, "seeds": wanted.seeds, "agents": rules}
    if like is not None:
        # The same cells as the recordings', so that everybody is in one table.
        main = like.benchmarks[0]
        fields |= {"windows": like.windows, "dataset": dict(like.datasets), "protocol": dict(like.protocol)}
        fields["protocol"].pop("max_tokens", None)
        if like.window is not None:
            fields |= {"first": like.window.first, "last": like.window.last}
        for name in ("index", "universe"):
            if getattr(like, name) is not msgspec.UNSET:
                fields[name] = getattr(like, name)
    else:
        main, more = _as_printed(wanted)
        fields |= more
    parts = {"models" if wanted.models else "rules": fields}
    if wanted.paper == "stockbench" and wanted.grid:
        parts |= _stockbench_grid(wanted, main, fields)
    for name, part in parts.items():
        known = {key: value for key, value in part.items() if value}
        if not wanted.models:
            known.pop("protocol", None)
        yield name, make_spec(main, **known, slug=name), None


def _as_printed(wanted: PaperPlay) -> tuple[str, dict[str, Any]]:
    """Return the benchmark that follows a paper, and how its main table, or its grid, is played."""
    dataset = None if wanted.data is None else _dataset(wanted.paper, wanted.data)
    fields: dict[str, Any] = {"dataset": dataset}
    if wanted.paper == "ktdfin":
        main = "ktdfin-paper-v1"
        # Without data a synthetic stand-in of the paper's size: 300 members, 548 sessions.
        fields["dataset"] = dataset or "synthetic/csi300:7"
        fields["windows"] = [f"W{n}" for n in range(1, 11)] if wanted.grid else ["long"]
        fields["protocol"] = PRUNED_GRID if wanted.grid else _HEADLINE
        fields["agents"] = [*_RULES["ktdfin"], *trained_agents(fields["dataset"], fields["windows"])]
    else:
        main = "stockbench-paper-v1" if dataset is None else "stockbench-djia-paper-v1"
    if dataset is None:
        return main, fields
    snapshot, benchmark = load_dataset(dataset), benchmarks.get(main)
    if wanted.paper == "stockbench":
        # The paper's number of names, and its number of sessions where the data does not cover its days.
        market, days = benchmark.market, [str(day) for day in snapshot.sessions]
        if len(_symbols(snapshot)) >= NAMES:
            fields["universe"] = f"{market.universe}:{NAMES}"
        if not any(str(market.first) <= day <= str(market.last) for day in days):
            say(f"the data does not cover the paper's days: its last {LENGTH} sessions are played")
            fields |= {"first": days[-LENGTH:][0], "last": days[-1]}
    for need in data_needs(benchmark, snapshot):
        if need.status != "there":
            say(f"{need.what}: {need.found}; {need.changes}")
    return main, fields


def _symbols(snapshot: Snapshot) -> Sequence[str]:
    return snapshot.at(len(snapshot.sessions) - 1, "close").symbols


def _stockbench_grid(wanted: PaperPlay, main: str, fields: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the other studies of StockBench: each varies one thing, and is a run of its own."""
    benchmark = benchmarks.get(main)
    named = fields.get("dataset") or benchmark.dataset
    first = named if isinstance(named, str) else next(iter(named.values()), (benchmark.dataset,))[0]
    snapshot = load_dataset(first)
    of = benchmark.market.universe.split(":")[0]
    most = len(_symbols(snapshot))
    sizes = [size for size in SIZES if size != NAMES and size <= most]
    made = {f"size-{size}": {**fields, "universe": f"{of}:{size}"} for size in sizes}
    if len(sizes) < len(SIZES) - 1:
        say(f"the data has {most} names: larger universes are left out")
    known = {window.code for window in windows(snapshot, benchmark.convention)}
    found = []
    for paper, usual in (("down-2025", "down"), ("up-2025", "up")):
        code = next((code for code in (paper, usual) if code in known), None)
        if code != paper and snapshot.facts.kind != "synthetic":
            say(f"the data does not cover {paper}; " + (f"{code} is played instead" if code else "left out"))
        found += [code] if code else []
    if found:
        kept = {key: value for key, value in fields.items() if key not in ("first", "last", "windows")}
        made["regimes"] = {**kept, "windows": found}
    if wanted.models:
        left_out = [one for one in INPUTS if one != "all"]
        made["ablations"] = {**fields, "protocol": {**(fields.get("protocol") or {}), "inputs": left_out}}
    return made


def _dataset(paper: str, data: str) -> str:
    """Return a data set of the store; a folder is imported first, in the layout it plainly has."""
    path = Path(data).expanduser()
    if not path.exists() or (path / "manifest.json").is_file():  # a stored data set is named, or lies there
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
        how = f"tradeassay data import {path} --name NAME has options for it (--columns, --layout, --drop)"
        refused = f"{path} cannot be taken as it is: {error.message}"
        raise UserError(refused, hint=f"{how}; then --data NAME") from error
    say(f"imported {path} as '{name}'" + (f" (layout {layout})" if layout else ""))
    say(str(result.report))
    return name


def trained_agents(dataset: str, codes: list[str]) -> list[AgentSpec]:
    """Return the factor models that were trained on this data and have seen nothing of the windows."""
    snapshot = load_dataset(dataset)
    trained = [one for one in fitting.list_trained() if not one.recipe.shuffled]
    of_it = [one for one in trained if one.recipe.data_sha256 == snapshot.sha256]
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


# Runs of programs


def _programs(wanted: PaperPlay) -> Iterator[tuple[str, Any, Path | None]]:
    """Yield the runs of a paper about programs: a name, what is asked, and the recording it is answered from."""
    # Once for every way of asking that was recorded, with the tasks of its first recording.
    ways: dict[tuple[str, ...], Any] = {}
    kind = find_protocol(wanted.paper)
    for name, opened in wanted.recordings:
        spec: Any = recorded_spec(opened.folder)
        if wanted.sample is not None:
            spec = kind.sampled(spec, wanted.sample)
        way = tuple(getattr(spec, "settings", ()))
        ways[way] = ways.pop(way, spec)
        yield name, spec, opened.folder
    if not wanted.models:
        return
    seeds = tuple(range(wanted.seeds))
    if not ways:
        given = wanted.options
        request = PaperRequest(
            models=wanted.models,
            seeds=seeds,
            sample=wanted.sample,
            grid=wanted.grid,
            data=wanted.data,
            dataset=given["dataset"],
            symbols=tuple(opt.split_list(given["symbols"])),
            judge=given["judge"],
            reviewers=given["reviewers"],
            stored=partial(_dataset, wanted.paper),
            say=say,
        )
        yield "models", kind.paper_spec(request), None
    more = {"reviewers": wanted.options["reviewers"]} if wanted.paper == "systrade" else {}
    for way, spec in reversed(ways.items()):
        asked = msgspec.structs.replace(spec, models=wanted.models, seeds=seeds, **more)
        yield "-".join(("models", *way)), asked, None
