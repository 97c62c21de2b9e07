"""Define the attackers that are programs, and the price archive that some of them search.

All other programs know public facts only: the names, the usual turnover and price of a name, and
which days are holidays, half days, expiries and earnings seasons. They parse the request and the
tools' answers.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Days, Floats, Ints
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, schema_text
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data import Snapshot
from tradeassay_bench.data.names import known_names
from tradeassay_bench.examine.probe.payloads import ProbePayload
from tradeassay_bench.examine.probe.prompts import PROMPTS
from tradeassay_bench.llm import parse_object
from tradeassay_bench.llm.prompting import answer_object

TOP = 5
LONGEST_SAID = 2_000
_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")


@dataclass(frozen=True, slots=True)
class PriceArchive:
    """The prices of N names in T sessions.

    ``close`` is adjusted for splits. ``raw`` and ``amount`` contain prices and amounts as traded.
    """

    instruments: tuple[Instrument, ...]
    sessions: Days
    close: Floats
    raw: Floats
    amount: Floats

    @classmethod
    def of(cls, snapshot: Snapshot) -> PriceArchive:
        view = snapshot.at(len(snapshot.sessions) - 1, "close")
        return cls(
            instruments=view.instruments,
            sessions=snapshot.sessions,
            close=view.bars("close"),
            raw=view.bars("close", adjust="none"),
            amount=view.bars("amount"),
        )

    def best_matches(self, queries: Floats) -> tuple[Floats, Ints]:
        """Return the best match of each return series in every name, and its place.

        There are P series of length K. The score is the correlation with the best window of a name,
        or -inf if a name has no window. The place is the row of the session in which that window
        ends. Both have shape (P, N).
        """
        names = self.close.shape[1]
        best = np.full((queries.shape[0], names), -np.inf)
        place = np.zeros((queries.shape[0], names), dtype=np.int64)
        # Windows are processed in blocks of six million numbers, about 50 MB.
        step = max(1, 6_000_000 // (max(queries.shape) * self.close.shape[0]))
        for first in range(0, names, step):
            columns = slice(first, first + step)
            found = self.correlations(queries, columns)
            rows = found.argmax(axis=1)
            place[:, columns] = rows
            best[:, columns] = np.take_along_axis(found, rows[:, None], axis=1)[:, 0]
        return best, place

    def correlations(self, queries: Floats, columns: slice = slice(None)) -> Floats:
        """Return the correlation of every series with every window of some names.

        Windows are indexed by their last session. The shape is (P, T, names). A window is -inf if a
        fifth of it is missing or its returns are constant. Missing returns count as zero.
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
            windows = np.lib.stride_tricks.sliding_window_view(
                np.where(there, returns, 0.0), length, axis=0
            )
            windows = np.ascontiguousarray(windows)
            present = np.lib.stride_tricks.sliding_window_view(there, length, axis=0).sum(axis=-1)
            # The cosine of centred windows with the wanted shapes, which have length one.
            sums, squares = windows.sum(axis=-1), np.einsum("tnk,tnk->tn", windows, windows)
            spread = np.sqrt(np.maximum(squares - sums * sums / length, 0.0))
            dots = (wanted @ windows.reshape(-1, length).T).reshape(-1, *spread.shape)
            usable = (present >= 0.8 * length) & (spread > 1e-12)
            found[:, length:] = np.where(usable, dots / np.where(usable, spread, 1.0), -np.inf)
        return found


