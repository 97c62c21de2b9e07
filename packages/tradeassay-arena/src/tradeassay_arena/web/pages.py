"""Prepare the content of each page of a season from its snapshot, for the page's template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.measure import Measure
from tradeassay.report.charts import (
    Band,
    ChartLook,
    Curve,
    Equity,
    LineStyle,
    Marks,
    line_chart,
    styles,
)
from tradeassay.report.formatting import MeasureShown, Scale, common_scale, shown
from tradeassay.report.numbers import NONE, number
from tradeassay_arena.queries import decisions as read
from tradeassay_arena.queries.decisions import Shown, newest_decisions
from tradeassay_arena.queries.seasons import season_rules
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.season import BASELINE, Entry, Season
from tradeassay_arena.standings import Behaviour, Pace, Standing, Standings, pace
from tradeassay_arena.stream import items, quality
from tradeassay_arena.web.words import PageWords

FEED, LATEST, EVENTS, ITEMS, OWN = 40, 9, 12, 40, 30
"""The numbers of decisions on the feed, on the first page and on an entry's page (``OWN``), and the
numbers of events and items.
"""

PERIODS = (0, 91, 31)
"""The periods of the chart's buttons, in days. 0 means all days."""

ACTS = (
    ("B", "bought", "▲", "buy"),
    ("S", "sold", "▼", "sell"),
    ("H", "held", "○", "hold"),
    ("fm", "failed", "✕", "bad"),
)
"""The display of each action: first letter, name, glyph and tone."""

FORMS = {
    **dict.fromkeys(("CR", "AR", "excess"), "change"),
    **dict.fromkeys(("AV", "MDD", "share", "best"), "share"),
    "SR": "signed",
}
"""Formats of measures. Other measures are plain numbers."""
COLUMNS = ("CR", "excess", "AR", "AV", "SR", "MDD")
"""The measures of the standings and of an entry: the paper's five, and the excess return."""


class Page(NamedTuple):
    """A page: its folder, its template, the template's context, and the same data as JSON (None: no
    JSON).
    """

    path: str
    template: str
    context: dict[str, Any]
    data: object | None = None


def asset_folders(season: Season) -> dict[str, str]:
    """Return the name of every asset's folder.

    It is the asset's symbol, with dashes for characters that are not valid in a path.
    """
    found: dict[str, str] = {}
    for asset in season.assets:
        name = re.sub(r"[^A-Za-z0-9._-]|^\.+", "-", asset.symbol)
        while name in found.values():
            name += "-"
        found[asset.symbol] = name
    return found


def season_pages(state: SeasonSnapshot, words: PageWords) -> Iterator[Page]:
    """Return the pages that change with the season. Pages of rounds and items are rendered
    separately.
    """
    rows, drawn = board_rows(words, state.season, state.board()), _named(state, words, None)
    yield _standings(state, words, rows, drawn)
    for symbol, folder in asset_folders(state.season).items():
        yield _asset(state, words, symbol, folder)
    for entry in state.season.all_entries:
        yield _entry(state, words, entry, rows, drawn)
    place = (state.store, state.season)
    listed = state.once("feed", lambda: newest_decisions(*place, FEED, sealed=state.sealed))
    told = state.once("events", lambda: read.newest_events(*place, EVENTS, sealed=state.sealed))
    feed = {"decisions": listed, "events": told}
    yield Page("feed/", "feed", feed, feed)
    yield _information(state, words)
    rules = season_rules(state.season)
    yield Page("rules/", "rules", {"rules": rules}, rules)
    cited = state.once("cited", state.cited)
    cells = {}
    for at, one in enumerate(cited["figures"]):
        measure = one["figure"].measure
        for ours in one["ours"]:
            cells[at, ours["entry"]] = cell(words, measure, ours["measure"])
    yield Page("published/", "published", {"cited": cited, "forms": FORMS, "cells": cells}, cited)


def _standings(
    state: SeasonSnapshot, words: PageWords, rows: tuple[BoardRow, ...], drawn: Equity
) -> Page:
    board, leader = state.board(), _leader(words, state.season, rows)
    entries = [row.entry for row in rows if not row.baseline]
    positions = {
        entry: {asset: line.position for asset, line in held.items()}
        for entry, held in state.holdings.items()
    }
    look, about = (
        ChartLook(styles={row.entry: row.style for row in rows}),
        f"{words('standings.chart')}. {leader}",
    )
    newest = partial(newest_decisions, state.store, state.season, LATEST, sealed=state.sealed)
    context = {
        "board": board,
        "chart": line_chart(drawn, look, about, periods=PERIODS),
        "prices": state.prices,
        "rows": rows,
        "leader": leader,
        "positions": positions,
        "behaviours": [
            (row, state.behaviours[row.entry], shares(words, state.behaviours[row.entry]))
            for row in rows
        ],
        "first_day": state.first_day,
        "divergence": divergence(state.first_day, entries),
        "latest": state.once("latest", newest),
    }
    shared = {name: context[name] for name in ("prices", "positions", "first_day")}
    return Page("", "standings", context, {"season": state.facts, **shared})


