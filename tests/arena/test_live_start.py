"""A live account begins with the position that its warm-up ended with."""

import msgspec
import pytest
from sqlalchemy import select
from tests.arena.conftest import altered, seated

from tradeassay_arena.agents import ConstantAction
from tradeassay_arena.rounds.prices import Close, correct
from tradeassay_arena.season import Entry
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store
from tradeassay_arena.verifying import verify_arena
from tradeassay_bench.core.arena import AgentChoice


class SellsThenHolds:
    """Sells while it warms up and holds from the first live session on; keeps what it is told of
    its position.
    """

    def __init__(self):
        self.told = []

    def deliberate(self, packet, memory):
        yield from ()
        self.told.append((packet.symbol, packet.phase, packet.position))
        return AgentChoice(
            action="SELL" if packet.phase == "warm-up" else "HOLD", reasoning="as planned"
        )


def live(table, entry, asset="AAJX"):
    """Return what was booked for an entry on an asset from the first live session on, with the
    prices.
    """
    columns = (
        *t.bookings.c["position_before", "position", "fee", "nav"],
        *t.rounds.c["base_price", "next_price"],
    )
    query = select(*columns).join(t.decisions, t.decisions.c.id == t.bookings.c.slot)
    query = query.join(t.rounds, t.rounds.c.id == t.decisions.c.round).order_by(t.rounds.c.session)
    query = query.where(t.bookings.c.kind == "settled", t.decisions.c.stage == "live")
    return table.rows(query.where(t.decisions.c.entry == entry, t.decisions.c.asset == asset))


@pytest.mark.parametrize("convention", ["corrected", "paper"])
@pytest.mark.parametrize("position", ["kept", "closed"])
def test_the_position_of_a_warm_up_is_the_first_of_the_live_account(table, position, convention):
    """By hand: whoever sold in the warm-up and holds is short at no fee where HOLD keeps, and
    flat where it does not; whoever buys in both has paid already, or pays 5 basis points for
    closing in between.
    """
    holder = SellsThenHolds()
    entries = (Entry(id="holder", architecture="rule"),)
    changed = {"entries": entries, "warmup_position": position, "convention": convention}
    table.season = msgspec.structs.replace(table.season, last="2022-06-08", **changed)
    table.play(agents=seated(holder=holder))
    first = next(told for told in holder.told if told[:2] == ("AAJX", "live"))
    assert first[2] == (-1 if position == "kept" else 0)
    held = -1 if position == "kept" and convention == "corrected" else 0
    worth = 1.0
    for row in live(table, "holder"):
        worth *= 1.0 + held * (row.next_price / row.base_price - 1.0)
        assert (row.position, row.fee) == (held, 0.0) and row.nav == pytest.approx(worth, rel=1e-12)
    bought = live(table, "buy-and-hold")
    fee = 0.0005 if position == "closed" and convention == "corrected" else 0.0
    assert [row.position_before for row in bought][:2] == [int(position == "kept"), 1]
    assert bought[0].fee == pytest.approx(fee)
    prices = bought[-1].next_price / bought[0].base_price
    assert bought[-1].nav == pytest.approx((1.0 - fee) * prices, rel=1e-12)


@pytest.fixture
def sold(table):
    """A season whose only entry sells every day, in the warm-up and live, played to its end."""
    entry = Entry(id="seller", architecture="rule", params={"rule": "sell"})
    table.season = msgspec.structs.replace(table.season, last="2022-06-08", entries=(entry,))
    table.play(agents=seated(seller=ConstantAction("SELL")))
    return table


def test_verify_holds_a_live_account_to_its_warm_up(sold, tmp_path):
    found = verify_arena(sold.url)
    assert not found.contradicted, found.violations
    first = (
        "(select min(id) from bookings where stage = 'live' and entry = 'seller' and asset = "
        "'AAJX')"
    )
    for forged in (
        f"update bookings set position_before = 0 where id = {first}",
        f"update bookings set position_before = 0, fee = 0.0005, nav = 0.9995 where id = {first}",
    ):
        assert verify_arena(str(altered(sold.url, tmp_path / "forged.db", forged))).contradicted, (
            forged
        )


def test_a_revised_price_leaves_a_live_account_its_first_position(sold):
    store = Store(open_engine(sold.url, durable=False))
    query = (
        select(t.rounds.c["session", "price"]).filter_by(asset="AAJX").order_by(t.rounds.c.session)
    )
    closes = {row.session: Close(close=row.price, adjusted=row.price) for row in store.rows(query)}
    day = list(closes)[3]
    price = closes[day].close * 1.01
    closes[day] = Close(close=price, adjusted=price)
    made = correct(store, sold.season, "AAJX", closes, "2022-06-09T00:00:00Z", without=())
    restated = store.rows(
        select(
            t.decisions.c.session,
            t.bookings.c["number", "earned"],
            t.rounds.c["base_price", "next_price"],
        )
        .join(t.decisions, t.decisions.c.id == t.bookings.c.slot)
        .join(t.rounds, t.rounds.c.id == t.decisions.c.round)
        .where(t.decisions.c.entry == "seller", t.bookings.c.kind == "corrected")
    )
    store.engine.dispose()
    # The two sessions that the price ends and begins; nobody pays a fee for what it held before.
    assert [one.session for one in made] == [day] and len(restated) == 2
    for row in restated:
        assert row.earned == pytest.approx(-(row.next_price / row.base_price - 1.0), rel=1e-12)
    # The data has other prices, and no such correction, which verify says; the account is what these prices make.
    found = verify_arena(sold.url)
    assert found.contradicted
    assert all("has no such row" in one.what for one in found.violations if one.check == "account")
