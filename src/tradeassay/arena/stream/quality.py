"""The stream's own figures: what came in, what was held back and why, how good the checks are, what experts say.

Experts confirm or reject items, each for themselves. Precision and recall of each check come from labelled items
that ship. The labels were written by people who know the checks, in two parts: ``development`` was at hand while
the checks were made, ``held-out`` was written afterwards and nothing was changed because of it. The held-out
figures are the honest ones. A *positive* is a fault: precision is the share of alarms that are faults, recall
the share of faults that raise an alarm.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
from sqlalchemy import delete, func, insert, select

from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.tables import stream_items, stream_reviews
from tradeassay.arena.stream.checks import check_summary
from tradeassay.arena.stream.duplicates import contradiction, same_story
from tradeassay.arena.stream.items import CHECKS, CheckName, Language, clean
from tradeassay.arena.stream.summary import published_day
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.time import WallClock, iso
from tradeassay.metrics.agreement import krippendorff_alpha
from tradeassay.metrics.intervals import rate_measure

Verdict = Literal["confirm", "reject"]
VERDICTS: tuple[Verdict, ...] = ("confirm", "reject")
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
    if verdict not in VERDICTS:
        raise UserError(f"'{verdict}' is not a verdict", hint="say 'confirm' or 'reject'")
    if not _EXPERT.fullmatch(expert):
        raise UserError("an expert needs a name", hint="use up to 64 letters, digits, spaces, dots, @ and dashes")
    review = ItemReview(
        item=item, expert=expert, verdict=verdict, note=note[:2000], at=at or iso(WallClock().now())
    )
    with store.write("review") as db:
        season = db.execute(select(stream_items.c.season).where(stream_items.c.id == item)).scalar()
        if season is None:
            raise UserError(f"there is no item '{item[:40]}'", hint="take an id from the stream's page")
        mine = (stream_reviews.c.item == item, stream_reviews.c.expert == expert)
        db.execute(delete(stream_reviews).where(*mine))
        db.execute(insert(stream_reviews).values(**msgspec.structs.asdict(review)))
        tell(db, season, "review", review.at, {"item": item, "expert": expert, "verdict": verdict})
    return review


def reviews(store: Store, season: str, item: str | None = None) -> tuple[ItemReview, ...]:
    """Return the verdicts of a season, or of one item, in order of items and experts."""
    query = select(stream_reviews).join(stream_items, stream_items.c.id == stream_reviews.c.item)
    query = query.where(stream_items.c.season == season)
    if item is not None:
        query = query.where(stream_reviews.c.item == item)
    query = query.order_by(stream_reviews.c.item, stream_reviews.c.expert)
    with store.read() as db:
        return tuple(
            ItemReview(item=r.item, expert=r.expert, verdict=r.verdict, note=r.note, at=r.at)
            for r in db.execute(query)
        )


def expert_agreement(found: tuple[ItemReview, ...]) -> Measure:
    """Return Krippendorff's alpha (nominal) over the items that two experts or more have judged."""
    units: dict[str, dict[str, str]] = defaultdict(dict)
    for review in found:
        units[review.item][review.expert] = review.verdict
    return krippendorff_alpha([units[item] for item in sorted(units)], "nominal", draws=DRAWS)


Part = Literal["development", "held-out"]
Measured = Literal[
    "numbers", "dates", "names", "neutrality", "language", "rejection", "duplicate", "contradiction"
]
_FILES: dict[str, Part] = {
    "development.toml": "development",
    "development_zh.toml": "development",
    "held_out.toml": "held-out",
    "held_out_zh.toml": "held-out",
}


class LabelledSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A summary of a story; ``wrong`` names the checks that should object, ``case`` what is hard about it.

    ``untrue`` summaries say something false with the right numbers, dates and names: no check is made for that.
    """

    text: str
    wrong: tuple[CheckName, ...] = ()
    untrue: bool = False
    case: str = ""


class LabelledTwin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another text about the same asset: does it tell the story again, does it contradict it?"""

    text: str
    duplicate: bool = False
    contradicts: bool = False
    case: str = ""


