"""Records of the part of a return that a model's recall explains, and their sentence."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tradeassay.core.measure import Measure, above, below

RecallWord = Literal["recalls", "no recall is shown", "cannot be told"]


class AlphaSplit(msgspec.Struct, frozen=True, kw_only=True):
    """An annual alpha (or return from timing), split into an ``explained`` part and the ``rest``.

    Recall explains the first part. ``share`` is its share of alpha, scored only if alpha is
    significant. ``follows`` is the correlation of the holdings with all recalled answers.
    """

    alpha: Measure
    explained: Measure
    rest: Measure
    share: Measure
    follows: Measure

    @property
    def remembered(self) -> bool:
        """Return whether recall significantly explains most of a gain.

        The rest must not be significant.
        """
        explained, rest = self.explained, self.rest
        if explained.value is None or rest.value is None or rest.low is None:
            return False
        return above(explained) and explained.value > rest.value and not above(rest)

    @property
    def partly(self) -> bool:
        """Return whether both parts are significant gains."""
        return above(self.explained) and above(self.rest)


class RecallSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an agent's return that recall explains.

    ``names`` splits the return from the choice of names, ``dates`` the return from timing.
    ``covered`` is the share of the holdings with a recall question. ``sentence`` states the result.
    """

    names: AlphaSplit
    dates: AlphaSplit
    covered: float
    sentence: str


def split_sentence(split: AlphaSplit) -> str:
    """Return a sentence about the part that recall explains. Numbers have a true minus."""
    return re.sub(r"-(?=\d)", "\u2212", _words(split))


def _words(split: AlphaSplit) -> str:
    explained, rest, share = split.explained, split.rest, split.share
    if (
        explained.value is None
        or explained.low is None
        or explained.high is None
        or rest.low is None
    ):
        return f"what recall explains cannot be told: {explained.reason or 'no interval'}."
    left = f"what is left, {rest.value:+.1%} a year ({rest.low:+.1%} to {rest.high:+.1%})"
    if rest.low == rest.high == 0.0:
        stays = "nothing is left"
    elif above(rest):
        stays = f"{left}, is more than luck"
    elif below(rest):
        stays = f"{left}, is a loss beyond luck"
    else:
        stays = f"{left}, is not distinguishable from luck"
    if split.follows.value is None and explained.low == explained.high == 0.0:
        return f"what it recalls tells nothing apart and explains nothing; {stays}."
    if (
        share.value is not None
        and share.low is not None
        and share.high is not None
        and above(explained)
    ):
        # If the rest is a loss, recall explains more than the whole. 100 % is stated then.
        ends = (share.value, share.low, share.high)
        part, low, high = (f"{min(end, 1.0):.0%}" for end in ends)
        return f"recall explains {part} ({low} to {high}) of alpha; {stays}."
    size = f"{explained.value:+.1%} a year ({explained.low:+.1%} to {explained.high:+.1%})"
    if above(explained):
        return f"recall explains {size}; {stays}."
    if below(explained):
        return f"what follows recall lost {size}; {stays}."
    return f"recall explains nothing significant, {size}; {stays}."
