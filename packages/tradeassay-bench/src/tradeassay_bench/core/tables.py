"""Represent tables of benchmarks for pages, terminals and files: rows of texts and measures."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell

_NUMBER = re.compile(r"[+−$-]?[\d.,/]+%?( to [+−$-]?[\d.,]+%?)?|n/a")


def figure(measure: Measure, form: str = "{:.2f}", *, bar: bool = False) -> Cell:
    """Return a table cell for a measure. ``form`` is its number format."""
    return Cell(measure=measure, form=form, bar=bar)


def amount(value: float | None, form: str = "{:,.0f}", unknown: str = "price unknown") -> Cell:
    """Return a table cell for a plain number.

    ``form`` is a format string, or ``dollars`` or ``tokens``.
    """
    return Cell(
        measure=not_scored(unknown) if value is None else Measure(value=float(value)), form=form
    )


def figures(found: Mapping[str, Measure], names: Iterable[str], form: str = "{:.2f}") -> list[Cell]:
    """Return one table cell for each measure in ``names``."""
    return [figure(found[name], form) for name in names]


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row and its heading.

    ``ours`` distinguishes it from the published rows of a paper. ``unranked`` is the reason why the
    row has no rank (:func:`tradeassay.metrics.ranks.unranked`).
    """

    head: Cell
    cells: tuple[Cell, ...]
    ours: bool = False
    unranked: str | None = None


def line(name: str, *cells: Cell, ours: bool = False, unranked: str | None = None) -> Row:
    """Return a table row with a text heading."""
    return Row(Cell(name), cells, ours=ours, unranked=unranked)


def in_order(rows: Iterable[Row], place: int) -> list[Row]:
    """Return rows ordered by the measure at ``place``, greatest first.

    Unranked rows follow. Rows without a number come last.
    """

    def order(row: Row) -> tuple[bool, bool, float]:
        measure = row.cells[place].measure
        value = None if measure is None else measure.value
        return value is None, row.unranked is not None, -(value or 0.0)

    return sorted(rows, key=order)


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows under ``columns``. The first column contains the headings of the rows.

    A ``folded`` table is collapsed on a page until the reader opens it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    note: str = ""
    folded: bool = False

    @property
    def unranked(self) -> tuple[str, ...]:
        """Return a sentence for every unranked row, to be displayed below the table."""
        return tuple(
            f"{row.head.text} is not ranked: {row.unranked}" for row in self.rows if row.unranked
        )

    def numeric(self, place: int) -> bool:
        """Return whether a column contains numbers, as measures or as text."""
        cells = [row.cells[place] for row in self.rows if place < len(row.cells)]
        known = [cell for cell in cells if cell.measure is not None or cell.text]
        return any(cell.measure is not None for cell in known) or (
            bool(known) and all(_NUMBER.fullmatch(cell.text) for cell in known)
        )


def table(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Row],
    caption: str = "",
    note: str = "",
    *,
    folded: bool = False,
) -> Table:
    """Return a table from iterables of columns and rows."""
    return Table(
        title=title, columns=(*columns,), rows=(*rows,), caption=caption, note=note, folded=folded
    )
