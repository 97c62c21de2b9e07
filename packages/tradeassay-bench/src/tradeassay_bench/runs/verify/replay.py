"""Replay an episode from its sources, in memory, to compare it with its record.

A rule runs again on the recorded data. A conversation is replayed with the recorded replies: the
benchmark's own protocol asks the questions and turns the replies into decisions. A model's replies
cannot be reproduced, unless the model is scripted. A scripted model is a program and is queried
again.
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
    play_by_observation,
    run_async,
)
from tradeassay_bench.runs.spec.episode import Asking
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.outcome import Outcome


class Replayed(NamedTuple):
    """The result of replaying an episode: the contents of its files, and its outcome.

    ``unused_replies`` counts the recorded replies that no question needed. ``timed_out`` is true if
    a program of the episode exceeded its time limit in the replay.
    """

    events: bytes
    dialogue: bytes
    outcome: Outcome
    unused_replies: int = 0
    timed_out: bool = False


class NotReplayable(Exception):
    """Raised if an episode cannot be replayed here. The text states why."""


def replay_rule(task: PlayTask) -> Replayed:
    """Run an episode of a rule again and return the result.

    Raises :class:`NotReplayable` for an agent that cannot run here, for an agent from the runner's
    own file, and for an agent whose answers have a cost.
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
    outcome = play_by_observation(task, journal, lambda _: None, lambda: False)
    assert outcome is not None, "a replay is never stopped"
    return Replayed(bytes(journal.content), b"", outcome)


def replay_conversation(task: PlayTask, recorded: Outcome) -> Replayed:
    """Replay an episode's conversations with the recorded replies, and return the result.

    Raises :class:`~tradeassay_bench.llm.RecordingMismatch` if a question was not recorded, or if a
    scripted model gives a different answer now. Raises :class:`NotReplayable` if the protocol of
    the conversation is not registered here.
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
            unused = models.unused_replies(task.episode.key)
        return Replayed(bytes(journal.content), bytes(log.content), outcome, unused)

    return run_async(replay())


class RecordedModels(OpenModels):
    """The models of a run under verification.

    They give the recorded replies. Scripted models are also queried again.
    """

    def __init__(self, folder: RunFolder, stack: AsyncExitStack, *, home: str | None) -> None:
        super().__init__(folder, Asking(replay=True), stack, home=home, durable=False)
        self.folder, self.store = folder, self._store
        self.count: Counter[str] = Counter()
        self._recordings: dict[tuple[str, ModelParams], Model] = {}

    @asynccontextmanager
    async def agent(self, task: PlayTask) -> AsyncIterator[Model]:
        """Open an episode's agent, which gives its recorded replies."""
        async with super().agent(task) as model:
            yield model if isinstance(model, _Recording) else _Recording(model, None, self)

    async def open(self, name: str, params: ModelParams) -> Model:
        """Return the model that gives the recorded replies; open it on first use."""
        recording = self._recordings.get((name, params))
        if recording is None:
            recorded_model, live_model = await super().open(name, params), None
            if can_be_queried([name]):
                access = Access(sleep=lambda seconds: asyncio.sleep(0))  # no pause between attempts
                live_model = await self._stack.enter_async_context(
                    open_model(name, params, access=access)
                )
            recording = _Recording(recorded_model, live_model, self)
            self._recordings[name, params] = recording
        return recording

    def unused_replies(self, episode: str) -> int:
        """Return the number of recorded replies of an episode that no question needed."""
        return max(0, self.store.size(episode) - self.count[episode])


def can_be_queried(names: list[str]) -> bool:
    """Return whether all models with these names can be queried again.

    Only scripted models that are installed here can. An agent without a model name, such as an
    agent over HTTP or a pipe, cannot be queried again. The result is False for no names.
    """
    if not names or not all(names):
        return False
    parsed = [parse_name(name) for name in names]
    return all(name.route == "scripted" and name.rest in scripted_models for name in parsed)


class _Recording:
    """A model that gives the recorded replies.

    If an episode has no recording, its replies are read from its dialogue log, in order.
    ``live_model`` is queried as well and must give the same replies. It is None if the model cannot
    be queried again.
    """

    def __init__(
        self, recorded_model: Model, live_model: Model | None, models: RecordedModels
    ) -> None:
        self._recorded_model, self._live_model, self._models = recorded_model, live_model, models
        self._logs: dict[str, deque[ModelReply]] = {}

    @property
    def name(self) -> str:
        return self._recorded_model.name

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        self._models.count[place.episode] += 1
        if self._models.store.path(place.episode).is_file():
            reply = await self._recorded_model.ask(request, place)
        else:
            log = self._logs.get(place.episode)
            if log is None:
                lines = read_dialogue(self._models.folder.dialogue(place.episode))
                log = deque(line.reply for line in lines)
                self._logs[place.episode] = log
            if not log:
                hint = "the dialogue log was cut, or the rules changed"
                raise RunError("there are more questions than recorded answers", hint=hint)
            reply = log.popleft()
        if self._live_model is not None and reply.error_kind != "over_budget":
            live_reply = await self._live_model.ask(request, place)
            if live_reply != reply:
                raise RecordingMismatch(
                    f"step {place.step}, question {place.index}: {self.name} does not answer as "
                    "recorded",
                    hint="the recorded answers were edited, or the scripted model has changed",
                )
        return reply


def with_irreproducible_parts(outcome: Outcome, source: Outcome) -> Outcome:
    """Return an outcome with the irreproducible parts copied from ``source``.

    The irreproducible parts are the traceback, which contains paths and line numbers, and the
    statement whether answers were live or replayed.
    """
    changed = msgspec.structs.replace(outcome, traceback=source.traceback)
    if isinstance(changed.model, msgspec.UnsetType) or isinstance(source.model, msgspec.UnsetType):
        return changed
    if {changed.model.answers, source.model.answers} <= {"live", "replayed"}:
        changed = msgspec.structs.replace(
            changed, model=msgspec.structs.replace(changed.model, answers=source.model.answers)
        )
    return changed


def differences(
    old: Any, new: Any, where: str = "", *, absent: object = None, near: bool = False
) -> Iterator[tuple[str, object, object]]:
    """Yield every path at which two JSON values differ, with both values.

    ``where`` is the path of the two values. A missing key has the value ``absent``. With ``near``,
    numbers may differ in their last digits.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            path = f"{where}.{key}" if where else str(key)
            yield from differences(
                old.get(key, absent), new.get(key, absent), path, absent=absent, near=near
            )
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from differences(
                old_item, new_item, f"{where}[{index}]", absent=absent, near=near
            )
    elif near and isinstance(old, float) and isinstance(new, float) and close(old, new):
        return
    elif old != new:
        yield where, old, new


def format_difference(content: bytes, canonical: bytes) -> str:
    """Return how the content of a file differs from the same content in tradeassay's format."""
    try:
        stored, expected = msgspec.json.decode(content), msgspec.json.decode(canonical)
        changed = differences(stored, expected, absent=msgspec.UNSET)
        # An unknown field is a difference, even if its value is null.
        extra = ""
        for where, old, new in changed:
            if old is not msgspec.UNSET and (old is not None or new is msgspec.UNSET):
                extra = where
                break
    except UNDECODABLE:  # The decoder of records skips unknown fields, so it accepts such a value.
        return "it contains an unreadable value"
    return f"it must not contain '{extra}'" if extra else "it is not in tradeassay's format"
