"""One question to a database, for who has no pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tradeassay.arena.reading.reader import Reader
from tradeassay.arena.reading.selection import select_from
from tradeassay.arena.standings import Board
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean


def board_of(
    db: str,
    season: str | None = None,
    *,
    assets: Iterable[str] = (),
    models: Iterable[str] = (),
    architectures: Iterable[str] = (),
    first: str | None = None,
    last: str | None = None,
) -> Board:
    """Return the standings of a season (None: the newest) in a database.

    Raises :class:`UserError` for a missing database, an unknown season, or a selection that does not fit.
    """
    if "://" not in db and not Path(db).is_file():
        raise UserError(f"there is no database '{db}'", mend="tradeassay arena run --replay synthetic makes one")
    store = Store(open_engine(db))
    try:
        reader = Reader(store)
        ids = reader.ids()
        wanted = season or next(iter(ids), None)
        found = None if wanted is None else reader.season(wanted)
        if found is None:
            hint = did_you_mean(wanted or "", ids, f"it has {', '.join(ids) or 'none yet'}")
            raise UserError(f"'{db}' has no season '{wanted or ''}'", mend=hint)
        chosen = select_from(
            found.season, assets=assets, models=models, architectures=architectures, first=first, last=last
        )
        return found.view().board(chosen)
    finally:
        store.engine.dispose()
