"""Badges: what a reader must know before believing a table. Every table and page carries them."""

from __future__ import annotations

from typing import Literal

import msgspec

Convention = Literal["paper", "sound"]
NOT_REDERIVABLE = "answers as recorded by the runner, not re-derivable"
"""What is said of replies that nobody but their model could give again."""


OWN_PROGRAM = "decisions of a program of the runner's own, not re-derivable"
"""What is said of decisions that a program outside the run gave: it is never executed for somebody else."""


class Badges(msgspec.Struct, frozen=True, kw_only=True):
    """Where numbers come from. ``biases`` are the panel's known flaws, in plain words."""

    data: Literal["real", "synthetic"]
    convention: Convention
    model: Literal["none", "scripted", "replayed", "live"] = "none"
    biases: tuple[str, ...] = ()
    own_program: bool = False
