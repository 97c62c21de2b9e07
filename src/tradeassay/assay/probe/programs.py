"""Attackers that are programs, and the price archive that one of them searches.

The others know what is widely known: which names there are, what a name usually trades and costs, which days are
holidays, half days, expiries and earnings seasons. They take the request apart and read what tools answered."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.assay.probe.payloads import ProbePayload
from tradeassay.assay.probe.prompts import PROMPTS
from tradeassay.core.dialogue import AskModel, Message, ModelReply, schema_text
from tradeassay.core.hashing import sha256_of
from tradeassay.core.registry import refuse_unknown
from tradeassay.core.view import Bools, Days, Floats, Instrument, Ints
from tradeassay.data import Snapshot
from tradeassay.data.names import known_names
from tradeassay.llm import fenced_blocks, parse_object
from tradeassay.llm.prompting import answer_object

_BLOCK = 6_000_000
"""Numbers per block of windows: about 50 MB."""
_PRESENT = 0.8
"""The share of a window's returns that must be there."""


@dataclass(frozen=True, slots=True)
class PriceArchive:
    """T sessions of N names: ``close`` adjusted for splits, ``raw`` and ``amount`` as traded."""

    instruments: tuple[Instrument, ...]
    sessions: Days
    close: Floats
    raw: Floats
    amount: Floats

    @classmethod
    def of(cls, snapshot: Snapshot) -> PriceArchive:
        """Read everything a snapshot holds."""
        view = snapshot.at(len(snapshot.sessions) - 1, "close")
        return cls(
            instruments=view.instruments,
            sessions=snapshot.sessions,
            close=view.bars("close"),
            raw=view.bars("close", adjust="none"),
            amount=view.bars("amount"),
        )

    def change(self, sessions: int) -> Floats:
        """Return returns over some sessions, shape (T, N); NaN where a close is missing."""
        moved = np.full(self.close.shape, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved[sessions:] = self.close[sessions:] / self.close[:-sessions] - 1.0
        return moved

    def best_matches(self, queries: Floats) -> tuple[Floats, Ints]:
        """Return for each of P return series of length K how well it matches every name at best, and where.

        The score is the correlation with the window of that name which fits best, -inf where a name has none; the
        place is the row of the session in which that window ends. Both have shape (P, N).
        """
        names = self.close.shape[1]
        best = np.full((queries.shape[0], names), -np.inf)
        place = np.zeros((queries.shape[0], names), dtype=np.int64)
        step = max(1, _BLOCK // (max(queries.shape) * self.close.shape[0]))
        for first in range(0, names, step):
            columns = slice(first, first + step)
            found = self.correlations(queries, columns)
            rows = found.argmax(axis=1)
            place[:, columns] = rows
            best[:, columns] = np.take_along_axis(found, rows[:, None], axis=1)[:, 0]
        return best, place

    def correlations(self, queries: Floats, columns: slice = slice(None)) -> Floats:
        """Return every series' correlation with every window of some names, by the session in which it ends.

        Shape (P, T, names); -inf where the window is missing or does not move. Missing returns count as zero.
        """
        length = queries.shape[1]
        close = self.close[:, columns]
        with np.errstate(invalid="ignore", divide="ignore"):
            returns = close[1:] / close[:-1] - 1.0
        found = np.full((queries.shape[0], *close.shape), -np.inf)
        if returns.shape[0] >= length:
            wanted = queries - queries.mean(axis=1, keepdims=True)
            size = np.linalg.norm(wanted, axis=1, keepdims=True)
            wanted = np.divide(wanted, size, out=np.zeros_like(wanted), where=size > 0)
            there = np.isfinite(returns)
            found[:, length:] = _correlate(np.where(there, returns, 0.0), there, wanted)
        return found


def _correlate(returns: Floats, there: Bools, wanted: Floats) -> Floats:
    """Return (P, windows, names): the cosine of centred windows with the wanted shapes, which have length one."""
    length = wanted.shape[1]
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(returns, length, axis=0))
    present = np.lib.stride_tricks.sliding_window_view(there, length, axis=0).sum(axis=-1)
    sums, squares = windows.sum(axis=-1), np.einsum("tnk,tnk->tn", windows, windows)
    spread = np.sqrt(np.maximum(squares - sums * sums / length, 0.0))
    dots = (wanted @ windows.reshape(-1, length).T).reshape(-1, *spread.shape)
    usable = (present >= _PRESENT * length) & (spread > 1e-12)
    scaled: Floats = np.where(usable, dots / np.where(usable, spread, 1.0), -np.inf)
    return scaled


ATTEMPTS = 2


class Guess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who and when. Whatever is empty or None was not answered."""

    tickers: Annotated[tuple[str, ...], Meta(max_length=5)] = ()
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    sector: str | None = None
    board: str | None = None


class AttackerAnswer(NamedTuple):
    """What an attacker said about one payload: the guess (None when there is none), its words, and its mistakes.

    ``wrong`` names what could not be read: a bad date does not void a right ticker, nor the other way round.
    """

    guess: Guess | None
    said: str = ""
    wrong: tuple[str, ...] = ()


SCHEMA = schema_text(Guess)
LONGEST_SAID = 2_000
_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")


def interrogate(payload: ProbePayload) -> Generator[AskModel, ModelReply, AttackerAnswer]:
    """Ask about one payload, a second time when nothing of the first answer can be read."""
    messages = (
        Message(role="system", text=PROMPTS.fill("system")),
        Message(role="user", text=PROMPTS.fill("question", shown=payload.text, alias=payload.alias)),
    )
    tail: tuple[Message, ...] = ()
    said, wrong = "", ("no answer came",)
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(purpose="probe", messages=(*messages, *tail), answer_schema=SCHEMA, attempt=attempt)
        if reply.error is not None or reply.error_kind is not None:
            why = f"{reply.error_kind or 'unreachable'}: {reply.error or 'no answer'}"
            return AttackerAnswer(None, said, (*wrong, why))
        said = reply.text[:LONGEST_SAID]
        try:
            return read_guess(reply.text)
        except ValueError as error:
            wrong = (str(error),)
            own = (Message(role="assistant", text=reply.text),) if reply.text.strip() else ()
            tail = (*own, Message(role="user", text=PROMPTS.fill("again", wrong=error)))
    return AttackerAnswer(None, said, wrong)


def read_guess(text: str) -> AttackerAnswer:
    """Read an answer field by field; raises :class:`ValueError` with what is wrong when nothing can be read."""
    body = answer_object(text, "tickers")
    if body is None:
        raise ValueError("it holds no JSON object")
    wrong: list[str] = []
    tickers, date = _read_tickers(body, wrong), _read_date(body.get("date"), wrong)
    guess = Guess(
        tickers=tickers, date=date, sector=_read_word(body.get("sector")), board=_read_word(body.get("board"))
    )
    if wrong and guess == Guess():
        raise ValueError("; ".join(wrong))
    return AttackerAnswer(guess, text[:LONGEST_SAID], tuple(wrong))


def _read_tickers(body: Mapping[str, object], wrong: list[str]) -> tuple[str, ...]:
    raw = body.get("tickers", body.get("ticker"))
    if raw is None:
        if "tickers" not in body and "ticker" not in body:
            wrong.append("tickers is missing")
        return ()
    items = raw if isinstance(raw, list) else [raw]
    names = [item.strip() for item in items if isinstance(item, str) and item.strip()]
    if len(names) < len(items):
        wrong.append("tickers must be a list of texts")
    return tuple(dict.fromkeys(names))[:TOP]


def _read_date(raw: object, wrong: list[str]) -> str | None:
    if raw is None or raw == "":
        return None
    found = _DATE.search(raw) if isinstance(raw, str) else None
    try:
        if found is not None:
            return datetime.date(int(found[1]), int(found[2]), int(found[3])).isoformat()
    except ValueError:
        pass
    wrong.append("date must be a day written YYYY-MM-DD")
    return None


def _read_word(raw: object) -> str | None:
    return raw.strip() or None if isinstance(raw, str) else None


TOP = 5
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_HORIZONS = (1, 5, 20)

Json = Mapping[str, object]


class Program:
    """An attacker that is not a language model."""

    def __init__(self, archive: PriceArchive) -> None:
        self._archive = archive

    def guesses(self, payloads: Sequence[ProbePayload]) -> list[Guess | None]:
        """Return a guess for every payload, None where there is nothing to go by."""
        return [self.guess(payload) for payload in payloads]

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return a guess for one payload; a program that looks at all of them together has none."""
        return None


def make_program(name: str, archive: PriceArchive) -> Program:
    """Return an attacker by name; raises :class:`UserError` for an unknown one."""
    refuse_unknown(name, _PROGRAMS, f"no attacker '{name}'", f"programs: {', '.join(_PROGRAMS)}")
    return _PROGRAMS[name](archive)


class Match(Program):
    """Matches what is shown of a series with every stretch of the archive: bars by the correlation of their
    returns, a row of a table by its returns over one, five and twenty sessions."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        self._changes = [archive.change(horizon) for horizon in _HORIZONS]

    def guesses(self, payloads: Sequence[ProbePayload]) -> list[Guess | None]:
        """Return the best match of every payload."""
        found: list[Guess | None] = [None] * len(payloads)
        series: dict[int, list[tuple[int, Floats]]] = {}
        for place, payload in enumerate(payloads):
            returns = _shown_returns(payload)
            if returns is not None:
                series.setdefault(returns.size, []).append((place, returns))
            else:
                row = _shown_row(payload)
                found[place] = None if row is None else self._by_row(row)
        for same in series.values():
            scores, rows = self._archive.best_matches(np.stack([returns for _, returns in same]))
            for (place, _), score, row_of in zip(same, scores, rows, strict=True):
                found[place] = best_of(self._archive, score, row_of)
        return found

    def _by_row(self, row: Json) -> Guess | None:
        shown = [_number(_mapping(row.get("returns")).get(f"return_{horizon}d")) for horizon in _HORIZONS]
        apart = np.zeros(self._archive.close.shape)
        for value, changes in zip(shown, self._changes, strict=True):
            if value is not None:
                apart = np.maximum(apart, np.abs(changes - value))
        if all(value is None for value in shown):
            return None
        return nearest(self._archive, apart)


class Levels(Program):
    """Matches the last shown price and turnover with the archive's: what a hardened mask takes away."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._price, self._amount = np.log(archive.raw), np.log(archive.amount)

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the nearest price and turnover."""
        return self._nearest(_last_bar(payload))

    def _nearest(self, bar: Json | None) -> Guess | None:
        price, amount = (None, None) if bar is None else (_number(bar.get("close")), _number(bar.get("amount")))
        if price is None or price <= 0.0:
            return None
        apart = np.abs(self._price - np.log(price))
        if amount is not None and amount > 0.0:
            apart = apart + np.abs(self._amount - np.log(amount))
        return nearest(self._archive, apart)


class Grid(Levels):
    """Undoes rebasing by a search: true prices are multiples of a cent, so it looks for the least true price under
    which all shown prices of the stock are, and matches that price and the turnover with the archive."""

    TICK = 0.01
    FITS = 0.04
    """The mean distance from the grid, in steps, below which a scale counts as found; chance gives 0.25."""
    MOST = 60_000
    """The greatest true price that is tried, in steps."""

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the nearest price and turnover where a scale is found."""
        bar = _last_bar(payload)
        close = None if bar is None else _number(bar.get("close"))
        shown = _shown_prices(payload)
        if bar is None or close is None or shown.size < 8:
            return None
        true = self.true_price(shown, close)
        return None if true is None else self._nearest({**bar, "close": true})

    def true_price(self, shown: Floats, close: float) -> float | None:
        """Return the least true price of the last close under which all shown prices are on the grid."""
        steps = np.arange(20, self.MOST, dtype=np.float64)
        off = np.zeros(steps.size)
        # A sample of the prices is enough to tell a grid, and keeps the search short.
        for price in shown[:: max(1, shown.size // 24)].tolist():
            place = price / close * steps
            off += np.abs(place - np.round(place))
        off /= len(shown[:: max(1, shown.size // 24)])
        fine = np.flatnonzero(off < self.FITS)
        return float(steps[fine[0]]) * self.TICK if fine.size else None


class TextReader(Program):
    """Repeats what the payload says: a ticker of the archive, a calendar day, the board; looks for companies in
    headlines by names of its own. The probe's control: under a bright market it must know everything, under a
    mask nothing."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        self._known = {one.symbol: one for one in archive.instruments}
        self._spelled = {
            name: one.symbol
            for one in archive.instruments
            for name in (*known_names(one), *((one.name,) if one.name not in ("", one.symbol) else ()))
            if len(name) > 2
        }
        longest = sorted(self._spelled, key=len, reverse=True)
        self._pattern = (
            re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, longest)) + r")(?![a-z])")
            if longest
            else None
        )

    def guess(self, payload: ProbePayload) -> Guess:
        """Repeat what is plainly shown."""
        day = str(_observation(payload).get("trade_day", ""))
        instrument = self._known.get(payload.alias)
        row = _snapshot(payload) or _shown_row(payload) or {}
        board = row.get("board")
        named = self._in_headlines(row) if instrument is None else [instrument.symbol]
        return Guess(
            tickers=tuple(named[:TOP]),
            date=day if _ISO.fullmatch(day) else None,
            sector=None if instrument is None else instrument.sector,
            board=board if isinstance(board, str) else None,
        )

    def _in_headlines(self, row: Json) -> list[str]:
        """Return the companies that the stock's headlines name, the most frequent first."""
        if self._pattern is None:
            return []
        titles = [str(item.get("title", "")) for item in _list(row.get("news")) if isinstance(item, dict)]
        named = Counter(self._spelled[found] for title in titles for found in self._pattern.findall(title))
        return [symbol for symbol, _ in named.most_common()]


class EpisodeIds(Program):
    """Looks for the episode's id among those of all windows without a salt; a window and a step are a date."""

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the day where the window is found."""
        sessions = self._archive.sessions
        shown = json.loads(payload.request or "{}").get("episode", "")
        days = map(str, sessions)
        first = next((day for day in days if shown == f"e-{sha256_of(('', f'probe {day}'))[:12]}"), None)
        if first is None:
            return None
        row = int(np.searchsorted(sessions, np.datetime64(first))) + int(str(_observation(payload)["step"]))
        return Guess(date=str(sessions[min(row, sessions.size - 1)]))


class Turnover(Program):
    """Turns the shown illiquidity back into a turnover and names who usually trades that much."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        self._usual = usual_amounts(archive.amount)

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the names whose usual turnover is nearest."""
        row = _snapshot(payload) or _shown_row(payload) or {}
        factors = {name: _number(value) for name, value in _mapping(row.get("factors")).items()}
        illiquid, spread = factors.get("ILLIQ"), factors.get("RV_60")
        if illiquid is None or not spread:
            return None
        # ILLIQ is the logarithm of the mean of |return| / amount.
        traded = float(np.log(spread / np.sqrt(252.0) * np.sqrt(2.0 / np.pi)) - illiquid)
        nearness = -np.abs(np.nan_to_num(self._usual, nan=np.inf) - traded)
        found = best_of(self._archive, nearness, np.zeros(nearness.size, dtype=np.int64))
        # A turnover tells who it is, not when.
        return None if found is None else Guess(tickers=found.tickers, sector=found.sector)


class LotPrice(Levels):
    """Matches the price of a lot, which a search with a tool found, with known prices."""

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the nearest price where a lot's was found."""
        weight, lots = payload.evidence.least_weight, [one.lot for one in self._archive.instruments]
        if weight is None:
            return None
        account = json.loads(payload.observation or "{}")["account"]
        return self._nearest({"close": weight * account["nav"] / max(lots, default=1.0)})


class CalendarReader(Program):
    """Fits volumes, swings and named quarters to the calendar that everybody knows."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        self._calendar = Calendar(archive.sessions, market_volume(archive.amount))

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the session that follows the stretch of the calendar which fits best."""
        shown, months = shapes(payload), quarters(payload)
        if shown is None:
            return None
        fit = self._calendar.fits(*shown)
        if months:
            fit = fit + np.isin(self._calendar.months, list(months))
        row = min(int(fit.argmax()) + 1, self._archive.sessions.size - 1)
        return Guess(date=str(self._archive.sessions[row])) if np.isfinite(fit.max()) else None


class IdiomReader(Program):
    """Names the alias that stands where prose allows one word only."""

    def __init__(self, archive: PriceArchive) -> None:
        super().__init__(archive)
        self._known = {
            word: one.symbol for one in archive.instruments for word in re.findall(r"\w+", one.name.lower())
        }

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the company whose name has the word."""
        texts = (payload.text, *payload.evidence.bars)
        words = {word for pattern, word in IDIOMS if any(payload.alias in pattern.findall(text) for text in texts)}
        names = [self._known[word] for word in words if word in self._known]
        return Guess(tickers=tuple(names[:TOP])) if names else None


class Alphabet(Program):
    """Takes the order in which a screen lists equal scores for that of listings and the alphabet, and names who
    stands there."""

    def guess(self, payload: ProbePayload) -> Guess | None:
        """Return the five names around the alias's place among all names."""
        told = payload.evidence
        if payload.alias not in told.equals:
            return None
        names = [one.symbol for one in self._archive.instruments]
        place = told.equals.index(payload.alias) * len(names) / told.screened
        first = min(max(0, round(place) - TOP // 2), max(0, len(names) - TOP))
        near = sorted(range(first, min(first + TOP, len(names))), key=lambda at: abs(at - place))
        return Guess(tickers=tuple(names[at] for at in near))


_PROGRAMS: dict[str, Callable[[PriceArchive], Program]] = {
    "match": Match,
    "levels": Levels,
    "grid": Grid,
    "reader": TextReader,
    "hash": EpisodeIds,
    "factors": Turnover,
    "oracle": LotPrice,
    "calendar": CalendarReader,
    "idioms": IdiomReader,
    "order": Alphabet,
}


def nearest(archive: PriceArchive, apart: Floats) -> Guess | None:
    """Return the guess for distances of shape (T, N), NaN where there is nothing."""
    score = np.where(np.isfinite(apart), -apart, -np.inf)
    return best_of(archive, score.max(axis=0), score.argmax(axis=0))


def best_of(archive: PriceArchive, best: Floats, rows: Ints) -> Guess | None:
    """Return the five names with the best score, and the session after the one in which the best of them has it.

    Both arrays have shape (N,); -inf means no score.
    """
    order = [k for k in np.argsort(-best, kind="stable")[:TOP].tolist() if np.isfinite(best[k])]
    if not order:
        return None
    first = archive.instruments[order[0]]
    row = min(int(rows[order[0]]) + 1, archive.sessions.size - 1)
    return Guess(
        tickers=tuple(archive.instruments[k].symbol for k in order),
        date=str(archive.sessions[row]),
        sector=first.sector,
        board=first.board.value,
    )


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


# -- the calendar ------------------------------------------------------------------------------------------------

_QUARTER = re.compile(r"\b(?:Q([1-4])|([1-4])Q|(first|second|third|fourth)[ -]quarter)\b", re.IGNORECASE)
_WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


class Calendar:
    """Every session as its volume and its swings are known to look; ``market`` is how busy all names were, which
    is widely known too."""

    def __init__(self, sessions: Days, market: Floats | None = None) -> None:
        days = [day.item() for day in sessions.astype("datetime64[D]")]
        self.months = np.array([day.month for day in days])
        ends = [days[0] - datetime.timedelta(days=1), *days, days[-1] + datetime.timedelta(days=1)]
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


def _volume(day: datetime.date, before: datetime.date, after: datetime.date) -> float:
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


def _season(day: datetime.date) -> float:
    """Return whether most companies report around a day."""
    into = (day - datetime.date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)).days
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


# -- reading a payload -------------------------------------------------------------------------------------------


def _observation(payload: ProbePayload) -> Json:
    if payload.observation is not None:
        return parse_object(payload.observation) or {}
    for message in payload.messages:
        if message.role == "user":
            for block in fenced_blocks(message.text):
                body = parse_object(block.text)
                if body is not None and "trade_day" in body:
                    return body
    return {}


def _snapshot(payload: ProbePayload) -> Json | None:
    for message in payload.messages:
        if message.role == "tool":
            body = parse_object(message.text)
            if body is not None and body.get("stock_id") == payload.alias and "bars" in body:
                return body
    return None


def _shown_row(payload: ProbePayload) -> Json | None:
    seen = _observation(payload)
    rows = [*_list(seen.get("candidates")), *_list(seen.get("held"))]
    return next((row for row in rows if isinstance(row, dict) and row.get("stock_id") == payload.alias), None)


def _bars(payload: ProbePayload) -> list[dict[str, object]]:
    shown = _snapshot(payload)
    if shown is None:
        return []
    columns = [str(name) for name in _list(shown.get("columns"))]
    return [dict(zip(columns, row, strict=False)) for row in _list(shown["bars"]) if isinstance(row, list)]


def _last_bar(payload: ProbePayload) -> Json | None:
    bars = _bars(payload)
    if bars:
        return bars[-1]
    row = _shown_row(payload)
    return None if row is None else _mapping(row.get("last_bar"))


def _shown_prices(payload: ProbePayload) -> Floats:
    """Return every price that is shown of the stock: all bars, or the last one."""
    bars: Sequence[Json] = _bars(payload) or [bar for bar in (_last_bar(payload),) if bar is not None]
    fields = ("open", "high", "low", "close")
    found = [
        value for bar in bars for name in fields if (value := _number(bar.get(name))) is not None and value > 0
    ]
    return np.array(found)


def _shown_returns(payload: ProbePayload) -> Floats | None:
    closes = np.array([np.nan if (x := _number(bar.get("close"))) is None else x for bar in _bars(payload)])
    if closes.size < 3:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = closes[1:] / closes[:-1] - 1.0
    returns: Floats = np.where(np.isfinite(moved), moved, 0.0)
    return returns if returns.any() else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
