"""Draw the markets on which a program is judged from the run's secret, to suit the task.

A market is useless if the task's reference hardly trades on it. A set of markets cannot test a
constant or a branch if the judge accepts a program in which the constant or branch is changed.
Therefore *mutants* of the reference run too. A mutant has one changed constant or one removed
branch. Only mutants that contradict the task run (:func:`is_stated`).

The last market is drawn again, and markets with calm spells, wild spells and jumps are added, so
that the judge notices more mutants. :class:`DrawConfig` limits both. Every market that was drawn
again or added is recorded, and so is every mutant that the judge did not notice.
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

from tradeassay.core.hashing import sha256_of
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.backtrader import Backtest
from tradeassay_programs.code.bars import MARKETS, Feed, TaskBars
from tradeassay_programs.code.judges.decisions import (
    DecisionEvent,
    DecisionsConfig,
    compare_decisions,
    decision_events,
    passes,
)
from tradeassay_programs.code.program_source import parses
from tradeassay_programs.code.running import ExamSettings, reference_of, run_programs, task_bars
from tradeassay_programs.code.task import CodeTask, Framework
from tradeassay_programs.sandbox import JobExecutor

_ORDERS: Final = ("buy", "sell", "close", "cancel", "order_target")


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A program with one change.

    ``change`` describes the change, and ``line`` is the line of the original. ``orders`` marks a
    removed branch that places or cancels orders. ``place`` is the number of a changed constant.
    """

    kind: Literal["constant", "condition"]
    change: str
    line: int
    source: str
    orders: bool = False
    place: int = -1


def mutants_of(source: str, *, doubled: bool = False) -> tuple[Mutant, ...]:
    """Return all mutants of a program, sorted by line.

    ``doubled`` doubles each constant. By default a constant moves by a tenth (:func:`_moved`).
    Returns an empty tuple if the source is not valid Python.
    """
    tree = parses(source)
    if tree is None:
        return ()
    mutants: list[Mutant] = []
    for place, node in enumerate(_constants(tree)):
        old = node.value
        assert isinstance(old, int | float)
        new = 2 * old if doubled else _moved(old)
        node.value = new
        text = ast.unparse(tree)
        change = f"{old:g} -> {new:g}"
        mutants.append(
            Mutant(kind="constant", change=change, line=node.lineno, source=text, place=place)
        )
        node.value = old
    for number, branch in enumerate(list(ast.walk(tree))):
        if not isinstance(branch, ast.If | ast.BoolOp):
            continue
        # A branch is never taken, or an operand of a condition is removed.
        for place in range(1 if isinstance(branch, ast.If) else len(branch.values)):
            other, removed, orders = copy.deepcopy(tree), "the branch", False
            changed = list(ast.walk(other))[number]
            if isinstance(branch, ast.If) and isinstance(changed, ast.If):
                changed.test = ast.Constant(False)
                orders = _places_orders(branch.body)
            elif isinstance(changed, ast.BoolOp):
                removed = ast.unparse(changed.values.pop(place))[:60]
            text, change = ast.unparse(ast.fix_missing_locations(other)), f"without {removed}"
            mutants.append(
                Mutant(
                    kind="condition", change=change, line=branch.lineno, source=text, orders=orders
                )
            )
    return tuple(sorted(mutants, key=lambda mutant: (mutant.line, mutant.change)))


def _moved(number: int | float) -> int | float:
    """Return a number increased by a tenth. A whole number below ten increases by one."""
    if isinstance(number, float):
        return number * (1.0 + 0.1)
    return number + (1 if number < 10 else round(number * 0.1))


def _places_orders(body: list[ast.stmt]) -> bool:
    """Return whether statements place or cancel orders."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr.startswith(_ORDERS):
                    return True
    return False


def _constants(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the numeric constants of a program in source order, except 0 and subscripts."""
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
_ORDINALS: Final = tuple(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()
)
_CUT: Final = 25
"""Market lengths after cutting are multiples of this number of bars."""
_FEWEST: Final = 2
"""Minimum number of the reference's trades on a judged market."""


class DrawConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for drawing markets.

    - ``markets`` is the number of markets before any are added.
    - ``least_trades`` is the wanted number of the reference's trades on each market. If none of
      ``draws`` draws reaches this number, the draw with the most trades is used.
    - ``redraws`` is the maximum number of times that the last market is drawn again because the
      judge does not notice a mutant.
    - ``extra_markets`` is the maximum number of markets that one search adds, and ``extra_draws``
      is the number of draws in one search. There are up to two searches: for mutants with constants
      moved by a tenth, and for mutants with doubled constants. By default up to six markets are
      added. If ``redraws`` and ``extra_markets`` are 0, no mutant runs.
    - ``shortest``, if set, is the minimum number of bars of a market that is cut. A market is cut
      once the reference has traded enough on it and all noticed mutants remain noticed.
    """

    markets: int = 3
    least_trades: int = 5
    draws: int = 5
    redraws: int = msgspec.field(name="mended", default=2)
    extra_markets: int = msgspec.field(name="added", default=3)
    extra_draws: int = msgspec.field(name="tried", default=24)
    shortest: int | None = None
    decisions: DecisionsConfig = DecisionsConfig()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedMarket:
    """One market with the reference's decisions and its number of trades.

    ``kinds`` is the set of the kinds of the reference's orders, or None without a run.
    """

    bars: TaskBars
    events: tuple[DecisionEvent, ...]
    trades: int
    kinds: frozenset[str] | None = None

    def brief(self) -> JudgedMarket:
        """Return the market up to the bar of the reference's sixth entry, but at least 250 bars.

        A market on which the reference enters five times or less is returned whole.
        """
        entries = [event.bar for event in self.events if event.bar == event.opened]
        if len(entries) <= _SHOWN:
            return self
        rows = min(self.bars.rows, max(_SHORTEST, entries[_SHOWN] + 1))
        kept = tuple(event for event in self.events if event.bar < rows)
        return replace(self, bars=self.bars.first(rows), events=kept, trades=_SHOWN)


_SHOWN: Final = 5
_SHORTEST: Final = 250


class DrawnAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A market that was drawn again or added, or a mutant that was dropped, with the reason."""

    market: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judging:
    """The markets of a task, the home market first.

    ``immaterial`` names the stated constants and branches whose change the judge does not notice on
    any of the markets.
    """

    markets: tuple[JudgedMarket, ...]
    again: tuple[DrawnAgain, ...] = ()
    immaterial: tuple[str, ...] = ()


_MOST_KEPT: Final = 1024


class DrawnMarkets:
    """A thread-safe cache of drawn markets. All programs of a run get the same markets."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Judging] = OrderedDict()
        self._lock = threading.Lock()
        self._busy: dict[tuple[str, ...], threading.Lock] = {}
        self._new_keys: list[tuple[str, ...]] = []

    def pop_new_markets(self) -> dict[tuple[str, ...], Judging]:
        """Return the markets drawn since the last call, by key.

        Another process adds the markets to its cache with :meth:`add_markets`.
        """
        with self._lock:
            keys, self._new_keys = self._new_keys, []
            return {key: self._kept[key] for key in keys if key in self._kept}

    def add_markets(self, drawn: Mapping[tuple[str, ...], Judging]) -> None:
        """Add markets that another process drew."""
        with self._lock:
            self._kept |= {key: judging for key, judging in drawn.items() if key not in self._kept}

    def home(
        self,
        executor: JobExecutor,
        task: CodeTask,
        framework: Framework,
        rules: ExamSettings,
        config: DrawConfig,
    ) -> Judging:
        """Return the home market of a task, drawn from the rules' secret."""
        key = ("home", sha256_of(task), framework, sha256_of(rules), sha256_of(config))
        drawing = _Drawing(executor, task, framework, rules, config, reference_of(task, framework))
        return self.once(key, drawing.draw_home)

    def all_markets(
        self,
        executor: JobExecutor,
        task: CodeTask,
        framework: Framework,
        rules: ExamSettings,
        config: DrawConfig,
    ) -> Judging:
        """Return all markets of a task.

        The markets depend only on the task, the framework, the rules with their secret, and the
        config.
        """
        home = self.home(executor, task, framework, rules, config)
        key = (sha256_of(task), framework, sha256_of(rules), sha256_of(config))
        return self.once(key, lambda: draw_markets(executor, task, framework, rules, config, home))

    def once(self, key: tuple[str, ...], draw: Callable[[], Judging]) -> Judging:
        """Return the cached markets of a key, or draw them.

        Other threads with the same key wait.
        """
        with self._lock:
            key_lock = self._busy.setdefault(key, threading.Lock())
        with key_lock:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            judging = draw()
            with self._lock:
                self._kept[key] = judging
                self._new_keys = [*self._new_keys[1 - _MOST_KEPT :], key]
                while len(self._kept) > _MOST_KEPT:
                    oldest, _ = self._kept.popitem(last=False)
                    self._busy.pop(oldest, None)
        return judging


