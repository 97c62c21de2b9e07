"""Did it see the future? A channel that was found is certain, a ratio that nobody has is a
suspicion.
"""

import msgspec
import pytest
from accounts import GOOD, NOTHING, account, alpha, follows, memory, span, table, verdict_on

from tradeassay.core.measure import Measure
from tradeassay.verdict.record import CASH, LeakEvidence

SEEN = LeakEvidence(tested=True, findings=("bars", "news"), bound=0.0)
HUGE = alpha(0.8, 0.1)
SAME = msgspec.structs.replace(GOOD, tested=Measure(value=0.1), ratio=Measure(value=0.0))
"""An alpha that is the same on every session: it has no interval."""


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"alpha": NOTHING},
        {"active_variance": 0.001},
        {"passive": follows(1.0, 0.0, portfolio=CASH)},
        {"baseline": True},
        {"method": "returns"},
    ],
)
def test_a_channel_makes_any_result_void(changes):
    verdict = verdict_on(account(leaks=SEEN, **changes))
    assert (verdict.kind, verdict.label, verdict.firm) == ("look-ahead", "look-ahead", True)
    assert verdict.sentence.endswith(", but it saw the future (bars, news): the result is void.")


@pytest.mark.parametrize(("found", "why"), [(HUGE, "an alpha ratio of 15.7, at least 13.7")])
def test_a_ratio_that_nobody_has_is_a_suspicion(found, why):
    verdict = verdict_on(account(alpha=found))
    assert (verdict.kind, verdict.label, verdict.firm) == (
        "look-ahead",
        "look-ahead suspected",
        False,
    )
    assert f"too good to be believed ({why}): look for look-ahead" in verdict.sentence


def test_the_same_alpha_on_every_session_is_not_believed():
    verdict = verdict_on(account(alpha=SAME))
    assert (verdict.kind, verdict.firm) == ("look-ahead", False)
    assert "look for look-ahead or made-up figures" in verdict.sentence
    short = verdict_on(account(alpha=SAME, sessions=43))
    assert short.kind == "not-distinguishable-from-luck"  # too few sessions to be blamed


def test_what_has_another_cause_is_not_called_look_ahead():
    # A tracker's residual is tiny, so its ratio says nothing.
    assert verdict_on(account(alpha=HUGE, passive=follows(0.995, 0.05))).kind == "skill"
    # A mask that takes the alpha away shows that it is memory. Look-ahead would have stayed.
    gone = memory(span(0.8, 0.1), span(0.0, 0.05))
    assert verdict_on(account(alpha=HUGE, by_model=True, memory=gone)).kind == "memory"
    kept = memory(span(0.3, 0.1), span(0.5, 0.1))
    assert verdict_on(account(alpha=HUGE, by_model=True, memory=kept)).kind == "look-ahead"
    # Below the floor a steady gain is nothing to be suspicious of.
    small = verdict_on(account(alpha=alpha(0.008, 0.001)))
    assert (small.kind, small.label) == ("not-distinguishable-from-luck", "alpha too small")


def test_returns_alone_are_called_a_hidden_risk_because_a_smooth_record_has_other_causes():
    assert verdict_on(table(alpha=HUGE)).kind == "hidden-risk"
    assert verdict_on(table(alpha=SAME)).kind == "hidden-risk"
