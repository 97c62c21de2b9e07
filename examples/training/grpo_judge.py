"""The judge of ``grpo.py``: serves tasks and rewards, a JSON line in, a JSON line out.

python examples/training/grpo_judge.py WORKERS [--no-judge]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tradeassay_programs import reward
from tradeassay_programs.benchmarks.quantcode import draw_tasks, load_task, load_tasks
from tradeassay_programs.benchmarks.quantcode.dialogue import QuantCodeSettings, opening_messages
from tradeassay_programs.code.collapse import EarlyStop, collapse, forgetting
from tradeassay_programs.code.extraction import extract
from tradeassay_programs.code.judges.markets import DrawConfig
from tradeassay_programs.code.reward import QUICK

SECRET = "5e" * 16


def closeness(parts: dict[str, float]) -> float:
    """Return how near a program came to its task, as it is paid."""
    return (
        sum(value for name, value in parts.items() if name not in ("compile", "backtest", "trade"))
        / 0.92
    )


def main(workers: int, judged: bool) -> None:
    """Answer what is asked."""

    def pool(draws: DrawConfig, asks: bool) -> Any:
        config = reward.RewardConfig(draws=draws)
        return reward.Pool(
            judge="behaviour" if asks else None, workers=workers, secret=SECRET, config=config
        )

    pools = {
        "train": pool(QUICK, judged),
        "examine": pool(DrawConfig(markets=3, redraws=0, extra_markets=0), True),
    }
    first: dict[str, dict[str, float]] = {}
    early = EarlyStop()
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["op"] == "tasks":
            wording = asked.get("wording", "formal")
            family, count = asked["family"], asked["count"]
            tasks = (
                load_tasks()[:count]
                if family == "fixed"
                else draw_tasks(family, count, asked["seed"], start=asked.get("start", 0))
            )
            said: Any = [
                {
                    "id": task.id,
                    "messages": [
                        {"role": one.role, "content": one.text}
                        for one in opening_messages(task, QuantCodeSettings(wording=wording))
                    ],
                    "answer": f"```python\n{task.reference.strip()}\n```",
                }
                for task in tasks
            ]
        else:
            ids, answers = asked["ids"], asked["answers"]
            scored = pools[asked["pool"]].batch(answers, [load_task(name) for name in ids])
            alike = collapse(
                {name: extract(text).code or "" for name, text in zip(ids, answers, strict=True)}
            )
            said = {
                "scored": [
                    {
                        "value": one.value,
                        "outcome": one.outcome,
                        "parts": one.parts,
                        "reason": one.reason[:300],
                    }
                    for one in scored
                ],
                "collapsed": alike.collapsed,
                "largest_share": alike.largest_share,
            }
            if "set" in asked:  # examined, and compared with the first time
                each: dict[str, list[float]] = {}
                for name, one in zip(ids, scored, strict=True):
                    each.setdefault(name, []).append(closeness(one.parts))
                near = {name: sum(some) / len(some) for name, some in each.items()}
                fell = forgetting(first.setdefault(asked["set"], near), near)
                advice = early.advise(near) if asked["set"] == "validation" else None
                high = fell.high
                said |= {
                    "nearer": fell.value,
                    "forgets": high is not None and high < 0.0,
                    "advice": advice,
                }
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), "--no-judge" not in sys.argv)
