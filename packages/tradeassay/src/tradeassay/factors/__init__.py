"""The nine style factors as pure array functions. Equal input gives equal bits on any CPU."""

from tradeassay.factors._windows import (
    rolling_sum as rolling_sum,
    standardise as standardise,
    winsorise as winsorise,
    zscore as zscore,
)
from tradeassay.factors.compute import (
    compute as compute,
    compute_all as compute_all,
    last_row as last_row,
    last_row_of as last_row_of,
    latest as latest,
    latest_all as latest_all,
)
from tradeassay.factors.definition import (
    FACTOR_NAMES as FACTOR_NAMES,
    FACTORS as FACTORS,
    FactorBars as FactorBars,
    FactorDef as FactorDef,
    definition as definition,
    factor_words as factor_words,
)
from tradeassay.factors.stream import RECENT as RECENT, FactorStream as FactorStream
