"""Agreement of two runs, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tradeassay.code.judges.agreement import AgreementConfig, FillTable, agreement, hints

CLOSES = np.full((10, 2), 100.0)


def table(*fills: tuple[int, int, float]) -> FillTable:
    bars, assets, sizes = ([fill[k] for fill in fills] for k in range(3))
    return FillTable(
        bar=np.array(bars, np.int64), asset=np.array(assets, np.int64), size=np.array(sizes, np.float64)
    )


REFERENCE = table((2, 0, 10.0), (5, 0, -10.0), (6, 0, 10.0), (8, 0, -10.0))


def test_the_same_fills_agree_fully() -> None:
    found = agreement(REFERENCE, REFERENCE, CLOSES)
    assert (found.value, found.fills, found.exposure, found.matched) == (1.0, 1.0, 1.0, 4)
    assert hints(REFERENCE, REFERENCE, CLOSES) == ()


def test_an_exit_that_comes_late_by_hand() -> None:
    late = table((2, 0, 10.0), (7, 0, -10.0))
    found = agreement(late, REFERENCE, CLOSES)
    # one of the two events (the entry on bar 2) matches: F1 = 2 * 1 / (2 + 4)
    assert found.fills == pytest.approx(1 / 3)
    # held at closes 2..6 against 2..4 and 6..7: differ on bars 5 and 7; 5 and 5 bars held
    assert found.exposure == pytest.approx(1 - 2 / 10)
    assert found.value == found.fills
    assert found.entries == pytest.approx(2 / 3) and found.exits == 0.0


def test_a_reversal_is_an_exit_and_an_entry_however_it_is_ordered() -> None:
    one = table((1, 0, 10.0), (4, 0, -20.0))
    two = table((1, 0, 10.0), (4, 0, -10.0), (4, 0, -10.0))
    found = agreement(one, two, CLOSES)
    assert (found.value, found.matched, found.candidate, found.entries, found.exits) == (1.0, 3, 3, 1.0, 1.0)


def test_opposite_and_disjoint_runs_do_not_agree() -> None:
    assert agreement(REFERENCE.flipped(), REFERENCE, CLOSES).value == 0.0
    other_asset = table((2, 1, 10.0), (5, 1, -10.0))
    assert agreement(other_asset, table((2, 0, 10.0), (5, 0, -10.0)), CLOSES).value == 0.0
    assert "sell" in hints(REFERENCE.flipped(), REFERENCE, CLOSES)[0]


def test_sizes_count_beyond_their_tolerance() -> None:
    near = table((2, 0, 10.4), (5, 0, -10.4), (6, 0, 10.0), (8, 0, -10.0))
    assert agreement(near, REFERENCE, CLOSES).fills == 1.0
    double = FillTable(bar=REFERENCE.bar, asset=REFERENCE.asset, size=2 * REFERENCE.size)
    found = agreement(double, REFERENCE, CLOSES)
    assert found.fills == 0.0 and found.exposure == pytest.approx(2 / 3)
    assert any("sizes" in hint for hint in hints(double, REFERENCE, CLOSES))


def test_a_bar_off_is_another_trade_unless_told_otherwise() -> None:
    shifted = FillTable(bar=REFERENCE.bar + 1, asset=REFERENCE.asset, size=REFERENCE.size)
    assert agreement(shifted, REFERENCE, CLOSES).fills == 0.0
    assert agreement(shifted, REFERENCE, CLOSES, AgreementConfig(bar_tolerance=1)).fills == 1.0
    assert any("bars" in hint for hint in hints(shifted, REFERENCE, CLOSES))


def test_no_trades_against_none_and_some() -> None:
    nothing = table()
    assert agreement(nothing, nothing, CLOSES).value == 1.0
    found = agreement(nothing, REFERENCE, CLOSES)
    assert found.value == 0.0 and "does not trade" in hints(nothing, REFERENCE, CLOSES)[0]


FILLS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 1), st.sampled_from([-7.0, -3.0, 2.0, 5.0])), max_size=12
)


@given(FILLS, FILLS, st.integers(0, 2))
def test_it_is_symmetric_in_bounds_and_one_for_itself(left: list, right: list, reach: int) -> None:
    config = AgreementConfig(bar_tolerance=reach, size_tolerance=0.0)
    one, two = table(*sorted(left)), table(*sorted(right))
    there, back = agreement(one, two, CLOSES, config), agreement(two, one, CLOSES, config)
    assert 0.0 <= there.value <= 1.0
    assert agreement(one, one, CLOSES, config).value == 1.0
    assert there.exposure == pytest.approx(back.exposure)
    if reach == 0:
        assert there.fills == back.fills
