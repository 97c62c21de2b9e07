"""The last standings on disk, so that the first page after a start shows something at once, and says how old it
is.
"""

from __future__ import annotations

import zlib

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.arena.queries.trades import EntryTrades
from tradeassay.arena.standings import Behaviour, BoardConfig, Standings, VarianceSplit
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import kept_views
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.measure import Measure
from tradeassay.report.charts import Equity


class KeptSelection(msgspec.Struct, frozen=True, kw_only=True):
    """What the first page shows of one asset, or of one architecture."""

    asset: str | None = None
    architecture: str | None = None
    board: Standings
    equity: Equity
    behaviours: tuple[Behaviour, ...]


class KeptView(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages of a season and of its entries are made of, as of the settlement number ``version``.

    ``cost_s`` is what it took to make, ``config`` how. ``selections`` and ``split`` are kept where days lie
    between two settlements, or nobody plays.
    """

    version: int
    config: BoardConfig
    cost_s: float
    board: Standings
    equity: Equity
    behaviours: tuple[Behaviour, ...]
    first_day: dict[str, dict[str, str]]
    luck: dict[str, dict[str, Measure]]
    trades: dict[str, EntryTrades]
    selections: tuple[KeptSelection, ...] = ()
    split: VarianceSplit | None = None


_KEPT = msgspec.msgpack.Decoder(KeptView)


def read_kept(store: Store, season: str, config: BoardConfig) -> KeptView | None:
    """Return the standings kept for a season; None when there are none, or they were made in another way."""
    try:
        with store.read() as db:
            body = db.execute(select(kept_views.c.body).where(kept_views.c.season == season)).scalar()
        found = None if body is None else _KEPT.decode(zlib.decompress(body))
    except (SQLAlchemyError, zlib.error, *UNDECODABLE):
        return None
    return found if found is not None and found.config == config else None


def keep_view(store: Store, season: str, view: KeptView) -> None:
    """Keep standings in the place of older ones, if the database can be written."""
    body = zlib.compress(msgspec.msgpack.encode(view), 1)
    try:
        with store.change() as db:
            known = db.execute(select(kept_views.c.version).where(kept_views.c.season == season)).scalar()
            if known is not None and (known > view.version or (known == view.version and view.split is None)):
                return
            db.execute(delete(kept_views).where(kept_views.c.season == season))
            db.execute(insert(kept_views).values(season=season, version=view.version, body=body))
    except SQLAlchemyError:
        pass
