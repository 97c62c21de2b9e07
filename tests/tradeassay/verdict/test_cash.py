"""Did it hold cash? Then there is nothing to judge, and nothing that would have to be excluded."""

import pytest
from accounts import CONFIG, NOTHING, account, follows, span, table

from tradeassay.core.measure import Measure
from tradeassay.verdict import judge
from tradeassay.verdict.record import CASH, LeakEvidence, LuckEvidence

STILL = {
    "total": Measure(value=0.0),
    "alpha": NOTHING,
    "passive": follows(1.0, 0.0, portfolio=CASH),
    "leaks": LeakEvidence(tested=False),
    "luck": LuckEvidence(percentile=Measure(value=0.5), p=0.5),
}


@pytest.mark.parametrize("make", [account, table])
def test_cash_is_cash(make):
    judged = judge(make(**STILL), CONFIG)
    verdict = judged.verdict
    assert (verdict.kind, verdict.label, verdict.firm) == ("cash", "held cash", True)
    assert verdict.sentence == "one returned 0.0%: it held cash; nothing to judge."
    assert verdict.limits == judged.reasons_for == judged.reasons_against == ()
    assert {one.quantity for one in judged.statements} >= {"return"}
    assert not {one.quantity for one in judged.statements} & {"alpha", "likelihood-ratio", "beta"}


def test_what_moves_as_cash_does_is_cash():
    judged = judge(account(**STILL | {"total": span(0.03, 0.001), "sessions": 756}), CONFIG)
    assert judged.verdict.sentence.startswith("one returned +3.0% (+1.0% a year): it moves as cash")


def test_why_nothing_was_bought_may_be_that_nothing_was_answered():
    silent = {"failed_seeds": 1, "failure_rate": Measure(value=0.7)}
    verdict = judge(account(**STILL | silent), CONFIG).verdict
    assert verdict.firm
    assert verdict.limits == (
        "some seeds are left out: 1 of 2 failed",
        "many sessions had no usable answer: 70%",
    )


def test_a_baseline_that_holds_cash_is_called_baseline():
    assert judge(account(**STILL | {"baseline": True}), CONFIG).verdict.label == "baseline"


def test_what_earns_more_than_interest_is_not_cash():
    earning = follows(1.0, 0.2, portfolio=CASH)
    assert judge(account(passive=earning), CONFIG).verdict.kind == "skill"
