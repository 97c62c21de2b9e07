"""Provide real market data from packages of the package index, with its flaws."""
