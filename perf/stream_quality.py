"""What are the checks of the information stream worth? Precision and recall on the labelled items that ship.

A positive is a fault (or a repeat, or a contradiction). Intervals are Wilson's at 95 %. The held-out part was
written after the checks were finished. Run it with ``python perf/stream_quality.py`` (``--misses`` lists every
item a check got wrong, ``--json`` is for a machine). Also timed: checking one summary, in processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import date

import msgspec

from stream_pairs import all_pairs
from tradeassay.arena.stream import CheckQuality, check_summary, labelled_items, measure_checks
from tradeassay.arena.stream.checks import claims, numbers
from tradeassay.arena.stream.duplicates import same_story
from tradeassay.arena.stream.items import clean, detect, sentences
from tradeassay.arena.stream.summary import published_day
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import rate_measure


def shown(measure: Measure) -> str:
    """Return a share with its interval, or the reason for having none."""
    if measure.value is None:
        return measure.reason or ""
    return f"{measure.value:.2f} ({measure.low:.2f}-{measure.high:.2f})"


def row(found: CheckQuality) -> str:
    """Return one line of the table."""
    precision, recall = shown(found.precision), shown(found.recall)
    counts = f"{found.items:5d} {found.faults:6d} {found.alarms:6d} {found.caught:6d}"
    return f"{found.check:13s} {found.part:11s} {counts}   {precision:18s} {recall}"


def milliseconds_per_summary() -> float:
    """Return the processor time of checking one summary, nothing remembered from before."""
    told = [(item.story, item.summary) for item in labelled_items() if item.summary is not None]
    texts = [(clean(s.text), clean(y.source), published_day(y.published_at), y.language) for y, s in told]
    for remembered in (claims.claims, numbers.find, detect, sentences):
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
    parts = [("all", pairs)]
    parts += [(f"{o} {lang}", [p for p in pairs if (p.origin, p.language) == (o, lang)])
              for o, lang in dict.fromkeys((p.origin, p.language) for p in pairs)]  # fmt: skip
    for name, some in parts:
        merged = [same_story(p.one, p.other, day) for p in some]
        hit = sum(m and p.same for m, p in zip(merged, some, strict=True))
        precision = rate_measure(hit, sum(merged), nothing="nothing was merged")
        recall = rate_measure(hit, sum(p.same for p in some), nothing="no repeats")
        through = rate_measure(sum(merged) - hit, sum(not p.same for p in some), nothing="no opposites")
        print(f"{name:15s} {len(some):5d}  {shown(precision):18s} {shown(recall):18s} {shown(through)}")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    measured = measure_checks()
    if asked.json:
        json.dump(msgspec.to_builtins(measured), sys.stdout, indent=1, ensure_ascii=False)
        return 0
    items = labelled_items()
    print(f"{len(items)} labelled items, {sum(i.summary is not None for i in items)} of them summaries")
    print("check         part        items faults alarms caught   precision          recall")
    for found in measured:
        print(row(found))
        if asked.misses and found.part == "all":
            for miss in found.misses:
                print(f"    {miss.kind:11s} {miss.story} [{miss.case}] {miss.text}")
    merging()
    print(f"{milliseconds_per_summary():.2f} ms of processor time per summary checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
