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
    symbol = instrument.symbol.upper().replace("-", ".").replace("/", ".")
    return us_names().get(symbol, ())


def company_name(ticker: str) -> str:
    names = us_names().get(ticker.upper().replace("-", ".").replace("/", "."), ())
    return names[0] if names else ""


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


def board_of(symbol: str) -> Board:
    """Return the board of an A-share code: 60, 00 main; 688, 689 STAR; 300, 301, 302 ChiNext; Beijing BSE; else
    none."""
    code = ashare_code(symbol)
    if code is None:
        return Board.NONE
    digits, market = code.split(".")
    if market == "BJ":
        return Board.BSE
    if market == "SH":
        if digits.startswith(("688", "689")):
            return Board.STAR
        return Board.MAIN if digits.startswith(("60", "900")) else Board.NONE
    if digits.startswith(("300", "301", "302")):
        return Board.CHINEXT
    return Board.MAIN if digits.startswith(("000", "001", "002", "003", "004", "200")) else Board.NONE
