"""The markets that a program is judged on: drawn from the run's secret, and fit for the task.

A market says nothing when the task's reference barely trades on it, and a set of markets says nothing about a
constant or a branch that can be changed without the judge noticing. So *mutants* of the reference, with a constant
moved or a branch gone, are run too; markets are drawn again and further ones with calm and wild spells and jumps
added until the mutants are noticed. All of that is recorded, and so is what could not be mended.
"""

from __future__ import annotations

import ast
import copy
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.code.backtrader import Backtest
from tradeassay.code.bars import MARKETS, Feed, TaskBars
from tradeassay.code.judges.decisions import (
    DecisionEvent,
    DecisionsConfig,
    compare_decisions,
    decision_events,
    passes,
)
from tradeassay.code.program_source import parses
from tradeassay.code.running import Rules, reference_of, run_programs, task_bars
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.hashing import seed_from, sha256_of
from tradeassay.sandbox import JobExecutor

_ORDERS: Final = ("buy", "sell", "close", "cancel", "order_target")


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A program with one change. ``change`` says which, with the line of the original; ``orders`` tells that what
    was taken out is a branch in which orders are placed or cancelled. ``place`` counts the constants.
    """

    kind: Literal["constant", "condition"]
    change: str
    line: int
    source: str
    orders: bool = False
    place: int = -1


def mutants_of(source: str, *, doubled: bool = False) -> tuple[Mutant, ...]:
    """Return all mutants of a program, by line; ``doubled`` doubles constants instead of moving them a little."""
    tree = parses(source)
    if tree is None:
        return ()
    made: list[Mutant] = []
    for place, node in enumerate(_stated(tree)):
        old = node.value
        assert isinstance(old, int | float)
        # Fractions move by a tenth; so do whole numbers from ten on, those below by one.
        moved = old * (1.0 + 0.1) if isinstance(old, float) else old + (1 if old < 10 else round(old * 0.1))
        node.value = new = 2 * old if doubled else moved
        text = ast.unparse(tree)
        change = f"{old:g} -> {new:g}"
        made.append(Mutant(kind="constant", change=change, line=node.lineno, source=text, place=place))
        node.value = old
    for number, spot in enumerate(list(ast.walk(tree))):
        if not isinstance(spot, ast.If | ast.BoolOp):
            continue
        # A branch is never taken, or one operand of a condition is gone.
        for place in range(1 if isinstance(spot, ast.If) else len(spot.values)):
            other, what, orders = copy.deepcopy(tree), "the branch", False
            changed = list(ast.walk(other))[number]
            if isinstance(spot, ast.If) and isinstance(changed, ast.If):
                changed.test = ast.Constant(False)
                calls = [call.func for part in spot.body for call in ast.walk(part) if isinstance(call, ast.Call)]
                orders = any(isinstance(name, ast.Attribute) and name.attr.startswith(_ORDERS) for name in calls)
            elif isinstance(changed, ast.BoolOp):
                what = ast.unparse(changed.values.pop(place))[:60]
            text, change = ast.unparse(ast.fix_missing_locations(other)), f"without {what}"
            made.append(Mutant(kind="condition", change=change, line=spot.lineno, source=text, orders=orders))
    return tuple(sorted(made, key=lambda mutant: (mutant.line, mutant.change)))


def _stated(tree: ast.AST) -> Iterator[ast.Constant]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
            if number and node.value:
                yield node
            continue
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Subscript):
            parts.remove(node.slice)
        waiting += reversed(parts)


_NUMBER: Final = re.compile(r"(?<![\d.])\d[\d,]*(?:\.\d+)?")
_WORDS: Final = tuple("zero one two three four five six seven eight nine ten eleven twelve".split())
_ORDINALS: Final = tuple("zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split())
_CUT: Final = 25
"""Markets are cut after a whole number of so many bars."""
_FEWEST: Final = 2
"""A market on which the reference makes fewer trades is never taken."""


class DrawConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``markets`` are compared; on each the reference makes ``least_trades`` trades, or the most it makes in
    ``draws`` draws. ``mended`` is how often the last market is drawn again for a constant that does not matter;
    after that up to ``added`` markets on which it does are added, out of ``tried``. With neither, nobody looks.
    ``shortest`` cuts every market as soon as the reference has made its trades there and each mutant that was
    noticed on it still is, but not below so many bars.
    """

    markets: int = 3
    least_trades: int = 5
    draws: int = 5
    mended: int = 2
    added: int = 3
    tried: int = 24
    shortest: int | None = None
    decisions: DecisionsConfig = DecisionsConfig()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedMarket:
    """One market and what the reference decides on it; ``kinds`` are the kinds of orders it gives there."""

    bars: TaskBars
    events: tuple[DecisionEvent, ...]
    trades: int
    kinds: frozenset[str] | None = None

    def brief(self) -> JudgedMarket:
        """Return the market up to the reference's sixth entry, a year of days at least."""
        entries = [event.bar for event in self.events if event.bar == event.opened]
        if len(entries) <= _SHOWN:
            return self
        rows = min(self.bars.rows, max(_SHORTEST, entries[_SHOWN] + 1))
        kept = tuple(event for event in self.events if event.bar < rows)
        return replace(self, bars=self.bars.first(rows), events=kept, trades=_SHOWN)


