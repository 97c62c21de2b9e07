"""Look up company names by ticker, and the codes of A-shares.

The lists contain names, former names, nicknames and brands, written from general knowledge. Many
price files contain only tickers. A mask that hides stocks in texts needs the names of the
companies, and a check of that mask must not depend on the names in the dataset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from tradeassay_bench.core.view import Board, Instrument

Spellings = Mapping[str, tuple[str, ...]]


def us_names() -> Spellings:
    """Return the known names of US companies by ticker, the main name first."""
    return _read("us_stocks.txt")


def cn_names() -> Spellings:
    """Return the known names of Chinese companies by six-digit code, the main name first."""
    return _read("cn_stocks.txt")


@cache
def _read(file: str) -> Spellings:
    names: dict[str, tuple[str, ...]] = {}
    for line in (files(__name__) / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            ticker, *spellings = line.split("|")
            names[ticker] = tuple(spellings)
    return names


def is_us(instrument: Instrument) -> bool:
    """Return whether an instrument is a stock in US dollars, whose ticker can be looked up."""
    return instrument.kind == "stock" and instrument.currency == "USD"


def is_cn(instrument: Instrument) -> bool:
    """Return whether an instrument is a stock whose symbol starts with a six-digit A-share code."""
    return (
        instrument.kind == "stock"
        and len(instrument.symbol) >= 6
        and instrument.symbol[:6].isdecimal()
    )


def known_names(instrument: Instrument) -> tuple[str, ...]:
    """Return all known names of an instrument. The tuple is empty for an unknown stock."""
    if is_cn(instrument):
        return cn_names().get(instrument.symbol[:6], ())
    if not is_us(instrument):
        return ()
    return us_names().get(us_ticker(instrument.symbol), ())


def company_name(ticker: str) -> str:
    """Return the main name of a US company, or an empty string for an unknown ticker."""
    return us_names().get(us_ticker(ticker), ("",))[0]


def us_ticker(symbol: str) -> str:
    """Return a ticker in the spelling of our lists: ``BRK.B`` for ``brk-b``."""
    return symbol.upper().replace("-", ".").replace("/", ".")


_MARKETS = dict.fromkeys(("sh", "ss", "xshg", "sse"), "SH")
_MARKETS |= dict.fromkeys(("sz", "xshe", "szse"), "SZ") | dict.fromkeys(("bj", "bse"), "BJ")
_AFTER = re.compile(r"(\d{6})[._-]?([a-z]{2,4})", re.IGNORECASE)
_BEFORE = re.compile(r"([a-z]{2,4})[._-]?(\d{6})", re.IGNORECASE)
_BARE = re.compile(r"\d{6}")


def ashare_code(symbol: str) -> str | None:
    """Return an A-share code in the form ``600000.SH``, or None for any other symbol.

    Accepts ``SH600000``, ``sh.600000``, ``600000.XSHG`` and ``600000``. The market of a bare code
    follows from its first digits.
    """
    if match := _AFTER.fullmatch(symbol):
        digits, market = match[1], _MARKETS.get(match[2].lower())
    elif match := _BEFORE.fullmatch(symbol):
        digits, market = match[2], _MARKETS.get(match[1].lower())
    elif _BARE.fullmatch(symbol):
        digits, market = symbol, "SH" if symbol.startswith(("5", "6", "9")) else "SZ"
        market = "BJ" if symbol.startswith(("4", "8", "92")) else market
    else:
        return None
    return None if market is None else f"{digits}.{market}"


_BOARDS: tuple[tuple[Board, str, tuple[str, ...]], ...] = (
    (Board.BSE, ".BJ", ("",)),
    (Board.STAR, ".SH", ("688", "689")),
    (Board.MAIN, ".SH", ("60", "900")),
    (Board.CHINEXT, ".SZ", ("300", "301", "302")),
    (Board.MAIN, ".SZ", ("000", "001", "002", "003", "004", "200")),
)


def board_of(symbol: str) -> Board:
    """Return the board of an A-share code, or ``Board.NONE`` for any other symbol.

    The first digits decide: 60 and 00 are the main board, 688 and 689 are STAR, 300 to 302 are
    ChiNext. Every Beijing code belongs to the BSE.
    """
    code = ashare_code(symbol) or ""
    for board, market, prefixes in _BOARDS:
        if code.endswith(market) and code.startswith(prefixes):
            return board
    return Board.NONE
