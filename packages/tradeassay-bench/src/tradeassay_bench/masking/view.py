"""Create the mask of one episode, and market views under it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.time import Instant
from tradeassay_bench.core.view import (
    Adjustment,
    CorporateAction,
    Field,
    Fundamental,
    Instrument,
    MarketView,
    NewsItem,
)
from tradeassay_bench.data.names import known_names
from tradeassay_bench.masking.aliases import AliasMap, DayMap, MaskConfig
from tradeassay_bench.masking.gate import ANY_STEP, Gate
from tradeassay_bench.masking.lexicon import Depth, Lexicon
from tradeassay_bench.masking.scales import Scales, ShownBars, Ticks

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot


T = TypeVar("T")
Array = TypeVar("Array", Floats, Bools, Ints)
_replace = msgspec.structs.replace


class Columns(NamedTuple):
    """The displayed columns: their symbols, positions and true columns.

    ``order`` is None if the true order is displayed.
    """

    symbols: tuple[str, ...]
    place: Mapping[str, int]
    order: Ints | None


class MaskedView:
    """A masked :class:`~tradeassay_bench.core.view.MarketView` over a true view.

    ``Mask.view`` creates it. If names are hidden, symbols are aliases and the columns are
    reordered, because the true order is alphabetic. If dates are hidden, dates and instants are
    moved to days after a fixed anchor, and texts such as an ex-date are labels (``day_-3``). Prices
    and volumes are true unless the mask rescales them. Errors of the true view are masked.
    """

    __slots__ = ("_days", "_gate", "_order", "_place", "_salt", "_scales", "_view", "symbols")

    def __init__(
        self,
        view: MarketView,
        gate: Gate,
        days: DayMap,
        scales: Scales,
        columns: Columns,
        salt: bytes,
    ) -> None:
        self._view, self._gate, self._days, self._scales, self._salt = (
            view,
            gate,
            days,
            scales,
            salt,
        )
        self.symbols: tuple[str, ...] = columns.symbols
        self._order, self._place = columns.order, columns.place

    def __repr__(self) -> str:
        return f"<MaskedView {self._gate.config.level} {self._gate.instant(self._view.clock)}>"

    @property
    def clock(self) -> Instant:
        return self._shown(self._view.clock)

    def column(self, symbol: str) -> int:
        column = self._place.get(symbol)
        if column is None:
            self._gate.symbol(symbol)
            raise DataError(f"no instrument '{self._gate.alias(symbol)}' is listed by now")
        return column

    def instrument(self, symbol: str) -> Instrument:
        true = self._ask(lambda: self._view.instrument(self._gate.symbol(symbol)))
        config, shown = self._gate.config, true
        if config.hides_stocks:
            root = None if true.root is None else "chain_" + self._mark(true.root)
            shown = _replace(
                shown,
                symbol=self._gate.alias(true.symbol),
                name=self._gate.alias(true.symbol),
                root=root,
            )
        if shown.expiry is not None:
            shown = _replace(shown, expiry=self._gate.day(shown.expiry))
        return (
            _replace(shown, lot=ANY_STEP, step=ANY_STEP, tick=ANY_STEP)
            if config.rebase_prices
            else shown
        )

    def sessions(self, lookback: int | None = None) -> Days:
        days = self._ask(lambda: self._view.sessions(lookback))
        return self._days.shown(days) if self._gate.config.hides_dates else days

    def bars(
        self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split"
    ) -> Floats:
        return self._arranged(
            field, self._ask(lambda: self._view.bars(field, lookback, adjust=adjust))
        )

    def opens(self) -> Floats | None:
        values = self._view.opens()
        return None if values is None else self._arranged("open", values)

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        true = self._gate.symbol(symbol)
        times, bars = self._ask(lambda: self._view.minutes(true, lookback))
        if self._gate.config.hides_dates:
            times = _frozen(
                np.fromiter(map(self._shown, times.tolist()), dtype=np.int64, count=times.size)
            )
        if not self._scales.active:
            return times, bars
        column, width = self._view.column(true), len(self._view.symbols)
        shown: dict[Field, Floats] = {}
        for name, values in bars.items():
            factors = self._scales.of_field(name, self._view, width)
            shown[name] = values if factors is None else _frozen(values * factors[column])
        return times, shown

    def tradable(self) -> Bools:
        values = self._view.tradable()
        if self._order is None:
            return values
        return _frozen(values[self._order[: values.size]] if values.size else values)

    def members(self, index: str) -> tuple[str, ...]:
        names = tuple(map(self._gate.alias, self._ask(lambda: self._view.members(index))))
        return tuple(sorted(names, key=self.column)) if self._order is not None else names

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        levels = self._ask(lambda: self._view.index_levels(index, lookback))
        return (
            _frozen(levels * self._scales.index(self._view, index))
            if self._scales.rebases
            else levels
        )

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        true = self._gate.symbol(symbol)
        figures = self._ask(lambda: self._view.fundamentals(true))
        return tuple(
            _replace(
                figure,
                symbol=symbol,
                period_end=self._gate.day(figure.period_end),
                known_at=self._shown(figure.known_at),
                value=self._scales.figure(self._view, true, figure.field, figure.value),
            )
            for figure in figures
        )

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return masked items published in (since, clock], newest first.

        The address is omitted and the id is replaced, because both may contain a name or a date.
        ``symbols`` omits symbols that are not listed yet.
        """
        wanted = None if symbols is None else tuple(map(self._gate.symbol, symbols))
        gate, thorough = self._gate, self._gate.config.scrub_news
        depth: Depth = "thorough" if thorough else "plain"
        return tuple(
            _replace(
                item,
                id="news_" + self._mark(item.id),
                published_at=self._shown(item.published_at),
                symbols=tuple(gate.alias(symbol) for symbol in item.symbols if gate.knows(symbol)),
                title=gate.text(item.title, depth, also=item.symbols),
                body=gate.text(item.body, depth, also=item.symbols),
                source="" if thorough else gate.text(item.source),
                url="",
            )
            for item in self._ask(
                lambda: self._view.news(self._real(since), symbols=wanted, limit=limit)
            )
        )

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        gate = self._gate
        return tuple(
            _replace(
                action,
                symbol=gate.alias(action.symbol),
                ex_date=gate.day(action.ex_date),
                known_at=self._shown(action.known_at),
                value=action.value
                * (
                    self._scales.price(self._view, action.symbol)
                    if action.kind == "dividend"
                    else 1.0
                ),
            )
            for action in self._ask(lambda: self._view.actions(self._real(since)))
        )

    # -- the mask ----------------------------------------------------------------------------------

    def _mark(self, text: str) -> str:
        return hashlib.sha256(self._salt + text.encode()).hexdigest()[:10]

    def _arranged(self, field: Field, values: Floats) -> Floats:
        """Return an array with columns along its last axis rescaled and in the masked order."""
        factors = self._scales.of_field(field, self._view, values.shape[-1])
        if factors is not None:
            values = values * factors
        if self._order is not None:
            values = np.take(values, self._order, axis=-1)
        elif factors is None:
            return values
        return _frozen(values)

    def _shown(self, at: Instant) -> Instant:
        return self._days.shown_instant(at) if self._gate.config.hides_dates else at

    def _real(self, at: Instant) -> Instant:
        return self._days.real_instant(at) if self._gate.config.hides_dates else at

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except TradeassayError as error:
            gate = self._gate
            hint = None if error.hint is None else gate.outgoing(error.hint)
            raise type(error)(gate.outgoing(error.message), hint=hint) from None


