"""A season in its database: prices and bookings come out again, and a changed one is contradicted."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tradeassay.arena.season import Season
from tradeassay.arena.verifying import verify_arena
from tradeassay.cli import main
from tradeassay.core.errors import RunError, TradeassayError


@pytest.fixture(scope="module")
def season(scripted_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copyfile(scripted_db, tmp_path_factory.mktemp("season") / "arena.db"))


def test_everything_but_the_decisions_is_re_derived(season: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = season.read_bytes()
    found = verify_arena(str(season))
    with closing(sqlite3.connect(season)) as db:
        spec, sha256 = db.execute("SELECT spec, sha256 FROM seasons").fetchone()
    assert msgspec.json.decode(spec, type=Season).sha256 == sha256
    assert (found.violations, found.exit_code) == ((), 3)
    assert {one.outcome for one in found.claims if "decisions" not in one.claim} == {"re-derived"}
    assert any("decisions as recorded by the runner" in one for one in found.unchecked)
    assert season.read_bytes() == before and not list(season.parent.glob("*-wal"))
    assert main(["verify", str(season)]) == 3
    assert "cannot be checked" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bookings SET nav = nav * 1.5 WHERE id = (SELECT max(id) FROM bookings)",
        "UPDATE bookings SET fee = 0 WHERE fee > 0",
        "UPDATE bookings SET earned = earned + 0.01 WHERE earned IS NOT NULL",
        "UPDATE rounds SET next_price = next_price * 1.1",
        "UPDATE rounds SET base_price = base_price * 0.9",
        "UPDATE rounds SET price = price * 1.1",
        "UPDATE rounds SET momentum = 1",
        "UPDATE rounds SET packet = packet || ' '",
        "UPDATE decisions SET action = 'SELL' WHERE action = 'BUY'",
        "UPDATE decisions SET action = 'WAIT' WHERE action = 'HOLD'",
        "UPDATE decisions SET entry = 'somebody' WHERE id = 1",
        "UPDATE seasons SET spec = replace(spec, '100000', '200000')",
        "UPDATE seasons SET spec = '{'",
        "DELETE FROM bookings WHERE id = 20",
        "DELETE FROM decisions WHERE id = 20",
        "INSERT INTO bookings (id, slot, number, season, stage, entry, asset, kind, position_before, position,"
        " nav_before, fee, earned, nav, exposure_before, exposure)"
        " SELECT max(id) + 1, slot, 7, season, stage, entry, asset, kind, position_before,"
        " position, nav_before, fee, earned, nav * 2, exposure_before, exposure FROM bookings",
    ],
)
def test_a_changed_season_is_contradicted(season: Path, tmp_path: Path, change: str) -> None:
    shutil.copyfile(season, tmp_path / "f.db")
    with closing(sqlite3.connect(tmp_path / "f.db")) as db:
        db.execute(change)
        db.commit()
    assert verify_arena(str(tmp_path / "f.db")).exit_code == 1


def test_a_damaged_database_is_refused_in_one_line(season: Path, tmp_path: Path) -> None:
    content = season.read_bytes()
    (tmp_path / "f.db").write_bytes(content[: len(content) // 2])
    with pytest.raises(TradeassayError):
        verify_arena(str(tmp_path / "f.db"))


@pytest.mark.parametrize(
    "program",
    [
        "CREATE VIEW rewards2 AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "CREATE TRIGGER t AFTER INSERT ON seasons BEGIN DELETE FROM rewards; END",
    ],
)
def test_a_database_that_computes_is_not_read(season: Path, tmp_path: Path, program: str) -> None:
    """A view in a table's place could keep a reader busy for ever."""
    shutil.copyfile(season, tmp_path / "arena.db")
    with closing(sqlite3.connect(tmp_path / "arena.db")) as db:
        db.execute(program)
        db.commit()
    with pytest.raises(RunError, match="which no arena has"):
        verify_arena(str(tmp_path / "arena.db"))
