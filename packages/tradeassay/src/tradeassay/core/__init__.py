"""Vocabulary shared by the whole package: events, orders, observations, clocks, errors, the registry.

Nothing here reads a file, a network or a clock.
"""

__version__ = "0.1.0"
