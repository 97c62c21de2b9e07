"""How companies are called: names, former names, nicknames and brands by ticker, written from general knowledge.

Many price files know tickers only. A mask that hides stocks in texts has to know what the companies behind them
are called, and whoever checks a mask must not depend on what the data set happens to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from tradeassay.core.instruments import Instrument

Spellings = Mapping[str, tuple[str, ...]]


@cache
def us_names() -> Spellings:
    """Return the spellings of every US company known here by its ticker, the company's own name first."""
    return _read("us_stocks.txt")


@cache
def cn_names() -> Spellings:
    """Return further spellings, Chinese and English, of large Chinese companies by the code of their A-share."""
    return _read("cn_stocks.txt")


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
    """Return a US company's name, empty when it is not known."""
    names = us_names().get(ticker.upper().replace("-", ".").replace("/", "."), ())
    return names[0] if names else ""
