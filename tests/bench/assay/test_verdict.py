"""Verdicts: the right word for the evidence, and never a stronger one."""

import json
import os
import pickle
import subprocess
import sys

import msgspec
import numpy as np
import peeking_agent  # noqa: F401  # registers the agent that leaks
import polars as pl
import pytest
import runs_agents  # noqa: F401  # registers the agents
import runs_world as world
from click.testing import CliRunner
from hypothesis import given, strategies as st

from tradeassay.cli import root
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.verdict import KINDS, AgentFindings, decide, evidence
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.recalled import EdgeSplit, RecallSplit
from tradeassay.verdict.record import (
    Assay,
    Contrast,
    Edge,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    PassiveEvidence,
    Ranks,
    RecallEvidence,
    StyleEvidence,
    TailEvidence,
    TimingEvidence,
    Together,
    VerdictConfig,
)
from tradeassay_bench.core.executors import Spread
from tradeassay_bench.examine import assay
from tradeassay_bench.examine.leaks import LeakFinding, LeakTestConfig, LeakTestReport
from tradeassay_bench.examine.leaks.examine import leak_tests
from tradeassay_bench.examine.luck import Luck, LuckConfig, luck_of_run
from tradeassay_bench.examine.luck.portfolios import PLAIN
from tradeassay_bench.runs import AgentSpec, run

CONFIG = VerdictConfig()
SMALL = VerdictConfig(portfolios=100, draws=100, least=20)


def span(value, half):
    return Measure(value=value, low=value - half, high=value + half)


def edge(value, half, comparisons=1):
    measure = span(value, half)
    return Edge(
        tested=measure, ratio=span(20 * value, 20 * half), gross=measure, comparisons=comparisons
    )


def eaten(gross, net, *, most=True):
    costs = Measure(value=net - gross)
    made = msgspec.structs.replace(edge(net, 0.05), gross=span(gross, 0.05), costs=costs)
    return msgspec.structs.replace(made, most_of_gain=most, most_of_loss=most)


def follows(explained, beyond):
    return PassiveEvidence(
        portfolio="all names in equal parts",
        explained=explained,
        beta=1.0,
        beyond=span(beyond, 0.01),
    )


def timed(value):
    none = span(0.0, 1.0)
    return TimingEvidence(by="holdings", per_year=span(value, 0.02), curvature=none, upside=none)


GOOD, NOTHING = edge(0.1, 0.05), edge(0.02, 0.05)
CLEAN = LeakEvidence(tested=True, sentence="No leak was found.")
LUCKY = LuckEvidence(percentile=span(0.99, 0.005), p=0.01, p_low=0.99, portfolios=10_000)
UNLUCKY = LuckEvidence(percentile=span(0.01, 0.005), p=0.99, p_low=0.01, portfolios=10_000)
BARELY = LuckEvidence(percentile=span(0.9, 0.05), p=0.1, portfolios=10_000)
MIDDLING = LuckEvidence(percentile=span(0.4, 0.05), p=0.6, p_low=0.4, portfolios=10_000)


def found(**changes):
    parts = {
        name: span(value, 0.02)
        for name, value in (
            ("common", 0.1),
            ("style", 0.01),
            ("selection", 0.1),
            ("trading", -0.01),
        )
    }
    fields = {
        "setting": "c",
        "benchmark": "b",
        "dataset": "d",
        "agent": "one",
        "by_model": False,
        "baseline": False,
        "seeds": 1,
        "failed_seeds": 0,
        "sessions": 252,
        "first": "2024-01-02",
        "last": "2024-12-31",
        "total": span(0.2, 0.1),
        "market": span(0.05, 0.1),
        "parts": parts,
        "style_variance": 0.1,
        "active_variance": 0.2,
        "edge": GOOD,
        "luck": LUCKY,
        "leaks": CLEAN,
        "failure_rate": Measure(value=0.0),
        "ranks": Ranks(of=3, by_return=1, by_selection=2),
    }
    return AgentFindings(**(fields | changes))


def memory(gap, masked):
    return MemoryEvidence(against="blinded", gap=gap, masked=masked)


