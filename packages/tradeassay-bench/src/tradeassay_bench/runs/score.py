"""Compute ``scores.json`` from journals: every number with its interval, or null and the reason.

Only the record and the hashed data are read, and no agent is queried. The file depends only on the
spec (without its name), the data and the journals. It contains no time, no path and no machine
name. Scoring the same run again on the same machine gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UNDECODABLE, DataError
from tradeassay.core.hashing import canonical_json, sha256_file, sha256_of
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import (
    AgainstBaseline,
    BootstrapConfig,
    EpisodeSeries,
    SeedSummary,
    across_seeds,
    compare_to_baseline,
    corrected,
    nothing_to_compare,
    score,
    significant,
    summarise,
)
from tradeassay.metrics.ranks import unranked
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks import Benchmark, ktdfin
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import Snapshot
from tradeassay_bench.play import series_from_records
from tradeassay_bench.play.dialogue_log import total
from tradeassay_bench.play.journal import read_records
from tradeassay_bench.runs.spec.episode import EpisodeSpec
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import snapshot_for
from tradeassay_bench.runs.store.outcome import Outcome, Status, read_outcome

S = TypeVar("S", bound=msgspec.Struct)
SCORES_FORMAT = 1
NET_RETURN = "return_net_of_inference"
"""(Last value - dollars spent on answers) / initial value - 1."""
PRICE_INDEX = "the index is a price index: dividends are not in it"
PAPER_OWN = tuple(
    "turnover hhi cash_ratio abstention_rate parse_failure_rate ece tool_validity_rate brier "
    "excess_return".split()
)
"""Measures for which KTD-Fin's paper has different definitions."""


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """The inference cost of a model: calls, tokens and dollars, in total and per decision.

    ``usd`` is None if a price is unknown.
    """

    calls: int
    decisions: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    calls_per_decision: float | None
    tokens_per_decision: float | None
    usd_per_decision: float | None

    @property
    def unstated(self) -> bool:
        """Return whether the agent stated neither tokens nor dollars, as some programs do."""
        return self.usd is None and not (self.input_tokens or self.output_tokens)


class EpisodeScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one episode.

    ``reason`` states why a failed episode has no result; None for a finished episode. ``measures``
    maps names of measures to values. ``inference`` is the cost of a model's answers.
    """

    key: str
    setting: str = msgspec.field(name="cell")
    benchmark: str
    dataset: str
    agent: str
    seed: int
    baseline: bool
    status: Status
    reason: str | None
    steps: int
    events_sha256: str
    measures: dict[str, Measure]
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    inference: Inference | msgspec.UnsetType = msgspec.UNSET


class AgentScores(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one setting, over its seeds: a row of the leaderboard.

    ``versus_baseline`` is None for the baseline itself. It is corrected for the number of agents
    compared in the setting. ``added`` marks a baseline that the spec did not contain.
    """

    setting: str = msgspec.field(name="cell")
    benchmark: str
    dataset: str
    agent: str
    baseline: bool
    added: bool
    episodes: tuple[str, ...]
    failed: int
    measures: dict[str, SeedSummary]
    versus_baseline: AgainstBaseline | None
    inference: Inference | msgspec.UnsetType = msgspec.UNSET

    @property
    def unranked(self) -> str | None:
        """Return the reason why an agent is not ranked; None for a ranked agent and a baseline.

        An agent is not ranked if the share of sessions without a usable answer, as the median over
        seeds, is too large.
        """
        rate = self.measures.get("failure_rate")
        return None if self.baseline or rate is None else unranked(rate.median.value)


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a run. ``episodes`` and ``agents`` are in the order of the spec."""

    format: int = SCORES_FORMAT
    work_sha256: str
    episodes: tuple[EpisodeScores, ...]
    agents: tuple[AgentScores, ...]

    def episode(self, key: str) -> EpisodeScores:
        """Return one episode's scores. Raises :class:`RunError` if the key is unknown."""
        for episode in self.episodes:
            if episode.key == key:
                return episode
        raise RunError(f"no episode '{key}' in the scores", hint="see run.episodes for the keys")


def encode_scores(scores: Scores) -> bytes:
    """Return scores as the bytes of their file."""
    return msgspec.json.format(canonical_json(scores), indent=1) + b"\n"


