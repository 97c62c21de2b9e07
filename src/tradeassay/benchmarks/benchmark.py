"""A benchmark: a frozen statement of what is played, on which data, under which rules, against what.

Its named windows (``W4``) are found on the data at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.account import venues
from tradeassay.benchmarks.daily import DayConfig
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Convention
from tradeassay.core.registry import Registry, did_you_mean
from tradeassay.core.time import parse_day
from tradeassay.core.view import Days
from tradeassay.play import MarketConfig

if TYPE_CHECKING:
    from tradeassay.data import Snapshot


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark. Whatever changes a score changes the version at the end of ``id``.

    ``dataset`` is the data set played unless a run names another; ``baseline`` the agent results are compared
    with. The index is part of ``market``. ``protocol`` names the conversation that a model has in a session (see
    :mod:`tradeassay.benchmarks.protocol`), ``protocol_params`` what differs from its defaults; rule agents
    answer ``day`` under the same market rules.
    ``takes_secret``: aliases and other draws are derived from a secret of the run, so that nobody who knows this
    program knows them beforehand. ``seed_word`` is what all draws are derived from beside the secret; the id where
    it is empty. A benchmark that is given another name keeps its draws by it."""

    id: str
    title: str
    description: str
    dataset: str
    market: MarketConfig
    baseline: str = "equal-weight"
    convention: Convention = "sound"
    day: DayConfig = DayConfig()
    protocol: str = "daily"
    protocol_params: dict[str, bool | int | float | str] = {}
    takes_secret: bool = True
    seed_word: str = ""

    @property
    def dice(self) -> str:
        """The word that the draws of its episodes are derived from."""
        return self.seed_word or self.id

    @property
    def index(self) -> str | None:
        """The index results are compared with, if the market has one."""
        return self.market.index

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the venue, for annualising."""
        return venues.get(self.market.venue).periods_per_year


def _wrong(name: str, item: object) -> str | None:
    """Return why no run could name ``item`` by ``name``, or None."""
    if not isinstance(item, Benchmark):
        return f"it is no Benchmark but {item!r:.60}"
    return None if item.id == name else f"its id is '{item.id}'; give both one name"


benchmarks: Registry[Benchmark] = Registry("benchmark", _wrong)


class NamedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The first and last day of a window, both included.

    ``structural`` marks a window that has the length of the published one but not its dates, because the data does
    not have them; ``label`` says so wherever the window is named."""

    code: str
    label: str
    first: str
    last: str
    sessions: int
    structural: bool
    regime: str


def named_window(code: str, sessions: Days, rows: range, regime: str, *, structural: bool) -> NamedWindow:
    """Return the window of some rows of a data set's sessions."""
    return NamedWindow(
        code=code,
        label=f"{code} (structural, {len(rows)} sessions)" if structural else code,
        first=str(sessions[rows.start]),
        last=str(sessions[rows.stop - 1]),
        sessions=len(rows),
        structural=structural,
        regime=regime,
    )


window_sets: Registry[Callable[[Snapshot, Convention], tuple[NamedWindow, ...]]] = Registry("window set")
"""By the protocol they belong to: what returns the windows that a data set can hold."""
AFTER = "after-"
"""``after-2025-06-01`` is every session after a day: after a model's knowledge cutoff, memory cannot help."""
_HISTORY = 252


def find_window(protocol: str, code: str, snapshot: Snapshot, convention: Convention) -> NamedWindow:
    """Return one window of a protocol; raises :class:`UserError` for a name that it does not have here."""
    if code.startswith(AFTER):
        day = parse_day(code[len(AFTER) :])
        sessions = snapshot.sessions
        start = int(np.searchsorted(sessions, np.datetime64(day.isoformat(), "D"), side="right"))
        start = max(start, min(_HISTORY, sessions.size))
        if start >= sessions.size:
            last = str(sessions[-1]) if sessions.size else "none"
            words = f"'{snapshot.name}' has no session after {day.isoformat()}: its last is {last}"
            raise UserError(words, hint="fetch newer data, or choose a model with an earlier cutoff")
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
        hint = "bound it with first= and last=, or take after-DAY, every session after a day"
        raise UserError(f"'{protocol}' has no window '{code}', nor any other with a name", hint=hint)
    found = window_sets.get(protocol)(snapshot, convention)
    for window in found:
        if window.code.casefold() == code.casefold():
            return window
    codes = [window.code for window in found]
    short = f"its {len(snapshot.sessions)} sessions hold none and a year of history"
    hint = did_you_mean(code, codes, f"there are {', '.join(codes)}") if codes else f"{short}: take longer data"
    raise UserError(f"'{snapshot.name}' has no window '{code}'", hint=hint)
