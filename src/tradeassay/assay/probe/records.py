"""What a probe found: frozen records that can be written as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.assay.probe.config import ProbeConfig
from tradeassay.core.measure import Measure

METRICS = {
    "top_1": "the stock, first guess",
    "top_5": "the stock, among five",
    "date_1": "the day, within 1 session",
    "date_7": "the day, within 7 sessions",
    "date_30": "the day, within 30 sessions",
    "sector": "the sector",
    "board": "the board (which a mask leaves visible)",
    "joint": "the stock among five, and the day within 7 sessions",
}
"""What is counted, in the order of tables."""


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attacker against one mask.

    ``response`` is the share of probes that it named a stock or a day for. ``conditional`` are its hits among the
    probes for which it answered that question, ``of_all`` among all of them; an attacker that seldom answers can
    be good at the one and bad at the other. ``above_random`` compares ``of_all`` with pure chance: True when the
    whole interval lies above it; a question that is not scored has no entry. ``strata`` is ``top_1`` of all by
    window and by board.
    """

    attacker: str
    kind: Literal["model", "program"]
    mask: str
    hardening: str
    probes: int
    response: Measure
    conditional: dict[str, Measure]
    of_all: dict[str, Measure]
    above_random: dict[str, bool]
    strata: dict[str, Measure]


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """All attackers against all masks, on the same pairs. ``random`` is what guessing blindly would give."""

    benchmark: str
    dataset: str
    config: ProbeConfig
    windows: tuple[str, ...]
    boards: tuple[str, ...]
    random: dict[str, Measure]
    rows: tuple[ProbeRow, ...]
    usd: float | None
    notes: tuple[str, ...]

    def row(self, attacker: str, mask: str, hardening: str = "plain") -> ProbeRow | None:
        """Return one row, None when it was not tried."""
        wanted = (attacker, mask, hardening)
        return next((row for row in self.rows if (row.attacker, row.mask, row.hardening) == wanted), None)
