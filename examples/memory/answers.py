"""What a trading answer states of the days to come, and whether its orders do as it states."""

from __future__ import annotations

import re
from typing import NamedTuple

from worlds import READ_OFF, STUDY, WORDS, word_of

_CLAIM = re.compile(r"A (?:day|week) after ([\d-]+).*?: (.*?)\.\n")
_TABLE = re.compile(r"Not known to me\. return_20d: (.*?)\.\n")
_SIGNED = re.compile(r"(\w+) ([+-][\d.]+)% (\w+)")
_WORDED = re.compile(rf"(\w+) ({'|'.join(WORDS[False] + WORDS[True])})\b")
_READ = re.compile(rf"(\w+) (?:-|-?[\d.e-]+) ({'|'.join(READ_OFF)})\b")
_ORDER = re.compile(r'"stock_id":"(\w+)","reason":"(\w+)"(?:,"target_weight":([\d.]+))?')
_HALF = 0.05
"""Between what a riser and what a faller is held at."""


class Stated(NamedTuple):
    """A name, what is said of it, whether that is a rise, and whether the orders do as is said."""

    name: str
    said: str
    rises: bool
    follows: bool

    def is_exactly(self, move: float) -> bool:
        """Return whether a move in percent is what is said: its word, or its figure but for
        rounding.
        """
        if STUDY.by_direction:
            return self.said == word_of(move)
        return abs(float(self.said) - move) < (0.15 if STUDY.decimals else 0.51)


def claimed(text: str) -> tuple[str, list[Stated]] | None:
    """Return the day whose next one an answer claims to know, and what it states; None where it
    claims nothing.
    """
    found = _CLAIM.match(text)
    if found is None:
        return None
    day, told = found.groups()
    does = {name: what for name, what, _ in _ORDER.findall(text)}
    stated = []
    for name, move, word in _SIGNED.findall(told):
        # What rises is bought, or held; what falls is not.
        bought = does.get(name, word if word == "hold" else "no") in ("buy", "hold")
        stated.append(Stated(name, move, move.startswith("+"), bought == move.startswith("+")))
    return day, stated + _in_words(text, _WORDED.findall(told))


def read_off(text: str) -> list[Stated] | None:
    """Return what an answer by direction reads off the table; None where it does not."""
    found = _TABLE.match(text)
    return None if found is None else _in_words(text, _READ.findall(found.group(1)))


def _in_words(text: str, told: list[tuple[str, str]]) -> list[Stated]:
    weights = {name: float(weight) for name, _, weight in _ORDER.findall(text) if weight}
    rising = (*WORDS[True], READ_OFF[True])
    return [
        Stated(
            name,
            word,
            word in rising,
            name in weights and (weights[name] > _HALF) == (word in rising),
        )
        for name, word in told
    ]
