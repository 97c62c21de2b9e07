"""Every number is one statement, and no statement contradicts the sentence: drawn findings are
read line by line.
"""

import json
import math
import re

import msgspec
import pytest
from accounts import (
    BARELY,
    CONFIG,
    FEW,
    GOOD,
    MIDDLING,
    NOTHING,
    account,
    alpha,
    follows,
    memory,
    span,
    table,
    timing,
    tries,
)
from drawn_findings import Drawn

from tradeassay.core.measure import not_scored
from tradeassay.metrics.horizon import TOO_SHORT
from tradeassay.verdict import QUANTITIES, judge
from tradeassay.verdict._phrases import spanned
from tradeassay.verdict.recalled import AlphaSplit, RecallSplit
from tradeassay.verdict.record import (
    KINDS,
    LABELS,
    NOT_FIRM,
    OTHER_LABELS,
    PRAISE,
    AgentAssay,
    LeakEvidence,
    RecallEvidence,
)

SKILLED = ("skill", "timing")
CASES = 2500
LIMITS = {
    "style is not measured",
    "files were open to it",
    "memory is not certain",
    "memory is not excluded",
    "what the mask took may be memory, or information that it destroyed",
    "recall is not tested",
    "recall is not excluded",
    "what it was shown does not matter",
    "the memory contrast is in doubt",
    "look-ahead is not excluded",
    "look-ahead on up to 20% of days is not excluded",
    "there is no luck baseline",
    "random portfolios do not confirm it",
    "no crash in the record",
    "its prices are stale or smoothed",
    "the unmasked play alone is not significant",
    "hindsight is not excluded",
    "returns alone say no more",
    "dividends and interest are not excluded",
    "it rests on a few sessions",
    "it rests on one month",
    "its losses are rare and large",
    "it rests on one name",
    "costs are unknown",
    "factors cover only 30% of what was held",
    "the data set has known biases",
    "the window is short",
    "some seeds are left out",
    "many sessions had no usable answer",
    "withdrawals are not verified",
    "the timing of deposits is not known",
    "timing and passive portfolios are not tested",
}
"""The first clause of every limit that a verdict can have: a new one belongs here, and into what
is drawn.
"""
SEEN = {*KINDS, *LABELS.values(), *NOT_FIRM.values(), *OTHER_LABELS, "behind the market", *LIMITS}


def reasons_of(judged):
    return " ".join((*judged.reasons_for, *judged.reasons_against))


def significant(measure):
    known = measure is not None and measure.low is not None
    return known and (measure.low > 0 or (measure.high or 0.0) < 0)


