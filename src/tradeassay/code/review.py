"""Marks that models and people give submissions, and what they are worth.

Every reviewer marks every submission on fidelity (D1) and risk (D2) without knowing who wrote it. Marks of
one's own work are kept but never counted. Ratings come from comparing, within one reviewer and strategy, whose
mark was higher. People get a form that shows submissions under numbers, in an order drawn from a seed; the key
that joins numbers to authors stays with the sender of the form.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from tradeassay.code.submission import Submission
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.agreement import agreement, krippendorff_alpha
from tradeassay.metrics.ranks import Pairing, places, ratings


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer's marks (1 to 10) of one author's submission for one strategy; None where not given."""

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
        """Whether the reviewer marked their own work."""
        return self.reviewer == self.author


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """How much higher own work, or the work of the same vendor, is marked than by others."""

    who: str
    fidelity: Measure
    risk: Measure


class ReviewStanding(msgspec.Struct, frozen=True, kw_only=True):
    """An author's mean of both marks and its place: by peers alone, and with marks of own work counted too."""

    author: str
    peers: Measure
    everyone: Measure
    peer_place: int | None
    everyone_place: int | None


class ReviewDesk(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer: mean marks given to each author, own work included; ``mean`` is over the work of others."""

    reviewer: str
    mean: Measure
    marks: dict[str, Measure]


class ReviewBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Mean peer marks, ratings, how far reviewers agree, and whom they favour. ``standings`` rank authors by peers
    and by all reviews, ``desks`` are the map of reviewers by authors, the strictest reviewer first.
    """

    fidelity: dict[str, Measure]
    risk: dict[str, Measure]
    rating: dict[str, Measure]
    agreement: Measure
    own_bias: tuple[Bias, ...]
    vendor_bias: tuple[Bias, ...]
    unanswered: int
    standings: tuple[ReviewStanding, ...]
    desks: tuple[ReviewDesk, ...]


def review_board(reviews: Sequence[Review], unranked: Collection[str] = ()) -> ReviewBoard:
    """Sum up reviews. Authors in ``unranked`` keep their marks and have no place."""
    peers = [review for review in reviews if not review.own]
    authors = sorted({review.author for review in reviews})
    vendors = sorted({vendor_of(author) for author in authors})
    alone = "did not mark its own work, or nobody else did"
    outside = "no marks from inside and outside the vendor"
    made = []
    for reviewer in sorted({review.reviewer for review in reviews}):
        given = [review for review in reviews if review.reviewer == reviewer]
        marks = {a: both_marks([r for r in given if r.author == a]) for a in authors}
        made.append(ReviewDesk(reviewer=reviewer, mean=both_marks([r for r in given if not r.own]), marks=marks))
    # Authors, the best by peers first. Equal means share a place.
    by_peers = {a: both_marks([r for r in peers if r.author == a]) for a in authors}
    by_all = {a: both_marks([r for r in reviews if r.author == a]) for a in authors}
    ranks = zip(
        *(places([None if a in unranked else means[a].value for a in authors]) for means in (by_peers, by_all)),
        strict=True,
    )
    standings = [
        ReviewStanding(author=a, peers=by_peers[a], everyone=by_all[a], peer_place=one, everyone_place=two)
        for a, (one, two) in zip(authors, ranks, strict=True)
    ]
    desks = sorted({review.reviewer for review in peers})
    items = sorted({(review.author, review.strategy) for review in peers})
    table = np.full((len(desks), len(items)), np.nan)
    for review in peers:
        if review.fidelity is not None and review.risk is not None:
            table[desks.index(review.reviewer), items.index((review.author, review.strategy))] = _sum(review)
    return ReviewBoard(
        fidelity={a: _mean([r.fidelity for r in peers if r.author == a]) for a in authors},
        risk={a: _mean([r.risk for r in peers if r.author == a]) for a in authors},
        rating=ratings(list(comparisons(peers)), draws=_DRAWS),
        agreement=agreement(table, draws=_DRAWS),
        own_bias=tuple(_bias(a, [(r, r.own) for r in reviews if r.author == a], alone) for a in authors),
        vendor_bias=tuple(
            _bias(v, [(r, vendor_of(r.reviewer) == v) for r in peers if vendor_of(r.author) == v], outside)
            for v in vendors
        ),
        unanswered=sum(review.failure is not None for review in reviews),
        standings=tuple(sorted(standings, key=lambda one: (one.peer_place or len(authors) + 1, one.author))),
        desks=tuple(sorted(made, key=lambda desk: 11.0 if desk.mean.value is None else desk.mean.value)),
    )


def _bias(who: str, marked: Sequence[tuple[Review, bool]], why: str) -> Bias:
    """Return how much higher those inside mark than those outside; ``why`` says that one side is missing."""
    gaps = {}
    for name in ("fidelity", "risk"):
        mine, others = (
            [mark for r, within in marked if within == inside and (mark := getattr(r, name)) is not None]
            for inside in (True, False)
        )
        gaps[name] = not_scored(why)
        if mine and others:
            gaps[name] = Measure(value=float(np.mean(mine) - np.mean(others)), n=len(mine))
    return Bias(who=who, **gaps)


def both_marks(reviews: Sequence[Review]) -> Measure:
    """Return the mean of both marks over the reviews that give both, or how many could not be read."""
    known = [_sum(r) / 2.0 for r in reviews if r.fidelity is not None and r.risk is not None]
    if known:
        return Measure(value=float(np.mean(known)), n=len(known))
    unread = [r.failure for r in reviews if r.failure is not None]
    return not_scored(f"{len(unread)} could not be read: {unread[0]}" if unread else "no marks")


UNMARKED: Final = not_scored("no peer has marked it")
_DRAWS: Final = 300
"""Resamples behind an interval."""


def peer_mark(reviews: Iterable[Review], author: str, strategy: str, *, risk: bool = False) -> Measure:
    peers = (one for one in reviews if (one.author, one.strategy) == (author, strategy) and not one.own)
    known = [mark for one in peers if (mark := one.risk if risk else one.fidelity) is not None]
    return Measure(value=float(np.mean(known)), n=len(known)) if known else UNMARKED


def comparisons(peers: Iterable[Review]) -> Iterable[Pairing]:
    """Yield who had the higher marks (both added) with the same reviewer on the same strategy."""
    by_desk: dict[tuple[str, str], list[Review]] = {}
    for review in peers:
        if review.fidelity is not None and review.risk is not None:
            by_desk.setdefault((review.reviewer, review.strategy), []).append(review)
    for (_, strategy), found in sorted(by_desk.items()):
        for a, b in combinations(sorted(found, key=lambda review: review.author), 2):
            gap = _sum(a) - _sum(b)
            won = 0.5 if gap == 0 else float(gap > 0)
            yield Pairing(first=a.author, second=b.author, won=won, group=strategy)


def vendor_of(model: str) -> str:
    """Return a model's vendor: what precedes the last slash in its name, or the name itself."""
    return model.rsplit("/", 1)[0]


def _sum(review: Review) -> float:
    return (review.fidelity or 0.0) + (review.risk or 0.0)


def _mean(marks: list[float | None]) -> Measure:
    known = np.array([mark for mark in marks if mark is not None])
    if known.size == 0:
        return UNMARKED
    if known.size < 5:
        return Measure(value=float(known.mean()), n=known.size, note="fewer than five marks: no interval")
    rows = np.random.default_rng(0).integers(0, known.size, (_DRAWS, known.size))
    low, high = np.quantile(known[rows].mean(axis=1), (0.025, 0.975))
    return Measure(value=float(known.mean()), low=float(low), high=float(high), n=known.size)


COLUMNS: Final = ("item", "strategy", "rater", "fidelity", "risk", "comment")
QUESTIONS: Final = {
    "fidelity": "Do card and code mean exactly what the frozen semantics say? 1 (not at all) to 10 (exactly)",
    "risk": "Are limits kept and checked, in ordinary times and under stress? 1 (no) to 10 (always)",
}

Mark = Annotated[float, msgspec.Meta(ge=1, le=10)]


class ReviewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One submission of a form: its number, its strategy and its files, without its author."""

    item: str
    strategy: str
    card: str
    source: str


class ReviewForm(msgspec.Struct, frozen=True, kw_only=True):
    """What raters get. ``questions`` explain the two marks."""

    questions: dict[str, str]
    entries: tuple[ReviewEntry, ...]

    def as_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def as_csv(self, rater: str = "") -> str:
        """Return an empty table to fill in: one line per submission; the files are sent along as JSON."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((one.item, one.strategy, rater, "", "", "") for one in self.entries)
        return out.getvalue()


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """One person's marks of one submission; None where not given."""

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
    order = np.random.default_rng(seed).permutation(len(submissions))
    entries, key = [], {}
    for number, place in enumerate(order.tolist(), 1):
        strategy, submission = submissions[place]
        item = f"item-{number:03d}"
        entries.append(ReviewEntry(item=item, strategy=strategy, card=submission.card, source=submission.source))
        key[item] = (submission.name, strategy)
    return ReviewForm(questions=dict(QUESTIONS), entries=tuple(entries)), key


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: how far people agree, and the board of their marks."""

    raters: Raters
    board: ReviewBoard


def read_form(ratings: Sequence[Path], key: Path) -> Rated:
    """Return what people said of a form; raises :class:`UserError` for a table or key that cannot be read."""
    found: list[Rating] = []
    try:
        for path in ratings:
            found += read_ratings(path.read_text(encoding="utf-8"))
        known = msgspec.json.decode(key.read_bytes(), type=dict[str, tuple[str, str]])
    except OSError as error:
        words = f"{error.filename} cannot be read: {error.strerror}"
        raise UserError(words, hint="name the filled tables") from error
    except UNDECODABLE as error:
        raise UserError(f"{key} is not the key of a form: {error}", hint="use the key.json of the form") from error
    every = _once(tuple(found))
    return Rated(raters=agreement_of(every), board=review_board(as_reviews(every, known)))


def read_ratings(text: str) -> tuple[Rating, ...]:
    """Return the ratings in a filled table (CSV) or a JSON list; raises :class:`UserError` naming the bad line."""
    if text.lstrip().startswith("["):
        try:
            return _once(msgspec.json.decode(text, type=tuple[Rating, ...]))
        except UNDECODABLE as error:
            raise UserError(f"the ratings cannot be read: {error}", hint="marks are 1 to 10") from error
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    missing = {"item", "rater", "fidelity", "risk"} - set(rows.fieldnames or ())
    if missing:
        raise UserError(f"the table has no column '{min(missing)}'", hint=f"its columns are {', '.join(COLUMNS)}")
    found = []
    for number, row in enumerate(rows, 2):
        said = {name: (row.get(name) or "").strip() for name in ("item", "rater", "comment", "fidelity", "risk")}
        marks: dict[str, float | None] = {}
        for name in ("fidelity", "risk"):
            try:
                marks[name] = value = float(said[name]) if said[name] else None
            except ValueError:
                words = f"line {number}: '{said[name][:40]}' is not a mark"
                raise UserError(words, hint="marks are 1 to 10") from None
            if value is not None and not 1 <= value <= 10:
                raise UserError(f"line {number}: {name} is {value:g}", hint="marks are 1 to 10")
        if not said["rater"]:
            raise UserError(f"line {number} names no rater", hint="write who rated into the column 'rater'")
        found.append(Rating(item=said["item"], rater=said["rater"], comment=said["comment"], **marks))
    return _once(tuple(found))


def agreement_of(ratings: Sequence[Rating]) -> Raters:
    """Return Krippendorff's alpha over people; a submission that only one person marked says nothing."""
    items = sorted({one.item for one in ratings})

    def alpha(name: str) -> Measure:
        units: list[Mapping[str, float]] = [
            {r.rater: getattr(r, name) for r in ratings if r.item == item and getattr(r, name) is not None}
            for item in items
        ]
        return krippendorff_alpha(units, "interval", draws=_DRAWS)

    people = len({one.rater for one in ratings})
    return Raters(fidelity=alpha("fidelity"), risk=alpha("risk"), ratings=len(ratings), raters=people)


def as_reviews(ratings: Sequence[Rating], key: Mapping[str, tuple[str, str]]) -> tuple[Review, ...]:
    """Return ratings as reviews for a board; raises :class:`UserError` for an item that is not in the key."""
    found = []
    for one in ratings:
        if one.item not in key:
            raise UserError(f"no submission '{one.item}' was on the form", hint="use the key of the same form")
        author, strategy = key[one.item]
        found.append(
            Review(
                reviewer=f"human/{one.rater}",
                author=author,
                strategy=strategy,
                fidelity=one.fidelity,
                risk=one.risk,
                weaknesses=one.comment[:1000],
                failure="a mark is missing" if one.fidelity is None or one.risk is None else None,
            )
        )
    return tuple(found)


def _once(ratings: tuple[Rating, ...]) -> tuple[Rating, ...]:
    seen: set[tuple[str, str]] = set()
    for one in ratings:
        if (one.item, one.rater) in seen:
            raise UserError(f"{one.rater} rated {one.item} twice", hint="keep one of the two lines")
        seen.add((one.item, one.rater))
    return ratings