TWICE = msgspec.structs.replace(
    memory(span(-0.06, 0.07), span(0.1, 0.05)), both=span(0.07, 0.05), confirmed=True
)
"""Not certain unmasked, certain under the mask and over both plays."""
LOST = msgspec.structs.replace(
    memory(span(0.1, 0.05), span(0.04, 0.07)), both=span(0.09, 0.05), confirmed=False
)
"""Certain over both plays, and not where memory cannot help."""
SHRINKS = msgspec.structs.replace(memory(span(0.05, 0.055), span(0.03, 0.05)), shrinks=True)
"""Uncertain under the mask; that it takes something is nearly certain."""
DATES = msgspec.structs.replace(
    memory(span(0.0, 0.05), span(0.0, 0.05)),
    timing=Contrast(gap=span(0.07, 0.03), masked=span(0.0, 0.02), confirmed=False, shrinks=True),
)
"""Timing is gone under the mask, and nothing else changed."""
BOTH = msgspec.structs.replace(
    memory(span(0.05, 0.06), span(0.0, 0.04)),
    timing=Contrast(gap=span(0.04, 0.05), masked=span(0.0, 0.02), confirmed=False, shrinks=False),
    together=Together(
        earned=span(0.09, 0.05),
        gap=span(0.09, 0.07),
        masked=span(0.0, 0.05),
        confirmed=False,
        shrinks=True,
    ),
)
"""Neither the edge nor timing is gone for certain, the two together are."""
NEARLY_BOTH = msgspec.structs.replace(
    BOTH, together=msgspec.structs.replace(BOTH.together, gap=span(0.09, 0.095))
)
STAYS_TOGETHER = msgspec.structs.replace(
    BOTH, together=msgspec.structs.replace(BOTH.together, masked=span(0.07, 0.05), confirmed=True)
)
"""Names and days earn under the mask too: nobody is praised for a sum, and nobody blamed."""
STYLES = StyleEvidence(tilt=span(0.01, 0.05), timing=span(0.08, 0.03))
MODEL = {"edge": NOTHING, "by_model": True}
SUSPECTED, LEFT = (
    "memory is suspected: of +9.0% (+4.0% to +14.0%)",
    "under 'blinded' nothing is left",
)
WEAK = memory(span(0.05, 0.1), span(0.03, 0.05))
BENT = TailEvidence(
    skew=-3.0, worst=-0.1, worst_session=None, drawdown=-0.1, crash=False, option_like=True
)
LEANS = {"style_variance": 0.6, "exposures": {"MOM_12_1": span(1.2, 0.2), "ROC_20": span(0.1, 0.2)}}


