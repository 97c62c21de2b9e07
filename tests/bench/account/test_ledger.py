"""The account: hand-worked balances, what an agent is told, and every identity broken on
purpose.
"""

from math import fsum, nan

import pytest
from hypothesis import given, strategies as st

from tradeassay_bench.account import Ledger
from tradeassay_bench.core.errors import LedgerError
from tradeassay_bench.core.events import (
    ENCODER,
    STEP_DECODER,
    AccountTerms,
    BorrowCharged,
    Delisted,
    Deposited,
    DividendPaid,
    Event,
    Expired,
    Filled,
    InterestCharged,
    MarginCalled,
    Marked,
    Rejected,
    Rested,
    SplitApplied,
    StepRecord,
    Trimmed,
)
from tradeassay_bench.core.orders import Decision

MARGIN = AccountTerms(margin=True, maintenance_long=0.25, maintenance_short=0.30)


def trade(symbol: str, quantity: float, price: float, fee: float = 0.0, **extra: object) -> Filled:
    cash = -quantity * price - fee
    return Filled("id", symbol, quantity, price, price, fee, 0.0, cash, **extra)


def contract(quantity: float, price: float) -> Filled:
    return Filled("id", "F", quantity, price, price, 0.0, 0.0, 0.0, False, 10.0, True)


def mark(ledger: Ledger, **prices: float) -> Marked:
    positions = 0.0  # not sum(), which rounds otherwise since Python 3.12
    for symbol, price in prices.items():
        positions += ledger.quantity(symbol) * price
    return Marked(ledger.cash, positions, ledger.cash + positions, (), prices)


def after(*events: Event, cash: float = 1_000.0, terms: AccountTerms | None = None) -> Ledger:
    ledger = Ledger(cash, terms=terms)
    for event in events:
        ledger.apply(event)
    return ledger


def refuses(ledger: Ledger, event: Event, complaint: str) -> None:
    with pytest.raises(LedgerError, match=complaint):
        ledger.apply(event)


def test_a_small_life():
    # 1,000: buy 10 at 20 (fee 1), buy 10 at 30 (fee 1), sell 5 at 40 (fee 1); mark at 50.
    ledger = after(trade("A", 10.0, 20.0, 1.0))
    assert (ledger.cash, ledger.quantity("A"), ledger.nav()) == (799.0, 10.0, 999.0)
    ledger.apply(mark(ledger, A=25.0))
    assert ledger.nav() == 1_049.0
    ledger.apply(trade("A", 10.0, 30.0, 1.0))
    ledger.apply(trade("A", -5.0, 40.0, 1.0))
    assert ledger.cash == 697.0
    ledger.apply(mark(ledger, A=50.0))
    state = ledger.state()
    assert (state.cash, state.nav, state.initial) == (697.0, 1_447.0, 1_000.0)
    position = state.positions["A"]
    assert (position.quantity, position.cost, position.mark, position.held) == (15.0, 25.0, 50.0, 2)
    assert state.weight("A") == pytest.approx(750.0 / 1_447.0)
    assert state.weight("B") == 0.0


def test_positions_are_in_the_order_they_were_opened():
    steps = (("C", 1.0), ("A", 1.0), ("B", 1.0), ("C", -1.0), ("A", 1.0), ("C", 1.0))
    ledger = after(*(trade(symbol, quantity, 10.0) for symbol, quantity in steps))
    assert ledger.held() == tuple(ledger.state().positions) == ("A", "B", "C")


def test_t_plus_1_locks_until_the_mark():
    ledger = after(trade("A", 10.0, 10.0), terms=AccountTerms(t_plus_1=True))
    assert (ledger.quantity("A"), ledger.sellable("A")) == (10.0, 0.0)
    assert ledger.state().positions["A"].sellable == 0.0
    refuses(ledger, trade("A", -1.0, 10.0), "sellable")
    ledger.apply(mark(ledger, A=10.0))
    ledger.apply(trade("A", 5.0, 10.0))
    assert ledger.sellable("A") == 10.0
    ledger.apply(trade("A", -10.0, 10.0))
    assert (ledger.quantity("A"), ledger.sellable("A")) == (5.0, 0.0)


