"""What agents lean to."""

import numpy as np
import pytest

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.attribution import DailyParts, preferences, sign_agreement


def days(exposures: np.ndarray, gross: np.ndarray, share: float = 1.0) -> DailyParts:
    zeros = np.zeros(gross.size)
    return DailyParts(
        factors=("up", "down"),
        **dict.fromkeys(("total", "common", "tilt", "selection", "uncovered", "trading"), zeros),
        style=np.zeros((gross.size, 2)),
        covered_share=np.where(gross > 0, share, np.nan),
        exposures=exposures,
        invested=gross,
        gross=gross,
    )


def test_exposure_is_per_unit_invested_on_invested_days():
    gross = np.array([0.0, 0.5, 1.0])
    exposures = np.array([[0.0, 0.0], [0.4, -0.1], [0.6, -0.3]])
    found = preferences(days(exposures, gross))
    assert found["up"].value == pytest.approx((0.8 + 0.6) / 2)
    assert found["down"].value == pytest.approx((-0.2 - 0.3) / 2)
    assert found["up"].n == 2 and "2 invested days" in str(found["up"].note)
    half = preferences(days(exposures, gross, share=0.5))
    assert half["up"].value == pytest.approx(2 * (0.8 + 0.6) / 2)


def test_seeds_are_one_sample_with_an_interval():
    rng = np.random.default_rng(0)
    one, two = (days(rng.normal([0.5, 0.0], 0.2, (80, 2)), np.ones(80)) for _ in range(2))
    found = preferences([one, two])
    assert found["up"].n == 160 and found["up"].low > 0.3
    assert found["down"].low < 0 < found["down"].high
    never = preferences(days(np.zeros((3, 2)), np.zeros(3)))["up"]
    assert never.value is None and "ever held" in str(never.reason)


def test_sign_agreement_counts_pairs_against_the_median_baseline():
    def leaning(up: float, down: float | None) -> dict[str, Measure]:
        return {
            "up": Measure(value=up),
            "down": not_scored("none") if down is None else Measure(value=down),
        }

    baselines = [leaning(0.5, -0.2), leaning(0.1, -0.4), leaning(-0.9, -0.1)]
    agreement = sign_agreement(
        [leaning(1.0, -1.0), leaning(-1.0, -2.0), leaning(0.3, None)], baselines
    )
    assert agreement.baseline == {"up": 0.1, "down": -0.2}
    assert agreement.by_factor["up"].value == pytest.approx(2 / 3)
    assert agreement.by_factor["down"].value == 1.0
    assert agreement.overall.value == pytest.approx(4 / 5)
    assert agreement.overall.n == 5
    assert 0.3 < agreement.overall.low < 0.8 < agreement.overall.high < 1.0
    none = sign_agreement([leaning(0.0, None)], baselines)
    assert none.overall.value is None
