"""Tables as benchmarks make them and pages, terminals and files show them: rows of texts and measures."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell

_NUMBER = re.compile(r"[+−$-]?[\d.,/]+%?( to [+−$-]?[\d.,]+%?)?|n/a")


def figure(measure: Measure, form: str = "{:.2f}", *, bar: bool = False) -> Cell:
    return Cell(measure=measure, form=form, bar=bar)


def amount(value: float | None, form: str = "{:,.0f}", unknown: str = "price unknown") -> Cell:
    """Return a plain number in a table; ``dollars`` and ``tokens`` are forms too."""
    return Cell(
        measure=not_scored(unknown) if value is None else Measure(value=float(value)), form=form
    )


def figures(found: Mapping[str, Measure], names: Iterable[str], form: str = "{:.2f}") -> list[Cell]:
    return [figure(found[name], form) for name in names]


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row and what it is about; ``ours`` tells it from the printed rows of a paper. ``unranked`` says why it
    has no place among the others (:func:`tradeassay.metrics.ranks.unranked`)."""

    head: Cell
    cells: tuple[Cell, ...]
    ours: bool = False
    unranked: str | None = None


def line(name: str, *cells: Cell, ours: bool = False, unranked: str | None = None) -> Row:
    return Row(Cell(name), cells, ours=ours, unranked=unranked)


def in_order(rows: Iterable[Row], place: int) -> list[Row]:
    """Return rows by the measure at ``place``, greatest first. Rows that are not ranked follow, and rows without a
    number come last."""

    def order(row: Row) -> tuple[bool, bool, float]:
        measure = row.cells[place].measure
        value = None if measure is None else measure.value
        return value is None, row.unranked is not None, -(value or 0.0)

    return sorted(rows, key=order)


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows under ``columns``, the first of which is that of the heads. A reader opens ``folded`` ones."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    note: str = ""
    folded: bool = False

    @property
    def unranked(self) -> tuple[str, ...]:
        """A sentence for every row without a place, below the table wherever it is shown."""
        return tuple(
            f"{row.head.text} is not ranked: {row.unranked}" for row in self.rows if row.unranked
        )

    def numeric(self, place: int) -> bool:
        """Whether a column holds numbers, as measures or as they are printed."""
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
    return Table(
        title=title, columns=(*columns,), rows=(*rows,), caption=caption, note=note, folded=folded
    )
