"""Run the episodes of a run: one journal line per decision, and an outcome per episode.

When an episode is resumed, an agent without costs runs again from the first session. The lines
that are already in the journal must be byte-identical and are not written again. An agent whose
answers have a cost receives its earlier decisions from the journal and continues after them.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.agents import ModelAgent, Opening, make_agent, make_conversing
from tradeassay_bench.benchmarks import Benchmark
from tradeassay_bench.benchmarks.daily import ByObservation
from tradeassay_bench.core.agent import Agent, AskDecision, CostlyAgent
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import fault_in_user_code
from tradeassay_bench.core.errors import LedgerError, NotFinite, RunError
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.executors.task import Stopping, Tick, one_thread
from tradeassay_bench.core.files import remove_temporaries
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm import (
    Access,
    Budget,
    Model,
    ModelParams,
    QuestionPlace,
    RecordingMismatch,
    RecordingStore,
    load_prices,
    open_model,
)
from tradeassay_bench.play import AddressedQuestion, Episode, NoAnswer
from tradeassay_bench.play.dialogue_log import DialogueLog, Lines, Scribe
from tradeassay_bench.play.episode import UNAVAILABLE, by_observation, recorded
from tradeassay_bench.play.journal import (
    BATCHED,
    EVERY_LINE,
    Journal,
    JournalLine,
    LinesOf,
    encode_line,
)
from tradeassay_bench.runs.play.progress import (
    Advanced,
    Answered,
    AskStarted,
    Listener,
    ProgressEvent,
)
from tradeassay_bench.runs.spec.episode import (
    Asking,
    EpisodeSpec,
    open_protocol,
    params_for,
    protocol_config,
)
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import RunManifest, snapshot_for
from tradeassay_bench.runs.store.outcome import Answers, ModelPart, Outcome, Played, write_outcome

_FATAL = (LedgerError, RunError, RecordingMismatch)
"""Errors that stop a run: a wrong account or an inconsistent journal is worse than no result.

:class:`NotFinite` is a :class:`LedgerError`, but ends only the episode: the ledger rejected the
event, so the account is still correct.
"""


class PlayTask(msgspec.Struct, frozen=True, kw_only=True, tag="play"):
    """A task to run an episode from the end of its journal to its own end.

    ``folder`` is the folder of the run, and ``home`` is the root of the data store. ``benchmark``
    includes the window and the options of the episode. ``secret`` seeds the random draws of a
    conversation. It is None if the benchmark has no such draws.
    """

    folder: str
    home: str | None
    episode: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str
    secret: str | None = None


def play_task(
    place: RunFolder,
    home: str | None,
    manifest: RunManifest,
    episode: EpisodeSpec,
    other: Benchmark | None = None,
) -> PlayTask:
    """Return the task of running an episode. ``other`` replaces the manifest's benchmark."""
    played = other or manifest.benchmark(episode)
    return PlayTask(
        folder=str(place.path.absolute()),
        home=home,
        episode=episode,
        benchmark=played,
        data_sha256=manifest.datasets[episode.dataset].sha256,
        secret=manifest.secret if played.takes_secret else None,
    )


class ListenerBroke(Exception):
    """Raised if a progress listener raises, so that the episode is not recorded as failed."""


def notify(listen: Listener, event: ProgressEvent) -> None:
    """Notify a listener. Any exception it raises becomes a :class:`ListenerBroke`."""
    try:
        listen(event)
    except Exception as error:
        raise ListenerBroke from error


async def ask_and_notify(
    model: Model,
    request: AskModel,
    place: QuestionPlace,
    episode: EpisodeSpec,
    session: str,
    listen: Listener,
) -> ModelReply:
    """Return a model's reply to a request. Notify a listener of the question and of the cost."""
    key, purpose, attempt = episode.key, request.purpose, request.attempt
    notify(
        listen,
        AskStarted(key=key, agent=episode.label, session=session, purpose=purpose, attempt=attempt),
    )
    reply = await model.ask(request, place)
    notify(listen, Answered(key=key, usage=reply.usage, error_kind=reply.error_kind))
    return reply


