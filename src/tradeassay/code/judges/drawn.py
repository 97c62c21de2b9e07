"""The markets that a program is judged on in version 2: drawn from the run's secret, and fit for the task.

A market says nothing when the task's reference barely trades on it, and a set of markets says nothing about a
constant that can be changed without changing a trade. Both are drawn again, a few times, and what was drawn again
or could not be mended is recorded.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from tradeassay.code.backtrader import Backtest
from tradeassay.code.bars import MARKETS, TaskBars
from tradeassay.code.judges.decisions import DecisionEvent, decision_events
from tradeassay.code.mutants import Mutant, mutants_of
from tradeassay.code.rules import Rules
from tradeassay.code.running import reference_of, run_programs, task_bars
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.draws import seed_from
from tradeassay.core.hashing import sha256_of
from tradeassay.sandbox import JobExecutor

_NUMBER: Final = re.compile(r"(?<![\d.])\d[\d,]*(?:\.\d+)?")
_WORDS: Final = tuple("zero one two three four five six seven eight nine ten eleven twelve".split())
_ORDINALS: Final = tuple("zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split())
_FEWEST: Final = 2
"""A market on which the reference makes fewer trades is never taken."""


class DrawConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``markets`` are compared; on each the reference makes ``least_trades`` trades, or the most it makes in
    ``draws`` draws. ``mended`` is how often the last market is drawn again for a constant that does not matter.
    """

    markets: int = 3
    least_trades: int = 5
    draws: int = 5
    mended: int = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedMarket:
    """One market and what the reference decides on it."""

    bars: TaskBars
    events: tuple[DecisionEvent, ...]
    trades: int


class DrawnAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A market that was set aside, and why."""

    market: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judging:
    """The markets of a task, home first. ``immaterial`` names the constants of the reference that no market of
    these can tell from another value.
    """

    markets: tuple[JudgedMarket, ...]
    again: tuple[DrawnAgain, ...] = ()
    immaterial: tuple[str, ...] = ()
    runs: int = 0


class DrawnMarkets:
    """A cache of drawn markets, which every candidate of a run needs again. Thread-safe."""

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, ...], Judging] = OrderedDict()
        self._lock = threading.Lock()
        self._busy: dict[tuple[str, ...], threading.Lock] = {}

    def of(
        self, executor: JobExecutor, task: CodeTask, framework: Framework, rules: Rules, config: DrawConfig
    ) -> Judging:
        """Return the markets of a task; they follow from the task, the rules and the secret alone."""
        key = (sha256_of(task), framework, sha256_of(rules), sha256_of(config))
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        with busy:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            found = draw_markets(executor, task, framework, rules, config)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > self._most:
                    self._busy.pop(self._kept.popitem(last=False)[0], None)
        return found


SHARED_DRAWS: Final = DrawnMarkets()
"""The markets shared by every caller that brings none of its own."""


def draw_markets(
    executor: JobExecutor, task: CodeTask, framework: Framework, rules: Rules, config: DrawConfig
) -> Judging:
    """Draw the markets of a task. Without a reference there is one, the home market, drawn once."""
    source = reference_of(task, framework)
    if not source:
        bars = drawn_bars(task, task.market, rules.secret, 0, 0)
        return Judging(markets=(JudgedMarket(bars=bars, events=(), trades=0),))
    hand = _Hand(executor, task, framework, rules, config, source)
    for slot in range(config.markets):
        hand.take(slot)
    left = hand.unnoticed([mutant for mutant in mutants_of(source) if is_stated(mutant, task, framework)])
    for mended in range(config.mended):
        if not left or not hand.markets:
            break
        kept = hand.markets.pop()
        if not hand.take(config.markets - 1, config.draws * (mended + 1)):
            hand.markets.append(kept)
            break
        shown = ", ".join(f"{mutant.change} in line {mutant.line}" for mutant in left[:3])
        hand.again.append(DrawnAgain(market=kept.bars.name, reason=f"a constant does not matter: {shown}"))
        left = hand.unnoticed(left)
    return Judging(
        markets=tuple(hand.markets),
        again=tuple(hand.again),
        immaterial=tuple(f"line {mutant.line}: {mutant.change}" for mutant in left),
        runs=hand.runs,
    )


def is_stated(mutant: Mutant, task: CodeTask, framework: Framework) -> bool:
    """Return whether the task's words name the number that a mutant changes, as it is or in per cent.

    Others are the reference's own way of writing it down, and a task promises nothing about them.
    """
    if mutant.kind != "constant":
        return False
    words = task.text("formal", framework) or task.formal
    old = float(mutant.change.partition(" ")[0])
    named = {float(number.replace(",", "")) for number in _NUMBER.findall(words)}
    spoken = re.findall("[a-z]+", words.lower())
    named |= {float(names.index(word)) for word in spoken for names in (_WORDS, _ORDINALS) if word in names}
    return old != 1.0 and any(abs(old * scale - number) < 1e-9 for number in named for scale in (1.0, 100.0))


def drawn_bars(task: CodeTask, market: str, secret: str, slot: int, draw: int) -> TaskBars:
    """Return the bars of one draw, under a name that does not give its seed away."""
    bars = task_bars(task, market, seed_from(secret, "market", task.id, slot, draw))
    return TaskBars(
        bars.feeds, bars.timeframe, bars.clock, f"{market}/{task.timeframe}/market {slot + 1}.{draw + 1}"
    )


def kind_of_slot(task: CodeTask, slot: int) -> str:
    """Return the kind of market of a slot: the task's own twice, then others, those with the same hours first."""
    home = MARKETS[task.market]
    others = sorted(
        (name for name in MARKETS if name != task.market),
        key=lambda name: (MARKETS[name].clock != home.clock, MARKETS[name].tied != home.tied, name),
    )
    return task.market if slot < 2 else others[(slot - 2) % len(others)]


