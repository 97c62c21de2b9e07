"""Regimes by stated rules, and the command behind which they stand."""

import numpy as np
import pytest
import runs_world as world
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_bench.examine import RegimeRules, planted, regime_panels, tag_regimes
from tradeassay_bench.examine.regimes import tag_window
from tradeassay_bench.runs import run

UP = np.linspace(100.0, 110.0, 64)
DOWN = np.linspace(100.0, 90.0, 64)
V = np.concatenate([np.linspace(100.0, 88.0, 33), np.linspace(88.5, 99.0, 31)])
FLAT = np.linspace(100.0, 104.9, 64)


def test_the_rules_on_paths_drawn_by_hand():
    for path, kind in ((UP, "bull"), (DOWN, "bear"), (V, "v"), (FLAT, "flat")):
        assert tag_window(path) == tag_window(path * 7.0) == kind
    # A v needs its low in the middle and most of the fall back.
    late = np.concatenate([np.linspace(100.0, 88.0, 60), np.linspace(90.0, 97.0, 4)])
    assert tag_window(late) == "flat"
    half = np.concatenate([np.linspace(100.0, 88.0, 33), np.linspace(88.5, 93.0, 31)])
    assert tag_window(half) == "bear"
    assert tag_window(half, RegimeRules(regained=0.4)) == "v"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-0.05, 0.05), min_size=5, max_size=300), st.integers(5, 80))
def test_spans_cover_every_session_once(moves, length):
    levels = 100.0 * np.cumprod([1.0, *(1.0 + np.array(moves))])
    spans = tag_regimes(levels, RegimeRules(length=length))
    places = [place for span in spans for place in range(span.first, span.last + 1)]
    assert places == list(range(len(moves)))
    assert all(span.last - span.first + 1 >= min(length / 2, len(moves)) for span in spans)
    assert all(span.lowest <= min(0.0, span.change) + 1e-12 for span in spans)


def test_panels_of_a_run(tmp_path):
    world.write_world(tmp_path)
    spec = world.tiny_spec(benchmarks=("tiny-us-v1",), seeds=(0,))
    played = run(spec, tmp_path / "run", executor="inline", home=tmp_path)
    rules = RegimeRules(length=10, move=0.02, depth=0.03)
    panels = regime_panels(played, rules)
    agents = {row.agent for row in played.scores.agents}
    assert {panel.agent for panel in panels} == agents
    for agent in agents:
        mine = [panel for panel in panels if panel.agent == agent]
        assert sum(panel.sessions for panel in mine) == world.SESSIONS - world.WARM
        assert len({panel.regime for panel in mine}) == len(mine)
    one = next(panel for panel in panels if not panel.baseline)
    # A regime of a few weeks has no number of a year.
    assert one.sessions < 60 and one.measures["return"].reason == "record too short"
    assert one.measures["max_drawdown"].value <= 0.0


def test_rules_that_tag_nothing_are_refused():
    for rules, said in (
        ({"length": 2}, "cannot be determined"),
        ({"move": 0.0}, "cannot tag any window"),
    ):
        with pytest.raises(UserError, match=said):
            RegimeRules(**rules)
    with pytest.raises(UserError, match="two positive levels"):
        tag_window(np.array([1.0]))


def test_the_command_judges_planted_agents(tell, monkeypatch):
    small = planted.planted_world(88_001, names=30, sessions=64)
    monkeypatch.setattr(planted, "planted_world", lambda seed: small)
    said = tell(["assay", "self-test", "--worlds", "1", "--portfolios", "0"]).out
    assert "in 1 worlds" in said and "leaking" in said
