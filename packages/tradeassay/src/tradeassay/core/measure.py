"""A number with its interval, or no number and the reason; and the badges to be read before believing it."""

from __future__ import annotations

import math
from typing import Literal

import msgspec


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One score. ``value`` is None exactly when ``reason`` says why; never a default number. ``low``/``high``
    bound the confidence interval at ``level``; None when none can be given (``note`` says why)."""

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int | None = None
    reason: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measure has either a value or a reason for having none")


def not_scored(reason: str) -> Measure:
    return Measure(value=None, reason=reason)


def above(measure: Measure, than: float = 0.0) -> bool:
    """Return whether a measure's interval lies above a number; one without an interval never does."""
    return measure.value is not None and measure.low is not None and measure.low > than


def below(measure: Measure, than: float = 0.0) -> bool:
    """Return whether a measure's interval lies below a number; one without an interval never does."""
    return measure.value is not None and measure.high is not None and measure.high < than


Convention = Literal["paper", "corrected"]
NOT_REDERIVABLE = "answers as recorded by the runner, not re-derivable"
"""What is said of replies that nobody but their model could give again."""


OWN_PROGRAM = "decisions of a program of the runner's own, not re-derivable"
"""What is said of decisions that a program outside the run gave: it is never executed for somebody else."""
FILES_OPEN = "files were open to it: whether it read the data from the disk is not known"
"""What is said of somebody's own code that played beside the data: a leak test does not see what it reads."""


class Badges(msgspec.Struct, frozen=True, kw_only=True):
    """Where numbers come from. ``biases`` are the panel's known flaws, in plain words.

    ``model`` says whose answers they are. A "program" is the runner's own class, pipe or server, which may ask a
    model or not."""

    data: Literal["real", "synthetic"]
    convention: Convention
    model: Literal["none", "scripted", "replayed program", "replayed", "program", "live"] = "none"
    biases: tuple[str, ...] = ()
    own_program: bool = False


BadgeTexts = tuple[tuple[str, str], ...]
"""Badges as a page shows them: of each its kind, which gives it its colour, and its text."""


def at_most(share: float) -> str:
    """Return an upper bound in per cent, rounded up so that the text excludes no more than the test did."""
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"
