"""A learner gets better where there is something to learn, and is not said to where there is
not.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.frontends.gym_env import COLUMNS

found = spec_from_file_location(
    "linear_policy", Path(__file__).parents[3] / "examples/training/linear_policy.py"
)
example = module_from_spec(found)
sys.modules["linear_policy"] = example
found.loader.exec_module(example)
LearnConfig, LinearPolicy, evaluate, improvement, learn, planted = (
    getattr(example, name)
    for name in ("LearnConfig", "LinearPolicy", "evaluate", "improvement", "learn", "planted")
)
COIN = LinearPolicy.blank(len(COLUMNS))


def test_practice_pays_where_a_signal_is_planted(tmp_path):
    practice, exam = planted(tmp_path / "planted", 4.0)
    learnt = learn(practice, LearnConfig(episodes=16, rate=0.3))
    assert COLUMNS[int(np.argmax(np.abs(learnt.policy.weights)))] == "CV_VOL"
    gain = improvement(exam, COIN, learnt.policy, range(100, 112))
    assert gain.low is not None and gain.low > 0.0 and gain.n == 12


@pytest.mark.slow
def test_practice_is_not_said_to_pay_where_there_is_nothing_to_learn(tmp_path):
    practice, exam = planted(tmp_path / "empty", 0.0)
    gain = improvement(
        exam, COIN, learn(practice, LearnConfig(episodes=8, rate=0.3)).policy, range(100, 110)
    )
    assert gain.low is not None and gain.high is not None and gain.low < 0.0 < gain.high


class OneFact:
    """An environment of one asset and one fact: it pays to buy when the fact is 1 and to stay
    out at -1.
    """

    class observation_space:
        shape = (1, 1)

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def reset(self, seed: int):
        self.rng, self.left = np.random.default_rng(seed), 20
        return self._see(), {}

    def _see(self):
        self.fact = float(self.rng.choice([-1.0, 1.0]))
        return np.array([[self.fact]], dtype=np.float32)

    def step(self, action):
        reward = 0.01 * self.fact * (1 if action[0] == 2 else -1)
        self.left -= 1
        return self._see(), reward, False, self.left == 0, {}


def test_the_gradient_points_the_right_way():
    learnt = learn(OneFact, LearnConfig(episodes=60, rate=0.2))
    assert learnt.policy.weights[0] > 1.0
    assert learnt.rewards[-10:].mean() > learnt.rewards[:10].mean() + 0.05
    again = learn(OneFact, LearnConfig(episodes=60, rate=0.2))
    assert again.policy.weights[0] == learnt.policy.weights[0]  # the same seed, the same lesson
    assert evaluate(OneFact, learnt.policy, range(3)).shape == (3,)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UserError):
        LearnConfig(episodes=0)
    with pytest.raises(UserError):
        improvement(OneFact, LinearPolicy.blank(1), LinearPolicy.blank(1), range(1))
