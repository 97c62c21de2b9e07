"""The small parts: numbers, months, bars, thinning, colours and chart specifications."""

import json
import re
from datetime import date

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st
from report_sample import cell

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import counted
from tradeassay.metrics.history import history_of
from tradeassay.report import numbers
from tradeassay.report.charts import (
    HUES,
    ChartLook,
    Curve,
    Equity,
    line_chart,
    picked,
    styles,
    ticks,
)
from tradeassay.report.formatting import common_scale, shown
from tradeassay.report.shell import page_environment, template_text
from tradeassay_bench.core.orders import Order
from tradeassay_bench.report.curves import kept
from tradeassay_bench.report.decisions import order_words
from tradeassay_bench.report.paste_cells import in_line
from tradeassay_bench.report.run_charts import account_curves, holdings_chart, traded

CELL = cell(0, 120)
EQUITY, UNDERWATER = account_curves(CELL)


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (0.1234, "fraction", True, "+12.3%"),
        (-0.1234, "fraction", False, "\u221212.3%"),
        (0.0, "fraction", True, "0.0%"),
        (-0.000001, "fraction", True, "0.00%"),
        (0.0004, "fraction", False, "0.04%"),
        (12.5, "fraction", True, "+1,250%"),
        (1.234, "number", False, "1.23"),
        (-0.5, "number", True, "\u22120.50"),
        (12345.6, "number", False, "12,346"),
        (float("nan"), "number", False, "n/a"),
    ],
)
def test_numbers_for_people(value, unit, signed, text):
    assert numbers.number(value, unit=unit, signed=signed) == text


def test_measures_in_words_and_in_their_forms():
    assert in_line(Measure(value=0.5, low=-0.25, high=0.75), "{:.2f}") == "0.50 (−0.25 to 0.75)"
    assert in_line(Measure(value=0.5, note="no interval: 2 days"), "{:.0%}") == "50%"
    assert in_line(not_scored("nothing was asked"), "{:.0%}") == "n/a"
    assert (
        numbers.interval("sharpe", Measure(value=1.0, low=-0.5, high=2.0)) == "\u22120.50 to +2.00"
    )
    assert numbers.interval("sharpe", Measure(value=1.0)) == ""
    assert numbers.p_value(0.004) == "p < 0.01"
    assert numbers.p_value(0.3) == "p = 0.30"
    assert counted(1, "session") == "1 session"
    assert counted(1200, "session") == "1,200 sessions"
    assert numbers.month_text(-0.0001) == "0.0"
    assert numbers.month_text(0.021) == "+2.1"
    share = shown(Measure(value=0.5, low=0.4, high=0.6), "share")
    assert (share.text, share.interval, share.tone) == ("50.0%", "40.0% to 60.0%", "")
    score = shown(Measure(value=7.256, note="mean of 3"), "{:.2f}")
    assert (score.text, score.small) == ("7.26", "mean of 3")
    nothing = shown(not_scored("too few sessions"), "change")
    assert (nothing.text, nothing.small, nothing.value) == ("n/a", "too few sessions", None)


def test_months_by_hand():
    days = ("2023-12-28", "2023-12-29", "2024-01-02", "2024-01-03", "2024-03-01")
    history = history_of(days, (100.0, 101.0, 110.0, 99.0, 121.0, 60.5), 252)
    assert history is not None
    years = history.months
    assert [year.year for year in years] == ["2023", "2024"]
    assert (years[0].months[11], years[1].months[:3]) == (
        pytest.approx(0.10),
        pytest.approx((0.10, None, -0.5)),
    )
    assert years[1].total == pytest.approx(-0.45)
    assert history_of(days, (100.0, 0.0, 1.0, 1.0, 1.0, 1.0), 252) is None


@given(st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=200))
def test_months_compound_to_the_return(returns):
    path = np.concatenate([[1.0], np.cumprod(1 + np.array(returns))])
    days = tuple(str(np.datetime64("2023-11-20") + day) for day in range(len(returns)))
    history = history_of(days, path.tolist(), 252)
    assert history is not None
    total = np.prod([1 + year.total for year in history.months])
    assert total == pytest.approx(path[-1])


def test_bars_share_a_scale_that_holds_zero_and_no_wild_one_squeezes_the_others():
    measures = [
        Measure(value=0.1, low=-0.1, high=0.3),
        Measure(value=0.2, low=0.1, high=0.4),
        not_scored("x"),
    ]
    scale = common_scale(measures)
    one, two = scale.bar(measures[0]), scale.bar(measures[1])
    assert scale.bar(measures[2]) is None
    assert one.zero == two.zero
    assert one.low is not None
    assert 0 < one.low < one.zero < one.value < two.value < 100
    tame = [Measure(value=0.1, low=0.0, high=0.2) for _ in range(6)]
    wild = Measure(value=0.1, low=-0.2, high=500.0)
    scale = common_scale([*tame, wild])
    bar, quiet = scale.bar(wild), scale.bar(tame[0])
    assert bar.cut_high
    assert quiet.high is not None
    assert quiet.low is not None
    assert quiet.high - quiet.low > 15


def test_thinning_keeps_ends_and_extremes():
    path = np.ones(5000)
    path[1234], path[4321] = 2.0, 0.1
    places = kept(5000, [path.tolist()], 100)
    assert {0, 1234, 4321, 4999} <= set(places)
    assert len(places) < 110
    assert kept(10, []) == list(range(10))
    assert picked([1.234567, 2.0, float("nan")], (0, 2)) == (1.23457, None)


