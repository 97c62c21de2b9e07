"""Is it memory of the period? Nothing that is claimed stands where names or dates cannot be
known.
"""

import math

import msgspec
import numpy as np
import pytest
from accounts import (
    BARELY,
    CONFIG,
    GOOD,
    MIDDLING,
    NOTHING,
    account,
    alpha,
    contrast,
    memory,
    span,
    span_at_tries,
    timing,
    verdict_on,
)

from tradeassay.core.measure import Measure, not_scored
from tradeassay.verdict.evidence import (
    MeanTest,
    independent_difference,
    mask_price,
    with_price,
)
from tradeassay.verdict.recalled import AlphaSplit, RecallSplit
from tradeassay.verdict.record import JointContrast, MaskPrice, RecallEvidence

LUCK = "not-distinguishable-from-luck"
TAKEN = memory(span(0.1, 0.05), span(0.0, 0.05))
SHRINKS = memory(span(0.05, 0.055), span(0.03, 0.05), shrinks=True)
"""Uncertain under the mask; that it takes something is nearly certain."""
WEAK = memory(span(0.05, 0.1), span(0.03, 0.05))
LOST = memory(
    span(0.1, 0.05),
    span(0.04, 0.07),
    both=span(0.09, 0.05),
    both_at_tries=span_at_tries(0.09, 0.05),
    confirmed=False,
)
"""Certain over both plays, and not where memory cannot help."""
DATES = msgspec.structs.replace(
    memory(span(0.0, 0.05), span(0.0, 0.05)),
    timing=contrast(span(0.07, 0.03), span(0.0, 0.02), confirmed=False, shrinks=True),
)
"""Timing is gone under the mask, and nothing else changed."""
BOTH = msgspec.structs.replace(
    memory(span(0.05, 0.06), span(0.0, 0.04)),
    timing=contrast(span(0.04, 0.05), span(0.0, 0.02), confirmed=False, shrinks=False),
    together=JointContrast(
        earned=span(0.09, 0.05),
        gap=span(0.09, 0.07),
        masked=span(0.0, 0.05),
        confirmed=False,
        shrinks=True,
    ),
)
"""Neither alpha nor timing is gone for certain, the two together are."""
NEARLY_BOTH = msgspec.structs.replace(
    BOTH, together=msgspec.structs.replace(BOTH.together, gap=span(0.09, 0.095))
)
STAYS_TOGETHER = msgspec.structs.replace(
    BOTH, together=msgspec.structs.replace(BOTH.together, masked=span(0.07, 0.05), confirmed=True)
)
"""Names and days earn under the mask too: nobody is praised for a sum, and nobody blamed."""
FADES = msgspec.structs.replace(
    memory(span(0.01, 0.05), span(0.1, 0.05)), fade=span(0.05, 0.02), confirmed=True
)
UNCERTAIN = {"alpha": NOTHING}
SUM = "and memory is suspected: of +9.0% (+4.0% to +14.0%) a year from names and days together"
NOTHING_LEFT = "under 'blinded' nothing significant is left"


def model(**changes):
    return account(by_model=True, **changes)


@pytest.mark.parametrize(
    ("changes", "firm", "words"),
    [
        (
            {"memory": TAKEN},
            True,
            "but its alpha is memory: 'blinded' takes +10.0% (+5.0% to +15.0%) a year of it, and "
            "what "
            "is left, 0.0% (−5.0% to +5.0%), is not distinguishable from nothing.",
        ),
        ({"alpha": alpha(0.14, 0.05), "memory": LOST}, True, "but its alpha is memory"),
        (
            {**UNCERTAIN, "timing": timing(0.08), "memory": DATES},
            True,
            "but its timing is memory: 'blinded' takes +7.0%",
        ),
        (
            {**UNCERTAIN, "memory": BOTH},
            True,
            "but its choice of names and days is memory: 'blinded' takes +9.0%",
        ),
        ({**UNCERTAIN, "memory": NEARLY_BOTH}, False, SUM),
        (
            {"memory": SHRINKS},
            False,
            "and memory is suspected: of +10.0% (+5.0% to +15.0%) a year beyond market and style "
            "+3.0% (−2.0% to +8.0%) is left under 'blinded'.",
        ),
        (
            {"memory": FADES},
            False,
            "its selection fades by +5.0% (+3.0% to +7.0%) per window after the day on which",
        ),
    ],
)
def test_what_a_mask_takes_is_memory(changes, firm, words):
    verdict = verdict_on(model(**changes))
    label = "memory" if firm else "memory suspected"
    assert (verdict.kind, verdict.label, verdict.firm) == ("memory", label, firm)
    assert words in verdict.sentence
    assert firm or any(limit.startswith("memory is not certain") for limit in verdict.limits)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # What nothing confirms is luck, and no memory.
        ({**UNCERTAIN, "memory": STAYS_TOGETHER}, "is not distinguishable from luck"),
        ({**UNCERTAIN, "memory": BOTH, "luck": MIDDLING}, "is not distinguishable from luck"),
        ({"memory": WEAK}, NOTHING_LEFT),
        ({"memory": memory(span(0.02, 0.1), span(0.04, 0.05))}, NOTHING_LEFT),
        ({"memory": WEAK, "luck": BARELY}, NOTHING_LEFT),
        ({"memory": SHRINKS, "luck": BARELY}, NOTHING_LEFT),
        ({"alpha": alpha(0.09, 0.1), "memory": LOST}, "is not distinguishable from luck"),
        # A control, which cannot remember, shows a gap too.
        ({"memory": msgspec.structs.replace(TAKEN, doubted=True)}, NOTHING_LEFT),
    ],
)
def test_what_is_uncertain_is_luck_and_not_memory(changes, words):
    verdict = verdict_on(model(**changes))
    assert (verdict.kind, verdict.firm) == (LUCK, True)
    assert words in verdict.sentence


