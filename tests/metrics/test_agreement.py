"""Krippendorff's alpha against his own worked example and against a table small enough for a pencil."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics.agreement import krippendorff_alpha

# Four observers, twelve units, "." is no rating: the example of Krippendorff, Computing Alpha-Reliability (2011).
_ROWS = {
    "A": "1 2 3 3 2 1 4 1 2 . . .",
    "B": "1 2 3 3 2 2 4 1 2 5 . 3",
    "C": ". 3 3 3 2 3 4 2 2 5 1 .",
    "D": "1 2 3 3 2 4 4 1 2 5 1 .",
}


def _units(rows: dict[str, str]) -> list[dict[str, int]]:
    columns = {name: row.split() for name, row in rows.items()}
    count = len(next(iter(columns.values())))
    return [{name: int(row[at]) for name, row in columns.items() if row[at] != "."} for at in range(count)]


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_worked_example(level, printed) -> None:
    found = krippendorff_alpha(_units(_ROWS), level)
    assert found.value == pytest.approx(printed, abs=5e-4)
    assert found.n == 11  # the last unit has one rating


def test_two_raters_by_hand() -> None:
    # yes/yes, yes/yes, no/no, yes/no: coincidences yy 4, nn 2, yn + ny 2; margins 5 and 3 of 8.
    # observed 2/8; expected 2*5*3/(8*7) = 30/56; alpha = 1 - (2/8)/(30/56) = 8/15.
    units = [{"a": "yes", "b": "yes"}, {"a": "yes", "b": "yes"}, {"a": "no", "b": "no"}, {"a": "yes", "b": "no"}]
    assert krippendorff_alpha(units).value == pytest.approx(8 / 15)


def test_nothing_to_measure_has_a_reason() -> None:
    assert krippendorff_alpha([{"a": 1}, {"b": 2}]).reason == "no unit has two ratings"
    assert krippendorff_alpha([{"a": 1, "b": 1}]).value is None


def test_words_have_an_order_when_it_is_given() -> None:
    units = [{"a": "low", "b": "high"}, {"a": "mid", "b": "mid"}, {"a": "high", "b": "high"}]
    numbers = [{k: {"low": 0, "mid": 1, "high": 2}[v] for k, v in unit.items()} for unit in units]
    by_words = krippendorff_alpha(units, "ordinal", order=("low", "mid", "high"))
    assert by_words.value == krippendorff_alpha(numbers, "ordinal").value
    with pytest.raises(UserError, match="not in the order"):
        krippendorff_alpha(units, "ordinal", order=("low", "high"))
    with pytest.raises(UserError, match="not a number"):
        krippendorff_alpha(units, "interval")


def test_the_interval_is_the_same_every_time_and_holds_the_value() -> None:
    one, two = (krippendorff_alpha(_units(_ROWS), draws=200, seed=3) for _ in range(2))
    assert one == two
    assert one.low is not None and one.high is not None and one.value is not None
    assert one.low <= one.value <= one.high


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), min_size=2, max_size=12))
def test_full_agreement_is_one_and_order_of_units_is_nothing(ratings) -> None:
    units = [dict(zip("abcd", row, strict=False)) for row in ratings]
    same = [dict.fromkeys(unit, next(iter(unit.values()))) for unit in units]
    perfect = krippendorff_alpha(same)
    assert perfect.value is None or perfect.value == pytest.approx(1.0)
    found = krippendorff_alpha(units, "interval").value
    again = krippendorff_alpha(units[::-1], "interval").value
    assert found == again if found is None else found == pytest.approx(again)
    assert found is None or found <= 1.0 + 1e-12
