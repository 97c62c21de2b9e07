"""Question: is the result memory of the period?"""

from __future__ import annotations

from tradeassay.core.measure import above
from tradeassay.verdict._claims import (
    CLAIM_WORDS,
    contrast_of,
    is_recalled,
    looks_familiar,
    split_claims_by_memory,
    split_of,
    surely_memory,
    takes_memory,
)
from tradeassay.verdict._phrases import brought, price_words, spanned
from tradeassay.verdict.questions.common import make_verdict
from tradeassay.verdict.recalled import split_sentence
from tradeassay.verdict.record import AgentFindings, Claim, Verdict, VerdictConfig


def memory_verdict(account: AgentFindings, config: VerdictConfig) -> Verdict | None:
    """Return the verdict *memory* if all claims of the account are memory, or None.

    Memory is certain if a mask significantly lowers a claim, or if recall explains it. Memory is
    suspected in three cases: selection fades after the model's knowledge cutoff, the model is right
    more often about familiar questions, or the mask removes more of a claim than it leaves (in a
    one-sided test at 5 %). A mask also destroys information. If this loss was measured in a world
    that no model can have read, the gap counts as memory only if the rest is significant.
    """
    claims = split_claims_by_memory(account, config)
    if not claims.dropped or claims.kept:
        return None
    firm = any(surely_memory(account, claim) for claim in claims.dropped)
    ending = _words(account, claims.dropped[0])
    return make_verdict(account, config, "memory", f", {ending}", firm=firm)


def _words(account: AgentFindings, claim: Claim) -> str:
    """Return the end of the sentence, with the evidence that a claim is memory."""
    memory, recall = account.memory, account.recall
    contrast, split = contrast_of(account, claim), split_of(account, claim)
    is_memory = f"but its {CLAIM_WORDS[claim]} is memory:"
    if contrast is not None and memory is not None and takes_memory(contrast):
        loss = f"'{memory.against}' takes {spanned(contrast.gap)} a year of it"
        left = f"what is left, {spanned(contrast.masked)}, is not distinguishable from nothing"
        return f"{is_memory} {loss}, and {left}{_priced(account, claim)}."
    if is_recalled(account, claim):
        if split is not None and split.remembered:
            return f"{is_memory} {split_sentence(split)}"
        return f"{is_memory} it decides by name and day, not by what it is shown{_unread(account)}."
    if looks_familiar(account, claim):
        assert recall is not None and recall.interaction is not None
        right = f"{spanned(recall.interaction)} for one standard deviation of Min-K%"
        return f"and memory is suspected: it is right where questions are familiar, {right}."
    assert memory is not None
    if claim != "alpha" and contrast is not None:
        left = f"{spanned(contrast.masked)} a year is left under '{memory.against}'"
        return (
            f"and memory is suspected: of {brought(account, claim)}, "
            f"{left}{_priced(account, claim)}."
        )
    if memory.fade is not None and above(memory.fade):
        fades = f"its selection fades by {spanned(memory.fade)} per window"
        return f"and memory is suspected: {fades} after the day on which its knowledge ends."
    whole = f"{spanned(account.known_alpha.tested)} a year beyond market and style"
    left = f"{spanned(memory.masked)} is left under '{memory.against}'"
    return f"and memory is suspected: of {whole} {left}{_priced(account, claim)}."


def _priced(account: AgentFindings, claim: Claim) -> str:
    """Return a clause about lost information and memory, or an empty text."""
    words = price_words(account, claim)
    return f"; {words}" if words else ""


def _unread(account: AgentFindings) -> str:
    """Return a clause about the orders under mirrored returns, or an empty text."""
    recall = account.recall
    if recall is None or recall.unread is None or recall.unread.value is None:
        return ""
    value = recall.unread.value
    stay = f"{value:+.2f}".replace("-", "\u2212")
    return f", and orders stay at {stay} when returns are mirrored (+1 the same)"
