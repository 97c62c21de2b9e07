"""Daily bars of a stored data set, as feeds for strategies."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.view import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tradeassay.data.snapshot import Snapshot

_PRICES: tuple[Field, ...] = ("open", "high", "low", "close", "volume")
_MOST = 26


def read_bars(
    snapshot: Snapshot, symbols: tuple[str, ...], first: str | None, last: str | None
) -> list[Mapping[str, NDArray[Any]]]:
    """Return one feed per symbol on their common sessions; raises :class:`UserError` when there is none."""
    if not 1 <= len(symbols) <= _MOST:
        raise UserError(f"{len(symbols)} symbols cannot be assets", mend=f"give 1 to {_MOST}")
    rows = snapshot.rows(first, last)
    view = snapshot.at(rows[-1], "close")
    places = [view.column(symbol) for symbol in symbols]
    tables = {name: view.bars(name, len(rows))[:, places] for name in _PRICES}
    days = view.sessions(len(rows)).astype("M8[ns]")
    whole = np.all([np.isfinite(table).all(axis=1) for table in tables.values()], axis=0)
    whole &= (tables["low"] > 0.0).all(axis=1)
    if not whole.any():
        raise UserError(f"{', '.join(symbols)} have no session in common in '{snapshot.name}'")
    times = days[whole]
    return [
        MappingProxyType(
            {"time": times, **{name: np.ascontiguousarray(tables[name][whole, k]) for name in _PRICES}}
        )
        for k in range(len(symbols))
    ]
