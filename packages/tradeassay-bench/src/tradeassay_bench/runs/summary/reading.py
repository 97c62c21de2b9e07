"""Read a run's folder and return its summary.

No agent is queried. The results are read from scores and journals. The hashed data is read only for
context (the index, prices of trades). If the data is missing or has changed, the summary omits this
context.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from tradeassay.core.errors import UNDECODABLE, DataError, TradeassayWarning
from tradeassay.core.measure import NOT_REDERIVABLE, Measure, not_scored
from tradeassay.metrics import watched_interval
from tradeassay.metrics.horizon import Horizon
from tradeassay_bench.agents.own_file import NAME as OWN_FILE, why_not_again
from tradeassay_bench.benchmarks import Benchmark, ktdfin, stockbench
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.benchmarks.stockbench.panel import NOTES
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import Deposited, Filled, Marked, StepRecord
from tradeassay_bench.core.orders import Failure
from tradeassay_bench.play import holdings_from_records
from tradeassay_bench.play.dialogue_log import DialogueLine
from tradeassay_bench.runs.score import AgentScores, EpisodeScores
from tradeassay_bench.runs.spec.episode import EpisodeSpec
from tradeassay_bench.runs.spec.run_spec import ParamValue
from tradeassay_bench.runs.store.folder import folder_in_commands
from tradeassay_bench.runs.store.manifest import RunManifest
from tradeassay_bench.runs.store.outcome import ClaimOutcome
from tradeassay_bench.runs.store.run import CodeRun, Run, shown_title
from tradeassay_bench.runs.summary.figures import (
    completed_episode,
    completed_run,
    option_words,
    varying,
)
from tradeassay_bench.runs.summary.models import (
    MOST_DECISIONS,
    MOST_TALKS,
    decision_notes,
    first_causes,
    model_details,
    model_summary,
)
from tradeassay_bench.runs.summary.rows import (
    AgentSummary,
    Coverage,
    EpisodeDetail,
    HoldingsOverTime,
    RunSummary,
    SettingSummary,
    Trade,
)
from tradeassay_bench.runs.verify.freedom import freedom_of

MOST_SYMBOLS = 5
"""The maximum number of symbols per agent whose trades are listed, by traded value."""
_BUY_AND_HOLD = ("equal-weight", "index-hold")


def summary_of(run: Run, *, details: bool = True) -> RunSummary:
    """Return a finished run's summary.

    Without ``details`` only the data of a leaderboard is read: scores and account values.
    Raises :class:`~tradeassay_bench.core.errors.RunError` while the run is not finished.
    """
    scores, versions = run.scores, run.manifest.versions
    settings = dict.fromkeys(row.setting for row in scores.agents)
    reading = _Reading(run, {episode.key: episode for episode in scores.episodes}, details)
    summaries = [
        reading.setting([row for row in scores.agents if row.setting == setting])
        for setting in settings
    ]
    manifest = run.manifest
    pairs = [("work (the spec)", manifest.work_sha256)]
    pairs += [(f"data {name}", dataset.sha256) for name, dataset in manifest.datasets.items()]
    for name, benchmark in manifest.benchmarks.items():
        pairs += [
            (f"benchmark {name}", benchmark.sha256),
            (f"venue of {name}", benchmark.venue_sha256),
        ]
    pairs += [
        (f"agent {name}", agent.sha256) for name, agent in manifest.agents.items() if agent.sha256
    ]
    pairs += [(f"journal {episode.key}", episode.events_sha256) for episode in run.scores.episodes]
    titles = ", ".join(dict.fromkeys(setting.title for setting in summaries))
    summary = RunSummary(
        title=f"{titles}: {run.spec.name}",
        settings=_with_distinct_titles(summaries),
        level=run.spec.bootstrap.level,
        draws=run.spec.bootstrap.draws,
        hashes=tuple(pairs),
        versions=(
            *versions.packages.items(),
            ("python", versions.python),
            ("platform", f"{versions.platform} {versions.machine}"),
        ),
        check=f"tradeassay verify {folder_in_commands(run.folder)}",
        coverage=coverage_of(run),
        freedom=freedom_of(run.folder, run.manifest),
    )
    return completed_run(summary)


def _with_distinct_titles(settings: Sequence[SettingSummary]) -> tuple[SettingSummary, ...]:
    """Return the settings with distinct titles.

    Equal titles are extended by the data set, the options or the window.
    """
    distinct = []
    for setting in settings:
        namesakes = [other for other in settings if other.title == setting.title]
        differences = [
            option_words(key, setting.options[key])
            for key in varying(namesakes)
            if key in setting.options
        ]
        if setting.window and len({other.window for other in namesakes}) > 1:
            differences.append(setting.window)
        datasets = {other.dataset for other in namesakes}
        title = setting.title
        if len(datasets) > 1 or (len(namesakes) > 1 and not differences):
            title = f"{title} ({setting.dataset})"
        title = ", ".join([title, *differences])
        distinct.append(msgspec.structs.replace(setting, title=title))
    return tuple(distinct)


def coverage_of(run: Run | CodeRun) -> Coverage:
    """Return the claims of a finished run that a verification can and cannot recompute."""
    trades = isinstance(run.manifest, RunManifest)
    answers = [outcome.answers for _, outcome in run.outcomes()]
    # The decisions of a rule can be recomputed, unless its code is in a file of the runner.
    own: list[dict[str, ParamValue]] = []
    rules = 0
    if trades:
        own = [episode.agent.params for episode in run.episodes if episode.agent.name == OWN_FILE]
        rules = answers.count("none") - len(own)
    again = ["data", "rules"] if trades else ["rules"]
    if rules:
        again.append("decisions")
    again.append("account" if trades else "programs")
    if len(answers) > answers.count("none"):
        again.append("conversation")
    if "scripted" in answers:
        again.append("answers")
    counted = Counter(map(why_not_again, own))
    claims = dict.fromkeys(counted, "decisions") | {NOT_REDERIVABLE: "answers"}
    counted[NOT_REDERIVABLE] = answers.count("live") + answers.count("replayed")
    return Coverage(
        again=(*again, "scores"),
        not_again=tuple(
            ClaimOutcome(claim=claims[why], outcome="cannot be checked", why=why, episodes=count)
            for why, count in counted.items()
            if count
        ),
    )


class _Reading:
    """Reads the parts of a run that its summary needs."""

    def __init__(self, run: Run, episodes: dict[str, EpisodeScores], details: bool) -> None:
        self._run, self._episodes, self._details = run, episodes, details
        agents = {(episode.setting, episode.label): episode.by_model for episode in run.episodes}
        self._most = max(40, MOST_DECISIONS // len(agents))
        self._talks = max(2, MOST_TALKS // max(1, sum(agents.values())))

    def setting(self, rows: Sequence[AgentScores]) -> SettingSummary:
        """Return the summary of one setting from the scores of its agents."""
        run = self._run
        key = rows[0].episodes[0]
        episode = run.episode(key)
        benchmark = run.manifest.benchmark(episode)
        keys = chain.from_iterable(row.episodes for row in rows)
        complete = [key for key in keys if self._episodes[key].status == "done"]
        sessions = tuple(record.session for record in run.records(complete[0])) if complete else ()
        agents = tuple(self.agent(row, sessions) for row in rows)
        traded = set()
        for agent in agents:
            if agent.detail is not None:
                for trade in agent.detail.trades:
                    traded.add(trade.symbol)
        index, prices = (
            _market(run, complete[0], sessions, traded)
            if self._details and complete
            else (None, {})
        )
        return SettingSummary(
            id=rows[0].setting,
            title=shown_title(benchmark, rows[0].dataset),
            benchmark=rows[0].benchmark,
            dataset=rows[0].dataset,
            badges=run.setting_badges(rows[0].setting),
            sessions=sessions,
            agents=agents,
            baseline=next((run.names[row.agent] for row in rows if row.baseline), ""),
            baseline_phrase="buy and hold"
            if benchmark.baseline in _BUY_AND_HOLD
            else benchmark.baseline,
            rules=rules_text(benchmark, run.manifest.benchmarks[rows[0].benchmark].venue_sha256),
            periods_per_year=benchmark.periods_per_year,
            index_name=benchmark.index,
            index=index,
            prices=prices,
            options=dict(episode.protocol),
            window=episode.window,
        )

    def agent(self, row: AgentScores, sessions: tuple[str, ...]) -> AgentSummary:
        """Return the summary of one agent from its scores."""
        run, episodes = self._run, self._episodes
        complete = [key for key in row.episodes if episodes[key].status == "done"]
        failed = tuple(
            (key, str(episodes[key].reason)) for key in row.episodes if key not in complete
        )
        with_errors = [
            *(key for key, _ in failed),
            *(key for key in complete if "agent" in episodes[key].failures),
        ]
        year = run.manifest.benchmark(run.episode(row.episodes[0])).periods_per_year
        model = model_summary(run, row)
        rejections, failures = Counter[str](), Counter[str]()
        for key in row.episodes:
            rejections.update(episodes[key].rejections)
            failures.update(episodes[key].failures)
        plain = AgentSummary(
            row=row,
            called=run.names[row.agent],
            failure="; ".join(dict.fromkeys(reason for _, reason in failed))
            if not complete
            else None,
            failed_episodes=failed,
            rejections=dict(rejections),
            failures=dict(failures),
            causes=first_causes(run, with_errors[0]) if with_errors else (),
            paths=tuple(_path(run.records(key)) for key in complete),
            horizon=Horizon(len(sessions), year) if sessions else None,
            model=model,
        )
        if not self._details:
            return plain
        # The episode with the median result represents the agent. If no episode is finished, the
        # first episode does, because its answers are of interest.
        middle = sorted(range(len(plain.paths)), key=lambda place: plain.paths[place][-1])
        place = middle[(len(middle) - 1) // 2] if middle else 0
        key = (complete or list(row.episodes))[place]
        records = tuple(run.records(key))
        detail = _detail(records, place, episodes[key].seed, scored=bool(plain.paths))
        talks = 0 if model is None else self._talks
        decisions, left_out = decision_notes(
            records, run.dialogue(key), talks=talks, most=self._most
        )
        detail = completed_episode(
            msgspec.structs.replace(detail, decisions=decisions, decisions_left_out=left_out),
            sessions,
            plain.paths[place] if plain.paths else (),
            year,
        )
        if model is not None:
            model = model_details(run, row, model)
        return msgspec.structs.replace(plain, detail=detail, model=model)


def _detail(records: Sequence[StepRecord], place: int, seed: int, *, scored: bool) -> EpisodeDetail:
    """Return the details of one episode from its journal."""
    # Trades in the most traded symbols are listed. All other trades are only counted.
    every = []
    for record in records:
        for event in (*record.opening, *record.events):
            if isinstance(event, Filled):
                every.append(
                    Trade(
                        session=record.session,
                        symbol=event.symbol,
                        quantity=event.quantity,
                        price=event.price,
                        forced=event.forced,
                    )
                )
    value: dict[str, float] = {}
    for trade in every:
        value[trade.symbol] = value.get(trade.symbol, 0.0) + abs(trade.quantity * trade.price)
    most = set(sorted(value, key=lambda symbol: (-value[symbol], symbol))[:MOST_SYMBOLS])
    kept = tuple(trade for trade in every if trade.symbol in most)
    held = holdings_from_records(records) if scored else None
    return EpisodeDetail(
        place=place,
        seed=seed,
        holdings=None
        if held is None
        else HoldingsOverTime(
            symbols=held.symbols,
            weights=tuple(
                tuple(column) for column in np.ascontiguousarray(held.weights.T).tolist()
            ),
        ),
        trades=kept,
        trades_left_out=len(every) - len(kept),
    )


def _market(
    run: Run, key: str, sessions: Sequence[str], symbols: set[str]
) -> tuple[tuple[float, ...] | None, dict[str, tuple[float | None, ...]]]:
    """Return the index levels, and the closing prices of ``symbols`` as traded.

    Without readable data the levels are None, the prices are empty, and a warning is issued.
    """
    prices: dict[str, tuple[float | None, ...]] = {}
    try:
        levels, snapshot = run.series(key).index, run.snapshot(key)
        rows = snapshot.rows(sessions[0], sessions[-1])
        if len(rows) == len(sessions):
            view = snapshot.at(rows[-1], "close")
            closes = view.bars("close", len(rows), adjust="none")
            for symbol in sorted(symbols):
                column = closes[:, view.column(symbol)]
                prices[symbol] = tuple(
                    None if np.isnan(price) else float(price) for price in column
                )
    except (DataError, RunError) as error:
        warnings.warn(
            f"no index and no prices in the report: {error}", TradeassayWarning, stacklevel=2
        )
        return None, {}
    return (None if levels is None else tuple(levels.tolist())), prices


def _path(records: Iterable[StepRecord]) -> tuple[float, ...]:
    """Return the account values in a journal: the deposit, then the value after each session."""
    path: list[float] = []
    for record in records:
        for event in (*record.opening, *record.events):
            if isinstance(event, Deposited):
                path.append(event.cash)
            elif isinstance(event, Marked):
                path.append(event.nav)
    return tuple(path)


def ktdfin_setting(run: Run, key: str, benchmark: Benchmark) -> ktdfin.KtdfinSetting:
    """Return the setting of KTD-Fin's paper that corresponds to an episode."""
    setting, index = run.episode(key).setting, benchmark.index
    badges = run.setting_badges(setting)
    window = run.manifest.windows.get(setting)
    record = run.manifest.protocols.get(setting)
    config: dict[str, Any] = {} if record is None else dict(record.config)
    if index is not None:
        # If the data cannot be read, the index keeps its general name from the benchmark.
        with suppress(DataError, RunError):
            snapshot = run.snapshot(key)
            index = snapshot.at(len(snapshot.sessions) - 1, "close").index_name(index)
    return ktdfin.KtdfinSetting(
        data=badges.data,
        market=benchmark.market.venue.split("-")[0],
        index=index,
        window=window.code
        if window is not None
        else f"{benchmark.market.first} to {benchmark.market.last}",
        structural=window is not None and window.structural,
        convention=badges.convention,
        mask=config.get("mask"),
        mode=config.get("mode"),
    )


