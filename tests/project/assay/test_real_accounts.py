"""The builders of ``perf/real_accounts.py`` that need no data, and the register of its accounts."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tradeassay.verdict.record import KINDS

SCRIPT = Path(__file__).resolve().parents[3] / "perf" / "real_accounts.py"
spec = spec_from_file_location("real_accounts", SCRIPT)
assert spec is not None and spec.loader is not None
real_accounts = module_from_spec(spec)
sys.modules[spec.name] = real_accounts
spec.loader.exec_module(real_accounts)


@pytest.fixture
def market():
    return np.random.default_rng(3).normal(0.008, 0.042, 215)


def test_every_account_has_an_expert_who_speaks_the_verdicts_words():
    accounts = real_accounts.ACCOUNTS
    assert len(accounts) >= 30
    assert len({one.name for one in accounts}) == len(accounts)
    for one in accounts:
        assert one.expert and set(one.expert) <= set(KINDS), one.name
        assert one.why and one.source, one.name


def test_a_record_like_fairfield_has_the_published_moments(market):
    own = real_accounts.like_fairfield(market)
    assert own.mean() * 12 == pytest.approx(0.105, abs=0.005)
    assert own.std() * np.sqrt(12) == pytest.approx(0.025, abs=0.001)
    assert own.min() >= -0.0064
    assert (own > 0).mean() > 0.88
    assert np.corrcoef(own, market)[0, 1] == pytest.approx(0.3, abs=0.1)


def test_a_steady_fraud_never_loses_and_hand_written_months_repeat():
    assert (real_accounts.steady_fraud(120) > 0).all()
    written = real_accounts.written_by_hand(120)
    assert np.unique(written).size < 70


def test_smoothing_keeps_the_mean_and_takes_the_movement(market):
    reported = real_accounts.smoothed(market, [0.5, 0.3, 0.2])
    assert reported.size == market.size - 2
    assert reported[0] == pytest.approx(0.5 * market[2] + 0.3 * market[1] + 0.2 * market[0])
    assert reported.std() < 0.7 * market.std()


def test_a_call_less_a_put_is_the_market():
    market = np.random.default_rng(1).normal(0.0, 0.01, 42)
    volatility = np.full(43, 0.2)
    legs = [(True, 1.0, 1.0), (False, 1.0, -1.0)]
    own = real_accounts.with_options(market, volatility, legs, 21, index_share=0.0, cash=0.0)
    assert own == pytest.approx(market)


def test_who_sells_a_put_keeps_the_premium_if_nothing_happens():
    still = np.zeros(21)
    legs = [(False, 1.0, -1.0)]
    own = real_accounts.with_options(still, np.full(22, 0.2), legs, 21, index_share=0.0, cash=0.0)
    premium = real_accounts.black_scholes(False, 1.0, 1.0, 0.2 * np.sqrt(21 / 252))
    assert np.prod(1.0 + own) == pytest.approx(1.0 + premium)


def test_who_sells_variance_earns_the_gap_between_expected_and_seen():
    market = np.full(21, 0.005)
    own = real_accounts.with_variance_swaps(market, np.full(22, 0.2), 2.0, 21)
    earned = 2.0 * (0.2**2 * 21 / 252 - (market**2).sum())
    assert np.prod(1.0 + own) == pytest.approx(1.0 + earned)


def test_a_bond_whose_yield_stays_earns_its_yield():
    yields = pd.Series([0.06] * 3)
    assert real_accounts.bond_returns(yields, 20.0).iloc[1:].to_numpy() == pytest.approx(
        [0.005, 0.005], abs=2e-5
    )


def test_who_doubles_down_is_back_at_one_share_once_even():
    own = real_accounts.doubling_down(np.array([-0.01, 0.01, 0.01]))
    assert own == pytest.approx([-0.01, 0.02, 0.01])


def test_an_informed_picker_beats_the_names_it_picks_from():
    names = pd.DataFrame(np.random.default_rng(2).normal(0.0, 0.01, (250, 40)))
    own = real_accounts.informed_picker(names, 1.0, 5, 5, seed=1)
    assert own.sum() > names.mean(axis=1).sum() + 1.0
