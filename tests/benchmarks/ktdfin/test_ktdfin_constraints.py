"""One rule at a time, judged against the account and the last close."""

from typing import Any

import pytest
from ktdfin_game import DONE, Game, order, submit

from tradeassay.benchmarks.ktdfin import KtdfinConfig
from tradeassay.benchmarks.ktdfin.action import check_orders
from tradeassay.core.orders import Order
from tradeassay.data import Snapshot


@pytest.fixture
def play(ashares: Snapshot) -> Game:
    """A day with two names held: one bought yesterday and free, nothing locked."""
    play = Game(ashares)
    play.buy(2)
    return play


def rules(play: Game, *orders: Order, config: KtdfinConfig | None = None) -> list[tuple[str, str | None]]:
    desk = play.protocol.desk(play.now)
    if config is not None:
        desk.config = config
    return [(v.rule, v.stock_id and v.stock_id.symbol) for v in check_orders(orders, desk)]


def buy(symbol: str, weight: float = 0.05, **changes: Any) -> Order:
    return Order(**{"symbol": symbol, "amount": weight, "unit": "target_weight", "side": "BUY", **changes})


def held(play: Game) -> list[str]:
    return list(play.now.account.positions)


def free(play: Game, count: int = 6) -> list[str]:
    return [symbol for symbol in play.symbols(16) if symbol not in held(play)][:count]


def test_nothing_wrong(play):
    a, b = held(play)
    assert rules(play, buy(free(play)[0], 0.10), buy(a, 0.0, side="SELL"), buy(b, 0.04, side="SELL")) == []


def test_candidates_per_step(play):
    names = free(play, 3)
    assert rules(play, *map(buy, names), config=KtdfinConfig(max_candidates=2)) == [("max_candidates", None)]


def test_one_order_per_name(play):
    one = free(play)[0]
    assert rules(play, buy(one), buy(one, 0.06)) == [("duplicate", one)]


def test_only_members_are_bought_and_only_holdings_sold(play):
    outside = next(s for s in play.now.view.symbols if s not in play.now.universe and s != "IDXF")
    other = free(play)[0]
    found = rules(play, buy(outside), buy("IDXF"), buy("nobody"), buy(other, 0.0, side="SELL"))
    assert found == [("universe", outside), ("universe", "IDXF"), ("universe", "nobody"), ("not_held", other)]


def test_single_weight(play):
    one, two = free(play)[:2]
    price = play.protocol.desk(play.now).last_close[play.now.view.column(two)]
    many = (0.11 * play.now.account.nav / price) // 100 * 100 + 100
    assert rules(play, buy(one, 0.1001)) == [("max_weight", one)]
    assert rules(play, buy(two, many, unit="shares")) == [("max_weight", two)]
    assert rules(play, buy(one, 0.10)) == []


def test_number_of_positions_counts_sales_first(play):
    few = KtdfinConfig(max_positions=3)
    one, two = free(play)[:2]
    sale = buy(held(play)[0], 0.0, side="SELL")
    assert rules(play, buy(one), buy(two), config=few) == [("max_positions", None)]
    assert rules(play, buy(one), buy(two), sale, config=few) == []
    assert rules(play, buy(held(play)[0], 0.09), config=KtdfinConfig(max_positions=1)) == []


def test_a_target_lies_on_the_side_it_says(play):
    one = held(play)[0]
    assert rules(play, buy(one, 0.01)) == [("side", one)]
    assert rules(play, buy(one, 0.095, side="SELL")) == [("side", one)]


def test_no_more_is_sold_than_there_is(play):
    one = held(play)[0]
    shares = play.now.account.positions[one].quantity
    assert rules(play, Order(symbol=one, amount=shares + 100, side="SELL")) == [("t_plus_1", one)]
    assert rules(play, Order(symbol=one, amount=shares, side="SELL")) == []


def test_what_was_bought_today_is_locked(ashares):
    """Decided at the close, today's purchases are in the account and cannot be sold yet."""
    play = Game(ashares, decide="close", fill="close")
    (one,) = play.buy(1)
    state = play.now.account.positions[one]
    assert state.sellable == state.quantity, "a night has passed"
    desk = play.protocol.desk(play.now)
    import msgspec

    locked = msgspec.structs.replace(state, sellable=0.0)
    desk.account = msgspec.structs.replace(desk.account, positions={one: locked})
    assert [v.rule for v in check_orders([buy(one, 0.0, side="SELL")], desk)] == ["t_plus_1"]
    (v,) = check_orders([Order(symbol=one, amount=100.0, side="SELL")], desk)
    assert "T+1 locks the rest" in v.detail


