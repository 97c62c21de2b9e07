"""Programs on frames that look ahead: how many does a reward pay all the same?

    python perf/reward_leaks.py [--secrets 3]            without a judge
    python perf/reward_leaks.py --judged [--secrets 3]   with the behavioural judge, which asks on some rows only

Three programs, each made to look ahead in several ways and tried on several secrets. ``quiet`` ones do so in words
that no rule names, ``one row`` peeks on a single row, and ``remembers`` keeps what it has seen for its next call.
A look ahead that decides nothing on the rows that were run is no leak, and is not counted.

Judged, the program that is made to look ahead is the task's own reference, for which most is paid; ``sparse`` ones
peek on a few rows that their author chose. One that is paid is also scored by what it decides when later rows are
withheld on every row: ``gained`` counts those that were paid more than that.
"""

from __future__ import annotations

import argparse

import numpy as np

from machine import conditions
from tradeassay.account.backtrader import carry_targets
from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.backtrader import BacktestJob, replayed_run, terms_of
from tradeassay.code.evaluation import DECISIONS, DRAWS
from tradeassay.code.frames import read_result, sandbox_job
from tradeassay.code.judges.behaviour import judge_decisions
from tradeassay.code.judges.decisions import CLOSENESS, closeness, decision_events
from tradeassay.code.judges.markets import SHARED_DRAWS
from tradeassay.code.lookahead.grow_frames import GrowthPlan, run_grown
from tradeassay.code.reward import BRIEF, RewardConfig, reward
from tradeassay.code.running import open_code_executor, rules_of
from tradeassay.code.task import CodeTask
from tradeassay.sandbox import JobExecutor

TASK = load_task("d-donchian-20-10")
HONEST = {
    "averages": "own = (close.rolling(10).mean() > close.rolling(40).mean()).astype(float)",
    "breakout": "own = (close >= close.rolling(20).max()).astype(float).rolling(10).max().fillna(0.0)",
    "momentum": "own = (close > close.shift(3)).astype(float)",
}
WAYS = {
    "day early": ("", "own = own.shift(-1).ffill()"),
    "filled backwards": ("", "own = own.where(own.diff() != 0).bfill().fillna(0.0)"),
    "scaled": ("", "own = own * (close > close.mean())"),
    "quiet: next value": ("", "own[:] = np.append(own.to_numpy()[1:], own.to_numpy()[-1])"),
    "quiet: rank": ("", "own = own * (close.rank(pct=True) < 0.7)"),
    "quiet: last close": ("", "own = own * (close < close.to_numpy()[-1])"),
    "quiet: turned round": ("", "own = own.sort_index(ascending=False).shift(1).sort_index().fillna(0.0)"),
    "one row: by number": ("", "own.iloc[137] = float(len(own) > 138 and close.iloc[138] > close.iloc[137])"),
    "one row: by volume": (
        "",
        "at = int(frame['volume'].to_numpy()[:200].argmax())\n"
        "    own.iloc[at] = float(at + 1 < len(own) and close.iloc[at + 1] > close.iloc[at])",
    ),
    "one row: by date": (
        "",
        "at = int(np.argmax(frame.index.dayofyear >= 100))\n"
        "    own.iloc[at] = float(at + 1 < len(own) and close.iloc[at + 1] > close.iloc[at])",
    ),
}
SPARSE = {
    "the first row": "own.iloc[0] = UP(close, 0)",
    "the last but one": "own.iloc[-2:-1] = UP(close, len(close) - 2)",
    "row 137": "own.iloc[137:138] = UP(close, 137)",
    "row 60": "own.iloc[60:61] = UP(close, 60)",
    "every 37th row": "for at in range(36, len(close), 37):\n        own.iloc[at] = UP(close, at)",
    "every 37th row, size alone": (
        "for at in range(36, len(close), 37):\n        own.iloc[at] = own.iloc[at] * (0.9 + 0.1 * UP(close, at))"
    ),
    "where the price jumps": (
        "move = close.pct_change().abs()\n    for at in np.flatnonzero((move > 4 * move.median()).to_numpy()):\n"
        "        own.iloc[at] = UP(close, at)"
    ),
    "the largest volume": "at = int(frame['volume'].to_numpy().argmax())\n    own.iloc[at] = UP(close, at)",
    "once, when there are many rows": "own.iloc[90:91] = UP(close, 90) if len(close) > 200 else own.iloc[90:91]",
    "often, when there are many rows": (
        "late = np.arange(len(own)) >= 200\n    ahead = (close.shift(-1) > close).astype(float)\n"
        "    own = own.where(~late, ahead)"
    ),
    "on entries": (
        "for at in np.flatnonzero((own.diff() > 0).to_numpy()):\n"
        "        own.iloc[at] = UP(close, at) * own.iloc[at]"
    ),
    "before entries": (
        "for at in np.flatnonzero((own.diff() > 0).to_numpy())[:6]:\n"
        "        own.iloc[at - 1] = max(own.iloc[at - 1], UP(close, at - 1))"
    ),
    "after entries": (
        "for at in np.flatnonzero((own.diff() > 0).to_numpy())[:6] + 1:\n"
        "        own.iloc[at : at + 1] = own.iloc[at : at + 1] * UP(close, at)"
    ),
    "on exits": "out = (own.diff() < 0) & (close.shift(-1) > close)\n    own = own.where(~out, 1.0)",
    "on one exit": "at = int((own.diff() < 0).to_numpy().argmax())\n    own.iloc[at] = UP(close, at)",
    "two rows ahead, on five rows": "for at in (50, 70, 90, 110, 130):\n        own.iloc[at] = UP(close, at, 2)",
    "five rows ahead, on one row": "own.iloc[80:81] = UP(close, 80, 5)",
}
KEEPS = {
    "list": ("KEPT = {}\n", "KEPT"),
    "default": ("", "kept"),
    "attribute": ("", "signals.__dict__"),
    "library": ("", "np.__dict__.setdefault('_kept', {})"),
    "constants": (
        "from scipy.constants import physical_constants as P\n",
        "P",
    ),
    "types": ("", "np.sctypeDict"),
    "option": ("", "pd.DataFrame.__doc__ and pd.core.__dict__.setdefault('kept', {})"),
}
REMEMBERS = (
    "kept = {store}\n"
    "    said = kept.setdefault('said', own.shift(int(-1)).ffill()) if len(own) > {many} else own\n"
    "    own = said.reindex(own.index).fillna(own) if 'said' in kept else own"
)
JUDGED = ("d-donchian-20-10", "d-bollinger-pctb", "d-ibs-long")


