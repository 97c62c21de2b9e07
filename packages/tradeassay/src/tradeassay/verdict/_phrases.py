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
"""Name of a row by the number of rows per year. The default is a session."""
_SESSION = re.compile(r"\b(session|day)(s?)\b")
_PACE_FROM = 1.5
"""Shortest record, in years, with a total return that is also stated per year."""


def percent(value: float | None) -> str:
    """Return a share in per cent with its sign and a true minus."""
    if value is None:
        return "n/a"
    text = f"{abs(value):.1%}" if abs(value) < 10.0 else f"{abs(value):,.0%}"
    if float(text[:-1].replace(",", "")) == 0.0:
        return text
    return f"\u2212{text}" if value < 0 else f"+{text}"


def spanned(measure: Measure) -> str:
    """Return a share in per cent, with its interval if it has one."""
    text = percent(measure.value)
    if measure.low is None:
        return text
    return f"{text} ({percent(measure.low)} to {percent(measure.high)})"


def signed(value: float) -> str:
    """Return a number with one decimal, its sign and a true minus."""
    return f"{value:+.1f}".replace("-", "\u2212")


def times(value: float) -> str:
    """Return a likelihood ratio in words, without spurious digits."""
    if value >= 1000.0:
        return "more than 1,000 times"
    return f"{value:.0f} times" if value >= 9.95 else f"{value:.1f} times"


def count(number: int) -> str:
    """Return a number of tries in words."""
    if number > 10**6:
        return "more than a million"
    return f"{number:,}"


def tries_words(account: AgentFindings) -> str:
    """Return the name of the comparison: the best result by luck among this number of tries."""
    tries = account.known_alpha.tries
    return "luck" if tries == 1 else f"luck's best of {count(tries)} tries"


def likelier_words(account: AgentFindings, likelihood: float) -> str:
    """Return in words whether skill or luck's best try is likelier, and by how much."""
    luck, memory = tries_words(account), account.memory
    by = ""
    if memory is not None and memory.both is not None and not above(account.known_alpha.tested):
        # A verdict may rest on both plays. The ratio is that of the unmasked one.
        by = " by the unmasked play alone" if above(memory.both) else ""
    if likelihood > 1.0:
        return f"{times(likelihood)} likelier under skill than under {luck}{by}"
    return f"{luck} is {times(1.0 / likelihood)} likelier than skill{by}"


def tries_are_assumed(account: AgentFindings) -> bool:
    """Return whether the number of tries was not disclosed, and fewer were counted than assumed."""
    tries, count_allowed = account.tries, account.known_alpha.tries
    if tries is None or tries.disclosed is not None or count_allowed == 1:
        return False
    return tries.here + tries.effective < count_allowed


def yearly_return(account: AgentFindings) -> Measure | None:
    """Return the annualised return, or None if the record is too short for it."""
    scored = account.measures.get(SCORED["return-per-year"])
    if scored is not None:
        return scored
    total = account.total.value
    if total is None or not total > -1.0 or account.years < _PACE_FROM:
        return None
    return Measure(value=(1.0 + total) ** (1.0 / account.years) - 1.0)


def pace(account: AgentFindings) -> str:
    """Return the annualised return of a record of several years as text, or an empty text."""
    yearly = yearly_return(account)
    if yearly is None or yearly.value is None or account.years < _PACE_FROM:
        return ""
    return f" ({percent(yearly.value)} a year)"


_HUGE = 10.0
"""A larger part of a return (1,000 %) is stated as a share of the growth."""


def part_words(account: AgentFindings, value: float | None) -> str | None:
    """Return a part of the return as text, or None if no number is meaningful.

    Parts are linked so that they sum to a compounded return. In an account that grew a hundredfold
    the parts compound each other: a style that cost 3 % a year is "-4,274 %" of a return of "+5,000
    %", though a loss never exceeds everything. Such a part is stated as its share of the growth. If
    the account itself did not grow as much, large parts only offset each other, and neither number
    has a meaning.
    """
    total = account.total.value
    if value is None or abs(value) <= _HUGE:
        return percent(value)
    if total is None or total <= _HUGE or abs(value) > _HUGE * total:
        return None
    return f"{value / total:.0%} of its growth".replace("-", "\u2212")


def in_rows(account: AgentFindings, text: str) -> str:
    """Return a text with "month" for "day" if the rows are months.

    The account's name is unchanged.
    """
    word = _ROWS.get(account.year)
    if word is None:
        return text
    kept = text.replace(account.agent, "\0")
    return _SESSION.sub(rf"{word}\2", kept).replace("\0", account.agent)


def skew_words(tail: TailEvidence) -> str:
    """Return the tested skew as text, with its sign and series, or an empty text."""
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
    """Return the name of alpha's comparison: the benchmark's name and, if measured, style."""
    market, followed = "the market", account.passive
    if account.method == "returns" and followed is not None and followed.portfolio != CASH:
        market = followed.portfolio
    if not style_known(account, config):
        return market
    return "market and style" if market == "the market" else f"{market} and style"


def too_few(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the sentence that a record is too short for any test."""
    needed = config.rows_needed(account.year)
    return f"{account.sessions} sessions are too few for any test: at least {needed} are needed"


def alpha_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the annual alpha with its interval and its benchmark as text.

    Without an interval the alpha is left out.
    """
    return f"{alpha_size(account)} beyond {beyond_what(account, config)}{_paid_words(account)}"


def both_plays_words(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the annual alpha over the play and its masked twin, with its interval, as text."""
    memory = account.memory
    assert memory is not None and memory.both is not None
    beyond = f"{beyond_what(account, config)}{_paid_words(account)}"
    twin = f"over the play and its twin under '{memory.against}' together"
    return f"{spanned(memory.both)} a year beyond {beyond}, {twin}"


def _paid_words(account: AgentFindings) -> str:
    # A table of returns does not show costs: an index has none, and an account's returns may or may
    # not include them.
    if account.method == "returns":
        return ""
    unpaid = bool(account.parts) and part_of(account, "trading") is None
    return ", before costs" if unpaid else ", after costs"


def alpha_size(account: AgentFindings) -> str:
    """Return the annual alpha with its interval as text.

    For a record that is too short, return the total alpha.
    """
    tested = account.known_alpha.tested
    if tested.value is None:
        return f"{percent(part_of(account, 'alpha'))} in all"
    return f"{spanned(tested)} a year"


def leans(account: AgentFindings, config: VerdictConfig) -> str:
    """Return the names of the three factors with the largest exposures."""
    words = [
        f"{factor_words(name)} {signed(value)}" for name, value in leaning(account, config)[:3]
    ]
    return ", ".join(words)


def brought(account: AgentFindings, claim: Claim) -> str:
    """Return the annual return from timing, and its source, as text."""
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
"""What a mask hides; any other hides names and dates."""


def price_words(account: AgentFindings, claim: Claim) -> str:
    """Say how much of a gap is lost information and how much memory; empty where that is not
    measured.
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
    """Return the part of a claim that is memory, as text.

    ``whole`` means that nothing else remains.
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
