"""Run benchmarks and load recorded runs from Python.

``import tradeassay_bench`` is enough: names are loaded on first use.

::

    run = tradeassay_bench.run("daily-us-v1", agents=["momentum-12-1", "random"], seeds=3)
    run.scores, run.frames().nav, run.report()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import msgspec
import numpy as np

from tradeassay.api import Judge, several_names
from tradeassay.core.arguments import check_keys, path_from
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.measure import Convention
from tradeassay.core.registry import did_you_mean
from tradeassay.metrics import BootstrapConfig
from tradeassay.verdict.record import Assay, VerdictConfig
from tradeassay_bench import runs
from tradeassay_bench.agents import (
    agents as _agents,
    converses as _converses,
    parameters,
    plays_alone as _plays_alone,
)
from tradeassay_bench.agents.own_file import WITH_FILES, own_files
from tradeassay_bench.benchmarks import Benchmark, benchmarks as _benchmarks
from tradeassay_bench.benchmarks.code_protocol import refuse_other_kind
from tradeassay_bench.core.executors.task import ExecutorName
from tradeassay_bench.core.time import day_text, parse_day
from tradeassay_bench.runs import AgentSpec, Asking, Plan, RunSpec, load_spec
from tradeassay_bench.runs.play.progress import ProgressChoice
from tradeassay_bench.runs.spec.episode import ModelInfo, known_models
from tradeassay_bench.runs.spec.run_spec import (
    ParamValue,
    datasets_for,
    model_agent,
    spec_from,
    work_sha256,
)
from tradeassay_bench.runs.store.folder import DEFAULT_PARENT
from tradeassay_bench.runs.store.run import folder_of

MOST_SEEDS = 10_000
"""Maximum number of seeds in one run. A larger number is treated as a typing error."""

AgentLike = str | AgentSpec | Mapping[str, Any]
"""An agent: a name as on the command line (``random:k=3``, ``./mine.py:Mine``), an
:class:`AgentSpec`, or a mapping of its fields."""


class SpecFields(TypedDict, total=False):
    """Keywords that describe a run. See :func:`make_spec`."""

    benchmarks: str | Sequence[str]
    agents: Sequence[AgentLike] | AgentLike | None
    dataset: str | Path | Sequence[str] | Mapping[str, Sequence[str]] | None
    seeds: int | Iterable[int]
    first: str | date | None
    last: str | date | None
    name: str | None
    convention: Convention | None
    bootstrap: BootstrapConfig | None
    models: str | Sequence[str] | None
    protocol: Mapping[str, ParamValue | Sequence[ParamValue]] | None
    windows: str | Sequence[str] | None
    secret: str | None
    index: str | None
    universe: str | None


class _Displays:
    """Methods that print a recorded run or write its page."""

    def report(self: runs.Run | runs.CodeRun, path: Path | str | None = None) -> Path:  # type: ignore[misc]  # a mixin
        """Write the self-contained HTML page and return its path.

        ``path`` defaults to ``report.html`` in the run's folder.
        """
        from tradeassay_bench.report.run_html import write_html

        return write_html(self, None if path is None else path_from("path", path))

    def show(self: runs.Run | runs.CodeRun) -> None:  # type: ignore[misc]  # a mixin
        """Print the leaderboard."""
        from tradeassay_bench.report import print_leaderboard

        print_leaderboard(self)

    def _repr_html_(self: runs.Run | runs.CodeRun) -> str:  # type: ignore[misc]  # a mixin
        """Return the leaderboards as HTML, for a notebook."""
        from tradeassay_bench.report.run_notebook import run_piece

        return run_piece(self)


class Run(_Displays, runs.Run):
    """A recorded trading run, with methods that print it or write its page."""


class CodeRun(_Displays, runs.CodeRun):
    """A recorded run of programs, with methods that print it or write its page."""


def judge_of_run(source: object) -> Judge | None:
    """Return a function that judges a recorded run, or None if ``source`` is not a run.

    ``source`` is a run, its folder or its name. Raises :class:`UserError` for a run of programs.
    """
    if isinstance(source, str | Path):
        folder = _run_or_missing_file(source)
        if not Path(folder).is_dir():
            return None
        source = load_run(folder)
        if not isinstance(source, runs.Run):
            hint = "its page shows the results: run.report()"
            raise UserError(f"{folder} contains programs, not returns", hint=hint)
    if not isinstance(source, runs.Run):
        return None
    run = source

    def judge(config: VerdictConfig, agents: Sequence[str], mask_price: object) -> Assay:
        from tradeassay_bench.examine.judge import assay_run

        others = _several_runs("mask_price", mask_price)
        return assay_run(run, config, agents=agents, mask_price=others)

    return judge


def _several_runs(what: str, given: object) -> list[runs.Run]:
    """Return a list of runs from one run or several. None gives an empty list.

    Each run may be a run, its folder or its name.
    """
    if given is None:
        return []
    listed = [given] if isinstance(given, str | Path | runs.Run) else given
    hint = "give a run, its folder or its name, or a list of them"
    if not isinstance(listed, Iterable):
        raise UserError(f"expected a run as {what}, got {given!r:.60}", hint=hint)
    opened: list[runs.Run] = []
    for one in listed:
        if isinstance(one, str | Path):
            one = load_run(_run_or_missing_file(one))
        if not isinstance(one, runs.Run):
            raise UserError(f"expected a run that trades as {what}, got {one!r:.60}", hint=hint)
        opened.append(one)
    return opened


def _run_or_missing_file(source: str | Path) -> str | Path:
    """Return the folder of the run named ``source``, or ``source`` itself if it can only be a file.

    Raises :class:`UserError` with similar names for a word that is neither.
    """
    folder = folder_of(source)
    if folder.is_dir() or Path(source).suffix:
        return folder
    names = sorted(path.parent.name for path in DEFAULT_PARENT.glob("*/manifest.json"))
    if names:
        listing = f"runs in {DEFAULT_PARENT}: {', '.join(names)}"
    else:
        listing = f"there are no runs in {DEFAULT_PARENT}"
    hint = did_you_mean(str(source), names, listing)
    raise UserError(f"no run and no table '{source}'", hint=hint)


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A registered agent: its name, a one-line summary, and the defaults of its parameters."""

    name: str
    summary: str
    params: dict[str, Any]


