"""From daily parts, luck, masks, leak tests and confidences to what a verdict is made from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.measure import Measure, above, below, not_scored
from tradeassay.metrics import cosine_interval, significant, watched_interval
from tradeassay.metrics.attribution import MAIN
from tradeassay.metrics.horizon import TOO_SHORT
from tradeassay.metrics.likelihood import equal_tries, likelihood_ratio, normal_score
from tradeassay.verdict.record import (
    CASH,
    AgentFindings,
    Alpha,
    Contrast,
    MemoryEvidence,
    Together,
    VerdictConfig,
)

INVESTED = "invested"
MARKET = "the market"
"""The passive portfolio behind the market part."""
BENCHMARK = "the benchmark"
"""The same of an account of which only returns are known."""
ALPHA = "alpha"
"""The row that skill would show in: selection + trading."""


HALF = 1.0
"""Timing of the market and of styles are each tested at half the error that alpha has, so that asking for all
three is wrong no more often than asking twice."""
_LOOSE = 4.0
"""The lower end is a one-sided test's at twice the error of one side. It answers a second question about alpha
that is certain: that need not be answered twice as surely."""


class MeanTest(msgspec.Struct, frozen=True):
    """How the yearly mean of a series is tested.

    ``year`` rows make one. ``comparisons`` counts the agents judged together, and ``tries`` all that were tried to
    find this one. A series that never moves has no interval."""

    year: int
    config: VerdictConfig
    comparisons: int = 1
    tries: int = 1

    @property
    def level(self) -> float:
        """The confidence that allows for all comparisons."""
        return 1.0 - 2.0 * self.config.tail(self.comparisons)

    def of(self, series: Floats, tails: float = 2.0) -> Measure:
        """Return the yearly mean with its interval, wrong with ``tails`` times the chance that one side has.

        By default both sides count, as alpha is tested. :data:`HALF` and :data:`_LOOSE` answer other questions."""
        return self._at(series, 1.0 - tails * self.config.tail(self.comparisons))

    def ratio(self, series: Floats) -> Measure:
        """Return the yearly mean over the yearly volatility, with its interval."""
        least = self.config.rows_needed(self.year)
        if series.size < least:
            return not_scored(TOO_SHORT)
        return cosine_interval(
            series, periods_per_year=self.year, level=self.config.level, least=least
        )

    def at_tries(self, series: Floats, tails: float = 2.0) -> Measure:
        """Return the same with an interval that allows for all tries."""
        return self._at(series, 1.0 - tails * self.config.tail(max(self.tries, self.comparisons)))

    def likelihood(self, series: Floats) -> float | None:
        """Return how many times likelier a series is under skill than as luck's best of all tries.

        Of a loss it is compared with luck's worst, by the same densities. None for a series without an interval."""
        if self.of(series).low is None:
            return None
        score, years = normal_score(series, self.year), series.size / self.year
        if math.isnan(score):
            return None
        return significant(likelihood_ratio(abs(score), years, self.tries), 6)

    def _at(self, series: Floats, level: float) -> Measure:
        if series.size < self.config.rows_needed(self.year):
            # What cannot be tested is not scaled to a year either.
            return not_scored(TOO_SHORT)
        if self.config.watched:
            return watched_interval(series, periods_per_year=self.year, level=level)
        least = self.config.rows_needed(self.year)
        return cosine_interval(series, "mean", periods_per_year=self.year, level=level, least=least)


def alpha_of(rows: Mapping[str, Floats], test: MeanTest) -> Alpha:
    """Test what is left after market and style."""
    series, costs = rows[ALPHA], rows.get("costs")
    gross = series if costs is None else series - costs
    tested = test.of(series)
    equal = None
    if tested.low is not None and (tested.value or 0.0) > 0.0:
        equal = equal_tries(normal_score(series, test.year), series.size / test.year)
    alpha = Alpha(
        tested=tested,
        ratio=test.ratio(series),
        gross=test.of(gross),
        comparisons=test.comparisons,
        tries=test.tries,
        at_tries=test.at_tries(series),
        likelihood=test.likelihood(series),
        equal_tries=equal,
        at_least=test.of(series, _LOOSE).low,
    )
    if costs is None:
        return alpha
    # Costs are known, and only what was earned before them is uncertain. So a gain before costs is tested, and
    # whether costs took half of it is read off. More than half of a loss is theirs if the rest lost less.
    paid, earned = -float(costs.mean()), float(gross.mean())
    return msgspec.structs.replace(
        alpha,
        costs=test.of(costs),
        most_of_gain=earned > 0.0 and paid >= 0.5 * earned,
        most_of_loss=above(test.of(gross - costs)),
    )


