"""Find the possible skills of an account, and the part of them that is memory.

A *claim* is an effect that is significantly positive and large enough: alpha, timing of the market,
or timing of styles. A claim is *dropped* if it shrinks when the agent cannot know names or dates.
Otherwise it is *kept*.
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
    """The claims that memory cannot explain, and the claims that are memory."""

    kept: tuple[Claim, ...]
    dropped: tuple[Claim, ...]


def split_claims_by_memory(account: AgentFindings, config: VerdictConfig) -> Claims:
    """Split an account's claims into the kept ones and the ones that are memory."""
    made = significant_claims(account, config)
    dropped = tuple(claim for claim in made if is_memory(account, claim, config))
    kept = []
    for claim in made:
        if claim in dropped or not stands_under_mask(account, claim):
            continue
        kept.append(claim)
    memory = account.memory
    # An agent that remembers the future profits from names and from dates. Each may be
    # insignificant while their sum is significant: with few names, dates are a large part of the
    # sum.
    if not kept and not dropped and memory is not None and not memory.doubted:
        both = memory.together
        if both is not None and gained(both.earned, config.floor):
            if not most_portfolios_did_better(account) and _sum_is_memory(both):
                dropped = ("together",)
    return Claims(tuple(kept), dropped)


def _sum_is_memory(both: Contrast) -> bool:
    if is_lost_information(both):
        return False
    if above(both.gap):
        return not above(both.masked)
    return mostly_lost(both)


def significant_claims(account: AgentFindings, config: VerdictConfig) -> tuple[Claim, ...]:
    """Return the claims that are significant and large enough, before memory is ruled out.

    Alpha must also not be contradicted by random portfolios.
    """
    has_alpha = _has_alpha(account, config)
    if account.method == "returns":
        return _claims_of_returns(account, config, has_alpha=has_alpha)
    claims: list[Claim] = ["alpha"] if has_alpha else []
    timing, styles = account.timing, account.styles
    if timing is not None and gained(timing.per_year, config.floor):
        claims.append("timing")
    # The costs of timing styles are paid from the proceeds of all trades. If costs removed alpha,
    # test both.
    if styles is not None and gained(styles.timing, config.floor):
        if gained(styles.net, config.floor) or not costs_ate_alpha(account, config):
            claims.append("style_timing")
    # Returns from recall may be significant while the total is not.
    if account.recall is not None and account.recall.told == "recalls":
        for claim in ("alpha", "timing"):
            split = split_of(account, claim)
            if claim in claims or split is None or not split.remembered:
                continue
            if gained(split.explained, config.floor):
                claims.append(claim)
    return tuple(claims)


def _has_alpha(account: AgentFindings, config: VerdictConfig) -> bool:
    alpha, memory = account.known_alpha.tested, account.memory
    least = least_alpha(account, config)
    significant = above(alpha)
    if not significant and memory is not None and not memory.doubted:
        # Two plays of one agent contain more evidence than one. Memory helps in only one of them,
        # so it does not persist.
        significant = gained(memory.both, least) and _confirmed(memory)
    large = (alpha.value or 0.0) >= least
    if not (large and significant):
        return False
    return exceeds_income_without_skill(account, config) and not most_portfolios_did_better(account)


def _claims_of_returns(
    account: AgentFindings, config: VerdictConfig, *, has_alpha: bool
) -> tuple[Claim, ...]:
    if not has_alpha:
        return ()
    timing = account.timing
    if timing is None or not convex(account, config):
        return ("alpha",)
    # Convexity can be bought. It is timing only if something remains after its price, which is the
    # alpha. It is then the whole alpha, unless the account earns something while the market does
    # not move.
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
    """Return whether alpha is significant only over the play and its masked twin together.

    Then the alpha of both is the one that the verdict rests on, and the one that is stated.
    """
    memory = account.memory
    if above(account.known_alpha.tested) or memory is None or memory.both is None:
        return False
    return above(memory.both)


