"""Decide whether recomputed numbers are equal to recorded ones.

The last digits of a number differ between processors and between versions of numpy. The difference
of two nearly equal numbers magnifies this error. For example, a hedge ratio computed from
logarithms differed by 6e-12 between ARM and x86.
"""

from __future__ import annotations

import math
import re
from typing import Final

_RELATIVE: Final = 1e-9
_ABSOLUTE: Final = 1e-12
_NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?![\w.])")
_DIGITS = 10
"""Minimum number of digits of a number that may differ in its last digits. A number with fewer
digits was rounded, so all digits must match.
"""


def close(number: float, other: float) -> bool:
    """Return whether two numbers agree to a relative 1e-9, or to an absolute 1e-12 near zero."""
    return math.isclose(number, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def close_line(line: bytes, other: bytes) -> bool:
    """Return whether two lines of a file agree except for the last digits of numbers."""
    return line == other or close_text(
        line.decode(errors="replace"), other.decode(errors="replace")
    )


def close_text(text: str, other: str) -> bool:
    """Return whether two texts agree except for the last digits of numbers."""
    if text == other:
        return True
    # Split at numbers, so that every second part is a number.
    parts, others = _NUMBER.split(text), _NUMBER.split(other)
    return len(parts) == len(others) and all(map(_same_part, parts, others))


def _same_part(part: str, other: str) -> bool:
    if part == other:
        return True
    if not (_NUMBER.fullmatch(part) and _NUMBER.fullmatch(other)):
        return False
    computed = any("." in one or "e" in one for one in (part, other))
    long = max(len(re.findall(r"\d", one)) for one in (part, other)) >= _DIGITS
    number, other_number = float(part), float(other)
    return computed and long and math.isfinite(number) and close(number, other_number)
