"""One program in either framework, on terms of a test's own, and what must hold whatever it
sends back.
"""

from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code import backtrader
from tradeassay_programs.code.backtrader import Backtest, BacktestJob
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.evaluation import backtest_stage, compile_failure, trade_stage
from tradeassay_programs.code.judges.decisions import compare_decisions, decision_events
from tradeassay_programs.sandbox import BadResult, JobExecutor, JobResult, JobUsage
from tradeassay_programs.sandbox.tier import IN_PROCESS


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


def sent(columns: dict[str, Any], answers: tuple[bytes, ...] = ()) -> JobResult:
    """Return what a child has sent, without a child."""
    used = JobUsage(cpu_s=0.0, wall_s=0.0, peak_mb=0.0)
    return JobResult(source="", tier=IN_PROCESS, usage=used, columns=columns, answers=answers)


def adds_up(done: Backtest, bars: TaskBars, terms: BrokerTerms) -> bool:
    """Do everything that an evaluation does with a run; returns whether there was an account,
    which adds up.
    """
    compile_failure(done)
    backtest_stage(done)
    if done.failure is not None:
        assert isinstance(done.failure, BadResult)
        assert "cannot be carried out" not in done.failure.text, "a rule has to name it"
        return False
    trade_stage(done)
    done.trace()
    assert done.equity.shape == (bars.rows,) and np.isfinite(done.equity).all()
    assert len(done.statuses) == done.orders.orders and all(fill.price > 0 for fill in done.fills)
    # No order makes money: cash, what was paid and what is held add up to the account's value.
    gained = sum(
        fill.size * (float(bars.feeds[fill.asset]["close"][-1]) - fill.price) for fill in done.fills
    )
    paid = sum(fill.commission for fill in done.fills)
    assert done.final_value == pytest.approx(terms.cash + gained - paid, rel=1e-9, abs=1e-6)
    events = decision_events(done, bars, terms.cash)
    assert compare_decisions(events, events, bars.rows).stray == 0
    assert msgspec.json.encode([done.trades, done.fills, done.tricks])
    return True
