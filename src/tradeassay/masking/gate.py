"""The gate: all traffic with an agent passes through it, masked on the way out and unmasked on the way in.

In JSON, fields with identifiers or days are recognised by their names; all other texts are scrubbed. Events,
accounts and orders have rules of their own, and an agent's orders come back to real instruments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, overload

import msgspec
import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import TradeassayError
from tradeassay.core.events import (
    Delisted,
    DividendPaid,
    Event,
    Filled,
    Marked,
    Rejected,
    Rested,
    Rolled,
    Settled,
    SplitApplied,
    Trimmed,
)
from tradeassay.core.orders import Decision, Order
from tradeassay.core.time import DAY
from tradeassay.core.view import AccountState, Instrument, MarketView, Position
from tradeassay.data.dates import DateHit
from tradeassay.masking.aliases import AliasMap, DayMap, MaskConfig, UnknownAlias, label_of
from tradeassay.masking.lexicon import Depth, Lexicon, Scrubber, Words, is_ordinary
from tradeassay.masking.scales import Scales

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
"""What JSON can hold. Tuples count as arrays."""

NAMED_FIELDS = frozenset(
    """
symbol symbols stock_id stock_ids ticker tickers asset assets alias aliases asset_id asset_ids
instrument instruments
""".split()
)
"""Fields that hold nothing but symbols: what comes in under them must be an asset. Compared in lower case."""
ASSET_FIELDS = NAMED_FIELDS | frozenset(
    "stock stocks universe members constituents held candidates into stale analyse analyze picks".split()
)
"""Fields whose texts may be symbols."""
KEYED_FIELDS = ASSET_FIELDS | frozenset(
    """
marks positions holdings grid target_weights weights decisions notes sellable locked prices names
by_symbol by_asset
""".split()
)
"""Fields that hold an object whose keys may be symbols."""
DAY_FIELDS = frozenset(
    """
