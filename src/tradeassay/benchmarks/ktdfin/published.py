"""The paper's own figures as cited data, and whether a result of ours may stand beside them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from tradeassay.core.badges import Convention


class PublishedFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure; a fraction. ``bound`` says that the paper gives a limit, not a value."""

    who: str
    measure: str
    value: float
    where: str
    window: str | None = None
    mask: str | None = None
    mode: str | None = None
    bound: Literal["at most", "at least"] | None = None


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All figures and where they come from. ``second_hand``: not taken from the paper itself."""

    source: str
    second_hand: bool
    figure: tuple[PublishedFigure, ...]


class OurSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What a result of ours was made with."""

    data: Literal["real", "synthetic"]
    market: str
    index: str | None
    window: str
    structural: bool
    convention: Convention
    mask: str | None = None
    mode: str | None = None


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
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (ours.market == "ashare", "our market is not the Chinese A-share market"),
        (ours.index in ("CSI300", "000300.SH", "SH000300"), "our universe is not the CSI300"),
        (ours.convention == "paper", "our convention is 'sound': known errors of the paper are removed"),
        (figure.window is None or figure.window == ours.window, f"the figure is for the window {figure.window}"),
        (not ours.structural, "our window has the published length but other dates"),
        (figure.mask is None or figure.mask == ours.mask, f"the figure is for the mask {figure.mask}"),
        (figure.mode is None or figure.mode == ours.mode, f"the figure is for the mode {figure.mode}"),
    )
    reasons = tuple(why for holds, why in checks if not holds)
    return Comparability(comparable=not reasons, reasons=reasons)
