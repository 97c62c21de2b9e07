"""Agent Market Arena: BUY, SELL or HOLD once a day and asset; rules, five measures, published figures."""

from tradeassay.benchmarks.ama.published import Published, PublishedFigure, compare_with, published
from tradeassay.benchmarks.ama.rules import PAPER, SOUND, Rules, daily_returns, positions, rules_for
from tradeassay.benchmarks.ama.scoring import ama_panel

__all__ = [
    "PAPER",
    "SOUND",
    "Published",
    "PublishedFigure",
    "Rules",
    "ama_panel",
    "compare_with",
    "daily_returns",
    "positions",
    "published",
    "rules_for",
]
