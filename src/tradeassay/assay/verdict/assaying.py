"""One door: a recorded run, its folder, or somebody's own tables in, an assay out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.of_tables import OwnAccount, assay_tables
from tradeassay.assay.verdict.record import Assay
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.assay.leaks.records import LeakTestReport
    from tradeassay.runs import Run


def assay(
    what: Run | OwnAccount | Path | str,
    config: VerdictConfig | None = None,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    home: Path | str | None = None,
) -> Assay:
    """Say what a result is made of: skill, luck, style, leaked future or memory.

    ``what`` is a run, a run's folder, a table of returns or weights (its data set has to be told: use
    :class:`OwnAccount`), or an :class:`OwnAccount`. ``agents`` keeps some agents of a run, ``leaks`` are the leak
    tests that were made of them, ``home`` is where data sets lie. Raises
    :class:`~tradeassay.core.errors.UserError` or :class:`~tradeassay.core.errors.RunError` with one line for
    whatever cannot be read.
    """
    config = config or VerdictConfig()
    if isinstance(what, OwnAccount):
        return assay_tables(what, config)
    from tradeassay.assay.verdict.of_run import assay_run
    from tradeassay.runs import Run

    if isinstance(what, Run):
        return assay_run(what, config, agents=agents, leaks=leaks)
    path = Path(what)
    if path.is_dir():
        return assay_run(Run.load(path, home=home), config, agents=agents, leaks=leaks)
    if path.is_file():
        return assay_tables(OwnAccount(returns=str(path), home=None if home is None else str(home)), config)
    raise UserError(f"no run and no table at {path}", mend="give a run's folder, or a Parquet or CSV file")
