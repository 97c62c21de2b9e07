"""Recorded runs taken apart: every venue, every session, to 1e-12."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))

import runs_world as world
from attribute_runs import OPEN, every_venue

from tradeassay.assay import Attribution, RunAttribution, attribute_episode, attribute_run, check_identity
from tradeassay.core.errors import LedgerError, RunError, UserError
from tradeassay.core.events import Filled
from tradeassay.runs import Run


@pytest.fixture(scope="module")
def played() -> Run:
    return every_venue()


@pytest.fixture(scope="module")
def taken(played: Run) -> RunAttribution:
    return attribute_run(played)


def one(taken: RunAttribution, venue: str, agent: str) -> Attribution:
    (found,) = [v for k, v in taken.episodes.items() if k.startswith(f"tiny-{venue}-v1__") and agent in k]
    return found


def test_parts_sum_to_the_total_on_every_venue(played: Run, taken: RunAttribution) -> None:
    assert set(taken.episodes) == {episode.key for episode in played.episodes}
    for key, found in taken.episodes.items():
        assert check_identity(found) <= 1e-12, key
        if found.linked is None:
            assert "no usable answer" in str(found.reason), key
            assert found.total is None
        else:
            nav = played.series(key).nav
            assert found.total == float(nav[-1] / nav[0] - 1.0), key
            parts = ("common", "style", "selection", "trading")
            assert abs(sum(found.linked[part] for part in parts) - found.total) <= 1e-12, key
    assert check_identity(taken) <= 1e-12


def test_a_session_without_a_fill_has_no_trading_but_financing(played: Run, taken: RunAttribution) -> None:
    """Splits, dividends, suspensions and delistings are in the returns of names, exactly as in the account."""
    quiet = 0
    for episode in played.episodes:
        if "futures" in episode.key:
            continue
        daily = taken.episodes[episode.key].daily
        for place, record in enumerate(played.records(episode.key)):
            if any(isinstance(event, Filled) for event in (*record.opening, *record.events)):
                continue
            financing = daily.trading_parts.get("financing", (0.0,) * len(daily.sessions))[place]
            assert daily.trading[place] == pytest.approx(financing, abs=1e-12), (episode.key, record.session)
            quiet += 1
    assert quiet > 500


def test_shorts_margin_and_futures_add_up(taken: RunAttribution) -> None:
    short = one(taken, "us-margin", "provoker")
    assert min(short.daily.invested) < -1 < 1 < max(short.daily.gross)
    assert short.linked is not None
    assert short.linked["trading.financing"] < 0
    future = one(taken, "futures", "equal-weight")
    assert future.linked is not None
    assert future.linked["trading.futures"] != 0
    assert future.linked["common"] == future.linked["selection"] == 0.0
    assert future.linked["trading.fills"] == pytest.approx(0.0, abs=1e-12)
    assert any("no names to compare" in note for note in future.notes)


def test_fees_and_slippage_are_named(played: Run, taken: RunAttribution) -> None:
    key = next(e.key for e in played.episodes if "tiny-us-v1" in e.key and "provoker" in e.key)
    fills = [
        (row, event)
        for row, record in enumerate(played.records(key))
        for event in (*record.opening, *record.events)
        if isinstance(event, Filled)
    ]
    nav, daily = played.series(key).nav, taken.episodes[key].daily
    row = fills[0][0]
    fees = sum(event.fee + event.tax for at, event in fills if at == row)
    slip = sum(event.quantity * (event.price - event.reference) for at, event in fills if at == row)
    assert daily.trading_parts["fees"][row] == pytest.approx(-fees / nav[row])
    assert daily.trading_parts["slippage"][row] == pytest.approx(-slip / nav[row])


def test_an_index_fund_is_the_market_and_nothing_of_it_is_selection(taken: RunAttribution) -> None:
    held = one(taken, "us", "index-hold")
    assert held.covered_share == 1.0
    assert held.linked is not None
    assert held.linked["uncovered"] == held.linked["selection"] == held.linked["style"] == 0.0
    assert set(held.daily.selection) == {0.0}
    panel = world.tiny_panel()
    close = panel.bars["close"][-len(held.daily.sessions) - 1 :, panel.symbols.index("IDXF")]
    earned = np.array(held.daily.invested) * (close[1:] / close[:-1] - 1.0)
    assert np.array(held.daily.common) == pytest.approx(earned, abs=1e-15)
    assert held.linked["common"] == pytest.approx(-0.05599226611708803, abs=1e-12)
    assert all(liked.value is None for liked in held.preferences.values()), "no factor says what a fund leans to"


def test_marked_at_the_open_is_taken_open_to_open(taken: RunAttribution) -> None:
    (found,) = [v for k, v in taken.episodes.items() if k.startswith(OPEN) and "equal-weight" in k]
    assert found.fit.price == "open"
    assert any("open to open" in note for note in found.notes)
    assert any("all of IDX" in note for note in found.notes)
    assert found.daily.trading[5:20] == pytest.approx([0.0] * 15, abs=1e-12)


def test_paper_is_three_parts_of_the_starting_weights(played: Run, taken: RunAttribution) -> None:
    key = next(e.key for e in played.episodes if "tiny-us-v1" in e.key and "provoker" in e.key)
    paper = attribute_episode(played, key, convention="paper")
    assert check_identity(paper) <= 1e-12
    assert paper.linked is not None
    assert paper.linked["trading"] == 0.0
    assert paper.account_return == taken.episodes[key].total
    assert paper.total != paper.account_return
    ours, theirs = taken.episodes[key].daily, paper.daily
    assert ours.common == theirs.common
    assert np.array(ours.total) - np.array(ours.trading) == pytest.approx(np.array(theirs.total), abs=1e-15)


def test_brinson_by_sector_and_board(taken: RunAttribution) -> None:
    ashare = one(taken, "ashare", "equal-weight")
    assert [groups.by for groups in ashare.brinson] == ["sector", "board"]
    sector, board = ashare.brinson
    assert set(sector.groups) == {"tech", "oil", "fund", "cash"}
    assert {"main", "chinext"} < set(board.groups)
    for groups in (sector, board):
        assert groups.portfolio is not None and groups.benchmark is not None and groups.trading is not None
        parts = (groups.allocation, groups.selection, groups.interaction)
        whole = sum(sum(part.values()) for part in parts) + groups.trading
        assert whole == pytest.approx(groups.portfolio - groups.benchmark, abs=1e-12)
    assert [groups.by for groups in one(taken, "us", "equal-weight").brinson] == ["sector"]


def test_agents_are_summed_up_and_all_of_it_is_json(played: Run, taken: RunAttribution) -> None:
    assert len(taken.agents) == len({(e.cell, e.label) for e in played.episodes})
    agent = next(a for a in taken.agents if a.agent == played.names["test-provoker"] and "tiny-us-v1" in a.cell)
    assert agent.linked["selection"].n == 1
    assert not agent.by_model and agent.agent.endswith(": test-provoker")
    assert taken.agreement == {}
    assert msgspec.json.decode(msgspec.json.encode(taken), type=RunAttribution) == taken


def test_the_check_refuses_parts_that_do_not_add_up(taken: RunAttribution) -> None:
    found = one(taken, "us", "equal-weight")
    assert found.linked is not None
    wrong = msgspec.structs.replace(found, linked=found.linked | {"style": found.linked["style"] + 1e-9})
    with pytest.raises(LedgerError, match="miss the total"):
        check_identity(wrong)
    days = msgspec.structs.replace(found.daily, common=(*found.daily.common[:-1], 1.0))
    with pytest.raises(LedgerError, match="miss the total"):
        check_identity(msgspec.structs.replace(found, daily=days))


def test_wrong_names_are_refused(played: Run) -> None:
    with pytest.raises(RunError, match="no episode"):
        attribute_episode(played, "nobody")
    with pytest.raises(UserError, match="no agent 'nobody'"):
        attribute_run(played, baselines=["nobody"])
