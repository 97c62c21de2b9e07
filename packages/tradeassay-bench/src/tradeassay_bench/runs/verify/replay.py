"""Replay an episode from its sources, in memory, to compare it with its record.

A rule runs again on the recorded data. A conversation is replayed with the recorded replies: the
benchmark's own protocol asks the questions and turns the replies into decisions. A program is
examined again in the sandbox. A model's replies cannot be reproduced, unless the model is scripted.
A scripted model is a program and is queried again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tradeassay.core.errors import UNDECODABLE, MissingExtra, UserError
from tradeassay.core.measure import NOT_REDERIVABLE
from tradeassay_bench.agents import make_agent
from tradeassay_bench.agents.own_file import NAME as OWN_FILE, why_not_again
from tradeassay_bench.benchmarks.protocol import protocols
from tradeassay_bench.core.agent import CostlyAgent
from tradeassay_bench.core.closeness import close
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.llm import (
    Access,
    Model,
    ModelParams,
    QuestionPlace,
    RecordingMismatch,
    open_model,
    parse_name,
    scripted_models,
)
from tradeassay_bench.play.dialogue_log import MemoryDialogue, read_dialogue
from tradeassay_bench.play.journal import MemoryJournal
from tradeassay_bench.runs.play.episodes import (
    Conversation,
    OpenModels,
    PlayTask,
    answer_at_once,
    run_async,
)
from tradeassay_bench.runs.spec.episode import Asking
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.outcome import Outcome


class Replayed(NamedTuple):
    """The result of replaying an episode.

    ``unasked`` counts recorded replies without a question. ``late`` is whether one of its programs
    exceeded its time limit.
    """

    events: bytes
    dialogue: bytes
    outcome: Outcome
    unasked: int = 0
    late: bool = False


class NotReplayable(Exception):
    """An episode cannot be replayed here. The text states why."""


def replay_rule(task: PlayTask) -> Replayed:
    """Run a rule again.

    Raises :class:`NotReplayable` for an agent that is missing here, or whose answers cost
    something.
    """
    name = task.episode.agent.name
    if name == OWN_FILE:
        # A recorded run must never determine which file is executed, because its author is unknown.
        raise NotReplayable(why_not_again(task.episode.agent.params))
    try:
        agent = make_agent(name, task.episode.agent.params)
    except MissingExtra as error:
        raise NotReplayable(error.message) from error
    except UserError as error:
        raise NotReplayable(f"agent '{name}' cannot run here ({error.message})") from error
    if isinstance(agent, CostlyAgent):
        raise NotReplayable(NOT_REDERIVABLE)
    journal: MemoryJournal[StepRecord] = MemoryJournal()
    outcome = answer_at_once(task, journal, lambda _: None, lambda: False)
    assert outcome is not None, "nobody asked it to stop"
    return Replayed(bytes(journal.content), b"", outcome)


def replay_conversation(task: PlayTask, recorded: Outcome) -> Replayed:
    """Replay an episode's conversations with the recorded replies.

    Raises :class:`~tradeassay_bench.llm.RecordingMismatch` if a question was not recorded, or if a
    scripted model gives a different answer now. Raises :class:`NotReplayable` for a conversation of
    a package that is not installed.
    """

    if task.benchmark.protocol not in protocols:
        raise NotReplayable(f"the conversation '{task.benchmark.protocol}' is not registered here")

    async def replay() -> Replayed:
        journal: MemoryJournal[StepRecord] = MemoryJournal()
        log = MemoryDialogue()
        async with AsyncExitStack() as stack:
            models = RecordedModels(RunFolder(Path(task.folder)), stack, home=task.home)
            answers = "live" if recorded.answers == "none" else recorded.answers
            async with models.agent(task) as model:
                outcome = await Conversation(
                    task, model, answers, journal, log, lambda event: None
                ).to_its_end()
            unasked = models.unasked(task.episode.key)
        return Replayed(bytes(journal.content), bytes(log.content), outcome, unasked)

    return run_async(replay())


class RecordedModels(OpenModels):
    """The models of a run under verification.

    They reply as recorded. Scripted models are also queried again.
    """

    def __init__(self, place: RunFolder, stack: AsyncExitStack, *, home: str | None) -> None:
        super().__init__(place, Asking(replay=True), stack, home=home, durable=False)
        self.place, self.store = place, self._store
        self.count: Counter[str] = Counter()
        self._recordings: dict[tuple[str, ModelParams], Model] = {}

    @asynccontextmanager
    async def agent(self, task: PlayTask) -> AsyncIterator[Model]:
        """Open an episode's agent as it was recorded."""
        async with super().agent(task) as model:
            yield model if isinstance(model, _Recording) else _Recording(model, None, self)

    async def open(self, name: str, params: ModelParams) -> Model:
        known = self._recordings.get((name, params))
        if known is None:
            said, now = await super().open(name, params), None
            if can_be_asked([name]):
                access = Access(sleep=lambda seconds: asyncio.sleep(0))  # no pause between attempts
                now = await self._stack.enter_async_context(open_model(name, params, access=access))
            known = _Recording(said, now, self)
            self._recordings[name, params] = known
        return known

    def unasked(self, episode: str) -> int:
        """Return the number of recorded replies of an episode without a question."""
        return max(0, self.store.size(episode) - self.count[episode])


