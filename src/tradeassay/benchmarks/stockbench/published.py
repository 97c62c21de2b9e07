"""The paper's own figures as cited data, and whether a result of ours may stand beside them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from tradeassay.benchmarks.stockbench.config import Inputs
from tradeassay.benchmarks.stockbench.specs import DJIA_20
from tradeassay.core.badges import Convention

FIRST, LAST = "2025-03-03", "2025-06-30"
"""The window of the published figures."""


class PublishedFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure; a fraction. ``frictionless``: without costs and dividends, as no agent of ours is played."""

    who: str
    measure: str
    value: float
    where: str
    inputs: Inputs
    frictionless: bool = False


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All figures and where they come from. ``second_hand``: not taken from the paper itself."""

    source: str
    second_hand: bool
    figure: tuple[PublishedFigure, ...]


class OurSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a result of ours was made with; ``frictionless`` is true of :func:`frictionless_equal_weight` alone."""

    data: Literal["real", "synthetic"]
    symbols: tuple[str, ...]
    first: str
    last: str
    convention: Convention
    inputs: Inputs = "all"
    has_news: bool = True
    has_fundamentals: bool = True
    frictionless: bool = False


class Comparability(msgspec.Struct, frozen=True, kw_only=True):
    """Whether two numbers may be compared; every reason why not."""

    comparable: bool
    reasons: tuple[str, ...]


@cache
def published() -> Published:
    """Return the figures of the paper."""
    return msgspec.toml.decode((files(__package__) / "published.toml").read_bytes(), type=Published)


def compare_with(figure: PublishedFigure, ours: OurSetting) -> Comparability:
    """Return whether a result of ours may be compared with a published one, and why not."""
    wants_news = not figure.frictionless and figure.inputs in ("all", "no-fundamentals")
    wants_figures = not figure.frictionless and figure.inputs in ("all", "no-news")
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (set(ours.symbols) == set(DJIA_20), "our names are not the paper's twenty"),
        ((ours.first, ours.last) == (FIRST, LAST), f"the figure is for {FIRST} to {LAST}"),
        (ours.convention == "paper", "our convention is 'sound': known errors of the paper are removed"),
        (figure.inputs == ours.inputs, f"the figure is for the inputs '{figure.inputs}'"),
        (not wants_news or ours.has_news, "our data has no news"),
        (not wants_figures or ours.has_fundamentals, "our data has no fundamentals"),
        (figure.frictionless or not ours.frictionless, "our result is without costs and dividends"),
        (ours.frictionless or not figure.frictionless, "the figure is without costs and dividends"),
    )
    reasons = tuple(why for holds, why in checks if not holds)
    return Comparability(comparable=not reasons, reasons=reasons)
