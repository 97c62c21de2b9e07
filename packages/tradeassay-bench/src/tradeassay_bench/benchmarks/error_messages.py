"""Describe errors in words for models: malformed answers and refused orders.

Models see these texts, so a change of wording needs a new version of the benchmarks.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "bool": "true or false",
    "number": "a number",
}
_MISSING = re.compile(r"missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"unknown field `(.*)`$", re.DOTALL)
_TYPE = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_BOUND = re.compile(r"Expected `[^`]*` (>=|<=|>|<) ([-\d.e+]+)")
_LENGTH = re.compile(r"Expected `[^`]*` of length (>=|<=) (\d+)")
_PATH = re.compile(r" - at `(?:key in )?\$([^`]*)`\s*$", re.DOTALL)
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_SIDES = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def in_plain_words(
    message: str,
    *,
    fields: Sequence[str],
    choices: Mapping[str, str] | None = None,
    may_repeat: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return a validation error of msgspec as a sentence.

    ``fields`` are the valid field names, which are listed if the answer has an unknown field.
    ``choices`` describes the valid values of a field.

    The sentence repeats no words of the model except the name of an unknown field, and only if
    ``may_repeat`` allows it. Repeated words could reveal an alias.
    """
    path = _PATH.search(message)
    problem = message[: path.start()] if path else message
    steps = [word or f"[{index}]" for word, index in _STEP.findall(path[1])] if path else []
    where, field = _location(steps)
    if missing := _MISSING.search(problem):
        return f"{where}the field {missing[1]} is missing"
    if unknown := _UNKNOWN.search(problem):
        name = unknown[1]
        is_repeated = len(name) <= 40 and name.isprintable() and may_repeat(name)
        label = f" {name}" if is_repeated else " with that name"
        known = f"; the fields are {', '.join(fields)}" if fields else ""
        return f"{where}there is no field{label}{known}"
    subject = field or "the answer"
    if field is not None and choices and field in choices:
        return f"{where}{field} must be {choices[field]}"
    if mismatch := _TYPE.search(problem):
        kinds = [_KINDS.get(kind, kind) for kind in mismatch[1].split(" | ")]
        expected = " or ".join(dict.fromkeys(kinds))
        return f"{where}{subject} must be {expected}, not {_KINDS.get(mismatch[2], 'that')}"
    if bound := _LENGTH.search(problem):
        return f"{where}{subject} must have {_SIDES[bound[1]]} {bound[2]} entries"
    if bound := _BOUND.search(problem):
        return f"{where}{subject} must be {_SIDES[bound[1]]} {float(bound[2]):g}"
    return f"{where}{subject} is not of the form that was asked for"


def _location(steps: list[str]) -> tuple[str, str | None]:
    """Return the location of a mistake as words with a colon, and the name of the field or None."""
    field = steps[-1] if steps and not steps[-1].startswith("[") else None
    if field is None and len(steps) > 1 and steps[-1].startswith("["):
        field = f"an entry of {steps[-2]}"
    for name, place in pairwise(steps):
        if name == "orders" and place.startswith("[") and place[1:-1].isdigit():
            inner = field if len(steps) > 2 else None
            return f"order {int(place[1:-1]) + 1}: ", inner or "the order"
    return "", field


REFUSALS: dict[str, str] = {
    "unknown_symbol": "there is no such stock",
    "not_in_universe": "it cannot be bought any more",
    "bad_amount": "the amount is not a number above 0",
    "bad_price": "the price is not a number above 0",
    "side_contradicts_target": "at the open the position was already beyond the target",
    "no_change": "it would have changed nothing",
    "suspended": "trading in it was suspended",
    "not_listed": "it was not listed",
    "no_price": "it had no price",
    "limit_up": "it opened at its upper limit",
    "limit_down": "it opened at its lower limit",
    "t_plus_1": "it was bought too recently to be sold",
    "lot": "it was less than one lot",
    "below_minimum": "it was worth less than the smallest order",
    "insufficient_cash": "there was not enough cash",
    "insufficient_shares": "not so much of it was held",
    "no_shorting": "only what is held can be sold",
    "no_borrow": "the shares could not be borrowed",
    "margin": "the margin did not allow it",
    "max_weight": "it would have exceeded the largest weight",
    "max_positions": "too many stocks would have been held",
    "no_volume": "too little of it was traded",
}
"""The exchange's reasons for refusing or cutting an order, in words for a model."""


def refusal_in_words(reason: str) -> str:
    """Return the exchange's reason for a refusal in words for a model."""
    return REFUSALS.get(reason, reason.replace("_", " "))


def unknown_fields(body: Mapping[str, object], known: Iterable[str]) -> list[str]:
    """Return the keys of an answer that are not among its known fields."""
    allowed = set(known)
    return [key for key in body if key not in allowed]
