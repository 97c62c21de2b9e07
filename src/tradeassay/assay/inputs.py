"""What a market did in a window, ready for attribution. Read from the hashed snapshot, once per window.

Nothing here reaches an agent, so a whole window is read from its last view. What enters a day's exposures and
weights was known strictly before that day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import msgspec
import numpy as np

from tradeassay.core.instruments import Fundamental, Instrument
from tradeassay.core.view import Bools, Field, Floats
from tradeassay.data import AsOfView, Snapshot
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all
from tradeassay.factors.windows import rolling_sum
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
from tradeassay.play.config import At
from tradeassay.play.universe import ALL, Universe, parse_universe

_MEMORY = 253
"""Sessions before a session that its factors can depend on."""
_MONTH = 20
_CAPS = ("free_float_cap", "market_cap")
"""Figures that say how large a name is, the better one first."""
_KINDS = ("stock", "crypto")
"""What a regression is made of. An index fund is a basket and a future is a promise; neither is a name."""


class MarketQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which window of a snapshot, over which names, between which prices.

    ``universe`` is the market's: an index, or ``all``. One held to a number of names (``IDX:20``) is estimated
    over the whole index, because more names tell more about the market. ``price`` is where accounts are marked.
    """

    first: str
    last: str
    universe: str = ALL
    price: At = "close"
    config: AttributionConfig = AttributionConfig()


@dataclass(frozen=True, slots=True)
class MarketInputs:
    """T sessions of N columns. ``model`` holds returns (dividends and splits in them) and what moved them.

    ``size`` (T, N) is each name's size before the session, ``sized_by`` says what that is: a field of the
    fundamentals, ``traded amount`` or ``nothing`` (equal weights). ``investable`` (T, N) are the names of the
    universe that have a price in the session and in the one before, ``futures`` (N,) the columns that are
    contracts.
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

    @property
    def symbols(self) -> tuple[str, ...]:
        """The columns' symbols."""
        return tuple(one.symbol for one in self.instruments)

    def until(self, count: int) -> MarketInputs:
        """Return the first ``count`` sessions."""
        cut = {
            field.name: getattr(self.model, field.name)[:count]
            for field in fields(self.model)
            if field.name != "factors"
        }
        return replace(
            self,
            sessions=self.sessions[:count],
            model=replace(self.model, **cut),
            size=self.size[:count],
            investable=self.investable[:count],
        )


@lru_cache(maxsize=4)
def market_inputs(snapshot: Snapshot, query: MarketQuery) -> MarketInputs:
    """Read a window and fit its factor model; the last few are kept, so that many episodes share one.

    Raises :class:`~tradeassay.core.errors.UserError` for a window without sessions, and
    :class:`~tradeassay.core.errors.DataError` for an index the data does not have.
    """
    rows = snapshot.rows(query.first, query.last)
    config = query.config
    early = max(0, rows.start - config.vif_sessions)
    oldest = max(0, early - _MEMORY)
    view = snapshot.at(rows.stop - 1, "close")
    there, returns = _returns(snapshot, view, query.price, range(oldest, rows.stop))
    cut = early - oldest
    values = _values(view, rows.stop - oldest, 1 if query.price == "close" else 2)[cut:]
    # The names were settled before the session; those without a price in it are left out of the regression.
    eligible = _investable(snapshot, query.universe, range(early, rows.stop), view) & _before(there)[cut:]
    investable = eligible & there[cut:]
    size, sized_by = _size(snapshot, view, eligible, range(oldest, rows.stop), early)
    cross = CrossSection(returns[cut:], values, size, eligible)
    exposures = _only(exposures_of(cross, config), investable)
    first = rows.start - early
    screen = vif_screen(_part(exposures, slice(0, first)), cross.factors, config)
    inside = slice(first, None)
    window = CrossSection(cross.returns[inside], values[inside], size[inside], investable[inside])
    return MarketInputs(
        query=query,
        dataset=snapshot.name,
        sessions=tuple(str(day) for day in snapshot.sessions[rows.start : rows.stop]),
        instruments=view.instruments,
        model=regress(window, _part(exposures, inside), config),
        screen=screen,
        size=size[inside],
        sized_by=sized_by,
        investable=investable[inside],
        futures=np.array([one.kind == "future" for one in view.instruments], dtype=np.bool_),
    )


def _before(there: Bools) -> Bools:
    """Return the mask of the session before; empty for the first."""
    moved = np.zeros_like(there)
    moved[1:] = there[:-1]
    return moved


def _only(exposures: Exposures, inside: Bools) -> Exposures:
    """Return exposures as they are, and 0 for names that are not ``inside`` (T, N)."""
    covered = exposures.covered & inside
    return Exposures(np.where(covered[:, None, :], exposures.values, 0.0), covered, exposures.used)


