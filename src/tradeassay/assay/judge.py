"""One door: a recorded run, its folder, or somebody's own tables in, an assay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.agents import files_open
from tradeassay.agents.own_file import CLOSED
from tradeassay.assay import run_evidence
from tradeassay.assay.attribute import RunAttribution, attribute_run
from tradeassay.assay.judge_tables import assay_tables
from tradeassay.assay.luck.luck import Luck, LuckConfig, luck_of_episode
from tradeassay.assay.verdict import diagnostics, evidence
from tradeassay.assay.verdict.attribution import Attribution
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.own_account import OwnAccount
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
from tradeassay.assay.verdict.returns import (
    WATCHED,
    TrialSetting,
    with_daily,
)
from tradeassay.core.errors import UserError
from tradeassay.core.executors import HERE, Spread
from tradeassay.core.measure import not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import (
    BootstrapConfig,
)
from tradeassay.metrics.ranks import places
from tradeassay.runs.score import NET_RETURN
from tradeassay.runs.store.run import shown_title
from tradeassay.runs.summary.figures import setting_words
from tradeassay.runs.summary.models import calibration_of, journals_of

if TYPE_CHECKING:
    from tradeassay.assay.leaks.leak_result import LeakTestReport
    from tradeassay.assay.memory import MemoryRecord
    from tradeassay.runs import AgentScores, AgentSpec, Run

PAPER = "the run follows the paper's convention; the account's own returns are judged"
FILES_SHUT = "files and network were shut to its program while it played, by the kernel: it saw the view alone"
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
        tried = {place: run_evidence.tried_elsewhere(run, *place) for place in dict.fromkeys(where)}
        rows = [replace(row, tried=tried[place]) for row, place in zip(rows, where, strict=True)]
    shown = [row for row in rows if not agents or row.scores.agent in agents]
    ranks, contrast = _ranks(rows), run_evidence.contrast_of(run, [row.mask for row in rows], config)
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
        made = run_evidence.with_contrast(made, contrast, row.mode)
        made = run_evidence.with_recall(made, run, scores=row.scores, mask=row.mask, records=memory)
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
        daily=run_evidence.rows_of_seeds(sound) if same else None,
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
    place = plain.luck
    if config.portfolios:
        place = run_evidence.luck_evidence([luck[key] for key in scores.episodes])
    return msgspec.structs.replace(
        measured,
        total=total,
        exposures=next(one.preferences for one in taken.agents if scores.episodes[0] in one.episodes),
        luck=place,
        memory=_memory(row, rows, config, measured.edge.comparisons),
        biases=run.cell_badges(scores.cell).biases,
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
