"""Compute the evidence of a verdict from daily parts, luck, masks, leak tests and confidences."""

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
"""The same name for an account for which only returns are known."""
ALPHA = "alpha"
"""Name of the part that contains skill: selection + trading."""


HALF = 1.0
"""Timing of the market and of styles are each tested at half of alpha's error level. So testing all
three has the same error rate as testing two."""
_CONFIRMING_TAILS = 4.0
"""Multiple of the one-sided error level for the lower end of alpha, a one-sided test. It answers a
second question about a significant alpha, which does not need the same confidence again."""


class MeanTest(msgspec.Struct, frozen=True):
    """Settings of the test of a series' annual mean.

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

    def of(self, series: Floats, tails: float = 2.0) -> Measure:
        """Return the annual mean with its interval.

        Its error level is ``tails`` times the one-sided level. The default is two-sided, as in the
        test of alpha. :data:`HALF` and :data:`_CONFIRMING_TAILS` are for other questions.
        """
        return self._at(series, 1.0 - tails * self.config.tail(self.comparisons))

    def ratio(self, series: Floats) -> Measure:
        """Return the annual mean divided by the annual volatility, with its interval."""
        least = self.config.rows_needed(self.year)
        if series.size < least:
            return not_scored(TOO_SHORT)
        return cosine_interval(
            series, periods_per_year=self.year, level=self.config.level, least=least
        )

    def at_tries(self, series: Floats, tails: float = 2.0) -> Measure:
        """Return the annual mean with an interval corrected for all tries."""
        return self._at(series, 1.0 - tails * self.config.tail(max(self.tries, self.comparisons)))

    def likelihood(self, series: Floats) -> float | None:
        """Return the likelihood of a series under skill relative to the best of all tries by luck.

        A loss is compared with luck's worst try, by the same densities. Returns None for a series
        without an interval.
        """
        if self.of(series).low is None:
            return None
        score, years = normal_score(series, self.year), series.size / self.year
        if math.isnan(score):
            return None
        return significant(likelihood_ratio(abs(score), years, self.tries), 6)

    def _at(self, series: Floats, level: float) -> Measure:
        if series.size < self.config.rows_needed(self.year):
            # A series that cannot be tested is not annualised either.
            return not_scored(TOO_SHORT)
        if self.config.watched:
            return watched_interval(series, periods_per_year=self.year, level=level)
        least = self.config.rows_needed(self.year)
        return cosine_interval(series, "mean", periods_per_year=self.year, level=level, least=least)


def alpha_of(rows: Mapping[str, Floats], test: MeanTest) -> Alpha:
    """Test the return after market and style."""
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
        at_least=test.of(series, _CONFIRMING_TAILS).low,
    )
    if costs is None:
        return alpha
    # Costs are known exactly, and only the return before costs is uncertain. So a gain before costs
    # is tested, and the share of costs is then a simple comparison. Costs are most of a loss if the
    # rest lost less.
    paid, earned = -float(costs.mean()), float(gross.mean())
    return msgspec.structs.replace(
        alpha,
        costs=test.of(costs),
        most_of_gain=earned > 0.0 and paid >= 0.5 * earned,
        most_of_loss=above(test.of(gross - costs)),
    )


def claims_of(rows: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the series of the claims besides alpha: ``timing`` and ``style_timing``.

    The mean of a series is the return of the claim. Constant exposures are left out.
    """
    series: dict[str, Floats] = {}
    invested, market = rows.get(INVESTED), rows.get("market")
    if invested is not None and market is not None and np.ptp(invested) > 1e-9:
        # The mean of a product of centred series is their covariance, which is the return from
        # timing.
        series["timing"] = (invested - invested.mean()) * (market - market.mean())
    if "tilt" in rows and np.ptp(moved := rows["style"] - rows["tilt"]) > 1e-9:
        series["style_timing"] = moved
    return series


def gained(measure: Measure | None, least: float) -> bool:
    """Return whether a measure is significantly above zero and at least ``least``."""
    return measure is not None and above(measure) and (measure.value or 0.0) >= least


def leaning(account: AgentFindings, config: VerdictConfig) -> list[tuple[str, float]]:
    """Return the factors with an exposure, the strongest first, if style explains enough."""
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

    Both Treynor and Mazuy's and Henriksson and Merton's terms must be convex. The first depends on
    a few large days, which hardly affect the second. It must be significant after correction for
    all tries: among twenty stocks held for years, one is convex by chance.
    """
    timed = account.timing
    if account.method != "returns" or timed is None or not above(timed.upside):
        return False
    tested = timed.per_year if timed.at_tries is None else timed.at_tries
    return above(tested) and (timed.per_year.value or 0.0) >= config.floor


def hidden_income(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the annual income that may separate an account from a passive portfolio without alpha.

    Uninvested money may have earned interest. A benchmark with only returns may be a price index,
    which excludes dividends.
    """
    followed = account.passive
    if followed is None or followed.portfolio == CASH:
        return 0.0
    dividends = config.dividends * max(0.0, followed.beta) if account.method == "returns" else 0.0
    return config.interest * max(0.0, 1.0 - followed.beta) + dividends


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
    # The market of a data set includes dividends. An index of the data set may exclude them.
    known = msgspec.structs.replace(config, dividends=0.0) if account.dataset else config
    return config.floor + hidden_income(account, known)


