"""Did costs eat it? What was earned before them is tested; that they took half of it is read
off.
"""

import msgspec
import numpy as np
import pytest
from accounts import (
    CONFIG,
    LEANS,
    MIDDLING,
    account,
    alpha_after_costs,
    span,
    style_timing,
    verdict_on,
)

from tradeassay.verdict import judge
from tradeassay.verdict.evidence import ALPHA, MeanTest, alpha_of

TOOK_HALF = (
    "; costs ate its alpha: it earned +10.0% (+5.0% to +15.0%) a year before costs, they took"
)


@pytest.mark.parametrize(
    ("tested", "luck", "words"),
    [
        (
            alpha_after_costs(0.1, 0.0),
            None,
            f"{TOOK_HALF} 10.0%, and 0.0% (−5.0% to +5.0%) is left.",
        ),
        (
            alpha_after_costs(0.1, 0.04),
            None,
            f"{TOOK_HALF} 6.0%, and +4.0% (−1.0% to +9.0%) is left.",
        ),
        (
            alpha_after_costs(0.0, -0.1),
            MIDDLING,
            "costs took it: before costs it is not distinguishable from luck (0.0% (−5.0% to "
            "+5.0%) a "
            "year), they are 10.0% a year.",
        ),
    ],
)
def test_costs_that_took_an_alpha_are_named(tested, luck, words):
    changes = {} if luck is None else {"luck": luck}
    judged = judge(account(alpha=tested, **changes), CONFIG)
    verdict = judged.verdict
    assert (verdict.kind, verdict.label, verdict.firm) == ("costs", "eaten by costs", True)
    assert words in verdict.sentence
    assert any(line.startswith("costs took ") for line in judged.reasons_against)
    assert judged.reasons_for == () or "alpha" not in judged.reasons_for[0]


@pytest.mark.parametrize(
    ("tested", "luck", "kind", "words"),
    [
        # Costs below half of it, or of a loss, are not the reason.
        (
            alpha_after_costs(0.06, 0.04, most=False),
            None,
            "not-distinguishable-from-luck",
            "is not distinguishable from luck",
        ),
        (
            alpha_after_costs(0.0, -0.1, most=False),
            MIDDLING,
            "not-distinguishable-from-luck",
            "did as badly",
        ),
        # Nothing certain was there before them.
        (
            alpha_after_costs(0.04, 0.0),
            None,
            "not-distinguishable-from-luck",
            "not distinguishable",
        ),
        # Most random portfolios with the same trades did better.
        (alpha_after_costs(0.1, 0.0), MIDDLING, "not-distinguishable-from-luck", "luck"),
        # What is left is certain.
        (alpha_after_costs(0.25, 0.11), None, "skill", "skill: alpha of +11.0%"),
    ],
)
def test_costs_are_not_blamed_for_everything(tested, luck, kind, words):
    changes = {} if luck is None else {"luck": luck}
    verdict = verdict_on(account(alpha=tested, **changes))
    assert (verdict.kind, verdict.firm) == (kind, True)
    assert words in verdict.sentence


def test_costs_below_the_floor_are_never_the_reason():
    small = msgspec.structs.replace(alpha_after_costs(0.055, 0.046), gross=span(0.055, 0.05))
    assert not small.costly(CONFIG)
    assert verdict_on(account(alpha=small)).kind == "not-distinguishable-from-luck"


def test_timing_of_styles_is_asked_what_it_left_after_costs_ate_the_alpha():
    eaten = alpha_after_costs(0.1, 0.0)
    for net, kind in ((span(-0.01, 0.05), "costs"), (span(0.08, 0.05), "timing")):
        styles = style_timing(0.08, net=net)
        assert verdict_on(account(alpha=eaten, styles=styles, **LEANS)).kind == kind


def test_costs_are_read_off_and_not_tested():
    """Costs that take half of a gain are known to, however uncertain the gain is: they are no
    estimate.
    """
    rng = np.random.default_rng(4)
    gross = rng.normal(0.0, 0.004, 756)
    gross += 0.0006 - gross.mean()
    test = MeanTest(252, CONFIG)
    for paid, most in ((0.0003, True), (0.00029, False)):
        costs = np.full(gross.size, -paid)
        made = alpha_of({ALPHA: gross + costs, "costs": costs}, test)
        assert made.gross.low > 0.0
        assert made.most_of_gain is most
        assert made.costs.value == pytest.approx(-252 * paid)
