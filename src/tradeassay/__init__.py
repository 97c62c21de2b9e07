"""tradeassay: what is a trading model's result made of?

Importing this package is cheap; everything heavy is loaded on first use.
"""

from __future__ import annotations

__version__ = "0.1.0"
