"""What is asked of an executor, as plain records, and the one function that performs it, wherever it runs."""

from __future__ import annotations

import msgspec

from tradeassay.core.executors import Stopping, Tick
from tradeassay.runs.play.episodes import PlayTask, play
from tradeassay.runs.score.scores import GatherTask, Scored, ScoreTask, encode_scores, gather, score_agent
from tradeassay.runs.store.cache import PrepareTask, describe
from tradeassay.runs.store.manifest import DatasetEntry
from tradeassay.runs.store.outcome import Played
from tradeassay.runs.verify.checks import Checked, CheckTask, check_episode

ENTRY = "tradeassay.runs.play.worker_tasks:perform"
"""The function that performs these tasks, as executors want it named."""
WorkerTask = PrepareTask | PlayTask | ScoreTask | GatherTask | CheckTask
TASK_DECODER: msgspec.msgpack.Decoder[WorkerTask] = msgspec.msgpack.Decoder(WorkerTask)
ENCODE = msgspec.msgpack.Encoder().encode
PREPARED_DECODER = msgspec.msgpack.Decoder(DatasetEntry)
PLAYED_DECODER = msgspec.msgpack.Decoder(Played)
SCORED_DECODER = msgspec.msgpack.Decoder(Scored)
CHECKED_DECODER = msgspec.msgpack.Decoder(Checked)


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    task = TASK_DECODER.decode(payload)
    if isinstance(task, PrepareTask):
        return ENCODE(describe(task))
    if isinstance(task, PlayTask):
        return ENCODE(play(task, tick, stopping))
    if isinstance(task, CheckTask):
        return ENCODE(check_episode(task))
    if isinstance(task, GatherTask):
        return encode_scores(gather(task.work_sha256, task.episodes, task.parts, level=task.level))
    return ENCODE(score_agent(task))
