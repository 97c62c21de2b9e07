"""One rule at a time, judged against the account and the last close."""

from typing import Any

import msgspec
import pytest
from ktdfin_game import DONE, Game, order, submit

from tradeassay_bench.benchmarks.ktdfin import KtdfinConfig
from tradeassay_bench.benchmarks.ktdfin.action import check_orders
from tradeassay_bench.core.orders import Order
from tradeassay_bench.data import Snapshot


@pytest.fixture
def play(ashares: Snapshot) -> Game:
    """A day with two names held: one bought yesterday and free, nothing locked."""
    play = Game(ashares)
    play.buy(2)
    return play


def rules(play: Game, *orders: Order, **config: Any) -> list[tuple[str, str | None]]:
    day_view = play.protocol.day_view(play.now)
    if config:
        day_view.config = KtdfinConfig(**config)
    return [(v.rule, v.stock_id and v.stock_id.symbol) for v in check_orders(orders, day_view)]


def buy(symbol: str, weight: float = 0.05, **changes: Any) -> Order:
    return Order(
        **{"symbol": symbol, "amount": weight, "unit": "target_weight", "side": "BUY", **changes}
    )


def sell(symbol: str, amount: float = 0.0, unit: Any = "shares") -> Order:
    return Order(
        symbol=symbol, amount=amount, unit=unit if amount else "target_weight", side="SELL"
    )


def held(play: Game) -> list[str]:
    return list(play.now.account.positions)


def free(play: Game, count: int = 6) -> list[str]:
    return [symbol for symbol in play.symbols(16) if symbol not in held(play)][:count]


def test_orders_that_keep_the_rules_and_orders_that_break_one(play):
    a, b = held(play)
    one, two, _ = names = free(play, 3)
    assert rules(play, buy(one, 0.10), sell(a), sell(b, 0.04, "target_weight")) == []
    assert rules(play, *map(buy, names), max_candidates=2) == [("max_candidates", None)]
    assert rules(play, buy(one), buy(one, 0.06)) == [("duplicate", one)]
    # A target lies on the side it says.
    assert rules(play, buy(a, 0.01)) == [("side", a)]
    assert rules(play, sell(a, 0.095, "target_weight")) == [("side", a)]
    # The number of positions counts sales first.
    assert rules(play, buy(one), buy(two), max_positions=3) == [("max_positions", None)]
    assert rules(play, buy(one), buy(two), sell(a), max_positions=3) == []
    assert rules(play, buy(a, 0.09), max_positions=1) == []
    shares = play.now.account.positions[a].quantity
    assert (
        rules(play, sell(a, shares + 100)) == [("t_plus_1", a)]
        and rules(play, sell(a, shares)) == []
    )
    # Purchases fit cash and the proceeds of sales.
    wide, many = {"max_weight": 0.3}, [buy(name, 0.2) for name in free(play, 5)]
    assert rules(play, *many, **wide) == [("cash", None)] and rules(play, *many[:4], **wide) == []
    assert rules(play, sell(a), sell(b), *many, **wide) == []


def test_only_members_are_bought_and_only_holdings_sold(play):
    outside = next(s for s in play.now.view.symbols if s not in play.now.universe and s != "IDXF")
    other = free(play)[0]
    found = rules(play, buy(outside), buy("IDXF"), buy("nobody"), sell(other))
    assert found == [
        ("universe", outside),
        ("universe", "IDXF"),
        ("universe", "nobody"),
        ("not_held", other),
    ]


def test_single_weight(play):
    one, two = free(play)[:2]
    price = play.protocol.day_view(play.now).last_close[play.now.view.column(two)]
    many = (0.11 * play.now.account.nav / price) // 100 * 100 + 100
    assert rules(play, buy(one, 0.1001)) == [("max_weight", one)]
    assert rules(play, buy(two, many, unit="shares")) == [("max_weight", two)]
    assert rules(play, buy(one, 0.10)) == []


def test_what_was_bought_today_is_locked(ashares):
    """Decided at the close, today's purchases are in the account and cannot be sold yet."""
    play = Game(ashares, decide="close", fill="close")
    (one,) = play.buy(1)
    state = play.now.account.positions[one]
    assert state.sellable == state.quantity, "a night has passed"
    day_view = play.protocol.day_view(play.now)
    locked = msgspec.structs.replace(state, sellable=0.0)
    day_view.account = msgspec.structs.replace(day_view.account, positions={one: locked})
    for sale in (sell(one), sell(one, 100.0)):
        (wrong,) = check_orders([sale], day_view)
        assert wrong.rule == "t_plus_1" and "T+1 locks the rest" in wrong.detail


def test_lots_are_kept_and_an_odd_rest_is_sold_whole(play):
    one, mine = free(play)[0], held(play)[0]
    for odd, name in (
        (buy(one, 150.0, unit="shares"), one),
        (sell(mine, 50.0), mine),
        (buy(one, 1e-6), one),
    ):
        assert rules(play, odd) == [("lot", name)]
    assert rules(play, buy(one, 200.0, unit="shares")) == []
    day_view = play.protocol.day_view(play.now)
    rest = msgspec.structs.replace(
        day_view.account.positions[mine], quantity=1230.0, sellable=1230.0
    )
    day_view.account = msgspec.structs.replace(day_view.account, positions={mine: rest})
    for amount in (1230.0, 30.0, 130.0, 1200.0, 20.0, 1210.0):
        broken = [wrong.rule for wrong in check_orders([sell(mine, amount)], day_view)]
        assert broken == (["lot"] if amount in (20.0, 1210.0) else []), amount


def test_limits_of_the_last_close_bind_under_the_paper_s_convention_only(play):
    day_view = play.protocol.day_view(play.now)
    up, down = free(play)[0], held(play)[0]
    change = day_view.last_change.copy()
    change[day_view.view.column(up)], change[day_view.view.column(down)] = 0.31, -0.31
    day_view.__dict__["last_change"] = change
    orders = [buy(up), sell(down)]
    assert check_orders(orders, day_view) == ()
    day_view.config = KtdfinConfig(convention="paper")
    assert [v.rule for v in check_orders(orders, day_view)] == ["limit_up", "limit_down"]
    assert (
        day_view.state(day_view.view.column(up)) == "limit_up"
        and day_view.state(day_view.view.column(down)) == "limit_down"
    )


def test_the_threshold_is_half_a_point_below_the_board_s_limit(play):
    day_view = play.protocol.day_view(play.now)
    want = {"main": 0.095, "chinext": 0.195, "star": 0.195, "bse": 0.295}
    for column in play.now.columns.tolist():
        assert day_view.roster.limits[column] == pytest.approx(want[day_view.roster.boards[column]])
        assert day_view.roster.bands[column] == pytest.approx(
            want[day_view.roster.boards[column]] + 0.005
        )


def test_a_violation_is_counted_once_and_told_in_full(ashares):
    play = Game(ashares)
    one, two = (play.shown(symbol) for symbol in play.symbols(2))
    decision = play.decide(
        [DONE, submit(order(one, target_weight=0.2), order(two, shares=150)), submit(order(one))]
    )
    assert decision.status == "ok" and [f.kind for f in decision.failures] == ["constraint"]
    feedback = play.asked[-1].messages[-1].text
    assert f"{one} (BUY, target_weight 0.2): its weight would be 0.2000" in feedback, (
        "its own order is quoted"
    )
    assert f"{two} (BUY, shares 150): 150 shares are no multiple" in feedback
    assert "<stock_id>" not in feedback, "whoever broke a rule knows the form"
    assert play.symbols(1)[0] in decision.failures[0].detail, "the journal names the true symbol"
