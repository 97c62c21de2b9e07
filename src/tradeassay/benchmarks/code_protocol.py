"""Benchmarks of programs: one protocol, which says which episodes there are, how their dialogues go, how they are
scored and which tables are shown.

A benchmark knows its tasks and does no I/O: its dialogues yield :class:`AskRole` and :class:`Examine` and are sent
what came of them. Whoever plays, stores and verifies a run, or draws its page, knows no benchmark by name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from tradeassay.benchmarks.benchmark import benchmarks
from tradeassay.benchmarks.exhibits import Curves, Filled, PaperPage
from tradeassay.core.arguments import take_fields
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import Beacon, refuse_bad_secret, safe_name
from tradeassay.core.measure import Measure, above
from tradeassay.core.registry import Registry, newest
from tradeassay.core.tables import Cell, Table
from tradeassay.llm import ModelParams, parse_name
from tradeassay.metrics.ranks import unranked
from tradeassay.metrics.reliability import Play, Reliability

LONG_ANSWERS = ModelParams(max_tokens=16_384, timeout_s=600.0)
"""A program, and the reasoning before it, needs more room and time than a trading decision."""


MOST_GIVEN = 1_000
"""Models, tasks, seeds or other values of one field of a spec."""
MOST_ITEMS = 50_000


def refuse_large_grid(items: int) -> None:
    """Raise :class:`UserError` for more episodes than a run may have, before they are made."""
    if items > MOST_ITEMS:
        hint = f"at most {MOST_ITEMS:,}: split it into several runs"
        raise UserError(f"a grid of {items:,} episodes", hint=hint)


class CodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The spec of a run of programs; every benchmark adds fields of its own. ``seeds`` are repetitions.

    ``secret`` is what the seeds of judging markets are derived from (see :mod:`tradeassay.core.hashing`). Without
    one it is drawn when the run is started, from the ``beacon`` where one is named."""

    models: tuple[str, ...]
    benchmark: str
    seeds: tuple[int, ...] = (0,)
    secret: str | msgspec.UnsetType = msgspec.UNSET
    beacon: Beacon | msgspec.UnsetType = msgspec.UNSET

    def refuse_bad(self, once: Iterable[str], others: Iterable[str] = (), *, example: str) -> None:
        """Raise :class:`UserError` for values of another kind, no model, a bad model name, and values given twice.

        ``once`` names the fields whose values must differ, ``others`` are models with other roles."""
        take_fields(self)
        if self.secret:
            refuse_bad_secret(self.secret)
        if not self.models:
            raise UserError("no model is named", hint=f"give at least one, e.g. {example}")
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if isinstance(given, tuple) and len(given) > MOST_GIVEN:
                raise UserError(f"{name} has {len(given):,} values", hint=f"give at most {MOST_GIVEN:,}")
        if not all(0 <= seed < 2**63 for seed in self.seeds):
            raise UserError("a seed is negative or has more than 63 bits", hint="use 0, 1, 2 ...")
        for model in (*self.models, *others):
            parse_name(model)
        for name in ("models", "seeds", *once):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"a value of {name} is given twice", hint="give each once")


# Episodes and dialogues


