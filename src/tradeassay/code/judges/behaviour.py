"""The behavioural judge: candidate and reference are run on the same markets, and their trades compared.

What the task expects of any correct solution is checked as well, on the host's own trades.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from tradeassay.code.backtrader import Backtest
from tradeassay.code.backtrader.account import RoundTrip
from tradeassay.code.bars import MARKETS, TaskBars
from tradeassay.code.judges.agreement import Agreement, AgreementConfig, FillTable, agreement, hints
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
from tradeassay.code.running import HOME_SEED, reference_of, run_programs, task_bars
from tradeassay.code.task import CodeTask, Expectations, Framework
from tradeassay.core.hashing import sha256_of
from tradeassay.core.view import Floats
from tradeassay.sandbox import JobExecutor, JobLimits


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


class BehaviourConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and how much must agree.

    ``threshold`` is the mean agreement that passes; a task may ask for another. ``markets`` counts those on
    which the two are compared: the home market, then other seeds and other kinds of market in turn, skipping
    those where the reference makes fewer than ``least_trades`` trades. With fewer than ``markets`` of
    them the judge says nothing. ``stop_early`` leaves out runs that cannot change the verdict: other markets
    once a failure is certain, and the reference against itself.
    """

    threshold: float = 0.9
    markets: int = 3
    least_trades: int = 2
    seeds: int = 4
    agreement: AgreementConfig = AgreementConfig()
    stop_early: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceRun:
    """What the reference does on one market."""

    name: str
    bars: TaskBars
    fills: FillTable
    trades: int


class References:
    """A cache of reference runs, which every candidate needs again. Thread-safe."""

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, ...], tuple[ReferenceRun, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self,
        executor: JobExecutor,
        task: CodeTask,
        framework: Framework,
        config: BehaviourConfig,
        home: Backtest | None = None,
    ) -> tuple[ReferenceRun, ...]:
        """Return the reference's runs on the markets that count, home first; fewer where it does not trade.

        ``home`` is its run on the home market, if that has been made already.
        """
        key = (sha256_of(task), framework, sha256_of(config))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        runs = _reference_runs(executor, task, framework, config, home)
        with self._lock:
            self._kept[key] = runs
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return runs


SHARED: Final = References()
"""The runs that all callers share."""


def judge_behaviour(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    home: Backtest,
    framework: Framework = "backtrader",
    *,
    config: BehaviourConfig | None = None,
    limits: JobLimits | None = None,
) -> tuple[BehaviourVerdict, tuple[Backtest, ...]]:
    """Return whether a program does what the reference does, and its runs on the other markets.

    ``home`` is the candidate's run on the task's home market. Without a reference there is no verdict.
    """
    config = config or BehaviourConfig()
    if not reference_of(task, framework):
        return BehaviourVerdict(status="not_scored", reason="the task comes with no reference program"), ()
    itself = config.stop_early and source == reference_of(task, framework)
    runs = SHARED.of(executor, task, framework, config, home if itself else None)
    if len(runs) < config.markets:
        reason = f"the reference trades on {len(runs)} markets, {config.markets} are needed"
        return BehaviourVerdict(status="not_scored", reason=reason), ()
    threshold = config.threshold if task.agreement is None else task.agreement
    home_name = task_bars(task).name
    found: list[MarketAgreement] = []
    others: list[Backtest] = []
    said: list[str] = []
    waiting = [run for run in runs if run.name != home_name]
    for run in (run for run in runs if run.name == home_name):
        found.append(_compare(home, run, config, said))
    if itself:
        found += [_itself(run, config) for run in waiting]
    elif not (config.stop_early and _lost(found, threshold, config.markets)):
        others = list(
            run_programs(executor, task, ((source, run.bars) for run in waiting), framework, limits=limits)
        )
        found += [_compare(done, run, config, said) for done, run in zip(others, waiting, strict=True)]
    violations = check_expectations(task.expect, home.trades, home.orders.kinds(), task_bars(task))
    return _verdict(found, threshold, violations, said), tuple(others)


def judge_decisions(
    task: CodeTask, judging: Judging, runs: Sequence[Backtest], config: DecisionsConfig
) -> BehaviourVerdict:
    """Return the verdict of version 2: every market has to be passed. ``runs`` are the candidate's, home first."""
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


def twin_agreement(
    executor: JobExecutor,
    task: CodeTask,
    *,
    config: BehaviourConfig | None = None,
) -> float | None:
    """Return how far a task's two references, written for two frameworks, agree on the markets they share.

    They are two independent correct solutions: what the judge says of one against the other is a fair test of it.
    None where the task has only one, or where they share no market.
    """
    config = config or BehaviourConfig()
    if not (reference_of(task, "backtrader") and reference_of(task, "frame")):
        return None
    first = {run.name: run for run in SHARED.of(executor, task, "backtrader", config)}
    second = SHARED.of(executor, task, "frame", config)
    values = [
        agreement(run.fills, first[run.name].fills, closes_of(run.bars), config.agreement).value
        for run in second
        if run.name in first
    ]
    return sum(values) / len(values) if values else None


