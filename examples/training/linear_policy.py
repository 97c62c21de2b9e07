"""A small learner on the Gymnasium market, and what its practice was worth on days it was not
trained on.

A policy buys an asset with a probability that is linear in what it sees. Policy gradients play an
episode, push what was followed by reward, and play again. Run as a program it practises in a
synthetic world where one factor pays.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.factors import FACTOR_NAMES
from tradeassay.metrics.intervals import measure_from, seed_resamples
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import PlantedStyles, generate, preset
from tradeassay_bench.frontends.gym_env import COLUMNS, DailyMarket

SELL, BUY = 0, 2


@dataclass(frozen=True, slots=True)
class LinearPolicy:
    """Buys an asset with the probability ``sigmoid(weights . observed + bias)``, else sells it."""

    weights: Floats
    bias: float = 0.0

    @classmethod
    def blank(cls, columns: int) -> LinearPolicy:
        return cls(np.zeros(columns))

    def chance(self, observed: NDArray[np.float32]) -> Floats:
        """Return the probability of buying each asset, shape (assets,)."""
        score = observed.astype(np.float64) @ self.weights + self.bias
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0))))

    def act(self, observed: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an action for each asset: 0 sells, 2 buys."""
        chosen = rng.random(observed.shape[0]) < self.chance(observed)
        return np.where(chosen, BUY, SELL).astype(np.int64)


MakeEnv = Callable[[], Any]
"""Makes a Gymnasium environment with discrete actions (0 sell, 1 keep, 2 buy) and a row per
asset to observe.
"""


class LearnConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How to learn.

    ``rate`` is the size of a step, ``baseline`` the memory of the usual reward (0 to 1).
    """

    episodes: int = 40
    rate: float = 0.1
    baseline: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.episodes < 1 or not self.rate > 0 or not 0 <= self.baseline < 1:
            raise UserError("learning needs episodes, a rate above 0 and a baseline below 1")


@dataclass(frozen=True, slots=True)
class Learnt:
    """The policy after practice, and the total reward (log return) of every practice episode."""

    policy: LinearPolicy
    rewards: Floats


def learn(
    make: MakeEnv, config: LearnConfig | None = None, start: LinearPolicy | None = None
) -> Learnt:
    """Practise from ``start`` (None: a coin) and return what was learnt.

    The same config gives the same policy.

    Each decision is reinforced by the reward that followed it, less the usual reward, in units of
    its usual size: decisions here are paid at the next close, so no later reward is owed to them.
    """
    config = config or LearnConfig()
    env = make()
    rng = np.random.default_rng(config.seed)
    policy = start or LinearPolicy.blank(int(env.observation_space.shape[-1]))
    usual, scale = 0.0, None
    totals = np.empty(config.episodes)
    for episode in range(config.episodes):
        steps, push, lift, total = 0, np.zeros_like(policy.weights), 0.0, 0.0
        observed, _ = env.reset(seed=int(rng.integers(2**31)))
        over = False
        while not over:
            chance = policy.chance(observed)
            action = policy.act(observed, rng)
            following, reward, ended, cut, _ = env.step(action)
            scale = (
                abs(reward)
                if scale is None
                else config.baseline * scale + (1 - config.baseline) * abs(reward)
            )
            worth = (reward - usual) / max(scale, 1e-9)
            surprise = (
                np.where(action == BUY, 1.0, 0.0) - chance
            )  # the gradient of the log-probability
            push += worth * (surprise @ observed.astype(np.float64))
            lift += worth * float(surprise.sum())
            usual = config.baseline * usual + (1 - config.baseline) * reward
            observed, over, total, steps = following, ended or cut, total + reward, steps + 1
        policy = LinearPolicy(
            policy.weights + config.rate * push / steps, policy.bias + config.rate * lift / steps
        )
        totals[episode] = total
    return Learnt(policy=policy, rewards=totals)


def evaluate(make: MakeEnv, policy: LinearPolicy, seeds: range) -> Floats:
    """Return the total reward of one episode per seed.

    Seeds decide the days and the draws alike.
    """
    env = make()
    found = np.empty(len(seeds))
    for place, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        observed, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observed, reward, ended, cut, _ = env.step(policy.act(observed, rng))
            total, over = total + reward, ended or cut
        found[place] = total
    return found


def improvement(
    make: MakeEnv,
    before: LinearPolicy,
    after: LinearPolicy,
    seeds: range,
    *,
    level: float = 0.95,
    draws: int = 2000,
) -> Measure:
    """Return the mean gain in log return per episode from one policy to the other, on the same
    episodes.

    The interval resamples episodes. Episodes whose days overlap are not independent, which makes it
    too narrow where there are many of them on few days; the note says how many there were. Evaluate
    on days that were not practised on. Raises :class:`UserError` for fewer than two episodes.
    """
    if len(seeds) < 2:
        raise UserError("an interval needs at least two episodes", hint="give more seeds")
    gains = evaluate(make, after, seeds) - evaluate(make, before, seeds)
    drawn = gains[seed_resamples(len(seeds), draws, 0)].mean(axis=1)
    note = (
        f"mean over {len(seeds)} paired episodes; overlapping days are resampled as if independent"
    )
    return measure_from(float(gains.mean()), drawn, level=level, n=len(seeds), note=note)


def planted(folder: Path, premium: float) -> tuple[MakeEnv, MakeEnv]:
    """Return days to practise on and later ones to be examined on; one factor pays ``premium`` a
    year.
    """
    premia = tuple(premium if name == "CV_VOL" else 0.0 for name in FACTOR_NAMES)
    config = preset(
        "us",
        seed=5,
        names=12,
        sessions=260,
        index_members=10,
        new_listings=0,
        delistings=0,
        fundamentals=False,
        styles=PlantedStyles(premia=premia),
    )
    write_snapshot(generate(config).panel, folder)
    world = open_snapshot(folder)
    days = [str(day) for day in world.sessions]
    return (
        lambda: DailyMarket(world, sessions=25, actions="discrete", first=days[40], last=days[170]),
        lambda: DailyMarket(world, sessions=15, actions="discrete", first=days[171]),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        practice, exam = planted(Path(kept) / "world", 4.0)
        learnt = learn(practice, LearnConfig(episodes=10, rate=0.3))
        gain = improvement(exam, LinearPolicy.blank(len(COLUMNS)), learnt.policy, range(100, 110))
    print(f"{gain.value:+.3f} per episode, {gain.low:+.3f} to {gain.high:+.3f}")
