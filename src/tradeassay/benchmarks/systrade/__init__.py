"""SysTradeBench: twelve strategies as documents, frozen semantics, references, scenarios and mutants."""

from __future__ import annotations

from tradeassay.benchmarks.systrade.loading import (
    STRATEGIES,
    hashes,
    load_interface,
    load_reference,
    load_semantics,
    load_spec,
    read_lock,
)
from tradeassay.benchmarks.systrade.mutants import Mutant, load_mutants, mutate

__all__ = [
    "STRATEGIES",
    "Mutant",
    "hashes",
    "load_interface",
    "load_mutants",
    "load_reference",
    "load_semantics",
    "load_spec",
    "mutate",
    "read_lock",
]
