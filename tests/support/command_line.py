"""Fixtures of tests that give commands as a user would: each in an empty folder, with one data home."""

import json
import os
import shlex

import pytest
from shared_session import session_home

from tradeassay.cli import main, root
from tradeassay_bench.data.datasets import store_folder


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


@pytest.fixture
def given(tell):
    """Give a command as one line, and return what it printed (``out``, ``err``)."""
    return lambda line, status=0: tell(shlex.split(line), status)


@pytest.fixture
def told(given):
    """Give a command as one line, and return what it says with ``--json``."""
    return lambda line, status=0: json.loads(given(f"{line} --json", status).out)


@pytest.fixture
def done():
    """Give a command as one line, and return its exit status."""
    return lambda line: main(shlex.split(line))


@pytest.fixture
def pressed(monkeypatch, capsys):
    """Press the tabulator key behind some words, and return what the shell is told."""

    def press(typed, shell="bash"):
        monkeypatch.setenv("_TRADEASSAY_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        with pytest.raises(SystemExit):
            root.main(prog_name="tradeassay")
        return capsys.readouterr().out.split()

    return press
