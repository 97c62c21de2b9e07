"""The standings: five measures with intervals, and how probable each rank is.

An entry's account over several assets is the mean of its accounts on each, all starting with the same money and
never rebalanced. Ranks are resampled jointly: all entries are given the same resampled days, so that a market that
rose for all does not blur who was better.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, MutableMapping, Sequence

import msgspec
import numpy as np

from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings.series import EntrySeries
from tradeassay.benchmarks.ama.rules import Kind, ama_panel
from tradeassay.core.measure import Measure, not_scored, plain_sum
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples


class BoardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How standings are made. With fewer than ``least`` common sessions ranks carry no probability."""

    bootstrap: BootstrapConfig = BootstrapConfig(draws=500)
    least: int = 20


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``best`` is the probability of being first, ``rank_low``/``rank_high`` bound the rank at 90 %.

    ``ruined`` is the day on which an account lost everything: it made -100 % and is behind all others.
    """

    rank: int | None
    entry: str
    label: str
    architecture: str
    model: str
    assets: tuple[str, ...]
    sessions: int
    measures: dict[str, Measure]
    excess: Measure
    best: Measure
    rank_low: int | None
    rank_high: int | None
    failed: int
    missed: int
    tokens: int
    usd: float | None
    ruined: str | None = None


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Standings of a season, or of a part of it; the baseline, and who never decided, are rows without a rank.

    ``behind`` counts the rounds that were settled since they were computed.
    """

    season: str
    rows: tuple[Standing, ...]
    first: str | None
    last: str | None
    note: str = ""
    behind: int = 0


Scores = tuple[dict[str, Measure], Measure]
"""An account's measures, and what it made more than buy and hold."""


