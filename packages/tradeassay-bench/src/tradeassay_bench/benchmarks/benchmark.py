"""Define a benchmark suite: its data, its market rules, its protocol and its baseline.

The dates of a named window such as ``W4`` are computed for the dataset of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.arrays import Days
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Convention
from tradeassay.core.registry import Registry, did_you_mean
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks.daily import DayConfig
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.play import MarketConfig

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark suite. A change that affects scores needs a new version at the end of ``id``.

    - ``dataset``: the default dataset. A run may use a different one.
    - ``market``: the market rules, including the index.
    - ``baseline``: the agent with which results are compared.
    - ``protocol``: the conversation with a model in one session, see
      :mod:`tradeassay_bench.benchmarks.protocol`. Rule agents answer ``day`` under the same market
      rules.
    - ``protocol_params``: the protocol's settings that differ from its defaults.
    - ``takes_secret``: if True, the run's secret is part of the seed of every conversation, so that
      aliases and samples cannot be predicted from the source code. The random generators of the
      agents never depend on the secret.
    - ``seed_word``: the text that replaces the id in all seeds. A renamed benchmark keeps its draws
      if this field contains the old id. If empty, the id is used.
    """

    id: str
    title: str
    description: str
    dataset: str
    market: MarketConfig
    baseline: str = "equal-weight"
    convention: Convention = "corrected"
    day: DayConfig = DayConfig()
    protocol: str = "daily"
    protocol_params: dict[str, bool | int | float | str] = {}
    takes_secret: bool = True
    seed_word: str = ""

    @property
    def seed_text(self) -> str:
        """Return the text from which an episode's seeds are derived: ``seed_word`` or the id."""
        return self.seed_word or self.id

    @property
    def index(self) -> str | None:
        """Return the index with which results are compared, or None if the market has no index."""
        return self.market.index

    @property
    def periods_per_year(self) -> int:
        """Return the number of sessions per year at the venue, for annualising."""
        return venues.get(self.market.venue).periods_per_year


def _registration_problem(name: str, item: object) -> str | None:
    """Return the reason why ``item`` cannot be registered under ``name``, or None."""
    if not isinstance(item, Benchmark):
        return f"expected a Benchmark, got {item!r:.60}"
    if item.id != name:
        return f"its id is '{item.id}'. Register it under its id"
    return None


benchmarks: Registry[Benchmark] = Registry("benchmark", _registration_problem)


class NamedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A named period of sessions, from ISO day ``first`` to ``last``, both inclusive.

    A ``structural`` window has the length of the published window but other dates, because the
    dataset does not cover the published ones. Its ``label`` says so.
    """

    code: str
    label: str
    first: str
    last: str
    sessions: int
    structural: bool
    regime: str


def named_window(
    code: str, sessions: Days, rows: range, regime: str, *, structural: bool
) -> NamedWindow:
    """Return the window that covers some rows of a dataset's sessions."""
    return NamedWindow(
        code=code,
        label=f"{code} (structural, {len(rows)} sessions)" if structural else code,
        first=str(sessions[rows.start]),
        last=str(sessions[rows.stop - 1]),
        sessions=len(rows),
        structural=structural,
        regime=regime,
    )


window_sets: Registry[Callable[[Snapshot, Convention], tuple[NamedWindow, ...]]] = Registry(
    "window set"
)
"""For each protocol, a function that returns the windows available in a dataset."""
AFTER = "after-"
"""Prefix of windows such as ``after-2025-06-01``, which contain all sessions after a day. A model
whose knowledge cutoff is that day cannot remember these sessions.
"""
_HISTORY = 252
"""Number of sessions of history required before an ``after-`` window."""


def find_window(
    protocol: str, code: str, snapshot: Snapshot, convention: Convention
) -> NamedWindow:
    """Return a window of a protocol by its code.

    Raises :class:`UserError` if the protocol or the dataset has no such window.
    """
    if code.startswith(AFTER):
        day = parse_day(code[len(AFTER) :])
        sessions = snapshot.sessions
        start = int(np.searchsorted(sessions, np.datetime64(day.isoformat(), "D"), side="right"))
        start = max(start, min(_HISTORY, sessions.size))
        if start >= sessions.size:
            last = str(sessions[-1]) if sessions.size else "none"
            raise UserError(
                f"'{snapshot.name}' has no session after {day.isoformat()}: its last is {last}",
                hint="fetch newer data, or choose a model with an earlier cutoff",
            )
        return NamedWindow(
            code=code,
            label=f"after {day.isoformat()} ({sessions.size - start} sessions)",
            first=str(sessions[start]),
            last=str(sessions[-1]),
            sessions=int(sessions.size - start),
            structural=False,
            regime="whatever came after the cutoff",
        )
    if protocol not in window_sets:
        raise UserError(
            f"'{protocol}' has no window '{code}' and no other named windows",
            hint="give first= and last=, or after-DAY for all sessions after a day",
        )
    windows = window_sets.get(protocol)(snapshot, convention)
    for window in windows:
        if window.code.casefold() == code.casefold():
            return window
    codes = [window.code for window in windows]
    if codes:
        hint = did_you_mean(code, codes, f"there are {', '.join(codes)}")
    else:
        count = len(snapshot.sessions)
        hint = f"its {count} sessions are too short for a window after a year of history"
    raise UserError(f"'{snapshot.name}' has no window '{code}'", hint=hint)
