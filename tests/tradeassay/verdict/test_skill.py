"""Was it earned? Skill and timing are said of what survives the tries behind it, and nothing
else is praised.
"""

import msgspec
import pytest
from accounts import (
    BAD,
    BARELY,
    CONFIG,
    FEW,
    GOOD,
    LEANS,
    MIDDLING,
    NO_LUCK,
    NOTHING,
    TRIES,
    account,
    alpha,
    convexity,
    follows,
    memory,
    span,
    span_at_tries,
    style_timing,
    table,
    timing,
    tries,
    verdict_on,
)
from hypothesis import given, strategies as st

from tradeassay.core.measure import Measure, not_scored
from tradeassay.verdict import KINDS
from tradeassay.verdict.record import (
    ConcentrationEvidence,
    LeakEvidence,
    LuckEvidence,
    StabilityEvidence,
    TailEvidence,
)

LUCK = "not-distinguishable-from-luck"
STYLES, TIMING = style_timing(0.08), timing(0.08)


def test_skill_is_said_with_what_it_is_worth():
    verdict = verdict_on(account())
    assert (verdict.kind, verdict.label, verdict.firm) == ("skill", "skill", True)
    assert verdict.sentence == (
        "one returned +20.0%; skill: alpha of +10.0% (+5.0% to +15.0%) a year beyond market and "
        "style, "
        "after costs; 3.3 times likelier under skill than under luck's best of 20 tries; it beats "
        "99.0% "
        "of random portfolios with the same trades."
    )


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"luck": BARELY}, "random portfolios do not confirm it"),
        ({"luck": NO_LUCK}, "there is no luck baseline"),
        ({"leaks": LeakEvidence(tested=True, bound=0.07)}, "look-ahead on up to 7% of days is not"),
        ({"leaks": LeakEvidence(tested=False)}, "look-ahead is not excluded"),
        ({"biases": ("survivorship",)}, "the data set has known biases"),
        ({"styled": 0.1}, "style is not measured"),
        ({"covered": 0.3}, "factors cover only 30% of what was held"),
        ({"sessions": 100}, "the window is short"),
        ({"by_model": True}, "memory is not excluded"),
        ({"method": "returns"}, "hindsight is not excluded"),
        ({"failed_seeds": 2}, "some seeds are left out"),
        ({"failure_rate": Measure(value=0.5)}, "many sessions had no usable answer"),
        (
            {"doubts": ("withdrawals are not verified: 5%",)},
            "withdrawals are not verified",
        ),
    ],
)
def test_what_was_not_examined_is_a_caveat_in_the_sentence(changes, limit):
    verdict = verdict_on(account(**changes))
    assert (verdict.kind, verdict.label, verdict.firm) == ("skill", "skill, with caveats", False)
    assert f" But {limit}" in verdict.sentence
    assert verdict.limits[0].startswith(limit)


def test_a_sentence_has_room_for_three_limits():
    changes = {"styled": 0.0, "biases": ("survivorship",), "sessions": 100, "failed_seeds": 1}
    verdict = verdict_on(account(leaks=LeakEvidence(tested=False), **changes))
    assert verdict.sentence.endswith("; and 2 more.")
    assert len(verdict.limits) == 5


def test_short_is_said_of_time_and_not_of_rows():
    for year, rows, short in ((252, 125, True), (252, 126, False), (12, 5, True), (12, 36, False)):
        limits = verdict_on(account(sessions=rows, year=year)).limits
        assert any(limit.startswith("the window is short") for limit in limits) is short


# Tries


@pytest.mark.parametrize(
    ("tested", "same"),
    [
        (alpha(0.06, 0.05), "luck's best of 6 tries looks the same"),
        (alpha(0.07, 0.05), "luck's best of 10 tries looks the same"),
        (alpha(0.07, 0.05, years=4.0), "luck's best of 20 tries looks the same"),
    ],
)
def test_what_luck_finds_in_a_few_tries_is_positive_and_no_skill(tested, same):
    verdict = verdict_on(account(alpha=tested))
    label = "could be the best of a few tries"
    assert (verdict.kind, verdict.label) == ("could-be-best-of-few", label)
    assert "; positive, and could be the best of a few tries: alpha of " in verdict.sentence
    assert same in verdict.sentence
    assert "skill" not in verdict.sentence


@pytest.mark.parametrize(
    ("count", "kind"), [(1, "skill"), (2, "skill"), (3, "could-be-best-of-few")]
)
def test_disclosed_tries_decide(count, kind):
    assert verdict_on(account(alpha=alpha(0.058, 0.05, tries=count))).kind == kind