class LabelledStory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source text with summaries and other texts. ``language`` is what summaries were asked to be in."""

    id: str
    published_at: str
    source: str
    language: Language = "en"
    summaries: tuple[LabelledSummary, ...] = ()
    twins: tuple[LabelledTwin, ...] = ()


class LabelledItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the set: a story with one summary or one twin, and which part it belongs to."""

    story: LabelledStory
    part: Part
    summary: LabelledSummary | None = None
    twin: LabelledTwin | None = None


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """An item a check got wrong: a fault it did not see, or an alarm without one."""

    story: str
    part: Part
    kind: Literal["missed", "false alarm"]
    case: str
    text: str


class CheckQuality(msgspec.Struct, frozen=True, kw_only=True):
    """A check on one part of the labelled set (``part`` "all": on the whole), counts and measures."""

    check: Measured
    part: str
    items: int
    faults: int
    caught: int
    alarms: int
    precision: Measure
    recall: Measure
    misses: tuple[Miss, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stories: tuple[LabelledStory, ...]


@lru_cache(maxsize=1)
def labelled_items() -> tuple[LabelledItem, ...]:
    """Return the labelled items that ship, in the order of their files."""
    found: list[LabelledItem] = []
    folder = files("tradeassay.arena.stream.labelled")
    for name, part in _FILES.items():
        stored = msgspec.convert(tomllib.loads((folder / name).read_text(encoding="utf-8")), _File)
        for story in stored.stories:
            found += [LabelledItem(story=story, part=part, summary=s) for s in story.summaries]
            found += [LabelledItem(story=story, part=part, twin=t) for t in story.twins]
    return tuple(found)


@lru_cache(maxsize=1)
def measure_checks() -> tuple[CheckQuality, ...]:
    """Return the quality of every check on the whole set, the development part and the held-out part.

    ``rejection`` takes the five checks of a summary together: is what should not be shown held back?
    """
    judged = [(item, _judge(item)) for item in labelled_items()]
    found = []
    measured: tuple[Measured, ...] = (*CHECKS, "rejection", "duplicate", "contradiction")
    for check in measured:
        for part in ("all", "development", "held-out"):
            results = [
                (item, *verdicts[check])
                for item, verdicts in judged
                if check in verdicts and part in ("all", item.part)
            ]
            found.append(_quality(check, part, results))
    return tuple(found)


def _judge(item: LabelledItem) -> dict[str, tuple[bool, bool]]:
    """Return (should object, does object) of every check that applies to an item."""
    story = item.story
    day = published_day(story.published_at)
    source = clean(story.source)
    if item.summary is not None:
        checks = check_summary(clean(item.summary.text), source, day, story.language)
        wrong = item.summary.wrong
        found: dict[str, tuple[bool, bool]] = {c.name: (c.name in wrong, not c.ok) for c in checks}
        rejected = any(not check.ok for check in checks)
        return {**found, "rejection": (bool(wrong) or item.summary.untrue, rejected)}
    assert item.twin is not None
    text = clean(item.twin.text)
    return {
        "duplicate": (item.twin.duplicate, same_story(source, text, day)),
        "contradiction": (item.twin.contradicts, contradiction(text, source, day) is not None),
    }


def _quality(check: Measured, part: str, results: list[tuple[LabelledItem, bool, bool]]) -> CheckQuality:
    faults = sum(wrong for _, wrong, _ in results)
    alarms = sum(alarm for _, _, alarm in results)
    caught = sum(wrong and alarm for _, wrong, alarm in results)
    misses = tuple(
        Miss(
            story=item.story.id,
            part=item.part,
            kind="missed" if wrong else "false alarm",
            case=told.case,
            text=told.text,
        )
        for item, wrong, alarm in results
        if wrong != alarm and (told := item.summary or item.twin) is not None
    )
    return CheckQuality(
        check=check,
        part=part,
        items=len(results),
        faults=faults,
        caught=caught,
        alarms=alarms,
        precision=rate_measure(caught, alarms, nothing="it raised no alarm"),
        recall=rate_measure(caught, faults, nothing="there was nothing to find"),
        misses=misses,
    )


_NO_NEWS = "no news item came in"
_NO_REVIEW = "no expert has judged an item"


class SourceQuality(msgspec.Struct, frozen=True, kw_only=True):
    """One source's items by what became of them, and how many contradict another item."""

    source: str
    published: int
    merged: int
    rejected: int
    contradicting: int


class StreamQuality(msgspec.Struct, frozen=True, kw_only=True):
    """A season's stream in figures. Shares are of news items and have Wilson intervals.

    ``rejections`` counts rejected items by the check that failed first; ``kinds`` all items by kind;
    ``by`` the published news by who summarised them. ``confirmed`` is the share of experts' verdicts on published
    items that confirm, ``rightly_rejected`` the share of verdicts on rejected items that agree with the rejection.
    ``agreement`` is Krippendorff's alpha; ``checks`` are measured on the labelled set, not on this season.
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
    sources: tuple[SourceQuality, ...]
    reviewed: int
    experts: int
    confirmed: Measure
    rightly_rejected: Measure
    agreement: Measure
    checks: tuple[CheckQuality, ...]


def quality(store: Store, season: str) -> StreamQuality:
    """Return the figures of a season's stream."""
    columns = ("source", "status", "language", "summary_by", "contradicts")
    picked = [stream_items.c[name] for name in columns]
    news = (stream_items.c.season == season, stream_items.c.kind == "news")
    refused = select(stream_items.c.reason).where(*news, stream_items.c.status == "rejected")
    kinds = select(stream_items.c.kind, func.count()).where(stream_items.c.season == season)
    with store.read() as db:
        rows = db.execute(select(*picked, func.count().label("n")).where(*news).group_by(*picked)).all()
        reasons = [row.reason for row in db.execute(refused)]
        by_kind = {row[0]: int(row[1]) for row in db.execute(kinds.group_by(stream_items.c.kind))}
    found = reviews(store, season)
    total = sum(row.n for row in rows)
    status = _count((row.status, row.n) for row in rows)
    against = sum(row.n for row in rows if row.contradicts != "[]")
    confirmed, right = _verdicts(store, season, found)
    return StreamQuality(
        season=season,
        news=total,
        published=rate_measure(status.get("published", 0), total, nothing=_NO_NEWS),
        merged=rate_measure(status.get("merged", 0), total, nothing=_NO_NEWS),
        rejected=rate_measure(status.get("rejected", 0), total, nothing=_NO_NEWS),
        contradicting=rate_measure(against, total, nothing=_NO_NEWS),
        kinds=dict(sorted(by_kind.items())),
        languages=_count((row.language, row.n) for row in rows),
        by=_count((row.summary_by, row.n) for row in rows if row.status == "published"),
        rejections=_count((reason.partition(":")[0], 1) for reason in reasons),
        sources=_sources((row.source, row.status, row.contradicts, row.n) for row in rows),
        reviewed=len({review.item for review in found}),
        experts=len({review.expert for review in found}),
        confirmed=confirmed,
        rightly_rejected=right,
        agreement=expert_agreement(found),
        checks=measure_checks(),
    )


def _verdicts(store: Store, season: str, found: tuple[ItemReview, ...]) -> tuple[Measure, Measure]:
    status: Mapping[str, str] = {}
    if found:
        mine = stream_items.c.id.in_(sorted({review.item for review in found}))
        with store.read() as db:
            query = select(stream_items.c.id, stream_items.c.status).where(stream_items.c.season == season, mine)
            status = {row.id: row.status for row in db.execute(query)}
    shown = [review.verdict for review in found if status[review.item] == "published"]
    held = [review.verdict for review in found if status[review.item] == "rejected"]
    return (
        rate_measure(shown.count("confirm"), len(shown), nothing=_NO_REVIEW),
        rate_measure(held.count("reject"), len(held), nothing="no expert has judged a rejected item"),
    )


def _sources(rows: Iterable[tuple[str, str, str, int]]) -> tuple[SourceQuality, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    for source, status, contradicts, n in rows:
        counts[source, status] += n
        counts[source, "against"] += n if contradicts != "[]" else 0
    return tuple(
        SourceQuality(
            source=source,
            published=counts[source, "published"],
            merged=counts[source, "merged"],
            rejected=counts[source, "rejected"],
            contradicting=counts[source, "against"],
        )
        for source in sorted({source for source, _ in counts})
    )


def _count(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, n in pairs:
        counts[name] += n
    order = {name: place for place, name in enumerate(CHECKS)}
    return dict(sorted(counts.items(), key=lambda pair: (order.get(pair[0], 99), pair[0])))  # type: ignore[call-overload]  # any text
