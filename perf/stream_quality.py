"""What are the checks of the information stream worth? Precision and recall on labelled items.

The labels say what a careful reader would say. ``development`` was at hand while the checks were made,
``held-out`` was written afterwards and nothing was changed because of it. A positive is a fault (or a repeat, or a
contradiction). Intervals are Wilson's at 95 %. Run it with ``python perf/stream_quality.py``: ``--misses`` lists
every item a check got wrong, ``--record`` writes the table that the information page shows. Also timed: checking
one summary, in processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from stream_pairs import all_pairs
from tradeassay.arena.stream import check_summary, facts, record
from tradeassay.arena.stream.checks import contradiction, same_story
from tradeassay.arena.stream.editing import instructs, published_day
from tradeassay.arena.stream.items import Language, clean, detect, sentences
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import rate_measure

RECORDED = Path(record.__file__).with_name("accuracy.json")
LABELLED = Path(__file__).parent / "stream_labelled"
FILES = {"development": "development", "development_zh": "development", "held_out": "held-out"}
FILES |= {"held_out_zh": "held-out"}
CHECKS = ("numbers", "dates", "names", "neutrality", "language", "rejection", "duplicate", "contradiction")


class LabelledSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A summary of a story; ``wrong`` names the checks that should object, ``case`` what is hard about it.

    ``untrue`` summaries say something false with the right numbers, dates and names: no check is made for that.
    """

    text: str
    wrong: tuple[str, ...] = ()
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


class Judged(NamedTuple):
    """One labelled item and one check: should it object, does it?"""

    check: str
    part: str
    wrong: bool
    alarm: bool
    story: str
    case: str
    text: str


def stories() -> list[tuple[str, LabelledStory]]:
    """Return every labelled story with its part of the set."""
    found = []
    for name, part in FILES.items():
        stored = tomllib.loads((LABELLED / f"{name}.toml").read_text(encoding="utf-8"))
        found += [(part, story) for story in msgspec.convert(stored["stories"], list[LabelledStory])]
    return found


def judged() -> list[Judged]:
    """Return what every check says about every item it applies to.

    ``rejection`` takes the five checks of a summary together: is what should not be shown held back?
    """
    found = []
    for part, story in stories():
        day, source = published_day(story.published_at), clean(story.source)
        for one in story.summaries:
            checks = check_summary(clean(one.text), source, day, story.language)
            verdicts = {check.name: (check.name in one.wrong, not check.ok) for check in checks}
            rejected = (bool(one.wrong) or one.untrue, any(not check.ok for check in checks))
            for name, (wrong, alarm) in {**verdicts, "rejection": rejected}.items():
                found.append(Judged(name, part, wrong, alarm, story.id, one.case, one.text))
        for twin in story.twins:
            text, told = clean(twin.text), (story.id, twin.case, twin.text)
            found.append(Judged("duplicate", part, twin.duplicate, same_story(source, text, day), *told))
            against = contradiction(text, source, day) is not None
            found.append(Judged("contradiction", part, twin.contradicts, against, *told))
    return found


def counts(verdicts: list[Judged], check: str, part: str) -> tuple[str, str, int, int, int, int]:
    """Return (check, part, items, faults, alarms, caught)."""
    mine = [one for one in verdicts if one.check == check and part in ("all", one.part)]
    faults, alarms = sum(one.wrong for one in mine), sum(one.alarm for one in mine)
    return check, part, len(mine), faults, alarms, sum(one.wrong and one.alarm for one in mine)


def recorded(verdicts: list[Judged]) -> tuple[tuple[str, str, int, int, int, int], ...]:
    """Return the table that the information page shows."""
    return tuple(counts(verdicts, check, part) for check in CHECKS for part in ("development", "held-out"))


def shown(measure: Measure) -> str:
    if measure.value is None:
        return measure.reason or ""
    return f"{measure.value:.2f} ({measure.low:.2f}-{measure.high:.2f})"


def milliseconds_per_summary() -> float:
    """Return the processor time of checking one summary, nothing remembered from before."""
    texts = [
        (clean(one.text), clean(story.source), published_day(story.published_at), story.language)
        for _, story in stories()
        for one in story.summaries
    ]
    for remembered in (facts.claims, facts.find_numbers, facts.find_mentions, detect, sentences):
        remembered.cache_clear()
    began = time.process_time()
    for text, source, day, language in texts:
        check_summary(text, source, day, language)
    return 1000 * (time.process_time() - began) / len(texts)


def merging() -> None:
    """Print how well repeats are told from stories that only look alike."""
    pairs = all_pairs()
    day = date(2025, 3, 4)
    print(f"{len(pairs)} pairs with known truth; a positive is a repeat that is merged")
    print("part            pairs  precision          recall             opposites merged")
    groups = dict.fromkeys((pair.origin, pair.language) for pair in pairs)
    parts = [("all", pairs), *((" ".join(g), [p for p in pairs if (p.origin, p.language) == g]) for g in groups)]
    for name, some in parts:
        merged = [same_story(p.one, p.other, day) for p in some]
        hit = sum(m and p.same for m, p in zip(merged, some, strict=True))
        precision = rate_measure(hit, sum(merged), nothing="nothing was merged")
        recall = rate_measure(hit, sum(p.same for p in some), nothing="no repeats")
        through = rate_measure(sum(merged) - hit, sum(not p.same for p in some), nothing="no opposites")
        print(f"{name:15s} {len(some):5d}  {shown(precision):18s} {shown(recall):18s} {shown(through)}")


def documented() -> dict[str, dict[str, tuple[int, int]]]:
    """Return by set of ``stream_documented.toml`` and kind how many are judged wrongly, and how many there are."""
    stored = tomllib.loads((LABELLED.parent / "stream_documented.toml").read_text(encoding="utf-8"))
    day, found = date(2026, 5, 14), {}
    for part, items in stored.items():
        wrong = {
            "instructions": [not instructs(text) for text in items["instructions"]],
            "harmless": [instructs(text) for text in items["harmless"]],
            "contradictions": [contradiction(*pair, day) is None for pair in items["contradictions"]],
            "compatible": [contradiction(*pair, day) is not None for pair in items["compatible"]],
        }
        found[part] = {kind: (sum(misses), len(misses)) for kind, misses in wrong.items() if misses}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    verdicts = judged()
    if asked.record:
        rows = ",\n".join(f"  {json.dumps(row)}" for row in recorded(verdicts))
        RECORDED.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
        return 0
    print("check         part        items faults alarms caught   precision          recall")
    for check in CHECKS:
        for part in ("all", "development", "held-out"):
            found = record.accuracy(*counts(verdicts, check, part))
            number = f"{found.items:5d} {found.faults:6d} {found.alarms:6d} {found.caught:6d}"
            print(f"{check:13s} {part:11s} {number}   {shown(found.precision):18s} {shown(found.recall)}")
        for one in verdicts:
            if asked.misses and one.check == check and one.wrong != one.alarm:
                print(f"    {'missed' if one.wrong else 'false alarm':11s} {one.story} [{one.case}] {one.text}")
    merging()
    for part, kinds in documented().items():
        print(f"{part}: wrong", ", ".join(f"{kind} {wrong} of {n}" for kind, (wrong, n) in kinds.items()))
    print(f"{milliseconds_per_summary():.2f} ms of processor time per summary checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
