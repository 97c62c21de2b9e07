"""Run code episodes: models are queried in the event loop, programs are examined in threads.

A resumed episode reads the replies and results from before the interruption from its dialogue log
and its journal, in their order. Only the rest is queried and computed.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import (
    UNDECODABLE,
    MissingExtra,
    SandboxError,
    TradeassayError,
    UserError,
)
from tradeassay.core.hashing import canonical_json, sha256_file, sha256_of
from tradeassay.core.secrets import without_secrets
from tradeassay_bench.benchmarks.code_protocol import (
    AskRole,
    CodeAsk,
    CodeProtocol,
    CodeReply,
    CodeSpec,
    Ending,
    find_protocol,
)
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.core.drive import adrive, fault_of
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import TurnRecord
from tradeassay_bench.core.executors import PIECES, Spread
from tradeassay_bench.core.executors.ray import RayExecutor
from tradeassay_bench.core.executors.task import cores, one_thread
from tradeassay_bench.core.files import remove_temporaries, safe_name
from tradeassay_bench.data import load_verified
from tradeassay_bench.llm import QuestionPlace, RecordingMismatch, parse_name
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.play.dialogue_log import (
    DialogueLog,
    Lines,
    MemoryDialogue,
    Scribe,
    Spending,
    read_dialogue,
)
from tradeassay_bench.play.journal import LinesOf, MemoryJournal, TurnJournal, encode_line
from tradeassay_bench.runs.play.episodes import (
    ListenerBroke,
    OpenModels,
    ask_and_notify,
    copy_recorded_answers,
    notify,
    run_async,
    run_concurrently,
)
from tradeassay_bench.runs.play.progress import Advanced, CountListener, Listener, RunWatch
from tradeassay_bench.runs.score import require_outcome
from tradeassay_bench.runs.spec.episode import (
    EpisodeSpec,
    ModelRecord,
    Options,
    record_models,
    refuse_bad_names,
)
from tradeassay_bench.runs.spec.run_spec import model_agent, variant_name
from tradeassay_bench.runs.store.folder import RunFolder, present_versions
from tradeassay_bench.runs.store.manifest import CodeManifest, read_manifest
from tradeassay_bench.runs.store.outcome import (
    ModelPart,
    Outcome,
    Played,
    ProgramPart,
    write_outcome,
)
from tradeassay_bench.runs.verify.freedom import refuse_other_rules
from tradeassay_bench.runs.verify.replay import NotReplayable, RecordedModels, Replayed

Work = Callable[[EpisodeSpec, msgspec.Struct], msgspec.Struct]
"""A function that examines a program, in the thread of its caller, and returns the result."""

STOPS = (RunError, SandboxError, UserError, RecordingMismatch, OSError)
"""Errors that end the whole run: a problem of files, packages, the sandbox or a recording."""


class CodeScoresFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a code run's ``scores.json``: every outcome's hash, and the scores."""

    outcomes: dict[str, str]
    scores: msgspec.Raw


