"""Databases of format 1, which kept money beside the decision and overwrote it, become journals of bookings.

Format 1 had a table ``slots`` with the account's columns, and for accounts over all assets ``stakes`` and
``purses``. The order in which accounts were booked is in ``events``. What a settlement has overwritten, the
account right after the fee, is worked out again from the account before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, text

from tradeassay.account.daily_target import Booking, follow
from tradeassay.arena.state.format_2 import add_columns
from tradeassay.arena.state.tables import bookings
from tradeassay.core.errors import DataError, LedgerError

_MONEY = ("position_before", "position", "nav_before", "fee", "earned", "nav")
_WHERE = msgspec.json.Decoder(dict[str, Any])


def upgrade(db: Connection) -> None:
    """Turn a database of format 1 into one of format 3, inside the caller's transaction.

    Raises :class:`DataError` when one of its accounts does not add up.
    """
    db.execute(text("ALTER TABLE slots RENAME TO decisions"))
    rows = list(_rows(db))
    for name in _MONEY:
        db.execute(text(f"ALTER TABLE decisions DROP COLUMN {name}"))
    for table in ("stakes", "purses"):
        db.execute(text(f"DROP TABLE {table}"))
    bookings.create(db)
    _follow_all(rows)
    if rows:
        db.execute(insert(bookings), rows)
    add_columns(db)
    db.execute(text("UPDATE arena_schema SET version = 3"))


def _rows(db: Connection) -> Iterator[dict[str, Any]]:
    """Yield what was booked, in that order."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    query = """
        SELECT d.*, s.before AS exposure_before, s.exposure, s.carried
        FROM decisions d LEFT JOIN stakes s ON s.slot = d.id WHERE d.nav IS NOT NULL ORDER BY d.id
    """
    for slot in db.execute(text(query)):
        found.setdefault((slot.season, slot.asset, slot.session), []).append(slot)
    told = "SELECT season, kind, body FROM events WHERE kind IN ('executed', 'settled') ORDER BY seq"
    for season, kind, body in db.execute(text(told)):
        where = _WHERE.decode(body)
        for slot in found.get((season, where["asset"], where["session"]), ()):
            settled = kind == "settled"
            kept = slot.nav if settled or slot.earned is None else slot.nav_before - slot.fee
            yield {
                "slot": slot.id, "number": int(settled), "season": season, "stage": slot.stage,
                "entry": slot.entry, "asset": slot.asset, "kind": kind,
                "position_before": slot.position_before, "position": slot.position,
                "nav_before": slot.nav_before, "fee": slot.fee, "nav": kept,
                "earned": slot.earned if settled else None, "exposure_before": slot.exposure_before,
                "exposure": slot.carried if settled else slot.exposure,
            }  # fmt: skip


def _follow_all(rows: list[dict[str, Any]]) -> None:
    accounts: dict[tuple[str, ...], list[tuple[str, Booking]]] = {}
    for row in rows:
        own = row["asset"] if row["exposure"] is None else ""
        booking = Booking(**{name: row[name] for name in Booking.__struct_fields__})
        key = (row["season"], row["stage"], row["entry"], own)
        accounts.setdefault(key, []).append((row["asset"], booking))
    for (season, _, entry, _), made in accounts.items():
        try:
            follow(made)
        except LedgerError as error:
            raise DataError(
                f"season '{season}', entry '{entry}': the old account does not add up: {error.message}",
                hint="use the version that wrote this database",
            ) from error
