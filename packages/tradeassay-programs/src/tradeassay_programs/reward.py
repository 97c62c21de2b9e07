"""Score many programs at once to train a model, on this machine or on a Ray cluster.

::

    from tradeassay_programs import reward

    with reward.Pool(workers=8, judge="behaviour", secret="0f" * 16) as pool:
        for scored in pool.batch(answers, tasks):
            print(scored.value, scored.outcome, scored.reason)

The same answers, tasks and secret give the same rewards, whatever the number of workers.
:mod:`tradeassay_programs.code.reward` defines the reward of one program and its parts.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import pickle
import threading
from collections import deque
from collections.abc import Iterable, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, Self

import msgspec
import numpy as np

from tradeassay.core.arguments import shown
from tradeassay.core.errors import SandboxError, UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.measure import Measure, not_scored
from tradeassay_bench.core.executors import make_executor
from tradeassay_bench.core.executors.task import ExecutorName, Lost, Stopping, Task, Tick, cores
from tradeassay_bench.core.run_secret import draw_secret, refuse_bad_secret
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.code.collapse import mean_gap
from tradeassay_programs.code.extraction import extract
from tradeassay_programs.code.judges.decisions import CLOSENESS
from tradeassay_programs.code.judges.markets import SHARED_DRAWS
from tradeassay_programs.code.reward import Reward, RewardConfig, check_reward_arguments, reward
from tradeassay_programs.code.running import open_code_executor, require_code_extra
from tradeassay_programs.code.task import CodeTask, Framework
from tradeassay_programs.sandbox import JobExecutor

__all__ = ["Pool", "Reward", "RewardConfig", "ScoredAnswer", "batch", "reward"]

ENTRY = "tradeassay_programs.reward:perform"
_CHUNK = 16
"""Maximum number of answers to one task in a worker's chunk."""
_MOST_KEPT = 512
"""Maximum number of tasks whose markets a pool passes between workers.

The markets of a task take a few hundred kB.
"""


class ScoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of one answer.

    ``value`` is between 0 and 1. It is None if a judge could not decide, or if every worker that
    scored the answer was lost. ``reason`` then states the cause. Leave such a sample out of
    training. ``note`` describes how the program was extracted from the answer.
    """

    value: float | None
    outcome: str
    parts: dict[str, float] = {}
    reason: str = ""
    note: str = ""


class _Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to one task for one worker.

    ``markets`` contains the pickled markets that the pool already has, or is empty.
    """

    task: str | CodeTask
    answers: tuple[tuple[int, str], ...]
    framework: Framework
    judge: Literal["behaviour"] | None
    secret: str
    config: RewardConfig
    markets: bytes = b""


