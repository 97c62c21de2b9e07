"""Where StockBench is played: the house's own fractional venue, and the paper's."""

from __future__ import annotations

from tradeassay.account import Fees, Lots, Slippage, Venue, venues

SOUND_VENUE = "us-fractional-v1"
"""Fractions of 0.0001 share, 1 bp commission and 2 bp slippage, at most a tenth of a session's volume."""

PAPER = Venue(
    id="us-stockbench-v1",
    title="US stocks as in StockBench: cash account, fractions of 0.01 share, no volume limit",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    lots=Lots(lot=0.01, step=0.01, on_odd="trim"),
)

venues.add(PAPER.id, PAPER)
