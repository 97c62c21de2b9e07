"""Text from outside, without control characters."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return a text with a question mark for every sign that cannot be printed and is not ``kept``.

    Line ends, tabs and blanks of other widths cannot be printed, as Python has it.
    """
    return "".join(sign if sign.isprintable() or sign in kept else "?" for sign in text)


def printable_line(text: str) -> str:
    """Return a text on one printable line, with single blanks for whatever parted its words."""
    return printable(" ".join(text.split()))
