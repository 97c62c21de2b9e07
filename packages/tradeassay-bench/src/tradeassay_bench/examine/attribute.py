"""Attribute an account's return to market, style, selection and trading, which sum to it exactly.

:func:`account_days` replays a recorded account from its journal, session by session. The replay
yields the starting weights and the components of trading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.metrics import BootstrapConfig, SeedSummary, summarise
from tradeassay.metrics.attribution import (
    FULL,
    MAIN,
    MARKET,
    NONE,
    RUINED,
    TOLERANCE,
    DailyParts,
    SignAgreement,
    Totals,
    brinson,
    compounded,
    decompose,
    link_difference,
    preferences,
    rows_of,
    sign_agreement,
    total_parts,
)
from tradeassay.metrics.capacity import impact_rate
from tradeassay.verdict.attribution import (
    Attribution,
    BrinsonTotals,
    DailyAttribution,
    Fit,
    Numbers,
)
from tradeassay_bench.account import Ledger
from tradeassay_bench.core.errors import LedgerError, RunError
from tradeassay_bench.core.events import BorrowCharged, Filled, InterestCharged, StepRecord
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.core.view import Board
from tradeassay_bench.examine.market_window import UNSIZED, MarketInputs, MarketQuery, market_inputs

if TYPE_CHECKING:
    from tradeassay_bench.runs import EpisodeSpec, Run


def _plain(values: Floats) -> Numbers:
    return tuple(values.tolist())


UNCLASSIFIED = "unclassified"
_BY_SESSION = ("total", "common", "tilt", "selection", "uncovered", "trading", "invested", "gross")


@dataclass(frozen=True, slots=True)
class Account:
    """An account to attribute: T sessions of starting ``weights`` (T, N) and ``returns`` (T,).

    If ``returns`` is None, the returns are Σ w r. ``parts`` contains the known parts of trading.
    The unknown part is listed under ``rest``. ``failure`` is the reason why the account has no
    result. ``year`` is the number of sessions per year. If ``intervals`` is False, the parts have
    values only, and preferences are omitted.
    """

    source: str
    weights: Floats
    returns: Floats | None
    year: int
    bootstrap: BootstrapConfig
    convention: Convention = "corrected"
    intervals: bool = True
    parts: dict[str, Floats] = field(default_factory=dict)
    rest: str = "fills"
    failure: str | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    total: float | None = None


def build(inputs: MarketInputs, account: Account) -> tuple[Attribution, DailyParts]:
    """Return the attribution of an account and its daily parts.

    ``inputs`` and ``account`` must cover the same sessions.
    """
    corrected = account.convention == "corrected"
    baskets = inputs.baskets
    daily = decompose(
        inputs.model, account.weights, account.returns if corrected else None, baskets=baskets
    )
    trading: dict[str, Floats] = {}
    if corrected and account.returns is not None:
        trading = {name: values for name, values in account.parts.items() if values.any()}
        trading[account.rest] = daily.trading - sum(trading.values(), np.zeros(daily.trading.size))
    groups = []
    ever = np.flatnonzero(inputs.investable.any(axis=0)).tolist()
    for by in ("sector", "board"):
        labels = []
        for instrument in inputs.instruments:
            if by == "sector":
                label = instrument.sector
            else:
                label = None if instrument.board is Board.NONE else instrument.board.value
            labels.append("fund" if instrument.kind == "index" else label or UNCLASSIFIED)
        if len({labels[column] for column in ever} - {UNCLASSIFIED}) > 1:
            groups.append(_brinson_by(by, inputs, account.weights, daily, labels))
    chosen = np.where(baskets, 0.0, account.weights * inputs.model.residuals).sum(axis=0)
    most = np.argsort(-chosen)[:5]
    by_name = {
        inputs.symbols[place]: float(chosen[place])
        for place in most.tolist()
        if chosen[place] > 0.0
    }
    impact = None
    if (
        inputs.traded.shape == account.weights.shape
        and len(account.weights) > 1
        and (daily.total > -1.0).all()
    ):
        impact = impact_rate(account.weights, inputs.model.returns, daily.total, inputs.traded)
    return msgspec.structs.replace(
        as_record(inputs, account, daily, trading),
        brinson=tuple(groups),
        by_name=by_name,
        impact=() if impact is None else _plain(impact[0]),
        impact_known=None if impact is None else impact[1],
    ), daily


def as_record(
    inputs: MarketInputs,
    account: Account,
    daily: DailyParts,
    trading: Mapping[str, Floats] | None = None,
) -> Attribution:
    """Return the record of an attribution: daily parts with totals, intervals and notes.

    ``trading`` contains the parts of trading if holdings are known, else it is None.
    """
    held, trading, bootstrap = trading is not None, trading or {}, account.bootstrap
    rows = rows_of(daily, {f"trading.{name}": values for name, values in trading.items()})
    if account.failure is None:
        totals = total_parts(rows, periods_per_year=account.year, bootstrap=bootstrap)
        likes = preferences(daily, bootstrap=bootstrap) if held and account.intervals else {}
    else:
        none = dict.fromkeys(rows, not_scored(account.failure))
        totals = Totals(linked=None, reason=account.failure, intervals=none, per_year=dict(none))
        likes = dict.fromkeys(daily.factors, not_scored(account.failure))
    share = daily.covered_share[np.isfinite(daily.covered_share)]
    earned = float(compounded(daily.total)) if totals.linked is not None else None
    own = account.total
    if own is None and account.returns is not None and (account.returns > -1.0).all():
        own = float(compounded(account.returns))
    if (
        account.convention == "corrected"
        and account.total is not None
        and totals.linked is not None
    ):
        earned = account.total
    model = inputs.model
    explained = model.explained[(model.fitted == FULL) & np.isfinite(model.explained)]
    return Attribution(
        source=account.source,
        dataset=inputs.dataset,
        convention=account.convention,
        universe=inputs.query.universe,
        method="holdings" if held else "returns",
        year=account.year,
        factors=daily.factors,
        first=inputs.sessions[0] if inputs.sessions else None,
        last=inputs.sessions[-1] if inputs.sessions else None,
        total=earned,
        account_return=own if account.failure is None else None,
        linked=totals.linked,
        reason=totals.reason,
        intervals=totals.intervals,
        per_year=totals.per_year,
        preferences=likes,
        covered_share=float(share.mean()) if share.size else None,
        fit=Fit(
            full_days=int((model.fitted == FULL).sum()),
            market_days=int((model.fitted == MARKET).sum()),
            empty_days=int((model.fitted == NONE).sum()),
            explained=float(explained.mean()) if explained.size else None,
            sized_by=inputs.sized_by,
            price=inputs.query.price,
            screen=inputs.screen,
        ),
        brinson=(),
        daily=DailyAttribution(
            sessions=inputs.sessions,
            **{name: _plain(getattr(daily, name)) for name in _BY_SESSION},
            style={name: _plain(daily.style[:, k]) for k, name in enumerate(daily.factors)},
            trading_parts={name: _plain(values) for name, values in trading.items()},
            covered_share=tuple(float(x) if np.isfinite(x) else None for x in daily.covered_share),
            exposures={name: _plain(daily.exposures[:, k]) for k, name in enumerate(daily.factors)},
            references={name: _plain(values) for name, values in inputs.references.items()},
        ),
        notes=(*account.notes, *_notes(inputs)),
        doubts=account.doubts,
    )


def _notes(inputs: MarketInputs) -> tuple[str, ...]:
    """Return notes on the limits of an attribution over a window."""
    model, screen, days = inputs.model, inputs.screen, len(inputs.sessions)
    notes = []
    few, none = int((model.fitted == MARKET).sum()), int((model.fitted == NONE).sum())
    if few:
        notes.append(
            f"on {few} of {days} days there are too few names for the factors, so there is no "
            "style part"
        )
    if none:
        notes.append(
            f"on {none} of {days} days there are no names to compare, so all holdings are uncovered"
        )
    if screen.dropped:
        names = ", ".join(screen.dropped)
        notes.append(
            f"{names}: explained by the other factors (VIF above {screen.limit:g}), so the split "
            "is not reliable"
        )
    if screen.sessions == 0:
        notes.append("the factors could not be screened on sessions before the window")
    if inputs.query.price == "open":
        notes.append(
            "marked at the open: returns are open to open, exposures were known before the first "
            "of them"
        )
    if ":" in inputs.query.universe:
        notes.append(
            f"factor returns are estimated over all of {inputs.query.universe.rpartition(':')[0]}"
        )
    return tuple(notes)


def _brinson_by(
    by: Literal["sector", "board"],
    inputs: MarketInputs,
    weights: Floats,
    daily: DailyParts,
    labels: list[str],
) -> BrinsonTotals:
    """Return the Brinson attribution by sector or by board, given the label of each column."""
    capped = inputs.sized_by not in UNSIZED
    name = inputs.sized_by if capped else "equal parts"
    size = np.where(
        inputs.investable & np.isfinite(inputs.size) & (inputs.size > 0), inputs.size, 0.0
    )
    base = size if capped else inputs.investable.astype(np.float64)
    whole = base.sum(axis=1, keepdims=True)
    if not (whole > 0).all():
        return BrinsonTotals(by=by, weighted_by=name, reason="on some days no name is investable")
    groups = sorted(set(labels))
    place = np.array([groups.index(label) for label in labels], dtype=np.int64)
    parts = brinson(weights, base / whole, inputs.model.returns, place, groups)
    each = (parts.allocation, parts.selection, parts.interaction, daily.trading[:, None])
    stacked = np.concatenate(each, axis=1)
    linked = link_difference(stacked.T, daily.total, parts.benchmark)
    if linked is None:
        return BrinsonTotals(by=by, weighted_by=name, reason=RUINED)
    count = len(parts.groups)
    named = [
        dict(zip(parts.groups, linked[k * count : (k + 1) * count].tolist(), strict=True))
        for k in range(3)
    ]
    return BrinsonTotals(
        by=by,
        weighted_by=name,
        groups=parts.groups,
        allocation=named[0],
        selection=named[1],
        interaction=named[2],
        trading=float(linked[-1]),
        portfolio=float(compounded(daily.total)),
        benchmark=float(compounded(parts.benchmark)),
        daily_error=float(
            np.max(np.abs(stacked.sum(axis=1) - (daily.total - parts.benchmark)), initial=0.0)
        ),
    )


COSTS = ("fees", "slippage", "financing")
"""The parts of trading that the journal states.

