"""What every world has: its two halves, its sessions, and the facts a reader must know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import msgspec

from tradeassay.core.time import parse_day
from tradeassay.data.calendars import Sessions, sessions_between
from tradeassay.data.panel import Panel, PanelFacts
from tradeassay.data.synthetic.config import VERSION, SyntheticConfig
from tradeassay.data.synthetic.key import AnswerKey


@dataclass(frozen=True, slots=True)
class World:
    """A panel and its answer key, apart."""

    panel: Panel
    key: AnswerKey


def world_sessions(config: SyntheticConfig) -> Sessions:
    """Return the world's sessions: the first ``config.sessions`` of its calendar from ``config.first`` on.

    Raises :class:`~tradeassay.core.errors.DataError` where the exchange's holidays are not known.
    """
    first, n = parse_day(config.first), config.sessions
    # The A-share calendar, the one with most holidays, has 242 sessions in a year.
    span = n if config.calendar == "24/7" else int(n * 1.53) + 25
    found = sessions_between(config.calendar, first, first + timedelta(days=span))
    return Sessions(config.calendar, found.days[:n], found.open_time[:n], found.close_time[:n], found.early[:n])


def panel_facts(config: SyntheticConfig) -> PanelFacts:
    """Return what a reader must know about a synthetic panel."""
    return PanelFacts(
        kind="synthetic",
        source=VERSION,
        query=msgspec.json.encode({"preset": config.preset, "seed": config.seed}).decode(),
        currency=config.currency,
        calendar=config.calendar,
        licence="generated; free to use",
    )
