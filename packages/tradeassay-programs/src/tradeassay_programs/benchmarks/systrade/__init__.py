"""Implement SysTradeBench: strategies as documents, frozen semantics, references and scenarios."""

from tradeassay_programs.benchmarks.systrade.loading import (
    STRATEGIES as STRATEGIES,
    hashes as hashes,
    load_reference as load_reference,
    load_semantics as load_semantics,
    load_spec as load_spec,
)