def test_both_rules_of_tries_must_be_met():
    # Above zero at the level shared among 20 tries: the chance on one side, times 20, is at most 2.5 %.
    assert msgspec.structs.replace(GOOD, likelihood=1.01).survives
    assert not msgspec.structs.replace(GOOD, likelihood=0.99).survives
    assert not msgspec.structs.replace(GOOD, at_tries=span(0.1, 0.101)).survives
    assert not msgspec.structs.replace(GOOD, at_tries=None).survives
    level = msgspec.structs.replace(GOOD, likelihood=0.99)
    assert verdict_on(account(alpha=level)).kind == "could-be-best-of-few"
    # Likelier under skill than as luck's best of 20 tries, and the shared level still contains zero.
    between = alpha(0.1, 0.0665, years=5.0)
    assert between.likelihood > 1.0 and between.at_tries.low < 0.0
    verdict = verdict_on(account(alpha=between, sessions=1260))
    assert verdict.kind == "could-be-best-of-few"
    assert "at the level shared among 20 tries zero is not excluded" in verdict.sentence
    assert "looks the same" not in verdict.sentence


@pytest.mark.parametrize("word", ["skill", "could-be-best-of-few"])
def test_assumed_tries_are_called_assumed(word):
    tested = {"skill": GOOD, "could-be-best-of-few": FEW}[word]
    assumed = {"skill": "best of 20 tries (assumed)", "could-be-best-of-few": "(20 are assumed)"}[
        word
    ]
    counted = tries(here=4, found=30, effective=16.0)
    for evidence, said in ((tries(), True), (tries(disclosed=20), False), (counted, False)):
        verdict = verdict_on(account(alpha=tested, tries=evidence))
        assert verdict.kind == word
        assert (assumed in verdict.sentence) is said


def test_one_disclosed_try_is_compared_with_luck_and_not_with_its_best():
    sentence = verdict_on(
        account(alpha=alpha(0.1, 0.05, tries=1), tries=tries(disclosed=1))
    ).sentence
    assert "times likelier under skill than under luck;" in sentence


# Timing


def test_timing_that_survives_is_timing():
    by_market = verdict_on(account(alpha=NOTHING, timing=TIMING))
    assert (by_market.kind, by_market.label, by_market.firm) == ("timing", "timing", True)
    assert "timing: +8.0% (+6.0% to +10.0%) a year from being invested when the market rose" in (
        by_market.sentence
    )
    assert by_market.sentence.endswith("in the names that it chose is distinguishable from luck.")
    by_styles = verdict_on(account(alpha=NOTHING, styles=STYLES))
    assert (by_styles.kind, by_styles.firm) == ("timing", True)
    assert "timing of styles: +8.0% (+5.0% to +11.0%) a year from leaning to styles" in (
        by_styles.sentence
    )
    losing = verdict_on(account(alpha=BAD, timing=TIMING))
    assert losing.kind == "timing"
    assert "; the rest lost significantly (−10.0% (−15.0% to −5.0%) a year)." in losing.sentence
    caveats = verdict_on(account(alpha=NOTHING, timing=TIMING, leaks=LeakEvidence(tested=False)))
    assert (caveats.label, caveats.firm) == ("timing, with caveats", False)


@pytest.mark.parametrize("changes", [{"timing": timing(0.03)}, {"styles": style_timing(0.04)}])
def test_timing_that_luck_finds_in_a_few_tries_is_no_timing(changes):
    verdict = verdict_on(account(alpha=NOTHING, **changes))
    assert verdict.kind == "could-be-best-of-few"
    assert "luck's best of 20 tries does as well" in verdict.sentence


def test_timing_is_asked_for_the_likelihood_ratio_as_well():
    for likelihood, kind in ((1.1, "timing"), (0.9, "could-be-best-of-few")):
        timed = msgspec.structs.replace(TIMING, likelihood=likelihood)
        assert verdict_on(account(alpha=NOTHING, timing=timed)).kind == kind
        styles = msgspec.structs.replace(STYLES, likelihood=likelihood)
        assert verdict_on(account(alpha=NOTHING, styles=styles)).kind == kind


def test_skill_names_what_is_timing_beside_it():
    both = verdict_on(account(styles=STYLES))
    assert (both.kind, both.firm) == ("skill", True)
    assert " and timing of styles: +8.0% (+5.0% to +11.0%) a year from leaning" in both.sentence
    market = verdict_on(account(timing=TIMING))
    assert market.kind == "skill"
    assert " and timing: +8.0% (+6.0% to +10.0%) a year from being invested" in market.sentence


