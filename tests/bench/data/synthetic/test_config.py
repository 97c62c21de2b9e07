"""Asking for worlds: presets, sizes, the registered source, and refusals."""

import warnings
from datetime import date
from statistics import NormalDist

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.data import calendars
from tradeassay_bench.data.calendars import FIRST, LAST, sessions_between, sessions_from
from tradeassay_bench.data.doctor import diagnose_panel
from tradeassay_bench.data.source import sources
from tradeassay_bench.data.store.write import check_form
from tradeassay_bench.data.synthetic import PRESETS, SyntheticConfig, generate, preset
from tradeassay_bench.data.synthetic.universe import GRID, Draws, normal_quantile, normal_table
from tradeassay_bench.data.synthetic.world import SyntheticQuery, SyntheticSource


def test_presets_and_sizes():
    assert set(PRESETS) == {"us", "ashare", "crypto", "csi300"}
    for name, config in PRESETS.items():  # csi300 is an A-share world of 300 members
        assert config.preset == ("ashare" if name == "csi300" else name)
        assert msgspec.json.decode(msgspec.json.encode(config), type=SyntheticConfig) == config
    assert preset("us", seed=4, names=300).index_members == 240, "a bigger world has a bigger index"
    assert preset("us", names=300, index_members=50).index_members == 50
    assert preset("us", seed=4).seed == 4


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("mars", {}, "unknown synthetic world 'mars'"),
        ("us", {"stonks": 3}, "no setting 'stonks'"),
        ("us", {"seed": -1}, "negative"),
        ("us", {"sessions": 10}, "too few for a world"),
        ("us", {"names": 6}, "names are too few"),
        ("us", {"index_members": 101}, "cannot be drawn"),
        ("us", {"minutes": 200}, "minute bars for at most"),
        ("ashare", {"first": "2100-01-01"}, "holidays of XSHG"),
    ],
)
def test_what_makes_no_world_is_refused(name, changes, said):
    with pytest.raises((UserError, DataError), match=said):
        generate(preset(name, **changes))


def test_the_source_is_registered_and_loads():
    kind = sources.get("synthetic")
    assert kind is SyntheticSource and kind.extra is None and kind.summary
    panel = kind(SyntheticQuery(preset="crypto", seed=3, sessions=70, first="2022-02-01")).load()
    assert panel.sessions.size == 70 and str(panel.sessions[0]) == "2022-02-01"
    same = generate(preset("crypto", seed=3, sessions=70, first="2022-02-01")).panel
    assert np.array_equal(panel.bars["close"], same.bars["close"], equal_nan=True)


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(["us", "ashare", "crypto"]),
    seed=st.integers(0, 2**40),
    names=st.integers(12, 25),
    sessions=st.integers(60, 130),
)
@example(
    name="crypto", seed=1043374604698, names=12, sessions=92
)  # a review on the last session but one
def test_any_small_world_is_sound(name, seed, names, sessions):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        panel = generate(preset(name, seed=seed, names=names, sessions=sessions)).panel
    check_form(panel)
    assert all(
        np.isfinite(levels).all() and (levels > 0).all() for levels in panel.indices.values()
    )
    assert [fault for fault in diagnose_panel(panel) if fault.severity == "error"] == []
    assert panel.sessions.size == sessions
    keys = [(entry.listed, entry.instrument.symbol) for entry in panel.listings]
    assert keys == sorted(keys)


def test_streams_are_repeatable_and_independent():
    assert np.array_equal(Draws(3, "a").normal(50), Draws(3, "a").normal(50))
    assert not np.array_equal(Draws(3, "a").normal(50), Draws(3, "b").normal(50))
    assert not np.array_equal(Draws(3, "a").normal(50), Draws(4, "a").normal(50))
    first, second = Draws(1, "a").normal(20_000), Draws(1, "b").normal(20_000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_first_numbers_never_change():
    draws = Draws(7, "golden")
    assert draws.below(1000, 5).tolist() == [341, 476, 600, 96, 297]
    assert draws.normal(3).tolist() == [
        -0.6336784362792969,
        -0.7447280883789062,
        -0.00713348388671875,
    ]


def test_the_normal_table_is_the_quantile_function():
    table = normal_table()
    places = [0, 1, 100, 9_999, 32_767, 32_768, 60_000, 65_535]
    for k in places:
        assert table[k] == pytest.approx(NormalDist().inv_cdf((k + 0.5) / 65_536), abs=1e-6)
    assert np.array_equal(table, -table[::-1]) and np.all(np.diff(table) > 0)


def test_no_entry_of_the_table_is_near_a_rounding_boundary():
    """Rounding moves a value by at most half a grid step; an error of some ulp could only matter
    at a boundary.
    """
    exact = normal_quantile((np.arange(1 << 15) + 0.5) / (1 << 16) + 0.5) * GRID
    margin = np.abs(exact - np.floor(exact) - 0.5).min()
    assert margin > 1e-6  # an ulp at this size is 1e-9


def test_moments():
    draws = Draws(0, "moments")
    normal, student = draws.normal(400_000), draws.student(400_000, 5)
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
    assert abs(student.mean()) < 0.01 and abs(student.std() - 1) < 0.02
    assert np.mean(student**4) > 5.0 > np.mean(normal**4)
    uniform = draws.uniform(100_000)
    assert 0.0 <= uniform.min() and uniform.max() < 1.0 and abs(uniform.mean() - 0.5) < 0.01


def test_whole_numbers_stay_in_bounds():
    draws = Draws(0, "bounds")
    assert set(draws.below(3, 1000).tolist()) == {0, 1, 2}
    assert {draws.integer(-1, 1) for _ in range(100)} == {-1, 0, 1}
    assert sorted(draws.order(50).tolist()) == list(range(50))
    assert draws.below(9, (0,)).size == 0 and draws.normal((2, 3)).shape == (2, 3)
    assert draws.chance(0.0, 100).sum() == 0 and draws.chance(1.0, 100).all()
    assert draws.rare(1.0, 4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("calendar", ["XNYS", "XSHG"])
def test_the_table_equals_the_library(calendar):
    table, library = (
        calendars.shipped_sessions(calendar, FIRST, LAST),
        sessions_between(calendar, FIRST, LAST),
    )
    for field in ("days", "open_time", "close_time", "early"):
        assert np.array_equal(getattr(table, field), getattr(library, field)), field


@pytest.mark.parametrize("calendar", ["XNYS", "XSHG", "24/7"])
@pytest.mark.parametrize(
    "first", [date(2021, 1, 4), date(2022, 10, 1), date(2016, 5, 5), date(2024, 9, 1)]
)
def test_as_many_sessions_as_asked_for(calendar, first):
    found = sessions_from(calendar, first, 200)
    assert (
        found.days.size == found.open_time.size == found.close_time.size == found.early.size == 200
    )
    assert found.days[0] >= np.datetime64(first)
    assert np.array_equal(found.days, sessions_between(calendar, first, str(found.days[-1])).days)


YEARS = (1995, 2001, 2012, 2020, 2021, 2023, 2024)
"""At the table's edges, and with days that nobody had planned to close; the others take as long."""


@pytest.mark.slow_for(
    *(f"{y}-{c}" for y in range(1995, 2025) if y not in YEARS for c in ("XNYS", "XSHG"))
)
@pytest.mark.parametrize("calendar", ["XNYS", "XSHG"])
@pytest.mark.parametrize("year", range(1995, 2025))
def test_a_year_of_any_decade_is_long_enough(calendar, year):
    assert sessions_from(calendar, date(year, 1, 1), 380 if year < 2024 else 100).days.size >= 100
