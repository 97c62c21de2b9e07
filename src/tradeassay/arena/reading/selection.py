"""Which part of a season a reader wants to see, and how it is written in an address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

import msgspec

from tradeassay.arena.reading.seasons import check_choice
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings import Filter, Line
from tradeassay.core.errors import UserError
from tradeassay.core.time import parse_day

Lines = Mapping[tuple[str, str], Line]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown; an empty tuple means everything. The baseline is always shown beside it."""

    entries: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None

    @property
    def period(self) -> Filter:
        """The part that only the database can answer: tokens and dollars are sums over the sessions asked for."""
        return Filter(first=self.first, last=self.last)

    def pick(self, season: Season, lines: Lines) -> Lines:
        """Return the selected lines, and the baseline's on the same assets."""
        wanted = Filter(
            entries=self.entries or None, architectures=self.architectures or None, models=self.models or None
        )
        taken = {entry.id for entry in season.everyone if wanted.takes(entry)} | {BASELINE}
        return {
            key: line
            for key, line in lines.items()
            if key[0] in taken and (not self.assets or key[1] in self.assets)
        }

    @property
    def query(self) -> str:
        """The selection as the query of an address, empty when everything is shown."""
        pairs: list[tuple[str, str]] = []
        for name, values in (
            ("entry", self.entries),
            ("architecture", self.architectures),
            ("model", self.models),
            ("asset", self.assets),
        ):
            pairs += [(name, value) for value in values]
        pairs += [(name, value) for name, value in (("first", self.first), ("last", self.last)) if value]
        return urlencode(pairs)


def select_from(
    season: Season,
    *,
    entries: Iterable[str] = (),
    architectures: Iterable[str] = (),
    models: Iterable[str] = (),
    assets: Iterable[str] = (),
    first: str | None = None,
    last: str | None = None,
) -> Selection:
    """Return a checked selection: sorted, without repetition and blanks.

    Raises :class:`UserError` for a name the season does not have, or a day that is none.
    """
    made = Selection(
        entries=_clean(entries),
        architectures=_clean(architectures),
        models=_clean(models),
        assets=_clean(assets),
        first=_day(first),
        last=_day(last),
    )
    everyone = season.everyone
    check_choice("entry", made.entries, tuple(entry.id for entry in everyone))
    check_choice("architecture", made.architectures, tuple(sorted({entry.architecture for entry in everyone})))
    check_choice("model", made.models, tuple(sorted({entry.model for entry in everyone if entry.model})))
    check_choice("asset", made.assets, tuple(asset.symbol for asset in season.assets))
    if made.first and made.last and made.last < made.first:
        raise UserError("the period ends before it begins", mend="exchange its two days")
    return made


def _clean(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value}))


def _day(text: str | None) -> str | None:
    return parse_day(text).isoformat() if text else None
