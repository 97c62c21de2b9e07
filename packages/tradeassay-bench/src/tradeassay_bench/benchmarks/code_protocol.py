"""Define the interface of a benchmark of programs: its episodes, dialogues, scores and tables.

A benchmark defines its tasks and does no I/O. Its dialogues yield :class:`AskRole` and
:class:`Examine` requests and receive the replies. The code that runs, stores, verifies and reports
episodes uses only this interface and names no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from tradeassay.core.arguments import take_fields
from tradeassay.core.errors import UserError
from tradeassay.core.measure import BadgeTexts, Measure, above
from tradeassay.core.registry import Registry, newest
from tradeassay.core.tables import Cell
from tradeassay.metrics.ranks import unranked
from tradeassay.metrics.reliability import Play, Reliability
from tradeassay_bench.benchmarks.benchmark import benchmarks
from tradeassay_bench.benchmarks.exhibits import Curves, Filled, PaperPage
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.files import safe_name
from tradeassay_bench.core.run_secret import refuse_bad_secret
from tradeassay_bench.core.tables import Table
from tradeassay_bench.llm import ModelParams, parse_name

LONG_ANSWERS = ModelParams(max_tokens=16_384, timeout_s=600.0)
"""Token and time limits for answers with programs, which need more than trading decisions."""


MAX_VALUES = 1_000
"""The largest number of models, tasks, seeds or other values in one field of a spec."""
MAX_EPISODES = 50_000
"""The largest number of episodes in a run."""


def check_grid_size(items: int) -> None:
    """Raise :class:`UserError` if a run would have too many episodes.

    ``items`` is the number of episodes. Call this function before the episodes are created.
    """
    if items > MAX_EPISODES:
        raise UserError(
            f"too many episodes: {items:,}",
            hint=f"a run has at most {MAX_EPISODES:,}. Split it into several runs",
        )


class CodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The spec of a run of programs. Each benchmark adds its own fields.

    ``seeds`` are repetitions. The seeds of the judging markets are derived from ``secret`` (see
    :mod:`tradeassay_bench.core.run_secret`). A missing secret is drawn at the start of the run.
    """

    models: tuple[str, ...]
    benchmark: str
    seeds: tuple[int, ...] = (0,)
    secret: str | msgspec.UnsetType = msgspec.UNSET

    def validate_spec(
        self, once: Iterable[str], others: Iterable[str] = (), *, example: str
    ) -> None:
        """Raise :class:`UserError` for missing, repeated or invalid values.

        ``once`` names fields whose values must differ, besides models and seeds. ``others`` are
        models in other roles, such as judges. ``example`` is a model name for the hint.
        """
        take_fields(self)
        if self.secret:
            refuse_bad_secret(self.secret)
        if not self.models:
            raise UserError("no model is named", hint=f"give at least one, e.g. {example}")
        for name in self.__struct_fields__:
            values = getattr(self, name)
            if isinstance(values, tuple) and len(values) > MAX_VALUES:
                raise UserError(
                    f"{name} has {len(values):,} values", hint=f"give at most {MAX_VALUES:,}"
                )
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
    """One episode: a model, a task and a seed.

    ``protocol`` contains the settings of the conversation, such as the wording.
    """

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
    """An :class:`Item` in a benchmark's list of episodes."""

    model: str
    task: str
    seed: int = 0
    protocol: dict[str, str] = {}

    @property
    def key(self) -> str:
        """Return the name of the episode in a run, built from model, task, protocol settings and
        seed.
        """
        return "__".join(
            (safe_name(self.model), self.task, *self.protocol.values(), f"s{self.seed}")
        )


class AskRole(msgspec.Struct, frozen=True, kw_only=True):
    """A request to query one of the episode's models. ``role`` is, for example, ``writer`` or
    ``judge``.
    """

    role: str
    request: AskModel


class Examine(msgspec.Struct, frozen=True, kw_only=True):
    """A request for work that needs the sandbox. ``request`` is a struct of the benchmark."""

    request: msgspec.Struct


CodeAsk = AskRole | Examine
CodeReply = ModelReply | msgspec.Struct
_Record = TypeVar("_Record", bound=msgspec.Struct)
CodeDialogue: TypeAlias = Generator[CodeAsk, Any, _Record]
"""A generator that yields :class:`AskRole` and :class:`Examine` requests and returns the record of
the episode. It receives a :class:`ModelReply` for each query and a result for each examination.
"""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """The model in one role, with its parameters."""

    model: str
    params: ModelParams


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an episode.

    A failed episode has no result and is excluded from every rate. ``reason`` describes the
    failure, and ``words`` describes the result.
    """

    status: Literal["done", "failed"] = "done"
    reason: str = ""
    words: str = ""


class CodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one model under one set of protocol settings. Comparisons of runs use them.

    ``unranked`` is the reason why the model has no rank, or None.
    """

    setting: str = msgspec.field(name="cell")
    agent: str
    measures: dict[str, Measure]
    unranked: str | None = None


