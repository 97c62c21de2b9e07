"""PPO of stable-baselines3 on eight markets at once: pip install stable-baselines3, then run this
file.

It learns on 2021 and 2022 of a synthetic market and is examined on 2023, against equal weights, on
the same days.
"""

import argparse
from functools import partial

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from tradeassay_bench.frontends.gym_env import DailyMarket

PRACTICE = {"first": "2021-03-01", "last": "2022-12-30"}
EXAM = {"first": "2023-01-03", "last": "2023-12-20"}


def examined(policy: object, seeds: range) -> np.ndarray:
    """Return the log return of each examination; a policy is called with what is observed."""
    env, totals = DailyMarket(assets=5, sessions=40, **EXAM), []
    for seed in seeds:
        observed, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observed, reward, ended, cut, _ = env.step(policy(observed))
            total, over = total + reward, ended or cut
        totals.append(total)
    return np.array(totals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--exams", type=int, default=30)
    asked = parser.parse_args()
    many = DummyVecEnv([partial(DailyMarket, assets=5, sessions=40, **PRACTICE) for _ in range(8)])
    model = PPO("MlpPolicy", many, n_steps=128, batch_size=256, seed=0, verbose=0, device="cpu")
    model.learn(total_timesteps=asked.steps)
    seeds = range(1_000, 1_000 + asked.exams)
    learnt = examined(lambda observed: model.predict(observed, deterministic=True)[0], seeds)
    equal = examined(lambda observed: np.full(5, 0.2, dtype=np.float32), seeds)
    gain = learnt - equal
    error = gain.std(ddof=1) / len(gain) ** 0.5
    print(
        f"against equal weights: {gain.mean():+.4f} ± {1.96 * error:.4f} log return in 40 sessions"
    )


if __name__ == "__main__":
    main()
