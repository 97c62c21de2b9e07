"""What every world has: its two halves, and the facts a reader must know."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tradeassay.data.panel import Panel, PanelFacts
from tradeassay.data.synthetic.config import VERSION, SyntheticConfig
from tradeassay.data.synthetic.key import AnswerKey


@dataclass(frozen=True, slots=True)
class World:
    """A panel and its answer key, apart."""

    panel: Panel
    key: AnswerKey


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
