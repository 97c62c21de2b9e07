"""How hard to look for a leak."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.errors import UserError


class LeakConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how often to cut. The defaults are those that the bench is measured with.

    ``mode`` ``every`` cuts at every bar (micro-scenarios); ``sampled`` takes ``warm_up_cuts`` in the first
    ``warm_up_rows``, ``change_cuts`` where the scored run decides something and ``random_cuts`` anywhere; each
    cut is run truncated and with another future. ``perturbations`` runs keep the full length. ``splice_runs``
    screens try ``splice_rows`` rows each, in pieces of ``piece_rows``; ``confirmations`` bounds how many of a
    screen's hits are tried in earnest. ``placebo`` adds one run on other prices.

    ``short_rows``: on longer series cuts are taken from the first so many rows, save the mid-sample truncation
    and the perturbations. ``tail_rows``: how much other future follows a cut. ``end_rows``: the last rows of a
    truncated table, on which closing everything because the data ends is allowed. ``budget_bars`` bounds all rows
    given to the code beyond the scored run and its repetition; None means ten times the length, at least 400,000.
    ``rtol``: floats that differ by less are one decision (libraries of linear algebra may round the last digit
    by the length of their input); everything else is compared exactly.

    ``probe``: from 20,000 rows on, run 5,000 and 20,000 first, and refuse code whose scored run would take more
    than ``run_s`` seconds.
    """

    mode: Literal["sampled", "every"] = "sampled"
    warm_up_cuts: int = 4
    warm_up_rows: int = 120
    change_cuts: int = 8
    random_cuts: int = 4
    perturbations: int = 2
    splice_runs: int = 3
    splice_rows: int = 8_000
    piece_rows: int = 120
    confirmations: int = 12
    placebo: bool = False
    short_rows: int = 4_000
    tail_rows: int = 64
    end_rows: int = 1
    budget_bars: int | None = None
    rtol: float = 1e-9
    probe: bool = True
    run_s: float = 60.0

    def __post_init__(self) -> None:
        for name in (
            "warm_up_cuts",
            "change_cuts",
            "random_cuts",
            "perturbations",
            "splice_runs",
            "confirmations",
        ):
            if getattr(self, name) < 0:
                raise UserError(f"'{name}' cannot be negative", mend="0 leaves it out")
        for name in ("warm_up_rows", "splice_rows", "piece_rows", "short_rows", "tail_rows", "end_rows", "run_s"):
            if getattr(self, name) <= 0:
                raise UserError(f"'{name}' must be more than 0", mend="leave it out to take the default")
        if not 0 <= self.rtol < 1e-3:
            raise UserError(f"rtol {self.rtol} is outside 0 .. 0.001")

    def budget(self, bars: int) -> int:
        """Return how many rows may be spent on a series of ``bars`` rows."""
        return max(400_000, 10 * bars) if self.budget_bars is None else self.budget_bars
