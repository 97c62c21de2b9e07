"""What each page holds: the reader's answers, put together and written out for its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from markupsafe import Markup
from starlette.requests import Request

from tradeassay.arena.queries.decisions import DecisionsWanted, Timeline, Which
from tradeassay.arena.queries.reader import EVERYTHING, SeasonReader
from tradeassay.arena.queries.seasons import Selection, season_rules, select_from
from tradeassay.arena.queries.view import SeasonView
from tradeassay.arena.season import BASELINE, Entry, Season
from tradeassay.arena.standings import Behaviour, Standing, Standings
from tradeassay.arena.stream import ItemsWanted as Filters
from tradeassay.arena.stream import items, quality
from tradeassay.arena.web.api import Fate, entry_shown, one_item
from tradeassay.arena.web.context import NotHere, asset_of, entry_of
from tradeassay.arena.web.words import PageWords
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.measure import Measure
from tradeassay.report.charts import Band, ChartLook, Curve, Equity, Marks, line_chart
from tradeassay.report.formatting import UNIT, MeasureShown, Scale, common_scale, shown
from tradeassay.report.numbers import NONE, number
from tradeassay.report.palette import LineStyle, styles

FEED = 40
PERIODS = (0, 91, 31)
"""The days that the chart's buttons offer; 0 is all of them."""
LATEST = 9
STATUSES: tuple[Which, ...] = ("all", "decided", "failed", "missed")
FATES: tuple[Fate, ...] = ("published", "merged", "rejected")
ITEMS = 40


