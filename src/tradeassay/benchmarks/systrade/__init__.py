"""SysTradeBench: twelve strategies as documents, frozen semantics, references and scenarios."""

from __future__ import annotations

from tradeassay.benchmarks.systrade.loading import STRATEGIES, hashes, load_reference, load_semantics, load_spec
