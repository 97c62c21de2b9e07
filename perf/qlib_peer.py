"""Qlib's side of the comparison. It runs in a separate environment and imports none of our
packages.

``python qlib_peer.py WORK REPEATS`` reads the qlib folder, score.npy and orders.json in WORK and
prints JSON.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import sys
import time
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

with contextlib.redirect_stderr(io.StringIO()):  # optional parts of Qlib complain on import
    import numpy as np
    import pandas as pd
    import qlib
    from qlib.backtest import backtest, get_exchange
    from qlib.backtest.decision import Order, OrderDir, TradeDecisionWO
    from qlib.backtest.executor import SimulatorExecutor
    from qlib.constant import REG_CN
    from qlib.contrib.strategy import TopkDropoutStrategy
    from qlib.strategy.base import BaseStrategy

CASH = 1_000_000.0


class Recorded(BaseStrategy):
    """Places the orders of a list, day by day."""

    def __init__(self, orders: dict[str, list[list[object]]]) -> None:
        super().__init__()
        self.orders = orders

    def generate_trade_decision(self, execute_result: object = None) -> TradeDecisionWO:
        start, end = self.trade_calendar.get_step_time(self.trade_calendar.get_trade_step())
        orders = [
            Order(code, amount, OrderDir.BUY if side == "BUY" else OrderDir.SELL, start, end)
            for code, amount, side in self.orders.get(str(start.date()), [])
        ]
        return TradeDecisionWO(orders, self)


def play(
    strategy: BaseStrategy, days: pd.DatetimeIndex, exchange: object
) -> tuple[pd.Series, float]:
    """Return the account value by day and the CPU seconds of strategy and executor."""
    executor = SimulatorExecutor(
        time_per_step="day", generate_portfolio_metrics=True, verbose=False
    )
    gc.collect()
    with contextlib.redirect_stderr(io.StringIO()):  # the progress bar
        start = time.process_time()
        metrics, _ = backtest(
            start_time=days[0],
            end_time=days[-1],
            strategy=strategy,
            executor=executor,
            benchmark=pd.Series(0.0, index=days),
            account=CASH,
            exchange_kwargs={"exchange": exchange},
        )
        spent = time.process_time() - start
    return metrics["1day"][0]["account"], spent


def main() -> None:
    """Measure the rotation, replay the recorded orders, print both."""
    work, repeats = Path(sys.argv[1]), int(sys.argv[2])
    qlib.init(
        provider_uri=str(work / "qlib"), region=REG_CN, logging_level=logging.CRITICAL, kernels=1
    )
    facts = json.loads((work / "orders.json").read_text())
    calendar = pd.DatetimeIndex(
        pd.read_csv(work / "qlib" / "calendars" / "day.txt", header=None)[0]
    )
    codes = [
        line.split("\t")[0]
        for line in (work / "qlib" / "instruments" / "all.txt").read_text().splitlines()
    ]
    first, count = facts["first_row"], facts["sessions"]
    days = calendar[first : first + count]
    exchange = get_exchange(
        freq="day",
        start_time=days[0],
        end_time=days[-1],
        codes="all",
        deal_price="open",
        open_cost=0.0005,
        close_cost=0.0015,
        min_cost=5,
        limit_threshold=0.095,
        trade_unit=100,
    )
    score = np.load(work / "score.npy")[first - 1 : first + count - 1]
    index = pd.Index(calendar[first - 1 : first + count - 1], name="datetime")
    signal = pd.DataFrame(score, index=index, columns=pd.Index(codes, name="instrument")).stack()
    signal.name = "score"
    spent = []
    for _ in range(repeats):
        strategy = TopkDropoutStrategy(topk=20, n_drop=5, signal=signal, risk_degree=0.95)
        spent.append(play(strategy, days, exchange)[1])
    nav = play(Recorded(facts["orders"]), days, exchange)[0]
    versions = {"pyqlib": qlib.__version__, "numpy": np.__version__, "pandas": pd.__version__}
    print(json.dumps({"cpu_seconds": spent, "nav": nav.tolist(), "versions": versions}))


if __name__ == "__main__":
    main()
