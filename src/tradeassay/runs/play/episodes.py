"""Playing the episodes of a run: one journal line per decision, and how each episode ended.

An agent that answers at once is always played from the first session: what the journal already holds is not
written again but must come out the same, to the byte. An agent whose answers cost something is brought back to
where it was by its journal, and goes on from there. Either way a resumed episode continues from a state that was
checked, not taken on trust.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.agents import make_agent
from tradeassay.benchmarks import Benchmark
from tradeassay.benchmarks.daily import ByObservation
from tradeassay.core.agent import Agent, AskDecision, CostlyAgent
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.draws import seed_from
from tradeassay.core.drive import fault_of
from tradeassay.core.errors import LedgerError, NotFinite, RunError
from tradeassay.core.events import StepRecord
from tradeassay.core.executors import Stopping, Tick
from tradeassay.core.files import remove_temporaries
from tradeassay.core.hashing import sha256_of
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.llm import CassetteMismatch, Model, QuestionPlace
from tradeassay.play import Asked, NoAnswer
from tradeassay.play import Episode as Play
from tradeassay.play.dialogue_log import DialogueLog, Lines, Scribe
from tradeassay.play.episode import NOBODY, by_observation, recorded
from tradeassay.play.journal import BATCHED, EVERY_LINE, Journal, JournalLine, LinesOf, encode_line
from tradeassay.runs.play.progress import Advanced, Answered, AskStarted, Listener, ProgressEvent
from tradeassay.runs.spec.episode import EpisodeSpec, open_protocol
from tradeassay.runs.store.cache import snapshot_for
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.outcome import Answers, ModelPart, Outcome, Played, write_outcome

_FATAL = (LedgerError, RunError, CassetteMismatch)
"""Errors that stop a run: wrong money is worse than no result, and so is a journal or replay that does not fit.

A :class:`NotFinite` ends its own episode alone: the ledger refused the event, so no wrong money was booked."""


class PlayTask(msgspec.Struct, frozen=True, kw_only=True, tag="play"):
    """Play an episode to its end, from where its journal ends. ``benchmark`` has the run's window.

    ``secret`` is what a conversation's draws are derived from, where the benchmark has any.
    """

    folder: str
    home: str | None
    episode: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str
    secret: str | None = None


class ListenerBroke(Exception):
    """A progress listener raised, which is not a failure of the episode."""


def play(task: PlayTask, tick: Tick, stopping: Stopping) -> Played:
    """Play an episode whose agent answers at once, and record how it ended.

    An episode that fails is recorded as failed. Raised errors stop the whole run: :class:`LedgerError` (wrong
    money is worse than no result) and :class:`RunError` (the journal cannot be continued).
    """
    began = time.perf_counter()
    folder = RunFolder(Path(task.folder))
    key = task.episode.key
    folder.episode(key).mkdir(parents=True, exist_ok=True)
    with Journal(folder.events(key)) as journal:
        remove_temporaries(folder.episode(key))
        outcome = answer_at_once(task, journal, tick, stopping)
        journal.flush()
        if outcome is not None:
            write_outcome(folder.outcome(key), outcome)
    return Played(outcome=outcome, seconds=time.perf_counter() - began)


async def play_with_model(task: PlayTask, model: Model, answers: Answers, listen: Listener) -> Played:
    """Play an episode in the benchmark's conversation, and record how it ended.

    An episode that fails is recorded as failed. Raised errors stop the whole run: :class:`LedgerError`,
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
                outcome = await Conversation(task, model, answers, journal, log, listen).to_its_end()
            except ListenerBroke as broke:
                raise (broke.__cause__ or broke) from None
        write_outcome(folder.outcome(key), outcome)
    return Played(outcome=outcome, seconds=time.perf_counter() - began)