def can_be_asked(names: list[str]) -> bool:
    """Return whether all models of these names can be queried again.

    This requires scripted models that are installed here. An agent over HTTP or a pipe has no model
    name. It cannot be queried again.
    """
    if not names or not all(names):
        return False
    parsed = [parse_name(name) for name in names]
    return all(name.route == "scripted" and name.rest in scripted_models for name in parsed)


class _Recording:
    """The recorded replies of a model.

    Without a recording they are read from the dialogue log, in their order.
    """

    def __init__(self, said: Model, now: Model | None, models: RecordedModels) -> None:
        self._said, self._now, self._models = said, now, models
        self._logs: dict[str, deque[ModelReply]] = {}

    @property
    def name(self) -> str:
        return self._said.name

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        self._models.count[place.episode] += 1
        if self._models.store.path(place.episode).is_file():
            said = await self._said.ask(request, place)
        else:
            log = self._logs.get(place.episode)
            if log is None:
                lines = read_dialogue(self._models.place.dialogue(place.episode))
                log = deque(line.reply for line in lines)
                self._logs[place.episode] = log
            if not log:
                hint = "the dialogue log was cut, or the rules changed"
                raise RunError("there are more questions than recorded answers", hint=hint)
            said = log.popleft()
        if self._now is not None and said.error_kind != "over_budget":
            now = await self._now.ask(request, place)
            if now != said:
                raise RecordingMismatch(
                    f"step {place.step}, question {place.index}: {self.name} does not answer as "
                    "recorded",
                    hint="the recorded answers were edited, or the scripted model has changed",
                )
        return said


def without_accidents(outcome: Outcome, like: Outcome) -> Outcome:
    """Return an outcome with the irreproducible parts copied from another outcome.

    These are the text of a traceback, which contains files and lines, and whether answers were live
    or replayed.
    """
    changed = msgspec.structs.replace(outcome, traceback=like.traceback)
    if isinstance(changed.model, msgspec.UnsetType) or isinstance(like.model, msgspec.UnsetType):
        return changed
    if {changed.model.answers, like.model.answers} <= {"live", "replayed"}:
        changed = msgspec.structs.replace(
            changed, model=msgspec.structs.replace(changed.model, answers=like.model.answers)
        )
    return changed


def differences(
    then: Any, now: Any, where: str = "", *, absent: object = None, near: bool = False
) -> Iterator[tuple[str, object, object]]:
    """Yield every place at which two plain values differ, with both values.

    A missing key has the value ``absent``. With ``near``, numbers that are equal except for their
    last digits do not differ.
    """
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}):
            place = f"{where}.{key}" if where else str(key)
            old, new = then.get(key, absent), now.get(key, absent)
            yield from differences(old, new, place, absent=absent, near=near)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from differences(one, other, f"{where}[{number}]", absent=absent, near=near)
    elif near and isinstance(then, float) and isinstance(now, float) and close(then, now):
        return
    elif then != now:
        yield where, then, now


def not_as_written(content: bytes, again: bytes) -> str:
    """Return how a file differs from the form in which its content is written."""
    try:
        then, now = msgspec.json.decode(content), msgspec.json.decode(again)
        changed = differences(then, now, absent=msgspec.UNSET)
        # An unknown name with a null value is also a difference.
        extra = ""
        for where, old, new in changed:
            if old is not msgspec.UNSET and (old is not None or new is msgspec.UNSET):
                extra = where
                break
    except UNDECODABLE:  # in an unknown name, which is otherwise skipped
        return "it contains an unreadable value"
    return f"it must not contain '{extra}'" if extra else "it is not in tradeassay's format"
