"""Words that the page of a run and of an own account share: badges, tones, and how long until it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tradeassay.core.measure import NOT_REDERIVABLE, OWN_PROGRAM, Badges, BadgeTexts, above, below
from tradeassay.core.tables import counted
from tradeassay.verdict.record import AgentFindings

ANSWERS = {
    "live": "live model",
    "program": "a program of the runner's own",
    "replayed": "replayed model",
    "replayed program": "replayed program",
    "scripted": "scripted model",
}
"""Whose answers there are, the liveliest first."""

_Tone = Literal["above", "below", "same", "none", "baseline", "failed"]


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent against what it is compared with: a short label for a chip, a sentence, and its tone."""

    tone: _Tone
    label: str
    sentence: str


def badge_words(badges: Badges, answers: Sequence[str] = ()) -> BadgeTexts:
    """Return (kind, text) per badge; every table and page carries them.

    ``answers`` says whose answers are in the table; where they differ each kind has a badge of its own."""
    models = answers or ([] if badges.model == "none" else [badges.model])
    return (
        (badges.data, f"{badges.data} data"),
        ("convention", f"{badges.convention} convention"),
        *(("model", ANSWERS[kind]) for kind in models),
        *((("model", "rules only, no model"),) if not models else ()),
        *((("model", NOT_REDERIVABLE),) if set(models) - {"scripted"} else ()),
        *((("model", OWN_PROGRAM),) if badges.own_program else ()),
        *(("bias", f"known bias: {bias}") for bias in badges.biases),
    )


# An agent against the baseline


# Which agent is best


def until_known(one: AgentFindings) -> str:
    """Say how many more sessions would settle whether an edge is there; empty where none was measured."""
    edge = one.edge
    if (
        edge is None
        or edge.tested.value is None
        or edge.tested.low is None
        or edge.tested.high is None
    ):
        return ""
    if above(edge.tested) or below(edge.tested):
        return f"{counted(one.sessions, 'session')} settle it: the interval leaves zero out."
    if one.needed is None:
        return "No number of sessions would settle it: nothing is left to be found."
    # A design's power is above a half: what was needed may be less than what was had, and zero still inside.
    more = max(one.needed - one.sessions, one.sessions // 4, 1)
    if more > 100 * one.year:
        return f"So small an edge would take over {100 * one.year:,} sessions, or a hundred years, to tell it."
    long = f", about {more / one.year:.1f} years," if more >= one.year else ""
    return f"About {more:,} more sessions{long} like these would settle it, if the edge is as large as it looks."


# An agent against itself under another setting
