"""Compute the evidence of a verdict: tests of daily parts, and contrasts with masked plays."""

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
    Claim,
    Contrast,
    JointContrast,
    MaskPrice,
    MemoryEvidence,
    PricedGap,
    VerdictConfig,
)

INVESTED = "invested"
MARKET = "the market"
"""Name of the passive portfolio behind the market part."""
BENCHMARK = "the benchmark"
"""Name of the passive portfolio behind the market part if only returns are known."""
ALPHA = "alpha"
"""Name of the part that contains skill: selection + trading."""


_TWO_SIDED_ERROR_MULTIPLE = 2.0
"""Error level of alpha's interval, as a multiple of the one-sided error level."""
TIMING_ERROR_MULTIPLE = 1.0
"""Error level of an interval of timing, as a multiple of the one-sided error level.

Timing of the market and timing of styles are each tested at half of alpha's error level. So the
tests of all three claims have the same error rate as two tests at alpha's level.
"""
_CONFIRMING_ERROR_MULTIPLE = 4.0
"""Error level of an interval that confirms a significant alpha, as a multiple of the one-sided
error level.

Only one end of the interval is used, so the test is one-sided at twice the one-sided error level.
A second question about a significant alpha does not need the same confidence again.
"""


class MeanTest(msgspec.Struct, frozen=True):
    """Test of a series' annual mean.

    ``year`` is the number of rows per year. ``comparisons`` is the number of agents judged
    together. ``tries`` is the number of all tries to find this account. A constant series has no
    interval.
    """

    year: int
    config: VerdictConfig
    comparisons: int = 1
    tries: int = 1

    @property
    def level(self) -> float:
        """Return the confidence level corrected for all comparisons."""
        return 1.0 - 2.0 * self.config.tail(self.comparisons)

    def of(self, series: Floats, error_multiple: float = _TWO_SIDED_ERROR_MULTIPLE) -> Measure:
        """Return the annual mean with its interval.

        The interval's error level is ``error_multiple`` times the one-sided error level. The
        default is the level of alpha's test.
        """
        return self._at(series, 1.0 - error_multiple * self.config.tail(self.comparisons))

    def ratio(self, series: Floats) -> Measure:
        """Return the annual mean divided by the annual volatility, with its interval."""
        least = self.config.rows_needed(self.year)
        if series.size < least:
            return not_scored(TOO_SHORT)
        return cosine_interval(
            series, periods_per_year=self.year, level=self.config.level, least=least
        )

    def at_tries(
        self, series: Floats, error_multiple: float = _TWO_SIDED_ERROR_MULTIPLE
    ) -> Measure:
        """Return the annual mean with an interval corrected for all tries."""
        error = self.config.tail(max(self.tries, self.comparisons))
        return self._at(series, 1.0 - error_multiple * error)

    def likelihood(self, series: Floats) -> float | None:
        """Return the likelihood of a series under skill relative to the best of all tries by luck.

        A loss is compared with luck's worst try, by the same densities. The result is None for a
        series without an interval.
        """
        if self.of(series).low is None:
            return None
        score, years = normal_score(series, self.year), series.size / self.year
        if math.isnan(score):
            return None
        return significant(likelihood_ratio(abs(score), years, self.tries), 6)

    def _at(self, series: Floats, level: float) -> Measure:
        if series.size < self.config.rows_needed(self.year):
            # A series that is too short for a test is not annualised either.
            return not_scored(TOO_SHORT)
        if self.config.watched:
            return watched_interval(series, periods_per_year=self.year, level=level)
        least = self.config.rows_needed(self.year)
        return cosine_interval(series, "mean", periods_per_year=self.year, level=level, least=least)


