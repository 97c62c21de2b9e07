"""Rewrite everything after t: everything seen through a mask at t stays the same to the byte."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay.core.time import DAY
from tradeassay.core.view import FIELDS, Instrument, NewsItem
from tradeassay.data import Listing, Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay.masking import Mask, MaskConfig

ROW = 60


def rewritten(panel: Panel, row: int, rng: np.random.Generator) -> Panel:
    """The same past up to the close of ``row``; other prices, listings and news after it."""
    today = str(panel.sessions[row])
    clock = int(panel.close_time[row])
    listings = [entry for entry in panel.listings if entry.listed <= today]
    known = len(listings)
    later = str(panel.sessions[row + 2])
    # A name that already stands in the texts of the past is listed in this future, and not in the other.
    listings += [
        Listing(instrument=Instrument(symbol="NOTX", name="Notexco Rival Corporation"), listed=later),
        Listing(instrument=Instrument(symbol="WIRE", name="The Wire Inc."), listed=later),
    ]
    shape = (panel.sessions.size, len(listings))
    bars = {}
    for name in FIELDS:
        values = rng.uniform(1, 100, shape)
        values[: row + 1, :known] = panel.bars[name][: row + 1, :known]
        values[: row + 2, known:] = np.nan
        bars[name] = values
    levels = rng.uniform(1, 100, shape[0])
    levels[: row + 1] = panel.indices["IDX"][: row + 1]
    return replace(
        panel,
        listings=tuple(listings),
        bars=bars,
        suspended=np.zeros(shape, dtype=bool),
        indices={"IDX": levels},
        actions=tuple(action for action in panel.actions if action.known_at <= clock),
        fundamentals=tuple(figure for figure in panel.fundamentals if figure.known_at <= clock),
        news=(
            *(item for item in panel.news if item.published_at <= clock),
            NewsItem(id="new", published_at=clock + DAY, symbols=("NOTX",), title="new"),
        ),
    )


def seen(snapshot: Snapshot, config: MaskConfig, row: int, phase: Any) -> list[object]:
    made = Mask(config, snapshot, "2024-01-02", "2024-03-28", np.random.default_rng(7))
    true = snapshot.at(row, phase)
    view, gate = made.view(true), made.gate(true)
    told: list[object] = [view.clock, view.symbols, view.sessions().tobytes(), view.members("IDX")]
    told += [view.bars(name, adjust=a).tobytes() for name in FIELDS for a in ("none", "split", "total")]
    told += [view.tradable().tobytes(), view.index_levels("IDX").tobytes()]
    opens = view.opens()
    told.append(None if opens is None else opens.tobytes())
    for name in view.symbols:
        told += [msgspec.json.encode(view.instrument(name)), msgspec.json.encode(view.fundamentals(name))]
    told += [msgspec.json.encode(view.news(view.clock - 90 * DAY)), msgspec.json.encode(view.actions(0))]
    told += [
        gate.outgoing("Notexco (NOTX) and ZZNW met Apple on 2024-02-01, 2024-06-03 and in 2025; The Wire said so"),
        gate.incoming({"note": "Notexco day_+30 asset_0001"}),
    ]
    return told


@pytest.mark.parametrize("phase", ["pre_open", "open", "close"])
@pytest.mark.parametrize("level", ["stock-blind", "date-blind", "blinded"])
@pytest.mark.parametrize("hardened", [False, True])
def test_the_future_does_not_show_through_a_mask(panel, market, tmp_path, phase, level, hardened):
    config = MaskConfig(level=level, rebase_prices=hardened, scale_volumes=hardened, scrub_news=hardened)
    write_snapshot(rewritten(panel, ROW, np.random.default_rng(1)), tmp_path / "other", allow_faults=True)
    other = open_snapshot(tmp_path / "other")
    assert seen(market, config, ROW, phase) == seen(other, config, ROW, phase)
    assert seen(market, config, ROW + 3, phase) != seen(other, config, ROW + 3, phase)
