"""Prepare a market window for attribution.

Each window is read once from the hashed snapshot. Agents never receive this data, so the whole
window is read from its last view. The exposures and weights of a day use only data that was known
before that day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, rolling_sum
from tradeassay.factors.definition import PRESENT
from tradeassay.metrics.attribution import (
    AttributionConfig,
    CrossSection,
    Exposures,
    StyleModel,
    VifScreen,
    exposures_of,
    known_before,
    regress,
    vif_screen,
)
from tradeassay_bench.core.view import Field, Instrument
from tradeassay_bench.data import AsOfView, Snapshot
from tradeassay_bench.play.market import ALL, MarketConfig, OpenOrClose, Universe, parse_universe

_MEMORY = 253
"""The maximum number of earlier sessions on which a session's factors depend."""
BETA, SIZE, SECTOR = "BETA", "SIZE", "SECTOR "
"""Additional exposures: beta to the mean of all names, log of capitalisation, one per sector."""
UNSIZED = ("traded amount", "nothing")
"""The label of size if no capitalisation is known."""
_KINDS = ("stock", "crypto")
"""The kinds of instruments in a regression.

Index funds are baskets and futures are contracts. Both are excluded.
"""


class MarketQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a snapshot, with its names and the price at which accounts are valued.

    ``universe`` is an index, or ``all``. If a universe has a limited number of names (``IDX:20``),
    factors are estimated over the whole index, because more names give a better estimate. ``index``
    is the index that accounts may have followed.
    """

    first: str
    last: str
    universe: str = ALL
    price: OpenOrClose = "close"
    index: str | None = None
    config: AttributionConfig = AttributionConfig()

    @classmethod
    def of(cls, market: MarketConfig, *, beside: bool = True) -> MarketQuery:
        """Return the query for a market configuration.

        If ``beside`` is False, the only exposures are the nine factors.
        """
        return cls(
            first=market.first,
            last=market.last,
            universe=market.universe,
            price=market.mark,
            index=market.index,
            config=AttributionConfig(beside=beside),
        )


@dataclass(frozen=True, slots=True)
class MarketInputs:
    """The market data of T sessions and N columns.

    ``model`` has the returns (with dividends and splits) and their factors. ``size`` (T, N) is each
    name's size before the session. ``sized_by`` names the measure of size: a field of the
    fundamentals, ``traded amount`` or ``nothing`` (equal weights). ``traded`` is the mean amount
    traded before the session. ``investable`` (T, N) marks the names of the universe with a price in
    the session and in the previous one. ``futures`` (N,) marks the columns that are contracts.
    ``references`` (T,) are the returns of passive portfolios by name (:func:`passive_portfolios`).
    """

    query: MarketQuery
    dataset: str
    sessions: tuple[str, ...]
    instruments: tuple[Instrument, ...]
    model: StyleModel
    screen: VifScreen
    size: Floats
    sized_by: str
    investable: Bools
    futures: Bools
    references: Mapping[str, Floats] = field(default_factory=dict)
    traded: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols of the columns."""
        return tuple(one.symbol for one in self.instruments)

    @property
    def baskets(self) -> Bools:
        """Return a mask of the columns that are index funds, shape (N,)."""
        return np.array([one.kind == "index" for one in self.instruments], dtype=np.bool_)

    def until(self, count: int) -> MarketInputs:
        """Return the data of the first ``count`` sessions, for an account that ended early."""
        if count == len(self.sessions):
            return self
        cut = {
            one.name: getattr(self.model, one.name)[:count]
            for one in fields(self.model)
            if one.name != "factors"
        }
        return replace(
            self,
            sessions=self.sessions[:count],
            model=replace(self.model, **cut),
            size=self.size[:count],
            investable=self.investable[:count],
            references={name: series[:count] for name, series in self.references.items()},
            traded=self.traded[:count],
        )


