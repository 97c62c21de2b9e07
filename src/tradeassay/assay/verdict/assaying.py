"""One door: a recorded run, its folder, or somebody's own tables in, an assay out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.attribute import RunAttribution, attribute_run
from tradeassay.assay.attribution import Attribution
from tradeassay.assay.luck.luck import luck_of_episode
from tradeassay.assay.own import WEIGHT, OwnAccount, attribute_tables, is_long, luck_of_file
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.evidence import (
    BRIGHT,
    EDGE,
    contrast_of,
    edge_of,
    luck_evidence,
    memory_evidence,
    no_memory,
    rows_of_seeds,
    totals_of,
    variances,
    with_contrast,
)
from tradeassay.assay.verdict.record import (
    AgentAssay,
    AgentFindings,
    Assay,
    Dollars,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    Ranks,
    VerdictConfig,
)
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import BootstrapConfig, foresight, measured_design
from tradeassay.runs.scores import NET_RETURN
from tradeassay.runs.summary.models import calibration_of, journals_of

if TYPE_CHECKING:
    from tradeassay.assay.leaks.records import LeakTestReport
    from tradeassay.runs import AgentScores, Run

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


def assay_run(
    run: Run,
    config: VerdictConfig,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
) -> Assay:
    """Return the assay of a run; ``agents`` keeps only some of them, ``leaks`` are leak tests by agent.

    All agents of a cell count as comparisons, shown or not. The account's own returns are taken apart, whatever
    the run's convention. Raises :class:`UserError` for an agent the run does not have and
    :class:`~tradeassay.core.errors.RunError` while the run is unfinished.
    """
    scores = run.scores.agents
    known = dict.fromkeys(row.agent for row in scores)
    for name in (*agents, *(leaks or ())):
        if name not in known:
            raise UserError(f"no agent '{name}' in {run.folder}", mend=f"it has {', '.join(known)}")
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    taken = attribute_run(run, convention="sound", bootstrap=bootstrap)
    rows = [_row(run, one, taken) for one in scores]
    ranks, contrast = _ranks(rows), contrast_of(run, [row.mask for row in rows], config)
    found = []
    for row in rows:
        if not agents or row.scores.agent in agents:
            made = _findings(run, row, rows, taken, ranks, config, leaks or {})
            found.append(judge(with_contrast(made, contrast, row.mode), config))
    return Assay(
        title=run.spec.slug,
        source="run",
        config=config,
        agents=tuple(found),
        badges={cell: run.cell_badges(cell) for cell in dict.fromkeys(row.scores.cell for row in rows)},
        notes=("the run follows the paper's convention; the account's own returns are judged",)
        if run.manifest.convention == "paper"
        else (),
    )


def _row(run: Run, scores: AgentScores, taken: RunAttribution) -> _Row:
    episode = run.episode(scores.episodes[0])
    sound = [taken.episodes[key] for key in scores.episodes if taken.episodes[key].linked is not None]
    same = bool(sound) and len({one.daily.sessions for one in sound}) == 1 and bool(sound[0].daily.sessions)
    record = run.manifest.protocols.get(scores.cell)
    mask = None if record is None else record.config.get("mask")
    mode = None if record is None else record.config.get("mode")
    return _Row(
        scores=scores,
        sound=tuple(sound),
        daily=rows_of_seeds(sound) if same else None,
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
) -> AgentFindings:
    scores = row.scores
    peers = sum(one.scores.cell == scores.cell and not one.scores.baseline for one in rows)
    reason = _why_nothing(run, row)
    exposures = next(
        one.preferences for one in taken.agents if (one.cell, one.agent) == (scores.cell, scores.agent)
    )
    per_episode = [run.scores.episode(key) for key in scores.episodes]
    plain = AgentFindings(
        cell=scores.cell,
        benchmark=scores.benchmark,
        dataset=scores.dataset,
        agent=scores.agent,
        by_model=row.by_model,
        baseline=scores.baseline,
        seeds=len(row.sound),
        failed_seeds=len(scores.episodes) - len(row.sound),
        sessions=len(row.sound[0].daily.sessions) if row.sound else 0,
        first=row.sound[0].first if row.sound else None,
        last=row.sound[0].last if row.sound else None,
        mask=row.mask,
        failure=reason,
        total=not_scored(reason or "nothing was played"),
        excess=scores.measures["excess_return"].median,
        luck=LuckEvidence(percentile=not_scored(reason or "not asked for"), p=None),
        leaks=_leaks(leaks.get(scores.agent)),
        calibration=calibration_of(run, journals_of(run, scores)) if row.by_model else None,
        failures=_counted([one.failures for one in per_episode]),
        failure_rate=scores.measures["failure_rate"].median,
        rejections=_counted([one.rejections for one in per_episode]),
        dollars=_dollars(scores),
        ranks=ranks[scores.cell, scores.agent],
        notes=tuple(dict.fromkeys(note for one in row.sound for note in one.notes)),
    )
    if row.daily is None:
        return plain
    measured = with_daily(plain, row.daily, row.year, config, max(1, peers))
    return msgspec.structs.replace(
        measured,
        exposures=exposures,
        luck=_luck(run, scores, config),
        memory=_memory(row, rows, config, max(1, peers)),
    )


def with_daily(
    found: AgentFindings, daily: Mapping[str, Floats], year: int, config: VerdictConfig, comparisons: int
) -> AgentFindings:
    """Return findings with everything that follows from daily parts: totals, edge, variances, power."""
    totals = totals_of(daily, year, BootstrapConfig(level=config.level, draws=config.draws))
    style, active = variances(daily)
    edge = edge_of(daily, year, config, comparisons)
    power, could_not = _power(daily[EDGE], year, config, edge.comparisons)
    return msgspec.structs.replace(
        found,
        failure=found.failure or totals.reason,
        total=totals.intervals["total"],
        parts={name: measure for name, measure in totals.intervals.items() if name != "total"},
        per_year=totals.per_year,
        style_variance=style,
        active_variance=active,
        edge=edge,
        power=power,
        could_not=could_not,
    )


def _power(edge: Floats, year: int, config: VerdictConfig, comparisons: int) -> tuple[str, bool]:
    if edge.size < config.least:
        return f"{edge.size} sessions are too few for any test: at least {config.least} are needed", True
    design = measured_design(edge, level=config.level, comparisons=comparisons, periods_per_year=year)
    seen = foresight(design, ir=config.skilled)
    return seen.sentence, seen.hopeless


def _why_nothing(run: Run, row: _Row) -> str | None:
    if row.daily is not None:
        return None
    if row.sound:
        return "the seeds ended in different sessions"
    every = [run.series(key) for key in row.scores.episodes]
    reasons = dict.fromkeys(
        one.failure or (f"everything was lost by {one.ruined}" if one.ruined else "") for one in every
    )
    return "; ".join(filter(None, reasons)) or "no episode has a result"


def _leaks(report: LeakTestReport | None) -> LeakEvidence:
    if report is None:
        return LeakEvidence(tested=False)
    found = dict.fromkeys(finding.channel or finding.kind for finding in report.findings)
    tested_well = report.leaks or (report.repeatable and report.decisions_with_orders > 0)
    return LeakEvidence(tested=tested_well, findings=tuple(found), sentence=report.sentence)


def _luck(run: Run, scores: AgentScores, config: VerdictConfig) -> LuckEvidence:
    if config.portfolios == 0:
        return LuckEvidence(percentile=not_scored("not asked for"), p=None)
    each = [luck_of_episode(run, key, portfolios=config.portfolios, seed=config.seed) for key in scores.episodes]
    return luck_evidence(each)


def _memory(row: _Row, rows: Sequence[_Row], config: VerdictConfig, comparisons: int) -> MemoryEvidence | None:
    """Return the contrast with the same agent's masked cell; None where no model played unmasked."""
    if not row.by_model or row.mask not in (None, BRIGHT):
        return None
    twins = [
        one
        for mask in _MASKS
        for one in rows
        if one.mask == mask and one.scores.agent == row.scores.agent and _same_but_mask(one, row)
    ]
    if not twins:
        return no_memory("it was not run under a mask")
    twin = twins[0]
    if row.daily is None or twin.daily is None or twin.daily["total"].size != row.daily["total"].size:
        return no_memory("the masked run has no result over the same sessions")
    return memory_evidence(
        row.daily, twin.daily, row.year, config, against=str(twin.mask), comparisons=comparisons
    )


