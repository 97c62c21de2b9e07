"""A database holds applicants' contacts: nobody but its owner reads it, its log or its copies."""

import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tradeassay.core.errors import TradeassayWarning
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.queries.snapshot import board_of
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.store import Store

ROOT = Path(__file__).resolve().parents[2]
RUN = ["arena", "run", "--replay", "synthetic", "--until", "2022-03-01", "--db"]
sys.path.insert(0, str(ROOT / "scripts"))


@pytest.fixture(autouse=True)
def usual_umask():
    """Files are made readable for everybody unless somebody sees to it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def copy_of(db: Path, folder: Path, *, contact: str = "") -> Path:
    """Return a copy of a database that everybody may read; with somebody who asks to be let in."""
    copy = folder / "arena.db"
    shutil.copyfile(db, copy)
    if contact:
        store = Store(open_engine(str(copy)))
        who = {"label": "", "address": None, "now": "2022-03-01T00:00:00Z"}
        AgentApi(store).apply("small-demo", "you", **who, contact=contact)
        store.engine.dispose()
    copy.chmod(0o644)
    return copy


def test_a_new_database_is_its_owners_alone(tmp_path, tell):
    db = tmp_path / "arena.db"
    tell([*RUN, str(db)])
    assert mode(db) == 0o600


def test_what_sqlite_keeps_beside_it_is_as_well(tmp_path):
    db = tmp_path / "arena.db"
    engine = open_engine(str(db))
    with closing(engine.raw_connection()) as connection:
        connection.execute("CREATE TABLE held (a TEXT)")
        connection.commit()
        modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    engine.dispose()
    assert modes == {"arena.db": 0o600, "arena.db-wal": 0o600, "arena.db-shm": 0o600}


@pytest.mark.parametrize("wide", [0o644, 0o664, 0o604])
def test_an_existing_one_is_narrowed_by_whoever_plays_it(tmp_path, tell, wide):
    db = tmp_path / "arena.db"
    tell([*RUN, str(db)])
    db.chmod(wide)
    tell([*RUN, str(db)])
    assert mode(db) == 0o600


def test_an_existing_one_is_narrowed_by_whoever_amends_it(scripted_db, tmp_path, tell):
    db = copy_of(scripted_db, tmp_path)
    tell(["arena", "amend", "key", "operator", "--db", str(db)])
    assert mode(db) == 0o600


def test_a_reader_changes_nothing_and_says_in_one_line_what_is_open_to_others(
    scripted_db, tmp_path, tell
):
    db = copy_of(scripted_db, tmp_path, contact="me@example.org")
    with pytest.warns(TradeassayWarning) as told:
        tell(["arena", "amend", "applicants", "--db", str(db)])
    (line,) = (str(one.message) for one in told)
    assert "arena.db" in line and "0644" in line and f"chmod 600 {db}" in line and "\n" not in line
    assert mode(db) == 0o644


def test_a_reader_says_nothing_where_there_is_no_contact(scripted_db, tmp_path):
    board_of(str(copy_of(scripted_db, tmp_path)))  # any warning would fail here


def test_a_backup_and_what_it_brings_back_are_its_owners_alone(scripted_db, tmp_path):
    db, kept, back = copy_of(scripted_db, tmp_path), tmp_path / "kept.db", tmp_path / "back.db"
    script = str(ROOT / "scripts/arena-backup")
    subprocess.run([script, str(db), str(kept)], check=True, timeout=60)
    assert mode(kept) == 0o600
    kept.chmod(0o644)
    subprocess.run([script, "--restore", str(kept), str(back)], check=True, timeout=60)
    assert mode(back) == 0o600


def test_the_log_that_keys_are_shown_in_is_its_owners_alone(tmp_path):
    from arena_stack import Stack

    (tmp_path / "stack.log").touch(0o644)
    Stack(tmp_path, [])
    assert mode(tmp_path / "stack.log") == 0o600
