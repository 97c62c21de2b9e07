"""Simulate one account in compiled code, without the objects of the exchange and the ledger.

Quantities are first cut to the limits of the exchange's policies. The exchange would therefore fill
every trade of this module unchanged, and a replay fills the same orders at the same prices and ends
with the same cash. The functions are compiled with numba. Without numba they run as plain Python.
"""

from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay_bench.account.commission import BPS
from tradeassay_bench.account.compiled.tape import (
    BUYABLE,
    DIVIDEND,
    FILL,
    GONE,
    LENDABLE,
    LOT,
    MARK,
    MULTIPLIER,
    ROOM,
    SELLABLE,
    SPLIT,
    STEP,
    Tape,
    TapeRules,
)
from tradeassay_bench.account.end_of_day import ROUNDING
from tradeassay_bench.account.limits import WHOLE
from tradeassay_bench.account.margin import EQUAL
from tradeassay_bench.core.compiled import Compiler

_COMPILER = Compiler(Path(__file__).parent, counted=False)
inner, inlined = _COMPILER.inner, _COMPILER.inlined

EMPTY = -1
"""Column of an empty entry."""


class SeatBook(NamedTuple):
    """An account's positions as arrays.

    A seat is one of the planned positions of a portfolio. Entries for seats come first, followed by
    positions that lost their seat before they could be sold. ``column`` is :data:`EMPTY` for an
    empty entry. ``held`` and ``touched`` (the last session with a trade) have one value per name.
    ``money`` contains the cash and the value traded in the session. ``tally`` contains the number
    of positions, of entries in use, and of logged orders. ``log`` has rows (session, column, signed
    units), or no rows if trades are not logged. ``needs`` is a work array for margin calls.
    """

    column: Ints
    units: Floats
    last: Floats
    held: Bools
    touched: Ints
    money: Floats
    tally: Ints
    log: Floats
    needs: Floats


def blank_books(count: int, *, seats: int, names: int, cash: float, log: Floats) -> SeatBook:
    """Return ``count`` accounts that contain only cash, one per row of the arrays.

    All accounts share ``log``.
    """
    places = seats + names
    money = np.zeros((count, 2))
    money[:, 0] = cash
    return SeatBook(
        column=np.full((count, places), EMPTY),
        units=np.zeros((count, places)),
        last=np.zeros((count, places)),
        held=np.zeros((count, names), np.bool_),
        # Looked up by name more often than any other array, so it is small enough for the cache.
        touched=np.full((count, names), -1, np.int32),
        money=money,
        tally=np.zeros((count, 3), np.int64),
        log=log,
        needs=np.zeros(places),
    )


@inner
def whole_lots(units: float, lot: float) -> float:
    """Return a magnitude rounded down to whole lots, as the exchange rounds it.

    With tiny lots, a count beyond about 2 ** 33 may lose another lot when it is rounded again. The
    exchange rounds again, so the magnitude is rounded until it no longer changes.
    """
    if lot >= 1.0:
        return floor(units / lot + WHOLE) * lot
    per = round(1.0 / lot)
    rounded = floor(units * per + WHOLE) / per
    while rounded < units:
        units, rounded = rounded, floor(rounded * per + WHOLE) / per
    return rounded


@inner
def within(bound: float, lot: float) -> float:
    """Return the largest number of whole lots, in units, that does not exceed ``bound``.

    An infinite bound is returned unchanged.
    """
    if bound == np.inf:
        return bound
    fits = whole_lots(bound, lot) if bound > 0.0 else 0.0
    return fits - lot if fits > bound else fits


@inlined
def cash_change(
    units: float, price: float, multiplier: float, buying: bool, rules: TapeRules
) -> float:
    """Return a trade's change of cash: its value, fee and tax. ``units`` is unsigned."""
    value = units * price * multiplier
    fee = value * (rules.buy_bps if buying else rules.sell_bps) * BPS
    tax = 0.0 if buying else value * rules.tax_bps * BPS
    fee += units * rules.per_unit
    least = rules.minimum - tax if rules.minimum_covers_tax else rules.minimum
    fee = max(fee, least)
    return (-value if buying else value) - fee - tax


