"""Evaluate the marks that models and people give to submissions.

Every reviewer marks every submission on fidelity (D1) and risk (D2) without knowing its author.
Marks that reviewers give to their own work are kept and never counted. Ratings compare pairs of
authors by the marks of the same reviewer for the same strategy.

People get a form that shows submissions under numbers, in an order drawn from a seed. The sender of
the form keeps the key that maps numbers to authors.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.agreement import agreement, krippendorff_alpha
from tradeassay.metrics.ranks import Pairing, places, ratings
from tradeassay_programs.code.submission import Submission


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer's marks (1 to 10) of one author's submission for one strategy.

    A missing mark is None.
    """

    reviewer: str
    author: str
    strategy: str
    fidelity: float | None
    risk: float | None
    strengths: str = ""
    weaknesses: str = ""
    failure: str | None = None

    @property
    def own(self) -> bool:
        """Whether the reviewer is the author."""
        return self.reviewer == self.author


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between insiders' and outsiders' marks for an author's work.

    ``who`` is the author or the vendor. Insiders are the author itself, or the models of its
    vendor.
    """

    who: str
    fidelity: Measure
    risk: Measure


class ReviewStanding(msgspec.Struct, frozen=True, kw_only=True):
    """An author's mean of both marks, with two ranks.

    One rank is by peers alone, and the other by all reviews including self-reviews.
    """

    author: str
    peers: Measure
    everyone: Measure
    peer_place: int | None
    everyone_place: int | None


class ReviewerMarks(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer's mean mark for each author.

    ``marks`` includes the reviewer's own work, and ``mean`` excludes it.
    """

    reviewer: str
    mean: Measure
    marks: dict[str, Measure]


class ReviewBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Mean marks by peers, ratings, the agreement of reviewers, and their biases.

    ``standings`` rank authors by peers and by all reviews. ``reviewers`` contains each reviewer's
    marks by author, the strictest reviewer first. They are recorded as ``desks``.
    """

    fidelity: dict[str, Measure]
    risk: dict[str, Measure]
    rating: dict[str, Measure]
    agreement: Measure
    own_bias: tuple[Bias, ...]
    vendor_bias: tuple[Bias, ...]
    unanswered: int
    standings: tuple[ReviewStanding, ...]
    reviewers: tuple[ReviewerMarks, ...] = msgspec.field(name="desks")


def review_board(reviews: Sequence[Review], unranked: Collection[str] = ()) -> ReviewBoard:
    """Return the board of reviews. Authors in ``unranked`` keep their marks and get no rank."""
    peers = [review for review in reviews if not review.own]
    authors = sorted({review.author for review in reviews})
    vendors = sorted({vendor_of(author) for author in authors})
    no_own_marks = "did not mark its own work, or nobody else did"
    no_vendor_marks = "no marks from inside and outside the vendor"
    reviewer_marks = []
    for reviewer in sorted({review.reviewer for review in reviews}):
        own_reviews = [review for review in reviews if review.reviewer == reviewer]
        mean = both_marks([review for review in own_reviews if not review.own])
        marks = {a: both_marks([r for r in own_reviews if r.author == a]) for a in authors}
        reviewer_marks.append(ReviewerMarks(reviewer=reviewer, mean=mean, marks=marks))
    # Equal means share a rank.
    by_peers = {a: both_marks([r for r in peers if r.author == a]) for a in authors}
    by_all = {a: both_marks([r for r in reviews if r.author == a]) for a in authors}
    peer_places = places([None if a in unranked else by_peers[a].value for a in authors])
    all_places = places([None if a in unranked else by_all[a].value for a in authors])
    standings = [
        ReviewStanding(
            author=author,
            peers=by_peers[author],
            everyone=by_all[author],
            peer_place=peer_place,
            everyone_place=all_place,
        )
        for author, peer_place, all_place in zip(authors, peer_places, all_places, strict=True)
    ]
    peer_reviewers = sorted({review.reviewer for review in peers})
    items = sorted({(review.author, review.strategy) for review in peers})
    table = np.full((len(peer_reviewers), len(items)), np.nan)
    for review in peers:
        if review.fidelity is not None and review.risk is not None:
            row = peer_reviewers.index(review.reviewer)
            column = items.index((review.author, review.strategy))
            table[row, column] = _sum(review)
    vendor_biases = []
    for vendor in vendors:
        of_vendor = [r for r in peers if vendor_of(r.author) == vendor]
        marked = [(r, vendor_of(r.reviewer) == vendor) for r in of_vendor]
        vendor_biases.append(_bias(vendor, marked, no_vendor_marks))
    return ReviewBoard(
        fidelity={a: _mean([r.fidelity for r in peers if r.author == a]) for a in authors},
        risk={a: _mean([r.risk for r in peers if r.author == a]) for a in authors},
        rating=ratings(list(comparisons(peers)), draws=_DRAWS),
        agreement=agreement(table, draws=_DRAWS),
        own_bias=tuple(
            _bias(a, [(r, r.own) for r in reviews if r.author == a], no_own_marks) for a in authors
        ),
        vendor_bias=tuple(vendor_biases),
        unanswered=sum(review.failure is not None for review in reviews),
        standings=tuple(
            sorted(
                standings,
                key=lambda standing: (standing.peer_place or len(authors) + 1, standing.author),
            )
        ),
        # Marks end at 10, so a reviewer without marks is last.
        reviewers=tuple(
            sorted(
                reviewer_marks,
                key=lambda marks: 11.0 if marks.mean.value is None else marks.mean.value,
            )
        ),
    )


def _bias(who: str, reviews: Sequence[tuple[Review, bool]], reason: str) -> Bias:
    """Return the difference between the marks of insiders and outsiders.

    The second value of a pair is true for an insider's review. ``reason`` is reported if insiders
    or outsiders are missing.
    """
    gaps = {}
    for name in ("fidelity", "risk"):
        by_insiders, by_outsiders = list[float](), list[float]()
        for review, inside in reviews:
            mark = getattr(review, name)
            if mark is not None:
                (by_insiders if inside else by_outsiders).append(mark)
        if by_insiders and by_outsiders:
            gap = float(np.mean(by_insiders) - np.mean(by_outsiders))
            gaps[name] = Measure(value=gap, n=len(by_insiders))
        else:
            gaps[name] = not_scored(reason)
    return Bias(who=who, **gaps)


def both_marks(reviews: Sequence[Review]) -> Measure:
    """Return the mean of both marks over the complete reviews.

    The mean is not scored if no review is complete.
    """
    known = [_sum(r) / 2.0 for r in reviews if r.fidelity is not None and r.risk is not None]
    if known:
        return Measure(value=float(np.mean(known)), n=len(known))
    failures = [r.failure for r in reviews if r.failure is not None]
    if failures:
        return not_scored(f"{len(failures)} could not be read: {failures[0]}")
    return not_scored("no marks")


UNMARKED: Final = not_scored("no peer has marked it")
_DRAWS: Final = 300
"""Number of bootstrap resamples for an interval."""


def peer_mark(
    reviews: Iterable[Review], author: str, strategy: str, *, risk: bool = False
) -> Measure:
    """Return the mean peer mark of an author's work on a strategy, for fidelity or for risk."""
    marks = list[float]()
    for review in reviews:
        if review.own or (review.author, review.strategy) != (author, strategy):
            continue
        mark = review.risk if risk else review.fidelity
        if mark is not None:
            marks.append(mark)
    return Measure(value=float(np.mean(marks)), n=len(marks)) if marks else UNMARKED


def comparisons(peers: Iterable[Review]) -> Iterable[Pairing]:
    """Yield, for each reviewer and strategy, which of two authors has the higher sum of marks."""
    by_reviewer: dict[tuple[str, str], list[Review]] = {}
    for review in peers:
        if review.fidelity is not None and review.risk is not None:
            by_reviewer.setdefault((review.reviewer, review.strategy), []).append(review)
    for (_, strategy), reviews in sorted(by_reviewer.items()):
        for a, b in combinations(sorted(reviews, key=lambda review: review.author), 2):
            gap = _sum(a) - _sum(b)
            won = 0.5 if gap == 0 else float(gap > 0)
            yield Pairing(first=a.author, second=b.author, won=won, group=strategy)