date day days dates session sessions as_of as_of_date data_cutoff cutoff since until start end first last from to
ex_date period_end expiry listed delisted time times timestamp datetime clock now published_at known_at decided_at
fetched_at current_date trade_date calendar report_date start_date end_date
""".split()
)
"""Fields whose texts are days or instants, and whose whole numbers above 10^17 are instants in nanoseconds."""

_FIELD_NAMES = KEYED_FIELDS | DAY_FIELDS


class FieldRules(msgspec.Struct, frozen=True):
    """What is done to a symbol, a day, an instant, any other text, and to a number where a symbol belongs.
    ``is_symbol`` tells what counts as a symbol when it is a key; ``certain`` the same without ordinary words."""

    asset: Callable[[str, str], str]
    number: Callable[[float], Json]
    day: Callable[[str], str]
    instant: Callable[[int], Json]
    text: Callable[[str], str]
    is_symbol: Callable[[str], bool]
    certain: Callable[[str], bool]


def walk(value: Json, rules: FieldRules, field: str = "") -> Json:
    if isinstance(value, str):
        if field in ASSET_FIELDS:
            return rules.asset(value, field)
        return rules.day(value) if field in DAY_FIELDS else rules.text(value)
    if isinstance(value, Mapping):
        keyed = bool(value) and (field in KEYED_FIELDS or all(map(rules.is_symbol, value)))
        result: dict[str, Json] = {}
        for key, item in value.items():
            if (keyed and rules.is_symbol(key)) or rules.certain(key):
                shown = rules.asset(key, "symbol")
            else:
                shown = key if key.lower() in _FIELD_NAMES else rules.text(key)
            result[shown] = walk(item, rules, key.lower())
        return result
    if isinstance(value, list | tuple):
        return [walk(item, rules, field) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if field in NAMED_FIELDS:
        return rules.number(value)
    return rules.instant(value) if isinstance(value, int) and field in DAY_FIELDS and value > 10**17 else value


ANY_STEP = 1e-6
"""Lot, step and tick shown when shares are another unit: the real ones would give the factor away."""
_replace = msgspec.structs.replace


class MaskWords(msgspec.Struct, frozen=True):
    """How one mask speaks at one moment: symbols, texts, and the price factor of a real symbol."""

    symbol: Callable[[str], str]
    text: Callable[[str], str]
    factor: Callable[[str], float]


def mask_event(event: Event, words: MaskWords) -> Event:
    """Return an event as it is shown: alias, masked detail, and quantities and prices in the shown unit."""
    symbol = getattr(event, "symbol", None)
    if isinstance(event, Marked):
        return _replace(
            event,
            stale=tuple(words.symbol(name) for name in event.stale),
            marks={words.symbol(name): mark * words.factor(name) for name, mark in event.marks.items()},
        )
    if symbol is None:
        return event
    changes: dict[str, object] = {"symbol": words.symbol(symbol)}
    if isinstance(event, Rejected):
        changes["detail"] = words.text(event.detail)
    if isinstance(event, Rolled):
        changes["into"] = words.symbol(event.into)
    factor = words.factor(symbol)
    if factor != 1.0:
        prices, quantities = _PRICES.get(type(event), ()), _QUANTITIES.get(type(event), ())
        values = {name: getattr(event, name) * factor for name in prices}
        values |= {name: getattr(event, name) / factor for name in quantities if getattr(event, name) is not None}
        changes |= values
    return _replace(event, **changes)


_PRICES: dict[type, tuple[str, ...]] = {
    Filled: ("price", "reference"),
    DividendPaid: ("per_share",),
    Delisted: ("price",),
    Settled: ("price",),
}
_QUANTITIES: dict[type, tuple[str, ...]] = {
    Filled: ("quantity",),
    Rejected: ("quantity",),
    Trimmed: ("asked", "filled"),
    Rested: ("quantity",),
    DividendPaid: ("quantity",),
    SplitApplied: ("quantity",),
    Delisted: ("quantity",),
    Settled: ("quantity",),
    Rolled: ("quantity",),
}


def mask_account(account: AccountState, words: MaskWords) -> AccountState:
    """Return an account as it is shown. Cash, NAV and the value of every position stay what they are."""
    return _replace(
        account,
        positions={
            words.symbol(symbol): _mask_position(position, words) for symbol, position in account.positions.items()
        },
    )


def _mask_position(position: Position, words: MaskWords) -> Position:
    factor = words.factor(position.symbol)
    shown = _replace(position, symbol=words.symbol(position.symbol))
    if factor == 1.0:
        return shown
    return _replace(
        shown,
        quantity=position.quantity / factor,
        sellable=position.sellable / factor,
        cost=position.cost * factor,
        mark=position.mark * factor,
    )


def mask_order(order: Order, words: MaskWords) -> Order:
    return _order(order, words.symbol(order.symbol), words.text, words.factor(order.symbol))


def unmask_order(order: Order, symbol: str, text: Callable[[str], str], factor: float, lot: Instrument) -> Order:
    """Return an agent's order on the real instrument. Where shares are another unit, a number of shares is brought
    back to real ones and, unless that makes whole lots, to the next lot towards zero: an agent cannot know the
    lots of a unit that hides them."""
    real = _order(order, symbol, text, 1.0 / factor)
    if factor == 1.0 or order.unit not in ("shares", "target_shares"):
        return real
    return _replace(real, amount=_whole_lots(real.amount, lot))


def _order(order: Order, symbol: str, text: Callable[[str], str], factor: float) -> Order:
    changed = _replace(order, symbol=symbol, reason=text(order.reason))
    if factor == 1.0:
        return changed
    shares = order.unit in ("shares", "target_shares")
    return _replace(
        changed,
        amount=order.amount / factor if shares else order.amount,
        limit_price=None if order.limit_price is None else order.limit_price * factor,
        stop_price=None if order.stop_price is None else order.stop_price * factor,
    )


def _whole_lots(amount: float, instrument: Instrument) -> float:
    steps = amount / instrument.step
    if math.isclose(steps, round(steps), rel_tol=1e-9, abs_tol=1e-6):
        return round(steps) * instrument.step
    return math.trunc(amount / instrument.lot) * instrument.lot


def change_decision(decision: Decision, order: Callable[[Order], Order], text: Callable[[str], str]) -> Decision:
    return _replace(
        decision,
        orders=tuple(order(item) for item in decision.orders),
        reason=text(decision.reason),
        failures=tuple(_replace(failure, detail=text(failure.detail)) for failure in decision.failures),
    )


NO_NAME = "[name]"
"""Written in place of a real name that an agent used although names are hidden."""
NO_DATE = "[date]"
"""Written in place of a date that is not in the episode or its history, or that an agent used."""
_ALIAS = re.compile(r"(?<![A-Za-z0-9])asset_\d{4,6}(?![0-9])")
_LABEL = re.compile(r"(?<![A-Za-z0-9])day_[+-]\d{1,6}(?![0-9])")
_SHORT = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Gate:
    """One mask at one moment; made by ``Mask.gate``. Without a mask (``bright``) everything passes unchanged. What
    is masked follows from what has come into view by then: a name listed later is unknown to it, so nothing an
    agent is shown depends on the future."""

    def __init__(
        self,
        config: MaskConfig,
        aliases: AliasMap,
        days: DayMap,
        scales: Scales,
        view: MarketView,
        lexicon: Lexicon | None,
    ) -> None:
        self.config = config
        self._aliases, self._days, self._scales, self._view = aliases, days, scales, view
        self._open = not (config.hides_stocks or config.hides_dates)
        self._scrubber = Scrubber(
            lexicon, dates=config.hides_dates, bare=config.bare_dates, years=days.years, today=view.clock // DAY
        )
        # A company that is known but not in the data has no alias.
        self._shown = Words(lambda symbol: aliases.get(symbol) or NO_NAME, self._date_word)
        self._seen: dict[str, str] = {}
        self._own = Words(lambda _: NO_NAME, lambda _: NO_DATE)
        stocks, dates = config.hides_stocks, config.hides_dates
        self._out = FieldRules(
            asset=self._asset_out,
            number=lambda number: number,
            day=self._text_out,
            instant=lambda at: self.instant(at) if dates else at,
            text=self._text_out,
            is_symbol=lambda key: stocks and key in aliases,
            certain=lambda key: stocks and key in aliases and not is_ordinary(key),
        )
        is_alias: Callable[[str], bool] = lambda key: stocks and _ALIAS.fullmatch(key) is not None  # noqa: E731
        self._in = FieldRules(
            asset=self._asset_in,
            number=self._number_in,
            day=self._day_in,
            instant=lambda at: at,
            text=self._text_in,
            is_symbol=is_alias,
            certain=is_alias,
        )
        self._words = MaskWords(self.alias, self._text_out, self._factor)

    @overload
    def outgoing(self, value: str) -> str: ...
    @overload
    def outgoing(self, value: Json) -> Json: ...
    def outgoing(self, value: Json) -> Json:
        """Return a text or a JSON value as the agent may see it. A text is scrubbed; in a JSON value, symbols and
        days are replaced field by field and all other texts are scrubbed. Numbers are never touched. Masking what
        is already masked changes nothing."""
        if self._open:
            return value
        return self._text_out(value) if isinstance(value, str) else walk(value, self._out)

    @overload
    def incoming(self, value: str) -> str: ...
    @overload
    def incoming(self, value: Json) -> Json: ...
    def incoming(self, value: Json) -> Json:
        """Return an agent's text or JSON value in real terms. Real names and dates that the agent wrote itself
        become ``[name]`` and ``[date]`` first: repeated to it later they would be masked, which would tell it the
        alias. Raises :class:`UnknownAlias` when a field for assets or days holds anything but an alias; in other
        texts unknown aliases stay as they are."""
        if self._open:
            return value
        return self._text_in(value) if isinstance(value, str) else walk(value, self._in)

    def error(self, error: BaseException) -> str:
        """Return an error's message as the agent may see it: no traceback, no real name, no real date."""
        text = str(error) if isinstance(error, TradeassayError) or str(error) else type(error).__name__
        return self.outgoing(text)

    def ask(self, request: AskModel) -> AskModel:
        if self._open:
            return request
        return _replace(
            request,
            messages=tuple(
                one if one.role == "assistant" else _replace(one, text=self._text_out(one.text))
                for one in request.messages
            ),
            tools=tuple(
                _replace(tool, description=self._text_out(tool.description), schema=self._text_out(tool.schema))
                for tool in request.tools
            ),
            answer_schema=None if request.answer_schema is None else self._text_out(request.answer_schema),
        )

    def reply(self, reply: ModelReply) -> ModelReply:
        """Return a model's answer in real terms. Texts only: an alias that does not exist stays as it is."""
        if self._open:
            return reply
        calls = tuple(_replace(call, arguments=self._text_in(call.arguments)) for call in reply.calls)
        return _replace(reply, text=self._text_in(reply.text), calls=calls)

    def alias(self, symbol: str) -> str:
        """Return how a real symbol is shown. One that never came into view is ``[name]``."""
        if not self.config.hides_stocks:
            return symbol
        return self._aliases.get(symbol) or (symbol if self._aliases.find(symbol) else NO_NAME)

    def symbol(self, alias: str) -> str:
        """Return the real symbol behind what an agent wrote; raises :class:`UnknownAlias`."""
        return self._aliases.symbol(alias) if self.config.hides_stocks else alias

    def day(self, iso: str) -> str:
        """Return how a real ISO day is shown (``day_+12``, or the day itself)."""
        if not self.config.hides_dates or _LABEL.fullmatch(iso):
            return iso
        return self._days.label((datetime.fromisoformat(iso).replace(tzinfo=UTC) - _EPOCH).days)

    def real_day(self, label: str) -> str:
        """Return the ISO day of what an agent wrote; raises :class:`UnknownAlias`."""
        if not self.config.hides_dates:
            return label
        return (_EPOCH + timedelta(days=self._days.read(label))).strftime("%Y-%m-%d")

    def instant(self, at: int) -> str:
        """Return how a real instant is shown: its day, and its time of day where the config keeps it."""
        if self.config.hides_dates:
            return self._days.instant_label(at, time_of_day=self.config.time_of_day)
        moment = _EPOCH + timedelta(microseconds=at // 1000)
        return moment.strftime("%Y-%m-%d %H:%M" if self.config.time_of_day else "%Y-%m-%d")

    def knows(self, symbol: str) -> bool:
        """Tell whether a real symbol may be shown, as its alias where names are hidden."""
        return not self.config.hides_stocks or symbol in self._aliases

    def text(self, text: str, depth: Depth = "plain", *, also: Sequence[str] = ()) -> str:
        """Return a text without names and dates; ``thorough`` also without weekdays, lone years and months.
        ``also`` are symbols that the text is about: one that is not listed yet becomes ``[name]``."""
        if self._open:
            return text
        for symbol in also:
            if not self.knows(symbol):
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(symbol)}(?![A-Za-z0-9])", NO_NAME, text)
        return self._scrubber.scrub(text, self._shown, depth)

    def event(self, event: Event) -> Event:
        return event if self._open else mask_event(event, self._words)

    def order(self, order: Order) -> Order:
        """Return an order as the agent may see it (its own earlier one, say)."""
        return order if self._open else mask_order(order, self._words)

    def decision(self, decision: Decision) -> Decision:
        return change_decision(decision, self.order, self._text_out) if not self._open else decision

    def real_order(self, order: Order) -> Order:
        """Return an agent's order on the real instrument; raises :class:`UnknownAlias`."""
        if self._open:
            return order
        symbol = self.symbol(order.symbol)
        if not self._scales.rebases:
            return _replace(order, symbol=symbol, reason=self._text_in(order.reason))
        instrument = self._view.instrument(symbol)
        return unmask_order(order, symbol, self._text_in, self._factor(symbol), instrument)

    def real_decision(self, decision: Decision) -> Decision:
        """Return an agent's decision on real instruments; raises :class:`UnknownAlias`."""
        return change_decision(decision, self.real_order, self._text_in) if not self._open else decision

    def observation(self, observation: Observation, view: MarketView) -> Observation:
        """Return an observation as the agent may see it; ``view`` is the masked view of the same moment."""
        if self._open:
            return observation
        universe = (
            tuple(sorted(map(self.alias, observation.universe)))
            if self.config.hides_stocks
            else observation.universe
        )
        columns = np.fromiter(map(view.column, universe), dtype=np.int64, count=len(universe))
        columns.setflags(write=False)
        return Observation(
            step=observation.step,
            session=self.day(observation.session),
            time=view.clock,
            universe=universe,
            columns=columns,
            view=view,
            account=mask_account(observation.account, self._words),
            rules=observation.rules,
            since_last=tuple(map(self.event, observation.since_last)),
            sessions_left=observation.sessions_left,
        )

    def _text_out(self, text: str) -> str:
        if len(text) > _SHORT:
            return self._scrubber.scrub(text, self._shown)
        # Payloads repeat the same few keys and words hundreds of times.
        shown = self._seen.get(text)
        if shown is None:
            shown = self._seen[text] = self._scrubber.scrub(text, self._shown)
        return shown

    def _asset_out(self, text: str, field: str) -> str:
        if self.config.hides_stocks and self._aliases.find(text) is None:
            return self._aliases.get(text) or self._text_out(text)
        return text if self.config.hides_stocks else self._text_out(text)

    def _date_word(self, hit: DateHit) -> str:
        if hit.day is None:
            return f"[{hit.kind}]"
        shown = self._days.shown_index(hit.day)
        if shown is not None:
            return label_of(shown)
        return self._days.label(hit.day) if self._days.covers(hit.day) else NO_DATE

    def _factor(self, symbol: str) -> float:
        return self._scales.price(self._view, symbol) if self._scales.rebases else 1.0

    def _text_in(self, text: str) -> str:
        if not text:
            return text
        text = self._scrubber.scrub(text, self._own)
        if self.config.hides_stocks and "asset_" in text:
            text = _ALIAS.sub(lambda found: self._aliases.find(found[0]) or found[0], text)
        if self.config.hides_dates and "day_" in text:
            text = _LABEL.sub(self._read_label, text)
        return text

    def _asset_in(self, text: str, field: str) -> str:
        if self.config.hides_stocks and field in NAMED_FIELDS:
            return self._aliases.symbol(text.strip())
        return self._text_in(text)

    def _number_in(self, number: float) -> Json:
        if self.config.hides_stocks:
            raise UnknownAlias(
                "an asset is named by a text", hint="use an asset id exactly as shown, e.g. asset_0007"
            )
        return number

    def _day_in(self, text: str) -> str:
        if self.config.hides_dates and self._scrubber.scrub(text, self._own) != text:
            raise UnknownAlias("that is no day of this episode", hint="write days as they were shown, e.g. day_-3")
        return self._text_in(text)

    def _read_label(self, found: re.Match[str]) -> str:
        try:
            return self.real_day(found[0])
        except UnknownAlias:
            return found[0]
