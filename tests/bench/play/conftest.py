"""Small markets written by hand into real snapshots."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay_bench.core.view import CorporateAction, Instrument
from tradeassay_bench.data import (
    Listing,
    Membership,
    Panel,
    PanelFacts,
    Snapshot,
    open_snapshot,
    write_snapshot,
)

sys.path.insert(0, str(Path(__file__).parent))

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
FIRST = np.datetime64("2024-01-01")


def build(
    opens: Any,
    closes: Any,
    *,
    instruments: tuple[Instrument, ...] | None = None,
    volume: float = 1e9,
    suspended: Any = (),
    listed: dict[str, int] | None = None,
    delisted: dict[str, int] | None = None,
    actions: tuple[tuple[str, str, int, float], ...] = (),
    memberships: tuple[tuple[str, str, int, int | None], ...] = (),
    indices: dict[str, Any] | None = None,
    name: str = "handmade",
) -> Panel:
    """Return a 24/7 panel that starts on 2024-01-01; sessions are named by their row."""
    opens, closes = np.array(opens, dtype=float), np.array(closes, dtype=float)
    rows, columns = closes.shape
    if instruments is None:
        instruments = tuple(Instrument(symbol=f"S{i}") for i in range(columns))
    days = FIRST + np.arange(rows)

    def iso(row: int | None) -> str | None:
        return None if row is None else str(FIRST + row)

    listings = tuple(
        Listing(
            instrument=i,
            listed=iso((listed or {}).get(i.symbol, 0)),
            delisted=iso((delisted or {}).get(i.symbol)),
        )
        for i in instruments
    )
    halted = np.zeros((rows, columns), dtype=bool)
    for row, column in suspended:
        halted[row, column] = True
        opens[row, column] = closes[row, column] = np.nan
    midnights = days.astype("datetime64[ns]").astype(np.int64)
    traded = np.where(np.isnan(closes), np.nan, volume)
    bars = {
        "open": opens,
        "high": np.fmax(opens, closes),
        "low": np.fmin(opens, closes),
        "close": closes,
        "volume": traded,
        "amount": traded * closes,
    }
    return Panel(
        name=name,
        facts=PanelFacts(
            kind="synthetic", source="hand", query="", currency="USD", calendar="24/7"
        ),
        listings=listings,
        sessions=days,
        open_time=midnights + 9 * HOUR,
        close_time=midnights + 16 * HOUR,
        bars=bars,
        suspended=halted,
        actions=tuple(
            CorporateAction(
                symbol=symbol,
                kind=kind,
                ex_date=iso(row),
                known_at=int(midnights[row]) + 7 * HOUR,
                value=value,
            )
            for symbol, kind, row, value in actions
        ),
        memberships=tuple(
            Membership(index=index, symbol=symbol, start=iso(start), end=iso(end))
            for index, symbol, start, end in memberships
        ),
        indices={name: np.array(levels, dtype=float) for name, levels in (indices or {}).items()},
    )


@pytest.fixture
def panel() -> Callable[..., Panel]:
    return build


@pytest.fixture
def store(tmp_path: Path) -> Callable[[Panel], Snapshot]:
    """Return a function that writes a panel and opens it as a snapshot."""
    count = 0

    def write(panel: Panel) -> Snapshot:
        nonlocal count
        count += 1
        folder = tmp_path / f"snapshot-{count}"
        write_snapshot(replace(panel), folder, allow_faults=True)
        return open_snapshot(folder)

    return write