def vendor_of(model: str) -> str:
    """Return a model's vendor: the part of its name before the last slash, or the whole name."""
    return model.rsplit("/", 1)[0]


def _sum(review: Review) -> float:
    return (review.fidelity or 0.0) + (review.risk or 0.0)


def _mean(marks: list[float | None]) -> Measure:
    known = np.array([mark for mark in marks if mark is not None])
    if known.size == 0:
        return UNMARKED
    if known.size < 5:
        return Measure(
            value=float(known.mean()), n=known.size, note="fewer than five marks: no interval"
        )
    rows = np.random.default_rng(0).integers(0, known.size, (_DRAWS, known.size))
    low, high = np.quantile(known[rows].mean(axis=1), (0.025, 0.975))
    return Measure(value=float(known.mean()), low=float(low), high=float(high), n=known.size)


COLUMNS: Final = ("item", "strategy", "rater", "fidelity", "risk", "comment")
QUESTIONS: Final = {
    "fidelity": "Do card and code mean exactly what the frozen semantics say? 1 (not at all) to 10 "
    "(exactly)",
    "risk": "Are limits kept and checked, in ordinary times and under stress? 1 (no) to 10 "
    "(always)",
}

Mark = Annotated[float, msgspec.Meta(ge=1, le=10)]


class ReviewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One submission of a form: its number, its strategy and its files, without its author."""

    item: str
    strategy: str
    card: str
    source: str


class ReviewForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form for raters. ``questions`` explain the two marks."""

    questions: dict[str, str]
    entries: tuple[ReviewEntry, ...]

    def as_json(self) -> str:
        """Return the form as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def as_csv(self, rater: str = "") -> str:
        """Return an empty table to fill in, with one line per submission."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for entry in self.entries:
            writer.writerow((entry.item, entry.strategy, rater, "", "", ""))
        return out.getvalue()


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """One person's marks of one submission. A missing mark is None."""

    item: str
    rater: str
    fidelity: Mark | None = None
    risk: Mark | None = None
    comment: str = ""


