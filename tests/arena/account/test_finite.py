"""Money is finite: whatever number an order or a bar holds, it is a rejection or a fill with
finite sums.
"""

from dataclasses import replace
from math import inf, isfinite, nan

import msgspec
import numpy as np
import pytest
from exchange_checker import rough_market
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.arena.account.booking_chain import follow

from tradeassay_arena.daily_target import DailyTarget, SharedTarget
from tradeassay_bench.account import BUILTIN, US, US_MARGIN, Exchange, Ledger
from tradeassay_bench.account.audit import AuditDay, Auditor
from tradeassay_bench.core.errors import LedgerError, NotFinite
from tradeassay_bench.core.events import (
    Delisted,
    DividendPaid,
    Filled,
    InterestCharged,
    MarginCalled,
    Marked,
    Rejected,
    SplitApplied,
)
from tradeassay_bench.core.orders import LARGEST, LARGEST_PRICE, LEAST_PRICE, Order

CASH = 100_000.0
SESSIONS = 4
_ODD = """nan inf -inf 0.0 -0.0 5e-324 -5e-324 1e-308 2.3e-308 1e-300 1e-12 1e12 1e15 1e16 1e155 1.7e308 -1.7e308
    1.7976931348623157e308"""
SPECIAL = [*map(float, _ODD.split()), LARGEST, -LARGEST, 2.0**53 + 2]
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(), st.floats(min_value=-1e6, max_value=1e6))
ids = pytest.mark.parametrize("venue", BUILTIN, ids=lambda venue: venue.id)

QUIET = next(s.bars for s in rough_market(np.random.default_rng(0), 9) if s.bars.trading[0])


@st.composite
def orders(draw: st.DrawFn) -> Order:
    kind = draw(st.sampled_from(["market", "limit", "stop"]))
    return Order(
        symbol=draw(st.sampled_from(["S0", "S1", "S3"])),
        amount=draw(numbers),
        unit=draw(
            st.sampled_from(["shares", "dollars", "target_weight", "target_value", "target_shares"])
        ),
        side=draw(st.sampled_from(["BUY", "SELL", None])),
        kind=kind,
        limit_price=draw(numbers) if kind == "limit" else None,
        stop_price=draw(numbers) if kind == "stop" else None,
        tif=draw(st.sampled_from(["day", "gtc"])),
    )


def finite(event: msgspec.Struct) -> bool:
    plain = msgspec.structs.asdict(event)
    found = [*plain.values(), *plain.get("marks", {}).values()]
    return all(isfinite(value) for value in found if isinstance(value, float))


spoilers = st.tuples(
    st.integers(0, SESSIONS - 1),
    st.integers(0, 8),
    st.sampled_from(["open", "high", "low", "close", "volume", "prev_close"]),
    numbers,
)
given_anything = given(
    stream=st.lists(st.lists(orders(), max_size=5), min_size=SESSIONS, max_size=SESSIONS),
    spoilt=st.lists(spoilers, max_size=8),
    seed=st.integers(0, 1000),
    fill=st.sampled_from(["open", "close"]),
)


def play_anything(venue, stream, spoilt, seed, fill):
    exchange, ledger = Exchange(venue), Ledger(CASH, terms=venue.terms)
    market = rough_market(np.random.default_rng(seed), SESSIONS)
    for step, (session, batch) in enumerate(zip(market, stream, strict=True)):
        changed = {
            name: getattr(session.bars, name).copy()
            for name in ("open", "high", "low", "close", "volume")
        }
        changed |= {"prev_close": session.bars.prev_close.copy()}
        for when, column, name, value in spoilt:
            if when == step and column < len(session.bars.symbols):
                changed[name][column] = value
        bars = replace(session.bars, **changed)
        events = exchange.open_session(bars, session.actions, ledger, delisted=session.delisted)
        placed = [(f"{step}.{number}", order) for number, order in enumerate(batch)]
        events += exchange.execute(placed, bars, ledger, fill=fill)
        events += exchange.close_session(bars, ledger)
        assert [event for event in events if not finite(event)] == []
        assert isfinite(ledger.nav())
        assert all(
            isfinite(number)
            for one in ledger.state().positions.values()
            for number in (one.cost, one.mark)
        )


@ids
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given_anything
def test_no_float_makes_a_sum_that_is_not_finite(venue, stream, spoilt, seed, fill):
    play_anything(venue, stream, spoilt, seed, fill)


@pytest.mark.slow
@ids
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given_anything
def test_no_float_of_many_makes_a_sum_that_is_not_finite(venue, stream, spoilt, seed, fill):
    play_anything(venue, stream, spoilt, seed, fill)


@ids
@pytest.mark.parametrize(
    "unit", ["shares", "dollars", "target_weight", "target_value", "target_shares"]
)
def test_an_absurd_size_is_a_rejection_with_a_reason(venue, unit):
    bars = replace(QUIET, volume=np.full_like(QUIET.volume, nan))
    for amount in (nan, inf, -inf, 1.7e308, -1.7e308, 2.0**53 + 2, 5e-324, -1e-308, 10**400):
        exchange, ledger = Exchange(venue), Ledger(CASH, terms=venue.terms)
        exchange.open_session(bars, (), ledger)
        order = Order(symbol="S0", amount=amount, unit=unit, side="BUY")
        (event,) = exchange.execute([("a", order)], bars, ledger)
        assert isinstance(event, Rejected) and event.reason == "bad_amount", amount
        assert event.detail
        assert ledger.cash == CASH


