"""The one function that executors call: performs a task, wherever it runs."""

from __future__ import annotations

from tradeassay.runs.executors.base import Stopping, Tick
from tradeassay.runs.play import play
from tradeassay.runs.scoring import score_agent
from tradeassay.runs.snapshots import describe
from tradeassay.runs.tasks import ENCODE, TASK_DECODER, PlayTask, PrepareTask


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Decode a task, do it, encode its result."""
    task = TASK_DECODER.decode(payload)
    if isinstance(task, PrepareTask):
        return ENCODE(describe(task.dataset, task.home))
    if isinstance(task, PlayTask):
        return ENCODE(play(task, tick, stopping))
    return ENCODE(score_agent(task))
