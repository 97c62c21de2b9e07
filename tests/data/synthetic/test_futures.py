"""Two chains: contracts overlap, converge to spot, roll, and their spreads come back."""

from itertools import pairwise

import numpy as np
import pytest

ROOTS = {"QIX": "IDX", "QIY": "IDY"}


def contracts(panel, root: str) -> list[int]:
    return [k for k, entry in enumerate(panel.listings) if entry.instrument.root == root]


@pytest.mark.parametrize("root", ROOTS)
def test_contracts_end_on_their_expiry_at_the_spot(world, root):
    panel = world("futures").panel
    live = np.isfinite(panel.bars["close"][:, contracts(panel, root)]).sum(axis=1)
    assert live.min() >= 2, "two contracts can always be traded"
    days = panel.sessions.astype(str)
    spot = panel.indices[ROOTS[root]]
    ended = 0
    for column in contracts(panel, root):
        entry = panel.listings[column]
        instrument = entry.instrument
        assert instrument.kind == "future" and instrument.expiry and instrument.multiplier in (200.0, 300.0)
        assert instrument.symbol == root + instrument.expiry[2:4] + instrument.expiry[5:7]
        if entry.delisted is None:
            assert instrument.expiry > days[-1]
            continue
        ended += 1
        assert entry.delisted == instrument.expiry
        row = days.tolist().index(instrument.expiry)
        assert panel.bars["close"][row, column] == pytest.approx(spot[row], abs=0.11)
        assert np.isnan(panel.bars["close"][row + 1 :, column]).all()
    assert ended >= (30 if root == "QIX" else 10)


def near_and_next(panel, root: str) -> tuple[np.ndarray, np.ndarray]:
    columns = sorted(contracts(panel, root), key=lambda k: panel.listings[k].instrument.expiry)
    close = panel.bars["close"][:, columns]
    alive = np.isfinite(close)
    order = np.argsort(~alive, axis=1, kind="stable")[:, :2]
    return tuple(np.take_along_axis(close, order[:, k : k + 1], axis=1)[:, 0] for k in (0, 1))


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_calendar_spreads_come_back(world, root, seed):
    panel = world("futures", seed).panel
    near, far = near_and_next(panel, root)
    spread = far / near - 1.0
    assert np.abs(spread).max() < 0.06 and spread.std() > 0.0005
    centred = spread - spread.mean()
    kept = (centred[1:] * centred[:-1]).sum() / (centred[:-1] ** 2).sum()
    assert 0.3 < kept < 0.97
    moves = np.diff(near) / near[:-1]
    assert np.diff(spread).std() < 0.6 * moves.std()


@pytest.mark.parametrize("root", ROOTS)
def test_trading_moves_on_before_expiry(world, root):
    panel = world("futures").panel
    columns = sorted(contracts(panel, root), key=lambda k: panel.listings[k].instrument.expiry)
    for here, later in pairwise(columns):
        volume = panel.bars["volume"]
        both = np.flatnonzero(np.isfinite(volume[:, here]) & np.isfinite(volume[:, later]))
        if panel.listings[here].delisted is not None and both.size > 20:
            assert volume[both[-1], here] < volume[both[-10], here] * 0.9


def test_funds_are_a_thousandth_of_their_index_and_no_move_is_beyond_ten_percent(world):
    panel = world("futures").panel
    close = panel.bars["close"]
    assert np.nanmax(np.abs(close[1:] / close[:-1] - 1)) < 0.101
    for index in ("IDX", "IDY"):
        column = panel.symbols.index(f"{index}F")
        assert panel.listings[column].instrument.kind == "index"
        assert np.abs(close[:, column] * 1000 - panel.indices[index]).max() <= 0.5001
