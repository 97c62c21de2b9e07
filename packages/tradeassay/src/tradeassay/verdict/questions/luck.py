"""The last verdict: the account is not distinguishable from luck."""

from __future__ import annotations

from tradeassay.core.measure import above
from tradeassay.verdict._claims import (
    exceeds_income_without_skill,
    is_significant,
    stands_under_mask,
    too_small,
)
from tradeassay.verdict._limits import chance_words
from tradeassay.verdict._phrases import alpha_words, beyond_what, price_words, tries_words
from tradeassay.verdict.evidence import hidden_income_words, least_alpha
from tradeassay.verdict.questions.common import make_verdict, seller_words
from tradeassay.verdict.record import AgentFindings, Kind, Verdict, VerdictConfig


def luck_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict:
    """Return the verdict *not distinguishable from luck*.

    The label of a significant alpha below the floor is "alpha too small".
    """
    small = too_small(account, config)
    label = "alpha too small" if small else None
    kind: Kind = "not-distinguishable-from-luck"
    against, versus = why_no_alpha(account, config), account.versus
    yearly = f"alpha of {alpha_words(account, config)}"
    sold = seller_words(account)
    if against is not None:
        opens = ", and its alpha is too small" if small else ", and luck is not excluded"
        return make_verdict(
            account, config, kind, f"{opens}: {yearly}, but {against}{sold}.", label=label
        )
    short = f"{too_short_words(account)}{sold}"
    if versus is None or versus.side is None:
        ending = f", which is not distinguishable from luck: {yearly}{short}."
        return make_verdict(account, config, kind, ending, label=label)
    # An account may beat the baseline by luck, so the sentence states both facts.
    verb = "beats" if versus.side == "above" else "falls behind"
    beyond = f"what it did beyond {beyond_what(account, config)} is not distinguishable from luck"
    ending = f" and {verb} {versus.baseline}, but {beyond}: {yearly}{short}."
    return make_verdict(account, config, kind, ending, label=label)


def too_short_words(account: AgentFindings) -> str:
    """Return the clause that the record is too short to show skill, or an empty text."""
    return "; the window is too short for skill to show" if account.could_not else ""


def why_no_alpha(account: AgentFindings, config: VerdictConfig) -> str | None:
    """Return why a significant alpha or loss is no skill or harm, or None if it is not significant.

    Without this reason, a significant interval would contradict "not distinguishable from luck".
    """
    alpha = account.known_alpha.tested
    if not is_significant(alpha):
        return None
    value, least = alpha.value or 0.0, least_alpha(account, config)
    unseen = hidden_income_words(account, config)
    if abs(value) < config.floor:
        return f"that is too little to be called alpha (the floor is {config.floor:.0%} a year)"
    if 0.0 < value < least:
        called = f"(here alpha begins at {least:.1%} a year)"
        return f"that is no more than the {unseen} that returns alone do not show {called}"
    if above(alpha) and not exceeds_income_without_skill(account, config):
        rest = "which returns alone do not show, and the rest is not significant"
        return f"{least - config.floor:.1%} of it may be {unseen}, {rest}"
    if above(alpha) and account.memory is not None and not stands_under_mask(account):
        nothing = f"under '{account.memory.against}' nothing significant is left"
        priced = price_words(account, "alpha") if above(account.memory.gap) else ""
        return f"{nothing}; {priced}" if priced else nothing
    if not above(alpha) and not account.known_alpha.survives_below:
        return f"{tries_words(account).replace('best', 'worst')} looks the same"
    return chance_words(account, well=above(alpha))