def _frozen(values: Array) -> Array:
    values.setflags(write=False)
    return values


class Mask:
    """Hides the names and dates of one episode.

    ``first`` and ``last`` are the ISO days of the episode, as in a market's config. All random
    numbers are drawn from the generator at the start, in a fixed order. Equal generators therefore
    give equal masks, and a resumed episode continues under the same mask. Raises
    :class:`~tradeassay.core.errors.UserError` if the snapshot has no session in the window.
    """

    def __init__(
        self,
        config: MaskConfig,
        snapshot: Snapshot,
        first: str | None,
        last: str | None,
        rng: np.random.Generator,
    ) -> None:
        self.config = config
        rows = snapshot.rows(first, last)
        start = snapshot.at(rows.start, "pre_open")
        numbers, order, scales, salt = rng.spawn(4)
        self.aliases = AliasMap(numbers)
        self.days = DayMap(snapshot.sessions[: rows.stop], rows.start)
        self.scales = Scales(config, start, scales)
        self._salt = salt.bytes(16)
        self.ticks = Ticks(self._salt, self.scales.usual) if self.scales.active else None
        self._first_columns: Ints = order.permutation(len(start.symbols))
        self._columns: dict[int, Columns] = {}
        self._lexicons: dict[int, Lexicon] = {}

    def view(self, view: MarketView) -> MarketView:
        if not (self.config.hides_stocks or self.config.hides_dates):
            return view
        gate, names = self.gate(view), view.symbols
        count = len(names)
        if count not in self._columns:
            order: Ints | None = None
            if self.config.hides_stocks:  # names with a later listing follow
                first = self._first_columns
                order = np.concatenate([first[first < count], np.arange(first.size, count)])
                names = tuple(gate.alias(names[column]) for column in order.tolist())
            self._columns[count] = Columns(
                names, {name: place for place, name in enumerate(names)}, order
            )
        return MaskedView(view, gate, self.days, self.scales, self._columns[count], self._salt)

    def shown(self, view: MarketView) -> ShownBars | None:
        """Return the bars of a true view under a hardened mask, or None without hardening."""
        return None if self.ticks is None else ShownBars(view, self.scales, self.ticks)

    def gate(self, view: MarketView) -> Gate:
        symbols, lexicon = view.symbols, None
        if len(symbols) > len(self.aliases):
            self.aliases.extend(symbols)
        if self.config.hides_stocks:
            lexicon = self._lexicons.get(len(symbols))
            if lexicon is None:
                lexicon = _lexicon_of(tuple(map(view.instrument, symbols)))
                self._lexicons[len(symbols)] = lexicon
        return Gate(self.config, self.aliases, self.days, self.scales, view, lexicon)

    def observation(self, observation: Observation) -> Observation:
        """Return a masked observation: view, universe, account, events, session and time."""
        return self.gate(observation.view).observation(observation, self.view(observation.view))


_lexicon_of = lru_cache(maxsize=8)(Lexicon)
"""Returns the lexicon of some instruments. The episodes of a grid share the lexicon."""


def nameless(view: MarketView) -> tuple[str, ...]:
    """Return the stocks without a known company name. Texts about them cannot be masked."""
    symbols: list[str] = []
    for symbol in view.symbols:
        item = view.instrument(symbol)
        has_name = item.name not in ("", item.symbol) or known_names(item)
        if item.kind == "stock" and not has_name:
            symbols.append(item.symbol)
    return tuple(symbols)


def refuse_nameless(view: MarketView) -> None:
    """Check that data with news has company names.

    Raises :class:`UserError` otherwise, because the news would contain names that cannot be masked.
    """
    unnamed = nameless(view)
    if unnamed:
        examples = ", ".join(unnamed[:5]) + (", ..." if len(unnamed) > 5 else "")
        raise UserError(
            f"{len(unnamed)} of {len(view.symbols)} stocks have no company name ({examples}); news "
            "would show it",
            hint="import names too (docs/howto/import-data.md), or leave news out: "
            "protocol={'news': False}",
        )
