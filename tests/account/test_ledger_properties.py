"""Random trades: cash is the sum of the events, NAV is cash and positions, and a replay gives the same bits."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeassay.account import Ledger
from tradeassay.core.events import ENCODER, STEP_DECODER, AccountTerms, Filled, Marked, StepRecord
from tradeassay.core.orders import Decision

trades = st.tuples(
    st.sampled_from("ABC"),
    st.integers(-50, 50).filter(bool),
    st.floats(min_value=0.5, max_value=500.0),
    st.floats(min_value=0.0, max_value=5.0),
)
sessions = st.lists(st.lists(trades, max_size=6), min_size=1, max_size=8)


@given(days=sessions, marks=st.lists(st.floats(min_value=0.5, max_value=500.0), min_size=3, max_size=3))
def test_sums_and_replay(days, marks):
    ledger = Ledger(1e6, terms=AccountTerms(margin=True))
    shares = dict.fromkeys("ABC", 0.0)
    moved = [1e6]
    records = []
    for step, batch in enumerate(days):
        events = []
        for symbol, quantity, price, fee in batch:
            cash = -quantity * price - fee
            filled = Filled("i", symbol, float(quantity), price, price, fee, 0.0, cash)
            ledger.apply(filled)
            events.append(filled)
            shares[symbol] += quantity
            moved.append(cash)
        prices = {symbol: marks["ABC".index(symbol)] for symbol in ledger.held()}
        positions = sum((ledger.quantity(symbol) * price for symbol, price in prices.items()), 0.0)
        marked = Marked(ledger.cash, positions, ledger.cash + positions, (), prices)
        ledger.apply(marked)
        events.append(marked)
        opening = () if step else (ledger.deposit,)
        records.append(
            StepRecord(
                step=step, session="s", decided_at=0, opening=opening, decision=Decision(), events=tuple(events)
            )
        )
        assert ledger.nav() == marked.nav
        assert ledger.cash == pytest.approx(fsum(moved), rel=1e-12)
        assert {symbol: ledger.quantity(symbol) for symbol in "ABC"} == shares
    decoded = [STEP_DECODER.decode(ENCODER.encode(record)) for record in records]
    assert Ledger.replay(decoded).state() == ledger.state()
