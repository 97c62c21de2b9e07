"""What is probed, and what was found."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.suggest import did_you_mean
from tradeassay.masking import LEVELS, Level

Mode = Literal["memory-only", "fixed-candidate", "open-research"]
HARDENINGS: dict[str, dict[str, bool]] = {
    "plain": {},
    "rebased": {"rebase_prices": True},
    "scaled": {"rebase_prices": True, "scale_volumes": True},
    "scrubbed": {"rebase_prices": True, "scale_volumes": True, "scrub_news": True},
}
"""How far a mask goes beyond the published one, each level including all of the one before."""
PROGRAMS = {
    "match": "matches the shown returns against the price archive",
    "levels": "matches the shown price and turnover against the archive",
    "grid": "searches for the scale under which shown prices are whole cents, then matches price and turnover",
    "reader": "repeats names and dates that are plainly shown, and looks for companies it knows in headlines",
}
"""Attackers that are not language models."""
ALWAYS = "match"
"""The attacker that is always asked: anyone with data access can do what it does."""


class ProbeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One probe.

    ``probes`` pairs, drawn with ``seed`` and spread evenly over windows and boards. ``masks`` and ``hardenings``
    are compared on the same pairs; a bright market cannot be hardened. ``windows`` names some of the benchmark's
    windows, all short ones when empty. ``lookback`` sessions are shown of a stock in open research.
    Raises :class:`UserError` for a mask or a hardening that does not exist.
    """

    probes: Annotated[int, Meta(ge=1)] = 200
    seed: int = 0
    masks: tuple[Level, ...] = ("blinded",)
    hardenings: tuple[str, ...] = ("plain",)
    windows: tuple[str, ...] = ()
    mode: Mode = "open-research"
    lookback: Annotated[int, Meta(ge=2)] = 60
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95

    def __post_init__(self) -> None:
        for given, known, what in ((self.masks, LEVELS, "mask"), (self.hardenings, HARDENINGS, "hardening")):
            if not given:
                raise UserError(f"no {what} is given", hint=f"one of {', '.join(known)}")
            for name in given:
                if name not in known:
                    raise UserError(f"no {what} '{name}'", hint=did_you_mean(name, known, ", ".join(known)))

    @property
    def variants(self) -> tuple[tuple[Level, str], ...]:
        """Every mask with every hardening that it can have."""
        return tuple(
            (mask, hardening)
            for mask in self.masks
            for hardening in self.hardenings
            if mask != "bright" or hardening == "plain"
        )


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


class ProbeAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attacker's answer about one pair, and the truth: enough to count everything again.

    ``said`` are a model's own words (cut at 2,000 characters), ``wrong`` what of them could not be read.
    """

    attacker: str
    mask: str
    hardening: str
    number: int
    symbol: str
    session: str
    tickers: tuple[str, ...] = ()
    date: str | None = None
    sector: str | None = None
    board: str | None = None
    hits: tuple[str, ...] = ()
    said: str = ""
    wrong: tuple[str, ...] = ()


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """All attackers against all masks, on the same pairs. ``random`` is what guessing blindly would give.

    ``answers`` are all of them, in the order in which they were asked for.
    """

    benchmark: str
    dataset: str
    config: ProbeConfig
    windows: tuple[str, ...]
    boards: tuple[str, ...]
    random: dict[str, Measure]
    rows: tuple[ProbeRow, ...]
    usd: float | None
    notes: tuple[str, ...]
    answers: tuple[ProbeAnswer, ...] = ()

    def row(self, attacker: str, mask: str, hardening: str = "plain") -> ProbeRow | None:
        """Return one row, None when it was not tried."""
        wanted = (attacker, mask, hardening)
        return next((row for row in self.rows if (row.attacker, row.mask, row.hardening) == wanted), None)
