"""Everything the command line does, as Python calls. ``import tradeassay`` is enough: names are loaded on use.

(``tradeassay`` also offers ``compare`` and ``verify`` of :mod:`tradeassay.runs`, and :mod:`tradeassay.data`.)

::

    run = tradeassay.run("daily-us-v1", agents=["momentum-12-1", "random"], seeds=3)
    run.scores, run.frames().nav, run.report()
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

import msgspec
import numpy as np

from tradeassay import runs
from tradeassay.agents import agents as _agents, converses as _converses, parameters, plays_alone as _plays_alone
from tradeassay.agents.own_file import WITH_FILES, own_files
from tradeassay.assay.verdict.own_account import OwnAccount
from tradeassay.assay.verdict.record import Assay, Share, Verdict, VerdictConfig
from tradeassay.benchmarks import Benchmark, benchmarks as _benchmarks
from tradeassay.benchmarks.code_protocol import refuse_other_kind
from tradeassay.core.arguments import instance_of, path_from, refuse_unknown, typed
from tradeassay.core.errors import UserError
from tradeassay.core.executors.task import ExecutorName
from tradeassay.core.hashing import sha256_of
from tradeassay.core.measure import Convention, Measure
from tradeassay.core.registry import did_you_mean
from tradeassay.core.time import day_text, parse_day
from tradeassay.data.tables.account import TableReading
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs import AgentSpec, Asking, Plan, RunSpec, load_spec
from tradeassay.runs.play.progress import ProgressChoice
from tradeassay.runs.spec.episode import ModelInfo, known_models
from tradeassay.runs.spec.run_spec import ParamValue, datasets_for, model_agent, spec_from, work_sha256
from tradeassay.runs.store.folder import DEFAULT_PARENT
from tradeassay.runs.store.frames import Kind as FrameKind, make_frame
from tradeassay.runs.store.run import folder_of

MOST_SEEDS = 10_000
"""More seeds than this in one run is a slip of the keyboard, not a plan."""

AgentLike = str | AgentSpec | Mapping[str, Any]
"""An agent as the command line takes it (a name, ``random:k=3``, ``./mine.py:Mine``), its spec, or its fields."""


class SpecFields(TypedDict, total=False):
    """How a run can be described by keywords; see :func:`make_spec`."""

    benchmarks: str | Sequence[str]
    agents: Sequence[AgentLike] | AgentLike | None
    dataset: str | Path | Sequence[str] | Mapping[str, Sequence[str]] | None
    seeds: int | Iterable[int]
    first: str | date | None
    last: str | date | None
    slug: str | None
    convention: Convention | None
    bootstrap: BootstrapConfig | None
    models: str | Sequence[str] | None
    protocol: Mapping[str, ParamValue | Sequence[ParamValue]] | None
    windows: str | Sequence[str] | None
    secret: str | None
    index: str | None
    universe: str | None


class _Shown:
    """Lets a recorded run show itself."""

    def report(self: runs.Run | runs.CodeRun, path: Path | str | None = None) -> Path:  # type: ignore[misc]  # a mixin
        """Write the self-contained HTML page (default: ``report.html`` in the folder) and return its path."""
        from tradeassay.report import write_html

        return write_html(self, None if path is None else path_from("path", path))

    def show(self: runs.Run | runs.CodeRun) -> None:  # type: ignore[misc]  # a mixin
        """Print the leaderboard."""
        from tradeassay.report import print_leaderboard

        print_leaderboard(self)

    def _repr_html_(self: runs.Run | runs.CodeRun) -> str:  # type: ignore[misc]  # a mixin
        """Return what a notebook shows: the leaderboards."""
        from tradeassay.report.notebook import run_piece

        return run_piece(self)


class Run(_Shown, runs.Run):
    """A recorded run that trades and can also show itself."""


class CodeRun(_Shown, runs.CodeRun):
    """A recorded run of programs that can also show itself."""


class ShownAssay(Assay, frozen=True, kw_only=True):
    """An assay that can show itself: in a notebook, on a terminal, as a page, as a table."""

    def __repr__(self) -> str:
        """Return one line: what was judged, and how many accounts."""
        return f"<ShownAssay {self.title!r}: {len(self.agents)} judged>"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the one account that was judged; raises :class:`UserError` where there are several."""
        if len(self.agents) != 1:
            names = ", ".join(dict.fromkeys(one.agent for one in self.agents))
            raise UserError("several accounts were judged", hint=f"choose one with .agent(NAME): {names}")
        return self.agents[0].verdict

    def frame(self, kind: FrameKind = "pandas") -> Any:
        """Return one row per account: kind of verdict, sentence, return, its parts, and the yearly edge with its
        interval at the level of the assay. ``kind`` may be polars."""
        rows = [
            (
                *(one.cell, one.agent, one.verdict.kind, one.verdict.firm, one.verdict.sentence, one.total.value),
                *(None if name not in one.parts else one.parts[name].value for name in _PARTS),
                *((None, None, None) if one.edge is None else _ends(one.edge.tested)),
            )
            for one in self.agents
        ]
        words = ("cell", "agent", "verdict")
        schema = {**dict.fromkeys(words, "str"), "firm": "bool", "sentence": "str", "total": "float"}
        return make_frame(kind, {**schema, **dict.fromkeys((*_PARTS, *_EDGE), "float")}, rows)

    def report(self, path: Path | str) -> Path:
        """Write the self-contained HTML page and return its path."""
        from tradeassay.report import write_html

        return write_html(self, path_from("path", path))

    def show(self) -> None:
        """Print the verdicts."""
        from tradeassay.report import print_verdicts

        print_verdicts(self)

    def _repr_html_(self) -> str:
        from tradeassay.report.notebook import assay_piece

        return assay_piece(self)


