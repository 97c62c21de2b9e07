"""Run the settings of a paper about trading or about programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import msgspec

from tradeassay.cli._output import say
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench import runs
from tradeassay_bench.agents.factor_models import fitting
from tradeassay_bench.api import make_spec
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.benchmark import find_window
from tradeassay_bench.benchmarks.code_protocol import PaperRequest, find_protocol
from tradeassay_bench.benchmarks.needs import data_needs
from tradeassay_bench.benchmarks.stockbench import INPUTS, SIZES
from tradeassay_bench.benchmarks.stockbench.specs import LENGTH, NAMES, windows
from tradeassay_bench.cli import _run_options as run_opt
from tradeassay_bench.data import Snapshot, list_datasets, load_dataset
from tradeassay_bench.data.datasets import import_files
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.examine.probe import ProbeConfig, ProbeReport, probe_mask
from tradeassay_bench.llm import RecordingStore
from tradeassay_bench.report.verifying import PaperRecord
from tradeassay_bench.runs import AgentSpec, Asking
from tradeassay_bench.runs.seasons import PaperPlay
from tradeassay_bench.runs.spec.episode import CapReached
from tradeassay_bench.runs.store.archive import recorded_spec
from tradeassay_bench.runs.store.folder import RunFolder

_GOLD = {"quantcode": "coder-gold", "systrade": "builder-gold"}
_RULES = {
    "stockbench": ("equal-weight", "momentum-weighted", "sector-equal"),
    "ktdfin": ("momentum-12-1",),
}
PRUNED_GRID: dict[str, tuple[str, ...]] = {
    "mask": ("bright", "blinded"),
    "mode": ("memory-only", "fixed-candidate", "open-research"),
}
"""The paper's most informative settings: the two extreme masks in all three modes."""
_HEADLINE = {"mask": "blinded", "mode": "open-research"}


def play_runs(wanted: PaperPlay, asking: Asking) -> tuple[PaperRecord, bool]:
    """Run all runs of a paper. Return their record, and whether an episode failed.

    One spending cap covers all runs, including earlier calls of the same command.
    """
    if wanted.paper in _GOLD and not wanted.models and not wanted.recordings:
        hint = f"-m scripted/{_GOLD[wanted.paper]}, or --recordings recorded/MODEL"
        raise UserError(
            f"{wanted.paper} is about programs written by models: name a model", hint=hint
        )
    planned = list(_programs(wanted) if wanted.paper in _GOLD else _trading(wanted))
    paying = [
        RunFolder(wanted.folder / name).models
        for name, _, recordings in planned
        if recordings is None
    ]
    made = []
    for name, spec, recordings in planned:
        how = _with_spent(asking, paying, RunFolder(wanted.folder / name).models)
        if recordings is not None:
            how = msgspec.structs.replace(asking, recordings=recordings, replay=True)
        elif asking.replay and asking.recordings is None:
            # Without recordings only scripted models can be replayed.
            for model in (name for name in wanted.models if not name.startswith("scripted/")):
                raise UserError(
                    f"--replay needs recorded answers, and {model} has no recording",
                    hint="leave it out",
                )
            how = msgspec.structs.replace(asking, replay=False)
        done = runs.run(
            spec, wanted.folder / name, workers=wanted.workers, progress="auto", asking=how
        )
        say(f"finished {name}")
        made.append(runs.load_run(done.folder))
    reasons = chain.from_iterable(one.failed.values() for one in made)
    if any(reason.startswith("over_budget") for reason in reasons):
        hint = "continue a run with: tradeassay resume RUN --retry-failed --max-usd DOLLARS"
        say(f"the spending cap is reached: some episodes are incomplete ({hint})")
    probe, failed = None, any(one.failed for one in made)
    if wanted.paper == "ktdfin" and wanted.grid:
        say("querying the attackers of the mask")
        answers = wanted.folder / "probe"
        how = msgspec.structs.replace(_with_spent(asking, paying, answers), recordings=answers)
        try:
            probe = _probe(wanted, cast("runs.Run", made[0]), how)
        except CapReached as reached:
            say(f"{reached.message}; only programs attack the mask (set a larger --max-usd)")
            probe, failed = _probe(replace(wanted, models=()), cast("runs.Run", made[0]), how), True
    names = tuple(one.folder.name for one in made)
    record = PaperRecord(runs=names, attribution=bool(wanted.options["attribution"]), probe=probe)
    return record, failed


def _probe(wanted: PaperPlay, played: runs.Run, asking: Asking) -> ProbeReport:
    """Return the results of attacks on the mask by programs and by the named models."""
    first = played.episodes[0]
    attackers = ("levels", "grid", *(() if asking.replay else wanted.models))
    config = ProbeConfig(probes=wanted.options["probes"])
    return probe_mask(
        played.manifest.benchmark(first),
        attackers,
        dataset=first.dataset,
        config=config,
        asking=asking,
    )


