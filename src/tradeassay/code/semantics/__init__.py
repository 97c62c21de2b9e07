"""Frozen semantics: a strategy's meaning as machine-readable rules, and the interpreter that is its authority."""

from tradeassay.code.semantics.interpreter import (
    Semantics,
    StrategyParameter,
    StrategyRule,
    check_semantics,
    indicators,
    interpret,
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
