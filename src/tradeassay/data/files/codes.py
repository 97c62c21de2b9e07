"""A-share codes in the spellings vendors use, and the board a code belongs to."""

from __future__ import annotations

import re

from tradeassay.core.instruments import Board

_MARKETS = {
    "sh": "SH", "ss": "SH", "xshg": "SH", "sse": "SH",
    "sz": "SZ", "xshe": "SZ", "szse": "SZ",
    "bj": "BJ", "bse": "BJ",
}  # fmt: skip
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
        digits, market = symbol, _market_of(symbol)
    else:
        return None
    return None if market is None else f"{digits}.{market}"


def _market_of(digits: str) -> str:
    if digits.startswith(("4", "8", "92")):
        return "BJ"
    return "SH" if digits.startswith(("5", "6", "9")) else "SZ"


def board_of(symbol: str) -> Board:
    """Return the listing board of an A-share code, :attr:`Board.NONE` for anything else.

    60, 00: main; 688, 689: STAR; 300, 301, 302: ChiNext; Beijing: BSE. Indices and funds have no board.
    """
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
