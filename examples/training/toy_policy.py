"""A policy of seven numbers learns to write a moving-average crossover: python
examples/training/toy_policy.py

It chooses the periods of two averages and the direction; the reward is the judge's. On a laptop it
finds the task's own numbers (10 and 30, long) in a few steps: the point is the loop, which is that
of any policy gradient.
"""

import argparse

import numpy as np

from tradeassay_programs import reward

TASK = "d-sma-cross-long"
SECRET = "5e" * 16
CHOICES = {"fast": (5, 10, 20), "slow": (30, 100), "sign": (">", "<")}
PROGRAM = """import backtrader as bt


class Cross(bt.Strategy):
    def __init__(self):
        fast = bt.indicators.SMA(self.data.close, period={fast})
        slow = bt.indicators.SMA(self.data.close, period={slow})
        self.cross = bt.indicators.CrossOver(fast, slow)

    def next(self):
        if not self.position:
            if self.cross {sign} 0:
                self.buy()
        elif self.cross {other} 0:
            self.close()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    logits = {name: np.zeros(len(values)) for name, values in CHOICES.items()}
    known: dict[str, float] = {}
    pool = reward.Pool(judge="behaviour", secret=SECRET, workers=asked.workers)
    for step in range(asked.steps):
        chances = {name: np.exp(values) / np.exp(values).sum() for name, values in logits.items()}
        drawn = [
            {n: int(rng.choice(len(p), p=p)) for n, p in chances.items()}
            for _ in range(asked.batch)
        ]
        programs = [written(picks) for picks in drawn]
        fresh = sorted(set(programs) - set(known))
        scored = pool.batch(fresh, TASK)
        known |= {program: one.value or 0.0 for program, one in zip(fresh, scored, strict=True)}
        values = np.array([known[program] for program in programs])
        better_than = (values - values.mean()) / (values.std() + 1e-3)
        for picks, better in zip(drawn, better_than, strict=True):
            for name, pick in picks.items():
                logits[name] += (
                    3.0
                    * better
                    * ((np.arange(len(logits[name])) == pick) - chances[name])
                    / asked.batch
                )
        best = {name: CHOICES[name][int(values.argmax())] for name, values in logits.items()}
        print(
            f"step {step + 1}: mean reward {values.mean():.3f}, best {values.max():.2f}, now "
            f"prefers {best}"
        )
    pool.close()


def written(picks: dict[str, int]) -> str:
    """Return the program of some choices."""
    chosen = {name: CHOICES[name][pick] for name, pick in picks.items()}
    return PROGRAM.format(**chosen, other="<" if chosen["sign"] == ">" else ">")


if __name__ == "__main__":
    main()
