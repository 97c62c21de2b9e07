"""Make the assay of an account from its holdings.

The holdings are a table of weights or a log of trades, priced by a data set.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import BootstrapConfig
from tradeassay.tables.account import OwnSeries
from tradeassay.tables.trades import TradeLog
from tradeassay.verdict.attribution import Attribution
from tradeassay.verdict.judge import judge
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.own_returns import assay_own, one_account, title_of
from tradeassay.verdict.record import AgentAssay, Assay, LuckEvidence, VerdictConfig
from tradeassay.verdict.returns import (
    CONSTANT,
    JudgingContext,
    own_findings,
    run_tests,
    with_history,
)
from tradeassay_bench.examine import run_evidence
from tradeassay_bench.examine.holdings import (
    attribute_tables,
    attribute_trades,
    luck_of_file,
    opened,
    own_prices,
    priced,
)
from tradeassay_bench.examine.luck.luck import LuckConfig


def assay_holdings(own: OwnAccount, log: TradeLog | None, config: VerdictConfig) -> Assay:
    """Return the assay of an account from its weights, or from the trades of a log."""
    if log is not None:
        return _assay_log(own, log, config)
    title = title_of(own)
    attribution = attribute_tables(
        own, bootstrap=BootstrapConfig(level=config.level, draws=config.draws)
    )
    return one_account(title, config, _judged(own, attribution, config, title), attribution.notes)


def _assay_log(own: OwnAccount, log: TradeLog, config: VerdictConfig) -> Assay:
    """Return the assay of an account from a log of trades.

    If prices of the holdings are known, the holdings are attributed. Otherwise only returns are.
    """
    title = own.title or (Path(log.name).stem if isinstance(own.returns, str) else "your account")
    own = msgspec.structs.replace(own, title=title)
    with priced(own) as snapshot:
        if snapshot is None:
            return assay_own(msgspec.structs.replace(own, returns=own_prices(own, log)), config)
        own = msgspec.structs.replace(own, dataset=str(snapshot.folder))
        drawn = BootstrapConfig(level=config.level, draws=config.draws)
        attribution, trades = attribute_trades(own, log, snapshot, drawn)
        own = msgspec.structs.replace(
            own,
            returns=OwnSeries(
                returns=dict(zip(attribution.daily.sessions, attribution.daily.total, strict=True))
            ),
            names=own.names or trades.names,
            turnover=own.turnover or trades.turnover,
        )
        return one_account(
            title, config, _judged(own, attribution, config, title), attribution.notes
        )


def _judged(
    own: OwnAccount, attribution: Attribution, config: VerdictConfig, agent: str
) -> AgentAssay:
    """Return the verdict on a user's own account from its attribution."""
    exposures = dict(attribution.preferences)
    if attribution.method == "returns":
        # Only returns are known: use the constant exposures of the best fit.
        constants = attribution.daily.exposures
        exposures = {
            name: Measure(value=values[0], note=CONSTANT)
            for name, values in constants.items()
            if values
        }
    luck = LuckEvidence(percentile=not_scored("not asked for"), p=None)
    if config.portfolios and (own.returns is None or own.suite is None):
        reason = "returns, a benchmark, the number of names and the turnover are needed for it"
        luck = LuckEvidence(percentile=not_scored(reason), p=None)
    elif config.portfolios:
        luck_config = LuckConfig(portfolios=config.portfolios, seed=config.seed)
        luck = run_evidence.luck_evidence([luck_of_file(own, luck_config)])
    findings = own_findings(
        agent,
        attribution.daily.sessions,
        dataset=attribution.dataset,
        method=attribution.method,
        failure=attribution.reason,
        total=not_scored(attribution.reason or "nothing was played"),
        market=not_scored(
            attribution.reason or "returns of the names are given, and none of a market"
        ),
        exposures=exposures,
        luck=luck,
        biases=() if own.dataset is None else opened(own, own.dataset).facts.biases,
        notes=attribution.notes,
        doubts=attribution.doubts,
    )
    if attribution.linked is not None and attribution.daily.sessions:
        daily = run_evidence.rows_of_seeds([attribution])
        findings = run_tests(
            findings, daily, attribution.year, config, JudgingContext(attributions=(attribution,))
        )
        findings = with_history(
            findings, daily["total"], attribution.daily.sessions, attribution.year, config
        )
    if own.returns is None:
        unseen = not_scored("weights alone do not determine trading costs")
        findings = msgspec.structs.replace(findings, parts={**findings.parts, "trading": unseen})
    return judge(findings, config)
