"""A market (clock, as-of view, exchange, ledger), an agent's episode in it, and the episode's journal."""

from tradeassay.play.episode import Asked, Conversation, Episode, NoAnswer, Recorder, talk
from tradeassay.play.journal import Holdings, holdings_from_records, series_from_records
from tradeassay.play.market import (
    Market,
    MarketConfig,
    Step,
    Universe,
    UniverseChoice,
    UniverseName,
    Witness,
    most_traded,
    parse_universe,
)
