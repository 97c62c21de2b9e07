"""From a market and an account's days to an attribution: parts, totals, groups, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tradeassay.assay.attribution_record import Attribution, BrinsonTotals, Fit, daily_record
from tradeassay.assay.inputs import MarketInputs
from tradeassay.core.badges import Convention
from tradeassay.core.instruments import Board
from tradeassay.core.measure import not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.attribution import (
    FULL,
    MARKET,
    NONE,
    RUINED,
    DailyParts,
    Totals,
    brinson,
    compounded,
    decompose,
    link_difference,
    preferences,
    rows_of,
    total_parts,
)

UNCLASSIFIED = "unclassified"
FUND = "fund"


@dataclass(frozen=True, slots=True)
class Account:
    """What is to be taken apart: T sessions of starting ``weights`` (T, N) and ``returns`` (T,), None for Σ w r.

    ``parts`` name what is known of trading; what they leave goes under ``rest``. ``failure`` says why the
    account has no result.
    """

    source: str
    weights: Floats
    returns: Floats | None
    parts: dict[str, Floats] = field(default_factory=dict)
    rest: str = "fills"
    failure: str | None = None
    notes: tuple[str, ...] = ()
    total: float | None = None


def build(
    inputs: MarketInputs,
    account: Account,
    *,
    convention: Convention,
    periods_per_year: int,
    bootstrap: BootstrapConfig | None = None,
) -> tuple[Attribution, DailyParts]:
    """Take an account apart; ``inputs`` and the account have the same sessions."""
    bootstrap = bootstrap or BootstrapConfig()
    sound = convention == "sound"
    daily = decompose(inputs.model, account.weights, account.returns if sound else None)
    trading = _trading(daily, account) if sound and account.returns is not None else {}
    return record(
        inputs, account, daily, trading, convention=convention, periods_per_year=periods_per_year,
        bootstrap=bootstrap, groups=_brinson(inputs, account.weights, daily),
    ), daily  # fmt: skip


def record(
    inputs: MarketInputs,
    account: Account,
    daily: DailyParts,
    trading: dict[str, Floats],
    *,
    convention: Convention,
    periods_per_year: int,
    bootstrap: BootstrapConfig,
    groups: tuple[BrinsonTotals, ...] = (),
    method: Literal["holdings", "returns"] = "holdings",
) -> Attribution:
    """Return daily parts with their totals, intervals and notes as a record."""
    rows = rows_of(daily, {f"trading.{name}": values for name, values in trading.items()})
    if account.failure is None:
        totals = total_parts(rows, periods_per_year=periods_per_year, bootstrap=bootstrap)
        likes = preferences(daily, bootstrap=bootstrap) if method == "holdings" else {}
    else:
        none = dict.fromkeys(rows, not_scored(account.failure))
        totals = Totals(linked=None, reason=account.failure, intervals=none, per_year=dict(none))
        likes = dict.fromkeys(daily.factors, not_scored(account.failure))
    share = daily.covered_share[np.isfinite(daily.covered_share)]
    earned = float(compounded(daily.total)) if totals.linked is not None else None
    own = _own_return(account)
    if convention == "sound" and account.total is not None and totals.linked is not None:
        earned = account.total
    return Attribution(
        source=account.source,
        dataset=inputs.dataset,
        convention=convention,
        universe=inputs.query.universe,
        method=method,
        year=periods_per_year,
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
        fit=_fit(inputs),
        brinson=groups,
        daily=daily_record(inputs.sessions, daily, trading),
        notes=(*account.notes, *_notes(inputs)),
    )


def _own_return(account: Account) -> float | None:
    if account.total is not None:
        return account.total
    if account.returns is None or not (account.returns > -1.0).all():
        return None
    return float(compounded(account.returns))


def _trading(daily: DailyParts, account: Account) -> dict[str, Floats]:
    known = {name: values for name, values in account.parts.items() if values.any()}
    rest = daily.trading - sum(known.values(), np.zeros(daily.trading.size))
    return {**known, account.rest: rest}


def _fit(inputs: MarketInputs) -> Fit:
    model = inputs.model
    explained = model.explained[(model.fitted == FULL) & np.isfinite(model.explained)]
    return Fit(
        full_days=int((model.fitted == FULL).sum()),
        market_days=int((model.fitted == MARKET).sum()),
        empty_days=int((model.fitted == NONE).sum()),
        mean_names=float(model.names.mean()) if model.names.size else 0.0,
        explained=float(explained.mean()) if explained.size else None,
        sized_by=inputs.sized_by,
        price=inputs.query.price,
        screen=inputs.screen,
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
        labels = _labels(inputs, by)
        ever = np.flatnonzero(inputs.investable.any(axis=0)).tolist()
        inside = {labels[column] for column in ever}
        if len(inside - {UNCLASSIFIED}) > 1:
            groups = sorted(set(labels))
            place = np.array([groups.index(label) for label in labels], dtype=np.int64)
            found.append(_brinson_by(by, inputs, weights, daily, (groups, place)))
    return tuple(found)


def _labels(inputs: MarketInputs, by: str) -> list[str]:
    labels = []
    for one in inputs.instruments:
        if one.kind == "index":
            labels.append(FUND)
        elif by == "sector":
            labels.append(one.sector or UNCLASSIFIED)
        else:
            labels.append(UNCLASSIFIED if one.board is Board.NONE else one.board.value)
    return labels


def _brinson_by(
    by: Literal["sector", "board"],
    inputs: MarketInputs,
    weights: Floats,
    daily: DailyParts,
    grouped: tuple[list[str], Ints],
) -> BrinsonTotals:
    capped = inputs.sized_by not in ("traded amount", "nothing")
    name = inputs.sized_by if capped else "equal parts"
    size = np.where(inputs.investable & np.isfinite(inputs.size) & (inputs.size > 0), inputs.size, 0.0)
    base = size if capped else inputs.investable.astype(np.float64)
    whole = base.sum(axis=1, keepdims=True)
    if not (whole > 0).all():
        return BrinsonTotals(by=by, weighted_by=name, reason="on some days no name is investable")
    parts = brinson(weights, base / whole, inputs.model.returns, grouped[1], grouped[0])
    stacked = np.concatenate(
        [parts.allocation, parts.selection, parts.interaction, daily.trading[:, None]], axis=1
    )
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
