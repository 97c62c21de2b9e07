"""From journals to scores. Reads only what is recorded and the hashed data; asks no agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.account import venues
from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.hashing import sha256_file, sha256_of
from tradeassay.core.measure import Measure
from tradeassay.core.view import Floats
from tradeassay.data import AsOfView, Snapshot
from tradeassay.metrics import (
    AgainstBaseline,
    EpisodeSeries,
    across_seeds,
    compare_to_baseline,
    holm,
    nothing_to_compare,
    score,
    summarise,
)
from tradeassay.play import holdings_from_records as holdings_from_records
from tradeassay.play import series_from_records
from tradeassay.play.journal import read_records
from tradeassay.runs.play.worker_tasks import Scored, ScoreTask
from tradeassay.runs.score.paper_scores import PAPER_OWN, paper_measures
from tradeassay.runs.score.scores import NET_RETURN, AgentScores, EpisodeScores, Scores, inference_of, net_return
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.outcome import Outcome, read_outcome
from tradeassay.runs.store.snapshots import snapshot_for

PRICE_INDEX = "the index is a price index: dividends are not in it"


def score_agent(task: ScoreTask) -> Scored:
    """Score one agent's repetitions and compare them with the baseline of their cell."""
    folder = RunFolder(Path(task.folder))
    snapshot = snapshot_for(task.baseline.dataset, task.home, task.data_sha256)
    outcomes = [ended(folder, episode) for episode in task.episodes]
    series = [
        _series_once(folder, episode, outcome, task.benchmark, snapshot)
        for episode, outcome in zip(task.episodes, outcomes, strict=True)
    ]
    scores = [score(one, bootstrap=task.bootstrap) for one in series]
    summaries = across_seeds(series, scores, bootstrap=task.bootstrap)
    if task.benchmark.protocol == "ktdfin":
        for episode, one, measures in zip(task.episodes, series, scores, strict=True):
            records = tuple(read_records(folder.events(episode.key)))
            measures |= paper_measures(task.benchmark, records, one, snapshot, task.bootstrap)
        own = (name for name in scores[0] if name not in summaries or name in PAPER_OWN)
        summaries |= {name: summarise([measures[name] for measures in scores if name in measures]) for name in own}
    first = task.episodes[0]
    if first.by_model:
        currency = venues.get(task.benchmark.market.venue).currency
        for one, outcome, measures in zip(series, outcomes, scores, strict=True):
            measures[NET_RETURN] = net_return(one, outcome, currency)
        summaries[NET_RETURN] = summarise([measures[NET_RETURN] for measures in scores])
    itself = first.agent == task.baseline.agent
    agent = AgentScores(
        cell=first.cell,
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=itself,
        added=first.added,
        episodes=tuple(episode.key for episode in task.episodes),
        failed=sum(one.failure is not None for one in series),
        measures=summaries,
        versus_baseline=None if itself else _versus(task, folder, snapshot, series),
        inference=inference_of(outcomes) or msgspec.UNSET,
    )
    rows = zip(task.episodes, outcomes, series, scores, strict=True)
    return Scored(episodes=tuple(_episode(*row) for row in rows), agent=agent)


def gather(work_sha256: str, episodes: Sequence[EpisodeSpec], scored: Iterable[Scored]) -> Scores:
    """Put the parts together in the order of the spec, and correct for the number of agents compared."""
    by_key: dict[str, EpisodeScores] = {}
    agents: dict[tuple[str, str], AgentScores] = {}
    for part in scored:
        by_key |= {episode.key: episode for episode in part.episodes}
        agents[part.agent.cell, part.agent.agent] = part.agent
    rows = dict.fromkeys((episode.cell, episode.label) for episode in episodes)
    ordered = [agents[row] for row in rows]
    for cell in dict.fromkeys(agent.cell for agent in ordered):
        places = [place for place, agent in enumerate(ordered) if agent.cell == cell]
        raw = [_p_value(ordered[place].versus_baseline) for place in places]
        for place, adjusted in zip(places, holm(raw), strict=True):
            ordered[place] = msgspec.structs.replace(ordered[place], p_adjusted=adjusted)
    return Scores(
        work_sha256=work_sha256,
        episodes=tuple(by_key[episode.key] for episode in episodes),
        agents=tuple(ordered),
    )


def ended(folder: RunFolder, episode: EpisodeSpec) -> Outcome:
    """Return how an episode ended; raises :class:`RunError` when it has not."""
    outcome = read_outcome(folder.outcome(episode.key))
    if outcome is None:
        raise RunError(f"episode {episode.key} has not ended", hint=f"tradeassay resume {folder.path}")
    return outcome


