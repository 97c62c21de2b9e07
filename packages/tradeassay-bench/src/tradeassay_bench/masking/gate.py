"""The gate: mask all data sent to an agent, and unmask all data received from it.

In JSON, fields with identifiers or days are recognised by their names. All other texts are
scrubbed. Events, accounts and orders have separate rules. An agent's orders are mapped to real
instruments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np

from tradeassay.core.errors import TradeassayError
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.events import Event, Marked, Rejected
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.time import DAY
from tradeassay_bench.core.view import MarketView
from tradeassay_bench.masking.aliases import AliasMap, DayMap, MaskConfig, UnknownAlias
from tradeassay_bench.masking.dates import DateHit
from tradeassay_bench.masking.lexicon import LISTS, Depth, Lexicon, Scrubber, Words, is_ordinary
from tradeassay_bench.masking.scales import Scales

Value = TypeVar("Value", str, "Json")
Json: TypeAlias = (
    "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
)
"""A JSON value. Tuples count as arrays."""

NAMED_FIELDS = frozenset(LISTS["named_fields"])
"""Fields that contain only symbols, in lower case. An agent's value for them must be an asset."""
ASSET_FIELDS = NAMED_FIELDS | frozenset(LISTS["asset_fields"])
"""Fields whose texts may be symbols."""
KEYED_FIELDS = ASSET_FIELDS | frozenset(LISTS["keyed_fields"])
"""Fields that contain an object whose keys may be symbols."""
DAY_FIELDS = frozenset(LISTS["day_fields"])
"""Fields whose texts are days or instants.

Their whole numbers above 10^17 are instants in nanoseconds.
"""
_FIELD_NAMES = KEYED_FIELDS | DAY_FIELDS
ANY_STEP = 1e-6
"""The displayed lot, step and tick if shares are rescaled. The real ones would reveal the factor.
"""


_replace = msgspec.structs.replace
_PRICES = frozenset(("price", "reference", "per_share"))
_QUANTITIES = frozenset(("quantity", "asked", "filled"))
"""Fields of events that are prices and numbers of shares."""

