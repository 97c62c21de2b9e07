"""The account as agents see it: a frozen snapshot."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Position(msgspec.Struct, frozen=True, gc=False):
    """A holding. ``sellable`` is less than ``quantity`` while T+1 locks part of it.

    ``cost`` is the average price paid, ``mark`` the last marking price, ``held`` the number of
    sessions since it was opened.
    """

    symbol: str
    quantity: float
    sellable: float
    cost: float
    mark: float
    held: int
    multiplier: float = 1.0

    @property
    def value(self) -> float:
        """Market value at the mark."""
        return self.quantity * self.mark * self.multiplier


class AccountState(msgspec.Struct, frozen=True):
    """What an agent is told about its own account. ``positions`` are in the order they were opened."""

    cash: float
    nav: float
    initial: float
    positions: Mapping[str, Position]

    def weight(self, symbol: str) -> float:
        """Return a position's share of NAV (0 when there is none)."""
        position = self.positions.get(symbol)
        return 0.0 if position is None or self.nav == 0 else position.value / self.nav


# The terms an account is kept under; the ledger holds the account to them.


class AccountTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a ledger must know to check an account.

    ``t_plus_1``: what was bought in a session cannot be sold in it. ``margin``: cash and positions may
    be negative, and at every mark equity covers the maintenance rates times the long and short exposure,
    or a margin call of that session says that it does not. A cash account (the default) never has
    negative cash or a negative position.
    """

    t_plus_1: bool = False
    margin: bool = False
    maintenance_long: float = 0.0
    maintenance_short: float = 0.0
