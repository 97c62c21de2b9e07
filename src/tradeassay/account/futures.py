"""When does a futures contract end, and what becomes of the position?"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from tradeassay.account.session import Session
from tradeassay.core.instruments import Instrument
from tradeassay.core.time import parse_day


class Futures(msgspec.Struct, frozen=True, kw_only=True):
    """Contract life.

    ``roll="next"``: at the close of the first session that is at most ``roll_days`` calendar days before
    expiry, and in which the chain's next contract has a price, a position is moved into that contract, both
    legs traded at the close with costs. The number of contracts stays the same even if the next one has another
    multiplier: exposure then changes with it. Without a next contract, and with ``roll="none"``, a position
    is settled for the last time at the close of the expiry day and ends.
    """

    roll: Literal["none", "next"] = "next"
    roll_days: int = 5

    def must_roll(self, instrument: Instrument, session: str) -> bool:
        """Say whether a contract is near enough to its expiry to be rolled."""
        if self.roll == "none" or instrument.expiry is None:
            return False
        return parse_day(session) >= parse_day(instrument.expiry) - timedelta(days=self.roll_days)

    def next_contract(self, instrument: Instrument, session: Session) -> int | None:
        """Return the column of the chain's next contract that has a price in this session, or None."""
        best: tuple[str, int] | None = None
        for column, other in enumerate(session.bars.instruments):
            if other.root != instrument.root or other.root is None or other.expiry is None:
                continue
            if instrument.expiry is None or other.expiry <= instrument.expiry:
                continue
            if not session.has_price(column):
                continue
            if best is None or (other.expiry, column) < best:
                best = (other.expiry, column)
        return None if best is None else best[1]


def is_over(instrument: Instrument, session: str) -> bool:
    """Say whether a contract's last session is ``session`` or earlier (ISO days compare as text)."""
    return instrument.expiry is not None and session >= instrument.expiry
