"""What each page of a season shows: the snapshot's answers, put together and written out for its template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from tradeassay.arena.queries import decisions as read
from tradeassay.arena.queries.decisions import Shown, newest_decisions
from tradeassay.arena.queries.seasons import season_rules
from tradeassay.arena.queries.snapshot import SeasonSnapshot
from tradeassay.arena.season import BASELINE, Entry, Season
from tradeassay.arena.standings import Behaviour, Pace, Standing, Standings, pace
from tradeassay.arena.stream import items, quality
from tradeassay.arena.web.words import PageWords
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.measure import Measure, above
from tradeassay.report.charts import Band, ChartLook, Curve, Equity, LineStyle, Marks, line_chart, styles
from tradeassay.report.formatting import UNIT, MeasureShown, Scale, common_scale, shown
from tradeassay.report.numbers import NONE, number

FEED, LATEST, EVENTS, ITEMS, OWN = 40, 9, 12, 40, 30
"""How many decisions the feed, the first page and an entry's page list (``OWN``), how many events and items."""

PERIODS = (0, 91, 31)
"""The days that the chart's buttons offer; 0 is all of them."""

ACTS = (
    ("B", "bought", "▲", "buy"),
    ("S", "sold", "▼", "sell"),
    ("H", "held", "○", "hold"),
    ("fm", "failed", "✕", "bad"),
)
"""How actions are drawn: the letters they begin with, what they are called, glyph and tone."""

FORMS = {
    **dict.fromkeys(("CR", "AR", "excess"), "change"),
    **dict.fromkeys(("AV", "MDD", "share", "best"), "share"),
    "SR": "signed",
}
"""How measures are written; those not named are plain numbers."""
COLUMNS = ("CR", "excess", "AR", "AV", "SR", "MDD")
"""The measures of the board and of an entry: the paper's five, and what is ahead of buy and hold."""


class Page(NamedTuple):
    """A page: its folder, its template, what the template needs, and the same as JSON (None: there is none)."""

    path: str
    template: str
    context: dict[str, Any]
    data: object | None = None


def asset_folders(season: Season) -> dict[str, str]:
    """Return the folder of every asset: its symbol, with a dash for what does not belong in a path."""
    found: dict[str, str] = {}
    for asset in season.assets:
        name = re.sub(r"[^A-Za-z0-9._-]|^\.+", "-", asset.symbol)
        while name in found.values():
            name += "-"
        found[asset.symbol] = name
    return found


def season_pages(state: SeasonSnapshot, words: PageWords) -> Iterator[Page]:
    """Return the pages of a season that change with it; those of rounds and items are apart, there are many."""
    rows, drawn = board_rows(words, state.season, state.board()), _named(state, words, None)
    yield _standings(state, words, rows, drawn)
    for symbol, folder in asset_folders(state.season).items():
        yield _asset(state, words, symbol, folder)
    for entry in state.season.everyone:
        yield _entry(state, words, entry, rows, drawn)
    yield _split(state, words)
    place = (state.store, state.season)
    listed = state.once("feed", lambda: newest_decisions(*place, FEED, sealed=state.sealed))
    told = state.once("events", lambda: read.newest_events(*place, EVENTS, sealed=state.sealed))
    feed = {"decisions": listed, "events": told}
    yield Page("feed/", "feed", feed, feed)
    yield _information(state, words)
    rules = season_rules(state.season)
    yield Page("rules/", "rules", {"rules": rules}, rules)
    cited = state.once("cited", state.cited)
    cells = {
        (place, ours["entry"]): cell(words, one["figure"].measure, ours["measure"])
        for place, one in enumerate(cited["figures"])
        for ours in one["ours"]
    }
    yield Page("published/", "published", {"cited": cited, "forms": FORMS, "cells": cells}, cited)


def _standings(state: SeasonSnapshot, words: PageWords, rows: tuple[BoardRow, ...], drawn: Equity) -> Page:
    board, leader = state.board(), _leader(words, state.season, rows)
    entries = [row.entry for row in rows if not row.baseline]
    positions = {
        entry: {asset: line.position for asset, line in held.items()} for entry, held in state.holdings.items()
    }
    look, about = ChartLook(styles={row.entry: row.style for row in rows}), f"{words('standings.chart')}. {leader}"
    newest = partial(newest_decisions, state.store, state.season, LATEST, sealed=state.sealed)
    context = {
        "board": board,
        "chart": line_chart(drawn, look, about, periods=PERIODS),
        "prices": state.prices,
        "rows": rows,
        "leader": leader,
        "positions": positions,
        "behaviours": [
            (row, state.behaviours[row.entry], shares(words, state.behaviours[row.entry])) for row in rows
        ],
        "first_day": state.first_day,
        "divergence": divergence(state.first_day, entries),
        "latest": state.once("latest", newest),
    }
    shared = {name: context[name] for name in ("prices", "positions", "first_day")}
    return Page("", "standings", context, {"season": state.facts, **shared})


