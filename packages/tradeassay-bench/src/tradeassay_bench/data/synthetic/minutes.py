"""Generate minute bars for an asset that trades 24/7, or within given daily bars.

Volatility varies over days (GARCH), over half hours (persistent bursts) and with the hour of the
day. Minutes within a daily bar start at its open, end at its close and touch its high and low. A
year of 24/7 minutes takes well under a second.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.core.time import MINUTE, midnight, parse_day
from tradeassay_bench.core.view import FIELDS, Field
from tradeassay_bench.data.calendars import Sessions
from tradeassay_bench.data.source import CalendarName, MinutePanel
from tradeassay_bench.data.synthetic.engine import WorldTape, bounded_exp, clustered
from tradeassay_bench.data.synthetic.universe import Draws, SyntheticConfig, WorldNames

DAY_MINUTES = 1440
_BURST, _KEPT, _KICK = 30, 0.94, 0.13
"""The length of a burst in minutes, its persistence to the next one, and the size of a new one."""
HOURS = tuple(
    float(hour)
    for hour in (
        "0.85 0.80 0.80 0.85 0.80 0.75 0.80 0.95 1.05 1.00 0.95 0.95 "
        "1.00 1.25 1.45 1.40 1.25 1.15 1.10 1.10 1.05 0.95 0.90 0.90"
    ).split()
)
"""The activity of each hour (UTC) relative to the mean of the day."""


class MinuteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one asset's minute bars.

    ``volatility`` is per year. ``unit`` is the number of ticks per unit of currency. ``turnover``
    is the median number of units traded per minute. Raises :class:`UserError` for zero minutes.
    """

    seed: int = 0
    symbol: str = "QUQX"
    first: str = "2021-01-01"
    minutes: int = 525_600
    price: float = 20_000.0
    unit: int = 100
    volatility: float = 0.60
    df: int = 4
    turnover: float = 40.0

    def __post_init__(self) -> None:
        if self.minutes < 1:
            raise UserError(
                f"{self.minutes} minutes are not enough for a series", hint="use at least one"
            )


def generate_minutes(config: MinuteConfig) -> MinutePanel:
    """Return the minute bars of an asset.

    Each bar opens at the last close and closes a whole number of ticks away.
    """
    draws = Draws(config.seed, "minutes", config.symbol)
    count = config.minutes
    scale = _scale(config, draws)
    shocks = np.clip(draws.student(count, config.df), -8.0, 8.0)
    moves = np.clip(shocks * scale, -0.03, 0.03)
    path = config.price * np.multiply.accumulate(1.0 + moves)
    close = np.maximum(np.rint(path * config.unit), 1.0)
    opened = np.concatenate([[np.rint(config.price * config.unit)], close[:-1]])
    reach = np.abs(draws.normal((2, count))) * scale * 0.5
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    high = np.maximum(np.rint(top * (1.0 + reach[0])), top)
    low = np.maximum(np.minimum(np.rint(bottom / (1.0 + reach[1])), bottom), 1.0)
    busy = 0.30 * np.abs(shocks) + 0.45 * draws.normal(count) - 0.25
    volume = (
        np.maximum(np.rint(config.turnover * 1000.0 * bounded_exp(busy) * _hourly(count)), 1.0)
        / 1000.0
    )
    unit = float(config.unit)
    amount = np.rint((opened + high + low + close) * 0.25 / unit * volume * 100.0) / 100.0
    start = midnight(parse_day(config.first))
    fields = (opened / unit, high / unit, low / unit, close / unit, volume, amount)
    return MinutePanel(
        symbols=(config.symbol,),
        close_time=start + MINUTE * np.arange(1, count + 1, dtype=np.int64),
        bars={name: values[:, None] for name, values in zip(FIELDS, fields, strict=True)},
    )