@pytest.mark.parametrize(
    ("changes", "kind", "firm", "words"),
    [
        ({}, "skill", True, "skill is supported"),
        ({"edge": NOTHING}, "luck", True, "cannot be told from luck"),
        ({"luck": BARELY}, "skill", False, "But random portfolios do not confirm it."),
        (
            {"luck": MIDDLING},
            "luck",
            True,
            "60.0% of random portfolios with the same trades did as well",
        ),
        ({"edge": NOTHING, **LEANS}, "style", True, "twelve-month momentum +1.2"),
        (
            {"edge": NOTHING, **LEANS, "style_variance": 0.3},
            "luck",
            True,
            "cannot be told from luck",
        ),
        (
            LEANS,
            "mixed",
            True,
            "it leans to styles, which brought +1.0% (twelve-month momentum +1.2)",
        ),
        ({"edge": NOTHING, "active_variance": 0.001}, "market", True, "which is the market"),
        ({"edge": edge(-0.1, 0.05), "luck": UNLUCKY}, "worse", True, "lost by the names it chose"),
        ({"edge": edge(-0.1, 0.05), "luck": MIDDLING}, "luck", True, "did as badly"),
        ({"edge": edge(0.004, 0.001)}, "luck", True, "too little to be called an edge"),
        (
            {"edge": edge(-0.004, 0.001), "luck": UNLUCKY},
            "luck",
            True,
            "too little to be called an edge",
        ),
        ({"edge": eaten(0.1, 0.0)}, "costs", True, "costs ate its edge"),
        ({"edge": eaten(0.0, -0.1), "luck": MIDDLING}, "costs", True, "costs took it"),
        ({"edge": eaten(0.06, 0.04, most=False)}, "luck", True, "cannot be told from luck"),
        ({"edge": eaten(0.0, -0.1, most=False), "luck": MIDDLING}, "luck", True, "did as badly"),
        (
            {"edge": NOTHING, "styles": STYLES},
            "timing",
            True,
            "+8.0% (+5.0% to +11.0%) a year from leaning",
        ),
        ({"styles": STYLES}, "mixed", True, "part of it is timing of styles"),
        (
            {"edge": NOTHING, "timing": timed(0.08), "memory": DATES},
            "memory",
            True,
            "its timing is memory",
        ),
        (
            MODEL | {"memory": BOTH},
            "memory",
            True,
            "its choice of names and days is memory: 'blinded' takes +9.0%",
        ),
        (
            MODEL | {"memory": NEARLY_BOTH},
            "memory",
            False,
            f"{SUSPECTED} a year from names and days together",
        ),
        (MODEL | {"memory": STAYS_TOGETHER}, "luck", True, "cannot be told from luck"),
        (MODEL | {"memory": BOTH, "luck": MIDDLING}, "luck", True, "from luck"),
        ({"passive": follows(0.995, 0.001)}, "market", True, "follows all names in equal parts"),
        (
            {"passive": follows(0.995, -0.002), "edge": edge(-0.1, 0.05)},
            "market",
            True,
            "nothing worth",
        ),
        ({"passive": follows(0.995, 0.05)}, "skill", True, "skill is supported"),
        ({"edge": NOTHING, "timing": timed(0.08)}, "timing", True, "invested when the market rose"),
        (
            {"edge": edge(-0.1, 0.05), "timing": timed(0.08)},
            "timing",
            True,
            "the rest lost for certain",
        ),
        ({"timing": timed(0.08)}, "mixed", True, "part of it is timing"),
        ({"tail": BENT}, "tail", True, "tail risk"),
        (
            {"leaks": LeakEvidence(tested=True, bound=0.07)},
            "skill",
            False,
            "leaks on up to 7% of days",
        ),
        ({"biases": ("survivorship",)}, "skill", False, "the data set has known biases"),
        ({"styled": 0.1}, "skill", False, "style is not measured"),
        ({"covered": 0.3}, "skill", False, "factors cover only 30%"),
        ({"sessions": 100}, "skill", False, "the window is short"),
        (
            {"leaks": LeakEvidence(tested=True, findings=("bars",))},
            "leak",
            True,
            "saw the future (bars)",
        ),
        ({"edge": edge(0.9, 0.1)}, "leak", False, "look for leaked future"),
        (
            {"by_model": True, "memory": memory(span(0.1, 0.05), span(0.0, 0.05))},
            "memory",
            True,
            "edge is memory",
        ),
        (
            {"by_model": True, "memory": memory(GOOD.tested, GOOD.tested)},
            "mixed",
            True,
            "part of its edge",
        ),
        (
            {"by_model": True, "memory": memory(span(0.0, 0.05), span(0.1, 0.05))},
            "skill",
            True,
            "supported",
        ),
        ({"by_model": True, "memory": SHRINKS}, "memory", False, "is suspected"),
        ({"by_model": True, "memory": WEAK}, "luck", True, "nothing is left"),
        (
            {"by_model": True, "memory": memory(span(0.02, 0.1), span(0.04, 0.05))},
            "luck",
            True,
            "nothing is left",
        ),
        (
            MODEL | {"edge": edge(0.04, 0.05), "memory": TWICE},
            "skill",
            False,
            "consistent with skill: +7.0% (+2.0% to +12.0%) a year beyond market and style, after costs, over "
            "the play and its twin under 'blinded'",
        ),
        (
            MODEL | {"edge": edge(0.04, 0.05), "memory": TWICE, "luck": MIDDLING},
            "luck",
            True,
            "cannot be told",
        ),
        (
            MODEL | {"edge": edge(0.005, 0.05), "memory": TWICE},
            "luck",
            True,
            "cannot be told from luck",
        ),
        (
            {"by_model": True, "memory": WEAK, "luck": BARELY},
            "luck",
            True,
            f"{LEFT} that can be told from it",
        ),
        (
            {"by_model": True, "edge": edge(0.14, 0.05), "memory": LOST},
            "memory",
            True,
            "edge is memory",
        ),
        (
            {"by_model": True, "edge": edge(0.09, 0.1), "memory": LOST},
            "luck",
            True,
            "cannot be told from luck",
        ),
        ({"by_model": True}, "skill", False, "consistent with skill"),
        ({"leaks": LeakEvidence(tested=False)}, "skill", False, "consistent with skill"),
        ({"method": "returns"}, "skill", False, "consistent with skill"),
        ({"failed_seeds": 2}, "skill", False, "consistent with skill"),
        ({"failure_rate": Measure(value=0.5)}, "skill", False, "consistent with skill"),
        (
            {"failure": "no usable answer", "edge": None},
            "failed",
            True,
            "no result: no usable answer",
        ),
    ],
)
def test_the_word_fits_the_evidence(changes, kind, firm, words):
    made = decide(found(**changes), CONFIG)
    assert (made.kind, made.firm) == (kind, firm)
    assert words in made.sentence
    assert made.sentence.startswith("one ")
    if not firm and kind != "leak":
        assert made.limits