_SHOWN: Final = 5
_SHORTEST: Final = 250


class DrawnAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A market that was set aside, and why."""

    market: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judging:
    """The markets of a task, home first. ``immaterial``: constants that none of them tells from another value."""

    markets: tuple[JudgedMarket, ...]
    again: tuple[DrawnAgain, ...] = ()
    immaterial: tuple[str, ...] = ()


_MOST_KEPT: Final = 1024


class DrawnMarkets:
    """A cache of drawn markets, which every candidate of a run needs again. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Judging] = OrderedDict()
        self._lock = threading.Lock()
        self._busy: dict[tuple[str, ...], threading.Lock] = {}
        self._fresh: list[tuple[str, ...]] = []

    def fresh(self) -> dict[tuple[str, ...], Judging]:
        """Return what was drawn here since this was last asked, for another process to :meth:`take`."""
        with self._lock:
            found, self._fresh = self._fresh, []
            return {key: self._kept[key] for key in found if key in self._kept}

    def take(self, drawn: Mapping[tuple[str, ...], Judging]) -> None:
        with self._lock:
            self._kept |= {key: judging for key, judging in drawn.items() if key not in self._kept}

    def home(
        self, executor: JobExecutor, task: CodeTask, framework: Framework, rules: Rules, config: DrawConfig
    ) -> Judging:
        key = ("home", sha256_of(task), framework, sha256_of(rules), sha256_of(config))
        hand = _Hand(executor, task, framework, rules, config, reference_of(task, framework))
        return self._once(key, hand.home)

    def of(
        self, executor: JobExecutor, task: CodeTask, framework: Framework, rules: Rules, config: DrawConfig
    ) -> Judging:
        """Return the markets of a task; they follow from the task, the rules and the secret alone."""
        home = self.home(executor, task, framework, rules, config)
        key = (sha256_of(task), framework, sha256_of(rules), sha256_of(config))
        return self._once(key, lambda: draw_markets(executor, task, framework, rules, config, home))

    def _once(self, key: tuple[str, ...], draw: Callable[[], Judging]) -> Judging:
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        with busy:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            found = draw()
            with self._lock:
                self._kept[key] = found
                self._fresh = [*self._fresh[1 - _MOST_KEPT :], key]
                while len(self._kept) > _MOST_KEPT:
                    self._busy.pop(self._kept.popitem(last=False)[0], None)
        return found


SHARED_DRAWS: Final = DrawnMarkets()
"""The markets shared by every caller that brings none of its own."""


def draw_markets(
    executor: JobExecutor,
    task: CodeTask,
    framework: Framework,
    rules: Rules,
    config: DrawConfig,
    home: Judging | None = None,
) -> Judging:
    """Draw the markets of a task, ``home`` first; no other without a reference that trades there."""
    hand = _Hand(executor, task, framework, rules, config, reference_of(task, framework))
    home = home or hand.home()
    return hand.everywhere(home) if hand.source and home.markets else home


