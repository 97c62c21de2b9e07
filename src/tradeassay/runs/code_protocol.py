"""What a benchmark of programs brings to a run: its episodes, a dialogue for each, and the work between replies.

The loop in :mod:`tradeassay.runs.play.programs` knows models, files and processes but no benchmark. A
protocol knows its benchmark and does no I/O: its dialogues yield :class:`AskRole` and :class:`Examine` and are
sent what came of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.draws import refuse_bad_secret
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.registry import Registry
from tradeassay.llm import ModelParams, parse_name
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.run_spec import model_agent, safe_name, variant_name
from tradeassay.sandbox import JobExecutor


class CodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The spec of a run of programs; every benchmark adds fields of its own. ``seeds`` are repetitions.

    ``secret`` is what the seeds of judging markets are derived from (see :mod:`tradeassay.core.draws`). Without
    one it is drawn when the run is started.
    """

    models: tuple[str, ...]
    benchmark: str
    seeds: tuple[int, ...] = (0,)
    secret: str | msgspec.UnsetType = msgspec.UNSET

    def refuse_bad(self, once: Iterable[str], others: Iterable[str] = (), *, example: str) -> None:
        """Raise :class:`UserError` for no model, for a bad model name, and for values given twice.

        ``once`` names the fields whose values must differ, ``others`` are models with other roles.
        """
        if self.secret:
            refuse_bad_secret(self.secret)
        if not self.models:
            raise UserError("no model is named", hint=f"give at least one, e.g. {example}")
        for model in (*self.models, *others):
            parse_name(model)
        for name in ("models", "seeds", *once):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"a value of {name} is given twice", hint="give each once")


class AskRole(msgspec.Struct, frozen=True, kw_only=True):
    """Please ask a model. ``role`` says which of the episode's models, e.g. ``writer`` or ``judge``."""

    role: str
    request: AskModel


class Examine(msgspec.Struct, frozen=True, kw_only=True):
    """Please work out something that needs the sandbox; ``request`` is a struct of the protocol's own."""

    request: msgspec.Struct


CodeAsk = AskRole | Examine
CodeReply = ModelReply | msgspec.Struct
_Record = TypeVar("_Record", bound=msgspec.Struct)
CodeDialogue: TypeAlias = Generator[CodeAsk, Any, _Record]
"""Is sent a :class:`ModelReply` for an :class:`AskRole`, a result for an :class:`Examine`; returns a record."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """Who fills a role, and how it is asked."""

    model: str
    params: ModelParams


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How an episode ended. A failed one has no result and is left out of every rate; ``reason`` says why."""

    status: Literal["done", "failed"] = "done"
    reason: str = ""
    words: str = ""


class CodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model under one way of asking: the row by which two runs are compared."""

    cell: str
    agent: str
    measures: dict[str, Measure]


_Spec = TypeVar("_Spec", bound=CodeSpec, covariant=True)
_Request = TypeVar("_Request", bound=msgspec.Struct, contravariant=True)
_Scores = TypeVar("_Scores", bound=msgspec.Struct)


class CodeProtocolOf(Protocol[_Spec, _Request, _Record, _Scores]):
    """A benchmark of programs, opened for one spec.

    ``Spec``, ``Record``, ``Result`` and ``Scores`` are the types it stores: what was asked for, what came of an
    episode, the reply to an :class:`Examine`, and the totals of a run.
    """

    Spec: ClassVar[type[CodeSpec]]
    Record: ClassVar[type[msgspec.Struct]]
    Result: ClassVar[type[msgspec.Struct]]
    Scores: ClassVar[type[msgspec.Struct]]

    def __init__(self, spec: _Spec) -> None:
        """Open the benchmark; raises :class:`UserError` for an invalid spec."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        ...

    def episodes(self) -> tuple[EpisodeSpec, ...]:
        """Return all episodes, in the order in which they are recorded."""
        ...

    def facts(self) -> dict[str, str]:
        """Return everything that decides a result, by name: hashes and versions. A change prevents a resume."""
        ...

    def roles(self, episode: EpisodeSpec) -> dict[str, Role]:
        """Return the episode's models by role."""
        ...

    def dialogue(self, episode: EpisodeSpec) -> CodeDialogue[_Record]:
        """Return a fresh dialogue for an episode. The same replies make the same record."""
        ...

    def check_installed(self) -> None:
        """Raise MissingExtra without a package that :meth:`examine` needs."""
        ...

    def open_executor(self, workers: int) -> JobExecutor:
        """Open what :meth:`examine` needs; raises what opening a sandbox raises."""
        ...

    def examine(self, episode: EpisodeSpec, request: _Request, executor: JobExecutor) -> msgspec.Struct:
        """Work something out; called from several threads. What it returns must be the same every time."""
        ...

    def ended(self, record: _Record) -> Ending:
        """Say whether a record is a result."""
        ...

    def score(self, records: Mapping[str, _Record]) -> _Scores:
        """Sum up a run; ``records`` holds those of the episodes that have one, failed ones included, by key."""
        ...

    def inconsistencies(self, record: _Record) -> Iterator[tuple[int, str]]:
        """Yield the contradictions within a record: the turn (from 0), and what does not fit."""
        ...

    def rows(self, scores: _Scores) -> tuple[CodeRow, ...]:
        """Return the rows by which two runs are compared."""
        ...


CodeProtocol: TypeAlias = CodeProtocolOf[Any, Any, Any, Any]
"""Any benchmark of programs: the loop hands on specs, requests, records and scores that it does not look into."""

code_protocols: Registry[type[CodeProtocol]] = Registry("code_benchmark")
"""All benchmarks of programs, by id. Other packages add theirs through ``tradeassay.code_benchmarks``."""


_BUILT_IN = ("tradeassay.runs.quantcode", "tradeassay.runs.systrade")
"""Modules whose benchmarks register themselves; imported on first use, as a run that trades needs none of them."""


def find_protocol(name: str) -> type[CodeProtocol]:
    """Return a benchmark of programs, ours or another package's; raises :class:`UserError` with near names."""
    for module in _BUILT_IN:
        import_module(module)
    return code_protocols.get(name)


def code_episode(
    key: str, benchmark: str, model: str, task: str, *, way: Mapping[str, str] | None = None, seed: int = 0
) -> EpisodeSpec:
    """Return the episode of one model at one task; ``way`` says how it is asked, e.g. in which wording."""
    settings = dict(way or {})
    variant = variant_name(settings, None)
    cell = safe_name(benchmark) if variant is None else f"{safe_name(benchmark)}__{variant}"
    return EpisodeSpec(
        key=key,
        cell=cell,
        benchmark=benchmark,
        dataset="",
        agent=model_agent(model),
        seed=seed,
        protocol=dict(settings),
        task=task,
    )
