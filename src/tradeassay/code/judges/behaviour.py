"""The behavioural judge: candidate and reference are run on the same markets, and their trades compared.

What the task expects of any correct solution is checked as well, on the host's own trades.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from tradeassay.account.backtrader import RoundTrip
from tradeassay.code.backtrader import Backtest
from tradeassay.code.bars import TaskBars
from tradeassay.code.judges.decisions import (
    BehaviourVerdict,
    DecisionsConfig,
    MarketAgreement,
    compare_decisions,
    decision_events,
    decision_hints,
    passes,
)
from tradeassay.code.judges.markets import Judging
from tradeassay.code.task import CodeTask, Expectations


def check_expectations(
    expect: Expectations, trades: Sequence[RoundTrip], order_kinds: Collection[str], bars: TaskBars
) -> tuple[str, ...]:
    """Return every expectation that a run violates, in words; empty when it keeps them all."""
    spans = [(trade.entry_bar, bars.rows if trade.exit_bar is None else trade.exit_bar) for trade in trades]
    count, longs = len(trades), sum(trade.long for trade in trades)
    shorts = count - longs
    held = {asset: np.zeros(bars.rows, dtype=bool) for asset in {trade.asset for trade in trades}}
    for trade, (start, end) in zip(trades, spans, strict=True):
        held[trade.asset][start:end] = True
    most = int(np.sum(list(held.values()), axis=0).max()) if held else 0
    longest = max((min(end, bars.rows - 1) - start for start, end in spans), default=0)
    # Bars that a session ends with; the data's own last bar does not end one.
    last = np.flatnonzero(bars.sessions[1:] != bars.sessions[:-1])
    overnight = sum(bool(np.diff(np.searchsorted(last, span))[0] > 0) for span in spans)
    missing = [kind for kind in expect.order_kinds if kind not in order_kinds]
    most_trades, most_open, most_bars = (
        math.inf if limit is None else limit
        for limit in (expect.max_trades, expect.max_open_positions, expect.max_holding_bars)
    )
    flat = expect.flat_by_session_end
    wanted = (
        (count < expect.min_trades, f"{count} trades, at least {expect.min_trades} are expected"),
        (count > most_trades, f"{count} trades, at most {expect.max_trades} are expected"),
        (expect.direction == "long" and shorts, f"{shorts} short trades, only long ones are expected"),
        (expect.direction == "short" and longs, f"{longs} long trades, only short ones are expected"),
        (most > most_open, f"{most} assets held at once, at most {expect.max_open_positions} are expected"),
        (longest > most_bars, f"a trade held for {longest} bars, at most {expect.max_holding_bars} are expected"),
        (flat and overnight, f"{overnight} trades held over the end of a session, none is expected"),
        (missing, f"no order of the kind {' or '.join(missing)}, which the task asks for"),
    )
    return tuple(words for broken, words in wanted if broken)


def judge_decisions(
    task: CodeTask, judging: Judging, runs: Sequence[Backtest], config: DecisionsConfig
) -> BehaviourVerdict:
    found: list[MarketAgreement] = []
    lost: list[str] = []
    said: list[str] = []
    for number, (market, run) in enumerate(zip(judging.markets, runs, strict=True), start=1):
        if run.failure is not None:
            said.append("it breaks on other data")
            lost.append(f"on market {number} it breaks: {run.failure.text}")
            name, text = market.bars.name, run.failure.text
            found.append(MarketAgreement(market=name, value=0.0, fills=0.0, exposure=0.0, failure=text))
            continue
        mine = decision_events(run, market.bars, task.cash)
        decided = compare_decisions(mine, market.events, market.bars.rows, config)
        found.append(
            MarketAgreement(
                market=market.bars.name,
                value=decided.value,
                fills=decided.value,
                exposure=decided.value,
                entries=decided.entries,
                exits=decided.exits,
                matched=decided.matched,
                candidate_events=decided.candidate,
                reference_events=decided.reference,
                stray=decided.stray,
                forgiven=decided.forgiven,
            )
        )
        if not passes(decided, config):
            lost.append(
                f"on market {number} {decided.stray} of {decided.candidate + decided.reference} decisions have no "
                f"counterpart (agreement {decided.value:.3f}, {config.threshold:g} is needed)"
            )
            said += decision_hints(mine, market.events, market.bars.rows, config)
    home = runs[0]
    drawn = judging.markets[0]
    expect = task.expect
    if drawn.kinds is not None:
        # A kind of order that the reference itself has no occasion for on this market is not asked for.
        given = tuple(kind for kind in expect.order_kinds if kind in drawn.kinds)
        expect = msgspec.structs.replace(expect, order_kinds=given)
    violations = check_expectations(expect, home.trades, home.orders.kinds(), drawn.bars) if home.ok else ()
    return BehaviourVerdict(
        status="failed" if lost or violations else "passed",
        reason="; ".join([*lost, *violations]),
        agreement=min(market.value for market in found),
        threshold=config.threshold,
        markets=tuple(found),
        violations=violations,
        hints=tuple(dict.fromkeys(said)) if lost or violations else (),
    )
