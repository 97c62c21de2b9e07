"""Attack ``verify`` on the database of an arena: every column of every row is changed, and nothing may pass.

The forger computes the season's and the packets' hashes again. What ``verify`` does not cover is listed with the
reason; changes that make it say less than of the honest season are *marked*.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from forger import Tried, other_value

from tradeassay.core.errors import TradeassayError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_arena.verifying import verify_arena

CLOCK = "wall times are stated by the runner"
UNCOVERED = {r"decisions \w+\.(lease_owner|lease_until)": CLOCK, r"seasons \w+\.created_at": CLOCK}
"""Columns that a forger can change without being contradicted, and why; no page shows them."""
_TABLES = (
    "seasons",
    "rounds",
    "decisions",
    "bookings",
    "rewards",
    "calls",
    "memories",
    "stream_items",
)


def attack_season(db: Path | str, *, part: range = range(40), seed: int = 0) -> list[Tried]:
    """Change a copy of a season in one place after the other, those of the numbers ``part``, and verify each time.

    The same ``seed`` gives the same places in the same order.
    """
    with tempfile.TemporaryDirectory() as place:
        honest, work = Path(place) / "honest.db", Path(place) / "work.db"
        shutil.copyfile(db, honest)
        before = verify_arena(str(honest))
        assert not before.contradicted, before.violations
        tried: list[Tried] = []
        for kind, what, statement, values in islice(
            _changes(honest, random.Random(seed), part.stop), part.start, None
        ):
            shutil.copyfile(honest, work)
            try:
                _forge(work, statement, values)
                found = verify_arena(str(work))
                marked = found.unchecked != before.unchecked
                became = "contradicted" if found.contradicted else "marked" if marked else "passed"
            except (sqlite3.IntegrityError, TradeassayError):
                became = "contradicted"  # the database refuses it, or it is refused in one line
            except Exception as error:
                became = f"crashed: {type(error).__name__} {error}"
            tried.append((kind, what, became))
    return tried


def _changes(
    db: Path, rng: random.Random, sample: int
) -> Iterator[tuple[str, str, str, tuple[object, ...]]]:
    """Yield (table, what, statement, values), every column about equally often, rows left out or doubled too."""
    with closing(sqlite3.connect(db)) as source:
        columns = {
            table: [str(row[1]) for row in source.execute(f"PRAGMA table_info({table})")]
            for table in _TABLES
        }
        filled = [
            table
            for table in _TABLES
            if source.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        ]
        places = [(table, column) for table in filled for column in (*columns[table], "")]
        for _ in range(sample):
            table, column = rng.choice(places)
            count = source.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            at = rng.randrange(count)
            row = source.execute(f"SELECT rowid, * FROM {table} LIMIT 1 OFFSET {at}").fetchone()
            if not column:
                yield (
                    table,
                    f"{table} row{at}.left out",
                    f"DELETE FROM {table} WHERE rowid = ?",
                    (row[0],),
                )
                continue
            before = row[1 + columns[table].index(column)]
            after = other_value(before, rng)
            yield (
                table,
                f"{table} row{at}.{column}",
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                (after, row[0]),
            )


def _forge(db: Path, statement: str, values: tuple[object, ...]) -> None:
    """Make the change, and compute every hash that depends on it again."""
    with closing(sqlite3.connect(db)) as target:
        target.execute(statement, values)
        for identity, spec in target.execute("SELECT id, spec FROM seasons").fetchall():
            if "sha256" not in statement:
                digest = sha256_bytes(str(spec).encode())
                target.execute("UPDATE seasons SET sha256 = ? WHERE id = ?", (digest, identity))
        if "packet = " in statement:
            for identity, packet in target.execute("SELECT id, packet FROM rounds").fetchall():
                digest = sha256_bytes(str(packet).encode())
                target.execute(
                    "UPDATE rounds SET packet_sha256 = ? WHERE id = ?", (digest, identity)
                )
        target.commit()