def read_scores(path: Path, kind: type[S]) -> S:
    """Return the content of ``scores.json`` as ``kind``.

    Raises :class:`RunError` if the file is missing or damaged.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise RunError(
            f"{path.parent} has no scores yet", hint=f"tradeassay resume {path.parent}"
        ) from None
    except UNDECODABLE as error:
        raise RunError(
            f"{path} is damaged: {error}", hint="delete it and resume: it will be recomputed"
        ) from error


class ScoreTask(msgspec.Struct, frozen=True, kw_only=True, tag="score"):
    """A task to score an agent's episodes in one setting and compare them with the baseline.

    ``episodes`` has one episode per seed.
    """

    folder: str
    home: str | None
    episodes: tuple[EpisodeSpec, ...]
    baseline: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str
    bootstrap: BootstrapConfig


class Scored(msgspec.Struct, frozen=True, kw_only=True, tag="scored"):
    """The scores of one agent in one setting."""

    episodes: tuple[EpisodeScores, ...]
    agent: AgentScores


def score_agent(task: ScoreTask) -> Scored:
    """Return the scores of an agent's episodes in one setting, compared with the baseline."""
    folder = RunFolder(Path(task.folder))
    snapshot = snapshot_for(task.baseline.dataset, task.home, task.data_sha256)
    outcomes = [require_outcome(folder, episode) for episode in task.episodes]
    played = list(zip(task.episodes, outcomes, strict=True))
    series = [
        _cached_series(folder, episode, outcome, task.benchmark, snapshot)
        for episode, outcome in played
    ]
    scores = [score(episode_series, bootstrap=task.bootstrap) for episode_series in series]
    summaries = across_seeds(series, scores, bootstrap=task.bootstrap)
    first = task.episodes[0]
    if task.benchmark.protocol == "ktdfin":
        # The paper's definitions replace the catalogue's definitions. Under the convention
        # ``paper`` this includes turnover, concentration and abstention.
        for episode, episode_series, measures in zip(task.episodes, series, scores, strict=True):
            records = tuple(read_records(folder.events(episode.key)))
            orders = ktdfin.order_outcomes(records, snapshot)
            panel = ktdfin.ktdfin_panel(
                records,
                episode_series,
                orders,
                convention=task.benchmark.convention,
                bootstrap=task.bootstrap,
            )
            measures |= {name: panel[name] for name in PAPER_OWN if name in panel}
        paper_names = [name for name in scores[0] if name not in summaries or name in PAPER_OWN]
        for name in paper_names:
            summaries[name] = summarise([measures[name] for measures in scores if name in measures])
    if first.by_model:
        currency = venues.get(task.benchmark.market.venue).currency
        for episode_series, outcome, measures in zip(series, outcomes, scores, strict=True):
            measures[NET_RETURN] = net_return(episode_series, outcome, currency)
        summaries[NET_RETURN] = summarise([measures[NET_RETURN] for measures in scores])
    is_baseline = first.agent == task.baseline.agent
    agent = AgentScores(
        setting=first.setting,
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=is_baseline,
        added=first.added,
        episodes=tuple(episode.key for episode in task.episodes),
        failed=sum(episode_series.failure is not None for episode_series in series),
        measures=summaries,
        versus_baseline=None if is_baseline else _versus(task, folder, snapshot, series),
        inference=inference_of(outcomes) or msgspec.UNSET,
    )
    rows = tuple(
        EpisodeScores(
            key=episode.key,
            setting=episode.setting,
            benchmark=episode.benchmark,
            dataset=episode.dataset,
            agent=episode.label,
            seed=episode.seed,
            baseline=episode.baseline,
            status="done" if episode_series.failure is None else "failed",
            reason=episode_series.failure,
            steps=outcome.steps,
            events_sha256=outcome.events_sha256,
            measures=measures,
            rejections=dict(episode_series.rejections),
            failures=dict(episode_series.failures),
            inference=inference_of([outcome]) or msgspec.UNSET,
        )
        for (episode, outcome), episode_series, measures in zip(played, series, scores, strict=True)
    )
    return Scored(episodes=rows, agent=agent)


class GatherTask(msgspec.Struct, frozen=True, kw_only=True, tag="gather"):
    """A task to combine the scored agents of a run.

    It runs in a worker process, because the correction of intervals imports scipy, which takes
    longer than the other steps of a short run. ``level`` is the confidence level.
    """

    work_sha256: str
    episodes: tuple[EpisodeSpec, ...]
    parts: tuple[Scored, ...]
    level: float


