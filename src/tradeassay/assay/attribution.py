"""From a market and an account's days to an attribution, and the frozen records it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from tradeassay.assay.inputs import UNSIZED, MarketInputs
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.core.view import Board, Floats
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.attribution import (
    FULL,
    MARKET,
    NONE,
    RUINED,
    DailyParts,
    Totals,
    VifScreen,
    brinson,
    compounded,
    decompose,
    link_difference,
    preferences,
    rows_of,
    total_parts,
)
from tradeassay.metrics.capacity import impact_rate

Numbers = tuple[float, ...]


class DailyAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """Every session: ``total`` = ``common`` + the styles + ``selection`` + ``trading``. ``tilt`` is what the
    styles would have earned at their mean exposures. ``uncovered`` is part of ``selection``; ``trading_parts`` sum
    to ``trading``. ``covered_share`` is None on days without a holding. ``exposures``, ``invested`` and ``gross``
    are those at the start of the session. ``references`` are the returns of passive portfolios of the same
    market."""

    sessions: tuple[str, ...]
    total: Numbers
    common: Numbers
    style: dict[str, Numbers]
    tilt: Numbers
    selection: Numbers
    uncovered: Numbers
    trading: Numbers
    trading_parts: dict[str, Numbers]
    covered_share: tuple[float | None, ...]
    exposures: dict[str, Numbers]
    invested: Numbers
    gross: Numbers
    references: dict[str, Numbers] = {}

    @property
    def styles(self) -> Floats:
        """What all styles earned together."""
        each = [*self.style.values()]
        return np.sum(each, axis=0) if each else np.zeros(len(self.sessions))


class BrinsonTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation, selection and interaction by group, linked over the window. They and ``trading`` sum to
    ``portfolio`` - ``benchmark``, the two total returns. The benchmark holds the investable names by
    ``weighted_by``. ``reason`` says why there are no numbers."""

    by: Literal["sector", "board"]
    weighted_by: str
    groups: tuple[str, ...] = ()
    allocation: dict[str, float] = {}
    selection: dict[str, float] = {}
    interaction: dict[str, float] = {}
    trading: float | None = None
    portfolio: float | None = None
    benchmark: float | None = None
    daily_error: float = 0.0
    reason: str | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How the market was estimated: days with factors, with the intercept alone, with neither."""

    full_days: int
    market_days: int
    empty_days: int
    explained: float | None
    sized_by: str
    price: str
    screen: VifScreen


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """One account's return taken apart.

    ``linked`` are parts of the whole return by name: ``common``, ``style``, ``selection`` and ``trading`` sum to
    ``total``; ``style.<factor>`` sum to ``style``; ``uncovered`` is part of ``selection``; ``trading.<what>``
    sum to ``trading``. None with a ``reason`` where linking is undefined or the account has no result.
    ``intervals`` and ``per_year`` (mean daily part times the sessions of a year) are the same parts as measures.
    ``preferences`` is the mean exposure per factor on invested days. ``account_return`` is what the account
    itself returned: under ``paper`` the total leaves out trading and differs from it. ``year`` is how many
    sessions make one. ``by_name`` is what the names that added most brought to selection, summed over days.
    ``impact`` is what trading would have cost an account of one unit of money, by the square-root law, on every
    day but the last (:func:`~tradeassay.metrics.capacity.impact_rate`); ``impact_known`` how much of it is known.
    ``notes`` is what a reader must know, ``doubts`` what of the returns rests on a table's own word."""

    source: str
    dataset: str
    convention: Convention
    universe: str
    method: Literal["holdings", "returns"] = "holdings"
    year: int = 252
    factors: tuple[str, ...]
    first: str | None
    last: str | None
    total: float | None
    account_return: float | None
    linked: dict[str, float] | None
    reason: str | None
    intervals: dict[str, Measure]
    per_year: dict[str, Measure]
    preferences: dict[str, Measure]
    covered_share: float | None
    fit: Fit
    brinson: tuple[BrinsonTotals, ...]
    daily: DailyAttribution
    by_name: dict[str, float] = {}
    impact: Numbers = ()
    impact_known: float | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def _plain(values: Floats) -> Numbers:
    return tuple(values.tolist())


UNCLASSIFIED = "unclassified"
_MOST = 5
"""Names whose share of selection is kept."""
FUND = "fund"


@dataclass(frozen=True, slots=True)
class Account:
    """What is to be taken apart: T sessions of starting ``weights`` (T, N) and ``returns`` (T,), None for Σ w r.
    ``parts`` name what is known of trading; what they leave goes under ``rest``. ``failure`` says why the account
    has no result."""

    source: str
    weights: Floats
    returns: Floats | None
    parts: dict[str, Floats] = field(default_factory=dict)
    rest: str = "fills"
    failure: str | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    total: float | None = None


@dataclass(frozen=True, slots=True)
class Taking:
    """How an account is taken apart: by which convention, with how many sessions in a ``year``. Without
    ``intervals`` parts have values alone, and preferences are left out: daily parts are all that is used."""

    convention: Convention
    year: int
    bootstrap: BootstrapConfig
    intervals: bool = True


