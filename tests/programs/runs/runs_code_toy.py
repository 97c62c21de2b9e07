"""A benchmark of programs that needs no sandbox: a model is asked for programs, their lines are
counted.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tradeassay.core.errors import SandboxError
from tradeassay.core.measure import Measure
from tradeassay_bench.benchmarks.code_protocol import (
    AskRole,
    CodeItem,
    CodeRow,
    CodeSpec,
    Ending,
    Examine,
    Role,
    Shown,
    code_protocols,
)
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply
from tradeassay_bench.llm import ModelParams, scripted_models
from tradeassay_programs.sandbox import TimeoutTeller

NAME = "test-toy-code"
TURNS = 3


class ToySpec(CodeSpec, frozen=True, kw_only=True):
    models: tuple[str, ...] = ("scripted/tiny-lines",)
    benchmark: str = NAME
    secret: str | msgspec.UnsetType = "00112233445566778899aabbccddeeff"
    tasks: int = 3
    word: str = "hello"
    log: str = ""
    kill_at: int = 0


class Count(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    turn: int


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    lines: int
    third: float


class ToyRecord(msgspec.Struct, frozen=True, kw_only=True):
    replies: tuple[str, ...]
    lines: tuple[int, ...]
    error: str = ""


class ToyScores(msgspec.Struct, frozen=True, kw_only=True):
    total: int


@scripted_models.register("tiny-lines")
class TinyLines:
    summary: ClassVar[str] = "answers with as many lines as it has been asked so far"

    def answer(self, request: AskModel) -> ModelReply:
        return ModelReply(text="\n".join(["line"] * len(request.messages)))


class _Nothing:
    """Stands where a sandbox would."""

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        return None


class ToyItem(CodeItem, frozen=True, kw_only=True):
    @property
    def key(self) -> str:
        return f"{self.model.split('/')[1]}__{self.task}"


@code_protocols.register(NAME)
class ToyProtocol:
    title: ClassVar[str] = "A toy"
    listing: ClassVar[str] = ""
    fixed: ClassVar[tuple[str, ...]] = ()
    Spec: ClassVar[type[CodeSpec]] = ToySpec
    Record: ClassVar[type[msgspec.Struct]] = ToyRecord
    Result: ClassVar[type[msgspec.Struct]] = Lines
    Scores: ClassVar[type[msgspec.Struct]] = ToyScores
    notes: tuple[str, ...] = ()
    fact: ClassVar[str] = "1"
    worked: ClassVar[list[str]] = []
    opened: ClassVar[int] = 0
    broken: ClassVar[BaseException | None] = None

    def __init__(self, spec: ToySpec) -> None:
        self.spec = spec

    def episodes(self) -> tuple[CodeItem, ...]:
        return tuple(
            ToyItem(model=model, task=f"t{n}", protocol={"setting": "toy"})
            for model in self.spec.models
            for n in range(self.spec.tasks)
        )

    def facts(self) -> dict[str, str]:
        return {"the toy": self.fact}

    def roles(self, episode: CodeItem) -> dict[str, Role]:
        return {"writer": Role(model=episode.model, params=ModelParams())}

    def dialogue(self, episode: CodeItem) -> Any:
        messages = [Message(role="user", text=f"{self.spec.word} {episode.task}")]
        replies: list[str] = []
        lines: list[int] = []
        for turn in range(1, TURNS + 1):
            reply = yield AskRole(
                role="writer",
                request=AskModel(purpose="write", messages=tuple(messages), attempt=turn),
            )
            if reply.error is not None:
                return ToyRecord(
                    replies=tuple(replies),
                    lines=tuple(lines),
                    error=f"{reply.error_kind}: {reply.error}",
                )
            found = yield Examine(request=Count(text=reply.text, turn=turn))
            replies.append(reply.text)
            lines.append(found.lines)
            messages += [
                Message(role="assistant", text=reply.text),
                Message(role="user", text=f"again {turn}"),
            ]
        return ToyRecord(replies=tuple(replies), lines=tuple(lines))

    def check_installed(self) -> None:
        return None

    def open_executor(self, workers: int) -> Any:
        type(self).opened += 1
        return _Nothing()

    def with_timeout_callback(self, executor: Any, on_timeout: Any) -> Any:
        return TimeoutTeller(executor, on_timeout)

    def examine(self, episode: CodeItem, request: Count, executor: Any) -> Lines:
        self.worked.append(f"{episode.task}/{request.turn}")
        if self.broken is not None:
            raise self.broken
        if self.spec.log:
            with Path(self.spec.log).open("a") as log:
                log.write(f"{episode.task}/{request.turn}\n")
            if (
                self.spec.kill_at
                and len(Path(self.spec.log).read_text().splitlines()) == self.spec.kill_at
            ):
                os.kill(os.getpid(), 9)
        return Lines(lines=len(request.text.splitlines()), third=request.turn / 3)

    def ended(self, record: ToyRecord) -> Ending:
        if record.error:
            return Ending(status="failed", reason=record.error, words="no answer")
        return Ending(words="counted")

    def score(self, records: Mapping[str, ToyRecord]) -> ToyScores:
        return ToyScores(total=sum(sum(record.lines) for record in records.values()))

    def inconsistencies(self, record: ToyRecord) -> Iterator[tuple[int, str]]:
        if len(record.lines) != len(record.replies):
            yield 0, "lines and replies differ"

    @classmethod
    def rows(cls, scores: ToyScores) -> tuple[CodeRow, ...]:
        return (
            CodeRow(
                setting="toy",
                agent="all",
                measures={"total": Measure(value=float(scores.total), n=1)},
            ),
        )

    @classmethod
    def tables(
        cls, spec: ToySpec, items: Any, scores: ToyScores, records: Any, endings: Any
    ) -> Shown:
        raise NotImplementedError


def fresh(**changes: Any) -> None:
    """Reset what a test may have changed."""
    ToyProtocol.fact, ToyProtocol.broken, ToyProtocol.opened = "1", None, 0
    ToyProtocol.worked.clear()
    for name, value in changes.items():
        setattr(ToyProtocol, name, value)


def same(folder: Path) -> dict[str, bytes]:
    """Everything that must be the same however often a run was stopped."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timing.json", ".lock", "report.html")
    }


__all__ = ["NAME", "SandboxError", "ToyProtocol", "ToySpec", "fresh", "same"]