def gather(
    work_sha256: str,
    episodes: Sequence[EpisodeSpec],
    scored: Iterable[Scored],
    *,
    level: float = 0.95,
) -> Scores:
    """Return all scores in the order of the spec.

    The comparisons with the baseline are corrected for the number of agents in their setting.
    ``level`` is the confidence level.
    """
    by_key: dict[str, EpisodeScores] = {}
    agents: dict[tuple[str, str], AgentScores] = {}
    for part in scored:
        by_key |= {episode.key: episode for episode in part.episodes}
        agents[part.agent.setting, part.agent.agent] = part.agent
    rows = dict.fromkeys((episode.setting, episode.label) for episode in episodes)
    ordered = [agents[row] for row in rows]
    for setting in dict.fromkeys(agent.setting for agent in ordered):
        indices = [index for index, agent in enumerate(ordered) if agent.setting == setting]
        comparisons = corrected([ordered[index].versus_baseline for index in indices], level)
        for index, comparison in zip(indices, comparisons, strict=True):
            ordered[index] = msgspec.structs.replace(ordered[index], versus_baseline=comparison)
    return Scores(
        work_sha256=work_sha256,
        episodes=tuple(by_key[episode.key] for episode in episodes),
        agents=tuple(ordered),
    )


def require_outcome(folder: RunFolder, episode: EpisodeSpec) -> Outcome:
    """Return the outcome of an episode. Raises :class:`RunError` if it has not ended."""
    outcome = read_outcome(folder.outcome(episode.key))
    if outcome is None:
        raise RunError(
            f"episode {episode.key} has not ended", hint=f"tradeassay resume {folder.path}"
        )
    return outcome


def series_of(
    folder: RunFolder,
    episode: EpisodeSpec,
    outcome: Outcome,
    benchmark: Benchmark,
    snapshot: Snapshot,
) -> EpisodeSeries:
    """Return the daily series of an episode, with the levels of the benchmark's index."""
    records = tuple(read_records(folder.events(episode.key)))
    as_in_paper = benchmark.convention == "paper" and benchmark.protocol == "ktdfin"
    index = index_levels(
        snapshot,
        benchmark.index,
        tuple(record.session for record in records),
        as_in_paper=as_in_paper,
    )
    return series_from_records(
        records,
        periods_per_year=benchmark.periods_per_year,
        index=index.levels,
        index_note=index.note,
        failure=outcome.error if outcome.status == "failed" else None,
    )


_SERIES: dict[tuple[str, str], EpisodeSeries] = {}


def _cached_series(
    folder: RunFolder,
    episode: EpisodeSpec,
    outcome: Outcome,
    benchmark: Benchmark,
    snapshot: Snapshot,
) -> EpisodeSeries:
    """Return an episode's series.

    The series of a baseline is cached, because all agents of a setting need it. The key of the
    cache is a hash of the journal and all other inputs of the series.
    """
    journal = folder.events(episode.key)
    if not episode.baseline or not journal.is_file():
        return series_of(folder, episode, outcome, benchmark, snapshot)
    rules = (benchmark.protocol, benchmark.convention, benchmark.index, benchmark.periods_per_year)
    key = (sha256_file(journal), sha256_of((outcome, rules, snapshot.sha256)))
    if key not in _SERIES:
        while len(_SERIES) >= 4:
            _SERIES.pop(next(iter(_SERIES)))
        _SERIES[key] = series_of(folder, episode, outcome, benchmark, snapshot)
    return _SERIES[key]


def _versus(
    task: ScoreTask, folder: RunFolder, snapshot: Snapshot, series: Sequence[EpisodeSeries]
) -> AgainstBaseline:
    """Return the comparison of an agent's episodes with the baseline.

    Failed episodes are left out. If nothing can be compared, the result contains the reason.
    """
    label = task.baseline.label
    base = _cached_series(
        folder, task.baseline, require_outcome(folder, task.baseline), task.benchmark, snapshot
    )
    if base.failure is not None:
        return nothing_to_compare(label, f"the baseline failed ({base.failure})")
    complete = [episode_series for episode_series in series if episode_series.failure is None]
    if not complete:
        return nothing_to_compare(label, str(series[0].failure))
    if any(episode_series.sessions != base.sessions for episode_series in complete):
        return nothing_to_compare(label, "the sessions differ")
    return compare_to_baseline(
        np.stack([episode_series.nav for episode_series in complete]),
        base.nav,
        periods_per_year=task.benchmark.periods_per_year,
        baseline=label,
        bootstrap=task.bootstrap,
    )


