"""Standings, their uncertainty, and how entries trade. Computed only from settled slots."""

from tradeassay_arena.standings.board import (
    BoardConfig as BoardConfig,
    Pace as Pace,
    Standing as Standing,
    Standings as Standings,
    combined_returns as combined_returns,
    pace as pace,
    standings as standings,
)
from tradeassay_arena.standings.series import (
    Behaviour as Behaviour,
    EntrySeries as EntrySeries,
    Filter as Filter,
    LineBook as LineBook,
    Lines as Lines,
    behaviour as behaviour,
    first_day as first_day,
    read_lines as read_lines,
)
