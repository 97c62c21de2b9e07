"""A program of signals as the look-ahead check sees it: rows in, orders by row out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tradeassay.code.backtrader import Backtest, BacktraderSubject
from tradeassay.code.frames.runner import FrameJob, many_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSubject(BacktraderSubject):
    """The same subject, run as a program of signals instead of a strategy."""

    def _backtests(self, jobs: Iterable[FrameJob]) -> Iterator[Backtest]:
        return many_frames(self.executor, jobs)