def _asset(state: SeasonSnapshot, words: PageWords, symbol: str, folder: str) -> Page:
    board = state.board(symbol)
    found = state.once(
        symbol, lambda: read.timeline(state.store, state.season, symbol, sealed=state.sealed)
    )
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
        # One letter per entry and session for its action, which the script draws on the price.
        "acts": {
            "days": [point["session"] for point in found["points"]],
            "prices": [point["price"] for point in found["points"]],
            "acts": {
                entry.id: "".join(point["acts"].get(entry.id, "-")[0] for point in found["points"])
                for entry in state.season.all_entries
            },
            "kinds": {
                letters: (words(f"timeline.{name}"), glyph, tone)
                for letters, name, glyph, tone in ACTS
            },
        },
    }
    data = {"standings": board, "equity": state.equity(symbol), "timeline": found}
    return Page(f"assets/{folder}/", "asset", context, data)


def _entry_index(state: SeasonSnapshot, id: str) -> Shown:
    """Return an entry's standing, behaviour and open positions."""
    progress = state.facts.progress
    over = progress.decided and progress.settled == progress.rounds
    return {
        "entry": next(one for one in season_rules(state.season)["entries"] if one.id == id),
        "standing": next((row for row in state.board().rows if row.entry == id), None),
        "note": state.board().note,
        "behaviour": state.behaviours[id],
        "positions": tuple(state.holdings.get(id, {}).values()),
        "trades": state.trades(id),
        "memory": read.entry_memory(
            state.store, state.season, id, sealed=state.sealed and not over
        ),
        "decisions": newest_decisions(
            state.store, state.season, OWN, sealed=state.sealed, entry=id
        ),
        "pace": pace(state.season, state.lines, id),
        "calibration": read.calibration(state.store, state.season.id, id),
    }


def _entry(
    state: SeasonSnapshot, words: PageWords, entry: Entry, rows: tuple[BoardRow, ...], drawn: Equity
) -> Page:
    id = entry.id
    row = next((row for row in rows if row.entry == id), None)
    data = state.once(("entry", id), lambda: _entry_index(state, id))
    others = [e.id for e in state.season.all_entries if e.id not in (id, BASELINE)]
    own = msgspec.structs.replace(
        drawn, curves=tuple(one for one in drawn.curves if one.entry in (id, BASELINE))
    )
    look = ChartLook(styles=looks(state.season), size="mid")
    about = f"{words('entry.equity')}: {names_of(words, state.season)[id]}"
    context = {
        "shown": data,
        "row": row,
        "chart": line_chart(own, look, about, periods=PERIODS),
        "pace": None if data["pace"] is None else _pace_chart(data["pace"], words),
        "won": cell(words, "share", data["trades"].won),
        "shares": shares(words, data["behaviour"]),
        "calibrated": [(one, cell(words, "share", one.right)) for one in data["calibration"]],
        "first_day": {asset: found.get(id) for asset, found in state.first_day.items()},
        "divergence": divergence(state.first_day, others),
    }
    return Page(f"entries/{id}/", "entry", context, data)


def _information(state: SeasonSnapshot, words: PageWords) -> Page:
    found = state.once("quality", lambda: quality(state.store, state.season.id))
    given = state.once("packets", lambda: read.packet_summary(state.store, state.season))
    newest = state.once("items", lambda: items(state.store, state.season.id, limit=ITEMS))
    context = {
        "given": given,
        "quality": found if found.news or found.kinds else None,
        "shares": {
            name: cell(words, "share", getattr(found, name))
            for name in ("published", "merged", "confirmed")
        },
        "agreement": cell(words, "alpha", found.agreement),
        "items": newest,
    }
    return Page(
        "information/",
        "information",
        context,
        {"quality": found, "packets": given, "items": newest},
    )


