"""What surfaces say of one account, read back as quantities and compared with its statements.

A contradiction is a quantity with two values or two intervals, a number of a year in a record under
a quarter, a reason that the sentence denies, or a word that no surface uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from claims import Surface, claims, plain, visible

from tradeassay.metrics.cosine import trading_days
from tradeassay.verdict.record import AgentAssay, Assay
from tradeassay.verdict.statement import QUANTITIES

QUARTER = 60
"""Trading days below which no number of a year is shown."""
_NUMBER = r"([+-]?\d[\d,]*(?:\.\d+)?%?|more than [\d,]+|more than a million)"
_SPAN = rf"{_NUMBER}(?:\s*\(?{_NUMBER} to {_NUMBER}\)?)?"
_TITLES = (
    *("return-per-year", "sharpe", "sortino", "volatility", "calmar", "max-drawdown"),
    *("alpha-ratio", "information-ratio", "costs", "beta", "worst-day"),
)
"""Quantities that a tile or a table names by their title."""
_PATTERNS = (
    ("return", rf"(?<!market )(?<!benchmark )\breturned {_SPAN}"),
    ("return-per-year", rf"\breturned \S+ \({_NUMBER} a year\)"),
    ("benchmark-return", rf"(?:the market|the benchmark|world market) returned {_NUMBER}"),
    ("excess-return", rf"excess return {_SPAN} a year"),
    ("alpha", rf"\balpha of {_SPAN} a year"),
    ("alpha", rf"the rest, {_SPAN} a year"),
    ("alpha", rf"a year beyond [^;.]*?, and of {_SPAN}"),
    ("alpha-before-costs", rf"(?:alpha before costs|it earned) {_SPAN} a year"),
    ("costs", rf"(?:costs took|they took|they are) {_NUMBER}(?! a year b)"),
    ("alpha-ratio", rf"(?<!shows an )[Aa]lpha ratio(?: of)?\s+{_SPAN}"),
    ("information-ratio", rf"[Ii]nformation ratio\b[^\d\n+-]*{_SPAN}"),
    ("sharpe", rf"(?<!eflated )Sharpe(?: ratio)?(?: of)?\s+{_SPAN}"),
    ("sortino", rf"Sortino(?: ratio)?\s+{_SPAN}"),
    ("calmar", rf"Calmar(?: ratio)?\s+{_SPAN}"),
    ("volatility", rf"Volatility\s+{_SPAN}"),
    ("return-per-year", rf"Return (?:per|a) year\s+{_SPAN}"),
    ("max-drawdown", rf"(?:[Ww]orst|[Mm]ax|[Mm]aximum) drawdown\s+{_SPAN}"),
    ("likelihood-ratio", rf"{_NUMBER} times likelier under skill"),
    ("equal-tries", rf"luck's best of {_NUMBER} tries looks the same"),
    ("chance-to-show", rf"(?:chance of|found in) {_NUMBER}"),
    ("beats-random", rf"[Bb]eats {_NUMBER} of"),
    ("deflated-sharpe", rf"[Dd]eflated Sharpe ratio\s+{_NUMBER}"),
)
_YEARLY = re.compile(
    rf"{_NUMBER}(?:\s*\({_NUMBER} to {_NUMBER}\))? (?:a|per) year"
    r"|(?:Sharpe|Sortino|Calmar|Return per year|Volatility|nformation ratio|lpha ratio)[ "
    rf"\w]*\s+{_NUMBER}"
)
_OF_THE_RULES = re.compile(
    r"floor of|floor is|at least [\d.]+% a year|alpha begins at|may be [\d.]+%|Mean|chance "
    r"of|shows an alpha ratio"
)
"""Lines with a number of a year that is a threshold and not the account's."""
FORBIDDEN = (
    r"\bedges?\b",
    r"\bluck percentile",
    r"trading luck$",
    r"\bluck \d",
    r"consistent with",
    r"\bsupported\b",
    r"told from luck",
    r"\bfor certain\b",
)
"""What no surface says: words of an older language, and a column called luck."""
_OF_A_MARKET = ("alpha", "alpha-ratio")
"""What is not stated of an account that is compared with nothing, or where alpha is that of two
plays.
"""
_PRAISED = ("skill", "timing", "could-be-best-of-few")
_SETTLED = ("skill", "worse")


