"""Backtrader strategies: run in a child of the sandbox, carried out by a broker on the host."""

from __future__ import annotations

from tradeassay.codegen.backtrader.account import Fill, Trade
from tradeassay.codegen.backtrader.backtest import Backtest, Trick
from tradeassay.codegen.backtrader.host_broker import Replay, replay
from tradeassay.codegen.backtrader.orders import OrderLog
from tradeassay.codegen.backtrader.runner import BacktestJob, many, run_backtrader, sandbox_config
from tradeassay.codegen.backtrader.subject import BacktraderSubject
from tradeassay.codegen.backtrader.terms import BrokerTerms, terms_of
from tradeassay.codegen.backtrader.trusted import TrustedRun, run_trusted

__all__ = [
    "Backtest",
    "BacktestJob",
    "BacktraderSubject",
    "BrokerTerms",
    "Fill",
    "OrderLog",
    "Replay",
    "Trade",
    "Trick",
    "TrustedRun",
    "many",
    "replay",
    "run_backtrader",
    "run_trusted",
    "sandbox_config",
    "terms_of",
]