def unranked_model(unanswered: int, items: int) -> str | None:
    """Return the reason why a model is not ranked, or None.

    A model is not ranked if too many of its items have no answer.
    """
    return unranked(unanswered / items if items else None, "of its items had no answer")


# Views of a run for the terminal and the page


def overlap(best: Measure, second: Measure) -> str:
    """Return a sentence that says whether the intervals of the two best models overlap."""
    if second.high is not None and above(best, second.high):
        return "the intervals do not overlap"
    return "the intervals overlap, so they cannot be told apart"


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a page: text, tables, the curves of a figure, and a list."""

    id: str
    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    curves: Curves | None = None
    lines: tuple[Cell, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of an item: its outcome, its checks, findings as ``lines``, and texts by title."""

    title: str
    chip: tuple[str, str]
    small: str = ""
    checks: tuple[tuple[str, str, str], ...] = ()
    lines: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()


def reliable_section(reliability: Reliability | None) -> tuple[Section, ...]:
    """Return a section about the reliability of the models.

    There is no section if no model repeated a task, because reliability is then undefined.
    """
    if reliability is None:
        return ()
    return (Section(id="reliable", title="How reliable", text=" ".join(reliability.sentences)),)


def play_of(item: Item, *, passed: bool, score: float | None) -> Play:
    """Return an item as a play of its model. The task is the window, the protocol the wording."""
    return Play(
        model=item.model,
        wording=", ".join(map(str, item.protocol.values())),
        window=item.task,
        seed=item.seed,
        passed=passed,
        score=score,
    )