def build(inputs: MarketInputs, account: Account, taking: Taking) -> tuple[Attribution, DailyParts]:
    """Take an account apart; ``inputs`` and the account have the same sessions."""
    sound = taking.convention == "sound"
    baskets = inputs.baskets
    daily = decompose(inputs.model, account.weights, account.returns if sound else None, baskets=baskets)
    trading: dict[str, Floats] = {}
    if sound and account.returns is not None:
        trading = {name: values for name, values in account.parts.items() if values.any()}
        trading[account.rest] = daily.trading - sum(trading.values(), np.zeros(daily.trading.size))
    groups = _brinson(inputs, account.weights, daily)
    chosen = np.where(baskets, 0.0, account.weights * inputs.model.residuals).sum(axis=0)
    most = np.argsort(-chosen)[:_MOST]
    by_name = {inputs.symbols[place]: float(chosen[place]) for place in most.tolist() if chosen[place] > 0.0}
    impact = None
    if inputs.traded.shape == account.weights.shape and len(account.weights) > 1 and (daily.total > -1.0).all():
        impact = impact_rate(account.weights, inputs.model.returns, daily.total, inputs.traded)
    found = record(inputs, account, daily, taking, trading)
    return msgspec.structs.replace(
        found,
        brinson=groups,
        by_name=by_name,
        impact=() if impact is None else _plain(impact[0]),
        impact_known=None if impact is None else impact[1],
    ), daily


def record(
    inputs: MarketInputs,
    account: Account,
    daily: DailyParts,
    taking: Taking,
    trading: Mapping[str, Floats] | None = None,
) -> Attribution:
    """Return daily parts with their totals, intervals and notes as a record; ``trading`` are its parts where
    holdings are known, None where they are not."""
    held, trading, bootstrap = trading is not None, trading or {}, taking.bootstrap
    rows = rows_of(daily, {f"trading.{name}": values for name, values in trading.items()})
    if account.failure is None:
        totals = total_parts(rows, periods_per_year=taking.year, bootstrap=bootstrap)
        likes = preferences(daily, bootstrap=bootstrap) if held and taking.intervals else {}
    else:
        none = dict.fromkeys(rows, not_scored(account.failure))
        totals = Totals(linked=None, reason=account.failure, intervals=none, per_year=dict(none))
        likes = dict.fromkeys(daily.factors, not_scored(account.failure))
    share = daily.covered_share[np.isfinite(daily.covered_share)]
    earned = float(compounded(daily.total)) if totals.linked is not None else None
    own = account.total
    if own is None and account.returns is not None and (account.returns > -1.0).all():
        own = float(compounded(account.returns))
    if taking.convention == "sound" and account.total is not None and totals.linked is not None:
        earned = account.total
    model = inputs.model
    explained = model.explained[(model.fitted == FULL) & np.isfinite(model.explained)]
    return Attribution(
        source=account.source,
        dataset=inputs.dataset,
        convention=taking.convention,
        universe=inputs.query.universe,
        method="holdings" if held else "returns",
        year=taking.year,
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
            total=_plain(daily.total),
            common=_plain(daily.common),
            style={name: _plain(daily.style[:, k]) for k, name in enumerate(daily.factors)},
            tilt=_plain(daily.tilt),
            selection=_plain(daily.selection),
            uncovered=_plain(daily.uncovered),
            trading=_plain(daily.trading),
            trading_parts={name: _plain(values) for name, values in trading.items()},
            covered_share=tuple(float(x) if np.isfinite(x) else None for x in daily.covered_share),
            exposures={name: _plain(daily.exposures[:, k]) for k, name in enumerate(daily.factors)},
            invested=_plain(daily.invested),
            gross=_plain(daily.gross),
            references={name: _plain(values) for name, values in inputs.references.items()},
        ),
        notes=(*account.notes, *_notes(inputs)),
        doubts=account.doubts,
    )


def _notes(inputs: MarketInputs) -> tuple[str, ...]:
    model, screen, days = inputs.model, inputs.screen, len(inputs.sessions)
    notes = []
    few, none = int((model.fitted == MARKET).sum()), int((model.fitted == NONE).sum())
    if few:
        notes.append(f"on {few} of {days} days there are too few names for the factors: no style part there")
    if none:
        notes.append(f"on {none} of {days} days there are no names to compare: all that was held is uncovered")
    if screen.dropped:
        names = ", ".join(screen.dropped)
        notes.append(f"{names}: told by the other factors (VIF above {screen.limit:g}), the split is not reliable")
    if screen.sessions == 0:
        notes.append("the factors could not be screened on sessions before the window")
    if inputs.query.price == "open":
        notes.append("marked at the open: returns are open to open, exposures were known before the first of them")
    if ":" in inputs.query.universe:
        notes.append(f"factor returns are estimated over all of {inputs.query.universe.rpartition(':')[0]}")
    return tuple(notes)


def _brinson(inputs: MarketInputs, weights: Floats, daily: DailyParts) -> tuple[BrinsonTotals, ...]:
    found = []
    for by in ("sector", "board"):
        labels = []
        for one in inputs.instruments:
            known = one.sector if by == "sector" else None if one.board is Board.NONE else one.board.value
            labels.append(FUND if one.kind == "index" else known or UNCLASSIFIED)
        ever = np.flatnonzero(inputs.investable.any(axis=0)).tolist()
        inside = {labels[column] for column in ever}
        if len(inside - {UNCLASSIFIED}) > 1:
            found.append(_brinson_by(by, inputs, weights, daily, labels))
    return tuple(found)


def _brinson_by(
    by: Literal["sector", "board"], inputs: MarketInputs, weights: Floats, daily: DailyParts, labels: list[str]
) -> BrinsonTotals:
    capped = inputs.sized_by not in UNSIZED
    name = inputs.sized_by if capped else "equal parts"
    size = np.where(inputs.investable & np.isfinite(inputs.size) & (inputs.size > 0), inputs.size, 0.0)
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
    named = [dict(zip(parts.groups, linked[k * count : (k + 1) * count].tolist(), strict=True)) for k in range(3)]
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
        daily_error=float(np.max(np.abs(stacked.sum(axis=1) - (daily.total - parts.benchmark)), initial=0.0)),
    )