``fills`` is the remainder: intraday trades measured against the close, orders filled at a price
different from the close, cash paid for fractional shares, and holdings without a price.
"""


@dataclass(frozen=True, slots=True)
class AccountDays:
    """An account's T sessions, up to the first session that began with a value of zero or less.

    ``nav`` (T + 1,) begins with the initial value. ``weights`` (T, N) are shares of the value
    before a session. ``costs`` are fractions of the value before the session. ``ruined`` is the
    session that ended at zero or below.
    """

    sessions: tuple[str, ...]
    nav: Floats
    weights: Floats
    costs: dict[str, Floats]
    ruined: str | None = None

    @property
    def returns(self) -> Floats:
        """Return the account's return in each session."""
        gained: Floats = self.nav[1:] / self.nav[:-1] - 1.0
        return gained


def account_days(records: Iterable[StepRecord], symbols: tuple[str, ...]) -> AccountDays:
    """Replay a journal and return the account's days. ``symbols`` names the columns.

    Raises :class:`RunError` for a holding that has no column, and
    :class:`~tradeassay_bench.core.errors.LedgerError` if the journal violates an accounting
    identity.
    """
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
        weights.append(
            held
        )  # A session starts with the holdings at the end of the previous session.
        money = dict.fromkeys(COSTS, 0.0)
        for event in (*record.opening, *record.events):
            if isinstance(event, Filled):
                money["fees"] -= event.fee + event.tax
                slip = event.quantity * (event.price - event.reference)
                money["slippage"] -= slip * event.multiplier
            elif isinstance(event, BorrowCharged | InterestCharged):
                money["financing"] += event.cash
        for name, amount in money.items():
            costs[name].append(amount / before)
        if not value > 0.0:
            ruined = record.session
            break
        held = np.zeros(len(symbols))
        for symbol, one in ledger.holdings.items():
            if symbol not in place:
                raise RunError(
                    f"'{symbol}' is held but not in the data",
                    hint="use the data of the run",
                )
            held[place[symbol]] = one.quantity * one.mark * one.multiplier / value
    return AccountDays(
        sessions=tuple(sessions),
        nav=np.array(nav or [np.nan]),
        weights=np.array(weights).reshape(len(sessions), len(symbols)),
        costs={name: np.array(values) for name, values in costs.items()},
        ruined=ruined,
    )


class AgentAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution of one agent in one setting.

    ``agent`` is the displayed name. The parts are linked over the window and averaged over seeds.
    Exposure preferences are measured over all invested days.
    """

    setting: str = msgspec.field(name="cell")
    agent: str
    by_model: bool
    baseline: bool
    episodes: tuple[str, ...]
    linked: dict[str, SeedSummary]
    preferences: dict[str, Measure]


class RunAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attributions of all episodes of a run, with summaries by agent.

    ``agreement`` compares the models' preferences with the baselines' preferences, by setting.
    """

    episodes: dict[str, Attribution]
    agents: tuple[AgentAttribution, ...]
    agreement: dict[str, SignAgreement]


def attribute_episode(
    run: Run,
    key: str,
    *,
    convention: Convention | None = None,
    bootstrap: BootstrapConfig | None = None,
) -> Attribution:
    """Return the attribution of one episode, from its journal and the hashed data of the run.

    ``convention`` defaults to the run's. ``corrected`` splits the account's return into four parts.
    ``paper`` splits the return of the starting weights, held from mark to mark, into three parts.
    ``bootstrap`` defaults to the run's.

    Raises :class:`~tradeassay_bench.core.errors.RunError` if the episode has not ended or its data
    has changed.
    """
    return _episode(run, run.episode(key), convention, bootstrap)[0]