def test_what_only_returns_are_known_of():
    made = decide(found(method="returns", edge=NOTHING), CONFIG)
    assert made.sentence.endswith("a year beyond market and style.")  # nothing says what costs were
    follows_it = follows(0.999, 0.018)
    said = decide(found(method="returns", passive=follows_it), CONFIG)
    assert said.kind == "market" and "which a benchmark of prices leaves out" in said.sentence
    assert decide(found(method="holdings", passive=follows_it), CONFIG).kind == "skill"
    assert decide(found(method="returns", passive=follows(0.999, 0.06)), CONFIG).kind == "skill"

    # An edge is more than the dividends that returns do not show.
    for at_least, kind in ((0.012, "luck"), (0.03, "skill")):
        parts = {
            "passive": follows(0.5, 0.05),
            "edge": msgspec.structs.replace(edge(0.05, 0.045), at_least=at_least),
        }
        made = decide(found(method="returns", dataset="", **parts), CONFIG)
        assert made.kind == kind
        assert ("2.5% of it may be dividends and interest" in made.sentence) == (kind == "luck")
        assert decide(found(**parts), CONFIG).kind == "skill"


def test_reasons_for_and_against_skill():
    made = decide(found(), CONFIG)
    assert made.speaks_for[0].endswith("above zero for certain")
    assert made.speaks_for[1].startswith("better than 99.0% of 10,000 random portfolios")
    assert made.speaks_against == ()
    made = decide(found(edge=NOTHING, luck=MIDDLING, leaks=LeakEvidence(tested=False)), CONFIG)
    assert made.speaks_for == ()
    assert [line.rpartition(":")[2] for line in made.speaks_against[:1]] == [
        " zero is not excluded"
    ]
    assert made.speaks_against[1].startswith("better than 40.0%")
    assert made.speaks_against[-1] == "leaks are not excluded: no leak test was made"
    short = Measure(value=0.05)
    few = msgspec.structs.replace(NOTHING, tested=short)
    made = decide(found(edge=few, sessions=43), CONFIG)
    assert "no interval, 43 sessions are too few" in made.because[1]
    assert made.speaks_against[0].startswith("43 sessions are too few for any test")


def test_evidence_that_is_missing_or_in_doubt():
    none = LuckEvidence(percentile=not_scored("futures have none"), p=None)
    doubted = msgspec.structs.replace(memory(span(0.1, 0.05), span(0.0, 0.05)), doubted=True)
    weaker, doubtful = (
        decide(found(luck=none), CONFIG),
        decide(found(by_model=True, memory=doubted), CONFIG),
    )
    assert (weaker.kind, weaker.firm, weaker.label) == ("skill", False, "consistent with skill")
    assert any("futures have none" in limit for limit in weaker.limits)
    assert doubtful.kind == "luck" and any("in doubt" in limit for limit in doubtful.limits)


FOLLOWS = span(0.3, 0.2)


def recalled(explained, rest, told="recalls", follows=FOLLOWS, covered=1.0, **more):
    whole = Measure(value=(explained.value or 0.0) + (rest.value or 0.0))
    part = EdgeSplit(
        edge=whole, explained=explained, rest=rest, share=not_scored("-"), follows=follows
    )
    none = not_scored("no date was recalled")
    dates = EdgeSplit(edge=none, explained=none, rest=none, share=none, follows=none)
    split = RecallSplit(names=part, dates=dates, covered=covered, sentence="split")
    return RecallEvidence(
        told=told, recall=span(0.5, 0.1), split=split, sentences=("It was asked.",), **more
    )


