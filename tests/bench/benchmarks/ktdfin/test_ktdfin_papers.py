"""What the paper's experiments stand on: the index by its role, windows after a day, data needs,
hidden levels.
"""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from ktdfin_game import DONE, Game, call, order, submit

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks import benchmarks, find_window
from tradeassay_bench.benchmarks.ktdfin import KTDFIN, KtdfinConfig
from tradeassay_bench.benchmarks.needs import data_needs
from tradeassay_bench.data import Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.data.store.read import main_index
from tradeassay_bench.examine.probe.programs import true_price


def test_an_index_is_found_by_its_role():
    assert main_index("IDX", {"IDX", "hs300"}) == "IDX" and main_index("IDX", {"hs300"}) == "hs300"
    assert (
        main_index("IDX", {"zz500", "000300.SH"}) == "000300.SH"
        and main_index("CSI300", {"hs300"}) == "CSI300"
    )
    assert main_index("IDX", {"zz500", "zz1000"}) == "IDX", (
        "a role that nobody fills is not guessed"
    )


def test_data_whose_index_has_another_name_is_played(panel, ashares, tmp_path_factory):
    members = tuple(msgspec.structs.replace(one, index="hs300") for one in panel.memberships)
    folder = tmp_path_factory.mktemp("renamed") / "world"
    write_snapshot(
        replace(panel, memberships=members, indices={"hs300": panel.indices["IDX"]}), folder
    )
    renamed = open_snapshot(folder)
    view, same = renamed.at(260, "close"), ashares.at(260, "close")
    assert view.members("IDX") == same.members("IDX") and view.index_name("IDX") == "hs300"
    np.testing.assert_array_equal(view.index_levels("IDX"), same.index_levels("IDX"))
    assert Game(renamed).now.universe == Game(ashares).now.universe


def test_sessions_after_a_day(ashares):
    day = str(ashares.sessions[270])
    window = find_window("ktdfin-v1", f"after-{day}", ashares, "corrected")
    assert window.first == str(ashares.sessions[271]) and window.last == str(ashares.sessions[-1])
    assert not window.structural and window.sessions == len(ashares.sessions) - 271
    with pytest.raises(UserError, match="no session after 2099"):
        find_window("ktdfin-v1", "after-2099-01-01", ashares, "corrected")


def test_needs_say_what_is_missing_and_what_that_changes(ashares):
    found = {need.what: need for need in data_needs(KTDFIN, ashares)}
    assert found["index IDX"].status == "there" and found["company names"].status == "there"
    windows = found["the paper's windows"]
    assert windows.status == "missing" and "not comparable" in windows.changes
    assert all(need.changes for need in found.values() if need.status != "there")
    portfolio = {
        need.what: need.status for need in data_needs(benchmarks.get("stockbench-v1"), ashares)
    }
    assert {"news", "fundamentals"} <= set(portfolio)


def hardened(ashares: Snapshot) -> Game:
    return Game(ashares, KtdfinConfig(rebase_prices=True, scale_volumes=True))


def test_a_grid_search_does_not_undo_the_rebasing(ashares):
    play, right = hardened(ashares), 0
    day_view = play.protocol.day_view(play.now)
    for symbol in play.symbols(10):
        answer = play.ask("get_stock_snapshot", {"stock_id": play.shown(symbol), "lookback": 60})
        bars = np.array([row[1:5] for row in answer["bars"] if None not in row[1:5]], dtype=float)
        true = float(day_view.last_close[play.now.view.column(symbol)])
        guess = true_price(bars.ravel(), float(bars[-1, 3]))
        right += guess is not None and abs(guess / true - 1.0) < 0.005
    assert right <= 1


def test_hidden_levels_do_not_show_in_refusals_money_or_limits(ashares):
    play = hardened(ashares)
    play.buy(3, 0.05)
    symbol = next(iter(play.now.account.positions))
    state = play.ask("portfolio_state")
    held = play.now.account.positions[symbol]
    row = next(one for one in state["positions"] if one["stock_id"] == play.shown(symbol))
    assert row["value"] % 1000 == 0 and state["cash"] % 1000 == 0
    assert row["shares"] != held.quantity and abs(row["price"] / held.mark - 1.0) > 0.01
    other = next(one for one in play.symbols(9) if one not in play.now.account.positions)
    answer = play.ask("risk_check", {"target_weights": {play.shown(other): 0.0011}})
    text = json.dumps(answer["violations"])
    assert "least" not in text and ("too small" in text or answer["allowed"])
    play.asked.clear()
    orders = [order(play.shown(one), target_weight=0.1) for one in play.symbols(14)]
    play.decide(
        [DONE, call(("submit_action", {"orders": orders, "overall_reason": "everything at once"}))]
    )
    assert "purchases of" not in str(
        [message.text for request in play.asked for message in request.messages]
    )


def test_the_same_price_is_shown_twice_and_high_and_low_enclose_it(ashares):
    play = hardened(ashares)
    stock = play.shown(play.symbols(1)[0])
    one = play.ask("get_stock_snapshot", {"stock_id": stock, "lookback": 20})
    two = play.ask("get_stock_snapshot", {"stock_id": stock, "lookback": 10})
    assert one["bars"][10:] == two["bars"] and one["prev_close"] == one["bars"][-1][4]
    for _, opened, high, low, close, *_ in one["bars"]:
        if close is not None:
            assert (
                low <= min(opened, close)
                and high >= max(opened, close)
                and round(close, 2) == close
            )
    assert play.decide([DONE, submit(order(stock, target_weight=0.05))]).orders
