"""The examples for whoever trains: the shapes that libraries call, and a policy that learns."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_shape_gives_nothing_for_no_program() -> None:
    made, task = loaded("reward_functions"), "d-sma-cross-long"
    said = [{"role": "assistant", "content": "I would rather not."}]
    assert (
        made.trl_reward(prompts=["p"] * 3, completions=["no", said, [{"content": None}]], task=[task] * 3)
        == [0.0] * 3
    )
    assert made.verl_score("quantcode", "no program", task, extra_info={"index": 1}) == 0.0
    assert made.verifiers_reward(prompt=[], completion=said, answer=task, state={}) == 0.0
    assert made.grade({"output_text": None}, {"task": task}) == 0.0


@pytest.mark.slow
def test_a_toy_policy_learns() -> None:
    words = [sys.executable, str(EXAMPLES / "toy_policy.py"), "--steps", "4", "--batch", "8"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    means = [float(line.split("mean reward ")[1].split(",")[0]) for line in done.stdout.splitlines()]
    assert len(means) == 4 and means[-1] > means[0]
