"""What may be praised in an account, and what of it is memory.

A *claim* is something that is significantly positive and large enough: alpha, timing of the market, timing of
styles. Claims that shrink where the agent cannot know names or dates are *dropped*, the others are *kept*.
"""

from __future__ import annotations

from typing import NamedTuple

from tradeassay.core.measure import Measure, above, below
from tradeassay.verdict.evidence import convex, gained, least_alpha, never_moves, unearned
from tradeassay.verdict.recalled import AlphaSplit
from tradeassay.verdict.record import (
    CASH,
    AgentFindings,
    Claim,
    Contrast,
    MemoryEvidence,
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
    """The claims that stand where memory cannot help, and those that are memory."""

    kept: tuple[Claim, ...]
    dropped: tuple[Claim, ...]


def claims_that_persist(account: AgentFindings, config: VerdictConfig) -> Claims:
    """Sort an account's claims into those that are kept and those that are memory."""
    made = claims_of_account(account, config)
    dropped = tuple(claim for claim in made if is_memory(account, claim, config))
    kept = []
    for claim in made:
        if claim in dropped or not stands_under_mask(account, claim):
            continue
        kept.append(claim)
    memory = account.memory
    # An agent that remembers the future earns by names and by dates. Either may hide in chance where their sum does
    # not: with few names the days are a large part of it.
    if not kept and not dropped and memory is not None and not memory.doubted:
        both = memory.together
        if both is not None and gained(both.earned, config.floor):
            if not most_portfolios_did_better(account) and _sum_is_memory(both):
                dropped = ("together",)
    return Claims(tuple(kept), dropped)


def _sum_is_memory(both: Contrast) -> bool:
    if above(both.gap):
        return not above(both.masked)
    return mostly_lost(both)


def claims_of_account(account: AgentFindings, config: VerdictConfig) -> tuple[Claim, ...]:
    """Return what is significant and large enough to be praised, before memory is ruled out.

    Alpha must also not be contradicted by random portfolios."""
    has_alpha = _has_alpha(account, config)
    if account.method == "returns":
        return _claims_of_returns(account, config, has_alpha=has_alpha)
    claims: list[Claim] = ["alpha"] if has_alpha else []
    timing, styles = account.timing, account.styles
    if timing is not None and gained(timing.per_year, config.floor):
        claims.append("timing")
    # Trades that time styles are paid from what all trades brought. If costs ate an alpha, both are asked.
    if styles is not None and gained(styles.timing, config.floor):
        if gained(styles.net, config.floor) or not costs_ate_alpha(account, config):
            claims.append("style_timing")
    # What recall earned may be significant where chance hides it in the whole.
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
        # Two plays of one agent say more than either. Memory helps in one of them only, so it does not persist.
        significant = gained(memory.both, least) and _confirmed(memory)
    large = (alpha.value or 0.0) >= least
    if not (large and significant):
        return False
    return is_earned(account, config) and not most_portfolios_did_better(account)


def _claims_of_returns(
    account: AgentFindings, config: VerdictConfig, *, has_alpha: bool
) -> tuple[Claim, ...]:
    if not has_alpha:
        return ()
    timing = account.timing
    if timing is None or not convex(account, config):
        return ("alpha",)
    # Convexity can be bought. It is timing only if something is left after its price, which is the alpha. And then
    # it is all of the alpha, unless something is earned where the market does not move.
    if timing.intercept is not None and above(timing.intercept):
        return ("alpha", "timing")
    return ("timing",)


def survives_tries(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a claim is significant after all tries behind the result are allowed for."""
    alpha, memory = account.known_alpha, account.memory
    if claim == "alpha":
        if alpha.survives or memory is None or memory.doubted or memory.both_at_tries is None:
            return alpha.survives
        likelier = alpha.likelihood is not None and alpha.likelihood > 1.0
        return likelier and above(memory.both_at_tries)
    if account.method == "returns":
        return alpha.survives  # timing by returns is paid from alpha
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


def is_earned(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha is more than the dividends and interest that returns alone do not show."""
    missing = least_alpha(account, config) - config.floor
    at_least = account.known_alpha.at_least
    return missing <= 0.0 or at_least is None or at_least > missing


# Memory


def contrast_of(account: AgentFindings, claim: Claim) -> MemoryEvidence | Contrast | None:
    """Return how a claim fared under a mask, or None if it was not played under one."""
    memory = account.memory
    if memory is None or memory.gap.value is None:
        return None
    if claim == "alpha":
        return memory
    if claim == "timing":
        return memory.timing
    return memory.style_timing if claim == "style_timing" else memory.together


def split_of(account: AgentFindings, claim: Claim) -> AlphaSplit | None:
    """Return what a claim is worth without what the model recalls, or None if that was not asked."""
    recall = account.recall
    # Answers that say nothing can follow what was held all the same: by where they were asked for.
    if recall is None or recall.reason is not None or recall.split is None or claim == "together":
        return None
    return recall.split.dates if claim == "timing" else recall.split.names


def is_memory(account: AgentFindings, claim: Claim, config: VerdictConfig) -> bool:
    """Return whether a claim is memory, for certain or suspected."""
    if is_recalled(account, claim):
        return True
    contrast = contrast_of(account, claim)
    # What stands under a mask was not remembered, however familiar the questions are.
    if looks_familiar(account, claim) and (contrast is None or not _confirmed(contrast)):
        return True
    memory = account.memory
    if memory is None or memory.doubted:
        return False
    if contrast is not None and above(contrast.gap):
        return not above(contrast.masked)
    if claim == "alpha" and memory.fade is not None and above(memory.fade):
        return True
    if contrast is None or not mostly_lost(contrast):
        return False
    # What random portfolios do not confirm either is luck, and no memory.
    return claim != "alpha" or beats_random_portfolios(account, config)


def is_recalled(account: AgentFindings, claim: Claim) -> bool:
    """Return whether direct evidence says memory: recall explains the claim, or the input does not matter."""
    recall, split = account.recall, split_of(account, claim)
    if split is not None and split.remembered:
        return True
    # A model that does not read, and shows no recall either, may be lucky. That is a limit, not memory.
    return recall is not None and recall.by_name and recall.told != "no recall is shown"


def looks_familiar(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a model is right where questions are familiar, and nothing else of the claim is certain."""
    recall, split = account.recall, split_of(account, claim)
    if recall is None or recall.interaction is None or recall.told == "no recall is shown":
        return False
    return above(recall.interaction) and (split is None or not above(split.rest))


def surely_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a mask takes a claim away for certain, or recall explains it."""
    contrast = contrast_of(account, claim)
    return (contrast is not None and above(contrast.gap)) or is_recalled(account, claim)


def stands_under_mask(account: AgentFindings, claim: Claim = "alpha") -> bool:
    """Return whether a claim stands where memory cannot help; true if no masked run was made."""
    contrast = contrast_of(account, claim)
    return contrast is None or contrast.masked.value is None or _confirmed(contrast)


def partly_memory(account: AgentFindings, claim: Claim) -> bool:
    """Return whether a mask takes a part of a claim for certain."""
    split = split_of(account, claim)
    if split is not None and split.partly:
        return True
    contrast, memory = contrast_of(account, claim), account.memory
    if contrast is None or memory is None:
        return False
    return above(contrast.gap) and not memory.doubted


def mostly_lost(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether a mask takes more than it leaves, tested one-sided, and what it leaves may be nothing.

    That something is significant in one play and not in the other does not say that the two differ."""
    gap, masked = contrast.gap.value, contrast.masked.value
    if gap is None or masked is None:
        return False
    return contrast.shrinks and not _confirmed(contrast) and gap > masked


def _confirmed(contrast: MemoryEvidence | Contrast) -> bool:
    return above(contrast.masked) if contrast.confirmed is None else contrast.confirmed


# Costs, random portfolios, passive portfolios


def costs_ate_alpha(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha was significant before costs, and they took at least half of it."""
    alpha = account.known_alpha
    if not alpha.costly(config) or above(alpha.tested) or not alpha.most_of_gain:
        return False
    return gained(alpha.gross, config.floor) and not most_portfolios_did_better(account)


def allowed_share(account: AgentFindings, config: VerdictConfig) -> float:
    """Return the share of random portfolios that may do as well as a skilled account.

    They are a second opinion, on the whole return: twice the chance of error that alpha itself is allowed. It
    cannot ask for more than that none of the portfolios did as well."""
    error = (1.0 - config.level) / account.known_alpha.comparisons
    return max(error, 1.0 / max(1, account.luck.portfolios))


def beats_random_portfolios(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether random portfolios with the same trades rarely do as well; true if there are none."""
    return account.luck.p is None or account.luck.p <= allowed_share(account, config)


def most_portfolios_did_better(account: AgentFindings) -> bool:
    """Return whether most random portfolios with the same trades did better.

    That some did as well is a limit and no veto: they are compared by the whole return, in which market and style
    are noise, and a second test of the same question would miss skill that the first has found."""
    share = account.luck.percentile.value
    return share is not None and share < 0.5


def lacks_market(account: AgentFindings) -> bool:
    """Return whether returns are known and no market's: what they earned is no alpha then."""
    common = account.parts.get("common")
    return account.method == "returns" and (common is None or common.value is None)


def is_passive(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account follows a passive portfolio and nothing worth the name is left beyond it."""
    alpha = account.known_alpha.tested
    if account.active_variance is not None and account.active_variance <= config.market_variance:
        # Many names, held now more and now less, or traded away at a cost, follow the market too.
        other = set(claims_of_account(account, config)) - {"alpha"}
        if not other and not costs_ate_alpha(account, config):
            if not is_significant(alpha) or abs(alpha.value or 0.0) < config.floor:
                return True
    followed = account.passive
    if followed is None or followed.explained < config.tracks:
        return False
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if value < 0.0 and account.method == "returns":
        # Leverage, fees and trading cost something. What trails the portfolio that moves it is still that one.
        return True
    allowed = config.floor + (unearned(account, config) if value > 0.0 else 0.0)
    return not is_significant(beyond) or abs(value) < allowed


def holds_cash(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account held cash, or moves as cash does."""
    followed = account.passive
    return followed is not None and followed.portfolio == CASH and is_passive(account, config)


def is_significant(measure: Measure) -> bool:
    """Return whether an interval leaves zero out."""
    return above(measure) or below(measure)


def too_small(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether alpha, or a loss, is significant and too small to be called one."""
    tested = account.known_alpha.tested
    value = tested.value or 0.0
    least = least_alpha(account, config) if value > 0.0 else config.floor
    return is_significant(tested) and abs(value) < least


def too_good(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether even the lower end of the alpha ratio is one that nobody achieves."""
    alpha, followed = account.known_alpha, account.passive
    value = alpha.tested.value or 0.0
    if never_moves(account, config):
        return value >= least_alpha(account, config) and not is_passive(account, config)
    # A tracker's residual is tiny, so its ratio says nothing. Nor does that of stale prices.
    if followed is not None and followed.explained >= config.tracks:
        return False
    low = alpha.ratio.low
    return low is not None and low > config.too_good and value >= config.floor