def stockbench_setting(
    run: Run, key: str, benchmark: Benchmark, sessions: Sequence[str]
) -> stockbench.StockbenchSetting:
    """Return the setting of StockBench's paper that corresponds to an episode."""
    setting = run.episode(key).setting
    badges, record = run.setting_badges(setting), run.manifest.protocols.get(setting)
    inputs: Any = "all" if record is None else record.config.get("inputs", "all")
    symbols: tuple[str, ...] = ()
    news = badges.data == "synthetic"
    fundamentals = news
    if badges.data == "real":
        with suppress(DataError, RunError):
            snapshot = run.snapshot(key)
            view = snapshot.at(snapshot.rows(sessions[-1], sessions[-1]).start, "close")
            index = benchmark.market.universe.split(":")[0]
            members = view.symbols if index == "all" else view.members(index)
            news = bool(view.news(0, limit=1))
            fundamentals = any(view.fundamentals(symbol) for symbol in members)
            symbols = members
    return stockbench.StockbenchSetting(
        data=badges.data,
        symbols=symbols,
        first=sessions[0],
        last=sessions[-1],
        convention=badges.convention,
        inputs=inputs,
        has_news=news,
        has_fundamentals=fundamentals,
    )


S = TypeVar("S", bound=msgspec.Struct)
SHOWN = 3
"""The maximum number of refused answers per episode: the latest answers are included."""


class RefusedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An unusable answer of a model, with the reason."""

    session: str
    reason: str
    text: str


class EpisodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an episode.

    ``steps`` is the number of sessions so far, and ``lost`` is the number of sessions without a
    decision. ``failures`` contains the number of failures by kind. ``ahead`` is the annual log
    growth so far minus the growth of the baseline. Its interval holds simultaneously for all
    episodes of the setting, and at every time at which it is computed.
    """

    key: str
    ended: bool
    steps: int
    lost: int
    failures: dict[str, int]
    refused: tuple[RefusedAnswer, ...] = ()
    ahead: Measure = not_scored("there is no account to compare")


class _Decision(msgspec.Struct, frozen=True):
    status: str = "ok"
    failures: tuple[Failure, ...] = ()


class _Step(msgspec.Struct, frozen=True):
    step: int
    session: str = ""
    decision: _Decision = _Decision()
    events: tuple[dict[str, Any], ...] = ()


def run_status(run: Run | CodeRun) -> tuple[EpisodeStatus, ...]:
    """Return the progress of every episode of a run. An incomplete last line is omitted."""
    place = run.folder / "episodes"
    steps = {
        episode.key: list(_lines(place / episode.key / "events.jsonl", _Step))
        for episode in run.episodes
    }
    statuses = {key: _episode(place / key, key, played) for key, played in steps.items()}
    if isinstance(run, Run):
        paths: dict[str, dict[str, float]] = {}
        for key, played in steps.items():
            path: dict[str, float] = {}
            for step in played:
                # The last event of a step marks the account.
                nav = step.events[-1].get("nav") if step.events else None
                if nav:
                    path[step.session] = nav
            paths[key] = path
        for episode in run.episodes:
            ahead = _ahead(run, episode, paths)
            statuses[episode.key] = msgspec.structs.replace(statuses[episode.key], ahead=ahead)
    return tuple(statuses.values())