SHARED_DRAWS: Final = DrawnMarkets()
"""The cache that all callers in this process share."""


def draw_markets(
    executor: JobExecutor,
    task: CodeTask,
    framework: Framework,
    rules: ExamSettings,
    config: DrawConfig,
    home: Judging | None = None,
) -> Judging:
    """Return the markets of a task, the home market first.

    Without a reference, only the home market is returned. If the reference does not trade on it,
    no market is returned.
    """
    drawing = _Drawing(executor, task, framework, rules, config, reference_of(task, framework))
    home = home or drawing.draw_home()
    return drawing.draw_all(home) if drawing.source and home.markets else home


def is_stated(mutant: Mutant, task: CodeTask, framework: Framework) -> bool:
    """Return whether a mutant contradicts the task.

    A changed constant contradicts the task if the formal wording states the constant, as a number
    or a word. The constant 1 is ignored. A removed branch contradicts the task if the branch places
    or cancels orders. Changes listed under ``cannot_matter`` never contradict the task.
    """
    for change in task.cannot_matter or ():
        if (change.framework, change.line, change.change) == (
            framework,
            mutant.line,
            mutant.change,
        ):
            return False
    if mutant.kind != "constant":
        return mutant.orders
    wording = task.text("formal", framework) or task.formal
    old = float(mutant.change.partition(" ")[0])
    stated = {float(number.replace(",", "")) for number in _NUMBER.findall(wording)}
    for word in re.findall("[a-z]+", wording.lower()):
        for names in (_WORDS, _ORDINALS):
            if word in names:
                stated.add(float(names.index(word)))
    if old == 1.0:
        return False  # A 1 is too common to locate it in the wording.
    # A share of 0.05 may be stated as 5 %.
    return any(abs(old - number) < 1e-9 or abs(old * 100.0 - number) < 1e-9 for number in stated)


def drawn_bars(task: CodeTask, market: str, secret: str, slot: int, draw: int) -> TaskBars:
    """Return the bars of one draw, with a name that does not reveal the seed."""
    bars = task_bars(task, market, seed_from(secret, "market", task.id, slot, draw))
    return replace(bars, name=f"{market}/{task.timeframe}/market {slot + 1}.{draw + 1}")


_SPELLS: Final = (0.0, 0.12, 0.4, 1.0, 2.5)
_OFTEN: Final = ((0.04, 0.16, 0.2, 0.3, 0.3), (0.2, 0.2, 0.2, 0.2, 0.2))
"""Probabilities of the factors in ``_SPELLS``, for even and for odd draws.

A factor multiplies all moves in a spell. The factor 0 is a halt.
"""
_CENT: Final = 100.0


