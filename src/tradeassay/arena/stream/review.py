"""Experts confirm or reject items, each for themselves; how far they agree is part of the stream's quality."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Literal

import msgspec
from sqlalchemy import delete, insert, select

from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.stream_tables import stream_items, stream_reviews
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.time import WallClock, iso
from tradeassay.metrics.agreement import krippendorff_alpha

Verdict = Literal["confirm", "reject"]
VERDICTS: tuple[Verdict, ...] = ("confirm", "reject")
DRAWS = 500
_EXPERT = re.compile(r"[\w][\w .@-]{0,63}")


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One expert's verdict on one item: whether what is shown is a true and fair account of the source."""

    item: str
    expert: str
    verdict: Verdict
    note: str
    at: str


def confirm(
    store: Store, item: str, expert: str, verdict: Verdict, *, note: str = "", at: str | None = None
) -> Review:
    """Write an expert's verdict; a second one of the same expert replaces the first.

    ``at`` is an ISO time (None: now). Raises :class:`UserError` for an unknown item, verdict or expert's name.
    """
    if verdict not in VERDICTS:
        raise UserError(f"'{verdict}' is no verdict", mend="say 'confirm' or 'reject'")
    if not _EXPERT.fullmatch(expert):
        raise UserError("an expert needs a name", mend="use up to 64 letters, digits, spaces, dots, @ and dashes")
    review = Review(item=item, expert=expert, verdict=verdict, note=note[:2000], at=at or iso(WallClock().now()))
    with store.write("review") as db:
        season = db.execute(select(stream_items.c.season).where(stream_items.c.id == item)).scalar()
        if season is None:
            raise UserError(f"there is no item '{item[:40]}'", mend="take an id from the stream's page")
        mine = (stream_reviews.c.item == item, stream_reviews.c.expert == expert)
        db.execute(delete(stream_reviews).where(*mine))
        db.execute(insert(stream_reviews).values(**msgspec.structs.asdict(review)))
        tell(db, season, "review", review.at, {"item": item, "expert": expert, "verdict": verdict})
    return review


def reviews(store: Store, season: str, item: str | None = None) -> tuple[Review, ...]:
    """Return the verdicts of a season, or of one item, in order of items and experts."""
    query = select(stream_reviews).join(stream_items, stream_items.c.id == stream_reviews.c.item)
    query = query.where(stream_items.c.season == season)
    if item is not None:
        query = query.where(stream_reviews.c.item == item)
    query = query.order_by(stream_reviews.c.item, stream_reviews.c.expert)
    with store.read() as db:
        return tuple(
            Review(item=r.item, expert=r.expert, verdict=r.verdict, note=r.note, at=r.at)
            for r in db.execute(query)
        )


def expert_agreement(found: tuple[Review, ...]) -> Measure:
    """Return Krippendorff's alpha (nominal) over the items that two experts or more have judged."""
    units: dict[str, dict[str, str]] = defaultdict(dict)
    for review in found:
        units[review.item][review.expert] = review.verdict
    return krippendorff_alpha([units[item] for item in sorted(units)], "nominal", draws=DRAWS)
