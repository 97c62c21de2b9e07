"""Judge a program by its behaviour: compare its decisions with the reference's on the same markets.

The judge also checks the task's expectations of any correct solution, on the trades that the host
computed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from tradeassay_bench.account.backtrader import RoundTrip
from tradeassay_programs.code.backtrader import Backtest
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.judges.decisions import (
    BehaviourVerdict,
    DecisionsConfig,
    MarketAgreement,
    compare_decisions,
    decision_events,
    decision_hints,
    passes,
)
from tradeassay_programs.code.judges.markets import Judging
from tradeassay_programs.code.task import CodeTask, Expectations


def check_expectations(
    expect: Expectations, trades: Sequence[RoundTrip], order_kinds: Collection[str], bars: TaskBars
) -> tuple[str, ...]:
    """Return a sentence for each expectation that a run violates, or an empty tuple."""
    spans = [
        (trade.entry_bar, bars.rows if trade.exit_bar is None else trade.exit_bar)
        for trade in trades
    ]
    count, longs = len(trades), sum(trade.long for trade in trades)
    shorts = count - longs
    held = {asset: np.zeros(bars.rows, dtype=bool) for asset in {trade.asset for trade in trades}}
    for trade, (start, end) in zip(trades, spans, strict=True):
        held[trade.asset][start:end] = True
    most = int(np.sum(list(held.values()), axis=0).max()) if held else 0
    longest = max((min(end, bars.rows - 1) - start for start, end in spans), default=0)
    # The last bars of sessions. The last bar of the data does not end a session.
    last = np.flatnonzero(bars.sessions[1:] != bars.sessions[:-1])
    overnight = sum(bool(np.diff(np.searchsorted(last, span))[0] > 0) for span in spans)
    missing = [kind for kind in expect.order_kinds if kind not in order_kinds]
    most_trades, most_open, most_bars = (
        math.inf if limit is None else limit
        for limit in (expect.max_trades, expect.max_open_positions, expect.max_holding_bars)
    )
    flat = expect.flat_by_session_end
    violations = (
        (count < expect.min_trades, f"{count} trades, at least {expect.min_trades} are expected"),
        (count > most_trades, f"{count} trades, at most {expect.max_trades} are expected"),
        (
            expect.direction == "long" and shorts,
            f"{shorts} short trades, only long ones are expected",
        ),
        (
            expect.direction == "short" and longs,
            f"{longs} long trades, only short ones are expected",
        ),
        (
            most > most_open,
            f"{most} assets held at once, at most {expect.max_open_positions} are expected",
        ),
        (
            longest > most_bars,
            f"a trade held for {longest} bars, at most {expect.max_holding_bars} are expected",
        ),
        (
            flat and overnight,
            f"{overnight} trades held over the end of a session, none is expected",
        ),
        (missing, f"no order of the kind {' or '.join(missing)}, which the task asks for"),
    )
    return tuple(words for violated, words in violations if violated)


def judge_decisions(
    task: CodeTask, judging: Judging, runs: Sequence[Backtest], config: DecisionsConfig
) -> BehaviourVerdict:
    """Return the behavioural judge's verdict on the runs of a program on the markets."""
    agreements: list[MarketAgreement] = []
    failures: list[str] = []
    hints: list[str] = []
    for number, (market, run) in enumerate(zip(judging.markets, runs, strict=True), start=1):
        if run.failure is not None:
            hints.append("it breaks on other data")
            failures.append(f"on market {number} it breaks: {run.failure.text}")
            name, text = market.bars.name, run.failure.text
            agreements.append(
                MarketAgreement(market=name, value=0.0, fills=0.0, exposure=0.0, failure=text)
            )
            continue
        events = decision_events(run, market.bars, task.cash)
        comparison = compare_decisions(events, market.events, market.bars.rows, config)
        agreements.append(
            MarketAgreement(
                market=market.bars.name,
                value=comparison.value,
                fills=comparison.value,
                exposure=comparison.value,
                entries=comparison.entries,
                exits=comparison.exits,
                matched=comparison.matched,
                candidate_events=comparison.candidate,
                reference_events=comparison.reference,
                stray=comparison.stray,
                forgiven=comparison.forgiven,
            )
        )
        if not passes(comparison, config):
            total = comparison.candidate + comparison.reference
            failures.append(
                f"on market {number} {comparison.stray} of {total} decisions have no "
                f"counterpart (agreement {comparison.value:.3f}, {config.threshold:g} is needed)"
            )
            hints += decision_hints(events, market.events, market.bars.rows, config)
    home_run, home_market = runs[0], judging.markets[0]
    expect = task.expect
    if home_market.kinds is not None:
        # Kinds of orders that the reference itself does not use on this market are not required.
        kinds = tuple(kind for kind in expect.order_kinds if kind in home_market.kinds)
        expect = msgspec.structs.replace(expect, order_kinds=kinds)
    violations: tuple[str, ...] = ()
    if home_run.ok:
        used = home_run.orders.kinds()
        violations = check_expectations(expect, home_run.trades, used, home_market.bars)
    return BehaviourVerdict(
        status="failed" if failures or violations else "passed",
        reason="; ".join([*failures, *violations]),
        agreement=min(agreement.value for agreement in agreements),
        threshold=config.threshold,
        markets=tuple(agreements),
        violations=violations,
        hints=tuple(dict.fromkeys(hints)) if failures or violations else (),
    )