def test_a_doubted_contrast_is_a_limit():
    verdict = verdict_on(model(memory=msgspec.structs.replace(TAKEN, doubted=True)))
    assert any(limit.startswith("the memory contrast is in doubt") for limit in verdict.limits)


def test_what_stands_under_a_mask_is_praised_and_the_part_that_is_memory_is_named():
    kept = verdict_on(model(memory=memory(span(0.0, 0.05), span(0.1, 0.05))))
    assert (kept.kind, kept.firm) == ("skill", True)
    partly = verdict_on(model(memory=memory(GOOD.tested, GOOD.tested)))
    assert (partly.kind, partly.firm) == ("skill", True)
    assert (
        "; part of its alpha is memory (+10.0% (+5.0% to +15.0%) a year), part stays under "
        "'blinded' "
        "(+10.0% (+5.0% to +15.0%));" in partly.sentence
    )
    # The dates were remembered and the names were not: only the names are praised.
    dates = msgspec.structs.replace(DATES, gap=span(0.0, 0.05), masked=span(0.1, 0.05))
    names = verdict_on(model(memory=dates, timing=timing(0.08)))
    assert names.kind == "skill"
    assert "its timing is memory (+7.0% (+4.0% to +10.0%) a year)" in names.sentence
    assert "from being invested" not in names.sentence


def test_without_a_masked_run_memory_is_a_limit_of_models_only():
    verdict = verdict_on(model())
    assert (verdict.kind, verdict.firm) == ("skill", False)
    assert "memory is not excluded: no masked run" in verdict.limits
    assert verdict_on(account()).firm


# What a model recalls of the period

FOLLOWS = span(0.3, 0.2)


def recalled(explained, rest, told="recalls", follows=FOLLOWS, covered=1.0, **changes):
    whole = Measure(value=(explained.value or 0.0) + (rest.value or 0.0))
    names = AlphaSplit(
        alpha=whole, explained=explained, rest=rest, share=not_scored("-"), follows=follows
    )
    none = not_scored("no date was recalled")
    dates = AlphaSplit(alpha=none, explained=none, rest=none, share=none, follows=none)
    split = RecallSplit(names=names, dates=dates, covered=covered, sentence="split")
    return RecallEvidence(
        told=told, recall=span(0.5, 0.1), split=split, sentences=("It was asked.",), **changes
    )


ALL, NONE, ZERO, REST = span(0.09, 0.04), span(0.01, 0.03), span(0.0, 0.0), span(0.1, 0.05)
MUTE, OPEN = not_scored("nothing to follow"), "recall is not excluded:"
UNTOLD = f"{OPEN} its answers do not tell apart the moves that it traded"
HUGE = {"alpha": alpha(0.8, 0.1)}
GONE, KEPT = memory(span(0.8, 0.1), span(0.0, 0.05)), memory(span(0.3, 0.1), span(0.5, 0.1))
FAMILIAR = {"interaction": span(0.12, 0.08)}
UNSEEN = {"by_name": True, "unread": span(0.9, 0.05)}
EXPLAINED = "recall explains +9.0% a year (+5.0% to +13.0%)"


