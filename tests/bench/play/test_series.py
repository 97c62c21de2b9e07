"""From a journal to a series: the numbers of a week that can be checked by hand."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from week_journal import buy, silent, step, traded_week

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, EpisodeSeries, across_seeds, score, series_from_nav
from tradeassay_bench.core.errors import LedgerError
from tradeassay_bench.core.events import (
    AccountTerms,
    BorrowCharged,
    Deposited,
    Event,
    Filled,
    Marked,
    Rejected,
    Rested,
    StepRecord,
    Trimmed,
)
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.play import holdings_from_records, series_from_records


def test_a_week_by_hand():
    series = series_from_records(traded_week())
    assert series.sessions == ("2025-03-03", "2025-03-04", "2025-03-05", "2025-03-06")
    assert series.nav.tolist() == [100.0, 99.0, 109.0, 109.0, 104.0]
    assert series.cash.tolist() == [24.0] * 4
    assert series.traded.tolist() == [75.0, 0.0, 0.0, 0.0]
    assert series.costs.tolist() == [1.0, 0.0, 0.0, 0.0]
    risen = (60**2 + 25**2) / 85**2
    assert series.hhi.tolist() == pytest.approx([(4 + 1) / 9, risen, risen, (9 + 1) / 16])
    assert series.orders.tolist() == [2, 2, 0, 0]
    assert series.rejected.tolist() == [0, 1, 0, 0]
    assert series.abstained.tolist() == [False, False, False, True]
    assert series.failed.tolist() == [False, False, True, False]
    assert series.rejections == {"limit_up": 1}
    assert series.failures == {"schema": 1}
    assert series.failure is None
    assert series.ruined is None


def placing(number: int, orders: int, *events: Event) -> StepRecord:
    """A session that places orders and trades nothing."""
    decision = Decision(
        orders=tuple(Order(symbol="A", amount=1, side="BUY") for _ in range(orders))
    )
    opening = (Deposited(100.0),) if number == 0 else ()
    return step(number, *events, cash=100.0, decision=decision, opening=opening)


def test_an_order_refused_in_part_is_refused_once():
    cut = Trimmed("0.0", "A", 9.0, 5.0, "insufficient_cash")
    again = Trimmed("0.0", "A", 5.0, 2.0, "no_volume")
    rest = Rejected("0.0", "A", "no_volume", "nothing left")
    series = series_from_records([placing(0, 2, cut, again, rest)])
    assert series.orders.tolist() == [2]
    assert series.rejected.tolist() == [1]
    assert series.rejections == {"insufficient_cash": 1, "no_volume": 1}
    assert score(series)["rejection_rate"].value == 0.5


def test_a_refusal_belongs_to_the_session_that_placed_the_order():
    late = Rejected("0.1", "A", "insufficient_cash", "spent meanwhile")
    records = [placing(0, 2, Rested("0.1", "A", 1.0)), placing(1, 0), placing(2, 1, late)]
    series = series_from_records(records)
    assert series.orders.tolist() == [2, 0, 1]
    assert series.rejected.tolist() == [1, 0, 0]


def test_nobodys_order_and_orders_of_a_failed_answer_do_not_count():
    stranger = Rejected("7.0", "A", "limit_up", "at the limit")
    failed = msgspec.structs.replace(
        placing(1, 3),
        decision=Decision(status="failed", orders=(Order(symbol="A", amount=1, side="BUY"),)),
    )
    series = series_from_records([placing(0, 1, stranger), failed])
    assert series.orders.tolist() == [1, 0]
    assert series.rejected.tolist() == [0, 0]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=20, max_size=26),
    st.lists(st.tuples(st.integers(0, 25), st.integers(0, 3), st.integers(0, 6)), max_size=40),
)
def test_resampled_rates_stay_within_bounds(orders, late):
    """Refusals arrive up to six sessions after their order, some twice, most in sessions without
    an order.
    """
    events: list[list[Event]] = [[] for _ in orders]
    for number, place, wait in late:
        if number < len(orders) and place < orders[number] and number + wait < len(orders):
            events[number + wait].append(Rejected(f"{number}.{place}", "A", "no_volume", ""))
    series = series_from_records(placing(n, count, *events[n]) for n, count in enumerate(orders))
    assert (series.rejected <= series.orders).all()
    quick = BootstrapConfig(draws=60)
    scores = score(series, bootstrap=quick)
    both = across_seeds([series, series], [scores, scores], bootstrap=quick)
    for name in ("rejection_rate", "abstention_rate", "failure_rate"):
        for measure in (scores[name], both[name].median):
            assert all(
                0.0 <= x <= 1.0 for x in (measure.value, measure.low, measure.high) if x is not None
            )


def test_the_week_scored():
    scores = score(series_from_records(traded_week(), periods_per_year=365))
    assert scores["cumulative_return"].value == pytest.approx(0.04)
    assert scores["max_drawdown"].value == pytest.approx(104 / 109 - 1)
    assert scores["abstention_rate"].value == 0.25
    assert scores["failure_rate"].value == 0.25
    assert scores["rejection_rate"].value == 0.25
    assert scores["cash_ratio"].value == pytest.approx((24 / 99 + 2 * 24 / 109 + 24 / 104) / 4)
    assert scores["sharpe"].reason == "4 sessions, at least 10 are needed"
    assert scores["cumulative_return"].note == "no interval: 4 sessions, at least 20 are needed"
    assert scores["information_ratio"].reason == "no index without gaps to compare with"


def test_holdings():
    holdings = holdings_from_records(traded_week())
    assert holdings.symbols == ("A", "B")
    assert holdings.weights[0] == pytest.approx([50 / 99, 25 / 99])
    assert holdings.weights[3] == pytest.approx([60 / 104, 20 / 104])


def test_costs_of_borrowing_and_the_value_of_points():
    terms = AccountTerms(margin=True)
    bought = Filled("o", "F", 2.0, 10.0, 10.0, 0.5, 0.0, -100.5, multiplier=5.0)
    first = step(
        0, bought, BorrowCharged("S", -0.25), cash=-0.75, opening=(Deposited(100.0, terms),)
    )
    marked = Marked(-0.75, 100.0, 99.25, (), {"F": 10.0})
    record = msgspec.structs.replace(first, events=(*first.events[:-1], marked))
    series = series_from_records([record])
    assert series.traded.tolist() == [100.0]
    assert series.costs.tolist() == [0.75]
    assert series.hhi.tolist() == [1.0]
    assert holdings_from_records([record]).weights[0] == pytest.approx([100 / 99.25])


def test_a_model_that_never_answers_has_no_return():
    series = series_from_records(silent(30))
    assert series.failure == "no usable answer in any of 30 sessions (timeout 30)"
    scores = score(series)
    assert scores["cumulative_return"].value is None
    assert scores["cumulative_return"].reason == series.failure
    assert scores["failure_rate"].value == 1.0
    assert [name for name, measure in scores.items() if measure.value is not None] == [
        "failure_rate"
    ]


def test_a_run_that_failed_has_no_return_whatever_it_recorded():
    scores = score(series_from_records(traded_week(), failure="the agent raised KeyError"))
    assert {measure.reason for measure in scores.values()} == {"the agent raised KeyError"}


def test_an_empty_journal_is_a_failure():
    series = series_from_records([])
    assert series.failure == "nothing was recorded"
    assert score(series)["cumulative_return"].reason == "nothing was recorded"


def test_money_that_does_not_add_up_is_an_error():
    bad = step(0, buy("A", 5, 10.0), cash=60.0, held={"A": (5, 10.0)}, opening=(Deposited(100.0),))
    with pytest.raises(LedgerError):
        series_from_records([bad])


def test_series_of_other_lengths_are_refused():
    with pytest.raises(UserError, match="include the initial value"):
        series_from_nav(np.ones(4), sessions=("a", "b", "c", "d"))
    with pytest.raises(UserError, match="index levels"):
        series_from_nav(np.ones(4), index=np.ones(3))
    good = series_from_nav(np.ones(4))
    with pytest.raises(UserError, match="more orders were refused than placed"):
        EpisodeSeries(
            **{name: getattr(good, name) for name in good.__slots__ if name != "rejected"},
            rejected=np.ones(3, int),
        )
    with pytest.raises(UserError, match="cash"):
        EpisodeSeries(
            **{name: getattr(good, name) for name in good.__slots__ if name != "cash"},
            cash=np.zeros(2),
        )