@lru_cache(maxsize=4)
def market_inputs(snapshot: Snapshot, query: MarketQuery) -> MarketInputs:
    """Read a window and fit its factor model.

    The last few windows are cached, because many episodes share a window. Raises
    :class:`~tradeassay.core.errors.UserError` for a window without sessions, and
    :class:`~tradeassay.core.errors.DataError` for an index that the data does not have.
    """
    rows = snapshot.rows(query.first, query.last)
    config = query.config
    early = max(0, rows.start - config.vif_sessions)
    oldest = max(0, early - _MEMORY)
    view = snapshot.at(rows.stop - 1, "close")
    there, returns = _returns(snapshot, view, query.price, range(oldest, rows.stop))
    cut = early - oldest
    # An open-to-open return begins before the last close is known.
    lag = 1 if query.price == "close" else 2
    # Raw factor values (T, K, N). Bars are adjusted as of the last row. Every factor is a ratio in
    # which later splits cancel.
    fields: tuple[Field, ...] = ("open", "high", "close", "volume", "amount")
    found = compute_all(FactorBars(*(view.bars(one, rows.stop - oldest) for one in fields)))
    values = known_before(np.stack([found[name] for name in FACTOR_NAMES], axis=1), lag)[cut:]
    # The universe was fixed before the session. Names without a price in the session are left out
    # of the regression.
    names = np.array([one.kind in _KINDS for one in view.instruments], dtype=np.bool_)
    whole = Universe(parse_universe(query.universe).of)
    priced = np.concatenate([np.zeros_like(there[:1]), there[:-1]])[cut:]
    eligible = _members(snapshot, whole, range(early, rows.stop), names.size) & names & priced
    investable = eligible & there[cut:]
    size, sized_by, traded = _size(snapshot, view, eligible, range(oldest, rows.stop), early)
    more = {BETA: known_before(_betas(returns, there & names), lag)[cut:]}
    if sized_by not in UNSIZED:
        with np.errstate(invalid="ignore", divide="ignore"):
            more[SIZE] = np.where(size > 0.0, np.log(size), np.nan)
    more = _beside(view.instruments, eligible, config, more)
    values, factors = (
        np.concatenate([values, *(value[:, None] for value in more.values())], axis=1),
        tuple(more),
    )
    cross = CrossSection(returns[cut:], values, size, eligible, (*FACTOR_NAMES, *factors))
    exposures = exposures_of(cross, config)
    covered = exposures.covered & investable
    exposures = Exposures(
        np.where(covered[:, None, :], exposures.values, 0.0), covered, exposures.used
    )
    first = rows.start - early
    # Factors are screened before the window. Sectors explain each other by construction and are
    # left out.
    screened = [k for k, name in enumerate(cross.factors) if not name.startswith(SECTOR)]
    early_ones = (
        exposures.values[:first, screened],
        exposures.covered[:first],
        exposures.used[:first, screened],
    )
    screen = vif_screen(Exposures(*early_ones), tuple(cross.factors[k] for k in screened), config)
    inside = slice(first, None)
    window = CrossSection(
        cross.returns[inside], values[inside], size[inside], investable[inside], cross.factors
    )
    exposed = Exposures(exposures.values[inside], exposures.covered[inside], exposures.used[inside])
    model = regress(window, exposed, config)
    groups = {"all names": investable[inside]}
    limited = parse_universe(query.universe)
    if limited.size is not None:
        # The names that an account could buy in each session, if the number of names is limited.
        chosen = Universe(query.universe, snapshot.at(rows[0], "pre_open"))
        offered = _members(snapshot, chosen, rows, len(view.instruments)) & there[cut:][inside]
        groups[f"the {limited.size} names on offer"] = offered
    references = {
        "the market": model.common,
        **passive_portfolios(model.returns, groups, size[inside], traded[inside]),
    }
    funds = {
        column: one.symbol for column, one in enumerate(view.instruments) if one.kind == "index"
    }
    references |= {
        f"the fund {symbol}": model.returns[:, column] for column, symbol in funds.items()
    }
    if query.index is not None:
        levels = view.index_levels(query.index, len(rows) + 1)
        if levels.size == len(rows) + 1 and np.isfinite(levels).all() and (levels > 0).all():
            references[f"the index {query.index}"] = levels[1:] / levels[:-1] - 1.0
    return MarketInputs(
        query=query,
        dataset=snapshot.name,
        sessions=tuple(str(day) for day in snapshot.sessions[rows.start : rows.stop]),
        instruments=view.instruments,
        model=model,
        screen=screen,
        size=size[inside],
        sized_by=sized_by,
        investable=investable[inside],
        futures=np.array([one.kind == "future" for one in view.instruments], dtype=np.bool_),
        references=references,
        traded=traded[inside],
    )