def _asset(state: SeasonSnapshot, words: PageWords, symbol: str, folder: str) -> Page:
    board = state.board(symbol)
    found = state.once(symbol, lambda: read.timeline(state.store, state.season, symbol, sealed=state.sealed))
    rows = board_rows(words, state.season, board)
    months: dict[str, list[str]] = {}
    for day in found["sessions"]:
        months.setdefault(day[:7], []).append(day)
    look, about = ChartLook(styles=looks(state.season)), f"{words('standings.chart')}: {symbol}"
    context = {
        "asset": symbol,
        "board": board,
        "rows": rows,
        "chart": line_chart(_named(state, words, symbol), look, about, periods=PERIODS),
        "timeline": found,
        "months": months,
        "actions": _price_chart(found, words),
        # By entry a letter for what it did in each session, which the script puts on the price.
        "acts": {
            "days": [point["session"] for point in found["points"]],
            "prices": [point["price"] for point in found["points"]],
            "acts": {
                entry.id: "".join(point["acts"].get(entry.id, "-")[0] for point in found["points"])
                for entry in state.season.everyone
            },
            "kinds": {letters: (words(f"timeline.{name}"), glyph, tone) for letters, name, glyph, tone in ACTS},
        },
    }
    data = {"standings": board, "equity": state.equity(symbol), "timeline": found}
    return Page(f"assets/{folder}/", "asset", context, data)


def _entry_index(state: SeasonSnapshot, id: str) -> Shown:
    """Return an entry's place, how it trades, what it holds, how lucky it may have been."""
    progress = state.facts.progress
    over = progress.decided and progress.settled == progress.rounds
    return {
        "entry": next(one for one in season_rules(state.season)["entries"] if one.id == id),
        "standing": next((row for row in state.board().rows if row.entry == id), None),
        "note": state.board().note,
        "behaviour": state.behaviours[id],
        "positions": tuple(state.holdings.get(id, {}).values()),
        "luck": {asset: found[id] for asset, found in state.luck.items() if id in found},
        "trades": state.trades(id),
        "memory": read.entry_memory(state.store, state.season, id, sealed=state.sealed and not over),
        "decisions": newest_decisions(state.store, state.season, OWN, sealed=state.sealed, entry=id),
        "pace": pace(state.season, state.lines, id),
        "calibration": read.calibration(state.store, state.season.id, id),
    }


def _entry(
    state: SeasonSnapshot, words: PageWords, entry: Entry, rows: tuple[BoardRow, ...], drawn: Equity
) -> Page:
    id = entry.id
    row = next((row for row in rows if row.entry == id), None)
    data = state.once(("entry", id), lambda: _entry_index(state, id))
    others = [e.id for e in state.season.everyone if e.id not in (id, BASELINE)]
    # With the same random traders as on the first page.
    own = msgspec.structs.replace(drawn, curves=tuple(one for one in drawn.curves if one.entry in (id, BASELINE)))
    look = ChartLook(styles=looks(state.season), size="mid")
    about = f"{words('entry.equity')}: {names_of(words, state.season)[id]}"
    context = {
        "shown": data,
        "row": row,
        "chart": line_chart(own, look, about, periods=PERIODS),
        "pace": None if data["pace"] is None else _pace_chart(data["pace"], words),
        "won": cell(words, "share", data["trades"].won),
        "shares": shares(words, data["behaviour"]),
        "luck": {asset: cell(words, "share", measure) for asset, measure in data["luck"].items()},
        "calibrated": [(one, cell(words, "share", one.right)) for one in data["calibration"]],
        "first_day": {asset: found.get(id) for asset, found in state.first_day.items()},
        "divergence": divergence(state.first_day, others),
    }
    return Page(f"entries/{id}/", "entry", context, data)


def _split(state: SeasonSnapshot, words: PageWords) -> Page:
    found = state.split
    one, other = found.shares["architecture"], found.shares["model"]
    if one.high is None or other.high is None:
        scored = one.value is not None and other.value is not None
        verdict = "early" if scored or (one.reason or "").startswith("fewer") else "unknown"
    elif above(one, other.high):  # only intervals that do not overlap tell one from the other
        verdict = "architecture"
    else:
        verdict = "model" if above(other, one.high) else "unclear"
    context = {
        "kinds": [words.kind(one) for one in found.architectures],
        "split": found,
        "cells": {part: cell(words, "share", measure, UNIT) for part, measure in found.shares.items()},
        "nested": {part: cell(words, "share", measure, UNIT) for part, measure in found.nested.items()},
        "ranges": {part: cell(words, "share", measure) for part, measure in found.ranges.items()},
        "verdict": verdict,
        "sessions": ", ".join(f"{asset} {count}" for asset, count in found.sessions.items()),
    }
    return Page("split/", "split", context, found)


