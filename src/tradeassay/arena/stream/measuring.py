"""How good are the checks? Precision and recall of each on the labelled items that ship.

The labels were written by people who know the checks, in two parts: ``development`` was at hand while the checks
were made, ``held-out`` was written afterwards and nothing was changed because of it. The held-out figures are the
honest ones. A *positive* is a fault: precision is the share of alarms that are faults, recall the share of faults
that raise an alarm.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec

from tradeassay.arena.stream.checks import check_summary
from tradeassay.arena.stream.contradictions import contradiction
from tradeassay.arena.stream.duplicates import same_story
from tradeassay.arena.stream.items import CHECKS, CheckName, Language
from tradeassay.arena.stream.summary import published_day
from tradeassay.arena.stream.text import clean
from tradeassay.core.measure import Measure
from tradeassay.metrics.rates import rate_measure

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
