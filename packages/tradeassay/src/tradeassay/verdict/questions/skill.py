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
    """Return the verdict *skill* or *timing* if style, memory and hidden risk do not explain a
    claim.

    The claim must survive the correction for tries: alpha is above zero at the level shared among
    all tries, and the record is likelier under skill than under luck's best try. Otherwise the
    verdict is *positive, and could be the best of a few tries*. If the latest half of the record
    contradicts the claim, alpha has faded and there is no praise. Timing estimated from returns is
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
        said = f"; skill: {what_it_is(account, config, surviving)}; {likelihood_words(account)}"
        said += f"{_latest_third(account)}{_among_portfolios(account)}."
        return make_verdict(account, config, "skill", said)
    return _timing(account, config, claims, surviving)


def _faded(account: AgentFindings, config: VerdictConfig) -> Verdict:
    stability = account.stability
    assert stability is not None
    first, second = spanned(stability.first), spanned(stability.second)
    halves = f"{first} a year in the first half, {second} in the second"
    said = f"; {significant_alpha(account, config)}, but it has faded: {halves}."
    return make_verdict(account, config, "not-distinguishable-from-luck", said, label="faded")


def _best_of_few(account: AgentFindings, config: VerdictConfig, kept: tuple[Claim, ...]) -> Verdict:
    alpha = account.known_alpha
    what = what_it_is(account, config, kept)
    alike = f"{tries_words(account)} does as well"
    # The number of tries that equals luck is known of the unmasked play alone.
    by_one_play = "alpha" in kept and not rests_on_both_plays(account)
    equal = alpha.equal_tries if by_one_play else None
    if equal is not None and 1 < equal <= alpha.tries:
        alike = f"luck's best of {count(equal)} tries looks the same"
    elif equal is not None and equal > alpha.tries:
        alike = f"at the level shared among {count(alpha.tries)} tries zero is not excluded"
    if tries_are_assumed(account):
        alike += f" ({count(alpha.tries)} are assumed)"
    alike += _latest_third(account)
    said = f"; positive, and could be the best of a few tries: {what}; {alike}."
    return make_verdict(account, config, "could-be-best-of-few", said)


def _timing(
    account: AgentFindings,
    config: VerdictConfig,
    claims: Claims,
    surviving: tuple[Claim, ...],
) -> Verdict:
    said = f"; {what_it_is(account, config, surviving)}"
    if account.method == "returns":
        said += f"; {likelihood_words(account)}"
    elif "alpha" not in claims.dropped:  # the sentence already says that the names are memory
        said += f"; {_rest_of_timing(account, config, claims)}"
    return make_verdict(account, config, "timing", f"{said}.")


def _rest_of_timing(account: AgentFindings, config: VerdictConfig, claims: Claims) -> str:
    """Return the return from names besides timing as text.

    If it is significant, the text includes the reason against it.
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
    stability = account.stability
    return "" if stability is None else f"; in its latest third {spanned(stability.latest)} a year"


def _among_portfolios(account: AgentFindings) -> str:
    share = account.luck.percentile.value
    if share is None:
        return ""
    return f"; it beats {share:.1%} of random portfolios with the same trades"
