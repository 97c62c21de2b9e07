"""Calibration, worked by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import (
    BootstrapConfig,
    brier,
    calibration,
    calibration_curve,
    expected_calibration_error,
)

CONFIDENCE = np.array([0.95, 0.85, 0.85, 0.55, 0.51])
RIGHT = np.array([1, 1, 0, 1, 0])


def test_by_hand():
    # 0.0025 + 0.0225 + 0.7225 + 0.2025 + 0.2601 = 1.2101
    assert brier(CONFIDENCE, RIGHT) == pytest.approx(1.2101 / 5)
    # [0.9, 1]: |0.95 - 1| x 1; [0.8, 0.9): |0.85 - 0.5| x 2; [0.5, 0.6): |0.53 - 0.5| x 2
    assert expected_calibration_error(CONFIDENCE, RIGHT) == pytest.approx((0.05 + 0.70 + 0.06) / 5)
    curve = calibration_curve(CONFIDENCE, RIGHT)
    assert [bin.n for bin in curve] == [0, 0, 0, 0, 0, 2, 0, 0, 2, 1]
    assert curve[5].confidence == pytest.approx(0.53) and curve[5].accuracy == 0.5
    assert curve[0].confidence is None and curve[0].accuracy is None
    assert (curve[9].low, curve[9].high) == (0.9, 1.0)
    # The lower edge is in.
    for value, at in zip([0.0, 0.1, 0.3, 0.6, 0.7, 0.999, 1.0], [0, 1, 3, 6, 7, 9, 9], strict=True):
        assert calibration_curve(np.array([value]), np.array([1]))[at].n == 1
    assert (
        expected_calibration_error(np.ones(4), np.ones(4)) == 0.0 == brier(np.ones(4), np.ones(4))
    )
    assert (
        expected_calibration_error(np.ones(4), np.zeros(4)) == 1.0 == brier(np.ones(4), np.zeros(4))
    )
    assert brier(np.full(4, 0.5), np.array([0, 1, 0, 1])) == 0.25


def test_nothing_to_judge_and_nonsense():
    empty = np.array([])
    assert np.isnan(brier(empty, empty)) and np.isnan(expected_calibration_error(empty, empty))
    measures = calibration(empty, empty, empty.astype(np.int64))
    assert all(m.value is None and "no order" in str(m.reason) for m in measures.values())
    with pytest.raises(UserError, match="outside 0 to 1"):
        brier(np.array([1.2]), np.array([1]))
    with pytest.raises(UserError, match="confidences for"):
        brier(np.array([0.2]), np.array([1, 0]))


def test_intervals_resample_whole_sessions():
    rng = np.random.default_rng(1)
    session = np.repeat(np.arange(60), 5)
    confidence = rng.uniform(0.5, 0.9, session.size)
    lucky = np.repeat(rng.random(60) < 0.6, 5)
    clustered = calibration(confidence, lucky, session)
    alone = calibration(
        confidence, lucky, np.arange(session.size), bootstrap=BootstrapConfig(block=1.0)
    )
    for name in ("ece", "brier"):
        assert clustered[name].value == alone[name].value and clustered[name].n == 300
    wide, narrow = (m["brier"].high - m["brier"].low for m in (clustered, alone))
    assert wide > 1.5 * narrow, "five orders of one day are not five witnesses"
    assert calibration(confidence, lucky, session) == clustered
    # With few sessions there is no interval.
    measures = calibration(CONFIDENCE, RIGHT, np.array([0, 0, 1, 2, 2]))
    assert measures["ece"].value is not None and measures["ece"].low is None
    assert "3 sessions" in str(measures["ece"].note)
    some = calibration(CONFIDENCE, RIGHT, np.arange(5), bootstrap=BootstrapConfig(least=2))
    assert some["brier"].low is not None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.integers(1, 12)
)
def test_bounds(pairs, bins):
    confidence, right = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    ece, score = expected_calibration_error(confidence, right, bins), brier(confidence, right)
    assert -1e-12 <= ece <= 1 + 1e-12 and 0 <= score <= 1
    assert ece**2 <= score + 1e-9, "the gap of means cannot exceed the root mean square of the gaps"
    curve = calibration_curve(confidence, right, bins)
    by_bins = sum(b.n * abs(b.confidence - b.accuracy) for b in curve if b.n) / len(pairs)
    assert ece == pytest.approx(by_bins, abs=1e-9) and sum(b.n for b in curve) == len(pairs)
