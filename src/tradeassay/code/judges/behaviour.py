"""The behavioural judge: candidate and reference are run on the same markets, and their trades compared.

What the task expects of any correct solution is checked as well, on the host's own trades.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from tradeassay.account.backtrader import RoundTrip
from tradeassay.code.backtrader import Backtest
from tradeassay.code.bars import TaskBars
from tradeassay.code.judges.decisions import (
    DecisionsConfig,
    DecisionsMatched,
    compare_decisions,
    decision_events,
    decision_hints,
    passes,
)
from tradeassay.code.judges.markets import Judging
from tradeassay.code.judges.verdict import BehaviourVerdict, MarketAgreement
from tradeassay.code.task import CodeTask, Expectations


def check_expectations(
    expect: Expectations, trades: Sequence[RoundTrip], order_kinds: Collection[str], bars: TaskBars
) -> tuple[str, ...]:
    """Return every expectation that a run violates, in words; empty when it keeps them all."""
    found: list[str] = []
    if len(trades) < expect.min_trades:
        found.append(f"{len(trades)} trades, at least {expect.min_trades} are expected")
    if expect.max_trades is not None and len(trades) > expect.max_trades:
        found.append(f"{len(trades)} trades, at most {expect.max_trades} are expected")
    found += _directions(expect, trades)
    if expect.max_open_positions is not None:
        most = most_open(trades, bars.rows)
        if most > expect.max_open_positions:
            found.append(f"{most} assets held at once, at most {expect.max_open_positions} are expected")
    if expect.max_holding_bars is not None:
        longest = max(
            (min(_end(trade, bars.rows), bars.rows - 1) - trade.entry_bar for trade in trades), default=0
        )
        if longest > expect.max_holding_bars:
            found.append(f"a trade held for {longest} bars, at most {expect.max_holding_bars} are expected")
    if expect.flat_by_session_end and _overnight(trades, bars):
        found.append(f"{_overnight(trades, bars)} trades held over the end of a session, none is expected")
    missing = [kind for kind in expect.order_kinds if kind not in order_kinds]
    if missing:
        found.append(f"no order of the kind {' or '.join(missing)}, which the task asks for")
    return tuple(found)


def most_open(trades: Sequence[RoundTrip], rows: int) -> int:
    """Return the largest number of assets held at one bar's close."""
    assets = sorted({trade.asset for trade in trades})
    held = np.zeros((rows, len(assets)), dtype=bool)
    for trade in trades:
        held[trade.entry_bar : _end(trade, rows), assets.index(trade.asset)] = True
    return int(held.sum(axis=1).max()) if held.size else 0


def _directions(expect: Expectations, trades: Sequence[RoundTrip]) -> list[str]:
    longs = sum(trade.long for trade in trades)
    shorts = len(trades) - longs
    if expect.direction == "long" and shorts:
        return [f"{shorts} short trades, only long ones are expected"]
    if expect.direction == "short" and longs:
        return [f"{longs} long trades, only short ones are expected"]
    return []


def _end(trade: RoundTrip, rows: int) -> int:
    return rows if trade.exit_bar is None else trade.exit_bar


def _overnight(trades: Sequence[RoundTrip], bars: TaskBars) -> int:
    """Count trades open at the close of a session's last bar; the data's own last bar does not end a session."""
    sessions = bars.sessions
    last = np.flatnonzero(sessions[1:] != sessions[:-1])
    count = 0
    for trade in trades:
        start, stop = np.searchsorted(last, (trade.entry_bar, _end(trade, bars.rows)))
        count += bool(stop > start)
    return count


def judge_decisions(
    task: CodeTask, judging: Judging, runs: Sequence[Backtest], config: DecisionsConfig
) -> BehaviourVerdict:
    """Return the verdict: every market has to be passed. ``runs`` are the candidate's, home first."""
    found: list[MarketAgreement] = []
    lost: list[str] = []
    said: list[str] = []
    for number, (market, run) in enumerate(zip(judging.markets, runs, strict=True), start=1):
        if run.failure is not None:
            said.append("it breaks on other data")
            lost.append(f"on market {number} it breaks: {run.failure.text}")
            found.append(
                MarketAgreement(
                    market=market.bars.name, value=0.0, fills=0.0, exposure=0.0, failure=run.failure.text
                )
            )
            continue
        mine = decision_events(run, market.bars, task.cash)
        decided = compare_decisions(mine, market.events, market.bars.rows, config)
        found.append(_agreed(market.bars.name, decided))
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


def _agreed(market: str, found: DecisionsMatched) -> MarketAgreement:
    """Return a comparison as it is recorded."""
    return MarketAgreement(
        market=market,
        value=found.value,
        fills=found.value,
        exposure=found.value,
        entries=found.entries,
        exits=found.exits,
        matched=found.matched,
        candidate_events=found.candidate,
        reference_events=found.reference,
        stray=found.stray,
        forgiven=found.forgiven,
    )
