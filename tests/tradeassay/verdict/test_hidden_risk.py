"""Is it paid for a risk that the record does not show? Asked of returns alone, before any
praise.
"""

import msgspec
import pytest
from accounts import (
    GOOD,
    MIDDLING,
    NOTHING,
    account,
    alpha,
    seller,
    smooth,
    span,
    table,
    verdict_on,
)

from tradeassay.verdict.record import TailEvidence

SELLER = seller()
SMOOTH = smooth(sharpe=span(4.0, 0.5), autocorrelation=span(0.0, 0.1), too_smooth=True)
SIGNS = smooth(
    sharpe=span(2.0, 0.5),
    autocorrelation=span(0.4, 0.1),
    signs=("returns follow each other (autocorrelation +0.40)", "few small losses"),
)
RARE = TailEvidence(
    skew=-5.0,
    worst=-0.1,
    worst_session="2024-03-01",
    drawdown=-0.1,
    crash=False,
    rare_losses=True,
    alpha_skew=-6.1,
    alpha_span=5,
)


@pytest.mark.parametrize(
    ("changes", "firm", "words"),
    [
        (
            {"options": SELLER},
            True,
            "; hidden risk: alpha of +10.0% (+5.0% to +15.0%) a year beyond market and style, and "
            "it "
            "moves as a seller of options does (short puts); no crash in the record. If the market "
            "falls 20 % in one day it would return about −45.0%.",
        ),
        (
            {"smoothness": SMOOTH},
            True,
            "; hidden risk: smoother than any audited record of liquid assets (a Sharpe ratio of "
            "4.0, at "
            "least 3.5); look for losses that are not booked",
        ),
        (
            {"alpha": alpha(0.8, 0.1)},
            True,
            "smoother than any audited record of liquid assets (an alpha ratio of 15.7, at least "
            "13.7)",
        ),
        (
            {"smoothness": SIGNS},
            False,
            "; hidden risk is suspected, because the record may be smoothed or made up: returns "
            "follow "
            "each other (autocorrelation +0.40); few small losses.",
        ),
        (
            {"tail": RARE},
            False,
            "; hidden risk is suspected: alpha of +10.0% (+5.0% to +15.0%) a year beyond market "
            "and "
            "style, but its losses are rare and large (skew of alpha over 5 sessions −6.1), and a "
            "window "
            "with so few of them cannot tell.",
        ),
    ],
)
def test_a_risk_that_has_not_come_yet_is_named_before_any_praise(changes, firm, words):
    verdict = verdict_on(table(**changes))
    label = "hidden risk" if firm else "hidden risk suspected"
    assert (verdict.kind, verdict.label, verdict.firm) == ("hidden-risk", label, firm)
    assert words in verdict.sentence
    assert "skill" not in verdict.sentence


def test_the_surest_sign_is_named_first():
    everything = {"options": SELLER, "smoothness": SMOOTH, "tail": RARE}
    assert "seller of options" in verdict_on(table(**everything)).sentence
    assert "smoother than" in verdict_on(table(**everything | {"options": None})).sentence


def test_a_crash_in_the_record_is_not_called_missing():
    seen = msgspec.structs.replace(SELLER, crash_in_record=True)
    assert "no crash" not in verdict_on(table(options=seen)).sentence


@pytest.mark.parametrize("evidence", [{"options": SELLER}, {"smoothness": SMOOTH}, {"tail": RARE}])
def test_where_nothing_was_earned_there_is_nothing_to_explain(evidence):
    luck = "not-distinguishable-from-luck"
    assert verdict_on(table(alpha=NOTHING, **evidence)).kind == luck
    assert verdict_on(table(alpha=alpha(0.004, 0.001), **evidence)).kind == luck
    assert verdict_on(table(luck=MIDDLING, **evidence)).kind == luck
    # What was held is known: names and their days are tested one by one.
    assert verdict_on(account(alpha=GOOD, **evidence)).kind == "skill"


def test_smooth_records_that_are_neither_are_praised():
    plain = smooth(sharpe=span(1.5, 0.5), autocorrelation=span(0.02, 0.1))
    calm = msgspec.structs.replace(RARE, rare_losses=False, alpha_skew=None, alpha_span=None)
    verdict = verdict_on(table(smoothness=plain, options=seller(like=False), tail=calm))
    assert (verdict.kind, verdict.firm) == ("skill", False)
    assert any(limit.startswith("no crash in the record") for limit in verdict.limits)


def test_the_loss_of_a_monthly_record_is_that_of_a_month():
    sentence = verdict_on(table(options=SELLER, year=12, sessions=60)).sentence
    assert "If the market falls 20 % in one month it would return about −45.0%." in sentence
