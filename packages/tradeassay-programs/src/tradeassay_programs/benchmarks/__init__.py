"""Implement the benchmarks of trading programs."""
