"""The shipped checker must find what it looks for: one rule broken at a time."""

import ast
from pathlib import Path

import pytest
from candles import plain, play
from exchange_checker import check_exchange

from tradeassay.core.errors import UserError
from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.account import (
    ASHARE,
    CRYPTO,
    US,
    US_MARGIN,
    Cash,
    Concentration,
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
from tradeassay_bench.account.session import Refusal
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.core.events import Marked, Rejected


def asks_nothing(policy, ticket, session):
    return None


def takes_nothing(policy, ticket, session):
    ticket.fee, ticket.tax, ticket.cash = 0.0, 0.0, -ticket.signed(ticket.quantity) * ticket.price


def rounds_up(policy, ticket, lot):
    if ticket.explicit:
        return Refusal("lot", "odd")
    ticket.quantity = -(-ticket.quantity // lot) * lot


def says_nothing(self, ticket, refusal, session, events):
    events.append(Rejected(ticket.id, ticket.symbol, refusal.reason, ""))


BREAKS = {
    "at or beyond its limit": (ASHARE, PriceLimits, "gate", asks_nothing),
    "bought the same day|sellable": (ASHARE, Settlement, "gate", asks_nothing),
    "not a multiple": (ASHARE, Lots, "gate", asks_nothing),
    "was filled for .* the venue's minimum": (CRYPTO, Lots, "is_too_small", lambda *rest: False),
    "is for .* of money": (US, Lots, "_round", rounds_up),
    "is allowed": (US, Participation, "gate", asks_nothing),
    "held|sellable": (US, Shorting, "gate", asks_nothing),
    "better than its reference": (
        US,
        Slippage,
        "price",
        lambda policy, price, *rest: price * 0.9999,
    ),
    "of slippage, expected": (
        US,
        Slippage,
        "price",
        lambda policy, price, *rest: price * 1.01,
    ),
    "without a": (US_MARGIN, end_of_day, "call_margin", lambda *rest: None),
    "without a margin call": (US_MARGIN, end_of_day, "_short", lambda *rest: False),
    "tax, expected": (US, Cash, "gate", takes_nothing),
    "silently dropped": (US, exchange.Exchange, "_refuse", lambda *rest: None),
    "without an explanation": (US, exchange.Exchange, "_refuse", says_nothing),
    "NAV": (
        US,
        end_of_day,
        "Marked",
        lambda cash, worth, nav, *rest: Marked(cash, worth, nav + 1, *rest),
    ),
}


@pytest.mark.parametrize("complaint", BREAKS)
def test_a_broken_rule_is_named(monkeypatch, complaint):
    venue, target, name, broken = BREAKS[complaint]
    monkeypatch.setattr(target, name, broken)
    with pytest.raises(CheckFailed, match=complaint):
        check_exchange(venue)


@pytest.mark.parametrize(("own", "episode"), [(0.1, None), (0.1, 0.5), (0.5, 0.1), (None, 0.1)])
def test_the_stricter_limit_of_the_venue_and_the_episode_is_audited(own, episode):
    tape = play("2024-01-02 | A 10 10 10 10 1000 | a A to 30% | fill a A +300 @10 cash -3000.00")
    venue, (record,) = plain(concentration=Concentration(max_weight=own)), tape.records
    day = audit.AuditDay(venue, tape.bars, max_weight=episode)
    found = audit.Auditor(10_000.0).session(day, {"a": record.decision.orders[0]}, record.events)
    assert [finding.check for finding in found] == ["concentration"]


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
    assert ours and all(name.split(".")[1] == "core" for name in ours)