class ItemShown(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one item: the tone and text of its outcome, a summary, and its steps."""

    chip: tuple[str, str]
    value: str = ""
    steps: tuple[Step, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The view of a finished run, for the terminal, the page and exports.

    ``board`` is the table of models. On a terminal ``board_lines`` follow it. ``method`` explains
    the computation of the numbers.
    """

    question: str
    headline: str
    support: tuple[str, ...]
    sub: str
    badges: BadgeTexts
    board: Table
    sections: tuple[Section, ...]
    paper: PaperPage
    items: dict[str, ItemShown]
    method: str
    board_lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cards: dict[str, Any] = {}
    """For each key, the data of an item with a separate page, rendered by
    ``report.code_page.card_pages``.
    """
    reliability: Reliability | None = None


class FinishedRun(Protocol):
    """The parts of a finished run of programs that a paper's page needs."""

    @property
    def spec(self) -> Any: ...
    @property
    def episodes(self) -> Sequence[Item]: ...
    @property
    def scores(self) -> Any: ...
    def records(self) -> Mapping[str, Any]: ...


class AnswerReward(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of one recorded answer, from 0 to 1, or None with a reason.

    ``evidence`` contains the values from which it was computed.
    """

    value: float | None
    reason: str = ""
    evidence: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRequest:
    """A request to run the settings of a paper about programs.

    ``data`` is the user's argument: a task file, or datasets separated by commas. ``stored`` maps a
    dataset, which may be a folder, to its name in the store. ``say`` is called with messages about
    parts of the paper that the data does not cover.
    """

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

    - ``title``: a short description of the benchmark.
    - ``listing``: the command that lists its tasks.
    - ``fixed``: fields of the spec, such as ``score`` and ``evaluate.leak``, that belong to the
      benchmark's id. A run with other values is refused, and a record with other values is invalid.
    - ``Question``: the type of a task as data.
    - ``Spec``, ``Record``, ``Result`` and ``Scores``: the types of a run's spec, the record of an
      episode, the reply to an :class:`Examine` request, and the totals of a run.
    """

    title: ClassVar[str]
    listing: ClassVar[str]
    fixed: ClassVar[tuple[str, ...]] = ()
    Question: ClassVar[type[msgspec.Struct]] = msgspec.Struct
    Spec: ClassVar[type[CodeSpec]]
    Record: ClassVar[type[msgspec.Struct]]
    Result: ClassVar[type[msgspec.Struct]]
    Scores: ClassVar[type[msgspec.Struct]]

    def __init__(self, spec: Any) -> None:
        """Open the benchmark. Raises :class:`UserError` for an invalid spec."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about parts of the spec that were skipped."""
        return ()

    def episodes(self) -> tuple[CodeItem, ...]:
        """Return all episodes in recording order."""
        ...

    def facts(self) -> dict[str, str]:
        """Return the hashes and versions on which results depend, by name.

        A run cannot be resumed after any of these facts has changed.
        """
        ...

    def roles(self, item: Item) -> dict[str, Role]:
        """Return the models of an episode by role."""
        ...

    def dialogue(self, item: Item) -> CodeDialogue[Any]:
        """Return a new dialogue for an episode. The same replies lead to the same record."""
        ...

    def check_installed(self) -> None:
        """Raise MissingExtra if a package that :meth:`examine` needs is not installed."""
        ...

    def open_executor(self, workers: int) -> AbstractContextManager[Any]:
        """Return a context manager with the executor that :meth:`examine` needs.

        Raises the errors of opening a sandbox.
        """
        ...

    def with_timeout_callback(self, executor: Any, on_timeout: Callable[[], None]) -> Any:
        """Return an executor that also calls ``on_timeout`` when one of its jobs times out."""
        ...

    def examine(self, item: Item, request: Any, executor: Any) -> msgspec.Struct:
        """Return the result of an :class:`Examine` request.

        This method is called from several threads, and must return the same result every time.
        """
        ...

    def ended(self, record: Any) -> Ending:
        """Return the ending of a recorded episode."""
        ...

    def inconsistencies(self, record: Any) -> Iterator[tuple[int, str]]:
        """Yield contradictions within a record as (turn, description). Turns count from 0."""
        ...

    def score(self, records: Mapping[str, Any]) -> Any:
        """Return the totals of a run.

        ``records`` contains all existing records by key, including those of failed episodes.
        """
        ...

    @classmethod
    def rows(cls, scores: Any) -> tuple[CodeRow, ...]:
        """Return one row per model and set of protocol settings."""
        ...

    @classmethod
    def rewards(cls, record: Any) -> dict[int, AnswerReward]:
        """Return the rewards of an episode's answers by turn, counted from 0. By default there are
        none.
        """
        return {}

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return the page of the benchmark's paper, filled with results of some runs.

        ``latency`` is the exhibit of the models' answer times. Raises :class:`UserError` for a
        benchmark without a paper, and for runs without a common table.
        """
        raise UserError(f"{cls.title} has no paper", hint="use tradeassay report to show a run")

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> CodeSpec:
        """Return the spec of a run that fills the paper's tables.

        Raises :class:`UserError` for a benchmark without a paper.
        """
        raise UserError(f"{cls.title} has no paper", hint="use tradeassay code run")

    @classmethod
    def sampled(cls, spec: Any, count: int) -> CodeSpec:
        """Return a spec with only ``count`` of its tasks."""
        raise UserError(f"{cls.title} has no tasks to sample", hint="leave sample out")

    @staticmethod
    def tables(
        spec: Any,
        items: Sequence[Item],
        scores: Any,
        records: Mapping[str, Any],
        endings: Mapping[str, Ending],
    ) -> Shown:
        """Return the view of a finished run from its totals, records and endings (by key).

        This method needs no task files, so that a machine without the tasks can write the page.
        """
        ...


code_protocols: Registry[type[CodeProtocol]] = Registry("code_benchmark")
"""All benchmarks of programs, by id (entry points ``tradeassay.code_benchmarks``)."""


class OtherCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark that has a separate command.

    ``played`` describes the benchmark after "is", and ``command`` is an example.
    """

    played: str
    command: str


other_commands: Registry[OtherCommand] = Registry("other_benchmark")
"""Benchmarks that neither ``run`` nor ``code run`` supports, by id (entry points
``tradeassay.other_benchmarks``).
"""


def code_benchmarks() -> tuple[str, ...]:
    """Return the ids of all benchmarks of programs."""
    return code_protocols.names()


def find_protocol(name: str) -> type[CodeProtocol]:
    """Return a registered benchmark of programs. Raises :class:`UserError` for an unknown id."""
    return code_protocols.get(name)


def refuse_other_kind(name: str, *, trades: bool) -> None:
    """Raise :class:`UserError` for a benchmark of the wrong kind. The message names the right
    command.

    ``trades`` is True if the caller expects a trading benchmark.
    """
    if (benchmarks.full_name(name) in benchmarks) is trades:
        return
    if not trades:
        raise UserError(
            f"'{name}' is a trading benchmark, not a programming benchmark",
            hint=f"tradeassay run {name}",
        )
    other = newest(name, other_commands.names())
    if other in other_commands:
        entry = other_commands.get(other)
        raise UserError(f"'{name}' is {entry.played}", hint=entry.command)
    if newest(name, known := code_benchmarks()) in known:
        raise UserError(
            f"'{name}' is for models that write programs", hint=f"tradeassay code run {name}"
        )


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of packages, as facts of a run.

    A missing package has the version "not installed".
    """
    versions = {}
    for name in packages:
        try:
            versions[f"package {name}"] = version(name)
        except PackageNotFoundError:
            versions[f"package {name}"] = "not installed"
    return versions
