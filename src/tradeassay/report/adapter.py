"""From a recorded run to what a report is made from. Reads journals, scores and the hashed data; asks no agent.

Numbers come from the scores and the journals. Data is read for decoration only (the index, prices under trades):
when it is gone or has changed, the report is made without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.errors import DataError, RunError, TradeassayWarning
from tradeassay.core.events import Deposited, Filled, Marked, StepRecord
from tradeassay.core.orders import Order
from tradeassay.report.contrasts import setting_words, varying
from tradeassay.report.data import AgentData, CellData, DecisionNote, HoldingsOverTime, ReportData, Trade
from tradeassay.report.model_reading import model_details, model_summary, sessions_each
from tradeassay.report.order_words import order_words
from tradeassay.report.published_figures import figures
from tradeassay.runs.scoring import holdings_from_records

if TYPE_CHECKING:
    from tradeassay.runs import AgentScores, EpisodeScores, Run

MOST_SYMBOLS = 12
"""Symbols per agent whose trades are shown on their price: those with the largest traded value."""
MOST_DECISIONS = 40
MOST_ORDERS = 8
_BUY_AND_HOLD = ("equal-weight", "index-hold")


def from_run(run: Run, *, details: bool = True) -> ReportData:
    """Return a finished run as report data; raises :class:`~tradeassay.core.errors.RunError` while it is not.

    Without ``details`` only what a leaderboard needs is read, which leaves most journals closed.
    """
    scores = run.scores
    cells = dict.fromkeys(row.cell for row in scores.agents)
    episodes = {episode.key: episode for episode in scores.episodes}
    grouped = [[row for row in scores.agents if row.cell == cell] for cell in cells]
    reading = _Reading(run, episodes, details)
    return ReportData(
        title=run.spec.slug,
        cells=_told_apart([reading.cell(rows) for rows in grouped]),
        level=run.spec.bootstrap.level,
        draws=run.spec.bootstrap.draws,
        hashes=_hashes(run),
        versions=_versions(run),
        check=f"tradeassay verify {run.spec.slug}",
    )


def _told_apart(cells: Sequence[CellData]) -> tuple[CellData, ...]:
    """Return cells whose titles differ: by data set, setting or window, whatever makes the difference."""
    titled = []
    for cell in cells:
        alike = [other for other in cells if other.title == cell.title]
        title = cell.title
        ways = [setting_words(key, cell.settings[key]) for key in varying(alike) if key in cell.settings]
        ways += [cell.window] if cell.window and len({other.window for other in alike}) > 1 else []
        if len({other.dataset for other in alike}) > 1 or (len(alike) > 1 and not ways):
            title += f" ({cell.dataset})"
        titled.append(msgspec.structs.replace(cell, title=", ".join([title, *ways])))
    return tuple(titled)


class _Reading:
    """Reads one run, as much of it as is wanted."""

    def __init__(self, run: Run, episodes: dict[str, EpisodeScores], details: bool) -> None:
        self._run, self._episodes, self._details = run, episodes, details
        models = dict.fromkeys((one.cell, one.label) for one in run.episodes if one.by_model)
        self._sessions = sessions_each(len(models))
        # The same models under several settings are compared path by path.
        self._varied = len(run.spec.variants) > 1

    def cell(self, rows: Sequence[AgentScores]) -> CellData:
        run, episodes = self._run, self._episodes
        key = rows[0].episodes[0]
        episode = run.episode(key)
        benchmark = run.manifest.benchmark(episode)
        sound = [key for row in rows for key in row.episodes if episodes[key].status == "done"]
        agents = tuple(self.agent(row) for row in rows)
        sessions = tuple(record.session for record in run.records(sound[0])) if sound else ()
        traded = {trade.symbol for agent in agents for trade in agent.trades}
        index, prices = _market(run, sound[0], sessions, traded) if self._details and sound else (None, {})
        badges = run.cell_badges(rows[0].cell)
        return CellData(
            id=rows[0].cell,
            title=benchmark.title,
            benchmark=rows[0].benchmark,
            dataset=rows[0].dataset,
            badges=badges,
            sessions=sessions,
            agents=agents,
            baseline=next((row.agent for row in rows if row.baseline), ""),
            baseline_phrase="buy and hold" if benchmark.baseline in _BUY_AND_HOLD else benchmark.baseline,
            description=benchmark.description,
            rules=benchmark.rules_text(),
            periods_per_year=benchmark.periods_per_year,
            index_name=benchmark.index,
            index=index,
            prices=prices,
            settings=dict(episode.protocol),
            window=episode.window,
            published=figures(run, key, badges, sessions, agents) if self._details else None,
        )

    def agent(self, row: AgentScores) -> AgentData:
        episodes = self._episodes
        sound = [key for key in row.episodes if episodes[key].status == "done"]
        failed = tuple((key, str(episodes[key].reason)) for key in row.episodes if key not in sound)
        model = model_summary(self._run, row)
        plain = AgentData(
            name=row.agent,
            measures=row.measures,
            baseline=row.baseline,
            added=row.added,
            seeds=len(row.episodes),
            versus_baseline=row.versus_baseline,
            p_adjusted=row.p_adjusted,
            failure="; ".join(dict.fromkeys(reason for _, reason in failed)) if not sound else None,
            failed_episodes=failed,
            rejections=_counts(episodes[key].rejections for key in row.episodes),
            failures=_counts(episodes[key].failures for key in row.episodes),
            model=model,
        )
        leads = row.versus_baseline is not None and bool(row.versus_baseline.distinguishable)
        compared = model is not None and self._varied
        if not self._details and not leads and not compared:
            return plain
        # Leaders are compared with each other path by path, so their paths are always needed.
        plain = msgspec.structs.replace(plain, paths=tuple(_path(self._run.records(key)) for key in sound))
        if not self._details:
            return plain
        keys = sound or list(row.episodes)
        detailed = _with_details(self._run, plain, keys, episodes)
        if model is None:
            return detailed
        spoken = model_details(self._run, row, model, keys[detailed.shown], self._sessions)
        return msgspec.structs.replace(detailed, model=spoken)


def _with_details(
    run: Run, agent: AgentData, keys: Sequence[str], episodes: dict[str, EpisodeScores]
) -> AgentData:
    # The repetition in the middle stands for all; without a result, the first one still shows what was said.
    middle = sorted(range(len(agent.paths)), key=lambda place: agent.paths[place][-1])
    shown = middle[(len(middle) - 1) // 2] if middle else 0
    records = tuple(run.records(keys[shown]))
    trades, trades_left_out = _trades(records)
    decisions, decisions_left_out = _decisions(records)
    return msgspec.structs.replace(
        agent,
        shown=shown,
        shown_seed=episodes[keys[shown]].seed,
        holdings=_holdings(records) if agent.paths else None,
        trades=trades,
        trades_left_out=trades_left_out,
        decisions=decisions,
        decisions_left_out=decisions_left_out,
    )


def _holdings(records: Sequence[StepRecord]) -> HoldingsOverTime:
    held = holdings_from_records(records)
    return HoldingsOverTime(
        symbols=held.symbols,
        weights=tuple(tuple(column) for column in np.ascontiguousarray(held.weights.T).tolist()),
    )


def _trades(records: Iterable[StepRecord]) -> tuple[tuple[Trade, ...], int]:
    """Return the trades in the symbols traded most, and how many trades were left out."""
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
    return kept, len(every) - len(kept)


def _decisions(records: Sequence[StepRecord]) -> tuple[tuple[DecisionNote, ...], int]:
    """Return the latest decisions with something in them, newest first, and how many more there are."""
    notes = [
        DecisionNote(
            session=record.session,
            orders=_orders(record.decision.orders),
            reason=record.decision.reason,
            failed=record.decision.status == "failed",
            problems=tuple(f"{failure.kind}: {failure.detail}" for failure in record.decision.failures),
        )
        for record in records
        if record.decision.orders or record.decision.reason or record.decision.failures
    ]
    return tuple(reversed(notes[-MOST_DECISIONS:])), max(0, len(notes) - MOST_DECISIONS)


def _orders(orders: Sequence[Order]) -> tuple[str, ...]:
    shown = tuple(order_words(order) for order in orders[:MOST_ORDERS])
    return shown if len(orders) <= MOST_ORDERS else (*shown, f"and {len(orders) - MOST_ORDERS} more")


def _market(
    run: Run, key: str, sessions: Sequence[str], symbols: set[str]
) -> tuple[tuple[float, ...] | None, dict[str, tuple[float | None, ...]]]:
    """Return index levels and closing prices, as traded, of ``symbols``; nothing when the data cannot be read."""
    try:
        levels = run.series(key).index
        prices = _prices(run, key, sessions, symbols)
    except (DataError, RunError) as error:
        warnings.warn(f"no index and no prices in the report: {error}", TradeassayWarning, stacklevel=2)
        return None, {}
    return (None if levels is None else tuple(levels.tolist())), prices


def _prices(run: Run, key: str, sessions: Sequence[str], symbols: set[str]) -> dict[str, tuple[float | None, ...]]:
    snapshot = run.snapshot(key)
    rows = snapshot.rows(sessions[0], sessions[-1])
    if len(rows) != len(sessions):
        return {}
    view = snapshot.at(rows[-1], "close")
    closes = view.bars("close", len(rows), adjust="none")
    return {
        symbol: tuple(None if np.isnan(price) else float(price) for price in closes[:, view.column(symbol)])
        for symbol in sorted(symbols)
    }


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


def _counts(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for reason, count in part.items():
            total[reason] = total.get(reason, 0) + count
    return total


def _hashes(run: Run) -> tuple[tuple[str, str], ...]:
    manifest = run.manifest
    pairs = [("work (the spec)", manifest.work_sha256)]
    pairs += [(f"data {name}", dataset.sha256) for name, dataset in manifest.datasets.items()]
    for name, benchmark in manifest.benchmarks.items():
        pairs += [(f"benchmark {name}", benchmark.sha256), (f"venue of {name}", benchmark.venue_sha256)]
    pairs += [(f"agent {name}", agent.sha256) for name, agent in manifest.agents.items() if agent.sha256]
    pairs += [(f"journal {episode.key}", episode.events_sha256) for episode in run.scores.episodes]
    return tuple(pairs)


def _versions(run: Run) -> tuple[tuple[str, str], ...]:
    versions = run.manifest.versions
    machine = ("platform", f"{versions.platform} {versions.machine}")
    return (*versions.packages.items(), ("python", versions.python), machine)