ALL, NONE, ZERO, REST = span(0.09, 0.04), span(0.01, 0.03), span(0.0, 0.0), span(0.1, 0.05)
MUTE, OPEN = not_scored("nothing to follow"), "recall is not excluded:"
ASKED, RIGHT = f"{OPEN} it was asked about 20% of what was held", "memory is suspected: it is right"
UNTOLD = f"{OPEN} its answers do not tell apart the moves that it traded"
HUGE = {"edge": edge(0.8, 0.1)}
GONE, KEPT = memory(span(0.8, 0.1), span(0.0, 0.05)), memory(span(0.3, 0.1), span(0.5, 0.1))
FAMILIAR = {"interaction": span(0.12, 0.08)}
UNSEEN = {"by_name": True, "unread": span(0.9, 0.05)}


@pytest.mark.parametrize(
    ("evidence", "changes", "kind", "firm", "words"),
    [
        (
            recalled(NONE, span(0.1, 0.05), "no recall is shown"),
            {},
            "skill",
            True,
            "skill is supported",
        ),
        (
            recalled(NONE, span(0.1, 0.09), "cannot be told"),
            {},
            "skill",
            True,
            "skill is supported",
        ),
        (recalled(ZERO, REST, "cannot be told", MUTE), {}, "skill", False, UNTOLD),
        (recalled(ZERO, NONE, "no recall is shown", MUTE), {}, "skill", False, UNTOLD),
        (recalled(NONE, REST, "no recall is shown", covered=0.2), {}, "skill", False, ASKED),
        (
            recalled(NONE, REST, "cannot be told", reason="few"),
            {},
            "skill",
            False,
            "recall is not tested: few",
        ),
        (recalled(ALL, NONE), {}, "memory", True, "recall explains +9.0% a year"),
        (recalled(ALL, span(0.05, 0.02)), {}, "mixed", True, "is more than luck"),
        (recalled(ALL, NONE), {"edge": NOTHING}, "memory", True, "recall explains +9.0% a year"),
        (recalled(ALL, NONE, "no recall is shown"), {"edge": NOTHING}, "luck", True, "luck"),
        (
            recalled(NONE, NONE, "cannot be told", **UNSEEN),
            {},
            "memory",
            True,
            "by name and day, not by what it is",
        ),
        (
            recalled(NONE, NONE, "no recall is shown", **UNSEEN),
            {},
            "skill",
            False,
            "what it was shown does not",
        ),
        (recalled(NONE, NONE, "cannot be told", **FAMILIAR), {}, "memory", False, RIGHT),
        (recalled(NONE, span(0.1, 0.05), **FAMILIAR), {}, "skill", True, "skill is supported"),
        (
            recalled(NONE, NONE, "no recall is shown", **FAMILIAR),
            {},
            "skill",
            True,
            "skill is supported",
        ),
        (recalled(ALL, NONE), {"edge": edge(0.8, 0.1)}, "memory", True, "recall explains"),
        (
            recalled(NONE, span(0.7, 0.1)),
            {"edge": edge(0.8, 0.1)},
            "leak",
            False,
            "too good to be believed",
        ),
        (recalled(NONE, span(0.7, 0.1)), HUGE | {"memory": GONE}, "memory", True, "takes +80.0%"),
        (
            recalled(NONE, span(0.7, 0.1)),
            HUGE | {"memory": KEPT},
            "leak",
            False,
            "too good to be believed",
        ),
    ],
)
def test_what_a_model_recalls_decides_the_word(evidence, changes, kind, firm, words):
    made = decide(
        found(**({"by_model": True, "recall": evidence, "memory": None} | changes)), CONFIG
    )
    assert (made.kind, words in " ".join((made.sentence, *made.limits))) == (kind, True), (
        made.sentence
    )
    if kind != "skill":
        assert made.firm == firm


spans = st.builds(span, st.floats(-0.5, 0.5), st.floats(0.001, 0.3))


@given(
    spans,
    spans,
    spans,
    spans,
    st.floats(0.0001, 1.0),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
)
def test_skill_is_never_said_without_its_evidence(
    own, gap, masked, both, p, style, tested_for_leaks, leaked
):
    luck = LuckEvidence(percentile=span(1 - p, 0.01), p=p, portfolios=1000)
    leaks = LeakEvidence(tested=tested_for_leaks or leaked, findings=("news",) if leaked else ())
    seen = {
        "memory": msgspec.structs.replace(memory(gap, masked), both=both),
        "by_model": True,
        **LEANS,
    }
    tested = edge(own.value, own.value - own.low)
    made = decide(
        found(**seen | {"style_variance": style, "edge": tested, "luck": luck, "leaks": leaks}),
        CONFIG,
    )
    certain = tested.tested.low > 0
    assert made.kind in KINDS
    if made.kind in ("skill", "mixed"):
        assert masked.low > 0 and (certain or both.low > 0) and p <= 0.5 and not leaked
        assert made.firm == (tested_for_leaks and p <= 0.05 and certain)
    if made.kind == "memory":
        assert masked.low <= 0 and certain
        assert gap.low > 0 if made.firm else gap.value > masked.value