@pytest.mark.parametrize(
    ("evidence", "changes", "firm", "words"),
    [
        (recalled(ALL, NONE), {}, True, EXPLAINED),
        (recalled(ALL, NONE), {"alpha": NOTHING}, True, EXPLAINED),
        (recalled(ALL, NONE), HUGE, True, "recall explains"),
        (recalled(NONE, span(0.7, 0.1)), HUGE | {"memory": GONE}, True, "takes +80.0%"),
        (
            recalled(NONE, NONE, "cannot be told", **UNSEEN),
            {},
            True,
            "it decides by name and day, not by what it is shown, and orders stay at +0.90 when",
        ),
        (
            recalled(NONE, NONE, "cannot be told", **FAMILIAR),
            {},
            False,
            "memory is suspected: it is right where questions are familiar, +12.0% (+4.0% to "
            "+20.0%)",
        ),
    ],
)
def test_what_a_model_recalls_is_memory(evidence, changes, firm, words):
    verdict = verdict_on(model(recall=evidence, **changes))
    assert (verdict.kind, verdict.firm) == ("memory", firm)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    ("evidence", "limit"),
    [
        (recalled(NONE, REST, "no recall is shown"), None),
        (recalled(NONE, span(0.1, 0.09), "cannot be told"), None),
        (recalled(NONE, REST, **FAMILIAR), None),
        (recalled(NONE, NONE, "no recall is shown", **FAMILIAR), None),
        (recalled(ZERO, REST, "cannot be told", MUTE), UNTOLD),
        (recalled(ZERO, NONE, "no recall is shown", MUTE), UNTOLD),
        (
            recalled(NONE, REST, "no recall is shown", covered=0.2),
            f"{OPEN} it was asked about 20% of what was held",
        ),
        (recalled(NONE, REST, "cannot be told", reason="few"), "recall is not tested: few"),
        (
            recalled(NONE, NONE, "no recall is shown", **UNSEEN),
            "what it was shown does not matter: It was asked",
        ),
    ],
)
def test_skill_that_recall_does_not_explain(evidence, limit):
    verdict = verdict_on(model(recall=evidence, memory=None))
    assert verdict.kind == "skill"
    assert limit is None or limit in verdict.limits
    # Whether the model was asked decides whether memory is excluded.
    assert verdict.firm == (limit is None)


def test_what_recall_explains_in_part_is_named_beside_the_skill():
    verdict = verdict_on(model(recall=recalled(ALL, span(0.05, 0.02))))
    assert verdict.kind == "skill"
    assert (
        f"; of its alpha, {EXPLAINED}; what is left, +5.0% a year (+3.0% to +7.0%)"
        in verdict.sentence
    )


def test_dates_that_stand_are_timing_where_the_names_are_memory():
    verdict = verdict_on(model(recall=recalled(ALL, NONE), timing=timing(0.08)))
    assert verdict.kind == "timing"
    assert f"of its alpha, {EXPLAINED}" in verdict.sentence
    assert "the names that it chose" not in verdict.sentence
    masked = msgspec.structs.replace(
        TAKEN, timing=contrast(span(0.0, 0.05), span(0.08, 0.02), confirmed=True, shrinks=False)
    )
    verdict = verdict_on(model(memory=masked, timing=timing(0.08)))
    assert verdict.kind == "timing"
    assert "; its alpha is memory (+10.0% (+5.0% to +15.0%) a year)." in verdict.sentence


def test_where_no_recall_is_shown_luck_is_luck():
    verdict = verdict_on(model(recall=recalled(ALL, NONE, "no recall is shown"), alpha=NOTHING))
    assert verdict.kind == LUCK


def test_too_good_to_be_believed_comes_before_what_recall_leaves():
    for more in ({}, {"memory": KEPT}):
        verdict = verdict_on(model(recall=recalled(NONE, span(0.7, 0.1)), **HUGE, **more))
        assert (verdict.kind, verdict.firm) == ("look-ahead", False)
        assert "too good to be believed" in verdict.sentence


# What a mask destroys beside memory


def price(value, half, **lost):
    """Return the same lost information of every claim, or another of some."""
    same = dict.fromkeys(("alpha", "timing", "style_timing", "together"), span(value, half))
    return MaskPrice(worlds=("synthetic/us:11",), sessions=252, lost=same | lost)


CHEAP, DEAR = price(0.01, 0.02), price(0.09, 0.04)
SPLIT = (
    "; names and dates are worth +10.0% a year: +1.0% (−1.0% to +3.0%) is lost information, "
    "+9.0% (+3.6% to +14.4%) memory."
)
OPEN_PRICE = "what the mask took may be memory, or information that it destroyed:"


