"""The nine factors: by hand, by definition, with the same bits in every form, and what holds for
any bars.
"""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from tradeassay import factors
from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError, UserError
from tradeassay.factors._windows import log, rolling_sum, rolling_sums, window_sum

FIELDS = ("open", "high", "close", "volume", "amount")
ENOUGH = {factor.name: factor.enough for factor in factors.FACTORS}


def each(bars: factors.FactorBars, change: Callable[[Floats], Floats]) -> factors.FactorBars:
    return factors.FactorBars(*(change(getattr(bars, name)) for name in FIELDS))


def drawn(
    seed: int,
    sessions: int,
    names: int,
    holes: float,
    *,
    together: bool = False,
    swing: float = 0.02,
):
    """Return bars of which a share is missing, whole or ``not together``, and some more are
    zeros.
    """
    rng = np.random.default_rng(seed)
    close = 10 * np.exp(np.cumsum(rng.normal(0, swing, (sessions, names)), axis=0))
    opened = close * np.exp(rng.normal(0, swing / 2, close.shape))
    volume = rng.uniform(1e5, 1e6, close.shape)
    arrays = [opened, np.maximum(opened, close) * 1.01, close, volume, volume * close]
    dice = rng.random((5, *close.shape))
    for array, thrown in zip(arrays, dice[[0] * 5] if together else dice, strict=True):
        array[thrown < holes] = np.nan
        array[thrown > 1.0 - holes / 10] = 0.0
    return factors.FactorBars(*arrays)


# By hand, on series short enough for that


def bars_of(close, **other) -> factors.FactorBars:
    usual = {"open": close, "high": close, "close": close, "volume": [100.0] * len(close)}
    fields = {**usual, "amount": [1e6] * len(close), **other}
    return factors.FactorBars(*(np.array(fields[name], dtype=float)[:, None] for name in FIELDS))


def closes(returns) -> Floats:
    return 100.0 * np.cumprod([1.0, *(1.0 + np.asarray(returns))])


ALTERNATING, RARE_RISE = np.tile([0.01, 1 / 1.01 - 1], 30), np.where(np.arange(60) == 30, 0.06, 0.0)
THIRDS, DAILY = np.where(np.arange(20) % 3 == 0, 0.02, -0.01), closes([0.03] * 20)
OPENED, NINE = [100.0, *(DAILY[:-1] * 1.01)], np.full(20, 9.0)
AMOUNTS = np.where(np.arange(20) % 2, 3e6, 1e6)
FOUR_MISSING, FIVE_MISSING = (
    np.r_[np.full(gone, np.nan), np.full(20 - gone, 5e6)] for gone in (4, 5)
)


@pytest.mark.parametrize(
    ("factor", "bars", "expected"),
    [
        ("RV_60", bars_of(closes(ALTERNATING)), ALTERNATING.std(ddof=1) * math.sqrt(252)),
        # One value among 59 equal ones: the adjusted Fisher-Pearson skewness of a rare rise is the root of 60.
        ("SKEW", bars_of(closes(RARE_RISE)), -math.sqrt(60)),
        ("ILLIQ", bars_of(closes([0.02] * 20), amount=[4e6] * 21), math.log(0.02 / 4e6)),
        # A day of 3 % is 1 % overnight and the rest within.
        ("REV_ON", bars_of(DAILY, open=OPENED), 0.01),
        ("MOM_ID", bars_of(DAILY, open=OPENED), 1.03 / 1.01 - 1),
        # Volume that follows the price, and that goes against it.
        ("CORR_PV", bars_of(closes(THIRDS), volume=np.exp(np.cumsum([0.0, *(5 * THIRDS)]))), 1.0),
        ("CORR_PV", bars_of(closes(THIRDS), volume=np.exp(np.cumsum([0.0, *(-5 * THIRDS)]))), -1.0),
        ("CV_VOL", bars_of(NINE, amount=AMOUNTS), math.sqrt(20 * 1e12 / 19) / 2e6),
        # Exactly four fifths must be present.
        ("CV_VOL", bars_of(NINE, amount=FOUR_MISSING), 0.0),
        ("CV_VOL", bars_of(NINE, amount=FIVE_MISSING), math.nan),
    ],
)
def test_by_hand(factor, bars, expected):
    assert factors.compute(factor, bars)[-1, 0] == pytest.approx(
        expected, rel=1e-12, abs=1e-12, nan_ok=True
    )


