"""Two judges together: their verdicts count, whatever they say for them."""

import pytest

from tradeassay.code.evaluation import _decide
from tradeassay.code.judges.decisions import BehaviourVerdict
from tradeassay.code.judges.language import LanguageVerdict


@pytest.mark.parametrize("status", ["failed", "not_scored", "passed"])
def test_a_verdict_without_a_reason_counts(status):
    behaviour, language = BehaviourVerdict(status=status), LanguageVerdict(status="passed", judge="j", prompts="")
    found, by = _decide(behaviour, language, "both")
    assert (found.status, by) == (status, "both")
