"""One program in either framework, on terms of a test's own."""

from types import ModuleType
from typing import Any

from tradeassay.account.backtrader import BrokerTerms
from tradeassay.code import backtrader
from tradeassay.code.backtrader import Backtest, BacktestJob
from tradeassay.code.bars import TaskBars
from tradeassay.sandbox import JobExecutor


def run_program(
    executor: JobExecutor,
    source: str,
    bars: TaskBars,
    terms: BrokerTerms,
    framework: ModuleType = backtrader,
    **given: Any,
) -> Backtest:
    job = BacktestJob(source=source, bars=bars, terms=terms, **given)
    done: Backtest = framework.read_result(job, executor.run(framework.sandbox_job(job)))
    return done
