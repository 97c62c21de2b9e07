"""Texts shared by the pages of runs and of users' own accounts, such as badges."""

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
"""Sources of answers, live models first."""

_Tone = Literal["above", "below", "same", "none", "baseline", "failed"]


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent compared with its benchmark: a short label for a chip, a sentence, and a tone."""

    tone: _Tone
    label: str
    sentence: str


def badge_words(badges: Badges, answers: Sequence[str] = ()) -> BadgeTexts:
    """Return (kind, text) per badge. Every table and page displays the badges.

    ``answers`` are the sources of the answers in the table. If they differ, each kind has its own
    badge.
    """
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
