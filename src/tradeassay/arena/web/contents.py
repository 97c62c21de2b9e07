"""What each page holds: the reader's answers, put together for its template."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tradeassay.arena.reading.decisions import Wanted
from tradeassay.arena.reading.reader import EVERYTHING, SeasonReader
from tradeassay.arena.reading.ruling import season_rules
from tradeassay.arena.reading.selection import Selection, select_from
from tradeassay.arena.season import BASELINE
from tradeassay.arena.web import show
from tradeassay.arena.web.api import entry_shown
from tradeassay.arena.web.house import NotHere, asset_of, entry_of
from tradeassay.arena.web.words import Words
from tradeassay.core.errors import UserError
from tradeassay.report.shown import Scale

FEED = 40
LATEST = 9
STATUSES = ("all", "decided", "failed", "missed")


def standings(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """The first page: the chart, who holds what, the standings, how everybody trades and began."""
    wanted = _selection(reader, request)
    view = reader.view()
    board = view.board(wanted)
    rows = _rows(reader, words, wanted)
    players = [row for row in rows if not row.baseline]
    return {
        "wanted": wanted,
        "board": board,
        "rows": rows,
        "leader": _leader(words, rows),
        "look": {row.entry: show.style_of(row.style) for row in rows},
        "groups": _groups(reader, words),
        "positions": reader.holdings(),
        "behaviours": [
            (row, view.behaviour(row.entry, wanted), show.shares(words, view.behaviour(row.entry, wanted)))
            for row in rows
        ],
        "first_day": view.first_day(),
        "divergence": show.divergence(view.first_day(), [row.entry for row in players]),
        "latest": reader.decisions(Wanted(limit=LATEST)).items,
        "names": _names(reader, words),
    }


def entry(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """An entry: its place, positions, how it trades, what it remembers, and every decision."""
    id = request.path_params["entry"]
    shown = entry_shown(reader, id)
    asset, status, before = _decision_filter(reader, request)
    wanted = Wanted(entry=id, asset=asset, status=status, before=before)
    row = next(
        (r for r in show.rows(words, reader.season, reader.view().board(EVERYTHING)) if r.entry == id), None
    )
    return {
        "shown": shown,
        "name": show.shown_name(words, id, shown.entry.shown),
        "row": row,
        "look": {e: show.style_of(style) for e, style in show.looks(reader.season).items() if e in (id, BASELINE)},
        "behaviour": shown.behaviour,
        "shares": show.shares(words, shown.behaviour),
        "luck": {asset: show.cell(words, "share", measure) for asset, measure in shown.luck.items()},
        "first_day": {asset: found.get(id) for asset, found in reader.view().first_day().items()},
        "divergence": show.divergence(
            reader.view().first_day(), [e.id for e in reader.season.everyone if e.id not in (id, BASELINE)]
        ),
        "memory": reader.memory(id),
        "decisions": reader.decisions(wanted),
        "wanted": wanted,
        "statuses": STATUSES,
        "names": _names(reader, words),
    }


def decision(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """One decision with all that led to it."""
    id = request.path_params["id"]
    found = reader.decision(int(id)) if id.isascii() and id.isdigit() and len(id) < 10 else None
    if found is None:
        raise NotHere(f"no decision '{id[:40]}' in this season")
    return {"decision": found, "names": _names(reader, words)}


def timeline(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """Events over actions and price of one asset, for one entry."""
    query = request.query_params
    asset = asset_of(reader, query.get("asset") or reader.season.assets[0].symbol)
    entry = entry_of(reader, query.get("entry") or _first(reader)).id
    period = select_from(reader.season, first=query.get("first"), last=query.get("last"))
    found = reader.timeline(asset, entry, period.first, period.last)
    return {"timeline": found, "asset": asset, "entry": entry, "period": period, "names": _names(reader, words)}


def split(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """What matters more, the architecture or the model."""
    wanted = _selection(reader, request)
    found = reader.view().split(wanted)
    scale = Scale(low=0.0, high=1.0)
    cells = {part: show.cell(words, "share", measure, scale) for part, measure in found.shares.items()}
    return {
        "split": found,
        "cells": cells,
        "verdict": _verdict(found.shares["architecture"], found.shares["model"]),
        "wanted": wanted,
        "groups": _groups(reader, words),
    }


def feed(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """What happened last: decisions, newest first."""
    asset, status, before = _decision_filter(reader, request)
    period = select_from(reader.season, first=request.query_params.get("session"))
    wanted = Wanted(asset=asset, status=status, session=period.first, before=before, limit=FEED)
    return {
        "decisions": reader.decisions(wanted),
        "wanted": wanted,
        "statuses": STATUSES,
        "events": reader.events(None, 12),
        "names": _names(reader, words),
    }


def rules(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """The rules, from the frozen spec."""
    return {"rules": season_rules(reader.season), "names": _names(reader, words)}


def published(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """The paper's figures beside ours."""
    found = reader.cited()
    return {
        "cited": found,
        "cells": {
            (place, ours.entry): show.cell(words, one.figure.measure, ours.measure)
            for place, one in enumerate(found.figures)
            for ours in one.ours
        },
    }


