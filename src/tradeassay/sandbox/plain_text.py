"""Text that came out of a child, made fit to be shown: no control characters, no terminal escapes, no endless
lines.
"""

from __future__ import annotations


def plain_line(text: str, length: int) -> str:
    """Return ``text`` as one printable line of at most ``length`` characters; anything else becomes a question
    mark.
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text[:length])


def plain_lines(text: str, length: int) -> str:
    """Return ``text`` with its line ends and tabs kept and every other control character made a question mark."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text[:length])
