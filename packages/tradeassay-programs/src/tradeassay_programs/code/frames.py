"""The second framework: vectorised signals on a pandas frame.

A program defines ``signals(frame)`` (one asset) or ``signals(frames)`` (a dict of frames) and
returns a target position for each row. It runs in the sandbox. The host compares each target with
the target of the previous row, which is 0 before the first row. A different target becomes a market
order that fills at the next open. Sizes follow from the task's terms and the account at that close:

- ``fixed``: target x value units.
- ``percent``: target x value per cent of the account's worth, divided by the close. Fractional
  units are allowed.
- ``own``: the target is a share of the account's worth. Orders are for whole units, as for
  target-percent orders.

A target of 0 closes the position. With several assets, orders that reduce positions are filled
first, so that their cash can be used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay.core.printable import printable
from tradeassay_bench.account.backtrader import BadOrders, carry_targets
from tradeassay_programs.code.backtrader import (
    Backtest,
    BacktestJob,
    read_with,
    replayed_run,
    tricks_in,
)
from tradeassay_programs.code.bars import FIELDS
from tradeassay_programs.sandbox import Job, JobLimits, JobResult

_SHOWN: Final = 40
_UNFIT: Final = {"O": "texts or missing values", "U": "texts", "M": "times"}
"""Descriptions of returned values that are not numbers, by NumPy's kind of the column."""


class BadTargets(BadOrders):
    """Raised if the returned value is not a table of target positions.

    The message states the error and a remedy.
    """


def read_targets(columns: Mapping[str, NDArray[Any]], rows: int, assets: Sequence[str]) -> Floats:
    """Return the target positions, from -1 to 1, with shape (rows, assets).

    With one asset, ``columns`` has one column of any name. With several assets, it has one column
    per asset. Raises :class:`BadTargets` for other columns, and for values that are missing, not
    numbers or outside -1 to 1.
    """
    single = len(assets) == 1
    missing = [] if single else [asset for asset in assets if asset not in columns]
    extra = [] if single else [name for name in columns if name not in assets]
    if single and len(columns) != 1:
        raise BadTargets(
            f"signals returned {len(columns)} columns; one asset needs one target per row"
        )
    if missing:
        found = ", ".join(printable(name[:_SHOWN]) for name in list(columns)[:8]) or "none"
        said = f"signals returned no column for asset {missing[0]} (columns: {found})"
        raise BadTargets(f"{said}; return one per asset: {', '.join(assets)}")
    if extra:
        raise BadTargets(
            f"signals returned a column '{printable(extra[0][:_SHOWN])}', which is no asset; drop "
            "it"
        )
    table = np.empty((rows, len(assets)))
    for place, asset in enumerate(assets):
        values = next(iter(columns.values())) if single else columns[asset]
        of = "" if single else f" for asset {asset}"
        if values.dtype.kind not in "fiub":
            what = _UNFIT.get(values.dtype.kind, "values that are no numbers")
            raise BadTargets(f"signals returned {what}{of}; a target is a number from -1 to 1")
        if len(values) != rows:
            raise BadTargets(
                f"signals returned {len(values)} targets{of} for {rows} rows; return one per row"
            )
        numbers = values.astype(np.float64)
        table[:, place] = numbers
        # A target that exceeds 1 by a rounding error is set to 1.
        unknown, beyond = (
            np.flatnonzero(np.isnan(numbers)),
            np.flatnonzero(np.abs(numbers) > 1.0 + 1e-9),
        )
        if unknown.size:
            said = f"{unknown.size} targets{of} are NaN, the first in row {unknown[0]}"
            raise BadTargets(f"{said}; say 0 where nothing is to be held (fillna(0))")
        if beyond.size:
            said = f"{beyond.size} targets{of} are outside -1 .. 1, the first in row {beyond[0]}"
            raise BadTargets(f"{said}: {numbers[beyond[0]]:g}")
    return np.clip(table, -1.0, 1.0)


ENTRY: Final = "signals"
LIMITS: Final = JobLimits(result_mb=48, rows=1_000_000, columns=64)


def sandbox_job(job: BacktestJob) -> Job:
    """Return the sandbox job of a run.

    One asset is passed as a data frame, several assets as a dict of data frames.
    """
    single = len(job.bars.assets) == 1
    feed = next(iter(job.bars.feeds.values()))
    return Job(
        source=job.source,
        entry=ENTRY,
        columns={name: feed[name] for name in FIELDS} if single else job.bars.columns(),
        pass_as="frame" if single else "frames",
        limits=job.limits or LIMITS,
        seed=job.seed,
        trust=job.trust,
    )


def read_result(job: BacktestJob, result: JobResult) -> Backtest:
    """Return the backtest of a program's targets.

    The host turns the targets into orders and computes the account. A run that failed, or that
    returned unusable targets, gives a backtest with a failure.
    """
    # A frame holds whole columns by design, so accessing a column is not a trick. The look-ahead
    # check decides.
    tricks = [trick for trick in tricks_in(job.source, ()) if trick.name != "preloaded-array"]

    def carry_out(columns: Mapping[str, NDArray[Any]]) -> Backtest:
        targets = read_targets(columns, job.bars.rows, job.bars.assets)
        orders, done = carry_targets(targets, job.bars, job.terms, steps=job.steps)
        return replace(replayed_run(result, orders, done, tricks), targets=targets)

    return read_with(result, tricks, carry_out)
