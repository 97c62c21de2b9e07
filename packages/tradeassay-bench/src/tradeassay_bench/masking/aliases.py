"""Draw the aliases of one episode: ``asset_0007`` for a symbol, ``day_+12`` for a day.

Every episode draws new aliases. ``day_+12`` is the twelfth session after the first. ``day_-3`` is a
day of the history. Only sessions are counted, so neither weekends nor holidays are visible. If a
type requires a date or an instant, session n of every episode is the day :data:`ANCHOR` + n, a date
that no data set contains.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Days
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.time import DAY, HOUR, Instant


class UnknownAlias(AgentError, DataError):
    """An agent used an asset or a day that does not exist under its mask.

    The message repeats the agent's word only if it has the form of an alias. A message to the model
    is masked. Repeating a real name that the model guessed would therefore reveal the alias of that
    name.
    """


Level = Literal["bright", "stock-blind", "date-blind", "blinded"]
"""``bright`` shows everything. ``stock-blind`` hides names, ``date-blind`` hides dates, ``blinded``
hides both."""
LEVELS: tuple[Level, ...] = ("bright", "stock-blind", "date-blind", "blinded")


class MaskConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mask of an episode.

    All options except ``level`` extend the published protocol and are off by default.

    - ``control`` marks the control arm: nothing is hidden, and the protocol adds an instruction not
      to use memory.
    - ``rebase_prices`` gives every series a new level, fixed for the episode.
    - ``scale_volumes`` gives every name a new scale of volume and turnover, fixed for the episode.
    - ``scrub_news`` removes the source and every year, quarter, month and weekday from the news.
      Without it, only the names and dates of the episode are removed.
    - ``bare_dates`` (on by default) also replaces years, months and quarters without a day, if
      dates are hidden.
    - ``time_of_day`` adds the time of day to the day label of an instant.

    Raises :class:`UserError` for a control arm that hides something, and for hardening of a bright
    market.
    """

    level: Level = "blinded"
    control: bool = False
    rebase_prices: bool = False
    scale_volumes: bool = False
    scrub_news: bool = False
    bare_dates: bool = True
    time_of_day: bool = False

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UserError(
                f"unknown mask '{self.level}'", hint=f"choose one of {', '.join(LEVELS)}"
            )
        if self.level != "bright":
            if self.control:
                raise UserError(
                    f"a control arm cannot be '{self.level}'",
                    hint="level: bright, or control: false",
                )
        elif self.rebase_prices or self.scale_volumes or self.scrub_news:
            raise UserError("a bright market cannot be hardened", hint="choose another level")

    @property
    def hides_stocks(self) -> bool:
        return self.level in ("stock-blind", "blinded")

    @property
    def hides_dates(self) -> bool:
        return self.level in ("date-blind", "blinded")


HARDENINGS = ("rebase_prices", "scale_volumes", "scrub_news")
"""The hardenings beyond the published masks, in their order in the name of an arm.

An example of such a name is ``blinded+rebase_prices``.
"""


@cache
def _measured() -> list[dict[str, Any]]:
    bounds: list[dict[str, Any]] = tomllib.loads((files(__package__) / "bounds.toml").read_text())[
        "bound"
    ]
    return bounds


def mask_bound(arm: str) -> str:
    """Return a sentence with the best measured rate of identification under a mask.

    The measurements are made by ``perf/mask_bounds.py``.
    """
    if arm.split("+")[0] != "blinded":
        return "hides only names or only days, and the visible one reveals much of the hidden one"
    bounds = [bound for bound in _measured() if bound["arm"] == arm]
    if not bounds:
        return "identification was not measured for this hardening"
    without_archive = [
        bound["times_chance"]
        for bound in bounds
        if bound["metric"] == "top_5" and not bound["archive"]
    ]
    with_archive = max(
        bound["share"] for bound in bounds if bound["metric"] == "top_1" and bound["archive"]
    )
    return (
        f"at most {max(without_archive):.1f} times chance for whoever lacks the price archive "
        "(stock among five, "
        f"{bounds[0]['probes']} probes on each of {len(without_archive)} data sets), "
        f"{with_archive:.0%} for whoever has it"
    )


_ALIAS = re.compile(r"asset_\d{4,6}")
_FIRST_BLOCK = 10_000


class AliasMap:
    """Maps symbols to aliases and back.

    Symbols get their numbers in the order in which they become visible. Each number is drawn
    without replacement from 0 to 9999. Numbers and their order do not depend on the symbol, on the
    number of symbols, or on later listings. (After ten thousand symbols the aliases have five
    digits.)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._numbers: list[int] = rng.permutation(_FIRST_BLOCK).tolist()
        self._alias_of: dict[str, str] = {}
        self._symbol_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._alias_of)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._alias_of

    def extend(self, symbols: Sequence[str]) -> None:
        """Assign an alias to every symbol that has no alias, in the given order."""
        for symbol in symbols:
            if symbol not in self._alias_of:
                if len(self._alias_of) == len(self._numbers):
                    start = len(self._numbers)
                    self._numbers += (start + self._rng.permutation(9 * start)).tolist()
                alias = f"asset_{self._numbers[len(self._alias_of)]:04d}"
                self._alias_of[symbol] = alias
                self._symbol_of[alias] = symbol

    def get(self, symbol: str) -> str | None:
        """Return a symbol's alias, or None if the symbol was never visible."""
        return self._alias_of.get(symbol)

    def symbol(self, alias: str) -> str:
        """Return the symbol of an alias. Raises :class:`UnknownAlias`."""
        if alias not in self._symbol_of:
            named = f"'{alias}'" if _ALIAS.fullmatch(alias) else "of that name"
            problem = f"no asset {named} in this episode"
            raise UnknownAlias(
                problem, hint="use an asset id exactly as it was shown, e.g. asset_0007"
            )
        return self._symbol_of[alias]

    def find(self, alias: str) -> str | None:
        return self._symbol_of.get(alias)


