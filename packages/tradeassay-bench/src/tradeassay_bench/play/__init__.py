"""Run agents in markets: clock, as-of view, exchange, ledger, episodes and journals."""

from tradeassay_bench.play.episode import (
    AddressedQuestion as AddressedQuestion,
    Conversation as Conversation,
    Episode as Episode,
    NoAnswer as NoAnswer,
    Recorder as Recorder,
)
from tradeassay_bench.play.journal import (
    Holdings as Holdings,
    holdings_from_records as holdings_from_records,
    series_from_records as series_from_records,
)
from tradeassay_bench.play.market import (
    Market as Market,
    MarketConfig as MarketConfig,
    Step as Step,
    Universe as Universe,
    UniverseChoice as UniverseChoice,
    UniverseName as UniverseName,
    most_traded as most_traded,
    parse_universe as parse_universe,
)
