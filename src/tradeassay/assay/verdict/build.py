"""One door: a recorded run, its folder, or somebody's own tables in, an assay out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tradeassay.agents import files_open
from tradeassay.agents.own_file import CLOSED
from tradeassay.assay.attribute import Attribution, RunAttribution, attribute_run
from tradeassay.assay.luck.luck import Luck, LuckConfig, luck_of_episode
from tradeassay.assay.own import (
    WEIGHT,
    OwnAccount,
    attribute_tables,
    attribute_trades,
    luck_of_file,
    own_prices,
    priced,
)
from tradeassay.assay.staleness import Regression, lagged, stale_lags
from tradeassay.assay.verdict import diagnostics, evidence
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.reasons import too_few
from tradeassay.assay.verdict.record import (
    CASH,
    AgentAssay,
    AgentFindings,
    Assay,
    Dollars,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    Ranks,
    StyleEvidence,
    VerdictConfig,
)
from tradeassay.core.errors import UserError
from tradeassay.core.executors import HERE, Spread
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.registry import did_you_mean
from tradeassay.core.view import Floats
from tradeassay.data.markets import (
    FRENCH,
    MARKETS,
    FactorTable,
    offer,
    read_factors,
    read_market,
    refuse_other_days,
)
from tradeassay.data.tables.account import OwnSeries, beside, columns_of, compounded, read_series, with_benchmark
from tradeassay.data.tables.columns import plain_title
from tradeassay.data.tables.trades import TradeLog, read_trades
from tradeassay.metrics import (
    LEAST_RATIO,
    BootstrapConfig,
    growth,
    measured_design,
    power_summary,
    score,
    series_from_nav,
    sessions_needed,
    significant,
)
from tradeassay.metrics.anytime import level_at
from tradeassay.metrics.attribution import total_parts
from tradeassay.metrics.history import history_of
from tradeassay.metrics.ranks import places
from tradeassay.runs.score import NET_RETURN
from tradeassay.runs.store.run import folder_of, shown_title
from tradeassay.runs.summary.figures import setting_words
from tradeassay.runs.summary.models import calibration_of, journals_of

if TYPE_CHECKING:
    from tradeassay.assay.leaks.leak_result import LeakTestReport
    from tradeassay.assay.memory import MemoryRecord
    from tradeassay.runs import AgentScores, AgentSpec, Run

PAPER = "the run follows the paper's convention; the account's own returns are judged"
WATCHED = "intervals of parts and claims hold however often they are looked at, and are wider for that"
FILES_SHUT = "files and network were shut to its program while it played, by the kernel: it saw the view alone"
OWN_MEASURES = ("annualised_return", "sharpe", "sortino", "max_drawdown", "volatility", "calmar")
"""What is scored of an account of which only returns are known."""
_MASKS = ("blinded", "stock-blind", "date-blind")
"""Masks in the order in which they are taken for the contrast: what hides most comes first."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One agent in one cell while its findings are put together; ``daily`` is None without a result."""

    scores: AgentScores
    sound: tuple[Attribution, ...]
    daily: dict[str, Floats] | None
    year: int
    mask: str | None
    mode: str | None
    by_model: bool
    tried: diagnostics.Tried = diagnostics.NO_TRIES

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions of its first seed with a result."""
        return self.sound[0].daily.sessions if self.sound else ()


@dataclass(frozen=True, slots=True)
class OutsideFacts:
    """What an assay takes from outside its run: the tries in the run's folder when it was made, and what a leak
    test said; None where none was made."""

    tried: diagnostics.Tried = diagnostics.NO_TRIES
    leaks: LeakEvidence | None = None


def assay_run(
    run: Run,
    config: VerdictConfig,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    memory: Sequence[MemoryRecord] = (),
    say: Callable[[str], None] | None = None,
    spread: Spread = HERE,
    outside: Mapping[tuple[str, str], OutsideFacts] | None = None,
) -> Assay:
    """Return the assay of a run (see :func:`assay`). All agents of a cell count as comparisons, shown or not. The
    account's own returns are taken apart, whatever the run's convention. To make an earlier assay again, give the
    facts ``outside`` the run that it was made with, by cell and shown name. Raises :class:`UserError` for an agent
    the run does not have and :class:`~tradeassay.core.errors.RunError` while the run is unfinished."""
    scores = run.scores.agents
    known = dict.fromkeys(row.agent for row in scores)
    for name in (*agents, *(leaks or ())):
        if name not in known:
            raise UserError(f"no agent '{name}' in {run.folder}", hint=f"it has {', '.join(known)}")
    for record in memory:
        from tradeassay.assay.memory.records import check_about

        check_about(run, record)
    say = say or (lambda _: None)
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    say(f"taking {len(run.episodes)} episodes apart ...")
    taken = attribute_run(run, convention="sound", bootstrap=bootstrap, spread=spread, intervals=False)
    rows = [_row(run, one, taken) for one in scores]
    if outside is not None:
        stated = {place: facts.tried for place, facts in outside.items()}
        places = [(row.scores.cell, run.names[row.scores.agent]) for row in rows]
        rows = [
            replace(row, tried=stated.get(place, diagnostics.NO_TRIES))
            for row, place in zip(rows, places, strict=True)
        ]
    elif config.folder:  # what else the folder has tried on the same data and sessions
        where = [(row.scores.dataset, row.sessions) for row in rows]
        tried = {place: diagnostics.tried_elsewhere(run, *place) for place in dict.fromkeys(where)}
        rows = [replace(row, tried=tried[place]) for row, place in zip(rows, where, strict=True)]
    shown = [row for row in rows if not agents or row.scores.agent in agents]
    ranks, contrast = _ranks(rows), evidence.contrast_of(run, [row.mask for row in rows], config)
    luck: dict[str, Luck] = {}
    if config.portfolios:
        keys = [key for row in shown if row.daily is not None for key in row.scores.episodes]
        drawn = LuckConfig(portfolios=config.portfolios, seed=config.seed)
        each = spread.map(partial(luck_of_episode, run, config=drawn, stop_early=True), keys)
        luck = dict(zip(keys, each, strict=True))
    found: list[AgentAssay] = []
    for row in shown:
        say(f"judging {run.names[row.scores.agent]} ({len(found) + 1} of {len(agents) or len(rows)}) ...")
        made = _findings(run, row, rows, taken, ranks, config, leaks or {}, luck)
        made = msgspec.structs.replace(made, agent=run.names[made.agent])
        facts = None if outside is None else outside.get((made.cell, made.agent))
        if facts is not None and facts.leaks is not None:
            stated_leaks = msgspec.structs.replace(facts.leaks, files_open=made.leaks.files_open)
            made = msgspec.structs.replace(made, leaks=stated_leaks)
        made = evidence.with_contrast(made, contrast, row.mode)
        made = evidence.with_recall(made, run, scores=row.scores, mask=row.mask, records=memory)
        found.append(judge(made, config))
    return Assay(
        title=run.spec.slug,
        source="run",
        config=config,
        agents=tuple(found),
        badges={cell: run.cell_badges(cell) for cell in dict.fromkeys(row.scores.cell for row in rows)},
        titles=_titles(run, rows),
        notes=((PAPER,) if run.manifest.convention == "paper" else ()) + ((WATCHED,) if config.watched else ()),
    )


def _titles(run: Run, rows: Sequence[_Row]) -> dict[str, str]:
    """Return what cells are called: by their benchmark, and by what sets them apart from others of it."""
    first = {row.scores.cell: run.episode(row.scores.episodes[0]) for row in rows}
    found = {}
    for cell, episode in first.items():
        alike = [other for other in first.values() if other.benchmark == episode.benchmark]
        ways = [
            setting_words(key, value)
            for key, value in episode.protocol.items()
            if len({str(other.protocol.get(key)) for other in alike}) > 1
        ]
        windows, datasets = {other.window for other in alike}, {other.dataset for other in alike}
        several = ((episode.window, windows), (episode.dataset, datasets))
        apart = [value for value, others in several if value and len(others) > 1]
        title = shown_title(run.manifest.benchmark(episode), episode.dataset)
        found[cell] = ", ".join([title, *ways, *(value for value in apart if not title.startswith(value))])
    return found


def _row(run: Run, scores: AgentScores, taken: RunAttribution) -> _Row:
    episode = run.episode(scores.episodes[0])
    sound = [taken.episodes[key] for key in scores.episodes if taken.episodes[key].linked is not None]
    same = bool(sound) and len({one.daily.sessions for one in sound}) == 1 and bool(sound[0].daily.sessions)
    record = run.manifest.protocols.get(scores.cell)
    mask, mode = (None if record is None else record.config.get(name) for name in ("mask", "mode"))
    return _Row(
        scores=scores,
        sound=tuple(sound),
        daily=evidence.rows_of_seeds(sound) if same else None,
        year=run.manifest.benchmark(episode).periods_per_year,
        mask=str(mask) if episode.by_model and mask is not None else None,
        mode=None if mode is None else str(mode),
        by_model=episode.by_model,
    )


def _findings(
    run: Run,
    row: _Row,
    rows: Sequence[_Row],
    taken: RunAttribution,
    ranks: Mapping[tuple[str, str], Ranks],
    config: VerdictConfig,
    leaks: Mapping[str, LeakTestReport],
    luck: Mapping[str, Luck],
) -> AgentFindings:
    scores, asked = row.scores, run.episode(row.scores.episodes[0]).agent
    peers = sum(one.scores.cell == scores.cell and not one.scores.baseline for one in rows)
    per_episode = [run.scores.episode(key) for key in scores.episodes]
    reason = None
    if row.daily is None and row.sound:
        reason = "the seeds ended in different sessions"
    elif row.daily is None:
        every = [run.series(key) for key in scores.episodes]
        lost = [one.failure or (f"everything was lost by {one.ruined}" if one.ruined else "") for one in every]
        reason = "; ".join(filter(None, dict.fromkeys(lost))) or "no episode has a result"
    nothing = not_scored(reason or "nothing was played")
    spent, net, dollars = scores.inference, scores.measures.get(NET_RETURN), None
    if not isinstance(spent, msgspec.UnsetType) and not spent.unstated:
        dollars = Dollars(
            usd=spent.usd,
            calls=spent.calls,
            tokens=spent.input_tokens + spent.output_tokens,
            net_return=not_scored("no model played") if net is None else net.median,
        )
    plain = AgentFindings(
        cell=scores.cell,
        benchmark=scores.benchmark,
        dataset=scores.dataset,
        agent=scores.agent,
        by_model=row.by_model,
        baseline=scores.baseline,
        seeds=len(row.sound),
        failed_seeds=len(scores.episodes) - len(row.sound),
        sessions=len(row.sessions),
        first=row.sound[0].first if row.sound else None,
        last=row.sound[0].last if row.sound else None,
        mask=row.mask,
        failure=reason,
        total=nothing,
        market=nothing,
        versus=scores.versus_baseline,
        luck=LuckEvidence(percentile=not_scored(reason or "not asked for"), p=None),
        leaks=_leaks(leaks.get(scores.agent), by=asked),
        calibration=calibration_of(run, journals_of(run, scores)) if row.by_model else None,
        failures=_counted([one.failures for one in per_episode]),
        failure_rate=scores.measures["failure_rate"].median,
        rejections=_counted([one.rejections for one in per_episode]),
        dollars=dollars,
        ranks=ranks[scores.cell, scores.agent],
        notes=(
            *dict.fromkeys(note for one in row.sound for note in one.notes),
            *((FILES_SHUT,) if asked.params.get("files") == CLOSED else ()),
        ),
        badges=run.badges(scores.episodes[0]),
    )
    if row.daily is None:
        return plain
    setting = TrialSetting(here=max(1, peers), tried=row.tried, taken=row.sound)
    measured = with_daily(plain, row.daily, row.year, config, setting)
    assert measured.edge is not None
    recorded, total = scores.measures["cumulative_return"].median, measured.total
    # The same return as the recorded one has its interval.
    if recorded.value is not None and total.value is not None and abs(recorded.value - total.value) < 1e-9:
        total = recorded
    return msgspec.structs.replace(
        measured,
        total=total,
        exposures=next(one.preferences for one in taken.agents if scores.episodes[0] in one.episodes),
        luck=evidence.luck_evidence([luck[key] for key in scores.episodes]) if config.portfolios else plain.luck,
        memory=_memory(row, rows, config, measured.edge.comparisons),
        biases=run.cell_badges(scores.cell).biases,
    )


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """What an account's daily parts are judged with: how many were tried, and what it was ``taken`` from; where
    there is no attribution that knows them, passive portfolios as ``references``, and ``sessions``."""

    here: int = 1
    tried: diagnostics.Tried = diagnostics.NO_TRIES
    taken: tuple[Attribution, ...] = ()
    references: Mapping[str, Floats] | None = None
    sessions: tuple[str, ...] = ()


def with_daily(
    found: AgentFindings, daily: Mapping[str, Floats], year: int, config: VerdictConfig, setting: TrialSetting
) -> AgentFindings:
    """Return findings with everything that follows from daily parts: the edge, what could have been shown, and the
    tests of what is behind it."""
    market, total, own = daily.get("market"), daily["total"], daily[evidence.EDGE]
    comparisons = setting.here * config.trials + setting.tried.effective
    test = evidence.MeanTest(year, config, comparisons)
    # Parts have intervals at the level that the edge is tested with: one that excludes zero would contradict a
    # sentence that says "cannot be told". The return itself is not tested: its interval is that of other pages.
    linked = {name: row for name, row in daily.items() if name not in (evidence.INVESTED, "market", "tilt")}
    totals = total_parts(
        linked, periods_per_year=year, bootstrap=BootstrapConfig(level=test.level), watched=config.watched
    )
    whole = total_parts({"total": total}, bootstrap=BootstrapConfig(level=config.level)).intervals["total"]
    # Style and edge are weighed by their own variances, so that both shares lie in 0..1.
    style, moved, common = (float(np.var(daily[name])) for name in ("style", evidence.EDGE, "common"))
    active = style + moved
    edge = evidence.edge_of(daily, test)
    power, could_not = too_few(total.size, config), True
    needed: int | None = None
    if total.size >= config.least:
        design = measured_design(own, level=config.level, comparisons=comparisons, periods_per_year=year)
        once = seen = power_summary(design, ir=config.skilled)
        if config.watched:
            level = level_at(total.size, test.level)
            seen = power_summary(msgspec.structs.replace(design, level=level, comparisons=1), ir=config.skilled)
        power, could_not = seen.sentence, seen.hopeless
        if config.watched:
            power += f"; looked at once, when it was over, it would be found in {once.chance:.0%}"
        ratio = edge.ratio.value
        # An account that is its market has a ratio of rounding errors: no number of sessions finds that.
        if ratio is not None and abs(ratio) >= LEAST_RATIO:
            needed = sessions_needed(ratio, design)
    parts = {name: measure for name, measure in totals.intervals.items() if name != "total"}
    by_returns = found.method == "returns"
    if by_returns:
        parts["trading"] = not_scored("trading cannot be seen in returns alone")
    first = setting.taken[0] if setting.taken else None
    sessions = first.daily.sessions if first is not None else setting.sessions
    given = first.daily.references if first is not None else {}
    references = setting.references or {name: np.array(series) for name, series in given.items()}
    lags = stale_lags(total, market) if by_returns and market is not None else 0
    claims = {} if by_returns else evidence.claims_of(daily)
    unstyled = total - daily["style"] if by_returns else total
    styles = None
    if "style_timing" in claims and total.size >= config.least:
        leaned = claims["style_timing"]
        styles = StyleEvidence(
            tilt=test.of(daily["tilt"]),
            timing=test.of(leaned, evidence.HALF),
            net=test.of(leaned + own, evidence.HALF),
        )
    covered = [one.covered_share for one in setting.taken if one.covered_share is not None]
    fit = None if first is None or by_returns else first.fit
    days = 0 if fit is None else fit.full_days + fit.market_days + fit.empty_days
    returned, timing = found.market, None
    if market is not None:
        grown = significant(float(np.prod(1.0 + market) - 1.0))
        returned = Measure(value=grown, n=market.size, note="no interval: as it was")
        timing = diagnostics.timing_evidence(unstyled, market, claims.get("timing"), test, returns_only=by_returns)
    by_name = defaultdict[str, float](float)  # what names brought to selection, in the mean over seeds
    for one in setting.taken:
        for name, value in one.by_name.items():
            by_name[name] += value / len(setting.taken)
    tail = concentration = None
    if total.size:
        tail = diagnostics.tail_evidence(daily, sessions, test, returns_only=by_returns)
        concentration = diagnostics.concentration_of(own, sessions, by_name, daily["selection"])
    return msgspec.structs.replace(
        found,
        failure=found.failure or totals.reason,
        total=whole,
        market=returned,
        parts=parts,
        style_variance=style / active if active > 0.0 else None,
        active_variance=active / (active + common) if active + common > 0.0 else None,
        edge=edge,
        power=power,
        could_not=could_not,
        needed=needed,
        year=year,
        passive=diagnostics.passive_evidence(
            total, references, test, lags=lags, invested=daily.get(evidence.INVESTED)
        ),
        timing=timing,
        styles=styles,
        tail=tail,
        stability=diagnostics.stability_evidence(own, test),
        capacity=diagnostics.capacity_evidence(own, setting.taken, test),
        concentration=concentration,
        trials=diagnostics.trials_evidence(own, edge, test, here=setting.here, tried=setting.tried),
        curve=diagnostics.curve_of(total, market, sessions),
        styled=fit.full_days / days if fit is not None and days else None,
        covered=min(covered) if covered else None,
    )


def _leaks(report: LeakTestReport | None, by: AgentSpec) -> LeakEvidence:
    if report is None:
        return LeakEvidence(tested=False, files_open=files_open(by.name, by.params))
    return LeakEvidence(
        tested=report.leaks or (report.repeatable and report.decisions_with_orders > 0),
        findings=tuple(dict.fromkeys(finding.channel or finding.kind for finding in report.findings)),
        sentence=report.sentence,
        bound=report.undetected,
        files_open=report.files_open,
    )


def _memory(row: _Row, rows: Sequence[_Row], config: VerdictConfig, comparisons: int) -> MemoryEvidence | None:
    """Return the contrast with the same agent's masked cell; None where no model played unmasked."""
    if not row.by_model or row.mask not in (None, evidence.BRIGHT):
        return None

    def setting(one: _Row) -> tuple[object, ...]:
        """What two cells share that differ in the mask only; a control arm is another cell."""
        parts = one.scores.cell.replace("__", "+").split("+")
        bare = tuple(part for part in parts if not part.startswith("mask="))
        return one.scores.agent, one.scores.benchmark, one.scores.dataset, bare

    alike = [one for one in rows if one.mask in _MASKS and setting(one) == setting(row)]
    twins = [one for one in alike if not one.sound or not row.sound or one.sessions == row.sessions]
    if not twins:
        return evidence.no_memory("it was not run under a mask")
    twin = min(twins, key=lambda one: _MASKS.index(str(one.mask)))
    if row.daily is None or twin.daily is None or twin.daily["total"].size != row.daily["total"].size:
        return evidence.no_memory("the masked run has no result over the same sessions")
    failed = twin.scores.measures["failure_rate"].median.value
    if failed is not None and failed > config.failed_sessions:
        return evidence.no_memory(f"the masked run had no usable answer on {failed:.0%} of its sessions")
    test = evidence.MeanTest(row.year, config, comparisons)
    return evidence.memory_evidence(row.daily, twin.daily, test, against=str(twin.mask))


