"""The mask of one episode: it makes masked views and the gate for everything else."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.errors import UserError
from tradeassay.core.view import Ints, MarketView
from tradeassay.data.names import known_names
from tradeassay.masking.aliases import AliasMap, DayMap
from tradeassay.masking.gate import Gate
from tradeassay.masking.lexicon import Lexicon
from tradeassay.masking.mask_config import MaskConfig
from tradeassay.masking.scales import Scales, Ticks
from tradeassay.masking.view import Columns, MaskedView

if TYPE_CHECKING:
    from tradeassay.data import Snapshot


class Mask:
    """Hides names and dates of one episode; ``first`` and ``last`` are its ISO days, as in a market's config.

    The generator decides everything that is drawn, at once and in a fixed order: equal generators give equal masks
    however often and in whatever order they are asked, so that a resumed episode continues under the same mask.
    Raises :class:`~tradeassay.core.errors.UserError` when the snapshot has no session in the window.
    """

    def __init__(
        self, config: MaskConfig, snapshot: Snapshot, first: str | None, last: str | None, rng: np.random.Generator
    ) -> None:
        self.config = config
        rows = snapshot.rows(first, last)
        start = snapshot.at(rows.start, "pre_open")
        numbers, order, scales, salt = rng.spawn(4)
        self.aliases = AliasMap(numbers)
        self.days = DayMap(snapshot.sessions[: rows.stop], rows.start)
        self.scales = Scales(config, start, scales)
        self._salt = salt.bytes(16)
        self.ticks = Ticks(self._salt) if config.rebase_prices else None
        self._first_columns: Ints = order.permutation(len(start.symbols))
        self._columns: dict[int, Columns] = {}
        self._lexicons: dict[int, Lexicon] = {}

    def view(self, view: MarketView) -> MarketView:
        """Return a view under the mask. A bright mask returns the view itself."""
        if not (self.config.hides_stocks or self.config.hides_dates):
            return view
        gate = self.gate(view)
        return MaskedView(view, gate, self.days, self.scales, self._shown_columns(view, gate), self._salt)

    def gate(self, view: MarketView) -> Gate:
        symbols = view.symbols
        if len(symbols) > len(self.aliases):
            self.aliases.extend(symbols)
        return Gate(self.config, self.aliases, self.days, self.scales, view, self._lexicon(view))

    def observation(self, observation: Observation) -> Observation:
        """Return an observation under the mask: view, universe, account, events, session and time."""
        return self.gate(observation.view).observation(observation, self.view(observation.view))

    def _shown_columns(self, view: MarketView, gate: Gate) -> Columns:
        """Return the columns in another order where names are hidden; names listed after the start follow."""
        names = view.symbols
        count = len(names)
        if count not in self._columns:
            order: Ints | None = None
            if self.config.hides_stocks:
                first = self._first_columns
                order = np.concatenate([first[first < count], np.arange(first.size, count)])
                names = tuple(gate.alias(names[column]) for column in order.tolist())
            self._columns[count] = Columns(names, {name: place for place, name in enumerate(names)}, order)
        return self._columns[count]

    def _lexicon(self, view: MarketView) -> Lexicon | None:
        if not self.config.hides_stocks:
            return None
        count = len(view.symbols)
        if count not in self._lexicons:
            instruments = tuple(view.instrument(symbol) for symbol in view.symbols)
            self._lexicons[count] = _lexicon_of(instruments)
        return self._lexicons[count]


_lexicon_of = lru_cache(maxsize=8)(Lexicon)
"""The spellings of names; the episodes of a grid share them."""


def nameless(view: MarketView) -> tuple[str, ...]:
    """Return the stocks whose company nobody here can name: a text about them cannot be masked."""
    stocks = (item for symbol in view.symbols if (item := view.instrument(symbol)).kind == "stock")
    return tuple(item.symbol for item in stocks if item.name in ("", item.symbol) and not known_names(item))


def refuse_nameless(view: MarketView) -> None:
    """Raise :class:`UserError` for data with texts but without company names: a headline would name them."""
    unknown = nameless(view)
    if unknown:
        some = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        raise UserError(
            f"{len(unknown)} of {len(view.symbols)} stocks have no company name ({some}); news would show it",
            hint="import the data with names (see docs/howto/import-data.md), or leave news out (-p news=false)",
        )
