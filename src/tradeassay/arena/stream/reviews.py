"""What experts say about items, and a season's stream in figures.

Experts confirm or reject items, each for themselves. How good the checks are was measured on labelled items by
``perf/stream_quality.py``; the counts are in ``accuracy.json``. A *positive* is a fault: precision is the share of
alarms that are faults, recall the share of faults that raise an alarm.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec
from sqlalchemy import delete, func, insert, select

from tradeassay.arena.state.rows import read_row
from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.tables import stream_items, stream_reviews
from tradeassay.arena.stream.items import CHECKS, StreamItem
from tradeassay.arena.stream.store import tellings
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.time import WallClock, iso
from tradeassay.metrics.agreement import krippendorff_alpha
from tradeassay.metrics.intervals import rate_measure

Verdict = Literal["confirm", "reject"]
DRAWS = 500
_EXPERT = re.compile(r"[\w][\w .@-]{0,63}")


class ItemReview(msgspec.Struct, frozen=True, kw_only=True):
    """One expert's verdict on one item: whether what is shown is a true and fair account of the source."""

    item: str
    expert: str
    verdict: Verdict
    note: str
    at: str


def confirm(
    store: Store, item: str, expert: str, verdict: Verdict, *, note: str = "", at: str | None = None
) -> ItemReview:
    """Write an expert's verdict; a second one of the same expert replaces the first.

    ``at`` is an ISO time (None: now). Raises :class:`UserError` for an unknown item, verdict or expert's name.
    """
    if verdict not in get_args(Verdict):
        raise UserError(f"'{verdict}' is not a verdict", hint="say 'confirm' or 'reject'")
    if not _EXPERT.fullmatch(expert):
        raise UserError("an expert needs a name", hint="use up to 64 letters, digits, spaces, dots, @ and dashes")
    review = ItemReview(
        item=item, expert=expert, verdict=verdict, note=note[:2000], at=at or iso(WallClock().now())
    )
    with store.write("review") as db:
        season = db.execute(select(stream_items.c.season).filter_by(id=item)).scalar()
        if season is None:
            raise UserError(f"there is no item '{item[:40]}'", hint="take an id from the stream's page")
        db.execute(delete(stream_reviews).filter_by(item=item, expert=expert))
        db.execute(insert(stream_reviews).values(**msgspec.structs.asdict(review)))
        tell(db, season, "review", review.at, {"item": item, "expert": expert, "verdict": verdict})
    return review


def reviews(store: Store, season: str, item: str | None = None) -> tuple[ItemReview, ...]:
    """Return the verdicts of a season, or of one item, in order of items and experts."""
    own = stream_reviews.c
    query = select(stream_reviews).join(stream_items, stream_items.c.id == own.item)
    query = query.where(stream_items.c.season == season).order_by(own.item, own.expert)
    if item is not None:
        query = query.where(own.item == item)
    return tuple(read_row(ItemReview, row) for row in store.rows(query))


class ItemPage(msgspec.Struct, frozen=True, kw_only=True):
    """An item with its reviews, and where each telling of its story was found (its own first)."""

    item: StreamItem
    provenances: tuple[dict[str, str], ...]
    reviews: tuple[ItemReview, ...]


def item_page(store: Store, season: str, id: str) -> ItemPage:
    """Return one item with everything that is known about it; raises :class:`UserError` for an unknown id."""
    found = tellings(store, season, id)
    item = next((one for one in found if one.id == id), None)
    if item is None:
        raise UserError(f"season '{season}' has no item '{id[:40]}'", hint="take an id from the stream's page")
    copied = ("source", "url", "published_at", "fetched_at", "content_sha256")
    places = [
        {"item": one.id, **{name: getattr(one, name) for name in copied}}
        for one in (item, *(one for one in found if one.id != id))
    ]
    return ItemPage(item=item, provenances=tuple(places), reviews=reviews(store, season, id))


class CheckAccuracy(msgspec.Struct, frozen=True):
    """A check on one part of the labelled items: counts and measures.

    ``rejection`` takes the five checks of a summary together: is what should not be shown held back?
    """

    check: str
    part: str
    items: int
    faults: int
    alarms: int
    caught: int
    precision: Measure
    recall: Measure


