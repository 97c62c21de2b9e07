"""Who stands where, how sure that is, and what it is made of. Computed from settled slots alone."""

from tradeassay.arena.standings.board import BoardConfig, Pace, Standing, Standings, account, pace, standings
from tradeassay.arena.standings.luck import account_band, luck_percentiles
from tradeassay.arena.standings.series import (
    Behaviour,
    EntrySeries,
    Filter,
    LineBook,
    Lines,
    behaviour,
    first_day,
    read_lines,
)
from tradeassay.arena.standings.variance import VarianceSplit, split_variance
