"""The luck of a person's own returns, read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tradeassay.assay.luck.luck import PORTFOLIOS, Luck, luck_of_returns
from tradeassay.assay.own_tables import read_returns
from tradeassay.benchmarks import benchmarks
from tradeassay.core.errors import UserError
from tradeassay.data import load_dataset


def luck_of_file(
    path: Path,
    benchmark: str | None,
    dataset: str | None = None,
    *,
    names: int | None,
    turnover: float | None,
    invested: float = 1.0,
    portfolios: int = PORTFOLIOS,
    seed: int = 0,
    by: Literal["return", "sharpe"] = "return",
    home: Path | None = None,
) -> Luck:
    """Return the luck of returns in a Parquet or CSV file (columns ``date`` and ``return``).

    The market and its rules are a benchmark's; how many names were held and how much was traded has to be said.
    Raises :class:`UserError` when one of these is missing or does not fit the file.
    """
    if benchmark is None or names is None or turnover is None:
        raise UserError(
            f"{path.name} does not say how it was traded",
            mend="give --benchmark, --names and --turnover, e.g. --benchmark daily-us-v1 --names 20 --turnover 4",
        )
    chosen = benchmarks.get(benchmark)
    return luck_of_returns(
        read_returns(path),
        chosen,
        load_dataset(dataset or chosen.dataset, home),
        names=names,
        turnover=turnover,
        invested=invested,
        portfolios=portfolios,
        seed=seed,
        by=by,
        title=path.stem,
    )