def test_timing_beside_an_alpha_that_luck_finds_in_a_few_tries():
    """What is significant is never called not distinguishable from luck beside its interval."""
    few = "but that could be the best of a few tries."
    many = "but 60.0% of random portfolios with the same trades did as well."
    for changes, doubt in (({"alpha": FEW}, few), ({"alpha": FEW, "luck": MIDDLING}, many)):
        verdict = verdict_on(account(timing=TIMING, **changes))
        assert verdict.kind == "timing"
        brought = "; the names that it chose brought +6.0% (+1.0% to +11.0%) a year, "
        assert verdict.sentence.endswith(brought + doubt)
        assert "distinguishable" not in verdict.sentence


def test_returns_that_bend_up_are_timing_only_if_something_is_left_after_their_price():
    bent = convexity(0.08, 0.0)
    verdict = verdict_on(table(timing=bent))
    assert (verdict.kind, verdict.label) == ("timing", "timing, with caveats")
    assert "all of it from gaining more when the market rose than losing when it fell" in (
        verdict.sentence
    )
    assert "3.3 times likelier under skill than under luck's best of 20 tries" in verdict.sentence
    against = follows(0.5, 0.08, beta=-0.5)
    assert "from gaining more when the market fell than losing when it rose" in (
        verdict_on(table(timing=bent, passive=against)).sentence
    )
    both = verdict_on(table(timing=convexity(0.08, 0.05)))
    assert both.kind == "skill"
    assert (
        " and timing (+8.0% (+6.0% to +10.0%) a year of it, before what it cost)" in both.sentence
    )
    # Bought convexity that costs what it brings earns nothing.
    assert verdict_on(table(alpha=NOTHING, timing=bent)).kind == LUCK


# Two plays


def twice(both, half, count=TRIES):
    """Return a masked play that is certain with the unmasked one, and under the mask."""
    return memory(
        span(-0.06, 0.07),
        span(0.1, 0.05),
        both=span(both, half),
        both_at_tries=span_at_tries(both, half, count),
        confirmed=True,
    )


def test_two_plays_say_more_than_either():
    both = "over the play and its twin under 'blinded' together"
    alone = account(by_model=True, alpha=alpha(0.04, 0.05, tries=1), memory=twice(0.07, 0.05, 1))
    verdict = verdict_on(alone)
    assert (verdict.kind, verdict.firm) == ("skill", False)
    size = "alpha of +7.0% (+2.0% to +12.0%) a year beyond market and style, after costs"
    assert f"{size}, {both}" in verdict.sentence
    assert verdict.sentence.count("a year beyond") == 1, "one alpha is stated"
    assert any("the unmasked play alone is not significant" in limit for limit in verdict.limits)
    # The same under 20 tries: luck's best of them looks like it.
    assumed = account(by_model=True, alpha=alpha(0.04, 0.05), memory=twice(0.07, 0.05))
    verdict = verdict_on(assumed)
    assert verdict.kind == "could-be-best-of-few"
    assert both in verdict.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"luck": MIDDLING},
        {"alpha": alpha(0.005, 0.05, tries=1)},
    ],
)
def test_two_plays_do_not_praise_what_else_speaks_against(changes):
    known = {"by_model": True, "alpha": alpha(0.04, 0.05, tries=1), "memory": twice(0.07, 0.05, 1)}
    verdict = verdict_on(account(**{**known, **changes}))
    assert verdict.kind == LUCK
    assert "is not distinguishable from luck" in verdict.sentence


# What was earned when

HELD = span(0.1, 0.05)
STEADY = StabilityEvidence(first=HELD, second=HELD, latest=HELD, without_best=HELD)
FADED = msgspec.structs.replace(
    STEADY, first=span(0.22, 0.05), second=span(-0.02, 0.05), latest=span(-0.03, 0.06), faded=True
)


@pytest.mark.parametrize("tested", [GOOD, FEW])
def test_no_praise_rests_on_what_the_latest_half_contradicts(tested):
    verdict = verdict_on(account(alpha=tested, stability=FADED))
    assert (verdict.kind, verdict.label) == (LUCK, "faded")
    assert (
        ", but it has faded: +22.0% (+17.0% to +27.0%) a year in the first half, −2.0% (−7.0% to "
        "+3.0%) in the second." in verdict.sentence
    )
    assert verdict_on(account(alpha=tested, stability=STEADY)).kind != LUCK


