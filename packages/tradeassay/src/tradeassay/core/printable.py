"""Remove control characters from external text."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return a text with a question mark for every unprintable character that is not in ``kept``.

    As in ``str.isprintable``, line ends, tabs and all spaces except the ASCII one are unprintable.
    """
    return "".join(sign if sign.isprintable() or sign in kept else "?" for sign in text)


def printable_line(text: str) -> str:
    """Return a text on one printable line, with its words separated by single spaces."""
    return printable(" ".join(text.split()))
