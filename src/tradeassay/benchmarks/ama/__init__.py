"""Agent Market Arena: BUY, SELL or HOLD once a day and asset; rules, five measures, published figures."""

from tradeassay.benchmarks.ama.published import AmaFigure, AmaPublished, compare_with, published
from tradeassay.benchmarks.ama.rules import AMA, PAPER, SOUND, AmaRules, ama_panel, positions, rules_for