_PARTS = ("common", "style", "selection", "trading")
_EDGE = ("edge_per_year", "edge_per_year_low", "edge_per_year_high")


def _ends(measure: Measure) -> tuple[float | None, float | None, float | None]:
    """Return a measure's value and the two ends of its interval."""
    return measure.value, measure.low, measure.high


class AssayFields(TypedDict, total=False):
    """How an account's own table is read and judged; see :class:`~tradeassay.assay.verdict.OwnAccount`, and for
    ``dividends`` and ``interest`` :class:`~tradeassay.assay.verdict.VerdictConfig`."""

    dividends: Share
    interest: Share
    weights: str | None
    dataset: str | None
    universe: str
    between: Literal["cash", "hold"] | None
    benchmark: str | None
    names: int | None
    turnover: float | None
    title: str | None
    prices: str | None
    cash_at_start: float | None
    until: str | None
    symbol: str | None


def assay(
    what: runs.Run | Path | str | object,
    *,
    against: object = None,
    reading: TableReading | Mapping[str, str] | None = None,
    trials: int = 1,
    portfolios: int = 10_000,
    agents: Sequence[str] = (),
    watched: bool = False,
    **own: Unpack[AssayFields],
) -> ShownAssay:
    """Say what a result is made of: skill, luck, market, style, a leaked future, or memory.

    ``what`` is a recorded run, its folder or name, an account's own returns or value (a pandas or polars table, or
    a CSV or Parquet file), or a file with its trades. Of a run, ``agents`` chooses some.

    With a table go
    ``against``: its market, as a table, a file, a column, or by name (``sp500``, ``nasdaq``, ``us-market``, until
    2018);
    ``reading``: what cannot be told from the table (:class:`TableReading`, or a dict of its unit, dates, column);
    ``weights``: a file of what was held; ``dataset``, ``universe``: prices of these names, which measure style;
    ``between``: what sessions without weights mean, ``cash`` or ``hold``;
    ``benchmark``, ``names``, ``turnover``: rules and trades of the random portfolios it is placed among;
    ``dividends``: the most that the market's returns leave out a year; ``interest``: the most that cash earned;
    ``prices``, ``cash_at_start``, ``until``, ``symbol``: for a log of trades (:class:`OwnAccount`);
    ``title``: what it is called.

    ``trials`` is how many strategies were tried before this one was shown, ``portfolios`` how many random ones
    are drawn, ``watched`` that it is looked at again and again while it grows. The answer has
    ``.verdict.sentence``, ``.show()``, ``.report(path)`` and ``.frame()``. Raises :class:`UserError` for what
    cannot be judged.
    """
    from tradeassay.assay.judge import assay as assay_of

    asked = {"trials": trials, "portfolios": portfolios, "watched": watched}
    config = VerdictConfig(**_typed(asked, VerdictConfig))
    refuse_unknown(own, [*inspect.signature(assay).parameters], "an assay", "keyword")
    keywords = _typed(own, AssayFields)
    if isinstance(what, str | Path) and not Path(what).is_file():
        what = _run_or_missing_file(what)
    if isinstance(what, str | Path) and Path(what).is_dir():
        loaded = load_run(what)
        if not isinstance(loaded, runs.Run):
            raise UserError(f"{what} holds programs, not returns", hint="its page says what they do: run.report()")
        what = loaded
    if isinstance(what, runs.Run):
        unused = [name for name, value in {**keywords, "against": against}.items() if value is not None]
        if unused:
            raise UserError(f"'{unused[0]}' goes with a table, not with a run", hint="leave it out")
        made = assay_of(what, config, agents=_several("agents", agents))
    else:
        table = str(what) if isinstance(what, Path) else what
        other = str(against) if isinstance(against, Path) else against
        if not isinstance(reading, TableReading):
            described = instance_of("reading", reading or {}, Mapping, "write e.g. reading={'unit': 'percent'}")
            refuse_unknown(described, [*TableReading.__annotations__], "a reading", "part")
            reading = TableReading(**_typed(described, TableReading))
        left_out = {name: keywords.pop(name) for name in ("dividends", "interest") if name in keywords}
        config = msgspec.structs.replace(config, **left_out)
        account = OwnAccount(returns=table, against=other, reading=reading, **keywords)
        made = assay_of(account, config)
    return ShownAssay(**{name: getattr(made, name) for name in made.__struct_fields__})


