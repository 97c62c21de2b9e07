"""Phrases shared by sentences, statements and limits."""

from __future__ import annotations

import re

from tradeassay.core.measure import Measure, above
from tradeassay.factors import factor_words
from tradeassay.verdict._claims import (
    CLAIM_WORDS,
    contrast_of,
    split_gap,
    split_of,
    takes_memory,
)
from tradeassay.verdict.evidence import leaning
from tradeassay.verdict.recalled import split_sentence
from tradeassay.verdict.record import CASH, AgentFindings, Claim, TailEvidence, VerdictConfig
from tradeassay.verdict.statement import SCORED

_ROWS = {52: "week", 12: "month", 4: "quarter"}
"""Word for a row, by the number of rows per year. In all other cases a row is a session."""
_SESSION = re.compile(r"\b(session|day)(s?)\b")
_PACE_FROM = 1.5
"""Minimum length of a record, in years, for stating its return per year."""


def percent(value: float | None) -> str:
    """Return a share as a percentage with its sign and a true minus, or "n/a" for None."""
    if value is None:
        return "n/a"
    text = f"{abs(value):.1%}" if abs(value) < 10.0 else f"{abs(value):,.0%}"
    if float(text[:-1].replace(",", "")) == 0.0:
        return text
    return f"\u2212{text}" if value < 0 else f"+{text}"


def spanned(measure: Measure) -> str:
    """Return a share as a percentage, with its interval if there is one."""
    text = percent(measure.value)
    if measure.low is None:
        return text
    return f"{text} ({percent(measure.low)} to {percent(measure.high)})"


def signed(value: float) -> str:
    """Return a number with one decimal, its sign and a true minus."""
    return f"{value:+.1f}".replace("-", "\u2212")


def times(value: float) -> str:
    """Return a likelihood ratio as text with few digits, for example "12 times"."""
    if value >= 1000.0:
        return "more than 1,000 times"
    return f"{value:.0f} times" if value >= 9.95 else f"{value:.1f} times"


def count(number: int) -> str:
    """Return a number of tries as text."""
    if number > 10**6:
        return "more than a million"
    return f"{number:,}"


def tries_words(account: AgentFindings) -> str:
    """Return "luck's best of n tries", or "luck" for a single try."""
    tries = account.known_alpha.tries
    return "luck" if tries == 1 else f"luck's best of {count(tries)} tries"


def likelier_words(account: AgentFindings, likelihood: float) -> str:
    """Return a clause about which is likelier, skill or luck's best try, and by what factor."""
    luck, memory = tries_words(account), account.memory
    source = ""
    if memory is not None and memory.both is not None and not above(account.known_alpha.tested):
        # The verdict may rest on both runs, but the ratio is from the unmasked run.
        source = " by the unmasked play alone" if above(memory.both) else ""
    if likelihood > 1.0:
        return f"{times(likelihood)} likelier under skill than under {luck}{source}"
    return f"{luck} is {times(1.0 / likelihood)} likelier than skill{source}"


def tries_are_assumed(account: AgentFindings) -> bool:
    """Return whether the number of tries was not disclosed, and fewer were counted than assumed."""
    tries, number = account.tries, account.known_alpha.tries
    if tries is None or tries.disclosed is not None or number == 1:
        return False
    return tries.here + tries.effective < number


def yearly_return(account: AgentFindings) -> Measure | None:
    """Return the annualised return, or None for a record of less than 1.5 years.

    The scored measure, which has an interval, is preferred at any length.
    """
    scored = account.measures.get(SCORED["return-per-year"])
    if scored is not None:
        return scored
    total = account.total.value
    if total is None or not total > -1.0 or account.years < _PACE_FROM:
        return None
    return Measure(value=(1.0 + total) ** (1.0 / account.years) - 1.0)


def pace(account: AgentFindings) -> str:
    """Return the annualised return in brackets, or an empty text for under 1.5 years."""
    yearly = yearly_return(account)
    if yearly is None or yearly.value is None or account.years < _PACE_FROM:
        return ""
    return f" ({percent(yearly.value)} a year)"


_HUGE = 10.0
"""Part of a return (1,000 %) above which a part is stated as a share of the growth."""


def part_words(account: AgentFindings, value: float | None) -> str | None:
    """Return a part of the return as text, or None if no number is meaningful.

    Parts are linked so that they sum to a compounded return. In an account that grew a hundredfold,
    each part is magnified by the growth of the whole account. A style that cost 3 % per year may
    then be "-4,274 %" of a return of "+5,000 %", although no loss exceeds 100 %. Such a part is
    stated as a share of the growth. If the account itself did not grow that much, large parts only
    offset each other, and neither number is meaningful.
    """
    total = account.total.value
    if value is None or abs(value) <= _HUGE:
        return percent(value)
    if total is None or total <= _HUGE or abs(value) > _HUGE * total:
        return None
    return f"{value / total:.0%} of its growth".replace("-", "\u2212")


def in_rows(account: AgentFindings, text: str) -> str:
    """Return a text in which the rows have their own name, for example "month" instead of "day".

    The account's name is unchanged.
    """
    word = _ROWS.get(account.year)
    if word is None:
        return text
    without_name = text.replace(account.agent, "\0")
    return _SESSION.sub(rf"{word}\2", without_name).replace("\0", account.agent)


