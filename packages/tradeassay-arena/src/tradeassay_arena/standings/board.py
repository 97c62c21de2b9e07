"""The standings: five measures with intervals, and the probability of each rank.

An entry's account over several assets is the mean of its accounts on each asset. All accounts start
with the same money and are never rebalanced. Ranks are resampled jointly: all entries get the same
resampled days, so a market that rose for every entry does not blur the comparison.

Readers look at standings every day. Comparisons with buy and hold, and between entries, therefore
use bands that are valid for any number of looks (:mod:`tradeassay.metrics.anytime`), for all
entries together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import (
    e_bh,
    e_value,
    lucky_share,
    watched_interval,
    watched_mean,
    watched_sign,
)
from tradeassay.metrics.horizon import Horizon
from tradeassay.metrics.intervals import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.ranks import unranked
from tradeassay_arena.benchmarks.ama.rules import Kind, ama_panel
from tradeassay_arena.season import BASELINE, NO_LIVE_RANKS, Season
from tradeassay_arena.standings.series import UNASKED, EntrySeries, Lines


class BoardConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the standings. Ranks have no probability with fewer than ``least`` common
    sessions.
    """

    bootstrap: BootstrapConfig = BootstrapConfig(draws=500)
    least: int = 20


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The annual mean at every look, with its band, which only narrows."""

    days: tuple[str, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``best`` is the probability of being first. ``rank_low`` and ``rank_high`` bound the
    rank at 90 %.

    ``excess`` is the return above buy and hold. ``e_value`` is the evidence that the entry grows
    faster than buy and hold. ``found`` is whether e-BH selects the entry in the table. ``ahead_of``
    lists the entries that are significantly behind it.

    ``ruined`` is the day on which an account lost everything: its return is -100 % and it ranks
    last. ``since`` is the day on which the entry joined. All columns count from that day except the
    rank, which compares common sessions.
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
    e_value: float | None
    found: bool | None
    ahead_of: tuple[str, ...]
    best: Measure
    rank_low: int | None
    rank_high: int | None
    failed: int
    missed: int
    tokens: int
    usd: float | None
    ruined: str | None = None
    since: str | None = None

    @property
    def unranked(self) -> str | None:
        """The reason why the row has no rank, or None for a ranked entry and for the baseline."""
        if self.rank is not None or self.entry == BASELINE:
            return None
        return (self.best.reason or "").removesuffix(", so it has no rank")


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """Standings of a season, or of a part of it.

    The baseline has no rank. An entry without a decision in too many rounds has none either. The
    limit is the share of rounds in which a run's agent may fail. A live season has no ranks, and
    its rows are in the order of its spec.

    ``behind`` counts rounds that were settled since the standings were computed. ``lucky``
    estimates how many entries above buy and hold are no better than it. ``unasked`` counts rounds
    that the arena itself missed: every entry held, and no rank suffers.
    """

    season: str
    rows: tuple[Standing, ...]
    first: str | None
    last: str | None
    note: str = ""
    behind: int = 0
    lucky: Measure = not_scored("no settled session yet")
    unasked: int = 0


def standings(season: Season, lines: Lines, config: BoardConfig | None = None) -> Standings:
    """Return the standings over the given lines, highest cumulative return first. A live season has
    no ranks.
    """
    config = config or BoardConfig()
    by_entry: dict[str, list[EntrySeries]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    if not by_entry:
        nothing = "; ".join(
            part for part in (season.price_note, "no settled session that counts yet") if part
        )
        return Standings(season=season.id, rows=(), first=None, last=None, note=nothing)
    days = sorted(set(chain.from_iterable(line.sessions for line in lines.values())))
    paths = {entry: account(found, days) for entry, found in by_entry.items()}
    played = {
        entry for entry, found in by_entry.items() if entry != BASELINE and _unranked(found) is None
    }
    held = dict.fromkeys(by_entry, paths.get(BASELINE))
    joined = {
        entry: day for entry, day in season.joined.items() if entry in by_entry and day > days[0]
    }
    for entry, since in joined.items():  # compare with buy and hold from the same day on
        own = [day for day in days if day >= since]
        paths[entry] = account(by_entry[entry], own)
        if parts := [
            part for line in by_entry.get(BASELINE, ()) if (part := line.since(since)) is not None
        ]:
            held[entry] = account(parts, own)
    ranked_by, silent, note = _compared(by_entry, days, joined, played, config)
    ranks, early = _rank_probabilities(ranked_by, config)
    asked: dict[tuple[str, str], str] = {}
    for line in lines.values():
        for session, status in zip(line.sessions, line.statuses, strict=True):
            asked[line.asset, session] = status
    unasked = [*asked.values()].count(UNASKED)
    missed = f"the arena itself missed {unasked} of {len(asked)} rounds, which count against nobody"
    about_ranks = () if season.live else (note, early)
    note = "; ".join(
        part for part in (season.price_note, *about_ranks, missed if unasked else "") if part
    )
    gaps = {
        entry: gap
        for entry in sorted(played)
        if (gap := _gap(paths[entry], held[entry])) is not None
    }
    e_values = {entry: e_value(gap) for entry, gap in gaps.items()}
    found_by = dict(zip(e_values, e_bh([*e_values.values()], config.bootstrap.level), strict=True))
    ahead = _ahead({entry: ranked_by[entry] for entry in sorted(ranked_by)}, config)
    rows = []
    for entry, found in by_entry.items():
        path, excess = paths[entry], not_scored("this is the baseline")
        if entry != BASELINE:
            excess = _excess(path, held[entry], _level(len(played), config))
        panel = ama_panel(path, _kind(found), season.money, config.bootstrap)
        day = ruined_at(path)
        if day is not None:  # resampled days without the day of ruin would describe another account
            gone = Measure(value=-1.0, n=path.size, note=RUIN)
            panel = {**panel, "CR": gone, "AR": gone, "MDD": gone}
        why = _unranked(found) or silent.get(entry)
        if why is not None and entry in season.withdrawn:
            why = f"withdrawn on {season.withdrawn[entry]}: {why}"
        none = not_scored(why or "too few settled sessions, or nobody to be compared with")
        best, low, high = ranks.get(entry, (none, None, None))
        who, costs = season.entry(entry), [line.usd for line in found]
        statuses = list(chain.from_iterable(line.statuses for line in found))
        rows.append(
            Standing(
                rank=None,
                entry=entry,
                label=who.shown,
                architecture=who.architecture,
                model=who.model,
                assets=tuple(sorted(line.asset for line in found)),
                sessions=sum(len(line.sessions) for line in found),
                measures=panel,
                excess=excess,
                e_value=e_values.get(entry),
                found=found_by.get(entry),
                ahead_of=ahead.get(entry, ()),
                best=best,
                rank_low=low,
                rank_high=high,
                failed=statuses.count("failed"),
                missed=statuses.count("missed") + statuses.count(UNASKED),
                tokens=sum(line.tokens for line in found),
                usd=None if None in costs else math.fsum(cost or 0.0 for cost in costs),
                ruined=None if day is None else days[day - path.size],
                since=joined.get(entry),
            )
        )
    rows.sort(
        key=lambda row: (row.entry not in played | {BASELINE}, -(row.measures["CR"].value or 0.0))
    )
    made = {row.entry: row.measures["CR"].value for row in rows if row.entry in ranked_by}
    if joined:
        made = {entry: float(np.prod(1.0 + path)) - 1.0 for entry, path in ranked_by.items()}
    ranked = []
    for row in rows:
        value = made.get(row.entry)
        better = sum(
            o is not None and (value is None or o > value) for o in made.values()
        )  # tied entries share a rank
        ranked.append(
            msgspec.structs.replace(row, rank=1 + better) if row.entry in ranked_by else row
        )
    if joined:
        ranked.sort(key=lambda row: (row.entry not in {*ranked_by, BASELINE}, row.rank or 0))
    lucky = lucky_share([*gaps.values()])
    if season.live:
        ranked, lucky = _accounts_alone(season, ranked), not_scored(NO_LIVE_RANKS)
    return Standings(
        season=season.id,
        rows=tuple(ranked),
        first=days[0],
        last=days[-1],
        note=note,
        lucky=lucky,
        unasked=unasked,
    )


def _accounts_alone(season: Season, rows: Collection[Standing]) -> list[Standing]:
    """Return the rows of a live season in the order of its spec, without comparisons."""
    of = {row.entry: row for row in rows}
    nothing = {
        "rank": None,
        "rank_low": None,
        "rank_high": None,
        "e_value": None,
        "found": None,
        "ahead_of": (),
    }
    made = []
    for row in (of[entry.id] for entry in season.all_entries if entry.id in of):
        excess = row.excess
        if (
            excess.value is not None
        ):  # only the difference between two accounts, without an interval
            excess = Measure(value=excess.value, n=excess.n)
        made.append(
            msgspec.structs.replace(row, best=not_scored(NO_LIVE_RANKS), excess=excess, **nothing)
        )
    return made


def _compared(
    by_entry: Mapping[str, Sequence[EntrySeries]],
    days: Sequence[str],
    joined: Mapping[str, str],
    played: Collection[str],
    config: BoardConfig,
) -> tuple[dict[str, Floats], dict[str, str], str]:
    """Return the accounts for the ranks over their common sessions, the reason for each entry
    without a rank, and a note.

    An entry that joined later is ranked once it has enough sessions, so its first days do not
    shorten the common sessions. An entry without decisions in these sessions is not ranked by its
    holdings, even if it decided before.
    """
    mine = {entry: sum(day >= since for day in days) for entry, since in joined.items()}
    new = {entry for entry, count in mine.items() if count < config.least}
    ranked = [entry for entry in played if entry not in new]
    silent: dict[str, str] = {}
    while True:
        first = max((joined[entry] for entry in ranked if entry in joined), default="")
        common = [day for day in days if day >= first]
        parts_of = {
            entry: [part for line in by_entry[entry] if (part := line.since(first)) is not None]
            for entry in ranked
        }
        because = " and ".join(
            f"'{entry}'" for entry in sorted(ranked) if joined.get(entry) == first
        )
        which = f"the rounds since {first}, which ranks compare because {because} joined,"
        out = {
            entry: why
            for entry, some in parts_of.items()
            if (why := _unranked(some, which)) is not None
        }
        if not out:
            break
        silent |= out
        ranked = [entry for entry in ranked if entry not in out]
    parts = []
    if first:
        parts.append(
            f"ranks compare the {len(common)} sessions since {first}, other columns count since "
            "joining"
        )
    if new & set(played):
        parts.append(f"who joined is ranked after {config.least} sessions")
    found = {
        entry: account(some, common) if some else np.zeros(len(common))
        for entry, some in parts_of.items()
    }
    return found, silent, "; ".join(parts)


RUIN = "everything is lost"


def ruined_at(path: Floats) -> int | None:
    lost = np.flatnonzero(path <= -1.0)
    return int(lost[0]) if lost.size else None


_ALL = "its rounds"


def _unranked(found: Sequence[EntrySeries], which: str = _ALL) -> str | None:
    """Return why an entry has no rank, or None. An entry that only kept earlier positions has no
    rank.

    A round that the arena itself missed is ignored, because no entry could decide. A round that
    only some entries missed counts, because its cause is not on record.
    """
    asked = []
    for line in found:
        for status in line.statuses:
            if status != UNASKED:
                asked.append(status)
    if not asked:
        return "the arena asked nobody in its rounds, so it has no rank"
    silent = sum(status != "decided" for status in asked) / len(asked)
    why = unranked(silent, f"of {which} had no decision of its own")
    if why is None:
        return None
    never = silent == 1.0 and which == _ALL
    return f"{'it never decided' if never else why}, so it has no rank"


def account(found: Sequence[EntrySeries], days: Sequence[str]) -> Floats:
    """Return the daily returns of an equal investment in every line, on the common days. An asset
    earns 0 on days when it is closed.

    For an account over all assets, return that account's returns.
    """
    place = {day: number for number, day in enumerate(days)}
    if any(line.account is not None for line in found):
        # One account for all lines: add the return of each asset on its day.
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
    """Return the returns of accounts. An account at zero stays at zero and earns nothing."""
    return np.asarray(np.where(before > 0, nav / np.where(before > 0, before, 1.0) - 1.0, 0.0))


def _kind(found: Sequence[EntrySeries]) -> Kind:
    return "stock" if all(line.kind == "stock" for line in found) else "crypto"


def _gap(path: Floats, other: Floats | None) -> Floats | None:
    """Return log growth minus another account's log growth, or None if either account is missing or
    lost everything.
    """
    if other is None or not (path > -1.0).all() or not (other > -1.0).all():
        return None
    return np.asarray(np.log1p(path) - np.log1p(other))


def _level(bands: int, config: BoardConfig) -> float:
    """Return the level of one of several bands. All bands together then have the error of one."""
    return 1.0 - (1.0 - config.bootstrap.level) / max(1, bands)


def _excess(path: Floats, base: Floats | None, level: float) -> Measure:
    """Return the return above buy and hold over the window, valid for any number of looks."""
    if base is None:
        return not_scored("no baseline on these sessions")
    held = float(np.prod(1 + base))
    value, gap = float(np.prod(1 + path)) - held, _gap(path, base)
    if gap is None:
        return Measure(value=value, low=value, high=value, n=path.size, note=RUIN)
    # The account is buy and hold times exp(sum of gaps). The ends of the band are computed in the
    # same way.
    band = watched_interval(gap, periods_per_year=path.size, level=level)
    low, high = (
        None if end is None else held * math.expm1(min(end, 700.0)) for end in (band.low, band.high)
    )
    return Measure(value=value, low=low, high=high, level=level, n=path.size, note=band.note)


def pace(season: Season, lines: Lines, entry: str) -> Pace | None:
    """Return an entry's annual log growth above buy and hold at every look after a quarter.

    Returns None before that and in a live season. The band equals the band of its excess in the
    standings of the same lines.
    """
    config = BoardConfig()
    days = sorted(set(chain.from_iterable(line.sessions for line in lines.values())))
    own, base = (
        [line for (one, _), line in lines.items() if one == who] for who in (entry, BASELINE)
    )
    if season.live or not own or not base or entry == BASELINE:
        return None
    others = {one for one, _ in lines} - {BASELINE}
    played = [
        one
        for one in others
        if _unranked([line for (who, _), line in lines.items() if who == one]) is None
    ]
    since = season.joined.get(entry, "")
    days = [day for day in days if day >= since]
    base = [part for line in base if (part := line.since(since)) is not None]
    gap = _gap(account(own, days), account(base, days)) if base else None
    seen = None if gap is None else watched_mean(gap, level=_level(len(played), config))
    if seen is None or not seen.sessions:
        return None
    year = season.money.periods_per_year(_kind(own))
    looks = [
        place for place, count in enumerate(seen.sessions) if not Horizon(int(count), year).is_short
    ]
    if not looks:
        return None
    mean, low, high = (
        tuple((year * row[looks]).tolist()) for row in (seen.mean, seen.low, seen.high)
    )
    counts = [seen.sessions[place] for place in looks]
    return Pace(days=tuple(days[count - 1] for count in counts), mean=mean, low=low, high=high)


def _ahead(paths: Mapping[str, Floats], config: BoardConfig) -> dict[str, tuple[str, ...]]:
    """Return for each entry the entries whose pairwise band lies below it. All pairs share the
    error.
    """
    sound = [entry for entry, path in paths.items() if (path > -1.0).all()]
    pairs = [*itertools.combinations(range(len(sound)), 2)]
    found: dict[str, list[str]] = {entry: [] for entry in sound}
    if pairs:
        logs = np.log1p(np.stack([paths[entry] for entry in sound]))
        one, other = np.array(pairs).T
        signs = watched_sign(logs[one] - logs[other], level=_level(len(pairs), config))
        for (a, b), sign in zip(pairs, signs.tolist(), strict=True):
            if sign:
                ahead, behind = (a, b) if sign > 0 else (b, a)
                found[sound[ahead]].append(sound[behind])
    return {entry: tuple(others) for entry, others in found.items()}


def _rank_probabilities(
    paths: Mapping[str, Floats], config: BoardConfig
) -> tuple[dict[str, tuple[Measure, int, int]], str]:
    names = sorted(paths)
    if len(names) < 2:
        return {}, ""
    stacked = np.stack([paths[name] for name in names])
    if stacked.shape[1] < config.least:
        return {}, f"fewer than {config.least} sessions: ranks carry no probability"
    # The growth of 1 over jointly resampled days, by entry and draw. A ruined account stays ruined.
    block = choose_block(stacked.mean(axis=0), config.bootstrap)
    seed = content_seed(config.bootstrap, stacked)
    days = np.concatenate(list(resamples(stacked.shape[1], config.bootstrap.draws, block, seed)))
    totals = np.prod((1 + stacked)[:, days], axis=-1)
    totals[[ruined_at(path) is not None for path in stacked]] = 0.0
    order = 1 + (totals[None, :, :] > totals[:, None, :]).sum(axis=1)  # ties share the better rank
    first = order == 1
    found = {}
    for number, name in enumerate(names):
        chance = float((first[number] / first.sum(axis=0)).mean())
        low, high = np.quantile(order[number], (0.05, 0.95), method="inverted_cdf")
        found[name] = (Measure(value=chance, n=order.shape[1]), int(low), int(high))
    return found, ""
