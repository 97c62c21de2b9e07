"""Registration by whoever has the database in hand."""

from __future__ import annotations

from tradeassay.arena.doors.doors import Doors
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.store import Store
from tradeassay.core.errors import UserError
from tradeassay.core.time import Clock, WallClock, iso


def register_entry(
    db: str,
    season: str,
    entry: str,
    *,
    address: str | None = None,
    renew: bool = False,
    clock: Clock | None = None,
) -> str:
    """Register an entry of a season that the database knows, or renew its token; returns the token.

    Raises :class:`UserError` as :meth:`Doors.register` and :meth:`Doors.renew` do, and for a new address together
    with a new token.
    """
    if renew and address is not None:
        raise UserError("an address is given once, at registration", mend="leave out --address or --renew")
    engine = open_engine(db)
    try:
        doors = Doors(Store(engine))
        if renew:
            return doors.renew(season, entry).token
        now = iso((clock or WallClock()).now())
        return doors.register(season, entry, now=now, address=address).token
    finally:
        engine.dispose()
