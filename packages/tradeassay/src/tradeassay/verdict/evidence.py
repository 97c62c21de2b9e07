"""From daily parts, luck, masks, leak tests and confidences to what a verdict is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.measure import Measure, above, below, not_scored
from tradeassay.metrics import cosine_interval, watched_interval
from tradeassay.metrics.attribution import MAIN
from tradeassay.verdict.record import (
    CASH,
    AgentFindings,
    Contrast,
    Edge,
    MemoryEvidence,
    Together,
    VerdictConfig,
)

if TYPE_CHECKING:
    pass

INVESTED = "invested"
MARKET = "the market"
"""The passive portfolio behind the market part."""
EDGE = "edge"
"""The row that skill would show in: selection + trading."""


HALF = 1.0
"""Timing of the market and of styles are each tested at half the error that the edge has, so that asking for all
three is wrong no more often than asking twice."""
_LOOSE = 4.0
"""The lower end is a one-sided test's at twice the error of one side. It answers a second question about an edge
that is certain: that need not be answered twice as surely."""


class MeanTest(msgspec.Struct, frozen=True):
    """How the yearly mean of a daily series is tested: ``year`` sessions make one, and ``comparisons`` counts
    everything that was tried. An account that never moves has no interval."""

    year: int
    config: VerdictConfig
    comparisons: int = 1

    @property
    def level(self) -> float:
        """The confidence that allows for all comparisons."""
        return 1.0 - 2.0 * self.config.tail(self.comparisons)

    def of(self, daily: Floats, tails: float = 2.0) -> Measure:
        """Return the mean with the interval that may be wrong with so many times the chance that one side has:
        by default on both sides, as the edge is tested; :data:`HALF` and :data:`_LOOSE` answer other questions."""
        level = 1.0 - tails * self.config.tail(self.comparisons)
        if self.config.watched:
            return watched_interval(daily, periods_per_year=self.year, level=level)
        return cosine_interval(
            daily, "mean", periods_per_year=self.year, level=level, least=self.config.least
        )


def edge_of(rows: Mapping[str, Floats], test: MeanTest) -> Edge:
    """Test what is left after market and style."""
    edge, costs, config = rows[EDGE], rows.get("costs"), test.config
    gross = edge if costs is None else edge - costs
    found = Edge(
        tested=test.of(edge),
        ratio=cosine_interval(
            edge, periods_per_year=test.year, level=config.level, least=config.least
        ),
        gross=test.of(gross),
        comparisons=test.comparisons,
        at_least=test.of(edge, _LOOSE).low,
    )
    if costs is None:
        return found
    # A certain gross beside an uncertain net is no difference: what costs took is tested by itself. More than half
    # of a gain went to them where half of it and they are below zero; more than half of a loss is theirs where the
    # rest lost less than they did.
    return msgspec.structs.replace(
        found,
        costs=test.of(costs),
        most_of_gain=below(test.of(gross / 2.0 + costs)),
        most_of_loss=above(test.of(gross - costs)),
    )


def claims_of(rows: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return what may be praised beside the edge, as series whose mean is what it earned: ``timing`` and
    ``style_timing``. What never changes is left out."""
    found: dict[str, Floats] = {}
    invested, market = rows.get(INVESTED), rows.get("market")
    if invested is not None and market is not None and np.ptp(invested) > 1e-9:
        # The mean of a product of centred series is their covariance: what good timing earned.
        found["timing"] = (invested - invested.mean()) * (market - market.mean())
    if "tilt" in rows and np.ptp(moved := rows["style"] - rows["tilt"]) > 1e-9:
        found["style_timing"] = moved
    return found


def gained(measure: Measure | None, least: float) -> bool:
    """Return whether something is above zero for certain, and at least as large."""
    return measure is not None and above(measure) and (measure.value or 0.0) >= least


def leaning(found: AgentFindings, config: VerdictConfig) -> list[tuple[str, float]]:
    """Return the factors an agent leans to, the strongest first, when style makes up enough of what it did."""
    if found.style_variance is None or found.style_variance < config.style_variance:
        return []
    strong = [
        (name, measure.value)
        for name, measure in found.exposures.items()
        if measure.value is not None
        and abs(measure.value) >= config.exposure
        and (above(measure) or below(measure) or found.method == "returns")
    ]
    return sorted(strong, key=lambda pair: -abs(pair[1]))