@pytest.mark.parametrize(
    ("evidence", "paid", "kind", "firm", "words"),
    [
        (TAKEN, CHEAP, "memory", True, SPLIT),
        (TAKEN, DEAR, LUCK, True, NOTHING_LEFT),
        (SHRINKS, price(-0.05, 0.01), "memory", False, "is left under 'blinded'; names and dates"),
        (SHRINKS, CHEAP, LUCK, True, NOTHING_LEFT),
        # A price can clear, and never accuses.
        (WEAK, price(-0.2, 0.01), LUCK, True, NOTHING_LEFT),
        (FADES, DEAR, "memory", False, "its selection fades"),
    ],
)
def test_what_lost_information_explains_is_no_memory(evidence, paid, kind, firm, words):
    verdict = verdict_on(model(memory=with_price(evidence, paid)))
    assert (verdict.kind, verdict.firm) == (kind, firm)
    assert words in verdict.sentence
    assert not any(limit.startswith(OPEN_PRICE) for limit in verdict.limits)


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"timing": timing(0.08), "memory": DATES}, "timing"),
        ({"memory": BOTH}, "together"),
    ],
)
def test_every_claim_has_a_price_of_its_own(changes, claim):
    for lost, kind in ((span(0.08, 0.05), LUCK), (span(0.0, 0.01), "memory")):
        paid = price(0.0, 0.01, **{claim: lost})
        memory_of = with_price(changes["memory"], paid)
        assert verdict_on(model(**UNCERTAIN, **changes | {"memory": memory_of})).kind == kind


def test_a_gap_without_a_price_may_be_information():
    assert any(one.startswith(OPEN_PRICE) for one in verdict_on(model(memory=TAKEN)).limits)
    missing = MaskPrice(worlds=("synthetic/us:11",), reason="nobody answered")
    verdict = verdict_on(model(memory=with_price(TAKEN, missing)))
    assert verdict.kind == "memory"
    told = f"{OPEN_PRICE} the mask's price is not measured (nobody answered)"
    assert told in verdict.limits
    # What recall explains is memory, whatever the mask costs.
    recalls = verdict_on(model(memory=with_price(TAKEN, DEAR), recall=recalled(ALL, NONE)))
    assert recalls.kind == "memory" and EXPLAINED in recalls.sentence


def test_a_cleared_gap_that_may_still_be_memory_is_a_limit():
    verdict = verdict_on(model(memory=with_price(TAKEN, DEAR)))
    told = "memory is not excluded: beyond lost information the mask takes +1.0% (−5.4% to +7.4%)"
    assert any(limit.startswith(told) for limit in verdict.limits)
    part = with_price(memory(GOOD.tested, GOOD.tested), DEAR)
    kept = verdict_on(model(memory=part))
    assert (kept.kind, kept.firm) == ("skill", True)
    assert "part of its alpha is memory" not in kept.sentence
    smaller = verdict_on(model(memory=with_price(memory(GOOD.tested, GOOD.tested), CHEAP)))
    assert "part of its alpha is memory (+9.0% (+3.6% to +14.4%) a year)" in smaller.sentence


def test_errors_of_two_worlds_are_added_by_hand():
    made = independent_difference(span(0.10, 0.03), span(0.02, 0.04))
    assert (made.value, made.low, made.high) == pytest.approx((0.08, 0.03, 0.13))
    uneven = Measure(value=0.02, low=0.01, high=0.06)
    made = independent_difference(span(0.10, 0.03), uneven)
    assert made.low == pytest.approx(0.08 - math.hypot(0.03, 0.04))
    assert made.high == pytest.approx(0.08 + math.hypot(0.03, 0.01))
    zero = Measure(value=0.0, note="no interval: it never moves")
    assert independent_difference(span(0.10, 0.03), zero).low == pytest.approx(0.07)
    assert independent_difference(span(0.1, 0.03), not_scored("none")).reason == "none"
    assert independent_difference(Measure(value=0.1, note="too few"), zero).reason == "too few"


def test_the_interval_of_memory_holds_its_level():
    """Two gaps with the same truth and unequal lengths: zero is excluded in one case of twenty."""
    rng, outside = np.random.default_rng(7), 0
    test = MeanTest(252, CONFIG)
    for _ in range(400):
        gap, lost = (rng.normal(0.0003, 0.005, days) for days in (120, 500))
        made = independent_difference(test.of(gap), test.of(lost))
        outside += made.low > 0.0 or made.high < 0.0
    assert outside <= 0.08 * 400


def test_a_price_needs_a_record_that_is_long_enough_and_not_watched():
    series = dict.fromkeys(("alpha", "timing"), np.random.default_rng(1).normal(0.0, 0.01, 59))
    assert mask_price(series, MeanTest(252, CONFIG), ("w",)).reason.endswith("59 sessions in w")
    watched = msgspec.structs.replace(CONFIG, watched=True)
    longer = {"alpha": np.zeros(300)}
    assert "however often" in mask_price(longer, MeanTest(252, watched), ("w",)).reason
    assert mask_price(longer, MeanTest(252, CONFIG), ("w",)).lost["alpha"].value == 0.0
