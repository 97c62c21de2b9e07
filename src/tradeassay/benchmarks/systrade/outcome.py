"""What came of one strategy: its iterations, what was found in each, and the tokens they took."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.benchmarks.systrade.examine import Trail
from tradeassay.code.drift import DriftReport
from tradeassay.code.review import Review
from tradeassay.code.scores import Scorecard
from tradeassay.code.submission import Submission
from tradeassay.core.dialogue import Usage

Stopped = Literal["target", "iterations", "no answer", "no submission", "repeats itself"]


class OnInstrument(msgspec.Struct, frozen=True, kw_only=True):
    """A program on the test days of other symbols: what it returned before costs, or why it could not."""

    symbols: tuple[str, ...]
    total: float | None = None
    trades: int | None = None
    reason: str = ""


class ScoredIteration(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``scorecard`` is the test year's and never shown to the writer; ``develop`` is shown.

    ``drift`` is None for a first submission, ``trail`` where the test year could not be run. ``instruments`` are
    there where a run names more symbols than the strategy has legs.
    """

    scorecard: Scorecard
    develop: Scorecard
    drift: DriftReport | None = None
    trail: Trail | None = None
    instruments: tuple[OnInstrument, ...] | msgspec.UnsetType = msgspec.UNSET


class Iteration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One submission. ``submission`` is None without one; ``reason`` then says what came instead.

    ``set_aside``: the patch drifted or changed too many lines, so it does not count, and the next iteration starts
    from its predecessor.
    """

    number: int
    set_aside: bool = False
    submission: Submission | None = None
    scored: ScoredIteration | None = None
    reviews: tuple[Review, ...] = ()
    reason: str = ""
    usage: Usage = Usage()


class StrategyOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one strategy. ``usage`` adds up the writer's tokens, ``review_usage`` the reviewers'.

    ``cut_off`` counts unreadable answers that ran into the limit of tokens; the first is no iteration.
    """

    strategy: str
    model: str
    iterations: tuple[Iteration, ...]
    stopped: Stopped
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    cut_off: int = 0

    @property
    def last(self) -> ScoredIteration | None:
        """The iteration that counts: the last submission that was scored and not set aside."""
        found = [one.scored for one in self.iterations if one.scored is not None and not one.set_aside]
        return found[-1] if found else None