def test_going_ex_changes_where_the_money_is_not_how_much():
    ledger = after(trade("A", 10.0, 20.0), DividendPaid("A", 2.0, 10.0, 20.0))
    assert (ledger.cash, ledger.mark("A"), ledger.nav()) == (820.0, 18.0, 1_000.0)
    ledger.apply(SplitApplied("A", 3.0, 30.0, 0.0))
    assert (ledger.quantity("A"), ledger.mark("A"), ledger.nav()) == (30.0, 6.0, 1_000.0)
    ledger.apply(Delisted("A", 30.0, 5.0, 150.0))
    assert (ledger.cash, ledger.held(), ledger.nav()) == (970.0, (), 970.0)


def test_short_positions():
    ledger = after(trade("A", -10.0, 20.0), terms=MARGIN)
    assert (ledger.cash, ledger.quantity("A"), ledger.sellable("A"), ledger.nav()) == (
        1200.0,
        -10.0,
        0.0,
        1000.0,
    )
    ledger.apply(BorrowCharged("A", -1.0))
    ledger.apply(mark(ledger, A=30.0))
    assert ledger.nav() == 899.0
    # Through zero: the rest of the trade opens a new, long position at its price.
    ledger.apply(trade("A", 15.0, 30.0))
    position = ledger.state().positions["A"]
    assert (position.quantity, position.cost, position.held) == (5.0, 30.0, 0)


def test_events_without_money_change_nothing():
    events = (
        Rejected("a", "A", "lot", "why"),
        Trimmed("a", "A", 2.0, 1.0, "lot"),
        Rested("a", "A", 1.0),
        Expired("a", "A"),
    )
    assert after(*events).state() == after().state()


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (Deposited(5.0), "one deposit"),
        (Filled("i", "A", 10.0, 10.0, 10.0, 0.0, 0.0, -99.0), "expected"),
        (Filled("i", "A", 10.0, 10.0, 10.0, 1.0, 0.0, -100.0), "expected"),
        (Filled("i", "A", 10.0, nan, 10.0, 0.0, 0.0, -100.0), "not a finite amount"),
        (Filled("i", "A", 0.0, 10.0, 10.0, 0.0, 0.0, 0.0), "no quantity"),
        (trade("A", 1_000.0, 10.0), "cash account would fall"),
        (trade("B", -1.0, 10.0), "0.0 sellable"),
        (trade("A", -11.0, 10.0), "10.0 sellable"),
        (trade("A", 1.0, 10.0, multiplier=2.0), "expected"),
        (DividendPaid("B", 1.0, 10.0, 10.0), "B is not held"),
        (DividendPaid("A", 1.0, 9.0, 9.0), "shares"),
        (DividendPaid("A", 1.0, 10.0, 9.0), "cash"),
        (SplitApplied("A", 2.0, 21.0, 0.0), "value"),
        (SplitApplied("A", 2.0, 20.0, 1.0), "value"),
        (SplitApplied("A", 0.0, 20.0, 0.0), "ratio"),
        (Delisted("A", 9.0, 10.0, 90.0), "quantity"),
        (Delisted("A", 10.0, 10.0, 90.0), "cash"),
        (BorrowCharged("A", 1.0), "credit the account"),
        (InterestCharged(-1e6), "cash account would fall"),
        (InterestCharged(nan), "would become nan"),
        (MarginCalled(1.0, 2.0), "cash account cannot"),
        (Marked(899.0, 100.0, 999.0, (), {"A": 10.0}), "marked cash"),
        (Marked(900.0, 101.0, 1_001.0, (), {"A": 10.0}), "marked positions"),
        (Marked(900.0, 100.0, 1_001.0, (), {"A": 10.0}), "marked NAV"),
        (Marked(900.0, 100.0, 1_000.0, (), {}), "expected marks for 1 positions, got 0"),
        (Marked(900.0, 100.0, 1_000.0, (), {"B": 10.0}), "not marked"),
    ],
)
def test_every_broken_identity_is_refused(event, complaint):
    refuses(after(trade("A", 10.0, 10.0)), event, complaint)