class Guess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A guess: stocks and a day. An empty list or None means no answer."""

    tickers: Annotated[tuple[str, ...], Meta(max_length=5)] = ()
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    sector: str | None = None
    board: str | None = None


class AttackerAnswer(NamedTuple):
    """The answer of an attacker about one payload: the guess or None, its text, and its mistakes.

    ``wrong`` lists the parts that could not be parsed. A bad date does not invalidate a correct
    ticker, and vice versa.
    """

    guess: Guess | None
    said: str = ""
    wrong: tuple[str, ...] = ()


SCHEMA = schema_text(Guess)


def interrogate(payload: ProbePayload) -> Generator[AskModel, ModelReply, AttackerAnswer]:
    """Query a model about one payload, and once more if the first answer cannot be parsed."""
    messages = (
        Message(role="system", text=PROMPTS.fill("system")),
        Message(
            role="user", text=PROMPTS.fill("question", shown=payload.text, alias=payload.alias)
        ),
    )
    tail: tuple[Message, ...] = ()
    said, wrong = "", ("no answer came",)
    for attempt in (1, 2):
        reply = yield AskModel(
            purpose="probe", messages=(*messages, *tail), answer_schema=SCHEMA, attempt=attempt
        )
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
    """Parse an answer field by field.

    Raises :class:`ValueError` with the problem if no field can be parsed.
    """
    body = answer_object(text, "tickers")
    if body is None:
        raise ValueError("it holds no JSON object")
    wrong: list[str] = []
    raw = body.get("tickers", body.get("ticker"))
    items = raw if isinstance(raw, list) else [raw]
    if raw is None:
        items = []
    names = [item.strip() for item in items if isinstance(item, str) and item.strip()]
    if "tickers" not in body and "ticker" not in body:
        wrong.append("tickers is missing")
    elif len(names) < len(items):
        wrong.append("tickers must be a list of texts")
    day, said = None, body.get("date")
    if said is not None and said != "":
        written = _DATE.search(said) if isinstance(said, str) else None
        with suppress(ValueError):
            day = (
                written
                and datetime.date(int(written[1]), int(written[2]), int(written[3])).isoformat()
            )
        if day is None:
            wrong.append("date must be a day in the form YYYY-MM-DD")
    sector, board = (
        word.strip() if isinstance(word, str) else ""
        for word in (body.get("sector"), body.get("board"))
    )
    tickers = tuple(dict.fromkeys(names))[:TOP]
    guess = Guess(tickers=tickers, date=day, sector=sector or None, board=board or None)
    if wrong and guess == Guess():
        raise ValueError("; ".join(wrong))
    return AttackerAnswer(guess, text[:LONGEST_SAID], tuple(wrong))


_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_HORIZONS = (1, 5, 20)

Json = Mapping[str, object]
Guesses = Iterator[Guess | None]
"""A guess for every payload; None if the payload gives no basis for a guess."""


def match(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Match the series shown with every window of the archive.

    Bars are matched by the correlation of their returns. A row of a table is matched by its returns
    over one, five and twenty sessions.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        changes = [np.full(archive.close.shape, np.nan) for _ in _HORIZONS]
        for moved, horizon in zip(changes, _HORIZONS, strict=True):
            moved[horizon:] = archive.close[horizon:] / archive.close[:-horizon] - 1.0
    found: list[Guess | None] = [None] * len(payloads)
    series: dict[int, list[tuple[int, Floats]]] = {}
    for place, payload in enumerate(payloads):
        closes = shown_closes(payload)
        with np.errstate(invalid="ignore", divide="ignore"):
            returns = closes[1:] / closes[:-1] - 1.0
        returns = np.where(np.isfinite(returns), returns, 0.0)
        if closes.size >= 3 and returns.any():
            series.setdefault(returns.size, []).append((place, returns))
        elif (row := _shown_row(payload)) is not None:
            shown = [
                _number(_mapping(row.get("returns")).get(f"return_{horizon}d"))
                for horizon in _HORIZONS
            ]
            apart = np.zeros(archive.close.shape)
            for value, moved in zip(shown, changes, strict=True):
                apart = apart if value is None else np.maximum(apart, np.abs(moved - value))
            found[place] = None if shown == [None] * len(shown) else nearest(archive, apart)
    for same in series.values():
        scores, rows = archive.best_matches(np.stack([returns for _, returns in same]))
        for (place, _), score, row_of in zip(same, scores, rows, strict=True):
            found[place] = best_of(archive, score, row_of)
    yield from found


def levels(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Match the last displayed price and turnover with the archive. A hardened mask hides both."""
    return _by_level(archive, map(_last_bar, payloads))


def _by_level(archive: PriceArchive, bars: Iterable[Json | None]) -> Guesses:
    with np.errstate(invalid="ignore", divide="ignore"):
        prices, amounts = np.log(archive.raw), np.log(archive.amount)
    for bar in bars:
        price, amount = (
            (None, None) if bar is None else (_number(bar.get("close")), _number(bar.get("amount")))
        )
        if price is None or price <= 0.0:
            yield None
            continue
        apart = np.abs(prices - np.log(price))
        if amount is not None and amount > 0.0:
            apart = apart + np.abs(amounts - np.log(amount))
        yield nearest(archive, apart)