def play(task: PlayTask, tick: Tick, stopping: Stopping) -> Played:
    """Run an episode whose agent answers directly, record its outcome, and return it.

    ``tick`` is called after every session, and ``stopping`` returns whether the run is stopping. A
    failure of the episode is recorded. Errors that stop the whole run are raised:
    :class:`LedgerError` (a wrong account is worse than no result) and :class:`RunError` (the
    journal cannot be continued).
    """
    began, key, folder = time.perf_counter(), task.episode.key, RunFolder(Path(task.folder))
    folder.episode(key).mkdir(parents=True, exist_ok=True)
    with Journal(folder.events(key)) as journal:
        remove_temporaries(folder.episode(key))
        outcome = play_by_observation(task, journal, tick, stopping)
        journal.flush()
        if outcome is not None:
            write_outcome(folder.outcome(key), outcome)
    return Played(outcome=outcome, seconds=time.perf_counter() - began)


@dataclass(slots=True)
class Tally:
    """Counts the steps and hashes the lines of a running episode."""

    steps: int = 0
    _unusable: int = 0
    _reason: str = ""
    _digest: Any = field(default_factory=hashlib.sha256)

    def add(self, record: StepRecord, raw: bytes) -> None:
        """Count a step. ``raw`` is its line in the journal, without the line end."""
        self.steps += 1
        if record.decision.status == "failed":
            self._unusable += 1
            raised = next(
                (failure.detail for failure in record.decision.failures if failure.kind == "agent"),
                "",
            )
            self._reason = self._reason or raised or record.decision.reason
        self._digest.update(raw + b"\n")

    def outcome(self, broke: Exception | None = None) -> Outcome:
        """Return the outcome of the episode. ``broke`` is the error that ended it, if any."""
        error, trace = None, None
        if isinstance(broke, NoAnswer):
            error = broke.message
        elif broke is not None:
            error, trace = (
                str(fault_in_user_code(broke)),
                "".join(traceback.format_exception(broke)),
            )
        elif self.steps == self._unusable:
            # The account of an agent without usable answers is flat. That is not a return of zero.
            why = f" ({self._reason})" if self._reason else ""
            error = f"no usable answer in any of {self.steps} sessions{why}"
        return Outcome(
            status="done" if error is None else "failed",
            steps=self.steps,
            events_sha256=self._digest.hexdigest(),
            error=error,
            traceback=trace,
        )


# -- agents that answer directly ---


def play_by_observation(
    task: PlayTask, journal: LinesOf[StepRecord], tick: Tick, stopping: Stopping
) -> Outcome | None:
    """Run an episode to its end, with an agent that decides by observation. Return the outcome.

    Returns None if the run is stopping. Only exceptions of the agent and the market make an episode
    fail. An error of the journal or a progress listener is raised, and the episode stays
    unfinished.
    """
    tally, journal_lines, key = Tally(), journal.lines, task.episode.key

    def play_records() -> Iterator[StepRecord]:
        snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
        agent = make_agent(task.episode.agent.name, task.episode.agent.params)
        journal.batch = EVERY_LINE if isinstance(agent, CostlyAgent) else BATCHED
        yield from steps(snapshot, task.benchmark, task.episode, agent, journal.lines)

    records = play_records()
    while True:
        try:
            record = next(records, None)
        except Exception as error:
            if isinstance(error, _FATAL) and not isinstance(error, NotFinite):
                raise
            return tally.outcome(error)
        if record is None:
            break
        raw = encode_line(record)
        if tally.steps >= len(journal_lines):
            journal.append(raw)
        elif journal_lines[tally.steps].raw != raw:
            raise RunError(
                f"step {record.step} of {key} ({record.session}) differs from the journal",
                hint="the agent is not deterministic or the journal was edited: delete its folder, "
                "resume",
            )
        tally.add(record, raw)
        tick(1)
        if stopping():
            return None
    if tally.steps < len(journal_lines):
        raise RunError(
            f"the journal of {key} has {len(journal_lines)} steps, but its window has "
            f"{tally.steps} sessions",
            hint="delete the episode's folder and resume: the episode runs again",
        )
    return tally.outcome()


