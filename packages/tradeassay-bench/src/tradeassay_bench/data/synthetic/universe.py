"""Configure a synthetic world, with four presets, and draw its names.

``preset("us", seed=7, names=300)`` returns a preset with changes. The same seed and configuration
produce the same bytes on every machine.

Companies, coins, codes and sectors are invented. Codes have the form of the market's codes, in
ranges that no exchange assigns: four letters that end in a pair such as ``QX`` or ``ZQ``, or six
digits with a prefix that is not in use on the board.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.core.view import Board, Instrument
from tradeassay_bench.data.source import CalendarName

VERSION = "synthetic-v1"
RegimeKind = Literal["bull", "bear", "v", "flat"]
Market = Literal["us", "ashare", "crypto"]


class RegimeSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A period of the market. ``share`` is its fraction of the sessions, normalised over all
    periods.
    """

    kind: RegimeKind
    share: float


def _spans(*spans: tuple[RegimeKind, float]) -> tuple[RegimeSpan, ...]:
    return tuple(RegimeSpan(kind=kind, share=share) for kind, share in spans)


class MarketModel(msgspec.Struct, frozen=True, kw_only=True):
    """The common factor. Rates are per year and additive.

    A ``v`` regime falls by ``depth`` and recovers. The noise of each leg of a regime is centred, so
    that a bull market rises with every seed.
    """

    volatility: float = 0.15
    regimes: tuple[RegimeSpan, ...] = _spans(
        ("bull", 0.30), ("flat", 0.15), ("v", 0.20), ("bear", 0.15), ("bull", 0.20)
    )
    bull: float = 0.28
    bear: float = -0.38
    depth: float = 0.22
    beta_spread: float = 0.25
    sector_volatility: float = 0.08


class PlantedStyles(msgspec.Struct, frozen=True, kw_only=True):
    """The annual premium and volatility of each style per unit of exposure (z-score), by factor."""

    premia: tuple[float, ...] = (0.035, -0.025, 0.020, -0.020, 0.015, 0.010, -0.020, 0.025, -0.015)
    volatility: tuple[float, ...] = (0.045, 0.050, 0.025, 0.025, 0.025, 0.015, 0.020, 0.035, 0.020)


class NoiseModel(msgspec.Struct, frozen=True, kw_only=True):
    """Idiosyncratic returns, by GARCH(1,1) with Student shocks.

    ``low`` and ``high`` are the bounds of the names' annual volatilities. ``alpha`` is the standard
    deviation of the names' true annual alphas.
    """

    low: float = 0.18
    high: float = 0.42
    arch: float = 0.09
    garch: float = 0.88
    df: int = 5
    alpha: float = 0.02


class TradingModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model of a trading day.

    - ``overnight``: the share of variance between close and open.
    - ``turnover``: the median daily volume as a fraction of the shares outstanding.
    - ``suspensions``: the number of suspensions per name and year.
    - ``max_move``: the largest move of a day in percent on a board without a price limit. As at a
      price limit, the rest of a larger move follows in the next sessions.
    """

    overnight: float = 0.28
    turnover: float = 0.006
    suspensions: float = 0.01
    max_move: int = 28


class ActionModel(msgspec.Struct, frozen=True, kw_only=True):
    """Dividends and splits.

    ``payers`` is the share of names that pay dividends. ``splits`` is a rate per name and year.
    """

    payers: float = 0.6
    per_year: int = 4
    dividend_yield: float = 0.022
    splits: float = 0.08


class NewsModel(msgspec.Struct, frozen=True, kw_only=True):
    """Dated news. The numbers of items are per name and year.

    - ``effect``: the size of a typical move after an informative item. The effect of a rumour
      reverses.
    - ``gap``: the part of the move at the first open after publication. The rest follows over
      ``horizon`` sessions.
    - ``strength``: a factor for the effects of informative items. With 0 they have none.
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
    """The configuration of a world.

    ``minutes`` is the number of names with minute bars, the first names that are listed in all
    sessions. Raises :class:`UserError` for invalid sizes.
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
    styles: PlantedStyles = PlantedStyles()
    noise: NoiseModel = NoiseModel()
    trading: TradingModel = TradingModel()
    actions: ActionModel = ActionModel()
    news: NewsModel = NewsModel()

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"seed {self.seed} is negative", hint="use a whole number of 0 or more")
        if self.sessions < 60:
            raise UserError(
                f"{self.sessions} sessions are too few for a world", hint="use at least 60"
            )
        if self.names < 5 + self.new_listings + self.delistings:
            raise UserError(
                f"{self.names} names are too few", hint="use more names or fewer listings"
            )
        if not 0 < self.index_members <= self.names:
            raise UserError(
                f"an index of {self.index_members} cannot be drawn from {self.names} names"
            )
        if self.minutes > self.names:
            raise UserError(
                f"expected minute bars for at most {self.names} names, got {self.minutes}",
                hint="set minutes to a smaller number",
            )

    @property
    def year(self) -> int:
        return 365 if self.calendar == "24/7" else 252


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
        regimes=_spans(("flat", 0.20), ("bull", 0.25), ("bear", 0.20), ("v", 0.20), ("bull", 0.15)),
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

CSI300 = msgspec.structs.replace(
    ASHARE, names=345, index_members=300, sessions=252 + 548, new_listings=12, delistings=5
)
"""An A-share world of KTD-Fin's size, with 300 members and 548 sessions after a year of history."""

