"""Remove secrets from screens and logs, and print tables that fit a terminal of any width."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradeassay.core.secrets import without_secrets

if TYPE_CHECKING:
    import logging

    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
    from rich.text import Text

_READABLE = 24
"""Minimum width of a text column. A narrower column moves to another table."""
_GAP = 3
"""Number of spaces between two columns."""


class StackedTable:
    """A table for a terminal of any width. Columns that do not fit move to further tables below.

    Each further table repeats the first ``heads`` columns, which name the row. A title that begins
    with ``>`` marks a column of numbers. Such a column is right-aligned and never broken. Markup in
    cells is displayed as text. ``ruled`` draws a line below the titles.
    """

    def __init__(
        self,
        titles: Sequence[str],
        rows: Iterable[Sequence[str | Text]],
        *,
        heads: int = 1,
        title: str = "",
        ruled: bool = True,
    ) -> None:
        from rich.text import Text

        self._heads, self._title, self._ruled = heads, title, ruled
        self._titles = [one.removeprefix(">") for one in titles]
        self._numeric = [one.startswith(">") for one in titles]
        # Remove secrets first. A narrow column would split a key into pieces that are not
        # recognised.
        self._rows = [
            [Text(without_secrets(cell)) if isinstance(cell, str) else cell for cell in row]
            for row in rows
        ]

    def _least(self, place: int) -> int:
        """Return the smallest readable width of a column. Numbers need all of their digits."""
        longest = max((row[place].cell_len for row in self._rows), default=0)
        word = max((len(word) for word in self._titles[place].split()), default=0)
        return max(longest if self._numeric[place] else min(longest, _READABLE), word)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        heads = list(range(self._heads))
        stacked, left = [heads[:]], 0
        for place in range(len(self._titles)):
            need = self._least(place) + _GAP
            if place >= self._heads and need > left and len(stacked[-1]) > self._heads:
                stacked.append(heads[:])
                left = options.max_width - sum(self._least(head) + _GAP for head in heads)
            if place >= self._heads:
                stacked[-1].append(place)
            left = (options.max_width if place == 0 else left) - need
        for number, places in enumerate(stacked):
            title = Text(self._title) if self._title and not number else None
            lines = box.SIMPLE_HEAD if self._ruled else None
            table = Table(
                box=lines, pad_edge=False, header_style="bold", title=title, title_justify="left"
            )
            # Each column gets the width that it needs. Number columns get the spare width first.
            widths = {place: self._least(place) for place in places}
            spare = options.max_width - sum(self._least(place) + _GAP for place in places)
            for place in sorted(places, key=lambda one: not self._numeric[one]):
                longest = max(
                    len(self._titles[place]), *(row[place].cell_len for row in self._rows), 0
                )
                more = max(0, min(spare, longest - widths[place]))
                widths[place], spare = widths[place] + more, spare - more
            while (
                spare < 0 and max(widths.values()) > 1
            ):  # The terminal is too narrow for the head columns: fold the widest.
                widths[max(widths, key=widths.__getitem__)] -= 1
                spare += 1
            for place, width in widths.items():
                side: JustifyMethod = "right" if self._numeric[place] else "left"
                table.add_column(
                    Text(self._titles[place]), justify=side, overflow="fold", width=width
                )
            for row in self._rows:
                table.add_row(*(row[place] for place in places))
            yield table


def stdout() -> Console:
    """Return the console that prints tables on stdout. For a pipe its width is 160 characters."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


class _CleanStream:
    """A text or binary stream that removes configured secrets from all written content."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, data: Any) -> int:
        self._inner.write(without_secrets(data if isinstance(data, str) else bytes(data)))
        return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _CleanStream:
        return _CleanStream(self._inner.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@contextmanager
def clean_screen() -> Iterator[None]:
    """Remove secrets from standard output and standard error within the block."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if stream is None or isinstance(stream, _CleanStream) else _CleanStream(stream)
        for stream in streams
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


@contextmanager
def clean_log() -> Iterator[None]:
    """Remove secrets from log records that are created within the block."""
    import logging

    usual = logging.getLogRecordFactory()

    def make(*args: Any, **named: Any) -> logging.LogRecord:
        record = usual(*args, **named)
        said = record.getMessage()
        if (cleaned := without_secrets(said)) is not said:
            record.msg, record.args = cleaned, ()
        if record.exc_info and record.exc_info[1] is not None:
            import traceback

            told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (shown := without_secrets(told)) is not told:
                record.exc_text = shown
        return record

    logging.setLogRecordFactory(make)
    try:
        yield
    finally:
        logging.setLogRecordFactory(usual)