def in_sentence(judged):
    """Yield what the sentence says wrongly of the numbers that are shown with it."""
    verdict, tested = judged.verdict, judged.known_alpha.tested
    told = verdict.sentence.partition(". But ")[0]
    plain = "not distinguishable from luck" in told and verdict.kind in (
        "not-distinguishable-from-luck",
        "style",
    )
    yield "'not distinguishable' beside an interval without zero", plain and significant(tested)
    named = "nothing in the names" in told
    yield "names 'not distinguishable' that are significant", named and significant(tested)
    yield "a gain with a loser's word", re.search(r"(loses|lost|fell behind: )\+", told)
    yield "a loss with a gainer's word", re.search(r"(took|takes|ate) \u2212", told)
    praised = verdict.kind in PRAISE
    yield "firm with limits", verdict.firm and praised and verdict.limits
    yield "a label without caveats beside limits", verdict.label in SKILLED and verdict.limits
    word = "skill" in told.replace("likelier under skill", "").replace("too short for skill", "")
    yield "skill under another word", word and verdict.kind != "skill"
    if verdict.kind == "costs":
        alpha_before, left = judged.known_alpha.gross.value, tested.value
        paid = -(judged.known_alpha.costs.value or 0.0)
        half = max(abs(alpha_before or 0.0), abs(left or 0.0)) / 2.0
        yield "costs that are less than half of it", paid < half - 1e-12
    if praised and judged.method == "returns":
        yield "praise for a seller of options", judged.options and judged.options.like
        smooth = judged.smoothness
        yield "praise for a smooth record", smooth and (smooth.too_smooth or smooth.signs)
    if praised:
        below = judged.styled is not None and judged.styled < CONFIG.styled
        first = verdict.limits and verdict.limits[0].startswith("style is not measured")
        yield "unmeasured style is not the first limit", below and not first
    if verdict.kind == "hidden-risk":
        yield "a hidden risk that the sentence does not name", "hidden risk" not in told
    if verdict.kind == "skill":
        yield "skill that luck's best of the tries explains", judged.known_alpha.likelihood <= 1.0
        alone = judged.known_alpha.survives
        twice = judged.memory is not None and judged.memory.both_at_tries is not None
        yield "skill that does not survive its tries", not (alone or twice)
    if verdict.kind == "worse":
        yield "worse than chance and no worse than luck", not judged.known_alpha.survives_below
    if verdict.kind == "memory" and judged.memory is not None and judged.recall is None:
        memory = judged.memory
        contrasts = [memory, *(one for one in (memory.timing, memory.style_timing) if one)]
        contrasts += [memory.together] if memory.together else []
        gaps = [one.gap for one in contrasts] + ([memory.fade] if memory.fade else [])
        lost = any((gap.value or 0.0) > 0 for gap in gaps)
        yield "memory where no mask takes anything", not lost
        gaps = [one for one in judged.statements if "mask-gap" in one.quantity]
        firm = verdict.firm and not any(one.bearing == "against" for one in gaps)
        yield "memory for certain without its gap among the reasons", firm


def in_reasons(judged):
    """Yield what reasons and statements say against the sentence."""
    verdict, kind = judged.verdict, judged.verdict.kind
    told = verdict.sentence.partition(". But ")[0]
    better, worse = " ".join(judged.reasons_for), " ".join(judged.reasons_against)
    yield "reasons for skill under another word", judged.reasons_for and kind not in PRAISE
    unjudged = ("no-benchmark", "cash", "failed")
    against = any(one.bearing == "against" for one in judged.statements)
    yield "no statement against skill", kind not in (*PRAISE, *unjudged) and not against
    yield "for and against say the same", set(judged.reasons_for) & set(judged.reasons_against)
    alpha = judged.verdict.kind == "skill" and ": zero is not excluded" in worse
    yield "skill whose alpha does not exclude zero", alpha
    certain, open_ = "significantly above zero" in reasons_of(judged), ": zero is not excluded"
    yield "certain and not excluded", certain and open_ in reasons_of(judged)
    contradicted = kind == "not-distinguishable-from-luck" and "significantly above" in better
    yield "significant for skill and luck in the sentence", contradicted
    tries = judged.method == "returns" and re.search("likelier|tries", better)
    yield "tries for skill where hindsight is not excluded", tries
    yield "likelier under skill, against skill", "likelier under skill" in worse
    yield "likelier under luck, for skill", "likelier than skill" in better
    yield "skill, and likelier under luck", kind == "skill" and "likelier than skill" in worse
    memory = "its alpha is memory" in told.replace("part of its alpha is memory", "")
    helps = re.search("alpha (of|in the)|likelier under skill", better)
    yield "memory in the sentence, alpha for skill", memory and helps
    recall = "no recall is shown" in reasons_of(judged) and "recall explains +" in told
    yield "no recall and memory by recall", recall
    latest = judged.statement("alpha-latest-third")
    if latest is not None and latest.bearing == "for":
        yield "the latest third speaks for what has faded", verdict.label == "faded"
    settled = judged.statement("years-to-know")
    if settled is not None:
        yield "settled and open", (settled.value == 0.0) != (kind in ("skill", "worse"))
    if kind == "no-benchmark" or (kind == "hidden-risk" and judged.market.value is None):
        yield "alpha without a market", "alpha" in reasons_of(judged)
    text = " ".join((verdict.sentence, *verdict.limits, *(one.claim for one in judged.statements)))
    if judged.year in (52, 12, 4):
        yield "months are called days", re.search(r"\b(days?|sessions?)\b", text)
    yield "words that are gone", re.search(r"\b(edge|for certain|cannot be told from)\b", text)


