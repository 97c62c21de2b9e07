"""Every factor on a series short enough to work out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core import reproducible_math as exact
from tradeassay.core.errors import DataError, UserError
from tradeassay.factors import FACTOR_NAMES, FACTORS, FactorBars, compute, compute_all, definition


def bars_of(close, *, open=None, high=None, volume=None, amount=None) -> FactorBars:
    close = np.asarray(close, dtype=float)[:, None]

    def column(values, default):
        return default.copy() if values is None else np.asarray(values, dtype=float)[:, None]

    return FactorBars(
        column(open, close),
        column(high, close),
        close,
        column(volume, np.full_like(close, 100.0)),
        column(amount, np.full_like(close, 1e6)),
    )


def test_mom_12_1_is_the_ratio_of_two_closes():
    close = np.arange(1.0, 301.0)
    value = compute("MOM_12_1", bars_of(close))[:, 0]
    assert value[299] == close[279] / close[48] - 1  # close[-21] = 280, close[-252] = 49
    assert value[251] == close[231] / close[0] - 1
    # A short history starts at its first close; 201 of 252 closes are less than 80 %.
    assert np.isnan(value[200]) and value[201] == close[181] / close[0] - 1
    close[279] = close[48] = np.nan  # a missing end is looked for inwards
    assert compute("MOM_12_1", bars_of(close))[299, 0] == 279.0 / 50.0 - 1


def test_rv_60_of_alternating_returns():
    close = 100.0 * np.cumprod(np.where(np.arange(61) % 2, 1.01, 1 / 1.01))
    returns = close[1:] / close[:-1] - 1
    mean = returns.sum() / 60
    expected = math.sqrt(((returns - mean) ** 2).sum() / 59) * math.sqrt(252)
    assert compute("RV_60", bars_of(close))[60, 0] == pytest.approx(expected, rel=1e-12)


def test_skew_is_negative_for_a_rare_rise():
    returns = np.zeros(60)
    returns[30] = 0.06
    close = 100.0 * np.cumprod(np.concatenate([[1.0], 1.0 + returns]))
    # One value of 0.06 among 59 zeros: mean 0.001, skewness by the adjusted Fisher-Pearson formula.
    d = returns - 0.001
    s = math.sqrt((d**2).sum() / 59)
    expected = 60 / (59 * 58) * ((d / s) ** 3).sum()
    assert compute("SKEW", bars_of(close))[60, 0] == pytest.approx(-expected, rel=1e-10)
    assert expected > 7


def test_illiq_is_the_log_of_the_mean_of_move_per_money():
    close = 100.0 * np.cumprod(np.concatenate([[1.0], np.full(20, 1.02)]))
    value = compute("ILLIQ", bars_of(close, amount=np.full(21, 4e6)))[20, 0]
    assert value == pytest.approx(math.log(0.02 / 4e6), rel=1e-12)


def test_rev_on_and_mom_id_split_the_day():
    close = 100.0 * 1.03 ** np.arange(21)
    opened = np.concatenate([[100.0], close[:-1] * 1.01])
    bars = bars_of(close, open=opened)
    assert compute("REV_ON", bars)[20, 0] == pytest.approx(0.01, rel=1e-10)
    assert compute("MOM_ID", bars)[20, 0] == pytest.approx(1.03 / 1.01 - 1, rel=1e-10)


def test_corr_pv_of_volume_that_follows_the_price():
    returns = np.where(np.arange(20) % 3 == 0, 0.02, -0.01)
    close = 100.0 * np.cumprod(np.concatenate([[1.0], 1.0 + returns]))
    volume = 1000.0 * np.exp(np.concatenate([[0.0], np.cumsum(5.0 * returns)]))
    assert compute("CORR_PV", bars_of(close, volume=volume))[20, 0] == pytest.approx(1.0, abs=1e-12)
    against = 1000.0 * np.exp(np.concatenate([[0.0], np.cumsum(-5.0 * returns)]))
    assert compute("CORR_PV", bars_of(close, volume=against))[20, 0] == pytest.approx(-1.0, abs=1e-12)


def test_high_52w_is_close_over_the_highest_high():
    close = np.full(260, 50.0)
    high = np.full(260, 51.0)
    high[100], high[5] = 80.0, 90.0
    value = compute("HIGH_52W", bars_of(close, high=high))[:, 0]
    assert value[256] == 50.0 / 90.0  # row 5 is the oldest of rows 5..256
    assert value[257] == 50.0 / 80.0  # it has left the window


def test_cv_vol_of_two_amounts():
    amount = np.where(np.arange(20) % 2, 3e6, 1e6)
    expected = math.sqrt(20 * 1e12 / 19) / 2e6
    assert compute("CV_VOL", bars_of(np.full(20, 9.0), amount=amount))[19, 0] == pytest.approx(expected, rel=1e-12)


def test_a_series_that_never_moves():
    bars = bars_of(np.full(300, 7.0))
    values = {name: value[-1, 0] for name, value in compute_all(bars).items()}
    assert values["RV_60"] == 0.0 and values["MOM_12_1"] == 0.0 and values["HIGH_52W"] == 1.0
    assert values["CV_VOL"] == 0.0 and values["REV_ON"] == 0.0 and values["MOM_ID"] == 0.0
    assert all(math.isnan(values[name]) for name in ("SKEW", "CORR_PV", "ILLIQ"))


def test_exactly_four_fifths_must_be_present():
    amount = np.full(20, 5e6)
    amount[:4] = np.nan
    bars = bars_of(np.full(20, 9.0), amount=amount)
    assert compute("CV_VOL", bars)[19, 0] == 0.0
    amount[4] = np.nan
    assert np.isnan(compute("CV_VOL", bars_of(np.full(20, 9.0), amount=amount))[19, 0])
    assert {factor.name: factor.enough for factor in FACTORS}["MOM_12_1"] == 202


def test_a_price_that_is_not_positive_is_missing():
    close = 100.0 + np.arange(30.0)
    close[10] = 0.0
    opened = close.copy()
    opened[12] = -1.0
    bars = bars_of(close, open=opened)
    with_gap = close.copy()
    with_gap[10] = np.nan
    assert np.array_equal(compute("RV_60", bars), compute("RV_60", bars_of(with_gap)), equal_nan=True)
    assert np.isfinite(compute("MOM_ID", bars)[-1, 0])


def test_what_is_no_factor_and_no_bars():
    with pytest.raises(UserError, match="did you mean MOM_12_1"):
        definition("MOM_12")
    with pytest.raises(UserError, match="known: MOM_12_1"):
        compute("value", bars_of(np.ones(3)))
    good = np.ones((5, 2))
    for arrays in ([good, good, np.ones((4, 2)), good, good], [np.ones(5)] * 5):
        with pytest.raises(DataError, match="one shape"):
            FactorBars(*arrays)
    assert len(FACTORS) == 9 and len(set(FACTOR_NAMES)) == 9
    assert all(factor.doc and factor.rows - factor.window in (0, 1) for factor in FACTORS)


@given(st.floats(1e-300, 1e300), st.floats(-700.0, 700.0))
def test_log_and_exp_are_within_two_ulp(x, y):
    assert abs(exact.log(x) - np.log(x)) <= 2 * np.spacing(max(abs(np.log(x)), 1e-16))
    assert abs(exact.exp(y) - np.exp(y)) <= 2 * np.spacing(np.exp(y))
    assert np.isnan(exact.log([0.0, -1.0, np.nan])).all()
    assert exact.log([1.0])[0] == 0.0 and exact.exp([0.0])[0] == 1.0


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_totals_add_from_left_to_right(values):
    expected = 0.0
    for k, value in enumerate(values):
        expected = value if k == 0 else expected + value
    assert exact.total(np.array(values)) == expected


def test_totals_along_an_axis():
    values = np.arange(12.0).reshape(3, 4)
    assert exact.total(values, axis=0).tolist() == [12.0, 15.0, 18.0, 21.0]
    assert exact.mean(values).tolist() == [1.5, 5.5, 9.5]
    assert exact.total(np.empty((3, 0))).tolist() == [0.0, 0.0, 0.0]


ENOUGH = {factor.name: factor.enough for factor in FACTORS}


def naive(name: str, bars, t: int, i: int) -> float:
    """One factor at one place, straight from its definition."""
    o, h, c, v, a = (x[:, i] for x in (bars.open, bars.high, bars.close, bars.volume, bars.amount))

    def ret(s: int) -> float:
        return c[s] / c[s - 1] - 1 if s >= 1 else math.nan

    def window(value, n: int) -> list[float]:
        found = [value(s) for s in range(t - n + 1, t + 1) if s >= 0]
        present = [x for x in found if math.isfinite(x)]
        return present if len(present) >= ENOUGH[name] else []

    if name == "MOM_12_1":
        closes = [c[s] for s in range(max(t - 251, 0), max(t - 19, 0)) if math.isfinite(c[s])]
        return closes[-1] / closes[0] - 1 if window(lambda s: c[s], 252) and closes else math.nan
    if name == "HIGH_52W":
        highs = window(lambda s: h[s], 252)
        closes = [c[s] for s in range(max(t - 251, 0), t + 1) if math.isfinite(c[s])]
        return closes[-1] / max(highs) if highs and closes else math.nan
    if name in ("RV_60", "SKEW"):
        x = np.array(window(ret, 60))
        if not x.size:
            return math.nan
        s = x.std(ddof=1)
        if name == "RV_60":
            return s * math.sqrt(252)
        n = x.size
        return -n / ((n - 1) * (n - 2)) * float((((x - x.mean()) / s) ** 3).sum())
    if name == "CORR_PV":
        pairs = [(ret(s), math.log(v[s] / v[s - 1])) for s in range(max(t - 19, 1), t + 1)]
        pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
        return float(np.corrcoef(np.array(pairs).T)[0, 1]) if len(pairs) >= ENOUGH[name] else math.nan
    value = {
        "ILLIQ": lambda s: abs(ret(s)) / a[s],
        "REV_ON": lambda s: o[s] / c[s - 1] - 1 if s >= 1 else math.nan,
        "MOM_ID": lambda s: c[s] / o[s] - 1,
        "CV_VOL": lambda s: a[s],
    }[name]
    x = np.array(window(value, 20))
    if not x.size:
        return math.nan
    if name == "ILLIQ":
        return math.log(x.mean())
    return x.std(ddof=1) / x.mean() if name == "CV_VOL" else float(x.mean())


@pytest.mark.parametrize("missing", [0.0, 0.12])
def test_every_factor_equals_its_definition(make_bars, missing):
    bars = make_bars(320, 3, missing=missing, seed=4)
    values = compute_all(bars)
    for name in FACTOR_NAMES:
        for t in (0, 15, 19, 20, 47, 48, 60, 61, 199, 201, 202, 251, 252, 300, 319):
            for i in range(3):
                expected = pytest.approx(naive(name, bars, t, i), rel=1e-9, abs=1e-12, nan_ok=True)
                assert values[name][t, i] == expected, (name, t, i)