NO_NAME = "[name]"
"""Replaces a real name that an agent used although names are hidden."""
NO_DATE = "[date]"
"""Replaces a date outside the episode and its history, and a date that an agent used."""
_ALIAS = re.compile(r"(?<![A-Za-z0-9])asset_\d{4,6}(?![0-9])")
_LABEL = re.compile(r"(?<![A-Za-z0-9])day_[+-]\d{1,6}(?![0-9])")
_SHORT = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Gate:
    """One mask at one moment, created by ``Mask.gate``.

    Without a mask (``bright``) all data is unchanged. The gate contains only names that are visible
    so far. A name with a later listing is unknown to it, so the agent's data never depends on the
    future.
    """

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
            lexicon,
            dates=config.hides_dates,
            bare=config.bare_dates,
            years=days.years,
            today=view.clock // DAY,
        )
        # A known company that is not in the data has no alias.
        self._shown = Words(lambda symbol: aliases.get(symbol) or NO_NAME, self._date_word)
        self._seen: dict[str, str] = {}
        self._own = Words(lambda _: NO_NAME, lambda _: NO_DATE)

    def outgoing(self, value: Value) -> Value:
        """Return a text or a JSON value as the agent may see it.

        A text is scrubbed. In a JSON value, symbols and days are replaced field by field and all
        other texts are scrubbed. Numbers are unchanged. Masking a masked value changes nothing.
        """
        if self._open:
            return value
        return self._text_out(value) if isinstance(value, str) else self._walk(value, True)

    def incoming(self, value: Value) -> Value:
        """Return an agent's text or JSON value in real terms.

        Real names and dates in the agent's own text become ``[name]`` and ``[date]`` first. If they
        were later repeated to the agent, they would be masked, which would reveal the alias. Raises
        :class:`UnknownAlias` if a field for assets or days contains anything but an alias. In other
        texts unknown aliases are unchanged.
        """
        if self._open:
            return value
        return self._text_in(value) if isinstance(value, str) else self._walk(value, False)

    def error(self, error: BaseException) -> str:
        """Return an error's message as the agent may see it, without real names and dates."""
        text = (
            str(error) if isinstance(error, TradeassayError) or str(error) else type(error).__name__
        )
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
                _replace(
                    tool,
                    description=self._text_out(tool.description),
                    schema=self._text_out(tool.schema),
                )
                for tool in request.tools
            ),
            answer_schema=None
            if request.answer_schema is None
            else self._text_out(request.answer_schema),
        )

    def reply(self, reply: ModelReply) -> ModelReply:
        """Return a model's answer in real terms. Unknown aliases are unchanged."""
        if self._open:
            return reply
        calls = tuple(
            _replace(call, arguments=self._text_in(call.arguments)) for call in reply.calls
        )
        return _replace(reply, text=self._text_in(reply.text), calls=calls)

    def alias(self, symbol: str) -> str:
        """Return the alias of a real symbol, or ``[name]`` if the symbol was never visible."""
        if not self.config.hides_stocks:
            return symbol
        return self._aliases.get(symbol) or (symbol if self._aliases.find(symbol) else NO_NAME)

    def symbol(self, alias: str) -> str:
        """Return the real symbol of an alias. Raises :class:`UnknownAlias`."""
        return self._aliases.symbol(alias) if self.config.hides_stocks else alias

    def day(self, iso: str) -> str:
        """Return the label of a real ISO day (``day_+12``), or the day itself if dates are
        visible.
        """
        if not self.config.hides_dates or _LABEL.fullmatch(iso):
            return iso
        return self._days.label((datetime.fromisoformat(iso).replace(tzinfo=UTC) - _EPOCH).days)

    def real_day(self, label: str) -> str:
        """Return the real ISO day of a label. Raises :class:`UnknownAlias`."""
        if not self.config.hides_dates:
            return label
        return (_EPOCH + timedelta(days=self._days.read(label))).strftime("%Y-%m-%d")

    def instant(self, at: int) -> str:
        """Return the label of a real instant: its day, and its time of day if the config allows
        it.
        """
        if self.config.hides_dates:
            return self._days.instant_label(at, time_of_day=self.config.time_of_day)
        moment = _EPOCH + timedelta(microseconds=at // 1000)
        return moment.strftime("%Y-%m-%d %H:%M" if self.config.time_of_day else "%Y-%m-%d")

    def knows(self, symbol: str) -> bool:
        """Return whether a real symbol may be displayed (as its alias, if names are hidden)."""
        return not self.config.hides_stocks or symbol in self._aliases

    def text(self, text: str, depth: Depth = "plain", *, also: Sequence[str] = ()) -> str:
        """Return a text without names and dates.

        ``depth="thorough"`` also removes weekdays, and years and months without a day. ``also``
        contains the symbols in the text. Symbols that are not listed yet become ``[name]``.
        """
        if self._open:
            return text
        for symbol in also:
            if not self.knows(symbol):
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(symbol)}(?![A-Za-z0-9])", NO_NAME, text)
        return self._scrubber.scrub(text, self._shown, depth)

    def event(self, event: Event) -> Event:
        """Return a masked event: alias, masked detail, rescaled quantities and prices."""
        symbol = getattr(event, "symbol", None)
        if isinstance(event, Marked) and not self._open:
            marks = {
                self.alias(name): mark * self._factor(name) for name, mark in event.marks.items()
            }
            return _replace(event, stale=tuple(map(self.alias, event.stale)), marks=marks)
        if symbol is None or self._open:
            return event
        changes: dict[str, object] = {"symbol": self.alias(symbol)}
        if isinstance(event, Rejected):
            changes["detail"] = self._text_out(event.detail)
        factor = self._factor(symbol)
        for name in event.__struct_fields__ if factor != 1.0 else ():
            value = getattr(event, name)
            if name in _PRICES:
                changes[name] = value * factor
            elif name in _QUANTITIES and value is not None:
                changes[name] = value / factor
        return _replace(event, **changes)

    def order(self, order: Order) -> Order:
        """Return an order as the agent may see it, for example its own earlier order."""
        if self._open:
            return order
        return _rescaled(
            order,
            self.alias(order.symbol),
            self._text_out(order.reason),
            self._factor(order.symbol),
        )

    def real_order(self, order: Order) -> Order:
        """Return an agent's order on the real instrument.

        If shares are rescaled, a number of shares is converted back and rounded down to a whole
        lot, because an agent cannot know the real lots. Raises :class:`UnknownAlias`.
        """
        if self._open:
            return order
        symbol = self.symbol(order.symbol)
        factor = self._factor(symbol)
        real = _rescaled(order, symbol, self._text_in(order.reason), 1.0 / factor)
        if factor == 1.0 or order.unit not in ("shares", "target_shares"):
            return real
        instrument = self._view.instrument(symbol)
        steps = real.amount / instrument.step
        if math.isclose(steps, round(steps), rel_tol=1e-9, abs_tol=1e-6):
            return _replace(real, amount=round(steps) * instrument.step)
        return _replace(real, amount=math.trunc(real.amount / instrument.lot) * instrument.lot)

    def decision(self, decision: Decision) -> Decision:
        return self._changed(decision, self.order, self._text_out)

    def real_decision(self, decision: Decision) -> Decision:
        """Return an agent's decision on real instruments. Raises :class:`UnknownAlias`."""
        return self._changed(decision, self.real_order, self._text_in)

    def _changed(
        self, decision: Decision, order: Callable[[Order], Order], text: Callable[[str], str]
    ) -> Decision:
        if self._open:
            return decision
        return _replace(
            decision,
            orders=tuple(map(order, decision.orders)),
            reason=text(decision.reason),
            failures=tuple(
                _replace(failure, detail=text(failure.detail)) for failure in decision.failures
            ),
        )

    def observation(self, observation: Observation, view: MarketView) -> Observation:
        """Return an observation as the agent may see it.

        ``view`` is the masked view of the same moment. Cash, NAV and the value of every position do
        not change.
        """
        if self._open:
            return observation
        universe = observation.universe
        if self.config.hides_stocks:
            universe = tuple(sorted(map(self.alias, universe)))
        columns = np.fromiter(map(view.column, universe), dtype=np.int64, count=len(universe))
        columns.setflags(write=False)
        positions = {}
        for symbol, position in observation.account.positions.items():
            alias, factor = self.alias(symbol), self._factor(symbol)
            shown = _replace(position, symbol=alias)
            positions[alias] = shown
            if factor != 1.0:
                positions[alias] = _replace(
                    shown,
                    quantity=position.quantity / factor,
                    sellable=position.sellable / factor,
                    cost=position.cost * factor,
                    mark=position.mark * factor,
                )
        return Observation(
            step=observation.step,
            session=self.day(observation.session),
            time=view.clock,
            universe=universe,
            columns=columns,
            view=view,
            account=_replace(observation.account, positions=positions),
            rules=observation.rules,
            since_last=tuple(map(self.event, observation.since_last)),
            sessions_left=observation.sessions_left,
        )

    def _walk(self, value: Json, outgoing: bool, field: str = "") -> Json:
        """Replace symbols, days and texts in a JSON value, depending on their field."""
        text = self._text_out if outgoing else self._text_in
        if isinstance(value, str):
            if field in ASSET_FIELDS:
                return self._asset_out(value) if outgoing else self._asset_in(value, field)
            return self._day_in(value) if field in DAY_FIELDS and not outgoing else text(value)
        if isinstance(value, Mapping):
            symbols = {key for key in value if self._is_symbol(key, outgoing)}
            keyed = field in KEYED_FIELDS or len(symbols) == len(value)
            result: dict[str, Json] = {}
            for key, item in value.items():
                # An ordinary word counts as a symbol only among other symbols.
                if key in symbols and (keyed or not outgoing or not is_ordinary(key)):
                    shown = self._asset_out(key) if outgoing else self._asset_in(key, "symbol")
                else:
                    shown = key if key.lower() in _FIELD_NAMES else text(key)
                result[shown] = self._walk(item, outgoing, key.lower())
            return result
        if isinstance(value, list | tuple):
            return [self._walk(item, outgoing, field) for item in value]
        if value is None or isinstance(value, bool):
            return value
        if field in NAMED_FIELDS and not outgoing and self.config.hides_stocks:
            problem = "an asset is named by a text"
            raise UnknownAlias(problem, hint="use an asset id exactly as shown, e.g. asset_0007")
        instant = outgoing and self.config.hides_dates and field in DAY_FIELDS
        return (
            self.instant(value) if instant and isinstance(value, int) and value > 10**17 else value
        )

    def _is_symbol(self, key: str, outgoing: bool) -> bool:
        if not self.config.hides_stocks:
            return False
        return key in self._aliases if outgoing else _ALIAS.fullmatch(key) is not None

    def _text_out(self, text: str) -> str:
        if len(text) > _SHORT:
            return self._scrubber.scrub(text, self._shown)
        # Payloads repeat the same few keys and words hundreds of times.
        shown = self._seen.get(text)
        if shown is None:
            shown = self._scrubber.scrub(text, self._shown)
            self._seen[text] = shown
        return shown

    def _asset_out(self, text: str) -> str:
        if not self.config.hides_stocks:
            return self._text_out(text)
        return text if self._aliases.find(text) else self._aliases.get(text) or self._text_out(text)

    def _date_word(self, hit: DateHit) -> str:
        if hit.day is None:
            return f"[{hit.kind}]"
        return self._days.label_in_text(hit.day) or NO_DATE

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

    def _day_in(self, text: str) -> str:
        if self.config.hides_dates and self._scrubber.scrub(text, self._own) != text:
            raise UnknownAlias(
                "that is no day of this episode", hint="write days as they were shown, e.g. day_-3"
            )
        return self._text_in(text)

    def _read_label(self, found: re.Match[str]) -> str:
        try:
            return self.real_day(found[0])
        except UnknownAlias:
            return found[0]


def _rescaled(order: Order, symbol: str, reason: str, factor: float) -> Order:
    changed = _replace(order, symbol=symbol, reason=reason)
    if factor == 1.0:
        return changed
    shares = order.unit in ("shares", "target_shares")
    return _replace(
        changed,
        amount=order.amount / factor if shares else order.amount,
        limit_price=None if order.limit_price is None else order.limit_price * factor,
        stop_price=None if order.stop_price is None else order.stop_price * factor,
    )
