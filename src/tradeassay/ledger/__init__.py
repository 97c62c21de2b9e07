"""The append-only account: cash, positions and NAV are the replay of events, nothing else."""

from tradeassay.ledger._holding import Holding
from tradeassay.ledger._identities import TOLERANCE
from tradeassay.ledger._ledger import Ledger

__all__ = ["TOLERANCE", "Holding", "Ledger"]
