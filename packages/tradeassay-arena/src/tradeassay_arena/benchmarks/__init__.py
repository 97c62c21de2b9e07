"""Implement the benchmark Agent Market Arena."""