def _information(state: SeasonSnapshot, words: PageWords) -> Page:
    found = state.once("quality", lambda: quality(state.store, state.season.id))
    given = state.once("packets", lambda: read.packet_summary(state.store, state.season))
    newest = state.once("items", lambda: items(state.store, state.season.id, limit=ITEMS))
    context = {
        "given": given,
        "quality": found if found.news or found.kinds else None,
        "shares": {
            name: cell(words, "share", getattr(found, name))
            for name in ("published", "merged", "rejected", "contradicting", "confirmed", "rightly_rejected")
        },
        "agreement": cell(words, "alpha", found.agreement),
        "checks": [
            (one, cell(words, "share", one.precision), cell(words, "share", one.recall)) for one in found.checks
        ],
        "items": newest,
    }
    return Page("information/", "information", context, {"quality": found, "packets": given, "items": newest})


def _named(state: SeasonSnapshot, words: PageWords, asset: str | None) -> Equity:
    """Return the chart's lines under the names that the page uses, as exact as a screen."""

    def short(values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(None if value is None else round(value, 5) for value in values)

    names, found = names_of(words, state.season), state.equity(asset)
    lines = tuple(
        msgspec.structs.replace(one, label=names.get(one.entry, one.label), returns=short(one.returns))
        for one in found.curves
    )
    band = found.band
    if band is not None:
        band = Band(low=short(band.low), middle=short(band.middle), high=short(band.high))
    return msgspec.structs.replace(found, curves=lines, band=band)


def _pace_chart(found: Pace, words: PageWords) -> Markup:
    """Return how fast an entry gains on buy and hold, with the band that only narrows."""
    width = [high - low for low, high in zip(found.low, found.high, strict=True)]
    # The first looks, whose band is more than six times as wide as the last, would flatten the picture.
    first = next(place for place, wide in enumerate(width) if wide <= 6.0 * width[-1])
    low, mean, high = (
        tuple(round(value, 5) for value in row[first:]) for row in (found.low, found.mean, found.high)
    )
    curve = Curve(entry="", label=words("entry.pace"), returns=mean)
    days, band = found.days[first:], Band(low=low, middle=mean, high=high)
    drawn = Equity(days=days, curves=(curve,), band=band, sessions=len(days))
    return line_chart(drawn, ChartLook(names="none", size="low", zero=True), words("entry.pace"))


def _price_chart(found: Shown, words: PageWords) -> Markup:
    """Return an asset's price with the news at its foot; the glyphs of actions are explained below it."""
    days, prices = (tuple(one[name] for one in found["points"]) for name in ("session", "price"))
    curve = Curve(entry="", label=words("word.price"), returns=prices)
    chart = Equity(days=days, curves=(curve,), sessions=len(days))
    marks = [
        Marks(label=words(f"timeline.{name}"), glyph=glyph, tone=tone, points=()) for _, name, glyph, tone in ACTS
    ]
    news = tuple((one["session"], None, one["title"]) for one in found["news"])
    marks.append(Marks(label=words("timeline.news"), glyph="◆", tone="news", points=news))
    about = f"{words('timeline.title')}: {found['asset']}"
    return line_chart(chart, ChartLook(form="number", names="none"), about, marks=marks)


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the standings, written out; ``value`` is what its accounts are worth, in dollars."""

    standing: Standing
    entry: str
    baseline: bool
    label: str
    value: float | None
    style: LineStyle
    cells: dict[str, MeasureShown]
    ranks: str


def board_rows(words: PageWords, season: Season, board: Standings) -> tuple[BoardRow, ...]:
    measures = {
        name: [row.excess if name == "excess" else row.measures[name] for row in board.rows] for name in COLUMNS
    }
    scales = {name: common_scale(measures[name]) for name in ("CR", "excess")}
    look, names = looks(season), names_of(words, season)
    made = []
    for place, row in enumerate(board.rows):
        cells = {name: cell(words, name, measures[name][place], scales.get(name)) for name in COLUMNS}
        cells["best"] = cell(words, "best", row.best)
        gained = row.measures["CR"].value
        # As much money at the start on every asset, or one account over all of them.
        accounts = 1 if season.rules.cross_asset else len(row.assets)
        made.append(
            BoardRow(
                standing=row,
                entry=row.entry,
                baseline=row.entry == BASELINE,
                label=names[row.entry],
                value=None if gained is None else season.cash * accounts * (1.0 + gained),
                style=look[row.entry],
                cells=cells,
                ranks="" if row.rank_low is None else words("table.ranks", low=row.rank_low, high=row.rank_high),
            )
        )
    return tuple(made)


def _leader(words: PageWords, season: Season, rows: tuple[BoardRow, ...]) -> str:
    """Return the first page's one sentence: who leads, and whether that means anything."""
    if season.live:
        return words("standings.no_live_ranks")
    ranked = [row for row in rows if row.standing.rank]
    if not ranked:
        return words("standings.nobody")
    first = ranked[0]
    chance = first.cells["best"]
    leads = words("standings.leads", name=first.label, value=first.cells["CR"].text)
    tied = sum(row.standing.rank == 1 for row in ranked)
    if tied > 1:
        leads = words("standings.lead_together", count=tied, value=first.cells["CR"].text)
    baseline = next((row for row in rows if row.baseline), None)
    if baseline is not None:
        leads = f"{leads} {words('standings.held_made', value=baseline.cells['CR'].text)}"
    if chance.value is None:
        return f"{leads} {words('standings.too_early')}"
    sure = words("standings.chance", value=chance.text)
    others = {row.entry for row in ranked} - {first.entry}
    clear = others <= set(first.standing.ahead_of)
    return f"{leads} {sure} {words('standings.clear' if clear else 'standings.unclear')}"


def cell(words: PageWords, name: str, measure: Measure, scale: Scale | None = None) -> MeasureShown:
    between = words("table.interval", low="{low}", high="{high}")
    made = shown(measure, FORMS.get(name, "number"), scale, between)
    return msgspec.structs.replace(made, note=words.reason(made.note))


def names_of(words: PageWords, season: Season) -> dict[str, str]:
    """Return the name of every entry: its architecture and model in words, then its label, or its id where it has
    no model; two alike have their ids. A label or an id says what the operator likes, so that no name is without
    the kind, and no model without its provider.

    Only the baseline's and the architectures' names are ours to translate."""
    found = {}
    for entry in season.everyone:
        kind = words.kind(entry.architecture)
        if entry.model:
            kind = f"{kind} · {entry.model}"
        own = entry.label or ("" if entry.model else entry.id)
        found[entry.id] = f"{kind}: {own}" if own else kind
        if entry.id == BASELINE:
            found[entry.id] = words("word.buy_and_hold")
    taken = Counter(found.values())
    return {id: name if taken[name] == 1 else f"{name} ({id})" for id, name in found.items()}


def looks(season: Season) -> dict[str, LineStyle]:
    return styles([entry.id for entry in season.everyone], BASELINE)


def shares(words: PageWords, found: Behaviour) -> dict[str, MeasureShown]:
    names = ("long", "short", "flat", "with_trend", "right", "changes")
    made = {name: cell(words, "share", getattr(found, name)) for name in names}
    return {**made, "holding": cell(words, "holding", found.holding)}


def divergence(actions: dict[str, dict[str, str]], entries: Sequence[str]) -> dict[str, dict[str, int]]:
    found = {}
    for asset, did in sorted(actions.items()):
        counts = Counter(did[entry] for entry in entries if entry in did)
        found[asset] = {action: counts[action] for action in ("BUY", "SELL", "HOLD")}
    return found


def mark_of(entry: Entry) -> tuple[str, int | None]:
    """Return the letters and the hue by which an entry's model is known at a glance, wherever it plays."""
    if not entry.model:
        return ("=" if entry.id == BASELINE else "ƒ" if entry.architecture == "rule" else "↗"), None
    name = entry.model.rpartition("/")[2]
    return name[:2].capitalize(), int(sha256_bytes(entry.model.encode())[:6], 16) % 360


def percent(value: float | None, signed: bool = True) -> str:
    return NONE if value is None else number(value, unit="fraction", signed=signed)


def price(value: float | None) -> str:
    return NONE if value is None else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def money(value: float | None, signed: bool = False) -> str:
    """Return dollars, to the cent below a thousand; ``signed`` for what was won or lost."""
    if value is None:
        return NONE
    size = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):,.2f}"
    return f"{'−' if value < 0 else '+' if signed and value > 0 else ''}${size}"


def when(text: str | None) -> str:
    if not text or len(text) < 16 or text[10] != "T":
        return text or ""
    return f"{text[:10]} {text[11:16]} UTC"


_REASONS = ("reason", "argument", "reasoning", "lesson")


def spoken(words: PageWords, text: str) -> list[tuple[str, str]]:
    """Return what somebody said in a debate as lines of a conversation: (label, words), the words last.

    Answers are kept as the JSON they were; anything else is shown as it is."""
    try:
        said = msgspec.json.decode(text)
    except UNDECODABLE:
        said = None
    if not isinstance(said, dict):
        return [("", text)]
    rest = []
    for key, value in said.items():
        if key in _REASONS or value is None:
            continue
        told = percent(value, False) if isinstance(value, float) else words.maybe(f"said.{value}", str(value))
        rest.append((words.maybe(f"said.{key}", key), told))
    return [*rest, *(("", str(said[key])) for key in _REASONS if said.get(key))]
