"""Functions shared by all questions: build a verdict and the clauses of its sentence."""

from __future__ import annotations

from tradeassay.verdict._claims import (
    CLAIM_WORDS,
    partly_memory,
    rests_on_both_plays,
    split_claims_by_memory,
)
from tradeassay.verdict._limits import limits_of
from tradeassay.verdict._phrases import (
    alpha_words,
    both_plays_words,
    brought,
    in_rows,
    leans,
    likelier_words,
    memory_of_claim,
    pace,
    part_of,
    part_words,
    percent,
    spanned,
    tries_are_assumed,
)
from tradeassay.verdict.evidence import leaning
from tradeassay.verdict.record import (
    LABELS,
    NOT_FIRM,
    PRAISE,
    AgentFindings,
    Claim,
    Kind,
    Verdict,
    VerdictConfig,
)

_MOST_LIMITS = 3
"""Largest number of limits in a sentence."""


def make_verdict(
    account: AgentFindings,
    config: VerdictConfig,
    kind: Kind,
    ending: str,
    *,
    firm: bool | None = None,
    label: str | None = None,
) -> Verdict:
    """Return a verdict of a kind, with its limits and its sentence.

    The sentence is the account's return followed by ``ending``. A sentence of praise also states
    the first limits. By default praise is firm if there are no limits, and every other verdict is
    firm. The default ``label`` is the label of the kind.
    """
    limits = tuple(in_rows(account, limit) for limit in limits_of(account, config, kind))
    if firm is None:
        firm = kind not in PRAISE or not limits
    if label is None:
        label = LABELS[kind] if firm else NOT_FIRM.get(kind, LABELS[kind])
    if account.baseline and kind != "look-ahead":
        label = "baseline"  # a baseline is meant to be simple, not skilled
    sentence = f"{opening(account)}{ending}"
    if kind in PRAISE and limits:
        sentence += f" But {_first_clauses(limits)}."
    return Verdict(
        kind=kind, label=label, firm=firm, sentence=in_rows(account, sentence), limits=limits
    )


def _first_clauses(limits: tuple[str, ...]) -> str:
    """Return the first three limits as text, without their sources, and the number of further ones.

    The source of a limit follows its colon.
    """
    clauses = [limit.partition(":")[0] for limit in limits]
    text = "; ".join(clauses[:_MOST_LIMITS])
    if len(clauses) > _MOST_LIMITS:
        text += f"; and {len(clauses) - _MOST_LIMITS} more"
    return text


def opening(account: AgentFindings) -> str:
    """Return the beginning of a verdict's sentence, which states the account's return."""
    name = f"{account.agent}, the baseline," if account.baseline else account.agent
    text = f"{name} returned {percent(account.total.value)}{pace(account)}"
    if account.seeds > 1:
        text += f" over its {account.seeds} seeds in equal parts"
    if account.with_all is not None:
        text += f" where its benchmark has rows ({percent(account.with_all)} with all of its own)"
    return text


def seller_words(account: AgentFindings) -> str:
    """Return a clause about an account that moves like a seller of options.

    The clause states the implied return in a market crash, if known. It is empty for all other
    accounts.
    """
    options = account.options
    if account.method != "returns" or options is None or not options.shape:
        return ""
    words = f"; it moves as a seller of options does ({options.shape})"
    if options.loss_at_20 is not None:
        loss = percent(options.loss_at_20)
        words += f": if the market falls 20 % in one day it would return about {loss}"
    return words


def likelihood_words(account: AgentFindings) -> str:
    """Return a clause about how much likelier the record is under skill than under luck.

    It is empty without a likelihood ratio. An assumed number of tries is marked.
    """
    likelihood = account.known_alpha.likelihood
    if likelihood is None:
        return ""
    likelier = likelier_words(account, likelihood)
    return f"{likelier} (assumed)" if tries_are_assumed(account) else likelier


def significant_alpha(account: AgentFindings, config: VerdictConfig) -> str:
    """Return a clause with the annual alpha.

    It is the alpha of the unmasked and the masked run together if only this alpha is significant.
    """
    if rests_on_both_plays(account):
        return f"alpha of {both_plays_words(account, config)}"
    return f"alpha of {alpha_words(account, config)}"


def what_it_is(account: AgentFindings, config: VerdictConfig, kept: tuple[Claim, ...]) -> str:
    """Return a clause with the kept claims, and with the part of them that is memory or style."""
    words = []
    for claim in kept:
        if claim == "alpha":
            words.append(significant_alpha(account, config))
        elif account.method == "returns" and "alpha" in kept:
            assert account.timing is not None
            worth = spanned(account.timing.per_year)
            words.append(f"timing ({worth} a year of it, before what it cost)")
        else:
            words.append(f"{CLAIM_WORDS[claim]}: {brought(account, claim)}")
    text = " and ".join(words)
    gone = _memory_part(account, config, kept)
    if gone:
        text += f"; {gone}"
    elif "alpha" in kept and leaning(account, config):
        brought_by_style = part_words(account, part_of(account, "style"))
        which = "" if brought_by_style is None else f", which brought {brought_by_style}"
        text += f"; it leans to styles{which} ({leans(account, config)})"
    return text


def _memory_part(account: AgentFindings, config: VerdictConfig, kept: tuple[Claim, ...]) -> str:
    """Return a clause about the part of the claims that is memory, or an empty text."""
    for claim in split_claims_by_memory(account, config).dropped:
        return memory_of_claim(account, claim, whole=True)
    for claim in kept:
        if partly_memory(account, claim):
            return memory_of_claim(account, claim, whole=False)
    return ""
