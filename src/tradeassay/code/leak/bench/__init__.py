"""Leaky and honest strategies that the leak check, and any other, can be measured on."""

from __future__ import annotations

from tradeassay.code.leak.bench.cases import BenchCase, load_bench, replay
from tradeassay.code.leak.bench.data import bench_columns
from tradeassay.code.leak.bench.measure import BenchLine, measure_bench

__all__ = ["BenchCase", "BenchLine", "bench_columns", "load_bench", "measure_bench", "replay"]
