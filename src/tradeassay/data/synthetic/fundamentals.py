"""Quarterly figures, each with the instant from which it is known."""

from __future__ import annotations

import numpy as np

from tradeassay.core import reproducible_math as exact
from tradeassay.core.instruments import Fundamental
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.engine import WorldTape
from tradeassay.data.synthetic.events import Report
from tradeassay.data.synthetic.universe import WorldNames
from tradeassay.data.synthetic.world_config import SyntheticConfig

FIELDS = (
    "shares_outstanding", "revenue", "net_income", "eps", "eps_ttm", "book_value_per_share",
    "dividend_per_share_ttm", "market_cap", "pe", "pb", "dividend_yield",
)  # fmt: skip
SURPRISE = 0.08
"""One standard deviation of surprise moves a quarter's earnings by this share."""


def make_fundamentals(
    config: SyntheticConfig, universe: WorldNames, tape: WorldTape, reports: tuple[Report, ...], burn: int
) -> tuple[Fundamental, ...]:
    """Write the figures of every report.

    Per-share figures are in the shares of the day they are published. ``pe``, ``pb``, ``dividend_yield`` and
    ``market_cap`` use the last close before publication; ``pe`` is left out while earnings are negative.
    """
    if not reports:
        return ()
    draws = Draws(config.seed, "fundamentals")
    n = universe.size
    price = universe.price / universe.unit
    loss = draws.chance(0.08, n)
    earnings = price / exact.exp(2.95 + 0.35 * draws.normal(n)) * np.where(loss, -0.5, 1.0) / 4.0
    growth = 0.015 + 0.02 * draws.normal(n)
    margin = draws.between(0.04, 0.22, n)
    book = price / exact.exp(0.9 + 0.45 * draws.normal(n))
    dividends = _dividends(tape, n)
    quarters: dict[int, list[float]] = {}
    found: list[Fundamental] = []
    for report in sorted(reports, key=lambda r: (r.column, r.period_end)):
        i = report.column
        past = quarters.setdefault(i, [])
        trend = earnings[i] * (1.0 + growth[i] * len(past))
        past.append(float(trend + abs(trend) * SURPRISE * report.surprise))
        row = max(burn + report.row - 1, 1)
        values = _figures(universe, tape, i, row, past, float(margin[i]), float(book[i]))
        paid = _trailing(dividends[i], row, config.year) / float(tape.scale[row, i]) / float(universe.unit[i])
        close = float(tape.last[row, i]) / float(universe.unit[i])
        values["dividend_per_share_ttm"] = paid
        values["dividend_yield"] = paid / close
        symbol = universe.instruments[i].symbol
        found += [
            Fundamental(symbol=symbol, field=name, period_end=report.period_end, known_at=report.known_at,
                        value=_rounded(values[name]))
            for name in FIELDS
            if name in values
        ]  # fmt: skip
    found.sort(key=lambda f: (f.known_at, f.symbol))
    return tuple(found)


def _figures(
    universe: WorldNames, tape: WorldTape, i: int, row: int, past: list[float], margin: float, book: float
) -> dict[str, float]:
    scale = float(tape.scale[row, i])
    close = float(tape.last[row, i]) / float(universe.unit[i])
    shares = float(tape.shares[row, i]) * 1000.0
    eps = past[-1] / scale
    year = past[-4:]
    whole = year[0]
    for quarter in year[1:]:
        whole += quarter
    ttm = whole * 4.0 / len(year) / scale
    worth = book * (1.0 + 0.02 * len(past)) / scale
    income = eps * shares
    values = {
        "shares_outstanding": shares,
        "revenue": abs(income) / margin,
        "net_income": income,
        "eps": eps,
        "eps_ttm": ttm,
        "book_value_per_share": worth,
        "market_cap": shares * close,
        "pb": close / worth,
    }
    if ttm > 0:
        values["pe"] = close / ttm
    return values


def _dividends(tape: WorldTape, n: int) -> list[list[tuple[int, float]]]:
    """Return (row, ticks in the first share unit) of every dividend, per name."""
    paid: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for action in tape.actions:
        if action.kind == "dividend":
            paid[action.column].append((action.ex, action.value * float(tape.scale[action.ex, action.column])))
    return paid


def _trailing(paid: list[tuple[int, float]], row: int, year: int) -> float:
    total = 0.0
    for ex, value in paid:
        if row - year < ex <= row:
            total += value
    return total


def _rounded(value: float) -> float:
    """Return a figure as it would be printed: whole numbers from a million up, else four decimals."""
    return float(round(value)) if abs(value) >= 1e6 else round(value * 1e4) / 1e4