def _named(state: SeasonSnapshot, words: PageWords, asset: str | None) -> Equity:
    """Return a chart's lines under the page's names, rounded for the screen."""

    def short(values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(None if value is None else round(value, 5) for value in values)

    names, found = names_of(words, state.season), state.equity(asset)
    lines = tuple(
        msgspec.structs.replace(
            one, label=names.get(one.entry, one.label), returns=short(one.returns)
        )
        for one in found.curves
    )
    return msgspec.structs.replace(found, curves=lines)


def _pace_chart(found: Pace, words: PageWords) -> Markup:
    """Return an entry's pace against buy and hold, with its narrowing band."""
    width = [high - low for low, high in zip(found.low, found.high, strict=True)]
    # Leave out first looks whose band is over six times as wide as the last band: they would
    # flatten the chart.
    first = next(place for place, wide in enumerate(width) if wide <= 6.0 * width[-1])
    low, mean, high = (
        tuple(round(value, 5) for value in row[first:])
        for row in (found.low, found.mean, found.high)
    )
    curve = Curve(entry="", label=words("entry.pace"), returns=mean)
    days, band = found.days[first:], Band(low=low, middle=mean, high=high)
    drawn = Equity(days=days, curves=(curve,), band=band, sessions=len(days))
    return line_chart(drawn, ChartLook(names="none", size="low", zero=True), words("entry.pace"))


def _price_chart(found: Shown, words: PageWords) -> Markup:
    """Return an asset's price with the news below it. The glyphs of actions are explained below the
    chart.
    """
    days, prices = (tuple(one[name] for one in found["points"]) for name in ("session", "price"))
    curve = Curve(entry="", label=words("word.price"), returns=prices)
    chart = Equity(days=days, curves=(curve,), sessions=len(days))
    marks = [
        Marks(label=words(f"timeline.{name}"), glyph=glyph, tone=tone, points=())
        for _, name, glyph, tone in ACTS
    ]
    news = tuple((one["session"], None, one["title"]) for one in found["news"])
    marks.append(Marks(label=words("timeline.news"), glyph="◆", tone="news", points=news))
    about = f"{words('timeline.title')}: {found['asset']}"
    return line_chart(chart, ChartLook(form="number", names="none"), about, marks=marks)


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the standings as text. ``value`` is the value of the entry's accounts in dollars."""

    standing: Standing
    entry: str
    baseline: bool
    label: str
    value: float | None
    style: LineStyle
    cells: dict[str, MeasureShown]
    ranks: str


def board_rows(words: PageWords, season: Season, board: Standings) -> tuple[BoardRow, ...]:
    """Return the rows of the standings as text, in the order of the standings."""
    measures = {
        name: [row.excess if name == "excess" else row.measures[name] for row in board.rows]
        for name in COLUMNS
    }
    scales = {name: common_scale(measures[name]) for name in ("CR", "excess")}
    look, names = looks(season), names_of(words, season)
    made = []
    for place, row in enumerate(board.rows):
        cells = {
            name: cell(words, name, measures[name][place], scales.get(name)) for name in COLUMNS
        }
        cells["best"] = cell(words, "best", row.best)
        gained = row.measures["CR"].value
        # The same initial money on every asset, or one account over all of them.
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
                ranks=""
                if row.rank_low is None
                else words("table.ranks", low=row.rank_low, high=row.rank_high),
            )
        )
    return tuple(made)


def _leader(words: PageWords, season: Season, rows: tuple[BoardRow, ...]) -> str:
    """Return the sentence that names the leader and states whether the lead is significant."""
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
    """Return the name of every entry: its architecture and model, then its label. An entry without
    a model and label shows its id.

    Ids are added to equal names. A label is the operator's choice, so every name includes the kind,
    and a model its provider. Only names of the baseline and of architectures are translated.
    """
    found = {}
    for entry in season.all_entries:
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
    return styles([entry.id for entry in season.all_entries], BASELINE)


def shares(words: PageWords, found: Behaviour) -> dict[str, MeasureShown]:
    names = ("long", "short", "flat", "with_trend", "right", "changes")
    made = {name: cell(words, "share", getattr(found, name)) for name in names}
    return {**made, "holding": cell(words, "holding", found.holding)}


def divergence(
    actions: dict[str, dict[str, str]], entries: Sequence[str]
) -> dict[str, dict[str, int]]:
    found = {}
    for asset, did in sorted(actions.items()):
        counts = Counter(did[entry] for entry in entries if entry in did)
        found[asset] = {action: counts[action] for action in ("BUY", "SELL", "HOLD")}
    return found


def mark_of(entry: Entry) -> tuple[str, int | None]:
    """Return the letters and the hue that represent an entry's model, the same in every season."""
    if entry.id == BASELINE:
        return "=", None
    if not entry.model:
        return ("ƒ" if entry.architecture == "rule" else "↗"), None
    name = entry.model.rpartition("/")[2]
    return name[:2].capitalize(), int(sha256_bytes(entry.model.encode())[:6], 16) % 360


def percent(value: float | None, signed: bool = True) -> str:
    return NONE if value is None else number(value, unit="fraction", signed=signed)


def price(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def money(value: float | None, signed: bool = False) -> str:
    """Return an amount in dollars as text, with cents below a thousand.

    ``signed`` adds a sign, for gains and losses.
    """
    if value is None:
        return NONE
    size = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):,.2f}"
    if value < 0:
        return f"−${size}"
    return f"+${size}" if signed and value > 0 else f"${size}"


def when(text: str | None) -> str:
    if not text or len(text) < 16 or text[10] != "T":
        return text or ""
    return f"{text[:10]} {text[11:16]} UTC"


_REASONS = ("reason", "argument", "reasoning", "lesson")


def spoken(words: PageWords, text: str) -> list[tuple[str, str]]:
    """Return a contribution to a debate as lines of (label, text). The text comes last.

    Answers are stored as JSON. Any other content is returned unchanged.
    """
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
        told = (
            percent(value, False)
            if isinstance(value, float)
            else words.maybe(f"said.{value}", str(value))
        )
        rest.append((words.maybe(f"said.{key}", key), told))
    return [*rest, *(("", str(said[key])) for key in _REASONS if said.get(key))]
