"""Search texts for names and dates that a mask should have hidden.

The module shares no search code with the mask. It lists all spellings of the truth and searches for
them. Tests of the data sent to agents and audits of recorded dialogues use it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain
from typing import Literal

from tradeassay.tables.dates import ENGLISH_MONTHS
from tradeassay_bench.core.time import DAY
from tradeassay_bench.core.view import MarketView
from tradeassay_bench.data.names import known_names
from tradeassay_bench.masking.aliases import MaskConfig
from tradeassay_bench.masking.gate import ASSET_FIELDS, Json
from tradeassay_bench.masking.lexicon import (
    CHINESE,
    FOLD,
    chinese_terms,
    core_of,
    is_ordinary,
    is_telling,
)

Kind = Literal["symbol", "name", "date"]
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Leak:
    """A real name or date in a text, with the surrounding words."""

    kind: Kind
    truth: str
    where: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The names and days that must not be visible.

    ``days`` contains ISO days. ``spellings`` contains texts that are searched exactly as written.
    """

    symbols: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    chinese: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, view: MarketView, config: MaskConfig, *, history: int = 60, ahead: int = 30
    ) -> Truth:
        """Return the names and days that a mask must hide at the moment of a true view.

        The days are all calendar days from ``history`` sessions before the present to ``ahead``
        days after it.
        """
        found: dict[str, tuple[str, ...]] = {}
        if config.hides_stocks:
            instruments = [view.instrument(symbol) for symbol in view.symbols]
            # A fund has the name of its index, which may be displayed.
            named = [
                item
                for item in instruments
                if item.kind != "index" and item.name not in ("", item.symbol)
            ]
            found["symbols"] = view.symbols
            found["names"] = tuple(item.name for item in named if not CHINESE.search(item.name))
            found["chinese"] = tuple(
                dict.fromkeys(spelling for spelling, _ in chinese_terms(instruments))
            )
            # Names from our tables, because a text may use names that the data set lacks.
            found["spellings"] = tuple(
                chain.from_iterable(known_names(item) for item in instruments)
            )
        if config.hides_dates:
            sessions = view.sessions(history)
            today = view.clock // DAY
            first = int(sessions[0].astype("datetime64[D]").astype(int)) if sessions.size else today
            days = range(first, today + ahead)
            found["days"] = tuple((_EPOCH + timedelta(days=day)).isoformat() for day in days)
        return cls(**found)


def find_leaks(value: Json, truth: Truth) -> list[Leak]:
    """Return every real symbol, company name and date in a text or a JSON value.

    All spellings are found, as whole tokens. A ticker that is also an ordinary word is found only
    if it is written as a ticker, or in a field for identifiers.
    """
    return list(_scanner(truth).json(value))


class _Scanner:
    """Searches texts and JSON values for the names and days of one truth."""

    def __init__(self, truth: Truth) -> None:
        self._symbols = frozenset(truth.symbols)
        plain: list[str] = []
        for symbol in truth.symbols:
            if not is_ordinary(symbol):
                plain.extend(_symbol_forms(symbol))
        odd = [symbol for symbol in truth.symbols if is_ordinary(symbol)]
        self._chinese = (
            re.compile("|".join(map(re.escape, truth.chinese))) if truth.chinese else None
        )
        self._dates: dict[str, str] = {}
        for day in truth.days:
            self._dates |= {form.lower(): day for form in date_forms(day)}
        self._patterns: tuple[tuple[Kind, re.Pattern[str] | None], ...] = (
            ("symbol", _whole(plain, re.IGNORECASE if all(len(word) > 3 for word in plain) else 0)),
            ("symbol", _written_tickers(odd)),
            ("name", _whole(_name_forms(truth.names), 0)),
            ("name", _whole(_spelling_forms(truth.spellings), 0)),
            ("date", _whole(self._dates, re.IGNORECASE)),
        )

    def text(self, text: str) -> Iterator[Leak]:
        """Yield the leaks in a text."""
        if "\\" in text:
            try:
                text = (
                    json.dumps(json.loads(text), ensure_ascii=False)
                    .replace("\\n", "  ")
                    .replace("\\t", "  ")
                )
            except (ValueError, RecursionError):  # not JSON, or nested too deeply
                text = re.sub(r"\\[nrt]", "  ", text)
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text).translate(FOLD)
            close = re.sub(r"[\s·・*_-]", "", text)
            for found in self._chinese.finditer(close) if self._chinese is not None else ():
                yield Leak("name", found[0], _around(close, found))
        for kind, pattern in self._patterns:
            for found in pattern.finditer(text) if pattern is not None else ():
                real = found[found.lastindex or 0]
                yield Leak(kind, self._dates.get(real.lower(), real), _around(text, found))

    def json(self, value: Json, field: str = "") -> Iterator[Leak]:
        """Yield the leaks in a JSON value. ``field`` is the name of the field that contains it."""
        if isinstance(value, str):
            if field.lower() in ASSET_FIELDS and value in self._symbols:
                yield Leak("symbol", value, f"{field}: {value}")
            else:
                yield from self.text(value)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield from self.text(key)
                yield from self.json(item, key)
        elif isinstance(value, list | tuple):
            for item in value:
                yield from self.json(item, field)


