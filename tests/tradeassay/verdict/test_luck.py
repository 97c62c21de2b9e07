"""What is left is not distinguishable from luck, and what speaks against it is said."""

import msgspec
import pytest
from accounts import (
    BARELY,
    MIDDLING,
    NOTHING,
    account,
    alpha,
    follows,
    memory,
    seller,
    span,
    table,
    verdict_on,
)

from tradeassay.core.measure import not_scored
from tradeassay.metrics import AgainstBaseline
from tradeassay.metrics.horizon import TOO_SHORT

LUCK = "not-distinguishable-from-luck"


def test_an_alpha_whose_interval_holds_zero_is_not_distinguishable_from_luck():
    verdict = verdict_on(account(alpha=NOTHING))
    assert (verdict.kind, verdict.label, verdict.firm) == (
        LUCK,
        "not distinguishable from luck",
        True,
    )
    assert verdict.sentence == (
        "one returned +20.0%, which is not distinguishable from luck: alpha of +2.0% (−3.0% to "
        "+7.0%) a "
        "year beyond market and style, after costs."
    )


@pytest.mark.parametrize(
    ("changes", "label", "words"),
    [
        (
            {"luck": MIDDLING},
            "not distinguishable from luck",
            ", and luck is not excluded: alpha of +10.0% (+5.0% to +15.0%) a year beyond market "
            "and "
            "style, after costs, but 60.0% of random portfolios with the same trades did as well.",
        ),
        (
            {"alpha": alpha(0.004, 0.001)},
            "alpha too small",
            ", and its alpha is too small: alpha of +0.4% (+0.3% to +0.5%) a year beyond market "
            "and "
            "style, after costs, but that is too little to be called alpha (the floor is 1% a "
            "year).",
        ),
        (
            {"alpha": alpha(-0.06, 0.05)},
            "not distinguishable from luck",
            "but luck's worst of 20 tries looks the same.",
        ),
        (
            {"by_model": True, "luck": BARELY, "memory": memory(span(0.05, 0.1), span(0.03, 0.05))},
            "not distinguishable from luck",
            "but under 'blinded' nothing significant is left.",
        ),
    ],
)
def test_an_interval_without_zero_is_shown_with_what_speaks_against_it(changes, label, words):
    verdict = verdict_on(account(**changes))
    assert (verdict.kind, verdict.label) == (LUCK, label)
    assert words in verdict.sentence
    assert "not distinguishable" not in verdict.sentence


def test_an_alpha_below_dividends_and_interest_is_too_small():
    near = {"passive": follows(0.5, 0.0, beta=0.5), "alpha": alpha(0.03, 0.01)}
    verdict = verdict_on(table(**near))
    assert (verdict.kind, verdict.label) == (LUCK, "alpha too small")
    assert (
        "no more than the dividends and interest that returns alone do not show" in verdict.sentence
    )
    assert "(here alpha begins at 4.8% a year)" in verdict.sentence  # 1 + 2.5 / 2 + 5 / 2
    assert verdict_on(account(**near)).kind == "skill"


def test_a_window_too_short_for_skill_is_called_so():
    short = verdict_on(account(alpha=NOTHING, could_not=True))
    assert short.sentence.endswith("; the window is too short for skill to show.")
    # With too few rows for any test the alpha of the window is given, not one of a year.
    few = msgspec.structs.replace(NOTHING, tested=not_scored(TOO_SHORT))
    verdict = verdict_on(account(alpha=few, sessions=43, could_not=True))
    assert "alpha of +9.0% in all beyond market and style" in verdict.sentence
    assert "a year" not in verdict.sentence


def test_what_it_did_to_its_baseline_is_said_as_well():
    def beside(difference, distinguishable=True):
        versus = AgainstBaseline(
            baseline="hold",
            difference=difference,
            p_value=None,
            distinguishable=distinguishable,
            sentence="beside hold",
        )
        return verdict_on(account(alpha=NOTHING, versus=versus)).sentence

    better, worse = span(0.1, 0.05), span(-0.1, 0.05)
    beyond = "but what it did beyond market and style is not distinguishable from luck"
    assert f" and beats hold, {beyond}" in beside(better)
    assert f" and falls behind hold, {beyond}" in beside(worse)
    assert "hold" not in beside(better, distinguishable=False)


def test_seeds_years_and_rows_are_named():
    found = account(
        alpha=NOTHING, seeds=3, sessions=36, year=12, total=span(0.331, 0.1), could_not=True
    )
    sentence = verdict_on(found).sentence
    assert sentence.startswith(
        "one returned +33.1% (+10.0% a year) over its 3 seeds in equal parts"
    )
    some = account(alpha=NOTHING, with_all=0.25, agent="one day")
    assert "where its benchmark has rows (+25.0% with all of its own)" in verdict_on(some).sentence


def test_a_baseline_is_called_baseline():
    verdict = verdict_on(account(alpha=NOTHING, baseline=True, agent="hold"))
    assert verdict.label == "baseline"
    assert verdict.sentence.startswith("hold, the baseline, returned")


def test_an_account_without_alpha_that_sells_options_is_told_so():
    named = table(alpha=NOTHING, options=seller(like=False, shape="puts 10 % below"))
    verdict = verdict_on(named)
    assert verdict.kind == LUCK
    assert "it moves as a seller of options does (puts 10 % below)" in verdict.sentence
    assert "if the market falls 20 % in one day" in verdict.sentence
    others = table(alpha=NOTHING, options=seller(like=False, shape=""))
    assert "options" not in verdict_on(others).sentence
