"""The plain sentences, case by case."""

import msgspec
import numpy as np
import pytest
from report_sample import QUICK, agent, bare_cell, cell, failed, weekdays

from tradeassay.metrics import corrected, nothing_to_compare
from tradeassay_bench.report.run_words import answer, in_words, standing
from tradeassay_bench.runs.summary import compare_setting

SESSIONS = weekdays(120)
MARKET = np.random.default_rng(1).normal(0.0003, 0.01, 120)


def made(*agents):
    return compare_setting(bare_cell(agents, SESSIONS), QUICK)


def rival(name, edge, noise=0.002, seed=2):
    returns = MARKET + edge + np.random.default_rng(seed).normal(0, noise, 120)
    return agent(name, [returns], SESSIONS, MARKET)


BASE = agent("equal-weight", [MARKET], SESSIONS, MARKET, baseline=True)


def with_row(one, **changed):
    return msgspec.structs.replace(one, row=msgspec.structs.replace(one.row, **changed))


LUCKY, SKILLED, POOR = rival("lucky", 0.0), rival("skilled", 0.002), rival("poor", -0.002)


def test_nobody_can_be_told_apart():
    said = answer(made(BASE, LUCKY, rival("other", 0.0, seed=9)))
    assert said.headline == "No agent can be told apart from buy and hold."
    assert any("its excess return versus buy and hold is" in sentence for sentence in said.support)
    said = answer(made(BASE, LUCKY))
    assert said.headline == "lucky cannot be told apart from buy and hold."
    assert standing(LUCKY, made(BASE, LUCKY)).label == "cannot be told apart"
    copy = agent("copy", [MARKET], SESSIONS, MARKET)
    assert (
        standing(copy, made(BASE, copy)).sentence
        == "copy is the same as buy and hold, session by session."
    )


def test_winners_and_losers():
    market = made(BASE, LUCKY, SKILLED, POOR)
    said = answer(market)
    assert (
        said.headline
        == "skilled is best: it beats buy and hold and every other agent by more than chance "
        "explains."
    )
    assert "poor falls behind buy and hold by more than chance explains." in said.support
    assert in_words(market) == (
        "skilled beats buy and hold by more than chance explains.",
        "lucky cannot be told apart from buy and hold.",
        "poor falls behind buy and hold by more than chance explains.",
    )
    twin = rival("twin", 0.00195, seed=3)
    said = answer(made(BASE, SKILLED, twin))
    assert said.headline.startswith(("skilled and twin beat", "twin and skilled beat"))
    # Who beats the baseline is not better than a rival that can be told apart from neither.
    near = rival("near", 0.0009, noise=0.006, seed=12)
    said = answer(made(BASE, SKILLED, near))
    assert said.headline == "skilled beats buy and hold by more than chance explains."
    assert "All agents share one tier" in said.support[0]
    said = answer(made(BASE, POOR))
    assert said.headline == "poor falls behind buy and hold by more than chance explains."
    assert any(
        one.startswith("After buy and hold, poor has the highest return") for one in said.support
    )
    said = answer(made(BASE, POOR, rival("worse", -0.003, seed=5)))
    assert said.headline == "Every agent falls behind buy and hold by more than chance explains."
    said = answer(made(BASE, POOR, LUCKY))
    assert said.headline == (
        "No agent beats buy and hold, and poor falls behind it by more than chance explains."
    )


def test_agents_of_one_standing_share_a_sentence():
    market = made(BASE, LUCKY, rival("other", 0.0, seed=9))
    said = in_words(market)
    assert said == ("other and lucky cannot be told apart from buy and hold.",)
    market = made(BASE, POOR, rival("worse", -0.003, seed=5))
    assert in_words(market) == (
        "poor and worse fall behind buy and hold by more than chance explains.",
    )


def test_without_a_result_or_a_comparison():
    silent = failed("silent", "no usable answer in any of 120 sessions (timeout 120)")
    market = made(BASE, LUCKY, silent)
    assert market.ranked[-1].name == "silent"
    told = standing(silent, market)
    assert told.tone == "failed"
    assert "timeout 120" in told.sentence
    assert "silent has no result (see failures)." in answer(market).support
    assert answer(made(failed("a", "x"), failed("b", "y"))).headline == "No agent has a result."
    assert answer(made(BASE, failed("b", "y"))).headline == "Only the baseline has a result."
    versus = nothing_to_compare("equal-weight", "10 sessions, at least 20 are needed")
    lone = with_row(LUCKY, versus_baseline=versus)
    assert standing(lone, made(BASE, lone)).sentence == (
        "lucky was not compared with buy and hold: 10 sessions, at least 20 are needed."
    )
    assert answer(made(BASE, lone)).headline.endswith(
        "nothing could be compared with buy and hold."
    )


@pytest.mark.parametrize("place", [0, 1])
def test_the_sample_has_every_kind_of_row(place):
    market = cell(place, 120)
    tones = {standing(one, market).tone for one in market.agents}
    assert {"above", "below", "same", "baseline", "failed"} <= tones


def test_many_comparisons_make_one_weaker():
    """What differs alone may be what chance gives among many: the recorded comparison says so,
    and is shown.
    """
    edge = rival("edge", 0.0012, noise=0.003, seed=8)
    assert edge.versus.side == "above" and 0.001 < edge.versus.p_value
    among_many = corrected([edge.versus, *[LUCKY.versus] * 60], 0.95)[0]
    told = standing(with_row(edge, versus_baseline=among_many), made(BASE, edge))
    assert told.label == "cannot be told apart" and told.sentence == (
        "edge cannot be told apart from buy and hold once the number of agents compared is allowed "
        "for."
    )
