"""Attribution of a person's own tables: weights and returns that no run of ours recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from tradeassay.assay.attribution_build import Account, build, record
from tradeassay.assay.attribution_record import Attribution
from tradeassay.assay.inputs import MarketInputs, MarketQuery, market_inputs
from tradeassay.assay.own_tables import (
    RETURN,
    SIZE,
    WEIGHT,
    LongTable,
    is_long,
    read_long,
    read_returns,
    read_weights,
)
from tradeassay.core.badges import Convention
from tradeassay.core.errors import UserError
from tradeassay.core.instruments import Instrument
from tradeassay.core.near import did_you_mean
from tradeassay.core.view import Floats
from tradeassay.data import load_dataset
from tradeassay.factors import FACTOR_NAMES
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.attribution import AttributionConfig, CrossSection, Exposures, fit, fit_returns, vif_screen

Between = Literal["cash", "hold"]


def attribute_tables(
    weights: Path | str | None = None,
    returns: Path | str | None = None,
    *,
    dataset: str | None = None,
    home: Path | str | None = None,
    universe: str = "all",
    between: Between = "cash",
    periods_per_year: int | None = None,
    convention: Convention = "sound",
    config: AttributionConfig | None = None,
    bootstrap: BootstrapConfig | None = None,
) -> Attribution:
    """Take a person's own account apart.

    ``weights`` is a table of ``date``, ``symbol``, ``weight``: shares of the account held into that session (known
    at the close before), shorts negative. ``returns`` is the account's (``date``, ``return``, net of costs),
    or those of the names (``date``, ``symbol``, ``return``, and if there are any ``size`` and columns called like
    the factors, all known before the date). Prices and factors come from ``dataset`` (a stored data set or a
    snapshot's folder) unless the names' returns are given. On a session without a row of weights the account is in
    cash, or holds on to what it had with ``between="hold"``. Returns of an account without weights are explained
    over time (``method`` is ``returns``), which is weaker: exposures are constants and trading cannot be seen.

    Raises :class:`UserError` with one line for whatever does not fit together.
    """
    table = None if weights is None else read_weights(Path(weights))
    given = None if returns is None else Path(returns)
    settings = bootstrap or BootstrapConfig()
    if given is not None and is_long(given):
        if table is None:
            raise UserError(f"{given} holds returns of names", mend="give the weights too")
        inputs, year, earned = _inputs_from(given, table.dates, config or AttributionConfig()), 252, None
    else:
        own = None if given is None else read_returns(given)
        dates = table.dates if table is not None else tuple(own or ())
        if not dates:
            raise UserError("nothing to take apart is given", mend="give weights, or returns of an account")
        inputs, year = _inputs_of(dataset, home, universe, (dates[0], dates[-1]), config)
        earned = None if own is None else _on_sessions(own, inputs.sessions, given)
    year = periods_per_year or year
    if table is not None:
        account = Account(
            source=str(weights),
            weights=_weights(table, inputs, str(weights), between),
            returns=earned,
            rest="rest",
            notes=_notes(table, inputs, earned),
        )
        return build(inputs, account, convention=convention, periods_per_year=year, bootstrap=settings)[0]
    return _from_returns(inputs, np.zeros(0) if earned is None else earned, str(given), year, settings)


def _inputs_of(
    dataset: str | None,
    home: Path | str | None,
    universe: str,
    days: tuple[str, str],
    config: AttributionConfig | None,
) -> tuple[MarketInputs, int]:
    if dataset is None:
        raise UserError("no data set is named", mend="name one with prices of these names (tradeassay data list)")
    snapshot = load_dataset(dataset, None if home is None else Path(home))
    query = MarketQuery(first=days[0], last=days[1], universe=universe, config=config or AttributionConfig())
    return market_inputs(snapshot, query), 365 if snapshot.calendar == "24/7" else 252


def _inputs_from(path: Path, dates: tuple[str, ...], config: AttributionConfig) -> MarketInputs:
    """Return a market made of the names' own returns; the sessions are the dates of that table."""
    table = read_long(path, (RETURN,), (SIZE, *FACTOR_NAMES), gaps=True)
    days = tuple(day for day in table.dates if dates[0] <= day <= dates[-1])
    if not days:
        raise UserError(f"{path} has no date from {dates[0]} to {dates[-1]}", mend="give both for the same dates")
    columns = {name: table.placed(name, days, table.symbols) for name in table.columns}
    returns = columns[RETURN]
    values = np.full((len(days), len(FACTOR_NAMES), len(table.symbols)), np.nan)
    for k, name in enumerate(FACTOR_NAMES):
        if name in columns:
            values[:, k] = columns[name]
    size = columns.get(SIZE, np.ones(returns.shape))
    nothing = Exposures(values[:0], np.zeros((0, returns.shape[1]), bool), np.zeros((0, len(FACTOR_NAMES)), bool))
    return MarketInputs(
        query=MarketQuery(first=days[0], last=days[-1], config=config),
        dataset=path.name,
        sessions=days,
        instruments=tuple(Instrument(symbol=symbol) for symbol in table.symbols),
        model=fit(CrossSection(returns, values, size, np.isfinite(returns)), config),
        screen=vif_screen(nothing, FACTOR_NAMES, config),
        size=size,
        sized_by=SIZE if SIZE in columns else "nothing",
        investable=np.isfinite(returns),
        futures=np.zeros(len(table.symbols), dtype=np.bool_),
    )


def _weights(table: LongTable, inputs: MarketInputs, path: str, between: Between) -> Floats:
    known = set(inputs.sessions)
    for date in table.dates:
        if date not in known:
            raise UserError(
                f"{path}: {date} is no session of '{inputs.dataset}'", mend="give weights for sessions"
            )
    symbols = set(inputs.symbols)
    for symbol in table.symbols:
        if symbol not in symbols:
            hint = did_you_mean(symbol, inputs.symbols, f"'{inputs.dataset}' does not have it")
            raise UserError(f"{path}: no name '{symbol}' in '{inputs.dataset}'", mend=hint)
    held = np.nan_to_num(table.placed(WEIGHT, inputs.sessions, inputs.symbols), nan=0.0)
    if between == "hold":
        given = set(table.dates)
        for row in range(1, len(inputs.sessions)):
            if inputs.sessions[row] not in given:
                grown = held[row - 1] * (1.0 + inputs.model.returns[row - 1])
                whole = 1.0 + float((held[row - 1] * inputs.model.returns[row - 1]).sum())
                held[row] = grown / whole if whole > 0 else 0.0
    if held[:, inputs.futures].any():
        raise UserError(f"{path} holds futures", mend="weights are shares of the account's money; leave them out")
    return held


def _on_sessions(own: dict[str, float], sessions: tuple[str, ...], path: Path | None) -> Floats:
    missing = next((day for day in sessions if day not in own), None)
    if missing is not None:
        raise UserError(
            f"{path} has no return on {missing}", mend="give one for every session, 0 without a change"
        )
    extra = sorted(set(own) - set(sessions))
    inside = [day for day in extra if sessions[0] <= day <= sessions[-1]]
    if inside:
        raise UserError(f"{path}: {inside[0]} is no session of the data set", mend="leave it out")
    return np.array([own[day] for day in sessions])


def _notes(table: LongTable, inputs: MarketInputs, earned: Floats | None) -> tuple[str, ...]:
    notes = []
    if len(table.dates) < len(inputs.sessions):
        notes.append(f"weights are given on {len(table.dates)} of {len(inputs.sessions)} sessions")
    if earned is None:
        notes.append("the account's own returns are not given: there is no trading part")
    return tuple(notes)


def _from_returns(
    inputs: MarketInputs, earned: Floats, source: str, year: int, bootstrap: BootstrapConfig
) -> Attribution:
    found = fit_returns(inputs.model, earned)
    note = f"holdings are unknown: constant exposures explain {found.explained:.0%} of the variance"
    nothing = np.zeros(inputs.model.returns.shape)
    return record(
        inputs,
        Account(source=source, weights=nothing, returns=earned, notes=(note,)),
        found.daily,
        {},
        convention="sound",
        periods_per_year=year,
        bootstrap=bootstrap,
        method="returns",
    )
