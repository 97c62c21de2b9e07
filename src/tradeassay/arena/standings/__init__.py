"""Who stands where, how sure that is, and what it is made of. Computed from settled slots alone."""

from tradeassay.arena.standings.board import Board, BoardConfig, Standing, account, standings
from tradeassay.arena.standings.luck import LuckBand, account_band, luck_band
from tradeassay.arena.standings.series import Behaviour, Filter, Line, behaviour, first_day, read_lines
from tradeassay.arena.standings.variance import Split, split_variance

__all__ = [
    "Behaviour",
    "Board",
    "BoardConfig",
    "Filter",
    "Line",
    "LuckBand",
    "Split",
    "Standing",
    "account",
    "account_band",
    "behaviour",
    "first_day",
    "luck_band",
    "read_lines",
    "split_variance",
    "standings",
]