class _Scored(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a chunk, each with the position of its answer.

    ``markets`` contains the pickled markets if the worker drew any, or is empty.
    """

    answers: list[tuple[int, ScoredAnswer]]
    markets: bytes = b""


@dataclass(eq=False)
class _BatchRequest:
    """The answers that one caller of a pool submits, and the scores or the error of the request."""

    programs: Sequence[object]
    tasks: Sequence[str | CodeTask]
    scores: list[ScoredAnswer] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


class Pool:
    """A pool of workers that score programs.

    Each worker opens its sandbox once. One worker draws the markets of a task, and the pool shares
    them with the other workers.

    ::

        with reward.Pool(judge="behaviour", workers=8) as pool:
            for answers in steps:
                rewards = pool.batch(answers, tasks)

    ``secret`` (hex) determines the markets. Pass a secret to get the same rewards again. By default
    the pool draws a secret. ``workers`` defaults to the number of this machine's cores, or of the
    cluster's cores with ``executor="ray"``. Requests that threads or coroutines submit while a
    batch runs are scored together afterwards. A trainer that submits one answer at a time from many
    threads therefore keeps all workers busy.

    Raises :class:`MissingExtra` or :class:`SandboxError` if this machine cannot run programs.
    """

    def __init__(
        self,
        *,
        judge: Literal["behaviour"] | None = None,
        framework: Framework = "backtrader",
        config: RewardConfig | None = None,
        secret: str | None = None,
        workers: int | None = None,
        executor: ExecutorName = "local",
    ) -> None:
        check_reward_arguments(judge, framework, config)
        if judge is not None and judge != "behaviour":
            raise UserError(
                "a pool cannot use a language judge", hint="pass judge='behaviour' or no judge"
            )
        if secret is not None:
            refuse_bad_secret(secret)
        require_code_extra()
        self._template = _Chunk(
            task="",
            answers=(),
            framework=framework,
            judge=judge,
            secret=secret or draw_secret(),
            config=config or RewardConfig(),
        )
        self._workers = cores() if workers is None and executor != "ray" else workers
        self._executor = make_executor(executor, entry=ENTRY, workers=self._workers)
        self._stack = ExitStack()
        self._stack.enter_context(self._executor)
        self._lock = threading.Lock()
        self.waiting: deque[_BatchRequest] = deque()
        self._markets: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        self._stack.close()

    def batch(
        self, programs: Sequence[object], tasks: Sequence[str | CodeTask] | str | CodeTask
    ) -> list[ScoredAnswer]:
        """Return the scores of answers, in the order of ``programs``. See :func:`batch`."""
        _check_answers(programs)
        task_list: list[str | CodeTask]
        if isinstance(tasks, str | CodeTask):
            task_list = [tasks] * len(programs)
        else:
            task_list = list(tasks) if isinstance(tasks, Iterable) else [tasks]
        if not all(isinstance(task, str | CodeTask) for task in task_list):
            hint = "pass ids or tasks: one for all answers, or one for each"
            raise UserError(f"expected tasks, got {shown(tasks)}", hint=hint)
        if len(task_list) != len(programs):
            raise UserError(
                f"{len(programs)} answers and {len(task_list)} tasks do not match",
                hint="pass one task for all answers, or one for each",
            )
        loaded = {name: load_task(name) for name in task_list if isinstance(name, str)}
        for task in task_list:
            task = loaded[task] if isinstance(task, str) else task
            if self._template.framework == "frame" and task.frame is None:
                raise UserError(
                    f"task '{task.id}' has no variant for frames", hint="use framework='backtrader'"
                )
        request = _BatchRequest(list(programs), task_list)
        self.waiting.append(request)
        with self._lock:
            # The first caller to get the lock scores all waiting requests.
            if not request.done:
                requests = [self.waiting.popleft() for _ in range(len(self.waiting))]
                try:
                    self._serve(requests)
                except BaseException:
                    # This caller was interrupted. The next caller scores the other requests.
                    self.waiting.extendleft(
                        other
                        for other in reversed(requests)
                        if not other.done and other is not request
                    )
                    raise
        if request.error is not None:
            raise request.error
        return request.scores

    def _serve(self, requests: Sequence[_BatchRequest]) -> None:
        """Score several requests together.

        If scoring fails, score each request alone, so that only the bad request fails. If the
        sandbox cannot run, all requests fail.
        """
        try:
            scores = iter(self.score_requests(requests))
        except Exception as error:
            if len(requests) > 1 and not isinstance(error, SandboxError):
                for request in requests:
                    self._serve([request])
                return
            for request in requests:
                request.error = error
        else:
            for request in requests:
                request.scores = [next(scores) for _ in request.programs]
        for request in requests:
            request.done = True

    def score_requests(self, requests: Sequence[_BatchRequest]) -> list[ScoredAnswer]:
        """Return the scores of all answers of several requests, in order."""
        pairs: list[tuple[object, str | CodeTask]] = []
        for request in requests:
            pairs += zip(request.programs, request.tasks, strict=True)
        scores: dict[int, ScoredAnswer] = {}
        by_task: dict[str, tuple[str | CodeTask, list[tuple[int, str]]]] = {}
        notes: dict[int, str] = {}
        names: dict[int, str] = {}
        for place, (answer, task) in enumerate(pairs):
            # A caller may have changed a task, so two tasks with one id may differ. The key is
            # therefore a task's hash, which is computed once for each object.
            name = names.get(id(task)) or names.setdefault(id(task), _name(task))
            program = read_answer(answer, self._template.framework)
            if isinstance(program, ScoredAnswer):
                scores[place] = program
                continue
            source, notes[place] = program
            by_task.setdefault(name, (task, []))[1].append((place, source))
        for place, scored in self._score(self._chunks(by_task, len(notes))):
            if notes[place]:
                scored = msgspec.structs.replace(scored, note=notes[place])
            scores[place] = scored
        return [scores[place] for place in range(len(pairs))]

    def _chunks(
        self, by_task: dict[str, tuple[str | CodeTask, list[tuple[int, str]]]], programs: int
    ) -> list[_Chunk]:
        """Return the work for the workers, in chunks of one task each.

        Chunks are small, so that no worker waits long for the last chunk of another worker. If
        there are at least as many tasks as workers, chunks of a task without markets are as large
        as allowed, because drawing its markets costs as much as scoring several answers.
        """
        workers = self._workers or 1
        small = max(1, min(_CHUNK, -(-programs // (4 * workers))))
        chunks = []
        for name, (task, answers) in by_task.items():
            size = small if name in self._markets or len(by_task) < workers else _CHUNK
            markets = self._markets.get(name, b"")
            template = msgspec.structs.replace(self._template, task=task, markets=markets)
            for start in range(0, len(answers), size):
                some = tuple(answers[start : start + size])
                chunks.append(msgspec.structs.replace(template, answers=some))
        return chunks

    async def abatch(
        self, programs: Sequence[object], tasks: Sequence[str | CodeTask] | str | CodeTask
    ) -> list[ScoredAnswer]:
        """Return the scores of answers like :meth:`batch`, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, programs, tasks)

    def task_specificity(
        self, programs: Sequence[object], tasks: Sequence[str | CodeTask]
    ) -> Measure:
        """Return how much closer programs are to their own task than to another of ``tasks``.

        The measure is the mean difference between the two closenesses, with its interval. It is 1
        if all programs follow their own tasks only, and 0 if the programs behave the same for every
        task. Only programs that trade are used. Rewards for running and trading alone may rise
        while this measure falls. Compare its intervals between examinations.
        """
        if self._template.judge is None:
            return not_scored("no judge was asked for")
        own_scores, size = self.batch(programs, tasks), len(tasks)
        loaded = [load_task(task) if isinstance(task, str) else task for task in tasks]
        kinds = [_kind(task) for task in loaded]
        other_tasks: dict[int, int] = {}
        for place, scored in enumerate(own_scores):
            later = ((place + step) % size for step in range(1, size))
            other = next((at for at in later if kinds[at] != kinds[place]), None)
            if "trade" in scored.parts and other is not None:
                other_tasks[place] = other
        if len(other_tasks) < 2:
            return not_scored("fewer than two programs trade")
        other_scores = self.batch(
            [programs[place] for place in other_tasks],
            [loaded[other] for other in other_tasks.values()],
        )
        to_own = np.array([self._closeness(own_scores[place]) for place in other_tasks])
        to_other = np.array([self._closeness(scored) for scored in other_scores])
        note = f"{to_own.mean():.2f} of the way to their own task, {to_other.mean():.2f} to another"
        return mean_gap(to_own - to_other, note)

    def _closeness(self, scored: ScoredAnswer) -> float:
        """Return the closeness of a scored program to the task's reference, 0 to 1."""
        config, parts = self._template.config, scored.parts
        if "judge" in parts:
            return 1.0
        most = config.judge * config.closeness_weight or 1.0
        return math.fsum(parts.get(name, 0.0) for name in CLOSENESS) / most

    def _score(self, chunks: Sequence[_Chunk]) -> list[tuple[int, ScoredAnswer]]:
        """Score chunks on the workers, and return each score with the position of its answer."""
        if not chunks:
            return []
        work = [Task(str(place), msgspec.json.encode(chunk)) for place, chunk in enumerate(chunks)]
        scores: list[tuple[int, ScoredAnswer]] = []
        for result in self._executor.perform(work, lambda key, sessions: None):
            chunk = chunks[int(result.key)]
            if isinstance(result, Lost):
                lost = ScoredAnswer(value=None, outcome="not_scored", reason=result.reason)
                scores += [(place, lost) for place, _ in chunk.answers]
                continue
            scored = msgspec.json.decode(result.payload, type=_Scored)
            scores += scored.answers
            if scored.markets and self._workers != 1:
                self._markets[_name(chunk.task)] = scored.markets
        while len(self._markets) > _MOST_KEPT:
            oldest = next(iter(self._markets))
            del self._markets[oldest]
        return scores


