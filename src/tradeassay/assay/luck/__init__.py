"""Luck: how good random portfolios would have been under the same rules, with the same trades, on the same days.

The market and the venue become arrays (``tape``, ``rules``), a journal becomes a schedule without names
(``schedule``), compiled code plays thousands of portfolios on it (``walk``), and any of them can be handed to
the real exchange (``decisions_of``, ``replay``), which comes to the same money. Names are imported on first
use, because the compiler is heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.assay.luck.luck import (
        PORTFOLIOS,
        Luck,
        Matched,
        luck_of_episode,
        luck_of_returns,
        luck_of_run,
    )
    from tradeassay.assay.luck.percentile import Place, place_among
    from tradeassay.assay.luck.portfolios import (
        Ground,
        RandomPortfolios,
        decisions_of,
        ground_of,
        random_portfolios,
        replay,
    )
    from tradeassay.assay.luck.schedule import Schedule, Shape, even_schedule, schedule_of

_HOMES = {
    "PORTFOLIOS": "luck",
    "Ground": "portfolios",
    "Luck": "luck",
    "Matched": "luck",
    "Place": "percentile",
    "RandomPortfolios": "portfolios",
    "Schedule": "schedule",
    "Shape": "schedule",
    "decisions_of": "portfolios",
    "even_schedule": "schedule",
    "ground_of": "portfolios",
    "luck_of_episode": "luck",
    "luck_of_returns": "luck",
    "luck_of_run": "luck",
    "place_among": "percentile",
    "random_portfolios": "portfolios",
    "replay": "portfolios",
    "schedule_of": "schedule",
}

__all__ = [
    "PORTFOLIOS",
    "Ground",
    "Luck",
    "Matched",
    "Place",
    "RandomPortfolios",
    "Schedule",
    "Shape",
    "decisions_of",
    "even_schedule",
    "ground_of",
    "luck_of_episode",
    "luck_of_returns",
    "luck_of_run",
    "place_among",
    "random_portfolios",
    "replay",
    "schedule_of",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