def steps(
    snapshot: Snapshot,
    benchmark: Benchmark,
    episode: EpisodeSpec,
    agent: Agent,
    known: Sequence[JournalLine[StepRecord]] = (),
) -> Iterator[StepRecord]:
    """Run an episode and yield the record of every session.

    ``known`` contains the lines that are already in the journal. A costly agent receives these
    decisions and is not queried for them. Other agents are queried from the first session.
    """
    play: Episode[AskDecision, Decision] = Episode(
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
    """Return the random generator of an agent.

    Each combination of benchmark, data set, agent and seed has a separate generator. ``dataset`` is
    the name of the data set. The content is not used, because a change of tomorrow's prices must
    not change today's draws.
    """
    words = sha256_of(
        (benchmark.seed_text, dataset, episode.agent.name, episode.agent.params, episode.seed)
    )
    return np.random.Generator(np.random.PCG64(int(words, 16)))


# -- agents that use a model ---


def model_episode(
    snapshot: Snapshot, benchmark: Benchmark, episode: EpisodeSpec, secret: str | None = None
) -> Episode[AskModel, ModelReply]:
    """Return a new episode in which a model decides, in the conversation of the benchmark.

    ``secret`` seeds the random draws of the conversation.
    """
    days = benchmark.market.first, benchmark.market.last
    rng = conversation_rng(benchmark, episode, snapshot.name, secret, days)
    protocol = open_protocol(benchmark)
    return Episode(
        snapshot, benchmark.market, protocol, key=episode.key, seed=episode.seed, rng=rng
    )


def conversation_rng(
    benchmark: Benchmark,
    episode: EpisodeSpec,
    dataset: str,
    secret: str | None = None,
    days: tuple[str, str] | None = None,
) -> np.random.Generator:
    """Return the random generator of an episode's conversation (aliases, samples).

    The generator does not depend on the model or the mask, so that models and masks are compared
    on the same draws. The run's ``secret`` prevents anyone from predicting the draws before the run
    is published. ``days`` contains the first and the last day of the window. With a secret, every
    window has separate draws, so that an alias known from one window is useless in the next.
    """
    if secret is not None:
        window = "" if days is None else f"{days[0]} to {days[1]}"
        seed = seed_from(secret, benchmark.seed_text, dataset, window, "conversation", episode.seed)
        return np.random.Generator(np.random.PCG64(seed))
    words = sha256_of((benchmark.seed_text, dataset, "conversation", episode.seed))
    return np.random.Generator(np.random.PCG64(int(words, 16)))


@dataclass(eq=False)
class Conversation:
    """Runs an episode with a model, continuing after its journal. Notifies a progress listener."""

    task: PlayTask
    model: Model
    answers: Answers
    journal: LinesOf[StepRecord]
    log: Lines
    listen: Listener
    _tally: Tally = field(default_factory=Tally)
    _scribe: Scribe = field(default_factory=lambda: Scribe(0, ""))

    async def to_its_end(self) -> Outcome:
        """Restore the state from the journal, run the remaining sessions, return the outcome."""
        records, outcome = self._records(), None
        while outcome is None:
            record = None
            try:
                record = await anext(records, None)
            except Exception as error:
                if isinstance(error, (*_FATAL, OSError, ListenerBroke)) and not isinstance(
                    error, NotFinite
                ):
                    raise
                outcome = self._tally.outcome(error)
            self.log.append(self._scribe.lines)
            self._scribe = Scribe(0, "")
            if record is not None:
                raw = encode_line(record)
                self.journal.append(raw)
                self._tally.add(record, raw)
                notify(self.listen, Advanced(key=self.task.episode.key, sessions=1))
            elif outcome is None:
                outcome = self._tally.outcome()
        model = ModelPart(answers=self.answers, spending=self.log.spending)
        return msgspec.structs.replace(outcome, model=model)

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the model's reply to a request, and notify the listener."""
        session = self._play.market.sessions[place.step]
        return await ask_and_notify(
            self.model, request, place, self.task.episode, session, self.listen
        )

    async def _records(self) -> AsyncIterator[StepRecord]:
        """Yield the record of every session after the end of the journal."""
        task, journal_lines = self.task, self.journal.lines
        snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
        play = model_episode(snapshot, task.benchmark, task.episode, task.secret)
        self._play = play
        for line in journal_lines:
            self._tally.add(line.record, line.raw)
        play.resume(line.record for line in journal_lines)
        if journal_lines:
            notify(self.listen, Advanced(key=self.task.episode.key, sessions=len(journal_lines)))
        async for record in play.arecords(self._answer):
            yield record

    async def _answer(self, asked: AddressedQuestion[AskModel]) -> ModelReply:
        """Return the answer to a question.

        The exchange is logged before the line of the session is written to the journal. Raises
        :class:`NoAnswer` if the model is not available.
        """
        step = asked.place.step
        session = self._play.market.sessions[step]
        if asked.place.index == 0:
            self._scribe = Scribe(step, session)
        reply = await recorded(self, self._scribe)(asked)
        if reply.error_kind in UNAVAILABLE:
            raise NoAnswer(f"{reply.error_kind} on {session}: {reply.error}")
        return reply


T = TypeVar("T")


def play_models(
    tasks: Sequence[PlayTask],
    place: RunFolder,
    asking: Asking,
    listen: Listener,
    ended: Callable[[str, Played], None],
) -> None:
    """Run the episodes of models, ``asking.concurrency`` at a time, and record each outcome.

    ``ended`` is called with the key and the outcome of each finished episode. A failed episode is
    recorded as failed. Errors that stop a run are raised: :class:`LedgerError`, :class:`RunError`
    for a journal that cannot be continued, and :class:`RecordingMismatch` for a replay that does
    not match. All other episodes then also stop, and all written data is kept. Raises
    :class:`UserError` if a model cannot be opened.
    """
    copy_recorded_answers([task.episode.key for task in tasks], place, asking)

    async def play_all() -> None:
        async with AsyncExitStack() as stack:
            # Answers that cost money or time must survive a power failure. Answers of a scripted
            # model can be computed again.
            paid = any(not task.episode.model.startswith("scripted/") for task in tasks)
            models = OpenModels(place, asking, stack, home=tasks[0].home, durable=paid)

            async def play_one(task: PlayTask) -> None:
                key = task.episode.key
                async with models.agent(task) as model:
                    began, answers = time.perf_counter(), models.answers(model.name)
                    place.episode(key).mkdir(parents=True, exist_ok=True)
                    with Journal(place.events(key)) as journal:
                        journal.batch = EVERY_LINE
                        remove_temporaries(place.episode(key))
                        with DialogueLog(place.dialogue(key), len(journal.lines)) as log:
                            talk = Conversation(task, model, answers, journal, log, listen)
                            outcome = await talk.to_its_end()
                        write_outcome(place.outcome(key), outcome)
                    played = Played(outcome=outcome, seconds=time.perf_counter() - began)
                ended(key, played)

            await run_concurrently(tasks, asking.concurrency, play_one)

    with one_thread():
        run_async(play_all())


def play_in_worker(place: RunFolder, asking: Asking, task: PlayTask) -> Played:
    """Run one episode with a model in a worker process and return its outcome.

    Recorded answers are read from the run's folder.
    """
    ended: list[Played] = []
    play_models([task], place, asking, lambda event: None, lambda key, played: ended.append(played))
    return ended[0]


async def run_concurrently(
    items: Sequence[T], limit: int, work: Callable[[T], Awaitable[None]]
) -> None:
    """Await ``work(item)`` for all items, with at most ``limit`` items in progress.

    If a call raises, cancel all other calls and raise its exception.
    """
    slots = asyncio.Semaphore(limit)

    async def work_in_slot(item: T) -> None:
        async with slots:
            await work(item)

    running = [asyncio.ensure_future(work_in_slot(item)) for item in items]
    try:
        await asyncio.gather(*running)
    except ListenerBroke as broke:
        raise (broke.__cause__ or broke) from None
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class OpenModels:
    """Opens the models of a run, and keeps each model open for each set of parameters."""

    def __init__(
        self,
        place: RunFolder,
        asking: Asking,
        stack: AsyncExitStack,
        *,
        home: str | None,
        durable: bool,
    ) -> None:
        self._asking = asking
        self._stack = stack
        self._store = RecordingStore(place.models, durable=durable)
        stack.callback(self._store.close)
        # A replay costs nothing, and the recordings of a large run take a long time to read.
        self._budget = None
        if not asking.replay:
            spent = asking.spent_usd + self._store.spent_usd()
            self._budget = Budget(asking.max_usd, spent_usd=spent)
        self._access = Access(
            base_url=asking.base_url,
            prices=load_prices(asking.prices),
            home=None if home is None else Path(home),
        )
        self._open: dict[tuple[str, ModelParams], Model] = {}
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def agent(self, task: PlayTask) -> AsyncIterator[Model]:
        """Open the agent of an episode as a model, for the duration of the block.

        A language model is shared by all episodes with the same parameters. An external agent is
        opened for each episode.
        """
        episode = task.episode
        agent = make_conversing(episode.agent.name, episode.agent.params)
        if isinstance(agent, ModelAgent):
            yield await self.open(agent.config.model, params_for(episode, task.benchmark))
            return
        settings = protocol_config(task.benchmark)
        masked = getattr(settings, "mask", "bright") != "bright"
        opening = Opening(
            benchmark=task.benchmark.protocol if masked else task.benchmark.id,
            label=episode.label,
            salt=task.secret or "",
            settings=settings,
            recording=self._store,
            replay=self._asking.replay,
        )
        async with agent.open(opening) as model:
            yield model

    async def open(self, name: str, params: ModelParams) -> Model:
        """Return the model with this name and these parameters. It is opened on first use."""
        async with self._opening:
            model = self._open.get((name, params))
            if model is None:
                model = await self._stack.enter_async_context(
                    open_model(
                        name,
                        params,
                        recording=self._store,
                        replay=self._asking.replay,
                        budget=self._budget,
                        connections=self._asking.concurrency,
                        access=self._access,
                    )
                )
                self._open[name, params] = model
            return model

    def answers(self, name: str) -> Answers:
        """Return the source of the answers of the model with this name."""
        if name.startswith("scripted/"):
            return "scripted"
        return "replayed" if self._asking.replay else "live"


def copy_recorded_answers(keys: Sequence[str], place: RunFolder, asking: Asking) -> None:
    """Copy recorded answers from the run ``asking.recordings`` into this run.

    ``keys`` are the keys of the episodes. Existing recordings are not replaced. Does nothing if
    ``asking.recordings`` is None. Raises :class:`UserError` if that run has no recorded answers.
    """
    if asking.recordings is None:
        return
    source = RunFolder(asking.recordings).models
    if not source.is_dir():
        raise UserError(
            f"{asking.recordings} contains no recorded answers", hint="give a run with models"
        )
    place.models.mkdir(exist_ok=True)
    for key in keys:
        name = f"{key}.jsonl"
        if (source / name).is_file() and not (place.models / name).exists():
            shutil.copyfile(source / name, place.models / name)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result.

    Inside a running event loop, as in a notebook, the coroutine runs in a separate thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="tradeassay-models") as thread:
        future = thread.submit(asyncio.run, main())
        try:
            return future.result()
        except KeyboardInterrupt:
            if not future.done():  # The interrupt was raised in this thread: end the other thread.
                for loop, task in started:
                    loop.call_soon_threadsafe(task.cancel)
            raise
