"""Steps per CPU second of the Gymnasium market, alone and vectorised, and on the first pass over its sessions.

    python perf/gym_speed.py [--steps 6000]

The bar is 3,000 steps per CPU second once every session has been seen (a policy sees each many times).
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np

from machine import conditions
from tradeassay.frontends.gym_env import ID, DailyMarket


def stepped(env: DailyMarket, steps: int, seed: int, fresh: bool) -> float:
    """Play ``steps`` steps with weights that change every session (``fresh``) or every tenth; CPU seconds."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    action = rng.random(5, dtype=np.float32)
    began = time.process_time()
    for step in range(steps):
        if fresh or step % 10 == 0:
            action = rng.random(5, dtype=np.float32)
        *_, ended, cut, _ = env.step(action)
        if ended or cut:
            env.reset()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=6_000)
    steps = parser.parse_args().steps
    env = DailyMarket("synthetic/us:7", assets=5, sessions=60)
    cold = stepped(env, steps, 1, True)
    print(f"first pass, factors computed once a session: {steps / cold:,.0f} steps per CPU second")
    for fresh, words in ((True, "five new weights every session"), (False, "new weights every tenth session")):
        best = min(stepped(env, steps, seed, fresh) for seed in (2, 3, 4))
        print(f"{words}: {steps / best:,.0f} steps per CPU second (bar 3,000)")
    many = gymnasium.make_vec(ID, num_envs=8, vectorization_mode="sync", dataset="synthetic/us:7")
    many.reset(seed=1)
    actions = np.random.default_rng(0).random((8, 5), dtype=np.float32)
    began = time.process_time()
    for _ in range(steps // 8):
        many.step(actions)
    print(f"eight environments, vectorised: {steps / (time.process_time() - began):,.0f} steps per CPU second")
    print(conditions())


if __name__ == "__main__":
    main()
