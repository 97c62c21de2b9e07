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


@pytest.mark.parametrize(
    ("venue", "target", "name", "broken", "complaint"),
    [
        (ASHARE, PriceLimits, "gate", asks_nothing, "at or beyond its limit"),
        (ASHARE, Settlement, "gate", asks_nothing, "bought the same day|sellable"),
        (ASHARE, Lots, "gate", asks_nothing, "not a multiple"),
        (US, Participation, "gate", asks_nothing, "is allowed"),
        (US, Shorting, "gate", asks_nothing, "held|sellable"),
        (
            US,
            Slippage,
            "price",
            lambda policy, price, buying, limit=None: price * 0.9999,
            "better than its reference",
        ),
        (US, Slippage, "price", lambda policy, price, *a, **b: price * 1.01, "of slippage, the venue takes"),
        (US_MARGIN, end_of_day, "call_margin", lambda *a: None, "without a"),
        (US_MARGIN, end_of_day, "_short", lambda *a: False, "without a"),
    ],
)
def test_a_broken_rule_is_named(monkeypatch, venue, target, name, broken, complaint):
    monkeypatch.setattr(target, name, broken)
    with pytest.raises(CheckFailed, match=complaint):
        check_exchange(venue)


def test_free_trades_are_found(monkeypatch):
    def free(policy, ticket, session):
        ticket.fee, ticket.tax, ticket.cash = 0.0, 0.0, -ticket.signed(ticket.quantity) * ticket.price
        return None

    monkeypatch.setattr(Cash, "gate", free)
    with pytest.raises(CheckFailed, match="the venue takes"):
        check_exchange(US)


def test_a_silent_refusal_is_found(monkeypatch):
    monkeypatch.setattr(exchange.Exchange, "_refuse", lambda *a: None)
    with pytest.raises(CheckFailed, match="silently dropped"):
        check_exchange(US)


def test_a_refusal_without_words_is_found(monkeypatch):
    def mute(self, ticket, refusal, session, events):
        events.append(Rejected(ticket.id, ticket.symbol, refusal.reason, ""))

    monkeypatch.setattr(exchange.Exchange, "_refuse", mute)
    with pytest.raises(CheckFailed, match="without a word"):
        check_exchange(US)


def test_a_wrong_mark_is_found(monkeypatch):
    monkeypatch.setattr(
        end_of_day, "Marked", lambda cash, positions, nav, *rest: Marked(cash, positions, nav + 1, *rest)
    )
    with pytest.raises(CheckFailed, match="NAV"):
        check_exchange(US)


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