class Programs:
    """A run of programs: its manifest, its episodes and its scores.

    The constructor raises :class:`~tradeassay.core.errors.UserError` for a spec that cannot run.
    """

    def __init__(self, spec: CodeSpec, options: Options) -> None:
        self._spec = spec
        self._options = options
        refuse_other_rules(spec)
        protocol = find_protocol(spec.benchmark)(spec)
        self._protocol = protocol
        episodes, notes = code_episodes(spec.benchmark, protocol), protocol.notes
        if not episodes:
            why = f": {'; '.join(notes)}" if notes else ""
            raise UserError(f"no episode is left to run{why}", hint="drop a filter")
        self.manifest = CodeManifest(
            benchmark=spec.benchmark,
            spec=msgspec.Raw(canonical_json(spec)),
            work_sha256=sha256_of(spec),
            facts=protocol.facts(),
            episodes=episodes,
            notes=notes,
            versions=present_versions(),
            models=priced_models(protocol, episodes, options.asking.prices),
        )
        models: list[str] = []
        for episode in episodes:
            models += [role.model for role in protocol.roles(episode).values()]
        refuse_bad_names(models, options.asking)
        self._paid = any(parse_name(name).route != "scripted" for name in models)
        # Not called here, because scoring does not need the packages that episodes need.
        self.check_installed = protocol.check_installed

    def play(
        self,
        manifest: CodeManifest,
        place: RunFolder,
        waiting: Sequence[EpisodeSpec],
        watch: RunWatch,
    ) -> None:
        """Run the waiting episodes, ``asking.concurrency`` at a time, and record their outcomes.

        At most ``workers`` programs are examined at the same time. Errors that stop a run are
        raised. All other episodes then also stop, and all written data is kept.
        """
        self.check_installed()
        asking, workers = self._options.asking, self._options.workers
        copy_recorded_answers([episode.key for episode in waiting], place, asking)
        with one_thread(), ExitStack() as stack:
            if self._options.executor == "ray":
                workers = stack.enter_context(RayExecutor(PIECES, workers)).most()
                examine = partial(
                    _examine_in_worker, self._spec.benchmark, canonical_json(self._spec)
                )
                spread = Spread(executor="ray", modules=(type(self._protocol).__module__,))

                def work_in_cluster(
                    episode: EpisodeSpec, request: msgspec.Struct
                ) -> msgspec.Struct:
                    return spread.map(examine, [(episode, request)])[0]

                work: Work = work_in_cluster
            else:
                workers = workers or cores()
                work = _Sandbox(self._protocol, workers, stack).work

            async def play_one(episode: EpisodeSpec, models: OpenModels) -> None:
                began, key = time.perf_counter(), episode.key
                place.episode(key).mkdir(parents=True, exist_ok=True)
                with TurnJournal(place.events(key)) as journal:
                    remove_temporaries(place.episode(key))
                    path, steps_done = place.dialogue(key), len(journal.lines)
                    lines_done = [line for line in read_dialogue(path) if line.step < steps_done]
                    # The last steps of the journal may have no questions, so the log must be
                    # complete only up to its own last step.
                    with DialogueLog(
                        path, max((line.step + 1 for line in lines_done), default=0)
                    ) as log:
                        player = _Player(
                            episode, self._protocol, work, watch.listen, models, journal, log
                        )
                        player.replies.extend(line.reply for line in lines_done)
                        outcome = await player.to_its_end()
                    write_outcome(place.outcome(key), outcome)
                watch.played(key, Played(outcome=outcome, seconds=time.perf_counter() - began))

            async def play_all() -> None:
                _set_threads(workers)
                async with AsyncExitStack() as opened:
                    models = OpenModels(place, asking, opened, home=None, durable=self._paid)
                    await run_concurrently(
                        waiting, asking.concurrency, partial(play_one, models=models)
                    )

            run_async(play_all())

    def scores(self, manifest: CodeManifest, place: RunFolder, watch: RunWatch) -> bytes:
        """Return the content of ``scores.json``."""
        with watch.phase("score", total=1):
            return code_scores(self._protocol, manifest, place)


@lru_cache(maxsize=2)
def opened_protocol(benchmark: str, spec: bytes) -> tuple[CodeProtocol, Any]:
    """Return a benchmark's protocol and an open sandbox.

    Both are cached in each worker process, because opening a sandbox takes a second.
    """
    kind = find_protocol(benchmark)
    protocol = kind(msgspec.json.decode(spec, type=kind.Spec))
    stack = ExitStack()
    atexit.register(stack.close)
    return protocol, stack.enter_context(protocol.open_executor(1))


def _examine_in_worker(
    benchmark: str, spec: bytes, job: tuple[EpisodeSpec, msgspec.Struct]
) -> msgspec.Struct:
    """Examine a program in a worker process and return the result.

    ``job`` is the episode and the request.
    """
    protocol, executor = opened_protocol(benchmark, spec)
    result: msgspec.Struct = protocol.examine(*job, executor)
    return result


