"""Rewards for whoever trains a model on programs: many answers at once, on this machine or on a Ray cluster.

::

    from tradeassay import reward

    with reward.Pool(workers=8, judge="behaviour", secret="0f" * 16) as pool:
        for scored in pool.batch(answers, tasks):
            print(scored.value, scored.outcome, scored.reason)

The same answers, tasks and secret give the same rewards, whatever the number of workers.
:mod:`tradeassay.code.reward` has the single reward and its parts.
"""

from __future__ import annotations

import asyncio
import atexit
import pickle
import threading
from collections import deque
from collections.abc import Iterable, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Self

import msgspec
import numpy as np

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.collapse import mean_gap
from tradeassay.code.extraction import extract
from tradeassay.code.judges.decisions import CLOSENESS
from tradeassay.code.judges.markets import SHARED_DRAWS
from tradeassay.code.reward import Reward, RewardConfig, refuse_unknown, reward
from tradeassay.code.running import open_code_executor, require_code_extra
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.arguments import shown
from tradeassay.core.errors import SandboxError, UserError
from tradeassay.core.executors import make_executor
from tradeassay.core.executors.task import ExecutorName, Lost, Stopping, Task, Tick, cores
from tradeassay.core.hashing import draw_secret, refuse_bad_secret, sha256_of
from tradeassay.core.measure import Measure, not_scored, plain_sum
from tradeassay.sandbox import JobExecutor

__all__ = ["Pool", "Reward", "RewardConfig", "ScoredAnswer", "batch", "reward"]

ENTRY = "tradeassay.reward:perform"
_CHUNK = 16
"""Answers to one task that one worker takes at a time."""
_MOST_KEPT = 512
"""Tasks whose markets a pool hands from worker to worker, a few hundred kB each."""


class ScoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer is worth. ``value`` is between 0 and 1, or None with the ``reason`` where a judge could not
    decide or every worker that tried was lost: leave such a sample out. ``note`` says how the program was found.
    """

    value: float | None
    outcome: str
    parts: dict[str, float] = {}
    reason: str = ""
    note: str = ""


class _Chunk(msgspec.Struct, frozen=True, kw_only=True):
    task: str | CodeTask
    answers: tuple[tuple[int, str], ...]
    framework: Framework
    judge: Literal["behaviour"] | None
    secret: str
    config: RewardConfig
    markets: bytes = b""


class _Scored(msgspec.Struct, frozen=True, kw_only=True):
    answers: list[tuple[int, ScoredAnswer]]
    markets: bytes = b""


@dataclass(eq=False)
class _Asked:
    """What one caller of a pool wants scored, and what came of it."""

    programs: Sequence[object]
    tasks: Sequence[str | CodeTask]
    found: list[ScoredAnswer] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


class Pool:
    """Workers that stay: their sandboxes are opened once, and a task's markets are drawn by one of them for all.

    ::

        with reward.Pool(judge="behaviour", workers=8) as pool:
            for answers in steps:
                rewards = pool.batch(answers, tasks)

    ``secret`` (hex) decides the markets: name one to get the same rewards again; without it one is drawn for the
    life of the pool. ``workers`` defaults to the cores, with ``executor="ray"`` to the cluster's. What threads or
    coroutines ask for while a batch is scored is scored together after it: trainers that ask for one answer at a
    time keep all workers busy.

    Raises :class:`MissingExtra` and :class:`SandboxError` where programs cannot be run at all.
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
        refuse_unknown(judge, framework, config)
        if judge is not None and judge != "behaviour":
            raise UserError("a language judge is not asked by a pool", hint="judge='behaviour', or none at all")
        if secret is not None:
            refuse_bad_secret(secret)
        require_code_extra()
        config, secret = config or RewardConfig(), secret or draw_secret()
        self._rule = _Chunk(task="", answers=(), framework=framework, judge=judge, secret=secret, config=config)
        self._workers = cores() if workers is None and executor != "ray" else workers
        self._performing = make_executor(executor, entry=ENTRY, workers=self._workers)
        self._stack = ExitStack()
        self._stack.enter_context(self._performing)
        self._turn = threading.Lock()
        self._waiting: deque[_Asked] = deque()
        self._markets: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def batch(
        self, programs: Sequence[object], tasks: Sequence[str | CodeTask] | str | CodeTask
    ) -> list[ScoredAnswer]:
        """Return what every answer is worth, in their order; see :func:`batch`."""
        _refuse_no_list(programs)
        given = [tasks] * len(programs) if isinstance(tasks, str | CodeTask) else tasks
        each = list(given) if isinstance(given, Iterable) else [given]
        if not all(isinstance(one, str | CodeTask) for one in each):
            raise UserError(f"tasks cannot be {shown(tasks)}", hint="give ids or tasks, one for all or one each")
        if len(each) != len(programs):
            raise UserError(f"{len(programs)} answers and {len(each)} tasks", hint="give one task, or one each")
        known = {name: load_task(name) for name in each if isinstance(name, str)}
        chosen = [known[task] if isinstance(task, str) else task for task in each]
        for task in chosen:
            if self._rule.framework == "frame" and task.frame is None:
                raise UserError(f"task '{task.id}' has no variant for frames", hint="use framework='backtrader'")
        asked = _Asked(list(programs), each)
        self._waiting.append(asked)
        with self._turn:
            if not asked.done:  # whoever comes first scores for all who wait by now
                together = [self._waiting.popleft() for _ in range(len(self._waiting))]
                try:
                    self._serve(together)
                except BaseException:  # this caller was interrupted: the next one scores for the others
                    self._waiting.extendleft(one for one in reversed(together) if not (one.done or one is asked))
                    raise
        if asked.error is not None:
            raise asked.error
        return asked.found

    def _serve(self, together: Sequence[_Asked]) -> None:
        """Score for several callers at once; where that fails, for each alone. Missing walls are everybody's."""
        try:
            found = iter(self._batch(together))
        except Exception as error:
            if len(together) > 1 and not isinstance(error, SandboxError):
                for one in together:
                    self._serve([one])
                return
            for one in together:
                one.error = error
        else:
            for one in together:
                one.found = [next(found) for _ in one.programs]
        for one in together:
            one.done = True

    def _batch(self, together: Sequence[_Asked]) -> list[ScoredAnswer]:
        pairs = [pair for one in together for pair in zip(one.programs, one.tasks, strict=True)]
        found: dict[int, ScoredAnswer] = {}
        wanted: dict[str, tuple[str | CodeTask, list[tuple[int, str]]]] = {}
        notes: dict[int, str] = {}
        names: dict[int, str] = {}
        for place, (answer, task) in enumerate(pairs):
            # Two tasks of one id may differ: somebody has changed one.
            name = names.get(id(task)) or names.setdefault(id(task), _name(task))
            read = read_answer(answer, self._rule.framework)
            if isinstance(read, ScoredAnswer):
                found[place] = read
                continue
            source, notes[place] = read
            wanted.setdefault(name, (task, []))[1].append((place, source))
        # Small enough that no worker waits for another's last chunk. Where there are as many tasks as workers, one
        # whose markets nobody has drawn yet stays together: drawing them costs as much as several answers.
        many = self._workers or 1
        size = max(1, min(_CHUNK, -(-len(notes) // (4 * many))))
        chunks = []
        for name, (task, answers) in wanted.items():
            apart = size if name in self._markets or len(wanted) < many else _CHUNK
            rule = msgspec.structs.replace(self._rule, task=task, markets=self._markets.get(name, b""))
            for start in range(0, len(answers), apart):
                chunks.append(msgspec.structs.replace(rule, answers=tuple(answers[start : start + apart])))
        for place, scored in self._score(chunks):
            found[place] = msgspec.structs.replace(scored, note=notes[place]) if notes[place] else scored
        return [found[place] for place in range(len(pairs))]

    async def abatch(
        self, programs: Sequence[object], tasks: Sequence[str | CodeTask] | str | CodeTask
    ) -> list[ScoredAnswer]:
        """Return :meth:`batch` without blocking the event loop."""
        return await asyncio.to_thread(self.batch, programs, tasks)

    def heed(self, programs: Sequence[object], tasks: Sequence[str | CodeTask]) -> Measure:
        """Return how much nearer programs that trade come to their own task than to another of ``tasks``.

        1 where all do what was asked, 0 where they would do the same whatever was asked. Rewards for running and
        trading alone may rise while it falls: compare its intervals from one examination to the next.
        """
        if self._rule.judge is None:
            return not_scored("no judge was asked for")
        own, size = self.batch(programs, tasks), len(tasks)
        known = [load_task(one) if isinstance(one, str) else one for one in tasks]
        kinds = [(one.id.rsplit("-", 2)[0] if one.id.startswith("gen-") else one.id) for one in known]
        far: dict[int, int] = {}
        for place, scored in enumerate(own):
            later = ((place + step) % size for step in range(1, size))
            other = next((at for at in later if kinds[at] != kinds[place]), None)
            if "trade" in scored.parts and other is not None:
                far[place] = other
        if len(far) < 2:
            return not_scored("fewer than two programs trade")
        others = self.batch([programs[place] for place in far], [known[other] for other in far.values()])
        mine = np.array([self._near(own[place]) for place in far])
        theirs = np.array([self._near(scored) for scored in others])
        note = f"{mine.mean():.2f} of the way to their own task, {theirs.mean():.2f} to another"
        return mean_gap(mine - theirs, note)

    def _near(self, scored: ScoredAnswer) -> float:
        config, parts = self._rule.config, scored.parts
        whole = config.judge * config.near or 1.0
        return 1.0 if "judge" in parts else plain_sum(parts.get(name, 0.0) for name in CLOSENESS) / whole

    def _score(self, chunks: Sequence[_Chunk]) -> list[tuple[int, ScoredAnswer]]:
        tasks = [Task(str(place), msgspec.json.encode(chunk)) for place, chunk in enumerate(chunks)]
        done: list[tuple[int, ScoredAnswer]] = []
        for result in self._performing.perform(tasks, lambda key, sessions: None) if tasks else ():
            if isinstance(result, Lost):
                gone = ScoredAnswer(value=None, outcome="not_scored", reason=result.reason)
                done += [(place, gone) for place, _ in chunks[int(result.key)].answers]
            else:
                scored = msgspec.json.decode(result.payload, type=_Scored)
                done += scored.answers
                task = chunks[int(result.key)].task
                if scored.markets and self._workers != 1:
                    self._markets[_name(task)] = scored.markets
        while len(self._markets) > _MOST_KEPT:
            del self._markets[next(iter(self._markets))]
        return done


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
    """Return what every answer is worth, in their order; a training loop keeps a :class:`Pool` instead.

    ``programs`` are programs or whole answers of a model with a program in a fence, read as QuantCode reads them;
    anything that is no text, or holds no program, is worth 0 and says why. ``tasks`` is one task for all, or one
    each, by id or as a task. The options are those of :class:`Pool`.

    Raises :class:`UserError` for an unknown task, or as many tasks as there are not answers; :class:`MissingExtra`
    and :class:`SandboxError` where programs cannot be run at all.
    """
    _refuse_no_list(programs)
    many = max(1, min(cores(), len(programs))) if workers is None and executor != "ray" else workers
    pool = Pool(judge=judge, framework=framework, config=config, secret=secret, workers=many, executor=executor)
    with pool:
        return pool.batch(programs, tasks)


def _refuse_no_list(programs: object) -> None:
    if isinstance(programs, str):
        raise UserError("one answer is no list of answers", hint="write batch([answer], task)")
    if not isinstance(programs, Sized) or not isinstance(programs, Iterable):
        raise UserError(f"{shown(programs)} is no list of answers", hint="write batch([answer], task)")


def read_answer(answer: object, framework: Framework = "backtrader") -> tuple[str, str] | ScoredAnswer:
    """Return an answer's program and how it was found, or what an answer without one is worth."""
    # By type(), and as a plain text: an object may lie about its class, and a kind of text about its methods.
    if not issubclass(type(answer), str):
        kind = "None" if answer is None else f"of type {type(answer).__name__}"
        return ScoredAnswer(value=0.0, outcome="no_code", reason=f"the answer is {kind}, not text")
    text = str.__str__(answer)
    if not text.strip():
        return ScoredAnswer(value=0.0, outcome="no_code", reason="the answer is empty")
    read = extract(text, framework)
    if read.code is None or not read.code.strip():
        reason = read.missing.replace("_", " ") or "there is no program in it"
        return ScoredAnswer(value=0.0, outcome="no_code", reason=reason, note=read.note)
    return read.code, read.note


def _name(task: str | CodeTask) -> str:
    return task if isinstance(task, str) else sha256_of(task)


@cache
def _sandbox() -> JobExecutor:
    """Open the sandbox of this process: that takes a second, so that it stays open for the next batch."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_code_executor(1))


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Score one chunk; what the executors call."""
    chunk = msgspec.json.decode(payload, type=_Chunk)
    task = load_task(chunk.task) if isinstance(chunk.task, str) else chunk.task
    given = pickle.loads(chunk.markets) if chunk.markets else {}  # from a worker of this pool
    SHARED_DRAWS.take(given)
    SHARED_DRAWS.fresh()  # what others drew here is not for this pool
    how: Any = {"config": chunk.config, "framework": chunk.framework, "secret": chunk.secret}
    done: list[tuple[int, ScoredAnswer]] = []
    known: dict[str, ScoredAnswer] = {}  # a model that is sure of itself writes one program many times
    for place, source in chunk.answers:
        if stopping():
            break
        if source not in known:
            found: Any = reward(task, source, chunk.judge, executor=_sandbox(), **how)
            told = {"outcome": found.outcome, "parts": found.parts, "reason": found.reason}
            known[source] = ScoredAnswer(value=found.value, **told)
        done.append((place, known[source]))
        tick(1)
    drawn = SHARED_DRAWS.fresh()
    return msgspec.json.encode(_Scored(answers=done, markets=pickle.dumps(given | drawn) if drawn else b""))
