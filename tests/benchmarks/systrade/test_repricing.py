"""A cost level re-prices recorded decisions: same quantities and equity as a run that pays its fees itself."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tradeassay.account.compiled.shares import price_decisions
from tradeassay.account.shares import COSTS_BP, keep_account
from tradeassay.benchmarks.systrade import load_reference, load_spec
from tradeassay.benchmarks.systrade.data import synthetic_year
from tradeassay.code.submission import TradeLog, closes_of, decisions_of, market_columns

CAPITAL = 100_000.0
PAYS = "        self.cash -= quantity * price\n"


def played(source: str, market: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    space: dict[str, Any] = {}
    exec(compile(source, "strategy.py", "exec"), space)  # our own references, no submission
    trades, _ = space["TradingStrategy"]().run(market, CAPITAL)
    return trades


def as_log(trades: list[dict[str, Any]], times: Any, legs: tuple[str, ...]) -> TradeLog:
    count = len(trades)
    signs = np.array([1.0 if one["side"] == "BUY" else -1.0 for one in trades])
    none, words = np.full(count, np.nan), np.array([one["signal"] for one in trades], dtype=object)
    return TradeLog(
        row=np.searchsorted(times, np.array([one["time"] for one in trades], dtype="M8[ns]")),
        leg=np.array([legs.index(one["symbol"]) for one in trades]),
        quantity=signs * np.array([one["quantity"] for one in trades]),
        signal=words,
        order_id=words,
        price=none,
        pnl=none,
        equity=none,
    )


@pytest.mark.parametrize("name", ["bollinger", "turtle", "spread", "cross-asset-momentum", "vol-target"])
def test_repricing_is_a_real_rerun(name):
    spec, reference = load_spec(name), load_reference(name)
    legs, bars = spec.semantics.inputs.legs, synthetic_year(spec)
    columns = market_columns(bars, legs)
    closes = closes_of(columns, legs)
    fields = ("open", "high", "low", "close", "volume", "session_last")
    index = pd.DatetimeIndex(bars.times, name="time")
    market = {leg: pd.DataFrame({f: columns[f"{leg}/{f}"] for f in fields}, index=index) for leg in legs}
    free = as_log(played(reference.source, market), bars.times, legs)
    decisions = decisions_of(free, keep_account(free, closes, CAPITAL), closes, spec.signals)
    assert len(free) >= 4 and reference.source.count(PAYS) == 1
    priced = price_decisions(decisions, closes, COSTS_BP)
    for level, cost in enumerate(COSTS_BP):
        fee = f"{PAYS}        self.cash -= abs(quantity) * price * {cost / 10_000!r}\n"
        again = as_log(played(reference.source.replace(PAYS, fee), market), bars.times, legs)
        assert np.array_equal(again.row, free.row) and np.array_equal(again.leg, free.leg)
        fees = float((np.abs(again.quantity) * closes[again.leg, again.row]).sum()) * cost / 10_000
        final = float(keep_account(again, closes, CAPITAL).equity[-1]) - fees
        np.testing.assert_allclose(priced.quantity[level] * CAPITAL, again.quantity, rtol=1e-7, atol=1e-6)
        assert priced.final[level] * CAPITAL == pytest.approx(final, rel=1e-9)