def _set_threads(workers: int | None) -> None:
    """Give the running event loop one thread per worker for examining programs."""
    threads = ThreadPoolExecutor(workers, thread_name_prefix="tradeassay-code")
    asyncio.get_running_loop().set_default_executor(threads)


def examine_again(
    protocol: CodeProtocol,
    place: RunFolder,
    episodes: Sequence[EpisodeSpec],
    workers: int | None,
    examined: dict[str, msgspec.Struct] | None,
    *,
    progress: CountListener | None,
) -> dict[str, Replayed | TradeassayError]:
    """Replay episodes in memory with recorded replies, and examine every program again.

    Returns the result of every episode by key, or the error that stopped its replay. ``examined``
    is a cache of results by the hash of everything that determines a result. ``progress`` is called
    after every episode. Raises :class:`NotReplayable` if programs cannot be examined here.
    """
    limit, results = workers or cores(), dict[str, Replayed | TradeassayError]()
    with one_thread(), ExitStack() as stack:
        sandbox = _Sandbox(protocol, limit, stack)
        facts = ""
        if examined is not None:
            manifest = read_manifest(place.manifest)
            assert isinstance(manifest, CodeManifest)
            facts = sha256_of([protocol.facts(), manifest.asked])

        def work(episode: EpisodeSpec, request: msgspec.Struct) -> msgspec.Struct:
            if examined is None:
                return sandbox.work(episode, request)
            key = sha256_of([facts, episode, request])
            if key not in examined:
                examined[key] = sandbox.work(episode, request)
            return examined[key]

        async def replay_all() -> None:
            _set_threads(limit)
            async with AsyncExitStack() as open_models:
                models = RecordedModels(place, open_models, home=None)

                async def replay_one(episode: EpisodeSpec) -> None:
                    journal: MemoryJournal[TurnRecord] = MemoryJournal()
                    log = MemoryDialogue()
                    try:
                        player = _Player(
                            episode, protocol, work, lambda event: None, models, journal, log
                        )
                        outcome = await player.to_its_end()
                    except (SandboxError, MissingExtra) as error:
                        raise NotReplayable(error.message) from error
                    except TradeassayError as error:
                        results[episode.key] = error
                        return
                    unused = models.unused_replies(episode.key)
                    results[episode.key] = Replayed(
                        bytes(journal.content), bytes(log.content), outcome, unused
                    )
                    if progress is not None:
                        progress("episodes examined again", len(results), len(episodes))

                await run_concurrently(episodes, limit, replay_one)

        run_async(replay_all())
    timed_out = sandbox.timed_out
    for key, result in results.items():
        if isinstance(result, Replayed):
            results[key] = result._replace(timed_out=key in timed_out)
    return results


def code_episodes(benchmark: str, protocol: CodeProtocol) -> tuple[EpisodeSpec, ...]:
    """Return the episodes of a run of programs, in the order of the protocol."""
    made = []
    for item in protocol.episodes():
        variant, setting = variant_name(item.protocol, None), safe_name(benchmark)
        episode = EpisodeSpec(
            key=item.key,
            setting=setting if variant is None else f"{setting}__{variant}",
            benchmark=benchmark,
            dataset="",
            agent=model_agent(item.model),
            seed=item.seed,
            protocol=dict(item.protocol),
            task=item.task,
        )
        made.append(episode)
    return tuple(made)


def recorded_code_spec(manifest: CodeManifest) -> CodeSpec:
    """Return the spec of a recorded run without opening the files in it.

    Raises :class:`UserError` for an unknown benchmark, and :class:`RunError` for a spec that is
    invalid for the benchmark.
    """
    kind = find_protocol(manifest.benchmark)
    try:
        return msgspec.json.decode(manifest.spec, type=kind.Spec)
    except (UserError, *UNDECODABLE) as error:
        raise RunError(
            f"the spec in the manifest cannot be read: {error}", hint="start the run again"
        ) from error


