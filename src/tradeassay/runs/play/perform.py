"""The one function that executors call to perform a task, wherever it runs."""

from __future__ import annotations

from tradeassay.core.executors import Stopping, Tick
from tradeassay.runs.play.episodes import play
from tradeassay.runs.play.worker_tasks import ENCODE, TASK_DECODER, CheckTask, PlayTask, PrepareTask
from tradeassay.runs.score.scoring import score_agent
from tradeassay.runs.store.snapshots import describe
from tradeassay.runs.verify.checks import check_episode


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Decode a task, do it, encode its result."""
    task = TASK_DECODER.decode(payload)
    if isinstance(task, PrepareTask):
        return ENCODE(describe(task.dataset, task.home, task.markets, task.windows))
    if isinstance(task, PlayTask):
        return ENCODE(play(task, tick, stopping))
    if isinstance(task, CheckTask):
        return ENCODE(check_episode(task))
    return ENCODE(score_agent(task))