def test_more_comparisons_make_a_wider_interval():
    daily = np.random.default_rng(1).normal(0.0005, 0.005, 252)
    asked = [evidence.MeanTest(252, VerdictConfig(), trials).of(daily) for trials in (1, 10, 1000)]
    widths = [measure.high - measure.low for measure in asked]
    assert widths == sorted(widths)
    assert widths[2] > 1.4 * widths[0]
    assert evidence.MeanTest(252, CONFIG).of(np.zeros(50)).low is None


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    home = tmp_path_factory.mktemp("verdict")
    world.write_world(home)
    agents = (
        AgentSpec(name="reversal", params={"lookback": 3, "every": 4}, label="reversal"),
        AgentSpec(name="index-hold"),
        AgentSpec(name="test-never-answers", label="silent"),
        AgentSpec(name="test-peeker", label="peeker"),
    )
    spec = world.tiny_spec(benchmarks=("tiny-us-v1",), agents=agents)
    return run(spec, home / "run", executor="inline", home=home)


@pytest.fixture(scope="module")
def judged(played):
    return assay(played, SMALL)


def test_a_run_is_judged_agent_by_agent(played, judged):
    assert [one.agent for one in judged.agents] == [
        played.names[row.agent] for row in played.scores.agents
    ]
    assert msgspec.json.decode(msgspec.json.encode(judged), type=Assay) == judged
    assert assay(played.folder, SMALL, home=played.folder.parent, agents=("silent",)).agents == (
        judged.agent("silent"),
    )
    one = judged.agent("reversal")
    parts = sum(
        one.parts[name].value or 0.0 for name in ("common", "style", "selection", "trading")
    )
    assert parts == pytest.approx(one.total.value, abs=1e-10)
    assert one.seeds == 2
    assert one.luck.portfolios == 100
    assert one.verdict.kind in ("luck", "style", "worse", "costs", "market")
    assert one.ranks.of == 4
    assert sorted(agent.ranks.by_return or 9 for agent in judged.agents) == [1, 2, 3, 4, 9]
    assert one.could_not
    assert "too short" in one.verdict.sentence or one.verdict.kind != "luck"


def test_a_failed_run_is_a_failed_run(judged):
    one = judged.agent("silent")
    assert (one.verdict.kind, one.total.value, one.luck.p, one.ranks.by_return) == (
        "failed",
        None,
        None,
        None,
    )
    assert "no usable answer" in one.verdict.sentence
    assert one.failure_rate.value is None or one.failure_rate.value == 1.0
    assert one.failures


