"""The terms an account is kept under; the ledger holds the account to them."""

from __future__ import annotations

import msgspec


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
