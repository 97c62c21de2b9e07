"""Generate the events behind a synthetic world's news, and their true effects on prices.

Events are drawn before prices. Informative events move the price. A rumour also moves it, and then
reverses. All others have no effect. The texts are written later, from the event alone.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache, reduce
from importlib.resources import files
from itertools import accumulate
from operator import add
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from tradeassay.core.arrays import Floats, Ints
from tradeassay_bench.core.time import DAY, HOUR, MINUTE, SECOND, Instant
from tradeassay_bench.core.view import Fundamental, Instrument, NewsItem
from tradeassay_bench.data.calendars import Sessions
from tradeassay_bench.data.synthetic.engine import WorldTape
from tradeassay_bench.data.synthetic.universe import Draws, Market, SyntheticConfig, WorldNames

EventKind = Literal["informative", "noise", "rumour", "duplicate"]
THEMES = ("contract", "product", "guidance", "regulator", "deal", "supply", "plant", "credit")
IN_LINE = 0.4
"""Surprises below this number of standard deviations have no effect on prices."""
DECAY = (35, 25, 18, 12, 10)
"""Weights of a drift in its first sessions. Each later session has the weight 5."""


class NewsEvent(msgspec.Struct, frozen=True, gc=False):
    """The event behind one news item.

    - ``row``: the first session that opens after publication.
    - ``tone``: the tone of the text, +1 good, -1 bad, 0 neutral.
    - ``size``: the size that the text claims, in typical moves.
    - ``gap``, ``drift``: the true returns at the first open and afterwards.
    - ``origin``: for a duplicate, the position of the repeated event.
    - ``pick``: a number that selects the wording.
    """

    column: int
    row: int
    published_at: Instant
    kind: EventKind
    theme: str
    tone: int
    size: float
    gap: float
    drift: float
    pick: int
    origin: int | None = None


class Report(msgspec.Struct, frozen=True, gc=False):
    """A quarterly report: period, column, row and instant of publication, and surprise.

    The surprise is in standard deviations.
    """

    period_end: str
    column: int
    row: int
    known_at: Instant
    surprise: float


def make_reports(
    config: SyntheticConfig, universe: WorldNames, sessions: Sessions
) -> tuple[Report, ...]:
    """Return the quarterly reports, with drawn times of publication and surprises.

    A report is published 22 to 50 days after its period. Four quarters end before the first
    session, so that the world starts with known figures.
    """
    if not config.fundamentals:
        return ()
    draws = Draws(config.seed, "reports")
    first = sessions.days[0].astype("datetime64[M]") - 15
    months = np.arange(first, sessions.days[-1].astype("datetime64[M]"))
    quarters = [m for m in months if (int(m.astype(np.int64)) % 12) % 3 == 2]
    ends = [(m + 1).astype("datetime64[D]") - 1 for m in quarters]
    shape = (len(ends), universe.size)
    lag = draws.between(22.0, 50.0, shape)
    surprise = np.clip(draws.student(shape, 6), -3.0, 3.0)
    ended = np.array([int(end.astype(np.int64)) for end in ends])[:, None]
    told = ended * DAY + np.floor(lag * 86_400.0).astype(np.int64) * SECOND
    rows = np.searchsorted(sessions.open_time, told + 2 * HOUR)
    early = (int(sessions.open_time[0]) - told) / DAY * (config.year / 365.0)
    rows = np.where(rows == 0, -np.floor(early).astype(np.int64), rows)
    old = (rows > universe.first + 20) & (rows <= universe.last)
    counted = (old | ((rows <= 0) & (universe.first == 0))) & (rows < sessions.days.size)
    # News appears outside trading hours. A publication during a session is moved to 40 minutes
    # after its close.
    before, after = np.clip(rows - 1, 0, None), np.clip(rows, 0, sessions.days.size - 1)
    before = np.minimum(before, sessions.days.size - 1)
    closed = sessions.close_time[before]
    late = np.minimum(closed + 40 * MINUTE, sessions.open_time[after] - 2 * HOUR)
    quiet = np.where(told > closed, told, np.maximum(late, sessions.open_time[before] + MINUTE))
    at = np.where(rows > 0, quiet, told)
    quarter, column = (k.tolist() for k in np.nonzero(counted))
    drawn = (values[counted].tolist() for values in (rows, at, surprise))
    return tuple(
        Report(str(ends[q]), i, *rest) for q, i, *rest in zip(quarter, column, *drawn, strict=True)
    )


def make_events(
    config: SyntheticConfig, universe: WorldNames, sessions: Sessions, reports: tuple[Report, ...]
) -> tuple[NewsEvent, ...]:
    """Return the drawn events of all news items, in order of publication."""
    draws = Draws(config.seed, "events")
    model = config.news
    shown = [report for report in reports if report.row > 0]
    picks = draws.below(1 << 20, len(shown)).tolist()
    events = []
    for report, pick in zip(shown, picks, strict=True):
        surprise, loud = report.surprise, abs(report.surprise) >= IN_LINE
        worth = model.effect * model.strength * surprise if loud else 0.0
        kind: EventKind = "informative" if loud else "noise"
        tone = 0
        if loud:
            tone = 1 if surprise > 0 else -1
        told = (report.column, report.row, report.known_at, kind, "earnings", tone, abs(surprise))
        events.append(NewsEvent(*told, worth * model.gap, worth * (1.0 - model.gap), pick))
    for kind, rate in (
        ("informative", model.events),
        ("noise", model.noise),
        ("rumour", model.rumours),
    ):
        events += _scattered(config, universe, sessions, draws, kind, rate)
    events.sort(key=lambda event: (event.published_at, event.column, event.pick))
    events += _duplicates(config, universe, sessions, draws, events)
    order = sorted(
        range(len(events)), key=lambda k: (events[k].published_at, events[k].column, events[k].pick)
    )
    place = {old: new for new, old in enumerate(order)}
    return tuple(
        events[k]
        if events[k].origin is None
        else replace(events[k], origin=place[events[k].origin or 0])
        for k in order
    )


def _scattered(
    config: SyntheticConfig,
    universe: WorldNames,
    sessions: Sessions,
    draws: Draws,
    kind: EventKind,
    rate: float,
) -> list[NewsEvent]:
    """Return drawn events of a kind at random sessions and names, ``rate`` per name and year."""
    model, n = config.news, universe.size
    cells = draws.rare(rate / config.year, sessions.days.size * n)
    count = cells.size
    rows, columns = np.divmod(cells, n)
    tone = np.where(draws.chance(0.5, count), 1, -1)
    size = draws.between(0.6, 1.6, count)
    theme = [THEMES[k] for k in draws.below(len(THEMES), count).tolist()]
    if kind == "noise":
        tone = np.where(draws.chance(0.25, count), 0, tone)
        theme = ["opinion" if said else "routine" for said in tone.tolist()]
    elif kind == "rumour":
        theme = ["rumour"] * count
    pick = draws.below(1 << 20, count)
    at = _moments(sessions, rows, draws)
    worth = tone * size * model.effect * model.strength
    gap, drift = {
        "informative": (worth * model.gap, worth * (1.0 - model.gap)),
        "rumour": (worth * 0.5, worth * -0.5),
    }.get(kind, (worth * 0.0, worth * 0.0))
    living = (rows > np.maximum(universe.first[columns], 1)) & (
        rows <= universe.last[columns] - model.horizon
    )
    where = (values.tolist() for values in (columns, rows, at))
    worth_of = (values.tolist() for values in (tone, size, gap, drift, pick, living))
    told = zip(*where, theme, *worth_of, strict=True)
    return [
        NewsEvent(i, row, when, kind, what, *rest)
        for i, row, when, what, *rest, lives in told
        if lives
    ]


def _moments(sessions: Sessions, rows: Ints, draws: Draws) -> Ints:
    """Return instants of publication before the opens of ``rows``.

    Each instant is between the previous open and two hours before the open. Two thirds of the
    instants are outside trading hours, if the break is long enough.
    """
    before = np.maximum(rows - 1, 0)
    opened, closed = sessions.open_time[before], sessions.close_time[before]
    end = sessions.open_time[rows] - 2 * HOUR
    night = draws.chance(0.66, rows.size) & (end - closed > HOUR)
    start = np.where(night, closed + 5 * MINUTE, opened + MINUTE)
    stop = np.where(night, end, np.minimum(closed, end))
    seconds = ((stop - start) // SECOND * draws.uniform(rows.size)).astype(np.int64)
    at: Ints = start + np.maximum(seconds, 0) * SECOND
    return at


def _duplicates(
    config: SyntheticConfig,
    universe: WorldNames,
    sessions: Sessions,
    draws: Draws,
    events: list[NewsEvent],
) -> list[NewsEvent]:
    """Return duplicates of some informative items, published after their effect is over."""
    loud = [k for k, event in enumerate(events) if event.kind == "informative"]
    again = draws.chance(config.news.duplicates, len(loud))
    later = draws.below(6, len(loud)) + config.news.horizon
    pick = draws.below(1 << 20, len(loud))
    rows = np.array([events[k].row for k in loud], dtype=np.int64) + later
    inside = np.minimum(rows, sessions.days.size - 1)
    at = _moments(sessions, inside, draws)
    last = [min(int(universe.last[events[k].column]), sessions.days.size - 1) for k in loud]
    copies = zip(rows.tolist(), at.tolist(), pick.tolist(), strict=True)
    return [
        replace(
            events[k],
            row=row,
            published_at=when,
            kind="duplicate",
            gap=0.0,
            drift=0.0,
            pick=wording,
            origin=k,
        )
        for j, (k, (row, when, wording)) in enumerate(zip(loud, copies, strict=True))
        if again[j] and row <= last[j]
    ]


def planted_returns(
    config: SyntheticConfig, events: tuple[NewsEvent, ...], rows: int, burn: int, names: int
) -> tuple[Floats, Floats]:
    """Return the events' effects on overnight and on intraday returns, each with shape (rows,
    names).
    """
    overnight, intraday = np.zeros((rows, names)), np.zeros((rows, names))
    horizon = config.news.horizon
    weights = (DECAY + (5,) * horizon)[:horizon]
    whole = sum(weights)
    for event in events:
        if event.gap == 0.0 and event.drift == 0.0:
            continue
        overnight[burn + event.row, event.column] += event.gap
        for k, weight in enumerate(weights):
            row = burn + event.row + k
            if row < rows:
                intraday[row, event.column] += event.drift * (weight / whole)
    return overnight, intraday


SOURCES = (
    "Company Filings",
    "Harbour Wire",
    "Meridian News",
    "The Daily Ledger",
    "Streetside Talk",
)
SOURCE_PARTS: dict[str, tuple[int, ...]] = {
    "informative": (40, 32, 16, 8, 4),
    "noise": (18, 22, 20, 22, 18),
    "rumour": (4, 20, 16, 20, 40),
    "duplicate": (10, 30, 26, 22, 12),
}
"""Frequency of each kind of item by source, in hundredths. Every source publishes every kind."""
REPEATS = ("Recap: {title}", "{title} - what we know", "In case you missed it: {title}", "{title}")


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """One wording of a news item.

    ``group`` is the subject: a company, a coin, an index, or ``any``.
    """

    group: str
    theme: str
    tone: int
    title: str
    body: str


@lru_cache(maxsize=1)
def _wordings() -> dict[tuple[str, str, int], tuple[Text, ...]]:
    """Return the wordings by group, theme and tone. Subjects without wordings use the group
    ``any``.
    """
    import tomllib

    content = (
        files("tradeassay_bench.data.synthetic")
        .joinpath("wording.toml")
        .read_text(encoding="utf-8")
    )
    found: dict[tuple[str, str, int], tuple[Text, ...]] = {}
    for text in msgspec.convert(tomllib.loads(content)["texts"], tuple[Text, ...]):
        key = (text.group, text.theme, text.tone)
        found[key] = (*found.get(key, ()), text)
    return found


_GROUPS: dict[Market, str] = {"us": "company", "ashare": "company", "crypto": "coin"}
_SCALE = 6.0
"""The percentage stated in the text of a typical event of size 1."""


def write_news(
    config: SyntheticConfig, instruments: tuple[Instrument, ...], events: tuple[NewsEvent, ...]
) -> tuple[NewsItem, ...]:
    """Return the news items of events. Their wording and source are drawn."""
    draws, wordings, group = Draws(config.seed, "sources"), _wordings(), _GROUPS[config.preset]
    where = draws.below(100, len(events)).tolist()
    items: list[NewsItem] = []
    for position, event in enumerate(events):
        instrument = instruments[event.column]
        if event.origin is None:
            scale = SURPRISE * 100.0 if event.theme == "earnings" else _SCALE
            percent = max(round(scale * event.size * 10.0), 1) / 10.0
            told = (event.theme, event.tone)
            texts = wordings.get((group, *told)) or wordings["any", *told]
            text = texts[event.pick % len(texts)]
            words = {"name": instrument.name, "symbol": instrument.symbol, "pct": f"{percent:.1f}"}
            title, body = text.title.format_map(words), text.body.format_map(words)
        else:
            first = items[event.origin]
            title, body = REPEATS[event.pick % len(REPEATS)].format(title=first.title), first.body
        number = f"{position + 1:06d}"
        items.append(
            NewsItem(
                id=f"n{number}",
                published_at=event.published_at,
                symbols=(instrument.symbol,),
                title=title,
                body=body,
                source=SOURCES[
                    bisect_right(list(accumulate(SOURCE_PARTS[event.kind])), where[position])
                ],
                url=f"https://news.example/{number}",
            )
        )
    return tuple(items)


FIELDS = tuple(
    "shares_outstanding revenue net_income eps eps_ttm book_value_per_share dividend_per_share_ttm "
    "market_cap "
    "pe pb dividend_yield".split()
)
SURPRISE = 0.08
"""Relative change of a quarter's earnings for a surprise of one standard deviation."""


