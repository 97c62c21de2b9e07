"""Synthetic worlds: whole markets from one seed, with an answer key beside them."""

from tradeassay.data.synthetic.config import (
    VERSION,
    ActionModel,
    MarketModel,
    NewsModel,
    NoiseModel,
    RegimeSpan,
    StyleModel,
    SyntheticConfig,
    TradingModel,
)
from tradeassay.data.synthetic.key import AnswerKey, NewsTruth, PlantedSkill
from tradeassay.data.synthetic.presets import PRESETS, preset
from tradeassay.data.synthetic.source import SyntheticSource
from tradeassay.data.synthetic.world import World, generate

__all__ = [
    "PRESETS",
    "VERSION",
    "ActionModel",
    "AnswerKey",
    "MarketModel",
    "NewsModel",
    "NewsTruth",
    "NoiseModel",
    "PlantedSkill",
    "RegimeSpan",
    "StyleModel",
    "SyntheticConfig",
    "SyntheticSource",
    "TradingModel",
    "World",
    "generate",
    "preset",
]
