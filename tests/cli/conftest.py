import os
import sys
from pathlib import Path

import pytest
from golden import session_home

from tradeassay.data.datasets import store_folder

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def data_home(tmp_path_factory):
    """A data home of this folder's tests, in which synthetic worlds are those of the session."""
    home = tmp_path_factory.mktemp("cli-home")
    worlds = store_folder(session_home()) / "synthetic"
    worlds.mkdir(parents=True, exist_ok=True)
    store_folder(home).mkdir()
    (store_folder(home) / "synthetic").symlink_to(worlds)
    return home


@pytest.fixture(autouse=True)
def place(tmp_path, data_home, monkeypatch):
    """Every command runs in an empty folder; the data home is shared, so that a world is made once."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(data_home))
    monkeypatch.setenv("NO_COLOR", "1")
    before = os.getcwd()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)
