"""Who stands where, how sure that is, and what it is made of. Computed from settled slots alone."""

from tradeassay.arena.standings.board import (
    BoardConfig as BoardConfig,
    Pace as Pace,
    Standing as Standing,
    Standings as Standings,
    account as account,
    pace as pace,
    standings as standings,
)
from tradeassay.arena.standings.luck import account_band as account_band, luck_percentiles as luck_percentiles
from tradeassay.arena.standings.series import (
    Behaviour as Behaviour,
    EntrySeries as EntrySeries,
    Filter as Filter,
    LineBook as LineBook,
    Lines as Lines,
    behaviour as behaviour,
    first_day as first_day,
    read_lines as read_lines,
)
from tradeassay.arena.standings.variance import VarianceSplit as VarianceSplit, split_variance as split_variance
