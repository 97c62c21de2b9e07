"""Which side a text takes: rises or falls, met or missed, approved or rejected, and whether it says so or denies
it.

Texts that tell one story are alike in words; so are texts that tell opposite ones. Before two items are merged,
the places where their words differ are looked at: a word on one side of an axis in one text and on the other side
in the other, or a negation that only one of them has, makes them two stories. The axes are in ``polarity.toml``.
Missing a repeat shows agents something twice; a wrong merge hides news from them. So where the words that were
exchanged are neither synonyms nor forms of one word, the doubt counts against merging.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from importlib.resources import files

import msgspec

_TOKEN = re.compile(r"[a-z]+(?:['’][a-z]+)?|\d+(?:[.,]\d+)*%?|[\u3400-\u9fff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
REACH = 3
"""How many words after a negator it still denies."""

EXCHANGED, HAN_EXCHANGED = 3, 4
"""How many telling words (Chinese: characters) may be exchanged in one place; more is another wording."""


class _Axis(msgspec.Struct, frozen=True):
    plus: tuple[str, ...]
    minus: tuple[str, ...]


class _Words(msgspec.Struct, frozen=True):
    words: tuple[str, ...]


class _Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    axes: dict[str, _Axis]
    negators: _Words
    neutral: _Words


class Side(msgspec.Struct, frozen=True):
    """A word that takes a side: where, on which axis, +1 or -1 (a negation before it turns it over)."""

    at: int
    axis: str
    sign: int


@lru_cache(maxsize=1)
def _lists() -> _Lists:
    text = (files(__package__) / "polarity.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Lists)


def _compiled(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern over a text of tokens joined by blanks; Chinese characters are tokens of their own."""
    parts = []
    for word in sorted(words, key=len, reverse=True):
        if _HAN.search(word):
            parts.append(" ".join(word))
        else:
            parts.append(
                " ".join(re.escape(w[:-1]) + "[a-z]*" if w.endswith("*") else re.escape(w) for w in word.split())
            )
    return re.compile(rf"(?<![^ ])(?:{'|'.join(parts)})(?![^ ])")


@lru_cache(maxsize=1)
def _axes() -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    return tuple(
        (name, sign, _compiled(words))
        for name, axis in _lists().axes.items()
        for sign, words in ((1, axis.plus), (-1, axis.minus))
    )


@lru_cache(maxsize=1)
def _negations() -> re.Pattern[str]:
    return _compiled(_lists().negators.words)


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """Return the words, figures and Chinese characters of a text, in lower case."""
    return tuple(_TOKEN.findall(text.lower().replace("’", "'")))


@lru_cache(maxsize=4096)
def sides(text: str) -> tuple[Side, ...]:
    """Return every word of a text that takes a side."""
    words = tokens(text)
    joined = " ".join(words)
    starts = _starts(words)
    denied = {starts[found.start()]: _count(found[0]) for found in _negations().finditer(joined)}
    made = []
    for axis, sign, pattern in _axes():
        for found in pattern.finditer(joined):
            at = starts[found.start()]
            turned = any(at - REACH - size < here < at for here, size in denied.items())
            made.append(Side(at, axis, -sign if turned else sign))
    return tuple(sorted(made, key=lambda side: side.at))


def _starts(words: tuple[str, ...]) -> dict[int, int]:
    found, place = {}, 0
    for number, word in enumerate(words):
        found[place] = number
        place += len(word) + 1
    return found


def _count(text: str) -> int:
    return text.count(" ") + 1


def turned(one: str, other: str) -> str | None:
    """Return what two texts say opposite things about, or None: the axis, "denial" or the words exchanged."""
    first, second = tokens(one), tokens(other)
    mine, theirs = sides(one), sides(other)
    for axis in {side.axis for side in (*mine, *theirs)}:
        here, there = {s.sign for s in mine if s.axis == axis}, {s.sign for s in theirs if s.axis == axis}
        if here and there and not here & there:
            return axis
    for left, right in _exchanged(first, second):
        near = {(s.axis, s.sign) for s in mine if s.at in left}
        far = {(s.axis, s.sign) for s in theirs if s.at in right}
        for axis, sign in near:
            if (axis, -sign) in far and (axis, sign) not in far:
                return axis
    if _denials(one) != _denials(other):
        return "denial"
    return _other_word(first, second)


def _other_word(one: tuple[str, ...], other: tuple[str, ...]) -> str | None:
    """Return words in whose place stand others that are neither forms nor neutral synonyms of them.

    A story that is told again is cut, reordered or dressed up; a few telling words that are exchanged in an
    otherwise equal sentence change what is told, whether or not any list knows them. Words that stand elsewhere in
    the other text were moved, not exchanged.
    """
    neutral, here, there = _neutral(), set(one), set(other)
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "replace":
            continue
        left = [word for word in one[a:b] if word not in neutral and word not in there]
        right = [word for word in other[c:d] if word not in neutral and word not in here]
        stems = {word[:4] for word in left} & {word[:4] for word in right}
        left, right = ([word for word in words if word[:4] not in stems] for words in (left, right))
        if not left or not right or any(word[0].isdigit() for word in (*left, *right)):
            continue
        chinese = [bool(_HAN.match(word)) for word in (*left, *right)]
        most = HAN_EXCHANGED if all(chinese) else EXCHANGED
        if len(left) > most or len(right) > most or (any(chinese) and not all(chinese)):
            continue
        return f"'{' '.join(left)}' or '{' '.join(right)}'"
    return None


@lru_cache(maxsize=1)
def _neutral() -> frozenset[str]:
    words: set[str] = set()
    for word in _lists().neutral.words:
        words |= set(word) if _HAN.match(word) else {word}
    return frozenset(words)


def _denials(text: str) -> bool:
    """Return whether the first sentence denies something."""
    lead = re.split(r"(?<=[.!?。！？])\s*", text.strip(), maxsplit=1)[0]
    return _negations().search(" ".join(tokens(lead))) is not None


def _exchanged(one: tuple[str, ...], other: tuple[str, ...]) -> Iterator[tuple[range, range]]:
    """Yield the places at which two sequences of words differ, with a word around them."""
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "equal":
            yield range(max(a - 1, 0), b + 1), range(max(c - 1, 0), d + 1)
