"""Attackers that use every byte: they take the request apart, read what tools answered, and know calendars.

None of them holds the price archive. They know what is widely known: which names there are, what a name usually
trades and costs, which days are holidays, half days, expiries and earnings seasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from tradeassay.assay.probe.payloads import ProbePayload
from tradeassay.core.hashing import sha256_of
from tradeassay.core.view import Days, Floats


def least_price(payload: ProbePayload, lot: float) -> float | None:
    """Return the price that the least allowed weight gives away: that of one lot."""
    weight = payload.evidence.least_weight
    seen = json.loads(payload.observation or "{}")
    return None if weight is None else float(weight * seen["account"]["nav"] / lot)


def market_volume(amount: Floats) -> Floats:
    """Return the logarithm of how busy every session was, all names together."""
    with np.errstate(all="ignore"):
        off = np.where(amount > 0, np.log(amount), np.nan) - usual_amounts(amount)
    busy = np.isfinite(off).any(axis=1)
    found = np.zeros(len(off))
    found[busy] = np.nanmedian(off[busy], axis=1)
    return found


def usual_amounts(amount: Floats) -> Floats:
    """Return the logarithm of what every name usually trades in a day."""
    with np.errstate(all="ignore"):
        logs = np.where(amount > 0, np.log(amount), np.nan)
    known = np.isfinite(logs).any(axis=0)
    found = np.full(logs.shape[1], np.nan)
    found[known] = np.nanmedian(logs[:, known], axis=0)
    return found


def turnover(factors: dict[str, float | None]) -> float | None:
    """Return the logarithm of the daily turnover that ILLIQ (log of mean |return| / amount) gives back."""
    illiquid, spread = factors.get("ILLIQ"), factors.get("RV_60")
    if illiquid is None or not spread:
        return None
    return float(np.log(spread / np.sqrt(252.0) * np.sqrt(2.0 / np.pi)) - illiquid)


def window_of(payload: ProbePayload, firsts: Sequence[str]) -> str | None:
    """Return the first day of the episode whose unsalted id the request carries."""
    shown = json.loads(payload.request or "{}").get("episode", "")
    return next((first for first in firsts if shown == f"e-{sha256_of(('', f'probe {first}'))[:12]}"), None)


# -- the calendar ------------------------------------------------------------------------------------------------

_QUARTER = re.compile(r"\b(?:Q([1-4])|([1-4])Q|(first|second|third|fourth)[ -]quarter)\b", re.IGNORECASE)
_WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


class Calendar:
    """Every session as its volume and its swings are known to look; ``market`` is how busy all names were, which
    is widely known too."""

    def __init__(self, sessions: Days, market: Floats | None = None) -> None:
        days = [day.item() for day in sessions.astype("datetime64[D]")]
        self.months = np.array([day.month for day in days])
        ends = [days[0] - timedelta(days=1), *days, days[-1] + timedelta(days=1)]
        self._volume = np.array(list(map(_volume, days, ends, ends[2:])))
        self._swing = np.array([_season(day) for day in days])
        self._market = self._volume if market is None else market

    def fits(self, volumes: Floats, swings: Floats) -> Floats:
        """Return how well shown volumes and swings fit the sessions up to each one; -inf where few are known."""
        size = volumes.size
        found = np.full(self._volume.size, -np.inf)
        if self._volume.size > size:
            ends = np.arange(size - 1, self._volume.size)
            found[ends] = 2.0 * _alike(self._market, volumes)
            found[ends] += _alike(self._volume, volumes) + _alike(self._swing, swings)
        return found


def _volume(day: date, before: date, after: date) -> float:
    """Return by how much volume is known to differ on a day, in logarithms."""
    half = (day.month, day.day) in ((12, 24), (7, 3)) or (
        day.month == 11 and day.weekday() == 4 and 23 <= day.day <= 29
    )
    expiry = day.weekday() == 4 and 15 <= day.day <= 21
    found = -0.7 if half else 0.0
    found += (0.45 if day.month % 3 == 0 else 0.12) if expiry else 0.0
    found += 0.1 if after.month != day.month else 0.0
    found -= 0.4 if day.month == 12 and day.day > 23 else 0.0
    return found - 0.1 * ((day - before).days > 3) - 0.15 * ((after - day).days > 3)


def _season(day: date) -> float:
    """Return whether most companies report around a day."""
    into = (day - date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)).days
    return float(14 <= into <= 42)


def _alike(known: Floats, shown: Floats) -> Floats:
    """Return the correlation of a series with every stretch of a longer one."""
    windows = np.lib.stride_tricks.sliding_window_view(known, shown.size)
    windows = windows - windows.mean(axis=1, keepdims=True)
    wanted = shown - shown.mean()
    size = np.linalg.norm(windows, axis=1) * np.linalg.norm(wanted)
    found: Floats = np.divide(windows @ wanted, size, out=np.zeros(size.size), where=size > 1e-12)
    return found


def shapes(payload: ProbePayload) -> tuple[Floats, Floats] | None:
    """Return how the volume and the swings of all names together went, session by session."""
    volumes, swings = [], []
    for text in payload.evidence.bars:
        body = json.loads(text)
        at = {name: place for place, name in enumerate(body.get("columns", ()))}
        rows = body.get("bars", ())
        if len(rows) < 20 or any(row[at["amount"]] is None or row[at["close"]] is None for row in rows):
            continue
        amounts = np.array([row[at["amount"]] for row in rows], dtype=np.float64)
        closes = np.array([row[at["close"]] for row in rows], dtype=np.float64)
        if (amounts > 0).all():
            volumes.append(np.log(amounts) - np.log(amounts).mean())
        moved = np.abs(np.diff(closes, prepend=closes[0]) / closes)
        swings.append(moved / max(float(moved.mean()), 1e-9))
    sizes = {one.size for one in (*volumes, *swings)}
    if not volumes or len(sizes) != 1:
        return None
    return np.mean(volumes, axis=0), np.mean(swings, axis=0)


def quarters(payload: ProbePayload) -> set[int]:
    """Return the months that follow the quarters which headlines name."""
    said = {
        int(found[1] or found[2] or _WORDS[found[3].lower()])
        for text in (payload.text, *payload.evidence.bars)
        for found in _QUARTER.finditer(text)
    }
    return {month for quarter in said for month in ((3 * quarter) % 12 + 1, (3 * quarter + 1) % 12 + 1)}


# -- over-masking ------------------------------------------------------------------------------------------------

_ALIAS = r"(asset_\d{4,6})"
IDIOMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (rf"\({_ALIAS}:", "nasdaq"),
        (rf"(?:Wall|Main) {_ALIAS}", "street"),
        (rf"{_ALIAS} (?:Variant|variant)", "delta"),
        (rf"{_ALIAS}[ -](?:Quarter|quarter)", "third"),
        (rf"(?:First|Second) {_ALIAS} (?:of|Of)", "half"),
        (rf"{_ALIAS}[ -](?:the|The)[ -]Radar", "under"),
        (rf"(?:Cloud|Video|PC|Online|cloud|video|online) {_ALIAS}", "gaming"),
        (rf"(?:Data|data) {_ALIAS}", "centers"),
        (rf"{_ALIAS} (?:Friday|Americans)", "black"),
        (rf"{_ALIAS} 500", "fortune"),
        (rf"(?:Digital|Mobile|digital|mobile) {_ALIAS}", "payments"),
        (rf"(?:Semiconductor|Tech|Software|tech|chip) {_ALIAS}", "space"),
    )
)
"""Places of ordinary prose in which only one word can stand, and the word."""


def named_by_idiom(payload: ProbePayload) -> set[str]:
    """Return the words whose place a headline gives to the alias that is asked about."""
    texts = (payload.text, *payload.evidence.bars)
    return {word for pattern, word in IDIOMS if any(payload.alias in pattern.findall(text) for text in texts)}