def test_the_multiplier_of_a_position_must_not_change():
    bought = Filled("i", "A", 2.0, 10.0, 10.0, 0.0, 0.0, -100.0, multiplier=5.0)
    ledger = after(bought)
    assert ledger.nav() == 1_000.0
    refuses(ledger, trade("A", 1.0, 10.0), "multiplier of the fill")


def test_the_margin_identity():
    ledger = after(trade("A", 200.0, 10.0), terms=MARGIN)
    below = mark(ledger, A=6.0)  # equity 200, required 300
    refuses(ledger, below, "without a margin call")
    ledger.apply(MarginCalled(200.0, 300.0))
    ledger.apply(below)
    # The call counts for its own session only.
    refuses(ledger, below, "without a margin call")


def record(step: int, *events: object, opening: tuple[object, ...] = ()) -> StepRecord:
    return StepRecord(
        step=step,
        session=f"day {step}",
        decided_at=0,
        opening=opening,
        decision=Decision(),
        events=events,
    )


def test_replay():
    ledger = Ledger(1_000.0, terms=AccountTerms(t_plus_1=True))
    buy = trade("A", 10.0, 10.0)
    ledger.apply(buy)
    first = mark(ledger, A=12.0)
    ledger.apply(first)
    sell = trade("A", -4.0, 11.0)
    ledger.apply(sell)
    records = [record(0, buy, first, opening=(ledger.deposit,)), record(1, sell)]
    assert Ledger.replay(records).state() == ledger.state()
    assert Ledger.replay(records).deposit == ledger.deposit
    navs = [(seen.sessions, seen.nav()) for seen, _ in Ledger.steps(records)]
    assert navs == [(1, 1_020.0), (1, 1_016.0)]


def test_replay_needs_a_beginning():
    with pytest.raises(LedgerError, match="journal is empty"):
        Ledger.replay([])
    for events in ((), (trade("A", 1.0, 1.0),)):
        with pytest.raises(LedgerError, match="does not begin with a deposit"):
            Ledger.replay([record(0, *events)])


def test_a_replay_of_a_forged_journal_is_refused():
    ledger = Ledger(1_000.0)
    forged = record(0, Marked(1_000.0, 50.0, 1_050.0), opening=(ledger.deposit,))
    with pytest.raises(LedgerError, match="marked positions"):
        Ledger.replay([forged])


trades = st.tuples(
    st.sampled_from("ABC"),
    st.integers(-50, 50).filter(bool),
    st.floats(min_value=0.5, max_value=500.0),
    st.floats(min_value=0.0, max_value=5.0),
)
sessions = st.lists(st.lists(trades, max_size=6), min_size=1, max_size=8)


@given(
    days=sessions, marks=st.lists(st.floats(min_value=0.5, max_value=500.0), min_size=3, max_size=3)
)
def test_sums_and_replay(days, marks):
    ledger = Ledger(1e6, terms=AccountTerms(margin=True))
    shares, moved, records = dict.fromkeys("ABC", 0.0), [1e6], []
    for step, batch in enumerate(days):
        events = [
            trade(symbol, float(quantity), price, fee) for symbol, quantity, price, fee in batch
        ]
        for filled in events:
            ledger.apply(filled)
            shares[filled.symbol] += filled.quantity
            moved.append(filled.cash)
        marked = mark(ledger, **{symbol: marks["ABC".index(symbol)] for symbol in ledger.held()})
        ledger.apply(marked)
        records.append(record(step, *events, marked, opening=() if step else (ledger.deposit,)))
        assert ledger.nav() == marked.nav
        assert ledger.cash == pytest.approx(fsum(moved), rel=1e-12)
        assert {symbol: ledger.quantity(symbol) for symbol in "ABC"} == shares
    decoded = [STEP_DECODER.decode(ENCODER.encode(record)) for record in records]
    assert Ledger.replay(decoded).state() == ledger.state()