@pytest.mark.slow
def test_without_numba_fewer_portfolios_are_played_as_plain_python(played, monkeypatch):
    whole = luck_of_run(played, agents=("reversal",), config=LuckConfig(portfolios=PLAIN))
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import msgspec, runs_agents, runs_world\n"
        "from tradeassay_bench.examine.luck import luck_of_run\n"
        "from tradeassay_bench.runs import Run\n"
        "found = luck_of_run(Run.load(sys.argv[1], home=sys.argv[2]), agents=('reversal',))\n"
        "print(msgspec.json.encode(found).decode())"
    )
    words = [sys.executable, "-W", "error", "-c", code, str(played.folder), str(played.home)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    assert msgspec.json.decode(done.stdout, type=tuple[Luck, ...]) == whole
    assert all(one.place is not None and one.place.portfolios == PLAIN for one in whole)
    # Where even a hundred would take too long, there is none, and the extra is named.
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("tradeassay_bench.examine.luck.portfolios._PLAIN_WORK", 1_000)
    one = assay(played, SMALL, agents=("reversal",)).agents[0]
    assert one.luck.p is None and "numba" in str(one.luck.percentile.reason)
    assert any(
        limit.startswith("there is no luck baseline") and "numba" in limit
        for limit in one.verdict.limits
    )


def test_leak_tests_enter_the_verdict(played):
    finding = LeakFinding(
        kind="counterfactual", channel="news", through="decision", session="s", step=1, detail="d"
    )
    asked = {
        "agent": "reversal",
        "benchmark": "b",
        "dataset": "d",
        "sessions": 9,
        "futures": 2,
        "whole": True,
    }
    seen = {
        "decisions_with_orders": 3,
        "repeatable": True,
        "moved": {},
        "untested": {},
        "withheld": 0,
    }
    report = LeakTestReport(findings=(finding,), **asked, **seen)
    config = msgspec.structs.replace(SMALL, portfolios=0)
    made = assay(played, config, agents=("reversal",), leaks={"reversal": report})
    assert (made.agents[0].verdict.kind, made.agents[0].leaks.findings) == ("leak", ("news",))
    reports = leak_tests(played, agents=("reversal", "peeker"))
    assert set(reports) == {"reversal", "peeker"}
    made = assay(played, config, agents=("reversal", "peeker"), leaks=reports)
    assert made.agent("reversal").leaks.tested
    assert made.agent("reversal").verdict.kind != "leak"
    peeker = made.agent("peeker")
    assert (peeker.verdict.kind, peeker.verdict.firm) == ("leak", True)
    assert "saw the future (bars)" in peeker.verdict.sentence
    assert peeker.ranks.by_return == 1


def test_a_run_travels_as_its_path(played):
    there = pickle.loads(pickle.dumps(played))
    assert (there.folder, there.home) == (played.folder.absolute(), played.home)
    assert there.scores == played.scores


@pytest.mark.slow
def test_processes_give_the_same_verdicts(played, judged):
    two = Spread(executor="local", workers=2)
    assert assay(played, SMALL, spread=two) == judged
    agents = ("reversal", "peeker", "silent")
    reports = leak_tests(played, agents=agents, config=LeakTestConfig(sessions=6), spread=two)
    assert reports == leak_tests(played, agents=agents, config=LeakTestConfig(sessions=6))
    assert list(reports) == ["reversal", "peeker"]


def test_own_tables(tmp_path, played):
    days = np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(20, 50)).astype(str)
    path = tmp_path / "weights.parquet"
    pl.DataFrame(
        {"date": days.repeat(2), "symbol": ["S4", "S5"] * 30, "weight": [0.5] * 60}
    ).write_parquet(path)
    made = assay(
        OwnAccount(returns=str(path), dataset="tiny-us", home=str(played.folder.parent)), SMALL
    )
    one = made.agents[0]
    assert (made.source, one.agent, one.sessions) == ("own", "weights", 30)
    assert one.verdict.kind in KINDS
    assert one.luck.p is None
    assert any("no luck baseline" in limit for limit in one.verdict.limits)


def test_what_cannot_be_assayed(tmp_path, played):
    with pytest.raises(UserError, match="no run and no table"):
        assay(tmp_path / "nothing")
    with pytest.raises(UserError, match="no agent 'nobody'"):
        assay(played, SMALL, agents=("nobody",))
    with pytest.raises(UserError, match="no table"):
        assay(OwnAccount())
    for wrong in ({"level": 2.0}, {"trials": 0}, {"portfolios": 5}, {"draws": 1}):
        with pytest.raises(UserError):
            VerdictConfig(**wrong)


def test_the_command_for_one_agent_leaves_the_page_of_the_run_as_it_is(
    played, tmp_path, monkeypatch
):
    """The run's page shows the recorded assay; that of some agents is not recorded."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(played.folder.parent))
    monkeypatch.chdir(tmp_path)
    page = played.folder / "report.html"
    before = page.read_bytes() if page.exists() else None
    words = ["assay", str(played.folder), "--agent", "silent", "--portfolios", "0"]
    assert CliRunner().invoke(root, words, catch_exceptions=False).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"{played.folder.name}-assay.html"]
    done = CliRunner().invoke(
        root, [*words, "--out", "verdicts.html", "--json"], catch_exceptions=False
    )
    assert json.loads(done.stdout)["agents"][0]["verdict"]["kind"] == "failed"
    assert (
        "verdicts.html" in done.stderr
        and 20_000 < (tmp_path / "verdicts.html").stat().st_size < 1_000_000
    )
    assert (page.read_bytes() if page.exists() else None) == before
