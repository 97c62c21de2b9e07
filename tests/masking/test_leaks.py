"""The scanner finds what is planted and leaves ordinary prose alone."""

import json

import pytest

from tradeassay.masking import MaskConfig, Truth, find_leaks
from tradeassay.masking.leaks import date_forms

TRUTH = Truth(
    symbols=("AAPL", "GE", "D", "ALL", "600519.SH", "BRK.B"),
    names=("Apple Inc.", "General Electric Company", "Dominion Energy, Inc."),
    chinese=("贵州茅台", "茅台"),
    days=("2024-03-05", "2024-05-01"),
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (one, "symbol")
            for one in "buy AAPL.|x_AAPL_y|GE|$D|(ALL)|NYSE: D|600519|sh600519|BRK-B|买600519吧".split("|")
        ),
        *(
            (one, "name")
            for one in "Apple rose|APPLE|General Electric Company|Dominion|买入贵州茅台|茅台".split("|")
        ),
        (r'{"t": "\u8d35\u5dde\u8305\u53f0"}', "name"),
        (r'{"t": "a\nAAPL"}', "symbol"),
        *((f"on {form}.", "date") for form in date_forms("2024-03-05")),
    ],
)
def test_planted_leaks_are_found(text, kind):
    found = find_leaks(text, TRUTH)
    assert found and found[0].kind == kind
    assert found[0].where


@pytest.mark.parametrize(
    "text",
    [
        "It all depends on ALL the cost, grade D; applesauce, generalised, GEM, AAPLX",
        "asset_0007 on day_+12, day_-3 at 12:30, 3/4, 2024.5, 1.600519x2",
        "",
    ],
)
def test_prose_is_left_alone(text):
    assert find_leaks(text, TRUTH) == []


def test_json_is_searched_by_field():
    body = {"stock_id": "D", "grade": "D", "rows": [{"aliases": ["ALL"]}, {"AAPL": 1}], "when": "2024-03-05"}
    found = [(leak.kind, leak.truth) for leak in find_leaks(body, TRUTH)]
    assert found == [("symbol", "D"), ("symbol", "ALL"), ("symbol", "AAPL"), ("date", "2024-03-05")]
    assert find_leaks(json.dumps({"n": 1}), TRUTH) == []


def test_the_truth_of_a_moment(market):
    view = market.at(60, "open")
    all_of_it = Truth.of(view, MaskConfig())
    assert all_of_it.symbols == view.symbols and "2024-01-20" in all_of_it.days and "贵州茅台" in all_of_it.chinese
    assert Truth.of(view, MaskConfig(level="stock-blind")).days == ()
    assert Truth.of(view, MaskConfig(level="date-blind")).symbols == ()
    assert Truth.of(view, MaskConfig(level="bright")) == Truth()
