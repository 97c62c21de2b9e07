"""Markets in which a model plays StockBench, answered from lists."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import stockbench_game as game

from tradeassay_bench.data import Panel, Snapshot, open_snapshot, synthetic, write_snapshot


@pytest.fixture
def store(tmp_path: Path) -> Callable[[Panel], Snapshot]:
    """Return a function that writes a panel and opens it as a snapshot."""
    count = 0

    def write(panel: Panel) -> Snapshot:
        nonlocal count
        count += 1
        write_snapshot(panel, tmp_path / f"snapshot-{count}", allow_faults=True)
        return open_snapshot(tmp_path / f"snapshot-{count}")

    return write


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("three") / "world"
    write_snapshot(game.small_panel(), folder, allow_faults=True)
    return open_snapshot(folder)


@pytest.fixture(scope="session")
def us_panel() -> Panel:
    return synthetic.generate(synthetic.preset("us", seed=3, names=40, sessions=400)).panel


@pytest.fixture(scope="session")
def us(us_panel: Panel, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("us") / "world"
    write_snapshot(us_panel, folder)
    return open_snapshot(folder)