def exceeds_income_without_skill(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha exceeds the income that a table of returns does not show.

    Such income is dividends and interest.
    """
    missing = least_alpha(account, config) - config.floor
    at_least = account.known_alpha.at_least
    return missing <= 0.0 or at_least is None or at_least > missing


# Memory


def contrast_of(account: AgentFindings, claim: Claim) -> MemoryEvidence | Contrast | None:
    """Return a claim's contrast with the masked play, or None without a masked play."""
    memory = account.memory
    if memory is None or memory.gap.value is None:
        return None
    if claim == "alpha":
        return memory
    if claim == "timing":
        return memory.timing
    return memory.style_timing if claim == "style_timing" else memory.together


def split_of(account: AgentFindings, claim: Claim) -> AlphaSplit | None:
    """Return a claim's value without recall, or None if recall was not tested."""
    recall = account.recall
    # Uninformative answers can still correlate with the holdings, through the choice of questions.
    if recall is None or recall.reason is not None or recall.split is None or claim == "together":
        return None
    return recall.split.dates if claim == "timing" else recall.split.names


def is_memory(account: AgentFindings, claim: Claim, config: VerdictConfig) -> bool:
    """Return whether a claim is memory, certainly or probably."""
    if is_recalled(account, claim):
        return True
    contrast = contrast_of(account, claim)
    # A claim that persists under a mask was not remembered, however familiar the questions are.
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
    # A claim that random portfolios do not confirm either is luck and not memory.
    return claim != "alpha" or beats_random_portfolios(account, config)


def is_recalled(account: AgentFindings, claim: Claim) -> bool:
    """Return whether direct evidence shows memory.

    Either recall explains the claim, or the input does not affect the decisions.
    """
    recall, split = account.recall, split_of(account, claim)
    if split is not None and split.remembered:
        return True
    # A model that ignores its input and shows no recall may be lucky. This is a limit and not
    # memory.
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
    """Return lost information and memory in a gap; None where the mask's price is not measured."""
    if contrast is None or isinstance(contrast.priced, msgspec.UnsetType):
        return None
    return None if contrast.priced.remembered.value is None else contrast.priced


def is_lost_information(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether lost information may be all of a gap.

    That clears an agent, and never accuses it.
    """
    priced = split_gap(contrast)
    return priced is not None and not above(priced.remembered)


def takes_memory(contrast: MemoryEvidence | Contrast | None) -> bool:
    """Return whether a mask takes something, significantly, that lost information does not
    explain.
    """
    return contrast is not None and above(contrast.gap) and not is_lost_information(contrast)


def surely_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a mask significantly removes a claim, or recall explains it."""
    return takes_memory(contrast_of(account, claim)) or is_recalled(account, claim)


def stands_under_mask(account: AgentFindings, claim: Claim = "alpha") -> bool:
    """Return whether a claim persists under a mask. Without a masked run it is true."""
    contrast = contrast_of(account, claim)
    return contrast is None or contrast.masked.value is None or _confirmed(contrast)


def partly_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a mask significantly removes a part of a claim."""
    split = split_of(account, claim)
    if split is not None and split.partly:
        return True
    memory = account.memory
    return memory is not None and not memory.doubted and takes_memory(contrast_of(account, claim))


def mostly_lost(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether a mask removes more than it leaves, and the remainder is not significant.

    The test is one-sided. Significance in one play but not in the other does not show that the two
    differ.
    """
    gap, masked = contrast.gap.value, contrast.masked.value
    if gap is None or masked is None:
        return False
    return contrast.shrinks and not _confirmed(contrast) and gap > masked


def _confirmed(contrast: MemoryEvidence | Contrast) -> bool:
    return above(contrast.masked) if contrast.confirmed is None else contrast.confirmed


# Costs, random portfolios, passive portfolios


def costs_ate_alpha(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha was significant before costs, and costs were at least half of it."""
    alpha = account.known_alpha
    if not alpha.costly(config) or above(alpha.tested) or not alpha.most_of_gain:
        return False
    return gained(alpha.gross, config.floor) and not most_portfolios_did_better(account)


def allowed_share(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the largest share of random portfolios that may do as well as a skilled account.

    They are a second opinion on the whole return, with twice the error level of alpha itself. The
    strictest possible condition is that none of the portfolios did as well.
    """
    error = (1.0 - config.level) / account.known_alpha.comparisons
    return max(error, 1.0 / max(1, account.luck.portfolios))


def beats_random_portfolios(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether few random portfolios with the same trades do as well.

    Without random portfolios it is true.
    """
    return account.luck.p is None or account.luck.p <= allowed_share(account, config)


def most_portfolios_did_better(account: AgentFindings) -> bool:
    """Return whether most random portfolios with the same trades did better.

    If some did as well, this is a limit and not a veto. The comparison uses the whole return, in
    which market and style are noise. A second test of the same question would miss skill that the
    first test has found.
    """
    share = account.luck.percentile.value
    return share is not None and share < 0.5


def lacks_market(account: AgentFindings) -> bool:
    """Return whether only returns are known, without a benchmark. Then there is no alpha."""
    common = account.parts.get("common")
    return account.method == "returns" and (common is None or common.value is None)


def is_passive(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account follows a passive portfolio without any meaningful rest."""
    alpha = account.known_alpha.tested
    if account.active_variance is not None and account.active_variance <= config.market_variance:
        # Many names with varying weights, or frequent trading at a cost, follow the market too.
        other = set(significant_claims(account, config)) - {"alpha"}
        if not other and not costs_ate_alpha(account, config):
            if not is_significant(alpha) or abs(alpha.value or 0.0) < config.floor:
                return True
    followed = account.passive
    if followed is None or followed.explained < config.tracks:
        return False
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if value < 0.0 and account.method == "returns":
        # Leverage, fees and trading have costs. An account that lags the portfolio that moves it is
        # still passive.
        return True
    allowed = config.floor + (hidden_income(account, config) if value > 0.0 else 0.0)
    return not is_significant(beyond) or abs(value) < allowed


def holds_cash(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account held cash, or has returns like cash."""
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
    """Return whether even the lower end of the alpha ratio is implausibly high."""
    alpha, followed = account.known_alpha, account.passive
    value = alpha.tested.value or 0.0
    if never_moves(account, config):
        return value >= least_alpha(account, config) and not is_passive(account, config)
    # A tracker's residual is tiny, so its ratio has no meaning. The same holds for stale prices.
    if followed is not None and followed.explained >= config.tracks:
        return False
    low = alpha.ratio.low
    return low is not None and low > config.too_good and value >= config.floor
