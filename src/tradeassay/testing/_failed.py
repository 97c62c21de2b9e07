"""What a checker raises."""

from __future__ import annotations


class CheckFailed(AssertionError):
    """Something registered does not keep its contract; the message says what, where and how it was seen."""
