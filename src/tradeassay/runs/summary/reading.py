"""From a run's folder to its summary. Reads journals, scores and the hashed data; asks no agent.

Numbers come from the scores and the journals. Data is only read for context (the index, prices under trades): when
it is gone or has changed, the summary is made without it."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from tradeassay.agents.own_file import NAME as OWN_FILE, why_not_again
from tradeassay.benchmarks import Benchmark, ktdfin, stockbench
from tradeassay.benchmarks.rules_text import rules_text
from tradeassay.benchmarks.stockbench.panel import NOTES
from tradeassay.core.errors import UNDECODABLE, DataError, RunError, TradeassayWarning
from tradeassay.core.events import Deposited, Filled, Marked, StepRecord
from tradeassay.core.measure import NOT_REDERIVABLE, Measure, not_scored
from tradeassay.core.orders import Failure
from tradeassay.metrics import watched_interval
from tradeassay.play import holdings_from_records
from tradeassay.play.dialogue_log import DialogueLine
from tradeassay.runs.score import AgentScores, EpisodeScores
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.store.folder import folder_in_commands
from tradeassay.runs.store.manifest import RunManifest
from tradeassay.runs.store.outcome import ClaimOutcome
from tradeassay.runs.store.run import CodeRun, Run, shown_title
from tradeassay.runs.summary.figures import completed_episode, completed_run, setting_words, varying
from tradeassay.runs.summary.models import (
    MOST_DECISIONS,
    MOST_TALKS,
    decision_notes,
    first_causes,
    model_details,
    model_summary,
)
from tradeassay.runs.summary.rows import (
    AgentSummary,
    CellSummary,
    Coverage,
    EpisodeDetail,
    HoldingsOverTime,
    RunSummary,
    Trade,
)
from tradeassay.runs.verify.freedom import freedom_of

MOST_SYMBOLS = 5
"""Symbols per agent whose trades are shown on their price: those with the largest traded value."""
_BUY_AND_HOLD = ("equal-weight", "index-hold")


def summary_of(run: Run, *, details: bool = True) -> RunSummary:
    """Return a finished run's summary; raises :class:`~tradeassay.core.errors.RunError` while it is not finished.
    Without ``details`` only what a leaderboard needs is read: value paths, by which agents are compared."""
    scores, versions = run.scores, run.manifest.versions
    cells = dict.fromkeys(row.cell for row in scores.agents)
    reading = _Reading(run, {episode.key: episode for episode in scores.episodes}, details)
    found = [reading.cell([row for row in scores.agents if row.cell == cell]) for cell in cells]
    manifest = run.manifest
    pairs = [("work (the spec)", manifest.work_sha256)]
    pairs += [(f"data {name}", dataset.sha256) for name, dataset in manifest.datasets.items()]
    for name, benchmark in manifest.benchmarks.items():
        pairs += [(f"benchmark {name}", benchmark.sha256), (f"venue of {name}", benchmark.venue_sha256)]
    pairs += [(f"agent {name}", agent.sha256) for name, agent in manifest.agents.items() if agent.sha256]
    pairs += [(f"journal {episode.key}", episode.events_sha256) for episode in run.scores.episodes]
    # Cells whose titles are alike are told apart by data set, setting or window, whichever makes the difference.
    cells_told_apart: list[CellSummary] = []
    for cell in found:
        alike = [other for other in found if other.title == cell.title]
        ways = [setting_words(key, cell.settings[key]) for key in varying(alike) if key in cell.settings]
        ways += [cell.window] if cell.window and len({other.window for other in alike}) > 1 else []
        several = len({other.dataset for other in alike}) > 1 or (len(alike) > 1 and not ways)
        title = ", ".join([f"{cell.title} ({cell.dataset})" if several else cell.title, *ways])
        cells_told_apart.append(msgspec.structs.replace(cell, title=title))
    read = RunSummary(
        title=f"{', '.join(dict.fromkeys(cell.title for cell in found))}: {run.spec.slug}",
        cells=tuple(cells_told_apart),
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
    return completed_run(read)


def coverage_of(run: Run | CodeRun) -> Coverage:
    """Return what a verification of a finished run can say at most."""
    trades = isinstance(run.manifest, RunManifest)
    answers = [outcome.answers for _, outcome in run.outcomes()]
    own = [one.agent.params for one in run.episodes if one.agent.name == OWN_FILE] if trades else []
    rules = sum(one == "none" for one in answers) - len(own) if trades else 0
    again = ["data"] if trades else []
    again += ["rules"]
    again += ["decisions"] if rules else []
    again += ["account"] if trades else ["programs"]
    again += ["conversation"] if len(answers) - answers.count("none") else []
    again += ["answers"] if "scripted" in answers else []
    counted = Counter(map(why_not_again, own))
    claims = dict.fromkeys(counted, "decisions") | {NOT_REDERIVABLE: "answers"}
    counted[NOT_REDERIVABLE] = sum(one in ("live", "replayed") for one in answers)
    return Coverage(
        again=(*again, "scores"),
        not_again=tuple(
            ClaimOutcome(claim=claims[why], outcome="cannot be checked", why=why, episodes=count)
            for why, count in counted.items()
            if count
        ),
    )


class _Reading:
    """Reads one run, as much of it as needed."""

    def __init__(self, run: Run, episodes: dict[str, EpisodeScores], details: bool) -> None:
        self._run, self._episodes, self._details = run, episodes, details
        agents = {(one.cell, one.label): one.by_model for one in run.episodes}
        self._most = max(40, MOST_DECISIONS // len(agents))
        self._talks = max(2, MOST_TALKS // max(1, sum(agents.values())))

    def cell(self, rows: Sequence[AgentScores]) -> CellSummary:
        run = self._run
        key = rows[0].episodes[0]
        episode = run.episode(key)
        benchmark = run.manifest.benchmark(episode)
        sound = [key for row in rows for key in row.episodes if self._episodes[key].status == "done"]
        sessions = tuple(record.session for record in run.records(sound[0])) if sound else ()
        agents = tuple(self.agent(row, sessions) for row in rows)
        traded = {trade.symbol for agent in agents if agent.detail is not None for trade in agent.detail.trades}
        index, prices = _market(run, sound[0], sessions, traded) if self._details and sound else (None, {})
        return CellSummary(
            id=rows[0].cell,
            title=shown_title(benchmark, rows[0].dataset),
            benchmark=rows[0].benchmark,
            dataset=rows[0].dataset,
            badges=run.cell_badges(rows[0].cell),
            sessions=sessions,
            agents=agents,
            baseline=next((run.names[row.agent] for row in rows if row.baseline), ""),
            baseline_phrase="buy and hold" if benchmark.baseline in _BUY_AND_HOLD else benchmark.baseline,
            rules=rules_text(benchmark, run.manifest.benchmarks[rows[0].benchmark].venue_sha256),
            periods_per_year=benchmark.periods_per_year,
            index_name=benchmark.index,
            index=index,
            prices=prices,
            settings=dict(episode.protocol),
            window=episode.window,
        )

    def agent(self, row: AgentScores, sessions: tuple[str, ...]) -> AgentSummary:
        run, episodes = self._run, self._episodes
        sound = [key for key in row.episodes if episodes[key].status == "done"]
        failed = tuple((key, str(episodes[key].reason)) for key in row.episodes if key not in sound)
        broke = [*(key for key, _ in failed), *(key for key in sound if "agent" in episodes[key].failures)]
        model = model_summary(run, row)
        rejections, failures = Counter[str](), Counter[str]()
        for key in row.episodes:
            rejections.update(episodes[key].rejections)
            failures.update(episodes[key].failures)
        plain = AgentSummary(
            row=row,
            called=run.names[row.agent],
            failure="; ".join(dict.fromkeys(reason for _, reason in failed)) if not sound else None,
            failed_episodes=failed,
            rejections=dict(rejections),
            failures=dict(failures),
            causes=first_causes(run, broke[0]) if broke else (),
            paths=tuple(_path(run.records(key)) for key in sound),
            model=model,
        )
        if not self._details:
            return plain
        # The median repetition stands for all; without a result, the first one still shows what was said.
        middle = sorted(range(len(plain.paths)), key=lambda place: plain.paths[place][-1])
        place = middle[(len(middle) - 1) // 2] if middle else 0
        key = (sound or list(row.episodes))[place]
        records = tuple(run.records(key))
        detail = _detail(records, place, episodes[key].seed, scored=bool(plain.paths))
        talks = 0 if model is None else self._talks
        decisions, left_out = decision_notes(records, run.dialogue(key), talks=talks, most=self._most)
        year = run.manifest.benchmark(run.episode(key)).periods_per_year
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
    # The trades in the symbols traded most are shown, the others only counted.
    every = [
        Trade(
            session=record.session,
            symbol=event.symbol,
            quantity=event.quantity,
            price=event.price,
            forced=event.forced,
        )
        for record in records
        for event in (*record.opening, *record.events)
        if isinstance(event, Filled)
    ]
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
            weights=tuple(tuple(column) for column in np.ascontiguousarray(held.weights.T).tolist()),
        ),
        trades=kept,
        trades_left_out=len(every) - len(kept),
    )


def _market(
    run: Run, key: str, sessions: Sequence[str], symbols: set[str]
) -> tuple[tuple[float, ...] | None, dict[str, tuple[float | None, ...]]]:
    """Return index levels and closing prices, as traded, of ``symbols``; nothing when the data cannot be read."""
    prices: dict[str, tuple[float | None, ...]] = {}
    try:
        levels, snapshot = run.series(key).index, run.snapshot(key)
        rows = snapshot.rows(sessions[0], sessions[-1])
        if len(rows) == len(sessions):
            view = snapshot.at(rows[-1], "close")
            closes = view.bars("close", len(rows), adjust="none")
            for symbol in sorted(symbols):
                column = closes[:, view.column(symbol)]
                prices[symbol] = tuple(None if np.isnan(price) else float(price) for price in column)
    except (DataError, RunError) as error:
        warnings.warn(f"no index and no prices in the report: {error}", TradeassayWarning, stacklevel=2)
        return None, {}
    return (None if levels is None else tuple(levels.tolist())), prices


def _path(records: Iterable[StepRecord]) -> tuple[float, ...]:
    """Return the value path a journal states: the deposit, then the mark at the end of each session."""
    path: list[float] = []
    for record in records:
        for event in (*record.opening, *record.events):
            if isinstance(event, Deposited):
                path.append(event.cash)
            elif isinstance(event, Marked):
                path.append(event.nav)
    return tuple(path)


def ktdfin_setting(run: Run, key: str, benchmark: Benchmark) -> ktdfin.KtdfinSetting:
    """Return in which setting of KTD-Fin an episode was played."""
    cell, index = run.episode(key).cell, benchmark.index
    badges, named, record = run.cell_badges(cell), run.manifest.windows.get(cell), run.manifest.protocols.get(cell)
    config: dict[str, Any] = {} if record is None else dict(record.config)
    if index is not None:
        with suppress(DataError, RunError):  # where the data cannot be read it is called by its role
            snapshot = run.snapshot(key)
            index = snapshot.at(len(snapshot.sessions) - 1, "close").index_name(index)
    return ktdfin.KtdfinSetting(
        data=badges.data,
        market=benchmark.market.venue.split("-")[0],
        index=index,
        window=named.code if named is not None else f"{benchmark.market.first} to {benchmark.market.last}",
        structural=named is not None and named.structural,
        convention=badges.convention,
        mask=config.get("mask"),
        mode=config.get("mode"),
    )


def stockbench_setting(
    run: Run, key: str, benchmark: Benchmark, sessions: Sequence[str]
) -> stockbench.StockbenchSetting:
    """Return in which setting of StockBench an episode was played."""
    cell = run.episode(key).cell
    badges, record = run.cell_badges(cell), run.manifest.protocols.get(cell)
    inputs: Any = "all" if record is None else record.config.get("inputs", "all")
    symbols: tuple[str, ...] = ()
    news = fundamentals = badges.data == "synthetic"
    if badges.data == "real":
        with suppress(DataError, RunError):
            snapshot = run.snapshot(key)
            view = snapshot.at(snapshot.rows(sessions[-1], sessions[-1]).start, "close")
            index = benchmark.market.universe.split(":")[0]
            known = view.symbols if index == "all" else view.members(index)
            news, fundamentals = bool(view.news(0, limit=1)), any(view.fundamentals(symbol) for symbol in known)
            symbols = known
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
"""Refused answers that are kept of an episode, the latest ones."""


class RefusedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's own words that could not be used, and why."""

    session: str
    reason: str
    text: str


class EpisodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``steps`` sessions were played, ``lost`` of them without a decision; ``failures`` counts by kind.

    ``ahead`` is the yearly log growth so far less that of the cell's baseline, with a band that holds for all
    episodes of the cell together, however often one looks."""

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
    """Return every episode of a run as far as it has come; a last line that is half written is left out."""
    place = run.folder / "episodes"
    steps = {one.key: list(_lines(place / one.key / "events.jsonl", _Step)) for one in run.episodes}
    found = {key: _episode(place / key, key, own) for key, own in steps.items()}
    if isinstance(run, Run):
        paths = {
            key: {one.session: nav for one in own if one.events and (nav := one.events[-1].get("nav"))}
            for key, own in steps.items()
        }
        for one in run.episodes:
            found[one.key] = msgspec.structs.replace(found[one.key], ahead=_ahead(run, one, paths))
    return tuple(found.values())


def _ahead(run: Run, episode: EpisodeSpec, paths: Mapping[str, Mapping[str, float]]) -> Measure:
    """Return how much faster an account grew than its baseline over the sessions that both have played."""
    peers = [one for one in run.episodes if one.cell == episode.cell]
    base = next((one for one in peers if one.baseline), None)
    if base is None or episode.baseline:
        return not_scored("this is the baseline" if episode.baseline else "there is no baseline")
    own, other = paths[episode.key], paths[base.key]
    both = [session for session in own if session in other]
    if any(min(path[session] for session in both) <= 0.0 for path in (own, other) if both):
        return not_scored("an account was worth nothing or less")
    gap = np.diff([math.log(own[session] / other[session]) for session in both])
    level = 1.0 - 0.05 / (len(peers) - 1)
    return watched_interval(gap, periods_per_year=run.manifest.benchmark(episode).periods_per_year, level=level)


def _episode(folder: Path, key: str, steps: Sequence[_Step]) -> EpisodeStatus:
    said = {line.step: line for line in _lines(folder / "dialogue.jsonl", DialogueLine)}
    refused = []
    failures = {one.step: [line for line in one.decision.failures if line.kind not in NOTES] for one in steps}
    for one in steps:
        if failures[one.step] and one.step in said:
            reply = said[one.step].reply
            words = (reply.text.strip(), *(f"{call.name}({call.arguments})" for call in reply.calls))
            reason = "; ".join(f"{failure.kind}: {failure.detail}" for failure in failures[one.step])
            text = " ".join(part for part in words if part)
            refused.append(RefusedAnswer(session=one.session, reason=reason, text=text))
    return EpisodeStatus(
        key=key,
        ended=(folder / "outcome.json").is_file(),
        steps=len(steps),
        lost=sum(one.decision.status == "failed" for one in steps),
        failures=dict(Counter(failure.kind for lines in failures.values() for failure in lines)),
        refused=tuple(refused[-SHOWN:]),
    )


def _lines(file: Path, kind: type[S]) -> Iterator[S]:
    if not file.is_file():
        return
    for line in file.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=kind)
        except UNDECODABLE:
            return
