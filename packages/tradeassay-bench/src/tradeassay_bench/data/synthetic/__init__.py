"""Generate synthetic worlds: complete markets from a seed, each with an answer key."""

from tradeassay_bench.data.synthetic.key import (
    AnswerKey as AnswerKey,
    NewsTruth as NewsTruth,
    PlantedSkill as PlantedSkill,
    World as World,
)
from tradeassay_bench.data.synthetic.minutes import (
    MinuteConfig as MinuteConfig,
    generate_minutes as generate_minutes,
)
from tradeassay_bench.data.synthetic.universe import (
    PRESETS as PRESETS,
    VERSION as VERSION,
    ActionModel as ActionModel,
    MarketModel as MarketModel,
    NewsModel as NewsModel,
    NoiseModel as NoiseModel,
    PlantedStyles as PlantedStyles,
    RegimeSpan as RegimeSpan,
    SyntheticConfig as SyntheticConfig,
    TradingModel as TradingModel,
    preset as preset,
)
from tradeassay_bench.data.synthetic.world import (
    SyntheticSource as SyntheticSource,
    generate as generate,
)
