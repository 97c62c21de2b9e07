"""What happens to holdings before the open: dividends, splits, delistings.

Dividends come first and count per share held before a split of the same day. None of this changes NAV:
a dividend moves money from the mark to cash, a split changes the unit, a delisting pays out the mark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import floor

from tradeassay.account.end_of_day import emit
from tradeassay.account.lots import Lots
from tradeassay.account.session import Session
from tradeassay.core.events import Delisted, DividendPaid, Event, SplitApplied
from tradeassay.core.instruments import CorporateAction

ROUNDING = 1e-12
"""A relative difference below this comes from float arithmetic. It lies far below the ledger's tolerance; the
rounding of a vendor's ratio (0.3333333 for a third) lies above it and is paid for."""


def apply_actions(
    actions: Sequence[CorporateAction],
    delisted: Collection[str],
    lots: Lots,
    session: Session,
    events: list[Event],
) -> None:
    account = session.account
    for action in actions:
        if action.kind == "dividend":
            quantity = account.quantity(action.symbol)
            if quantity != 0.0:
                paid = DividendPaid(action.symbol, action.value, quantity, action.value * quantity)
                emit(paid, account, events)
    for action in actions:
        if action.kind == "split" and account.quantity(action.symbol) != 0.0:
            emit(_split(action, lots, session), account, events)
    if delisted:
        for symbol in account.held():
            if symbol in delisted:
                emit(_payout(symbol, session), account, events)


def _split(action: CorporateAction, lots: Lots, session: Session) -> SplitApplied:
    """Return the split of a holding: the whole steps, and the value of the rest in cash.

    Always rounded down, so that a holder of shares is paid and never debited (a short seller pays).
    """
    symbol, ratio = action.symbol, action.value
    account = session.account
    step = lots.step_of(session.bars.instruments[session.columns[symbol]])
    held, mark = account.quantity(symbol), account.mark(symbol)
    whole = _whole_steps(abs(held) * ratio, step)
    if held < 0.0:
        whole = -whole
    if abs(held * ratio - whole) <= 2.0 * ROUNDING * abs(held * ratio):
        return SplitApplied(symbol, ratio, whole, 0.0)
    # Value before minus value after, as the ledger adds it up.
    return SplitApplied(symbol, ratio, whole, held * mark - whole * mark / ratio)


def _whole_steps(quantity: float, step: float) -> float:
    per = round(1.0 / step) if step < 1.0 else 0
    count = quantity * per if per else quantity / step
    steps = floor(count * (1.0 + ROUNDING))
    return steps / per if per else steps * step


def _payout(symbol: str, session: Session) -> Delisted:
    instrument = session.bars.instruments[session.columns[symbol]]
    quantity, price = session.account.quantity(symbol), session.account.mark(symbol)
    # A future's gains are in cash already.
    cash = 0.0 if instrument.kind == "future" else quantity * price * instrument.multiplier
    return Delisted(symbol, quantity, price, cash)
