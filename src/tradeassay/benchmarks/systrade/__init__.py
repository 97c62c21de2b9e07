"""SysTradeBench: twelve strategies as documents, frozen semantics, references, scenarios and mutants."""

from __future__ import annotations

from tradeassay.benchmarks.systrade.loading import (
    STRATEGIES,
    SubmissionMutant,
    hashes,
    load_mutants,
    load_reference,
    load_semantics,
    load_spec,
    mutate,
    read_lock,
)

__all__ = [
    "STRATEGIES",
    "SubmissionMutant",
    "hashes",
    "load_mutants",
    "load_reference",
    "load_semantics",
    "load_spec",
    "mutate",
    "read_lock",
]