def accuracy(check: str, part: str, items: int, faults: int, alarms: int, caught: int) -> CheckAccuracy:
    precision = rate_measure(caught, alarms, nothing="it raised no alarm")
    recall = rate_measure(caught, faults, nothing="there was nothing to find")
    return CheckAccuracy(check, part, items, faults, alarms, caught, precision, recall)


@lru_cache(maxsize=1)
def recorded_accuracy() -> tuple[CheckAccuracy, ...]:
    """Return how good the checks were when they were last measured, on the development and the held-out part.

    The held-out items were written after the checks were finished, so theirs are the figures to trust.
    """
    rows = msgspec.json.decode((files(__package__) / "accuracy.json").read_bytes())
    return tuple(accuracy(*row) for row in rows)


class StreamQuality(msgspec.Struct, frozen=True, kw_only=True):
    """A season's stream in figures. Shares are of news items and have Wilson intervals.

    ``rejections`` counts rejected items by the check that failed first; ``kinds`` all items by kind; ``by`` the
    published news by who summarised them, ``sources`` each source's items by what became of them. ``confirmed`` is
    the share of experts' verdicts on published items that confirm, ``rightly_rejected`` the share of verdicts on
    rejected items that agree with the rejection. ``agreement`` is Krippendorff's alpha; ``checks`` were measured
    on the labelled set, not on this season.
    """

    season: str
    news: int
    published: Measure
    merged: Measure
    rejected: Measure
    contradicting: Measure
    kinds: dict[str, int]
    languages: dict[str, int]
    by: dict[str, int]
    rejections: dict[str, int]
    sources: tuple[dict[str, Any], ...]
    reviewed: int
    experts: int
    confirmed: Measure
    rightly_rejected: Measure
    agreement: Measure
    checks: tuple[CheckAccuracy, ...]


def quality(store: Store, season: str) -> StreamQuality:
    own, found = stream_items.c, reviews(store, season)
    picked = (own.source, own.status, own.language, own.summary_by, own.contradicts)
    news = {"season": season, "kind": "news"}
    rows = store.rows(select(*picked, func.count().label("n")).filter_by(**news).group_by(*picked))
    reasons = store.rows(select(own.reason).filter_by(**news, status="rejected"))
    kinds = store.rows(select(own.kind, func.count()).filter_by(season=season).group_by(own.kind))
    judged = sorted({review.item for review in found})
    fates = dict(tuple(row) for row in store.rows(select(own.id, own.status).where(own.id.in_(judged))))
    total = sum(row.n for row in rows)
    count: Counter[tuple[str, str]] = Counter()
    for row in rows:
        count[row.source, row.status] += row.n
        count[row.source, "contradicting"] += row.n if row.contradicts != "[]" else 0
    sources = sorted({source for source, _ in count})
    fate_names = ("published", "merged", "rejected", "contradicting")
    shares = {
        name: rate_measure(sum(count[source, name] for source in sources), total, nothing="no news item came in")
        for name in fate_names
    }
    shown = [review.verdict for review in found if fates[review.item] == "published"]
    held = [review.verdict for review in found if fates[review.item] == "rejected"]
    rated: dict[str, dict[str, str]] = defaultdict(dict)
    for review in found:
        rated[review.item][review.expert] = review.verdict
    return StreamQuality(
        season=season,
        news=total,
        **shares,
        kinds=dict(sorted((name, int(n)) for name, n in kinds)),
        languages=_sums((row.language, row.n) for row in rows),
        by=_sums((row.summary_by, row.n) for row in rows if row.status == "published"),
        rejections=_sums((reason.partition(":")[0], 1) for (reason,) in reasons),
        sources=tuple({"source": one, **{name: count[one, name] for name in fate_names}} for one in sources),
        reviewed=len(rated),
        experts=len({review.expert for review in found}),
        confirmed=rate_measure(shown.count("confirm"), len(shown), nothing="no expert has judged an item"),
        rightly_rejected=rate_measure(
            held.count("reject"), len(held), nothing="no expert has judged a rejected item"
        ),
        agreement=krippendorff_alpha([rated[item] for item in sorted(rated)], "nominal", draws=DRAWS),
        checks=recorded_accuracy(),
    )


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up counts by name: checks first and in their order, then everything else by name."""
    counts: Counter[str] = Counter()
    for name, n in pairs:
        counts[name] += n
    order: dict[str, int] = {name: place for place, name in enumerate(CHECKS)}
    return dict(sorted(counts.items(), key=lambda pair: (order.get(pair[0], 99), pair[0])))
