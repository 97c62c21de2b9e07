"""Draw price paths that are sensitive to every word of frozen semantics.

A mutant is a copy of the semantics that differs in one word: a constant, a window, a degree of
freedom, a seed, the side of a tie, the order of two rules, or an extra assignment to a register.
:func:`draw_sensitivity` draws price paths and keeps each path on which a further mutant decides
differently from the frozen semantics. For the remaining mutants it moves a close to the point where
the two differ, onto a tie if necessary. A submission that decides like the frozen semantics on all
of these paths is none of the mutants.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice, product
from types import CodeType, SimpleNamespace
from typing import Any, Final

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay_bench.account.shares import DecisionList, decision_list
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.semantics.interpreter import (
    Semantics,
    StrategyRule,
    calendar_of,
    indicators,
    names_in,
    parse,
)
from tradeassay_programs.code.semantics.program import HELPERS, written

BARS: Final = 360
SESSION: Final = 9
"""Number of bars per session on an intraday path. Short sessions give a path many sessions."""
DRAWS: Final = 40
FEWEST: Final = 4
"""Number of paths that are always kept, to detect errors without a matching mutant."""
BLANKS: Final = 8
"""Number of consecutive draws without a newly detected mutant after which drawing ends.

The remaining mutants are assumed to decide the same on any bars.
"""
APART: Final = 1e-4
"""Minimum difference between shares of equity that distinguishes a mutant.

Rounding is at most a hundredth of it.
"""
_ROUNDING: Final = 1e-12
_SHIFT: Final = 0.03
_TIES: Final = 3
_TRIED: Final = 2
"""Maximum number of decisions on a path that are searched for a nearby tie."""
_AWAY: Final = (0.998, 1.002, 0.99, 1.01, 0.96, 1.04, 0.88, 1.12, 0.7, 1.4)
_HALVINGS: Final = 36
_STRICT: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
}
_OTHER_MEAN: Final = {
    "ema": ("wilder", "_ema_from_first", "mean"),
    "wilder": ("ema", "_wilder_from_first", "mean"),
    "mean": ("ema",),
    "day_max_close": ("day_high",),
    "day_min_close": ("day_low",),
}
_OTHER_FIELD: Final = {"high": "close", "low": "close", "open": "close"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """Semantics that differ from the frozen semantics in one word.

    ``description`` names the difference. Three kinds of mutant are not visible in ``semantics``:

    - ``drifting``: the position of a leg is its current weight, not the last target.
    - ``twice``: a second rule may fire on the same bar.
    - ``rule``: only the ties of this rule are resolved the other way.

    ``number`` marks a mutant that differs in a compared number, so its rules become true at other
    prices.
    """

    description: str
    semantics: Semantics
    drifting: bool = False
    twice: bool = False
    rule: int | None = None
    number: bool = False


def mutants(frozen: Semantics) -> Iterator[Mutant]:
    """Yield every mutant that can be parsed. Some may decide the same on any bars."""
    yield from _mutate_words(frozen)
    yield from _mutate_rules(frozen)
    names = set[str]()
    for rule in frozen.rules:
        names |= set(names_in(rule.when))
    if any(name.startswith("held_") for name in names):
        yield Mutant(description="weights drift", semantics=frozen, drifting=True)
    yield Mutant(description="two rules a bar", semantics=frozen, twice=True)


def _mutate_words(frozen: Semantics) -> Iterator[Mutant]:
    """Yield mutants with other parameters, then with other indicators, then with other rule
    texts.
    """
    changed = partial(msgspec.structs.replace, frozen)
    for name, parameter in frozen.parameters.items():
        step = 1.0 if parameter.kind == "int" else _SHIFT * (abs(parameter.value) or 0.1)
        for value in (parameter.value + step, parameter.value - step):
            if value > 0 or parameter.value <= 0:
                mutated = msgspec.structs.replace(parameter, value=value)
                parameters = {**frozen.parameters, name: mutated}
                yield Mutant(
                    description=f"{name} {value:g}",
                    semantics=changed(parameters=parameters),
                    number=True,
                )
    for name, text in frozen.indicators.items():
        for other in _other_texts(text):
            yield Mutant(
                description=f"{name} = {other}",
                semantics=changed(indicators={**frozen.indicators, name: other}),
                number="where" not in f"{name} {other}",
            )
    for place, rule in enumerate(frozen.rules):
        for other in _other_texts(rule.when):
            only_ties = place if _without_ties(other) == _without_ties(rule.when) else None
            yield Mutant(
                description=f"{rule.id}: {other}",
                semantics=_with_rule(frozen, place, when=other),
                rule=only_ties,
            )
        for key in ("target", "set"):
            texts: dict[str, str] = getattr(rule, key)
            for name, text in texts.items():
                for other in _other_texts(text):
                    semantics = _with_rule(frozen, place, **{key: {**texts, name: other}})
                    yield Mutant(description=f"{rule.id}: {name} = {other}", semantics=semantics)


def _without_ties(text: str) -> str:
    """Return an expression with every comparison made strict."""
    return ast.unparse(parse(text)).replace(">=", ">").replace("<=", "<")


def _mutate_rules(frozen: Semantics) -> Iterator[Mutant]:
    """Yield mutants that reorder the rules, or change a rule's start state or the registers it
    sets.
    """
    rules = frozen.rules
    for place, rule in enumerate(rules):
        later = range(place + 1, len(rules))
        rivals = (at for at in later if set(rule.given) & set(rules[at].given))
        for at in islice(rivals, 1):
            swapped = (*rules[:place], rules[at], *rules[place:at], *rules[at + 1 :])
            yield Mutant(
                description=f"{rules[at].id} first",
                semantics=msgspec.structs.replace(frozen, rules=swapped),
            )
    for place, rule in enumerate(rules):
        for state in frozen.states:
            if state not in rule.given and state != rule.to:
                semantics = _with_rule(frozen, place, given=(*rule.given, state))
                yield Mutant(description=f"{rule.id} from {state}", semantics=semantics)
        for other in rules:
            for name, text in other.set.items():
                if other.to == rule.to and rule.set.get(name) is None:
                    semantics = _with_rule(frozen, place, set={**rule.set, name: text})
                    yield Mutant(description=f"{rule.id} sets {name}", semantics=semantics)
        for name in rule.set:
            others = {register: text for register, text in rule.set.items() if register != name}
            semantics = _with_rule(frozen, place, set=others)
            yield Mutant(description=f"{rule.id} leaves {name}", semantics=semantics)


def _with_rule(frozen: Semantics, place: int, **changes: Any) -> Semantics:
    """Return semantics with one rule changed."""
    rule = msgspec.structs.replace(frozen.rules[place], **changes)
    return msgspec.structs.replace(
        frozen, rules=(*frozen.rules[:place], rule, *frozen.rules[place + 1 :])
    )


def _other_texts(text: str) -> Iterator[str]:
    """Yield the expression with one node changed, for every change of every node."""
    count = sum(1 for _ in ast.walk(parse(text)))
    seen = {text}
    for number in range(count):
        tree = ast.parse(text, mode="eval").body
        node = list(ast.walk(tree))[number]
        for change in _changes(node):
            changed = change if node is tree else _Replacer(node, change).visit(tree)
            other = ast.unparse(changed)
            if other not in seen:
                seen.add(other)
                yield other


class _Replacer(ast.NodeTransformer):
    """Replaces one node of a tree."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().generic_visit(node)