def test_a_year_of_momentum_and_of_highs_by_hand():
    close = np.arange(1.0, 301.0)
    value = factors.compute("MOM_12_1", bars_of(close))[:, 0]
    assert value[299] == close[279] / close[48] - 1  # close[-21] = 280, close[-252] = 49
    assert value[251] == close[231] / close[0] - 1
    # A short history starts at its first close; 201 of 252 closes are less than 80 %.
    assert np.isnan(value[200]) and value[201] == close[181] / close[0] - 1
    assert ENOUGH["MOM_12_1"] == 202
    close[279] = close[48] = np.nan  # a missing end is looked for inwards
    assert factors.compute("MOM_12_1", bars_of(close))[299, 0] == 279.0 / 50.0 - 1
    high = np.full(260, 51.0)
    high[100], high[5] = 80.0, 90.0
    value = factors.compute("HIGH_52W", bars_of(np.full(260, 50.0), high=high))[:, 0]
    assert value[256] == 50.0 / 90.0  # row 5 is the oldest of rows 5..256
    assert value[257] == 50.0 / 80.0  # it has left the window


def test_a_series_that_never_moves():
    values = {
        name: value[-1, 0]
        for name, value in factors.compute_all(bars_of(np.full(300, 7.0))).items()
    }
    assert {name for name, value in values.items() if math.isnan(value)} == {
        "SKEW",
        "CORR_PV",
        "ILLIQ",
    }
    still = dict.fromkeys(("RV_60", "MOM_12_1", "CV_VOL", "REV_ON", "MOM_ID"), 0.0) | {
        "HIGH_52W": 1.0
    }
    assert {name: values[name] for name in still} == still


def test_a_price_that_is_not_positive_is_missing():
    close = 100.0 + np.arange(30.0)
    zero, gap, opened = (close.copy() for _ in range(3))
    zero[10], gap[10], opened[12] = 0.0, np.nan, -1.0
    bars = bars_of(zero, open=opened)
    assert np.array_equal(
        factors.compute("RV_60", bars), factors.compute("RV_60", bars_of(gap)), equal_nan=True
    )
    assert np.isfinite(factors.compute("MOM_ID", bars)[-1, 0])


def test_what_is_no_factor_and_no_bars():
    for wrong, said in (("MOM_12", "did you mean MOM_12_1"), ("value", "known: MOM_12_1")):
        for asked in (factors.definition, lambda name: factors.compute(name, bars_of(np.ones(3)))):
            with pytest.raises(UserError, match=said):
                asked(wrong)
    good = np.ones((5, 2))
    for arrays in ([good, good, np.ones((4, 2)), good, good], [np.ones(5)] * 5):
        with pytest.raises(DataError, match="one shape"):
            factors.FactorBars(*arrays)
    assert len(factors.FACTORS) == 9 and len(set(factors.FACTOR_NAMES)) == 9
    assert all(factor.doc and factor.rows - factor.window in (0, 1) for factor in factors.FACTORS)
    for shape in ((0, 3), (5, 0)):
        empty = factors.last_row(factors.FactorBars(*(np.empty(shape) for _ in FIELDS)))
        assert np.isnan(empty).all() and empty.shape == (9, shape[1])


# By definition


def by_definition(bars: factors.FactorBars) -> dict[str, pd.DataFrame]:
    o, h, c, v, a = (
        pd.DataFrame(getattr(bars, name)).where(getattr(bars, name) > 0) for name in FIELDS
    )
    returns, volumes = c / c.shift() - 1, np.log(v / v.shift())

    def over(values, name, of):
        """Return what a function makes of the present values of every window, where there are
        enough of them.
        """
        window = {factor.name: factor.window for factor in factors.FACTORS}[name]
        present = values.rolling(window, min_periods=ENOUGH[name])
        return present.apply(lambda found: of(found[np.isfinite(found)]), raw=True)

    def ends(values, sessions):
        """Return the first and the last value of so many sessions."""
        inside = values.rolling(sessions, min_periods=1)
        return (
            inside.apply(lambda found, at=at: found[np.isfinite(found)][at], raw=True)
            for at in (0, -1)
        )

    (first, month_ago), (_, last) = ends(c, 252 - 20), ends(c, 252)
    pairs = returns.rolling(20, min_periods=ENOUGH["CORR_PV"])
    return {
        "MOM_12_1": (month_ago / first - 1).shift(20).where(over(c, "MOM_12_1", np.size).notna()),
        "RV_60": over(returns, "RV_60", lambda x: x.std(ddof=1)) * math.sqrt(252),
        "ILLIQ": np.log(over(returns.abs() / a, "ILLIQ", np.mean)),
        "REV_ON": over(o / c.shift() - 1, "REV_ON", np.mean),
        "MOM_ID": over(c / o - 1, "MOM_ID", np.mean),
        "SKEW": over(returns, "SKEW", lambda x: -scipy.stats.skew(x, bias=False)),
        "CORR_PV": pairs.corr(volumes),
        "HIGH_52W": last / over(h, "HIGH_52W", np.max),
        "CV_VOL": over(a, "CV_VOL", lambda x: x.std(ddof=1) / x.mean()),
    }


