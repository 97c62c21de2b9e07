"""Every cell of a season's database is changed in turn, and ``verify`` notices all that is not
excused.

Texts that hold a record, packed or not, are changed in one of their fields; hashes are computed
again.
"""

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest
from tests.arena.conftest import go
from tests.arena.test_verify_season import rehashed, tiny

sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "runs"))

from forger import counted, leaves, other_value, share_noticed

from tradeassay.core.errors import TradeassayError
from tradeassay_arena.state.rows import packed, unpacked
from tradeassay_arena.verifying import verify_arena

pytestmark = pytest.mark.journey

EXCUSED = {
    r"workers\.(?!rounds)": "what workers do, since when and what troubles them is as they say, "
    "which a note says",
    r"decisions\.lease_": "who held a question while it was decided moves nothing",
}
"""Cells whose change need not be noticed, and why."""


@pytest.fixture(scope="module")
def season(tmp_path_factory):
    return go(tiny(), tmp_path_factory.mktemp("cells") / "arena.db")


def cells(db, rows, rng):
    """Return table, column and row of cells: of every column so many, in an order that is drawn."""
    found = []
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    ).fetchall():
        ids = [id for (id,) in db.execute(f"SELECT rowid FROM {table}")]
        columns = [column for _, column, *_ in db.execute(f"PRAGMA table_info({table})")]
        found += [
            (table, column, id) for column in columns for id in rng.sample(ids, min(len(ids), rows))
        ]
    rng.shuffle(found)
    return found


def changed(value, rng):
    """Return another value, and the field of a record that was changed; None for a value that
    holds none.
    """
    if isinstance(value, bytes):
        inside, where = changed(unpacked(value).decode(), rng)
        return packed(inside.encode()), where
    if isinstance(value, str) and value[:1] in ("{", "["):
        record = msgspec.json.decode(value)
        places = [place for place in leaves(record) if place] or [()]
        where = rng.choice(places)
        inside = record
        for part in where[:-1]:
            inside = inside[part]
        if where:
            inside[where[-1]] = other_value(inside[where[-1]], rng)
        else:
            record = [1]
        return msgspec.json.encode(record).decode(), ".".join(map(str, where))
    return other_value(value, rng), ""


def changed_in_turn(season, place, rows, part=slice(None), seed=0):
    """Change the cells of copies of a season in turn; return what was tried."""
    rng, tried = Random(seed), []
    honest = verify_arena(str(season))
    assert honest.exit_code == 0
    with closing(sqlite3.connect(season)) as db:
        planned = cells(db, rows, rng)[part]
    for table, column, id in planned:
        copy = Path(shutil.copyfile(season, place / "forged.db"))
        with closing(sqlite3.connect(copy)) as db:
            (value,) = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (id,)).fetchone()
            value, where = changed(value, rng)
            try:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, id))
            except sqlite3.IntegrityError:
                continue
            if not column.endswith("sha256"):
                rehashed(db)
            db.commit()
        try:
            found = verify_arena(str(copy))
            named = (
                "marked"
                if (found.unchecked, found.notes) != (honest.unchecked, honest.notes)
                else "passed"
            )
            became = "contradicted" if found.contradicted else named
        except TradeassayError:
            became = "contradicted"  # one line that names the file: nothing of it is shown
        tried.append((table, f"{table}.{column} {where}".strip(), became))
    return tried


def test_a_sample_of_changed_cells_is_noticed(season, tmp_path):
    found = counted(changed_in_turn(season, tmp_path, 1, slice(5)), EXCUSED)
    assert share_noticed(found) == 1.0, found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
def test_every_changed_cell_is_noticed(season, tmp_path, part):
    """Every column of every table, in up to three of its rows."""
    found = counted(changed_in_turn(season, tmp_path, 3, slice(part, None, 4)), EXCUSED)
    assert found["made"] >= 60
    assert share_noticed(found) == 1.0, found
