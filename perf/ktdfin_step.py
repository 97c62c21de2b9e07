"""Measure the CPU time of a KTD-Fin day without the model: environment, protocol, four tool calls
and a submission.

300 A-share names under the mask ``blinded`` in the mode ``open-research``. The replies come from a
list. A day includes the market's step, the observation, the nine factors, every prompt, all
masking, both phases, the checks of the submission and the journal line. The limit is 1.5 ms,
blinded. Run it with ``python perf/ktdfin_step.py`` (add ``--json`` for JSON).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from machine import conditions
from tradeassay_bench.benchmarks.ktdfin import Ktdfin, KtdfinConfig
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, ModelReply, ToolCall
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.data import Snapshot, open_snapshot, synthetic, write_snapshot
from tradeassay_bench.play import Market, MarketConfig

NAMES, HISTORY, SESSIONS = 300, 258, 60
BAR_MS = 1.5
HELD = 8


class Player:
    """Makes the four calls of the paper's example and submits.

    It reads only the ids that it needs.
    """

    def __init__(self) -> None:
        self.names = "stock_ids"
        self.seen: list[str] = []
        self.held: set[str] = set()

    def answer(self, request: AskModel) -> ModelReply:
        results = [message for message in request.messages if message.role == "tool"]
        if request.purpose == "submit":
            return self.submit()
        if not results:
            return calls(
                ("get_market_context", {}),
                ("screen_candidates", {"factors": ["MOM_12_1"], "top_k": 20}),
            )
        if len(results) == 2:
            rows = msgspec.json.decode(results[1].text)["candidates"]
            self.seen = [row["stock_id"] for row in rows]
            chosen = self.seen[:HELD]
            return calls(
                (
                    "compare_candidates",
                    {self.names: chosen, "dims": ["RV_60", "return_20d", "HIGH_52W"]},
                ),
                ("risk_check", {"target_weights": dict.fromkeys(chosen, 0.09)}),
            )
        return ModelReply(text="I have seen enough.")

    def submit(self) -> ModelReply:
        new = [stock for stock in self.seen[:HELD] if stock not in self.held][
            : HELD - len(self.held)
        ]
        self.held |= set(new)
        orders = [
            {
                "stock_id": stock,
                "side": "BUY",
                "target_weight": 0.09,
                "confidence": 0.6,
                "reason": "leads by momentum",
            }
            for stock in new
        ]
        return calls(
            ("submit_action", {"orders": orders, "overall_reason": "hold what leads by momentum"})
        )


def calls(*wanted: tuple[str, dict[str, object]]) -> ModelReply:
    return ModelReply(
        calls=tuple(
            ToolCall(id=str(n), name=name, arguments=json.dumps(arguments))
            for n, (name, arguments) in enumerate(wanted)
        )
    )


def episode(
    snapshot: Snapshot, market_config: MarketConfig, config: KtdfinConfig
) -> tuple[float, int]:
    """Play an episode. Returns the CPU seconds without the player, and how many days had four
    calls.
    """
    market, protocol, player = Market(snapshot, market_config), Ktdfin(config), Player()
    asked: list[AskModel] = []
    complete = 0
    began = time.process_time()
    seen: Observation | None = market.reset()
    protocol.begin(
        EpisodeInfo(episode="speed", seed=0, rules=market.rules), np.random.default_rng(0)
    )
    while seen is not None:
        dialogue = protocol.dialogue(seen)
        request = next(dialogue)
        while True:
            asked.append(request)
            reply = player.answer(request)
            try:
                request = dialogue.send(reply)
            except StopIteration as done:
                decision: Decision = done.value
                break
        assert decision.status == "ok", decision
        complete += decision.tool_calls == 4
        protocol.remember(seen, decision)
        record, seen = market.step(decision)
        ENCODER.encode(record)
    spent = time.process_time() - began
    # The player's own time is taken apart afterwards: in some sandboxes a look at the clock takes long.
    player = Player()
    began = time.process_time()
    for request in asked:
        player.answer(request)
    return spent - (time.process_time() - began), complete


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeats", type=int, default=12)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = synthetic.preset(
            "ashare",
            seed=7,
            names=NAMES,
            index_members=NAMES,
            sessions=HISTORY + SESSIONS,
            new_listings=0,
            delistings=0,
        )
        write_snapshot(synthetic.generate(config).panel, Path(folder) / "world")
        snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        market = MarketConfig(
            venue="ashare-flat-v1",
            universe="IDX",
            index="IDX",
            first=days[HISTORY],
            last=days[-1],
            max_weight=0.10,
            max_positions=20,
        )
        results = {}
        for mask in ("bright", "blinded"):
            runs = [episode(snapshot, market, KtdfinConfig(mask=mask)) for _ in range(args.repeats)]
            assert all(complete == SESSIONS for _, complete in runs)
            spent = min(spent for spent, _ in runs) / SESSIONS * 1e3
            results[f"ms_per_day_{mask}"] = round(spent, 3)
    worst = results["ms_per_day_blinded"]
    results |= {"bar_ms": BAR_MS, "names": NAMES, "days": SESSIONS}
    told = {**results, "machine": conditions()}
    print(
        json.dumps(told)
        if args.json
        else "\n".join(f"{key}: {value}" for key, value in told.items())
    )
    return 0 if worst < BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
