"""A-share rules have dates: what was bought, sold and taxed on a day follows that day's rules."""

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.account import (
    ASHARE,
    ASHARE_DATED,
    BUILTIN,
    Era,
    Exchange,
    Ledger,
    Margin,
    Venue,
    venues,
)
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.events import Event, Filled
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import Board, Instrument, SessionBars


def session(
    day: str, board: Board, change: float, *, special: bool = False, first_row: int = 0
) -> SessionBars:
    """One name with a previous close of 10 that opens and stays at a change from it."""
    price, many = np.array([10.0 * (1.0 + change)]), np.array([1e9])
    about = (np.array([one]) for one in (10.0, True, first_row, special))
    names = (Instrument(symbol="A", board=board, lot=100.0),)
    return SessionBars(day, 9, ("A",), names, *[price] * 4, many, many, *about)


def traded(venue: Venue, account: Ledger, bars: SessionBars, amount: float, **how: str) -> Event:
    """Send one order for A in a session of its own, and return what came of it first."""
    exchange = Exchange(venue)
    exchange.open_session(bars, (), account)
    events = exchange.execute([("a", Order(symbol="A", amount=amount, **how))], bars, account)
    exchange.close_session(bars, account)
    return events[0]


def buys(venue: Venue, bars: SessionBars) -> bool:
    event = traded(venue, Ledger(1e6, terms=venue.terms), bars, 100.0, side="BUY")
    assert isinstance(event, Filled) or event.reason == "limit_up"
    return isinstance(event, Filled)


@pytest.mark.parametrize(
    ("day", "board", "change", "special", "bought"),
    [
        ("1996-12-13", Board.MAIN, 0.40, False, True),
        ("1996-12-16", Board.MAIN, 0.10, False, False),
        ("1998-04-21", Board.MAIN, 0.05, True, True),
        ("1998-04-22", Board.MAIN, 0.05, True, False),
        ("2020-08-21", Board.CHINEXT, 0.10, False, False),
        ("2020-08-24", Board.CHINEXT, 0.10, False, True),
        ("2020-08-24", Board.CHINEXT, 0.20, False, False),
        ("2020-08-21", Board.CHINEXT, 0.05, True, False),
        ("2020-08-24", Board.CHINEXT, 0.05, True, True),
        ("2019-07-22", Board.STAR, 0.15, False, True),
        ("2019-07-22", Board.STAR, 0.20, False, False),
        ("2021-11-15", Board.BSE, 0.25, False, True),
        ("2021-11-15", Board.BSE, 0.30, False, False),
        ("2026-07-03", Board.MAIN, 0.05, True, False),
        ("2026-07-06", Board.MAIN, 0.05, True, True),
        ("2026-07-06", Board.MAIN, 0.10, True, False),
        ("2024-01-02", Board.NONE, 0.90, False, True),
    ],
)
def test_limits_of_the_day(day, board, change, special, bought):
    assert buys(ASHARE_DATED, session(day, board, change, special=special)) is bought


@pytest.mark.parametrize(
    ("day", "board", "first_row", "bought"),
    [
        ("2023-04-07", Board.MAIN, 8, False),  # its second session; only the first was free
        ("2023-04-10", Board.MAIN, 8, True),
        ("2023-04-10", Board.MAIN, 5, True),  # its fifth
        ("2023-04-10", Board.MAIN, 4, False),
        ("2023-04-10", Board.MAIN, 0, False),  # listed before the data begins, for all we know
        ("2020-08-21", Board.CHINEXT, 8, False),
        ("2020-08-24", Board.CHINEXT, 8, True),
        ("2019-07-23", Board.STAR, 8, True),
        ("2021-11-16", Board.BSE, 8, False),
    ],
)
def test_new_listings(day, board, first_row, bought):
    assert buys(ASHARE_DATED, session(day, board, 0.40, first_row=first_row)) is bought