@inner
def slipped(reference: float, buying: bool, rules: TapeRules) -> float:
    """Return the price of a trade after slippage."""
    if rules.slip_bps == 0.0:
        return reference
    return (
        reference * (1.0 + rules.slip_bps * BPS)
        if buying
        else reference * (1.0 - rules.slip_bps * BPS)
    )


@inlined
def book_trade(
    book: SeatBook, at: int, t: int, change: float, cash: float, value: float, logged: bool
) -> None:
    """Apply a fill of ``change`` signed units to entry ``at``."""
    column = book.column[at]
    book.money[0] += cash
    book.money[1] += value
    if logged:
        if book.tally[2] < book.log.shape[0]:
            row = book.tally[2]
            book.log[row, 0] = t
            book.log[row, 1] = column
            book.log[row, 2] = change
        book.tally[2] += 1
    book.touched[column] = t
    if book.units[at] == 0.0:
        book.held[column] = True
        book.tally[0] += 1
        book.tally[1] = max(book.tally[1], at + 1)
    book.units[at] += change
    if book.units[at] == 0.0:
        clear(book, at)


@inlined
def clear(book: SeatBook, at: int) -> None:
    """Empty an entry and update the number of positions."""
    book.held[book.column[at]] = False
    book.column[at] = EMPTY
    book.units[at] = 0.0
    book.tally[0] -= 1


@inlined
def valued(book: SeatBook, t: int, which: int, tape: Tape) -> tuple[float, float]:
    """Return (equity, gross exposure) at a session's prices.

    ``which`` selects :data:`FILL` or :data:`MARK`. A name without that price is valued at its last
    mark.
    """
    equity, gross = book.money[0], 0.0
    for at in range(book.tally[1]):
        column = book.column[at]
        if column != EMPTY:
            price = tape.grid[t, column, which]
            worth = (
                book.units[at]
                * (price if price > 0.0 else book.last[at])
                * tape.facts[column, MULTIPLIER]
            )
            equity += worth
            gross += abs(worth)
    return equity, gross


@inlined
def shrink(book: SeatBook, at: int, t: int, units: float, tape: Tape, rules: TapeRules) -> None:
    """Reduce a position by an unsigned quantity, as far as the session allows.

    If ``units`` equals the position's size, the whole position is closed.
    """
    column = book.column[at]
    buying = book.units[at] < 0.0
    open_to = tape.grid[t, column, BUYABLE] if buying else tape.grid[t, column, SELLABLE]
    if not open_to:
        return
    reference = tape.grid[t, column, FILL]
    lot, multiplier = tape.facts[column, LOT], tape.facts[column, MULTIPLIER]
    held = abs(book.units[at])
    asked = held if held - units < 0.5 * tape.facts[column, STEP] else units
    if asked > tape.grid[t, column, ROOM]:
        asked = within(tape.grid[t, column, ROOM], lot)
    if asked <= 0.0 or (asked < held and asked * reference * multiplier < rules.min_value):
        return
    price = slipped(reference, buying, rules)
    cash = cash_change(asked, price, multiplier, buying, rules)
    if not rules.margin and book.money[0] + cash < 0.0:
        return
    change = asked if buying else -asked
    book_trade(book, at, t, change, cash, asked * price * multiplier, True)