def batch(
    programs: Sequence[object],
    tasks: Sequence[str | CodeTask] | str | CodeTask,
    *,
    judge: Literal["behaviour"] | None = None,
    framework: Framework = "backtrader",
    config: RewardConfig | None = None,
    secret: str | None = None,
    workers: int | None = None,
    executor: ExecutorName = "local",
) -> list[ScoredAnswer]:
    """Return the scores of answers, in the order of ``programs``.

    A training loop should keep a :class:`Pool` open instead.

    ``programs`` contains programs, or whole answers from a model with a program in a code fence.
    Programs are extracted as in QuantCode. An answer that is not text, or has no program, gets 0
    with a reason. ``tasks`` is one task for all answers, or a list with one task per answer. A task
    is an id or a :class:`CodeTask`. The options are the same as for :class:`Pool`.

    Raises :class:`UserError` for an unknown task or if answers and tasks do not match, and
    :class:`MissingExtra` or :class:`SandboxError` if this machine cannot run programs.
    """
    _check_answers(programs)
    if workers is None and executor != "ray":
        workers = max(1, min(cores(), len(programs)))
    pool = Pool(
        judge=judge,
        framework=framework,
        config=config,
        secret=secret,
        workers=workers,
        executor=executor,
    )
    with pool:
        return pool.batch(programs, tasks)


