"""The checks a summary passes before anybody reads it: numbers, dates, names, neutrality, language."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tradeassay.arena.stream.checks import dates, figures, names, neutrality
from tradeassay.arena.stream.items import ItemCheck, Language, detect

__all__ = ["check_summary"]


def check_summary(
    summary: str, source: str, published: date, language: Language, known: Sequence[str] = ()
) -> tuple[ItemCheck, ...]:
    """Return the five checks of a summary against its source.

    ``published`` is the source's day, from which a date without a year is understood; ``language`` is the one
    asked for; ``known`` are names that need no source, the asset's own.
    """
    written = detect(summary)
    wrong = () if written == language else (f"written in '{written}', asked for in '{language}'",)
    found = {
        "numbers": figures.issues(summary, source, published),
        "dates": dates.issues(summary, source, published),
        "names": names.issues(summary, source, known),
        "neutrality": neutrality.issues(summary),
        "language": wrong,
    }
    return tuple(ItemCheck(name=name, ok=not issues, issues=issues) for name, issues in found.items())  # type: ignore[arg-type]  # the five names