def test_lines_differ_without_colour():
    looks = styles([f"a{number}" for number in range(20)] + ["base"], "base")
    assert (looks["base"].hue, looks["base"].dash) == ("base", "6 4")
    assert len({(look.hue, look.dash) for look in looks.values()}) == 21
    assert len({(look.dash, look.marker) for look in list(looks.values())[: len(HUES)]}) == len(
        HUES
    )
    sheet = template_text("page.css")
    assert all(
        sheet.count(f"--{hue}:#") == 4 for hue in (*HUES, "base", "rest")
    )  # light, dark twice, paper


def test_equity_has_one_line_per_agent_and_none_is_above_water():
    chart = EQUITY
    assert [curve.entry for curve in chart.curves] == [
        agent.name for agent in CELL.ranked if agent.paths
    ]
    assert [curve.entry for curve in chart.curves if curve.baseline] == ["equal-weight"]
    for curve in chart.curves:
        assert len(curve.returns) == len(chart.days) == 121
        assert curve.returns[0] == 0.0
    # One market: the index is drawn only where there is no baseline to compare with.
    others = tuple(agent for agent in CELL.agents if not agent.baseline)
    alone, _ = account_curves(msgspec.structs.replace(CELL, agents=others))
    assert alone.curves[-1].label == "index IDX"
    assert chart.days[0] < CELL.sessions[0]
    assert not chart.thinned
    assert len(UNDERWATER.curves) == len(EQUITY.curves)
    for curve in UNDERWATER.curves:
        assert max(value for value in curve.returns if value is not None) <= 0.0


def test_holdings_gather_the_small_names_and_trades_come_by_value():
    chart = holdings_chart(CELL.agents[0], CELL.sessions)
    detail = CELL.agents[0].detail
    assert chart is not None
    areas = re.findall(r'<path class="area [^"]+" data-label="([^"]+)" d="([^"]+)"/>', chart)
    assert areas[0][0] == "5 others" and len(areas) == 10
    # The first area is the sum of all: its path says, day by day, what the account held.
    steps = [(int(x), int(y)) for x, y in re.findall(r"[Ml](-?\d+) ?(-?\d+)", areas[0][1])]
    days, sums = np.cumsum([x for x, _ in steps]), np.cumsum([-y for _, y in steps]) / 1000
    assert days[0] == date.fromisoformat(CELL.sessions[0]).toordinal() and len(days) == 64
    there = [date.fromisoformat(session).toordinal() for session in CELL.sessions].index(days[50])
    assert sums[50] == pytest.approx(sum(row[there] for row in detail.holdings.weights), abs=6e-3)
    found = traded(CELL.agents[0])
    value = [sum(price * abs(size) for _, price, size in trades) for trades in found.values()]
    assert value and value == sorted(value, reverse=True)
    assert next(iter(found)) in CELL.prices


@given(st.floats(-1e3, 1e3), st.floats(1e-4, 1e4), st.integers(2, 9))
def test_ticks_are_round_and_inside(low, width, count):
    step, found = ticks(low, low + width, count)
    assert float(f"{step:e}".split("e")[0]) in (1.0, 2.0, 5.0)
    assert len(found) <= count + 1 and step <= 5.0 * width / count
    assert all(low - 1e-6 * step <= one <= low + width + 1e-6 * step for one in found)


def test_json_cannot_leave_its_element():
    page = page_environment().from_string("{{ value | script_json }}")
    text = page.render(value={"a": "</script><!--&\u2028"})
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == {"a": "</script><!--&\u2028"}


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (Order(symbol="A", amount=0.1, unit="target_weight"), "A to 10.0% of the account"),
        (
            Order(symbol="A", amount=20, side="BUY", kind="limit", limit_price=10.5),
            "buy 20 A, limit 10.5",
        ),
        (Order(symbol="A", amount=500, unit="dollars", side="SELL"), "sell A for 500"),
        (
            Order(symbol="A", amount=0, unit="target_shares", kind="stop", stop_price=9),
            "A to 0 shares, stop 9",
        ),
        (Order(symbol="A", amount=1234.5, unit="target_value"), "A to a value of 1,234.5"),
    ],
)
def test_orders_in_words(order, text):
    assert order_words(order) == text


def drawn(days, returns):
    curve = Curve(entry="a", label="the account", returns=tuple(returns))
    chart = Equity(days=tuple(days), curves=(curve,), sessions=len(days))
    return str(line_chart(chart, ChartLook(), "an account"))


def test_an_account_that_grew_far_has_a_log_axis():
    days = [f"{year}-06-30" for year in range(1930, 2020)]
    grown = [1.12**place - 1.0 for place in range(len(days))]
    far = drawn(days, grown)
    assert (
        " data-log" in far
        and ">1×<" in far
        and ">1,000×<" in far
        and ">10k×<" in far
        and "%</text>" not in far
    )
    # Equal growth is an equal distance: the line is straight.
    (path,) = re.findall(r'class="ink[^>]* d="M[^l]*((?:l\S+ ?-?\d+)*)', far)
    rises = [float(one) for one in re.findall(r"l\d+[ ]?(-?\d+)", path)]
    assert max(rises) - min(rises) <= 1.0
    near = drawn(days, [one / 1e4 for one in grown])
    assert " data-log" not in near and "%</text>" in near