def convex(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether returns bend up with the market's moves for certain, by Treynor and Mazuy's term and by
    Henriksson and Merton's: the first is moved by a few large days, which the second hardly feels."""
    timed = found.timing
    if found.method != "returns" or timed is None or not above(timed.upside):
        return False
    return above(timed.per_year) and (timed.per_year.value or 0.0) >= config.floor


def unearned(found: AgentFindings, config: VerdictConfig) -> float:
    """Return what may lie between an account and the passive portfolio beside it without being an edge. What is
    not invested may have earned interest; and a benchmark of which only returns are known may be one of prices
    alone, which leaves the dividends out."""
    followed = found.passive
    if followed is None or followed.portfolio == CASH:
        return 0.0
    dividends = config.dividends * max(0.0, followed.beta) if found.method == "returns" else 0.0
    return config.interest * max(0.0, 1.0 - followed.beta) + dividends


def unearned_words(found: AgentFindings, config: VerdictConfig) -> str:
    """Name what :func:`unearned` allows for: dividends, interest, or both."""
    dividends = config.dividends > 0.0 and not found.dataset
    if dividends and config.interest > 0.0:
        return "dividends and interest"
    return "dividends" if dividends else "interest"


def least_edge(found: AgentFindings, config: VerdictConfig) -> float:
    """Return the yearly edge from which one is called so: the floor, and what returns alone do not show."""
    if found.method != "returns":
        return config.floor
    # The market of a data set has its dividends; an index of it may not.
    known = msgspec.structs.replace(config, dividends=0.0) if found.dataset else config
    return config.floor + unearned(found, known)


def never_moves(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether what is left beyond the market is the same on every session, and sessions are enough."""
    return (
        found.edge is not None and found.edge.tested.low is None and found.sessions >= config.least
    )


BRIGHT = "bright"


def memory_evidence(
    bright: Mapping[str, Floats], masked: Mapping[str, Floats], test: MeanTest, *, against: str
) -> MemoryEvidence:
    """Return the contrast of daily parts with those of the same agent under a mask, session by session. There is
    none where the masked play mostly held nothing: whoever stays out, for whatever reason, loses an edge that it
    did not remember as well."""
    held = _holds(bright)
    idle = held & ~_holds(masked)
    if idle.sum() > 0.5 * held.sum():
        return no_memory(
            f"the masked run held nothing on {idle.sum()} of the {held.sum()} sessions on which it did"
        )
    # A gap speaks against skill: it is tested as one comparison, however many were tried.
    gap = msgspec.structs.replace(test, comparisons=1)
    parts = {name: gap.of(bright[name] - masked[name]) for name in (*MAIN, EDGE)}
    claims, blind = claims_of(bright), claims_of(masked)
    blind = {name: blind.get(name, np.zeros(bright[EDGE].size)) for name in claims}

    def contrast(
        one: Floats, other: Floats, tails: float = 2.0, confirming: float = _LOOSE
    ) -> dict[str, Any]:
        return {
            "gap": gap.of(one - other),
            "masked": test.of(other, tails),
            "confirmed": above(test.of(other, confirming)),
            "shrinks": above(gap.of(one - other, _LOOSE)),
        }

    # At the claim's own error, and twice that: a twin that times by chance confirms no more often.
    claimed = {
        name: Contrast(**contrast(row, blind[name], HALF, 2.0)) for name, row in claims.items()
    }
    together = None
    if "timing" in claims:
        one, other = bright[EDGE] + claims["timing"], masked[EDGE] + blind["timing"]
        together = Together(earned=test.of(one), **contrast(one, other))
    return MemoryEvidence(
        against=against,
        parts=parts,
        both=test.of((bright[EDGE] + masked[EDGE]) / 2.0),
        timing=claimed.get("timing"),
        style_timing=claimed.get("style_timing"),
        together=together,
        **contrast(bright[EDGE], masked[EDGE]),
    )


def _holds(rows: Mapping[str, Floats]) -> Bools:
    """Return the sessions on which an account held something: its share in the market, or its return, is not 0."""
    found: Bools = (rows["total"] != 0.0) | (rows.get(INVESTED, rows["total"]) != 0.0)
    return found


def no_memory(reason: str) -> MemoryEvidence:
    return MemoryEvidence(
        against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason
    )
