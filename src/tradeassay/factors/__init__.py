"""The nine style factors as pure array functions: same input, same bits, on any CPU."""

from tradeassay.factors.compute import compute, compute_all, last_row, last_row_of, latest, latest_all
from tradeassay.factors.definition import FACTOR_NAMES, FACTORS, FactorBars, FactorDef, definition, factor_words
from tradeassay.factors.stream import RECENT, FactorStream
from tradeassay.factors.windows import standardise, winsorise, zscore
