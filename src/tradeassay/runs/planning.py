"""What a run would take, before it is started: episodes, sessions, decisions, seconds, disk.

The estimate is measured: the first sessions of every agent are played in memory, and nothing is written but the
data set itself when it has to be made. Agents whose answers cost something are not asked.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from tradeassay.agents import make_agent
from tradeassay.benchmarks import benchmarks
from tradeassay.core.agent import CostlyAgent
from tradeassay.data import Snapshot
from tradeassay.runs.episode import Episode, expand
from tradeassay.runs.executors import cores
from tradeassay.runs.executors.one_thread import one_thread
from tradeassay.runs.journal import encode_line
from tradeassay.runs.manifest import in_window
from tradeassay.runs.outcome import one_line
from tradeassay.runs.play import steps
from tradeassay.runs.snapshots import describe, snapshot_for
from tradeassay.runs.spec import RunSpec

SAMPLE = 12
"""Sessions played to measure an agent; the first is not timed, because it warms things up."""
_SCORING = 0.35
"""Seconds to score one episode with a thousand resamples."""
_START = 1.5
"""Seconds to start worker processes."""


class PlannedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on one benchmark and data set, over all seeds.

    ``seconds`` is processor time, ``bytes`` the size of the journals; both None where the agent was not asked, and
    ``note`` says why.
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


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run's size. ``seconds`` is wall time on ``workers``, ``calls`` to a model are none for rule agents."""

    slug: str
    cells: tuple[PlannedCell, ...]
    episodes: int
    sessions: int
    decisions: int
    workers: int
    seconds: float
    bytes: int
    model_calls: int = 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the sums as (what, how much), for a table."""
        return [
            ("episodes", f"{self.episodes:,}"),
            ("sessions", f"{self.sessions:,}"),
            ("decisions", f"{self.decisions:,}"),
            ("calls to a model", f"{self.model_calls:,}"),
            ("time", f"about {self.seconds:,.0f} s on {self.workers} workers"),
            ("disk", f"about {self.bytes / 1e6:,.1f} MB"),
            *((f"{cell.benchmark}, {cell.agent}", cell.note) for cell in self.cells if cell.note),
        ]


def plan(spec: RunSpec, *, workers: int | None = None, home: Path | str | None = None) -> Plan:
    """Measure what a run would take; raises :class:`~tradeassay.core.errors.UserError` as :func:`run` would."""
    groups: dict[tuple[str, str], list[Episode]] = {}
    for episode in expand(spec):
        make_agent(episode.agent.name, episode.agent.params)
        groups.setdefault((episode.cell, episode.label), []).append(episode)
    where = None if home is None else str(home)
    with one_thread():
        cells = tuple(_cell(spec, episodes, where) for episodes in groups.values())
    count = workers or cores()
    episodes = sum(cell.episodes for cell in cells)
    playing = sum(cell.seconds or 0.0 for cell in cells)
    scoring = episodes * _SCORING * spec.bootstrap.draws / 1000
    return Plan(
        slug=spec.slug,
        cells=cells,
        episodes=episodes,
        sessions=sum(cell.sessions * cell.episodes for cell in cells),
        decisions=sum(cell.decisions for cell in cells),
        workers=count,
        seconds=round((playing + scoring) / count + (_START if count > 1 else 0.0), 2),
        bytes=sum(cell.bytes or 0 for cell in cells),
    )


def _cell(spec: RunSpec, episodes: list[Episode], home: str | None) -> PlannedCell:
    first = episodes[0]
    benchmark = in_window(benchmarks.get(first.benchmark), spec)
    entry = describe(first.dataset, home, (benchmark.market,))
    snapshot = snapshot_for(first.dataset, home, entry.sha256)
    sessions = len(snapshot.rows(benchmark.market.first, benchmark.market.last))
    seconds, size, note = _measure(spec, first, snapshot)
    whole = sessions * len(episodes)
    return PlannedCell(
        benchmark=first.benchmark,
        dataset=first.dataset,
        agent=first.label,
        baseline=any(episode.baseline for episode in episodes),
        episodes=len(episodes),
        sessions=sessions,
        decisions=whole,
        seconds=None if seconds is None else round(seconds * whole, 3),
        bytes=None if size is None else round(size * whole),
        note=note,
    )


def _measure(spec: RunSpec, episode: Episode, snapshot: Snapshot) -> tuple[float | None, float | None, str | None]:
    """Return seconds and bytes per session, or None and why they are not known."""
    agent = make_agent(episode.agent.name, episode.agent.params)
    if isinstance(agent, CostlyAgent):
        return None, None, "not measured: its answers cost something"
    size, count, began = 0, 0, time.perf_counter()
    try:
        for record in steps(snapshot, in_window(benchmarks.get(episode.benchmark), spec), episode, agent):
            if count == 0:
                began = time.perf_counter()
            size += len(encode_line(record)) + 1
            count += 1
            if count == SAMPLE:
                break
    except Exception as error:  # whatever an agent raises would make its episode fail, and nothing else
        return None, None, f"would fail: {one_line(error)}"
    timed = count - 1
    return (time.perf_counter() - began) / timed if timed else 0.0, size / count, None