def market_plan(task: CodeTask, seeds: int) -> tuple[tuple[str, int], ...]:
    """Return the markets to try in order: home, then another seed and another kind in turn.

    Kinds with the same trading hours come first: a rule about a session means nothing round the clock.
    """
    home = MARKETS[task.market]
    kinds = sorted(
        (name for name in MARKETS if name != task.market),
        key=lambda name: (MARKETS[name].clock != home.clock, MARKETS[name].tied != home.tied, name),
    )
    plan = [(task.market, HOME_SEED)]
    for step in range(1, seeds):
        plan.append((task.market, HOME_SEED + step))
        plan += [(kind, HOME_SEED + step) for kind in kinds[step - 1 : step]]
    return tuple(plan)


def fill_table(run: Backtest, bars: TaskBars) -> FillTable:
    """Return a run's fills as arrays."""
    place = {label: number for number, label in enumerate(bars.assets)}
    return FillTable(
        bar=np.array([fill.bar for fill in run.fills], dtype=np.int64),
        asset=np.array([place[fill.asset] for fill in run.fills], dtype=np.int64),
        size=np.array([fill.size for fill in run.fills], dtype=np.float64),
    )


def closes_of(bars: TaskBars) -> Floats:
    """Return the closes, shape (bars, assets)."""
    return np.stack([feed["close"] for feed in bars.feeds.values()], axis=1)


def _reference_runs(
    executor: JobExecutor, task: CodeTask, framework: Framework, config: BehaviourConfig, home: Backtest | None
) -> tuple[ReferenceRun, ...]:
    source = reference_of(task, framework)
    plan = list(market_plan(task, config.seeds))
    chosen: list[ReferenceRun] = []
    if home is not None:
        chosen += _if_it_trades(home, task_bars(task, *plan.pop(0)), config)
    while plan and len(chosen) < config.markets:
        # As many at once as are still needed: they run in parallel, and none runs needlessly.
        wanted = config.markets - len(chosen)
        tables = [task_bars(task, market, seed) for market, seed in plan[:wanted]]
        plan = plan[wanted:]
        runs = run_programs(executor, task, ((source, bars) for bars in tables), framework)
        for bars, done in zip(tables, runs, strict=True):
            chosen += _if_it_trades(done, bars, config)
    return tuple(chosen)


def _if_it_trades(done: Backtest, bars: TaskBars, config: BehaviourConfig) -> list[ReferenceRun]:
    if not done.ok or len(done.trades) < config.least_trades:
        return []
    return [ReferenceRun(name=bars.name, bars=bars, fills=fill_table(done, bars), trades=len(done.trades))]


def _compare(done: Backtest, reference: ReferenceRun, config: BehaviourConfig, said: list[str]) -> MarketAgreement:
    if done.failure is not None:
        said.append("it breaks on other data")
        return MarketAgreement(
            market=reference.name, value=0.0, fills=0.0, exposure=0.0, failure=done.failure.text
        )
    mine, closes = fill_table(done, reference.bars), closes_of(reference.bars)
    result = agreement(mine, reference.fills, closes, config.agreement)
    said += hints(mine, reference.fills, closes, config.agreement)
    return _agreed(reference.name, result)


def _agreed(market: str, found: Agreement | DecisionsMatched) -> MarketAgreement:
    """Return a comparison as it is recorded; decisions have one number where fills have two."""
    decided = found if isinstance(found, DecisionsMatched) else None
    return MarketAgreement(
        market=market,
        value=found.value,
        fills=found.value if isinstance(found, DecisionsMatched) else found.fills,
        exposure=found.value if isinstance(found, DecisionsMatched) else found.exposure,
        entries=found.entries,
        exits=found.exits,
        matched=found.matched,
        candidate_events=found.candidate,
        reference_events=found.reference,
        stray=0 if decided is None else decided.stray,
        forgiven=0 if decided is None else decided.forgiven,
    )


def _itself(reference: ReferenceRun, config: BehaviourConfig) -> MarketAgreement:
    result = agreement(reference.fills, reference.fills, closes_of(reference.bars), config.agreement)
    return _agreed(reference.name, result)


def _lost(found: Sequence[MarketAgreement], threshold: float, markets: int) -> bool:
    best = sum(market.value for market in found) + (markets - len(found))
    return best / markets < threshold


def _verdict(
    found: Sequence[MarketAgreement], threshold: float, violations: tuple[str, ...], said: Sequence[str]
) -> BehaviourVerdict:
    mean = sum(market.value for market in found) / len(found)
    reasons = [f"agreement {mean:.3f} with the reference, {threshold:g} is needed"] if mean < threshold else []
    reasons += violations
    return BehaviourVerdict(
        status="failed" if reasons else "passed",
        reason="; ".join(reasons),
        agreement=mean,
        threshold=threshold,
        markets=tuple(found),
        violations=violations,
        hints=tuple(dict.fromkeys(said)) if reasons else (),
    )
