"""Who is best: tiers where agents cannot be told apart, and no place for who failed too often."""

import re
import sys

import msgspec
import numpy as np
import pytest
import report_sample as made

from tradeassay.core.measure import Measure
from tradeassay.metrics import BootstrapConfig, summarise
from tradeassay.metrics.ranks import unranked
from tradeassay_bench.report import render_html
from tradeassay_bench.report.export_tables import paste_tables
from tradeassay_bench.report.leaderboard import board
from tradeassay_bench.report.run_words import answer, contest_words, markets_words, setting_title
from tradeassay_bench.runs.summary import RunSummary, compare_setting
from tradeassay_bench.runs.summary.figures import over_markets

FEW = BootstrapConfig(draws=200)
SESSIONS = made.weekdays(120)
MARKET = np.random.default_rng(1).normal(0.0004, 0.009, 120)


def playing(name, returns, *, failing=0.0, baseline=False):
    one = made.agent(name, [returns], SESSIONS, MARKET, baseline=baseline)
    rate = summarise([Measure(value=failing, n=120)])
    measures = {**one.row.measures, "failure_rate": rate}
    return msgspec.structs.replace(one, row=msgspec.structs.replace(one.row, measures=measures))


def noisy(edge, seed):
    return MARKET + edge + np.random.default_rng(seed).normal(0, 0.003, 120)


@pytest.fixture(scope="module")
def cell():
    agents = (
        playing("base", MARKET, baseline=True),
        playing("good", noisy(0.002, 2)),
        playing("as good", noisy(0.002, 3)),
        playing("bad", noisy(-0.003, 4)),
        playing("silent", noisy(0.006, 5), failing=0.43),
    )
    return compare_setting(made.bare_cell(agents, SESSIONS, baseline="base"), FEW)


def test_tiers_stand_where_places_would_be_luck(cell):
    contest = cell.contest
    assert set(contest.tiers[0]) == {"good", "as good"}
    assert contest.tiers[1:] == (("bad",),)
    assert contest.tier_of("base") is None  # whether it is beaten is another question
    assert contest.sessions == 120
    assert cell.contest.tier_of("silent") is None
    assert "43%" in cell.agents[-1].unranked
    assert cell.ranked[-1].name == "silent"
    said = answer(cell)
    assert "silent" not in said.headline
    assert any("silent is not ranked" in line for line in said.support)
    out = made.printed(board(cell, 0.95))
    assert "tier" in out and "#" not in out
    said = [unranked(share, "of its days") for share in (0.43, 0.2004, 0.206)]
    assert said == ["43% of its days", "20.04% of its days", "21% of its days"]


def test_one_agent_is_in_no_contest(cell, monkeypatch):
    """No package that loads half of scientific Python stands between agents and their tiers."""
    monkeypatch.setitem(sys.modules, "arch.bootstrap", None)
    agents = (cell.agents[0], playing("one", noisy(0.003, 6)))
    alone = compare_setting(msgspec.structs.replace(cell, agents=agents), FEW)
    assert alone.contest.tiers == (("one",),)
    assert not any("tier" in line for line in answer(alone).support)


def test_every_surface_gives_the_same_places_with_tiers_and_without(cell):
    places = {"good": "1", "as good": "1", "bad": "2", "silent": "–", "base": "–"}
    ranks = {"good": "1", "as good": "2", "base": "3", "bad": "4", "silent": "–"}
    for found, expected in ((cell, places), (msgspec.structs.replace(cell, contest=None), ranks)):
        run = RunSummary(title="t", settings=(found,))
        table = paste_tables(run)[0]
        assert {row[1].text: row[0].text for row in table.rows} == expected
        why = f"not ranked: {cell.agents[-1].unranked}"
        assert [row[0].reason for row in table.rows if row[1].text == "silent"] == [why]
        page = render_html(run)
        assert page.count("<small>not ranked: 43% of its sessions") == 1
        shown = re.findall(
            r'<td class="num rank"[^>]*>([^<]*)</td>\s*<th scope="row" data-v="([^"]*)"', page
        )
        assert {name: place for place, name in shown} == expected
        assert any("silent is not ranked" in line for line in contest_words(found))


def test_what_holds_for_the_ranked_is_not_said_of_all(cell):
    base, good, _, bad, silent = cell.agents
    worse = playing("worse", noisy(-0.004, 6))
    said = answer(
        compare_setting(msgspec.structs.replace(cell, agents=(base, bad, worse, silent)), FEW)
    )
    assert (
        said.headline
        == "Every ranked agent falls behind buy and hold by more than chance explains."
    )
    assert any("bad has the highest return of a ranked agent, " in line for line in said.support)
    said = answer(
        compare_setting(msgspec.structs.replace(cell, agents=(base, good, bad, silent)), FEW)
    )
    assert said.headline.startswith(
        "good is best: it beats buy and hold and every other ranked agent by"
    )
    alone = "good alone is in the first tier: every other ranked agent can be told apart from it."
    assert said.support[:2] == (alone, f"silent is not ranked: {silent.unranked}.")
    without = answer(compare_setting(msgspec.structs.replace(cell, agents=(base, good, bad)), FEW))
    assert without.support[0] == alone.replace("ranked agent", "agent")
    said = answer(
        compare_setting(msgspec.structs.replace(cell, agents=(*cell.agents[:3], silent)), FEW)
    )
    assert said.support[0].startswith("All ranked agents share one tier: ")


def test_the_highest_return_need_not_be_a_winner(cell):
    wild = playing("wild", MARKET + np.random.default_rng(8).normal(0.004, 0.03, 120))
    found = compare_setting(msgspec.structs.replace(cell, agents=(*cell.agents[:2], wild)), FEW)
    assert [one.name for one in found.ranked if not one.baseline] == ["wild", "good"]
    said = answer(found)
    assert said.headline == "good beats buy and hold by more than chance explains."
    assert any(line.startswith("wild has the highest return, ") for line in said.support)


def test_places_over_markets_need_a_difference(cell):
    def market(dataset, **changes):
        return msgspec.structs.replace(cell, dataset=dataset, **changes)

    three = [market(name) for name in ("d1", "d2", "d3")]
    assert over_markets([*three[:2], market("d2")], 0.95) == ()  # the same sessions count once
    (found,) = over_markets(three, 0.95)
    assert set(found.places.mean_ranks) == {"base", "good", "as good", "bad"}  # silent has no place
    assert (found.places.markets, found.places.mean_ranks["bad"]) == (3, 4.0)
    assert markets_words(found).endswith("cannot be told apart, bad is behind.")
    pair = [market(one.dataset, agents=cell.agents[:2]) for one in three]
    assert markets_words(over_markets(pair, 0.95)[0]).endswith(
        "no agents can be told apart."
    )  # three of three may be chance
    settings = [{"mask": "bright"}, {"mask": "blinded"}]
    both = over_markets(
        [market(one.dataset, options=way) for way in settings for one in three], 0.95
    )
    assert [setting_title(one, both) for one in both] == [" (bright)", " (blinded)"]