def in_numbers(judged):
    """Yield which numbers of the sentence and of the statements differ, or make no sense."""
    by_quantity = {one.quantity: one for one in judged.statements}
    yield "two values for one quantity", len(by_quantity) < len(judged.statements)
    for one in judged.statements:
        at = f"{one.quantity}: "
        yield at + "unknown quantity", one.quantity not in QUANTITIES
        if one.value is None:
            yield at + "neither value nor reason", not one.reason
            continue
        yield at + "no finite number", not math.isfinite(one.value)
        if one.low is not None:
            yield at + "a value outside its interval", not one.low <= one.value <= one.high
            yield at + "an interval without a level", one.level is None
        yield at + "another horizon", one.horizon != judged.years
        yield at + "other tries", one.tries != judged.known_alpha.tries
    text = " ".join((judged.verdict.sentence, *(one.claim for one in judged.statements)))
    interval = r"([+\u2212]?[\d.,]+)% \(([+\u2212]?[\d.,]+)% to ([+\u2212]?[\d.,]+)%\)"
    for value, low, high in re.findall(interval, text):
        ends = [float(part.replace("\u2212", "-").replace(",", "")) for part in (low, value, high)]
        yield f"an interval without its number: {value}", ends != sorted(ends)
    quoted = re.search(r"alpha of ([^a-z(]*\([^)]*\)) a year", judged.verdict.sentence)
    if quoted is not None:
        stated = by_quantity["alpha"].measure
        yield "another alpha in the sentence", spanned(stated) != quoted.group(1)
    likelier = re.search(r"([\d.,]+|more than 1,000) times likelier", judged.verdict.sentence)
    if likelier is not None:
        stated = by_quantity.get("likelihood-ratio")
        shown = stated is not None and likelier.group(0) in stated.claim
        yield "another likelihood ratio in the sentence", not shown
    yearly = re.search(r"^[^;,]*\(([^)]*) a year\)", judged.verdict.sentence)
    if yearly is not None:
        yield "a yearly return without a statement", "return-per-year" not in by_quantity


def contradictions(judged):
    """Return what a careful reader would find wrong between the sentence, the lists and the
    numbers.
    """
    if judged.verdict.kind == "failed":
        return []
    found = [*in_sentence(judged), *in_reasons(judged), *in_numbers(judged)]
    return [rule for rule, broken in found if broken]


def test_no_statement_contradicts_the_sentence():
    seen, quantities = set(), set()
    for seed in range(CASES):
        judged = judge(Drawn(seed).findings(), CONFIG)
        verdict = judged.verdict
        heads = [
            limit.partition(":")[0].partition(" (")[0].replace("a few days", "a few sessions")
            for limit in verdict.limits
        ]
        rows = [re.sub(r"\b(months|weeks|quarters)\b", "sessions", head) for head in heads]
        seen |= {verdict.kind, verdict.label, *rows}
        quantities |= {one.quantity for one in judged.statements}
        assert contradictions(judged) == [], (seed, verdict.sentence, judged.statements)
    assert seen == SEEN, seen ^ SEEN
    assert quantities == set(QUANTITIES), quantities ^ set(QUANTITIES)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (
            {
                "kind": "not-distinguishable-from-luck",
                "sentence": "one returned +20.0%, which is not distinguishable from luck.",
            },
            "'not distinguishable' beside an interval without zero",
        ),
        ({"kind": "market", "sentence": "the market"}, "reasons for skill under another word"),
        ({"limits": ("style is not measured",)}, "firm with limits"),
        (
            {"sentence": "skill: alpha of +9.9% (+5.0% to +15.0%) a year"},
            "another alpha in the sentence",
        ),
        (
            {"sentence": "alpha of +10.0% (+5.0% to +15.0%) a year; 9 times likelier under skill"},
            "another likelihood ratio in the sentence",
        ),
    ],
)
def test_the_reader_finds_a_contradiction(change, rule):
    judged = judge(account(), CONFIG)
    assert contradictions(judged) == []
    lie = msgspec.structs.replace(judged.verdict, **change)
    assert rule in contradictions(msgspec.structs.replace(judged, verdict=lie))


