"""Question: does alpha or timing show skill?"""

from __future__ import annotations

from tradeassay.core.measure import above, below
from tradeassay.verdict._claims import (
    Claims,
    rests_on_both_plays,
    split_claims_by_memory,
    survives_tries,
)
from tradeassay.verdict._phrases import count, spanned, tries_are_assumed, tries_words
from tradeassay.verdict.questions.common import (
    likelihood_words,
    make_verdict,
    significant_alpha,
    what_it_is,
)
from tradeassay.verdict.questions.luck import why_no_alpha
from tradeassay.verdict.record import AgentFindings, Claim, Verdict, VerdictConfig


def skill_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *skill*, *timing* or *could be the best of a few tries*, or None.

    There must be a claim that is not memory. If it survives the correction for tries, the verdict
    is *skill* (for alpha) or *timing*. A claim survives if it is above zero at the level corrected
    for all tries, and if the record is likelier under skill than as luck's best try. If no claim
    survives, the verdict is *could be the best of a few tries*. If the second half of the record
    contradicts alpha, the label is "faded" and there is no praise. Timing estimated from returns is
    part of alpha and fades with it.
    """
    claims = split_claims_by_memory(account, config)
    kept = claims.kept
    if not kept:
        return None
    stability = account.stability
    from_alpha = "alpha" in kept or account.method == "returns"
    if from_alpha and stability is not None and stability.faded:
        return _faded(account, config)
    surviving = tuple(claim for claim in kept if survives_tries(account, claim))
    if not surviving:
        return _best_of_few(account, config, kept)
    if "alpha" in surviving:
        ending = f"; skill: {what_it_is(account, config, surviving)}; {likelihood_words(account)}"
        ending += f"{_latest_third(account)}{_among_portfolios(account)}."
        return make_verdict(account, config, "skill", ending)
    return _timing(account, config, claims, surviving)


def _faded(account: AgentFindings, config: VerdictConfig) -> Verdict:
    """Return the verdict on an alpha that the second half of the record contradicts."""
    stability = account.stability
    assert stability is not None
    first, second = spanned(stability.first), spanned(stability.second)
    halves = f"{first} a year in the first half, {second} in the second"
    ending = f"; {significant_alpha(account, config)}, but it has faded: {halves}."
    return make_verdict(account, config, "not-distinguishable-from-luck", ending, label="faded")


def _best_of_few(account: AgentFindings, config: VerdictConfig, kept: tuple[Claim, ...]) -> Verdict:
    """Return the verdict *could be the best of a few tries*."""
    alpha = account.known_alpha
    what = what_it_is(account, config, kept)
    alike = f"{tries_words(account)} does as well"
    # The number of equal tries is computed from the unmasked run only.
    by_one_play = "alpha" in kept and not rests_on_both_plays(account)
    equal = alpha.equal_tries if by_one_play else None
    if equal is not None and 1 < equal <= alpha.tries:
        alike = f"luck's best of {count(equal)} tries looks the same"
    elif equal is not None and equal > alpha.tries:
        alike = f"at the level shared among {count(alpha.tries)} tries zero is not excluded"
    if tries_are_assumed(account):
        alike += f" ({count(alpha.tries)} are assumed)"
    alike += _latest_third(account)
    ending = f"; positive, and could be the best of a few tries: {what}; {alike}."
    return make_verdict(account, config, "could-be-best-of-few", ending)


def _timing(
    account: AgentFindings,
    config: VerdictConfig,
    claims: Claims,
    surviving: tuple[Claim, ...],
) -> Verdict:
    """Return the verdict *timing*."""
    ending = f"; {what_it_is(account, config, surviving)}"
    if account.method == "returns":
        ending += f"; {likelihood_words(account)}"
    elif "alpha" not in claims.dropped:  # the sentence already says that the names are memory
        ending += f"; {_rest_of_timing(account, config, claims)}"
    return make_verdict(account, config, "timing", f"{ending}.")


def _rest_of_timing(account: AgentFindings, config: VerdictConfig, claims: Claims) -> str:
    """Return a clause about alpha besides timing.

    If alpha is significantly positive, the clause includes the reason against skill.
    """
    tested = account.known_alpha.tested
    if below(tested):
        return f"the rest lost significantly ({spanned(tested)} a year)"
    if not above(tested):
        return "nothing in the names that it chose is distinguishable from luck"
    doubt = why_no_alpha(account, config)
    if "alpha" in claims.kept:
        doubt = "that could be the best of a few tries"
    return f"the names that it chose brought {spanned(tested)} a year, but {doubt}"


def _latest_third(account: AgentFindings) -> str:
    """Return a clause about alpha in the latest third of the record, or an empty text."""
    stability = account.stability
    return "" if stability is None else f"; in its latest third {spanned(stability.latest)} a year"


def _among_portfolios(account: AgentFindings) -> str:
    """Return a clause about the share of random portfolios that it beats, or an empty text."""
    share = account.luck.percentile.value
    if share is None:
        return ""
    return f"; it beats {share:.1%} of random portfolios with the same trades"
