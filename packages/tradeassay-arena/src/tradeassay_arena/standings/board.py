"""Compute the standings: five measures with intervals, and ranks with their uncertainty.

Entries are ranked by cumulative return. A bootstrap gives each entry's probability of being first
and an interval for its rank. Ranks are resampled jointly: all entries get the same resampled days,
so a market that rose for every entry does not blur the comparison.

If every asset has a separate account, an entry's combined account is the mean of these accounts.
They all start with the same money and are never rebalanced.

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
    """Settings of the standings.

    ``least`` is the minimum number of common sessions for a bootstrap of the ranks.
    """

    bootstrap: BootstrapConfig = BootstrapConfig(draws=500)
    least: int = 20


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's annual mean log growth above buy and hold, after each of ``days``, with a band.

    The band only narrows.
    """

    days: tuple[str, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One entry's row of the standings.

    - ``rank`` is the place by cumulative return (1 is the highest), or None without a rank.
    - ``best`` is the probability of being first. ``rank_low`` and ``rank_high`` are the ends of the
      90 % interval for the rank.
    - ``excess`` is the return above buy and hold.
    - ``e_value`` is the evidence that the entry grows faster than buy and hold.
    - ``found`` is whether the e-BH procedure selects the entry among all entries.
    - ``ahead_of`` lists the entries that are significantly behind this entry.
    - ``ruined`` is the day on which the account lost everything, or None. The return is then
      -100 %, and the entry ranks last.
    - ``since`` is the day on which the entry joined, or None if it joined at the start. All columns
      count from that day except the rank, which compares common sessions.
    - ``missed`` includes the rounds that the arena itself missed.
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

    The baseline has no rank. An entry that made no decision in too many rounds has no rank either.
    The limit is the same share as for failures of an agent in a run. A live season has no ranks,
    and its rows are in the order of its spec.

    ``first`` and ``last`` are the days of the first and the last session. ``behind`` is the number
    of rounds that were settled since the standings were computed. ``lucky`` estimates the share of
    entries above buy and hold that are no better than buy and hold. ``unasked`` is the number of
    rounds that the arena itself missed. In such a round every action is HOLD, and no rank is lost.
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
    """Return the standings over the given lines, highest cumulative return first.

    Entries without a rank come last. A live season has no ranks.
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
    paths = {entry: combined_returns(entry_lines, days) for entry, entry_lines in by_entry.items()}
    rankable = {
        entry
        for entry, entry_lines in by_entry.items()
        if entry != BASELINE and _unranked(entry_lines) is None
    }
    baseline_returns = dict.fromkeys(by_entry, paths.get(BASELINE))
    joined = {
        entry: day for entry, day in season.joined.items() if entry in by_entry and day > days[0]
    }
    for entry, since in joined.items():  # compare with buy and hold from the same day on
        own = [day for day in days if day >= since]
        paths[entry] = combined_returns(by_entry[entry], own)
        if parts := [
            part for line in by_entry.get(BASELINE, ()) if (part := line.since(since)) is not None
        ]:
            baseline_returns[entry] = combined_returns(parts, own)
    ranked_by, reason_unranked, note = _compared(by_entry, days, joined, rankable, config)
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
        for entry in sorted(rankable)
        if (gap := _gap(paths[entry], baseline_returns[entry])) is not None
    }
    e_values = {entry: e_value(gap) for entry, gap in gaps.items()}
    selected_by = dict(
        zip(e_values, e_bh([*e_values.values()], config.bootstrap.level), strict=True)
    )
    ahead = _ahead({entry: ranked_by[entry] for entry in sorted(ranked_by)}, config)
    rows = []
    for entry, entry_lines in by_entry.items():
        path, excess = paths[entry], not_scored("this is the baseline")
        if entry != BASELINE:
            excess = _excess(path, baseline_returns[entry], _level(len(rankable), config))
        panel = ama_panel(path, _kind(entry_lines), season.money, config.bootstrap)
        day = ruined_at(path)
        if day is not None:  # resampled days without the day of ruin would describe another account
            gone = Measure(value=-1.0, n=path.size, note=RUIN)
            panel = {**panel, "CR": gone, "AR": gone, "MDD": gone}
        why = _unranked(entry_lines) or reason_unranked.get(entry)
        if why is not None and entry in season.withdrawn:
            why = f"withdrawn on {season.withdrawn[entry]}: {why}"
        none = not_scored(why or "too few settled sessions, or nobody to be compared with")
        best, low, high = ranks.get(entry, (none, None, None))
        who, costs = season.entry(entry), [line.usd for line in entry_lines]
        statuses = list(chain.from_iterable(line.statuses for line in entry_lines))
        rows.append(
            Standing(
                rank=None,
                entry=entry,
                label=who.shown,
                architecture=who.architecture,
                model=who.model,
                assets=tuple(sorted(line.asset for line in entry_lines)),
                sessions=sum(len(line.sessions) for line in entry_lines),
                measures=panel,
                excess=excess,
                e_value=e_values.get(entry),
                found=selected_by.get(entry),
                ahead_of=ahead.get(entry, ()),
                best=best,
                rank_low=low,
                rank_high=high,
                failed=statuses.count("failed"),
                missed=statuses.count("missed") + statuses.count(UNASKED),
                tokens=sum(line.tokens for line in entry_lines),
                usd=None if None in costs else math.fsum(cost or 0.0 for cost in costs),
                ruined=None if day is None else days[day - path.size],
                since=joined.get(entry),
            )
        )
    rows.sort(
        key=lambda row: (row.entry not in rankable | {BASELINE}, -(row.measures["CR"].value or 0.0))
    )
    cumulative_return = {
        row.entry: row.measures["CR"].value for row in rows if row.entry in ranked_by
    }
    if joined:
        cumulative_return = {
            entry: float(np.prod(1.0 + path)) - 1.0 for entry, path in ranked_by.items()
        }
    ranked = []
    for row in rows:
        value = cumulative_return.get(row.entry)
        better = sum(
            o is not None and (value is None or o > value) for o in cumulative_return.values()
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
    unranked_rows = []
    for row in (of[entry.id] for entry in season.all_entries if entry.id in of):
        excess = row.excess
        if (
            excess.value is not None
        ):  # only the difference between two accounts, without an interval
            excess = Measure(value=excess.value, n=excess.n)
        unranked_rows.append(
            msgspec.structs.replace(row, best=not_scored(NO_LIVE_RANKS), excess=excess, **nothing)
        )
    return unranked_rows


def _compared(
    by_entry: Mapping[str, Sequence[EntrySeries]],
    days: Sequence[str],
    joined: Mapping[str, str],
    rankable: Collection[str],
    config: BoardConfig,
) -> tuple[dict[str, Floats], dict[str, str], str]:
    """Return the daily returns that ranks compare, reasons why entries have no rank, and a note.

    An entry that joined later is ranked once it has enough sessions, so its first days do not
    shorten the common sessions. An entry without decisions in these sessions is not ranked by its
    holdings, even if it decided before.
    """
    mine = {entry: sum(day >= since for day in days) for entry, since in joined.items()}
    joined_lately = {entry for entry, count in mine.items() if count < config.least}
    ranked = [entry for entry in rankable if entry not in joined_lately]
    reason_unranked: dict[str, str] = {}
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
        excluded = {
            entry: why
            for entry, entry_lines in parts_of.items()
            if (why := _unranked(entry_lines, which)) is not None
        }
        if not excluded:
            break
        reason_unranked |= excluded
        ranked = [entry for entry in ranked if entry not in excluded]
    parts = []
    if first:
        parts.append(
            f"ranks compare the {len(common)} sessions since {first}, other columns count since "
            "joining"
        )
    if joined_lately & set(rankable):
        parts.append(f"who joined is ranked after {config.least} sessions")
    returns = {
        entry: combined_returns(entry_lines, common) if entry_lines else np.zeros(len(common))
        for entry, entry_lines in parts_of.items()
    }
    return returns, reason_unranked, "; ".join(parts)


RUIN = "everything is lost"


def ruined_at(path: Floats) -> int | None:
    """Return the index of the first return of -100 %, or None."""
    lost = np.flatnonzero(path <= -1.0)
    return int(lost[0]) if lost.size else None


_ALL = "its rounds"


def _unranked(entry_lines: Sequence[EntrySeries], which: str = _ALL) -> str | None:
    """Return the reason why an entry has no rank, or None if it can be ranked.

    An entry without decisions of its own in too many rounds has no rank. ``which`` names the rounds
    in the reason.

    A round that the arena itself missed is ignored, because no entry could decide. A round that
    only some entries missed counts, because its cause is not on record.
    """
    asked = []
    for line in entry_lines:
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


def combined_returns(entry_lines: Sequence[EntrySeries], days: Sequence[str]) -> Floats:
    """Return an entry's daily returns over all of its assets, one for each of ``days``.

    If every asset has a separate account, the same money is invested in each asset at the start.
    Otherwise these are the returns of the account over all assets. An asset earns 0 on days without
    a session.
    """
    place = {day: number for number, day in enumerate(days)}
    if any(line.account is not None for line in entry_lines):
        # One account for all lines: add the return of each asset on its day.
        gained = np.zeros(len(place))
        first = min(entry_lines, key=lambda line: line.sessions[0])
        assert first.account is not None
        for line in entry_lines:
            assert line.account is not None
            gained[[place[day] for day in line.sessions]] += line.earned * line.account
        nav = first.account[0] + np.cumsum(gained)
        before = np.concatenate((first.account[:1], nav[:-1]))
        return _returns(nav, before)
    values = np.ones((len(entry_lines), len(days)))
    for number, line in enumerate(entry_lines):
        values[number, [place[day] for day in line.sessions]] += line.earned
    nav = np.cumprod(values, axis=1).mean(axis=0)
    return _returns(nav, np.concatenate(([1.0], nav[:-1])))


def _returns(nav: Floats, before: Floats) -> Floats:
    """Return an account's returns from its values after and before each day.

    An account at zero stays at zero and earns nothing.
    """
    return np.asarray(np.where(before > 0, nav / np.where(before > 0, before, 1.0) - 1.0, 0.0))


def _kind(entry_lines: Sequence[EntrySeries]) -> Kind:
    """Return "stock" if all assets are stocks, and "crypto" otherwise."""
    return "stock" if all(line.kind == "stock" for line in entry_lines) else "crypto"


def _gap(path: Floats, other: Floats | None) -> Floats | None:
    """Return the daily log growth minus another account's daily log growth.

    Returns None if the other account is missing or either account lost everything.
    """
    if other is None or not (path > -1.0).all() or not (other > -1.0).all():
        return None
    return np.asarray(np.log1p(path) - np.log1p(other))


def _level(bands: int, config: BoardConfig) -> float:
    """Return the level of each band that gives several bands together the configured level."""
    return 1.0 - (1.0 - config.bootstrap.level) / max(1, bands)


def _excess(path: Floats, base: Floats | None, level: float) -> Measure:
    """Return the cumulative return above buy and hold.

    Its band is valid for any number of looks.
    """
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
    """Return an entry's annual log growth above buy and hold over time.

    Horizons that are too short to annualise are left out. Returns None if no horizon remains, for
    the baseline, and in a live season. The last band equals the band of the entry's excess in the
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
    rankable = [
        one
        for one in others
        if _unranked([line for (who, _), line in lines.items() if who == one]) is None
    ]
    since = season.joined.get(entry, "")
    days = [day for day in days if day >= since]
    base = [part for line in base if (part := line.since(since)) is not None]
    gap = _gap(combined_returns(own, days), combined_returns(base, days)) if base else None
    watched = None if gap is None else watched_mean(gap, level=_level(len(rankable), config))
    if watched is None or not watched.sessions:
        return None
    year = season.money.periods_per_year(_kind(own))
    looks = [
        place
        for place, count in enumerate(watched.sessions)
        if not Horizon(int(count), year).is_short
    ]
    if not looks:
        return None
    mean, low, high = (
        tuple((year * row[looks]).tolist()) for row in (watched.mean, watched.low, watched.high)
    )
    counts = [watched.sessions[place] for place in looks]
    return Pace(days=tuple(days[count - 1] for count in counts), mean=mean, low=low, high=high)


def _ahead(paths: Mapping[str, Floats], config: BoardConfig) -> dict[str, tuple[str, ...]]:
    """Return, for each entry, the entries that are significantly behind it.

    Two entries are compared by a band on the difference of their log growth. All pairs together
    have the configured level. Ruined entries are left out.
    """
    sound = [entry for entry, path in paths.items() if (path > -1.0).all()]
    pairs = [*itertools.combinations(range(len(sound)), 2)]
    behind_of: dict[str, list[str]] = {entry: [] for entry in sound}
    if pairs:
        logs = np.log1p(np.stack([paths[entry] for entry in sound]))
        one, other = np.array(pairs).T
        signs = watched_sign(logs[one] - logs[other], level=_level(len(pairs), config))
        for (a, b), sign in zip(pairs, signs.tolist(), strict=True):
            if sign:
                ahead, behind = (a, b) if sign > 0 else (b, a)
                behind_of[sound[ahead]].append(sound[behind])
    return {entry: tuple(others) for entry, others in behind_of.items()}


def _rank_probabilities(
    paths: Mapping[str, Floats], config: BoardConfig
) -> tuple[dict[str, tuple[Measure, int, int]], str]:
    """Return each entry's probability of being first with the ends of its rank interval, and a
    note.

    The note states why there are no probabilities. It is empty otherwise.
    """
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
    probabilities = {}
    for number, name in enumerate(names):
        chance = float((first[number] / first.sum(axis=0)).mean())
        low, high = np.quantile(order[number], (0.05, 0.95), method="inverted_cdf")
        probabilities[name] = (Measure(value=chance, n=order.shape[1]), int(low), int(high))
    return probabilities, ""
