"""The exchange's rounding, minimums and cuts against a plain account in decimals, on thousands
of orders.
"""

import ast
from pathlib import Path

import decimal_account
import msgspec
import numpy as np
import pytest
from decimal_account import RULES, DecimalAccount, Outcome, exact

from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.account import Exchange, Ledger, Lots, venues
from tradeassay_bench.core.events import Filled, Rejected, Trimmed
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import Board, CorporateAction, Instrument, SessionBars

ids = pytest.mark.parametrize("name", RULES)

PRICE = {"us-v1": 26.57, "us-fractional-v1": 333.0, "ashare-flat-v1": 9.87, "crypto-v1": 40_000.0}


def bars(day: int, price: float, volume: float, previous: float) -> SessionBars:
    def column(number: float) -> np.ndarray:
        return np.array([number])

    return SessionBars(
        f"{2000 + day // 336}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}",
        day,
        ("A",),
        (Instrument(symbol="A", board=Board.NONE),),
        *(column(price) for _ in range(4)),
        column(volume),
        column(volume * price),
        column(previous),
        np.array([True]),
    )


def drawn_order(
    rng: np.random.Generator, account: DecimalAccount, price: float, venue: str
) -> tuple:
    """Return unit, side and amount: odd numbers, hair's breadths around the holding, tiny and
    impossible sums.
    """
    lot = float(account.lot)
    held = float(account.held)
    unit = str(
        rng.choice(
            [
                "shares",
                "shares",
                "dollars",
                "dollars",
                "target_weight",
                "target_value",
                "target_shares",
            ]
        )
    )
    side = str(rng.choice(["BUY", "SELL"])) if unit in ("shares", "dollars") else None
    near = held + float(rng.choice([0, 0, 0, 0.3, -0.3, 0.6, -0.6, -1, -2, 1])) * float(
        account.step
    )
    many = float(rng.choice([0.5, 1, 1.5, 3, 17, 250, 4000])) * lot
    if venue == "crypto-v1":
        many = float(np.round(rng.choice([1e-8, 2.5e-5, 0.1, 0.2, 0.3, 1.25]), 8))
    shares = near if rng.random() < 0.5 and near > 0 else many
    amount = {
        "shares": round(shares, 10),
        "dollars": round(shares * price, int(rng.choice([0, 2, 2, 4]))),
        "target_weight": float(rng.choice([0.0, 0.05, 0.1, 0.33, 0.5, 1.0])),
        "target_value": round(float(rng.choice([0.0, 0.4, 0.9, 1.0])) * (held or many) * price, 2),
        "target_shares": round(shares if rng.random() < 0.8 else 0.0, 10),
    }[unit]
    return unit, side, max(amount, 0.01) if side else amount


def differences(name: str, sessions: int, seed: int) -> tuple[int, set[str]]:
    """Play random sessions; return how many orders were compared, and every outcome that
    occurred.
    """
    rng = np.random.default_rng(seed)
    venue = venues.get(name)
    cash = float(rng.choice([0.5, 30.0, 1_000.0, 99.99, 100_000.0]))
    exchange, ledger, plain = (
        Exchange(venue),
        Ledger(cash, terms=venue.terms),
        DecimalAccount(name, cash),
    )
    price, compared, outcomes = PRICE[name], 0, set[str]()
    for day in range(sessions):
        plain.new_session()
        previous = price
        actions = []
        if name == "ashare-flat-v1" and plain.held and rng.random() < 0.2:
            ratio = float(rng.choice([1.15, 1.3, 0.5]))
            actions = [
                CorporateAction(symbol="A", kind="split", ex_date="", known_at=0, value=ratio)
            ]
            plain.split(ratio)
        price = round(max(price * float(np.exp(rng.normal(0, 0.02))), 0.05), 2)
        volume = float(rng.choice([0.0, 3.0, 95.0, 4_321.0, 1e7])) * (
            1e-4 if name == "crypto-v1" else 1.0
        )
        session = bars(day, price, volume, previous)
        exchange.open_session(session, actions, ledger)
        for number in range(int(rng.integers(1, 4))):
            unit, side, amount = drawn_order(rng, plain, price, name)
            held, where = (
                plain.held,
                f"{name} {seed} {day}.{number}: {side} {amount} {unit} at {price}, held "
                f"{plain.held}",
            )
            order = Order(symbol="A", amount=amount, unit=unit, side=side)
            if amount == 0 and held == 0:
                continue
            wanted = plain.order(unit, side, amount, price, volume)
            events = exchange.execute([(f"{day}.{number}", order)], session, ledger)
            assert outcome(events) == close_to(wanted), f"{where}: cash {plain.cash}"
            assert ledger.cash == pytest.approx(float(plain.cash), rel=1e-9, abs=1e-9), where
            outcomes.add(wanted.refused or "filled")
            outcomes.update(f"cut: {reason}" for reason, _, _ in wanted.cuts)
            compared += 1
        plain.mark = exact(price)
        exchange.close_session(session, ledger)
        assert ledger.quantity("A") == pytest.approx(
            float(plain.held), rel=1e-12, abs=float(plain.step) / 1000
        ), where
    return compared, outcomes


def close_to(outcome: Outcome) -> tuple:
    """Quantities to ten decimals: below a hundredth of the smallest step there is."""
    cuts = tuple(
        (reason, short(float(asked)), short(float(done))) for reason, asked, done in outcome.cuts
    )
    return short(float(outcome.filled)), outcome.refused, cuts


def short(quantity: float) -> float:
    return round(abs(quantity), 9)


def outcome(events: list) -> tuple:
    filled, refused, cuts = 0.0, None, []
    for event in events:
        match event:
            case Filled():
                filled += short(event.quantity)
            case Rejected():
                refused = event.reason
            case Trimmed():
                cuts.append((event.reason, short(event.asked), short(event.filled)))
    return filled, refused, tuple(cuts)


@ids
def test_random_orders_become_what_the_pages_say(name):
    compared, outcomes = 0, set()
    for seed in range(60):
        orders, found = differences(name, 20, seed)
        compared += orders
        outcomes |= found
    assert compared > 1_500
    expected = {
        "filled",
        "no_change",
        "lot",
        "no_volume",
        "insufficient_cash",
        "insufficient_shares",
        "no_shorting",
    }
    expected |= {"cut: no_volume", "cut: insufficient_cash"}
    if RULES[name].cuts_odd:
        expected.add("cut: lot")
    if name == "crypto-v1":
        expected.add("below_minimum")
    if name == "ashare-flat-v1":
        expected.add("t_plus_1")
    assert outcomes >= expected


@pytest.mark.slow
@ids
def test_tens_of_thousands_of_orders_become_what_the_pages_say(name):
    assert sum(differences(name, 40, seed)[0] for seed in range(1_000, 1_500)) > 25_000


def test_the_decimal_account_imports_nothing_that_books_money():
    tree = syntax_tree(Path(decimal_account.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    ]
    assert not [module for module in modules if str(module).startswith("tradeassay")]


def test_a_lot_that_is_a_hundredth_larger_is_found(monkeypatch):
    """The comparison can fail."""
    venue = venues.get("us-fractional-v1")
    wrong = msgspec.structs.replace(venue, lots=Lots(lot=0.000101, step=0.000101, on_odd="trim"))
    monkeypatch.setattr(venues, "get", lambda name: wrong)
    with pytest.raises(AssertionError):
        differences(venue.id, 40, 1)
