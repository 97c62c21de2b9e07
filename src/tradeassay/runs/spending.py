"""What a model's answers took: calls, tokens, dollars. Dollars that nobody knows are never counted as none."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradeassay.core.dialogue import Usage


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over answers. ``usd`` covers the answers with a known price; ``unpriced`` counts the others."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    @property
    def known_usd(self) -> float | None:
        """All dollars, or None when the price of an answer is unknown."""
        return None if self.unpriced else self.usd

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def plus(self, usage: Usage) -> Spending:
        """Return the sums with one more answer."""
        return Spending(
            calls=self.calls + 1,
            input_tokens=self.input_tokens + usage.input_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            usd=self.usd if usage.usd is None else self.usd + usage.usd,
            unpriced=self.unpriced + (usage.usd is None),
        )

    def words(self) -> str:
        """Return it as a person reads it: ``120 calls, 345,000 tokens, $1.23``."""
        if self.unpriced and self.unpriced == self.calls:
            money = "price unknown"
        else:
            money = f"${self.usd:,.2f}" if self.usd >= 0.01 or not self.usd else f"${self.usd:.4f}"
            money += f" and {self.unpriced:,} calls of unknown price" if self.unpriced else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens, {money}"


def total(parts: Iterable[Spending]) -> Spending:
    """Return the sum of several."""
    listed = list(parts)
    return Spending(
        calls=sum(part.calls for part in listed),
        input_tokens=sum(part.input_tokens for part in listed),
        output_tokens=sum(part.output_tokens for part in listed),
        usd=sum(part.usd for part in listed),
        unpriced=sum(part.unpriced for part in listed),
    )