def attribute_run(
    run: Run,
    *,
    convention: Convention | None = None,
    bootstrap: BootstrapConfig | None = None,
    spread: Spread = HERE,
    intervals: bool = True,
) -> RunAttribution:
    """Attribute every episode of a run and summarise its agents.

    ``spread`` distributes the episodes.

    Without ``intervals`` the parts have values only. The agents' preferences always have intervals.
    The preferences of models are compared with those of all agents that are not language models.
    """
    attributions: dict[str, Attribution] = {}
    days: dict[tuple[str, str], list[DailyParts]] = {}
    members: dict[tuple[str, str], list[EpisodeSpec]] = {}
    take = partial(_episode, run, convention=convention, bootstrap=bootstrap, intervals=intervals)
    for episode, (attribution, daily) in zip(
        run.episodes, spread.map(take, run.episodes), strict=True
    ):
        attributions[episode.key] = attribution
        row = (episode.setting, episode.label)
        members.setdefault(row, []).append(episode)
        if attribution.linked is not None:
            days.setdefault(row, []).append(daily)
    agents: list[AgentAttribution] = []
    missing = not_scored("not a part of this episode")
    for row, episodes in members.items():
        each, first = [attributions[episode.key] for episode in episodes], episodes[0]
        names = dict.fromkeys(chain.from_iterable(of_seed.intervals for of_seed in each))
        tilts = dict.fromkeys(each[0].factors, not_scored(str(each[0].reason)))
        if row in days:
            tilts = preferences(days[row], bootstrap=bootstrap or run.spec.bootstrap)
        agents.append(
            AgentAttribution(
                setting=first.setting,
                agent=run.names[first.label],
                by_model=first.by_model,
                baseline=first.baseline,
                episodes=tuple(episode.key for episode in episodes),
                linked={
                    name: summarise([of_seed.intervals.get(name, missing) for of_seed in each])
                    for name in names
                },
                preferences=tilts,
            )
        )
    agreement: dict[str, SignAgreement] = {}
    for setting in dict.fromkeys(agent.setting for agent in agents):
        inside = [agent for agent in agents if agent.setting == setting]
        models = [agent.preferences for agent in inside if agent.by_model]
        against = [agent.preferences for agent in inside if not agent.by_model]
        if models and against:
            agreement[setting] = sign_agreement(models, against)
    return RunAttribution(episodes=attributions, agents=tuple(agents), agreement=agreement)


