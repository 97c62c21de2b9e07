"""``screen_candidates``: the universe ranked by factors."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool, ToolRefused
from tradeassay.benchmarks.ktdfin.wire import Day, Stock, rounded
from tradeassay.core.view import Floats, Ints
from tradeassay.factors import FACTOR_NAMES


class ScreenArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``factors`` to rank by, each counting the same, a leading minus preferring low values."""

    factors: Annotated[list[str], Meta(min_length=1, max_length=2 * len(FACTOR_NAMES))]
    top_k: Annotated[int, Meta(ge=1)] = 20


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One name. ``score`` is the mean of its percentile ranks, 1 being best."""

    stock_id: Stock
    rank: int
    score: float | None
    board: str
    factors: dict[str, float | None]


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """Names, best first. ``left_out`` counts suspended names, those at limit-up and those without a value."""

    as_of: Day | None
    candidates: tuple[Candidate, ...]
    left_out: int


def screen_candidates(desk: Desk, arguments: ScreenArguments) -> Screened:
    """Rank what may be bought; raises :class:`ToolRefused` for an unknown factor or too many names."""
    if arguments.top_k > desk.config.most_screened:
        raise ToolRefused(f"top_k is at most {desk.config.most_screened}")
    wanted = [_direction(name) for name in arguments.factors]
    names = tuple(dict.fromkeys(name for name, _ in wanted))
    columns = desk.observation.columns
    open_to_buy = columns[desk.tradable[columns] & ~desk.at_limit_up[columns]]
    values = desk.factor_rows([name for name, _ in wanted])[:, open_to_buy]
    known = np.isfinite(values).all(axis=0)
    eligible, values = open_to_buy[known], values[:, known]
    signs = np.array([sign for _, sign in wanted])
    score = percentile_ranks(values * signs[:, None]).mean(axis=0)
    best = np.argsort(-score, kind="stable")[: arguments.top_k]
    chosen, stocks, boards = eligible[best].tolist(), desk.roster.stocks, desk.roster.boards
    shown = zip(chosen, score[best].tolist(), desk.factor_values(chosen, names), strict=True)
    return Screened(
        as_of=desk.as_of,
        candidates=tuple(
            Candidate(
                stock_id=stocks[column], rank=rank, score=rounded(points), board=boards[column], factors=factors
            )
            for rank, (column, points, factors) in enumerate(shown, start=1)
        ),
        left_out=int(columns.size - eligible.size),
    )


def percentile_ranks(values: Floats) -> Floats:
    """Return the ranks in every row, from 0 (lowest) to 1 (highest); ties in the given order."""
    count = values.shape[1]
    ranks, places = np.empty(values.shape), np.arange(count, dtype=np.float64)
    for row, order in zip(ranks, np.argsort(values, axis=1, kind="stable"), strict=True):
        row[order] = places
    return np.asarray(ranks / max(1, count - 1))


def top_of_each(desk: Desk, top: int, most: int) -> Ints:
    """Return the columns of the union of the ``top`` names by each factor, at most ``most``, by column.

    Places are allotted in rounds (the best by each factor, then the second best ...), so that a union cut short
    favours no factor.
    """
    columns = desk.observation.columns
    columns = columns[desk.tradable[columns] & ~desk.at_limit_up[columns]]
    values = np.where(np.isfinite(desk.factors[:, columns]), desk.factors[:, columns], -np.inf)
    order = np.argsort(-values, axis=1, kind="stable")[:, :top]
    chosen: dict[int, None] = {}
    for place in range(order.shape[1]):
        for factor in range(order.shape[0]):
            at = order[factor, place]
            if np.isfinite(values[factor, at]) and len(chosen) < most:
                chosen[int(columns[at])] = None
    return np.array(sorted(chosen), dtype=np.int64)


def _direction(name: str) -> tuple[str, float]:
    bare, sign = (name[1:], -1.0) if name.startswith("-") else (name, 1.0)
    if bare not in FACTOR_NAMES:
        raise ToolRefused("there is no such factor", hint=f"one of {', '.join(FACTOR_NAMES)}")
    return bare, sign


TOOL = Tool(
    name="screen_candidates",
    description=(
        "Rank the names that may be bought by one or more factors (equal say, high values first; write -NAME for "
        f"low values first) and return the top_k with their factor values. Factors: {', '.join(FACTOR_NAMES)}."
    ),
    arguments=ScreenArguments,
    answer=screen_candidates,
)