def _counted(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    found = Counter[str]()
    for part in parts:
        found.update(part)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _ranks(rows: Sequence[_Row]) -> dict[tuple[str, str], Ranks]:
    found = {}
    for cell in dict.fromkeys(row.scores.cell for row in rows):
        inside = [row for row in rows if row.scores.cell == cell]
        ranked = [row for row in inside if row.daily is None or row.scores.unranked is None]
        returned = [row.scores.measures["cumulative_return"].median.value for row in ranked]
        chosen = [None if row.daily is None else float(np.mean(row.daily["selection"])) for row in ranked]
        of = sum(row.daily is not None for row in ranked)
        for row in inside:
            none = Ranks(of=of, by_return=None, by_selection=None, unranked=row.scores.unranked)
            found[cell, row.scores.agent] = none
        for row, first, second in zip(ranked, places(returned), places(chosen), strict=True):
            found[cell, row.scores.agent] = Ranks(of=of, by_return=first, by_selection=second)
    return found


def assay_tables(own: OwnAccount, config: VerdictConfig) -> Assay:
    """Return the assay of an own account. Raises :class:`UserError` with one line for what does not fit."""
    if own.returns is not None and not isinstance(own.returns, OwnSeries) and own.weights is None:
        source = Path(own.returns) if isinstance(own.returns, str) else own.returns
        if isinstance(source, Path) and not source.is_file():
            raise UserError(f"no file {source}", hint="give a Parquet or CSV file")
        log = read_trades(source, own.reading.dates)
        if log is not None:
            return _assay_log(own, log, config)
        if isinstance(source, Path) and {"symbol", WEIGHT} <= columns_of(source):
            own = msgspec.structs.replace(own, weights=own.returns, returns=None)  # weights, given as returns
    if own.returns is None and own.weights is None:
        raise UserError("no table is given", hint="give weights.parquet, returns.parquet, or both")
    given = own.returns if own.returns is not None else own.weights
    title = own.title or (Path(given).stem if isinstance(given, str) else "your account")
    # What was said of an account and would change nothing was meant to.
    logged = isinstance(own.returns, OwnSeries)
    unused = {} if logged else dict.fromkeys(("prices", "cash_at_start", "until", "symbol"), "a log of trades")
    unused |= {"between": "weights"} if own.weights is None else {}
    if own.weights is None and own.dataset is None:
        unused |= dict.fromkeys(("benchmark", "names", "turnover"), "a data set")
    for name, needed in unused.items():
        if getattr(own, name) is not None:
            raise UserError(f"'{name}' has no use without {needed}", hint=f"give {needed}, or leave it out")
    if own.weights is None and own.dataset is None:
        series = _explained(own)
        french = isinstance(own.factors, str) and own.factors == FRENCH and own.against is None
        named = isinstance(own.against, str) and own.against in MARKETS and MARKETS[own.against].dividends
        config = msgspec.structs.replace(
            config,
            dividends=0.0 if named or french else config.dividends,
            interest=config.interest if series.cash is None else 0.0,
        )
        judged, notes = assay_series(series, config, agent=title)
    else:
        taken = attribute_tables(own, bootstrap=BootstrapConfig(level=config.level, draws=config.draws))
        judged, notes = _judged(own, taken, config, title), taken.notes
    return _own_assay(title, config, judged, notes)


def _own_assay(title: str, config: VerdictConfig, judged: AgentAssay, notes: Sequence[str]) -> Assay:
    notes = (*notes, WATCHED) if config.watched else tuple(notes)
    return Assay(title=title, source="own", config=config, agents=(judged,), notes=notes)


def _assay_log(own: OwnAccount, log: TradeLog, config: VerdictConfig) -> Assay:
    """Return the assay of an account made of a log of trades, by its holdings where there are prices of them."""
    title = own.title or (Path(log.name).stem if isinstance(own.returns, str) else "your account")
    own = msgspec.structs.replace(own, title=title)
    with priced(own) as snapshot:
        if snapshot is None:
            return assay_tables(msgspec.structs.replace(own, returns=own_prices(own, log)), config)
        own = msgspec.structs.replace(own, dataset=str(snapshot.folder))
        drawn = BootstrapConfig(level=config.level, draws=config.draws)
        taken, trades = attribute_trades(own, log, snapshot, drawn)
        own = msgspec.structs.replace(
            own,
            returns=OwnSeries(returns=dict(zip(taken.daily.sessions, taken.daily.total, strict=True))),
            names=own.names or trades.names,
            turnover=own.turnover or trades.turnover,
        )
        return _own_assay(title, config, _judged(own, taken, config, title), taken.notes)


def _explained(own: OwnAccount) -> OwnSeries:
    """Return the account's returns with those of its market, of cash and of factors, as far as they are given."""
    if own.factors is None and own.cash is None:
        return _series(own)
    table = None if own.factors is None else read_factors(own.factors)
    cash = None if table is None else table.cash
    # Returns may be beyond cash already, as those of one side less another are.
    beyond_it = isinstance(own.cash, str) and own.cash == "none"
    if own.cash is not None and not beyond_it:
        cash = read_factors(own.cash, cash=True).cash
    first = None if table is None else next(iter(table.factors.values()))
    if first is not None and own.against is None and table is not None and table.market is not None:
        account = _series(msgspec.structs.replace(own, reading=replace(own.reading, against=None)))
        _refuse_other_days(own, account, table, cash)
        told = tuple(note for note in account.notes if not note.startswith("no market was given"))
        account = replace(account, against=None, notes=told)
        bills = {} if cash is None else beside(table.market, cash)
        whole = {day: value + bills.get(day, 0.0) for day, value in table.market.returns.items()}
        series = with_benchmark(
            account, replace(table.market, returns=whole, notes=("the market is the factors' own",))
        )
    else:
        series = _series(own)
        _refuse_other_days(own, series, table, cash)
    if first is not None and first.year < series.year:
        market = None if series.against is None else OwnSeries(returns=series.against, year=series.year)
        series = compounded(series, first)
        series = series if market is None else with_benchmark(series, market)
    earned = None if cash is None else beside(series, replace(cash, notes=()))
    if beyond_it and series.against is not None:
        # The account's returns are beyond cash as they are, and the market's must be.
        beyond = {day: value - (earned or {}).get(day, 0.0) for day, value in series.against.items()}
        series, earned = replace(series, against=beyond), dict.fromkeys(series.returns, 0.0)
    return replace(
        series,
        cash=earned,
        factors={} if table is None else {name: beside(series, one) for name, one in table.factors.items()},
        notes=(*series.notes, *(() if table is None else table.notes)),
    )


def _refuse_other_days(
    own: OwnAccount, account: OwnSeries, table: FactorTable | None, cash: OwnSeries | None
) -> None:
    """Raise :class:`UserError` if the factors, or cash, lie outside most of the account's days."""
    if table is not None:
        subject = f"'{FRENCH}' is" if own.factors == FRENCH else "the factors are"
        factor = next(iter(table.factors.values()))
        hint = "give factors of the account's days (factors=FILE), or leave them out"
        refuse_other_days(subject, factor.returns, account.returns, hint)
    if cash is not None:
        subject = f"'{FRENCH}' is" if own.cash == FRENCH else "cash is"
        hint = "give what cash earned on the account's days (cash=FILE), or leave it out"
        refuse_other_days(subject, cash.returns, account.returns, hint)


def _series(own: OwnAccount) -> OwnSeries:
    """Return the account's returns with those it is compared with, from its own table or another."""
    given, against, reading = own.returns, own.against, own.reading
    source = Path(given) if isinstance(given, str) else given
    if isinstance(against, str) and not Path(against).is_file():
        columns = columns_of(source)
        if against in MARKETS and against not in columns:
            series = read_series(source, reading, alone=True)
            market = read_market(against, series.returns, None if own.home is None else Path(own.home))
            return with_benchmark(series, market)
        markets = ", ".join(MARKETS)
        kind = ""
        if (folder_of(against) / "manifest.json").is_file():
            kind = "a recorded run"
        elif Path(against).is_dir():
            kind = "a folder"
        if kind and plain_title(against) not in columns:
            hint = f"give the benchmark's file, a column of the table, or a market by name: {markets}"
            raise UserError(f"'{against}' is {kind}, not a benchmark", hint=hint)
        if Path(against).suffix.lower() in _FILES:
            hint = f"give the benchmark's file, a column of the table, or a market by name: {markets}"
            raise UserError(f"no file {against}", hint=hint)
        if plain_title(against) not in columns:
            near = did_you_mean(against, (*columns, *MARKETS), f"columns: {', '.join(sorted(columns))}")
            raise UserError(f"no file, column or market '{against}'", hint=f"{near}; markets: {markets}")
        return read_series(source, replace(reading, against=against))
    series = read_series(source, reading, alone=against is not None)
    if against is None:
        noted = series.against is not None
        return series if noted else replace(series, notes=(*series.notes, offer(series.returns)))
    beside_it = Path(against) if isinstance(against, str) else against
    return with_benchmark(series, read_series(beside_it, replace(reading, column=None), alone=True))


_FILES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xls")
_LEAST_SHARED = 20
ALONE, CONSTANT = "returns alone do not say what was held", "constant, estimated from returns"


def assay_series(series: OwnSeries, config: VerdictConfig, *, agent: str) -> tuple[AgentAssay, tuple[str, ...]]:
    """Return the verdict on returns of which nothing else is known but, perhaps, those of a benchmark; and notes.
    Raises :class:`UserError` when the two share too few days."""
    notes = list(series.notes)
    why = "no benchmark is given"
    if series.against is not None and diagnostics.is_cash(np.array([*series.against.values()]), series.year):
        why = "what it is compared with is cash, which is no market"
        notes.append(why)
        series = replace(series, cash=series.cash or series.against, against=None)
    days = _shared_days(series, notes)
    market = None if series.against is None else np.array([series.against[day] for day in days])
    total = np.array([series.returns[day] for day in days])
    grown = math.prod(1.0 + one for one in series.returns.values()) - 1.0
    whole = grown if series.whole is None else series.whole
    if market is not None and market.std() < 0.02 * total.std():
        raise UserError(
            f"the benchmark hardly moves (by {market.std():.2g} a row, the account by {total.std():.2g})",
            hint="cash is no market: give the returns of what could have been held, or leave the benchmark out",
        )
    cash = np.zeros(total.size) if series.cash is None else np.array([series.cash[day] for day in days])
    known = {} if market is None else series.factors
    factors = {name: np.array([one[day] for day in days]) for name, one in known.items()}
    daily, betas = _rows_of_series(total, market, cash, factors)
    found = _own_findings(
        agent,
        days,
        dataset="",
        method="returns",
        # What rows that are left out changed by less does not show in a return.
        with_all=whole if abs(whole - (math.prod(1.0 + total) - 1.0)) >= 0.001 else None,
        total=not_scored("nothing was played"),
        market=not_scored(why),
        exposures={name: Measure(value=significant(beta), note=CONSTANT) for name, beta in betas.items()},
        luck=LuckEvidence(percentile=not_scored(ALONE), p=None),
        notes=tuple(notes),
        doubts=series.doubts,
    )
    references = {} if market is None else {"the benchmark": market}
    setting = TrialSetting(references=references, sessions=days)
    found = _with_history(with_daily(found, daily, series.year, config, setting), total, days, series.year, config)
    parts = dict(found.parts)
    if not factors:
        parts["style"] = not_scored("no factors are known: style cannot be measured")
        found = msgspec.structs.replace(found, style_variance=None, active_variance=None)
    passive = found.passive
    if passive is not None and found.edge is not None and passive.portfolio != CASH:
        # Beyond the one benchmark there is: that is the edge, and has its interval.
        passive = msgspec.structs.replace(passive, beyond=found.edge.tested)
    if market is None:
        parts = {**parts, "common": not_scored(why), "selection": not_scored(ALONE)}
    found = msgspec.structs.replace(found, parts=parts, styled=1.0 if factors else 0.0, passive=passive)
    return judge(found, config), tuple(notes)


def _shared_days(series: OwnSeries, notes: list[str]) -> tuple[str, ...]:
    """Return the days on which an account and all that it is compared with have a return; notes say the rest."""
    days = tuple(series.returns)
    others = {"its benchmark": series.against, "cash": series.cash, **series.factors}
    for what, other in others.items():
        if other is None:
            continue
        if len(days) < _LEAST_SHARED:
            hint = f"give at least {_LEAST_SHARED}, or leave {what} out"
            raise UserError(f"{len(days)} rows are too few to compare with {what.replace('its', 'a')}", hint=hint)
        shared = tuple(day for day in days if day in other)
        if len(shared) < max(_LEAST_SHARED, 0.5 * len(days)):
            said = f"share {len(shared)} of {len(days)} days"
            hint = "give both for the same days, in the same form"
            if other and (min(other) > min(days) or max(other) < max(days)):
                said += f": {what} is known from {min(other)} to {max(other)}"
                said += f", the account from {min(days)} to {max(days)}"
                hint = f"give {what} for all of these days as a file, or only the rows of the account in between"
            raise UserError(f"the account and {what} {said}", hint=hint)
        if len(shared) < len(days):
            name = what.replace("its", "the")
            notes.append(f"left out because {name} has no return there: {len(days) - len(shared)} rows")
        days = shared
    return days


def _rows_of_series(
    total: Floats, market: Floats | None, cash: Floats, factors: Mapping[str, Floats]
) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return daily parts, and the exposures to factors; interest on what is not in the market counts as market."""
    nothing = np.zeros(total.size)
    common, style, betas = cash, nothing, {}
    rows: dict[str, Floats] = {}
    if market is not None:
        lags = stale_lags(total, market)
        late = lagged(market - cash, lags)
        fit = Regression((total - cash)[lags:], [series[lags:] for series in (*late, *factors.values())])
        common = cash + np.column_stack(late) @ fit.coefficients[1 : 2 + lags]
        betas = dict(zip(factors, fit.coefficients[2 + lags :].tolist(), strict=True))
        each = {f"style.{name}": betas[name] * row for name, row in factors.items()}
        style = np.sum([*each.values()], axis=0) if each else nothing
        rows = {"market": market, **each}
    rows |= {"total": total, "common": common, "style": style, "trading": nothing}
    rows[evidence.EDGE] = rows["selection"] = total - common - style
    return rows, betas


def _judged(own: OwnAccount, taken: Attribution, config: VerdictConfig, agent: str) -> AgentAssay:
    """Return the verdict on an own account that was taken apart."""
    exposures = dict(taken.preferences)
    if taken.method == "returns":
        # Where only returns are known: the constant exposures that explain them best.
        known = taken.daily.exposures
        exposures = {name: Measure(value=values[0], note=CONSTANT) for name, values in known.items() if values}
    luck = LuckEvidence(percentile=not_scored("not asked for"), p=None)
    if config.portfolios and (own.returns is None or own.benchmark is None):
        reason = "returns, a benchmark, the number of names and the turnover are needed for it"
        luck = LuckEvidence(percentile=not_scored(reason), p=None)
    elif config.portfolios:
        drawn = LuckConfig(portfolios=config.portfolios, seed=config.seed)
        luck = evidence.luck_evidence([luck_of_file(own, drawn)])
    found = _own_findings(
        agent,
        taken.daily.sessions,
        dataset=taken.dataset,
        method=taken.method,
        failure=taken.reason,
        total=not_scored(taken.reason or "nothing was played"),
        market=not_scored(taken.reason or "returns of the names are given, and none of a market"),
        exposures=exposures,
        luck=luck,
        biases=() if own.dataset is None else own.opened(own.dataset).facts.biases,
        notes=taken.notes,
        doubts=taken.doubts,
    )
    if taken.linked is not None and taken.daily.sessions:
        daily = evidence.rows_of_seeds([taken])
        found = with_daily(found, daily, taken.year, config, TrialSetting(taken=(taken,)))
        found = _with_history(found, daily["total"], taken.daily.sessions, taken.year, config)
    if own.returns is None:
        unseen = not_scored("weights alone do not say what trading cost")
        found = msgspec.structs.replace(found, parts={**found.parts, "trading": unseen})
    return judge(found, config)


def _own_findings(agent: str, days: Sequence[str], **known: Any) -> AgentFindings:
    """Return findings about an account that no run recorded; ``known`` are their other fields."""
    return AgentFindings(
        cell="own",
        benchmark="",
        agent=agent,
        by_model=False,
        baseline=False,
        seeds=1,
        failed_seeds=0,
        sessions=len(days),
        first=days[0] if days else None,
        last=days[-1] if days else None,
        leaks=LeakEvidence(tested=False),
        failure_rate=not_scored("no run was recorded"),
        ranks=Ranks(of=1, by_return=None, by_selection=None),
        **known,
    )


def _with_history(
    found: AgentFindings, total: Floats, sessions: tuple[str, ...], year: int, config: VerdictConfig
) -> AgentFindings:
    """Return findings with the measures and months that a run's scores have, and an own account lacks."""
    path = growth(total)
    if not sessions or not (path > 0.0).all():
        return found
    drawn = BootstrapConfig(draws=config.draws)
    series = series_from_nav(path, sessions=sessions, periods_per_year=year)
    scored = score(series, bootstrap=drawn, only=OWN_MEASURES)
    return msgspec.structs.replace(
        found,
        measures={name: scored[name] for name in OWN_MEASURES},
        history=history_of(sessions, path.tolist(), year),
    )


def assay(
    what: Run | OwnAccount | Path | str | object,
    config: VerdictConfig | None = None,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    memory: Sequence[MemoryRecord] = (),
    home: Path | str | None = None,
    say: Callable[[str], None] | None = None,
    spread: Spread = HERE,
) -> Assay:
    """Say what a result is made of: skill, luck, style, leaked future or memory.

    ``what`` is a run, a run's folder, a table of returns or weights (a file, or a pandas or polars table; what it
    is compared with is named by an :class:`OwnAccount`), or an :class:`OwnAccount`. ``agents`` keeps some agents
    of a run, ``leaks`` are the leak tests that were made of them, ``memory`` are recall audits and counterfactual
    studies of its models, ``home`` is where data sets are kept, ``say`` is told what is being done, ``spread``
    says where a run's episodes are worked on. Raises :class:`~tradeassay.core.errors.UserError` or
    :class:`~tradeassay.core.errors.RunError` with one line for whatever cannot be read."""
    from tradeassay.runs import Run

    config = config or VerdictConfig()
    if isinstance(what, Path | str):
        path = Path(what)
        if not path.exists():
            raise UserError(f"no run and no table at {path}", hint="give a run's folder, or a Parquet or CSV file")
        what = Run.load(path, home=home) if path.is_dir() else str(path)
    if isinstance(what, Run):
        return assay_run(what, config, agents=agents, leaks=leaks, memory=memory, say=say, spread=spread)
    if not isinstance(what, OwnAccount):
        what = OwnAccount(returns=what, home=None if home is None else str(home))
    return assay_tables(what, config)