def series_of(
    folder: RunFolder, episode: EpisodeSpec, outcome: Outcome, benchmark: Benchmark, snapshot: Snapshot
) -> EpisodeSeries:
    """Replay an episode's journal into its series."""
    records = tuple(read_records(folder.events(episode.key)))
    index = yardstick(snapshot, benchmark.index, tuple(record.session for record in records))
    return series_from_records(
        records,
        periods_per_year=benchmark.periods_per_year,
        index=index.levels,
        index_note=index.note,
        failure=outcome.error if outcome.status == "failed" else None,
    )


_SERIES: dict[tuple[str, str], EpisodeSeries] = {}


def _series_once(
    folder: RunFolder, episode: EpisodeSpec, outcome: Outcome, benchmark: Benchmark, snapshot: Snapshot
) -> EpisodeSeries:
    """Return an episode's series, a baseline's from memory: every agent of its cell is compared with it.

    It is known by the journal as it is now, and by everything else that it is made of.
    """
    journal = folder.events(episode.key)
    if not episode.baseline or not journal.is_file():
        return series_of(folder, episode, outcome, benchmark, snapshot)
    made_of = sha256_of((outcome, benchmark.index, benchmark.periods_per_year, snapshot.sha256))
    key = (sha256_file(journal), made_of)
    if key not in _SERIES:
        while len(_SERIES) >= 4:
            _SERIES.pop(next(iter(_SERIES)))
        _SERIES[key] = series_of(folder, episode, outcome, benchmark, snapshot)
    return _SERIES[key]


def _episode(
    episode: EpisodeSpec, outcome: Outcome, series: EpisodeSeries, measures: dict[str, Measure]
) -> EpisodeScores:
    return EpisodeScores(
        key=episode.key,
        cell=episode.cell,
        benchmark=episode.benchmark,
        dataset=episode.dataset,
        agent=episode.label,
        seed=episode.seed,
        baseline=episode.baseline,
        status="done" if series.failure is None else "failed",
        reason=series.failure,
        steps=outcome.steps,
        events_sha256=outcome.events_sha256,
        measures=measures,
        rejections=dict(series.rejections),
        failures=dict(series.failures),
        inference=inference_of([outcome]) or msgspec.UNSET,
    )


def _versus(
    task: ScoreTask, folder: RunFolder, snapshot: Snapshot, series: Sequence[EpisodeSeries]
) -> AgainstBaseline:
    label = task.baseline.label
    base = _series_once(folder, task.baseline, ended(folder, task.baseline), task.benchmark, snapshot)
    if base.failure is not None:
        return nothing_to_compare(label, f"the baseline failed ({base.failure})")
    sound = [one for one in series if one.failure is None]
    if not sound:
        return nothing_to_compare(label, str(series[0].failure))
    if any(one.sessions != base.sessions for one in sound):
        return nothing_to_compare(label, "the sessions differ")
    return compare_to_baseline(
        np.stack([one.nav for one in sound]),
        base.nav,
        periods_per_year=task.benchmark.periods_per_year,
        baseline=label,
        bootstrap=task.bootstrap,
        inference=task.benchmark.inference,
    )


def _p_value(comparison: AgainstBaseline | None) -> float | None:
    return None if comparison is None else comparison.p_value


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Levels at the close before the first session and at each of them; None when there are none to compare with.

    ``note`` says what they leave out although an account's value includes it.
    """

    levels: Floats | None
    note: str | None = None


def yardstick(snapshot: Snapshot, index: str | None, sessions: tuple[str, ...]) -> Yardstick:
    """Return what holding an index over ``sessions`` would have given.

    An account collects dividends, so the fair yardstick is the index fund with dividends reinvested. Where
    no fund of the index has a price throughout it is the index itself, with a note if missing dividends make it
    easier to beat than it looks. Read at the end of the window: nothing here reaches an agent. No levels without
    an index, without sessions, when the data does not have that index, or when it does not begin before the first
    session.
    """
    if index is None or not sessions:
        return Yardstick(None)
    rows = snapshot.rows(sessions[0], sessions[-1])
    if rows.start == 0 or len(rows) != len(sessions):
        return Yardstick(None)
    view = snapshot.at(rows.stop - 1, "close")
    fund = _fund_levels(view, index, len(rows) + 1)
    if fund is not None:
        return Yardstick(fund)
    try:
        levels = view.index_levels(index, len(rows) + 1)
    except DataError:
        return Yardstick(None)
    dividends = snapshot.facts.adjusted == "total" or _any_dividend(view)
    return Yardstick(np.array(levels, dtype=np.float64), PRICE_INDEX if dividends else None)


def _fund_levels(view: AsOfView, index: str, count: int) -> Floats | None:
    """Return the closes of the index's fund with dividends reinvested; None without a fund that has them all."""
    for column, instrument in enumerate(view.instruments):
        if not instrument.tracks(index):
            continue
        levels = np.array(view.bars("close", count, adjust="total")[:, column], dtype=np.float64)
        if (levels > 0).all():
            return levels
    return None


def _any_dividend(view: AsOfView) -> bool:
    return any(action.kind == "dividend" for action in view.actions(np.iinfo(np.int64).min))
