"""Store the published results of Agent Market Arena, and compare a result with them."""

from functools import cache
from typing import Literal

import msgspec

from tradeassay.core.measure import Convention
from tradeassay_bench.benchmarks.exhibits import Published, load_published, unmet_conditions

Architecture = Literal["investor", "trade", "hedge-fund", "deep-fund"]


class AmaFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published number: a fraction, or a ratio for SR.

    ``model`` is "not stated" if our source does not name the model.
    """

    architecture: Architecture
    model: str
    asset: str
    measure: Literal["CR", "AR", "AV", "SR", "MDD"]
    value: float
    where: str


class AmaPublished(Published[AmaFigure], frozen=True, kw_only=True):
    """All published numbers, with their source and the days that they cover."""

    first: str
    last: str


class ComparedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of one of our results."""

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
    """Return all reasons why one of our results is not comparable with a published number.

    The tuple is empty if the result is comparable.
    """
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
