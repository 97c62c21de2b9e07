"""Brinson attribution by group (Brinson and Fachler 1985): what the choice of groups and of names in them gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats, Ints

CASH = "cash"
_NOTHING = 1e-12
"""A group weight below this counts as zero: the names in it net out, and their gain is a choice of names."""


@dataclass(frozen=True, slots=True)
class GroupParts:
    """For every day and group: ``allocation``, ``selection`` and ``interaction``, shape (T, G).

    Their sum over groups is ``portfolio`` - ``benchmark`` (T,), both held from close to close. The last group is
    cash, which returns nothing and of which the benchmark has none.
    """

    groups: tuple[str, ...]
    allocation: Floats
    selection: Floats
    interaction: Floats
    portfolio: Floats
    benchmark: Floats

    def error(self) -> float:
        """Return the greatest distance of a day's sum of parts from the difference; 0 without days."""
        parts = (self.allocation + self.selection + self.interaction).sum(axis=1)
        return float(np.max(np.abs(parts - (self.portfolio - self.benchmark)), initial=0.0))


def brinson(weights: Floats, benchmark: Floats, returns: Floats, group: Ints, groups: Sequence[str]) -> GroupParts:
    """Take a portfolio apart against a benchmark whose weights sum to 1 every day.

    ``weights``, ``benchmark`` and ``returns`` have shape (T, N), ``group`` (N,) numbers a name's place in
    ``groups``. A group the benchmark does not have counts as allocation alone. Raises :class:`UserError` for
    shapes that do not fit, and for a benchmark that does not sum to 1.
    """
    if not weights.shape == benchmark.shape == returns.shape or group.shape != weights.shape[1:]:
        raise UserError("weights, benchmark and returns differ in shape", hint="give (sessions, names) for each")
    if not np.allclose(benchmark.sum(axis=1), 1.0, rtol=0.0, atol=1e-9):
        raise UserError("the benchmark's weights do not sum to 1", hint="divide them by their sum")
    member = np.zeros((group.size, len(groups) + 1))
    member[np.arange(group.size), group] = 1.0
    mine, theirs = weights @ member, benchmark @ member
    gained, passive = (weights * returns) @ member, (benchmark * returns) @ member
    # Cash closes the portfolio to 1; for a leveraged one it is negative.
    mine[:, -1] = 1.0 - weights.sum(axis=1)
    theirs[:, -1] = 1.0 - benchmark.sum(axis=1)
    level = passive.sum(axis=1, keepdims=True)
    held, known = np.abs(mine) > _NOTHING, np.abs(theirs) > _NOTHING
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(held, gained / mine, 0.0)
        base = np.where(known, passive / theirs, own)
    base[:, -1] = 0.0
    allocation = (mine - theirs) * (base - level)
    interaction = np.where(held & known, (mine - theirs) * (own - base), 0.0)
    selection = gained - mine * base - interaction
    return GroupParts(
        groups=(*groups, CASH),
        allocation=allocation,
        selection=selection,
        interaction=interaction,
        portfolio=gained.sum(axis=1),
        benchmark=level[:, 0],
    )
