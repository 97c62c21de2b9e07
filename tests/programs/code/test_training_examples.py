"""The examples for whoever trains: a policy that learns, recorded answers under the same rules."""

import subprocess
import sys
from pathlib import Path

import pytest

from tradeassay.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "training"


@pytest.mark.slow
def test_a_toy_policy_learns():
    words = [sys.executable, str(EXAMPLES / "toy_policy.py"), "--steps", "4", "--batch", "8"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    means = [
        float(line.split("mean reward ")[1].split(",")[0]) for line in done.stdout.splitlines()
    ]
    assert len(means) == 4 and means[-1] > means[0]


@pytest.mark.parametrize("name", ["qwen-before-seen"])
def test_recorded_answers_are_judged_by_the_rules_of_their_day(capsys, name):
    """An option that no run has must not change what its rules are known by."""
    status = main(
        ["recordings", "check", "--no-replay", str(EXAMPLES / "recorded" / f"{name}.tar.xz")]
    )
    assert status == 0, capsys.readouterr()