class Shown(NamedTuple):
    """One quantity as a surface writes it; ``ends`` are those of its interval, empty without
    one.
    """

    quantity: str
    surface: str
    value: str
    ends: tuple[str, ...]


def quantities_of(surface: Surface) -> Iterator[Shown]:
    """Yield every quantity that a text names."""
    for quantity, pattern in _PATTERNS:
        for found in re.finditer(pattern, surface.text):
            value, *ends = (one for one in found.groups() if one is not None)
            yield Shown(quantity, surface.name, value, tuple(ends))


def _parts(text: str) -> tuple[float, float]:
    """Return the number that a text writes and half a unit of its last digit."""
    bare = text.replace(",", "").strip("%")
    scale = 0.01 if text.endswith("%") else 1.0
    digits = len(bare.partition(".")[2])
    return float(bare) * scale, 0.5 * 10.0**-digits * scale


def _alike(first: str, second: str) -> bool:
    """Return whether two texts write one number, perhaps with other digits."""
    if "more than" in first or "more than" in second:
        return first == second
    (one, rough), (two, coarse) = _parts(first), _parts(second)
    return abs(abs(one) - abs(two)) <= (rough + coarse) * 1.0001


def _fits(text: str, value: float) -> bool:
    if "more than" in text:
        return True
    written, rough = _parts(text)
    return abs(abs(written) - abs(value)) <= rough * 1.0001


def two_values(one: AgentAssay, surfaces: list[Surface]) -> list[str]:
    """Return quantities that surfaces write in two ways, or otherwise than their statement."""
    wrong = []
    seen: dict[str, list[Shown]] = {}
    for surface in surfaces:
        for shown in quantities_of(surface):
            seen.setdefault(shown.quantity, []).append(shown)
    for quantity, every in seen.items():
        stated = one.statement(quantity)
        first = every[0]
        spanned = next((shown for shown in every if shown.ends), None)
        for shown in every:
            if not _alike(first.value, shown.value):
                wrong.append(f"{quantity}: {first} and {shown}")
            elif spanned is not None and shown.ends:
                pairs = zip(spanned.ends, shown.ends, strict=True)
                if not all(_alike(*pair) for pair in pairs):
                    wrong.append(f"{quantity}: {spanned} and {shown}")
            if stated is None or stated.value is None:
                wrong.append(f"{quantity}: {shown} has no statement")
            elif not _fits(shown.value, stated.value):
                wrong.append(f"{quantity}: {shown} is stated as {stated.value}")
            elif shown.ends and stated.low is None:
                wrong.append(f"{quantity}: {shown} is stated without an interval")
    return list(dict.fromkeys(wrong))


def marked_otherwise(one: AgentAssay, page: str) -> list[str]:
    """Return marked numbers of a page that are not those of the account's statements."""
    wrong = []
    for name, texts in claims(page, "data-stated").items():
        owner, _, quantity = name.rpartition("/")
        if owner != f"{one.setting}/{one.agent}" or quantity not in QUANTITIES:
            continue
        stated = one.statement(quantity)
        if stated is None or stated.value is None:
            wrong.append(f"page: {quantity} is marked as {texts} and not stated")
            continue
        for text in texts:
            found = re.search(_SPAN, text)
            if found is None or not _fits(found[1], stated.value):
                wrong.append(f"page: {quantity} is {text}, stated as {stated.value}")
    return wrong


