"""The figures that the paper on Agent Market Arena printed, and whether a result may be compared with them."""

from functools import cache
from typing import Literal

import msgspec

from tradeassay.core.measure import Convention
from tradeassay_bench.benchmarks.exhibits import Published, load_published, unmet_conditions

Architecture = Literal["investor", "trade", "hedge-fund", "deep-fund"]


class AmaFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure: a fraction, or a ratio for SR. ``model`` is "not stated" where our source does not name it."""

    architecture: Architecture
    model: str
    asset: str
    measure: Literal["CR", "AR", "AV", "SR", "MDD"]
    value: float
    where: str


class AmaPublished(Published[AmaFigure], frozen=True, kw_only=True):
    """All figures, where they come from and which days they cover."""

    first: str
    last: str


class ComparedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting in which a result of ours was produced."""

    data: Literal["real", "synthetic"]
    convention: Convention
    first: str
    last: str
    architecture: str
    model: str
    asset: str


@cache
def published() -> AmaPublished:
    return msgspec.convert(load_published("ama"), AmaPublished)


def compare_with(figure: AmaFigure, ours: ComparedSetting) -> tuple[str, ...]:
    """Return every reason why a result of ours may not be compared with a figure; empty when it may."""
    shown = published()
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (
            ours.convention == "paper",
            "our convention is 'corrected': known errors of the paper are removed",
        ),
        (
            (ours.first, ours.last) == (shown.first, shown.last),
            f"the figure is for {shown.first} to {shown.last}",
        ),
        (
            ours.architecture == figure.architecture,
            f"the figure is for the architecture '{figure.architecture}'",
        ),
        (ours.asset == figure.asset, f"the figure is for {figure.asset}"),
        (figure.model.lower() in ours.model.lower(), f"the figure's model is {figure.model}"),
    )
    return unmet_conditions(checks)