def reopen(manifest: CodeManifest, task_file: Path | None = None) -> CodeProtocol:
    """Return the protocol of a recorded run.

    A path in the spec is never opened, because its author is unknown. ``task_file`` is your copy of
    the run's task file. Raises :class:`UserError` if data is not in the store, and if the run has a
    task file but no copy is given.
    """
    spec = recorded_code_spec(manifest)
    name, file = getattr(spec, "dataset", None), getattr(spec, "task_file", None)
    if name:
        load_verified(name)
    if file is not None:
        if task_file is None:
            raise UserError(
                f"the tasks are in a file of the runner ({Path(file).name[:40]!a}), which is not "
                "opened",
                hint="give your own copy: tradeassay verify RUN --task-file FILE",
            )
        spec = msgspec.structs.replace(spec, task_file=str(task_file))
    return find_protocol(manifest.benchmark)(spec)


def priced_models(
    protocol: CodeProtocol, episodes: Sequence[EpisodeSpec], prices: Path | None = None
) -> dict[str, ModelRecord] | msgspec.UnsetType:
    """Return the known facts about every model with a cost in a run of programs, by name.

    The result is unset if there is no such model. ``prices`` is a file of prices, which override
    the packaged prices.
    """
    names: set[str] = set()
    for episode in episodes:
        names |= {role.model for role in protocol.roles(episode).values()}
    paid = sorted(name for name in names if parse_name(name).route != "scripted")
    return record_models({name: (name, {}) for name in paid}, prices) or msgspec.UNSET


def code_scores(protocol: CodeProtocol, manifest: CodeManifest, place: RunFolder) -> bytes:
    """Return the content of ``scores.json``.

    Raises :class:`RunError` while an episode has not ended.
    """
    records: dict[str, msgspec.Struct] = {}
    hashes: dict[str, str] = {}
    for episode in manifest.episodes:
        outcome = require_outcome(place, episode)
        hashes[episode.key] = sha256_file(place.outcome(episode.key))
        record = read_record(type(protocol), outcome)
        if record is not None:
            records[episode.key] = record
    scores = msgspec.json.encode(protocol.score(records), order="deterministic")
    content = msgspec.json.encode(CodeScoresFile(outcomes=hashes, scores=msgspec.Raw(scores)))
    return msgspec.json.format(content, indent=1) + b"\n"


def read_record(kind: type[CodeProtocol], outcome: Outcome) -> msgspec.Struct | None:
    """Return the benchmark's record in an outcome; None if the episode raised an error.

    Raises :class:`RunError` if the record is damaged.
    """
    if isinstance(outcome.program, msgspec.UnsetType):
        return None
    try:
        return msgspec.json.decode(outcome.program.record, type=kind.Record)
    except UNDECODABLE as error:
        raise RunError(
            f"the record of an episode is damaged: {error}", hint="delete its folder and resume"
        ) from error


@dataclass(eq=False)
class _Sandbox:
    """Examines programs in a sandbox, which opens when the first program must run.

    ``timed_out`` contains the keys of the episodes with a program that exceeded the time limit.
    Such a result depends on the machine.
    """

    protocol: CodeProtocol
    workers: int
    stack: ExitStack
    timed_out: set[str] = field(default_factory=set)
    _executor: Any = None
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def work(self, episode: EpisodeSpec, request: msgspec.Struct) -> msgspec.Struct:
        """Examine a program of an episode and return the result."""
        with self._opening:
            if self._executor is None:
                self._executor = self.stack.enter_context(self.protocol.open_executor(self.workers))
        watched = self.protocol.with_timeout_callback(
            self._executor, lambda: self.timed_out.add(episode.key)
        )
        result: msgspec.Struct = self.protocol.examine(episode, request, watched)
        return result


