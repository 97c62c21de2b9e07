"""Fill the tables and figures of a paper, in the paper's order, with results of our runs.

Each benchmark lists its paper's exhibits in ``exhibits.toml``, and the published values in
``published.toml``. :mod:`tradeassay_bench.papers` fills the exhibits from scored runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.registry import Registry
from tradeassay.core.tables import Cell
from tradeassay.metrics import significant
from tradeassay_bench.core.tables import Row, Table, figure
from tradeassay_bench.llm.tables import find_model, load_kinds

PAPERS = {
    "stockbench": "StockBench",
    "ktdfin": "KTD-Fin",
    "ama": "Agent Market Arena",
    "quantcode": "QuantCode-Bench",
    "systrade": "SysTradeBench",
}
"""The names of the papers' benchmarks."""


class Exhibit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table or figure of a paper: its number, and its caption in our words.

    ``without`` is the reason why this package never fills the exhibit, for example because it is a
    drawing of the design.
    """

    id: str
    number: str
    about: str
    without: str = ""


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a figure. The x-axis is in days or, with ``steps``, in steps with values from 0
    to 1.
    """

    x: tuple[str, ...]
    lines: tuple[tuple[str, tuple[float | None, ...]], ...]
    steps: bool = False


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """Our results for one exhibit.

    ``reasons`` explain why the results are not comparable with the published values. None means
    that our copy of the paper has no published values for the exhibit. ``missing`` explains why we
    have no results.
    """

    tables: tuple[Table, ...] = ()
    curves: tuple[Curves, ...] = ()
    reasons: tuple[str, ...] | None = None
    missing: str = ""

    @property
    def comparable(self) -> str:
        """Return a sentence on whether our results are comparable with the published values."""
        if self.reasons is None:
            return "nothing to compare with: our text of the paper has no values for it"
        if self.reasons:
            return "no, because " + "; ".join(self.reasons)
        return "yes"


UNTIMED = Filled(missing="tradeassay reproduce reads it from the recorded answers")
"""The latency exhibit of a page that is built from scores alone, without answer times."""


class FilledExhibit(msgspec.Struct, frozen=True, kw_only=True):
    """An exhibit with our results for it."""

    exhibit: Exhibit
    ours: Filled


