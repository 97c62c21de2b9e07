"""Fill the tables and figures of the Agent Market Arena paper from settled seasons.

The arena exports each season from its journal as a :class:`SeasonExport`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Literal

import msgspec

from tradeassay.core.measure import BadgeTexts, Convention, Measure, not_scored
from tradeassay.core.tables import Cell
from tradeassay_bench.benchmarks import exhibits as ex
from tradeassay_bench.benchmarks.ama import published
from tradeassay_bench.core.tables import Row, Table, figure

_MEASURES = {"CR": "change", "AR": "change", "AV": "share", "SR": "signed", "MDD": "change"}
_NAMES = ("cumulative return", "annual return", "annual volatility", "Sharpe ratio", "deepest loss")


class EntryOnAsset(msgspec.Struct, frozen=True, kw_only=True):
    """The account of an entry on one asset.

    ``model`` is empty for a rule and for the baseline. ``unranked`` is the reason why a ranked
    season has no rank for it. ``nav`` begins with 1 before the first session.
    """

    entry: str
    label: str
    architecture: str
    model: str
    asset: str
    measures: dict[str, Measure]
    unranked: str | None
    sessions: tuple[str, ...]
    actions: tuple[str, ...]
    nav: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.architecture}, {self.model}" if self.model else self.label

    @property
    def value(self) -> float | None:
        return self.measures["CR"].value


class EntryStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The trading style of an entry with a model: first actions, shares of sessions, and style."""

    architecture: str
    model: str
    first: tuple[str, ...]
    long: Measure
    short: Measure
    flat: Measure
    with_trend: Measure
    right: Measure
    changes: Measure
    holding: Measure
    style: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A result of the season and a printed figure, with the reasons why they are not comparable."""

    reasons: tuple[str, ...]


class SeasonExport(msgspec.Struct, frozen=True, kw_only=True):
    """A settled season, from its journal.

    ``baseline`` is the entry that buys and holds. ``no_ranks`` is the reason why there are no
    ranks, or empty. ``scripted`` is true if all models are scripted. ``position_closed`` is true if
    positions were closed after the warm-up.
    """

    id: str
    first: str
    last: str | None
    convention: Convention
    data: Literal["real", "synthetic"]
    baseline: str
    scripted: bool
    position_closed: bool
    no_ranks: str = ""
    price_note: str = ""
    entries: tuple[EntryOnAsset, ...]
    styles: tuple[EntryStyle, ...]
    comparisons: tuple[Comparison, ...]


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    """The account of an entry on one asset, with its season."""

    season: SeasonExport
    on: EntryOnAsset

    @property
    def title(self) -> str:
        return f"{self.on.name}, {self.on.asset}"


def ama_page(seasons: Sequence[SeasonExport]) -> ex.PaperPage:
    """Return the paper's exhibits, filled from the given seasons.

    An entry of two seasons has two rows. Buy and hold is the same in all seasons with the same days
    and has one row.
    """
    once: dict[tuple[str, str, str], _Played] = {}
    for season in seasons:
        for on in season.entries:
            days = season.id if on.model else f"{season.first} {season.last}"
            once.setdefault((on.entry, on.asset, days), _Played(season=season, on=on))
    played = list(once.values())
    asked = [one for one in played if one.on.model]
    ranked = [one for one in asked if not one.season.no_ranks]
    unranked = None
    if asked and not ranked:
        unranked = ex.Filled(missing=asked[0].season.no_ranks)
    models = {}
    for one in asked:
        measures = [one.on.measures[name] for name in _MEASURES]
        models[f"{one.on.name}, {one.on.asset}"] = (one.on.model, measures)
    columns = list(zip(_NAMES, _MEASURES.values(), strict=True))
    makers: dict[str, Callable[[], ex.Filled]] = {
        "main": lambda: _matrix(seasons, played),
        "pairing": lambda: unranked or _pairing(ranked),
        "figure-2a": lambda: _ranges(asked, "architecture"),
        "figure-2b": lambda: _ranges(asked, "model"),
        "timeline": lambda: unranked or _timeline(ranked),
        "styles": lambda: _styles(seasons),
        "latency": lambda: ex.Filled(missing="a season does not record times of answers"),
        "groups": lambda: ex.groups_exhibit(ex.group_table("Groups of models", columns, models)),
    }
    paper = published()
    return ex.fill_paper("ama", makers, source=paper.source, second_hand=paper.second_hand)


def ama_badges(seasons: Sequence[SeasonExport], replayed: Sequence[bool]) -> BadgeTexts:
    """Return the badges of a page.

    ``replayed`` states for each season whether its answers were replayed.
    """
    badges: dict[tuple[str, str], None] = {}
    for season, from_recording in zip(seasons, replayed, strict=True):
        if season.data == "real":
            badges["plain", "real data"] = None
        else:
            badges["synthetic", "synthetic data"] = None
        badges["plain", f"{season.convention} convention"] = None
        if from_recording:
            badges["plain", "replayed answers"] = None
        elif season.scripted:
            badges["bias", "scripted models"] = None
        else:
            badges["plain", "models as named"] = None
        if season.price_note:
            badges["plain", season.price_note] = None
    return tuple(badges)


def _matrix(seasons: Sequence[SeasonExport], played: Sequence[_Played]) -> ex.Filled:
    """Return cumulative returns by agent and asset, all five measures, and the printed figures.

    The five measures have one table per asset.
    """
    tables = [_returns_by_asset(seasons, played)]
    for asset in dict.fromkeys(one.on.asset for one in played):
        rows = []
        for one in sorted((one for one in played if one.on.asset == asset), key=_place):
            cells = [(one.on.measures[name], form) for name, form in _MEASURES.items()]
            rows.append(ex.row(one.on.name, cells, unranked=one.on.unranked))
        tables.append(Table(title=asset, columns=("agent, model", *_NAMES), rows=tuple(rows)))
    tables.append(_printed())
    compared = list(chain.from_iterable(season.comparisons for season in seasons))
    if any(not comparison.reasons for comparison in compared):
        return ex.Filled(tables=tuple(tables), reasons=())
    usual: dict[str, None] = {}
    for comparison in compared:
        for reason in comparison.reasons:
            if not reason.startswith("the figure"):
                usual[reason] = None
    reasons = (*usual, "no entry of ours has a printed figure's agent, model, asset and days")
    return ex.Filled(tables=tuple(tables), reasons=reasons)


def _returns_by_asset(seasons: Sequence[SeasonExport], played: Sequence[_Played]) -> Table:
    """Return the table of cumulative returns by agent and asset."""
    assets = list(dict.fromkeys(one.on.asset for one in played))
    in_order = sorted(played, key=lambda one: (bool(one.on.model), one.on.name))
    by_place = {(one.on.name, one.on.asset): one.on for one in played}
    rows = []
    for name in dict.fromkeys(one.on.name for one in in_order):
        cells, unranked = [], []
        for asset in assets:
            on = by_place.get((name, asset))
            cells.append((not_scored("not played") if on is None else on.measures["CR"], "change"))
            if on is not None and on.unranked:
                unranked.append(f"{on.unranked} ({asset})")
        rows.append(ex.row(name, cells, unranked="; ".join(unranked) or None))
    closed = [season.id for season in seasons if season.position_closed]
    note = ""
    if closed:
        note = (
            "positions were closed after the warm-up, but the paper keeps them: "
            f"{', '.join(closed)}"
        )
    return Table(
        title="Cumulative return by asset",
        columns=("agent, model", *assets),
        rows=tuple(rows),
        note=note,
    )


def _printed() -> Table:
    printed: dict[str, dict[str, Measure]] = {}
    for one in published().figure:
        who = f"{one.architecture}, {one.model}, {one.asset}"
        printed.setdefault(who, {})[one.measure] = Measure(value=one.value)
    lost = not_scored("not in our text of the paper")
    rows = []
    for who, values in printed.items():
        cells = [(values.get(name, lost), form) for name, form in _MEASURES.items()]
        rows.append(ex.row(who, cells, ours=False))
    return Table(title="As printed", columns=("agent, model, asset", *_NAMES), rows=tuple(rows))


def _place(one: _Played) -> tuple[bool, float]:
    """Return a sort key by return.

    Entries without a rank are last. Seasons without ranks keep the order of their spec.
    """
    if one.on.value is None or one.season.no_ranks:
        return one.on.unranked is not None, float("inf")
    return one.on.unranked is not None, -one.on.value


def _ranked(asked: Sequence[_Played]) -> list[_Played]:
    return [one for one in asked if one.on.value is not None and one.on.unranked is None]


def _without(asked: Sequence[_Played]) -> str:
    """Return a sentence about the entries without a rank; empty if all entries are ranked."""
    return "; ".join(
        f"{one.title} is not ranked: {one.on.unranked}" for one in asked if one.on.unranked
    )


_NO_RANKED_MODEL = "no model has a result that is ranked"


def _pairing(asked: Sequence[_Played]) -> ex.Filled:
    """Return the best pair of architecture and model on every asset."""
    rows = []
    for asset in dict.fromkeys(one.on.asset for one in asked):
        played = [one for one in asked if one.on.asset == asset]
        known = _ranked(played)
        if known:
            best = max(known, key=lambda one: one.on.value or 0.0).on
            cells = (Cell(best.architecture), Cell(best.model), _cumulative(best.measures["CR"]))
        else:
            why = _without(played) or _NO_RANKED_MODEL
            cells = (Cell("nobody"), Cell("nobody"), _cumulative(not_scored(why)))
        rows.append(Row(Cell(asset), cells, ours=True))
    if not rows:
        return ex.Filled(missing="no model has a result")
    table = Table(
        title="Best pairing",
        columns=("asset", "agent", "model", "cumulative return"),
        rows=tuple(rows),
        note=_without(asked),
    )
    return ex.Filled(tables=(table,))


def _cumulative(measure: Measure) -> Cell:
    return figure(measure, "change")


def _ranges(asked: Sequence[_Played], of: Literal["architecture", "model"]) -> ex.Filled:
    """Return the mean, lowest and highest return of each architecture, or of each model.

    The figures of an architecture are over models, and the figures of a model are over
    architectures. Entries without a rank are left out.
    """
    other = "model" if of == "architecture" else "architecture"
    groups: dict[str, list[EntryOnAsset]] = {}
    for one in _ranked(asked):
        groups.setdefault(str(getattr(one.on, of)), []).append(one.on)
    if not groups:
        return ex.Filled(missing=_without(asked) or _NO_RANKED_MODEL)
    rows = []
    for name, entries in groups.items():
        values = [on.value or 0.0 for on in entries]
        lowest, highest = min(values), max(values)
        cells = [(ex.mean_of(values), "change")]
        for value in (lowest, highest, highest - lowest):
            cells.append((Measure(value=value), "change"))
        over = len({getattr(on, other) for on in entries})
        rows.append(ex.row(f"{name} ({over} {other}s)", cells))
    note = f"cumulative returns over {other}s and assets"
    table = Table(
        title=f"Range by {of}",
        columns=(of, "mean return", "lowest", "highest", "range"),
        rows=tuple(rows),
        note="; ".join(filter(None, (note, _without(asked)))),
    )
    return ex.Filled(tables=(table,))


def _timeline(asked: Sequence[_Played]) -> ex.Filled:
    """Return the decisions of the best entries of two architectures on one asset.

    The account of buy and hold is added.
    """
    chosen = _best_pair(sorted(_ranked(asked), key=lambda one: -(one.on.value or 0.0)))
    if chosen is None:
        needs = "needs two ranked agents with a result on one asset"
        return ex.Filled(missing="; ".join(filter(None, (needs, _without(asked)))))
    lines = [(one.on.name, one.on) for one in chosen]
    season, asset = chosen[0].season, chosen[0].on.asset
    for on in season.entries:
        if (on.entry, on.asset) == (season.baseline, asset):
            lines.append(("buy and hold (index)", on))
    sessions = chosen[0].on.sessions
    drawn = []
    for name, on in lines:
        if on.sessions == sessions:
            drawn.append((name, tuple(value - 1.0 for value in on.nav[1:])))
    rows = []
    for at, session in enumerate(sessions):
        rows.append(Row(Cell(session), tuple(Cell(on.actions[at]) for _, on in lines), ours=True))
    table = Table(
        title=f"Decisions on {asset}",
        columns=("session", *(name for name, _ in lines)),
        rows=tuple(rows),
        folded=True,
    )
    curves = ex.Curves(x=sessions, lines=tuple(drawn))
    return ex.Filled(tables=(table,), curves=(curves,))


def _best_pair(known: Sequence[_Played]) -> tuple[_Played, _Played] | None:
    """Return the first two entries of two architectures on one asset and the same sessions."""
    for best in known:
        for other in known:
            same_days = (best.on.asset, best.on.sessions) == (other.on.asset, other.on.sessions)
            if same_days and best.on.architecture != other.on.architecture:
                return best, other
    return None


def _styles(seasons: Sequence[SeasonExport]) -> ex.Filled:
    """Return the trading style of every model: first action, shares of sessions, holding and
    style.
    """
    rows = []
    for season in seasons:
        for style in season.styles:
            shares = (
                style.long,
                style.short,
                style.flat,
                style.with_trend,
                style.right,
                style.changes,
            )
            cells = (
                Cell(", ".join(style.first) or "nothing"),
                *(figure(share, "share") for share in shares),
                figure(style.holding, "{:.1f}"),
                Cell(style.style),
            )
            rows.append(Row(Cell(f"{style.architecture}, {style.model}"), cells, ours=True))
    if not rows:
        return ex.Filled(missing="no model played")
    columns = (
        "agent, model",
        "first day",
        "long",
        "short",
        "flat",
        "with the trend",
        "right",
        "changes",
        "sessions held",
        "style",
    )
    return ex.Filled(tables=(Table(title="Trading styles", columns=columns, rows=tuple(rows)),))