@pytest.mark.parametrize("kind", ["limit", "stop"])
@pytest.mark.parametrize("unit", ["shares", "dollars", "target_weight"])
def test_an_absurd_price_is_a_rejection_with_a_reason(kind, unit):
    for price in (nan, inf, -inf, 0.0, -1.0, 1e-308, 5e-324, 1e-13, 1e13, 1.7e308):
        exchange, ledger = Exchange(US), Ledger(CASH, terms=US.terms)
        exchange.open_session(QUIET, (), ledger)
        priced = {f"{kind}_price": price}
        order = Order(
            symbol="S0", amount=0.5, unit=unit, side="BUY", kind=kind, tif="gtc", **priced
        )
        (event,) = exchange.execute([("a", order)], QUIET, ledger)
        assert isinstance(event, Rejected) and event.reason == "bad_price", price
        assert str(price) in event.detail


def test_the_largest_sane_orders_still_trade():
    """The bounds refuse nothing that the data could price: what an account cannot pay is still
    cut to its cash.
    """
    bars = QUIET
    bars = replace(bars, volume=np.full_like(bars.volume, nan))
    for amount, unit in ((LARGEST, "shares"), (LARGEST, "dollars"), (1e9, "target_weight")):
        exchange, ledger = Exchange(US), Ledger(CASH)
        exchange.open_session(bars, (), ledger)
        events = exchange.execute(
            [("a", Order(symbol="S0", amount=amount, unit=unit, side="BUY"))], bars, ledger
        )
        assert [type(event).__name__ for event in events] == ["Filled", "Trimmed"]
        assert 0.0 <= ledger.cash < 60.0


def test_tiny_lots_of_a_tiny_price_end():
    """A count of lots beyond the digits of a float is cut in steps that count."""
    crypto = next(venue for venue in BUILTIN if venue.id == "crypto-v1")
    bars = QUIET
    price = np.full_like(bars.open, LEAST_PRICE)
    bars = replace(
        bars, open=price, high=price, low=price, close=price, volume=np.full_like(price, nan)
    )
    exchange, ledger = Exchange(crypto), Ledger(LARGEST)
    exchange.open_session(bars, (), ledger)
    order = Order(symbol="S0", amount=LARGEST, unit="dollars", side="BUY")
    events = exchange.execute([("a", order)], bars, ledger)
    assert isinstance(events[0], Filled)
    assert isfinite(ledger.nav())


HUGE = 1.7e308


@pytest.mark.parametrize(
    "event",
    [
        Filled("i", "A", HUGE, 1.0, 1.0, 0.0, 0.0, -inf),
        Filled("i", "A", HUGE, 10.0, 10.0, 0.0, 0.0, -1.0),
        Filled("i", "B", inf, 10.0, 10.0, 0.0, 0.0, -inf),
        Filled("i", "B", 1.0, 1e-308, inf, 0.0, 0.0, -1e-308),
        Filled("i", "B", 1.0, -10.0, 10.0, 0.0, 0.0, 10.0),
        Filled("i", "B", 1.0, 10.0, 10.0, inf, 0.0, -inf),
        DividendPaid("A", inf, 10.0, inf),
        DividendPaid("A", -inf, 10.0, -inf),
        SplitApplied("A", inf, inf, 0.0),
        SplitApplied("A", 1e-309, 1e-308, 0.0),
        Delisted("A", 10.0, inf, inf),
        InterestCharged(-inf),
        InterestCharged(nan),
        Marked(inf, 100.0, inf, (), {"A": 10.0}),
        Marked(900.0, inf, inf, (), {"A": inf}),
        Marked(900.0, inf, inf, (), {"A": HUGE}),
        Marked(900.0, nan, nan, (), {"A": nan}),
        MarginCalled(inf, inf),
    ],
)
def test_the_ledger_refuses_what_is_not_finite(event):
    ledger = Ledger(1_000.0, terms=US_MARGIN.terms)
    ledger.apply(Filled("o", "A", 10.0, 10.0, 10.0, 0.0, 0.0, -100.0))
    with pytest.raises(LedgerError):
        ledger.apply(event)


@pytest.mark.parametrize("cash", [nan, inf, -inf, 0.0, -1.0, 5e-324, 1e16, HUGE])
def test_an_account_starts_with_a_sum_of_money(cash):
    with pytest.raises(LedgerError, match="cannot start with"):
        Ledger(cash)


def test_the_auditor_does_not_take_infinity_for_infinity():
    day = AuditDay(US, rough_market(np.random.default_rng(0), 1)[0].bars)
    auditor = Auditor(inf)
    found = [finding.check for finding in auditor.session(day, {}, [Marked(inf, 0.0, inf)])]
    assert found == ["cash", "nav"]


@pytest.mark.parametrize("moved", [nan, inf, -inf, HUGE])
def test_target_accounts_refuse_moves_that_are_no_numbers(moved):
    single = DailyTarget(hold="keep", fee_bp=5.0)
    with pytest.raises(NotFinite):
        single.settle(single.execute("BUY", 0, 1e10), moved)
    shared = SharedTarget(hold="keep", fee_bp=5.0)
    with pytest.raises(NotFinite):
        shared.settle(shared.execute("BUY", 1.0, value=1e10, before=0.0, others=0.0), 1e10, moved)


def test_a_journal_of_bookings_with_infinities_is_refused():
    booking = DailyTarget(hold="keep", fee_bp=5.0).execute("BUY", 0, 1.0)
    with pytest.raises(LedgerError, match="stated"):
        follow([("A", msgspec.structs.replace(booking, nav=inf))])
    with pytest.raises(LedgerError, match="stated"):
        follow([("A", msgspec.structs.replace(booking, nav_before=inf, nav=inf))], inf)


def test_the_bounds_are_wide_enough_for_any_market():
    assert LEAST_PRICE < 1e-10 < 1e7 < LARGEST_PRICE and LARGEST > 1e15
