"""Export a recorded run as training data: questions to a model, its answers, and their rewards.

The benchmark's ``rewards`` define the reward of a program. The reward of an answer on a trading day
is the account's return until the next session's mark. If neither is known, ``reward`` is None and
``reason`` states why.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from tradeassay_bench.benchmarks.code_protocol import AnswerReward
from tradeassay_bench.core.events import Marked
from tradeassay_bench.play.dialogue_log import whole_messages
from tradeassay_bench.runs.store.run import CodeRun, Run

TrainingForm = Literal["sft", "dpo", "rl"]
_UNKNOWN = AnswerReward(value=None, reason="the record has no reward for this answer")


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer. ``evidence`` is the basis of the reward."""

    episode: str
    model: str
    prompt: tuple[dict[str, str], ...]
    completion: str
    reward: float | None
    reason: str = ""
    evidence: dict[str, Any] = {}


def trajectories(run: Run | CodeRun) -> Iterator[Trajectory]:
    """Yield every answer of a model to the task itself, in the order of the episodes."""
    for episode in run.episodes:
        worth = (
            run.kind.rewards(run.record(episode.key))
            if isinstance(run, CodeRun)
            else _days(run, episode.key)
        )
        lines = list(run.dialogue(episode.key))
        for line, asked in zip(lines, whole_messages(lines), strict=True):
            if line.reply.error is not None or line.purpose.startswith("judge"):
                continue
            # A turn identifies a program. A step identifies a day.
            place = line.attempt - 1 if isinstance(run, CodeRun) else line.step
            found = worth.get(place, _UNKNOWN)
            calls = [{"name": call.name, "arguments": call.arguments} for call in line.reply.calls]
            said = line.reply.text or msgspec.json.encode(calls).decode()
            yield Trajectory(
                episode=episode.key,
                model=str(getattr(episode, "model", "") or getattr(episode, "agent", "")),
                prompt=tuple({"role": one.role, "content": one.text} for one in asked),
                completion=said,
                reward=found.value,
                reason=found.reason,
                evidence=found.evidence,
            )


def _days(run: Run, key: str) -> dict[int, AnswerReward]:
    marks = []
    for record in run.records(key):
        for event in record.events:
            if isinstance(event, Marked):
                marks.append((record.step, record.session, event.nav))
    return {
        step: AnswerReward(value=after / nav - 1.0, evidence={"session": session, "until": until})
        for (step, session, nav), (_, until, after) in itertools.pairwise(marks)
        if nav > 0
    }


def training_lines(run: Run | CodeRun, form: TrainingForm) -> Iterator[dict[str, Any]]:
    """Yield a run as lines of a data set.

    ``rl`` has every answer with its reward. ``sft`` has the best answer to a question if it is good
    (1 for a program, more than 0 for a day). ``dpo`` has the best and the worst answer to one
    question if they differ.
    """
    every = list(trajectories(run))
    if form == "rl":
        yield from (msgspec.to_builtins(one) for one in every)
        return
    by_question: dict[bytes, list[Trajectory]] = {}
    for one in every:
        if one.reward is not None:
            by_question.setdefault(msgspec.json.encode(one.prompt), []).append(one)
    for same in by_question.values():
        best, worst = (
            max(same, key=lambda one: one.reward or 0.0),
            min(same, key=lambda one: one.reward or 0.0),
        )
        top, bottom = best.reward or 0.0, worst.reward or 0.0
        prompt = list(best.prompt)
        if form == "sft" and (top >= 1.0 if isinstance(run, CodeRun) else top > 0.0):
            yield {
                "messages": [*prompt, {"role": "assistant", "content": best.completion}],
                "reward": top,
            }
        if form == "dpo" and top > bottom:
            yield {
                "prompt": prompt,
                "chosen": [{"role": "assistant", "content": best.completion}],
                "rejected": [{"role": "assistant", "content": worst.completion}],
                "rewards": [top, bottom],
            }
