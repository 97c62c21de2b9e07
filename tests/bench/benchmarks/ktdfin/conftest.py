"""Small markets in which a model plays KTD-Fin, answered from lists."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import ktdfin_game as game

from tradeassay_bench.data import Panel, Snapshot, open_snapshot, synthetic, write_snapshot


@pytest.fixture(scope="session")
def panel() -> Panel:
    config = synthetic.preset(
        "ashare",
        seed=5,
        names=24,
        index_members=18,
        sessions=game.HISTORY + game.DAYS,
        new_listings=2,
        delistings=1,
    )
    return synthetic.generate(config).panel


@pytest.fixture(scope="session")
def ashares(panel: Panel, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("ashares") / "world"
    write_snapshot(panel, folder)
    return open_snapshot(folder)


@pytest.fixture(scope="session")
def us(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    config = synthetic.preset(
        "us",
        seed=5,
        names=24,
        index_members=18,
        sessions=game.HISTORY + game.DAYS,
        new_listings=1,
        delistings=1,
    )
    folder = tmp_path_factory.mktemp("us") / "world"
    write_snapshot(synthetic.generate(config).panel, folder)
    return open_snapshot(folder)