def spelled_bars(task: CodeTask, secret: str, draw: int) -> TaskBars:
    """Return the bars of a market with calm spells, wild spells and jumps.

    Draw ``_COILED`` and later draws also have coils: each bar is inside the previous bar, so that
    orders wait.
    """
    clock = MARKETS[task.market].clock
    names = [task.market, *(name for name in MARKETS if MARKETS[name].clock == clock)]
    plain = drawn_bars(task, names[draw % len(names)], secret, _ADDED, draw)
    draws = np.random.default_rng(seed_from(secret, "spells", task.id, draw))
    feeds = {asset: _spelled(feed, draws, _OFTEN[draw % 2]) for asset, feed in plain.feeds.items()}
    if draw >= _COILED:
        feeds = {asset: _coiled(feed, draws) for asset, feed in feeds.items()}
    return replace(plain, feeds=feeds, name=f"{plain.name.rpartition('/')[0]}/spells {draw + 1}")


_ADDED: Final = 50
"""The slot reserved for markets with spells."""


def _spelled(feed: Feed, draws: np.random.Generator, often: Sequence[float]) -> Feed:
    """Return an asset's bars with moves scaled in spells, and a jump on one bar in a hundred.

    Spells last 3 to 40 bars. ``often`` contains the probabilities of the factors in ``_SPELLS``.
    """
    rows = feed["close"].size
    lengths = draws.integers(3, 41, rows)
    scale = np.repeat(draws.choice(_SPELLS, rows, p=often), lengths)[:rows]
    jump = np.where(draws.random(rows) < 0.01, draws.uniform(-0.12, 0.12, rows), 0.0)
    before = np.append(feed["open"][:1], feed["close"][:-1])
    gap = 1.0 + scale * (feed["open"] / before - 1.0) + jump
    body = 1.0 + scale * (feed["close"] / feed["open"] - 1.0)
    steps = (
        np.multiply.accumulate(np.stack([gap, np.maximum(body, 0.5)], axis=1).ravel())
        * feed["open"][0]
    )
    opened, close = steps[0::2], steps[1::2]
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    above = scale * (feed["high"] / np.maximum(feed["open"], feed["close"]) - 1.0)
    below = scale * (np.minimum(feed["open"], feed["close"]) / feed["low"] - 1.0)
    scaled = {
        "open": opened,
        "high": top * (1.0 + above),
        "low": bottom / (1.0 + below),
        "close": close,
    }
    cents = {
        name: np.maximum(np.rint(prices * _CENT), 1.0) / _CENT for name, prices in scaled.items()
    }
    return {**feed, **cents, "volume": np.maximum(np.rint(feed["volume"] * scale), 1.0)}


_COILED: Final = 8
"""Number of the first draw with coils."""
_SIDES: Final = ("open", "high", "low", "close")


def _coiled(feed: Feed, draws: np.random.Generator) -> Feed:
    """Return an asset's bars with coils: runs of up to nine bars, each inside the previous bar."""
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
GUARDED: Final = (
    "an indicator divides by zero on it unless it is guarded, which the task does not ask for"
)


