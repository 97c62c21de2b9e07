"""SysTradeBench: twelve strategies as documents, frozen semantics, references and scenarios."""

from tradeassay.benchmarks.systrade.loading import STRATEGIES, hashes, load_reference, load_semantics, load_spec
