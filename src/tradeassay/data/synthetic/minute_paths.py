"""Minutes inside given daily bars: they start at the open, end at the close and touch the high and the low."""

from __future__ import annotations

import numpy as np

from tradeassay.core.time import MINUTE
from tradeassay.core.view import FIELDS, Field, Floats, Ints
from tradeassay.data.calendars import Sessions
from tradeassay.data.panel import CalendarName, MinutePanel
from tradeassay.data.synthetic.config import SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.tape import Tape
from tradeassay.data.synthetic.universe import Universe

_LUNCH: dict[CalendarName, tuple[int, int]] = {"XSHG": (120, 210)}
"""The break, in minutes after the open."""


def make_minutes(
    config: SyntheticConfig, universe: Universe, tape: Tape, sessions: Sessions, burn: int
) -> MinutePanel | None:
    """Return minutes of the first ``config.minutes`` names that trade from the first to the last session."""
    whole = (universe.first == 0) & (universe.last == config.sessions - 1)
    columns = np.flatnonzero(whole)[: config.minutes].tolist()
    if not columns:
        return None
    ends = [
        _ends(config.calendar, int(a), int(b))
        for a, b in zip(sessions.open_time, sessions.close_time, strict=True)
    ]
    close_time = np.concatenate(ends)
    bars: dict[Field, Floats] = {name: np.full((close_time.size, len(columns)), np.nan) for name in FIELDS}
    for place, column in enumerate(columns):
        draws = Draws(config.seed, "minutes", universe.instruments[column].symbol)
        unit = float(universe.unit[column])
        start = 0
        for row, times in enumerate(ends, start=burn):
            stop = start + times.size
            if tape.trading[row, column]:
                day = tuple(
                    float(x[row, column]) for x in (tape.open, tape.high, tape.low, tape.close, tape.volume)
                )
                _write(bars, slice(start, stop), place, _session(draws, times.size, day), unit)
            start = stop
    return MinutePanel(tuple(universe.instruments[c].symbol for c in columns), close_time, bars)


def _ends(calendar: CalendarName, opened: int, closed: int) -> Ints:
    """Return the closing instants of a session's minutes, without the lunch break."""
    count = (closed - opened) // MINUTE
    minutes = np.arange(1, count + 1, dtype=np.int64)
    if calendar in _LUNCH:
        start, stop = _LUNCH[calendar]
        minutes = minutes[(minutes <= start) | (minutes > stop)]
    return opened + minutes * MINUTE


def _session(draws: Draws, count: int, day: tuple[float, ...]) -> Floats:
    """Return open, high, low, close (ticks) and volume of every minute, shape (5, count)."""
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


def _write(bars: dict[Field, Floats], rows: slice, place: int, values: Floats, unit: float) -> None:
    prices: tuple[Field, ...] = ("open", "high", "low", "close")
    for k, name in enumerate(prices):
        bars[name][rows, place] = values[k] / unit
    bars["volume"][rows, place] = values[4]
    paid = (values[0] + values[1] + values[2] + values[3]) * 0.25 / unit
    bars["amount"][rows, place] = np.rint(paid * values[4] * 100.0) / 100.0