@inlined
def largest(
    book: SeatBook,
    t: int,
    column: int,
    held: float,
    wanted: float,
    nav: float,
    tape: Tape,
    rules: TapeRules,
) -> float:
    """Return the largest number of units that an order may trade.

    ``wanted`` is the signed value of the order, ``held`` the signed holding.
    """
    reference = tape.grid[t, column, FILL]
    lot, multiplier = tape.facts[column, LOT], tape.facts[column, MULTIPLIER]
    unit = reference * multiplier
    bound = min(
        abs(wanted) / unit, tape.grid[t, column, ROOM], rules.max_weight * nav / unit - abs(held)
    )
    buying = wanted > 0.0
    if not buying:
        bound = min(bound, tape.grid[t, column, LENDABLE] - abs(held))
    units = within(bound, lot)
    if units <= 0.0 or (held == 0.0 and book.tally[0] >= rules.max_positions):
        return 0.0
    price = slipped(reference, buying, rules)
    units = carried(book, t, column, units, buying, tape, rules) if rules.margin else units
    if not rules.margin:
        units = paid(book.money[0], units, price * multiplier, lot, rules)
    return units if units * unit >= rules.min_value else 0.0


@inner
def paid(cash: float, units: float, unit: float, lot: float, rules: TapeRules) -> float:
    """Return how many of ``units`` the cash pays for, costs included, in whole lots."""
    if cash + cash_change(units, unit, 1.0, True, rules) >= 0.0:
        return units
    rate = rules.buy_bps * BPS
    most = min((cash - rules.minimum) / unit, cash / (unit * (1.0 + rate) + rules.per_unit), units)
    units = whole_lots(most, lot) if most > 0.0 else 0.0
    while units > 0.0 and cash + cash_change(units, unit, 1.0, True, rules) < 0.0:
        units = whole_lots(units - lot, lot)
    return max(units, 0.0)


@inner
def carried(
    book: SeatBook, t: int, column: int, units: float, buying: bool, tape: Tape, rules: TapeRules
) -> float:
    """Return how many of ``units`` the equity of a margin account supports.

    The function tries up to ten quantities, each about half of the previous one. It returns the
    first that meets the initial margin, or 0.
    """
    equity, gross = valued(book, t, FILL, tape)
    reference = tape.grid[t, column, FILL]
    lot, multiplier = tape.facts[column, LOT], tape.facts[column, MULTIPLIER]
    price = slipped(reference, buying, rules)
    for _ in range(10):
        value = units * price * multiplier
        costs = (-value if buying else value) - cash_change(units, price, multiplier, buying, rules)
        slip = units * abs(price - reference) * multiplier
        if equity - costs - slip >= rules.initial * (gross + units * reference * multiplier):
            return units
        units = whole_lots(units / 2.0, lot)
        if units <= 0.0:
            return 0.0
    return 0.0


@inner
def open_session(book: SeatBook, t: int, tape: Tape) -> None:
    """Apply dividends, splits and delistings before the open."""
    for at in range(book.tally[1]):
        column = book.column[at]
        if column == EMPTY:
            continue
        dividend = tape.grid[t, column, DIVIDEND]
        if dividend != 0.0:
            book.money[0] += dividend * book.units[at]
            book.last[at] = max(book.last[at] - dividend, 0.0)
        if tape.grid[t, column, SPLIT] != 1.0:
            split(book, at, tape.grid[t, column, SPLIT], tape.facts[column, STEP])
        if book.column[at] != EMPTY and tape.grid[t, column, GONE]:
            book.money[0] += book.units[at] * book.last[at] * tape.facts[column, MULTIPLIER]
            clear(book, at)


@inner
def split(book: SeatBook, at: int, ratio: float, step: float) -> None:
    """Apply a split to a holding. A remainder of less than one step is paid out in cash."""
    held, mark = book.units[at], book.last[at]
    per = round(1.0 / step) if step < 1.0 else 0
    count = abs(held) * ratio * per if per else abs(held) * ratio / step
    steps = floor(count * (1.0 + ROUNDING))
    whole = steps / per if per else steps * step
    if held < 0.0:
        whole = -whole
    if abs(held * ratio - whole) > 2.0 * ROUNDING * abs(held * ratio):
        book.money[0] += held * mark - whole * mark / ratio
    if whole == 0.0:
        clear(book, at)
        return
    book.units[at] = whole
    book.last[at] = mark / ratio


