"""What a run would take, before it is started: episodes, sessions, decisions, seconds, disk.

The estimate is measured: the first sessions of every agent are played in memory, and nothing is written except a
data set that has to be generated. Agents whose answers cost something are not asked; the conversation of a model
is measured with a scripted one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tradeassay.agents import check_agent, make_agent
from tradeassay.agents.model import NAME as MODEL
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.agent import CostlyAgent
from tradeassay.core.drive import fault_of
from tradeassay.core.executors import cores, one_thread
from tradeassay.data import Snapshot
from tradeassay.llm.tables import own_file, price_line
from tradeassay.metrics import Design, PowerSummary, power_summary
from tradeassay.play.journal import encode_line
from tradeassay.runs.play.episodes import steps
from tradeassay.runs.play.trading import prepare_tasks
from tradeassay.runs.spec.episode import EpisodeSpec, expand
from tradeassay.runs.spec.model_plan import SAMPLE_DAYS, measure_conversation
from tradeassay.runs.spec.models import Asking, model_config, refuse_bad_models
from tradeassay.runs.spec.run_spec import RunSpec
from tradeassay.runs.store.manifest import played_as, windows_by_cell
from tradeassay.runs.store.snapshots import describe, snapshot_for

SAMPLE = 12
"""Sessions played to measure an agent; the first is a warm-up and not timed."""
_SCORING = 0.35
"""Seconds to score one episode with a thousand resamples."""
_START = 1.5
"""Seconds to start worker processes."""


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on one benchmark and data set, over all seeds.

    ``seconds`` is processor time, ``bytes`` the size of the journals; both None where the agent was not asked, and
    ``note`` says why. For a model there are its calls, tokens, dollars (None: price unknown) and the hours that
    its episodes take at the allowed concurrency.
    """

    benchmark: str
    dataset: str
    agent: str
    baseline: bool
    episodes: int
    sessions: int
    decisions: int
    seconds: float | None
    bytes: int | None
    note: str | None = None
    cell: str = ""
    model: str | None = None
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    hours: float | None = None
    source: str | None = None

    def words(self) -> str:
        """Return a model's part in one line."""
        money = "price unknown" if self.usd is None else f"${self.usd:,.2f}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        known = "" if self.source is None else f" ({self.source})"
        return f"{self.model_calls:,} calls, {tokens}, {money}, about {self.hours or 0.0:,.2f} h{known}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run's size. ``seconds`` is wall time on ``workers``; ``usd`` is None when a model's price is unknown.

    ``power_summary`` says for every cell what its sessions and seeds can show, assuming that sessions
    are independent and half of the variance is common to all seeds.
    """

    slug: str
    cells: tuple[PlannedCell, ...]
    episodes: int
    sessions: int
    decisions: int
    workers: int
    seconds: float
    bytes: int
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    hours: float = 0.0
    power_summary: dict[str, PowerSummary] = {}

    def rows(self) -> list[tuple[str, str]]:
        """Return the sums as (what, how much), for a table."""
        return [
            ("episodes", f"{self.episodes:,}"),
            ("sessions", f"{self.sessions:,}"),
            ("decisions", f"{self.decisions:,}"),
            ("calls to a model", f"{self.model_calls:,}"),
            *self._model_rows(),
            ("time", f"about {self.seconds:,.0f} s on {self.workers} workers"),
            ("disk", f"about {self.bytes / 1e6:,.1f} MB"),
            *((f"{cell.cell or cell.benchmark}, {cell.agent}", cell.note) for cell in self.cells if cell.note),
            *((f"{cell}, what it can show", seen.sentence) for cell, seen in self.power_summary.items()),
        ]

    def _model_rows(self) -> list[tuple[str, str]]:
        if not self.model_calls:
            return []
        known = sum(cell.usd or 0.0 for cell in self.cells)
        unknown = sorted({str(cell.model) for cell in self.cells if cell.model_calls and cell.usd is None})
        money = f"${known:,.2f}" + (f", and the price of {', '.join(unknown)} is unknown" if unknown else "")
        return [
            ("tokens", f"about {self.input_tokens:,} in, {self.output_tokens:,} out"),
            ("dollars", money),
            *((f"for the price, into {own_file()}", price_line(name)) for name in unknown),
            ("hours of asking", f"about {self.hours:,.2f}"),
            *((f"{cell.cell}, {cell.agent}", cell.words()) for cell in self.cells if cell.model_calls),
        ]


def plan(
    spec: RunSpec,
    *,
    workers: int | None = None,
    home: Path | str | None = None,
    asking: Asking | None = None,
    runs: Path | None = None,
) -> Plan:
    """Measure what a run would take; raises :class:`~tradeassay.core.errors.UserError` as :func:`run` would.

    What models took in earlier ``runs`` (a folder of them) goes before what would have to be assumed.
    """
    asking = asking or Asking()
    groups: dict[tuple[str, str], list[EpisodeSpec]] = {}
    expanded = expand(spec)
    refuse_bad_models(expanded, msgspec.structs.replace(asking, replay=True))
    for episode in expanded:
        check_agent(episode.agent.name, episode.agent.params)
        groups.setdefault((episode.cell, episode.label), []).append(episode)
    where = None if home is None else str(home)
    with one_thread():
        cells = tuple(_cell(spec, episodes, where, asking, runs) for episodes in groups.values())
    count = workers or cores()
    episodes = sum(cell.episodes for cell in cells)
    playing = sum(cell.seconds or 0.0 for cell in cells)
    scoring = episodes * _SCORING * spec.bootstrap.draws / 1000
    talking = [cell for cell in cells if cell.model is not None]
    hours = _hours(talking, asking.concurrency)
    return Plan(
        slug=spec.slug,
        cells=cells,
        episodes=episodes,
        sessions=sum(cell.sessions * cell.episodes for cell in cells),
        decisions=sum(cell.decisions for cell in cells),
        workers=count,
        seconds=round((playing + scoring) / count + (_START if count > 1 else 0.0) + hours * 3600, 2),
        bytes=sum(cell.bytes or 0 for cell in cells),
        model_calls=sum(cell.model_calls for cell in talking),
        input_tokens=sum(cell.input_tokens for cell in talking),
        output_tokens=sum(cell.output_tokens for cell in talking),
        usd=None if any(cell.usd is None for cell in talking) else sum(cell.usd or 0.0 for cell in talking),
        hours=round(hours, 4),
        power_summary=_foresight(spec, cells),
    )


def _foresight(spec: RunSpec, cells: Sequence[PlannedCell]) -> dict[str, PowerSummary]:
    """Return what each cell can show, before any money is spent on it."""
    found: dict[str, PowerSummary] = {}
    for name in dict.fromkeys(cell.cell for cell in cells):
        compared = [cell for cell in cells if cell.cell == name and not cell.baseline]
        if compared:
            year = benchmarks.get(compared[0].benchmark).periods_per_year
            design = Design(
                sessions=compared[0].sessions,
                seeds=max(cell.episodes for cell in compared),
                level=spec.bootstrap.level,
                comparisons=len(compared),
                periods_per_year=year,
            )
            found[name] = power_summary(design)
    return found


def _hours(talking: Sequence[PlannedCell], concurrency: int) -> float:
    """Return how long all models take together: they share the allowed concurrency."""
    work = sum((cell.hours or 0.0) * min(concurrency, cell.episodes) for cell in talking)
    places = min(concurrency, sum(cell.episodes for cell in talking))
    return max([work / places if places else 0.0, *(cell.hours or 0.0 for cell in talking)])


def _cell(
    spec: RunSpec, episodes: list[EpisodeSpec], home: str | None, asking: Asking, runs: Path | None
) -> PlannedCell:
    first = episodes[0]
    plain = played_as(benchmarks.get(first.benchmark), first, spec)
    task = prepare_tasks(episodes, {first.benchmark: plain}, home)[first.dataset]
    entry = describe(first.dataset, home, task.markets, task.windows)
    named = windows_by_cell((first,), {first.dataset: entry}).get(first.cell)
    benchmark = played_as(plain, first, spec, named)
    snapshot = snapshot_for(first.dataset, home, entry.sha256)
    sessions = len(snapshot.rows(benchmark.market.first, benchmark.market.last))
    cell = PlannedCell(
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=any(episode.baseline for episode in episodes),
        episodes=len(episodes),
        sessions=sessions,
        decisions=sessions * len(episodes),
        seconds=None,
        bytes=None,
        cell=first.cell,
    )
    if first.by_model and first.agent.name != MODEL:
        return msgspec.structs.replace(cell, note="not measured: a foreign agent takes what it takes")
    if first.by_model:
        return _talked(cell, first, benchmark, snapshot, asking, runs)
    seconds, size, note = _measure(benchmark, first, snapshot)
    return msgspec.structs.replace(
        cell,
        seconds=None if seconds is None else round(seconds * cell.decisions, 3),
        bytes=None if size is None else round(size * cell.decisions),
        note=note,
    )


def _talked(
    cell: PlannedCell,
    episode: EpisodeSpec,
    benchmark: Benchmark,
    snapshot: Snapshot,
    asking: Asking,
    runs: Path | None,
) -> PlannedCell:
    """Return a model's cell with what its conversations would take."""
    began = time.perf_counter()
    try:
        day = measure_conversation(episode, benchmark, snapshot, prices=asking.prices, runs=runs)
    except Exception as error:  # an exception here would only make the conversation's episodes fail
        return msgspec.structs.replace(cell, note=f"would fail: {fault_of(error)!s}")
    playing = (time.perf_counter() - began) / min(SAMPLE_DAYS, cell.sessions)
    at_once = min(asking.concurrency, cell.episodes)
    return msgspec.structs.replace(
        cell,
        model=model_config(episode).model,
        model_calls=round(day.calls * cell.decisions),
        input_tokens=round(day.input_tokens * cell.decisions),
        output_tokens=round(day.output_tokens * cell.decisions),
        usd=None if day.usd is None else round(day.usd * cell.decisions, 4),
        source=day.source,
        hours=round(day.seconds * cell.decisions / at_once / 3600, 4),
        seconds=round(playing * cell.decisions, 3),
        bytes=round(day.bytes * cell.decisions),
    )


def _measure(
    benchmark: Benchmark, episode: EpisodeSpec, snapshot: Snapshot
) -> tuple[float | None, float | None, str | None]:
    """Return seconds and bytes per session, or None and why they are unknown."""
    agent = make_agent(episode.agent.name, episode.agent.params)
    if isinstance(agent, CostlyAgent):
        return None, None, "not measured: its answers cost something"
    size, count, began = 0, 0, time.perf_counter()
    try:
        for record in steps(snapshot, benchmark, episode, agent):
            if count == 0:
                began = time.perf_counter()
            size += len(encode_line(record)) + 1
            count += 1
            if count == SAMPLE:
                break
    except Exception as error:  # an exception here would only make the agent's episodes fail
        return None, None, f"would fail: {fault_of(error)!s}"
    timed = count - 1
    return (time.perf_counter() - began) / timed if timed else 0.0, size / count, None
