"""People as reviewers: a form to send out, ratings to take in, and how far raters agree.

The form shows submissions under numbers, in an order drawn from a seed, so that nobody knows who wrote what. The
key that joins numbers to authors stays with whoever sends the form.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
import numpy as np

from tradeassay.code.review.board import Review
from tradeassay.code.submission import Submission
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics.agreement import krippendorff_alpha

COLUMNS: Final = ("item", "strategy", "rater", "fidelity", "risk", "comment")
QUESTIONS: Final = {
    "fidelity": "Do card and code mean exactly what the frozen semantics say? 1 (not at all) to 10 (exactly)",
    "risk": "Are limits kept and checked, in ordinary times and under stress? 1 (no) to 10 (always)",
}

Mark = Annotated[float, msgspec.Meta(ge=1, le=10)]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One submission of a form: its number, its strategy and its files, without its author."""

    item: str
    strategy: str
    card: str
    source: str


class ReviewForm(msgspec.Struct, frozen=True, kw_only=True):
    """What raters get. ``questions`` explain the two marks."""

    questions: dict[str, str]
    entries: tuple[Entry, ...]

    def as_json(self) -> str:
        """Return the form as JSON, files included."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def as_csv(self, rater: str = "") -> str:
        """Return an empty table to be filled in: one line per submission, the files go along as JSON."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((one.item, one.strategy, rater, "", "", "") for one in self.entries)
        return out.getvalue()


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """One person's marks of one submission; None where none was given."""

    item: str
    rater: str
    fidelity: Mark | None = None
    risk: Mark | None = None
    comment: str = ""


class Raters(msgspec.Struct, frozen=True, kw_only=True):
    """How far people agree: Krippendorff's alpha of each mark, on an interval scale."""

    fidelity: Measure
    risk: Measure
    ratings: int
    raters: int


def make_form(
    submissions: Sequence[tuple[str, Submission]], *, seed: int = 0
) -> tuple[ReviewForm, dict[str, tuple[str, str]]]:
    """Return a blind form of (strategy, submission) pairs, and its key: item to (author, strategy)."""
    order = np.random.default_rng(seed).permutation(len(submissions))
    entries, key = [], {}
    for number, place in enumerate(order.tolist(), 1):
        strategy, submission = submissions[place]
        item = f"item-{number:03d}"
        entries.append(Entry(item=item, strategy=strategy, card=submission.card, source=submission.source))
        key[item] = (submission.name, strategy)
    return ReviewForm(questions=dict(QUESTIONS), entries=tuple(entries)), key


def read_ratings(text: str) -> tuple[Rating, ...]:
    """Return the ratings in a filled table (CSV) or a JSON list; raises :class:`UserError` naming the bad line."""
    if text.lstrip().startswith("["):
        try:
            return _once(msgspec.json.decode(text, type=tuple[Rating, ...]))
        except msgspec.DecodeError as error:
            raise UserError(f"the ratings cannot be read: {error}", mend="marks are 1 to 10") from error
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    missing = {"item", "rater", "fidelity", "risk"} - set(rows.fieldnames or ())
    if missing:
        raise UserError(f"the table has no column '{min(missing)}'", mend=f"its columns are {', '.join(COLUMNS)}")
    return _once(tuple(_rating(number, row) for number, row in enumerate(rows, 2)))


def agreement_of(ratings: Sequence[Rating], *, draws: int = 300, seed: int = 0) -> Raters:
    """Return Krippendorff's alpha over people; a submission that one person alone marked says nothing."""
    items = sorted({one.item for one in ratings})

    def alpha(name: str) -> Measure:
        units: list[Mapping[str, float]] = [
            {r.rater: getattr(r, name) for r in ratings if r.item == item and getattr(r, name) is not None}
            for item in items
        ]
        return krippendorff_alpha(units, "interval", draws=draws, seed=seed)

    return Raters(
        fidelity=alpha("fidelity"),
        risk=alpha("risk"),
        ratings=len(ratings),
        raters=len({one.rater for one in ratings}),
    )


def as_reviews(ratings: Sequence[Rating], key: Mapping[str, tuple[str, str]]) -> tuple[Review, ...]:
    """Return ratings as reviews for a board; raises :class:`UserError` for an item that is not in the key."""
    found = []
    for one in ratings:
        if one.item not in key:
            raise UserError(f"no submission '{one.item}' was on the form", mend="use the key of the same form")
        author, strategy = key[one.item]
        none = one.fidelity is None or one.risk is None
        found.append(
            Review(
                reviewer=f"human/{one.rater}",
                author=author,
                strategy=strategy,
                fidelity=one.fidelity,
                risk=one.risk,
                weaknesses=one.comment[:1000],
                failure="a mark is missing" if none else None,
            )
        )
    return tuple(found)


def _rating(number: int, row: Mapping[str, str | None]) -> Rating:
    marks: dict[str, float | None] = {}
    for name in ("fidelity", "risk"):
        text = (row.get(name) or "").strip()
        try:
            marks[name] = float(text) if text else None
        except ValueError:
            raise UserError(f"line {number}: '{text[:40]}' is no mark", mend="marks are 1 to 10") from None
        value = marks[name]
        if value is not None and not 1 <= value <= 10:
            raise UserError(f"line {number}: {name} is {value:g}", mend="marks are 1 to 10")
    rater = (row.get("rater") or "").strip()
    if not rater:
        raise UserError(f"line {number} names no rater", mend="write who rated into the column 'rater'")
    item = (row.get("item") or "").strip()
    return Rating(item=item, rater=rater, comment=(row.get("comment") or "").strip(), **marks)


def _once(ratings: tuple[Rating, ...]) -> tuple[Rating, ...]:
    seen: set[tuple[str, str]] = set()
    for one in ratings:
        if (one.item, one.rater) in seen:
            raise UserError(f"{one.rater} rated {one.item} twice", mend="keep one of the two lines")
        seen.add((one.item, one.rater))
    return ratings
