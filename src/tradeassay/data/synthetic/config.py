"""How a synthetic world is asked for. One seed and one config give the same bytes on any machine."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.data.panel import CalendarName

VERSION = "synthetic-v1"
RegimeKind = Literal["bull", "bear", "v", "flat"]
Market = Literal["us", "ashare", "crypto", "futures"]


class RegimeSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the market. ``share`` is its part of the sessions (shares are normalised)."""

    kind: RegimeKind
    share: float


class MarketModel(msgspec.Struct, frozen=True, kw_only=True):
    """The common factor. Rates are per year and additive; a ``v`` falls by ``depth`` and climbs back.

    The noise of every leg of a regime is centred, so that a bull market rises in every seed.
    """

    volatility: float = 0.15
    regimes: tuple[RegimeSpan, ...] = (
        RegimeSpan(kind="bull", share=0.30),
        RegimeSpan(kind="flat", share=0.15),
        RegimeSpan(kind="v", share=0.20),
        RegimeSpan(kind="bear", share=0.15),
        RegimeSpan(kind="bull", share=0.20),
    )
    bull: float = 0.28
    bear: float = -0.38
    depth: float = 0.22
    beta_spread: float = 0.25
    sector_volatility: float = 0.08


class StyleModel(msgspec.Struct, frozen=True, kw_only=True):
    """Yearly premium and volatility of each style per unit of (z-scored) exposure, in the factors' order."""

    premia: tuple[float, ...] = (0.035, -0.025, 0.020, -0.020, 0.015, 0.010, -0.020, 0.025, -0.015)
    volatility: tuple[float, ...] = (0.045, 0.050, 0.025, 0.025, 0.025, 0.015, 0.020, 0.035, 0.020)


class NoiseModel(msgspec.Struct, frozen=True, kw_only=True):
    """Idiosyncratic returns: yearly volatilities between two bounds, GARCH(1,1), Student shocks.

    ``alpha`` is the spread of yearly true alphas between names.
    """

    low: float = 0.18
    high: float = 0.42
    arch: float = 0.09
    garch: float = 0.88
    df: int = 5
    alpha: float = 0.02


class TradingModel(msgspec.Struct, frozen=True, kw_only=True):
    """How a day trades. ``overnight`` is the share of variance between close and open.

    ``turnover`` is the median daily volume as a share of shares outstanding. ``suspensions`` are counted per
    name and year. ``max_move`` bounds a day's move (percent) where the board sets no limit; a greater one
    spills into the next sessions, as it does at a price limit.
    """

    overnight: float = 0.28
    turnover: float = 0.006
    suspensions: float = 0.01
    max_move: int = 28


class ActionModel(msgspec.Struct, frozen=True, kw_only=True):
    """Dividends and splits. ``payers`` is the share of names that pay, ``splits`` a rate per name and year."""

    payers: float = 0.6
    per_year: int = 4
    dividend_yield: float = 0.022
    splits: float = 0.08


class NewsModel(msgspec.Struct, frozen=True, kw_only=True):
    """Dated texts, per name and year. ``strength`` scales what informative items are worth (0 = nothing).

    ``effect`` is the size of a typical informative move, ``gap`` the part of it that is gone by the first open
    after publication; the rest drifts in over ``horizon`` sessions. A rumour's ``effect`` fades again.
    """

    events: float = 4.0
    noise: float = 8.0
    rumours: float = 2.0
    duplicates: float = 0.4
    effect: float = 0.025
    gap: float = 0.4
    horizon: int = 5
    strength: float = 1.0


class SyntheticConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A whole world. ``minutes`` asks for minute bars of that many names (the first that trade throughout).

    Raises :class:`UserError` when a size makes no market.
    """

    preset: Market = "us"
    seed: int = 0
    calendar: CalendarName = "XNYS"
    currency: str = "USD"
    first: str = "2021-01-04"
    sessions: int = 750
    names: int = 100
    index_members: int = 80
    new_listings: int = 4
    delistings: int = 2
    minutes: int = 0
    fundamentals: bool = True
    market: MarketModel = MarketModel()
    styles: StyleModel = StyleModel()
    noise: NoiseModel = NoiseModel()
    trading: TradingModel = TradingModel()
    actions: ActionModel = ActionModel()
    news: NewsModel = NewsModel()

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"seed {self.seed} is negative", mend="use a whole number from 0")
        if self.sessions < 60:
            raise UserError(f"{self.sessions} sessions are too few for a world", mend="ask for at least 60")
        if self.names < 5 + self.new_listings + self.delistings:
            raise UserError(f"{self.names} names are too few", mend="ask for more names or fewer listings")
        if not 0 < self.index_members <= self.names:
            raise UserError(f"an index of {self.index_members} cannot be drawn from {self.names} names")
        if self.minutes > self.names:
            raise UserError(f"minutes for {self.minutes} of {self.names} names", mend="ask for fewer")

    @property
    def year(self) -> int:
        """Sessions per year."""
        return 365 if self.calendar == "24/7" else 252