def test_two_values_for_one_quantity_are_found():
    judged = judge(account(), CONFIG)
    other = msgspec.structs.replace(judged.statement("alpha"), value=0.09)
    lie = msgspec.structs.replace(judged, statements=(*judged.statements, other))
    assert "two values for one quantity" in contradictions(lie)


def test_what_a_statement_says_of_itself():
    judged = judge(account(sessions=504, tries=tries()), CONFIG)
    alpha_stated = judged.statement("alpha")
    assert alpha_stated.value == 0.1 and alpha_stated.measure == GOOD.tested
    assert (alpha_stated.unit, alpha_stated.title) == ("share a year", "Alpha")
    assert (alpha_stated.horizon, alpha_stated.tries, alpha_stated.level) == (2.0, 20, 0.95)
    assert alpha_stated.versus == "the market"
    assert alpha_stated.bearing == "for"
    assert alpha_stated.claim == (
        "alpha of +10.0% (+5.0% to +15.0%) a year beyond market and style, after costs, "
        "significantly "
        "above zero (95 %)"
    )
    ratio = judged.statement("likelihood-ratio")
    assert ratio.low is ratio.level is None and ratio.bearing == "for"
    assert ratio.claim == "3.3 times likelier under skill than under luck's best of 20 tries"
    assert ratio.assumptions == (
        "skill: the yearly alpha ratio is half-normal of scale 1",
        "luck: the best of 20 tries without skill",
        "20 tries are assumed: nobody disclosed how many there were",
    )
    assert judged.statement("nothing") is None


def test_statements_are_written_with_the_account_and_read_again():
    judged = judge(account(), CONFIG)
    written = json.loads(msgspec.json.encode(judged))
    first = written["statements"][0]
    assert (first["quantity"], first["value"]) == ("return", 0.2)
    assert msgspec.json.decode(msgspec.json.encode(judged), type=AgentAssay) == judged


def test_reasons_for_and_against_skill():
    judged = judge(account(), CONFIG)
    assert judged.reasons_for[0].endswith("significantly above zero (95 %)")
    assert "likelier under skill" in judged.reasons_for[1]
    assert judged.reasons_for[2].startswith("it beats 99.0% of 10,000 random portfolios")
    assert judged.reasons_against == ()
    poor = judge(account(alpha=NOTHING, luck=MIDDLING, leaks=LeakEvidence(tested=False)), CONFIG)
    assert poor.reasons_for == ()
    assert poor.reasons_against[0].endswith(": zero is not excluded")
    assert poor.reasons_against[1].startswith("it beats 40.0% of 10,000 random portfolios")
    assert poor.reasons_against[-1] == "look-ahead is not excluded: no leak test was made"


def test_a_record_too_short_for_any_test_gives_a_reason_and_no_number():
    few = msgspec.structs.replace(NOTHING, tested=not_scored(TOO_SHORT))
    judged = judge(account(alpha=few, sessions=43), CONFIG)
    stated = judged.statement("alpha")
    assert stated.value is None
    assert stated.reason == TOO_SHORT
    assert stated.claim == "43 sessions are too few for any test: at least 60 are needed"
    assert judged.reasons_against[0] == stated.claim
    monthly = judge(table(alpha=few, sessions=19, year=12), CONFIG).statement("alpha")
    assert monthly.claim == "19 months are too few for any test: at least 20 are needed"