def make_spec(*names: str | Sequence[str], **fields: Unpack[SpecFields]) -> RunSpec:
    """Return the spec of a run.

    Benchmarks are given by name, or as ``benchmarks=``. Keywords describe the rest:

    - ``agents`` defaults to every registered rule, or to no rule if ``models`` are given
      (``openai/gpt-5``, ``scripted/sensible`` ...).
    - ``protocol`` changes the conversation with models (``mask``, ``mode`` ...). A list of values
      is a dimension of the grid. Named ``windows`` (``W4``) are another dimension.
    - ``dataset`` replaces the benchmarks' data. It is one name, several, or a mapping from
      benchmark to names.
    - ``seeds`` is a number of seeds or a list of seeds.
    - ``first`` and ``last`` are the first and last session. They default to the benchmarks' own
      days.
    - ``index`` is the index with which results are compared. ``universe`` is the set of names that
      may be bought. Both are names in the data set.
    - ``secret`` is the secret of a run to be repeated.
    - ``name`` is by default derived from the content, including agents' files, so that the same
      description always means the same run.

    Raises :class:`UserError` with similar names for any unknown name.
    """
    check_keys(fields, [*SpecFields.__annotations__], "a run", "keyword")
    ids = _trading_benchmarks((*names, fields.get("benchmarks")))
    benchmarks = [_benchmarks.get(name) for name in ids]
    first, last = day_text(fields.get("first")), day_text(fields.get("last"))
    if (first is None) != (last is None):
        first, last = _complete_window(benchmarks, first, last)
    models = several_names("models", fields.get("models"))
    raw: dict[str, Any] = {
        "name": fields.get("name") or "unnamed",
        "benchmarks": list(ids),
        "agents": [_plain(agent) for agent in _agents_of(fields.get("agents"), models)],
        "seeds": _seeds(fields.get("seeds", 1)),
        "convention": fields.get("convention") or benchmarks[0].convention,
    }
    dataset, bootstrap = fields.get("dataset"), fields.get("bootstrap")
    if dataset is not None:
        raw["datasets"] = datasets_for(ids, str(dataset) if isinstance(dataset, Path) else dataset)
    if fields.get("protocol"):
        raw["protocol"] = _settings(fields.get("protocol"))
    if fields.get("windows"):
        raw["windows"] = several_names("windows", fields.get("windows"))
    for name in ("secret", "index", "universe"):
        if fields.get(name):
            raw[name] = fields[name]
    if first is not None:
        raw["window"] = {"first": first, "last": last}
    if bootstrap is not None:
        raw["bootstrap"] = msgspec.to_builtins(bootstrap)
    spec = spec_from(raw, where="run")
    if fields.get("name"):
        return spec
    files = [
        own_files(agent.name, agent.params) for agent in spec.agents if agent.name in WITH_FILES
    ]
    content = sha256_of([work_sha256(spec), files]) if any(files) else work_sha256(spec)
    return msgspec.structs.replace(spec, name=f"{ids[0]}-{content[:8]}")


