"""The reward in the shapes that training libraries ask for. Copy the one you need; none imports its library.

TRL:        GRPOTrainer(reward_funcs=trl_reward, ...), a data set with the columns "prompt" and "task"
verl:       custom_reward_function.path=reward_functions.py, name=verl_score; ground_truth is the task's id
verifiers:  vf.Rubric(funcs=[verifiers_reward]); the data set's "answer" is the task's id
OpenAI:     grade(sample, item) as a Python grader; item["task"] is the task's id

All of them give 0 for whatever is no program. A sample that could not be judged is None for TRL, which leaves it
out, and 0 for the others.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from tradeassay import reward

SECRET = "5e" * 16
"""The same markets for every step of a training run: change it, and every reward is of other markets."""


@cache
def _pool() -> reward.Pool:
    return reward.Pool(judge="behaviour", secret=SECRET)


def trl_reward(completions: Sequence[Any], task: Sequence[str], **columns: Any) -> list[float | None]:
    """Score a batch; a completion is a text, or a conversation whose last message counts."""
    answers = [one if isinstance(one, str) else one[-1]["content"] for one in completions]
    return [scored.value for scored in _pool().batch(answers, list(task))]


def verl_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    """Score one answer in the worker that calls it."""
    return _one(solution_str, ground_truth)


def verifiers_reward(completion: Any, answer: str, **state: Any) -> float:
    """Score one rollout."""
    return _one(completion if isinstance(completion, str) else completion[-1]["content"], answer)


def grade(sample: dict[str, Any], item: dict[str, Any]) -> float:
    """Score what a model wrote for an item."""
    return _one(sample.get("output_text"), item["task"])


def _one(answer: object, task: str) -> float:
    (scored,) = reward.batch([answer], task, judge="behaviour", secret=SECRET, executor="inline")
    return scored.value or 0.0
