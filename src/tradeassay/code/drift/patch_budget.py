"""How many lines a patch changed."""

from __future__ import annotations

import difflib
from typing import Final

BUDGET: Final = 50


def changed_lines(before: str, after: str) -> int:
    """Return the lines that were added or replaced, plus those that were taken out without a replacement.

    Blank lines and blanks at the ends of lines do not count; a replaced line counts once.
    """
    a, b = _lines(before), _lines(after)
    count = 0
    for tag, a_start, a_stop, b_start, b_stop in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            count += max(a_stop - a_start, b_stop - b_start)
    return count


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