@dataclass(eq=False)
class _Drawing:
    """The mutable state while the markets of a task are drawn.

    ``noticed`` maps a market's name to the decisions of the mutants that the judge noticed there.
    """

    executor: JobExecutor
    task: CodeTask
    framework: Framework
    rules: ExamSettings
    config: DrawConfig
    source: str
    markets: list[JudgedMarket] = field(default_factory=list)
    again: list[DrawnAgain] = field(default_factory=list)
    noticed: dict[str, list[tuple[DecisionEvent, ...]]] = field(default_factory=dict)

    def draw_home(self) -> Judging:
        """Return the home market.

        Without a reference, the first draw is used. Returns no market if the reference makes fewer
        than two trades on every draw.
        """
        if self.source:
            self.draw_market(0)
        else:
            bars = drawn_bars(self.task, self.task.market, self.rules.secret, 0, 0)
            self.markets.append(JudgedMarket(bars=bars, events=(), trades=0))
        return Judging(markets=tuple(self.markets), again=tuple(self.again))

    def draw_all(self, home: Judging) -> Judging:
        """Return the home market, the other markets, and markets added for unnoticed mutants."""
        self.markets, self.again = list(home.markets), list(home.again)
        for slot in range(1, self.config.markets):
            self.draw_market(slot)
        mutants: list[Mutant] = []
        if self.config.redraws or self.config.extra_markets:
            for mutant in mutants_of(self.source):
                if is_stated(mutant, self.task, self.framework):
                    mutants.append(mutant)
        left = self.unnoticed(mutants)
        for redraw in range(self.config.redraws):
            if not left or len(self.markets) < self.config.markets:
                break
            kept = self.markets.pop()
            if not self.draw_market(self.config.markets - 1, self.config.draws * (redraw + 1)):
                self.markets.append(kept)
                break
            changes = ", ".join(f"{mutant.change} in line {mutant.line}" for mutant in left[:3])
            self.again.append(
                DrawnAgain(market=kept.bars.name, reason=f"a constant does not matter: {changes}")
            )
            left = self.unnoticed(left)
        left = self.drop_too_small(self.add_markets_for(left))
        markets = self.markets
        if self.config.shortest:
            markets = [self.cut(market) for market in markets]
        return Judging(
            markets=tuple(markets),
            again=tuple(self.again),
            immaterial=tuple(f"line {mutant.line}: {mutant.change}" for mutant in left),
        )

    def draw_market(self, slot: int, start: int = 0) -> bool:
        """Draw the market of a slot until the reference trades enough on it.

        If no draw has enough trades, the draw with the most trades is used. Returns False, and adds
        no market, if that draw has fewer than two trades.
        """
        best: JudgedMarket | None = None
        home = MARKETS[self.task.market]
        others = sorted(
            (name for name in MARKETS if name != self.task.market),
            key=lambda name: (
                MARKETS[name].clock != home.clock,
                MARKETS[name].tied != home.tied,
                name,
            ),
        )
        kind = self.task.market if slot < 2 else others[(slot - 2) % len(others)]
        for draw in range(start, start + self.config.draws):
            # If a kind of market does not suit the task, the last draws are of the task's own kind.
            market = kind if draw - start < self.config.draws - 2 else self.task.market
            bars = drawn_bars(self.task, market, self.rules.secret, slot, draw)
            (run,) = self.run([self.source], bars)
            judged = self._judged_market(run, bars)
            if self._needs_guard(bars, judged):
                self.again.append(DrawnAgain(market=bars.name, reason=GUARDED))
                continue
            if judged.trades >= self.config.least_trades:
                self.markets.append(judged)
                return True
            if best is None or judged.trades > best.trades:
                best = judged
            reason = "the reference does not run"
            if run.ok:
                reason = f"the reference makes {judged.trades} trades"
            self.again.append(DrawnAgain(market=bars.name, reason=reason))
        if best is None or best.trades < _FEWEST:
            return False
        self.again = [drawn for drawn in self.again if drawn.market != best.bars.name]
        self.markets.append(best)
        return True

    def unnoticed(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Return the mutants that the judge accepts on every market."""
        left = list(mutants)
        for market in self.markets:
            left = self._accepted(left, market)
        return left

    def add_markets_for(self, left: list[Mutant]) -> list[Mutant]:
        """Add markets with spells on which the judge notices more mutants.

        Returns the mutants that remain unnoticed. One call adds up to ``extra_markets`` markets.
        """
        room = self.config.extra_markets if self.markets else 0
        for draw in range(self.config.extra_draws):
            if not left or not room:
                break
            bars = spelled_bars(self.task, self.rules.secret, draw)
            (run,) = self.run([self.source], bars)
            market = self._judged_market(run, bars)
            if not run.ok or market.trades < _FEWEST or self._needs_guard(bars, market):
                continue
            accepted = self._accepted(left, market)
            if len(accepted) < len(left):
                noticed = [mutant for mutant in left if mutant not in accepted]
                changes = ", ".join(f"{mutant.change} in line {mutant.line}" for mutant in noticed)
                reason = f"added, because it matters here: {changes}"
                self.again.append(DrawnAgain(market=bars.name, reason=reason))
                self.markets.append(market)
                left, room = accepted, room - 1
        return left

    def drop_too_small(self, left: list[Mutant]) -> list[Mutant]:
        """Return the mutants without those whose change was only too small.

        A mutant is dropped, with a record, if the judge notices the mutant with the same constant
        doubled. This search may add markets.
        """
        if not left or not self.markets:
            return left
        places = {mutant.place for mutant in left if mutant.kind == "constant"}
        doubled = [
            mutant for mutant in mutants_of(self.source, doubled=True) if mutant.place in places
        ]
        never = {mutant.place for mutant in self.add_markets_for(self.unnoticed(doubled))}
        kept = []
        for mutant in left:
            if mutant.kind != "constant" or mutant.place in never:
                kept.append(mutant)
                continue
            reason = (
                f"{mutant.change} in line {mutant.line} is too small a change to be noticed; "
                "doubling it is not"
            )
            self.again.append(DrawnAgain(market="all markets", reason=reason))
        return kept

    def _accepted(self, mutants: list[Mutant], market: JudgedMarket) -> list[Mutant]:
        """Return the mutants that the judge accepts on a market.

        A mutant that crashes counts as noticed. The decisions of other noticed mutants are stored
        in ``noticed``.
        """
        runs = self.run([mutant.source for mutant in mutants], market.bars)
        accepted: list[Mutant] = []
        for mutant, run in zip(mutants, runs, strict=True):
            if not run.ok:
                continue
            events = self._judged_market(run, market.bars).events
            if self._passes(events, market, market.bars.rows):
                accepted.append(mutant)
            else:
                self.noticed.setdefault(market.bars.name, []).append(events)
        return accepted

    def _passes(self, events: tuple[DecisionEvent, ...], market: JudgedMarket, rows: int) -> bool:
        """Return whether the judge accepts decisions on the first ``rows`` bars of a market."""
        candidate = tuple(event for event in events if event.bar < rows)
        reference = tuple(event for event in market.events if event.bar < rows)
        config = self.config.decisions
        return passes(compare_decisions(candidate, reference, rows, config), config)

    def cut(self, market: JudgedMarket) -> JudgedMarket:
        """Return a market cut to the bars that its trades and noticed mutants need.

        Returns the whole market if no cut suffices.
        """
        noticed = self.noticed.get(market.bars.name, [])
        needed = max(self.config.least_trades, self.task.expect.min_trades)
        for rows in range(self.config.shortest or market.bars.rows, market.bars.rows, _CUT):
            entries = sum(event.bar == event.opened < rows for event in market.events)
            if entries <= needed:
                continue
            if not any(self._passes(events, market, rows) for events in noticed):
                bars = replace(market.bars.first(rows), name=f"{market.bars.name} to bar {rows}")
                (run,) = self.run([self.source], bars)
                return self._judged_market(run, bars) if run.ok else market
        return market

    def _needs_guard(self, bars: TaskBars, market: JudgedMarket) -> bool:
        """Return whether the reference needs its guard against division by zero on these bars."""
        plain = _GUARD.sub("", self.source)
        if plain == self.source:
            return False
        (run,) = self.run([plain], bars)
        return not run.ok or self._judged_market(run, bars).events != market.events

    def run(self, sources: Sequence[str], bars: TaskBars) -> list[Backtest]:
        """Return the backtests of programs on the same bars."""
        programs = ((source, bars) for source in sources)
        return list(
            run_programs(self.executor, self.task, programs, self.framework, rules=self.rules)
        )

    def _judged_market(self, run: Backtest, bars: TaskBars) -> JudgedMarket:
        """Return a market with the decisions of a run on it."""
        events = decision_events(run, bars, self.task.cash) if run.ok else ()
        kinds = run.orders.kinds() if run.ok else None
        return JudgedMarket(bars=bars, events=events, trades=len(run.trades), kinds=kinds)
