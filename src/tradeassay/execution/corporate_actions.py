"""What happens to holdings before the open: dividends, splits, delistings.

Dividends come first and count per share held before a split of the same day. None of this changes NAV:
a dividend moves money from the mark to cash, a split changes the unit, a delisting pays out the mark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tradeassay.core.events import Delisted, DividendPaid, Event, SplitApplied
from tradeassay.core.instruments import CorporateAction
from tradeassay.execution.emitting import emit
from tradeassay.execution.lots import Lots, floor_to
from tradeassay.execution.session import Session

NO_FRACTION = 1e-6
"""A fraction below this part of a step is rounding of the ratio, not a fraction of a share."""


def apply_actions(
    actions: Sequence[CorporateAction],
    delisted: Collection[str],
    lots: Lots,
    session: Session,
    events: list[Event],
) -> None:
    """Apply a session's actions to what the account holds."""
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
    """Return the split of a holding; what is smaller than a step is paid out at the price after the split."""
    symbol, ratio = action.symbol, action.value
    account = session.account
    step = lots.step_of(session.bars.instruments[session.columns[symbol]])
    exact = account.quantity(symbol) * ratio
    whole = floor_to(abs(exact), step)
    if exact < 0.0:
        whole = -whole
    fraction = exact - whole
    cash = 0.0 if abs(fraction) <= NO_FRACTION * step else fraction * account.mark(symbol) / ratio
    return SplitApplied(symbol, ratio, whole, cash)


def _payout(symbol: str, session: Session) -> Delisted:
    instrument = session.bars.instruments[session.columns[symbol]]
    quantity, price = session.account.quantity(symbol), session.account.mark(symbol)
    # A future's gains are in cash already.
    cash = 0.0 if instrument.kind == "future" else quantity * price * instrument.multiplier
    return Delisted(symbol, quantity, price, cash)