def is_stated(mutant: Mutant, task: CodeTask, framework: Framework) -> bool:
    """Return whether the task's words name the number that is changed, or a branch with orders is gone."""
    known = task.cannot_matter or ()
    if any((one.framework, one.line, one.change) == (framework, mutant.line, mutant.change) for one in known):
        return False
    if mutant.kind != "constant":
        return mutant.orders
    words = task.text("formal", framework) or task.formal
    old = float(mutant.change.partition(" ")[0])
    named = {float(number.replace(",", "")) for number in _NUMBER.findall(words)}
    spoken = re.findall("[a-z]+", words.lower())
    named |= {float(names.index(word)) for word in spoken for names in (_WORDS, _ORDINALS) if word in names}
    return old != 1.0 and any(abs(old * scale - number) < 1e-9 for number in named for scale in (1.0, 100.0))


def drawn_bars(task: CodeTask, market: str, secret: str, slot: int, draw: int) -> TaskBars:
    """Return the bars of one draw, under a name that does not give its seed away."""
    bars = task_bars(task, market, seed_from(secret, "market", task.id, slot, draw))
    return replace(bars, name=f"{market}/{task.timeframe}/market {slot + 1}.{draw + 1}")


_SPELLS: Final = (0.0, 0.12, 0.4, 1.0, 2.5)
_OFTEN: Final = ((0.04, 0.16, 0.2, 0.3, 0.3), (0.2, 0.2, 0.2, 0.2, 0.2))
"""How much smaller or larger moves are in a spell (nothing moves in a halt), and how often there is such a one: on
every other market with spells halts are frequent."""
_CENT: Final = 100.0


def spelled_bars(task: CodeTask, secret: str, draw: int) -> TaskBars:
    """Return a market with its bars stretched: calm and wild spells, jumps; from the ``_COILED``-th on also
    coils, bars that lie inside each other, which orders wait in.
    """
    own = [task.market, *(name for name in MARKETS if MARKETS[name].clock == MARKETS[task.market].clock)]
    plain = drawn_bars(task, own[draw % len(own)], secret, _ADDED, draw)
    draws = np.random.default_rng(seed_from(secret, "spells", task.id, draw))
    feeds = {asset: _spelled(feed, draws, _OFTEN[draw % 2]) for asset, feed in plain.feeds.items()}
    if draw >= _COILED:
        feeds = {asset: _coiled(feed, draws) for asset, feed in feeds.items()}
    return replace(plain, feeds=feeds, name=f"{plain.name.rpartition('/')[0]}/spells {draw + 1}")


_ADDED: Final = 50


def _spelled(feed: Feed, draws: np.random.Generator, often: Sequence[float]) -> Feed:
    """Return one asset with its moves scaled in spells of 3 to 40 bars, and a jump on one bar in a hundred."""
    rows = feed["close"].size
    lengths = draws.integers(3, 41, rows)
    scale = np.repeat(draws.choice(_SPELLS, rows, p=often), lengths)[:rows]
    jump = np.where(draws.random(rows) < 0.01, draws.uniform(-0.12, 0.12, rows), 0.0)
    before = np.append(feed["open"][:1], feed["close"][:-1])
    gap = 1.0 + scale * (feed["open"] / before - 1.0) + jump
    body = 1.0 + scale * (feed["close"] / feed["open"] - 1.0)
    steps = np.multiply.accumulate(np.stack([gap, np.maximum(body, 0.5)], axis=1).ravel()) * feed["open"][0]
    opened, close = steps[0::2], steps[1::2]
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    above = scale * (feed["high"] / np.maximum(feed["open"], feed["close"]) - 1.0)
    below = scale * (np.minimum(feed["open"], feed["close"]) / feed["low"] - 1.0)
    made = {"open": opened, "high": top * (1.0 + above), "low": bottom / (1.0 + below), "close": close}
    cents = {name: np.maximum(np.rint(prices * _CENT), 1.0) / _CENT for name, prices in made.items()}
    return {**feed, **cents, "volume": np.maximum(np.rint(feed["volume"] * scale), 1.0)}


_COILED: Final = 8
"""From which market with spells on prices coil up."""
_SIDES: Final = ("open", "high", "low", "close")