class Item(Protocol):
    """One model at one task, once; ``protocol`` says how it is asked, e.g. in which wording."""

    @property
    def key(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def protocol(self) -> Mapping[str, Any]: ...


class CodeItem(msgspec.Struct, frozen=True, kw_only=True):
    """An :class:`Item` as a benchmark lists it."""

    model: str
    task: str
    seed: int = 0
    protocol: dict[str, str] = {}

    @property
    def key(self) -> str:
        """Its name in a run: model, task, how it is asked, seed."""
        return "__".join((safe_name(self.model), self.task, *self.protocol.values(), f"s{self.seed}"))


class AskRole(msgspec.Struct, frozen=True, kw_only=True):
    """Please ask a model. ``role`` says which of the episode's models, e.g. ``writer`` or ``judge``."""

    role: str
    request: AskModel


class Examine(msgspec.Struct, frozen=True, kw_only=True):
    """Please work out something that needs the sandbox; ``request`` is a struct of the benchmark's own."""

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
    """One model under one way of asking: the row by which two runs are compared. ``unranked`` says why it has no
    place among others."""

    cell: str
    agent: str
    measures: dict[str, Measure]
    unranked: str | None = None


def unranked_model(unanswered: int, items: int) -> str | None:
    """Return why a model is not ranked: too many of its items had no answer. None where it may be."""
    return unranked(unanswered / items if items else None, "of its items had no answer")


# What is shown of a run


def overlap(best: Measure, second: Measure) -> str:
    if second.high is not None and above(best, second.high):
        return "the intervals do not overlap"
    return "the intervals overlap, so they cannot be told apart"


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a page: words, tables, ``curves`` of shares by step, and ``lines`` where there is a list."""

    id: str
    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    curves: Curves | None = None
    lines: tuple[Cell, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of an item: what came of it, findings in ``lines``, and texts by title."""

    title: str
    chip: tuple[str, str]
    small: str = ""
    checks: tuple[tuple[str, str, str], ...] = ()
    lines: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()


def reliable_section(found: Reliability | None) -> tuple[Section, ...]:
    """Return how reliable models are, in words; nothing where nobody was played more than once."""
    return () if found is None else (Section(id="reliable", title="How reliable", text=" ".join(found.sentences)),)


def play_of(item: Item, *, passed: bool, score: float | None) -> Play:
    """Return an item as one play of its model; its task is the window, the way of asking the wording."""
    asked = ", ".join(map(str, item.protocol.values()))
    return Play(model=item.model, wording=asked, window=item.task, seed=item.seed, passed=passed, score=score)


class ItemShown(msgspec.Struct, frozen=True, kw_only=True):
    """One item: the tone and the words of its end, a summary, its steps."""

    chip: tuple[str, str]
    value: str = ""
    steps: tuple[Step, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a run. ``board`` is the table of models, on a terminal, on the page and to be exported.

    ``board_lines`` follow it on a terminal, ``method`` says how the numbers came about."""

    question: str
    headline: str
    support: tuple[str, ...]
    sub: str
    badges: tuple[tuple[str, str], ...]
    board: Table
    sections: tuple[Section, ...]
    paper: PaperPage
    items: dict[str, ItemShown]
    method: str
    board_lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cards: dict[str, Any] = {}
    """Items with a page of their own: what the function in ``report.code_page.card_pages`` draws, by key."""
    reliability: Reliability | None = None


class FinishedRun(Protocol):
    """A run of programs as a paper's page reads it."""

    @property
    def spec(self) -> Any: ...
    @property
    def episodes(self) -> Sequence[Item]: ...
    @property
    def scores(self) -> Any: ...
    def records(self) -> Mapping[str, Any]: ...


class AnswerReward(msgspec.Struct, frozen=True, kw_only=True):
    """What one recorded answer was worth, between 0 and 1, or None and the reason; ``evidence`` says from what."""

    value: float | None
    reason: str = ""
    evidence: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRequest:
    """How much of a paper about programs is to be played, with which models.

    ``data`` is what the user named: a task file, or data sets joined by commas. ``stored`` turns one data set,
    which may be a folder, into its name in the store. ``say`` is told what the data does not cover."""

    models: tuple[str, ...]
    seeds: tuple[int, ...]
    sample: int | None
    grid: bool
    data: str | None
    dataset: str | None
    symbols: tuple[str, ...]
    judge: str | None
    reviewers: tuple[str, ...]
    stored: Callable[[str], str]
    say: Callable[[str], None]


class CodeProtocol(Protocol):
    """A benchmark of programs, opened for one spec.

    ``Spec``, ``Record``, ``Result`` and ``Scores`` are the types it stores: what was asked for, what came of an
    episode, the reply to an :class:`Examine`, and the totals of a run. ``title`` says what it is, ``listing`` is
    the command that lists its tasks, ``Question`` a task as data. ``fixed`` names the fields of its spec
    (``score``, ``evaluate.leak``) that belong to the benchmark's id: a run with others is refused, and a record
    of one is not believed."""

    title: ClassVar[str]
    listing: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()
    Question: ClassVar[type[msgspec.Struct]] = msgspec.Struct
    Spec: ClassVar[type[CodeSpec]]
    Record: ClassVar[type[msgspec.Struct]]
    Result: ClassVar[type[msgspec.Struct]]
    Scores: ClassVar[type[msgspec.Struct]]

    def __init__(self, spec: Any) -> None:
        """Open the benchmark; raises :class:`UserError` for an invalid spec."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return ()

    def episodes(self) -> tuple[CodeItem, ...]:
        """Return all episodes, in the order in which they are recorded."""
        ...

    def facts(self) -> dict[str, str]:
        """Return everything that decides a result, by name: hashes and versions. A change prevents a resume."""
        ...

    def roles(self, item: Item) -> dict[str, Role]: ...

    def dialogue(self, item: Item) -> CodeDialogue[Any]:
        """Return a fresh dialogue for an episode. The same replies make the same record."""
        ...

    def check_installed(self) -> None:
        """Raise MissingExtra without a package that :meth:`examine` needs."""
        ...

    def open_executor(self, workers: int) -> AbstractContextManager[Any]:
        """Open what :meth:`examine` needs; raises what opening a sandbox raises."""
        ...

    def examine(self, item: Item, request: Any, executor: Any) -> msgspec.Struct:
        """Work something out; called from several threads. What it returns must be the same every time."""
        ...

    def ended(self, record: Any) -> Ending: ...

    def inconsistencies(self, record: Any) -> Iterator[tuple[int, str]]:
        """Yield the contradictions within a record: the turn (from 0), and what does not fit."""
        ...

    def score(self, records: Mapping[str, Any]) -> Any:
        """Sum up a run; ``records`` holds those of the episodes that have one, failed ones included, by key."""
        ...

    @classmethod
    def rows(cls, scores: Any) -> tuple[CodeRow, ...]: ...

    @classmethod
    def rewards(cls, record: Any) -> dict[int, AnswerReward]:
        """Return what the answers of an episode were worth, by turn (from 0). None are known by default."""
        return {}

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return the benchmark's paper, filled by some runs; ``latency`` is how long models took to answer.

        Raises :class:`UserError` without a paper, and for runs that have no common table."""
        raise UserError(f"{cls.title} has no paper", hint="tradeassay report shows a run of it")

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> CodeSpec:
        """Return the spec that plays the paper's tables. Raises :class:`UserError` without a paper."""
        raise UserError(f"{cls.title} has no paper", hint="tradeassay code run plays it")

    @classmethod
    def sampled(cls, spec: Any, count: int) -> CodeSpec:
        """Return a spec that plays only ``count`` of its tasks."""
        raise UserError(f"{cls.title} has no tasks to sample", hint="leave sample out")

    @staticmethod
    def tables(
        spec: Any, items: Sequence[Item], scores: Any, records: Mapping[str, Any], endings: Mapping[str, Ending]
    ) -> Shown:
        """Return what is shown of a finished run: its totals, its records and how its episodes ended, by key.

        Nothing that the run was made from is needed: a page can be written where its tasks are not."""
        ...


code_protocols: Registry[type[CodeProtocol]] = Registry("code_benchmark")
"""All benchmarks of programs, by id (entry points ``tradeassay.code_benchmarks``)."""


class OtherCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark that a command of its own plays: what is done with it, and an example of the command."""

    played: str
    command: str


other_commands: Registry[OtherCommand] = Registry("other_benchmark")
"""Benchmarks that neither ``run`` nor ``code run`` plays, by id (entry points ``tradeassay.other_benchmarks``)."""


def code_benchmarks() -> tuple[str, ...]:
    """Return the ids of all benchmarks of programs."""
    return code_protocols.names()


def find_protocol(name: str) -> type[CodeProtocol]:
    """Return a benchmark of programs, ours or another package's; raises :class:`UserError` with near names."""
    return code_protocols.get(name)


def refuse_other_kind(name: str, *, trades: bool) -> None:
    """Raise :class:`UserError` for a benchmark that another command plays, and say which."""
    if (benchmarks.full_name(name) in benchmarks) is trades:
        return
    if not trades:
        raise UserError(f"'{name}' is traded, not programmed", hint=f"tradeassay run {name}")
    other = newest(name, other_commands.names())
    if other in other_commands:
        found = other_commands.get(other)
        raise UserError(f"'{name}' is {found.played}", hint=found.command)
    if newest(name, known := code_benchmarks()) in known:
        raise UserError(f"'{name}' is for models that write programs", hint=f"tradeassay code run {name}")


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages as facts of a run; extras need not be installed."""
    found = {}
    for name in packages:
        try:
            found[f"package {name}"] = version(name)
        except PackageNotFoundError:
            found[f"package {name}"] = "not installed"
    return found
