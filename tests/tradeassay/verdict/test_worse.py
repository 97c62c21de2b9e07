"""Is it worse than chance? The same rule of tries binds this word as skill."""

import msgspec
import pytest
from accounts import (
    BAD,
    MIDDLING,
    NO_LUCK,
    UNLUCKY,
    account,
    alpha,
    alpha_after_costs,
    span,
    table,
    verdict_on,
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"luck": UNLUCKY},
            "; it lost by the names that it chose: alpha of −10.0% (−15.0% to −5.0%) a year beyond "
            "market and style, after costs, worse than luck's worst of 20 tries; only 1.0% of "
            "random "
            "portfolios with the same trades did worse.",
        ),
        ({"luck": NO_LUCK}, "worse than luck's worst of 20 tries."),
        (
            {
                "luck": UNLUCKY,
                "alpha": alpha_after_costs(-0.04, -0.1, most=False),
            },
            "it lost by what it chose and what it paid for trading",
        ),
    ],
)
def test_a_loss_that_survives_all_tries_is_worse_than_chance(changes, words):
    verdict = verdict_on(account(**{"alpha": BAD, **changes}))
    assert (verdict.kind, verdict.label, verdict.firm) == ("worse", "worse than chance", True)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # Random portfolios did as badly.
        (
            {"alpha": BAD, "luck": MIDDLING},
            "40.0% of random portfolios with the same trades did as badly",
        ),
        # Too small to be called a loss.
        ({"alpha": alpha(-0.004, 0.001), "luck": UNLUCKY}, "too little to be called alpha"),
        # Significant alone, and luck's worst of 20 tries looks the same.
        ({"alpha": alpha(-0.06, 0.05), "luck": UNLUCKY}, "luck's worst of 20 tries looks the same"),
        ({"alpha": alpha(-0.04, 0.05), "luck": UNLUCKY}, "which is not distinguishable from luck"),
    ],
)
def test_other_losses_are_not_told_from_luck(changes, words):
    verdict = verdict_on(account(**changes))
    assert (verdict.kind, verdict.firm) == ("not-distinguishable-from-luck", True)
    assert words in verdict.sentence


def test_disclosed_tries_replace_the_assumed_ones():
    loss = alpha(-0.06, 0.05, tries=1)
    assert verdict_on(account(alpha=loss, luck=UNLUCKY)).kind == "worse"


def test_a_loss_that_is_likelier_under_luck_is_not_worse_than_chance():
    # Three months: at the level of 20 tries it is below zero, but luck's worst of 20 looks more like it.
    short = alpha(-0.1, 0.062, years=0.25)
    assert short.at_tries.high < 0.0 and short.likelihood < 1.0
    verdict = verdict_on(account(alpha=short, luck=UNLUCKY))
    assert verdict.kind == "not-distinguishable-from-luck"
    assert "luck's worst of 20 tries looks the same" in verdict.sentence


def test_returns_alone_fall_behind():
    verdict = verdict_on(table(alpha=BAD))
    assert (verdict.kind, verdict.label) == ("worse", "worse than chance")
    assert "; it fell behind: alpha of −10.0%" in verdict.sentence
    unmeasured = verdict_on(table(alpha=BAD, styled=0.0, exposures={}))
    assert (unmeasured.kind, unmeasured.label) == ("worse", "behind the market")
    assert "beyond the market" in unmeasured.sentence


def test_a_loss_before_costs_is_needed_to_blame_the_names():
    tested = msgspec.structs.replace(BAD, gross=span(-0.02, 0.05))
    sentence = verdict_on(account(alpha=tested, luck=UNLUCKY)).sentence
    assert "the names that it chose" not in sentence
