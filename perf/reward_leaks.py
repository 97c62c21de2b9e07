"""Programs on frames that look ahead: how many does a reward without a judge pay all the same?

    python perf/reward_leaks.py [--secrets 3]

Three programs, each made to look ahead in several ways and tried on several secrets. ``quiet`` ones do so in words
that no rule names, ``one row`` peeks on a single row, and ``remembers`` keeps what it has seen for its next call.
A look ahead that decides nothing on the rows that were run is no leak, and is not counted.
"""

from __future__ import annotations

import argparse

import numpy as np

from machine import conditions
from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.backtrader import BacktestJob, terms_of
from tradeassay.code.evaluation import DRAWS
from tradeassay.code.frames import read_with_targets, sandbox_job
from tradeassay.code.judges.markets import SHARED_DRAWS
from tradeassay.code.lookahead.grow_frames import GrowthPlan, run_grown
from tradeassay.code.reward import reward
from tradeassay.code.running import open_code_executor, rules_of
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


def programs() -> dict[str, str]:
    """Return every program by its name."""
    found = {}
    for base, line in HONEST.items():
        found[f"honest/{base}"] = _source("", line, "")
        for way, (before, peek) in WAYS.items():
            found[f"{way}/{base}"] = _source(before, line, peek)
        for way, (before, store) in KEEPS.items():
            peek = (
                f"kept = {store}\n"
                "    said = kept.setdefault('said', own.shift(int(-1)).ffill()) if len(own) > 240 else own\n"
                "    own = said.reindex(own.index).fillna(own) if 'said' in kept else own"
            )
            found[f"remembers: {way}/{base}"] = _source(before, line, peek, "kept={}" if way == "default" else "")
    return found


def _source(before: str, line: str, peek: str, more: str = "") -> str:
    head = f"def signals(frame{', ' + more if more else ''}):\n"
    body = f"    close = frame['close']\n    {line}\n    own = own.fillna(0.0)\n    {peek or 'pass'}\n"
    return f"import numpy as np\nimport pandas as pd\n{before}\n\n{head}{body}    return own.fillna(0.0)\n"


def leaks(executor: JobExecutor, source: str, secret: str) -> bool:
    """Return whether a program decides otherwise on any row that a reward runs when later rows are withheld."""
    rules = rules_of(secret)
    bars = SHARED_DRAWS.home(executor, TASK, "frame", rules, DRAWS).markets[0].brief().bars
    job = BacktestJob(source=source, bars=bars, terms=terms_of(TASK), steps=rules.steps)
    every = GrowthPlan(every=0, warm_up=bars.rows, drawn=0, changes=0)
    (grown,) = run_grown(executor, [job], [(every, np.random.default_rng(0))])
    run, targets = read_with_targets(job, executor.run(sandbox_job(job)))
    grown.run, grown.targets = run, targets
    return targets is not None and bool(grown.difference()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--secrets", type=int, default=3)
    asked = parser.parse_args()
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