def _beside(
    instruments: Sequence[Instrument],
    eligible: Bools,
    config: AttributionConfig,
    found: dict[str, Floats],
) -> dict[str, Floats]:
    """Return the additional exposures, each of shape (T, N): beta, size, and large sectors."""
    names = float(np.median(eligible.sum(axis=1))) if config.beside and eligible.size else 0.0
    terms = 1 + len(FACTOR_NAMES) + len(found)
    if names < config.names_beside * terms:
        return {}
    sectors = [one.sector if one.kind in _KINDS else None for one in instruments]
    ever: list[bool] = np.asarray(eligible.any(axis=0)).tolist()
    counted = Counter(
        sector for sector, there in zip(sectors, ever, strict=True) if sector and there
    )
    large = sorted(
        sector for sector, count in counted.items() if count >= 3
    )  # too few names for a sector
    if len(large) > 1 and names >= config.names_beside * (terms + len(large)):
        for sector in large:
            inside = np.array([one == sector for one in sectors], dtype=np.float64)
            found[f"{SECTOR}{sector}"] = np.broadcast_to(inside, eligible.shape)
    return found


def _betas(returns: Floats, there: Bools) -> Floats:
    """Return each name's beta to the mean of all names.

    The regression covers a year up to and including each session.
    """
    present = there.astype(np.float64)
    moves = np.where(there, returns, 0.0)
    market = moves.sum(axis=1, keepdims=True) / np.maximum(present.sum(axis=1, keepdims=True), 1.0)
    parts = (present, moves, present * market, moves * market, present * market * market)
    n, own, all_, both, square = (rolling_sum(part, 252) for part in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (both - own * all_ / n) / (square - all_ * all_ / n)
    found: Floats = np.where((n >= PRESENT * 252) & np.isfinite(slope), slope, np.nan)
    return found


def passive_portfolios(
    returns: Floats, groups: Mapping[str, Bools], size: Floats, traded: Floats
) -> dict[str, Floats]:
    """Return the session returns of passive portfolios of groups of names (T, N).

    Each group is held with equal weights, by size, by traded amount, and as a portfolio bought once
    with equal weights and not rebalanced.
    """
    found: dict[str, Floats] = {}
    for name, group in groups.items():
        ways = {"in equal parts": np.ones(group.shape), "by size": size, "by traded amount": traded}
        for way, given in ways.items():
            with np.errstate(invalid="ignore"):
                weights = np.where(group & np.isfinite(given) & (given > 0), given, 0.0)
            whole = weights.sum(axis=1)
            if whole.size and (whole > 0).all():
                found[f"{name} {way}"] = (weights * returns).sum(axis=1) / whole
        if group.size and group[0].any():
            path = np.cumprod(1.0 + returns[:, group[0]], axis=0).mean(axis=1)
            found[f"{name} bought once"] = path / np.concatenate([[1.0], path[:-1]]) - 1.0
    return found


def _members(snapshot: Snapshot, chosen: Universe, rows: range, columns: int) -> Bools:
    """Return which columns belong to a universe before the open of each session."""
    mask = np.zeros((len(rows), columns), dtype=np.bool_)
    for at, row in enumerate(rows):
        mask[at, chosen.at(snapshot.at(row, "pre_open")).columns] = True
    return mask


def _returns(
    snapshot: Snapshot, view: AsOfView, price: OpenOrClose, rows: range
) -> tuple[Bools, Floats]:
    """Return which names have a price in each session, and the return of one share in each session.

    A share is valued as in an account: at its price, or at its last price less later payments.
    """
    prices = view.bars(price, len(rows), adjust="none")
    names = prices.shape[1]
    place = {symbol: column for column, symbol in enumerate(view.symbols)}
    there = np.isfinite(prices)
    returns = np.zeros(prices.shape)
    mark = np.full(names, np.nan)
    for at, row in enumerate(rows):
        paid, ratio = np.zeros(names), np.ones(names)
        for action in snapshot.at(row, "pre_open").todays_actions():
            column = place[action.symbol]
            if action.kind == "dividend":
                paid[column] += action.value
            else:
                ratio[column] *= action.value
        now = np.where(there[at], prices[at], np.maximum(mark - paid, 0.0) / ratio)
        with np.errstate(invalid="ignore", divide="ignore"):
            earned = (now * ratio + paid) / mark - 1.0
        returns[at] = np.where(np.isfinite(earned), earned, 0.0)
        mark = now
    return there, returns


def _size(
    snapshot: Snapshot, view: AsOfView, investable: Bools, rows: range, early: int
) -> tuple[Floats, str, Floats]:
    """Return the size of each name, the label of size, and the amount traded.

    Sizes are those before each session, beginning with session ``early``. Size is the
    capitalisation if most investable names have one. A name without one gets its traded amount
    times the median ratio of the other names. Without capitalisations, size is the mean amount
    traded in the last 20 sessions. Without amounts, size is 1.
    """
    count = len(rows)
    amount, close = view.bars("amount", count), view.bars("close", count)
    money = np.where(np.isfinite(amount), amount, close * view.bars("volume", count))
    there = np.isfinite(money)
    present = rolling_sum(there.astype(np.float64), 20)
    with np.errstate(invalid="ignore", divide="ignore"):
        traded = known_before(rolling_sum(np.where(there, money, 0.0), 20) / present)[
            early - rows.start :
        ]
    caps, field = _caps(snapshot, view, close, rows, early)
    known = np.isfinite(caps) & investable
    if field and known.sum() >= 0.5 * investable.sum():
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(known & (traded > 0), caps / traded, np.nan)
            some = np.isfinite(ratio).any(axis=1)
            middle = np.full(len(caps), np.nan)
            middle[some] = np.nanmedian(ratio[some], axis=1)
            filled: Floats = np.where(np.isfinite(caps), caps, traded * middle[:, None])
        return filled, field, traded
    if np.isfinite(traded[investable]).any():
        return traded, "traded amount", traded
    return np.ones(traded.shape), "nothing", traded


def _caps(
    snapshot: Snapshot, view: AsOfView, close: Floats, rows: range, early: int
) -> tuple[Floats, str | None]:
    """Return the capitalisation of each name before each session, and the field used, or None.

    Each value is the last reported capitalisation, updated with the price change since the report.
    """
    clocks = np.array([snapshot.at(row, "pre_open").clock for row in range(rows.start, rows.stop)])
    wanted = range(early, rows.stop)
    caps = np.full((len(wanted), len(view.instruments)), np.nan)
    # Every close, or the last close before it; NaN before the first close.
    at_last = np.where(np.isfinite(close), np.arange(close.shape[0])[:, None], 0)
    last = np.take_along_axis(close, np.maximum.accumulate(at_last, axis=0), axis=0)
    found: str | None = None
    for column, instrument in enumerate(view.instruments):
        if instrument.kind not in _KINDS:
            continue
        known = view.fundamentals(instrument.symbol)
        for kind in ("free_float_cap", "market_cap"):  # The preferred field comes first.
            figures = [figure for figure in known if figure.field == kind and figure.value > 0]
            if figures:
                break
        if not figures:
            continue
        found = kind if found is None else found
        told = np.array([figure.known_at for figure in figures])
        worth = np.array([figure.value for figure in figures])
        # The row of the last close before each figure was published, and the figure known before
        # each session.
        base = np.searchsorted(clocks, told, side="right") - 2
        at = np.searchsorted(told, clocks[early - rows.start :], side="right") - 1
        near = last[np.maximum(np.arange(early, rows.stop) - rows.start - 1, 0), column]
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = np.where(base[at] >= 0, near / last[np.maximum(base[at], 0), column], 1.0)
        caps[:, column] = np.where(
            at >= 0, worth[at] * np.where(np.isfinite(moved), moved, 1.0), np.nan
        )
    return caps, found
