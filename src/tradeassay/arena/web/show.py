"""How pages write numbers and draw small pictures of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings import Behaviour, Board
from tradeassay.arena.web.words import Words
from tradeassay.core.measure import Measure
from tradeassay.report.numbers import NONE, number
from tradeassay.report.palette import LineStyle, styles
from tradeassay.report.shown import IntervalBar, Scale, common_scale

PERCENT = frozenset(("CR", "AR", "AV", "MDD", "excess", "share", "best"))
SIGNED = frozenset(("CR", "AR", "SR", "excess"))


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A measure written out: the number, its interval, why there is none, and a drawing."""

    text: str
    interval: str
    note: str
    sort: float | None
    bar: IntervalBar | None = None
    tone: str = ""


def cell(words: Words, name: str, measure: Measure, scale: Scale | None = None) -> Cell:
    """Return a measure as a table shows it."""
    if measure.value is None:
        return Cell(text=NONE, interval="", note=words.reason(measure.reason), sort=None)
    unit, signed = ("fraction" if name in PERCENT else "number"), name in SIGNED
    interval = ""
    if measure.low is not None and measure.high is not None:
        low, high = (number(end, unit=unit, signed=signed) for end in (measure.low, measure.high))
        interval = words("table.interval", low=low, high=high)
    tone = ""
    if name in SIGNED:
        tone = "above" if (measure.low or 0) > 0 else "below" if (measure.high or 0) < 0 else ""
    return Cell(
        text=number(measure.value, unit=unit, signed=signed),
        interval=interval,
        note=words.reason(measure.note),
        sort=measure.value,
        bar=None if scale is None else scale.bar(measure),
        tone=tone,
    )


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the standings, written out."""

    entry: str
    label: str
    kind: str
    rank: str
    baseline: bool
    style: LineStyle
    cells: dict[str, Cell]
    ranks: str
    sessions: int
    failed: int
    missed: int
    tokens: int
    usd: float | None


COLUMNS = ("CR", "excess", "SR", "MDD")


def rows(words: Words, season: Season, board: Board) -> tuple[Row, ...]:
    """Return the standings written out; intervals of a column share a scale."""
    measures = {
        name: [row.excess if name == "excess" else row.measures[name] for row in board.rows] for name in COLUMNS
    }
    scales = {name: common_scale(found) for name, found in measures.items()}
    look = looks(season)
    made = []
    for place, row in enumerate(board.rows):
        cells = {name: cell(words, name, measures[name][place], scales[name]) for name in COLUMNS}
        cells["best"] = cell(words, "best", row.best)
        ranks = "" if row.rank_low is None else words("table.ranks", low=row.rank_low, high=row.rank_high)
        made.append(
            Row(
                entry=row.entry,
                label=shown_name(words, row.entry, row.label),
                kind=" · ".join(part for part in (row.architecture, row.model) if part),
                rank="" if row.rank is None else str(row.rank),
                baseline=row.entry == BASELINE,
                style=look[row.entry],
                cells=cells,
                ranks=ranks,
                sessions=row.sessions,
                failed=row.failed,
                missed=row.missed,
                tokens=row.tokens,
                usd=row.usd,
            )
        )
    return tuple(made)


def shown_name(words: Words, entry: str, label: str) -> str:
    """Return an entry's name; only the baseline's is ours to translate. A model's provider is left out."""
    if entry == BASELINE:
        return words("word.buy_and_hold")
    kind, dot, model = label.partition(" · ")
    return f"{kind}{dot}{model.rsplit('/', 1)[-1]}"


def looks(season: Season) -> dict[str, LineStyle]:
    """Return everybody's line, which depends on the season alone and not on what is selected."""
    return styles([entry.id for entry in season.everyone], BASELINE)


def shares(words: Words, found: Behaviour) -> dict[str, Cell]:
    """Return the parts of a behaviour panel."""
    names = ("long", "short", "flat", "with_trend", "right", "changes")
    made = {name: cell(words, "share", getattr(found, name)) for name in names}
    made["holding"] = cell(words, "holding", found.holding)
    return made


def divergence(actions: dict[str, dict[str, str]], players: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return how many of the players did what on each asset's first day."""
    wanted = set(players)
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


def style_of(style: LineStyle) -> dict[str, Any]:
    """Return a line's look for the script that draws charts."""
    return {
        "light": style.light,
        "dark": style.dark,
        "dash": style.dash,
        "marker": style.marker,
        "width": style.width,
    }