_scanner = lru_cache(maxsize=16)(_Scanner)


def _whole(words: Iterable[str], flags: int) -> re.Pattern[str] | None:
    longest = sorted(dict.fromkeys(words), key=len, reverse=True)
    if not longest:
        return None
    return re.compile(
        r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, longest)) + r")(?![A-Za-z0-9])", flags
    )


def _written_tickers(words: list[str]) -> re.Pattern[str] | None:
    if not words:
        return None
    any_of = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    market = r"(?:NYSE|NASDAQ|Nasdaq|[Tt]icker|[Ss]ymbol)\s*[:=]\s*"
    forms = [
        f"{before}({any_of}){after}"
        for before, after in (("[$#]", ""), (r"\(", r"\)"), (market, ""))
    ]
    forms += [f"{before}({any_of}){after}" for before, after in ('""', "''", "“”")]
    return re.compile("(?:" + "|".join(forms) + r")(?![A-Za-z0-9])")


def _symbol_forms(symbol: str) -> Iterator[str]:
    yield symbol
    digits = re.match(r"(\d{6})(?:\.[A-Z]+)?$", symbol)
    if digits:
        yield digits[1]
        for market in ("SH", "SZ", "BJ", "sh", "sz", "bj"):
            yield f"{digits[1]}.{market}"
            yield f"{market}{digits[1]}"
            yield f"{market}.{digits[1]}"
    elif re.search(r"[./-]", symbol):
        yield re.sub(r"[./-]", "-", symbol)
        yield re.sub(r"[./-]", ".", symbol)


def _name_forms(names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    counts = Counter(chain.from_iterable(set(core_of(name)) for name in names))
    for name in names:
        if " " in name:
            yield name
            yield name.upper()
        for word in re.findall(r"[A-Za-zÀ-ɏ]+", name):
            low = word.lower()
            if low in core_of(name) and is_telling(low) and counts[low] <= 3:
                yield word if word[0].isupper() else word.capitalize()
                yield word.upper()


def _spelling_forms(spellings: Iterable[str]) -> Iterator[str]:
    """Yield variants of spellings: in capitals, and with different apostrophes and hyphens."""
    for spelling in spellings:
        for form in {
            spelling,
            spelling.replace("'", "’"),
            spelling.replace("'", ""),
            spelling.replace("-", " "),
        }:
            yield form
            if len(form) > 4 and not is_ordinary(form):
                yield form.upper()
                if " " not in form and len(form) >= 7:
                    yield form.lower()


def date_forms(iso: str) -> tuple[str, ...]:
    """Return the spellings of a day: ISO, compact, Chinese, US and English."""
    day = date.fromisoformat(iso)
    y, m, d = day.year, day.month, day.day
    long, short = ENGLISH_MONTHS[m - 1], ENGLISH_MONTHS[m - 1][:3]
    nth = f"{d}{'th' if 10 <= d % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(d % 10, 'th')}"
    forms = [
        iso,
        f"{y}/{m:02d}/{d:02d}",
        f"{y}/{m}/{d}",
        f"{y}.{m:02d}.{d:02d}",
        f"{y}{m:02d}{d:02d}",
        f"{y}-{m}-{d}",
    ]
    forms += [f"{y}年{m}月{d}日", f"{y}年{m:02d}月{d:02d}日", f"{y}年{m}月{d}号"]
    forms += [f"{m}月{d}日", f"{m:02d}月{d:02d}日", f"{m}月{d}号"]
    forms += [
        f"{m}/{d}/{y}",
        f"{m:02d}/{d:02d}/{y}",
        f"{m}/{d}/{y % 100:02d}",
        f"{m:02d}-{d:02d}-{y}",
    ]
    for month in (long, short, f"{short}."):
        forms += [
            f"{month} {d}, {y}",
            f"{month} {d} {y}",
            f"{month} {nth}, {y}",
            f"{d} {month} {y}",
        ]
        forms += [
            f"{nth} {month} {y}",
            f"{month} {d}",
            f"{month} {nth}",
            f"{d} {month}",
            f"{month} {d:02d}",
        ]
        forms += [f"{month} {d:02d}, {y}", f"{d}-{month}-{y}", f"{d:02d} {month} {y}"]
    return tuple(dict.fromkeys(forms))


def _around(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - 30) : found.end() + 30]
