"""The feed gives what the factors are, through splits, suspensions, listings and days that were
left out.
"""

from pathlib import Path

import numpy as np
import pytest

from tradeassay.factors import last_row_of
from tradeassay_bench.benchmarks.ktdfin.day_view import FactorFeed
from tradeassay_bench.data import Snapshot, open_snapshot, synthetic, write_snapshot


@pytest.fixture(scope="module")
def rough(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A market with many splits and suspensions."""
    trading, actions = synthetic.TradingModel(suspensions=4.0), synthetic.ActionModel(splits=6.0)
    config = synthetic.preset(
        "ashare",
        seed=2,
        names=30,
        sessions=380,
        new_listings=4,
        delistings=2,
        trading=trading,
        actions=actions,
    )
    folder: Path = tmp_path_factory.mktemp("rough") / "world"
    write_snapshot(synthetic.generate(config).panel, folder)
    return open_snapshot(folder)


@pytest.mark.parametrize("first", [0, 5, 40, 260])
def test_the_feed_follows_the_market(rough, first):
    feed, splits = FactorFeed(), 0
    for row in range(first, min(first + 120, 380)):
        view = rough.at(row, "pre_open")
        splits += sum(action.kind == "split" for action in view.todays_actions())
        np.testing.assert_allclose(feed.values(view), last_row_of(view), rtol=1e-9, atol=1e-12)
        assert row == 0 or feed.values(view) is feed.values(view)
    assert splits >= 2, "nothing was tried"


def test_days_left_out_start_it_afresh(rough):
    feed = FactorFeed()
    for row in (260, 261, 270, 271, 300, 265, 266):
        view = rough.at(row, "pre_open")
        np.testing.assert_allclose(feed.values(view), last_row_of(view), rtol=1e-9, atol=1e-12)


def test_the_same_days_give_the_same_bits(rough):
    one, other = FactorFeed(), FactorFeed()
    for row in range(255, 330):
        view = rough.at(row, "pre_open")
        assert one.values(view).tobytes() == other.values(view).tobytes()
