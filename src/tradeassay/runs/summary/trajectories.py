"""A recorded run as training data: what a model was asked, what it said, and what that was worth.

A program is worth what :func:`~tradeassay.code.reward.reward_of` gives its recorded verdict, without the part for
coming near, which is not recorded (``agreement`` is). An answer on a trading day is worth what the account made
until the next session's mark. ``reward`` is None, and ``reason`` says why, where neither is known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from tradeassay.benchmarks.quantcode.dialogue import TaskOutcome
from tradeassay.code.reward import reward_of
from tradeassay.core.events import Marked
from tradeassay.play.dialogue_log import whole_messages
from tradeassay.runs.store.run import CodeRun, Run

TrainingForm = Literal["sft", "dpo", "rl"]


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer. ``evidence`` is what the reward rests on."""

    episode: str
    model: str
    prompt: tuple[dict[str, str], ...]
    completion: str
    reward: float | None
    reason: str = ""
    evidence: dict[str, Any] = {}


def trajectories(run: Run | CodeRun) -> Iterator[Trajectory]:
    """Yield every answer that a model gave to the task itself, in the order of the episodes."""
    for episode in run.episodes:
        worth = _programs(run, episode.key) if isinstance(run, CodeRun) else _days(run, episode.key)
        lines = list(run.dialogue(episode.key))
        for line, asked in zip(lines, whole_messages(lines), strict=True):
            if line.reply.error is not None or line.purpose.startswith("judge"):
                continue
            # A program is known by its turn, a day by its step.
            place = line.attempt - 1 if isinstance(run, CodeRun) else line.step
            reward, reason, evidence = worth.get(place, (None, "nothing is recorded about this answer", {}))
            calls = [{"name": call.name, "arguments": call.arguments} for call in line.reply.calls]
            said = line.reply.text or msgspec.json.encode(calls).decode()
            yield Trajectory(
                episode=episode.key,
                model=str(getattr(episode, "model", "") or getattr(episode, "agent", "")),
                prompt=tuple({"role": one.role, "content": one.text} for one in asked),
                completion=said,
                reward=reward,
                reason=reason,
                evidence=evidence,
            )


Worth = dict[int, tuple[float | None, str, dict[str, Any]]]


def _programs(run: CodeRun, key: str) -> Worth:
    record = run.record(key)
    if not isinstance(record, TaskOutcome):
        return {}
    found: Worth = {}
    for place, turn in enumerate(record.turns):
        if turn.evaluation is None:
            found[place] = (
                0.0 if turn.stage in ("no_code", "cut_off") else None,
                turn.reason,
                {"stage": turn.stage},
            )
            continue
        one, behaviour = reward_of(turn.evaluation, judged=True), turn.evaluation.judge_behaviour
        evidence = {
            "task": record.task,
            "stage": turn.stage,
            "parts": one.parts,
            "agreement": None if behaviour is None else behaviour.agreement,
            "code_sha256": turn.code_sha256,
        }
        found[place] = (one.value, one.reason, evidence)
    return found


def _days(run: Run, key: str) -> Worth:
    marks = [
        (record.step, record.session, event.nav)
        for record in run.records(key)
        for event in record.events
        if isinstance(event, Marked)
    ]
    return {
        step: (after / nav - 1.0, "", {"session": session, "until": until})
        for (step, session, nav), (_, until, after) in itertools.pairwise(marks)
        if nav > 0
    }


def training_lines(run: Run | CodeRun, form: TrainingForm) -> Iterator[dict[str, Any]]:
    """Yield a run as lines of a data set: ``rl`` has every answer with its reward, ``sft`` the best answer to a
    question where it is good (1 for a program, more than 0 for a day), ``dpo`` the best and the worst answer to
    one question where they differ."""
    every = list(trajectories(run))
    if form == "rl":
        yield from (msgspec.to_builtins(one) for one in every)
        return
    by_question: dict[bytes, list[Trajectory]] = {}
    for one in every:
        if one.reward is not None:
            by_question.setdefault(msgspec.json.encode(one.prompt), []).append(one)
    for same in by_question.values():
        best, worst = max(same, key=lambda one: one.reward or 0.0), min(same, key=lambda one: one.reward or 0.0)
        top, bottom = best.reward or 0.0, worst.reward or 0.0
        prompt = list(best.prompt)
        if form == "sft" and (top >= 1.0 if isinstance(run, CodeRun) else top > 0.0):
            yield {"messages": [*prompt, {"role": "assistant", "content": best.completion}], "reward": top}
        if form == "dpo" and top > bottom:
            yield {
                "prompt": prompt,
                "chosen": [{"role": "assistant", "content": best.completion}],
                "rejected": [{"role": "assistant", "content": worst.completion}],
                "rewards": [top, bottom],
            }
