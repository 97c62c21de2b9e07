"""What is to be trained: models, data, and three windows that do not touch."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.agents.factor_models.catalogue import Size, factor_model
from tradeassay.core.errors import UserError
from tradeassay.core.time import parse_day

Device = Literal["auto", "cpu", "gpu"]


class Span(msgspec.Struct, frozen=True):
    """ISO days, both included; raises :class:`UserError` when it ends before it starts."""

    first: str
    last: str

    def __post_init__(self) -> None:
        if parse_day(self.first) > parse_day(self.last):
            raise UserError(f"the window {self.first}..{self.last} ends before it starts", mend="swap the days")

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def parse_span(text: str) -> Span:
    """Read ``2015-01-05..2022-12-30``; raises :class:`UserError` for anything else."""
    first, dots, last = text.partition("..")
    if not dots or not first or not last:
        raise UserError(f"'{text}' is no window", mend="write it as 2015-01-05..2022-12-30")
    return Span(first, last)


class BaselineSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which factor models are trained on what.

    A sample of session t holds factors up to the close of t - 1; its outcome is the return from the open of t to
    the open ``horizon`` sessions later. A sample belongs to a window when its outcome is known ``purge`` sessions
    before the window ends, so that nothing of the next window is in it. ``valid`` decides when training stops,
    ``test`` only measures; None is from the day after ``valid`` to the end of the data. ``universe`` None is
    the index IDX where the data has it, else everything listed. ``device`` "auto" takes a GPU when there is one;
    scores are always computed on the CPU. ``shuffled`` trains on outcomes dealt out anew among the day's names.
    Raises :class:`UserError` for an unknown model or windows that overlap.
    """

    dataset: str
    models: tuple[str, ...]
    train: Span
    valid: Span
    test: Span | None = None
    universe: str | None = None
    horizon: Annotated[int, Meta(ge=1)] = 5
    purge: Annotated[int, Meta(ge=0)] = 5
    size: Size = "full"
    seed: Annotated[int, Meta(ge=0)] = 0
    threads: Annotated[int, Meta(ge=1)] = 2
    device: Device = "auto"
    shuffled: bool = False

    def __post_init__(self) -> None:
        if not self.models:
            raise UserError("no factor model was named", mend="e.g. lightgbm,linear, or all")
        for name in self.models:
            factor_model(name)
        spans = [("train", self.train), ("valid", self.valid), *([("test", self.test)] if self.test else [])]
        for (one, earlier), (other, later) in pairwise(spans):
            if parse_day(later.first) <= parse_day(earlier.last):
                raise UserError(
                    f"the {other} window {later} starts before the {one} window {earlier} ends",
                    mend="let the windows follow each other",
                )
        if self.horizon < 1 or self.purge < 0:
            raise UserError(
                f"horizon {self.horizon} and purge {self.purge} make no outcome", mend="horizon >= 1, purge >= 0"
            )
