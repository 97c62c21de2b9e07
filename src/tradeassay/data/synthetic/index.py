"""The index: dated members by market value, its level, and the fund that tracks it and pays out its dividends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tradeassay.core.view import Bools, Days, Floats, Ints
from tradeassay.data.panel import Membership
from tradeassay.data.synthetic.engine import CorporateMove, WorldTape
from tradeassay.data.synthetic.universe import Draws, WorldNames
from tradeassay.data.synthetic.world_config import SyntheticConfig

INDEX = "IDX"
FUND = "IDXF"
START = 1000.0
_SEASON = 40
"""A new listing may join the index after this many sessions."""
_NOTICE = 3
FUND_UNIT = 100


@dataclass(frozen=True, slots=True)
class Index:
    """Members per row, shape (rows, names), and levels at the open and the close of every visible row."""

    member: Bools
    opens: Floats
    closes: Floats
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class Fund:
    """The tracking fund: prices in hundredths, shape (rows, 4) as open, high, low, close; dividends likewise."""

    prices: Floats
    volume: Floats
    actions: tuple[CorporateMove, ...]


def make_index(config: SyntheticConfig, universe: WorldNames, tape: WorldTape, days: Days, burn: int) -> Index:
    """Choose members at fixed reviews and chain the level over the sessions."""
    finest = int(universe.unit.max())
    worth = tape.shares * tape.last.astype(np.int64) * (finest // universe.unit)
    member = _members(config, universe, worth, days, burn)
    before, now = worth[burn - 1 : -1], worth[burn:]
    printed = np.where(np.isnan(tape.open), tape.last, tape.open)[burn:].astype(np.int64)
    opening = tape.shares[burn:] * printed * (finest // universe.unit)
    base = np.where(member, before, 0).sum(axis=1).astype(np.float64)
    grow = np.where(member, now, 0).sum(axis=1) / base
    gap = np.where(member, opening, 0).sum(axis=1) / base
    closes = START * np.multiply.accumulate(grow)
    opens = np.concatenate([[START], closes[:-1]]) * gap
    return Index(member, opens, closes, _dated(universe, member, days))


def _reviews(config: SyntheticConfig, days: Days) -> list[int]:
    """Return the rows at which membership is reviewed: the first session of June and December, or of quarters."""
    months = days.astype("datetime64[M]").astype(np.int64)
    turns = np.flatnonzero(np.diff(months)) + 1
    every, phase = (3, 0) if config.preset == "crypto" else (6, 5)
    return [int(row) for row in turns if months[row] % 12 % every == phase % every]


def _members(config: SyntheticConfig, universe: WorldNames, worth: Ints, days: Days, burn: int) -> Bools:
    size = config.index_members
    member = np.zeros((days.size, universe.size), dtype=np.bool_)
    edges = [0, *_reviews(config, days), days.size]
    inside: set[int] = set()
    for start, stop in pairwise(edges):
        fit = (universe.first + _SEASON <= start) | (universe.first == 0)
        fit &= universe.last >= start
        value = np.where(fit, worth[burn + start - 1], -1)
        ranked = [int(i) for i in np.argsort(-value, kind="stable") if fit[i]]
        inside = _review(ranked, inside, size) if start else set(ranked[:size])
        for column in inside:
            member[start : min(stop, int(universe.last[column]) + 1), column] = True
    return member


def _review(ranked: list[int], inside: set[int], size: int) -> set[int]:
    """Keep members that rank within 110 % of the size, fill up from the top, and change at least one name."""
    kept = [i for i in ranked[: size + max(1, size // 10)] if i in inside][:size]
    chosen = set(kept)
    for i in ranked:
        if len(chosen) >= size:
            break
        chosen.add(i)
    outsiders = [i for i in ranked if i not in chosen]
    if chosen == inside and outsiders:
        weakest = max(chosen, key=ranked.index)
        chosen = (chosen - {weakest}) | {outsiders[0]}
    return chosen


def _dated(universe: WorldNames, member: Bools, days: Days) -> tuple[Membership, ...]:
    rows = member.shape[0]
    found = []
    for column in range(member.shape[1]):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], member[:, column].view(np.int8), [0]])))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            found.append(
                Membership(
                    index=INDEX,
                    symbol=universe.instruments[column].symbol,
                    start=str(days[start]),
                    end=None if stop == rows else str(days[stop - 1]),
                )
            )
    return tuple(sorted(found, key=lambda m: (m.start, m.symbol)))


def make_fund(
    config: SyntheticConfig, universe: WorldNames, tape: WorldTape, index: Index, days: Days, burn: int
) -> Fund:
    """Price the fund at a tenth of the index plus the dividends it holds; it pays them out every quarter."""
    income = _income(universe, tape, index, burn)
    held, actions = _payouts(income, days)
    draws = Draws(config.seed, "fund")
    reach = np.abs(draws.normal((days.size, 2))) * 0.002
    before = np.concatenate([[0.0], held[:-1]])
    paid = {action.ex: action.value for action in actions}
    out = np.array([paid.get(row, 0.0) for row in range(days.size)])
    opens = np.rint(index.opens * 10.0 + before - out + income)
    closes = np.rint(index.closes * 10.0 + held)
    high = np.maximum(np.rint(np.maximum(opens, closes) * (1.0 + reach[:, 0])), np.maximum(opens, closes))
    low = np.minimum(np.rint(np.minimum(opens, closes) / (1.0 + reach[:, 1])), np.minimum(opens, closes))
    volume = np.rint(2_000_000.0 * (1.0 + np.abs(draws.normal(days.size)) * 0.4)) * 100.0
    return Fund(np.stack([opens, high, low, closes], axis=1), volume, actions)


def _income(universe: WorldNames, tape: WorldTape, index: Index, burn: int) -> Floats:
    """Return the dividends of members per row, in hundredths per fund share."""
    rows = index.closes.size
    level = np.concatenate([[START], index.closes[:-1]])
    income = np.zeros(rows)
    for action in tape.actions:
        row = action.ex - burn
        if action.kind != "dividend" or row < 0 or not index.member[row, action.column]:
            continue
        worth = (tape.shares[action.ex - 1] * tape.last[action.ex - 1].astype(np.int64))[index.member[row]].sum()
        part = float(tape.shares[action.ex - 1, action.column]) * action.value / float(worth)
        income[row] += level[row] * 10.0 * part
    return income


def _payouts(income: Floats, days: Days) -> tuple[Floats, tuple[CorporateMove, ...]]:
    """Return what the fund holds after every row, and its payouts (announced three sessions ahead)."""
    months = days.astype("datetime64[M]").astype(np.int64)
    turns = {int(row) + 10 for row in np.flatnonzero(np.diff(months)) + 1 if months[row] % 3 == 2}
    held, actions = np.zeros(income.size), []
    cash, announced = 0.0, 0.0
    for row, more in enumerate(income.tolist()):
        if row + _NOTICE in turns and row + _NOTICE < income.size:
            announced = float(np.floor(cash))
        if row in turns and announced >= 1.0:
            actions.append(CorporateMove(-1, "dividend", row - _NOTICE, row, announced))
            cash, announced = cash - announced, 0.0
        cash += more
        held[row] = cash
    return held, tuple(actions)
