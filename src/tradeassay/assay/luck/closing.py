"""Before the open and after the close, in compiled code: corporate actions, charges, margin calls, marks."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from tradeassay.assay.luck.compiled import inner
from tradeassay.assay.luck.rules import Rules
from tradeassay.assay.luck.tape import DIVIDEND, GONE, LOT, MARK, MULTIPLIER, SPLIT, STEP, Tape
from tradeassay.assay.luck.trading import BPS, EMPTY, Book, book_trade, cash_change, clear, slipped, valued

ROUNDING = 1e-12
BELOW = 1e-9


@inner
def open_session(book: Book, t: int, tape: Tape) -> None:
    """Apply dividends, splits and delistings to what is held."""
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
def split(book: Book, at: int, ratio: float, step: float) -> None:
    """Multiply a holding; what is less than a step is paid out."""
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


@inner
def close_session(book: Book, t: int, tape: Tape, rules: Rules) -> float:
    """Charge what is borrowed, call margin, mark; return NAV."""
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
def charge(book: Book, t: int, tape: Tape, rules: Rules) -> None:
    """Take one session's borrow fees and interest."""
    for at in range(book.tally[1]):
        column = book.column[at]
        if column != EMPTY and book.units[at] < 0.0:
            price = tape.grid[t, column, MARK]
            worth = book.units[at] * (price if price > 0.0 else book.last[at]) * tape.facts[column, MULTIPLIER]
            book.money[0] += worth * rules.borrow
    if book.money[0] < 0.0:
        book.money[0] += book.money[0] * rules.interest


@inner
def need(book: Book, at: int, t: int, tape: Tape, rules: Rules) -> float:
    """Return the maintenance requirement of one place."""
    column = book.column[at]
    if column == EMPTY:
        return 0.0
    price = tape.grid[t, column, MARK]
    worth = book.units[at] * (price if price > 0.0 else book.last[at]) * tape.facts[column, MULTIPLIER]
    return float(worth * rules.maintenance_long if worth > 0.0 else -worth * rules.maintenance_short)


@inner
def shortfall(book: Book, t: int, tape: Tape, rules: Rules) -> float:
    """Return how much equity is missing for the maintenance margin; 0 when nothing is."""
    equity = valued(book, t, MARK, tape)[0]
    required = 0.0
    for at in range(book.tally[1]):
        required += need(book, at, t, tape, rules)
    return required - equity if equity < required - BELOW * (abs(equity) + required) else 0.0


@inner
def call_margin(book: Book, t: int, tape: Tape, rules: Rules) -> None:
    """Close positions, the one with the largest requirement first, until equity suffices."""
    missing = shortfall(book, t, tape, rules)
    if missing <= 0.0:
        return
    needs = np.array([need(book, at, t, tape, rules) for at in range(book.tally[1])])
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
def liquidate(book: Book, at: int, t: int, missing: float, tape: Tape, rules: Rules) -> None:
    """Close as much of a position as frees ``missing``, at the mark, limits aside."""
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
    book_trade(book, at, t, closing if buying else -closing, cash, closing * price * multiplier, False)
