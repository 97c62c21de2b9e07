"""Error profile, composite rank, size study and published figures, worked by hand."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.metrics import EpisodeSeries, series_from_nav
from tradeassay.metrics.ranks import places
from tradeassay_bench.benchmarks.stockbench import (
    DJIA_20,
    StockbenchSetting,
    compare_with,
    composite,
    error_profile,
    measures_of,
    published,
    size_study,
    standings,
)
from tradeassay_bench.benchmarks.stockbench.panel import z_scores
from tradeassay_bench.core.events import Marked, StepRecord
from tradeassay_bench.core.orders import Decision, Failure


def record(step: int, *kinds: str, failed: bool = False) -> StepRecord:
    decision = Decision(
        status="failed" if failed else "ok",
        failures=tuple(Failure(kind=kind, detail="x") for kind in kinds),
    )
    marked = Marked(cash=1.0, positions=0.0, nav=1.0)
    return StepRecord(
        step=step, session=f"s{step}", decided_at=0, opening=(), decision=decision, events=(marked,)
    )


def test_the_error_profile_counts_sessions():
    profile = error_profile(
        [
            record(0),
            record(1, "schema"),
            record(2, "schema", "schema", "arithmetic"),
            record(3, "schema", "liquidity", "liquidity", "give_up", failed=True),
            record(4, "timeout", "timeout", "timeout", failed=True),
            record(5, "context_cut", "context_cut"),
            record(6),
            record(7, "liquidity"),
        ]
    )
    rates = {
        "schema": 3,
        "arithmetic": 1,
        "liquidity": 2,
        "give_up": 1,
        "unanswered": 1,
        "context_cut": 1,
    }
    assert {name: getattr(profile, name).value for name in rates} == {
        name: n / 8 for name, n in rates.items()
    }
    assert (
        profile.refused == {"schema": 4, "arithmetic": 1, "liquidity": 3} and profile.sessions == 8
    )
    assert profile.schema.low is not None and profile.schema.low < 3 / 8 < (
        profile.schema.high or 0
    )
    nothing = error_profile([]).schema
    assert nothing.value is None and nothing.reason == "no session was played"


def test_the_composite_by_hand():
    # Returns 1, 2, 3 %: mean 2, spread sqrt(2/3): z = -1.2247, 0, 1.2247. Drawdowns 10, 10, 20 %: -abs gives
    # mean -13.33, spread 4.714: z = 0.7071, 0.7071, -1.4142. Sortino 0, 3, 3: z = -1.4142, 0.7071, 0.7071.
    a, b = math.sqrt(1.5), math.sqrt(0.5)
    found = composite([(0.01, -0.1, 0.0), (0.02, 0.1, 3.0), (0.03, -0.2, 3.0)])
    assert found == pytest.approx([(-a + b - 2 * b) / 3, (0 + b + b) / 3, (a - 2 * b + b) / 3])
    assert places(found) == [3, 1, 2] and places([1.0, 2.0, 1.0]) == [2, 1, 2]
    # A measure that does not differ does not count.
    assert z_scores([0.3, 0.3, 0.3]) == [0.0, 0.0, 0.0]
    assert composite([(0.01, -0.1, 1.0), (0.03, -0.1, 1.0)]) == pytest.approx([-1 / 3, 1 / 3])


@given(
    st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=2, max_size=8),
    st.floats(0.1, 10),
    st.floats(-1, 1),
)
def test_the_composite_does_not_depend_on_scale_and_sums_to_nothing(cohort, scale, shift):
    cohort = [(round(a, 3), -abs(round(b, 3)), round(c, 3)) for a, b, c in cohort]
    scores = composite(cohort)
    assert math.fsum(scores) == pytest.approx(0.0, abs=1e-9)
    moved = composite([(a * scale + shift, b * scale, c * scale + shift) for a, b, c in cohort])
    assert moved == pytest.approx(scores, abs=1e-6)


def path(*returns: float) -> EpisodeSeries:
    return series_from_nav(np.concatenate([[100.0], 100.0 * np.cumprod(1.0 + np.array(returns))]))


def failed() -> EpisodeSeries:
    series = path(0.0, 0.0)
    fields = {name: getattr(series, name) for name in series.__dataclass_fields__}
    return EpisodeSeries(**(fields | {"failure": "no usable answer in any of 2 sessions"}))


def test_measures_follow_the_convention():
    series = path(0.10, -0.05, -0.10, 0.02)
    corrected, paper = measures_of(series, "corrected"), measures_of(series, "paper")
    assert corrected["cumulative_return"].value == pytest.approx(1.1 * 0.95 * 0.9 * 1.02 - 1)
    assert corrected["max_drawdown"].value == pytest.approx(0.95 * 0.9 - 1)
    mean = -0.03 / 4
    assert corrected["sortino"].value == pytest.approx(
        mean / math.sqrt((0.05**2 + 0.1**2) / 4) * math.sqrt(252)
    )
    assert paper["sortino"].value == pytest.approx(mean / math.sqrt(2 * 0.025**2))
    assert {m.reason for m in measures_of(failed(), "corrected").values()} == {
        "no usable answer in any of 2 sessions"
    }


def test_standings_rank_who_has_results_and_say_why_others_have_none():
    cohort = {
        "silent": [failed(), failed()],
        "weak": [path(-0.02, 0.01, -0.03)],
        "strong": [path(0.02, -0.01, 0.03), path(0.01, -0.01, 0.05)],
        "lucky": [path(0.01, 0.01, 0.01)],
    }
    found = standings(cohort, "corrected")
    assert [(s.label, s.rank) for s in found] == [
        ("strong", 1),
        ("weak", 2),
        ("silent", None),
        ("lucky", None),
    ]
    assert found[0].seeds == 2 and found[0].cumulative_return.n == 2
    assert (
        found[2].composite.reason == "no cumulative return: no usable answer in any of 2 sessions"
    )
    assert (found[3].composite.reason or "").startswith("no sortino: too few losing sessions")
    (alone,) = standings({"weak": cohort["weak"]}, "corrected")
    assert alone.rank is None and alone.composite.reason == "a cohort of one has no z-scores"
    found = standings({"a": [path(0.02, -0.01), failed()], "b": [path(-0.02, 0.01)]}, "corrected")
    assert found[0].cumulative_return.note == "mean over 1 seeds, 1 have none"


def test_variation_by_size():
    rows = size_study(
        {20: [path(0.1), path(0.3)], 5: [path(0.2)], 10: [failed()], 30: [path(0.1), path(-0.1)]},
        "corrected",
    )
    assert [row.size for row in rows] == [5, 10, 20, 30]
    assert rows[2].variation.value == pytest.approx(math.sqrt(0.02) / 0.2)
    assert [row.variation.reason for row in rows if row.variation.value is None] == [
        "one seed has no spread",
        "no usable answer in any of 2 sessions",
        "the mean return is zero",
    ]


def test_published_figures_say_whether_they_compare():
    figures = published().figure
    assert (
        published().second_hand
        and len(figures) == 10
        and all(-1 < figure.value < 1 for figure in figures)
    )
    ours = StockbenchSetting(
        data="real",
        symbols=DJIA_20,
        first="2025-03-03",
        last="2025-06-30",
        convention="paper",
        inputs="all",
    )
    kimi = next(figure for figure in figures if figure.who == "Kimi-K2" and figure.inputs == "all")
    base = next(figure for figure in figures if figure.frictionless)
    assert compare_with(kimi, ours) == ()
    assert compare_with(base, ours) == ("the figure is without costs and dividends",)
    change = msgspec.structs.replace
    assert not compare_with(
        base, change(ours, frictionless=True, has_news=False, has_fundamentals=False)
    )
    for wrong, why in (
        ({"data": "synthetic"}, "our data is synthetic"),
        ({"symbols": (*DJIA_20, "NVDA")}, "our names are not the paper's twenty"),
        ({"last": "2025-07-31"}, "the figure is for 2025-03-03 to 2025-06-30"),
        (
            {"convention": "corrected"},
            "our convention is 'corrected': known errors of the paper are removed",
        ),
        ({"inputs": "no-news"}, "the figure is for the inputs 'all'"),
        ({"has_news": False}, "our data has no news"),
        ({"has_fundamentals": False}, "our data has no fundamentals"),
        ({"frictionless": True}, "our result is without costs and dividends"),
    ):
        assert compare_with(kimi, change(ours, **wrong)) == (why,)
