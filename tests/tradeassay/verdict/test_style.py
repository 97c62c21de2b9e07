"""Is it a style? It leans to styles, and they moved or brought more than its names did."""

import pytest
from accounts import FEW, LEANS, MIDDLING, NOTHING, account, alpha, span, verdict_on

EXPOSED = LEANS["exposures"]


def test_styles_that_move_an_account_are_named():
    verdict = verdict_on(account(alpha=NOTHING, **LEANS))
    assert (verdict.kind, verdict.label, verdict.firm) == ("style", "style exposure", True)
    assert "is style (60%: twelve-month momentum +1.2), which brought +1.0%" in verdict.sentence
    assert verdict.sentence.endswith(
        "; the rest, +2.0% (−3.0% to +7.0%) a year, is not distinguishable from luck."
    )


def test_styles_that_brought_more_than_the_names_are_named():
    parts = {"common": 0.1, "style": 0.12, "selection": 0.01, "trading": -0.01}
    found = account(
        alpha=NOTHING,
        style_variance=0.3,
        exposures=EXPOSED,
        parts={name: span(value, 0.02) for name, value in parts.items()},
    )
    verdict = verdict_on(found)
    assert verdict.kind == "style"
    said = (
        "style (twelve-month momentum +1.2) brought more than selection and trading together: "
        "+12.0%"
    )
    assert said in verdict.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"style_variance": 0.3, "exposures": EXPOSED},  # names moved and brought more
        {"style_variance": 0.2, "exposures": EXPOSED},  # hardly any of it is style
        {"style_variance": 0.6, "exposures": {"MOM_12_1": span(0.4, 0.1)}},  # no exposure is large
        {"style_variance": 0.6, "exposures": {"MOM_12_1": span(0.6, 0.7)}},  # or certain
        {"style_variance": None, "exposures": EXPOSED},
    ],
)
def test_a_little_style_is_no_style(changes):
    assert verdict_on(account(alpha=NOTHING, **changes)).kind == "not-distinguishable-from-luck"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"luck": MIDDLING},
            "may be luck: 60.0% of random portfolios with the same trades did as well",
        ),
        ({"alpha": alpha(0.004, 0.001)}, "may be luck: that is too little to be called alpha"),
        ({"alpha": alpha(-0.06, 0.05)}, "may be luck: luck's worst of 20 tries looks the same"),
    ],
)
def test_what_speaks_against_the_rest_is_said(changes, words):
    verdict = verdict_on(account(**{**LEANS, **changes}))
    assert verdict.kind == "style"
    assert words in verdict.sentence


def test_an_alpha_beside_a_style_is_praised_and_the_style_is_named():
    for tested, kind in ((None, "skill"), (FEW, "could-be-best-of-few")):
        changes = LEANS if tested is None else {**LEANS, "alpha": tested}
        verdict = verdict_on(account(**changes))
        assert verdict.kind == kind
        leaning = "; it leans to styles, which brought +1.0% (twelve-month momentum +1.2)"
        assert leaning in verdict.sentence
