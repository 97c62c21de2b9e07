"""How often a model is asked again, and how a refusal is worded: what all trading protocols share.

An answer that is refused uses up an attempt. No answer (a provider's error) and an answer that was cut off at the
token limit are no attempts of the model's: they are counted apart, and bounded apart. The same wrong answer twice
in a row ends the attempts, because a third would be the same again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tradeassay.core.dialogue import ModelReply

CUT_OFF = "cut_off"
"""The kind of failure of an answer that ended at the token limit before it could be used."""
REPEATED = "repeated"
"""The kind of failure that notes that the same wrong answer came twice in a row."""
MOST_COMPLAINTS = 12
"""At most this many of the things wrong with an answer are told."""
LONGEST_KEPT = 6_000
"""Characters of a refused answer that stay in the conversation; its end is what was wrong most often."""


class Patience:
    """The attempts of one question."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self.refused = 0
        self.unanswered = 0
        self._last: tuple[str, tuple[tuple[str, str], ...]] | None = None

    @property
    def left(self) -> int:
        """How many answers may still be refused."""
        return self.attempts - self.refused

    @property
    def number(self) -> int:
        """Which attempt the next answer is, from 1; one that was never made does not count."""
        return self.refused + 1

    def refuse(self, reply: ModelReply) -> bool:
        """Count a refused answer; return whether it is the same as the one before, which ends the attempts."""
        said = (" ".join(reply.text.split()), tuple((call.name, call.arguments) for call in reply.calls))
        same = said == self._last
        self._last = said
        self.refused = self.attempts if same else self.refused + 1
        return same

    def silence(self) -> bool:
        """Count an answer that never came or was cut off; return whether to give up on getting one."""
        self.unanswered += 1
        return self.unanswered >= self.attempts


def was_cut(reply: ModelReply) -> bool:
    """Return whether an answer ended at the token limit."""
    return reply.stop == "length"


def shortened(text: str) -> str:
    """Return a refused answer as it stays in the conversation: bounded, the middle left out."""
    if len(text) <= LONGEST_KEPT:
        return text
    half = LONGEST_KEPT // 2
    return f"{text[:half]} [...] {text[-half:]}"


def listed(complaints: Iterable[str]) -> str:
    """Return complaints as a list, one line each, not more than a model can make use of."""
    every = list(dict.fromkeys(complaints))
    lines = [f"- {line}" for line in every[:MOST_COMPLAINTS]]
    if len(every) > MOST_COMPLAINTS:
        lines.append(f"- and {len(every) - MOST_COMPLAINTS} more of the same kind")
    return "\n".join(lines)


def left_in_words(left: int) -> str:
    """Return how many attempts are left, as a sentence."""
    return "This is the last attempt." if left == 1 else f"{left} attempts are left."


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a plain table, one row per line, cells between bars. What is not known is a dash."""
    lines = [" | ".join(columns)]
    lines.extend(" | ".join(map(cell, row)) for row in rows)
    return "\n".join(lines)


def cell(value: object) -> str:
    """Return one cell: numbers without needless digits, an unknown one as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def unknown_fields(body: Mapping[str, object], known: Iterable[str]) -> list[str]:
    """Return the fields of an answer that nobody asked for."""
    allowed = set(known)
    return [key for key in body if key not in allowed]
