"""What a trading answer states of the days to come, and whether its orders do as it states."""

from __future__ import annotations

import re
from typing import NamedTuple

_CLAIM = re.compile(r"A (?:day|week) after ([\d-]+).*?: (.*?)\.\n")
_TABLE = re.compile(r"Not known to me\. return_20d: (.*?)\.\n")
_SIGNED = re.compile(r"(\w+) ([+-][\d.]+)% (\w+)")
_SIZED = re.compile(r"(\w+) ([\d.]+)% (up|down)")
_READ = re.compile(r"(\w+) (-|-?[\d.e-]+) (up|down)")
_ORDER = re.compile(r'"stock_id":"(\w+)","reason":"(\w+)"(?:,"target_weight":([\d.]+))?')
_HALF = 0.05
"""Between what a riser and what a faller is held at."""


class Stated(NamedTuple):
    """A name, its move in percent, whether it is said to rise, and whether the orders do as is said."""

    name: str
    move: float
    rises: bool
    follows: bool


def claimed(text: str) -> tuple[str, list[Stated]] | None:
    """Return the day whose next one an answer claims to know, and what it states; None where it claims nothing."""
    found = _CLAIM.match(text)
    if found is None:
        return None
    day, told = found.groups()
    does = {name: what for name, what, _ in _ORDER.findall(text)}
    stated = []
    for name, move, word in _SIGNED.findall(told):
        # What rises is bought, or held; what falls is not.
        bought = does.get(name, word if word == "hold" else "no") in ("buy", "hold")
        stated.append(Stated(name, float(move), move.startswith("+"), bought == move.startswith("+")))
    for name, size, way in _SIZED.findall(told):
        move = float(size) if way == "up" else -float(size)
        stated.append(Stated(name, move, way == "up", _ordered(text, name, way)))
    return day, stated


def read_off(text: str) -> list[Stated] | None:
    """Return what an answer by direction reads off the table; None where it does not."""
    found = _TABLE.match(text)
    if found is None:
        return None
    return [
        Stated(name, 0.0 if value == "-" else float(value), way == "up", _ordered(text, name, way))
        for name, value, way in _READ.findall(found.group(1))
    ]


def _ordered(text: str, name: str, way: str) -> bool:
    weights = {who: float(weight) for who, _, weight in _ORDER.findall(text) if weight}
    return name in weights and (weights[name] > _HALF) == (way == "up")
