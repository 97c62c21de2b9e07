"""A number with its interval, or the reason for its absence, and badges with a number's origin."""

from __future__ import annotations

import math
from typing import Literal

import msgspec


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One score with its confidence interval.

    ``value`` is None if the score could not be computed, and ``reason`` then says why. ``low`` and
    ``high`` are the ends of the confidence interval at ``level``. They are None if there is no
    interval. ``note`` is a remark on the interval, or says why there is none. ``n`` is the number
    of observations.
    """

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
    """Return whether a measure's interval is above a number. Returns False without an interval."""
    return measure.value is not None and measure.low is not None and measure.low > than


def below(measure: Measure, than: float = 0.0) -> bool:
    """Return whether a measure's interval is below a number. Returns False without an interval."""
    return measure.value is not None and measure.high is not None and measure.high < than


Convention = Literal["paper", "corrected"]
NOT_REDERIVABLE = "answers as recorded by the runner, not re-derivable"
"""Badge for answers of a model, which only that model could generate again."""


OWN_PROGRAM = "decisions of a program of the runner's own, not re-derivable"
"""Badge for decisions of an external program. tradeassay never executes it for another user."""
FILES_OPEN = "files were open to it: whether it read the data from the disk is not known"
"""Badge for custom code with access to the data files. A leak test does not see what it reads."""


class Badges(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of numbers. ``biases`` are the known flaws of the panel of data, in plain words.

    ``model`` names the source of the answers. "program" means the runner's own class, pipe or
    server, which may or may not query a model.
    """

    data: Literal["real", "synthetic"]
    convention: Convention
    model: Literal["none", "scripted", "replayed program", "replayed", "program", "live"] = "none"
    biases: tuple[str, ...] = ()
    own_program: bool = False


BadgeTexts = tuple[tuple[str, str], ...]
"""Badges as displayed on a page: pairs of a kind, which sets the colour, and a text."""


def at_most(share: float) -> str:
    """Return an upper bound as a percentage, rounded up.

    Rounding down would state a tighter bound than the test supports.
    """
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"
