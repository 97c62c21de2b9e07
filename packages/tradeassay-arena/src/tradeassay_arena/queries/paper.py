"""The Agent Market Arena paper: its tables and figures, filled from settled seasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tradeassay.core.measure import BadgeTexts, Measure, not_scored
from tradeassay.core.tables import Cell
from tradeassay_arena.benchmarks.ama import published
from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.season import BASELINE, NO_LIVE_RANKS
from tradeassay_arena.standings import Standing
from tradeassay_bench.benchmarks import exhibits as ex
from tradeassay_bench.core.tables import Row, Table, figure
from tradeassay_bench.report.verifying import PaperRecord

_MEASURES = {"CR": "change", "AR": "change", "AV": "share", "SR": "signed", "MDD": "change"}
_NAMES = ("cumulative return", "annual return", "annual volatility", "Sharpe ratio", "deepest loss")


class _Played:
    """An entry of a season on one asset."""

    def __init__(self, season: SeasonSnapshot, asset: str, standing: Standing) -> None:
        self.season, self.asset, self.standing = season, asset, standing
        self.architecture, self.model = standing.architecture, standing.model
        self.name = f"{self.architecture}, {self.model}" if self.model else standing.label
        self.value = standing.measures["CR"].value
        # The reason for a live season without ranks is shown once, not for every entry.
        self.unranked = None if season.season.live else standing.unranked
        self.line = season.lines[standing.entry, asset]


def ama_page(seasons: Sequence[SeasonSnapshot]) -> ex.PaperPage:
    """Return the paper's exhibits, filled from the given seasons. An entry of two seasons has two
    rows.
    """
    played = [
        _Played(season, asset.symbol, standing)
        for season in seasons
        for asset in season.season.assets
        for standing in season.board(asset.symbol).rows
    ]
    # Buy and hold is the same in all seasons with the same days.
    once: dict[tuple[str, str, str], _Played] = {}
    for one in played:
        days = (
            f"{one.season.season.first} {one.season.season.last}"
            if not one.model
            else one.season.season.id
        )
        once.setdefault((one.standing.entry, one.asset, days), one)
    entries = list(once.values())
    asked = [one for one in entries if one.model]
    ranked = [one for one in asked if not one.season.season.live]
    unranked = ex.Filled(missing=NO_LIVE_RANKS) if asked and not ranked else None
    models = {
        f"{one.name}, {one.asset}": (one.model, [one.standing.measures[name] for name in _MEASURES])
        for one in asked
    }
    columns = list(zip(_NAMES, _MEASURES.values(), strict=True))
    makers: dict[str, Callable[[], ex.Filled]] = {
        "main": lambda: _matrix(seasons, entries),
        "pairing": lambda: unranked or _pairing(ranked),
        "figure-2a": lambda: _ranges(asked, "architecture"),
        "figure-2b": lambda: _ranges(asked, "model"),
        "timeline": lambda: unranked or _timeline(ranked),
        "styles": lambda: _styles(seasons),
        "latency": lambda: ex.Filled(missing="a season keeps no times of answers"),
        "groups": lambda: ex.groups_exhibit(ex.group_table("Groups of models", columns, models)),
    }
    paper = published()
    return ex.fill_paper("ama", makers, source=paper.source, second_hand=paper.second_hand)


def compose_seasons(folder: Path, record: PaperRecord) -> tuple[ex.PaperPage, BadgeTexts]:
    """Compose the page of a paper from its seasons, with badges for its readers."""
    with ExitStack() as stack:
        made = []
        badges: dict[tuple[str, str], None] = {}
        for name in record.runs:
            store, season = stack.enter_context(opened_season(str(folder / name)))
            made.append(SeasonSnapshot(store, season))
            scripted = all(
                one.model.startswith("scripted/") for one in season.all_entries if one.model
            )
            answers = ("bias", "scripted models") if scripted else ("plain", "models as named")
            real = made[-1].badges.data == "real"
            badges |= {
                ("plain", "real data") if real else ("synthetic", "synthetic data"): None,
                ("plain", f"{season.convention} convention"): None,
                ("plain", "replayed answers") if name in record.replayed else answers: None,
            }
            if season.price_note:
                badges["plain", season.price_note] = None
        return ama_page(made), tuple(badges)


def _matrix(seasons: Sequence[SeasonSnapshot], entries: Sequence[_Played]) -> ex.Filled:
    """Return cumulative returns of agents by asset, then all five measures per asset, then the
    printed figures.
    """
    assets = list(dict.fromkeys(one.asset for one in entries))
    names = dict.fromkeys(
        one.name for one in sorted(entries, key=lambda one: (bool(one.model), one.name))
    )
    by = {(one.name, one.asset): one for one in entries}
    missing = not_scored("not played")
    returns = {place: one.standing.measures["CR"] for place, one in by.items()}
    rows = []
    for name in names:
        unranked = [
            f"{why} ({a})" for a in assets if (name, a) in by and (why := by[name, a].unranked)
        ]
        cells = ((returns.get((name, a), missing), "change") for a in assets)
        rows.append(ex.row(name, cells, unranked="; ".join(unranked) or None))
    warmed = [one.season for one in seasons if one.season.has_warmup]
    closed = [season.id for season in warmed if not season.keeps_position]
    note = (
        f"positions were closed after the warm-up, which the paper keeps: {', '.join(closed)}"
        if closed
        else ""
    )
    columns = ("agent, model", *assets)
    tables = [
        Table(title="Cumulative return by asset", columns=columns, rows=tuple(rows), note=note)
    ]
    for asset in assets:
        ours = sorted((one for one in entries if one.asset == asset), key=_place)
        found = [
            ex.row(
                one.name,
                ((one.standing.measures[m], form) for m, form in _MEASURES.items()),
                unranked=one.unranked,
            )
            for one in ours
        ]
        tables.append(Table(title=asset, columns=("agent, model", *_NAMES), rows=tuple(found)))
    printed: dict[str, dict[str, Measure]] = {}
    for one in published().figure:
        who = f"{one.architecture}, {one.model}, {one.asset}"
        printed.setdefault(who, {})[one.measure] = Measure(value=one.value)
    lost = not_scored("not in our text of the paper")
    theirs = [
        ex.row(who, ((values.get(m, lost), form) for m, form in _MEASURES.items()), ours=False)
        for who, values in printed.items()
    ]
    tables.append(
        Table(title="As printed", columns=("agent, model, asset", *_NAMES), rows=tuple(theirs))
    )
    compared = [
        ours for season in seasons for cited in season.cited()["figures"] for ours in cited["ours"]
    ]
    if any(one["comparable"] for one in compared):
        return ex.Filled(tables=tuple(tables), reasons=())
    usual = dict.fromkeys(
        why for one in compared for why in one["reasons"] if not why.startswith("the figure")
    )
    reasons = (*usual, "no entry of ours has a printed figure's agent, model, asset and days")
    return ex.Filled(tables=tuple(tables), reasons=reasons)


def _place(one: _Played) -> tuple[bool, float]:
    """Return a sort key by return. Entries without a rank come last, and live seasons keep the
    order of their spec.
    """
    if one.value is None or one.season.season.live:
        return one.unranked is not None, float("inf")
    return one.unranked is not None, -one.value


def _ranked(asked: Sequence[_Played]) -> list[_Played]:
    return [one for one in asked if one.value is not None and one.unranked is None]


def _without(asked: Sequence[_Played]) -> str:
    """Return a sentence for each entry without a rank, or an empty text."""
    return "; ".join(
        f"{one.name}, {one.asset} is not ranked: {one.unranked}" for one in asked if one.unranked
    )


_NO_RANKED_MODEL = "no model has a result that is ranked"


def _pairing(asked: Sequence[_Played]) -> ex.Filled:
    rows = []
    for asset in dict.fromkeys(one.asset for one in asked):
        played = [one for one in asked if one.asset == asset]
        known = _ranked(played)
        if known:
            best = max(known, key=lambda one: one.value or 0.0)
            cells = (
                Cell(best.architecture),
                Cell(best.model),
                figure(best.standing.measures["CR"], "change"),
            )
        else:
            cells = (
                Cell("nobody"),
                Cell("nobody"),
                figure(not_scored(_without(played) or _NO_RANKED_MODEL), "change"),
            )
        rows.append(Row(Cell(asset), cells, ours=True))
    table = Table(
        title="Best pairing",
        columns=("asset", "agent", "model", "cumulative return"),
        rows=tuple(rows),
        note=_without(asked),
    )
    return ex.Filled(tables=(table,)) if rows else ex.Filled(missing="no model has a result")


def _ranges(asked: Sequence[_Played], of: str) -> ex.Filled:
    """Return mean, lowest and highest return of every architecture over models, or of every model
    over architectures.

    Entries without a rank are left out.
    """
    other = "model" if of == "architecture" else "architecture"
    found: dict[str, list[_Played]] = {}
    for one in _ranked(asked):
        found.setdefault(str(getattr(one, of)), []).append(one)
    rows = []
    for name, these in found.items():
        values = [one.value or 0.0 for one in these]
        ends = (
            Measure(value=min(values)),
            Measure(value=max(values)),
            Measure(value=max(values) - min(values)),
        )
        over = len({getattr(one, other) for one in these})
        cells = [(ex.mean_of(values), "change"), *((end, "change") for end in ends)]
        rows.append(ex.row(f"{name} ({over} {other}s)", cells))
    columns = (of, "mean return", "lowest", "highest", "range")
    note = "; ".join(
        filter(None, (f"cumulative returns over {other}s and assets", _without(asked)))
    )
    if not rows:
        return ex.Filled(missing=_without(asked) or _NO_RANKED_MODEL)
    return ex.Filled(
        tables=(Table(title=f"Range by {of}", columns=columns, rows=tuple(rows), note=note),)
    )


def _timeline(asked: Sequence[_Played]) -> ex.Filled:
    """Return the decisions of the best entries of two architectures on one asset, with buy and
    hold.
    """
    known = sorted(_ranked(asked), key=lambda one: -(one.value or 0.0))
    pairs = [
        (a, b)
        for a in known
        for b in known
        if a.asset == b.asset and a.architecture != b.architecture
    ]
    pairs = [(a, b) for a, b in pairs if a.line.sessions == b.line.sessions]
    if not pairs:
        needs = "needs two ranked agents with a result on one asset"
        return ex.Filled(missing="; ".join(filter(None, (needs, _without(asked)))))
    chosen = pairs[0]
    base = chosen[0].season.lines.get((BASELINE, chosen[0].asset))
    lines = [(one.name, one.line) for one in chosen] + (
        [] if base is None else [("buy and hold (index)", base)]
    )
    sessions = lines[0][1].sessions
    drawn = [
        (name, tuple((one.nav[1:] - 1.0).tolist()))
        for name, one in lines
        if one.sessions == sessions
    ]
    curves = ex.Curves(x=sessions, lines=tuple(drawn))
    rows = [
        Row(Cell(session), tuple(Cell(line.actions[at]) for _, line in lines), ours=True)
        for at, session in enumerate(sessions)
    ]
    columns = ("session", *(name for name, _ in lines))
    table = Table(
        title=f"Decisions on {chosen[0].asset}", columns=columns, rows=tuple(rows), folded=True
    )
    return ex.Filled(tables=(table,), curves=(curves,))


def _styles(seasons: Sequence[SeasonSnapshot]) -> ex.Filled:
    rows = []
    for season in seasons:
        for entry in season.season.all_entries:
            if not entry.model:
                continue
            style = season.behaviours[entry.id]
            first = ", ".join(
                dict.fromkeys(by[entry.id] for by in season.first_day.values() if entry.id in by)
            )
            shares = (
                style.long,
                style.short,
                style.flat,
                style.with_trend,
                style.right,
                style.changes,
            )
            cells = (
                Cell(first or "nothing"),
                *(figure(one, "share") for one in shares),
                figure(style.holding, "{:.1f}"),
                Cell(style.style),
            )
            rows.append(Row(Cell(f"{entry.architecture}, {entry.model}"), cells, ours=True))
    columns = (
        "agent, model",
        "first day",
        "long",
        "short",
        "flat",
        "with the trend",
        "right",
        "changes",
    )
    table = Table(
        title="Trading styles", columns=(*columns, "sessions held", "style"), rows=tuple(rows)
    )
    return ex.Filled(tables=(table,)) if rows else ex.Filled(missing="no model played")