def _with_spent(asking: Asking, paying: Sequence[Path], own: Path) -> Asking:
    """Return the options for models with the spending of all other parts of the paper.

    ``paying`` contains the folders of the parts with paid models, ``own`` the folder of this part.
    """
    others = [folder for folder in paying if folder != own]
    spent = math.fsum(RecordingStore(folder).spent_usd() for folder in others)
    return msgspec.structs.replace(asking, spent_usd=spent)


# Trading runs


def _trading(wanted: PaperPlay) -> Iterator[tuple[str, Any, Path | None]]:
    """Yield the runs of a trading paper: name, spec, and the recording with the answers."""
    like: Any = None
    for name, opened in wanted.recordings:
        spec: Any = recorded_spec(opened.folder)
        if wanted.paper == "ktdfin" and not wanted.grid:
            spec = msgspec.structs.replace(spec, protocol={**spec.protocol, **_HEADLINE})
        like = like or spec
        yield name, msgspec.structs.replace(spec, name=name), opened.folder
    rules: list[str | AgentSpec] = [*_RULES[wanted.paper]]
    if wanted.paper == "stockbench":
        rules.append(AgentSpec(name="sector-equal", params={"best": 3, "every": 21}))
    fields: dict[str, Any] = {"models": wanted.models, "seeds": wanted.seeds, "agents": rules}
    if like is not None:
        # The same settings as the recordings, so that all agents are in one table.
        main = like.benchmarks[0]
        fields |= {
            "windows": like.windows,
            "dataset": dict(like.datasets),
            "protocol": dict(like.protocol),
        }
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
        yield name, make_spec(main, **known, name=name), None


def _as_printed(wanted: PaperPlay) -> tuple[str, dict[str, Any]]:
    """Return the benchmark with a paper's rules, and the settings of its main table or grid.

    If the data lacks parts that the benchmark needs, messages describe the effects.
    """
    dataset = None if wanted.data is None else _dataset(wanted.paper, wanted.data)
    fields: dict[str, Any] = {"dataset": dataset}
    if wanted.paper == "ktdfin":
        main = "ktdfin-paper-v1"
        # Without data, use a synthetic world of the paper's size: 300 members, 548 sessions.
        fields["dataset"] = dataset or "synthetic/csi300:7"
        fields["windows"] = [f"W{n}" for n in range(1, 11)] if wanted.grid else ["long"]
        fields["protocol"] = PRUNED_GRID if wanted.grid else _HEADLINE
        fields["agents"] = [
            *_RULES["ktdfin"],
            *trained_agents(fields["dataset"], fields["windows"]),
        ]
    else:
        main = "stockbench-paper-v1" if dataset is None else "stockbench-djia-paper-v1"
    if dataset is None:
        return main, fields
    snapshot, benchmark = load_dataset(dataset), benchmarks.get(main)
    if wanted.paper == "stockbench":
        # Use the paper's number of names. If the data does not cover the paper's days, use its
        # number of sessions.
        market, days = benchmark.market, [str(day) for day in snapshot.sessions]
        if len(_symbols(snapshot)) >= NAMES:
            fields["universe"] = f"{market.universe}:{NAMES}"
        if not any(str(market.first) <= day <= str(market.last) for day in days):
            say(f"the data does not cover the paper's days: using its last {LENGTH} sessions")
            fields |= {"first": days[-LENGTH:][0], "last": days[-1]}
    for need in data_needs(benchmark, snapshot):
        if need.status != "there":
            say(f"{need.what}: {need.found}; {need.changes}")
    return main, fields


def _symbols(snapshot: Snapshot) -> Sequence[str]:
    return snapshot.at(len(snapshot.sessions) - 1, "close").symbols


