import numpy as np
import pytest

from tradeassay.factors import FactorBars


def _make_bars(sessions: int, names: int, *, missing: float = 0.0, seed: int = 0) -> FactorBars:
    rng = np.random.default_rng(seed)
    close = 40.0 * np.exp(np.cumsum(rng.normal(0.0, 0.02, (sessions, names)), axis=0))
    opened = close * np.exp(rng.normal(0.0, 0.01, (sessions, names)))
    high = np.maximum(opened, close) * (1.0 + np.abs(rng.normal(0.0, 0.005, (sessions, names))))
    volume = np.rint(np.exp(rng.normal(11.0, 0.6, (sessions, names))))
    amount = volume * close
    gone = rng.random((sessions, names)) < missing
    for array in (opened, high, close, volume, amount):
        array[gone] = np.nan
    return FactorBars(opened, high, close, volume, amount)


@pytest.fixture
def make_bars():
    return _make_bars