def standings(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """The first page: prices and who decides, the chart, the standings, who holds what, how everybody trades."""
    wanted = _selection(reader, request)
    view = reader.view()  # headline, table and chart are of this one
    board = reader.board(wanted, view)
    rows = _rows(reader, words, wanted, view)
    reader.keep()
    return {
        "wanted": wanted,
        "board": board,
        "chart": line_chart(
            _equity(reader, words, wanted, view),
            ChartLook(styles={row.entry: row.style for row in rows}),
            f"{words('standings.chart')}. {_leader(words, rows)}",
            periods=PERIODS,
        ),
        "now": reader.now(),
        "rows": rows,
        "leader": _leader(words, rows),
        "groups": _groups(reader, words),
        "positions": reader.holdings(),
        "behaviours": [
            (row, view.behaviour(row.entry, wanted), shares(words, view.behaviour(row.entry, wanted)))
            for row in rows
        ],
        "first_day": view.first_day(),
        "divergence": divergence(view.first_day(), [row.entry for row in rows if not row.baseline]),
        "latest": reader.decisions(DecisionsWanted(limit=LATEST)).items,
        "names": _names(reader, words),
    }


def entry(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """An entry: its place, positions, how it trades, what it remembers, and every decision."""
    id = request.path_params["entry"]
    shown = entry_shown(reader, id)
    asset, status, before = _decision_filter(reader, request)
    wanted = DecisionsWanted(entry=id, asset=asset, status=status, before=before)
    view = reader.view()
    row = next((r for r in _rows(reader, words, EVERYTHING, view) if r.entry == id), None)
    trades = reader.trades(id)
    drawn = _equity(reader, words, EVERYTHING, view)  # the same random traders as on the first page
    return {
        "shown": shown,
        "name": _names(reader, words)[id],
        "row": row,
        "chart": line_chart(
            msgspec.structs.replace(
                drawn, curves=tuple(one for one in drawn.curves if one.entry in (id, BASELINE))
            ),
            ChartLook(styles=looks(reader.season), size="mid"),
            f"{words('entry.equity')}: {_names(reader, words)[id]}",
            periods=PERIODS,
        ),
        "trades": trades,
        "won": cell(words, "share", trades.won),
        "behaviour": shown.behaviour,
        "shares": shares(words, shown.behaviour),
        "luck": {asset: cell(words, "share", measure) for asset, measure in shown.luck.items()},
        "first_day": {asset: found.get(id) for asset, found in reader.view().first_day().items()},
        "divergence": divergence(
            reader.view().first_day(), [e.id for e in reader.season.everyone if e.id not in (id, BASELINE)]
        ),
        "memory": reader.memory(id),
        "decisions": reader.decisions(wanted),
        "wanted": wanted,
        "statuses": STATUSES,
        "names": _names(reader, words),
    }


def decision(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """One decision with all that led to it."""
    id = request.path_params["id"]
    found = reader.decision(int(id)) if id.isascii() and id.isdigit() and len(id) < 10 else None
    if found is None:
        raise NotHere(f"no decision '{id[:40]}' in this season")
    return {"decision": found, "names": _names(reader, words)}


def timeline(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """Events over actions and price of one asset, for one entry."""
    query = request.query_params
    asset = asset_of(reader, query.get("asset") or reader.season.assets[0].symbol)
    entry = entry_of(reader, query.get("entry") or _first(reader)).id
    period = select_from(reader.season, first=query.get("first"), last=query.get("last"))
    found = reader.timeline(asset, entry, (period.first, period.last))
    names = _names(reader, words)
    return {
        "timeline": found,
        "asset": asset,
        "entry": entry,
        "period": period,
        "names": names,
        "chart": _actions(found, words, f"{words('timeline.title')}: {asset}, {names[entry]}"),
    }


def _actions(found: Timeline, words: PageWords, about: str) -> Markup:
    """Return the price with what an entry did at it, and the news it had at the foot."""
    points = found.points
    did = [one.action if one.status == "decided" and not one.sealed else one.status for one in points]
    kinds = (
        ("bought", "▲", "buy", ("BUY",)),
        ("sold", "▼", "sell", ("SELL",)),
        ("held", "○", "hold", ("HOLD",)),
        ("failed", "✕", "bad", ("failed", "missed")),
    )
    marks = []
    for name, glyph, tone, outcomes in kinds:
        label = words(f"timeline.{name}")
        some = tuple(
            (one.session, one.price, label) for one, what in zip(points, did, strict=True) if what in outcomes
        )
        marks += [Marks(label=label, glyph=glyph, tone=tone, points=some)] if some else []
    if found.events:
        news = tuple((one.session, None, one.title) for one in found.events)
        marks.append(Marks(label=words("timeline.news"), glyph="◆", tone="news", points=news))
    prices = Curve(entry="", label=words("word.price"), baseline=False, returns=tuple(one.price for one in points))
    chart = Equity(
        days=tuple(one.session for one in points),
        curves=(prices,),
        band=None,
        sessions=len(points),
        thinned=False,
    )
    return line_chart(chart, ChartLook(form="number", names="none"), about, marks=marks)


def split(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """What matters more, the architecture or the model."""
    wanted = _selection(reader, request)
    found = reader.view().split(wanted)
    cells = {part: cell(words, "share", measure, UNIT) for part, measure in found.shares.items()}
    return {
        "split": found,
        "cells": cells,
        "nested": {part: cell(words, "share", measure, UNIT) for part, measure in found.nested.items()},
        "ranges": {part: cell(words, "share", measure) for part, measure in found.ranges.items()},
        "verdict": _verdict(found.shares["architecture"], found.shares["model"]),
        "wanted": wanted,
        "groups": _groups(reader, words),
    }


def feed(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """What happened last: decisions, newest first."""
    asset, status, before = _decision_filter(reader, request)
    period = select_from(reader.season, first=request.query_params.get("session"))
    wanted = DecisionsWanted(asset=asset, status=status, session=period.first, before=before, limit=FEED)
    return {
        "decisions": reader.decisions(wanted),
        "wanted": wanted,
        "statuses": STATUSES,
        "events": reader.events(None, 12),
        "names": _names(reader, words),
    }


def rules(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """The rules, from the frozen spec."""
    return {"rules": season_rules(reader.season), "names": _names(reader, words)}


def published(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """The paper's figures beside ours."""
    found = reader.cited()
    return {
        "cited": found,
        "forms": FORMS,
        "cells": {
            (place, ours.entry): cell(words, one.figure.measure, ours.measure)
            for place, one in enumerate(found.figures)
            for ours in one.ours
        },
    }


def information(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """What agents were told, what was held back and why, and how good the checks are."""
    query = request.query_params
    asked = query.get("status") or None
    status = next((fate for fate in FATES if fate == asked), None)
    if asked is not None and status is None:
        raise UserError(f"no status '{asked[:40]}'", hint=f"one of {', '.join(FATES)}")
    asset = asset_of(reader, query["asset"]) if query.get("asset") else None
    found = quality(reader.store, reader.season.id)
    return {
        "given": reader.information(),
        "quality": found if found.news or found.kinds else None,
        "shares": {
            name: cell(words, "share", getattr(found, name))
            for name in ("published", "merged", "rejected", "contradicting", "confirmed", "rightly_rejected")
        },
        "agreement": cell(words, "alpha", found.agreement),
        "checks": [
            (check, cell(words, "share", check.precision), cell(words, "share", check.recall))
            for check in found.checks
            if check.part != "all"
        ],
        "items": items(reader.store, reader.season.id, Filters(asset=asset, status=status), limit=ITEMS),
        "asset": asset,
        "status": status,
        "fates": FATES,
    }


def item(reader: SeasonReader, words: PageWords, request: Request) -> dict[str, Any]:
    """One item with where it was found, what the checks said and what experts say."""
    return {"found": one_item(reader, request.path_params["item"])}


def _rows(reader: SeasonReader, words: PageWords, wanted: Selection, view: SeasonView) -> tuple[BoardRow, ...]:
    """Return the standings written out, once per view and language."""
    return view.once(
        ("rows", words.language, wanted), lambda: board_rows(words, reader.season, view.board(wanted))
    )


def _equity(reader: SeasonReader, words: PageWords, wanted: Selection, view: SeasonView) -> Equity:
    """Return the chart's lines under the names that the page uses, as exact as a screen."""

    def made() -> Equity:
        names, found = _names(reader, words), view.equity(wanted)
        lines = tuple(
            msgspec.structs.replace(one, label=names.get(one.entry, one.label), returns=_short(one.returns))
            for one in found.curves
        )
        band = found.band
        if band is not None:
            band = Band(low=_short(band.low), middle=_short(band.middle), high=_short(band.high))
        return msgspec.structs.replace(found, curves=lines, band=band)

    return view.once(("drawn", words.language, wanted), made)


def _short(values: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(None if value is None else round(value, 5) for value in values)


def _selection(reader: SeasonReader, request: Request) -> Selection:
    query = request.query_params
    return select_from(
        reader.season,
        entries=query.getlist("entry"),
        architectures=query.getlist("architecture"),
        models=query.getlist("model"),
        assets=query.getlist("asset"),
        first=query.get("first"),
        last=query.get("last"),
    )


def _decision_filter(reader: SeasonReader, request: Request) -> tuple[str | None, Which, int | None]:
    query = request.query_params
    asset = asset_of(reader, query["asset"]) if query.get("asset") else None
    asked = query.get("status") or "all"
    status = next((one for one in STATUSES if one == asked), None)
    if status is None:
        raise UserError(f"no status '{asked[:40]}'", hint=f"one of {', '.join(STATUSES)}")
    before = query.get("before")
    if before and not (before.isascii() and before.isdigit() and len(before) < 10):
        raise UserError(f"'{before[:40]}' is not a place in the list", hint="follow the link to older decisions")
    return asset, status, int(before) if before else None


def _groups(reader: SeasonReader, words: PageWords) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what can be chosen: parameter, then values with their names."""
    everyone = [entry for entry in reader.season.everyone if entry.id != BASELINE]
    names = _names(reader, words)
    return [
        ("entry", [(entry.id, names[entry.id]) for entry in everyone]),
        (
            "architecture",
            [
                (name, words.maybe(f"architecture.{name}", name))
                for name in sorted({entry.architecture for entry in everyone})
            ],
        ),
        ("model", [(name, name) for name in sorted({entry.model for entry in everyone if entry.model})]),
        ("asset", [(asset.symbol, asset.symbol) for asset in reader.season.assets]),
    ]


def _names(reader: SeasonReader, words: PageWords) -> dict[str, str]:
    return names_of(words, reader.season)


def _first(reader: SeasonReader) -> str:
    ranked = [row.entry for row in reader.view().board(EVERYTHING).rows if row.rank is not None]
    return ranked[0] if ranked else reader.season.everyone[0].id


def _leader(words: PageWords, rows: tuple[BoardRow, ...]) -> str:
    """Return the first page's one sentence: who leads, and whether that means anything."""
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
    return f"{leads} {sure} {words('standings.clear' if chance.value >= 0.95 else 'standings.unclear')}"


def _verdict(one: Measure, other: Measure) -> str:
    """Return which matters more, or that it cannot be told: intervals must not overlap."""
    if one.value is None or other.value is None:
        return "unknown"
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return "early"
    if one.low > other.high:
        return "architecture"
    return "model" if other.low > one.high else "unclear"


FORMS = {
    "CR": "change",
    "AR": "change",
    "excess": "change",
    "SR": "signed",
    "AV": "share",
    "MDD": "share",
    "share": "share",
    "best": "share",
}
"""How measures are written; those not named are plain numbers."""
COLUMNS = ("CR", "excess", "SR", "MDD")


def cell(words: PageWords, name: str, measure: Measure, scale: Scale | None = None) -> MeasureShown:
    """Return a measure as a table shows it, in the reader's language."""
    between = words("table.interval", low="{low}", high="{high}")
    made = shown(measure, FORMS.get(name, "number"), scale, between)
    return msgspec.structs.replace(made, note=words.reason(made.note))


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the standings with its measures written out.

    ``kind`` says what its name does not; ``value`` is what its accounts are worth, in dollars.
    """

    standing: Standing
    label: str
    kind: str
    value: float | None
    style: LineStyle
    cells: dict[str, MeasureShown]
    ranks: str

    @property
    def entry(self) -> str:
        """Whose it is."""
        return self.standing.entry

    @property
    def baseline(self) -> bool:
        """Whether it is the one that everybody is compared with."""
        return self.standing.entry == BASELINE


def _kind(words: PageWords, entry: Entry) -> str:
    if not entry.label:
        return entry.model
    kind = words.maybe(f"architecture.{entry.architecture}", entry.architecture)
    return " · ".join(part for part in (kind, entry.model) if part)


def _value(season: Season, row: Standing) -> float | None:
    """Return what an entry's accounts are worth: as much money at the start on every asset, or one account."""
    made = row.measures["CR"].value
    accounts = 1 if season.rules.cross_asset else len(row.assets)
    return None if made is None else season.cash * accounts * (1.0 + made)


def board_rows(words: PageWords, season: Season, board: Standings) -> tuple[BoardRow, ...]:
    """Return the standings written out; intervals of a column share a scale."""
    measures = {
        name: [row.excess if name == "excess" else row.measures[name] for row in board.rows] for name in COLUMNS
    }
    scales = {name: common_scale(measures[name]) for name in ("CR", "excess")}
    look, names = looks(season), names_of(words, season)
    made = []
    for place, row in enumerate(board.rows):
        cells = {name: cell(words, name, measures[name][place], scales.get(name)) for name in COLUMNS}
        cells["best"] = cell(words, "best", row.best)
        ranks = "" if row.rank_low is None else words("table.ranks", low=row.rank_low, high=row.rank_high)
        made.append(
            BoardRow(
                standing=row,
                label=names[row.entry],
                kind=_kind(words, season.entry(row.entry)),
                value=_value(season, row),
                style=look[row.entry],
                cells=cells,
                ranks=ranks,
            )
        )
    return tuple(made)


def names_of(words: PageWords, season: Season) -> dict[str, str]:
    """Return the name of every entry: its label, or its architecture and model in words; two alike have their ids.

    Only the baseline's and the architectures' names are ours to translate. A model's provider is left out.
    """
    found = {}
    for entry in season.everyone:
        kind = words.maybe(f"architecture.{entry.architecture}", entry.architecture)
        if entry.id == BASELINE:
            found[entry.id] = words("word.buy_and_hold")
        elif entry.label:
            found[entry.id] = entry.label
        elif entry.model:
            found[entry.id] = f"{kind} · {entry.model.rsplit('/', 1)[-1]}"
        else:
            found[entry.id] = entry.id
    taken = Counter(found.values())
    return {id: name if taken[name] == 1 else f"{name} ({id})" for id, name in found.items()}


def looks(season: Season) -> dict[str, LineStyle]:
    """Return everybody's line, which depends on the season alone and not on what is selected."""
    return styles([entry.id for entry in season.everyone], BASELINE)


def shares(words: PageWords, found: Behaviour) -> dict[str, MeasureShown]:
    """Return the parts of a behaviour panel."""
    names = ("long", "short", "flat", "with_trend", "right", "changes")
    made = {name: cell(words, "share", getattr(found, name)) for name in names}
    made["holding"] = cell(words, "holding", found.holding)
    return made


def divergence(actions: dict[str, dict[str, str]], entries: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return how many of the entries did what on each asset's first day."""
    wanted = set(entries)
    found: dict[str, dict[str, int]] = {}
    for asset, by_entry in sorted(actions.items()):
        counts = dict.fromkeys(("BUY", "SELL", "HOLD"), 0)
        for entry, action in by_entry.items():
            if entry in wanted:
                counts[action] = counts.get(action, 0) + 1
        found[asset] = counts
    return found


def percent(value: float | None, signed: bool = True) -> str:
    """Return a fraction in per cent."""
    return NONE if value is None else number(value, unit="fraction", signed=signed)


def price(value: float | None) -> str:
    """Return a price."""
    return NONE if value is None else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def money(value: float | None, signed: bool = False) -> str:
    """Return dollars, to the cent below a thousand; ``signed`` for what was won or lost."""
    if value is None:
        return NONE
    size = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):,.2f}"
    return f"{'−' if value < 0 else '+' if signed and value > 0 else ''}${size}"


def when(text: str | None) -> str:
    """Return a moment as people write it, to the minute, in UTC."""
    if not text or len(text) < 16 or text[10] != "T":
        return text or ""
    return f"{text[:10]} {text[11:16]} UTC"


def initials(name: str) -> str:
    """Return what stands in a speaker's circle."""
    return name[:1].upper() if name[:1].isascii() else name[:1]


def spoken(words: PageWords, text: str) -> list[tuple[str, str]]:
    """Return what somebody said in a debate as lines of a conversation: (label, words), the words first.

    Answers are kept as the JSON they were; anything else is shown as it is.
    """
    try:
        said = msgspec.json.decode(text)
    except UNDECODABLE:
        return [("", text)]
    if not isinstance(said, dict):
        return [("", text)]
    first = [("", str(said[key])) for key in ("reason", "argument", "reasoning", "lesson") if said.get(key)]
    rest = []
    for key, value in said.items():
        if key in ("reason", "argument", "reasoning", "lesson") or value is None:
            continue
        shown = percent(value, False) if isinstance(value, float) else words.maybe(f"said.{value}", str(value))
        rest.append((words.maybe(f"said.{key}", key), shown))
    return [*rest, *first]