def yearly_of_short(one: AgentAssay, surfaces: list[Surface]) -> list[str]:
    """Return numbers of a year that are shown for a record under a quarter."""
    if trading_days(one.sessions, one.year) >= QUARTER:
        return []
    wrong = []
    for surface in surfaces:
        for line in surface.text.splitlines():
            for found in _YEARLY.finditer(line):
                near = line[max(0, found.start() - 40) : found.end() + 20]
                if not _OF_THE_RULES.search(near):
                    wrong.append(f"{surface.name}: '{near}' of {one.sessions} rows")
    return wrong


def forbidden_words(surfaces: list[Surface]) -> list[str]:
    """Return words of an older language."""
    wrong = []
    for surface in surfaces:
        for pattern in FORBIDDEN:
            for found in re.finditer(pattern, surface.text, flags=re.IGNORECASE | re.MULTILINE):
                wrong.append(f"{surface.name}: '{found[0]}' is not said")
    return wrong


def denied_reasons(one: AgentAssay) -> list[str]:
    """Return reasons, and forecasts, that the sentence denies."""
    kind, wrong = one.verdict.kind, []
    if one.reasons_for and kind not in _PRAISED:
        wrong.append(f"{kind}, and for skill speaks: {one.reasons_for[0]}")
    alpha = one.statement("alpha")
    if kind in ("skill", "could-be-best-of-few") and alpha is not None:
        by_alpha = "alpha of" in one.verdict.sentence
        if alpha.bearing == "against" and by_alpha:
            wrong.append(f"{kind}, and against it: {alpha.claim}")
    likelier = one.statement("likelihood-ratio")
    if kind == "skill" and likelier is not None and likelier.bearing == "against":
        wrong.append(f"{kind}, and against it: {likelier.claim}")
    luck = one.verdict.label == "not distinguishable from luck"
    if luck and alpha is not None and alpha.low is not None and alpha.low > 0.0:
        if " but " not in one.verdict.sentence:
            wrong.append(f"{one.verdict.label}, and {alpha.claim}")
    years = one.statement("years-to-know")
    if years is not None and (years.value == 0.0) != (kind in _SETTLED):
        wrong.append(f"{kind}, and {years.claim}")
    chance = one.statement("chance-to-show")
    short = "too short for skill to show" in one.verdict.sentence
    if short and chance is not None and (chance.value or 0.0) >= 0.5:
        wrong.append(f"too short for skill to show, and {chance.claim}")
    for statement in one.statements:
        if statement.quantity not in QUANTITIES:
            wrong.append(f"no quantity '{statement.quantity}'")
    names = [statement.quantity for statement in one.statements]
    wrong += [f"{name} is stated twice" for name in set(names) if names.count(name) > 1]
    return wrong


def parts_that_do_not_sum(one: AgentAssay) -> list[str]:
    """Return where the parts of a return do not sum to it."""
    total = one.statement("return")
    rest = one.statement("selection") or one.statement("unexplained")
    if total is None or total.value is None or rest is None:
        return []
    parts = [one.statement(name) for name in ("market", "style", "trading")]
    whole = sum(part.value or 0.0 for part in (*parts, rest) if part is not None)
    if abs(whole - total.value) > 1e-4 * max(1.0, abs(total.value)):
        return [f"parts sum to {whole}, the return is {total.value}"]
    return []


def large_parts(surfaces: list[Surface]) -> list[str]:
    """Return sentences in which a part of the return is more than ten times the account."""
    wrong = []
    for surface in surfaces:
        for found in re.finditer(
            rf"(?:brought|together \(|came from|return,) {_NUMBER}", surface.text
        ):
            value = found[1]
            if value.endswith("%") and abs(_parts(value)[0]) > 10.0:
                wrong.append(f"{surface.name}: '{found[0]}'")
    return wrong


def returns_called_selection(one: AgentAssay, surfaces: list[Surface]) -> list[str]:
    """Return where a table of returns is said to have selected anything."""
    if one.method != "returns":
        return []
    return [
        f"{surface.name}: 'selection' of a table of returns"
        for surface in surfaces
        if re.search(r"\bselection\b", surface.text, flags=re.IGNORECASE)
    ]


