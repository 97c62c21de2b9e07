"""Encode typed results as masked JSON, and decode a model's JSON into typed arguments.

Decoded arguments have true symbols and days. All traffic with the model passes through this module.
It encodes and decodes :class:`Stock`, :class:`Day` and :class:`Prose`, and the episode's mask
determines their displayed values. These three classes are neither structs nor dataclasses, because
msgspec would encode those as objects.

An error never repeats a word that the model wrote. A guessed name would be masked on its way back,
and the model would learn its alias.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay_bench.benchmarks.error_messages import in_plain_words
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.llm.prompting import unreadable
from tradeassay_bench.masking import Gate, UnknownAlias


class _Masked:
    """A value that is displayed under an alias. ``true`` is the real value."""

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
    """The symbol of a stock. The model sees its alias."""

    __slots__ = ()

    @property
    def symbol(self) -> str:
        return self.true


class Day(_Masked):
    """A calendar day as ISO text. The model sees the masked day."""

    __slots__ = ()

    @property
    def iso(self) -> str:
        return self.true


class Prose(_Masked):
    """An external text, such as news, that may contain a company's name or a date."""

    __slots__ = ()


def rounded(value: float, digits: int = 4) -> float | None:
    """Return ``value`` rounded to ``digits`` decimals, or None if it is not finite."""
    value = float(value)
    return round(value, digits) if math.isfinite(value) else None


def all_rounded(values: Floats, digits: int = 4) -> list[float | None]:
    """Return the numbers of an array, each :func:`rounded`."""
    is_finite = math.isfinite  # looked up once, because this loop is hot
    return [round(value, digits) if is_finite(value) else None for value in values.tolist()]


T = TypeVar("T")

_FIELD_WORDS = frozenset(
    "action actions alias aliases amount analysis asset asset_id board comment confidence_level "
    "count currency "
    "date day description details dims explanation factor id kind limit limit_price lookback name "
    "names note "
    "notes number order order_type overall overall_reasons percentage position position_size price "
    "priority "
    "quantity qty rationale reasoning reasons score shares_to_buy shares_to_sell size status stock "
    "stock_ids "
    "stocks stop_loss strategy summary symbol symbols take_profit target target_price "
    "target_shares "
    "target_weights ticker tickers time top_k total type unit units value volume "
    "weight weights".split()
)
"""Names that models invent for fields."""


class BadArguments(TradeassayError):
    """Arguments that are not JSON or do not match the schema."""


class Wire:
    """The encoder and decoder of one day's traffic with the model."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._encoder = msgspec.json.Encoder(enc_hook=self._shown)
        self._depth: Literal["thorough", "plain"] = (
            "thorough" if gate.config.scrub_news else "plain"
        )
        self._seen: dict[_Masked, str] = {}

    def encode(self, value: object) -> str:
        """Return a result as masked JSON text."""
        return self._encoder.encode(value).decode()

    def stock_id(self, stock: Stock) -> str:
        """Return the alias of a stock."""
        return self.gate.alias(stock.symbol)

    def error(self, error: TradeassayError) -> str:
        """Return an error's message, masked."""
        return self.gate.error(error)

    def decode(
        self,
        raw: str | bytes,
        into: type[T],
        fields: Sequence[str],
        choices: Mapping[str, str] | None = None,
    ) -> T:
        """Return a model's arguments in true terms.

        Raises :class:`BadArguments`, in words for the model, for arguments that are not JSON or do
        not match the schema. Raises :class:`UnknownAlias` for a name or day that is not part of the
        episode.
        """
        try:
            return msgspec.json.decode(raw or "{}", type=into, dec_hook=self._true)
        except msgspec.ValidationError as error:
            words = in_plain_words(
                str(error), fields=fields, choices=choices, may_repeat=self.may_repeat
            )
            raise BadArguments(words) from None
        except UNDECODABLE:
            text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
            raise BadArguments(
                f"the arguments are not one JSON object: {unreadable(text)}"
            ) from None

    def may_repeat(self, word: str) -> bool:
        """Return whether an error may repeat a word that the model wrote.

        Only common names of fields may be repeated. Repeating other words would reveal whether they
        name something in the data. The rule is the same under every mask, so that models under a
        bright mask have no advantage.
        """
        return word.lower() in _FIELD_WORDS

    def _shown(self, value: object) -> str:
        if isinstance(value, Prose):
            return self.gate.text(value.true, self._depth)
        if not isinstance(value, Stock | Day):
            raise TypeError(f"a {type(value).__name__} cannot be part of a result")
        shown = self._seen.get(value)
        if shown is None:
            if isinstance(value, Stock):
                shown = self.gate.alias(value.true)
            else:
                shown = self.gate.day(value.true)
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
