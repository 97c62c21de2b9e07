"""On a year of minutes the leak gate spends little more than the scored run; on days it looks as hard as ever."""

from __future__ import annotations

from tradeassay.code.gates import GateConfig


def test_the_budget_follows_the_length() -> None:
    config = GateConfig()
    assert config.leak_on(500) == config.leak
    assert config.leak_on(100_000) == config.leak
    long = config.leak_on(525_600)
    assert long.budget(525_600) == 2 * 525_600
    assert long.perturbations == 1
    assert long.change_cuts == config.leak.change_cuts
