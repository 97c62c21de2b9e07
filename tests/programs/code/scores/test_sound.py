"""The measured dimensions, by hand where possible and through a reference submission where not."""

import numpy as np
import pytest
from tests.programs.code import hold

from tradeassay_bench.account.shares import decision_list, keep_account
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.scores import (
    STRESSES,
    Breach,
    Discipline,
    agreement,
    cohort,
    daily_curve,
    discipline,
    examine,
    robustness,
    stressed,
)
from tradeassay_programs.code.semantics.interpreter import StrategyConstraints
from tradeassay_programs.code.submission import (
    SubmissionRun,
    closes_of,
    decisions_of,
    market_columns,
)


def test_agreement_by_hand():
    ours = decision_list([(1, 0, 1.0, 0), (5, 0, 0.0, 0), (9, 0, -1.0, 0)])
    theirs = decision_list([(1, 0, 1.005, 0), (6, 0, 0.0, 0), (9, 0, 1.0, 0)])
    assert agreement(ours, theirs) == (1 / 4, 4)
    nothing = decision_list([])
    assert agreement(nothing, nothing) == (1.0, 0)
    assert agreement(ours, nothing) == (0.0, 3)


def test_discipline_by_hand():
    calm = Discipline(regime="normal", decisions=10)
    breach = Breach(
        constraint="max_exposure",
        bars=5,
        first=3,
        time="2024-01-04",
        worst=0.1,
        severity="major",
        logged=0,
    )
    bad = Discipline(regime="gap", decisions=10, breaches=(breach,))
    gone = Discipline(regime="crash", decisions=0, failed="KeyError")
    assert discipline({"normal": calm}).value == 10.0
    assert discipline({"normal": calm, "gap": bad, "crash": gone}).value == pytest.approx(
        10 * (1 + 0.25) / 2
    )
    assert discipline({}).value is None


def test_stresses_keep_bars_honest():
    bars = make_bars("us", "1d", 2, 120, 1)
    for name in STRESSES:
        made = stressed(bars, name)
        assert made.times is not None and made.rows == 120
        for asset, feed in made.feeds.items():
            low, high = feed["low"], feed["high"]
            assert (low <= np.minimum(feed["open"], feed["close"]) + 1e-9).all(), (name, asset)
            assert (high >= np.maximum(feed["open"], feed["close"]) - 1e-9).all(), (name, asset)
            assert (feed["close"] > 0).all()
    crash = stressed(bars, "crash").feeds["A"]["close"]
    assert crash[-1] == pytest.approx(0.6 * bars.feeds["A"]["close"][-1])
    halted = stressed(bars, "halts").feeds["A"]["volume"]
    assert (halted == 0).sum() >= 8


def test_the_year_by_hand():
    closes = np.array([[100.0, 110.0, 121.0, 133.1]])
    held = decision_list([(0, 0, 1.0, 0)])
    found = robustness(held, closes, None, trials=1, year=3)
    assert found.costs[0].total == pytest.approx(0.331 - 0.00001)
    assert found.costs[-1].total == pytest.approx(0.331 - 0.002)
    assert found.turnover == pytest.approx(1.0 / (4 / 3))
    assert found.break_even_bp.value == 1000.0
    assert found.quarters[1] == pytest.approx(
        0.10 / 0.9995
    )  # 5 bp were paid, so it is a little more than all in
    churn = decision_list([(t, 0, float(t % 2 == 0), 0) for t in range(4)])
    beaten = robustness(churn, closes, None, trials=1, year=3)
    # Bought at 100 and 121, sold at 110 and 133.1: 1.1 x 1.1 without costs, four trades.
    assert beaten.break_even_bp.value is not None and 400 < beaten.break_even_bp.value < 550
    never = robustness(decision_list([]), closes, None, trials=1, year=3)
    assert never.break_even_bp.value is None and never.deflated.value is None
    assert never.costs[0].per_turnover is None and never.costs[0].break_even_turnover is None


def test_more_trials_lower_the_deflated_ratio():
    closes = 100 * np.cumprod(1 + np.random.default_rng(0).normal(0.001, 0.01, (1, 252)), axis=1)
    held = decision_list([(0, 0, 1.0, 0)])
    one = robustness(held, closes, None, trials=1).deflated
    many = robustness(held, closes, None, trials=50).deflated
    assert one.value is not None and many.value is not None and many.value < one.value


def test_sessions_of_minutes_are_days():
    curve = np.array([1.0, 1.1, 1.2, 1.3])
    assert daily_curve(curve, np.array([0.0, 0, 1, 1])).tolist() == [1.0, 1.1, 1.3]


def test_a_cohort_of_one_has_no_overfitting():
    returns = np.random.default_rng(0).normal(0, 0.01, (250, 4))
    assert cohort(["a"], returns[:, :1], returns[:, 1]).pbo.value is None
    found = cohort(["a", "b", "c"], returns[:, :3], returns[:, 3])
    assert found.pbo.value is not None and 0 <= found.pbo.value <= 1
    assert found.spa_p.value is not None


def test_returns_by_turnover_by_hand():
    closes = np.array([[100.0, 110.0, 121.0]])
    ten = robustness(decision_list([(0, 0, 1.0, 0)]), closes, None, trials=1, year=3).costs[3]
    assert ten.cost_bp == 10 and ten.per_turnover == pytest.approx(ten.total, rel=2e-3), (
        "it was traded once"
    )
    assert ten.break_even_turnover == pytest.approx(0.21 / 0.001), (
        "21 % pay for 210 turnovers at 10 bp"
    )


@pytest.mark.parametrize(("size", "severity"), [(1.03, "minor"), (1.2, "major"), (1.5, "critical")])
def test_a_breach_has_a_time_a_severity_and_what_its_own_log_said(size, severity):
    bars = make_bars("us", "1d", 1, 30, 1)
    columns = market_columns(bars, ("X",))
    price = columns["X/close"][3]
    trades = hold.trade_log([3], [size * 100_000 / price], ["BUY"], [price])
    audit = hold.audit_log([(3, "risk_check", "c", "s", 0.0)])
    closes = closes_of(columns, ("X",))
    account = keep_account(trades, closes, 100_000.0)
    decisions = decisions_of(trades, account, closes, ["BUY"])
    run = SubmissionRun(cpu_s=0.0, trades=trades, audit=audit, account=account, decisions=decisions)
    limits = StrategyConstraints(max_exposure=1.0, max_trades_per_bar=1)
    (breach,) = examine("normal", run, bars, ("X",), limits).breaches
    assert (breach.constraint, breach.bars, breach.logged) == ("max_exposure", 1, 1)
    assert breach.severity == severity and breach.time == str(bars.times[3])[:10]
