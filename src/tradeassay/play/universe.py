"""Which names may be bought today. Membership rarely changes, so the answer is kept between sessions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats, Ints, MarketView

ALL = "all"
RANKING_SESSIONS = 60
"""Completed sessions before the first one over which ``IDX:20`` ranks names by the money traded in them."""


class DatedView(MarketView, Protocol):
    """A view that also knows which names have left the exchange."""

    def delisted_now(self) -> tuple[str, ...]:
        """Return the symbols whose last session is over."""
        ...


class UniverseChoice(NamedTuple):
    """``symbols`` in column order with their ``columns``; ``buyable`` adds the index funds."""

    symbols: tuple[str, ...]
    columns: Ints
    buyable: frozenset[str]


class UniverseName(NamedTuple):
    """``IDX``, ``all``, or either with a number of names: ``IDX:20``."""

    of: str
    size: int | None


def parse_universe(text: str) -> UniverseName:
    """Read a universe's name; raises :class:`UserError` for an invalid number of names."""
    index, colon, count = text.rpartition(":")
    if not colon:
        return UniverseName(text, None)
    if not index or not count.isascii() or not count.isdigit() or int(count) < 1:
        raise UserError(
            f"'{text}' is not a universe", hint="write an index, or e.g. IDX:20 for its 20 most traded names"
        )
    return UniverseName(index, int(count))


def most_traded(text: str, first: DatedView) -> frozenset[str] | None:
    """Return the names a sized universe is limited to, or None for a universe without a size.

    They are the most traded ones (median of the money traded over :data:`RANKING_SESSIONS` completed sessions)
    among those that could be bought at ``first``, the view before the first session: nothing that happened
    later matters. Ties go by column. Raises :class:`UserError` when there are fewer names than asked for.
    """
    name = parse_universe(text)
    if name.size is None:
        return None
    members = first.symbols if name.of == ALL else first.members(name.of)
    choice = _choose(first, members, frozenset(first.delisted_now()))
    if len(choice.symbols) < name.size:
        raise UserError(
            f"'{text}' asks for {name.size} names, {len(choice.symbols)} could be bought at the start",
            hint="ask for fewer names, or use another data set",
        )
    traded = _traded(first)[choice.columns]
    order = np.argsort(-traded, kind="stable")[: name.size]
    return frozenset(choice.symbols[place] for place in order.tolist())


def _traded(view: MarketView) -> Floats:
    """Return the median money traded per session of every column; 0 where nothing is known."""
    rows = RANKING_SESSIONS
    amount = view.bars("amount", rows, adjust="none")
    made = view.bars("close", rows, adjust="none") * view.bars("volume", rows, adjust="none")
    money = np.nan_to_num(np.where(np.isnan(amount), made, amount), nan=0.0)
    result: Floats = np.median(money, axis=0) if len(money) else np.zeros(len(view.symbols))
    return result


class Universe:
    """The dated members of an index, or everything listed; index funds are never members but may be bought.

    ``kept`` limits the universe to these names for the whole episode (see :func:`most_traded`).
    """

    def __init__(self, name: str, kept: frozenset[str] | None = None) -> None:
        self.name = parse_universe(name).of
        self.kept = kept
        self._key: tuple[object, object, object] = (None, None, None)
        self._choice = UniverseChoice((), _frozen([]), frozenset())

    def at(self, view: DatedView) -> UniverseChoice:
        """Return today's choice; raises :class:`DataError` for an index the data does not know."""
        symbols, gone = view.symbols, view.delisted_now()
        members = symbols if self.name == ALL else view.members(self.name)
        # Views hand out the same tuples while nothing changes: identity settles nearly every session.
        old_symbols, old_gone, old_members = self._key
        if symbols is old_symbols and gone is old_gone and members is old_members:
            return self._choice
        if (symbols, gone, members) != self._key:
            wanted = members if self.kept is None else tuple(s for s in members if s in self.kept)
            self._choice = _choose(view, wanted, frozenset(gone))
        self._key = (symbols, gone, members)
        return self._choice


def _choose(view: DatedView, members: tuple[str, ...], gone: frozenset[str]) -> UniverseChoice:
    funds = {symbol for symbol in view.symbols if view.instrument(symbol).kind == "index"}
    chosen = tuple(symbol for symbol in members if symbol not in gone and symbol not in funds)
    columns = _frozen([view.column(symbol) for symbol in chosen])
    return UniverseChoice(chosen, columns, frozenset((*chosen, *(funds - gone))))


def _frozen(columns: list[int]) -> Ints:
    array = np.array(columns, dtype=np.int64)
    array.setflags(write=False)
    return array
