"""The one way in and out: typed results become masked JSON, a model's JSON becomes typed arguments in true terms.

A :class:`Stock`, :class:`Day` or :class:`Prose` is encoded and decoded here and nowhere else; the episode's mask
decides what it turns into. (They are neither structs nor dataclasses, because those would be encoded as objects.)
An error never repeats a word the model wrote: on its way back a guessed name would be masked, which would tell the
model its alias.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from tradeassay.benchmarks.error_messages import in_plain_words
from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.core.time import parse_day
from tradeassay.core.view import Floats
from tradeassay.llm.prompting import unreadable
from tradeassay.masking import Gate, UnknownAlias


class _Masked:
    """Something that is shown under another name; ``true`` is the real one."""

    __slots__ = ("true",)

    def __init__(self, true: str) -> None:
        self.true = true

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.true == self.true

    def __hash__(self) -> int:
        return hash(self.true)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.true!r})"


class Stock(_Masked):
    """A symbol."""

    __slots__ = ()

    @property
    def symbol(self) -> str:
        return self.true


class Day(_Masked):
    """A calendar day, ISO."""

    __slots__ = ()

    @property
    def iso(self) -> str:
        return self.true


class Prose(_Masked):
    """A text from outside (news, say) that may name a company or a date."""

    __slots__ = ()


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
        self._depth: Literal["thorough", "plain"] = "thorough" if gate.config.scrub_news else "plain"
        self._seen: dict[_Masked, str] = {}

    def encode(self, value: object) -> str:
        """Return a result as the model may see it, as JSON text."""
        return self._encoder.encode(value).decode()

    def stock_id(self, stock: Stock) -> str:
        return self.gate.alias(stock.symbol)

    def error(self, error: TradeassayError) -> str:
        """Return an error's message, masked."""
        return self.gate.error(error)

    def decode(
        self, raw: str | bytes, into: type[T], fields: Sequence[str], choices: Mapping[str, str] | None = None
    ) -> T:
        """Return arguments in true terms.

        Raises :class:`BadArguments` for arguments that are not JSON or break the schema, in plain words that name
        an unknown field, and :class:`UnknownAlias` for a name or day that the episode does not have."""
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
        is not."""
        return word.lower() in _FIELD_WORDS

    def _shown(self, value: object) -> str:
        if isinstance(value, Prose):
            return self.gate.text(value.true, self._depth)
        if not isinstance(value, Stock | Day):
            raise TypeError(f"a {type(value).__name__} has no place in a result")
        shown = self._seen.get(value)
        if shown is None:
            shown = self.gate.alias(value.true) if isinstance(value, Stock) else self.gate.day(value.true)
            self._seen[value] = shown
        return shown

    def _true(self, kind: type, value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("Expected `str`")
        if kind is Stock:
            return Stock(self.gate.symbol(value.strip()))
        assert kind is Day
        try:
            return Day(parse_day(self.gate.real_day(value.strip())).isoformat())
        except UserError:
            raise UnknownAlias("that is no day", hint="write days as they were shown") from None