class IndexLevels(NamedTuple):
    """The levels of an index at the close before the first session and at each session.

    ``levels`` is None if no levels are known. ``note`` states the part of an account's value that
    the levels omit, for example dividends; None if they omit nothing.
    """

    levels: Floats | None
    note: str | None = None


def index_levels(
    snapshot: Snapshot, index: str | None, sessions: tuple[str, ...], *, as_in_paper: bool = False
) -> IndexLevels:
    """Return the value of holding an index over ``sessions``.

    An account receives dividends, so the fair comparison is an index fund with dividends
    reinvested. If no fund has a price at every session, the index itself is used. A note is added
    if missing dividends make the index easier to beat.

    The levels are None if ``index`` is None, if there are no sessions, if the data does not contain
    the index, or if the data begins with the first session. ``as_in_paper`` selects the convention
    of KTD-Fin's paper: the index itself, from the first close of the window. The levels include
    prices of the whole window and never reach an agent.
    """
    if index is None or not sessions:
        return IndexLevels(None)
    rows = snapshot.rows(sessions[0], sessions[-1])
    if rows.start == 0 or len(rows) != len(sessions):
        return IndexLevels(None)
    view = snapshot.at(rows.stop - 1, "close")
    for column, instrument in enumerate(() if as_in_paper else view.instruments):
        if instrument.tracks(index):
            fund = np.array(
                view.bars("close", len(rows) + 1, adjust="total")[:, column], dtype=np.float64
            )
            if (fund > 0).all():
                return IndexLevels(fund)
    try:
        levels = view.index_levels(index, len(rows) + 1)
    except DataError:
        return IndexLevels(None)
    if as_in_paper:
        return IndexLevels(np.array([levels[1], *levels[1:]], dtype=np.float64), PRICE_INDEX)
    known = view.actions(np.iinfo(np.int64).min)
    dividends = snapshot.facts.adjusted == "total" or any(
        action.kind == "dividend" for action in known
    )
    return IndexLevels(np.array(levels, dtype=np.float64), PRICE_INDEX if dividends else None)


def inference_of(outcomes: Sequence[Outcome]) -> Inference | None:
    """Return the inference cost of one agent's episodes; None without a model."""
    priced = [outcome for outcome in outcomes if outcome.spending is not None]
    if not priced:
        return None
    decisions = sum(outcome.steps for outcome in priced)

    def per_decision(amount: float | None) -> float | None:
        return significant(amount / decisions) if decisions and amount is not None else None

    spent = total(outcome.spending for outcome in priced if outcome.spending is not None)
    usd = spent.known_usd
    return Inference(
        calls=spent.calls,
        decisions=decisions,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        usd=None if usd is None else significant(usd),
        calls_per_decision=per_decision(spent.calls),
        tokens_per_decision=per_decision(spent.tokens),
        usd_per_decision=per_decision(usd),
    )


def net_return(series: EpisodeSeries, outcome: Outcome, currency: str) -> Measure:
    """Return an account's return net of the cost of its model's answers, or why it is unknown.

    The cost is subtracted from the final value of the account. An account in a currency other than
    dollars would need an exchange rate, which the data does not contain.
    """
    if series.failure is not None:
        return not_scored(str(series.failure))
    spent = outcome.spending
    if spent is None or not len(series.sessions) or not series.nav[0] > 0:
        return not_scored("no model played" if spent is None else "there is no return")
    usd = spent.known_usd
    if usd is None and not spent.tokens:
        return not_scored("the agent does not say what its answers cost")
    if usd is None:
        return not_scored(f"the price of {spent.unpriced} of {spent.calls} answers is unknown")
    if usd > 0 and currency not in ("USD", "USDT", "USDC"):
        return not_scored(
            f"answers cost dollars, the account is in {currency}, and no exchange rate is known"
        )
    value = (float(series.nav[-1]) - usd) / float(series.nav[0]) - 1.0
    return Measure(
        value=significant(value), n=len(series.sessions), note="no interval: a cost is no sample"
    )
