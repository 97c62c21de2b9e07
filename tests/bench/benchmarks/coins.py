"""A small stored market of two coins, with a few bars of every day's first minutes."""

from typing import Any

import numpy as np

from tradeassay_bench.core.time import DAY, MINUTE
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data.source import Listing, MinutePanel, Panel, PanelFacts


def coins(
    first: str,
    close: Any,
    prices: dict[Any, Any],
    symbols: tuple[str, str],
    *,
    length: int = 1,
    kind: Any = "synthetic",
) -> Panel:
    """``close`` are days by coins; ``prices`` are bars of ``length`` minutes of the first coins,
    a few a day.
    """
    days = np.datetime64(first) + np.arange(len(close))
    opens = days.astype(np.int64) * DAY
    bars = {"open": close, "high": close + 1, "low": close - 1, "close": close}
    rows, coins = prices["close"].shape
    stamps = (opens[:, None] + np.arange(1, rows // len(days) + 1) * length * MINUTE).ravel()
    facts = PanelFacts(
        kind=kind, source="test", query="", currency="USD", calendar="24/7", minutes_per_bar=length
    )
    return Panel(
        name="coins",
        facts=facts,
        listings=tuple(
            Listing(instrument=Instrument(symbol=symbol, kind="crypto"), listed=first)
            for symbol in symbols
        ),
        sessions=days,
        open_time=opens,
        close_time=opens + DAY,
        bars=bars | {"volume": np.ones(close.shape), "amount": close.copy()},
        suspended=np.zeros(close.shape, dtype=bool),
        minutes=MinutePanel(symbols[:coins], stamps, prices),
    )
