"""Is it a passive portfolio? Then nothing worth the name is left beyond it."""

import pytest
from accounts import (
    BAD,
    GOOD,
    NOTHING,
    account,
    alpha,
    alpha_after_costs,
    follows,
    table,
    timing,
    verdict_on,
)

IT = "follows all names in equal parts"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": NOTHING, "active_variance": 0.001}, "+10.0% came from what all names shared"),
        ({"alpha": alpha(0.005, 0.002), "active_variance": 0.001}, "too small to be called alpha"),
        ({"passive": follows(0.995, 0.001)}, f"{IT} (99.5% of its variance)"),
        ({"passive": follows(0.995, -0.002), "alpha": BAD}, "too small or too uncertain"),
        ({"passive": follows(0.995, -0.002, beta=1.5)}, "(99.5% of its variance, beta 1.50)"),
        ({"passive": follows(0.995, 0.0, lagged=0.2)}, f"{IT} with a lag"),
        ({"passive": follows(0.995, 0.03, beta=0.5)}, "no more than interest on what was not"),
    ],
)
def test_what_follows_a_passive_portfolio_is_the_market(changes, words):
    verdict = verdict_on(account(**changes))
    assert (verdict.kind, verdict.label, verdict.firm) == ("market", "market exposure", True)
    assert ", which is the market: " in verdict.sentence and words in verdict.sentence


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"passive": follows(0.995, 0.05)}, "skill"),  # much is left beyond the portfolio
        ({"passive": follows(0.98, 0.0)}, "skill"),  # it explains too little
        ({"active_variance": 0.001}, "skill"),  # little, but certain and large
        ({"active_variance": 0.001, "alpha": NOTHING, "timing": timing(0.08)}, "timing"),
        ({"active_variance": 0.001, "alpha": alpha_after_costs(0.1, 0.0)}, "costs"),
        ({"active_variance": 0.03, "alpha": NOTHING}, "not-distinguishable-from-luck"),
    ],
)
def test_what_has_more_than_a_market_is_more(changes, kind):
    assert verdict_on(account(**changes)).kind == kind


@pytest.mark.parametrize("beyond", [-0.015, -0.05, -0.2])
def test_returns_that_trail_what_moves_them_are_still_that_market(beyond):
    # Leverage, fees and trading cost something.
    verdict = verdict_on(table(passive=follows(0.995, beyond), alpha=alpha(beyond, 0.01)))
    assert verdict.kind == "market"
    assert "is what leverage, fees or trading cost." in verdict.sentence
    # Holdings show what costs are, so a large loss beyond the portfolio is a loss.
    assert verdict_on(account(passive=follows(0.995, beyond), alpha=GOOD)).kind == "skill"


def test_returns_may_lack_dividends_which_holdings_show():
    near = follows(0.999, 0.018)
    verdict = verdict_on(table(passive=near))
    assert verdict.kind == "market"
    assert "which a benchmark of prices leaves out" in verdict.sentence
    assert verdict_on(account(passive=near)).kind == "skill"
    assert verdict_on(table(passive=follows(0.999, 0.06))).kind == "skill"