def _settings(protocol: object) -> dict[str, Any]:
    """Return protocol settings with each list of values as a tuple."""
    if not isinstance(protocol, Mapping):
        hint = "write e.g. protocol={'mask': 'blinded'}"
        raise UserError(f"expected protocol settings, got {protocol!r:.60}", hint=hint)
    settings: dict[str, Any] = {}
    for key, value in protocol.items():
        several = isinstance(value, Iterable) and not isinstance(value, str)
        settings[key] = tuple(value) if several else value
    return settings


def run(
    target: RunSpec | str | Path | Sequence[str] = (),
    *,
    folder: Path | str | None = None,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "auto",
    home: Path | str | None = None,
    asking: Asking | None = None,
    **fields: Unpack[SpecFields],
) -> Run:
    """Return a run of a spec, a spec file (``.toml``, ``.json``), or benchmarks with agents.

    A run that was started earlier is continued.

    ``folder`` defaults to ``runs/<name>``, and ``workers`` to the number of cores. ``executor`` is
    ``local``, ``inline`` or ``ray``. None of these options changes a byte of the result. ``asking``
    contains the options for models: the number of concurrent episodes, a spending cap in dollars,
    or recorded answers only. The other keywords describe the run as in :func:`make_spec`. Failed
    episodes are recorded, and the remaining episodes continue: see ``run.failed``.
    """
    recorded = runs.run(
        _spec(target, fields),
        folder,
        executor=executor,
        workers=workers,
        progress=progress,
        home=home,
        asking=asking,
    )
    return Run.load(recorded.folder, home=home)


def resume(
    folder: Path | str,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "auto",
    home: Path | str | None = None,
    retry_failed: bool = False,
    asking: Asking | None = None,
) -> Run | CodeRun:
    """Continue a stopped run and return it.

    The result has the same bytes as an uninterrupted run.
    """
    options: Any = {
        "executor": executor,
        "workers": workers,
        "progress": progress,
        "asking": asking,
    }
    recorded = runs.resume(folder, home=home, retry_failed=retry_failed, **options)
    return load_run(recorded.folder, home=home)


def load_run(folder: Path | str, *, home: Path | str | None = None) -> Run | CodeRun:
    """Return a recorded run, given its folder or name.

    A trading run is a ``Run``, a run of programs a ``CodeRun``.
    """
    recorded = runs.load_run(folder)
    if isinstance(recorded, runs.CodeRun):
        return CodeRun(recorded.folder, recorded.manifest)
    return Run(recorded.folder, recorded.manifest, home=None if home is None else str(home))


def plan(
    target: RunSpec | str | Path | Sequence[str] = (),
    *,
    workers: int | None = None,
    home: Path | str | None = None,
    asking: Asking | None = None,
    **fields: Unpack[SpecFields],
) -> Plan:
    """Return an estimate of a run's calls, tokens, cost and time before it starts.

    Takes the same description as :func:`run`.
    """
    return runs.plan(_spec(target, fields), workers=workers, home=home, asking=asking)


def list_agents() -> tuple[AgentInfo, ...]:
    """Return every registered agent."""
    return tuple(
        AgentInfo(
            name=name,
            summary=cls.summary,
            params={parameter.name: parameter.default for parameter in parameters(name)},
        )
        for name, cls in _agents.items()
    )


