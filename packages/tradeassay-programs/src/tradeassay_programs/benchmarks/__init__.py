"""Benchmarks of programs."""