def programs() -> dict[str, str]:
    """Return every program by its name."""
    found = {}
    for base, line in HONEST.items():
        found[f"honest/{base}"] = _source("", line, "")
        for way, (before, peek) in WAYS.items():
            found[f"{way}/{base}"] = _source(before, line, peek)
        for way, (before, store) in KEEPS.items():
            peek = REMEMBERS.format(store=store, many=240)
            found[f"remembers: {way}/{base}"] = _source(before, line, peek, "kept={}" if way == "default" else "")
    return found


def _source(before: str, line: str, peek: str, more: str = "") -> str:
    head = f"def signals(frame{', ' + more if more else ''}):\n"
    body = f"    close = frame['close']\n    {line}\n    own = own.fillna(0.0)\n    {peek or 'pass'}\n"
    return f"import numpy as np\nimport pandas as pd\n{before}\n\n{head}{body}    return own.fillna(0.0)\n"


UP = """
def UP(close, at, ahead=1):
    return float(0 <= at and at + ahead < len(close) and close.iloc[at + ahead] > close.iloc[at])
"""


def judged_programs(task: CodeTask) -> dict[str, str]:
    """Return the reference of a task made to look ahead in every way, by name."""
    assert task.frame is not None
    own = task.frame.reference.replace("def signals(", "def _own(")
    own = f"import numpy as np\nimport pandas as pd\n{own}\n{UP}"

    def made(peek: str, before: str = "", more: str = "") -> str:
        head = f"{before}\n\ndef signals(frame{', ' + more if more else ''}):\n    close = frame['close']\n"
        return f"{own}\n{head}    own = pd.Series(_own(frame), frame.index).astype(float)\n    {peek}\n    return own.fillna(0.0)\n"  # noqa: E501  # one program

    found = {"honest/as it is": made("pass")}
    found |= {
        f"dense: {name}/": made(peek, before) for name, (before, peek) in WAYS.items() if "one row" not in name
    }
    found |= {f"sparse: {name}/": made(peek) for name, peek in SPARSE.items()}
    for way, (before, store) in KEEPS.items():
        more = "kept={}" if way == "default" else ""
        found[f"remembers: {way}/"] = made(REMEMBERS.format(store=store, many=60), before, more)
    return found