ANCHOR = np.datetime64("2200-01-01", "D")
"""The displayed day of the first session of every episode, if a type requires a date."""
_ANCHOR = int(ANCHOR.astype(np.int64))
_SHOWN = range(_ANCHOR - 18_000, _ANCHOR + 18_000)
_LABEL = re.compile(r"day_([+-]\d{1,6})")
_WHOLE = 23 * HOUR
"""The part of a day before a gap that keeps its time of day.

The rest of the day and the gap share the last hour.
"""


class DayMap:
    """Maps real days and instants to masked ones and back.

    ``sessions`` are the sessions of the snapshot up to the end of the episode. ``first`` is the row
    of the episode's first session. A day without a session has the label of the previous session.
    Outside the sessions every calendar day counts.
    """

    def __init__(self, sessions: Days, first: int) -> None:
        self._array = sessions.astype("datetime64[D]", copy=False).astype(np.int64)
        self._days: list[int] = self._array.tolist()
        self._first = first
        self._last = len(self._days) - 1
        first_year, last_year = (
            1970 + sessions[[0, -1]].astype("datetime64[Y]").astype(np.int64)
        ).tolist()
        self.years = range(first_year - 1, last_year + 3)
        """Years that would reveal the present even without a day or month."""

    def label_in_text(self, day: int) -> str | None:
        """Return the label of a day in a text, or None if the day is far from the episode.

        A far day is recognisable ("the crash of 1929"). Its label would state the number of
        sessions to the present, and so reveal the present.
        """
        if day in _SHOWN:
            return f"day_{day - _ANCHOR:+d}"
        return self.label(day) if self._days[0] - 31 <= day <= self._days[-1] + 400 else None

    # -- days --------------------------------------------------------------------------------------

    def index(self, day: int) -> int:
        """Return the session count of a day (given in days since 1970-01-01)."""
        row = bisect_right(self._days, day) - 1
        if row < 0:
            return day - self._days[0] - self._first
        beyond = day - self._days[-1] if row == self._last else 0
        return row - self._first + beyond

    def label(self, day: int) -> str:
        return f"day_{self.index(day):+d}"

    def day(self, index: int) -> int:
        """Return the real day of a session count (in days since 1970-01-01)."""
        row = index + self._first
        if row < 0:
            return self._days[0] + row
        return self._days[row] if row <= self._last else self._days[-1] + row - self._last

    def read(self, text: str) -> int:
        """Return the real day of a label. Raises :class:`UnknownAlias` for any other text."""
        found = _LABEL.fullmatch(text)
        if found is None:
            raise UnknownAlias(
                "that is no day of this episode", hint="write days as they were shown, e.g. day_-3"
            )
        day = self.day(int(found[1]))
        if not -719_000 < day < 2_900_000:
            raise UnknownAlias(
                f"'{text}' is no day of this episode", hint="write days as they were shown"
            )
        return day

    # -- dates and instants whose type must not change
    # ------------------------------------------------

    def shown(self, days: Days) -> Days:
        rows = np.searchsorted(self._array, days.astype("datetime64[D]").astype(np.int64))
        result: Days = ANCHOR + (rows - self._first)
        result.setflags(write=False)
        return result

    def shown_instant(self, at: Instant) -> Instant:
        """Return a real instant on the masked calendar. The order of instants is preserved."""
        day, within = divmod(at, DAY)
        row = bisect_right(self._days, day) - 1
        if row < 0 or row == self._last:
            return (_ANCHOR + self.index(day)) * DAY + within
        gap = self._days[row + 1] - self._days[row]
        within += (day - self._days[row]) * DAY
        if gap > 1 and within > _WHOLE:
            within = _WHOLE + (within - _WHOLE) * HOUR // (gap * DAY - _WHOLE)
        return (_ANCHOR + row - self._first) * DAY + within

    def real_instant(self, shown: Instant) -> Instant:
        """Return the real instant of an instant on the masked calendar."""
        day, within = divmod(shown, DAY)
        row = day - _ANCHOR + self._first
        if row < 0 or row >= self._last:
            return self.day(row - self._first) * DAY + within
        gap = self._days[row + 1] - self._days[row]
        if gap > 1 and within >= _WHOLE:
            squeezed = within - _WHOLE
            within = _WHOLE + ((squeezed + 1) * (gap * DAY - _WHOLE) - 1) // HOUR
        return self._days[row] * DAY + within

    def instant_label(self, at: Instant, *, time_of_day: bool = False) -> str:
        """Return the label of a real instant's day. With ``time_of_day``, include its UTC time."""
        day, within = divmod(at, DAY)
        label = self.label(day)
        return (
            f"{label} {within // HOUR:02d}:{within % HOUR // 60_000_000_000:02d}"
            if time_of_day
            else label
        )