@pytest.mark.parametrize("holes", [0.0, 0.12])
def test_every_factor_equals_its_definition(holes):
    bars = drawn(4, 320, 3, holes, together=True)
    expected = by_definition(bars)
    for name, found in factors.compute_all(bars).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


# The same bits, however ragged the bars


def fields(data: factors.FactorBars) -> Floats:
    """Return bars as a stream takes them, shape (sessions, 5, names)."""
    return np.stack([getattr(data, name) for name in FIELDS], axis=1)


def fed(rows: Floats) -> factors.FactorStream:
    stream = factors.FactorStream(rows.shape[2])
    for row in rows:
        stream.feed(row)
    return stream


def primed(rows: Floats) -> factors.FactorStream:
    stream = factors.FactorStream(rows.shape[2])
    stream.prime(rows[:, 1], rows[:, 2], rows[-factors.RECENT :])
    return stream


FORMS: dict[str, Callable[[factors.FactorBars], Floats]] = {
    "the last row": factors.last_row,
    "the last row by name": lambda data: np.stack(
        [factors.latest_all(data)[name] for name in factors.FACTOR_NAMES]
    ),
    "one factor's last row": lambda data: np.stack(
        [factors.latest(name, data) for name in factors.FACTOR_NAMES]
    ),
    "one factor over a year": lambda data: np.stack(
        [
            factors.compute(name, each(data, lambda values: values[-252:]))[-1]
            for name in factors.FACTOR_NAMES
        ]
    ),
    "a stream, fed": lambda data: fed(fields(data)).values(),
    "a stream, primed": lambda data: primed(fields(data)[-255:]).values(),
}
RAGGED = st.builds(
    drawn,
    st.integers(0, 10_000),
    st.integers(1, 300),
    st.integers(1, 7),
    st.sampled_from([0, 0.02, 0.15, 0.5, 1]),
)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(RAGGED)
def test_every_form_equals_the_whole_to_the_bit(form, data):
    whole, found = factors.compute_all(data), FORMS[form](data)
    for k, name in enumerate(factors.FACTOR_NAMES):
        np.testing.assert_array_equal(found[k], whole[name][-1], err_msg=name)


@pytest.mark.parametrize("together", [True, False])
def test_every_row_is_the_last_row_of_its_history(together):
    bars = drawn(0, 1100, 70, 0.01, together=together)
    found = factors.compute_all(bars)
    for row in (300, 1022, 1023, 1024, 1025, 1083, 1084, 1085, 1099):
        whole = np.stack([found[name][row] for name in factors.FACTOR_NAMES])
        history = each(bars, lambda values, end=row + 1: values[:end])
        assert np.array_equal(factors.last_row(history), whole, equal_nan=True), row


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    first=st.integers(0, 255),
    more=st.integers(1, 90),
    holes=st.floats(0, 0.4),
)
def test_a_primed_stream_goes_on_as_a_fed_one(seed, first, more, holes):
    data = drawn(seed, first + more, 3, holes)
    rows, whole = fields(data), np.stack([*factors.compute_all(data).values()])
    one, other = fed(rows[:first]), primed(rows[:first])
    for at, row in enumerate(rows[first:], first):
        values = one.push(row)
        assert values.tobytes() == other.push(row).tobytes()
        np.testing.assert_array_equal(values, whole[:, at])


def test_only_a_fresh_stream_can_be_primed():
    for rows, taken, said in ((256, 0, "256 sessions"), (3, 1, "already has 1")):
        with pytest.raises(UserError, match=said):
            stream = fed(np.ones((taken, 5, 1)))
            stream.prime(np.ones((rows, 1)), np.ones((rows, 1)), np.ones((factors.RECENT, 5, 1)))


