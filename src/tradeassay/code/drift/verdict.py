"""What a patch did to a strategy: nothing, a repair, or drift."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["unchanged", "allowed", "repair", "review", "drift", "unknown"]


class ScenarioDrift(msgspec.Struct, frozen=True, kw_only=True):
    """One micro-scenario: how far the traces are from each other and from the frozen semantics, 0 to 1.

    ``moved`` is the distance between the first and the patched submission; ``before`` and ``after`` are their
    distances from the reference.
    """

    name: str
    moved: float
    before: float
    after: float


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a patch, with everything it rests on.

    ``unchanged``: no trace moved. ``repair``: traces moved nearer the reference, on no scenario away from it.
    ``allowed`` and ``review``: they moved, on balance no farther away, by less than the first or the second
    threshold. ``drift``: the card changed its core logic, a parameter or a constraint, or the traces moved away
    from the reference, or they moved by the second threshold or more without coming nearer. ``unknown``: there was
    no trace to compare, and ``reasons`` says why. ``justification`` is what the author said; it decides nothing.
    """

    kind: Kind
    reasons: tuple[str, ...] = ()
    card_changes: tuple[str, ...] = ()
    scenarios: tuple[ScenarioDrift, ...] = ()
    moved: float | None = None
    before: float | None = None
    after: float | None = None
    changed_lines: int = 0
    budget: int = 50
    justification: str = ""

    @property
    def within_budget(self) -> bool:
        """Whether the patch kept to the number of lines it may change."""
        return self.changed_lines <= self.budget

    @property
    def accepted(self) -> bool:
        """Whether the patch may become the next baseline: no drift, and within the budget."""
        return self.kind not in ("drift", "unknown") and self.within_budget
