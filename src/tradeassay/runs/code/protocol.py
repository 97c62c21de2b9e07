"""What a benchmark of programs brings to a run: its items, a conversation for each, and the work between answers.

The loop in :mod:`tradeassay.runs.code.runner` knows models, files and processes and nothing of a benchmark. A
protocol knows its benchmark and does no I/O: its conversations yield :class:`Ask` and :class:`Compute` and
are sent what came of them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.registry import Registry
from tradeassay.llm import ModelParams
from tradeassay.sandbox import Executor


class CodeItem(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one task in one way of asking. ``labels`` says which way, e.g. wording, framework, setting."""

    key: str
    model: str
    task: str
    labels: dict[str, str]
    seed: int


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Please ask a model. ``role`` says which of the item's models, e.g. ``writer`` or ``judge``."""

    role: str
    request: AskModel


class Compute(msgspec.Struct, frozen=True, kw_only=True):
    """Please have something worked out that needs the sandbox; ``request`` is a struct of the protocol's own."""

    request: Any


Talk = Generator[Ask | Compute, Any, Any]
"""A conversation: is sent a :class:`ModelReply` for an :class:`Ask`, a result for a :class:`Compute`; returns a
record."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """Who fills a role, and how it is asked."""

    model: str
    params: ModelParams


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How an item ended. ``failed``: there is no result, and ``reason`` says why; it counts in no rate."""

    status: Literal["done", "failed"] = "done"
    reason: str = ""
    words: str = ""


class CodeProtocol(Protocol):
    """A benchmark of programs, opened for one spec.

    ``Spec``, ``Record``, ``Result`` and ``Scores`` are the types it writes down: what was asked for, what
    came of an item, what a :class:`Compute` is answered with, and the sums over a run.
    """

    Spec: ClassVar[type[msgspec.Struct]]
    Record: ClassVar[type[msgspec.Struct]]
    Result: ClassVar[type[msgspec.Struct]]
    Scores: ClassVar[type[msgspec.Struct]]

    def __init__(self, spec: Any) -> None:
        """Open the benchmark; raises :class:`UserError` for a spec that makes no sense."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        ...

    def items(self) -> tuple[CodeItem, ...]:
        """Return everything to be done, in the order in which it is written down."""
        ...

    def facts(self) -> dict[str, str]:
        """Return everything that decides a result, by name: hashes and versions. A changed one refuses a
        resume.
        """
        ...

    def roles(self, item: CodeItem) -> dict[str, Role]:
        """Return the item's models by role."""
        ...

    def talk(self, item: CodeItem) -> Talk:
        """Return a fresh conversation for an item. The same answers make the same record."""
        ...

    def open_executor(self, workers: int) -> Executor:
        """Open what :meth:`compute` needs; raises what opening a sandbox raises."""
        ...

    def compute(self, item: CodeItem, request: Any, executor: Executor) -> Any:
        """Work something out; called from several threads. What it returns must be the same every time."""
        ...

    def ended(self, record: Any) -> Ended:
        """Say whether a record is a result."""
        ...

    def score(self, records: Mapping[str, Any]) -> msgspec.Struct:
        """Sum up a run; ``records`` holds those of the items that have one, failed items included, by key."""
        ...


code_protocols: Registry[type[CodeProtocol]] = Registry("code_benchmark")
"""All benchmarks of programs, by id. Other packages add theirs through ``tradeassay.code_benchmarks``."""

Answer = ModelReply | msgspec.Struct