def _coiled(feed: Feed, draws: np.random.Generator) -> Feed:
    """Return one asset with coils: runs of up to nine bars, each strictly inside the one before."""
    rows = feed["close"].size
    lengths = np.where(draws.random(rows) < 0.08, draws.integers(1, 10, rows), 0).tolist()
    places = draws.random((rows, 4)).tolist()
    bars = list(zip(*(feed[name].tolist() for name in _SIDES), strict=True))
    made = [tuple(round(price * _CENT) for price in bars[0])]
    left = 0
    for row in range(1, rows):
        left = left or lengths[row]
        _, high, low, close = made[-1]
        # The next bar leaves up to a fifth of the range free on either side.
        top = high - 1 - int(0.2 * (high - low) * places[row][0])
        bottom = low + 1 + int(0.2 * (high - low) * places[row][1])
        if left and top > bottom:
            left -= 1
            inside = [bottom + round((top - bottom) * place) for place in places[row][2:]]
            made.append((inside[0], top, bottom, inside[1]))
        else:
            left, scale = 0, close / bars[row - 1][3]
            made.append(tuple(max(round(price * scale), 1) for price in bars[row]))
    columns = np.array(made, dtype=np.float64).T / _CENT
    return {**feed, **dict(zip(_SIDES, columns, strict=True))}


_GUARD: Final = re.compile(r",\s*safediv=True")
GUARDED: Final = "an indicator divides by zero on it unless it is guarded, which the task does not ask for"


