"""What is wrong with an answer, in words that a model reads: its form, and why an order was refused."""

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

    ``fields`` are those that the object has, told when one is unknown; ``choices`` says what a field may hold.
    Nothing that the model wrote is repeated but the name of an unknown field, and that only where ``may_repeat``.
    """
    found = _PATH.search(message)
    said = message[: found.start()] if found else message
    steps = [word or f"[{place}]" for word, place in _STEP.findall(found[1])] if found else []
    where, field = _where(steps)
    if missing := _MISSING.search(said):
        return f"{where}the field {missing[1]} is missing"
    if unknown := _UNKNOWN.search(said):
        name = unknown[1]
        named = f" {name}" if len(name) <= 40 and name.isprintable() and may_repeat(name) else " with that name"
        known = f"; the fields are {', '.join(fields)}" if fields else ""
        return f"{where}there is no field{named}{known}"
    what = field or "the answer"
    if field is not None and choices and field in choices:
        return f"{where}{field} must be {choices[field]}"
    if wrong := _TYPE.search(said):
        wanted = " or ".join(dict.fromkeys(_KINDS.get(one, one) for one in wrong[1].split(" | ")))
        return f"{where}{what} must be {wanted}, not {_KINDS.get(wrong[2], 'that')}"
    if bound := _LENGTH.search(said):
        return f"{where}{what} must have {_SIDES[bound[1]]} {bound[2]} entries"
    if bound := _BOUND.search(said):
        return f"{where}{what} must be {_SIDES[bound[1]]} {float(bound[2]):g}"
    return f"{where}{what} is not of the form that was asked for"


def _where(steps: list[str]) -> tuple[str, str | None]:
    """Return the place in words, ending in a colon, and the field at its end."""
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
"""Why an order was refused or cut by the exchange, in words for a model."""


def refusal_in_words(reason: str) -> str:
    return REFUSALS.get(reason, reason.replace("_", " "))


def unknown_fields(body: Mapping[str, object], known: Iterable[str]) -> list[str]:
    allowed = set(known)
    return [key for key in body if key not in allowed]
