"""What an episode is measured against: the benchmark's index, with its dividends wherever the data has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.errors import DataError
from tradeassay.core.view import Floats
from tradeassay.data import AsOfView, Snapshot

PRICE_INDEX = "the index is a price index: dividends are not in it"


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Levels at the close before the first session and at each of them; None when there are none to compare with.

    ``note`` says what is not in them although it is in an account's value.
    """

    levels: Floats | None
    note: str | None = None


def yardstick(snapshot: Snapshot, index: str | None, sessions: tuple[str, ...]) -> Yardstick:
    """Return what holding an index over ``sessions`` would have given.

    An account collects dividends, so the fair measure is the index fund with its dividends put back into it. Where
    no fund of the index has a price throughout it is the index itself, with a note if dividends make that an
    easier mark than it looks. Read at the end of the window: nothing here reaches an agent. No levels without an
    index, without sessions, when the data does not have that index, or when it does not begin before the first
    session.
    """
    if index is None or not sessions:
        return Yardstick(None)
    rows = snapshot.rows(sessions[0], sessions[-1])
    if rows.start == 0 or len(rows) != len(sessions):
        return Yardstick(None)
    view = snapshot.at(rows.stop - 1, "close")
    fund = _fund_levels(view, index, len(rows) + 1)
    if fund is not None:
        return Yardstick(fund)
    try:
        levels = view.index_levels(index, len(rows) + 1)
    except DataError:
        return Yardstick(None)
    dividends = snapshot.facts.adjusted == "total" or _any_dividend(view)
    return Yardstick(np.array(levels, dtype=np.float64), PRICE_INDEX if dividends else None)


def _fund_levels(view: AsOfView, index: str, count: int) -> Floats | None:
    """Return the closes of the index's fund with dividends put back, None without a fund that has all of them."""
    for column, instrument in enumerate(view.instruments):
        if not instrument.tracks(index):
            continue
        levels = np.array(view.bars("close", count, adjust="total")[:, column], dtype=np.float64)
        if (levels > 0).all():
            return levels
    return None


def _any_dividend(view: AsOfView) -> bool:
    return any(action.kind == "dividend" for action in view.actions(np.iinfo(np.int64).min))
