"""Reproduce the paper AMA: run or replay the seasons on the manual's page of the paper.

``tradeassay reproduce ama`` calls :func:`play_seasons`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.core.errors import UserError, require
from tradeassay_bench.llm import Access, Budget, load_prices
from tradeassay_bench.report.verifying import PaperRecord
from tradeassay_bench.runs import Asking
from tradeassay_bench.runs.play.progress import PacedCount
from tradeassay_bench.runs.seasons import PaperPlay
from tradeassay_bench.runs.spec.episode import refuse_bad_names

if TYPE_CHECKING:
    from tradeassay_arena.agents import ModelOpener
    from tradeassay_arena.season import Season


def play_seasons(request: PaperPlay, asking: Asking) -> tuple[PaperRecord, bool]:
    """Run one season per recording, and one season of the named models with the paper's four
    agents.

    Returns the record of all seasons, and whether a season stopped at the cap on dollars.
    """
    require("sqlalchemy", "arena")
    if asking.recordings is not None:
        raise UserError(
            "ama is played again from recordings of seasons, not from runs",
            hint="tradeassay recordings list",
        )
    if request.grid:
        raise UserError("--grid is not valid with ama", hint="leave it out")
    if request.seeds != 1:
        raise UserError("--seeds is not valid with ama", hint="a season is played once")
    if request.models and request.data is not None:
        raise UserError(
            "a season names its own entries", hint="put the models into the season file"
        )

    from tradeassay_arena.recording import recorded_season, replaying
    from tradeassay_arena.rounds.spending import season_models
    from tradeassay_arena.season import Entry, demo_season, load_season

    plays: list[tuple[str, Season, Any]] = [
        (name, recorded_season(opened), replaying(opened)) for name, opened in request.recordings
    ]
    if request.models or not plays:
        if request.data is not None:
            season = load_season(Path(request.data))
        elif plays:
            season = plays[0][1]
        else:
            demo = demo_season(0)
            season = msgspec.structs.replace(demo, id=f"{demo.id}-paper", convention="paper")
        if request.models:
            entries = []
            for number, model in enumerate(request.models, 1):
                for kind in ("investor", "trade", "hedge-fund", "deep-fund"):
                    entries.append(Entry(id=f"{kind}-{number}", architecture=kind, model=model))
            season = msgspec.structs.replace(
                season, id="paper-models", title="The named models", entries=tuple(entries)
            )
        for model in season_models(season):
            if asking.replay and not model.startswith("scripted/"):
                raise UserError(f"{model} has no recording to replay", hint="replay=False asks it")
        refuse_bad_names(season_models(season), asking)
        plays.append(("season", season, None))
    request.folder.mkdir(parents=True, exist_ok=True)
    request.say(
        f"a season takes minutes and is kept in {request.folder}: the same command continues a "
        "stopped one"
    )
    stopped = [
        _play_season(request.folder / f"{name}.db", season, opener, asking, request.say)
        for name, season, opener in plays
    ]
    replayed = tuple(f"{name}.db" for name, _, opener in plays if opener is not None)
    return PaperRecord(runs=tuple(f"{name}.db" for name, _, _ in plays), replayed=replayed), any(
        stopped
    )


def _play_season(
    db: Path, season: Season, opener: ModelOpener | None, asking: Asking, say: Callable[[str], None]
) -> bool:
    """Continue a season from the end of its database.

    Returns whether the season stopped at the cap on dollars.
    """
    from tradeassay_arena.clock import parse_speed
    from tradeassay_arena.rounds.spending import SeasonCapped, spent_usd
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store
    from tradeassay_arena.web.serving import PlayOptions, play

    store = Store(open_engine(str(db)))
    try:
        prices = load_prices(asking.prices)
        budget = None
        if opener is None:
            budget = Budget(asking.max_usd, spent_usd=spent_usd(store, season, prices))
        paced = PacedCount(say)

        def progress(done: int, total: int) -> None:
            paced(f"rounds of {db.stem} played{_spent_so_far(budget)}", done, total)

        how = PlayOptions(
            opener=opener,
            access=Access(base_url=asking.base_url, prices=prices),
            connections=asking.concurrency,
            budget=budget,
            progress=progress,
        )
        try:
            asyncio.run(play(season, store, parse_speed("max"), None, how))
        except SeasonCapped as reached:
            cap = f"the cap of {asking.max_usd:g} dollars is reached: {reached.message}"
            say(f"{cap}. The same command with a larger --max-usd continues {db.stem}")
            return True
        say(f"played {db.stem}{_spent_so_far(budget)}")
        return False
    finally:
        store.engine.dispose()


def _spent_so_far(budget: Budget | None) -> str:
    if budget is None:
        return ""
    if budget.unpriced_calls:
        return f"; {budget.unpriced_calls} questions of an unknown price asked"
    cap = "" if budget.max_usd is None else f" of {budget.max_usd:g}"
    return f"; {budget.spent_usd:.4f}{cap} dollars spent"
