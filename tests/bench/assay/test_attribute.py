"""Recorded runs taken apart, every session to 1e-12; what was planted is found, within errors
that are stated.
"""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
import runs_world as world
from attribute_runs import OPEN, every_venue

from tradeassay.metrics.attribution import FULL, decompose
from tradeassay_bench.core.errors import LedgerError, RunError
from tradeassay_bench.core.events import Filled
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import (
    ActionModel,
    MarketModel,
    NewsModel,
    NoiseModel,
    generate,
    preset,
)
from tradeassay_bench.examine import (
    MarketQuery,
    RunAttribution,
    attribute_episode,
    attribute_run,
    check_identity,
    market_inputs,
)


@pytest.fixture(scope="module")
def played():
    return every_venue()


@pytest.fixture(scope="module")
def taken(played):
    return attribute_run(played)


def one(taken, venue, agent):
    (found,) = [v for k, v in taken.episodes.items() if k.startswith(f"{venue}__") and agent in k]
    return found


def test_parts_sum_to_the_total_on_every_venue(played, taken):
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


def test_a_session_without_a_fill_has_no_trading_but_financing(played, taken):
    """Splits, dividends, suspensions and delistings are in the returns of names, exactly as in
    the account.
    """
    quiet = 0
    for episode in played.episodes:
        daily = taken.episodes[episode.key].daily
        for place, record in enumerate(played.records(episode.key)):
            if any(isinstance(event, Filled) for event in (*record.opening, *record.events)):
                continue
            financing = daily.trading_parts.get("financing", (0.0,) * len(daily.sessions))[place]
            assert daily.trading[place] == pytest.approx(financing, abs=1e-12), (
                episode.key,
                record.session,
            )
            quiet += 1
    assert quiet > 500


def test_shorts_and_margin_add_up(taken):
    short = one(taken, "tiny-us-margin-v1", "provoker")
    assert min(short.daily.invested) < -1 < 1 < max(short.daily.gross)
    assert short.linked["trading.financing"] < 0


def test_fees_and_slippage_are_named(played, taken):
    key = one(taken, "tiny-us-v1", "provoker").source
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


def test_an_index_fund_is_the_market_and_nothing_of_it_is_selection(taken):
    held = one(taken, "tiny-us-v1", "index-hold")
    assert held.covered_share == 1.0
    assert held.linked["uncovered"] == held.linked["selection"] == held.linked["style"] == 0.0
    assert set(held.daily.selection) == {0.0}
    panel = world.tiny_panel()
    close = panel.bars["close"][-len(held.daily.sessions) - 1 :, panel.symbols.index("IDXF")]
    earned = np.array(held.daily.invested) * (close[1:] / close[:-1] - 1.0)
    assert np.array(held.daily.common) == pytest.approx(earned, abs=1e-15)
    assert held.linked["common"] == pytest.approx(-0.05599226611708803, abs=1e-12)
    assert all(liked.value is None for liked in held.preferences.values()), (
        "no factor says what a fund leans to"
    )


def test_marked_at_the_open_is_taken_open_to_open(taken):
    found = one(taken, OPEN, "equal-weight")
    assert found.fit.price == "open"
    assert any("open to open" in note for note in found.notes)
    assert any("all of IDX" in note for note in found.notes)
    assert found.daily.trading[5:20] == pytest.approx([0.0] * 15, abs=1e-12)


def test_paper_is_three_parts_of_the_starting_weights(played, taken):
    corrected = one(taken, "tiny-us-v1", "provoker")
    paper = attribute_episode(played, corrected.source, convention="paper")
    assert check_identity(paper) <= 1e-12
    assert paper.linked["trading"] == 0.0
    assert paper.account_return == corrected.total
    assert paper.total != paper.account_return
    ours, theirs = corrected.daily, paper.daily
    assert ours.common == theirs.common
    assert np.array(ours.total) - np.array(ours.trading) == pytest.approx(
        np.array(theirs.total), abs=1e-15
    )


