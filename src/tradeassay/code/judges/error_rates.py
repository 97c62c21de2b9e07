"""How often a judge is wrong, measured on programs whose right verdict is known."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradeassay.code.judges.verdict import JudgeStatus
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One program with a known answer: ``right`` is a gold solution, otherwise a decoy that a judge must turn
    down.
    """

    program: str
    right: bool
    verdict: JudgeStatus


class JudgeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's errors. ``false_rejects`` is over gold solutions, ``false_accepts`` over decoys, both of those
    that it gave a verdict on; ``unscored`` counts the others. The lists name the programs it was wrong about.
    """

    judge: str
    false_rejects: Measure
    false_accepts: Measure
    unscored: int
    rejected_gold: tuple[str, ...] = ()
    accepted_decoys: tuple[str, ...] = ()
    note: str = ""


def error_rates(judge: str, judged: Iterable[Judged], *, note: str = "") -> JudgeErrors:
    """Return how often ``judge`` was wrong, with Wilson intervals; a rate over nothing is not scored."""
    cases = list(judged)
    told = [case for case in cases if case.verdict != "not_scored"]
    gold = [case for case in told if case.right]
    decoys = [case for case in told if not case.right]
    rejected = tuple(case.program for case in gold if case.verdict == "failed")
    accepted = tuple(case.program for case in decoys if case.verdict == "passed")
    return JudgeErrors(
        judge=judge,
        false_rejects=rate_measure(
            len(rejected), len(gold), nothing="the judge gave no verdict on a gold solution"
        ),
        false_accepts=rate_measure(len(accepted), len(decoys), nothing="the judge gave no verdict on a decoy"),
        unscored=len(cases) - len(told),
        rejected_gold=rejected,
        accepted_decoys=accepted,
        note=note,
    )
