"""Identifiers as types of their own: what a mask may have to hide cannot be written into JSON by accident.

A tool puts a :class:`Stock`, a :class:`Day` or a :class:`Prose` into its result. No JSON encoder knows these types
but the one of the wire, which turns them into what the episode's mask shows. A plain ``str`` in a result is
always a word of our own. (They are neither structs nor dataclasses, because those would be encoded as objects.)
"""

from __future__ import annotations


class Stock:
    """A symbol."""

    __slots__ = ("symbol",)

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stock) and other.symbol == self.symbol

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __repr__(self) -> str:
        return f"Stock({self.symbol!r})"


class Day:
    """A calendar day, ISO."""

    __slots__ = ("iso",)

    def __init__(self, iso: str) -> None:
        self.iso = iso

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Day) and other.iso == self.iso

    def __hash__(self) -> int:
        return hash(self.iso)

    def __repr__(self) -> str:
        return f"Day({self.iso!r})"


class Prose:
    """A text from outside (news, say) that may name a company or a date."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Prose({self.text!r})"
