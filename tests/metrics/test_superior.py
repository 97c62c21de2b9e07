"""Superior predictive ability, StepM and the model confidence set."""

import numpy as np
import pytest
from arch.bootstrap import MCS, SPA

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, model_confidence_set, superior

FEW = BootstrapConfig(draws=200, block=3.0)
RNG = np.random.default_rng(0)
BASE = RNG.normal(0.0004, 0.01, 250)
TABLE = BASE[:, None] + RNG.normal(0, 0.004, (250, 5))
NAMES = ["a", "b", "c", "d", "e"]


def test_nobody_beats_the_benchmark_by_luck() -> None:
    found = superior(TABLE, BASE, NAMES, bootstrap=FEW)
    assert found.p_value > 0.05 and found.better == ()
    assert found.lower <= found.p_value <= found.upper
    assert found == superior(TABLE, BASE, NAMES, bootstrap=FEW)


def test_a_planted_winner_is_named() -> None:
    better = TABLE.copy()
    better[:, 2] += 0.003
    found = superior(better, BASE, NAMES, bootstrap=FEW)
    assert found.p_value < 0.05 and found.better == ("c",)
    kept = model_confidence_set(better, NAMES, bootstrap=FEW)
    assert kept.included == ("c",) and set(kept.excluded) == {"a", "b", "d", "e"}
    assert kept.p_values["c"] == 1.0


def test_it_is_arch_underneath() -> None:
    near = SPA(-BASE, -TABLE, block_size=3, reps=1500, bootstrap="stationary", seed=1)
    near.compute()
    found = superior(TABLE, BASE, bootstrap=BootstrapConfig(draws=1500, block=3.0))
    assert found.p_value == pytest.approx(near.pvalues["consistent"], abs=0.05)
    sets = MCS(-TABLE, size=0.05, block_size=3, reps=1000, bootstrap="stationary", seed=1)
    sets.compute()
    ours = model_confidence_set(TABLE, bootstrap=BootstrapConfig(draws=1000, block=3.0))
    assert ours.included == tuple(str(place) for place in sorted(sets.included))


def test_the_benchmark_itself_is_no_rival() -> None:
    table = np.column_stack([TABLE[:, 0], BASE])
    assert superior(table, BASE, ["a", "same"], bootstrap=FEW).p_value is not None
    assert "differs" in str(superior(BASE[:, None], BASE, bootstrap=FEW).reason)


def test_too_short_and_nonsense() -> None:
    assert "at least 20" in str(superior(TABLE[:10], BASE[:10]).reason)
    assert model_confidence_set(TABLE[:10], NAMES).included == tuple(NAMES)
    with pytest.raises(UserError, match="benchmark returns"):
        superior(TABLE, BASE[:-1])
    with pytest.raises(UserError, match="names"):
        superior(TABLE, BASE, ["a"])
    with pytest.raises(UserError, match="same series"):
        model_confidence_set(np.column_stack([BASE, BASE]), ["x", "y"])
    with pytest.raises(UserError, match="at least two"):
        model_confidence_set(TABLE[:, :1])
    with pytest.raises(UserError, match="two-dimensional"):
        model_confidence_set(BASE)
