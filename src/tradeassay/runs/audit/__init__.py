"""A second opinion on a journal: simple code that shares nothing with the exchange and the ledger.

It reads the journal line by line beside the hashed data and says what does not hold. It is written to be read,
not to be fast, and repeats every rule in its own words: what it would share with the code it checks, it could not
check.
"""

from __future__ import annotations

from tradeassay.runs.audit.auditor import audit
from tradeassay.runs.audit.finding import Finding

__all__ = ["Finding", "audit"]
