"""Playing one episode with a language model: market, conversation, model; one journal line per decision.

The market and the protocol are synchronous and deterministic; only asking takes time. So a continued episode is
brought back to where it was by its journal, and goes on from there with the answers that were recorded.
"""

from __future__ import annotations

import time
import traceback
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import LedgerError, ModelError, RunError
from tradeassay.core.events import StepRecord
from tradeassay.core.hashing import sha256_of
from tradeassay.core.orders import Decision
from tradeassay.llm import CassetteMismatch, Model, Place
from tradeassay.play import Market
from tradeassay.runs.atomic import remove_temporaries
from tradeassay.runs.conversation import open_protocol
from tradeassay.runs.converse import converse
from tradeassay.runs.dialogue_log import DialogueLog, Scribe
from tradeassay.runs.episode import Episode
from tradeassay.runs.journal import EVERY_LINE, Journal, encode_line
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.outcome import ModelPart, Outcome, one_line, write_outcome
from tradeassay.runs.play import Tally
from tradeassay.runs.progress import Advanced, Answered, AskStarted, Listener, ProgressEvent
from tradeassay.runs.snapshots import snapshot_for
from tradeassay.runs.tasks import Played, PlayTask

NOBODY = frozenset(("over_budget", "unreachable", "rate_limited", "rejected"))
"""Kinds of error that say nothing about the model: it was not reached, or may not be asked. They end an episode.

Counting such days as the model's failures would make a broken cable a trading result.
"""

Answers = Literal["scripted", "replayed", "live"]


class NoAnswer(ModelError):
    """The model cannot be asked any more."""


class ListenerBroke(Exception):
    """Whoever is told about progress raised; that is no failure of an episode."""


async def play_with_model(task: PlayTask, model: Model, answers: Answers, listen: Listener) -> Played:
    """Play an episode to its end and record how it ended.

    An episode that fails is recorded as failed. What is raised stops the whole run: :class:`LedgerError`,
    :class:`RunError` (the journal cannot be continued) and :class:`CassetteMismatch` (a replay that does not fit).
    """
    began = time.perf_counter()
    folder, key = RunFolder(Path(task.folder)), task.episode.key
    folder.episode(key).mkdir(parents=True, exist_ok=True)
    with Journal(folder.events(key)) as journal:
        journal.policy = EVERY_LINE
        remove_temporaries(folder.episode(key))
        with DialogueLog(folder.dialogue(key), len(journal.lines)) as log:
            try:
                outcome = await _Player(task, model, journal, log, listen).to_its_end()
            except ListenerBroke as broke:
                raise (broke.__cause__ or broke) from None
            outcome = msgspec.structs.replace(outcome, model=ModelPart(answers=answers, spending=log.spending))
        write_outcome(folder.outcome(key), outcome)
    return Played(outcome=outcome, seconds=time.perf_counter() - began)


class _Player:
    """An episode while it is played."""

    def __init__(self, task: PlayTask, model: Model, journal: Journal, log: DialogueLog, listen: Listener) -> None:
        self._task = task
        self._key = task.episode.key
        self._model = model
        self._journal = journal
        self._log = log
        self._listen = listen
        self._tally = Tally()
        self._scribe: Scribe | None = None

    async def to_its_end(self) -> Outcome:
        """Restore what the journal holds, then play day by day."""
        try:
            observation = self._restore()
            while observation is not None:
                decision = await self._day(observation)
                step = self._market.step(decision)
                self._protocol.remember(observation, decision)
                self._write(step.record)
                observation = step.observation
        except (LedgerError, RunError, CassetteMismatch, OSError, ListenerBroke):
            raise
        except Exception as error:
            return self._failed(error)
        return self._tally.ended()

    def _restore(self) -> Observation | None:
        """Bring market and conversation to where the journal ends, and return what is seen there."""
        task, known = self._task, self._journal.lines
        snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
        self._market = Market(snapshot, task.benchmark.market)
        self._protocol = open_protocol(task.benchmark)
        info = EpisodeInfo(episode=self._key, seed=task.episode.seed, rules=self._market.rules)
        self._protocol.begin(info, conversation_rng(task.episode, snapshot.name))
        for line in known:
            self._tally.add(line.record, line.raw)
        seen = self._market.restore(
            (line.record for line in known),
            lambda observation, record: self._protocol.remember(observation, record.decision),
        )
        if known:
            self._tell(Advanced(key=self._key, sessions=len(known)))
        return seen

    async def _day(self, observation: Observation) -> Decision:
        """Carry one day's conversation between the protocol and the model."""
        scribe = self._scribe = Scribe(observation.step, observation.session)

        async def ask(request: AskModel, index: int) -> ModelReply:
            reply = await self._ask(request, observation, index)
            scribe.note(request, reply)
            if reply.error_kind in NOBODY:
                raise NoAnswer(f"{reply.error_kind} on {observation.session}: {reply.error}")
            return reply

        return await converse(self._protocol.dialogue(observation), ask)

    async def _ask(self, request: AskModel, observation: Observation, index: int) -> ModelReply:
        self._tell(
            AskStarted(
                key=self._key,
                agent=self._task.episode.label,
                session=observation.session,
                purpose=request.purpose,
                attempt=request.attempt,
            )
        )
        place = Place(episode=self._key, step=observation.step, sample=self._task.episode.seed, index=index)
        reply = await self._model.ask(request, place)
        self._tell(Answered(key=self._key, usage=reply.usage, error_kind=reply.error_kind))
        return reply

    def _write(self, record: StepRecord) -> None:
        raw = encode_line(record)
        if self._scribe is not None:
            self._log.append(self._scribe.lines)
            self._scribe = None
        self._journal.append(raw)
        self._tally.add(record, raw)
        self._tell(Advanced(key=self._key, sessions=1))

    def _failed(self, error: Exception) -> Outcome:
        """Keep what was said on the day that broke off, and say why it did."""
        if self._scribe is not None:
            self._log.append(self._scribe.lines)
        if isinstance(error, NoAnswer):
            return self._tally.failed(error.message, None)
        return self._tally.failed(one_line(error), "".join(traceback.format_exception(error)))

    def _tell(self, event: ProgressEvent) -> None:
        try:
            self._listen(event)
        except Exception as error:
            raise ListenerBroke from error


def conversation_rng(episode: Episode, dataset: str) -> np.random.Generator:
    """Return the generator of an episode's conversation (aliases, samples).

    It is the same for every model and every setting, so that models, and masks, are compared on the same draws.
    """
    words = sha256_of((episode.benchmark, dataset, "conversation", episode.seed))
    return np.random.Generator(np.random.PCG64(int(words, 16)))
