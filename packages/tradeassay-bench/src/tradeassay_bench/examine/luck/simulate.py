"""Run random portfolios through a market in compiled code.

Random numbers are from SplitMix64 (Steele, Lea and Flood 2014), the same on every machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay_bench.account import compiled as compiled_account
from tradeassay_bench.account.compiled.book import (
    EMPTY,
    SeatBook,
    book_trade,
    cash_change,
    close_session,
    largest,
    open_session,
    shrink,
    slipped,
    valued,
    whole_lots,
)
from tradeassay_bench.account.compiled.tape import (
    BUYABLE,
    FILL,
    FUND,
    LOT,
    MEMBER,
    MULTIPLIER,
    SELLABLE,
    Tape,
    TapeRules,
)
from tradeassay_bench.core.compiled import Compiler
from tradeassay_bench.examine.luck.schedule import SeatChanges

_COMPILER = Compiler(
    Path(__file__).parent, calls=tuple(map(Path, compiled_account.__path__)), counted=False
)
compiled, inlined = _COMPILER.compiled, _COMPILER.inlined

TRIES = 64
"""The maximum number of attempts to draw a name. After that, the next suitable name is used."""
STRETCH = 1.5
"""The maximum ratio of a trade to the recorded trade, when purchases are scaled."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

State = NDArray[np.uint64]
"""The state of a random generator: one number."""


@inlined
def throw(state: State, sides: int) -> int:
    """Advance the generator and return a random number from 0 to ``sides`` - 1."""
    state[0] = state[0] + _STEP
    z = state[0]
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z = z ^ (z >> _31)
    return int(float(z >> _11) * 2.0**-53 * sides)


@compiled
def simulate(
    dice: State,
    nav: Floats,
    shape: Floats,
    books: SeatBook,
    tape: Tape,
    rules: TapeRules,
    plan: SeatChanges,
    wish: Floats,
) -> int:
    """Run one portfolio per generator. Return the number of orders of the first portfolio.

    ``nav`` has shape (portfolios, sessions + 1), ``shape`` (portfolios, 3). ``books`` are empty and
    have one row per portfolio. ``wish`` has space for one number per change. All portfolios finish
    a session before the next session begins, so that its prices are read from memory only once.
    """
    sessions = tape.eventful.size
    for one in range(dice.size):
        nav[one, 0] = books.money[one, 0]
    for t in range(sessions):
        planned = plan.first[t] < plan.first[t + 1]
        for one in range(dice.size):
            book = SeatBook(
                books.column[one],
                books.units[one],
                books.last[one],
                books.held[one],
                books.touched[one],
                books.money[one],
                books.tally[one],
                books.log,
                books.needs,
            )
            book.money[1] = 0.0
            if tape.eventful[t]:
                open_session(book, t, tape)
            if planned or book.tally[1] > plan.seats:
                trade(book, t, dice[one : one + 1], wish, tape, rules, plan)
            before, after = nav[one, t], close_session(book, t, tape, rules)
            nav[one, t + 1] = after
            if before > 0.0:
                shape[one, 0] += book.money[1] / 2.0 / before / sessions
            if after > 0.0:
                shape[one, 1] += book.money[0] / after / sessions
            shape[one, 2] += book.tally[0] / sessions
    return int(books.tally[0, 2])


@inlined
def trade(
    book: SeatBook,
    t: int,
    dice: State,
    wish: Floats,
    tape: Tape,
    rules: TapeRules,
    plan: SeatChanges,
) -> None:
    """Execute the changes of a session.

    Sales precede purchases, as in the exchange's order for a batch.
    """
    nav = size_up(book, t, wish, tape, plan)
    for sign in (1.0, -1.0):
        # The unsold rest of earlier seats: longs with the sales, shorts with the purchases.
        for at in range(plan.seats, book.tally[1]):
            if (
                book.column[at] != EMPTY
                and book.units[at] * sign > 0.0
                and book.touched[book.column[at]] != t
            ):
                shrink(book, at, t, abs(book.units[at]), tape, rules)
        for e in range(plan.first[t], plan.first[t + 1]):
            if not plan.grows[e] and plan.sign[e] == sign:
                give_up(book, e, t, wish[e], tape, rules, plan)
        for e in range(plan.first[t], plan.first[t + 1]):
            if plan.grows[e] and plan.sign[e] == -sign:
                grow(book, e, t, dice, wish[e], nav, tape, rules, plan)


