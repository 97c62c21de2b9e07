"""What classes of failure are called, for those who show them."""

from __future__ import annotations

from tradeassay.code.taxonomy import FAILURES

FAILURE_TITLES: dict[str, str] = {info.id: info.title for info in FAILURES}
"""By class: the paper's in the order of its table, then ours."""
FAILURE_WORDS: dict[str, str] = {info.id: info.description for info in FAILURES}