def test_a_split_changes_no_value():
    plain, split = factors.FactorStream(3), factors.FactorStream(3)
    unit = np.array([0.5, 0.5, 0.5, 2.0, 1.0])[:, None]
    for at, row in enumerate(fields(drawn(4, 300, 3, 0.02))):
        if at == 280:
            split.rescale(np.array([1]), np.array([0.5]))
        other = row.copy()
        other[:, 1:2] *= unit if at >= 280 else 1.0
        np.testing.assert_allclose(split.push(other), plain.push(row), rtol=1e-9)
    np.testing.assert_allclose(split.last_close * [1, 2, 1], plain.last_close)
    np.testing.assert_allclose(split.known_close * [1, 2, 1], plain.known_close)


def test_shared_sums_are_those_of_each_window():
    values = np.random.default_rng(0).normal(size=(200, 3))
    for window, found in zip((60, 20, 1, 8, 7), rolling_sums(values, 60, 20, 1, 8, 7), strict=True):
        assert np.array_equal(found, rolling_sum(values, window))
        assert found == pytest.approx(
            pd.DataFrame(values).rolling(window, min_periods=1).sum(), abs=1e-12
        )
        assert np.array_equal(window_sum(values, window), found[-1])


# What holds for any bars

SESSIONS = 290
ANY = st.builds(
    drawn,
    st.integers(0, 2**16),
    st.just(SESSIONS),
    st.just(2),
    st.floats(0.0, 0.25),
    swing=st.sampled_from([0.01, 0.5]),
)


@settings(max_examples=25)
@given(ANY, st.integers(0, SESSIONS - 1), st.integers(0, 99))
def test_later_rows_never_change_a_value(bars, t, seed):
    rng = np.random.default_rng(seed)

    def other_future(values):
        return np.vstack(
            [values[: t + 1], rng.choice([np.nan, 1e-9, 1e12, 5.0], values[t + 1 :].shape)]
        )

    after = factors.compute_all(each(bars, other_future))
    for name, before in factors.compute_all(bars).items():
        assert before[: t + 1].tobytes() == after[name][: t + 1].tobytes(), name


@settings(max_examples=20)
@given(ANY, st.integers(1, 200))
def test_older_rows_than_the_window_never_matter(bars, extra):
    longer = each(bars, lambda values: np.vstack([np.full((extra, 2), 1e9), values]))
    for name in factors.FACTOR_NAMES:
        assert np.array_equal(
            factors.latest(name, bars), factors.latest(name, longer), equal_nan=True
        ), name


@settings(max_examples=20)
@given(ANY, st.sampled_from([2.0, 4.0, 0.5]))
def test_the_unit_of_a_share_does_not_matter(bars, split):
    scaled = factors.FactorBars(
        bars.open / split, bars.high / split, bars.close / split, bars.volume * split, bars.amount
    )
    for name, value in factors.compute_all(bars).items():
        assert np.array_equal(value, factors.compute_all(scaled)[name], equal_nan=True), name


PRICES = st.floats(1.0, 1000.0, width=32) | st.just(float("nan"))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 120)), elements=PRICES))
def test_standardised_rows_have_mean_0_and_deviation_1_and_are_cut_at_numpys_quantiles(values):
    scored, cut = factors.zscore(values), factors.winsorise(values)
    assert np.array_equal(np.isnan(scored), np.isnan(values)) and np.array_equal(
        np.isnan(cut), np.isnan(values)
    )
    for row, short, raw in zip(scored, cut, values, strict=True):
        present, known = row[~np.isnan(row)], raw[~np.isnan(raw)]
        if present.size == 0:
            continue
        assert abs(present.mean()) < 1e-9
        if known.max() > known.min() * (1 + 1e-9):
            assert abs(present.std() - 1.0) < 1e-9
        else:
            assert np.all(np.abs(present) <= 1.0 + 1e-9)
        np.testing.assert_allclose(
            short, np.clip(raw, *np.quantile(known, [0.01, 0.99])), rtol=1e-9
        )


def test_standardise_cuts_then_scores():
    scored = factors.standardise(np.concatenate([np.linspace(-1, 1, 199), [1e6]]))
    assert scored.max() < 5.0 and abs(scored.mean()) < 1e-12
    assert np.array_equal(factors.standardise(np.empty((2, 0))), np.empty((2, 0)))
    assert np.array_equal(factors.zscore(np.full(5, 3.3)), np.zeros(5))


@given(st.floats(1e-300, 1e300))
def test_logarithms_are_within_two_ulp(x):
    assert abs(log(np.array([x]))[0] - np.log(x)) <= 2 * np.spacing(max(abs(np.log(x)), 1e-16))
    assert np.isnan(log(np.array([0.0, -1.0, np.nan, np.inf]))).all()
    assert log(np.array([1.0]))[0] == 0.0