def _ahead(run: Run, episode: EpisodeSpec, paths: Mapping[str, Mapping[str, float]]) -> Measure:
    """Return the annual log growth of an account minus the growth of the baseline's account.

    Only sessions that both accounts have completed are used.
    """
    peers = [peer for peer in run.episodes if peer.setting == episode.setting]
    base = next((peer for peer in peers if peer.baseline), None)
    if base is None or episode.baseline:
        return not_scored("this is the baseline" if episode.baseline else "there is no baseline")
    own, other = paths[episode.key], paths[base.key]
    both = [session for session in own if session in other]
    if any(min(path[session] for session in both) <= 0.0 for path in (own, other) if both):
        return not_scored("an account was worth nothing or less")
    gap = np.diff([math.log(own[session] / other[session]) for session in both])
    level = 1.0 - 0.05 / (len(peers) - 1)
    return watched_interval(
        gap, periods_per_year=run.manifest.benchmark(episode).periods_per_year, level=level
    )


def _episode(folder: Path, key: str, steps: Sequence[_Step]) -> EpisodeStatus:
    """Return the progress of one episode from its files."""
    questions = {line.step: line for line in _lines(folder / "dialogue.jsonl", DialogueLine)}
    refused = []
    failures = {
        step.step: [line for line in step.decision.failures if line.kind not in NOTES]
        for step in steps
    }
    for step in steps:
        if failures[step.step] and step.step in questions:
            reply = questions[step.step].reply
            words = (
                reply.text.strip(),
                *(f"{call.name}({call.arguments})" for call in reply.calls),
            )
            reason = "; ".join(
                f"{failure.kind}: {failure.detail}" for failure in failures[step.step]
            )
            text = " ".join(part for part in words if part)
            refused.append(RefusedAnswer(session=step.session, reason=reason, text=text))
    kinds = Counter(failure.kind for failure in chain.from_iterable(failures.values()))
    return EpisodeStatus(
        key=key,
        ended=(folder / "outcome.json").is_file(),
        steps=len(steps),
        lost=sum(step.decision.status == "failed" for step in steps),
        failures=dict(kinds),
        refused=tuple(refused[-SHOWN:]),
    )


def _lines(file: Path, kind: type[S]) -> Iterator[S]:
    """Yield the decoded lines of a file, up to the first line that cannot be decoded."""
    if not file.is_file():
        return
    for line in file.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=kind)
        except UNDECODABLE:
            return
