"""How a synthetic world is specified, and the four ready-made ones (``preset("us", seed=7, names=300)``).

One seed and one config give the same bytes on any machine.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.data.source import CalendarName

VERSION = "synthetic-v1"
RegimeKind = Literal["bull", "bear", "v", "flat"]
Market = Literal["us", "ashare", "crypto", "futures"]


class RegimeSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the market. ``share`` is its part of the sessions (shares are normalised)."""

    kind: RegimeKind
    share: float


class MarketModel(msgspec.Struct, frozen=True, kw_only=True):
    """The common factor. Rates are per year and additive; a ``v`` falls by ``depth`` and climbs back. The noise of
    every leg of a regime is centred, so that a bull market rises in every seed."""

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


class PlantedStyles(msgspec.Struct, frozen=True, kw_only=True):
    """Yearly premium and volatility of each style per unit of (z-scored) exposure, in the factors' order."""

    premia: tuple[float, ...] = (0.035, -0.025, 0.020, -0.020, 0.015, 0.010, -0.020, 0.025, -0.015)
    volatility: tuple[float, ...] = (0.045, 0.050, 0.025, 0.025, 0.025, 0.015, 0.020, 0.035, 0.020)


class NoiseModel(msgspec.Struct, frozen=True, kw_only=True):
    """Idiosyncratic returns: yearly volatilities between two bounds, GARCH(1,1), Student shocks. ``alpha`` is the
    spread of yearly true alphas between names."""

    low: float = 0.18
    high: float = 0.42
    arch: float = 0.09
    garch: float = 0.88
    df: int = 5
    alpha: float = 0.02


class TradingModel(msgspec.Struct, frozen=True, kw_only=True):
    """How a day trades. ``overnight`` is the share of variance between close and open. ``turnover`` is the median
    daily volume as a share of shares outstanding. ``suspensions`` are counted per name and year. ``max_move``
    bounds a day's move (percent) where the board sets no limit; a greater one spills into the next sessions, as it
    does at a price limit."""

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
    after publication; the rest drifts in over ``horizon`` sessions. A rumour's ``effect`` fades again."""

    events: float = 4.0
    noise: float = 8.0
    rumours: float = 2.0
    duplicates: float = 0.4
    effect: float = 0.025
    gap: float = 0.4
    horizon: int = 5
    strength: float = 1.0


class SyntheticConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A whole world. ``minutes`` asks for minute bars of that many names (the first that trade throughout). Raises
    :class:`UserError` when a size makes no market."""

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
    styles: PlantedStyles = PlantedStyles()
    noise: NoiseModel = NoiseModel()
    trading: TradingModel = TradingModel()
    actions: ActionModel = ActionModel()
    news: NewsModel = NewsModel()

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"seed {self.seed} is negative", hint="use a whole number from 0")
        if self.sessions < 60:
            raise UserError(f"{self.sessions} sessions are too few for a world", hint="ask for at least 60")
        if self.names < 5 + self.new_listings + self.delistings:
            raise UserError(f"{self.names} names are too few", hint="ask for more names or fewer listings")
        if not 0 < self.index_members <= self.names:
            raise UserError(f"an index of {self.index_members} cannot be drawn from {self.names} names")
        if self.minutes > self.names:
            raise UserError(f"minutes for {self.minutes} of {self.names} names", hint="ask for fewer")

    @property
    def year(self) -> int:
        return 365 if self.calendar == "24/7" else 252


US = SyntheticConfig()

ASHARE = SyntheticConfig(
    preset="ashare",
    calendar="XSHG",
    currency="CNY",
    names=120,
    index_members=90,
    new_listings=5,
    delistings=2,
    market=MarketModel(
        volatility=0.18,
        bull=0.30,
        bear=-0.34,
        regimes=(
            RegimeSpan(kind="flat", share=0.20),
            RegimeSpan(kind="bull", share=0.25),
            RegimeSpan(kind="bear", share=0.20),
            RegimeSpan(kind="v", share=0.20),
            RegimeSpan(kind="bull", share=0.15),
        ),
    ),
    noise=NoiseModel(low=0.26, high=0.50, arch=0.10, garch=0.87),
    trading=TradingModel(overnight=0.22, turnover=0.012, suspensions=0.15),
    actions=ActionModel(payers=0.7, per_year=1, dividend_yield=0.018, splits=0.06),
)

CRYPTO = SyntheticConfig(
    preset="crypto",
    calendar="24/7",
    first="2021-01-01",
    names=12,
    index_members=8,
    new_listings=2,
    delistings=1,
    fundamentals=False,
    market=MarketModel(volatility=0.50, bull=0.90, bear=-0.90, depth=0.40, sector_volatility=0.12),
    styles=PlantedStyles(volatility=(0.10, 0.10, 0.05, 0.05, 0.05, 0.03, 0.05, 0.08, 0.05)),
    noise=NoiseModel(low=0.35, high=0.75, arch=0.10, garch=0.87, df=5, alpha=0.05),
    trading=TradingModel(overnight=0.01, turnover=0.03, suspensions=0.0),
    actions=ActionModel(payers=0.0, per_year=0, dividend_yield=0.0, splits=0.0),
    news=NewsModel(events=14.0, noise=24.0, rumours=8.0, effect=0.045),
)

# Two chains of contracts; the number of names does not matter there.
FUTURES = SyntheticConfig(
    preset="futures",
    calendar="XSHG",
    currency="CNY",
    names=24,
    index_members=24,
    new_listings=0,
    delistings=0,
    fundamentals=False,
    market=ASHARE.market,
    noise=NoiseModel(low=0.20, high=0.35),
    trading=TradingModel(overnight=0.22, turnover=0.012, suspensions=0.0),
    actions=ActionModel(payers=0.0, per_year=0, dividend_yield=0.0, splits=0.0),
    news=NewsModel(events=24.0, noise=36.0, rumours=10.0, effect=0.015),
)

CSI300 = msgspec.structs.replace(
    ASHARE, names=345, index_members=300, sessions=252 + 548, new_listings=12, delistings=5
)
"""An A-share world of the size of KTD-Fin's: 300 members, and 548 sessions after a year of history."""

PRESETS: dict[str, SyntheticConfig] = {
    "us": US,
    "ashare": ASHARE,
    "csi300": CSI300,
    "crypto": CRYPTO,
    "futures": FUTURES,
}


def preset(name: str, *, seed: int = 0, **changes: Any) -> SyntheticConfig:
    """Return a ready-made world's config with changes; ``names`` scales the index too, unless ``index_members`` is
    given."""
    if name not in PRESETS:
        raise UserError(f"no synthetic world '{name}'", hint=f"one of {', '.join(PRESETS)}")
    base = PRESETS[name]
    unknown = sorted(set(changes) - set(base.__struct_fields__))
    if unknown:
        raise UserError(
            f"a synthetic world has no setting '{unknown[0]}'", hint=f"one of {', '.join(base.__struct_fields__)}"
        )
    if "names" in changes and "index_members" not in changes:
        changes["index_members"] = max(1, changes["names"] * base.index_members // base.names)
    return msgspec.structs.replace(base, seed=seed, **changes)
