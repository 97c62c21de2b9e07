"""Which stock on which day: pairs spread evenly over windows and boards."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.assay.probe.config import ProbeConfig
from tradeassay.benchmarks import Benchmark, NamedWindow, find_window, window_sets
from tradeassay.core.errors import UserError
from tradeassay.data import AsOfView, Snapshot
from tradeassay.play.universe import Universe, most_traded

_LONG = "long"


@dataclass(frozen=True, slots=True)
class Probe:
    """One pair and its truth. ``row`` is the session, ``step`` its number in the window, ``names`` how many
    stocks it could have been."""

    number: int
    window: str
    first: str
    last: str
    row: int
    step: int
    symbol: str
    session: str
    sector: str | None
    board: str
    names: int


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of sessions to draw from."""

    code: str
    first: str
    last: str


def windows_of(benchmark: Benchmark, snapshot: Snapshot, codes: tuple[str, ...]) -> tuple[Window, ...]:
    """Return the benchmark's windows on a data set: those named, else all short ones, else its whole period."""
    found: tuple[NamedWindow, ...] = ()
    if codes:
        found = tuple(find_window(benchmark.protocol, code, snapshot, benchmark.convention) for code in codes)
    elif benchmark.protocol in window_sets:
        every = window_sets.get(benchmark.protocol)(snapshot, benchmark.convention)
        found = tuple(window for window in every if window.code != _LONG)
    if not found:
        return (Window(code="all", first=benchmark.market.first, last=benchmark.market.last),)
    return tuple(Window(code=window.code, first=window.first, last=window.last) for window in found)


def draw_probes(benchmark: Benchmark, snapshot: Snapshot, config: ProbeConfig) -> tuple[Probe, ...]:
    """Draw the pairs; raises :class:`UserError` when there is nothing to draw from."""
    rng = np.random.default_rng(config.seed)
    strata = _strata(benchmark, snapshot, windows_of(benchmark, snapshot, config.windows))
    if not strata:
        raise UserError("no stock can be bought in any window", mend="choose another data set or window")
    probes: list[Probe] = []
    seen: set[tuple[int, str]] = set()
    tries = 0
    # Strata take turns, so that they differ by one probe at most; a pair is not asked twice while others are left.
    while len(probes) < config.probes:
        window, board, universe = strata[len(probes) % len(strata)]
        rows = snapshot.rows(window.first, window.last)
        step = int(rng.integers(len(rows)))
        view = snapshot.at(rows[step], "pre_open")
        choice = universe.at(view).symbols
        inside = [symbol for symbol in choice if view.instrument(symbol).board.value == board]
        tries += 1
        if not inside and tries < 100 * config.probes:
            continue
        symbol = (inside or list(choice))[int(rng.integers(len(inside or choice)))]
        if (rows[step], symbol) in seen and tries < 100 * config.probes:
            continue
        seen.add((rows[step], symbol))
        probes.append(_probe(len(probes), window, rows[step], step, view, symbol, len(choice)))
    return tuple(probes)


def _strata(
    benchmark: Benchmark, snapshot: Snapshot, windows: tuple[Window, ...]
) -> list[tuple[Window, str, Universe]]:
    strata = []
    for window in windows:
        rows = snapshot.rows(window.first, window.last)
        universe = Universe(
            benchmark.market.universe, most_traded(benchmark.market.universe, snapshot.at(rows[0], "pre_open"))
        )
        view = snapshot.at(rows[0], "pre_open")
        boards = sorted({view.instrument(symbol).board.value for symbol in universe.at(view).symbols})
        strata += [(window, board, universe) for board in boards]
    return strata


def _probe(number: int, window: Window, row: int, step: int, view: AsOfView, symbol: str, names: int) -> Probe:
    instrument = view.instrument(symbol)
    return Probe(
        number=number,
        window=window.code,
        first=window.first,
        last=window.last,
        row=row,
        step=step,
        symbol=symbol,
        session=view.session,
        sector=instrument.sector,
        board=instrument.board.value,
        names=names,
    )