def _run_or_missing_file(what: str | Path) -> str | Path:
    """Return the folder of the run ``what`` names, or ``what`` itself if it can only be a file.

    Raises :class:`UserError` with near names for a word that is neither."""
    folder = folder_of(what)
    if folder.is_dir() or Path(what).suffix:
        return folder
    known = sorted(path.parent.name for path in DEFAULT_PARENT.glob("*/manifest.json"))
    otherwise = (
        f"runs in {DEFAULT_PARENT}: {', '.join(known)}" if known else f"there are no runs in {DEFAULT_PARENT}"
    )
    raise UserError(f"no run and no table '{what}'", hint=did_you_mean(str(what), known, otherwise))


def _spelled_out() -> inspect.Signature:
    """Return the signature of :func:`assay` with every keyword in its own place, for ``help`` and notebooks."""
    written = inspect.signature(assay)
    fields = (*msgspec.structs.fields(VerdictConfig), *msgspec.structs.fields(OwnAccount))
    usual = {field.name: field.default for field in fields}
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual[name], annotation=kind)
        for name, kind in get_type_hints(AssayFields).items()
    ]
    given = [one for one in written.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    return written.replace(parameters=[*given, *own])


assay.__signature__ = _spelled_out()  # type: ignore[attr-defined]  # inspect reads it of any function


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A registered agent: what it does, and its parameters with their defaults."""

    name: str
    summary: str
    params: dict[str, Any]


def make_spec(*what: str | Sequence[str], **fields: Unpack[SpecFields]) -> RunSpec:
    """Describe a run: benchmarks by name (or as ``benchmarks=``), the rest by keywords.

    ``agents`` defaults to every registered rule, or to none when ``models`` are named (``openai/gpt-5``,
    ``scripted/sensible`` ...). ``protocol`` changes how models are talked to (``mask``, ``mode`` ...): a list
    of values is a dimension of the grid, and so are named ``windows`` (``W4``). ``dataset`` replaces the
    benchmarks' own data: one name, several, or a mapping from benchmark to names. ``seeds`` is a number of
    seeds or the seeds themselves. ``first`` and ``last`` bound the sessions (a missing one is the
    benchmarks'). ``index`` is what results are compared with and ``universe`` what may be bought, by the data's
    own names. ``secret`` is that of a run to be repeated. Without a ``slug`` the name is made from the content,
    agents' own files included, so that the same description always means the same run. Raises :class:`UserError`
    for anything unknown, with near names.
    """
    refuse_unknown(fields, [*SpecFields.__annotations__], "a run", "keyword")
    names = _traded((*what, fields.get("benchmarks")))
    chosen = [_benchmarks.get(name) for name in names]
    first, last = day_text(fields.get("first")), day_text(fields.get("last"))
    if (first is None) != (last is None):
        first, last = _complete(chosen, first, last)
    models = _several("models", fields.get("models"))
    raw: dict[str, Any] = {
        "slug": fields.get("slug") or "unnamed",
        "benchmarks": list(names),
        "agents": [_plain(agent) for agent in _chosen_agents(fields.get("agents"), models)],
        "seeds": _seeds(fields.get("seeds", 1)),
        "convention": fields.get("convention") or chosen[0].convention,
    }
    dataset, bootstrap = fields.get("dataset"), fields.get("bootstrap")
    if dataset is not None:
        raw["datasets"] = datasets_for(names, str(dataset) if isinstance(dataset, Path) else dataset)
    if fields.get("protocol"):
        protocol = fields.get("protocol")
        if not isinstance(protocol, Mapping):
            raise UserError(f"{protocol!r:.60} are no settings", hint="write e.g. protocol={'mask': 'blinded'}")
        raw["protocol"] = {
            key: tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
            for key, value in protocol.items()
        }
    if fields.get("windows"):
        raw["windows"] = _several("windows", fields.get("windows"))
    for name in ("secret", "index", "universe"):
        if fields.get(name):
            raw[name] = fields[name]
    if first is not None:
        raw["window"] = {"first": first, "last": last}
    if bootstrap is not None:
        raw["bootstrap"] = msgspec.to_builtins(bootstrap)
    spec = spec_from(raw, where="run")
    if fields.get("slug"):
        return spec
    files = [own_files(agent.name, agent.params) for agent in spec.agents if agent.name in WITH_FILES]
    content = sha256_of([work_sha256(spec), files]) if any(files) else work_sha256(spec)
    return msgspec.structs.replace(spec, slug=f"{names[0]}-{content[:8]}")


def run(
    what: RunSpec | str | Path | Sequence[str] = (),
    *,
    folder: Path | str | None = None,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "auto",
    home: Path | str | None = None,
    asking: Asking | None = None,
    **fields: Unpack[SpecFields],
) -> Run:
    """Run a spec, a spec file (``.toml``, ``.json``), or benchmarks with agents; continue it if it was begun.

    ``folder`` defaults to ``runs/<slug>``, ``workers`` to the cores; ``executor`` is ``local``, ``inline`` or
    ``ray``; none of them changes a byte of the result. ``asking`` says how models are asked: how many episodes at
    once, for how many dollars at most, or from recorded answers only. Keywords describe the run as in
    :func:`make_spec`. Episodes that fail are recorded and the others go on: see ``run.failed``.
    """
    spec = _spec(what, fields)
    done = runs.run(spec, folder, executor=executor, workers=workers, progress=progress, home=home, asking=asking)
    return Run.load(done.folder, home=home)


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
    """Continue a stopped run; it ends with the same bytes as if it had never stopped."""
    how: Any = {"executor": executor, "workers": workers, "progress": progress, "asking": asking}
    done = runs.resume(folder, home=home, retry_failed=retry_failed, **how)
    return load_run(done.folder, home=home)


def load_run(folder: Path | str, *, home: Path | str | None = None) -> Run | CodeRun:
    """Open a recorded run of either kind, by its folder or name; one that trades is a ``Run``, one of programs a
    ``CodeRun``."""
    found = runs.load_run(folder)
    if isinstance(found, runs.CodeRun):
        return CodeRun(found.folder, found.manifest)
    return Run(found.folder, found.manifest, home=None if home is None else str(home))


def plan(
    what: RunSpec | str | Path | Sequence[str] = (),
    *,
    workers: int | None = None,
    home: Path | str | None = None,
    asking: Asking | None = None,
    **fields: Unpack[SpecFields],
) -> Plan:
    """Say what a run would take, before it is started. Takes the same description as :func:`run`."""
    return runs.plan(_spec(what, fields), workers=workers, home=home, asking=asking)


def list_agents() -> tuple[AgentInfo, ...]:
    """Return every registered agent."""
    return tuple(
        AgentInfo(name=name, summary=cls.summary, params={one.name: one.default for one in parameters(name)})
        for name, cls in _agents.items()
    )


def list_models() -> tuple[ModelInfo, ...]:
    """Return the models that are known by name, with prices and knowledge cutoffs."""
    return known_models()


def list_benchmarks() -> tuple[Benchmark, ...]:
    """Return every registered benchmark."""
    return tuple(benchmark for _, benchmark in _benchmarks.items())


def _spec(what: RunSpec | str | Path | Sequence[str], fields: SpecFields) -> RunSpec:
    if isinstance(what, RunSpec | Path) or (isinstance(what, str) and what.endswith((".toml", ".json"))):
        if set(fields) - {"slug"}:
            extra = min(set(fields) - {"slug"})
            said = f"the spec already says what to run, so '{extra}' has no place"
            raise UserError(said, hint="change the spec")
        slug = fields.get("slug")
        if not isinstance(what, RunSpec):
            return load_spec(what, slug=slug)
        return what if slug is None else msgspec.structs.replace(what, slug=slug)
    return make_spec(what, **fields)


def _traded(given: Iterable[object]) -> tuple[str, ...]:
    """Return the full names of benchmarks, each part of ``given`` being one name or several."""
    named = [name for part in given for name in _several("benchmarks", part)]
    if not named:
        raise UserError("benchmarks: nothing is given", hint="tradeassay.list_benchmarks() has them")
    for name in named:
        refuse_other_kind(name, trades=True)
    return tuple(map(_benchmarks.full_name, named))


def _complete(chosen: Sequence[Benchmark], first: str | None, last: str | None) -> tuple[str | None, str | None]:
    """Take the missing end of a window from the benchmarks, if they agree on it."""
    end: Literal["first", "last"] = "first" if first is None else "last"
    found = {getattr(benchmark.market, end) for benchmark in chosen}
    if len(found) != 1:
        raise UserError(f"the benchmarks have different '{end}' days", hint=f"give '{end}' too")
    missing: str = found.pop()
    ids = ", ".join(benchmark.id for benchmark in chosen)
    if first is not None and parse_day(first) > parse_day(missing):
        raise UserError(f"{first} is after {missing}, the last session of {ids}", hint="choose an earlier first=")
    if last is not None and parse_day(last) < parse_day(missing):
        raise UserError(f"{last} is before {missing}, the first session of {ids}", hint="choose a later last=")
    return (missing, last) if first is None else (first, missing)


def _chosen_agents(given: Any, models: Sequence[str]) -> list[Any]:
    asked: list[Any] = [model_agent(name) for name in models]
    if given is None:
        return asked or [name for name in _agents.names() if not _converses(name) and _plays_alone(name)]
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    return [*(given if several else [given]), *asked]


def _typed(given: Mapping[str, Any], described: type) -> dict[str, Any]:
    """Return keywords as :func:`typed` does; days and paths may be given as such."""
    texts = {name: str(value) if isinstance(value, date | Path) else value for name, value in given.items()}
    return typed(texts, described)


def _several(what: str, given: object) -> list[str]:
    """Return one name or several as a list; None is none."""
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    listed: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    for one in listed:
        if not isinstance(one, str):
            raise UserError(f"{one!r:.60} among the {what} is no name", hint="give a name, or a list of names")
    return listed


def _plain(agent: object) -> Any:
    if not isinstance(agent, str | AgentSpec | Mapping):
        hint = "give its name or './file.py:Class'; @agents.register(NAME) gives a class a name"
        raise UserError(f"{agent!r:.80} is no agent", hint=hint)
    return msgspec.to_builtins(agent) if isinstance(agent, AgentSpec) else agent


def _seeds(given: int | Iterable[int]) -> list[int]:
    if isinstance(given, int | np.integer):
        if isinstance(given, bool) or not 1 <= given <= MOST_SEEDS:
            raise UserError(f"{given} seeds cannot be run", hint=f"ask for 1 to {MOST_SEEDS:,}")
        return list(range(given))
    if not isinstance(given, Iterable):
        raise UserError(f"{given!r} seeds cannot be run", hint="give how many, or a list of seeds")
    return [seed.item() if isinstance(seed, np.generic) else seed for seed in given]
