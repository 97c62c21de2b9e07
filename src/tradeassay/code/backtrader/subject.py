"""A Backtrader strategy as the look-ahead check sees it: rows in, orders by bar out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tradeassay.code.backtrader.runner import BacktestJob, many
from tradeassay.code.backtrader.terms import BrokerTerms
from tradeassay.code.bars import TaskBars
from tradeassay.sandbox import Executor, Limits, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tradeassay.code.backtrader.backtest import Backtest
    from tradeassay.code.leak import RunFailure, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktraderSubject:
    """Runs one source on any rows of the form of ``bars.columns()``, a fresh child each time."""

    executor: Executor
    source: str
    bars: TaskBars
    terms: BrokerTerms
    limits: Limits | None = None
    seed: int = 0

    def run(self, columns: Mapping[str, NDArray[Any]]) -> Trace | RunFailure:
        """Run it once."""
        return self.run_many([columns])[0]

    def run_many(self, batch: Sequence[Mapping[str, NDArray[Any]]]) -> list[Trace | RunFailure]:
        """Run it on each of several tables, in parallel where the executor can."""
        jobs = (
            BacktestJob(
                source=self.source,
                bars=self.bars.with_columns(columns),
                terms=self.terms,
                limits=self.limits,
                seed=self.seed,
            )
            for columns in batch
        )
        return [_outcome(done) for done in self._backtests(jobs)]

    def _backtests(self, jobs: Iterable[BacktestJob]) -> Iterator[Backtest]:
        return many(self.executor, jobs)


def _outcome(done: Backtest) -> Trace | RunFailure:
    from tradeassay.code.leak import RunFailure

    if done.failure is not None:
        return RunFailure(kind=kind_of(done.failure), text=done.failure.text)
    return done.trace()
