"""A database of a format that this version does not write is refused, and left as it is."""

import sqlite3
from contextlib import closing

import pytest

from tradeassay.arena.state.engine import open_engine
from tradeassay.core.errors import DataError


def test_a_format_of_another_version_is_refused(tmp_path):
    path = tmp_path / "a.db"
    open_engine(str(path)).dispose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE arena_schema SET version = 0")
        connection.commit()
    with pytest.raises(DataError, match="has form 0"):
        open_engine(str(path))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM arena_schema").fetchone() == (0,)
