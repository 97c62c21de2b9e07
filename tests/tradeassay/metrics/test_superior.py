"""Superior predictive ability and StepM."""

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, superior

FEW = BootstrapConfig(draws=200, block=3.0)
RNG = np.random.default_rng(0)
BASE = RNG.normal(0.0004, 0.01, 250)
TABLE = BASE[:, None] + RNG.normal(0, 0.004, (250, 5))
NAMES = ["a", "b", "c", "d", "e"]


def test_nobody_beats_the_benchmark_by_luck_and_a_planted_winner_is_named():
    found = superior(TABLE, BASE, NAMES, bootstrap=FEW)
    assert found.p_value > 0.05 and found.better == ()
    assert found.lower <= found.p_value <= found.upper
    assert found == superior(TABLE, BASE, NAMES, bootstrap=FEW)
    better = TABLE.copy()
    better[:, 2] += 0.003
    found = superior(better, BASE, NAMES, bootstrap=FEW)
    assert found.p_value < 0.05 and found.better == ("c",)


def test_it_is_arch_underneath():
    from arch.bootstrap import SPA

    near = SPA(-BASE, -TABLE, block_size=3, reps=1500, bootstrap="stationary", seed=1)
    near.compute()
    found = superior(TABLE, BASE, bootstrap=BootstrapConfig(draws=1500, block=3.0))
    assert found.p_value == pytest.approx(near.pvalues["consistent"], abs=0.05)


def test_the_benchmark_itself_is_no_rival():
    table = np.column_stack([TABLE[:, 0], BASE])
    assert superior(table, BASE, ["a", "same"], bootstrap=FEW).p_value is not None
    assert "differs" in str(superior(BASE[:, None], BASE, bootstrap=FEW).reason)


def test_too_short_and_nonsense():
    assert "at least 20" in str(superior(TABLE[:10], BASE[:10]).reason)
    short, named = ("benchmark returns", TABLE, BASE[:-1]), ("names", TABLE, BASE, ["a"])
    for said, *given in (short, named, ("two-dimensional", BASE, BASE)):
        with pytest.raises(UserError, match=said):
            superior(*given)


@pytest.mark.slow
def test_everybody_may_be_superior_in_more_than_one_step():
    """arch's own loop over steps ends in an empty array where a later step takes out the last
    one.
    """
    from arch.bootstrap import StepM

    many = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        base = rng.normal(0, 0.01, 120)
        table = base[:, None] + rng.normal((0.004, 0.0012), 0.004, (120, 2))
        stepwise = StepM(
            -base, -table, size=0.05, block_size=3, reps=200, bootstrap="stationary", seed=1
        )
        found = superior(table, base, ["a", "b"], bootstrap=FEW)
        try:
            stepwise.compute()
        except ValueError:
            many += 1
            continue
        assert {"a"} <= set(found.better) <= {"a", "b"}
    assert many > 0