def never_moves(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether the return beyond the market is constant over enough sessions."""
    alpha = account.alpha
    if alpha is None or account.sessions < config.rows_needed(account.year):
        return False
    # A watched account may have no interval. But its ratio has one unless it never moves.
    return alpha.tested.low is None and alpha.ratio.low is None


BRIGHT = "bright"


def memory_evidence(
    bright: Mapping[str, Floats], masked: Mapping[str, Floats], test: MeanTest, *, against: str
) -> MemoryEvidence:
    """Return the contrast between the daily parts of a play and of its masked play.

    Both are plays of the same agent. Sessions are compared one by one. There is no contrast if the
    masked play mostly held nothing: an agent that stays out of the market for any reason also loses
    alpha that is not memory.
    """
    if bright[ALPHA].size < test.config.rows_needed(test.year):
        return no_memory(f"{TOO_SHORT}: {bright[ALPHA].size} sessions under '{against}'")
    idle = stays_out(bright, masked)
    if idle is not None:
        return no_memory(idle)
    # A gap is evidence against skill. It is tested as one comparison, whatever the number of tries.
    gap = msgspec.structs.replace(test, comparisons=1)
    parts = {name: gap.of(bright[name] - masked[name]) for name in (*MAIN, ALPHA)}
    claims, blind = claims_of(bright), claims_of(masked)
    blind = {name: blind.get(name, np.zeros(bright[ALPHA].size)) for name in claims}

    def contrast(
        one: Floats, other: Floats, tails: float = 2.0, confirming: float = _CONFIRMING_TAILS
    ) -> dict[str, Any]:
        return {
            "gap": gap.of(one - other),
            "masked": test.of(other, tails),
            "confirmed": above(test.of(other, confirming)),
            "shrinks": above(gap.of(one - other, _CONFIRMING_TAILS)),
        }

    # Tested at the claim's own error level and at twice that level, so that a masked play with
    # timing by chance confirms no more often.
    claimed = {
        name: Contrast(**contrast(row, blind[name], HALF, 2.0)) for name, row in claims.items()
    }
    both = (bright[ALPHA] + masked[ALPHA]) / 2.0
    together = None
    if "timing" in claims:
        one, other = bright[ALPHA] + claims["timing"], masked[ALPHA] + blind["timing"]
        together = JointContrast(earned=test.of(one), **contrast(one, other))
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


def stays_out(bright: Mapping[str, Floats], masked: Mapping[str, Floats]) -> str | None:
    """Say that the masked play mostly held nothing where the unmasked one did; None if it did
    not.
    """
    held = holds(bright)
    idle = held & ~holds(masked)
    if idle.sum() <= 0.5 * held.sum():
        return None
    return (
        f"the masked run held nothing on {idle.sum()} of the {held.sum()} sessions on which it did"
    )


def holds(rows: Mapping[str, Floats]) -> Bools:
    """Return the sessions on which an account held something: its share in the market, or its
    return, is not 0.
    """
    holds: Bools = (rows["total"] != 0.0) | (rows.get(INVESTED, rows["total"]) != 0.0)
    return holds


def no_memory(reason: str) -> MemoryEvidence:
    return MemoryEvidence(
        against=None, gap=not_scored(reason), masked=not_scored(reason), reason=reason
    )


# The mask's price


def gaps_of(bright: Mapping[str, Floats], masked: Mapping[str, Floats]) -> dict[Claim, Floats]:
    """Return what a mask takes of every claim, session by session. What is not claimed is 0."""
    one, other = claims_of(bright), claims_of(masked)
    nothing = np.zeros(bright[ALPHA].size)

    def gap(claim: str) -> Floats:
        return one.get(claim, nothing) - other.get(claim, nothing)

    alpha, timing = bright[ALPHA] - masked[ALPHA], gap("timing")
    return {
        "alpha": alpha,
        "timing": timing,
        "style_timing": gap("style_timing"),
        "together": alpha + timing,
    }


def mask_price(gaps: Mapping[Claim, Floats], test: MeanTest, worlds: tuple[str, ...]) -> MaskPrice:
    """Return what a mask costs by an agent's :func:`gaps_of` plays in worlds that no model can
    have read.
    """
    sessions = next(iter(gaps.values())).size
    if test.config.watched:
        reason = "no band that holds however often it is looked at is known for a difference of two"
        return MaskPrice(worlds=worlds, sessions=sessions, reason=reason)
    if sessions < test.config.rows_needed(test.year):
        reason = f"{TOO_SHORT}: {sessions} sessions in {', '.join(worlds)}"
        return MaskPrice(worlds=worlds, sessions=sessions, reason=reason)
    # A gap speaks against skill: it is tested as one comparison, as in :func:`memory_evidence`.
    alone = msgspec.structs.replace(test, comparisons=1)
    lost = {claim: alone.of(series) for claim, series in gaps.items()}
    return MaskPrice(worlds=worlds, sessions=sessions, lost=lost)


def with_price(memory: MemoryEvidence, price: MaskPrice) -> MemoryEvidence:
    """Return a contrast whose gaps are split into lost information and memory."""
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
    """Return the difference of two independent numbers; the squares of their errors on each side
    are added.

    Such an interval holds its level where those of the two do, without knowing their degrees of
    freedom (Zou and Donner 2008). No number where either has no interval, because the difference
    would have none.
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
    """Return the ends of an interval. A series of zeros has none, and is known without error."""
    if measure.low is not None and measure.high is not None:
        return measure.low, measure.high
    return (0.0, 0.0) if measure.value == 0.0 else None
