"""Frozen semantics: a strategy's meaning as machine-readable rules, and the interpreter that is its authority."""

from tradeassay.code.semantics.interpreter import check_semantics, indicators, interpret
from tradeassay.code.semantics.model import (
    Semantics,
    StrategyParameter,
    StrategyRule,
    read_semantics,
    semantics_schema,
)

__all__ = [
    "Semantics",
    "StrategyParameter",
    "StrategyRule",
    "check_semantics",
    "indicators",
    "interpret",
    "read_semantics",
    "semantics_schema",
]
