"""Bars that look wrong: they hold their round open, on record, until an operator says a word or a second look
agrees.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from tradeassay.arena.state.rows import read_row
from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.tables import held_bars
from tradeassay.core.errors import SourceError, UserError

Word = Literal["accept", "refuse"]
End = Literal["believed", "replaced", "missed"]
"""What became of a bar without an operator: a second look agreed, the vendor told another one that fits, or the
session's time was over first."""


class Held(SourceError):
    """A bar is not believed yet; the round waits for it."""


class HeldBar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar that is or was held: its price, why, since when, and what an operator said or what became of it."""

    asset: str
    session: str
    price: float
    reason: str
    since: str
    word: Word | End | None
    word_by: str | None
    word_at: str | None


def held_bar(store: Store, season: str, asset: str, session: str) -> HeldBar | None:
    found = store.rows(select(held_bars).filter_by(season=season, asset=asset, session=session))
    return read_row(HeldBar, found[0]) if found else None


def held_bars_of(store: Store, season: str) -> tuple[HeldBar, ...]:
    """Return all bars of a season that were ever held, newest first."""
    query = select(held_bars).filter_by(season=season).order_by(held_bars.c.since.desc())
    return tuple(read_row(HeldBar, row) for row in store.rows(query))


def hold_bar(store: Store, season: str, asset: str, session: str, *, price: float, reason: str, now: str) -> None:
    """Put a doubted bar on record; one with another price begins to wait anew."""
    known = held_bar(store, season, asset, session)
    if known is not None and known.price == price:
        return
    place = {"season": season, "asset": asset, "session": session}
    row = {"price": price, "reason": reason, "since": now, "word": None, "word_by": None, "word_at": None}
    try:
        with store.write("hold") as db:
            if known is None:
                db.execute(insert(held_bars).values(**place, **row))
            else:
                db.execute(update(held_bars).filter_by(**place).values(**row))
            tell(db, season, "held", now, {"asset": asset, "session": session, "price": price, "reason": reason})
    except IntegrityError:  # another worker was first
        pass


def say_word(store: Store, season: str, asset: str, session: str, word: Word, by: str, now: str) -> HeldBar:
    """Accept or refuse a held bar; raises :class:`UserError` when none is held there."""
    said = {"word": word, "word_by": by[:64], "word_at": now}
    mine = update(held_bars).filter_by(season=season, asset=asset, session=session)
    with store.write("word") as db:
        if db.execute(mine.values(**said)).rowcount:
            tell(db, season, "word", now, {"asset": asset, "session": session, "word": word, "by": by[:64]})
    found = held_bar(store, season, asset, session)
    if found is None:
        raise UserError(
            f"no bar of {asset} is held for {session} in season '{season}'",
            hint="tradeassay arena amend bar lists those that are",
        )
    return found


def end_hold(store: Store, season: str, asset: str, session: str, end: End, now: str) -> None:
    """Put on record what became of a held bar about which nobody has said a word."""
    waiting = update(held_bars).filter_by(season=season, asset=asset, session=session, word=None)
    with store.write("hold") as db:
        db.execute(waiting.values(word=end, word_at=now))