def _hourly(count: int) -> Floats:
    """Return the relative activity of every minute by the hour of the day."""
    return np.array(HOURS)[np.arange(count) % DAY_MINUTES // 60]


def _scale(config: MinuteConfig, draws: Draws) -> Floats:
    """Return the volatility of every minute."""
    count = config.minutes
    days = -(-count // DAY_MINUTES)
    daily = config.volatility / math.sqrt(365.0)
    path = clustered(draws, days + 1, 1.0, 0.12, 0.84, 6)
    level = 0.6 + 0.5 * np.minimum(np.abs(path[:-1]), 3.0)
    for k in range(1, days):
        level[k] = 0.7 * level[k - 1] + 0.3 * level[k]
    bursts, state = [], 0.0
    for shock in draws.normal(-(-count // _BURST)).tolist():
        state = _KEPT * state + _KICK * shock
        bursts.append(state)
    # Shifted by its variance, the squared burst has mean 1, so that the year has the configured
    # volatility.
    shift = _KICK * _KICK / (1.0 - _KEPT * _KEPT)
    burst = np.repeat(bounded_exp(np.array(bursts) - shift), _BURST)[:count]
    return (
        (daily / math.sqrt(DAY_MINUTES))
        * np.repeat(level, DAY_MINUTES)[:count]
        * burst
        * _hourly(count)
    )


_LUNCH: dict[CalendarName, tuple[int, int]] = {"XSHG": (120, 210)}
"""The start and end of the lunch break, in minutes after the open."""


def make_minutes(
    config: SyntheticConfig, universe: WorldNames, tape: WorldTape, sessions: Sessions, burn: int
) -> MinutePanel | None:
    """Return minute bars of the first ``config.minutes`` names that are listed in all sessions.

    Return None if there are no such names.
    """
    whole = (universe.first == 0) & (universe.last == config.sessions - 1)
    columns = np.flatnonzero(whole)[: config.minutes].tolist()
    if not columns:
        return None
    ends: list[Ints] = []  # the closing instants of each session's minutes, without the lunch break
    lunch, back = _LUNCH.get(config.calendar, (0, 0))
    for opened, closed in zip(
        sessions.open_time.tolist(), sessions.close_time.tolist(), strict=True
    ):
        times = np.arange(1, (closed - opened) // MINUTE + 1, dtype=np.int64)
        ends.append(opened + times[(times <= lunch) | (times > back)] * MINUTE)
    close_time = np.concatenate(ends)
    bars: dict[Field, Floats] = {
        name: np.full((close_time.size, len(columns)), np.nan) for name in FIELDS
    }
    for place, column in enumerate(columns):
        draws = Draws(config.seed, "minutes", universe.instruments[column].symbol)
        unit = float(universe.unit[column])
        start = 0
        for row, times in enumerate(ends, start=burn):
            stop = start + times.size
            if tape.trading[row, column]:
                day = [
                    float(x[row, column])
                    for x in (tape.open, tape.high, tape.low, tape.close, tape.volume)
                ]
                made = _session(draws, times.size, day)
                paid = (made[0] + made[1] + made[2] + made[3]) * 0.25 / unit
                amount = np.rint(paid * made[4] * 100.0) / 100.0
                for name, values in zip(FIELDS, (*(made[:4] / unit), made[4], amount), strict=True):
                    bars[name][start:stop, place] = values
            start = stop
    return MinutePanel(tuple(universe.instruments[c].symbol for c in columns), close_time, bars)


def _session(draws: Draws, count: int, day: list[float]) -> Floats:
    """Return the minutes of one session within a daily bar: open, high, low, close and volume."""
    opened, high, low, closed, volume = day
    walk = np.add.accumulate(draws.normal(count))
    share = np.arange(1, count + 1) / count
    bridge = walk - share * walk[-1]
    line = opened + (closed - opened) * share
    widest = max(float(np.abs(bridge).max()), 1e-9)
    path = np.rint(np.clip(line + bridge / widest * (0.75 * (high - low)), low, high))
    path[-1] = closed
    start = np.concatenate([[opened], path[:-1]])
    top, bottom = np.maximum(start, path), np.minimum(start, path)
    top[int(np.argmax(top))] = high
    bottom[int(np.argmin(bottom))] = low
    edge = np.abs(share - 0.5)
    weight = (1.0 + 4.0 * edge * edge) * (1.0 + np.abs(draws.normal(count)))
    passed = np.add.accumulate(weight)
    traded = np.floor(volume * (passed / passed[-1]))
    return np.stack([start, top, bottom, path, np.diff(traded, prepend=0.0)])