def _stockbench_grid(
    wanted: PaperPlay, main: str, fields: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the settings of StockBench's other studies by run name.

    Each run varies one setting.
    """
    benchmark = benchmarks.get(main)
    named = fields.get("dataset") or benchmark.dataset
    first = named if isinstance(named, str) else next(iter(named.values()), (benchmark.dataset,))[0]
    snapshot = load_dataset(first)
    of = benchmark.market.universe.split(":")[0]
    most = len(_symbols(snapshot))
    sizes = [size for size in SIZES if size != NAMES and size <= most]
    made = {f"size-{size}": {**fields, "universe": f"{of}:{size}"} for size in sizes}
    if len(sizes) < len(SIZES) - 1:
        say(f"the data has {most} names: skipping larger universes")
    known = {window.code for window in windows(snapshot, benchmark.convention)}
    found = []
    for paper, usual in (("down-2025", "down"), ("up-2025", "up")):
        code = next((code for code in (paper, usual) if code in known), None)
        if code != paper and snapshot.facts.kind != "synthetic":
            say(
                f"the data does not cover {paper}; "
                + (f"using {code} instead" if code else "left out")
            )
        found += [code] if code else []
    if found:
        kept = {
            key: value for key, value in fields.items() if key not in ("first", "last", "windows")
        }
        made["regimes"] = {**kept, "windows": found}
    if wanted.models:
        left_out = [one for one in INPUTS if one != "all"]
        made["ablations"] = {
            **fields,
            "protocol": {**(fields.get("protocol") or {}), "inputs": left_out},
        }
    return made


def _dataset(paper: str, data: str) -> str:
    """Return the name of a stored data set. A folder is first imported in its detected layout."""
    path = Path(data).expanduser()
    # The name or the folder of a stored data set.
    if not path.exists() or (path / "manifest.json").is_file():
        return data
    from tradeassay_bench.data.tables.layouts import guess_layout, unpacked

    layout = guess_layout(path)
    name = f"{paper}-{path.resolve().name}".lower().replace("_", "-").replace(" ", "-")
    if any(info.name == name and info.problem is None for info in list_datasets()):
        say(f"data set '{name}' is already stored; remove it from the store to import it again")
        return name
    config = FilesConfig(path=str(path), name=name)
    try:
        if layout is None:
            result = import_files(config, allow_faults=("gap without corporate action",))
        else:
            with unpacked(layout, path, config) as made:
                result = import_files(made, allow_faults=True)
    except (UserError, DataError) as error:
        # The importer's hint names options of another command.
        command = f"tradeassay data import {path} --name NAME"
        hint = (
            f"import it with: {command} (options --columns, --layout, --drop); then use --data NAME"
        )
        raise UserError(f"{path} cannot be imported: {error.message}", hint=hint) from error
    say(f"imported {path} as '{name}'" + (f" (layout {layout})" if layout else ""))
    say(str(result.report))
    return name


def trained_agents(dataset: str, codes: list[str]) -> list[AgentSpec]:
    """Return the factor models that were trained on this data before the windows begin.

    Models that used later sessions are skipped with a message.
    """
    snapshot = load_dataset(dataset)
    trained = [one for one in fitting.list_trained() if not one.recipe.shuffled]
    of_it = [one for one in trained if one.recipe.data_sha256 == snapshot.sha256]
    first = min(find_window("ktdfin", code, snapshot, "paper").first for code in codes)
    fit = [one for one in of_it if one.seen_until < first]
    if len(fit) < len(of_it):
        say(
            f"skipping {len(of_it) - len(fit)} factor model(s) trained on sessions of {first} or "
            "later"
        )
    if not fit:
        say(
            f"no factor model was trained on sessions before {first} of this data: tradeassay "
            "baselines"
        )
    named: dict[str, AgentSpec] = {}
    for one in fit:
        label = (
            one.recipe.model
            if one.recipe.size == "full"
            else f"{one.recipe.model}-{one.recipe.size}"
        )
        label = label if label not in named else f"{label}-{one.key[:6]}"
        named[label] = AgentSpec(
            name="factor-model", params={"key": one.key, "model": one.recipe.model}, label=label
        )
    return list(named.values())


# Runs of programs


def _programs(wanted: PaperPlay) -> Iterator[tuple[str, Any, Path | None]]:
    """Yield the runs of a paper about programs: name, spec, and the recording with the answers."""
    # One spec for each set of recorded settings, with the tasks of its first recording.
    specs: dict[tuple[str, ...], Any] = {}
    kind = find_protocol(wanted.paper)
    for name, opened in wanted.recordings:
        spec: Any = recorded_spec(opened.folder)
        if wanted.sample is not None:
            spec = kind.sampled(spec, wanted.sample)
        settings = tuple(getattr(spec, "settings", ()))
        specs[settings] = specs.pop(settings, spec)
        yield name, spec, opened.folder
    if not wanted.models:
        return
    seeds = tuple(range(wanted.seeds))
    if not specs:
        options = wanted.options
        request = PaperRequest(
            models=wanted.models,
            seeds=seeds,
            sample=wanted.sample,
            grid=wanted.grid,
            data=wanted.data,
            dataset=options["dataset"],
            symbols=tuple(run_opt.split_list(options["symbols"])),
            judge=options["judge"],
            reviewers=options["reviewers"],
            stored=partial(_dataset, wanted.paper),
            say=say,
        )
        yield "models", kind.paper_spec(request), None
    more = {"reviewers": wanted.options["reviewers"]} if wanted.paper == "systrade" else {}
    for settings, spec in reversed(specs.items()):
        own_spec = msgspec.structs.replace(spec, models=wanted.models, seeds=seeds, **more)
        yield "-".join(("models", *settings)), own_spec, None