def _same_but_mask(one: _Row, other: _Row) -> bool:
    """Return whether two cells differ in the mask only: same benchmark, data and window, no control arm."""
    if (one.scores.benchmark, one.scores.dataset) != (other.scores.benchmark, other.scores.dataset):
        return False
    if not one.sound or not other.sound:
        return _bare(one.scores.cell) == _bare(other.scores.cell)
    return one.sound[0].daily.sessions == other.sound[0].daily.sessions and _bare(one.scores.cell) == _bare(
        other.scores.cell
    )


def _bare(cell: str) -> tuple[str, ...]:
    """Return a cell's name without its mask."""
    return tuple(part for part in cell.replace("__", "+").split("+") if not part.startswith("mask="))


def _dollars(scores: AgentScores) -> Dollars | None:
    spent = scores.inference
    if isinstance(spent, msgspec.UnsetType):
        return None
    net = scores.measures.get(NET_RETURN)
    return Dollars(
        usd=spent.usd,
        calls=spent.calls,
        tokens=spent.input_tokens + spent.output_tokens,
        net_return=not_scored("no model played") if net is None else net.median,
    )


def _counted(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            found[name] = found.get(name, 0) + count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _ranks(rows: Sequence[_Row]) -> dict[tuple[str, str], Ranks]:
    found = {}
    for cell in dict.fromkeys(row.scores.cell for row in rows):
        inside = [row for row in rows if row.scores.cell == cell]
        columns = (
            [row.scores.measures["cumulative_return"].median for row in inside],
            [row.scores.measures["excess_return"].median for row in inside],
            [_selection(row) for row in inside],
        )
        of = sum(row.daily is not None for row in inside)
        places = [_places(column) for column in columns]
        for k, row in enumerate(inside):
            found[cell, row.scores.agent] = Ranks(
                of=of, by_return=places[0][k], by_excess=places[1][k], by_selection=places[2][k]
            )
    return found


def _selection(row: _Row) -> Measure:
    if row.daily is None:
        return not_scored("no result")
    return Measure(value=float(np.mean(row.daily["selection"])), n=row.daily["selection"].size)


def _places(measures: Sequence[Measure]) -> list[int | None]:
    values = [measure.value for measure in measures]
    return [
        None if value is None else 1 + sum(other is not None and other > value for other in values)
        for value in values
    ]


NO_RUN = "no run was recorded"


def assay_tables(own: OwnAccount, config: VerdictConfig) -> Assay:
    """Return the assay of an own account. Raises :class:`UserError` with one line for what does not fit."""
    own = _sorted_out(own)
    path = own.returns or own.weights
    if path is None:
        raise UserError("no table is given", mend="give weights.parquet, returns.parquet, or both")
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    taken = attribute_tables(own, bootstrap=bootstrap)
    title = own.title or Path(path).stem
    judged = assay_attribution(taken, config, agent=title, year=taken.year, luck=_own_luck(own, config))
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


def _own_luck(own: OwnAccount, config: VerdictConfig) -> LuckEvidence:
    if config.portfolios == 0:
        return LuckEvidence(percentile=not_scored("not asked for"), p=None)
    if own.returns is None or own.benchmark is None or own.names is None or own.turnover is None:
        reason = "returns, a benchmark, the number of names and the turnover are needed for it"
        return LuckEvidence(percentile=not_scored(reason), p=None)
    return luck_evidence([luck_of_file(own, portfolios=config.portfolios, seed=config.seed)])


def assay(
    what: Run | OwnAccount | Path | str,
    config: VerdictConfig | None = None,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    home: Path | str | None = None,
) -> Assay:
    """Say what a result is made of: skill, luck, style, leaked future or memory.

    ``what`` is a run, a run's folder, a table of returns or weights (its data set must be named: use
    :class:`OwnAccount`), or an :class:`OwnAccount`. ``agents`` keeps some agents of a run, ``leaks`` are the leak
    tests that were made of them, ``home`` is where data sets are kept. Raises
    :class:`~tradeassay.core.errors.UserError` or :class:`~tradeassay.core.errors.RunError` with one line for
    whatever cannot be read.
    """
    config = config or VerdictConfig()
    if isinstance(what, OwnAccount):
        return assay_tables(what, config)
    from tradeassay.runs import Run

    if isinstance(what, Run):
        return assay_run(what, config, agents=agents, leaks=leaks)
    path = Path(what)
    if path.is_dir():
        return assay_run(Run.load(path, home=home), config, agents=agents, leaks=leaks)
    if path.is_file():
        return assay_tables(OwnAccount(returns=str(path), home=None if home is None else str(home)), config)
    raise UserError(f"no run and no table at {path}", mend="give a run's folder, or a Parquet or CSV file")
