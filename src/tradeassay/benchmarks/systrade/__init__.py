"""SysTradeBench: twelve strategies as documents, frozen semantics, references, scenarios and mutants."""

from __future__ import annotations

from tradeassay.benchmarks.systrade.loading import (
    STRATEGIES,
    hashes,
    load_reference,
    load_semantics,
    load_spec,
    read_lock,
)

__all__ = ["STRATEGIES", "hashes", "load_reference", "load_semantics", "load_spec", "read_lock"]