@pytest.mark.parametrize(
    ("day", "bought", "sold"),
    [
        ("1992-06-12", 30, 30),
        ("1997-05-12", 50, 50),
        ("1998-06-12", 40, 40),
        ("2001-11-16", 20, 20),
        ("2005-01-24", 10, 10),
        ("2007-05-29", 10, 10),
        ("2007-05-30", 30, 30),
        ("2008-04-24", 10, 10),
        ("2008-09-18", 10, 10),
        ("2008-09-19", 0, 10),
        ("2023-08-25", 0, 10),
        ("2023-08-28", 0, 5),
    ],
)
def test_stamp_duty_of_the_day(day, bought, sold):
    account = Ledger(1e6, terms=ASHARE_DATED.terms)
    buy = traded(ASHARE_DATED, account, session(day, Board.MAIN, 0.0), 10_000.0, side="BUY")
    sale = traded(ASHARE_DATED, account, session(day + "x", Board.MAIN, 0.0), 10_000.0, side="SELL")
    assert buy.tax == pytest.approx(100_000 * bought / 1e4)
    assert sale.tax == pytest.approx(100_000 * sold / 1e4)
    assert buy.fee == sale.fee == pytest.approx(50.0)
    told = ASHARE_DATED.rules(day=day)
    assert (told.buy_cost, told.sell_cost) == pytest.approx(((5 + bought) / 1e4, (5 + sold) / 1e4))


def test_cash_is_spent_with_the_tax_on_purchases():
    account = Ledger(100_000.0, terms=ASHARE_DATED.terms)
    bought = traded(
        ASHARE_DATED, account, session("2007-06-01", Board.MAIN, 0.0), 1.0, unit="target_weight"
    )
    # 35 bp on top of 9,900 shares at 10 is 99,346.50; on 10,000 it would be 100,350.
    assert bought.quantity == 9_900.0
    assert account.cash == pytest.approx(100_000 - 99_346.5)


def test_the_flat_venues_did_not_move():
    assert buys(ASHARE, session("2020-08-21", Board.CHINEXT, 0.15))
    assert all(venue.eras is msgspec.UNSET for venue in BUILTIN if venue is not ASHARE_DATED)
    assert b"eras" not in msgspec.json.encode(ASHARE)
    assert b"buy_tax_bps" not in msgspec.json.encode(ASHARE)
    assert venues.get("ashare-v1") is ASHARE_DATED


def test_eras_are_in_order_and_for_cash_accounts():
    fees = ASHARE.fees
    eras = (Era(start="2020-01-01", fees=fees), Era(start="2010-01-01", fees=fees))
    with pytest.raises(UserError, match="not in order"):
        Venue(id="x", title="x", currency="CNY", eras=eras)
    with pytest.raises(UserError, match="margin"):
        Venue(id="x", title="x", currency="CNY", eras=eras[:1], margin=Margin())


def test_benchmarks_play_each_day_under_its_own_rules_and_the_paper_under_flat_ones():
    """A purchase at +15 % and a sale for 100,000, worked by hand, on the venues that the
    benchmarks name.
    """
    used = {
        one: venues.get(benchmarks.get(f"{one}-v1").market.venue)
        for one in ("ktdfin", "daily-ashare")
    }
    paper = venues.get(benchmarks.get("ktdfin-paper-v1").market.venue)
    for venue in used.values():
        assert not buys(venue, session("2019-03-01", Board.CHINEXT, 0.15)), "10 % in 2019"
        assert buys(venue, session("2020-08-24", Board.CHINEXT, 0.15)), "20 % from 2020-08-24 on"
        # 5 bp of commission on 100,000 are 50; the duty is 10 bp, 5 bp from 2023-08-28 on.
        assert [sold_for(venue, day) for day in ("2023-08-25", "2023-08-28")] == [
            99_850.0,
            99_900.0,
        ]
    assert buys(paper, session("2019-03-01", Board.CHINEXT, 0.15))
    assert [sold_for(paper, day) for day in ("2023-08-25", "2023-08-28")] == [99_850.0, 99_850.0]


def sold_for(venue: Venue, day: str) -> float:
    """Return the money that 10,000 shares at 10 bring."""
    account = Ledger(1e6, terms=venue.terms)
    traded(venue, account, session("2019-01-02", Board.MAIN, 0.0), 10_000.0, side="BUY")
    cash = account.cash
    assert isinstance(
        traded(venue, account, session(day, Board.MAIN, 0.0), 10_000.0, side="SELL"), Filled
    )
    return round(account.cash - cash, 6)
