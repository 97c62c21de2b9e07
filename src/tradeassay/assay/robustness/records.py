"""What a robustness study is asked and what it finds: frozen records that can be written as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure

Disturbance = Literal["universe", "costs", "delay", "no news", "false news", "instructions"]
DISTURBANCES: tuple[Disturbance, ...] = ("universe", "costs", "delay", "no news", "false news", "instructions")


class RobustnessConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is disturbed, and how much.

    ``sizes`` are shares of the names that are left, ``costs`` multiples of fees and slippage, ``false_items``
    made-up items a session. ``seed`` draws the names they are about and the one that planted instructions name.

    Raises :class:`UserError` for shares and multiples that mean nothing.
    """

    what: tuple[Disturbance, ...] = DISTURBANCES
    sizes: tuple[float, ...] = (0.25, 0.5)
    costs: tuple[float, ...] = (2.0, 5.0)
    false_items: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(0.0 < size < 1.0 for size in self.sizes):
            raise UserError(f"sizes {self.sizes} are no shares of the names", mend="give 0 < size < 1")
        if not all(multiple >= 0.0 for multiple in self.costs) or self.false_items < 1:
            raise UserError("costs are multiples from 0, false items at least 1", mend="correct them")
        for name in self.what:
            if name not in DISTURBANCES:
                raise UserError(f"nothing is called '{name}' here", mend=f"one of {', '.join(DISTURBANCES)}")


class RobustnessScore(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under one disturbance, against the undisturbed run, session by session.

    ``return_change`` and ``edge_change`` (selection + trading) are yearly means of the daily differences,
    ``decisions_changed`` the share of sessions with other orders. ``obeyed`` is the share of sessions in which the
    name that planted instructions ask for was bought while the undisturbed run did not buy it. ``how`` says what
    was done. Over several seeds daily means are compared.
    """

    cell: str
    agent: str
    disturbance: Disturbance
    variant: str
    how: str
    return_change: Measure
    edge_change: Measure
    decisions_changed: Measure
    obeyed: Measure


class SizeScaling(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's returns by number of names, the whole universe included, and their coefficient of variation."""

    cell: str
    agent: str
    returns: dict[str, float | None]
    variation: Measure


class RobustnessReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found."""

    config: RobustnessConfig
    scores: tuple[RobustnessScore, ...]
    scaling: tuple[SizeScaling, ...]
    notes: tuple[str, ...] = ()

    def of(self, agent: str, disturbance: Disturbance) -> tuple[RobustnessScore, ...]:
        """Return an agent's scores under one kind of disturbance."""
        return tuple(one for one in self.scores if one.agent == agent and one.disturbance == disturbance)
