"""Fixtures for tests that run commands like a user: each in an empty folder, with a shared data
home.
"""

import json
import os
import shlex

import pytest
from shared_session import session_home

from tradeassay.cli import main, root
from tradeassay_bench.data.datasets import store_folder


@pytest.fixture(scope="session")
def data_home(tmp_path_factory):
    """A data home for this folder's tests. It shares the session's synthetic worlds."""
    home = tmp_path_factory.mktemp("cli-home")
    worlds = store_folder(session_home()) / "synthetic"
    worlds.mkdir(parents=True, exist_ok=True)
    store_folder(home).mkdir()
    (store_folder(home) / "synthetic").symlink_to(worlds)
    return home


@pytest.fixture(autouse=True)
def place(tmp_path, data_home, monkeypatch):
    """Run every command in an empty folder. The data home is shared, so each world is generated
    once.
    """
    monkeypatch.setenv("TRADEASSAY_HOME", str(data_home))
    monkeypatch.setenv("NO_COLOR", "1")
    before = os.getcwd()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


@pytest.fixture
def given(tell):
    """Run a command given as one line, and return its output (``out``, ``err``)."""
    return lambda line, status=0: tell(shlex.split(line), status)


@pytest.fixture
def told(given):
    """Run a command given as one line with ``--json``, and return the parsed output."""
    return lambda line, status=0: json.loads(given(f"{line} --json", status).out)


@pytest.fixture
def done():
    """Run a command given as one line, and return its exit status."""
    return lambda line: main(shlex.split(line))


@pytest.fixture
def pressed(monkeypatch, capsys):
    """Request shell completion after some words, and return the suggestions."""

    def press(typed, shell="bash"):
        monkeypatch.setenv("_TRADEASSAY_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        with pytest.raises(SystemExit):
            root.main(prog_name="tradeassay")
        return capsys.readouterr().out.split()

    return press
