"""Implement Agent Market Arena: its rules, five measures and published figures.

An agent decides BUY, SELL or HOLD once a day for each asset.
"""

from tradeassay_arena.benchmarks.ama.rules import (
    AMA as AMA,
    PAPER as PAPER,
    SOUND as SOUND,
    AmaRules as AmaRules,
    ama_panel as ama_panel,
    rules_for as rules_for,
)
from tradeassay_bench.benchmarks.ama import (
    AmaFigure as AmaFigure,
    AmaPublished as AmaPublished,
    ComparedSetting as ComparedSetting,
    compare_with as compare_with,
    published as published,
)
