"""Aliases of one episode: ``asset_0007`` for a symbol, fixed inside the episode and drawn anew for the next."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tradeassay.masking.mask_config import UnknownAlias

PREFIX = "asset_"
_FORM = re.compile(r"asset_\d{4,6}")
_FIRST_BLOCK = 10_000


def is_alias(text: str) -> bool:
    """Tell whether a text has the form of an alias, known or not."""
    return _FORM.fullmatch(text) is not None


class AliasMap:
    """Symbols to aliases and back.

    A number is drawn without replacement from 0 to 9999 for every symbol in the order in which symbols come into
    view. Neither the number nor the order of numbers depends on the symbol, on how many there are, or on which
    will be listed later. (Past ten thousand symbols the aliases have five digits.)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._numbers: list[int] = rng.permutation(_FIRST_BLOCK).tolist()
        self._alias_of: dict[str, str] = {}
        self._symbol_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._alias_of)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._alias_of

    def extend(self, symbols: Sequence[str]) -> None:
        """Give an alias to every symbol that has none yet, in the order given."""
        for symbol in symbols:
            if symbol not in self._alias_of:
                number = self._number(len(self._alias_of))
                alias = f"{PREFIX}{number:04d}"
                self._alias_of[symbol] = alias
                self._symbol_of[alias] = symbol

    def alias(self, symbol: str) -> str:
        """Return a symbol's alias; raises :class:`KeyError` for a symbol that never came into view."""
        return self._alias_of[symbol]

    def get(self, symbol: str) -> str | None:
        """Return a symbol's alias, or None when it never came into view."""
        return self._alias_of.get(symbol)

    def symbol(self, alias: str) -> str:
        """Return the symbol behind an alias; raises :class:`UnknownAlias`."""
        try:
            return self._symbol_of[alias]
        except KeyError:
            named = f"'{alias}'" if is_alias(alias) else "of that name"
            raise UnknownAlias(
                f"no asset {named} in this episode",
                hint="use an asset id exactly as it was shown, e.g. asset_0007",
            ) from None

    def find(self, alias: str) -> str | None:
        """Return the symbol behind an alias, or None."""
        return self._symbol_of.get(alias)

    def _number(self, position: int) -> int:
        while position >= len(self._numbers):
            start = len(self._numbers)
            self._numbers += (start + self._rng.permutation(9 * start)).tolist()
        return self._numbers[position]