@inlined
def size_up(book: SeatBook, t: int, wish: Floats, tape: Tape, plan: SeatChanges) -> float:
    """Compute all changes before the first trade: units to sell and values to buy. Return NAV.

    Purchases are scaled, within limits, so that the invested share equals the recorded one.
    """
    nav, gross = valued(book, t, FILL, tape)
    planned = 0.0
    for e in range(plan.first[t], plan.first[t + 1]):
        at = plan.seat[e]
        if plan.grows[e]:
            planned += plan.size[e]
            continue
        wish[e] = 0.0
        column = book.column[at]
        if column != EMPTY:
            held = abs(book.units[at])
            wish[e] = (
                held
                if plan.size[e] == 1.0
                else whole_lots(held * plan.size[e], tape.facts[column, LOT])
            )
            price = tape.grid[t, column, FILL]
            gross -= (
                wish[e] * (price if price > 0.0 else book.last[at]) * tape.facts[column, MULTIPLIER]
            )
    scale = (plan.gross[t] * nav - gross) / planned if planned > 0.0 else 0.0
    scale = min(max(scale, nav / STRETCH), nav * STRETCH) if nav > 0.0 else 0.0
    for e in range(plan.first[t], plan.first[t + 1]):
        if plan.grows[e]:
            wish[e] = plan.size[e] * scale
    return nav


@inlined
def give_up(
    book: SeatBook, e: int, t: int, units: float, tape: Tape, rules: TapeRules, plan: SeatChanges
) -> None:
    """Reduce or empty a seat.

    Units that the market does not accept leave the seat and are offered again later.
    """
    at = plan.seat[e]
    if book.column[at] == EMPTY or units <= 0.0:
        return
    shrink(book, at, t, units, tape, rules)
    if plan.size[e] == 1.0 and book.column[at] != EMPTY:
        place = plan.seats
        while book.column[place] != EMPTY:
            place += 1
        book.column[place], book.units[place], book.last[place] = (
            book.column[at],
            book.units[at],
            book.last[at],
        )
        book.column[at], book.units[at] = EMPTY, 0.0
        book.tally[1] = max(book.tally[1], place + 1)


@inlined
def grow(
    book: SeatBook,
    e: int,
    t: int,
    dice: State,
    value: float,
    nav: float,
    tape: Tape,
    rules: TapeRules,
    plan: SeatChanges,
) -> None:
    """Open a seat with a randomly drawn name, or add to the seat's name."""
    at = plan.seat[e]
    # An occupied seat cannot be opened. A short seat is covered only after the session's sales.
    if value <= 0.0 or (plan.opens[e] and book.column[at] != EMPTY):
        return
    wanted = value * plan.sign[e]
    if not plan.opens[e]:
        column = book.column[at]
        if column == EMPTY or not takes(t, column, wanted, tape):
            return
        units = largest(book, t, column, book.units[at], wanted, nav, tape, rules)
    elif plan.column[e] != EMPTY:
        column = plan.column[e]
        if book.held[column] or not takes(t, column, wanted, tape):
            return
        units = largest(book, t, column, 0.0, wanted, nav, tape, rules)
    else:
        column, units = draw(book, t, dice, wanted, nav, tape, rules)
    if units <= 0.0:
        return
    buying = wanted > 0.0
    price = slipped(tape.grid[t, column, FILL], buying, rules)
    multiplier = tape.facts[column, MULTIPLIER]
    if book.column[at] == EMPTY:
        book.column[at], book.last[at] = column, tape.grid[t, column, FILL]
    cash = cash_change(units, price, multiplier, buying, rules)
    book_trade(book, at, t, units if buying else -units, cash, units * price * multiplier, True)


@inlined
def takes(t: int, column: int, wanted: float, tape: Tape) -> bool:
    """Return whether a position in a column of the tape may be increased in session ``t``."""
    open_to = tape.grid[t, column, BUYABLE] if wanted > 0.0 else tape.grid[t, column, SELLABLE]
    return bool(open_to and tape.grid[t, column, MEMBER])


@inlined
def draw(
    book: SeatBook, t: int, dice: State, wanted: float, nav: float, tape: Tape, rules: TapeRules
) -> tuple[int, float]:
    """Return a random name that is not held and not traded today, and its available units."""
    names = tape.facts.shape[0]
    column = 0
    for tried in range(TRIES + names):
        column = throw(dice, names) if tried < TRIES else (column + 1) % names
        if (
            book.held[column]
            or book.touched[column] == t
            or tape.facts[column, FUND]
            or not takes(t, column, wanted, tape)
        ):
            continue
        units = largest(book, t, column, 0.0, wanted, nav, tape, rules)
        if units > 0.0:
            return column, units
    return EMPTY, 0.0


def seeds_for(seed: int, portfolios: Ints) -> State:
    """Return the generators of the portfolios with the given numbers.

    The generator depends only on the seed and the number.
    """
    words = np.random.PCG64(seed).random_raw(1)[0]
    mixed = (portfolios.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1342543DE82EF95)
    return mixed ^ np.uint64(words)
