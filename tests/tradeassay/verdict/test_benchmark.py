"""Is there anything to compare with? Without a market, skill and market exposure look the same."""

import pytest
from accounts import CONFIG, GOOD, NOTHING, account, alpha, smooth, span, table

from tradeassay.core.measure import not_scored
from tradeassay.verdict import judge

PARTS = {
    "common": not_scored("no benchmark is given"),
    "selection": not_scored("returns alone do not say what was held"),
    "style": not_scored("no factors are known: style cannot be measured"),
    "alpha": span(0.2, 0.1),
}
ALONE = {
    "market": not_scored("no benchmark is given"),
    "parts": PARTS,
    "styled": 0.0,
    "style_variance": None,
    "active_variance": None,
}


@pytest.mark.parametrize("tested", [GOOD, NOTHING, alpha(-0.1, 0.05), alpha(0.05, 0.045)])
def test_returns_without_a_market_are_not_judged(tested):
    judged = judge(table(alpha=tested, **ALONE), CONFIG)
    verdict = judged.verdict
    assert (verdict.kind, verdict.label) == ("no-benchmark", "nothing to compare with")
    assert verdict.sentence == (
        "one returned +20.0%, and no benchmark is given: give a market's returns (--benchmark) "
        "or a data set (--dataset) to judge it."
    )
    # What was earned in all is no alpha, so nothing is said of an alpha.
    said = " ".join(one.claim for one in judged.statements)
    assert "alpha" not in said and "skill" not in said and "tries" not in said
    assert judged.reasons_for == ()
    assert not any("alpha" in line for line in judged.reasons_against)


def test_the_reason_for_having_no_market_is_said():
    why = not_scored("what it is compared with is cash, which is no market")
    verdict = judge(table(**ALONE | {"market": why}), CONFIG).verdict
    assert ", and what it is compared with is cash, which is no market: give" in verdict.sentence


def test_holdings_need_no_benchmark():
    assert judge(account(market=not_scored("no index is known")), CONFIG).verdict.kind == "skill"


def test_a_record_too_smooth_to_be_true_is_named_without_a_market_as_well():
    too_smooth = smooth(sharpe=span(9.0, 1.0), autocorrelation=span(0.0, 0.1), too_smooth=True)
    judged = judge(table(alpha=alpha(0.3, 0.1), smoothness=too_smooth, **ALONE), CONFIG)
    assert (judged.verdict.kind, judged.verdict.firm) == ("hidden-risk", True)
    assert "a Sharpe ratio of 9.0, at least 8.0" in judged.verdict.sentence
    assert "alpha" not in " ".join(
        (judged.verdict.sentence, *(one.claim for one in judged.statements))
    )
