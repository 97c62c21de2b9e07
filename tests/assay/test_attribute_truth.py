"""Attribution against answer keys: what was planted is found, within errors that are stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tradeassay.assay import MarketInputs, MarketQuery, market_inputs
from tradeassay.core.view import Floats
from tradeassay.data import Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import (
    ActionModel,
    AnswerKey,
    MarketModel,
    NewsModel,
    NoiseModel,
    SyntheticConfig,
    generate,
    preset,
)
from tradeassay.metrics.attribution import FULL, decompose

START = 260
Opened = tuple[MarketInputs, AnswerKey, Snapshot]


def opened(config: SyntheticConfig, folder: Path) -> Opened:
    world = generate(config)
    write_snapshot(world.panel, folder / "world")
    snapshot = open_snapshot(folder / "world")
    first, last = str(snapshot.sessions[START]), str(snapshot.sessions[-1])
    return market_inputs(snapshot, MarketQuery(first=first, last=last)), world.key, snapshot


def columns(inputs: MarketInputs, key: AnswerKey) -> list[int]:
    return [inputs.symbols.index(symbol) for symbol in key.facts.symbols]


def portfolio(inputs: MarketInputs, key: AnswerKey, score: Floats, held: int) -> Floats:
    weights = np.zeros(inputs.model.returns.shape)
    best = np.argsort(-score, axis=1, kind="stable")[:, :held]
    np.put_along_axis(weights, np.array(columns(inputs, key))[best], 1.0 / held, axis=1)
    return weights


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Opened:
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
def usual(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """A world as it ships: betas, sectors, news, fat-tailed noise."""
    config = preset("us", seed=1001, names=150, sessions=420, new_listings=0, delistings=0)
    return opened(config, tmp_path_factory.mktemp("usual"))


def test_exposures_are_the_planted_ones(usual: Opened) -> None:
    inputs, key, _ = usual
    found = inputs.model.exposures[:, :, columns(inputs, key)]
    for k, name in enumerate(key.facts.factors):
        true = key.exposures[START:, k]
        assert np.corrcoef(found[:, k].ravel(), true.ravel())[0, 1] > 0.999, name
    assert (inputs.model.fitted == FULL).all()
    assert inputs.sized_by == "market_cap"
    assert inputs.screen.dropped == ()
    assert all(found.value is not None and found.value < 5 for found in inputs.screen.vif.values())


def test_without_noise_the_premia_are_the_planted_ones(quiet: Opened) -> None:
    inputs, key, _ = quiet
    assert inputs.model.factors[9:11] == ("BETA", "SECTOR Consumer")  # no size is planted or known here
    error = inputs.model.premia[:, :9] - key.styles[START:]
    assert (np.sqrt((error**2).mean(axis=0)) < 6e-4).all()
    assert np.sqrt(((inputs.model.common - key.market[START:]) ** 2).mean()) < 1e-4
    assert float(np.mean(inputs.model.explained)) > 0.95
    assert inputs.sized_by == "traded amount"


def test_without_noise_a_tilt_is_style_and_nothing_is_selection(quiet: Opened) -> None:
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


def test_planted_skill_is_found_as_selection(usual: Opened) -> None:
    inputs, key, _ = usual
    own = (key.residual + key.news + key.decline)[START:] + key.alpha
    weights = portfolio(inputs, key, key.news[START:], 25)
    daily = decompose(inputs.model, weights)
    truth = 252 * (weights[:, columns(inputs, key)] * own).sum(axis=1).mean()
    assert truth > 0.4
    assert 252 * daily.selection.mean() == pytest.approx(truth, abs=0.12)
    assert abs(252 * daily.style.sum(axis=1).mean()) < 0.12
    nobody = decompose(inputs.model, portfolio(inputs, key, np.random.default_rng(0).normal(size=own.shape), 25))
    assert abs(252 * nobody.selection.mean()) < 0.25
    assert abs(252 * nobody.style.sum(axis=1).mean()) < 0.08
    assert daily.error() < 1e-12


def test_what_happens_later_does_not_change_a_day(usual: Opened) -> None:
    """The same world read up to an earlier day gives the same exposures, weights and premia up to that day."""
    inputs, _, snapshot = usual
    count = 60
    query = MarketQuery(first=inputs.sessions[0], last=inputs.sessions[count - 1])
    early = market_inputs(snapshot, query)
    same = [inputs.symbols.index(symbol) for symbol in early.symbols]
    assert early.model.premia == pytest.approx(inputs.model.premia[:count], abs=1e-12)
    assert early.model.residuals == pytest.approx(inputs.model.residuals[:count][:, same], abs=1e-12)
    assert early.size == pytest.approx(inputs.size[:count][:, same], rel=1e-12, nan_ok=True)


def test_what_a_day_brings_does_not_change_its_exposures(tmp_path: Path) -> None:
    """Other prices and volumes on the last day, and names suspended on it: its exposures and sizes stay."""
    panel = generate(preset("us", seed=5, names=60, sessions=275, new_listings=0, delistings=0)).panel
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