def test_luck_s_best_of_a_few_tries_speaks_against_skill():
    judged = judge(account(alpha=FEW), CONFIG)
    assert judged.verdict.kind == "could-be-best-of-few"
    ratio, equal = judged.statement("likelihood-ratio"), judged.statement("equal-tries")
    assert ratio.value < 1.0 and ratio.bearing == "against"
    assert ratio.claim == "luck's best of 20 tries is 3.1 times likelier than skill"
    assert (equal.value, equal.claim) == (6.0, "luck's best of 6 tries looks the same")
    assert judged.reasons_for[0].endswith("significantly above zero (95 %)")


def test_an_alpha_that_is_memory_does_not_speak_for_the_timing_beside_it():
    dates = msgspec.structs.replace(
        memory(span(0.1, 0.05), span(0.0, 0.05)),
        timing=memory(span(0.0, 0.05), span(0.08, 0.02), confirmed=True),
    )
    judged = judge(account(by_model=True, memory=dates, timing=timing(0.08)), CONFIG)
    assert judged.verdict.kind == "timing"
    assert judged.statement("alpha").bearing == "neither"
    assert any(line.startswith("timing brought +8.0%") for line in judged.reasons_for)
    assert not any("likelier" in line for line in judged.reasons_for)
    assert any(line.startswith("'blinded' takes +10.0%") for line in judged.reasons_against)


def test_numbers_are_named_with_what_they_are_compared_with():
    near = follows(0.6, 0.01)
    held = judge(account(passive=near, excess=span(0.05, 0.1)), CONFIG)
    assert near.portfolio == "all names in equal parts"
    for quantity in ("benchmark-return", "excess-return", "alpha"):
        assert held.statement(quantity).versus == "the market"
    for quantity in ("beta", "explained"):
        assert held.statement(quantity).versus == "all names in equal parts"
    alone = judge(table(passive=follows(0.6, 0.01, portfolio="the benchmark")), CONFIG)
    assert alone.statement("alpha").versus == "the benchmark"


@pytest.mark.parametrize(
    ("tested", "needed", "sessions", "years", "words"),
    [
        (NOTHING, 1260, 252, 4.0, "about 4.0 more years like these would settle it"),
        (NOTHING, 300, 252, 0.25, "about 3 more months like these would settle it"),
        (
            NOTHING,
            252 * 300,
            252,
            299.0,
            "so small an alpha would take over a hundred years to show",
        ),
        (GOOD, 200, 252, 0.0, "the record is long enough to settle it"),
        (FEW, 504, 252, 1.0, "about 1.0 more years like these would settle it"),
    ],
)
def test_how_long_it_takes_to_know(tested, needed, sessions, years, words):
    judged = judge(account(alpha=tested, needed=needed, sessions=sessions), CONFIG)
    stated = judged.statement("years-to-know")
    assert stated.value == pytest.approx(years)
    assert stated.claim.startswith(words)


def test_tries_speak_for_no_account_that_may_have_been_chosen_in_hindsight():
    judged = judge(table(), CONFIG)
    assert judged.verdict.kind == "skill"
    assert judged.statement("likelihood-ratio").bearing == "neither"
    assert judged.reasons_for[0].endswith("significantly above zero (95 %)")


def test_two_plays_that_are_significant_together_are_one_reason():
    both = memory(
        span(-0.06, 0.07),
        span(0.1, 0.05),
        both=span(0.07, 0.05),
        both_at_tries=span(0.07, 0.05),
        confirmed=True,
    )
    judged = judge(account(by_model=True, alpha=alpha(0.04, 0.05, tries=1), memory=both), CONFIG)
    assert judged.verdict.kind == "skill"
    # The sentence rests on both plays, the ratio on one of them.
    assert "under luck by the unmasked play alone" in judged.verdict.sentence
    stated = judged.statement("alpha")
    assert (stated.value, stated.bearing) == (0.07, "for")
    assert stated.claim == (
        "alpha of +7.0% (+2.0% to +12.0%) a year beyond market and style, after costs, "
        "over the play and its twin under 'blinded' together, significantly above zero (95 %)"
    )
    alone = judged.statement("alpha-unmasked")
    assert (alone.value, alone.bearing) == (0.04, "neither")
    assert judged.statement("alpha-of-both-plays") is None, "one alpha is stated once"
    assert not any("zero is not excluded" in line for line in judged.reasons_against)