@dataclass(eq=False)
class _Hand:
    """The markets that have been drawn so far. Mutable, and discarded when the record is written."""

    executor: JobExecutor
    task: CodeTask
    framework: Framework
    rules: Rules
    config: DrawConfig
    source: str
    markets: list[JudgedMarket] = field(default_factory=list)
    again: list[DrawnAgain] = field(default_factory=list)
    noticed: dict[str, list[tuple[DecisionEvent, ...]]] = field(default_factory=dict)

    def home(self) -> Judging:
        """Draw the home market: none where the reference does not trade, the first draw without one."""
        if self.source:
            self.take(0)
        else:
            bars = drawn_bars(self.task, self.task.market, self.rules.secret, 0, 0)
            self.markets.append(JudgedMarket(bars=bars, events=(), trades=0))
        return Judging(markets=tuple(self.markets), again=tuple(self.again))

    def everywhere(self, home: Judging) -> Judging:
        """Draw the other markets, and mend what they do not tell apart."""
        self.markets, self.again = list(home.markets), list(home.again)
        for slot in range(1, self.config.markets):
            self.take(slot)
        looks = self.config.mended or self.config.added
        mutants = mutants_of(self.source) if looks else ()
        left = self.unnoticed([mutant for mutant in mutants if is_stated(mutant, self.task, self.framework)])
        for mended in range(self.config.mended):
            if not left or len(self.markets) < self.config.markets:
                break
            kept = self.markets.pop()
            if not self.take(self.config.markets - 1, self.config.draws * (mended + 1)):
                self.markets.append(kept)
                break
            shown = ", ".join(f"{mutant.change} in line {mutant.line}" for mutant in left[:3])
            self.again.append(DrawnAgain(market=kept.bars.name, reason=f"a constant does not matter: {shown}"))
            left = self.unnoticed(left)
        left = self.coarse(self.add_for(left))
        return Judging(
            markets=tuple(map(self.cut, self.markets)) if self.config.shortest else tuple(self.markets),
            again=tuple(self.again),
            immaterial=tuple(f"line {mutant.line}: {mutant.change}" for mutant in left),
        )

    def take(self, slot: int, start: int = 0) -> bool:
        """Draw until the reference trades enough; else take the draw on which it traded most, if it did at all."""
        best: JudgedMarket | None = None
        home = MARKETS[self.task.market]
        others = sorted(
            (name for name in MARKETS if name != self.task.market),
            key=lambda name: (MARKETS[name].clock != home.clock, MARKETS[name].tied != home.tied, name),
        )
        kind = self.task.market if slot < 2 else others[(slot - 2) % len(others)]
        for draw in range(start, start + self.config.draws):
            # The last draws of a kind that does not suit the task are of its own kind.
            market = kind if draw - start < self.config.draws - 2 else self.task.market
            bars = drawn_bars(self.task, market, self.rules.secret, slot, draw)
            (done,) = self.run([self.source], bars)
            found = self._judged(done, bars)
            if self._guarded(bars, found):
                self.again.append(DrawnAgain(market=bars.name, reason=GUARDED))
                continue
            if found.trades >= self.config.least_trades:
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
        """Return the mutants that the judge would take for the reference, on every market."""
        left = list(mutants)
        for market in self.markets:
            left = self._accepted(left, market)
        return left

    def add_for(self, left: list[Mutant]) -> list[Mutant]:
        """Add markets with spells on which the judge notices further mutants; return those that are left."""
        room = self.config.added if self.markets else 0
        for draw in range(self.config.tried):
            if not left or not room:
                break
            bars = spelled_bars(self.task, self.rules.secret, draw)
            (done,) = self.run([self.source], bars)
            market = self._judged(done, bars)
            if not done.ok or market.trades < _FEWEST or self._guarded(bars, market):
                continue
            still = self._accepted(left, market)
            if len(still) < len(left):
                shown = ", ".join(f"{one.change} in line {one.line}" for one in left if one not in still)
                self.again.append(DrawnAgain(market=bars.name, reason=f"added, because it matters here: {shown}"))
                self.markets.append(market)
                left, room = still, room - 1
        return left

    def coarse(self, left: list[Mutant]) -> list[Mutant]:
        """Leave out constants that do matter when they are doubled; that a small change is lost is recorded."""
        if not left or not self.markets:
            return left
        places = {one.place for one in left if one.kind == "constant"}
        doubled = [one for one in mutants_of(self.source, doubled=True) if one.place in places]
        never = {one.place for one in self.add_for(self.unnoticed(doubled))}
        for one in left:
            if one.kind == "constant" and one.place not in never:
                reason = f"{one.change} in line {one.line} is too small a change to be noticed; doubling it is not"
                self.again.append(DrawnAgain(market="all markets", reason=reason))
        return [one for one in left if one.kind != "constant" or one.place in never]

    def _accepted(self, mutants: list[Mutant], market: JudgedMarket) -> list[Mutant]:
        done = self.run([mutant.source for mutant in mutants], market.bars)
        left: list[Mutant] = []
        for mutant, one in zip(mutants, done, strict=True):
            events = self._judged(one, market.bars).events
            if one.ok and self._alike(events, market, market.bars.rows):
                left.append(mutant)
            elif one.ok:
                self.noticed.setdefault(market.bars.name, []).append(events)
        return left

    def _alike(self, events: tuple[DecisionEvent, ...], market: JudgedMarket, rows: int) -> bool:
        mine, theirs = (tuple(one for one in run if one.bar < rows) for run in (events, market.events))
        return passes(compare_decisions(mine, theirs, rows, self.config.decisions), self.config.decisions)

    def cut(self, market: JudgedMarket) -> JudgedMarket:
        """Return the first rows of a market: as many as its trades and the mutants that it is there for need."""
        noticed = self.noticed.get(market.bars.name, [])
        wanted = max(self.config.least_trades, self.task.expect.min_trades)
        for rows in range(self.config.shortest or market.bars.rows, market.bars.rows, _CUT):
            entries = sum(event.bar == event.opened < rows for event in market.events)
            if entries > wanted and not any(self._alike(events, market, rows) for events in noticed):
                bars = replace(market.bars.first(rows), name=f"{market.bars.name} to bar {rows}")
                (done,) = self.run([self.source], bars)
                return self._judged(done, bars) if done.ok else market
        return market

    def _guarded(self, bars: TaskBars, market: JudgedMarket) -> bool:
        """Return whether the reference is guarded here against a division by zero that no task asks about."""
        plain = _GUARD.sub("", self.source)
        if plain == self.source:
            return False
        (done,) = self.run([plain], bars)
        return not done.ok or self._judged(done, bars).events != market.events

    def run(self, sources: Sequence[str], bars: TaskBars) -> list[Backtest]:
        wanted = ((source, bars) for source in sources)
        return list(run_programs(self.executor, self.task, wanted, self.framework, rules=self.rules))

    def _judged(self, done: Backtest, bars: TaskBars) -> JudgedMarket:
        events = decision_events(done, bars, self.task.cash) if done.ok else ()
        kinds = done.orders.kinds() if done.ok else None
        return JudgedMarket(bars=bars, events=events, trades=len(done.trades), kinds=kinds)