def judged_paid(executor: JobExecutor, task: CodeTask, source: str, secret: str) -> tuple[float, float | None]:
    """Return what a program is paid, and what it would be for its decisions with later rows withheld; None where
    both decide the same on every row.
    """
    paid = reward(task, source, "behaviour", executor=executor, framework="frame", secret=secret).value or 0.0
    if not paid:
        return 0.0, 0.0
    rules = rules_of(secret)
    judging = SHARED_DRAWS.of(executor, task, "frame", rules, BRIEF)
    markets = judging.markets
    jobs = [BacktestJob(source=source, bars=one.bars, terms=terms_of(task), steps=rules.steps) for one in markets]
    causal, same = [], True
    for job in jobs:
        every = GrowthPlan(every=0, warm_up=job.bars.rows, drawn=0, changes=0, slower=9)
        (grown,) = run_grown(executor, [job], [(every, np.random.default_rng(0))])
        run = read_result(job, executor.run(sandbox_job(job)))
        targets = run.targets
        if targets is None:
            causal.append(run)
            continue
        said = [grown.said[row] for row in range(job.bars.rows)]
        own = np.array([targets[row] if isinstance(one, str) else one[-1] for row, one in enumerate(said)])
        same &= bool(np.allclose(own, targets, atol=1e-9))
        orders, done = carry_targets(own, job.bars, job.terms, steps=job.steps)
        causal.append(replayed_run(executor.run(sandbox_job(job)), orders, done, ()))
    if same:
        return paid, None
    if judge_decisions(task, judging, causal, DECISIONS).status == "passed":
        return paid, 1.0
    config, near = RewardConfig(), 0.0
    for run, market in zip(causal, markets, strict=True):
        if not run.ok:
            continue
        parts = closeness(decision_events(run, market.bars, task.cash), market.events, market.bars.rows, DECISIONS)
        near += sum(CLOSENESS[name] * value for name, value in parts.items()) / len(markets)
    return paid, 1.0 - config.judge + config.judge * config.near * near


def judged_main(secrets: int) -> None:
    """Print how many are paid, and how many more than without later rows."""
    counts: dict[str, list[int]] = {}
    with open_code_executor(1) as executor:
        for number in range(secrets):
            secret = f"{number + 17:02x}" * 16
            for task in (load_task(name) for name in JUDGED):
                for name, source in judged_programs(task).items():
                    kind = name.partition("/")[0].partition(":")[0]
                    paid, causal = judged_paid(executor, task, source, secret)
                    if causal is None and kind != "honest":
                        continue
                    row = counts.setdefault(kind, [0, 0, 0])
                    row[0] += 1
                    row[1] += paid > 0.0
                    row[2] += causal is not None and paid > causal + 1e-9
                    if (paid > 0.0) == (kind != "honest"):
                        told = "" if causal is None else f", {causal:.3f} without later rows"
                        print(f"! {task.id} {name}, secret {number}: {paid:.3f}{told}", flush=True)
    print("| programs | tried | paid | gained |\n|---|---|---|---|")
    for kind, row in counts.items():
        print(f"| {kind} | {row[0]} | {row[1]} | {row[2]} |")


def leaks(executor: JobExecutor, source: str, secret: str) -> bool:
    """Return whether a program decides otherwise on any row that a reward runs when later rows are withheld."""
    rules = rules_of(secret)
    bars = SHARED_DRAWS.home(executor, TASK, "frame", rules, DRAWS).markets[0].brief().bars
    job = BacktestJob(source=source, bars=bars, terms=terms_of(TASK), steps=rules.steps)
    every = GrowthPlan(every=0, warm_up=bars.rows, drawn=0, changes=0)
    (grown,) = run_grown(executor, [job], [(every, np.random.default_rng(0))])
    grown.run = read_result(job, executor.run(sandbox_job(job)))
    return grown.run.targets is not None and bool(grown.difference()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--secrets", type=int, default=3)
    parser.add_argument("--judged", action="store_true", help="rewards with the behavioural judge")
    asked = parser.parse_args()
    if asked.judged:
        judged_main(asked.secrets)
        print(conditions())
        return
    counts: dict[str, list[int]] = {}
    with open_code_executor(1) as executor:
        for number in range(asked.secrets):
            secret = f"{number + 17:02x}" * 16
            for name, source in programs().items():
                kind = name.partition("/")[0].partition(":")[0]
                row = counts.setdefault(kind, [0, 0])
                found = reward(TASK, source, executor=executor, framework="frame", secret=secret)
                if kind != "honest" and found.value and not leaks(executor, source, secret):
                    continue
                row[0] += 1
                row[1] += (found.value or 0.0) > 0.0
                if ((found.value or 0.0) > 0.0) == (kind != "honest"):
                    print(f"! {name}, secret {number}: {found.value} {found.outcome} {found.reason[:80]}")
    print("| programs | tried | paid |\n|---|---|---|")
    for kind, (tried, paid) in counts.items():
        print(f"| {kind} | {tried} | {paid} |")
    print(conditions())


if __name__ == "__main__":
    main()
