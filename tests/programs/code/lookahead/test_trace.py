"""What counts as an action, and when two traces are the same."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_programs.code.backtrader import action_words
from tradeassay_programs.code.lookahead.trace import Trace, first_difference


def test_an_action_is_a_row_on_which_something_changes():
    side, size = np.array([0, 0, 1, 1, -1, 0]), np.array([0.0, 0.0, 2.0, 3.0, 3.0, 0.0])
    trace = Trace.of_rows({"side": side, "size": size})
    assert trace.rows.tolist() == [2, 3, 4, 5]
    assert trace.fields["side"].tolist() == [1, 1, -1, 0]
    assert trace.words(1) == "side=1, size=3"


def test_missing_and_empty_is_nothing_decided():
    assert len(Trace.of_rows({"side": np.array([np.nan, np.nan])})) == 0
    assert len(Trace.of_rows({"side": np.array(["", "", ""], dtype=object)})) == 0
    assert Trace.of_rows({"side": np.array(["buy", "buy", None], dtype=object)}).rows.tolist() == [
        0,
        2,
    ]
    assert Trace.of_rows({"on": np.array([True, True, False])}).rows.tolist() == [0, 2]


def test_traces_that_cannot_be():
    with pytest.raises(UserError, match="never go back"):
        Trace(rows=np.array([3, 2]))
    with pytest.raises(UserError, match="'side'"):
        Trace(rows=np.array([1, 2]), fields={"side": np.array([1])})
    with pytest.raises(UserError, match="one length"):
        Trace.of_rows({"a": np.zeros(2), "b": np.zeros(3)})


def test_the_first_difference_says_both_sides():
    left = Trace(rows=np.array([2, 5, 9]), fields={"side": np.array([1, -1, 1])})
    right = Trace(rows=np.array([2, 7, 9]), fields={"side": np.array([1, -1, 1])})
    assert first_difference(left, right, 10, 0.0) == (5, "side=-1", "nothing")
    assert first_difference(right, left, 10, 0.0) == (5, "nothing", "side=-1")
    assert first_difference(left, right, 5, 0.0) is None
    other = Trace(rows=np.array([2]), fields={"kind": np.array(["limit"], dtype=object)})
    assert first_difference(left, other, 10, 0.0) == (2, "on side", "on kind")


def test_floats_have_a_tolerance_and_words_have_none():
    def sized(size: float) -> Trace:
        return Trace(rows=np.array([1]), fields={"size": np.array([size])})

    assert first_difference(sized(1.0), sized(1.0 + 1e-12), 2, 1e-9) is None
    assert first_difference(sized(1.0), sized(1.0 + 1e-6), 2, 1e-9) is not None
    assert first_difference(sized(1.0), sized(np.nextafter(1.0, 2)), 2, 0.0) is not None
    assert first_difference(sized(np.nan), sized(np.nan), 2, 0.0) is None


SIDES = st.lists(st.sampled_from([-1, 0, 1]), max_size=20)


@given(SIDES, SIDES, st.data())
def test_traces_agree_exactly_when_the_tables_do(left, right, data):
    size = min(len(left), len(right))
    row = data.draw(st.integers(0, size))
    traces = [
        Trace.of_rows({"side": np.array(values[:size], dtype=np.int64)}) for values in (left, right)
    ]
    found = first_difference(*traces, row, 0.0)
    assert (found is None) == (left[:row] == right[:row])
    if found is not None:
        assert found[0] == next(i for i in range(row) if left[i] != right[i])


def test_actions_of_a_backtrader_strategy_are_told_in_words():
    names = (
        "action asset side size kind given price pricelimit trailamount trailpercent valid oco"
    ).split()
    actions = {
        "to buy 10 (market)": (0, 0, 1, 10.0),
        "to sell 2.5 of data1 (limit, price 98.5)": (0, 1, -1, 2.5, 2, 1, 98.5),
        "to cancel an order": (1, 0, 0, 0.0),
        "to end the run": (2, 0, 0, 0.0),
        "to buy 10 (market) again": (0, 0, 1, 10.0, *[0] * 7, 3),
    }
    traces = []
    for one in actions.values():
        fields = {
            n: np.array([v]) for n, v in zip(names, (*one, *[0] * (12 - len(one))), strict=True)
        }
        traces.append(Trace(rows=np.array([57]), fields=fields, say=action_words))
    assert [trace.words(0) for trace in traces[:-1]] == list(actions)[:-1]
    assert first_difference(traces[0], traces[1], 60, 0.0) == (57, *list(actions)[:2])
    told = first_difference(
        traces[0], traces[-1], 60, 0.0
    )  # the same words: what has none is told by name
    assert told is not None and "oco=0" in told[1] and "oco=3" in told[2]