def _part(exposures: Exposures, rows: slice) -> Exposures:
    return Exposures(exposures.values[rows], exposures.covered[rows], exposures.used[rows])


def _values(view: AsOfView, count: int, lag: int) -> Floats:
    """Return raw factor values (count, K, N), those of the close ``lag`` sessions before.

    Bars are adjusted as of the last row. Every factor is a ratio in which a later split cancels, so that no value
    depends on it.
    """
    fields: tuple[Field, ...] = ("open", "high", "close", "volume", "amount")
    found = compute_all(FactorBars(*(view.bars(field, count) for field in fields)))
    return known_before(np.stack([found[name] for name in FACTOR_NAMES], axis=1), lag)


def _returns(snapshot: Snapshot, view: AsOfView, price: At, rows: range) -> tuple[Bools, Floats]:
    """Return which names have a price in each session, and what one share held over the session returned.

    A share is marked as an account marks it: at its price, or at the last one less what was paid out since.
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


def _investable(snapshot: Snapshot, universe: str, rows: range, view: AsOfView) -> Bools:
    chosen = Universe(parse_universe(universe).of)
    names = np.array([one.kind in _KINDS for one in view.instruments], dtype=np.bool_)
    mask = np.zeros((len(rows), names.size), dtype=np.bool_)
    for at, row in enumerate(rows):
        mask[at, chosen.at(snapshot.at(row, "pre_open")).columns] = True
    mask &= names
    return mask


def _size(snapshot: Snapshot, view: AsOfView, investable: Bools, rows: range, early: int) -> tuple[Floats, str]:
    """Return each name's size before each session from ``early`` on, and what it is.

    Capitalisation where most investable names have it; one without gets its traded amount times the others'
    median ratio. Without capitalisations it is the mean amount traded in the last 20 sessions, without those 1.
    """
    count = len(rows)
    amount, close = view.bars("amount", count), view.bars("close", count)
    money = np.where(np.isfinite(amount), amount, close * view.bars("volume", count))
    there = np.isfinite(money)
    present = rolling_sum(there.astype(np.float64), _MONTH)
    with np.errstate(invalid="ignore", divide="ignore"):
        traded = known_before(rolling_sum(np.where(there, money, 0.0), _MONTH) / present)[early - rows.start :]
    caps, field = _caps(snapshot, view, close, rows, early)
    known = np.isfinite(caps) & investable
    if field and known.sum() >= 0.5 * investable.sum():
        return _filled(caps, traded, known), field
    if np.isfinite(traded[investable]).any():
        return traded, "traded amount"
    return np.ones(traded.shape), "nothing"


def _filled(caps: Floats, traded: Floats, known: Bools) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(known & (traded > 0), caps / traded, np.nan)
        some = np.isfinite(ratio).any(axis=1)
        middle = np.full(len(caps), np.nan)
        middle[some] = np.nanmedian(ratio[some], axis=1)
        filled: Floats = np.where(np.isfinite(caps), caps, traded * middle[:, None])
    return filled


def _caps(snapshot: Snapshot, view: AsOfView, close: Floats, rows: range, early: int) -> tuple[Floats, str | None]:
    """Return capitalisations as last reported before a session, carried forward with the price since."""
    clocks = np.array([snapshot.at(row, "pre_open").clock for row in range(rows.start, rows.stop)])
    wanted = range(early, rows.stop)
    caps = np.full((len(wanted), len(view.instruments)), np.nan)
    last = _last_known(close)
    found: str | None = None
    for column, instrument in enumerate(view.instruments):
        if instrument.kind not in _KINDS:
            continue
        field, figures = _figures(view.fundamentals(instrument.symbol))
        if not figures:
            continue
        found = field if found is None else found
        told = np.array([figure.known_at for figure in figures])
        worth = np.array([figure.value for figure in figures])
        # Row of the last close before each figure was published, and the figure known before each session.
        base = np.searchsorted(clocks, told, side="right") - 2
        at = np.searchsorted(told, clocks[early - rows.start :], side="right") - 1
        near = last[np.maximum(np.arange(early, rows.stop) - rows.start - 1, 0), column]
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = np.where(base[at] >= 0, near / last[np.maximum(base[at], 0), column], 1.0)
        caps[:, column] = np.where(at >= 0, worth[at] * np.where(np.isfinite(moved), moved, 1.0), np.nan)
    return caps, found


def _figures(known: Sequence[Fundamental]) -> tuple[str | None, list[Fundamental]]:
    for field in _CAPS:
        figures = [figure for figure in known if figure.field == field and figure.value > 0]
        if figures:
            return field, figures
    return None, []


def _last_known(values: Floats) -> Floats:
    """Return every value, or the last one present before it; NaN before the first."""
    at = np.where(np.isfinite(values), np.arange(values.shape[0])[:, None], 0)
    filled: Floats = np.take_along_axis(values, np.maximum.accumulate(at, axis=0), axis=0)
    return filled