class Tally:
    """Counts steps and hashes lines while an episode is played."""

    def __init__(self) -> None:
        self.steps = 0
        self._unusable = 0
        self._reason = ""
        self._digest = hashlib.sha256()

    def add(self, record: StepRecord, raw: bytes) -> None:
        self.steps += 1
        if record.decision.status == "failed":
            self._unusable += 1
            raised = next((one.detail for one in record.decision.failures if one.kind == "agent"), "")
            self._reason = self._reason or raised or record.decision.reason
        self._digest.update(raw + b"\n")

    def ended(self) -> Outcome:
        """Return the outcome of an episode that was played to its end.

        An agent that never gave a usable answer has failed: its flat account is not a return of zero.
        """
        if self.steps == self._unusable:
            why = f" ({self._reason})" if self._reason else ""
            return self.failed(f"no usable answer in any of {self.steps} sessions{why}", None)
        return Outcome(status="done", steps=self.steps, events_sha256=self._digest.hexdigest())

    def failed(self, error: str, trace: str | None) -> Outcome:
        return Outcome(
            status="failed", steps=self.steps, events_sha256=self._digest.hexdigest(), error=error, traceback=trace
        )

    def broke(self, error: Exception) -> Outcome:
        """Return the outcome of an episode ended by an exception."""
        if isinstance(error, NoAnswer):
            return self.failed(error.message, None)
        return self.failed(str(fault_of(error)), "".join(traceback.format_exception(error)))


# -- agents that answer at once ---


def answer_at_once(task: PlayTask, journal: LinesOf[StepRecord], tick: Tick, stopping: Stopping) -> Outcome | None:
    """Play until the end, or until asked to stop (None).

    Only exceptions of the agent and the market make an episode fail. Trouble with the journal or a progress
    listener is not its fault and leaves it unfinished.
    """
    tally, known = Tally(), journal.lines
    for record in _bounded(_records(task, journal)):
        if isinstance(record, Exception):
            return tally.broke(record)
        raw = encode_line(record)
        if tally.steps < len(known):
            if known[tally.steps].raw != raw:
                raise RunError(
                    f"step {record.step} of {task.episode.key} ({record.session}) does not come out as the "
                    "journal says",
                    hint="the agent is not deterministic or the journal was edited: delete the episode's folder, "
                    "resume",
                )
        else:
            journal.append(raw)
        tally.add(record, raw)
        tick(1)
        if stopping():
            return None
    if tally.steps < len(known):
        raise RunError(
            f"the journal of {task.episode.key} has {len(known)} steps, its window only {tally.steps}",
            hint="delete the episode's folder and resume: it is played again",
        )
    return tally.ended()


def _bounded(records: Iterator[StepRecord]) -> Iterator[StepRecord | Exception]:
    """Yield records; what ends them is yielded last, unless it has to stop the run."""
    try:
        yield from records
    except NotFinite as error:
        yield error
    except _FATAL:
        raise
    except Exception as error:
        yield error


def _records(task: PlayTask, journal: LinesOf[StepRecord]) -> Iterator[StepRecord]:
    snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
    agent = make_agent(task.episode.agent.name, task.episode.agent.params)
    journal.policy = EVERY_LINE if isinstance(agent, CostlyAgent) else BATCHED
    yield from steps(snapshot, task.benchmark, task.episode, agent, journal.lines)


def steps(
    snapshot: Snapshot,
    benchmark: Benchmark,
    episode: EpisodeSpec,
    agent: Agent,
    known: Sequence[JournalLine[StepRecord]] = (),
) -> Iterator[StepRecord]:
    """Yield the records of an episode. A costly agent is given its ``known`` decisions instead of being asked."""
    play: Play[AskDecision, Decision] = Play(
        snapshot, benchmark.market, ByObservation(benchmark.day), key=episode.key, seed=episode.seed
    )
    agent.begin(play.info, episode_rng(benchmark, episode, snapshot.name))
    play.open()
    if isinstance(agent, CostlyAgent):
        for line in known:
            seen = play.observation
            if seen is None:
                return
            agent.recall(seen, line.record.decision)
            yield play.decide(line.record.decision)
    answer = by_observation(agent)
    yield from play.records(lambda asked: answer(asked.request))


def episode_rng(benchmark: Benchmark, episode: EpisodeSpec, dataset: str) -> np.random.Generator:
    """Return the generator an agent may use: its own for every benchmark, data set, agent and seed.

    ``dataset`` is the data's name, not its content: a change of tomorrow's prices must not change today's dice.
    """
    words = sha256_of((benchmark.dice, dataset, episode.agent.name, episode.agent.params, episode.seed))
    return np.random.Generator(np.random.PCG64(int(words, 16)))


# -- agents that are asked in a conversation ---