@dataclass(eq=False)
class _Player:
    """Runs one episode. ``replies`` contains the replies logged before an interruption."""

    episode: EpisodeSpec
    protocol: CodeProtocol
    work: Work
    listen: Listener
    models: OpenModels
    journal: LinesOf[TurnRecord]
    log: Lines
    replies: deque[ModelReply] = field(default_factory=deque)
    _spent: dict[str, Spending] = field(default_factory=dict)
    _total: Spending = field(default_factory=Spending)
    _digest: Any = field(default_factory=hashlib.sha256)
    _asked: int = 0
    _step: int = 0
    _scribe: Scribe = field(default_factory=lambda: Scribe(0, "turn 1"))

    async def to_its_end(self) -> Outcome:
        """Return the outcome of the episode.

        An unexpected exception makes the episode fail, with the exception as the reason. Errors
        that stop a run (:data:`STOPS`) are raised.
        """
        trace: str | None = None
        program: ProgramPart | msgspec.UnsetType = msgspec.UNSET
        try:
            record = await adrive(self.protocol.dialogue(self.episode), self._answer)
            ending = self.protocol.ended(record)
            raw = msgspec.Raw(msgspec.json.encode(record))
            program = ProgramPart(words=ending.words, reason=ending.reason, record=raw)
        except (*STOPS, ListenerBroke):
            raise
        except Exception as error:
            trace = without_secrets("".join(traceback.format_exception(error)))
            ending = Ending(status="failed", reason=str(fault_of(error)))
        self.log.append(self._scribe.lines)
        answers = self.models.answers(self.episode.model)
        return Outcome(
            status=ending.status,
            steps=self._step,
            events_sha256=self._digest.hexdigest(),
            error=ending.reason if ending.status == "failed" else None,
            traceback=trace,
            model=ModelPart(answers=answers, spending=self._total, roles=self._spent),
            program=program,
        )

    async def _answer(self, ask: CodeAsk) -> CodeReply:
        """Return a model's reply to a question, or the result of examining a program."""
        if not isinstance(ask, AskRole):
            return await self._examine(ask.request)
        if self._step < len(self.journal.lines) and self.replies:
            reply = self.replies.popleft()
        else:
            role = self.protocol.roles(self.episode)[ask.role]
            model = await self.models.open(role.model, role.params)
            # The step of a question is the number of earlier results, which is the same in a
            # resumed run.
            key, seed = self.episode.key, self.episode.seed
            place = QuestionPlace(episode=key, step=self._step, sample=seed, index=self._asked)
            request, task = ask.request, self.episode.task
            reply = await ask_and_notify(model, request, place, self.episode, task, self.listen)
            self._scribe.note(AddressedQuestion(request, place), reply)
        self._asked += 1
        self._total = self._total.plus(reply.usage)
        self._spent[ask.role] = self._spent.get(ask.role, Spending()).plus(reply.usage)
        return reply

    async def _examine(self, request: msgspec.Struct) -> msgspec.Struct:
        """Return the result of a program, from the journal or by examining it now."""
        request_sha256, lines = sha256_of(request), self.journal.lines

        def examine_and_record() -> tuple[bytes, msgspec.Raw]:
            """Examine the program, write the result to the journal, and return both forms.

            This is one step, so that a cancellation in between cannot lose the result.
            """
            examined = self.work(self.episode, request)
            result = msgspec.Raw(without_secrets(msgspec.json.encode(examined)))
            raw = encode_line(TurnRecord(step=self._step, request=request_sha256, result=result))
            self.log.append(self._scribe.lines)
            self.journal.append(raw)
            return raw, result

        if self._step < len(lines):
            line = lines[self._step]
            if line.record.request != request_sha256:
                raise RunError(
                    f"step {self._step} of {self.episode.key} differs from the journal",
                    hint="the answers or the journal were edited: delete the episode's folder, "
                    "resume",
                )
            raw, result = line.raw, line.record.result
            if self._scribe.lines:
                # The dialogue log was lost, and the model was queried again.
                self.log.append(self._scribe.lines)
        else:
            working = asyncio.get_running_loop().run_in_executor(None, examine_and_record)
            try:
                raw, result = await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait([working])  # The thread must finish before its files are closed.
                raise
        self._digest.update(raw + b"\n")
        self._step += 1
        self._scribe = Scribe(self._step, f"turn {self._step + 1}")
        notify(self.listen, Advanced(key=self.episode.key, sessions=1))
        # In the form that is read back, so that a live run and a resumed one cannot differ.
        return msgspec.json.decode(result, type=self.protocol.Result)
