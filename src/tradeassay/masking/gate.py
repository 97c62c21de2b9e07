"""The gate: all traffic with an agent passes through it, masked on the way out and unmasked on the way in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import overload

import msgspec
import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import TradeassayError
from tradeassay.core.events import Event
from tradeassay.core.orders import Decision, Order
from tradeassay.core.time import DAY
from tradeassay.core.view import MarketView
from tradeassay.data.dates import DateHit
from tradeassay.masking import records
from tradeassay.masking.aliases import AliasMap, DayMap, MaskConfig, UnknownAlias, label_of
from tradeassay.masking.lexicon import Depth, Lexicon, Scrubber, Words, is_ordinary
from tradeassay.masking.records import NAMED_FIELDS, FieldRules, Json, walk
from tradeassay.masking.scales import Scales

NO_NAME = "[name]"
"""Written in place of a real name that an agent used although names are hidden."""
NO_DATE = "[date]"
"""Written in place of a date that is not in the episode or its history, or that an agent used."""
_ALIAS = re.compile(r"(?<![A-Za-z0-9])asset_\d{4,6}(?![0-9])")
_LABEL = re.compile(r"(?<![A-Za-z0-9])day_[+-]\d{1,6}(?![0-9])")
_SHORT = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_replace = msgspec.structs.replace


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
        self._words = records.MaskWords(self.alias, self._text_out, self._factor)

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
        return event if self._open else records.mask_event(event, self._words)

    def order(self, order: Order) -> Order:
        """Return an order as the agent may see it (its own earlier one, say)."""
        return order if self._open else records.mask_order(order, self._words)

    def decision(self, decision: Decision) -> Decision:
        return records.change_decision(decision, self.order, self._text_out) if not self._open else decision

    def real_order(self, order: Order) -> Order:
        """Return an agent's order on the real instrument; raises :class:`UnknownAlias`."""
        if self._open:
            return order
        symbol = self.symbol(order.symbol)
        if not self._scales.rebases:
            return _replace(order, symbol=symbol, reason=self._text_in(order.reason))
        instrument = self._view.instrument(symbol)
        return records.unmask_order(order, symbol, self._text_in, self._factor(symbol), instrument)

    def real_decision(self, decision: Decision) -> Decision:
        """Return an agent's decision on real instruments; raises :class:`UnknownAlias`."""
        return records.change_decision(decision, self.real_order, self._text_in) if not self._open else decision

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
            account=records.mask_account(observation.account, self._words),
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