def claims_of(rows: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return what may be praised beside alpha, as series whose mean is what it earned: ``timing`` and
    ``style_timing``. What never changes is left out."""
    series: dict[str, Floats] = {}
    invested, market = rows.get(INVESTED), rows.get("market")
    if invested is not None and market is not None and np.ptp(invested) > 1e-9:
        # The mean of a product of centred series is their covariance: what good timing earned.
        series["timing"] = (invested - invested.mean()) * (market - market.mean())
    if "tilt" in rows and np.ptp(moved := rows["style"] - rows["tilt"]) > 1e-9:
        series["style_timing"] = moved
    return series


def gained(measure: Measure | None, least: float) -> bool:
    """Return whether something is above zero for certain, and at least as large."""
    return measure is not None and above(measure) and (measure.value or 0.0) >= least


def leaning(account: AgentFindings, config: VerdictConfig) -> list[tuple[str, float]]:
    """Return the factors an agent leans to, the strongest first, when style makes up enough of what it did."""
    if account.style_variance is None or account.style_variance < config.style_variance:
        return []
    strong = [
        (name, measure.value)
        for name, measure in account.exposures.items()
        if measure.value is not None
        and abs(measure.value) >= config.exposure
        and (above(measure) or below(measure) or account.method == "returns")
    ]
    return sorted(strong, key=lambda pair: -abs(pair[1]))


def convex(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether returns bend up with the market's moves, by Treynor and Mazuy's and Henriksson and Merton's terms.

    The first is moved by a few large days, which the second hardly feels. It must be significant after all tries
    are allowed for: among twenty stocks held for years, one bends up by chance."""
    timed = account.timing
    if account.method != "returns" or timed is None or not above(timed.upside):
        return False
    tested = timed.per_year if timed.at_tries is None else timed.at_tries
    return above(tested) and (timed.per_year.value or 0.0) >= config.floor


def unearned(account: AgentFindings, config: VerdictConfig) -> float:
    """Return what may lie between an account and the passive portfolio beside it without being alpha. What is
    not invested may have earned interest; and a benchmark of which only returns are known may be one of prices
    alone, which leaves the dividends out."""
    followed = account.passive
    if followed is None or followed.portfolio == CASH:
        return 0.0
    dividends = config.dividends * max(0.0, followed.beta) if account.method == "returns" else 0.0
    return config.interest * max(0.0, 1.0 - followed.beta) + dividends


def unearned_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Name what :func:`unearned` allows for: dividends, interest, or both."""
    dividends = config.dividends > 0.0 and not account.dataset
    if dividends and config.interest > 0.0:
        return "dividends and interest"
    return "dividends" if dividends else "interest"


def least_alpha(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the yearly alpha from which one is called so: the floor, and what returns alone do not show."""
    if account.method != "returns":
        return config.floor
    # The market of a data set has its dividends; an index of it may not.
    known = msgspec.structs.replace(config, dividends=0.0) if account.dataset else config
    return config.floor + unearned(account, known)


def never_moves(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether what is left beyond the market is the same on every session, and sessions are enough."""
    alpha = account.alpha
    if alpha is None or account.sessions < config.rows_needed(account.year):
        return False
    # An account that is watched has no interval at times. Its ratio has one unless it never moves.
    return alpha.tested.low is None and alpha.ratio.low is None


BRIGHT = "bright"


def memory_evidence(
    bright: Mapping[str, Floats], masked: Mapping[str, Floats], test: MeanTest, *, against: str
) -> MemoryEvidence:
    """Return the contrast of daily parts with those of the same agent under a mask, session by session. There is
    none where the masked play mostly held nothing: whoever stays out, for whatever reason, loses alpha that it
    did not remember as well."""
    if bright[ALPHA].size < test.config.rows_needed(test.year):
        return no_memory(f"{TOO_SHORT}: {bright[ALPHA].size} sessions under '{against}'")
    held = _holds(bright)
    idle = held & ~_holds(masked)
    if idle.sum() > 0.5 * held.sum():
        return no_memory(
            f"the masked run held nothing on {idle.sum()} of the {held.sum()} sessions on which it did"
        )
    # A gap speaks against skill: it is tested as one comparison, however many were tried.
    gap = msgspec.structs.replace(test, comparisons=1)
    parts = {name: gap.of(bright[name] - masked[name]) for name in (*MAIN, ALPHA)}
    claims, blind = claims_of(bright), claims_of(masked)
    blind = {name: blind.get(name, np.zeros(bright[ALPHA].size)) for name in claims}

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
    both = (bright[ALPHA] + masked[ALPHA]) / 2.0
    together = None
    if "timing" in claims:
        one, other = bright[ALPHA] + claims["timing"], masked[ALPHA] + blind["timing"]
        together = Together(earned=test.of(one), **contrast(one, other))
    return MemoryEvidence(
        against=against,
        parts=parts,
        both=test.of(both),
        both_at_tries=test.at_tries(both),
        timing=claimed.get("timing"),
        style_timing=claimed.get("style_timing"),
        together=together,
        **contrast(bright[ALPHA], masked[ALPHA]),
    )


def _holds(rows: Mapping[str, Floats]) -> Bools:
    """Return the sessions on which an account held something: its share in the market, or its return, is not 0."""
    holds: Bools = (rows["total"] != 0.0) | (rows.get(INVESTED, rows["total"]) != 0.0)
    return holds


def no_memory(reason: str) -> MemoryEvidence:
    return MemoryEvidence(
        against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason
    )
