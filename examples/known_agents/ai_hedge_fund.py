"""ai-hedge-fund (the package aihf, 2.6) plays the daily benchmarks and StockBench, in an
environment of its own.

Its package needs numpy < 2 and cannot live beside tradeassay. Make its environment once, then let
it play:

    python examples/known_agents/ai_hedge_fund.py --install
    tradeassay run stockbench-djia-v1 -a "pipe:command=python examples/known_agents/ai_hedge_fund.py,env=KEYS"

It fetches its own prices and fundamentals: see docs/howto/known-agents.md before you believe a
result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from datetime import date, timedelta
from pathlib import Path
from typing import Any

PACKAGE = "aihf>=2.6,<2.7"


def install(folder: Path) -> None:
    """Make the environment and install the package there from the index."""
    venv.create(folder, with_pip=True)
    subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", PACKAGE], check=True
    )
    print(f"installed {PACKAGE} in {folder}")


class AiHedgeFund:
    """A fund's target weights, cut to long positions of at most ``most``; what it cannot price
    stays as it is.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        from hedge_fund.data import CachedDataClient, FDClient
        from hedge_fund.fund import Fund, load_spec
        from hedge_fund.paths import EXAMPLE_MANDATE

        self.args = args
        FDClient.BASE_URL = os.environ.get("FINANCIAL_DATASETS_BASE_URL", FDClient.BASE_URL)
        self.data = CachedDataClient(FDClient())
        self.fund = Fund(load_spec(args.mandate or EXAMPLE_MANDATE))

    def weights(self, symbols: list[str], session: str) -> tuple[dict[str, float], str]:
        """Return what the fund wants to hold; raise RuntimeError where the model of an investor
        did not answer.
        """
        from hedge_fund.pipeline import assess_fund

        # It reads whole days: the day before the session is the last one that it may know.
        known = str(date.fromisoformat(session) - timedelta(days=1))
        record = assess_fund(self.fund, known, self.data, symbols)
        said = [signal for strategy in record.strategies for signal in strategy.signals]
        # It takes a lost call for an abstention, which would make a broken cable a trading result.
        lost = [
            one
            for one in said
            if str(one.metadata.get("abstain_reason", "")).startswith("LLM call failed")
        ]
        if lost:
            raise RuntimeError(
                f"{len(lost)} of {len(said)} opinions were lost: {lost[0].reasoning}"
            )
        wanted = {
            name: min(max(0.0, weight), self.args.most)
            for name, weight in record.final_weights.items()
        }
        views = ", ".join(f"{one.model_name} on {one.ticker} {one.value:+.2f}" for one in said)
        return wanted, f"{known}: {views}"

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer a question of the daily benchmarks (one stage) or of StockBench (overview,
        decision).
        """
        stage, seen = asked["stage"], asked["observation"]
        if stage == "overview":
            return {"answer": {"analyse": []}}
        if stage not in ("orders", "decision"):
            raise RuntimeError(
                f"the stage {stage} is not known: daily benchmarks and StockBench are"
            )
        rows = seen["names" if stage == "orders" else "symbols"]
        symbols = [row["symbol"] for row in rows][: self.args.names]
        due = asked["step"] % self.args.every == 0
        wanted, why = (
            self.weights(symbols, seen["session"]) if due else ({}, "not a day of decision")
        )
        if stage == "orders":
            held = {one["symbol"] for one in seen["positions"]}
            orders = [
                {"symbol": name, "unit": "target_weight", "amount": weight}
                for name, weight in wanted.items()
                if weight > 0.0 or name in held
            ]
            return {"answer": {"orders": orders, "reason": why}}
        worth = {row["symbol"]: (row["position"] or {}).get("value", 0.0) for row in rows}
        opens = {row["symbol"]: row["open"] for row in rows}
        budget = seen["buying_power"]  # proceeds of the same day are not spent
        decisions = {}
        for name, weight in wanted.items():
            target, now = weight * seen["nav"], worth[name]
            if target > now:
                target = min(target, now + budget)
                budget -= target - now
            action = "increase" if target > now else "decrease" if 0.0 < target < now else "close"
            if target != now:
                decisions[name] = {
                    "action": action,
                    "reasons": [f"weight {weight:.3f}"],
                    "confidence": 1.0,
                }
                if action != "close":
                    decisions[name] |= {
                        "target_cash_amount": target,
                        "target_shares": target / opens[name],
                    }
        return {"answer": {"decisions": decisions}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make its environment, and stop")
    parser.add_argument(
        "--env", type=Path, default=Path(__file__).resolve().with_name(".aihf"), help="where"
    )
    parser.add_argument(
        "--names", type=int, default=5, help="how many names of the universe it is asked about"
    )
    parser.add_argument("--every", type=int, default=5, help="sessions between two decisions")
    parser.add_argument("--most", type=float, default=0.25, help="the largest share in one name")
    parser.add_argument(
        "--mandate", default="", help="its fund as a YAML file; empty is the example it ships"
    )
    args = parser.parse_args()
    if args.install:
        install(args.env)
        return 0
    if Path(sys.prefix).resolve() != args.env.resolve():
        python = args.env.resolve() / "bin" / "python"
        if not python.exists():
            print(
                f"there is no environment in {args.env}: run this file with --install",
                file=sys.stderr,
            )
            return 2
        os.execv(python, [str(python), str(Path(__file__).resolve()), *sys.argv[1:]])
    answers, sys.stdout = sys.stdout, sys.stderr  # what the package prints is no answer
    fund = AiHedgeFund(args)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"], **fund.reply(asked)}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