def test_what_a_mask_takes_of_timing_speaks_against_it():
    dates = msgspec.structs.replace(
        memory(span(0.0, 0.05), span(0.0, 0.05)),
        timing=memory(span(0.07, 0.03), span(0.0, 0.02), confirmed=False, shrinks=True),
    )
    found = account(alpha=NOTHING, by_model=True, memory=dates, timing=timing(0.08))
    judged = judge(found, CONFIG)
    assert judged.verdict.kind == "memory"
    line = "'blinded' takes +7.0% (+4.0% to +10.0%) a year of timing"
    assert line in judged.reasons_against
    assert judged.statement("timing-mask-gap").value == 0.07
    assert judged.statement("style-timing-mask-gap") is None


def test_a_channel_that_was_found_is_a_reason_without_a_number():
    seen = LeakEvidence(tested=True, findings=("news",), sentence="It leaks (news).")
    judged = judge(account(leaks=seen), CONFIG)
    assert "It leaks (news)" in judged.reasons_against
    assert judged.statement("look-ahead-days").value is None
    silent = msgspec.structs.replace(seen, sentence="", bound=0.01)
    assert "it saw the future (news)" in judge(account(leaks=silent), CONFIG).reasons_against


def test_look_ahead_that_is_excluded_speaks_for_skill_except_by_reading_files():
    for files, words in ((False, "is excluded"), (True, "is excluded, except by reading files")):
        bound = LeakEvidence(tested=True, bound=0.0123, files_open=files)
        judged = judge(account(leaks=bound), CONFIG)
        assert f"look-ahead on more than 1.3 % of days {words}" in judged.reasons_for
        assert judged.statement("look-ahead-days").value == 0.0123


def test_what_a_model_recalls_is_stated_with_what_it_is_worth():
    names = AlphaSplit(
        alpha=span(0.1, 0.05),
        explained=span(0.09, 0.04),
        rest=span(0.01, 0.03),
        share=span(0.9, 0.08),
        follows=span(0.3, 0.2),
    )
    dates = msgspec.structs.replace(names, explained=not_scored("no date was recalled"))
    recall = RecallEvidence(
        told="recalls",
        recall=span(0.5, 0.1),
        split=RecallSplit(names=names, dates=dates, covered=1.0, sentence=""),
        unread=span(0.9, 0.05),
        interaction=span(0.12, 0.08),
    )
    judged = judge(account(by_model=True, recall=recall), CONFIG)
    assert judged.verdict.kind == "memory"
    recalled = judged.statement("recalled-alpha")
    assert (recalled.value, recalled.bearing) == (0.09, "against")
    assert recalled.claim.startswith(
        "of its alpha, recall explains 90% (82% to 98%) of alpha; what"
    )
    assert judged.statement("recalled-timing") is None
    assert judged.statement("mirrored-orders").value == 0.9
    assert judged.statement("familiarity").value == 0.12


def test_a_ratio_that_nobody_has_speaks_against_what_it_is_found_in():
    for found in (account(alpha=alpha(0.8, 0.1)), table(alpha=alpha(0.8, 0.1))):
        judged = judge(found, CONFIG)
        assert judged.verdict.kind in ("look-ahead", "hidden-risk")
        assert "alpha ratio 15.68 (13.72 to 17.64)" in judged.reasons_against
    assert judge(account(), CONFIG).statement("alpha-ratio").bearing == "neither"


def test_what_no_time_settles_has_no_years():
    for changes in ({"luck": BARELY, "alpha": alpha(0.004, 0.001)}, {"active_variance": 0.001}):
        found = account(**{"alpha": NOTHING, "needed": 500, **changes})
        assert judge(found, CONFIG).statement("years-to-know") is None
