"""A paper as a list of its tables and figures, in its order: what each shows, and what runs of ours fill it with.

The list is data beside the benchmark (``exhibits.toml``). Whoever has scored runs fills it: see
:mod:`tradeassay.assay.papers` and the arena's queries. The figures that a paper printed are data too
(``published.toml``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell, Row, Table, figure
from tradeassay.llm.tables import find_model, load_kinds
from tradeassay.metrics import significant

PAPERS = {
    "stockbench": "StockBench",
    "ktdfin": "KTD-Fin",
    "ama": "Agent Market Arena",
    "quantcode": "QuantCode-Bench",
    "systrade": "SysTradeBench",
}
"""What a paper's benchmark is called."""


class Exhibit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table or figure: its number in the paper and, in our words, what its caption says.

    ``without`` says why it is never made here, e.g. because it is a drawing of the design."""

    id: str
    number: str
    about: str
    without: str = ""


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a figure over days, or over steps where ``steps`` is set, from 0 to 1."""

    x: tuple[str, ...]
    lines: tuple[tuple[str, tuple[float | None, ...]], ...]
    steps: bool = False


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """What ours gives for an exhibit. ``reasons`` say why it may not be compared with what is printed.

    No reasons at all (None) means that nothing is printed in our text of the paper; ``missing`` says why there is
    nothing of ours."""

    tables: tuple[Table, ...] = ()
    curves: tuple[Curves, ...] = ()
    reasons: tuple[str, ...] | None = None
    missing: str = ""

    @property
    def comparable(self) -> str:
        """Whether ours may be compared with the printed values, in words."""
        if self.reasons is None:
            return "nothing to compare with: our text of the paper has no values for it"
        return "yes" if not self.reasons else "no, because " + "; ".join(self.reasons)


UNTIMED = Filled(missing="tradeassay reproduce reads it from the recorded answers")
"""Latency where only scores are at hand."""


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """An exhibit and what fills it."""

    exhibit: Exhibit
    ours: Filled


class PaperPage(msgspec.Struct, frozen=True, kw_only=True):
    """A paper with our results in it. ``notes`` say what its text leaves open."""

    paper: str
    source: str
    second_hand: bool
    exhibits: tuple[Shelf, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return PAPERS[self.paper]

    @property
    def shared(self) -> tuple[str, ...]:
        """The reasons why nothing of it may be compared: those of every exhibit that has any."""
        found = [one.ours.reasons for one in self.exhibits if one.ours.reasons]
        return tuple(why for why in found[0] if all(why in reasons for reasons in found)) if len(found) > 1 else ()

    def comparable(self, ours: Filled) -> str:
        """Say whether an exhibit may be compared, without repeating what holds for the whole page."""
        own = tuple(why for why in ours.reasons or () if why not in self.shared)
        if not ours.reasons or own == ours.reasons:
            return ours.comparable
        return "no, for the reasons above" + (f", and because {'; '.join(own)}" if own else "")

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for one in self.exhibits for table in one.ours.tables)


@cache
def exhibits(paper: str) -> tuple[Exhibit, ...]:
    """Return a paper's tables and figures in its order; what we add to every paper comes last."""
    text = (files(f"tradeassay.benchmarks.{paper}") / "exhibits.toml").read_bytes()
    return (*msgspec.toml.decode(text, type=dict[str, tuple[Exhibit, ...]])["exhibit"], *BESIDE)


_BESIDE = {
    "latency": "How long a model takes to answer: seconds from asking to the last byte, of calls really made",
    "groups": "General against specialised models, and thinking against instruct models, as groups",
}
BESIDE = tuple(Exhibit(id=id, number="Beside the paper", about=about) for id, about in _BESIDE.items())


