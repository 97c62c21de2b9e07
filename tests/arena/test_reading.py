"""Commands that read a database leave it as it is; those that change an arena change nothing
else.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tradeassay.core.errors import TradeassayError
from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.queries.snapshot import board_of


def foreign(file: Path, mode: str = "DELETE") -> Path:
    """Return another program's database, with its write-ahead log or without."""
    with closing(sqlite3.connect(file)) as made:
        made.execute(f"PRAGMA journal_mode={mode}")
        made.execute("CREATE TABLE notes (text TEXT)")
        made.execute("INSERT INTO notes VALUES ('mine')")
        made.commit()
    return file


def state(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(folder.iterdir()) if one.is_file()}


@pytest.fixture(params=["another", "another-wal", "a-text", "nothing"])
def strange(request, tmp_path):
    """A file that is no arena's."""
    file = tmp_path / "mine.db"
    if request.param.startswith("another"):
        return foreign(file, "WAL" if request.param.endswith("wal") else "DELETE")
    file.write_text("my notes\n" * 200 if request.param == "a-text" else "")
    return file


READERS = (
    ("arena", "standings", "--db", "DB"),
    ("arena", "standings", "--json", "--db", "DB"),
    ("arena", "standings", "--rewards", "trend", "--db", "DB"),
    ("arena", "health", "--db", "DB"),
    ("site", "DB", "-o", "OUT"),
    ("verify", "DB"),
    ("recordings", "record", "DB", "-o", "OUT"),
)
AMENDERS = (
    ("join", "bear", "architecture=rule"),
    ("withdraw", "trend"),
    ("register", "trend"),
    ("applicants",),
    ("bar",),
    ("key", "operator"),
    ("key", "expert", "ann", "--revoke"),
)
WRITERS = (
    *(("arena", "amend", *words, "--db", "DB") for words in AMENDERS),
    ("mcp", "DB"),
    ("arena", "run", "--replay", "synthetic", "--until", "2022-03-01", "--db", "DB"),
    ("arena", "serve", "--replay", "synthetic", "--db", "DB", "--port", "1"),
)
NEW_ARENAS = ("run", "serve")
"""Commands that make an arena of a file with nothing in it."""


@pytest.mark.parametrize("words", READERS + WRITERS, ids=" ".join)
def test_a_file_that_is_no_arena_stays_as_it_is(strange, tmp_path, capsys, words):
    from tradeassay.cli import main

    if not strange.stat().st_size and words[1] in NEW_ARENAS:
        pytest.skip("this is what makes an arena")
    before = state(tmp_path)
    given = [{"DB": str(strange), "OUT": str(tmp_path / "out")}.get(word, word) for word in words]
    assert main(given) in (1, 2)
    said = capsys.readouterr()
    errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "mine.db" in errors[0] and "Traceback" not in said.err, said.err
    assert state(tmp_path) == before


def test_python_calls_leave_a_strange_file_as_it_is(strange, tmp_path):
    before = state(tmp_path)
    with pytest.raises(TradeassayError, match=r"mine\.db"):
        board_of(str(strange))
    with pytest.raises(TradeassayError, match=r"mine\.db"), opened_season(str(strange)):
        pass
    assert state(tmp_path) == before


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_reading_an_arena_writes_nothing_beside_it(scripted_db, tmp_path, capsys, words):
    from tradeassay.cli import main

    folder = tmp_path / "held"
    folder.mkdir()
    db = folder / "arena.db"
    db.write_bytes(scripted_db.read_bytes())
    before = state(folder)
    main([{"DB": str(db), "OUT": str(tmp_path / "out")}.get(word, word) for word in words])
    said = capsys.readouterr()
    assert "is not an arena" not in said.err and "Traceback" not in said.err
    assert state(folder) == before


def test_a_reader_sees_what_a_player_that_was_killed_has_written(scripted_db, tmp_path, tell):
    """Its newest rows are in the file beside the database."""
    db = tmp_path / "arena.db"
    db.write_bytes(scripted_db.read_bytes())
    with closing(sqlite3.connect(db)) as player:
        player.execute("UPDATE workers SET state = 'stalled'")
        player.commit()
        assert Path(f"{db}-wal").stat().st_size
        assert "stalled" in tell(["arena", "health", "--db", str(db)], 1)[0]


def test_what_is_open_for_reading_cannot_be_written(scripted_db):
    from sqlalchemy.exc import OperationalError

    with (
        opened_season(str(scripted_db)) as (store, season),
        pytest.raises(OperationalError, match="readonly"),
    ):
        store.skip(season.id, "AAJX", "2022-03-30", "live", "nobody", "2022-03-30T00:00:00Z")


NOBODY = 65534


def as_an_ordinary_user(*words: str) -> subprocess.CompletedProcess[str]:
    """Give a command as a user whom permissions bind; root is none."""
    become: list[str] = []
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed (Debian: util-linux)")
        become = [
            "setpriv",
            f"--reuid={NOBODY}",
            f"--regid={NOBODY}",
            "--clear-groups",
            "--inh-caps=-all",
        ]
    python, how = (
        [*become, sys.executable],
        {"capture_output": True, "text": True, "timeout": 120, "cwd": "/"},
    )
    if subprocess.run([*python, "-c", "import tradeassay, numpy"], **how).returncode:
        pytest.skip("this environment may be read by its owner alone")
    return subprocess.run([*python, "-m", "tradeassay", *words], **how)


def own_copy(db: Path, folder: Path) -> Path:
    """Return a copy that an ordinary user owns and nobody may write, in a folder that nobody may
    write.
    """
    copy = folder / "arena.db"
    shutil.copyfile(db, copy)
    for path, mode in ((copy, 0o400), (folder, 0o500)):
        path.chmod(mode)
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)
    return copy


@pytest.fixture
def held(tmp_path_factory):
    """A folder that an ordinary user reaches."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "held"
        folder.mkdir()
        yield folder
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("arena", "standings", "--db"), ("arena", "health", "--db"), ("verify",)],
    ids=" ".join,
)
def test_an_ordinary_user_reads_what_nobody_may_write(scripted_db, held, words):
    db = own_copy(scripted_db, held)
    before = state(held)
    found = as_an_ordinary_user(*words, str(db))
    assert found.returncode == 0, found.stderr
    assert state(held) == before


@pytest.mark.slow
def test_an_ordinary_user_is_told_why_a_database_cannot_be_read(scripted_db, held):
    db = own_copy(scripted_db, held)
    words = ("arena", "health", "--db", str(db))
    held.chmod(0o755)
    with (
        closing(sqlite3.connect(scripted_db)) as player,
        closing(sqlite3.connect(held / "one.db")) as other,
    ):
        player.backup(other)
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("UPDATE workers SET rounds = rounds")
        other.commit()
        shutil.copyfile(f"{held}/one.db-wal", f"{db}-wal")
    for path in held.iterdir():
        path.chmod(0o444)
    db.chmod(0o444)
    held.chmod(0o555)
    found = as_an_ordinary_user(*words)
    assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
    assert "write-ahead log" in found.stderr and "copy arena.db and arena.db-wal" in found.stderr
    db.chmod(0)
    found = as_an_ordinary_user(*words)
    assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
    assert "may be read by its owner alone" in found.stderr
