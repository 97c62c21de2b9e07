"""How companies are called: codes of A-shares, and names, former names, nicknames and brands by ticker.

The names are written from general knowledge: many price files know tickers only. A mask that hides stocks in
texts has to know what the companies behind them are called, and whoever checks a mask must not depend on what the
data set happens to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from tradeassay.core.view import Board, Instrument

Spellings = Mapping[str, tuple[str, ...]]


def us_names() -> Spellings:
    return _read("us_stocks.txt")


def cn_names() -> Spellings:
    return _read("cn_stocks.txt")


@cache
def _read(file: str) -> Spellings:
    found: dict[str, tuple[str, ...]] = {}
    for line in (files(__name__) / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            ticker, *spellings = line.split("|")
            found[ticker] = tuple(spellings)
    return found


def is_us(instrument: Instrument) -> bool:
    """Tell whether an instrument is a stock whose ticker may be looked up here."""
    return instrument.kind == "stock" and instrument.currency == "USD"


def is_cn(instrument: Instrument) -> bool:
    """Tell whether an instrument is a stock whose code may be looked up here: six digits and a market."""
    return instrument.kind == "stock" and len(instrument.symbol) >= 6 and instrument.symbol[:6].isdecimal()


def known_names(instrument: Instrument) -> tuple[str, ...]:
    """Return what is known here of an instrument's names; empty for one that is not a known stock."""
    if is_cn(instrument):
        return cn_names().get(instrument.symbol[:6], ())
    if not is_us(instrument):
        return ()
    return us_names().get(us_ticker(instrument.symbol), ())


def company_name(ticker: str) -> str:
    return us_names().get(us_ticker(ticker), ("",))[0]


def us_ticker(symbol: str) -> str:
    """Return a ticker as it is spelled here: ``BRK.B`` for ``brk-b``."""
    return symbol.upper().replace("-", ".").replace("/", ".")


_MARKETS = dict.fromkeys(("sh", "ss", "xshg", "sse"), "SH")
_MARKETS |= dict.fromkeys(("sz", "xshe", "szse"), "SZ") | dict.fromkeys(("bj", "bse"), "BJ")
_AFTER = re.compile(r"(\d{6})[._-]?([a-z]{2,4})", re.IGNORECASE)
_BEFORE = re.compile(r"([a-z]{2,4})[._-]?(\d{6})", re.IGNORECASE)
_BARE = re.compile(r"\d{6}")


def ashare_code(symbol: str) -> str | None:
    """Return ``600000.SH`` for ``SH600000``, ``sh.600000``, ``600000.XSHG`` or ``600000``; None for others."""
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
    """Return the board of an A-share code: 60, 00 main; 688, 689 STAR; 300, 301, 302 ChiNext; Beijing BSE; else
    none."""
    code = ashare_code(symbol) or ""
    for board, market, prefixes in _BOARDS:
        if code.endswith(market) and code.startswith(prefixes):
            return board
    return Board.NONE