def _changes(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the replacements of a node that a mutant may have."""
    match node:
        case ast.Call(func=ast.Name(id="prev"), args=[series, ast.Constant(value=int(k))]):
            yield series if k == 1 else _call("prev", series, ast.Constant(k - 1))
            yield _call("prev", series, ast.Constant(k + 1))
        case ast.Call(func=ast.Name(id="std"), args=[series, n, ast.Constant(value=int(ddof))]):
            yield _call("std", series, n, ast.Constant(1 - ddof))
        case ast.Call(func=ast.Name(id="where"), args=[_, value, _]):
            yield value
        case ast.Call(func=ast.Name(id="min" | "max" | "log" | "abs" | "sqrt"), args=args):
            yield from args
        case ast.Call(func=ast.Name(id=name), args=args) if name in _OTHER_MEAN:
            for other in _OTHER_MEAN[name]:
                yield _call(other, *args)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _STRICT:
            yield ast.Compare(left, [_STRICT[type(op)]()], [right])
        case ast.BoolOp(op=op, values=parts):
            for place in range(len(parts)):
                rest = [*parts[:place], *parts[place + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.Attribute(value=leg, attr=field) if field in _OTHER_FIELD:
            yield ast.Attribute(leg, _OTHER_FIELD[field], ast.Load())
        case ast.BinOp(
            left=ast.BinOp(op=ast.Div()) as ratio, op=ast.Sub(), right=ast.Constant(value=1)
        ):
            yield _call("log", ratio)
        case ast.Constant(value=int(value) | float(value)) if value:
            yield ast.Constant(value + 1 if isinstance(value, int) else value * (1.0 + _SHIFT))


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


_HELPERS: Final[dict[str, Any]] = {"np": np}
# The text is the project's own: the helper functions of programs generated from semantics.
exec(HELPERS, _HELPERS)


class _Rule:
    """A rule with its expressions compiled."""

    def __init__(self, place: int, rule: StrategyRule, legs: tuple[str, ...]) -> None:
        self.place, self.given, self.to = place, frozenset(rule.given), rule.to
        self.when = _code(rule.when)
        self.target = [(legs.index(leg), leg, _code(text)) for leg, text in rule.target.items()]
        self.set = {name: _code(text) for name, text in rule.set.items()}
        self.codes = (self.when, *(code for _, _, code in self.target), *self.set.values())


@lru_cache(maxsize=4096)
def _code(text: str) -> CodeType:
    return compile(written(parse(text), wide=False), "rule", "eval")


class Tape:
    """Bars, and the indicator series on them, computed once.

    Most mutants share the frozen indicators.
    """

    def __init__(self, bars: TaskBars) -> None:
        self.bars = bars
        self._known: dict[tuple[int, int], tuple[Semantics, dict[str, list[float]]]] = {}

    def series(self, semantics: Semantics) -> dict[str, list[float]]:
        """Return the indicator series of semantics by name."""
        key = (id(semantics.indicators), id(semantics.parameters))
        if key not in self._known:
            feeds = dict(zip(semantics.inputs.legs, self.bars.feeds.values(), strict=False))
            values = indicators(semantics, feeds, calendar_of(self.bars.times))
            series = {name.replace(".", "_"): column.tolist() for name, column in values.items()}
            # A reference to the semantics is kept too, because the id of a deleted object may be
            # reused.
            self._known[key] = (semantics, series)
        return self._known[key][1]


class _Player:
    """The book, state and registers of a mutant after the processed bars."""

    def __init__(self, mutant: Mutant) -> None:
        semantics = mutant.semantics
        self.mutant, self.legs, self.state = mutant, semantics.inputs.legs, semantics.states[0]
        rules = [_Rule(place, rule, self.legs) for place, rule in enumerate(semantics.rules)]
        self._rules = {
            state: [rule for rule in rules if state in rule.given] for state in semantics.states
        }
        codes = chain.from_iterable(rule.codes for rule in rules)
        self._names = set(chain.from_iterable(code.co_names for code in codes))
        self._numbers = {name: each.value for name, each in semantics.parameters.items()}
        self.held = dict.fromkeys(self.legs, 0.0)
        self.shares = dict.fromkeys(self.legs, 0.0)
        self.cash = 1.0
        self.now: dict[str, Any] = dict(semantics.registers)

    def copy(self) -> _Player:
        """Return an independent copy."""
        player = copy(self)
        player.held = dict(self.held)
        player.shares = dict(self.shares)
        player.now = dict(self.now)
        return player

    def play(self, tape: Tape, since: int, until: int) -> Iterator[tuple[int, int, float, int]]:
        """Yield the decisions on the bars from ``since`` to before ``until``: bar, leg, share and
        rule.
        """
        mutant, legs, held, shares, now = self.mutant, self.legs, self.held, self.shares, self.now
        series = tape.series(mutant.semantics)
        book = SimpleNamespace(target=held)
        always = {**_HELPERS, **self._numbers, "book": book}
        used = self._names & series.keys()
        columns = [series[name][since:until] for name in (*(f"{leg}_close" for leg in legs), *used)]
        for row, values in enumerate(zip(*columns, strict=True), since):
            now |= zip(used, values[len(legs) :], strict=True)
            if mutant.drifting:
                equity = self._equity(values)
                book.target = {
                    leg: shares[leg] * price / equity
                    for leg, price in zip(legs, values, strict=False)
                }
            for _ in range(2 if mutant.twice else 1):
                for rule in self._rules[self.state]:
                    if _value(rule.when, always, now):
                        break
                else:
                    break
                equity = self._equity(values)
                if equity <= 0.0:  # Shares of a zero equity have no meaning.
                    yield row, 0, np.nan, rule.place
                    return
                for leg, name, text in rule.target:
                    wanted = _value(text, always, now)
                    if wanted != wanted:
                        raise UserError(
                            f"a rule of '{mutant.semantics.id}' has no target in bar {row}"
                        )
                    if wanted != held[name]:
                        yield row, leg, wanted, rule.place
                        bought = wanted * equity / values[leg] - shares[name]
                        self.cash -= bought * values[leg]
                        shares[name] += bought
                        held[name] = wanted
                now |= {name: _value(text, always, now) for name, text in rule.set.items()}
                self.state = rule.to

    def _equity(self, prices: tuple[float, ...]) -> float:
        worth = zip(self.legs, prices, strict=False)
        return self.cash + sum(self.shares[leg] * price for leg, price in worth)


def decide(mutant: Mutant, tape: Tape) -> Iterator[tuple[int, int, float, int]]:
    """Yield the decisions of a mutant: bar, leg, share of equity and rule.

    An unchanged mutant decides like the interpreter.
    """
    return _Player(mutant).play(tape, 0, tape.bars.rows)


def _value(code: CodeType, always: dict[str, Any], now: Mapping[str, Any]) -> float:
    """Return the value of an expression. A division by zero is 0, as in the interpreter."""
    try:
        # The code is safe: it is compiled from the parsed rule language.
        return float(eval(code, always, now))
    except ZeroDivisionError:
        return 0.0


def differs(mutant: Mutant, tape: Tape, frozen: DecisionList, tolerance: float = APART) -> bool:
    """Return whether a mutant's decisions differ from ``frozen`` on these bars."""
    expected = zip(frozen.row.tolist(), frozen.leg.tolist(), frozen.fraction.tolist(), strict=True)
    try:
        for row, leg, share, _ in decide(mutant, tape):
            wanted = next(expected, None)
            if wanted is None or (row, leg) != wanted[:2] or abs(share - wanted[2]) > tolerance:
                return True
    except UserError:
        return True
    return next(expected, None) is not None


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Price paths that distinguish mutants from the frozen semantics.

    ``mutants`` is the number of all mutants. ``undetected`` describes the mutants that no path
    distinguishes. With ``compares_year``, no decision of the frozen semantics on the scored bars
    depends on rounding, so the scored bars can be compared too.
    """

    paths: tuple[TaskBars, ...]
    mutants: int
    undetected: tuple[str, ...]
    compares_year: bool = True


def draw_sensitivity(
    semantics: Semantics, rng: np.random.Generator, scored: TaskBars | None = None
) -> Sensitivity:
    """Return price paths on which mutants differ from the frozen semantics.

    Paths are drawn until every mutant differs on one of them, or further draws find no new mutant.
    Submissions are compared on the ``scored`` bars anyway, so mutants that differ on these bars
    need no path.
    """
    all_mutants = list(mutants(semantics))
    left, kept, blanks, compares_year = all_mutants, list[TaskBars](), 0, True
    plain = Mutant(description="", semantics=semantics)
    # The scored bars, if present, are first, under the number -1.
    for number in range(-1 if scored is not None else 0, DRAWS):
        bars = scored if number < 0 and scored is not None else draw_path(semantics, rng, number)
        alive = mutants_left(left, plain, bars, rng)
        if alive is None:
            compares_year = compares_year and number >= 0
            continue
        if number >= 0:
            blanks = 0 if len(alive) < len(left) else blanks + 1
            if not blanks or len(kept) < FEWEST:
                kept.append(bars)
        left = alive
        if len(kept) >= FEWEST and (not left or blanks >= BLANKS):
            break
    # Some mutants differ only in a session that turns more than once: a high that no close reaches,
    # or two rules on one bar.
    for number in range(0 if "1d" in semantics.inputs.timeframes else DRAWS):
        if number >= BLANKS and not any(mutant.number for mutant in left):
            break
        bars = draw_path(semantics, rng, number, turns=3)
        alive = mutants_left(left, plain, bars, rng)
        if alive is not None and len(alive) < len(left):
            left, kept = alive, [*kept, bars]
    # For the remaining mutants, a close is moved onto a tie.
    for mutant in left:
        numbers: list[int] = []
        if mutant.number or mutant.rule is not None:
            numbers = rng.permutation(len(kept))[:_TIES].tolist()
        for bars in [kept[number] for number in numbers]:
            tied = _tied(mutant, plain, bars, rng) if mutant in left else None
            alive = None if tied is None else mutants_left(left, plain, tied, rng, nudges=3)
            if tied is not None and alive is not None and len(alive) < len(left):
                left, kept = alive, [*kept, tied]
    undetected = tuple(mutant.description for mutant in left)
    return Sensitivity(tuple(kept), len(all_mutants), undetected, compares_year)


def mutants_left(
    left: list[Mutant], plain: Mutant, bars: TaskBars, rng: np.random.Generator, nudges: int = 1
) -> list[Mutant] | None:
    """Return the mutants that a path does not distinguish.

    Returns None if the frozen decisions depend on rounding.
    """
    tape, held = Tape(bars), dict[int, float]()
    frozen = decision_list(list(decide(plain, tape)))
    for leg, share in zip(frozen.leg.tolist(), frozen.fraction.tolist(), strict=True):
        # A trade this small is rounding, such as a hedge of a zero position. A NaN means that the
        # account is ruined.
        if not abs(share - held.get(leg, 0.0)) >= APART / 100:
            return None
        held[leg] = share
    for _ in range(nudges):
        nudged = {asset: dict(feed) for asset, feed in bars.feeds.items()}
        for feed in nudged.values():
            moved = ((name, values) for name, values in feed.items() if name != "time")
            feed |= {
                name: values * (1.0 + _ROUNDING * rng.standard_normal(values.size))
                for name, values in moved
            }
        nudged_tape = Tape(TaskBars(nudged, bars.timeframe, bars.clock, bars.name))
        if differs(plain, nudged_tape, frozen, tolerance=1e-7):
            return None
    return [mutant for mutant in left if not differs(mutant, tape, frozen)]


def _tied(
    mutant: Mutant, plain: Mutant, bars: TaskBars, rng: np.random.Generator
) -> TaskBars | None:
    """Return the path with one close moved between the frozen semantics and the mutant, or None.

    The new close is the middle between the points where a rule of the frozen semantics and the same
    rule of the mutant become true. For a mutant that differs in a tie, this is the tie.
    """
    fired = np.array(
        [(row, place) for row, _, _, place in decide(plain, Tape(bars))], dtype=np.int64
    )
    fired = rng.permutation(fired.reshape(-1, 2))
    if mutant.rule is not None:
        rule_indicators = [
            plain.semantics.indicators.get(name, "")
            for name in names_in(plain.semantics.rules[mutant.rule].when)
        ]
        chosen = fired[fired[:, 1] == mutant.rule]
        lags = (0, 1) if any(text.startswith("prev(") for text in rule_indicators) else (0,)
    else:
        # One decision of each rule, the rarest rule first.
        _, first, counts = np.unique(fired[:, 1], return_index=True, return_counts=True)
        chosen, lags = fired[first[np.argsort(counts)]], (0,)
    tried = [decision for decision in chosen[:_TRIED].tolist() if decision[0]]
    # Closes move down and up: one direction may change a crossing, the other a level.
    for lag, (row, rule), moves in product(lags, tried, (_AWAY[::2], _AWAY[1::2])):
        moved = row - lag
        # The path continues for a session, because the end of a session is known in advance.
        start = bars.first(min(row + 1 + SESSION, bars.rows))
        place = _Place(start, bars.assets[int(rng.integers(len(bars.assets)))], moved, row, rule)
        away = next((by for by in moves if not place.holds(plain, by)), None)
        if away is None:
            continue
        inside, outside = place.edge(plain, 1.0, away)
        if place.holds(mutant, outside) and not place.holds(mutant, away):
            other, _ = place.edge(mutant, outside, away)
        elif not place.holds(mutant, inside) and place.holds(mutant, 1.0):
            other, _ = place.edge(mutant, 1.0, inside)
        else:
            continue
        if abs(inside - other) > _ROUNDING:
            return _with_close(bars, place.leg, moved, (inside + other) / 2)
    return None


class _Place:
    """A bar of a path on which a rule fires, and a close that may be moved."""

    def __init__(self, bars: TaskBars, leg: str, moved: int, row: int, rule: int) -> None:
        self.bars, self.leg, self.moved, self.row, self.rule = bars, leg, moved, row, rule
        self._before: dict[str, _Player] = {}
        self._tape = Tape(bars)

    def holds(self, mutant: Mutant, factor: float) -> bool:
        """Return whether the mutant's rule fires if the close is multiplied by a factor."""
        # Nothing changes before the moved close, so these bars are processed once.
        if mutant.description not in self._before:
            player = _Player(mutant)
            deque(player.play(self._tape, 0, self.moved), maxlen=0)
            self._before[mutant.description] = player
        tape = Tape(_with_close(self.bars, self.leg, self.moved, factor))
        player = self._before[mutant.description].copy()
        decisions = player.play(tape, self.moved, self.row + 1)
        return any((row, place) == (self.row, self.rule) for row, _, _, place in decisions)

    def edge(self, mutant: Mutant, inside: float, outside: float) -> tuple[float, float]:
        """Return the two factors around the point where the rule stops firing, found by
        bisection.
        """
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if self.holds(mutant, middle):
                inside = middle
            else:
                outside = middle
        return inside, outside


def _with_close(bars: TaskBars, leg: str, row: int, factor: float) -> TaskBars:
    """Return bars with one close multiplied by a factor, and its high and low extended to include
    it.
    """
    feed = {name: values.copy() for name, values in bars.feeds[leg].items()}
    feed["close"][row] *= factor
    for name, most in (("high", max), ("low", min)):
        feed[name][row] = most(feed[name][row], feed["close"][row])
    return TaskBars({**bars.feeds, leg: feed}, bars.timeframe, bars.clock, bars.name)


def draw_path(
    semantics: Semantics, rng: np.random.Generator, number: int, turns: int = 1
) -> TaskBars:
    """Return a drawn path.

    Its ``number`` selects the kind: calm, wild with gaps, or on a coarse grid with constant
    stretches, which give ties. ``turns`` is the number of round trips in an intraday session.
    """
    legs, daily = semantics.inputs.legs, "1d" in semantics.inputs.timeframes
    calm, coarse = number % 4 == 1, number % 2 == 0
    if calm:
        swing, tick = 0.012, 0.01
    elif coarse:
        swing, tick = 0.02, 1.0 + number % 4 / 2
    else:
        swing, tick = 0.035, 0.01
    drift = np.repeat(rng.normal(0.0, 0.4, BARS), rng.integers(8, 50, BARS))[:BARS]
    common = swing * (drift + rng.standard_normal(BARS))
    still = np.zeros(BARS, dtype=bool)
    if coarse:
        for start in rng.integers(20, BARS - 60, 5):
            still[start : start + int(rng.integers(5, 50))] = True
    stamps = np.datetime64("2024-01-01") + np.arange(BARS) // (1 if daily else SESSION)
    times = stamps.astype("M8[ns]")
    if not daily:
        place = np.arange(BARS) % SESSION
        times = times + (np.timedelta64(570, "m") + place * np.timedelta64(15, "m"))
        # Rules that reverse a position need days that move one way and back. With several turns the
        # moves are smaller, because a large move in the wrong direction ruins the account.
        last, most = (5, 5.0) if turns == 1 else (6, 2.0)
        tall = np.clip(rng.standard_t(2, -(-BARS // SESSION)), -most, most)
        height = np.repeat(4.0 * swing * tall, SESSION)[:BARS]
        common = common + np.diff(
            height * np.sin(np.pi * turns * np.minimum(place, last) / last), prepend=0.0
        )

    def grid(values: Floats) -> Floats:
        return np.maximum(np.round(values / tick) * tick, tick)

    feeds: dict[str, dict[str, Any]] = {}
    gap = swing * (0.2 if calm else 0.6)
    for leg in legs:
        spread, value = np.zeros(BARS), 0.0
        # With several legs, each has its own spread, which reverts to the common path.
        for row, step in enumerate(rng.standard_normal(BARS) if len(legs) > 1 else ()):
            value = 0.9 * value + 0.8 * swing * step
            spread[row] = value
        own = np.where(still, 0.0, common + np.diff(spread, prepend=0.0))
        close = grid(100.0 * np.exp(np.cumsum(own)))
        wicks = (
            rng.standard_t(2, (2, BARS))
            if number % 4 == 3 or turns > 1
            else rng.standard_normal((2, BARS))
        )
        before = np.concatenate([close[:1], close[:-1]])
        opening = np.where(still, close, grid(before * np.exp(gap * rng.standard_normal(BARS))))
        reach = np.where(still, 0.0, gap * np.minimum(abs(wicks), 12.0))
        high = np.maximum.reduce(
            [grid(np.maximum(opening, close) * (1.0 + reach[0])), opening, close]
        )
        low = np.minimum.reduce(
            [grid(np.minimum(opening, close) * (1.0 - reach[1])), opening, close]
        )
        volume = np.full(BARS, 1000.0)
        feeds[leg] = {
            "time": times,
            "open": opening,
            "high": high,
            "low": low,
            "close": close,
            "volume": volume,
        }
    return TaskBars(feeds, "1d" if daily else "15m", "exchange", f"drawn path {number}")
