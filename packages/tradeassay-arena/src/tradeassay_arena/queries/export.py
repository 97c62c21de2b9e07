"""Export a season from its journal, for the manual's page on the paper."""

from __future__ import annotations

from pathlib import Path

from tradeassay_arena.queries.seasons import opened_season
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.season import BASELINE, NO_LIVE_RANKS
from tradeassay_bench.papers.ama import Comparison, EntryOnAsset, EntryStyle, SeasonExport


def export_database(db: Path) -> SeasonExport:
    """Return the newest season of a database, computed from its journal."""
    with opened_season(str(db)) as (store, season):
        return export_season(SeasonSnapshot(store, season))


def export_season(state: SeasonSnapshot) -> SeasonExport:
    """Return a season with every entry's account, style and comparisons with published figures."""
    season = state.season
    models = [entry.model for entry in season.all_entries if entry.model]
    return SeasonExport(
        id=season.id,
        first=season.first,
        last=season.last,
        convention=season.convention,
        data="real" if state.badges.data == "real" else "synthetic",
        baseline=BASELINE,
        scripted=all(model.startswith("scripted/") for model in models),
        position_closed=season.has_warmup and not season.keeps_position,
        no_ranks=NO_LIVE_RANKS if season.live else "",
        price_note=season.price_note,
        entries=_entries(state),
        styles=_styles(state),
        comparisons=_comparisons(state),
    )


def _entries(state: SeasonSnapshot) -> tuple[EntryOnAsset, ...]:
    entries = []
    for asset in state.season.assets:
        for standing in state.board(asset.symbol).rows:
            line = state.lines[standing.entry, asset.symbol]
            entries.append(
                EntryOnAsset(
                    entry=standing.entry,
                    label=standing.label,
                    architecture=standing.architecture,
                    model=standing.model,
                    asset=asset.symbol,
                    measures=standing.measures,
                    # The reason for a live season without ranks is shown once, not for every entry.
                    unranked=None if state.season.live else standing.unranked,
                    sessions=line.sessions,
                    actions=line.actions,
                    nav=tuple(line.nav.tolist()),
                )
            )
    return tuple(entries)


def _styles(state: SeasonSnapshot) -> tuple[EntryStyle, ...]:
    styles = []
    for entry in state.season.all_entries:
        if not entry.model:
            continue
        behaviour = state.behaviours[entry.id]
        first = [by[entry.id] for by in state.first_day.values() if entry.id in by]
        styles.append(
            EntryStyle(
                architecture=entry.architecture,
                model=entry.model,
                first=tuple(dict.fromkeys(first)),
                long=behaviour.long,
                short=behaviour.short,
                flat=behaviour.flat,
                with_trend=behaviour.with_trend,
                right=behaviour.right,
                changes=behaviour.changes,
                holding=behaviour.holding,
                style=behaviour.style,
            )
        )
    return tuple(styles)


def _comparisons(state: SeasonSnapshot) -> tuple[Comparison, ...]:
    comparisons = []
    for cited in state.cited()["figures"]:
        for ours in cited["ours"]:
            comparisons.append(Comparison(reasons=tuple(ours["reasons"])))
    return tuple(comparisons)
