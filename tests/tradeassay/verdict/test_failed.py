"""Did it fail? An account without a result is no account that returned zero."""

import pytest
from accounts import CONFIG, account

from tradeassay.core.measure import not_scored
from tradeassay.verdict import judge


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failure": "no usable answer", "alpha": None}, "no usable answer"),
        ({"failure": "it stopped on day 3"}, "it stopped on day 3"),
        ({"total": not_scored("everything was lost in a session")}, "everything was lost"),
        ({"total": not_scored("nothing was played"), "alpha": None}, "nothing was played"),
    ],
)
def test_an_account_without_a_result_failed(changes, why):
    judged = judge(account(**changes), CONFIG)
    verdict = judged.verdict
    assert (verdict.kind, verdict.label, verdict.firm) == ("failed", "failed run", True)
    assert verdict.sentence.startswith("one has no result: ") and why in verdict.sentence
    assert "returned" not in verdict.sentence
    assert judged.statements == ()
    assert judged.reasons_for == judged.reasons_against == ()


def test_a_baseline_that_failed_is_called_failed():
    verdict = judge(account(failure="no prices", baseline=True), CONFIG).verdict
    assert verdict.label == "failed run"
