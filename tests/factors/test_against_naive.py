"""The fast forms agree with the slowest possible ones, and with pandas."""

import math

import numpy as np
import pytest

from tradeassay.factors import FACTOR_NAMES, FACTORS, compute_all

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
def test_every_factor_equals_its_definition(make_bars, missing: float) -> None:
    bars = make_bars(320, 3, missing=missing, seed=4)
    values = compute_all(bars)
    for name in FACTOR_NAMES:
        for t in (0, 15, 19, 20, 47, 48, 60, 61, 199, 201, 202, 251, 252, 300, 319):
            for i in range(3):
                expected = naive(name, bars, t, i)
                assert values[name][t, i] == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), (
                    name,
                    t,
                    i,
                )


def test_pandas_agrees(make_bars) -> None:
    pandas = pytest.importorskip("pandas")
    bars = make_bars(400, 4, missing=0.05, seed=9)
    values = compute_all(bars)
    close = pandas.DataFrame(bars.close)
    returns = close / close.shift() - 1
    amount = pandas.DataFrame(bars.amount)
    expected = {
        "RV_60": returns.rolling(60, min_periods=48).std() * math.sqrt(252),
        "SKEW": -returns.rolling(60, min_periods=48).skew(),
        "CV_VOL": amount.rolling(20, min_periods=16).std() / amount.rolling(20, min_periods=16).mean(),
        "ILLIQ": np.log((returns.abs() / amount).rolling(20, min_periods=16).mean()),
    }
    for name, frame in expected.items():
        np.testing.assert_allclose(values[name], frame.to_numpy(), rtol=1e-7, atol=1e-9, err_msg=name)
