"""Find the claims of an account, and decide which claims are memory.

A *claim* is an effect that is significantly positive and large enough: alpha, timing of the market,
or timing of styles. A claim is *dropped* if it is memory: it shrinks when a mask hides names or
dates, or a model's recall explains it. A claim is *kept* if it is not memory and persists in the
masked run. A claim may be neither.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tradeassay.core.measure import Measure, above, below
from tradeassay.verdict.evidence import convex, gained, hidden_income, least_alpha, never_moves
from tradeassay.verdict.recalled import AlphaSplit
from tradeassay.verdict.record import (
    CASH,
    AgentFindings,
    Claim,
    Contrast,
    MemoryEvidence,
    PricedGap,
    VerdictConfig,
    is_likelier,
)

CLAIM_WORDS: dict[Claim, str] = {
    "alpha": "alpha",
    "timing": "timing",
    "style_timing": "timing of styles",
    "together": "choice of names and days",
}


class Claims(NamedTuple):
    """The claims that are ``kept``, and the claims that are ``dropped`` because they are memory."""

    kept: tuple[Claim, ...]
    dropped: tuple[Claim, ...]


def split_claims_by_memory(account: AgentFindings, config: VerdictConfig) -> Claims:
    """Split an account's significant claims into kept claims and claims that are memory."""
    claims = significant_claims(account, config)
    dropped = tuple(claim for claim in claims if is_memory(account, claim, config))
    kept = []
    for claim in claims:
        if claim in dropped or not stands_under_mask(account, claim):
            continue
        kept.append(claim)
    memory = account.memory
    # An agent that remembers the future profits from names and from dates. Each profit may be
    # insignificant while the sum is significant. With few names, dates are a large part of the sum.
    if not kept and not dropped and memory is not None and not memory.doubted:
        both = memory.together
        if both is not None and gained(both.earned, config.floor):
            if not most_portfolios_did_better(account) and _sum_is_memory(both):
                dropped = ("together",)
    return Claims(tuple(kept), dropped)


def _sum_is_memory(both: Contrast) -> bool:
    """Return whether the sum of alpha and timing is memory."""
    if is_lost_information(both):
        return False
    if above(both.gap):
        return not above(both.masked)
    return mostly_lost(both)


def significant_claims(account: AgentFindings, config: VerdictConfig) -> tuple[Claim, ...]:
    """Return the claims that are significant and large enough, including claims that are memory.

    Alpha is not a claim if most random portfolios with the same trades did better.
    """
    has_alpha = _has_alpha(account, config)
    if account.method == "returns":
        return _claims_of_returns(account, config, has_alpha=has_alpha)
    claims: list[Claim] = ["alpha"] if has_alpha else []
    timing, styles = account.timing, account.styles
    if timing is not None and gained(timing.per_year, config.floor):
        claims.append("timing")
    # The costs of timing styles are charged to alpha. If costs removed alpha, timing of styles and
    # alpha together must be positive after costs.
    if styles is not None and gained(styles.timing, config.floor):
        if gained(styles.net, config.floor) or not costs_ate_alpha(account, config):
            claims.append("style_timing")
    # The part that recall explains may be significant although the whole claim is not.
    if account.recall is not None and account.recall.told == "recalls":
        for claim in ("alpha", "timing"):
            split = split_of(account, claim)
            if claim in claims or split is None or not split.remembered:
                continue
            if gained(split.explained, config.floor):
                claims.append(claim)
    return tuple(claims)


