from functools import lru_cache

import numpy as np
import pytest

from tradeassay_bench.data.source import Panel
from tradeassay_bench.data.synthetic import World, generate, preset


@lru_cache(maxsize=32)
def _world(name: str, seed: int = 0, **changes: object) -> World:
    return generate(preset(name, seed=seed, **changes))


@pytest.fixture(scope="session")
def world():
    """Worlds by preset and seed; made once, never changed."""
    return _world


class Market:
    """A panel as a back-tester with hindsight sees it: split-adjusted arrays, dividends in
    adjusted units.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.column = {symbol: k for k, symbol in enumerate(panel.symbols)}
        self.row = {str(day): k for k, day in enumerate(panel.sessions)}
        self.stocks = [
            k
            for k, entry in enumerate(panel.listings)
            if entry.instrument.kind in ("stock", "crypto")
        ]
        scale = np.ones_like(panel.bars["close"])
        paid = np.zeros_like(scale)
        for action in panel.actions:
            row, column = self.row[action.ex_date], self.column[action.symbol]
            if action.kind == "split":
                scale[row:, column] *= action.value
        for action in panel.actions:
            row, column = self.row[action.ex_date], self.column[action.symbol]
            if action.kind == "dividend":
                paid[row, column] = action.value * scale[row, column]
        self.scale, self.paid = scale, paid
        self.open, self.high, self.low, self.close = (
            panel.bars[f] * scale for f in ("open", "high", "low", "close")
        )
        self.volume, self.amount = panel.bars["volume"] / scale, panel.bars["amount"]
        self.returns = (self.close[1:] + paid[1:]) / self.close[:-1] - 1.0


@pytest.fixture(scope="session")
def market():
    return Market