def _check_answers(programs: object) -> None:
    """Raise :class:`UserError` unless ``programs`` is a list of answers."""
    hint = "write batch([answer], task)"
    if isinstance(programs, str):
        raise UserError("expected a list of answers, got one answer", hint=hint)
    if not isinstance(programs, Sized) or not isinstance(programs, Iterable):
        raise UserError(f"expected a list of answers, got {shown(programs)}", hint=hint)


def read_answer(
    answer: object, framework: Framework = "backtrader"
) -> tuple[str, str] | ScoredAnswer:
    """Return the program in an answer and a note on its extraction.

    For an answer without a program, returns its score (0, with the reason) instead.
    """
    # An object may report a false class, and a subclass of str may override its methods. The test
    # therefore uses type(), and str's own method reads the text.
    if not issubclass(type(answer), str):
        kind = "None" if answer is None else f"of type {type(answer).__name__}"
        return ScoredAnswer(value=0.0, outcome="no_code", reason=f"the answer is {kind}, not text")
    text = str.__str__(answer)
    if not text.strip():
        return ScoredAnswer(value=0.0, outcome="no_code", reason="the answer is empty")
    extraction = extract(text, framework)
    if extraction.code is None or not extraction.code.strip():
        reason = extraction.missing.replace("_", " ") or "there is no program in it"
        return ScoredAnswer(value=0.0, outcome="no_code", reason=reason, note=extraction.note)
    return extraction.code, extraction.note


def _name(task: str | CodeTask) -> str:
    """Return the key of a task: its id, or the hash of a task object."""
    return task if isinstance(task, str) else sha256_of(task)


def _kind(task: CodeTask) -> str:
    """Return the family of a generated task, or the id of any other task."""
    return task.id.rsplit("-", 2)[0] if task.id.startswith("gen-") else task.id


@cache
def open_sandbox() -> JobExecutor:
    """Return this process's sandbox, which stays open for later batches.

    Opening the sandbox takes a second.
    """
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_code_executor(1))


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Return the scores of one chunk as JSON. The executors call this function by its name."""
    chunk = msgspec.json.decode(payload, type=_Chunk)
    task = load_task(chunk.task) if isinstance(chunk.task, str) else chunk.task
    # Unpickling is safe: the bytes come from a worker of this pool.
    known_markets = pickle.loads(chunk.markets) if chunk.markets else {}
    SHARED_DRAWS.add_markets(known_markets)
    # Do not return markets that other callers drew in this process.
    SHARED_DRAWS.pop_new_markets()
    scores: list[tuple[int, ScoredAnswer]] = []
    # A confident model writes the same program many times.
    by_source: dict[str, ScoredAnswer] = {}
    for place, source in chunk.answers:
        if stopping():
            break
        if source not in by_source:
            scored = reward(
                task,
                source,
                chunk.judge,
                executor=open_sandbox(),
                config=chunk.config,
                framework=chunk.framework,
                secret=chunk.secret,
            )
            by_source[source] = ScoredAnswer(
                value=scored.value,
                outcome=scored.outcome,
                parts=scored.parts,
                reason=scored.reason,
            )
        scores.append((place, by_source[source]))
        tick(1)
    new_markets = SHARED_DRAWS.pop_new_markets()
    markets = pickle.dumps(known_markets | new_markets) if new_markets else b""
    return msgspec.json.encode(_Scored(answers=scores, markets=markets))