def conversation(
    snapshot: Snapshot, benchmark: Benchmark, episode: EpisodeSpec, secret: str | None = None
) -> Play[AskModel, ModelReply]:
    """Return an episode in the benchmark's own conversation, not yet opened."""
    return Play(
        snapshot,
        benchmark.market,
        open_protocol(benchmark),
        key=episode.key,
        seed=episode.seed,
        rng=conversation_rng(
            benchmark, episode, snapshot.name, secret, (benchmark.market.first, benchmark.market.last)
        ),
    )


def conversation_rng(
    benchmark: Benchmark,
    episode: EpisodeSpec,
    dataset: str,
    secret: str | None = None,
    days: tuple[str, str] | None = None,
) -> np.random.Generator:
    """Return the generator of an episode's conversation (aliases, samples).

    It is the same for every model and every setting, so that models, and masks, are compared on the same draws.
    With the run's ``secret`` nobody can make these draws before the run is published, and every window (``days``)
    has its own: what was learned about an alias in one says nothing about the next.
    """
    if secret is not None:
        window = "" if days is None else f"{days[0]} to {days[1]}"
        seed = seed_from(secret, benchmark.dice, dataset, window, "conversation", episode.seed)
        return np.random.Generator(np.random.PCG64(seed))
    words = sha256_of((benchmark.dice, dataset, "conversation", episode.seed))
    return np.random.Generator(np.random.PCG64(int(words, 16)))


class Conversation:
    """An episode being played by ``model``, from where its journal ends. It also notifies the listener."""

    def __init__(
        self,
        task: PlayTask,
        model: Model,
        answers: Answers,
        journal: LinesOf[StepRecord],
        log: Lines,
        listen: Listener,
    ) -> None:
        self._task, self._key = task, task.episode.key
        self._model, self._answers = model, answers
        self._journal, self._log, self._listen = journal, log, listen
        self._tally = Tally()
        self._scribe = Scribe(0, "")

    async def to_its_end(self) -> Outcome:
        """Restore what the journal holds, then play day by day; returns how the episode ended."""
        outcome = await self._play_days()
        return msgspec.structs.replace(
            outcome, model=ModelPart(answers=self._answers, spending=self._log.spending)
        )

    async def _play_days(self) -> Outcome:
        async for record in self._bounded(self._records()):
            self._log.append(self._scribe.lines)
            self._scribe = Scribe(0, "")
            if isinstance(record, Exception):
                return self._tally.broke(record)
            raw = encode_line(record)
            self._journal.append(raw)
            self._tally.add(record, raw)
            self._notify(Advanced(key=self._key, sessions=1))
        return self._tally.ended()

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        self._notify(
            AskStarted(
                key=self._key,
                agent=self._task.episode.label,
                session=self._play.market.sessions[place.step],
                purpose=request.purpose,
                attempt=request.attempt,
            )
        )
        reply = await self._model.ask(request, place)
        self._notify(Answered(key=self._key, usage=reply.usage, error_kind=reply.error_kind))
        return reply

    async def _records(self) -> AsyncIterator[StepRecord]:
        task, known = self._task, self._journal.lines
        snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
        self._play = play = conversation(snapshot, task.benchmark, task.episode, task.secret)
        for line in known:
            self._tally.add(line.record, line.raw)
        play.resume(line.record for line in known)
        if known:
            self._notify(Advanced(key=self._key, sessions=len(known)))
        async for record in play.arecords(self._answer):
            yield record

    async def _answer(self, asked: Asked[AskModel]) -> ModelReply:
        """Answer one question; the exchange is written before the journal's line of that day."""
        step = asked.place.step
        session = self._play.market.sessions[step]
        if asked.place.index == 0:
            self._scribe = Scribe(step, session)
        reply = await recorded(self, self._scribe)(asked)
        if reply.error_kind in NOBODY:
            raise NoAnswer(f"{reply.error_kind} on {session}: {reply.error}")
        return reply

    @staticmethod
    async def _bounded(records: AsyncIterator[StepRecord]) -> AsyncIterator[StepRecord | Exception]:
        """Yield records; what ends them is yielded last, unless it has to stop the run."""
        try:
            async for record in records:
                yield record
        except NotFinite as error:
            yield error
        except (*_FATAL, OSError, ListenerBroke):
            raise
        except Exception as error:
            yield error

    def _notify(self, event: ProgressEvent) -> None:
        try:
            self._listen(event)
        except Exception as error:
            raise ListenerBroke from error