def test_brinson_by_sector_and_board(taken):
    ashare = one(taken, "tiny-ashare-v1", "equal-weight")
    assert [groups.by for groups in ashare.brinson] == ["sector", "board"]
    sector, board = ashare.brinson
    assert set(sector.groups) == {"tech", "oil", "fund", "cash"}
    assert {"main", "chinext"} < set(board.groups)
    for groups in (sector, board):
        parts = (groups.allocation, groups.selection, groups.interaction)
        whole = sum(sum(part.values()) for part in parts) + groups.trading
        assert whole == pytest.approx(groups.portfolio - groups.benchmark, abs=1e-12)
    assert [groups.by for groups in one(taken, "tiny-us-v1", "equal-weight").brinson] == ["sector"]


def test_agents_are_summed_up_and_all_of_it_is_json(played, taken):
    assert len(taken.agents) == len({(e.setting, e.label) for e in played.episodes})
    agent = next(
        a
        for a in taken.agents
        if a.agent == played.names["test-provoker"] and "tiny-us-v1" in a.setting
    )
    assert agent.linked["selection"].n == 1
    assert not agent.by_model and agent.agent.endswith(": test-provoker")
    assert taken.agreement == {}
    assert msgspec.json.decode(msgspec.json.encode(taken), type=RunAttribution) == taken


def test_the_check_refuses_parts_that_do_not_add_up_and_a_wrong_name(played, taken):
    found = one(taken, "tiny-us-v1", "equal-weight")
    wrong = msgspec.structs.replace(
        found, linked=found.linked | {"style": found.linked["style"] + 1e-9}
    )
    days = msgspec.structs.replace(found.daily, common=(*found.daily.common[:-1], 1.0))
    for one_wrong in (wrong, msgspec.structs.replace(found, daily=days)):
        with pytest.raises(LedgerError, match="differ from the total"):
            check_identity(one_wrong)
    with pytest.raises(RunError, match="no episode"):
        attribute_episode(played, "nobody")


START = 260


def opened(config, folder):
    world = generate(config)
    write_snapshot(world.panel, folder / "world")
    snapshot = open_snapshot(folder / "world")
    first, last = str(snapshot.sessions[START]), str(snapshot.sessions[-1])
    return market_inputs(snapshot, MarketQuery(first=first, last=last)), world.key, snapshot


def columns(inputs, key):
    return [inputs.symbols.index(symbol) for symbol in key.facts.symbols]


