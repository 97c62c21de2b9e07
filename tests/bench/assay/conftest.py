"""Samples of this room, of the runs' room and of the measurements are imported by name."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.extend(map(str, (HERE, HERE.parent / "runs", HERE.parents[2] / "perf")))


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A data home with tiny markets. Tests must not change it."""
    import runs_world as world

    folder = tmp_path_factory.mktemp("home")
    world.write_world(folder)
    return folder
