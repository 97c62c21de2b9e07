"""Benchmarks of trading programs."""