def skew_words(tail: TailEvidence) -> str:
    """Return a clause about the tested skew of alpha, or an empty text without a tested skew."""
    if tail.alpha_skew is None:
        return ""
    over = "" if tail.alpha_span in (None, 1) else f" over {tail.alpha_span} sessions"
    return f"skew of alpha{over} {signed(tail.alpha_skew)}"


def part_of(account: AgentFindings, name: str) -> float | None:
    """Return a part of the return over the window, or None if it is unknown."""
    measure = account.parts.get(name)
    return None if measure is None else measure.value


def style_known(account: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether style was measured on enough days."""
    return account.styled is None or account.styled >= config.styled


def beyond_what(account: AgentFindings, config: VerdictConfig) -> str:
    """Return what alpha is measured beyond: the benchmark's name and, if measured, style."""
    market, followed = "the market", account.passive
    if account.method == "returns" and followed is not None and followed.portfolio != CASH:
        market = followed.portfolio
    if not style_known(account, config):
        return market
    return "market and style" if market == "the market" else f"{market} and style"


def too_few(account: AgentFindings, config: VerdictConfig) -> str:
    """Return a clause that the record is too short for any test."""
    needed = config.rows_needed(account.year)
    return f"{account.sessions} sessions are too few for any test: at least {needed} are needed"


def alpha_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return a clause with alpha, its interval and its benchmark, before or after costs."""
    return f"{alpha_size(account)} beyond {beyond_what(account, config)}{_paid_words(account)}"


def both_plays_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return a clause with the annual alpha of the unmasked and the masked run together."""
    memory = account.memory
    assert memory is not None and memory.both is not None
    beyond = f"{beyond_what(account, config)}{_paid_words(account)}"
    twin = f"over the play and its twin under '{memory.against}' together"
    return f"{spanned(memory.both)} a year beyond {beyond}, {twin}"


def _paid_words(account: AgentFindings) -> str:
    """Return a clause on whether alpha is before or after costs. It is empty for returns alone."""
    # A table of returns does not show whether its returns include costs.
    if account.method == "returns":
        return ""
    unpaid = bool(account.parts) and part_of(account, "trading") is None
    return ", before costs" if unpaid else ", after costs"


def alpha_size(account: AgentFindings) -> str:
    """Return the annual alpha with its interval as text.

    For a record that is too short for a test, it is the total alpha.
    """
    tested = account.known_alpha.tested
    if tested.value is None:
        return f"{percent(part_of(account, 'alpha'))} in all"
    return f"{spanned(tested)} a year"


def leans(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the three factors with the largest exposures, with the exposures, as text."""
    words = [
        f"{factor_words(name)} {signed(value)}" for name, value in leaning(account, config)[:3]
    ]
    return ", ".join(words)


def brought(account: AgentFindings, claim: Claim) -> str:
    """Return a clause with the annual return from a claim other than alpha, and its source."""
    if claim == "style_timing":
        assert account.styles is not None
        return f"{spanned(account.styles.timing)} a year from leaning to styles when they paid"
    if claim == "together":
        assert account.memory is not None and account.memory.together is not None
        return f"{spanned(account.memory.together.earned)} a year from names and days together"
    assert account.timing is not None
    if account.method == "returns":
        followed = account.passive
        gain = "gaining more when the market rose than losing when it fell"
        if followed is not None and followed.beta < 0.0:
            gain = "gaining more when the market fell than losing when it rose"
        return (
            f"{spanned(account.known_alpha.tested)} a year beyond the market, all of it from {gain}"
        )
    return f"{spanned(account.timing.per_year)} a year from being invested when the market rose"


_HIDDEN = {"stock-blind": "names", "date-blind": "dates"}
"""Information that a mask hides, by mask. All other masks hide names and dates."""


def price_words(account: AgentFindings, claim: Claim) -> str:
    """Return a clause that splits a gap into lost information and memory.

    It is empty if the lost information was not measured.
    """
    memory, contrast = account.memory, contrast_of(account, claim)
    priced = split_gap(contrast)
    if memory is None or contrast is None or priced is None:
        return ""
    hidden = _HIDDEN.get(str(memory.against), "names and dates")
    of_claim = "" if claim == "alpha" else f" of {CLAIM_WORDS[claim]}"
    worth = f"{hidden} are worth {percent(contrast.gap.value)} a year{of_claim}"
    lost, remembered = spanned(priced.lost), spanned(priced.remembered)
    return f"{worth}: {lost} is lost information, {remembered} memory"


def memory_of_claim(account: AgentFindings, claim: Claim, *, whole: bool) -> str:
    """Return a clause about the part of a claim that is memory, or an empty text.

    With ``whole`` the whole claim is memory.
    """
    contrast, split, memory = contrast_of(account, claim), split_of(account, claim), account.memory
    explained = split is not None and (whole or split.partly)
    if explained and not takes_memory(contrast):
        assert split is not None
        return f"of its {CLAIM_WORDS[claim]}, {split_sentence(split).rstrip('.')}"
    if contrast is None or memory is None:
        return ""
    priced = split_gap(contrast)
    size = contrast.gap if priced is None else priced.remembered
    gap = f"{CLAIM_WORDS[claim]} is memory ({spanned(size)} a year)"
    if whole:
        return f"its {gap}"
    left = f"part stays under '{memory.against}' ({spanned(contrast.masked)})"
    return f"part of its {gap}, {left}"