def check_identity(what: Attribution | RunAttribution, *, tolerance: float = TOLERANCE) -> float:
    """Return the largest difference between a sum of parts and its total.

    Daily parts, parts over the window and Brinson parts are included. Raises :class:`LedgerError`
    above ``tolerance``, because parts that do not sum to the total explain nothing.
    """
    if isinstance(what, RunAttribution):
        return max(
            (check_identity(episode, tolerance=tolerance) for episode in what.episodes.values()),
            default=0.0,
        )
    daily, linked = what.daily, what.linked
    parts = (
        np.array(daily.common) + daily.styles + np.array(daily.selection) + np.array(daily.trading)
    )
    gaps = [parts - np.array(daily.total)]
    if daily.trading_parts:
        gaps.append(
            np.sum([np.array(row) for row in daily.trading_parts.values()], axis=0)
            - np.array(daily.trading)
        )
    errors = [float(np.max(np.abs(gap), initial=0.0)) for gap in gaps]
    if linked is not None and what.total is not None:
        errors += [
            abs(math.fsum(linked[name] for name in MAIN) - what.total),
            abs(linked["total"] - what.total),
        ]
        for whole in ("style", "trading"):
            values = [value for name, value in linked.items() if name.startswith(f"{whole}.")]
            errors += [abs(math.fsum(values) - linked[whole])] if values else []
    for groups in what.brinson:
        if (
            groups.portfolio is not None
            and groups.benchmark is not None
            and groups.trading is not None
        ):
            values = [
                *groups.allocation.values(),
                *groups.selection.values(),
                *groups.interaction.values(),
                groups.trading,
            ]
            errors += [
                groups.daily_error,
                abs(math.fsum(values) - (groups.portfolio - groups.benchmark)),
            ]
    worst = max(errors, default=0.0)
    if not worst <= tolerance:
        raise LedgerError(f"{what.source}: the parts differ from the total by up to {worst:.3g}")
    return worst


def _episode(
    run: Run,
    episode: EpisodeSpec,
    convention: Convention | None,
    bootstrap: BootstrapConfig | None,
    intervals: bool = True,
) -> tuple[Attribution, DailyParts]:
    """Return the attribution of one episode and its daily parts."""
    failure = run.series(episode.key).failure
    benchmark = run.manifest.benchmark(episode)
    convention = convention or run.manifest.convention
    # The paper's tables have exactly the nine factors.
    query = MarketQuery.of(benchmark.market, beside=convention != "paper")
    inputs = market_inputs(run.snapshot(episode.key), query)
    days = account_days(run.records(episode.key), inputs.symbols)
    notes = (
        () if days.ruined is None else (f"the account's value was zero or less on {days.ruined}",)
    )
    account = Account(
        source=episode.key,
        weights=days.weights,
        returns=days.returns,
        parts=days.costs,
        year=benchmark.periods_per_year,
        bootstrap=bootstrap or run.spec.bootstrap,
        convention=convention,
        intervals=intervals,
        failure=failure,
        notes=notes,
        total=float(days.nav[-1] / days.nav[0] - 1.0),
    )
    count = len(days.sessions)
    if inputs.sessions[:count] != days.sessions:
        hint = "verify the run: tradeassay verify <folder>"
        raise RunError(
            f"the sessions of episode {episode.key} are not those of its market", hint=hint
        )
    return build(inputs.until(count), account)