class PaperPage(msgspec.Struct, frozen=True, kw_only=True):
    """A paper with our results.

    ``second_hand`` marks published values from a source other than the paper. ``notes`` list open
    questions about the paper's text.
    """

    paper: str
    source: str
    second_hand: bool
    exhibits: tuple[FilledExhibit, ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return PAPERS[self.paper]

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the reasons against a comparison that all exhibits with reasons share."""
        reason_lists = [filled.ours.reasons for filled in self.exhibits if filled.ours.reasons]
        if len(reason_lists) < 2:
            return ()
        shared = []
        for reason in reason_lists[0]:
            if all(reason in reasons for reasons in reason_lists):
                shared.append(reason)
        return tuple(shared)

    def comparable(self, ours: Filled) -> str:
        """Return a sentence on an exhibit's comparability, without the page's shared reasons."""
        own = tuple(reason for reason in ours.reasons or () if reason not in self.shared)
        if not ours.reasons or own == ours.reasons:
            return ours.comparable
        return "no, for the reasons above" + (f", and because {'; '.join(own)}" if own else "")

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables of all exhibits."""
        tables: list[Table] = []
        for filled in self.exhibits:
            tables.extend(filled.ours.tables)
        return tuple(tables)


paper_folders: Registry[ModuleType] = Registry("paper_folder")
"""For each paper, the package with its ``exhibits.toml`` and ``published.toml`` (entry points)."""


@cache
def exhibits(paper: str) -> tuple[Exhibit, ...]:
    """Return a paper's tables and figures in the paper's order, followed by our own exhibits."""
    text = (files(paper_folders.get(paper)) / "exhibits.toml").read_bytes()
    return (
        *msgspec.toml.decode(text, type=dict[str, tuple[Exhibit, ...]])["exhibit"],
        *EXTRA_EXHIBITS,
    )


_EXTRA_CAPTIONS = {
    "latency": "Response time of a model: seconds from the request to the last byte, of real calls",
    "groups": "General against specialised models, and thinking against instruct models, as groups",
}
EXTRA_EXHIBITS = tuple(
    Exhibit(id=id, number="Beside the paper", about=about) for id, about in _EXTRA_CAPTIONS.items()
)
"""Exhibits that we add to every paper."""


def fill_paper(
    paper: str,
    makers: Mapping[str, Callable[[], Filled]],
    *,
    source: str,
    second_hand: bool = False,
    notes: Iterable[str] = (),
) -> PaperPage:
    """Return a paper's page with every exhibit filled by its function in ``makers``.

    Every exhibit needs a function in ``makers`` or a reason in ``without``.
    """
    filled_exhibits = []
    for exhibit in exhibits(paper):
        filled = Filled(missing=exhibit.without) if exhibit.without else makers[exhibit.id]()
        if not filled.tables and not filled.curves and not filled.missing:
            filled = msgspec.structs.replace(filled, missing="there is no run of it")
        filled_exhibits.append(FilledExhibit(exhibit=exhibit, ours=filled))
    return PaperPage(
        paper=paper,
        source=source,
        second_hand=second_hand,
        exhibits=tuple(filled_exhibits),
        notes=tuple(notes),
    )


# Building blocks of the tables


def median_of(values: Sequence[float], nothing: str = "not run") -> Measure:
    """Return the median of values, with the quartiles as bounds.

    The quartiles are not a confidence interval. A single value has no bounds. If there are no
    values, the measure has no value, and ``nothing`` is the reason.
    """
    if not values:
        return not_scored(nothing)
    if len(values) == 1:
        return Measure(value=significant(float(values[0])), n=1)
    low, median, high = (significant(float(x)) for x in np.percentile(values, (25, 50, 75)))
    return Measure(value=median, low=low, high=high, level=0.5, n=len(values))


def mean_of(values: Iterable[float | None], nothing: str = "not run") -> Measure:
    """Return the mean of the known values.

    If some values are None, a note states how many are known. If none is known, the measure has no
    value, and ``nothing`` is the reason.
    """
    every = list(values)
    known = [value for value in every if value is not None]
    if not known:
        return not_scored(nothing)
    note = None if len(known) == len(every) else f"over {len(known)} of {len(every)}"
    return Measure(value=significant(float(np.mean(known))), n=len(known), note=note)


def row(
    name: str,
    cells: Iterable[tuple[Measure, str]],
    *,
    ours: bool = True,
    unranked: str | None = None,
) -> Row:
    """Return a table row from pairs of a measure and its number format.

    ``ours`` and ``unranked`` have the meaning of the fields of :class:`Row`.
    """
    figures = tuple(figure(measure, form) for measure, form in cells)
    return Row(Cell(name), figures, ours=ours, unranked=unranked)


def group_table(
    title: str,
    columns: Sequence[tuple[str, str]],
    models: Mapping[str, tuple[str, Sequence[Measure]]],
) -> Table | None:
    """Return a table of mean measures for groups of models, or None if no model's kind is known.

    The groups are thinking, instruct, general and specialised models. ``columns`` are (title,
    format) pairs. ``models`` maps the name of a row to the model's full name and its measures in
    the order of ``columns``.
    """
    kinds = load_kinds()
    groups: dict[str, list[str]] = {
        name: [] for name in ("thinking", "instruct", "general", "specialised")
    }
    unknown = []
    for name, (model, _) in models.items():
        kind = find_model(kinds, model)
        if kind is None:
            unknown.append(model)
            continue
        for group in kind.groups:
            groups[group].append(name)
    if not any(groups.values()):
        return None
    rows = []
    for group, members in groups.items():
        cells = []
        for place, (_, form) in enumerate(columns):
            values = [models[name][1][place].value for name in members]
            nothing = "no model of this group has a result" if members else "nobody"
            cells.append((mean_of(values, nothing), form))
        rows.append(row(f"{group} ({len(members)})", cells))
    note = "means over models, grouped by the table of kinds, which models.toml overrides"
    if unknown:
        note += f"; without a group: {', '.join(dict.fromkeys(unknown))}"
    return Table(
        title=title, columns=("", *(name for name, _ in columns)), rows=tuple(rows), note=note
    )


def groups_exhibit(*tables: Table | None) -> Filled:
    """Return an exhibit with the given tables of :func:`group_table`.

    If all tables are None, the exhibit states that the kind of no model is known.
    """
    known = tuple(table for table in tables if table is not None)
    if not known:
        return Filled(missing="the kind of no model is known: see kinds in models.toml")
    return Filled(tables=known)


F = TypeVar("F", bound=msgspec.Struct)


class Published(msgspec.Struct, Generic[F], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The published values of a paper and their source.

    ``second_hand`` marks values from a source other than the paper.
    """

    source: str
    second_hand: bool
    figure: tuple[F, ...]


@cache
def load_published(paper: str) -> dict[str, Any]:
    """Return the published values of a paper from its ``published.toml``.

    As in the paper, rates are in per cent and scores from 0 to 10.
    """
    content = (files(paper_folders.get(paper)) / "published.toml").read_bytes()
    published: dict[str, Any] = msgspec.toml.decode(content)
    return published


def unmet_conditions(checks: Iterable[tuple[bool, str]]) -> tuple[str, ...]:
    """Return the reasons of all false conditions. ``checks`` are (condition, reason) pairs."""
    return tuple(reason for holds, reason in checks if not holds)