def make_fundamentals(
    config: SyntheticConfig,
    universe: WorldNames,
    tape: WorldTape,
    reports: tuple[Report, ...],
    burn: int,
) -> tuple[Fundamental, ...]:
    """Return the figures of all reports, per share on the day of publication.

    Ratios use the last close before the publication.
    """
    if not reports:
        return ()
    draws = Draws(config.seed, "fundamentals")
    n = universe.size
    price = universe.price / universe.unit
    loss = draws.chance(0.08, n)
    earnings = price / np.exp(2.95 + 0.35 * draws.normal(n)) * np.where(loss, -0.5, 1.0) / 4.0
    growth = 0.015 + 0.02 * draws.normal(n)
    margin = draws.between(0.04, 0.22, n)
    book = price / np.exp(0.9 + 0.45 * draws.normal(n))
    dividends: list[list[tuple[int, float]]] = [
        [] for _ in range(n)
    ]  # row, and ticks in the first share unit
    for action in tape.actions:
        if action.kind == "dividend":
            ticks = action.value * float(tape.scale[action.ex, action.column])
            dividends[action.column].append((action.ex, ticks))
    quarters: dict[int, list[float]] = {}
    found: list[Fundamental] = []
    for report in sorted(reports, key=lambda r: (r.column, r.period_end)):
        i, row = report.column, max(burn + report.row - 1, 1)
        past = quarters.setdefault(i, [])
        trend = earnings[i] * (1.0 + growth[i] * len(past))
        past.append(float(trend + abs(trend) * SURPRISE * report.surprise))
        scale, unit = float(tape.scale[row, i]), float(universe.unit[i])
        close, shares = float(tape.last[row, i]) / unit, float(tape.shares[row, i]) * 1000.0
        eps, year = past[-1] / scale, past[-4:]
        ttm = reduce(add, year) * 4.0 / len(year) / scale
        worth = float(book[i]) * (1.0 + 0.02 * len(past)) / scale
        paid = reduce(
            add, (ticks for ex, ticks in dividends[i] if row - config.year < ex <= row), 0.0
        )
        dividend = paid / scale / unit
        values = {
            "shares_outstanding": shares,
            "revenue": abs(eps * shares) / float(margin[i]),
            "net_income": eps * shares,
            "eps": eps,
            "eps_ttm": ttm,
            "book_value_per_share": worth,
            "dividend_per_share_ttm": dividend,
            "market_cap": shares * close,
            "pb": close / worth,
            "dividend_yield": dividend / close,
        }
        if ttm > 0:
            values["pe"] = close / ttm
        told = {"symbol": universe.instruments[i].symbol, "period_end": report.period_end}
        for name in FIELDS:
            if (value := values.get(name)) is not None:
                # Formatted for print: whole numbers from a million up, else four decimals.
                shown = float(round(value)) if abs(value) >= 1e6 else round(value * 1e4) / 1e4
                found.append(Fundamental(field=name, known_at=report.known_at, value=shown, **told))
    found.sort(key=lambda f: (f.known_at, f.symbol))
    return tuple(found)
