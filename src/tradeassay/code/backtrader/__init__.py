"""Backtrader strategies: run in a child of the sandbox, carried out by a broker on the host."""

from __future__ import annotations

from tradeassay.account.backtrader import BrokerReplay, BrokerTerms, Fill, OrderLog, RoundTrip, replay
from tradeassay.code.backtrader.backtest import Backtest, Trick
from tradeassay.code.backtrader.runner import (
    BacktestJob,
    many,
    run_backtrader,
    sandbox_config,
    terms_of,
)
from tradeassay.code.backtrader.trusted import TrustedRun, run_trusted

__all__ = [
    "Backtest",
    "BacktestJob",
    "BrokerReplay",
    "BrokerTerms",
    "Fill",
    "OrderLog",
    "RoundTrip",
    "Trick",
    "TrustedRun",
    "many",
    "replay",
    "run_backtrader",
    "run_trusted",
    "sandbox_config",
    "terms_of",
]
