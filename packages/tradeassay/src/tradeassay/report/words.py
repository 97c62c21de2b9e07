"""Words that the page of a run and of an own account share: badges, tones, and how long until it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tradeassay.core.measure import NOT_REDERIVABLE, OWN_PROGRAM, Badges, BadgeTexts

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