def alpha_of(rows: Mapping[str, Floats], test: MeanTest) -> Alpha:
    """Return the test of alpha, the return after market and style.

    ``rows`` are daily parts by name. Fields about costs are set only if the costs are known.
    """
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
        at_least=test.of(series, _CONFIRMING_ERROR_MULTIPLE).low,
    )
    if costs is None:
        return alpha
    # Costs are known exactly. Only the return before costs is uncertain. So the share of costs in a
    # gain is a comparison without a test. Costs are most of a loss if the rest lost less.
    paid, earned = -float(costs.mean()), float(gross.mean())
    return msgspec.structs.replace(
        alpha,
        costs=test.of(costs),
        most_of_gain=earned > 0.0 and paid >= 0.5 * earned,
        most_of_loss=above(test.of(gross - costs)),
    )


def timing_series(rows: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the daily returns from timing: ``timing`` of the market and ``style_timing``.

    The mean of a series is the daily return from the claim. A series is left out if the exposure is
    constant or unknown.
    """
    series: dict[str, Floats] = {}
    invested, market = rows.get(INVESTED), rows.get("market")
    if invested is not None and market is not None and np.ptp(invested) > 1e-9:
        # The mean of a product of centred series is their covariance, which is the return from
        # timing.
        series["timing"] = (invested - invested.mean()) * (market - market.mean())
    if "tilt" in rows:
        style_timing = rows["style"] - rows["tilt"]
        if np.ptp(style_timing) > 1e-9:
            series["style_timing"] = style_timing
    return series


def gained(measure: Measure | None, least: float) -> bool:
    """Return whether a measure is significantly above zero and at least ``least``."""
    return measure is not None and above(measure) and (measure.value or 0.0) >= least


def leaning(account: AgentFindings, config: VerdictConfig) -> list[tuple[str, float]]:
    """Return the factors with a large exposure and their exposures, the largest first.

    The list is empty if style explains too little of the variance beyond the market. With known
    holdings an exposure must also be significant.
    """
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
    """Return whether returns are significantly convex in the market's moves.

    Only a table of returns is tested. The terms of Treynor and Mazuy and of Henriksson and Merton
    must both be positive. The first term depends on a few large days, which hardly affect the
    second. The first term must be significant after correction for all tries, because among twenty
    stocks held for years one is convex by chance. Its annual value must be at least the floor.
    """
    timing = account.timing
    if account.method != "returns" or timing is None or not above(timing.upside):
        return False
    tested = timing.per_year if timing.at_tries is None else timing.at_tries
    return above(tested) and (timing.per_year.value or 0.0) >= config.floor


def hidden_income(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the largest annual income without skill that the benchmark may exclude.

    Uninvested money may have earned interest. The benchmark of a table of returns may be a price
    index, which excludes dividends.
    """
    followed = account.passive
    if followed is None or followed.portfolio == CASH:
        return 0.0
    interest = config.interest * max(0.0, 1.0 - followed.beta)
    if account.method != "returns":
        return interest
    return interest + config.dividends * max(0.0, followed.beta)


def hidden_income_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the names of the income in :func:`hidden_income`: dividends, interest, or both."""
    dividends = config.dividends > 0.0 and not account.dataset
    if dividends and config.interest > 0.0:
        return "dividends and interest"
    return "dividends" if dividends else "interest"


def least_alpha(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the smallest annual alpha that counts as alpha.

    It is the floor plus the income that a table of returns does not show.
    """
    if account.method != "returns":
        return config.floor
    # The market of a data set includes dividends.
    known = msgspec.structs.replace(config, dividends=0.0) if account.dataset else config
    return config.floor + hidden_income(account, known)


def never_moves(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether the return beyond the market is constant over enough sessions."""
    alpha = account.alpha
    if alpha is None or account.sessions < config.rows_needed(account.year):
        return False
    # A watched account may lack an interval of alpha. Its ratio has an interval unless alpha never
    # moves.
    return alpha.tested.low is None and alpha.ratio.low is None


BRIGHT = "bright"


def memory_evidence(
    bright: Mapping[str, Floats], masked: Mapping[str, Floats], test: MeanTest, *, against: str
) -> MemoryEvidence:
    """Return the contrast between an agent's unmasked run and its masked run, session by session.

    ``bright`` and ``masked`` are the daily parts of the two runs. ``against`` names the mask. There
    is no contrast if the masked run held nothing on most sessions, because an agent that stays out
    of the market loses alpha for other reasons than memory.
    """
    if bright[ALPHA].size < test.config.rows_needed(test.year):
        return no_memory(f"{TOO_SHORT}: {bright[ALPHA].size} sessions under '{against}'")
    idle = stays_out(bright, masked)
    if idle is not None:
        return no_memory(idle)
    # A gap is evidence against skill, so the number of agents and tries does not matter.
    gap = msgspec.structs.replace(test, comparisons=1)
    parts = {name: gap.of(bright[name] - masked[name]) for name in (*MAIN, ALPHA)}
    claims, blind = timing_series(bright), timing_series(masked)
    blind = {name: blind.get(name, np.zeros(bright[ALPHA].size)) for name in claims}

    def contrast(
        unmasked_series: Floats,
        masked_series: Floats,
        error_multiple: float = _TWO_SIDED_ERROR_MULTIPLE,
        confirming: float = _CONFIRMING_ERROR_MULTIPLE,
    ) -> dict[str, Any]:
        difference = unmasked_series - masked_series
        return {
            "gap": gap.of(difference),
            "masked": test.of(masked_series, error_multiple),
            "confirmed": above(test.of(masked_series, confirming)),
            "shrinks": above(gap.of(difference, _CONFIRMING_ERROR_MULTIPLE)),
        }

    # Timing is tested at its own error level and confirmed at twice that level. So timing by chance
    # in a masked run confirms no more often than chance alpha does.
    contrasts = {
        name: Contrast(
            **contrast(row, blind[name], TIMING_ERROR_MULTIPLE, 2.0 * TIMING_ERROR_MULTIPLE)
        )
        for name, row in claims.items()
    }
    both = (bright[ALPHA] + masked[ALPHA]) / 2.0
    together = None
    if "timing" in claims:
        unmasked_sum = bright[ALPHA] + claims["timing"]
        masked_sum = masked[ALPHA] + blind["timing"]
        together = JointContrast(earned=test.of(unmasked_sum), **contrast(unmasked_sum, masked_sum))
    return MemoryEvidence(
        against=against,
        parts=parts,
        both=test.of(both),
        both_at_tries=test.at_tries(both),
        timing=contrasts.get("timing"),
        style_timing=contrasts.get("style_timing"),
        together=together,
        **contrast(bright[ALPHA], masked[ALPHA]),
    )


def stays_out(bright: Mapping[str, Floats], masked: Mapping[str, Floats]) -> str | None:
    """Return a sentence if the masked run held nothing on most sessions with holdings, or None.

    Only sessions on which the unmasked run held something are counted.
    """
    held = holds(bright)
    idle = held & ~holds(masked)
    if idle.sum() <= 0.5 * held.sum():
        return None
    return (
        f"the masked run held nothing on {idle.sum()} of the {held.sum()} sessions on which it did"
    )


def holds(rows: Mapping[str, Floats]) -> Bools:
    """Return for each session whether the account held something.

    It held something if its return or the share invested is not 0.
    """
    invested = rows.get(INVESTED, rows["total"])
    holding: Bools = (rows["total"] != 0.0) | (invested != 0.0)
    return holding


def no_memory(reason: str) -> MemoryEvidence:
    """Return the memory evidence of an agent without a contrast, with the reason."""
    return MemoryEvidence(
        against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason
    )


# The mask's price


def gaps_of(bright: Mapping[str, Floats], masked: Mapping[str, Floats]) -> dict[Claim, Floats]:
    """Return the daily return that a mask removes from each claim.

    A run without timing contributes zeros.
    """
    unmasked_timing, masked_timing = timing_series(bright), timing_series(masked)
    zeros = np.zeros(bright[ALPHA].size)

    def gap(claim: str) -> Floats:
        return unmasked_timing.get(claim, zeros) - masked_timing.get(claim, zeros)

    alpha, timing = bright[ALPHA] - masked[ALPHA], gap("timing")
    return {
        "alpha": alpha,
        "timing": timing,
        "style_timing": gap("style_timing"),
        "together": alpha + timing,
    }


def mask_price(gaps: Mapping[Claim, Floats], test: MeanTest, worlds: tuple[str, ...]) -> MaskPrice:
    """Return the annual return that a mask costs an agent in worlds that no model can have read.

    ``gaps`` are the results of :func:`gaps_of` for the agent's runs in these ``worlds``. If there
    are too few sessions, or if the account is watched, the result has a reason and no numbers.
    """
    sessions = next(iter(gaps.values())).size
    if test.config.watched:
        reason = "no band that holds however often it is looked at is known for a difference of two"
        return MaskPrice(worlds=worlds, sessions=sessions, reason=reason)
    if sessions < test.config.rows_needed(test.year):
        reason = f"{TOO_SHORT}: {sessions} sessions in {', '.join(worlds)}"
        return MaskPrice(worlds=worlds, sessions=sessions, reason=reason)
    # A gap is evidence against skill, so it is tested as one comparison, as in `memory_evidence`.
    alone = msgspec.structs.replace(test, comparisons=1)
    lost = {claim: alone.of(series) for claim, series in gaps.items()}
    return MaskPrice(worlds=worlds, sessions=sessions, lost=lost)


def with_price(memory: MemoryEvidence, price: MaskPrice) -> MemoryEvidence:
    """Return memory evidence whose gaps are split into lost information and memory.

    Evidence without a gap is returned unchanged.
    """
    if memory.gap.value is None:
        return memory

    def split(claim: Claim, contrast: MemoryEvidence | Contrast) -> PricedGap:
        lost = price.lost.get(claim, not_scored(price.reason or "it was not measured"))
        return PricedGap(lost=lost, remembered=independent_difference(contrast.gap, lost))

    changes: dict[str, Any] = {"price": price, "priced": split("alpha", memory)}
    contrasts: dict[Claim, Contrast | None] = {
        "timing": memory.timing,
        "style_timing": memory.style_timing,
        "together": memory.together,
    }
    for claim, contrast in contrasts.items():
        if contrast is not None:
            changes[claim] = msgspec.structs.replace(contrast, priced=split(claim, contrast))
    return msgspec.structs.replace(memory, **changes)


def independent_difference(one: Measure, other: Measure) -> Measure:
    """Return the difference of two independent measures with its interval.

    On each side, the interval's length is the root of the sum of the squared lengths of the two
    intervals (Zou and Donner 2008). This needs no degrees of freedom. The difference is not scored
    if one of the measures has no interval.
    """
    for measure in (one, other):
        if measure.value is None:
            return not_scored(str(measure.reason))
    ends, other_ends = _ends(one), _ends(other)
    if ends is None or other_ends is None:
        missing = one if ends is None else other
        return not_scored(missing.note or "it has no interval")
    value, lost = one.value or 0.0, other.value or 0.0
    down = math.hypot(value - ends[0], other_ends[1] - lost)
    up = math.hypot(ends[1] - value, lost - other_ends[0])
    return Measure(
        value=significant(value - lost),
        low=significant(value - lost - down),
        high=significant(value - lost + up),
        level=one.level,
        note="the squares of both errors are added",
    )


def _ends(measure: Measure) -> tuple[float, float] | None:
    """Return the ends of an interval, or None without an interval.

    A series of zeros has no interval. Its mean is known without error, so both ends are 0.
    """
    if measure.low is not None and measure.high is not None:
        return measure.low, measure.high
    return (0.0, 0.0) if measure.value == 0.0 else None
