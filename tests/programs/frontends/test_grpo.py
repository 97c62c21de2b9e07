"""The loop of ``examples/training/grpo.py`` on a tiny network, and a judge that needs no
programs.
"""

import argparse
import importlib.util
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tradeassay_programs.code.collapse import EarlyStop

torch = pytest.importorskip("torch")
WORDS, WIDTH, HEADS, DIM = 24, 32, 2, 16


@pytest.fixture(scope="module")
def grpo() -> Any:
    place = Path(__file__).parents[3] / "examples" / "training" / "grpo.py"
    spec = importlib.util.spec_from_file_location("grpo_example", place)
    module = importlib.util.module_from_spec(spec)
    before, threads = list(sys.path), torch.get_num_threads()
    spec.loader.exec_module(module)
    sys.path[:] = before
    torch.set_num_threads(1)
    yield module
    torch.set_num_threads(threads)


class Judge:
    """Pays for tokens like the task's, modulo 4; ``spoiled`` examinations look worse than they
    are.
    """

    def __init__(self, spoiled: tuple[int, ...] = ()) -> None:
        self.early, self.spoiled, self.looks = EarlyStop(), spoiled, itertools.count(1)

    def ask(self, **asked: Any) -> Any:
        self.asked = asked
        return self.receive()

    def send(self, **asked: Any) -> None:
        self.asked = asked

    def receive(self) -> Any:
        asked = self.asked
        if asked["op"] == "tasks":
            first = asked.get("start", 0)
            return [
                {"id": n, "messages": [1, 2, 3 + n % 4]}
                for n in range(first, first + asked["count"])
            ]
        values = [
            sum(token % 4 == task % 4 for token in said) / max(1, len(said))
            for task, said in zip(asked["ids"], asked["answers"], strict=True)
        ]
        scored = [{"value": one, "outcome": "", "parts": {}, "reason": ""} for one in values]
        found = {"scored": scored, "collapsed": False, "largest_share": None}
        if "set" in asked:
            worse = 0.6 * (next(self.looks) in self.spoiled)
            paid = zip(asked["ids"], values, strict=True)
            near = {f"{task}.{n}": one - worse for n, (task, one) in enumerate(paid)}
            found |= {"nearer": 0.0, "forgets": False, "advice": self.early.advise(near)}
        return found


def learn(grpo: Any, folder: Path, judge: Judge, rounds: int) -> tuple[Any, list[dict[str, Any]]]:
    """Train a new network until ``rounds`` examinations have been made; return it and the log."""
    torch.manual_seed(0)
    options = argparse.Namespace(
        seed=1,
        prompts=4,
        group=8,
        tokens=4,
        context=16,
        heat=1.0,
        every=0.0,
        pause=0.0,
        keep=6.0,
        device="cpu",
        rate=2e-2,
        clip=0.2,
        leash=0.02,
        least=0.02,
    )
    net = grpo.Sampler.__new__(grpo.Sampler)

    def drawn(*size: int) -> Any:
        return torch.randn(*size) * 0.2

    block = {
        "before": torch.ones(WIDTH),
        "qkv": drawn(3 * HEADS * DIM, WIDTH),
        "bias": None,
        "out": drawn(WIDTH, WIDTH),
        "after": torch.ones(WIDTH),
        "up": drawn(4 * WIDTH, WIDTH),
        "down": drawn(WIDTH, 2 * WIDTH),
    }
    embed = drawn(WORDS, WIDTH)
    angles = torch.outer(torch.arange(16.0), 1.0 / 100 ** (torch.arange(0, DIM, 2) / DIM)).repeat(
        1, 2
    )
    caches = [torch.zeros(1, 33, HEADS, 16, DIM) for _ in range(2)]
    vars(net).update(
        torch=torch,
        device="cpu",
        dtype=torch.float32,
        layers=1,
        heads=HEADS,
        kv=HEADS,
        dim=DIM,
        eps=1e-6,
        context=16,
        slots=32,
        embed=embed,
        head=embed,
        norm=torch.ones(WIDTH),
        blocks=[block],
        cos=angles.cos(),
        sin=angles.sin(),
        keys=caches[0],
        values=caches[1],
        kernel=None,
        graphs={},
    )
    policy = grpo.Policy.__new__(grpo.Policy)
    weights = [weight.requires_grad_() for weight in net.tensors().values()]
    vars(policy).update(
        options=options, ends=[0], slots=32, net=net, weights=weights, start=[], kept=[], said=0
    )
    vars(policy).update(
        {name: [torch.zeros_like(one) for one in weights] for name in ("rests", "first", "second")}
    )
    policy.moves = policy.kept_moves = 0
    policy.encode = policy.text = lambda given: given
    tasks, log = judge.ask(op="tasks", count=32), grpo.Log(folder)
    left = iter(range(rounds))

    def look(when: str) -> str:
        if next(left, None) is None:
            return "stop"
        return str(grpo.examine(policy, judge, log, when, {"validation": tasks})[0])

    grpo.EXAMINED = 4
    grpo.train(policy, judge, log, options, time.time() + 1e6, look)
    return policy, [json.loads(line) for line in (folder / "log.jsonl").open()]


@pytest.mark.slow
def test_the_loop_climbs_and_learns_from_what_was_sampled(grpo, tmp_path):
    _, log = learn(grpo, tmp_path, Judge(), 31)
    shown = [line["reward"] for line in log if line["event"] == "examined"]
    assert max(shown) > shown[0] + 0.2
    steps = [line for line in log if line["event"] == "step"]
    assert steps[0]["moved"] < 1e-4, "the learner's log-probabilities are the sampler's"
    assert steps[0]["away"] < 1e-6 < max(step["away"] for step in steps)


def test_worse_examinations_bring_the_best_state_back_and_end_training(grpo, tmp_path):
    policy, log = learn(grpo, tmp_path, Judge(spoiled=(2, 3, 4)), 9)
    back = [line for line in log if line["event"] == "restored"]
    assert [line["advice"] for line in back] == ["back", "back", "stop"] and {
        line["to"] for line in back
    } == {0}
    assert all(
        torch.equal(weight, start)
        for weight, start in zip(policy.weights, policy.start, strict=True)
    )