def standings(
    season: Season,
    lines: Mapping[tuple[str, str], EntrySeries],
    config: BoardConfig | None = None,
    known: MutableMapping[Hashable, Scores] | None = None,
) -> Standings:
    """Return the standings over the given lines, best cumulative return first.

    ``known`` remembers what accounts scored, for other selections with the same accounts among them.
    """
    config, known = config or BoardConfig(), {} if known is None else known
    by_entry: dict[str, list[EntrySeries]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    if not by_entry:
        return Standings(season=season.id, rows=(), first=None, last=None, note="no settled session yet")
    days = sorted({day for line in lines.values() for day in line.sessions})
    paths = {entry: account(found, days) for entry, found in by_entry.items()}
    played = {entry for entry, found in by_entry.items() if entry != BASELINE and _decided(found)}
    ranks, note = _rank_probabilities({entry: paths[entry] for entry in played}, config)
    base = paths.get(BASELINE)
    rows = []
    for entry, found in by_entry.items():
        both = paths[entry].tobytes() + (b"" if base is None else base.tobytes())
        key = (entry, _kind(found), hashlib.sha256(both).digest())
        if key not in known:
            excess = (
                _excess(paths[entry], base, config) if entry != BASELINE else not_scored("this is the baseline")
            )
            panel = ama_panel(paths[entry], _kind(found), season.money, config.bootstrap)
            if ruined_at(paths[entry]) is not None:  # resampled days without that one would be another account's
                gone = Measure(value=-1.0, n=paths[entry].size, note=RUIN)
                panel = {**panel, "CR": gone, "AR": gone, "MDD": gone}
            known[key] = panel, excess
        row, day = _row(season, entry, found, known[key], ranks.get(entry)), ruined_at(paths[entry])
        rows.append(row if day is None else msgspec.structs.replace(row, ruined=days[day]))
    rows.sort(key=lambda row: (row.entry not in played | {BASELINE}, -(row.measures["CR"].value or 0.0)))
    made = [row.measures["CR"].value for row in rows if row.entry in played]
    ranked = []
    for row in rows:
        value = row.measures["CR"].value
        better = sum(other is not None and (value is None or other > value) for other in made)  # ties share a rank
        ranked.append(msgspec.structs.replace(row, rank=1 + better) if row.entry in played else row)
    return Standings(season=season.id, rows=tuple(ranked), first=days[0], last=days[-1], note=note)


RUIN = "everything is lost"


def ruined_at(path: Floats) -> int | None:
    """Return the number of the session in which an account lost everything, None where it never did."""
    lost = np.flatnonzero(path <= -1.0)
    return int(lost[0]) if lost.size else None


def _decided(found: Sequence[EntrySeries]) -> bool:
    return any("decided" in line.statuses for line in found)


def account(found: Sequence[EntrySeries], days: Sequence[str]) -> Floats:
    """Return the daily returns of equal money in every line, on the common days; an asset's closed days earn 0.

    Where one account spans all assets, they are that account's.
    """
    place = {day: number for number, day in enumerate(days)}
    if any(line.account is not None for line in found):
        # One account behind all lines: what each asset added, on the day it was decided.
        gained = np.zeros(len(place))
        first = min(found, key=lambda line: line.sessions[0])
        assert first.account is not None
        for line in found:
            assert line.account is not None
            gained[[place[day] for day in line.sessions]] += line.earned * line.account
        nav = first.account[0] + np.cumsum(gained)
        before = np.concatenate((first.account[:1], nav[:-1]))
        return _returns(nav, before)
    values = np.ones((len(found), len(days)))
    for number, line in enumerate(found):
        values[number, [place[day] for day in line.sessions]] += line.earned
    nav = np.cumprod(values, axis=1).mean(axis=0)
    return _returns(nav, np.concatenate(([1.0], nav[:-1])))


def _returns(nav: Floats, before: Floats) -> Floats:
    """Return what accounts earned; one that is gone stays gone and earns nothing."""
    return np.asarray(np.where(before > 0, nav / np.where(before > 0, before, 1.0) - 1.0, 0.0))


def _kind(found: Sequence[EntrySeries]) -> Kind:
    return "stock" if all(line.kind == "stock" for line in found) else "crypto"


def _row(
    season: Season, entry: str, found: Sequence[EntrySeries], scores: Scores, rank: tuple[Measure, int, int] | None
) -> Standing:
    who = season.entry(entry)
    costs = [line.usd for line in found]
    statuses = [status for line in found for status in line.statuses]
    none = not_scored(
        "too few settled sessions, or nobody to be compared with"
        if _decided(found)
        else "it never decided, so it has no rank"
    )
    best, low, high = rank if rank is not None else (none, None, None)
    return Standing(
        rank=None,
        entry=entry,
        label=who.shown,
        architecture=who.architecture,
        model=who.model,
        assets=tuple(sorted(line.asset for line in found)),
        sessions=sum(len(line.sessions) for line in found),
        measures=scores[0],
        excess=scores[1],
        best=best,
        rank_low=low,
        rank_high=high,
        failed=statuses.count("failed"),
        missed=statuses.count("missed"),
        tokens=sum(line.tokens for line in found),
        usd=None if any(c is None for c in costs) else plain_sum(c for c in costs if c is not None),
    )


def _excess(path: Floats, base: Floats | None, config: BoardConfig) -> Measure:
    """Return how much more than buy and hold an entry made over the window, with a paired interval."""
    if base is None:
        return not_scored("no baseline on these sessions")
    value = float(np.prod(1 + path) - np.prod(1 + base))
    if path.size < config.least:
        return Measure(value=value, n=path.size, note=f"fewer than {config.least} sessions: no interval")
    own, held = _totals(np.stack([path, base]), config)
    gaps = own - held
    level = config.bootstrap.level
    low, high = np.quantile(gaps, ((1 - level) / 2, (1 + level) / 2))
    return Measure(value=value, low=float(low), high=float(high), level=level, n=path.size)


def _rank_probabilities(
    paths: Mapping[str, Floats], config: BoardConfig
) -> tuple[dict[str, tuple[Measure, int, int]], str]:
    names = sorted(paths)
    if len(names) < 2:
        return {}, ""
    stacked = np.stack([paths[name] for name in names])
    if stacked.shape[1] < config.least:
        return {}, f"fewer than {config.least} sessions: ranks carry no probability"
    totals = _totals(stacked, config)
    order = 1 + (totals[None, :, :] > totals[:, None, :]).sum(axis=1)  # ties share the better rank
    first = order == 1
    found = {}
    for number, name in enumerate(names):
        chance = float((first[number] / first.sum(axis=0)).mean())
        low, high = np.quantile(order[number], (0.05, 0.95), method="inverted_cdf")
        found[name] = (Measure(value=chance, n=order.shape[1]), int(low), int(high))
    return found, ""


def _totals(stacked: Floats, config: BoardConfig) -> Floats:
    """Return the growth of 1 over jointly resampled days, shape (lines, draws); a ruined account stays ruined."""
    together = stacked.mean(axis=0)
    block = choose_block(together, config.bootstrap)
    seed = content_seed(config.bootstrap, stacked)
    n = stacked.shape[1]
    rows = np.concatenate(list(resamples(n, config.bootstrap.draws, block, seed)))
    totals = np.prod((1 + stacked)[:, rows], axis=-1)
    totals[[ruined_at(path) is not None for path in stacked]] = 0.0
    return np.asarray(totals)
