"""What tokens cost. A model that is not in the table has no price: it is "unknown", never 0."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.llm.tables.lookup import find_model, read_table

Dollars = Annotated[float, Meta(ge=0.0)]
MILLION = 1_000_000


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens by what they cost. ``plain`` input was neither read from a provider's cache nor written to it."""

    plain: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        """All input tokens."""
        return self.plain + self.cache_read + self.cache_write


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens, where to check them, and the day they were last believed to be right.

    ``cache_read`` and ``cache_write`` default to the plain input price. Reasoning tokens are billed as output. The
    price holds for requests of up to ``input_limit`` tokens; beyond it nothing is claimed.
    """

    input: Dollars
    output: Dollars
    source: str
    as_of: date
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    input_limit: int | None = None

    def usd(self, tokens: Tokens) -> float | None:
        """Return what these tokens cost, or None beyond the input limit."""
        if self.input_limit is not None and tokens.input > self.input_limit:
            return None
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = tokens.plain * self.input + tokens.cache_read * read + tokens.cache_write * write
        return (total + tokens.output * self.output) / MILLION

    def worst_usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a request can cost, all input at the dearest rate."""
        dearest = max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)
        return (input_tokens * dearest + output_tokens * self.output) / MILLION


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model name."""

    prices: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """Return a model's price, or None when it is unknown."""
        return find_model(self.prices, model)


def load_prices(override: Path | None = None) -> PriceTable:
    """Return the packaged prices, with a user's TOML file laid over them.

    Raises :class:`UserError` for a bad file.
    """
    return PriceTable(read_table(Price, "prices", "prices.toml", override))