def list_models() -> tuple[ModelInfo, ...]:
    """Return the models in the catalogue, with prices and knowledge cutoffs."""
    return known_models()


def list_benchmarks() -> tuple[Benchmark, ...]:
    """Return every registered benchmark."""
    return tuple(benchmark for _, benchmark in _benchmarks.items())


def _spec(target: RunSpec | str | Path | Sequence[str], fields: SpecFields) -> RunSpec:
    """Return the spec for ``target``, which is a spec, its file, or benchmark names."""
    if not isinstance(target, RunSpec | Path) and not (
        isinstance(target, str) and target.endswith((".toml", ".json"))
    ):
        return make_spec(target, **fields)
    if set(fields) - {"name"}:
        extra = min(set(fields) - {"name"})
        raise UserError(
            f"'{extra}' is not valid with a spec, which already describes the run",
            hint="change the spec",
        )
    name = fields.get("name")
    if not isinstance(target, RunSpec):
        return load_spec(target, name=name)
    return target if name is None else msgspec.structs.replace(target, name=name)


def _trading_benchmarks(parts: Iterable[object]) -> tuple[str, ...]:
    """Return the full names of trading benchmarks. Each part is one name or several names."""
    names: list[str] = []
    for part in parts:
        names += several_names("benchmarks", part)
    if not names:
        raise UserError("no benchmark is given", hint="tradeassay_bench.list_benchmarks() has them")
    for name in names:
        refuse_other_kind(name, trades=True)
    return tuple(map(_benchmarks.full_name, names))


def _complete_window(
    benchmarks: Sequence[Benchmark], first: str | None, last: str | None
) -> tuple[str | None, str | None]:
    """Return a window whose missing end is filled from the benchmarks.

    Raises :class:`UserError` if the benchmarks have different days at that end.
    """
    end: Literal["first", "last"] = "first" if first is None else "last"
    days = {getattr(benchmark.market, end) for benchmark in benchmarks}
    if len(days) != 1:
        raise UserError(f"the benchmarks have different '{end}' days", hint=f"give '{end}' too")
    day: str = days.pop()
    ids = ", ".join(benchmark.id for benchmark in benchmarks)
    if first is not None and parse_day(first) > parse_day(day):
        raise UserError(
            f"{first} is after {day}, the last session of {ids}",
            hint="choose an earlier first=",
        )
    if last is not None and parse_day(last) < parse_day(day):
        raise UserError(
            f"{last} is before {day}, the first session of {ids}", hint="choose a later last="
        )
    return (day, last) if first is None else (first, day)


def _agents_of(agents: Any, models: Sequence[str]) -> list[Any]:
    """Return the agents of a run. Without agents and models, all rule-based agents are used."""
    from_models: list[Any] = [model_agent(name) for name in models]
    if agents is None:
        return from_models or [
            name for name in _agents.names() if not _converses(name) and _plays_alone(name)
        ]
    several = isinstance(agents, Iterable) and not isinstance(agents, str | Mapping)
    return [*(agents if several else [agents]), *from_models]


def _plain(agent: object) -> Any:
    """Return an agent as a name or a mapping. Raises :class:`UserError` for any other object."""
    if not isinstance(agent, str | AgentSpec | Mapping):
        hint = "give its name or './file.py:Class'; @agents.register(NAME) gives a class a name"
        raise UserError(f"expected an agent, got {agent!r:.80}", hint=hint)
    return msgspec.to_builtins(agent) if isinstance(agent, AgentSpec) else agent


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    """Return a list of seeds. A number n means the seeds 0 to n - 1."""
    if isinstance(seeds, int | np.integer):
        if isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
            raise UserError(
                f"{seeds} is not a valid number of seeds", hint=f"use 1 to {MOST_SEEDS:,}"
            )
        return list(range(seeds))
    if not isinstance(seeds, Iterable):
        raise UserError(
            f"{seeds!r} is not a valid number of seeds",
            hint="give a number of seeds, or a list of seeds",
        )
    return [seed.item() if isinstance(seed, np.generic) else seed for seed in seeds]