def json_otherwise(found: Assay) -> list[str]:
    """Return what the JSON of an assay states otherwise than its records."""
    wrong = []
    kept = json.loads(msgspec.json.encode(found))
    for one, told in zip(found.agents, kept["agents"], strict=True):
        stated = {line["quantity"]: line for line in told["statements"]}
        for statement in one.statements:
            line = stated[statement.quantity]
            if line["value"] != statement.value or line["claim"] != statement.claim:
                wrong.append(f"JSON: {line} is not {statement}")
        evidence = told["alpha"] or {}
        common = one.parts.get("common")
        compared = one.verdict.kind != "cash" and common is not None and common.value is not None
        compared = compared and "alpha-unmasked" not in stated
        unmasked = "alpha-unmasked" if "alpha-unmasked" in stated else "alpha"
        pairs = (
            (unmasked, evidence.get("tested")),
            ("alpha-ratio", evidence.get("ratio")),
            ("excess-return", told["excess"]),
            ("information-ratio", told["information_ratio"]),
            ("return", told["total"]),
            ("sharpe", told["measures"].get("sharpe")),
            ("return-per-year", told["measures"].get("annualised_return")),
            ("max-drawdown", told["measures"].get("max_drawdown")),
        )
        for quantity, measure in pairs:
            if measure is None or measure["value"] is None:
                continue
            line = stated.get(quantity)
            if line is None and (quantity in _OF_A_MARKET and not compared):
                continue
            if line is None or line["value"] is None:
                wrong.append(f"JSON: {quantity} of {measure['value']} is not stated")
            elif abs(line["value"] - measure["value"]) > 1e-9:
                wrong.append(f"JSON: {quantity} is {measure['value']} and {line['value']}")
        smooth = told["smoothness"]
        if smooth is not None and "sharpe" in stated and smooth["sharpe"]["value"] is not None:
            ends = smooth["sharpe"]["low"], stated["sharpe"]["low"]
            if None not in ends and abs(ends[0] - ends[1]) > 1e-9:
                wrong.append(f"JSON: the Sharpe ratio has two intervals from {ends}")
        powers = [name for name in ("track_record",) if name in (told["tries"] or {})]
        if powers and told["tries"]["track_record"]["value"] is not None:
            wrong.append("JSON: a second number of sessions that settle it")
    return wrong


def stated_otherwise(found: Assay) -> list[str]:
    """Return what an assay states against its verdicts or its own records, before any surface
    shows it.
    """
    wrong = json_otherwise(found)
    for one in found.agents:
        lines = (*denied_reasons(one), *parts_that_do_not_sum(one))
        wrong += [f"{one.agent} ({one.verdict.kind}): {line}" for line in lines]
    return wrong


def account_contradictions(found: Assay, printed: str) -> list[str]:
    """Return every contradiction of an assay of one account; ``printed`` is what a terminal
    shows.
    """
    from tradeassay.report.notebook import assay_piece
    from tradeassay.report.page import render_assay

    (one,) = found.agents
    page = render_assay(found)
    surfaces = [
        Surface("terminal", plain(printed)),
        Surface("page", visible(page)),
        Surface("notebook", visible(assay_piece(found))),
    ]
    said = Surface("statements", plain("\n".join(line.claim for line in one.statements)))
    wrong = [
        *two_values(one, [*surfaces, said]),
        *marked_otherwise(one, page),
        *yearly_of_short(one, [*surfaces, said]),
        *forbidden_words([*surfaces, said]),
        *large_parts([*surfaces, said]),
        *returns_called_selection(one, surfaces),
    ]
    for surface in surfaces:
        if plain(one.verdict.sentence) not in surface.text:
            wrong.append(f"{surface.name}: without the sentence")
    lines = [f"{one.agent} ({one.verdict.kind}): {line}" for line in wrong]
    return lines + stated_otherwise(found)