def _has_alpha(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha is a claim.

    Alpha must be significant in the unmasked run, or in both runs together. It must exceed the
    floor and the income without skill, and at most half of the random portfolios may do better.
    """
    alpha, memory = account.known_alpha.tested, account.memory
    least = least_alpha(account, config)
    significant = above(alpha)
    if not significant and memory is not None and not memory.doubted:
        # Two runs of an agent contain more evidence than one run. Memory helps only in the unmasked
        # run, and the masked run must confirm alpha.
        significant = gained(memory.both, least) and _confirmed(memory)
    large = (alpha.value or 0.0) >= least
    if not (large and significant):
        return False
    return exceeds_income_without_skill(account, config) and not most_portfolios_did_better(account)


def _claims_of_returns(
    account: AgentFindings, config: VerdictConfig, *, has_alpha: bool
) -> tuple[Claim, ...]:
    """Return the claims of a table of returns. Timing is part of alpha there."""
    if not has_alpha:
        return ()
    timing = account.timing
    if timing is None or not convex(account, config):
        return ("alpha",)
    # Convexity can be bought as options. It is timing only if alpha remains after its price. Timing
    # is then the whole alpha, unless the account also earns while the market does not move.
    if timing.intercept is not None and above(timing.intercept):
        return ("alpha", "timing")
    return ("timing",)


def survives_tries(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a claim is significant after correction for all tries."""
    alpha, memory = account.known_alpha, account.memory
    if claim == "alpha":
        if alpha.survives or memory is None or memory.doubted or memory.both_at_tries is None:
            return alpha.survives
        likelier = alpha.likelihood is not None and alpha.likelihood > 1.0
        return likelier and above(memory.both_at_tries)
    if account.method == "returns":
        return alpha.survives  # timing estimated from returns is part of alpha
    timed = account.timing if claim == "timing" else account.styles
    if timed is None or timed.at_tries is None:
        return False
    return above(timed.at_tries) and is_likelier(timed.likelihood)


def rests_on_both_plays(account: AgentFindings) -> bool:
    """Return whether alpha is significant only over the unmasked and the masked run together.

    The verdict then rests on the alpha of both runs and states it.
    """
    memory = account.memory
    if above(account.known_alpha.tested) or memory is None or memory.both is None:
        return False
    return above(memory.both)


def exceeds_income_without_skill(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha significantly exceeds income without skill (dividends and interest).

    Only a table of returns may miss such income. Otherwise the result is True.
    """
    missing = least_alpha(account, config) - config.floor
    at_least = account.known_alpha.at_least
    return missing <= 0.0 or at_least is None or at_least > missing


# Memory


def contrast_of(account: AgentFindings, claim: Claim) -> MemoryEvidence | Contrast | None:
    """Return a claim's contrast with the masked run, or None without such a contrast."""
    memory = account.memory
    if memory is None or memory.gap.value is None:
        return None
    if claim == "alpha":
        return memory
    if claim == "timing":
        return memory.timing
    return memory.style_timing if claim == "style_timing" else memory.together


def split_of(account: AgentFindings, claim: Claim) -> AlphaSplit | None:
    """Return a claim split into the part that recall explains and the rest.

    Returns None if recall was not tested or proves nothing, and for ``together``.
    """
    recall = account.recall
    # Uninformative answers can still correlate with the holdings, through the choice of questions.
    if recall is None or recall.reason is not None or recall.split is None or claim == "together":
        return None
    return recall.split.dates if claim == "timing" else recall.split.names


def is_memory(account: AgentFindings, claim: Claim, config: VerdictConfig) -> bool:
    """Return whether a claim is memory, for certain or by suspicion."""
    if is_recalled(account, claim):
        return True
    contrast = contrast_of(account, claim)
    # A claim that a masked run confirms was not remembered, even if the questions are familiar.
    if looks_familiar(account, claim) and (contrast is None or not _confirmed(contrast)):
        return True
    memory = account.memory
    if memory is None or memory.doubted:
        return False
    if contrast is not None and above(contrast.gap):
        if above(contrast.masked):
            return False
        if not is_lost_information(contrast):
            return True
    if claim == "alpha" and memory.fade is not None and above(memory.fade):
        return True
    if contrast is None or is_lost_information(contrast) or not mostly_lost(contrast):
        return False
    # If random portfolios do not confirm alpha either, it is luck and not memory.
    return claim != "alpha" or beats_random_portfolios(account, config)


def is_recalled(account: AgentFindings, claim: Claim) -> bool:
    """Return whether direct evidence shows memory.

    Either recall explains most of the claim, or the decisions do not depend on the input.
    """
    recall, split = account.recall, split_of(account, claim)
    if split is not None and split.remembered:
        return True
    # A model that ignores its input but shows no recall may be lucky. The verdict then has a limit.
    return recall is not None and recall.by_name and recall.told != "no recall is shown"


def looks_familiar(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a claim may come from familiar questions.

    The model is right more often about familiar questions, and the rest of the claim is not
    significant.
    """
    recall, split = account.recall, split_of(account, claim)
    if recall is None or recall.interaction is None or recall.told == "no recall is shown":
        return False
    return above(recall.interaction) and (split is None or not above(split.rest))


def split_gap(contrast: MemoryEvidence | Contrast | None) -> PricedGap | None:
    """Return the gap of a contrast split into lost information and memory.

    Returns None without a contrast, or if the cost of the mask was not measured.
    """
    if contrast is None or isinstance(contrast.priced, msgspec.UnsetType):
        return None
    return None if contrast.priced.remembered.value is None else contrast.priced


def is_lost_information(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether lost information may explain the whole gap.

    Returns False if the lost information was not measured. A True result only clears an agent.
    """
    priced = split_gap(contrast)
    return priced is not None and not above(priced.remembered)


def takes_memory(contrast: MemoryEvidence | Contrast | None) -> bool:
    """Return whether a mask significantly lowers a claim beyond the lost information."""
    return contrast is not None and above(contrast.gap) and not is_lost_information(contrast)


def surely_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether the evidence that a claim is memory is certain and not only a suspicion.

    Either a mask significantly lowers the claim, or recall explains it.
    """
    return takes_memory(contrast_of(account, claim)) or is_recalled(account, claim)


def stands_under_mask(account: AgentFindings, claim: Claim = "alpha") -> bool:
    """Return whether the masked run confirms a claim. Returns True without a masked run."""
    contrast = contrast_of(account, claim)
    return contrast is None or contrast.masked.value is None or _confirmed(contrast)


def partly_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a part of a claim is memory, by recall or by a mask."""
    split = split_of(account, claim)
    if split is not None and split.partly:
        return True
    memory = account.memory
    return memory is not None and not memory.doubted and takes_memory(contrast_of(account, claim))


def mostly_lost(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether a mask removes more of a claim than it leaves.

    The loss must be significant in a one-sided test, and the masked run must not confirm the claim.
    A claim that is significant in only one of the runs is not sufficient, because the difference
    between the runs may still be chance.
    """
    gap, masked = contrast.gap.value, contrast.masked.value
    if gap is None or masked is None:
        return False
    return contrast.shrinks and not _confirmed(contrast) and gap > masked


def _confirmed(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether the masked run confirms a claim."""
    return above(contrast.masked) if contrast.confirmed is None else contrast.confirmed


# Costs, random portfolios, passive portfolios


def costs_ate_alpha(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether costs made a significant alpha insignificant and were at least half of it.

    Most random portfolios with the same trades must not have done better.
    """
    alpha = account.known_alpha
    if not alpha.costly(config) or above(alpha.tested) or not alpha.most_of_gain:
        return False
    return gained(alpha.gross, config.floor) and not most_portfolios_did_better(account)


def allowed_share(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the largest share of random portfolios that may do as well as a skilled account.

    It is twice the one-sided error level of alpha's test, because random portfolios are a second
    test. It is at least the share of one portfolio.
    """
    error = (1.0 - config.level) / account.known_alpha.comparisons
    return max(error, 1.0 / max(1, account.luck.portfolios))


def beats_random_portfolios(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether few enough random portfolios with the same trades did as well.

    Returns True without random portfolios.
    """
    return account.luck.p is None or account.luck.p <= allowed_share(account, config)


def most_portfolios_did_better(account: AgentFindings) -> bool:
    """Return whether most random portfolios with the same trades did better.

    Only this is a veto against skill. If merely some portfolios did as well, the verdict has a
    limit. The comparison uses the whole return, in which market and style are noise, so it would
    miss skill that the test of alpha detects.
    """
    share = account.luck.percentile.value
    return share is not None and share < 0.5


def lacks_market(account: AgentFindings) -> bool:
    """Return whether only returns are known, without a benchmark."""
    common = account.parts.get("common")
    return account.method == "returns" and (common is None or common.value is None)


def is_passive(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account follows the market or a passive portfolio, and little else remains.

    The remaining return is insignificant or smaller than the floor.
    """
    alpha = account.known_alpha.tested
    if account.active_variance is not None and account.active_variance <= config.market_variance:
        # An account with timing, or with an alpha that costs removed, is not passive, although the
        # market explains its variance.
        other = set(significant_claims(account, config)) - {"alpha"}
        if not other and not costs_ate_alpha(account, config):
            if not is_significant(alpha) or abs(alpha.value or 0.0) < config.floor:
                return True
    followed = account.passive
    if followed is None or followed.explained < config.tracks:
        return False
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if value < 0.0 and account.method == "returns":
        # Leverage, fees and trading have costs, so a passive account may earn less than the
        # portfolio that it follows.
        return True
    allowed = config.floor + (hidden_income(account, config) if value > 0.0 else 0.0)
    return not is_significant(beyond) or abs(value) < allowed


def holds_cash(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account held cash or has returns like cash."""
    followed = account.passive
    return followed is not None and followed.portfolio == CASH and is_passive(account, config)


def is_significant(measure: Measure) -> bool:
    """Return whether an interval excludes zero."""
    return above(measure) or below(measure)


def too_small(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha, or a loss, is significant but below the floor."""
    tested = account.known_alpha.tested
    value = tested.value or 0.0
    least = least_alpha(account, config) if value > 0.0 else config.floor
    return is_significant(tested) and abs(value) < least


def too_good(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether the lower end of the alpha ratio is implausibly high.

    Returns True also if alpha is the same on every session and large enough.
    """
    alpha, followed = account.known_alpha, account.passive
    value = alpha.tested.value or 0.0
    if never_moves(account, config):
        return value >= least_alpha(account, config) and not is_passive(account, config)
    # If a passive portfolio explains the account, alpha's volatility is tiny and its ratio has no
    # meaning.
    if followed is not None and followed.explained >= config.tracks:
        return False
    low = alpha.ratio.low
    return low is not None and low > config.too_good and value >= config.floor