class Raters(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of human raters: Krippendorff's alpha of each mark, on an interval scale."""

    fidelity: Measure
    risk: Measure
    ratings: int
    raters: int


def make_form(
    submissions: Sequence[tuple[str, Submission]], *, seed: int = 0
) -> tuple[ReviewForm, dict[str, tuple[str, str]]]:
    """Return a form for submissions with their strategies, and its key: author and strategy by
    item.
    """
    order = np.random.default_rng(seed).permutation(len(submissions))
    entries, key = [], {}
    for number, place in enumerate(order.tolist(), 1):
        strategy, submission = submissions[place]
        item = f"item-{number:03d}"
        entries.append(
            ReviewEntry(
                item=item, strategy=strategy, card=submission.card, source=submission.source
            )
        )
        key[item] = (submission.name, strategy)
    return ReviewForm(questions=dict(QUESTIONS), entries=tuple(entries)), key


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """The evaluation of filled forms: the agreement of the raters, and the board of their marks."""

    raters: Raters
    board: ReviewBoard


def read_form(ratings: Sequence[Path], key: Path) -> Rated:
    """Evaluate filled tables of a form.

    Raises :class:`UserError` for a table or key that cannot be read.
    """
    read: list[Rating] = []
    try:
        for path in ratings:
            read += read_ratings(path.read_text(encoding="utf-8"))
        authors = msgspec.json.decode(key.read_bytes(), type=dict[str, tuple[str, str]])
    except OSError as error:
        reason = f"{error.filename} cannot be read: {error.strerror}"
        raise UserError(reason, hint="name the filled tables and their key") from error
    except UNDECODABLE as error:
        raise UserError(
            f"{key} is not the key of a form: {error}", hint="use the key.json of the form"
        ) from error
    all_ratings = _refuse_duplicates(tuple(read))
    board = review_board(as_reviews(all_ratings, authors))
    return Rated(raters=agreement_of(all_ratings), board=board)


def read_ratings(text: str) -> tuple[Rating, ...]:
    """Return the ratings in a filled table (CSV) or a JSON list.

    Raises :class:`UserError` with the number of the bad line.
    """
    if text.lstrip().startswith("["):
        try:
            return _refuse_duplicates(msgspec.json.decode(text, type=tuple[Rating, ...]))
        except UNDECODABLE as error:
            raise UserError(
                f"the ratings cannot be read: {error}", hint="marks are 1 to 10"
            ) from error
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    missing = {"item", "rater", "fidelity", "risk"} - set(rows.fieldnames or ())
    if missing:
        raise UserError(
            f"the table has no column '{min(missing)}'",
            hint=f"its columns are {', '.join(COLUMNS)}",
        )
    ratings = []
    for number, row in enumerate(rows, 2):
        cells = {
            name: (row.get(name) or "").strip()
            for name in ("item", "rater", "comment", "fidelity", "risk")
        }
        marks: dict[str, float | None] = {}
        for name in ("fidelity", "risk"):
            try:
                value = float(cells[name]) if cells[name] else None
            except ValueError:
                reason = f"line {number}: '{cells[name][:40]}' is not a mark"
                raise UserError(reason, hint="marks are 1 to 10") from None
            if value is not None and not 1 <= value <= 10:
                raise UserError(f"line {number}: {name} is {value:g}", hint="marks are 1 to 10")
            marks[name] = value
        if not cells["rater"]:
            raise UserError(
                f"line {number} has no rater", hint="write the rater into the column 'rater'"
            )
        ratings.append(
            Rating(item=cells["item"], rater=cells["rater"], comment=cells["comment"], **marks)
        )
    return _refuse_duplicates(tuple(ratings))


def agreement_of(ratings: Sequence[Rating]) -> Raters:
    """Return Krippendorff's alpha over the raters.

    Submissions marked by only one rater do not count.
    """
    items = sorted({rating.item for rating in ratings})

    def alpha(name: str) -> Measure:
        units: list[Mapping[str, float]] = []
        for item in items:
            marks = {r.rater: getattr(r, name) for r in ratings if r.item == item}
            units.append({rater: mark for rater, mark in marks.items() if mark is not None})
        return krippendorff_alpha(units, "interval", draws=_DRAWS)

    people = len({rating.rater for rating in ratings})
    return Raters(
        fidelity=alpha("fidelity"), risk=alpha("risk"), ratings=len(ratings), raters=people
    )


def as_reviews(ratings: Sequence[Rating], key: Mapping[str, tuple[str, str]]) -> tuple[Review, ...]:
    """Return ratings as reviews for a board.

    Raises :class:`UserError` for an item that is not in the key.
    """
    reviews = []
    for rating in ratings:
        if rating.item not in key:
            raise UserError(
                f"no submission '{rating.item}' was on the form",
                hint="use the key of the same form",
            )
        author, strategy = key[rating.item]
        incomplete = rating.fidelity is None or rating.risk is None
        reviews.append(
            Review(
                reviewer=f"human/{rating.rater}",
                author=author,
                strategy=strategy,
                fidelity=rating.fidelity,
                risk=rating.risk,
                weaknesses=rating.comment[:1000],
                failure="a mark is missing" if incomplete else None,
            )
        )
    return tuple(reviews)


def _refuse_duplicates(ratings: tuple[Rating, ...]) -> tuple[Rating, ...]:
    """Return the ratings unchanged.

    Raises :class:`UserError` if a rater rated a submission twice.
    """
    seen: set[tuple[str, str]] = set()
    for rating in ratings:
        if (rating.item, rating.rater) in seen:
            raise UserError(
                f"{rating.rater} rated {rating.item} twice", hint="keep one of the two lines"
            )
        seen.add((rating.item, rating.rater))
    return ratings
