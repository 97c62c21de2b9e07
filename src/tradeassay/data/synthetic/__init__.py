"""Synthetic worlds: whole markets from one seed, with an answer key beside them."""

from tradeassay.data.synthetic.key import AnswerKey, NewsTruth, PlantedSkill, World
from tradeassay.data.synthetic.minutes import MinuteConfig, generate_minutes
from tradeassay.data.synthetic.universe import (
    PRESETS,
    VERSION,
    ActionModel,
    MarketModel,
    NewsModel,
    NoiseModel,
    PlantedStyles,
    RegimeSpan,
    SyntheticConfig,
    TradingModel,
    preset,
)
from tradeassay.data.synthetic.world import SyntheticSource, generate