def test_timing_by_returns_is_paid_from_alpha_and_fades_with_it():
    assert verdict_on(table(timing=convexity(0.08, 0.0), stability=FADED)).label == "faded"
    # Holdings show timing apart from the names.
    named = verdict_on(account(alpha=NOTHING, timing=TIMING, stability=FADED))
    assert named.kind == "timing"


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        (
            {"stability": msgspec.structs.replace(STEADY, without_best=span(0.04, 0.05))},
            "it rests on a few days: without the five best +4.0% (−1.0% to +9.0%) a year",
        ),
        (
            {
                "stability": msgspec.structs.replace(
                    STEADY, best_month="2024-03", without_month=span(0.03, 0.05)
                )
            },
            "it rests on one month (2024-03): without it +3.0% a year",
        ),
        (
            {
                "concentration": ConcentrationEvidence(
                    name="AAA", name_share=0.7, session=None, session_share=None
                )
            },
            "it rests on one name: AAA brought 70% of the selection",
        ),
        (
            {
                "tail": TailEvidence(
                    skew=-4.0, worst=-0.1, worst_session=None, drawdown=-0.1, crash=True
                )
            },
            "its losses are rare and large: skew of its returns −4.0; 1 more like the worst day "
            "would "
            "have taken all of it",
        ),
    ],
)
def test_an_alpha_that_rests_on_little_has_a_caveat(changes, limit):
    verdict = verdict_on(account(**changes))
    assert (verdict.kind, verdict.firm) == ("skill", False)
    assert limit in verdict.limits


def test_an_alpha_that_does_not_rest_on_one_month_has_none():
    kept = msgspec.structs.replace(STEADY, best_month="2024-03", without_month=HELD)
    assert verdict_on(account(stability=kept)).firm


# Dividends


@pytest.mark.parametrize(("at_least", "earned"), [(0.012, False), (0.03, True)])
def test_alpha_is_more_than_the_dividends_that_returns_do_not_show(at_least, earned):
    tested = msgspec.structs.replace(alpha(0.05, 0.045, tries=1), at_least=at_least)
    parts = {"passive": follows(0.5, 0.05), "alpha": tested}
    verdict = verdict_on(table(**parts))
    assert verdict.kind == ("skill" if earned else LUCK)
    assert ("2.5% of it may be dividends and interest" in verdict.sentence) is not earned
    if earned:
        assert any("dividends and interest are not excluded" in limit for limit in verdict.limits)
    assert verdict_on(account(**parts)).kind == "skill"


def test_returns_do_not_say_what_was_paid():
    sentence = verdict_on(table(alpha=NOTHING)).sentence
    assert sentence.endswith("a year beyond market and style.")
    unknown = {**account().parts, "trading": not_scored("weights alone")}
    assert ", before costs;" in verdict_on(account(parts=unknown)).sentence


# Drawn

spans = st.builds(span, st.floats(-0.5, 0.5), st.floats(0.001, 0.3))


@given(
    spans,
    spans,
    spans,
    spans,
    st.sampled_from([1, 5, 20, 1000]),
    st.floats(0.0001, 1.0),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
)
def test_skill_is_never_said_without_its_evidence(
    own, gap, masked, both, count, p, style, tested_for_leaks, leaked
):
    luck = LuckEvidence(percentile=span(1 - p, 0.01), p=p, portfolios=1000)
    leaks = LeakEvidence(tested=tested_for_leaks or leaked, findings=("news",) if leaked else ())
    both_at_tries = span_at_tries(both.value, both.value - both.low, count)
    tested = alpha(own.value, own.value - own.low, tries=count)
    evidence = memory(gap, masked, both=both, both_at_tries=both_at_tries)
    changes = {"memory": evidence, "by_model": True, **LEANS, "style_variance": style}
    verdict = verdict_on(account(**changes, alpha=tested, luck=luck, leaks=leaks))
    certain = tested.tested.low > 0
    assert verdict.kind in KINDS
    if verdict.kind in ("skill", "could-be-best-of-few"):
        assert masked.low > 0 and (certain or both.low > 0) and p <= 0.5 and not leaked
        assert verdict.firm == (tested_for_leaks and p <= 0.05 and certain)
    if verdict.kind == "skill":
        assert tested.likelihood > 1.0
        assert tested.at_tries.low > 0 or both_at_tries.low > 0
    if verdict.kind == "could-be-best-of-few":
        assert not tested.survives
    if verdict.kind == "memory":
        assert masked.low <= 0 and certain
        assert gap.low > 0 if verdict.firm else gap.value > masked.value


def test_the_assumed_tries_are_those_of_the_config():
    assert (CONFIG.known_tries, TRIES) == (20, 20)
