"""One bar as a strategy sees it: a light tuple with names."""

from __future__ import annotations

import keyword
from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tradeassay.core.errors import UserError


@lru_cache(maxsize=64)
def bar_type(columns: tuple[str, ...]) -> type[Any]:
    """Return the tuple type of bars with these columns, e.g. ``Bar(time=..., open=..., close=...)``.

    ``time`` is in nanoseconds since 1970. Raises UserError for a column whose name cannot be an attribute.
    """
    for name in columns:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UserError(f"column '{name}' cannot be an attribute of a bar", mend="rename it")
    return namedtuple("Bar", columns)


class Layout:
    """Which column of which feed stands where in a row of values.

    A strategy gets one bar when there is one feed, and a dict of bars by feed otherwise.
    """

    def __init__(self, names: Sequence[str]) -> None:
        groups: dict[str, list[tuple[str, int]]] = {}
        for place, name in enumerate(names):
            feed, _, column = name.rpartition("/")
            groups.setdefault(feed, []).append((column, place))
        self.names = tuple(names)
        self.feeds = tuple(groups)
        self._types = {feed: bar_type(tuple(column for column, _ in group)) for feed, group in groups.items()}
        self._places = {feed: tuple(place for _, place in group) for feed, group in groups.items()}
        self.single = len(groups) == 1

    def bar(self, values: Sequence[Any]) -> Any:
        """Return the bar, or the bars by feed, of one row of values."""
        if self.single:
            return tuple.__new__(self._types[self.feeds[0]], values)
        return {
            feed: tuple.__new__(made, [values[place] for place in self._places[feed]])
            for feed, made in self._types.items()
        }

    @property
    def only(self) -> type[Any]:
        """The bar type of the only feed."""
        return self._types[self.feeds[0]]
