"""The shipped checker must find what it looks for: one rule broken at a time."""

import ast
from pathlib import Path

import pytest
from candles import plain

from tradeassay.account import (
    ASHARE,
    US,
    US_MARGIN,
    Cash,
    Fees,
    Lots,
    Participation,
    PriceLimits,
    Settlement,
    Shorting,
    Slippage,
    audit,
    end_of_day,
    exchange,
)
from tradeassay.core.errors import UserError
from tradeassay.core.events import Marked, Rejected
from tradeassay.core.syntax import syntax_tree
from tradeassay.testing import CheckFailed, check_exchange


def asks_nothing(policy, ticket, session):
    return None


def takes_nothing(policy, ticket, session):
    ticket.fee, ticket.tax, ticket.cash = 0.0, 0.0, -ticket.signed(ticket.quantity) * ticket.price


def says_nothing(self, ticket, refusal, session, events):
    events.append(Rejected(ticket.id, ticket.symbol, refusal.reason, ""))


BREAKS = {
    "at or beyond its limit": (ASHARE, PriceLimits, "gate", asks_nothing),
    "bought the same day|sellable": (ASHARE, Settlement, "gate", asks_nothing),
    "not a multiple": (ASHARE, Lots, "gate", asks_nothing),
    "is allowed": (US, Participation, "gate", asks_nothing),
    "held|sellable": (US, Shorting, "gate", asks_nothing),
    "better than its reference": (US, Slippage, "price", lambda policy, price, *rest: price * 0.9999),
    "of slippage, the venue takes": (US, Slippage, "price", lambda policy, price, *rest: price * 1.01),
    "without a": (US_MARGIN, end_of_day, "call_margin", lambda *rest: None),
    "without a margin call": (US_MARGIN, end_of_day, "_short", lambda *rest: False),
    "the venue takes": (US, Cash, "gate", takes_nothing),
    "silently dropped": (US, exchange.Exchange, "_refuse", lambda *rest: None),
    "without a word": (US, exchange.Exchange, "_refuse", says_nothing),
    "NAV": (US, end_of_day, "Marked", lambda cash, worth, nav, *rest: Marked(cash, worth, nav + 1, *rest)),
}


@pytest.mark.parametrize("complaint", BREAKS)
def test_a_broken_rule_is_named(monkeypatch, complaint):
    venue, target, name, broken = BREAKS[complaint]
    monkeypatch.setattr(target, name, broken)
    with pytest.raises(CheckFailed, match=complaint):
        check_exchange(venue)


def test_a_venue_that_never_fills_is_found():
    with pytest.raises(CheckFailed, match="filled none"):
        check_exchange(plain(lots=Lots(lot=1e12)), seeds=(0,))


def test_a_venue_is_found_by_name_and_a_stranger_passes():
    check_exchange("us-v1", seeds=(5,))
    check_exchange(plain(fees=Fees(buy_bps=20, per_unit=0.01), id="stranger-v1"), seeds=(0,))
    with pytest.raises(UserError, match="no venue"):
        check_exchange("nowhere-v1")


def test_the_auditor_shares_no_code_with_what_it_audits():
    tree = syntax_tree(Path(audit.__file__).read_text())
    taken = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
    ours = {name for name in taken if name.startswith("tradeassay")}
    assert ours and all(name.startswith("tradeassay.core.") for name in ours)