class _Hand:
    """The markets that have been drawn so far. Mutable, and discarded when the record is written."""

    def __init__(
        self,
        executor: JobExecutor,
        task: CodeTask,
        framework: Framework,
        rules: Rules,
        config: DrawConfig,
        source: str,
    ) -> None:
        self._executor, self._task, self._framework = executor, task, framework
        self._rules, self._config, self._source = rules, config, source
        self.markets: list[JudgedMarket] = []
        self.again: list[DrawnAgain] = []
        self.runs = 0

    def take(self, slot: int, start: int = 0) -> bool:
        """Draw until the reference trades enough; else take the draw on which it traded most, if it did at all."""
        best: JudgedMarket | None = None
        kind = kind_of_slot(self._task, slot)
        for draw in range(start, start + self._config.draws):
            # The last draws of a kind that does not suit the task are of its own kind.
            market = kind if draw - start < self._config.draws - 2 else self._task.market
            bars = drawn_bars(self._task, market, self._rules.secret, slot, draw)
            (done,) = self.run([self._source], bars)
            found = self._judged(done, bars)
            if found.trades >= self._config.least_trades:
                self.markets.append(found)
                return True
            if best is None or found.trades > best.trades:
                best = found
            why = f"the reference makes {found.trades} trades" if done.ok else "the reference does not run"
            self.again.append(DrawnAgain(market=bars.name, reason=why))
        if best is None or best.trades < _FEWEST:
            return False
        self.again = [one for one in self.again if one.market != best.bars.name]
        self.markets.append(best)
        return True

    def unnoticed(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Return the changed constants that decide what the reference decides, on every market."""
        left = [mutant for mutant in mutants if mutant.kind == "constant"]
        for market in self.markets:
            done = self.run([mutant.source for mutant in left], market.bars)
            left = [
                mutant
                for mutant, one in zip(left, done, strict=True)
                if one.ok and self._judged(one, market.bars).events == market.events
            ]
        return left

    def run(self, sources: Sequence[str], bars: TaskBars) -> list[Backtest]:
        """Run programs of ours; whole tables will do for them."""
        self.runs += len(sources)
        wanted = ((source, bars) for source in sources)
        return list(run_programs(self._executor, self._task, wanted, self._framework, rules=self._rules))

    def _judged(self, done: Backtest, bars: TaskBars) -> JudgedMarket:
        events = decision_events(done, bars, self._task.cash) if done.ok else ()
        return JudgedMarket(bars=bars, events=events, trades=len(done.trades))
