"""Whatever is ordered: the identities hold, the rules bind, and the journal replays to the same
bits.
"""

import msgspec
import pytest
from exchange_checker import check_exchange, play_journal
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay_bench.account import ASHARE, BUILTIN, US, US_MARGIN, Cash, Ledger
from tradeassay_bench.core.events import ENCODER, STEP_DECODER, Filled, Rejected, Trimmed
from tradeassay_bench.core.orders import Order

SESSIONS = 12
ids = pytest.mark.parametrize("venue", BUILTIN, ids=lambda venue: venue.id)
quick = settings(
    max_examples=settings.default.max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

symbols = st.sampled_from([*(f"S{number}" for number in range(8)), "NOBODY"])
amounts = st.one_of(
    st.sampled_from([0.0, 1.0, 100.0, 150.0, 1000.0, 0.3]),
    st.floats(min_value=-2e5, max_value=2e5, allow_nan=False),
)
prices = st.floats(min_value=1.0, max_value=80.0).map(lambda price: round(price, 2))


@st.composite
def orders(draw: st.DrawFn) -> Order:
    unit = draw(
        st.sampled_from(["shares", "dollars", "target_weight", "target_value", "target_shares"])
    )
    amount = (
        draw(st.floats(min_value=-1.5, max_value=1.5)) if unit == "target_weight" else draw(amounts)
    )
    kind = draw(st.sampled_from(["market", "market", "limit", "stop"]))
    return Order(
        symbol=draw(symbols),
        amount=amount,
        unit=unit,
        side=draw(st.sampled_from(["BUY", "SELL", None])),
        kind=kind,
        limit_price=draw(prices) if kind == "limit" else None,
        stop_price=draw(prices) if kind == "stop" else None,
        tif=draw(st.sampled_from(["day", "gtc"])),
    )


streams = st.lists(st.lists(orders(), max_size=6), min_size=SESSIONS, max_size=SESSIONS)


@ids
@quick
@given(stream=streams, seed=st.integers(0, 10_000), fill=st.sampled_from(["open", "close"]))
def test_the_second_books_agree_and_the_journal_replays(venue, stream, seed, fill):
    records = play_journal(venue, seed, fill=fill, batches=stream)
    lines = [ENCODER.encode(record) for record in records]
    assert [ENCODER.encode(STEP_DECODER.decode(line)) for line in lines] == lines


@quick
@given(stream=streams, seed=st.integers(0, 10_000))
def test_all_or_nothing_when_cash_is_short(stream, seed):
    venue = msgspec.structs.replace(US, cash=Cash(on_short="reject"))
    records = play_journal(venue, seed, fill="open", batches=stream)
    trimmed = [event for record in records for event in record.events if isinstance(event, Trimmed)]
    assert not [event for event in trimmed if event.reason == "insufficient_cash"]


@quick
@given(stream=streams, seed=st.integers(0, 10_000))
def test_concentration_limits_bind_at_the_trade(stream, seed):
    venue = ASHARE.limited(max_weight=0.2, max_positions=3)
    records = play_journal(venue, seed, fill="open", batches=stream)
    count = 0
    held: set[str] = set()
    for ledger, record in Ledger.steps(records):
        count = max(count, len(ledger.held()))
        held.update(ledger.held())
        bought = {
            event.symbol: event
            for event in record.events
            if isinstance(event, Filled) and event.quantity > 0
        }
        for symbol, fill in bought.items():
            # NAV at the open is not in the journal; a factor of two is beyond any overnight move of a whole book.
            assert ledger.quantity(symbol) * fill.reference <= 0.2 * 2 * max(ledger.nav(), 1.0)
    assert count <= 3


@ids
def test_the_shipped_checker_passes_every_shipped_venue(venue):
    check_exchange(venue, seeds=(0, 1))


def test_random_streams_reach_the_rules():
    """The property tests mean something only if the streams trade and are refused for many
    reasons.
    """
    reasons: set[str] = set()
    fills = 0
    for venue in (ASHARE, US, US_MARGIN):
        for seed in range(4):
            for record in play_journal(venue, seed, fill="open"):
                for event in record.events:
                    fills += isinstance(event, Filled)
                    if isinstance(event, Rejected):
                        reasons.add(event.reason)
    assert fills > 500
    expected = """unknown_symbol bad_amount bad_price no_change suspended limit_up lot not_listed insufficient_cash
    no_shorting margin no_volume side_contradicts_target unsupported insufficient_shares"""
    assert reasons >= set(expected.split())