@inlined
def close_session(book: SeatBook, t: int, tape: Tape, rules: TapeRules) -> float:
    """Charge fees, call margin and mark the account. Return the account's NAV.

    Only margin accounts have charges and margin calls.
    """
    if rules.margin:
        charge(book, t, tape, rules)
        call_margin(book, t, tape, rules)
    nav = book.money[0]
    for at in range(book.tally[1]):
        column = book.column[at]
        if column != EMPTY:
            price = tape.grid[t, column, MARK]
            if price > 0.0:
                book.last[at] = price
            nav += book.units[at] * book.last[at] * tape.facts[column, MULTIPLIER]
    return float(nav)


@inner
def charge(book: SeatBook, t: int, tape: Tape, rules: TapeRules) -> None:
    """Charge borrow fees on short positions and interest on negative cash."""
    for at in range(book.tally[1]):
        column = book.column[at]
        if column != EMPTY and book.units[at] < 0.0:
            price = tape.grid[t, column, MARK]
            worth = (
                book.units[at]
                * (price if price > 0.0 else book.last[at])
                * tape.facts[column, MULTIPLIER]
            )
            book.money[0] += worth * rules.borrow
    if book.money[0] < 0.0:
        book.money[0] += book.money[0] * rules.interest


@inlined
def need(book: SeatBook, at: int, t: int, tape: Tape, rules: TapeRules) -> float:
    """Return the maintenance margin of one position, or 0 for an empty entry."""
    column = book.column[at]
    if column == EMPTY:
        return 0.0
    price = tape.grid[t, column, MARK]
    worth = (
        book.units[at] * (price if price > 0.0 else book.last[at]) * tape.facts[column, MULTIPLIER]
    )
    return float(
        worth * rules.maintenance_long if worth > 0.0 else -worth * rules.maintenance_short
    )


@inner
def shortfall(book: SeatBook, t: int, tape: Tape, rules: TapeRules) -> float:
    """Return the equity missing for the maintenance margin, or 0."""
    equity = valued(book, t, MARK, tape)[0]
    required = 0.0
    for at in range(book.tally[1]):
        required += need(book, at, t, tape, rules)
    return required - equity if equity < required - EQUAL * (abs(equity) + required) else 0.0


@inner
def call_margin(book: SeatBook, t: int, tape: Tape, rules: TapeRules) -> None:
    """Reduce positions until equity covers the maintenance margin, largest requirement first."""
    missing = shortfall(book, t, tape, rules)
    if missing <= 0.0:
        return
    needs = book.needs[: book.tally[1]]
    for at in range(needs.size):
        needs[at] = need(book, at, t, tape, rules)
    for _ in range(needs.size):
        at = int(np.argmax(needs))
        if needs[at] <= 0.0:
            return
        needs[at] = -1.0
        if not tape.grid[t, book.column[at], MARK] > 0.0:
            continue
        missing = shortfall(book, t, tape, rules)
        if missing <= 0.0:
            return
        liquidate(book, at, t, missing, tape, rules)


@inner
def liquidate(
    book: SeatBook, at: int, t: int, missing: float, tape: Tape, rules: TapeRules
) -> None:
    """Reduce a position at the marking price until ``missing`` of margin is freed.

    Trading limits do not apply.
    """
    column, held = book.column[at], book.units[at]
    buying, lot, multiplier = held < 0.0, tape.facts[column, LOT], tape.facts[column, MULTIPLIER]
    reference = tape.grid[t, column, MARK]
    unit = reference * multiplier
    rate = (rules.buy_bps if buying else rules.sell_bps + rules.tax_bps) * BPS
    costs = rate + abs(slipped(1.0, buying, rules) - 1.0)
    freed = unit * (rules.maintenance_short if buying else rules.maintenance_long) - unit * costs
    closing = abs(held)
    if freed > 0.0:
        closing = min(closing, ceil(missing / freed / lot) * lot)
    price = slipped(reference, buying, rules)
    cash = cash_change(closing, price, multiplier, buying, rules)
    book_trade(
        book, at, t, closing if buying else -closing, cash, closing * price * multiplier, False
    )