PRESETS: dict[str, SyntheticConfig] = {
    "us": SyntheticConfig(),
    "ashare": ASHARE,
    "csi300": CSI300,
    "crypto": CRYPTO,
}


def preset(name: str, *, seed: int = 0, **changes: Any) -> SyntheticConfig:
    """Return the configuration of a preset with changes.

    A change of ``names`` scales the index too, unless ``index_members`` is given. Raises
    :class:`UserError` for an unknown preset or setting.
    """
    if name not in PRESETS:
        raise UserError(f"unknown synthetic world '{name}'", hint=f"one of {', '.join(PRESETS)}")
    base = PRESETS[name]
    unknown = sorted(set(changes) - set(base.__struct_fields__))
    if unknown:
        problem = f"a synthetic world has no setting '{unknown[0]}'"
        raise UserError(problem, hint=f"one of {', '.join(base.__struct_fields__)}")
    if "names" in changes and "index_members" not in changes:
        changes["index_members"] = max(1, changes["names"] * base.index_members // base.names)
    return msgspec.structs.replace(base, seed=seed, **changes)


_FIRST = tuple(
    "Ab Bel Cor Dun El Far Gal Hol Ir Jun Kel Lom Mor Nel Or Pel Quil Ros Sel Tor Ul Ver Wen Xan "
    "Yor Zel".split()
)
_MIDDLE = (
    "va",
    "di",
    "mo",
    "ru",
    "shi",
    "ko",
    "le",
    "ny",
    "po",
    "zu",
    "fe",
    "gra",
    "thi",
    "bo",
    "quo",
)
_LAST = tuple("dyne rix vund moth quist zell bask torn phel wick lume grove zar nox".split())
_BRANCHES = (
    "Technology Health Financials Industry Consumer Staples Energy Utilities Materials Property"
).split()
_US = "Systems Therapeutics Bancorp Machines Brands Foods Petroleum Power Chemicals Estates".split()
_ASHARE = (
    "Electronics|Pharma|Securities|Equipment|Appliances|Liquor|Coal|Hydropower|New Materials|Land"
).split("|")
_SECTORS: dict[Market, tuple[tuple[str, str], ...]] = {
    "us": tuple(zip(_BRANCHES, _US, strict=True)),
    "ashare": tuple(zip(_BRANCHES, _ASHARE, strict=True)),
    "crypto": (
        ("Settlement", "Coin"),
        ("Platform", "Network"),
        ("Finance", "Swap"),
        ("Storage", "Vault"),
    ),
}
"""Sectors by market, with the last word of their companies' names."""
_ENDINGS = ("QX", "ZQ", "XQ", "QZ", "JQ", "QJ", "QK", "VQ", "XJ", "JX")
_PREFIXES: dict[Board, tuple[str, ...]] = {
    Board.MAIN: ("609", "009"),
    Board.CHINEXT: ("309",),
    Board.STAR: ("6895",),
    Board.BSE: ("929",),
}


def sectors(market: Market) -> tuple[str, ...]:
    return tuple(sector for sector, _ in _SECTORS[market])


_BOARD_SHARES = ((Board.MAIN, 0.60), (Board.CHINEXT, 0.22), (Board.STAR, 0.13), (Board.BSE, 0.05))
_PRICES = {"us": (9.0, 320.0), "ashare": (8.0, 110.0)}
_LIMITS = {Board.MAIN: 10, Board.CHINEXT: 20, Board.STAR: 20, Board.BSE: 30}
SEASONED = 60
"""Lowest row of a delisted name's last session."""


@dataclass(frozen=True, slots=True)
class WorldNames:
    """The names of a world in column order, by first row and then symbol.

    Arrays have one entry per name.

    - ``first``, ``last``: the first and last row. ``last`` is the final session of a delisted name.
    - ``unit``: the number of ticks per unit of currency.
    - ``limit``: the largest daily move in percent.
    - ``shares``: the shares outstanding, in thousands.
    - ``price``: the first price in ticks.
    - ``beta``, ``alpha``, ``sigma``: the true parameters. ``alpha`` and ``sigma`` are per session.
    """

    instruments: tuple[Instrument, ...]
    first: Ints
    last: Ints
    sector: Ints
    unit: Ints
    limit: Ints
    shares: Ints
    price: Ints
    beta: Floats
    alpha: Floats
    sigma: Floats

    @property
    def size(self) -> int:
        return len(self.instruments)


def make_universe(config: SyntheticConfig) -> WorldNames:
    """Return the drawn names of a world, with their codes, sectors, prices and true parameters."""
    draws = Draws(config.seed, "universe", config.preset)
    n, sessions, kinds = config.names, config.sessions, _SECTORS[config.preset]
    group = np.sort(np.arange(n) % len(kinds))[draws.order(n)]
    boards = [Board.NONE] * n
    if config.preset == "ashare":
        shared = []
        for board, share in _BOARD_SHARES:
            shared += [board] * max(1, round(share * n))
        boards = (shared + [Board.MAIN] * n)[:n]
        boards = [boards[i] for i in draws.order(n)]
    stems: dict[str, None] = {}
    while len(stems) < n:
        stems["".join(map(draws.pick, (_FIRST, _MIDDLE, _LAST)))] = None
    names = [f"{stem} {kinds[g][1]}" for stem, g in zip(stems, group.tolist(), strict=True)]
    symbols: dict[str, None] = {}
    for name, board in zip(names, boards, strict=True):
        known = len(symbols)
        while len(symbols) == known:
            symbols[_symbol(draws, name, board)] = None
    codes = list(symbols)
    # The last names drawn are the new listings. The first ones are delisted.
    first, last = np.zeros(n, dtype=np.int64), np.full(n, sessions - 1, dtype=np.int64)
    for k in range(config.new_listings):
        first[n - 1 - k] = int(sessions * float(draws.between(0.15, 0.75, 1)[0]))
    for k in range(config.delistings):
        row = max(SEASONED, int(sessions * float(draws.between(0.45, 0.92, 1)[0])))
        last[k] = min(row, sessions - 1)
    low, high = _PRICES.get(config.preset, (0.4, 24000.0))
    log_low, log_high = np.log([low, high])
    value = np.exp(draws.between(float(log_low), float(log_high), n))
    unit = np.full(n, 100, dtype=np.int64)
    if config.preset == "crypto":
        unit = np.where(value >= 1000, 100, np.where(value >= 10, 1_000, 100_000)).astype(np.int64)
    price = np.rint(value * unit).astype(np.int64)
    worth = np.exp(23.0 + 0.8 * draws.normal(n))
    shares = np.maximum(np.rint(worth / value / 1000.0), 10.0).astype(np.int64)
    noise, year = config.noise, float(config.year)
    sigma = draws.between(noise.low, noise.high, n) / np.sqrt(year)
    beta = np.clip(1.0 + config.market.beta_spread * draws.normal(n), 0.4, 1.8)
    alpha = noise.alpha * draws.normal(n) / year
    columns = sorted(range(n), key=lambda i: (first[i], codes[i]))
    told: dict[str, Any] = {"kind": "stock", "lot": 1.0, "step": 1.0, "currency": config.currency}
    if config.preset == "ashare":
        told["lot"] = 100.0
    elif config.preset == "crypto":
        told |= {"kind": "crypto", "lot": 1e-6, "step": 1e-6}
    instruments = tuple(
        Instrument(
            symbol=codes[i],
            name=names[i],
            board=boards[i],
            sector=kinds[group[i]][0],
            tick=1.0 / int(unit[i]),
            **told,
        )
        for i in columns
    )
    limits = [
        _LIMITS[boards[i]] if config.preset == "ashare" else config.trading.max_move
        for i in columns
    ]
    pick = np.array(columns)
    limit = np.array(limits, dtype=np.int64)
    drawn = (
        group[pick],
        unit[pick],
        limit,
        shares[pick],
        price[pick],
        beta[pick],
        alpha[pick],
        sigma[pick],
    )
    return WorldNames(instruments, first[pick], last[pick], *drawn)


def _symbol(draws: Draws, name: str, board: Board) -> str:
    """Return a drawn code.

    A code has six digits on a board. Otherwise it has four letters, of which the first is that of
    the name.
    """
    prefixes = _PREFIXES.get(board)
    if prefixes is None:
        return name[0].upper() + draws.pick(ascii_uppercase) + draws.pick(_ENDINGS)
    prefix = draws.pick(prefixes)
    rest = 6 - len(prefix)
    return f"{prefix}{draws.integer(1, 10**rest - 1):0{rest}d}"


Shape = int | tuple[int, ...]
GRID = 1 << 20


class Draws:
    """A named stream of random numbers. Streams of different names are independent."""

    def __init__(self, seed: int, *path: str) -> None:
        words = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") for name in path]
        self._bits = PCG64(SeedSequence(seed, spawn_key=words))

    def _raw(self, count: int) -> NDArray[np.uint64]:
        raw: NDArray[np.uint64] = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return raw

    def uniform(self, shape: Shape) -> Floats:
        """Return numbers from 0 to below 1, with 53 random bits each."""
        count = int(np.prod(shape))
        whole = (self._raw(count) >> np.uint64(11)).astype(np.float64)
        return (whole * 2.0**-53).reshape(shape)

    def between(self, low: float, high: float, shape: Shape) -> Floats:
        """Return numbers from ``low`` to below ``high``."""
        return low + (high - low) * self.uniform(shape)

    def chance(self, probability: float, shape: Shape) -> Bools:
        """Return a mask whose entries are True with a given probability."""
        result: Bools = self.uniform(shape) < probability
        return result

    def below(self, bound: int, shape: Shape) -> Ints:
        """Return whole numbers from 0 to ``bound`` - 1."""
        count = int(np.prod(shape))
        high = self._raw(count) >> np.uint64(32)
        return ((high * np.uint64(bound)) >> np.uint64(32)).astype(np.int64).reshape(shape)

    def integer(self, low: int, high: int) -> int:
        """Return one whole number from ``low`` to ``high``, both inclusive."""
        return low + int(self.below(high - low + 1, 1)[0])

    def pick(self, options: Sequence[str]) -> str:
        """Return one of the options."""
        return options[self.integer(0, len(options) - 1)]

    def normal(self, shape: Shape) -> Floats:
        """Return standard normal variates from a table of 65,536 values, of which the largest is
        4.33.
        """
        count = int(np.prod(shape))
        bits = self._raw(-(-count // 4)).astype("<u8").view("<u2")[:count]
        values: Floats = normal_table()[bits].reshape(shape)
        return values

    def student(self, shape: Shape, df: int) -> Floats:
        """Return Student variates with ``df`` (at least 3) degrees of freedom, scaled to unit
        variance.
        """
        squares = self.normal(shape)
        squares *= squares
        for _ in range(df - 1):
            z = self.normal(shape)
            z *= z
            squares += z
        result: Floats = self.normal(shape) / np.sqrt(np.maximum(squares, 0.01) / (df - 2.0))
        return result

    def order(self, count: int) -> Ints:
        """Return the numbers below ``count`` in random order."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def rare(self, rate: float, cells: int) -> Ints:
        """Return the indices of the cells in which an event occurs.

        The event occurs in each of ``cells`` cells with probability ``rate``.
        """
        return np.flatnonzero(self.chance(rate, cells)).astype(np.int64)


@lru_cache(maxsize=1)
def normal_table() -> Floats:
    """Return the 65,536 quantiles from which normal variates are drawn, on a fixed grid."""
    upper = normal_quantile((np.arange(1 << 15) + 0.5) / (1 << 16) + 0.5)
    upper = np.rint(upper * GRID) / GRID
    table = np.concatenate([-upper[::-1], upper])
    table.flags.writeable = False
    return table


_CENTRE = (
    "2.5090809287301226727e3 3.3430575583588128105e4 6.7265770927008700853e4 "
    "4.5921953931549871457e4 "
    "1.3731693765509461125e4 1.9715909503065514427e3 1.3314166789178437745e2 "
    "3.3871328727963666080e0",
    "5.2264952788528545610e3 2.8729085735721942674e4 3.9307895800092710610e4 "
    "2.1213794301586595867e4 "
    "5.3941960214247511077e3 6.8718700749205790830e2 4.2313330701600911252e1 1.0",
)
_TAIL = (
    "7.74545014278341407640e-4 2.27238449892691845833e-2 2.41780725177450611770e-1 "
    "1.27045825245236838258e0 "
    "3.64784832476320460504e0 5.76949722146069140550e0 4.63033784615654529590e0 "
    "1.42343711074968357734e0",
    "1.05075007164441684324e-9 5.47593808499534494600e-4 1.51986665636164571966e-2 "
    "1.48103976427480074590e-1 "
    "6.89767334985100004550e-1 1.67638483018380384940e0 2.05319162663775882187e0 1.0",
)


def normal_quantile(probability: Floats) -> Floats:
    """Return standard normal quantiles by Wichura's AS 241.

    Probabilities range from 1e-11 to 1 - 1e-11.
    """
    q = probability - 0.5
    centre = 0.180625 - q * q
    tail = np.sqrt(-np.log(np.minimum(probability, 1.0 - probability))) - 1.6
    inner = q * _ratio(_CENTRE, centre)
    outer = np.where(q < 0, -1.0, 1.0) * _ratio(_TAIL, tail)
    return np.where(np.abs(q) <= 0.425, inner, outer)


def _ratio(polynomials: tuple[str, str], x: Floats) -> Floats:
    above, below = (np.polyval(np.array(text.split(), dtype=np.float64), x) for text in polynomials)
    return above / below