def grid(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Undo rebasing by a search.

    True prices are multiples of a cent. The search finds the smallest true price for which all
    prices of the stock are whole cents. It then matches that price and the turnover with the
    archive.
    """
    bars: list[Json | None] = []
    for payload in payloads:
        last = _last_bar(payload)
        close = None if last is None else _number(last.get("close"))
        shown_bars: Sequence[Json] = _bars(payload) or [bar for bar in (last,) if bar is not None]
        values = []
        for bar in shown_bars:
            for name in ("open", "high", "low", "close"):
                values.append(_number(bar.get(name)))
        shown = np.array([value for value in values if value is not None and value > 0])
        true = None if close is None or shown.size < 8 else true_price(shown, close)
        bars.append(None if last is None or true is None else {**last, "close": true})
    return _by_level(archive, bars)


def true_price(shown: Floats, close: float) -> float | None:
    """Return the smallest true last close, up to 600, for which all prices shown are whole
    cents.
    """
    cents = np.arange(20, 60_000, dtype=np.float64)
    off = np.zeros(cents.size)
    # A sample of the prices is enough to recognise a grid, and shortens the search.
    sample = shown[:: max(1, shown.size // 24)]
    for price in sample.tolist():
        place = price / close * cents
        off += np.abs(place - np.round(place))
    fine = np.flatnonzero(off / len(sample) < 0.04)  # in cents, on average; chance gives 0.25
    return float(cents[fine[0]]) * 0.01 if fine.size else None


def reader(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Return the explicit statements of the payload: a ticker, a calendar day, the board.

    Companies in headlines are found with a list of names, the most frequent first. This attacker is
    the control of the probe: under a bright market it must find everything, under a mask nothing.
    """
    known = {one.symbol: one for one in archive.instruments}
    spelled = {}
    for one in archive.instruments:
        for name in (*known_names(one), *((one.name,) if one.name not in ("", one.symbol) else ())):
            if len(name) > 2:
                spelled[name] = one.symbol
    any_of = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{any_of})(?![a-z])")
    for payload in payloads:
        day = str(_observation(payload).get("trade_day", ""))
        row = _snapshot(payload) or _shown_row(payload) or {}
        instrument, board = known.get(payload.alias), row.get("board")
        titles = [
            str(item.get("title", "")) for item in _list(row.get("news")) if isinstance(item, dict)
        ]
        named = Counter[str]()
        for title in titles if spelled else ():
            named.update(spelled[spelling] for spelling in pattern.findall(title))
        tickers = (
            [symbol for symbol, _ in named.most_common()]
            if instrument is None
            else [instrument.symbol]
        )
        yield Guess(
            tickers=tuple(tickers[:TOP]),
            date=day if _ISO.fullmatch(day) else None,
            sector=None if instrument is None else instrument.sector,
            board=board if isinstance(board, str) else None,
        )


