"""What a recorded account's return is made of: market, style, selection and trading, adding up exactly.

An account is replayed from its journal session by session (:func:`account_days`): its starting weights, and where
trading money went.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.account import Ledger
from tradeassay.assay.attribution import Account, Attribution, Taking, build
from tradeassay.assay.inputs import MarketQuery, market_inputs
from tradeassay.core.errors import LedgerError, RunError
from tradeassay.core.events import BorrowCharged, Event, Filled, InterestCharged, Settled, StepRecord
from tradeassay.core.executors import HERE, Spread
from tradeassay.core.measure import Convention, Measure, not_scored, plain_sum
from tradeassay.core.view import Bools, Floats
from tradeassay.metrics import BootstrapConfig, SeedSummary, summarise
from tradeassay.metrics.attribution import MAIN, TOLERANCE, DailyParts, SignAgreement, preferences, sign_agreement

if TYPE_CHECKING:
    from tradeassay.runs import EpisodeSpec, Run

COSTS = ("fees", "slippage", "financing", "futures")
"""What is known of trading from the journal; ``fills`` is the rest: trades inside the day against its close,
orders that were filled away from the close, fractions paid out, holdings without a price."""


@dataclass(frozen=True, slots=True)
class AccountDays:
    """T sessions up to the first that began with nothing. ``nav`` (T + 1,) starts with the initial value.
    ``weights`` (T, N) are shares of the value before a session, of stocks, coins and funds; futures are not in
    them, because their value is not money in the account. ``costs`` hold fractions of the value before the
    session. ``ruined`` names the session that ended at zero or below."""

    sessions: tuple[str, ...]
    nav: Floats
    weights: Floats
    costs: dict[str, Floats]
    ruined: str | None = None

    @property
    def returns(self) -> Floats:
        """What the account returned each session."""
        gained: Floats = self.nav[1:] / self.nav[:-1] - 1.0
        return gained


def account_days(records: Iterable[StepRecord], symbols: tuple[str, ...], futures: Bools) -> AccountDays:
    """Replay a journal; ``symbols`` are the columns, ``futures`` says which are contracts. Raises
    :class:`RunError` when a holding is in none of the columns, and :class:`~tradeassay.core.errors.LedgerError`
    when the journal breaks an accounting identity."""
    place = {symbol: column for column, symbol in enumerate(symbols)}
    sessions: list[str] = []
    nav: list[float] = []
    weights: list[Floats] = []
    costs: dict[str, list[float]] = {name: [] for name in COSTS}
    held = np.zeros(len(symbols))
    ruined: str | None = None
    for ledger, record in Ledger.steps(records):
        nav = nav or [ledger.deposit.cash]
        before, value = nav[-1], ledger.nav()
        sessions.append(record.session)
        nav.append(value)
        weights.append(held)  # a session starts with what the one before it left
        for name, money in _money((*record.opening, *record.events)).items():
            costs[name].append(money / before)
        if not value > 0.0:
            ruined = record.session
            break
        held = np.zeros(futures.size)
        for symbol, one in ledger.holdings.items():
            if symbol not in place:
                raise RunError(
                    f"'{symbol}' is held but not in the data", hint="use the data the run was played on"
                )
            held[place[symbol]] = one.quantity * one.mark * one.multiplier / value
        held[futures] = 0.0
    return AccountDays(
        sessions=tuple(sessions),
        nav=np.array(nav or [np.nan]),
        weights=np.array(weights).reshape(len(sessions), len(symbols)),
        costs={name: np.array(values) for name, values in costs.items()},
        ruined=ruined,
    )


def _money(events: Iterable[Event]) -> dict[str, float]:
    """Return what a session's trading cost or brought, by kind."""
    money = dict.fromkeys(COSTS, 0.0)
    for event in events:
        if isinstance(event, Filled):
            money["fees"] -= event.fee + event.tax
            if not event.margined:
                money["slippage"] -= event.quantity * (event.price - event.reference) * event.multiplier
        elif isinstance(event, BorrowCharged | InterestCharged):
            money["financing"] += event.cash
        elif isinstance(event, Settled):
            money["futures"] += event.cash
    return money


class AgentAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one cell, called as on every page: its linked parts over seeds, and its exposure preferences
    over all invested days."""

    cell: str
    agent: str
    by_model: bool
    baseline: bool
    episodes: tuple[str, ...]
    linked: dict[str, SeedSummary]
    preferences: dict[str, Measure]


class RunAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """Every episode of a run taken apart, agents summed up, and how models lean against baselines, by cell."""

    episodes: dict[str, Attribution]
    agents: tuple[AgentAttribution, ...]
    agreement: dict[str, SignAgreement]


def attribute_episode(
    run: Run, key: str, *, convention: Convention | None = None, bootstrap: BootstrapConfig | None = None
) -> Attribution:
    """Take one episode apart; reads its journal and the hashed data it was played on, and nothing else.
    ``convention`` defaults to the run's: ``sound`` has four parts of the account's own return, ``paper`` three
    parts of its starting weights held from mark to mark. ``bootstrap`` defaults to the run's. Raises
    :class:`~tradeassay.core.errors.RunError` when the episode has not ended or its data has changed."""
    return _episode(run, run.episode(key), convention, bootstrap)[0]


def attribute_run(
    run: Run,
    *,
    convention: Convention | None = None,
    bootstrap: BootstrapConfig | None = None,
    spread: Spread = HERE,
    intervals: bool = True,
) -> RunAttribution:
    """Take every episode of a run apart, wherever ``spread`` says, and sum up its agents. Without ``intervals``
    parts have values alone; agents' preferences always have theirs. Those of models are compared with those of
    every agent that is not a language model."""
    found: dict[str, Attribution] = {}
    days: dict[tuple[str, str], list[DailyParts]] = {}
    members: dict[tuple[str, str], list[EpisodeSpec]] = {}
    take = partial(_episode, run, convention=convention, bootstrap=bootstrap, intervals=intervals)
    for episode, (taken, daily) in zip(run.episodes, spread.map(take, run.episodes), strict=True):
        found[episode.key] = taken
        row = (episode.cell, episode.label)
        members.setdefault(row, []).append(episode)
        if taken.linked is not None:
            days.setdefault(row, []).append(daily)
    agents: list[AgentAttribution] = []
    missing = not_scored("not a part of this episode")
    for row, episodes in members.items():
        each, first = [found[one.key] for one in episodes], episodes[0]
        names = dict.fromkeys(name for one in each for name in one.intervals)
        leans = dict.fromkeys(each[0].factors, not_scored(str(each[0].reason)))
        agents.append(
            AgentAttribution(
                cell=first.cell,
                agent=run.names[first.label],
                by_model=first.by_model,
                baseline=first.baseline,
                episodes=tuple(episode.key for episode in episodes),
                linked={name: summarise([one.intervals.get(name, missing) for one in each]) for name in names},
                preferences=preferences(days[row], bootstrap=bootstrap or run.spec.bootstrap)
                if row in days
                else leans,
            )
        )
    agreement: dict[str, SignAgreement] = {}
    for cell in dict.fromkeys(agent.cell for agent in agents):
        inside = [agent for agent in agents if agent.cell == cell]
        models = [agent.preferences for agent in inside if agent.by_model]
        against = [agent.preferences for agent in inside if not agent.by_model]
        if models and against:
            agreement[cell] = sign_agreement(models, against)
    return RunAttribution(episodes=found, agents=tuple(agents), agreement=agreement)


def check_identity(what: Attribution | RunAttribution, *, tolerance: float = TOLERANCE) -> float:
    """Return the greatest distance of any sum of parts from its total, daily and over the window, Brinson
    included. Raises :class:`LedgerError` when it is above ``tolerance``: parts that do not add up explain
    nothing."""
    if isinstance(what, RunAttribution):
        return max((check_identity(one, tolerance=tolerance) for one in what.episodes.values()), default=0.0)
    daily, linked = what.daily, what.linked
    parts = np.array(daily.common) + daily.styles + np.array(daily.selection) + np.array(daily.trading)
    gaps = [parts - np.array(daily.total)]
    if daily.trading_parts:
        gaps.append(
            np.sum([np.array(row) for row in daily.trading_parts.values()], axis=0) - np.array(daily.trading)
        )
    errors = [float(np.max(np.abs(gap), initial=0.0)) for gap in gaps]
    if linked is not None and what.total is not None:
        errors += [abs(plain_sum(linked[name] for name in MAIN) - what.total), abs(linked["total"] - what.total)]
        for whole in ("style", "trading"):
            known = [value for name, value in linked.items() if name.startswith(f"{whole}.")]
            errors += [abs(plain_sum(known) - linked[whole])] if known else []
    for one in what.brinson:
        if one.portfolio is not None and one.benchmark is not None and one.trading is not None:
            known = [*one.allocation.values(), *one.selection.values(), *one.interaction.values(), one.trading]
            errors += [one.daily_error, abs(plain_sum(known) - (one.portfolio - one.benchmark))]
    worst = max(errors, default=0.0)
    if not worst <= tolerance:
        raise LedgerError(f"{what.source}: the parts miss the total by {worst:.3g}")
    return worst


def _episode(
    run: Run,
    episode: EpisodeSpec,
    convention: Convention | None,
    bootstrap: BootstrapConfig | None,
    intervals: bool = True,
) -> tuple[Attribution, DailyParts]:
    failure = run.series(episode.key).failure
    benchmark = run.manifest.benchmark(episode)
    convention = convention or run.manifest.convention
    # A paper's tables have the nine factors and no others.
    query = MarketQuery.of(benchmark.market, beside=convention != "paper")
    inputs = market_inputs(run.snapshot(episode.key), query)
    days = account_days(run.records(episode.key), inputs.symbols, inputs.futures)
    notes = () if days.ruined is None else (f"the account was worth nothing or less on {days.ruined}",)
    account = Account(
        source=episode.key,
        weights=days.weights,
        returns=days.returns,
        parts=days.costs,
        failure=failure,
        notes=notes,
        total=float(days.nav[-1] / days.nav[0] - 1.0),
    )
    count = len(days.sessions)
    if inputs.sessions[:count] != days.sessions:
        hint = "verify the run: tradeassay verify <folder>"
        raise RunError(f"episode {episode.key} was not played session by session", hint=hint)
    taking = Taking(
        convention=convention,
        year=benchmark.periods_per_year,
        bootstrap=bootstrap or run.spec.bootstrap,
        intervals=intervals,
    )
    return build(inputs.until(count), account, taking)
