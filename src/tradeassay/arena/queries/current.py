"""What a season is doing now: the last prices, and who decides on what, or when somebody will."""

from __future__ import annotations

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import decisions, rounds


class PriceNow(msgspec.Struct, frozen=True, kw_only=True):
    """An asset's newest price and what it moved since the session before."""

    asset: str
    session: str | None
    price: float | None
    moved: float | None


class SeasonNow(msgspec.Struct, frozen=True, kw_only=True):
    """``deciding`` are the entries whose answers a round waits for, by asset; ``next_at`` is when the next round
    opens, where a worker says so.
    """

    prices: tuple[PriceNow, ...]
    deciding: dict[str, tuple[str, ...]]
    next_at: str | None


def season_now(store: Store, season: Season, next_at: str | None) -> SeasonNow:
    """Return what is going on. Who decides is no secret, only what was decided is."""
    prices = []
    with store.read() as db:
        for asset in season.assets:
            mine = (rounds.c.season == season.id, rounds.c.asset == asset.symbol)
            named = ("session", "price", "base_price", "next_price", "next_session")
            query = select(*(rounds.c[name] for name in named)).where(*mine)
            found = db.execute(query.order_by(rounds.c.session.desc()).limit(2)).all()
            moved = None
            if len(found) > 1 and found[1].next_session == found[0].session:
                moved = found[1].next_price / found[1].base_price - 1.0  # a split is no move
            prices.append(
                PriceNow(
                    asset=asset.symbol,
                    session=found[0].session if found else None,
                    price=found[0].price if found else None,
                    moved=moved,
                )
            )
        open_ones = select(rounds.c.id).where(rounds.c.season == season.id, rounds.c.phase == "opened")
        waited = select(decisions.c.asset, decisions.c.entry).where(
            decisions.c.round.in_(open_ones), decisions.c.status == "open"
        )
        deciding: dict[str, tuple[str, ...]] = {}
        for symbol, entry in db.execute(waited.order_by(decisions.c.id)):
            deciding[symbol] = (*deciding.get(symbol, ()), entry)
    return SeasonNow(prices=tuple(prices), deciding=deciding, next_at=None if deciding else next_at)