def episode_ids(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Compare the episode's id with the unsalted ids of all windows.

    A window and a step give a date.
    """
    rows = {
        f"e-{sha256_of(('', f'probe {day}'))[:12]}": row for row, day in enumerate(archive.sessions)
    }
    for payload in payloads:
        first = rows.get(json.loads(payload.request).get("episode", ""))
        if first is not None:
            first = min(first + int(str(_observation(payload)["step"])), archive.sessions.size - 1)
        yield None if first is None else Guess(date=str(archive.sessions[first]))


def turnover(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Convert the illiquidity shown into turnover and name the stock with that usual turnover."""
    usual = np.nan_to_num(usual_amounts(archive.amount), nan=np.inf)
    for payload in payloads:
        row = _snapshot(payload) or _shown_row(payload) or {}
        factors = {name: _number(value) for name, value in _mapping(row.get("factors")).items()}
        illiquid, spread = factors.get("ILLIQ"), factors.get("RV_60")
        who = None
        if illiquid is not None and spread:
            # ILLIQ is the logarithm of the mean of |return| / amount.
            traded = float(np.log(spread / np.sqrt(252.0) * np.sqrt(2.0 / np.pi)) - illiquid)
            who = best_of(archive, -np.abs(usual - traded), np.zeros(usual.size, dtype=np.int64))
        # Turnover identifies the stock, not the day.
        yield None if who is None else Guess(tickers=who.tickers, sector=who.sector)


def lot_price(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Match the price of a lot, found by a search with a tool, with known prices."""
    lot = max((one.lot for one in archive.instruments), default=1.0)
    bars: list[Json | None] = []
    for payload in payloads:
        weight, account = (
            payload.evidence.least_weight,
            json.loads(payload.observation).get("account"),
        )
        bars.append(None if weight is None else {"close": weight * account["nav"] / lot})
    return _by_level(archive, bars)


def calendar(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Fit volumes, swings and named quarters to the public calendar and to usual activity.

    The guess is the session after the best window.
    """
    volume, swing = known_calendar(archive.sessions)
    months = archive.sessions.astype("datetime64[M]").astype(np.int64) % 12 + 1
    with np.errstate(all="ignore"):
        off = np.where(archive.amount > 0, np.log(archive.amount), np.nan) - usual_amounts(
            archive.amount
        )
    busy = np.isfinite(off).any(axis=1)
    market = np.zeros(len(off))
    market[busy] = np.nanmedian(off[busy], axis=1)
    for payload in payloads:
        fit = np.full(volume.size, -np.inf)
        shown = shapes(payload)
        if shown is not None and volume.size > shown[0].size:
            volumes, swings = shown
            known = _alike(volume, volumes) + _alike(swing, swings)
            fit[volumes.size - 1 :] = 2.0 * _alike(market, volumes) + known
        texts = (payload.text, *payload.evidence.bars)
        after: set[int] = set()
        for text in texts:
            for one in _QUARTER.finditer(text):
                quarter = int(one[1] or one[2] or _WORDS[one[3].lower()])
                after.update(((3 * quarter) % 12 + 1, (3 * quarter + 1) % 12 + 1))
        if after:
            fit = fit + np.isin(months, list(after))
        row = min(int(fit.argmax()) + 1, archive.sessions.size - 1)
        yield Guess(date=str(archive.sessions[row])) if np.isfinite(fit.max()) else None


def idioms(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Name the alias at a place where prose allows one word only."""
    known = {}
    for one in archive.instruments:
        for word in re.findall(r"\w+", one.name.lower()):
            known[word] = one.symbol
    for payload in payloads:
        texts = (payload.text, *payload.evidence.bars)
        words = {
            word
            for pattern, word in IDIOMS
            if any(payload.alias in pattern.findall(text) for text in texts)
        }
        names = [known[word] for word in words if word in known]
        yield Guess(tickers=tuple(names[:TOP])) if names else None


def alphabet(archive: PriceArchive, payloads: Sequence[ProbePayload]) -> Guesses:
    """Interpret the order of equal scores in a screen as the order of listings or the alphabet.

    The guess is the five names around the alias's place.
    """
    names = [one.symbol for one in archive.instruments]
    for payload in payloads:
        told = payload.evidence
        if payload.alias not in told.equals:
            yield None
            continue
        place = told.equals.index(payload.alias) * len(names) / told.screened
        first = min(max(0, round(place) - TOP // 2), max(0, len(names) - TOP))
        near = sorted((abs(at - place), at) for at in range(first, min(first + TOP, len(names))))
        yield Guess(tickers=tuple(names[at] for _, at in near))


ATTACKERS: dict[str, Callable[[PriceArchive, Sequence[ProbePayload]], Guesses]] = {
    "match": match,
    "levels": levels,
    "grid": grid,
    "reader": reader,
    "hash": episode_ids,
    "factors": turnover,
    "oracle": lot_price,
    "calendar": calendar,
    "idioms": idioms,
    "order": alphabet,
}


def nearest(archive: PriceArchive, apart: Floats) -> Guess | None:
    """Return the guess for distances of shape (T, N). NaN marks missing distances."""
    score = np.where(np.isfinite(apart), -apart, -np.inf)
    return best_of(archive, score.max(axis=0), score.argmax(axis=0))


def best_of(archive: PriceArchive, best: Floats, rows: Ints) -> Guess | None:
    """Return the five names with the best score, and the session after the best match.

    Both arrays have shape (N,). A score of -inf means no score.
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


def usual_amounts(amount: Floats) -> Floats:
    """Return the logarithm of every name's usual traded amount in a day."""
    with np.errstate(all="ignore"):
        logs = np.where(amount > 0, np.log(amount), np.nan)
    known = np.isfinite(logs).any(axis=0)
    found = np.full(logs.shape[1], np.nan)
    found[known] = np.nanmedian(logs[:, known], axis=0)
    return found


# -- the calendar ----------------------------------------------------------------------------------

_QUARTER = re.compile(
    r"\b(?:Q([1-4])|([1-4])Q|(first|second|third|fourth)[ -]quarter)\b", re.IGNORECASE
)
_WORDS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def known_calendar(sessions: Days) -> tuple[Floats, Floats]:
    """Return the known calendar effect on volume in every session, in logarithms.

    The second array is 1 if most companies report around the session, else 0.
    """
    days = [day.item() for day in sessions.astype("datetime64[D]")]
    ends = [days[0] - datetime.timedelta(days=1), *days, days[-1] + datetime.timedelta(days=1)]
    volume, season = np.zeros(len(days)), np.zeros(len(days))
    for row, (day, before, after) in enumerate(zip(days, ends, ends[2:], strict=False)):
        half = (day.month, day.day) in ((12, 24), (7, 3)) or (
            day.month == 11 and day.weekday() == 4 and 23 <= day.day <= 29
        )
        expiry = day.weekday() == 4 and 15 <= day.day <= 21
        found = -0.7 if half else 0.0
        if expiry:
            found += 0.45 if day.month % 3 == 0 else 0.12
        found += 0.1 if after.month != day.month else 0.0
        found -= 0.4 if day.month == 12 and day.day > 23 else 0.0
        volume[row] = found - 0.1 * ((day - before).days > 3) - 0.15 * ((after - day).days > 3)
        into = (day - datetime.date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)).days
        season[row] = 14 <= into <= 42
    return volume, season


def _alike(known: Floats, shown: Floats) -> Floats:
    """Return the correlation of ``shown`` with every window of the longer series ``known``."""
    windows = np.lib.stride_tricks.sliding_window_view(known, shown.size)
    windows = windows - windows.mean(axis=1, keepdims=True)
    wanted = shown - shown.mean()
    size = np.linalg.norm(windows, axis=1) * np.linalg.norm(wanted)
    found: Floats = np.divide(windows @ wanted, size, out=np.zeros(size.size), where=size > 1e-12)
    return found


def shapes(payload: ProbePayload) -> tuple[Floats, Floats] | None:
    """Return the volume and the swings of all names together by session; None without bars."""
    volumes, swings = [], []
    for text in payload.evidence.bars:
        body = json.loads(text)
        at = {name: place for place, name in enumerate(body.get("columns", ()))}
        rows = body.get("bars", ())
        if len(rows) < 20 or any(
            row[at["amount"]] is None or row[at["close"]] is None for row in rows
        ):
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


# -- over-masking ----------------------------------------------------------------------------------

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
"""Places of ordinary prose in which only one word is possible, with the word."""


# -- reading a payload -----------------------------------------------------------------------------


def _observation(payload: ProbePayload) -> Json:
    return parse_object(payload.observation) or {}


def _snapshot(payload: ProbePayload) -> Json | None:
    bodies = (
        parse_object(message.text) or {} for message in payload.messages if message.role == "tool"
    )
    return next(
        (one for one in bodies if one.get("stock_id") == payload.alias and "bars" in one), None
    )


def _shown_row(payload: ProbePayload) -> Json | None:
    seen = _observation(payload)
    rows = [*_list(seen.get("candidates")), *_list(seen.get("held"))]
    return next(
        (row for row in rows if isinstance(row, dict) and row.get("stock_id") == payload.alias),
        None,
    )


def _bars(payload: ProbePayload) -> list[dict[str, object]]:
    shown = _snapshot(payload)
    if shown is None:
        return []
    columns = [str(name) for name in _list(shown.get("columns"))]
    return [
        dict(zip(columns, row, strict=False))
        for row in _list(shown["bars"])
        if isinstance(row, list)
    ]


def shown_closes(payload: ProbePayload) -> Floats:
    """Return the displayed closes of the stock; empty without bars.

    A close that is not a number is NaN.
    """
    return np.array(
        [np.nan if (x := _number(bar.get("close"))) is None else x for bar in _bars(payload)]
    )


def _last_bar(payload: ProbePayload) -> Json | None:
    if bars := _bars(payload):
        return bars[-1]
    row = _shown_row(payload)
    return None if row is None else _mapping(row.get("last_bar"))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
