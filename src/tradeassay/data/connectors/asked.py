"""What every connector is asked: which symbols, from when to when; and how it words its answers."""

from __future__ import annotations

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.time import SECOND, Clock, iso, parse_day
from tradeassay.data.source import SourceConfig


class ConnectorConfig(SourceConfig, frozen=True, kw_only=True):
    """Symbols and the days wanted, both ends included; ``last`` None means the last session that is over.

    A symbol whose bars do not reach from its listing (or ``first``) to ``last`` is refused unless
    ``allow_partial`` is set; then it counts as listed and delisted where its bars begin and end, and the panel
    says so. ``name`` is the panel's name; empty means the source's.
    """

    first: str
    symbols: tuple[str, ...] = ()
    last: str | None = None
    allow_partial: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        symbols: object = self.symbols
        if isinstance(symbols, str):
            raise UserError(f"symbols is the text '{symbols}'", mend=f"write ('{symbols}',)")
        first = parse_day(self.first)
        if self.last is not None and parse_day(self.last) < first:
            raise UserError(f"last {self.last} lies before first {self.first}", mend="swap them")
        refuse_doubles(self.symbols)


def refuse_doubles(symbols: tuple[str, ...]) -> None:
    """Raise :class:`UserError` when a symbol is named twice."""
    twice = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
    if twice:
        raise UserError(f"asked twice for {', '.join(twice)}", mend="name each symbol once")


def need_symbols(config: ConnectorConfig, example: str) -> None:
    """Raise :class:`UserError` when no symbol was named."""
    if not config.symbols:
        raise UserError("no symbols to fetch", mend=f"name at least one, e.g. {example}")


def query_text(config: ConnectorConfig) -> str:
    """Return the request as canonical JSON, so that somebody can ask again."""
    return canonical_json(config).decode()


def retrieved(clock: Clock) -> str:
    """Return the time of retrieval, to the second."""
    return iso(clock.now() // SECOND * SECOND)


def changed_format(vendor: str, what: str, detail: str, package: str) -> SourceError:
    """Return the error for an answer that is not in the shape its connector knows."""
    return SourceError(
        f"{vendor} answered {what} in another format than expected: {detail}",
        mend=f"pip install -U {package}; if that does not help, the connector needs an update",
    )


def empty_answer(vendor: str, symbol: str, first: str, last: str, reason: str = "") -> SourceError:
    """Return the error for a symbol of which a vendor sent nothing."""
    return SourceError(
        f"{vendor} has no bars of {symbol} from {first} to {last}" + (f": {reason}" if reason else ""),
        mend="check the symbol and the days, or leave it out",
    )