def _rows(reader: SeasonReader, words: Words, wanted: Selection) -> tuple[show.Row, ...]:
    """Return the standings written out, once per view and language."""
    view = reader.view()
    return view.once(("rows", words.language, wanted), lambda: show.rows(words, reader.season, view.board(wanted)))


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


def _decision_filter(reader: SeasonReader, request: Request) -> tuple[str | None, Any, int | None]:
    query = request.query_params
    asset = asset_of(reader, query["asset"]) if query.get("asset") else None
    status = query.get("status") or "all"
    if status not in STATUSES:
        raise UserError(f"no status '{status[:40]}'", mend=f"one of {', '.join(STATUSES)}")
    before = query.get("before")
    if before and not (before.isascii() and before.isdigit() and len(before) < 10):
        raise UserError(f"'{before[:40]}' is no place in the list", mend="follow the link to older decisions")
    return asset, status, int(before) if before else None


def _groups(reader: SeasonReader, words: Words) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what can be chosen: parameter, then values with their names."""
    everyone = [entry for entry in reader.season.everyone if entry.id != BASELINE]
    return [
        ("entry", [(entry.id, _names(reader, words)[entry.id]) for entry in everyone]),
        ("architecture", [(name, name) for name in sorted({entry.architecture for entry in everyone})]),
        ("model", [(name, name) for name in sorted({entry.model for entry in everyone if entry.model})]),
        ("asset", [(asset.symbol, asset.symbol) for asset in reader.season.assets]),
    ]


def _names(reader: SeasonReader, words: Words) -> dict[str, str]:
    return {entry.id: show.shown_name(words, entry.id, entry.shown) for entry in reader.season.everyone}


def _first(reader: SeasonReader) -> str:
    ranked = [row.entry for row in reader.view().board(EVERYTHING).rows if row.rank is not None]
    return ranked[0] if ranked else reader.season.everyone[0].id


def _leader(words: Words, rows: tuple[show.Row, ...]) -> str:
    """Return the first page's one sentence: who leads, and whether that means anything."""
    ranked = [row for row in rows if row.rank]
    if not ranked:
        return words("standings.nobody")
    first = ranked[0]
    chance = first.cells["best"]
    leads = words("standings.leads", name=first.label, value=first.cells["CR"].text)
    tied = sum(row.rank == "1" for row in ranked)
    if tied > 1:
        leads = words("standings.lead_together", count=tied, value=first.cells["CR"].text)
    if chance.sort is None:
        return f"{leads} {words('standings.too_early')}"
    sure = words("standings.chance", value=chance.text)
    return f"{leads} {sure} {words('standings.clear' if chance.sort >= 0.95 else 'standings.unclear')}"


def _verdict(one: Any, other: Any) -> str:
    """Return which matters more, or that it cannot be told: intervals must not overlap."""
    if one.value is None or other.value is None:
        return "unknown"
    if one.low is None or other.low is None:
        return "early"
    if one.low > other.high:
        return "architecture"
    return "model" if other.low > one.high else "unclear"
