"""Actions, positions, returns and the five measures, against numbers worked by hand."""

import math
from itertools import accumulate

import numpy as np
import pytest

from tradeassay.metrics import BootstrapConfig
from tradeassay_arena.benchmarks.ama import (
    PAPER,
    SOUND,
    ComparedSetting,
    ama_panel,
    compare_with,
    published,
)
from tradeassay_arena.benchmarks.ama.rules import published_drawdown, rules_for
from tradeassay_arena.daily_target import fee_factor, next_position, target_growth

ACTIONS = ("BUY", "HOLD", "SELL", "HOLD")


def positions(actions, hold):
    """Return the position after each action."""
    held = accumulate(
        actions, lambda before, action: next_position(action, before, hold), initial=0
    )
    return np.array([*held][1:])


def test_hold_keeps_in_words_and_is_flat_in_the_formula():
    for hold, convention, held in (
        ("keep", "corrected", [1, 1, -1, -1]),
        ("flat", "paper", [1, 0, -1, 0]),
    ):
        assert positions(ACTIONS, hold).tolist() == held and rules_for(convention).hold == hold
    # A position earns the return that follows it.
    prices = np.array([100.0, 110.0, 99.0, 108.9, 108.9])
    growth = target_growth(positions(ACTIONS, "flat"), prices[1:] / prices[:-1] - 1, 0.0)
    assert growth - 1 == pytest.approx([0.10, 0.0, -0.10, 0.0])


def test_fees_are_paid_on_what_changes_and_twice_for_a_reversal():
    earned = target_growth(positions(("BUY", "SELL"), "keep"), np.zeros(2), 5.0)
    assert earned - 1 == pytest.approx([-0.0005, -0.0010])
    assert fee_factor(1, -1, 5.0) == 1 - 0.0010
    assert fee_factor(1, 1, 5.0) == 1.0


def test_the_panel_by_hand():
    returns = np.array([0.10, -0.10, 0.05])
    panel = ama_panel(returns, "crypto", SOUND)
    total = 1.1 * 0.9 * 1.05 - 1
    assert panel["CR"].value == pytest.approx(total)
    assert panel["AR"].value == pytest.approx((1 + total) ** (365 / 3) - 1)
    assert panel["AV"].value == pytest.approx(math.sqrt(365) * np.std(returns, ddof=1))
    assert panel["SR"].value == pytest.approx(
        math.sqrt(365) * returns.mean() / np.std(returns, ddof=1)
    )
    assert panel["MDD"].value == pytest.approx(-0.10)
    paper = ama_panel(returns, "crypto", PAPER)
    assert paper["AR"].value == pytest.approx((1 + total) ** (252 / 3) - 1)
    # R runs 0.10, -0.01, 0.0395: the printed formula divides by the peak of R, so the fall exceeds everything.
    assert paper["MDD"].value == pytest.approx(-(0.10 + 0.01) / 0.10)


def test_two_days_have_no_sharpe_ratio_of_seventy():
    """On a board, as in a run; the paper's rules are kept as they are printed."""
    days = np.array([0.01, 0.0099])
    panel = ama_panel(days, "stock", SOUND, BootstrapConfig(draws=50))
    assert {panel[name].reason for name in ("AR", "AV", "SR")} == {"record too short"}
    assert panel["CR"].value == pytest.approx(1.01 * 1.0099 - 1) and panel["MDD"].value == 0.0
    assert ama_panel(days, "stock", PAPER, BootstrapConfig(draws=50))["SR"].value > 70


def test_what_is_undefined_is_not_scored():
    assert ama_panel(np.array([]), "stock", SOUND)["CR"].reason == "no settled session"
    flat = ama_panel(np.zeros(30), "stock", SOUND, BootstrapConfig(draws=50))
    assert flat["SR"].value is None
    assert flat["CR"].value == 0.0
    assert math.isnan(float(published_drawdown(np.array([-0.1, -0.2]))))
    assert ama_panel(np.array([-0.1, -0.2]), "stock", PAPER)["MDD"].value is None


def test_intervals_hold_the_value():
    returns = np.random.default_rng(0).normal(0.001, 0.02, 120)
    panel = ama_panel(returns, "stock", SOUND, BootstrapConfig(draws=300))
    for name in ("CR", "SR", "AV"):
        measure = panel[name]
        assert measure.low is not None and measure.high is not None and measure.value is not None
        assert measure.low < measure.value < measure.high


def test_published_figures_are_cited_and_seldom_comparable():
    shown = published()
    assert shown.second_hand and len(shown.figure) >= 14
    when = {
        "data": "synthetic",
        "convention": "corrected",
        "first": "2026-01-01",
        "last": "2026-02-01",
    }
    ours = ComparedSetting(**when, architecture="trade", model="scripted/sensible", asset="BTC")
    assert len(compare_with(shown.figure[0], ours)) == 6
