"""The assay of somebody's own account: weights and returns that no run of ours recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.assay.attribution_record import Attribution
from tradeassay.assay.own_attribution import attribute_tables
from tradeassay.assay.own_luck import luck_of_file
from tradeassay.assay.own_tables import WEIGHT, is_long
from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.evidence import rows_of_seeds
from tradeassay.assay.verdict.luck_evidence import luck_evidence
from tradeassay.assay.verdict.of_run import with_daily
from tradeassay.assay.verdict.record import AgentAssay, AgentFindings, Assay, LeakEvidence, LuckEvidence, Ranks
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import BootstrapConfig

NO_RUN = "no run was recorded"


class OwnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tables are and how they are to be read.

    ``weights`` and ``returns`` as for :func:`~tradeassay.assay.own_attribution.attribute_tables`. A luck baseline
    needs the account's returns, a ``benchmark`` for the market's rules, and how many ``names`` were held with
    which yearly one-way ``turnover``.
    """

    weights: str | None = None
    returns: str | None = None
    dataset: str | None = None
    universe: str = "all"
    between: Literal["cash", "hold"] = "cash"
    benchmark: str | None = None
    names: int | None = None
    turnover: float | None = None
    home: str | None = None
    title: str | None = None


def assay_tables(own: OwnAccount, config: VerdictConfig) -> Assay:
    """Return the assay of an own account. Raises :class:`UserError` with one line for what does not fit."""
    own = _sorted_out(own)
    path = own.returns or own.weights
    if path is None:
        raise UserError("no table is given", mend="give weights.parquet, returns.parquet, or both")
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    taken = attribute_tables(
        own.weights,
        own.returns,
        dataset=own.dataset,
        home=own.home,
        universe=own.universe,
        between=own.between,
        bootstrap=bootstrap,
    )
    title = own.title or Path(path).stem
    judged = assay_attribution(taken, config, agent=title, year=taken.year, luck=_luck(own, config))
    return Assay(title=title, source="own", config=config, agents=(judged,))


def assay_attribution(
    taken: Attribution,
    config: VerdictConfig,
    *,
    agent: str,
    year: int = 252,
    comparisons: int = 1,
    luck: LuckEvidence | None = None,
    leaks: LeakEvidence | None = None,
) -> AgentAssay:
    """Return the verdict on one account that was taken apart, with what else is known about it."""
    found = AgentFindings(
        cell="own",
        benchmark="",
        dataset=taken.dataset,
        agent=agent,
        by_model=False,
        baseline=False,
        seeds=1,
        failed_seeds=0,
        sessions=len(taken.daily.sessions),
        first=taken.first,
        last=taken.last,
        method=taken.method,
        failure=taken.reason,
        total=not_scored(taken.reason or "nothing was played"),
        excess=not_scored("no index is given"),
        exposures=_exposures(taken),
        luck=luck or LuckEvidence(percentile=not_scored("not asked for"), p=None),
        leaks=leaks or LeakEvidence(tested=False),
        failure_rate=not_scored(NO_RUN),
        ranks=Ranks(of=1, by_return=None, by_excess=None, by_selection=None),
        notes=taken.notes,
    )
    if taken.linked is not None and taken.daily.sessions:
        found = with_daily(found, rows_of_seeds([taken]), year, config, comparisons)
    return judge(found, config)


def _exposures(taken: Attribution) -> dict[str, Measure]:
    """Return preferences; where only returns are known, the constant exposures that explain them best."""
    if taken.method == "holdings":
        return dict(taken.preferences)
    note = "constant, estimated from returns"
    return {name: Measure(value=values[0], note=note) for name, values in taken.daily.exposures.items() if values}


def _sorted_out(own: OwnAccount) -> OwnAccount:
    """Return the tables in their places: one table of weights may have been given as returns."""
    if own.returns is None or own.weights is not None or not _has_weights(Path(own.returns)):
        return own
    return msgspec.structs.replace(own, weights=own.returns, returns=None)


def _has_weights(path: Path) -> bool:
    if not path.is_file():
        raise UserError(f"no file {path}", mend="give a Parquet or CSV file")
    if not is_long(path):
        return False
    import polars as pl

    frame = pl.scan_csv(path) if path.suffix == ".csv" else pl.scan_parquet(path)
    return WEIGHT in frame.collect_schema().names()


def _luck(own: OwnAccount, config: VerdictConfig) -> LuckEvidence:
    if config.portfolios == 0:
        return LuckEvidence(percentile=not_scored("not asked for"), p=None)
    if own.returns is None or own.benchmark is None or own.names is None or own.turnover is None:
        reason = "returns, a benchmark, the number of names and the turnover are needed for it"
        return LuckEvidence(percentile=not_scored(reason), p=None)
    one = luck_of_file(
        Path(own.returns),
        own.benchmark,
        own.dataset,
        names=own.names,
        turnover=own.turnover,
        portfolios=config.portfolios,
        seed=config.seed,
        home=None if own.home is None else Path(own.home),
    )
    return luck_evidence([one])
