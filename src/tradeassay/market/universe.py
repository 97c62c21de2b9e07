"""Who may be bought today. Membership changes a few times a year, so the answer is kept between sessions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tradeassay.core.view import Ints, MarketView

ALL = "all"


class DatedView(MarketView, Protocol):
    """A view that also knows who has left the exchange."""

    def delisted_now(self) -> tuple[str, ...]:
        """Return the symbols whose last session is over."""
        ...


class Choice(NamedTuple):
    """``symbols`` in column order with their ``columns``; ``buyable`` adds the index funds."""

    symbols: tuple[str, ...]
    columns: Ints
    buyable: frozenset[str]


class Universe:
    """The dated members of an index, or everything listed; index funds are never members but may be bought."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._key: tuple[object, object, object] = (None, None, None)
        self._choice = Choice((), _frozen([]), frozenset())

    def at(self, view: DatedView) -> Choice:
        """Return today's choice; raises :class:`DataError` for an index the data does not know."""
        symbols, gone = view.symbols, view.delisted_now()
        members = symbols if self.name == ALL else view.members(self.name)
        # Views hand out the same tuples while nothing changes: identity settles nearly every session.
        old_symbols, old_gone, old_members = self._key
        if symbols is old_symbols and gone is old_gone and members is old_members:
            return self._choice
        if (symbols, gone, members) != self._key:
            self._choice = _choose(view, members, frozenset(gone))
        self._key = (symbols, gone, members)
        return self._choice


def _choose(view: DatedView, members: tuple[str, ...], gone: frozenset[str]) -> Choice:
    funds = {symbol for symbol in view.symbols if view.instrument(symbol).kind == "index"}
    chosen = tuple(symbol for symbol in members if symbol not in gone and symbol not in funds)
    columns = _frozen([view.column(symbol) for symbol in chosen])
    return Choice(chosen, columns, frozenset((*chosen, *(funds - gone))))


def _frozen(columns: list[int]) -> Ints:
    array = np.array(columns, dtype=np.int64)
    array.setflags(write=False)
    return array