def portfolio(inputs, key, score, held):
    weights = np.zeros(inputs.model.returns.shape)
    best = np.argsort(-score, axis=1, kind="stable")[:, :held]
    np.put_along_axis(weights, np.array(columns(inputs, key))[best], 1.0 / held, axis=1)
    return weights


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """A world of market and styles with hardly anything else; dividends and splits are in it."""
    config = preset(
        "us",
        seed=3,
        names=80,
        sessions=330,
        new_listings=0,
        delistings=0,
        fundamentals=False,
        noise=NoiseModel(low=0.01, high=0.0101, alpha=0.0),
        market=MarketModel(beta_spread=0.0, sector_volatility=0.0),
        news=NewsModel(events=0.0, noise=0.0, rumours=0.0),
        actions=ActionModel(payers=0.5, splits=0.3),
    )
    return opened(config, tmp_path_factory.mktemp("quiet"))


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A world as it ships: betas, sectors, news, fat-tailed noise."""
    config = preset("us", seed=1001, names=150, sessions=420, new_listings=0, delistings=0)
    return opened(config, tmp_path_factory.mktemp("usual"))


def test_exposures_are_the_planted_ones(usual):
    inputs, key, _ = usual
    found = inputs.model.exposures[:, :, columns(inputs, key)]
    for k, name in enumerate(key.facts.factors):
        true = key.exposures[START:, k]
        assert np.corrcoef(found[:, k].ravel(), true.ravel())[0, 1] > 0.999, name
    assert (inputs.model.fitted == FULL).all()
    assert (inputs.sized_by, inputs.screen.dropped) == ("market_cap", ())
    assert all(found.value is not None and found.value < 5 for found in inputs.screen.vif.values())


def test_without_noise_the_premia_are_the_planted_ones(quiet):
    inputs, key, _ = quiet
    assert inputs.model.factors[9:11] == (
        "BETA",
        "SECTOR Consumer",
    )  # no size is planted or known here
    error = inputs.model.premia[:, :9] - key.styles[START:]
    assert (np.sqrt((error**2).mean(axis=0)) < 6e-4).all()
    assert np.sqrt(((inputs.model.common - key.market[START:]) ** 2).mean()) < 1e-4
    assert float(np.mean(inputs.model.explained)) > 0.95
    assert inputs.sized_by == "traded amount"


def test_without_noise_a_tilt_is_style_and_nothing_is_selection(quiet):
    inputs, key, _ = quiet
    exposures, premia = key.exposures[START:], key.styles[START:]
    for factor in (0, 1, 7):
        weights = portfolio(inputs, key, exposures[:, factor], 20)
        daily = decompose(inputs.model, weights)
        held = weights[:, columns(inputs, key)]
        style = (np.einsum("tn,tkn->tk", held, exposures) * premia).sum(axis=1)
        assert np.corrcoef(daily.style.sum(axis=1), style)[0, 1] > 0.99
        assert abs(252 * (daily.style.sum(axis=1) - style).mean()) < 0.02
        assert abs(252 * daily.selection.mean()) < 0.02
        assert daily.error() < 1e-12


def test_planted_skill_is_found_as_selection(usual):
    inputs, key, _ = usual
    own = (key.residual + key.news + key.decline)[START:] + key.alpha
    weights = portfolio(inputs, key, key.news[START:], 25)
    daily = decompose(inputs.model, weights)
    truth = 252 * (weights[:, columns(inputs, key)] * own).sum(axis=1).mean()
    assert truth > 0.4
    assert 252 * daily.selection.mean() == pytest.approx(truth, abs=0.12)
    assert abs(252 * daily.style.sum(axis=1).mean()) < 0.12
    nobody = decompose(
        inputs.model, portfolio(inputs, key, np.random.default_rng(0).normal(size=own.shape), 25)
    )
    assert abs(252 * nobody.selection.mean()) < 0.25
    assert abs(252 * nobody.style.sum(axis=1).mean()) < 0.08
    assert daily.error() < 1e-12


def test_what_happens_later_does_not_change_a_day(usual):
    """The same world read up to an earlier day gives the same exposures, weights and premia up
    to that day.
    """
    inputs, _, snapshot = usual
    count = 60
    query = MarketQuery(first=inputs.sessions[0], last=inputs.sessions[count - 1])
    early = market_inputs(snapshot, query)
    same = [inputs.symbols.index(symbol) for symbol in early.symbols]
    assert early.model.premia == pytest.approx(inputs.model.premia[:count], abs=1e-12)
    assert early.model.residuals == pytest.approx(
        inputs.model.residuals[:count][:, same], abs=1e-12
    )
    assert early.size == pytest.approx(inputs.size[:count][:, same], rel=1e-12, nan_ok=True)


def test_what_a_day_brings_does_not_change_its_exposures(tmp_path):
    """Other prices and volumes on the last day, and names suspended on it: its exposures and
    sizes stay.
    """
    panel = generate(
        preset("us", seed=5, names=60, sessions=275, new_listings=0, delistings=0)
    ).panel
    stocks = [k for k, one in enumerate(panel.listings) if one.instrument.kind == "stock"]
    gone, rng = stocks[:4], np.random.default_rng(0)
    bars = {name: values.copy() for name, values in panel.bars.items()}
    moved = rng.uniform(0.7, 1.3, len(panel.listings))
    for name, values in bars.items():
        values[-1] *= 3.0 if name in ("volume", "amount") else moved
        values[-1, gone] = np.nan
    write_snapshot(panel, tmp_path / "one")
    write_snapshot(replace(panel, bars=bars), tmp_path / "other")
    read = []
    for folder in ("one", "other"):
        snapshot = open_snapshot(tmp_path / folder)
        query = MarketQuery(first=str(snapshot.sessions[START]), last=str(snapshot.sessions[-1]))
        read.append(market_inputs(snapshot, query))
    one, other = read
    last = other.model.covered[-1]
    assert last.sum() > 40 and not last[gone].any() and one.model.covered[-1, gone].any()
    assert np.array_equal(one.model.exposures[-1][:, last], other.model.exposures[-1][:, last])
    assert np.array_equal(one.size[-1], other.size[-1], equal_nan=True)
    assert np.array_equal(one.model.premia[:-1], other.model.premia[:-1])
    assert not np.allclose(one.model.premia[-1], other.model.premia[-1])