def fill_paper(
    paper: str,
    makers: Mapping[str, Callable[[], Filled]],
    *,
    source: str,
    second_hand: bool = False,
    notes: Iterable[str] = (),
) -> PaperPage:
    """Make every exhibit of a paper; an exhibit that has neither a maker nor a reason is a mistake of ours."""
    shelves = []
    for one in exhibits(paper):
        made = Filled(missing=one.without) if one.without else makers[one.id]()
        if not made.tables and not made.curves and not made.missing:
            made = msgspec.structs.replace(made, missing="nothing of it was played")
        shelves.append(Shelf(exhibit=one, ours=made))
    return PaperPage(
        paper=paper, source=source, second_hand=second_hand, exhibits=tuple(shelves), notes=tuple(notes)
    )


# What tables of every paper are made with


def middle(values: Sequence[float], nothing: str = "not run") -> Measure:
    """Return the median with the middle half of the values, which is no interval of it; one value has none."""
    if not values:
        return not_scored(nothing)
    if len(values) == 1:
        return Measure(value=significant(float(values[0])), n=1)
    low, mid, high = (significant(float(one)) for one in np.percentile(values, (25, 50, 75)))
    return Measure(value=mid, low=low, high=high, level=0.5, n=len(values))


def mean_of(values: Iterable[float | None], nothing: str = "not run") -> Measure:
    """Return the mean of the known values; a note says over how many of all where some are missing."""
    every = list(values)
    known = [value for value in every if value is not None]
    if not known:
        return not_scored(nothing)
    note = None if len(known) == len(every) else f"over {len(known)} of {len(every)}"
    return Measure(value=significant(float(np.mean(known))), n=len(known), note=note)


def row(name: str, cells: Iterable[tuple[Measure, str]], *, ours: bool = True, unranked: str | None = None) -> Row:
    """Return a row of measures, each with the form in which it is written; ``unranked`` as :class:`Row` has it."""
    made = tuple(figure(measure, form) for measure, form in cells)
    return Row(Cell(name), made, ours=ours, unranked=unranked)


def grouped(
    title: str, columns: Sequence[tuple[str, str]], models: Mapping[str, tuple[str, Sequence[Measure]]]
) -> Table | None:
    """Return the mean measures of general against specialised and of thinking against instruct models.

    ``models`` has, by what a row is called, the model's full name and its measures in the order of ``columns``
    (their titles and forms). None where no model's kind is known."""
    kinds = load_kinds()
    groups: dict[str, list[str]] = {name: [] for name in ("thinking", "instruct", "general", "specialised")}
    unknown = []
    for name, (model, _) in models.items():
        kind = find_model(kinds, model)
        for group in kind.groups if kind is not None else ():
            groups[group].append(name)
        unknown += [model] if kind is None else []
    if not any(groups.values()):
        return None
    rows = []
    for group, members in groups.items():
        cells = []
        for place, (_, form) in enumerate(columns):
            values = [models[name][1][place].value for name in members]
            cells.append((mean_of(values, "no model of this group has a result" if members else "nobody"), form))
        rows.append(row(f"{group} ({len(members)})", cells))
    note = "means over models, by the table of kinds, which models.toml overrides"
    if unknown:
        note += f"; in no group: {', '.join(dict.fromkeys(unknown))}"
    return Table(title=title, columns=("", *(name for name, _ in columns)), rows=tuple(rows), note=note)


def filled_groups(*tables: Table | None) -> Filled:
    """Return what :func:`grouped` made, or why there is nothing."""
    made = tuple(table for table in tables if table is not None)
    return Filled(tables=made, missing="" if made else "the kind of no model is known: see kinds in models.toml")


F = TypeVar("F", bound=msgspec.Struct)


class Published(msgspec.Struct, Generic[F], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All figures and where they come from. ``second_hand``: not taken from the paper itself."""

    source: str
    second_hand: bool
    figure: tuple[F, ...]


@cache
def printed(paper: str) -> dict[str, Any]:
    """Return what a paper printed: its ``published.toml``. Shares are per cent and scores 0 to 10, as printed."""
    found: dict[str, Any] = msgspec.toml.decode(
        (files(f"tradeassay.benchmarks.{paper}") / "published.toml").read_bytes()
    )
    return found


def unmet(checks: Iterable[tuple[bool, str]]) -> tuple[str, ...]:
    """Return the reasons of the conditions that do not hold."""
    return tuple(why for holds, why in checks if not holds)
