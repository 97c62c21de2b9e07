"""The one way in and out: typed results become masked JSON, a model's JSON becomes typed arguments in true terms.

A :class:`Stock`, :class:`Day` or :class:`Prose` is encoded and decoded here and nowhere else; the episode's mask
decides what it turns into. (They are neither structs nor dataclasses, because those would be encoded as objects.)
An error never repeats a word the model wrote: on its way back a guessed name would be masked, which would tell the
model its alias.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tradeassay.benchmarks.error_messages import in_plain_words
from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.core.time import parse_day
from tradeassay.core.view import Floats
from tradeassay.llm.prompting import unreadable
from tradeassay.masking import Gate, UnknownAlias


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


def rounded(value: float, digits: int = 4) -> float | None:
    """Return ``value`` rounded to ``digits`` decimals, or None when it is not finite."""
    value = float(value)
    return round(value, digits) if math.isfinite(value) else None


def all_rounded(values: Floats, digits: int = 4) -> list[float | None]:
    """Return every number of an array :func:`rounded`."""
    known = math.isfinite
    return [round(value, digits) if known(value) else None for value in values.tolist()]


T = TypeVar("T")

_FIELD_WORDS = frozenset(
    "action actions alias aliases amount analysis asset asset_id board comment confidence_level count currency "
    "date day description details dims explanation factor id kind limit limit_price lookback name names note "
    "notes number order order_type overall overall_reasons percentage position position_size price priority "
    "quantity qty rationale reasoning reasons score shares_to_buy shares_to_sell size status stock stock_ids "
    "stocks stop_loss strategy summary symbol symbols take_profit target target_price target_shares "
    "target_weights ticker tickers time top_k total type unit units value volume weight weights".split()
)
"""What models call fields that do not exist."""


class BadArguments(TradeassayError):
    """Arguments that are not JSON or do not fit the schema."""


class Wire:
    """The traffic with the model on one day."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._encoder = msgspec.json.Encoder(enc_hook=self._shown)
        self._depth = gate.config.scrub_news
        self._seen: dict[str, str] = {}
        self._stocks: dict[str, str] = {}

    def encode(self, value: object) -> str:
        """Return a result as the model may see it, as JSON text."""
        return self._encoder.encode(value).decode()

    def stock_id(self, stock: Stock) -> str:
        """Return a stock's shown name."""
        return self.gate.alias(stock.symbol)

    def error(self, error: TradeassayError) -> str:
        """Return an error's message, masked."""
        return self.gate.error(error)

    def decode(
        self, raw: str | bytes, into: type[T], fields: Sequence[str], choices: Mapping[str, str] | None = None
    ) -> T:
        """Return arguments in true terms.

        Raises :class:`BadArguments` for arguments that are not JSON or break the schema, in plain words that name
        an unknown field, and :class:`UnknownAlias` for a name or day that the episode does not have.
        """
        try:
            return msgspec.json.decode(raw or "{}", type=into, dec_hook=self._true)
        except msgspec.ValidationError as error:
            words = in_plain_words(str(error), fields=fields, choices=choices, may_repeat=self.may_repeat)
            raise BadArguments(words) from None
        except UNDECODABLE:
            said = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
            raise BadArguments(f"the arguments are not one JSON object: {unreadable(said)}") from None

    def may_repeat(self, word: str) -> bool:
        """Tell whether a word of the model's may be said back to it.

        Only words that fields are called by, under every mask: whether any other word comes back would tell the
        model whether it names something in the data, and a bright model must not be helped where a blinded one
        is not.
        """
        return word.lower() in _FIELD_WORDS

    def _shown(self, value: object) -> str:
        if type(value) is Stock:
            shown = self._stocks.get(value.symbol)
            if shown is None:
                shown = self._stocks[value.symbol] = self.gate.alias(value.symbol)
            return shown
        if isinstance(value, Day):
            shown = self._seen.get(value.iso)
            if shown is None:
                shown = self._seen[value.iso] = self.gate.day(value.iso)
            return shown
        if isinstance(value, Prose):
            return self.gate.text(value.text, "thorough" if self._depth else "plain")
        raise TypeError(f"a {type(value).__name__} has no place in a result")

    def _true(self, kind: type, value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("Expected `str`")
        if kind is Stock:
            return Stock(self.gate.symbol(value.strip()))
        if kind is Day:
            return Day(self._real_day(value.strip()))
        raise TypeError(f"a {kind.__name__} cannot be read")

    def _real_day(self, text: str) -> str:
        iso = self.gate.real_day(text)
        try:
            return parse_day(iso).isoformat()
        except UserError:
            raise UnknownAlias("that is no day", hint="write days as they were shown") from None
