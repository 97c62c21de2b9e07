"""Export a recorded run as training data: questions to a model, its answers, and their rewards.

In a run of programs the benchmark defines the reward of an answer (``rewards``). In a trading run
the reward of an answer is the return of the account until the end of the next session. If the
reward is unknown, ``reward`` is None and ``reason`` states why.
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
    """One question with its answer. ``evidence`` contains the facts that determine the reward."""

    episode: str
    model: str
    prompt: tuple[dict[str, str], ...]
    completion: str
    reward: float | None
    reason: str = ""
    evidence: dict[str, Any] = {}


def trajectories(run: Run | CodeRun) -> Iterator[Trajectory]:
    """Yield every answer of a model except judgements, in the order of the episodes."""
    for episode in run.episodes:
        rewards = (
            run.kind.rewards(run.record(episode.key))
            if isinstance(run, CodeRun)
            else _days(run, episode.key)
        )
        lines = list(run.dialogue(episode.key))
        for line, messages in zip(lines, whole_messages(lines), strict=True):
            if line.reply.error is not None or line.purpose.startswith("judge"):
                continue
            # A turn identifies a program. A step identifies a day.
            place = line.attempt - 1 if isinstance(run, CodeRun) else line.step
            reward = rewards.get(place, _UNKNOWN)
            calls = [{"name": call.name, "arguments": call.arguments} for call in line.reply.calls]
            completion = line.reply.text or msgspec.json.encode(calls).decode()
            yield Trajectory(
                episode=episode.key,
                model=str(getattr(episode, "model", "") or getattr(episode, "agent", "")),
                prompt=tuple(
                    {"role": message.role, "content": message.text} for message in messages
                ),
                completion=completion,
                reward=reward.value,
                reason=reward.reason,
                evidence=reward.evidence,
            )


def _days(run: Run, key: str) -> dict[int, AnswerReward]:
    """Return the reward of every session of an episode by step, except for the last session."""
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
    """Yield the lines of a training data set from a run.

    ``rl`` contains every answer with its reward. ``sft`` contains the best answer to each question
    if its reward is high enough (at least 1 for a program, above 0 for a session). ``dpo`` contains
    the best and the worst answer to each question if their rewards differ.
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