def test_lots(play):
    one = free(play)[0]
    mine = held(play)[0]
    assert rules(play, Order(symbol=one, amount=150.0, side="BUY")) == [("lot", one)]
    assert rules(play, Order(symbol=mine, amount=50.0, side="SELL")) == [("lot", mine)]
    assert rules(play, buy(one, 1e-6)) == [("lot", one)]
    assert rules(play, Order(symbol=one, amount=200.0, side="BUY")) == []


def test_an_odd_rest_is_sold_whole(play):
    import msgspec

    desk = play.protocol.desk(play.now)
    one = held(play)[0]
    odd = msgspec.structs.replace(desk.account.positions[one], quantity=1230.0, sellable=1230.0)
    desk.account = msgspec.structs.replace(desk.account, positions={one: odd})

    def broken(amount: float) -> list[str]:
        return [v.rule for v in check_orders([Order(symbol=one, amount=amount, side="SELL")], desk)]

    assert broken(1230.0) == broken(30.0) == broken(130.0) == broken(1200.0) == []
    assert broken(20.0) == broken(1210.0) == ["lot"]


def test_cash(play):
    names = free(play, 10)
    wide = KtdfinConfig(max_weight=0.3)
    assert rules(play, *(buy(name, 0.2) for name in names[:5]), config=wide) == [("cash", None)]
    assert rules(play, *(buy(name, 0.2) for name in names[:4]), config=wide) == []
    sales = [buy(name, 0.0, side="SELL") for name in held(play)]
    assert rules(play, *sales, *(buy(name, 0.2) for name in names[:5]), config=wide) == []


def test_limits_of_the_last_close_bind_under_the_paper_s_convention_only(play):
    desk = play.protocol.desk(play.now)
    up, down = free(play)[0], held(play)[0]
    change = desk.last_change.copy()
    change[desk.view.column(up)], change[desk.view.column(down)] = 0.31, -0.31
    desk.__dict__["last_change"] = change
    orders = [buy(up), buy(down, 0.0, side="SELL"), buy(down, 0.0, side="SELL")][:2]
    assert check_orders(orders, desk) == ()
    desk.config = KtdfinConfig(convention="paper")
    assert [v.rule for v in check_orders(orders, desk)] == ["limit_up", "limit_down"]
    assert desk.state(desk.view.column(up)) == "limit_up" and desk.state(desk.view.column(down)) == "limit_down"


def test_the_threshold_is_half_a_point_below_the_board_s_limit(play):
    desk = play.protocol.desk(play.now)
    want = {"main": 0.095, "chinext": 0.195, "star": 0.195, "bse": 0.295}
    for column in play.now.columns.tolist():
        assert desk.roster.limits[column] == pytest.approx(want[desk.roster.boards[column]])
        assert desk.roster.bands[column] == pytest.approx(want[desk.roster.boards[column]] + 0.005)


def test_a_violation_is_counted_once_and_told_in_full(ashares):
    play = Game(ashares)
    one, two = (play.shown(symbol) for symbol in play.symbols(2))
    decision = play.decide(
        [DONE, submit(order(one, target_weight=0.2), order(two, shares=150)), submit(order(one))]
    )
    assert decision.status == "ok" and [f.kind for f in decision.failures] == ["constraint"]
    feedback = play.asked[-1].messages[-1].text
    assert f"{one} (BUY, target_weight 0.2): its weight would be 0.2000" in feedback, "its own order is quoted"
    assert f"{two} (BUY, shares 150): 150 shares are no multiple" in feedback
    assert "<stock_id>" not in feedback, "whoever broke a rule knows the form"
    assert play.symbols(1)[0] in decision.failures[0].detail, "the journal names the true symbol"


def test_a_name_the_episode_does_not_have_cannot_be_read(ashares):
    decision = Game(ashares).decide([DONE, submit(order("asset_99999")), submit()])
    assert [f.kind for f in decision.failures] == ["schema"]
