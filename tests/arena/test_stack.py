"""The processes of compose.yaml without Docker, while parts of them are killed; a backup comes back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "perf"), str(ROOT / "scripts")]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not Path("/usr/sbin/nginx").exists(), reason="nginx is not installed (Debian: nginx-light)")
def test_a_live_season_survives_everything_around_it_behind_the_proxy() -> None:
    pytest.importorskip("yfinance", reason="the extra 'us' is not installed")
    pytest.importorskip("ccxt", reason="the extra 'crypto' is not installed")
    import arena_year

    # PostgreSQL's socket needs a short path that its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="ta-", dir="/tmp"))
    try:
        found = arena_year.run(folder, 12)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert found["accounts"] == 4 * 22 and found["answers acknowledged"] and len(found["what was done"]) == 16, (
        found
    )
    assert arena_year.good(found), found


def test_a_backup_of_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    import sqlite3

    from tradeassay.cli import main

    db, kept, back = (tmp_path / name for name in ("arena.db", "kept.db", "back.db"))
    assert main(["arena", "run", "--replay", "synthetic", "--until", "2022-03-03", "--db", str(db)]) == 0
    script = str(ROOT / "scripts/arena-backup")
    subprocess.run([script, str(db), str(kept)], check=True, timeout=60)
    subprocess.run([script, "--restore", str(kept), str(back)], check=True, timeout=60)
    dumps = [list(sqlite3.connect(one).iterdump()) for one in (db, back)]
    assert dumps[0] == dumps[1]
    assert subprocess.run([script, "--restore", str(kept), str(back)], capture_output=True).returncode == 2
