"""Decide whether a patch repaired a strategy or changed it into another strategy.

Cards are compared by their content, traces by their edit distance, and patches by the number of
changed lines.
"""

import difflib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay_bench.account.shares import DecisionList
from tradeassay_programs.code.semantics.interpreter import Semantics
from tradeassay_programs.code.submission import (
    StrategyCard,
    StrategySpec,
    Submission,
    SubmissionRun,
)

BUDGET: Final = 50
"""Maximum number of lines that a patch may change."""
ALLOWED: Final = 0.05
SUSPICIOUS: Final = 0.15
"""The paper's two thresholds for traces that move without approaching the reference."""


def changed_lines(before: str, after: str) -> int:
    """Return the number of added, replaced or removed lines, except blank lines."""
    a, b = (
        [line.rstrip() for line in text.splitlines() if line.strip()] for text in (before, after)
    )
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return sum(
        max(a_stop - a_start, b_stop - b_start)
        for tag, a_start, a_stop, b_start, b_stop in codes
        if tag != "equal"
    )


AGREEMENT: Final = 1e-6
"""Maximum difference between two shares of equity that are the same action."""


def trace_distance(left: DecisionList, right: DecisionList) -> float:
    """Return the edit distance of two lists of actions, divided by the length of the longer list.

    A bar without a trade is not an action. Otherwise a strategy that seldom trades could change all
    its trades and stay below any threshold.
    """
    left_actions, right_actions = _actions(left), _actions(right)
    longest = max(len(left_actions), len(right_actions))
    row = list(range(len(right_actions) + 1))
    for i, action in enumerate(left_actions, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(right_actions, start=1):
            same_key = action[:3] == other[:3]
            same = same_key and abs(action[3] - other[3]) <= AGREEMENT
            diagonal, row[j] = row[j], min(diagonal + (not same), row[j] + 1, row[j - 1] + 1)
    return row[-1] / longest if longest else 0.0


def _actions(decisions: DecisionList) -> list[tuple[int, int, int, float]]:
    """Return decisions as tuples of bar, leg, signal and share of equity."""
    columns = (decisions.row, decisions.leg, decisions.signal, decisions.fraction)
    return list(zip(*(column.tolist() for column in columns), strict=True))


Kind = Literal["unchanged", "allowed", "repair", "review", "drift", "unknown"]


class ScenarioDrift(msgspec.Struct, frozen=True, kw_only=True):
    """The distances of traces on one micro-scenario, 0 to 1.

    ``moved`` is the distance between the first and the patched submission. ``before`` and ``after``
    are their distances from the reference. If the first submission did not run, ``ran`` is False
    and ``moved`` is 1.
    """

    name: str
    moved: float
    before: float
    after: float
    ran: bool = True


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a patch, with its evidence. The kinds are:

    - ``unchanged``: no trace moved.
    - ``repair``: the traces moved closer to the reference, and on no scenario away from it. Or the
      program runs where it did not run before, so that there was no trace to move.
    - ``allowed``, ``review``: the traces moved by less than the first or the second threshold, on
      balance no farther from the reference.
    - ``drift``: the card changed its core logic, a parameter or a constraint. Or the traces moved
      away from the reference, or moved by the second threshold or more without approaching it.
    - ``unknown``: there was no trace to compare, as explained in ``reasons``.

    ``justification`` is the author's explanation. It does not affect the verdict.
    """

    kind: Kind
    reasons: tuple[str, ...] = ()
    card_changes: tuple[str, ...] = ()
    scenarios: tuple[ScenarioDrift, ...] = ()
    moved: float | None = None
    before: float | None = None
    after: float | None = None
    changed_lines: int = 0
    budget: int = BUDGET
    justification: str = ""

    @property
    def within_budget(self) -> bool:
        """Whether the number of changed lines is within the budget."""
        return self.changed_lines <= self.budget

    @property
    def accepted(self) -> bool:
        """Whether the patch may become the next baseline: it does not drift, and it is within the
        budget.
        """
        return self.kind not in ("drift", "unknown") and self.within_budget


_NUMERIC = 1e-6
"""Maximum difference between float parameters that are the same number in different notation."""


def card_changes(
    first: StrategyCard, patched: StrategyCard, semantics: Semantics
) -> tuple[str, ...]:
    """Return the differences between a patched card and the first card.

    A change to a frozen value does not count.
    """
    changes: list[str] = []
    if first.core_sha256 != patched.core_sha256:
        rewritten = [
            name for name, text in patched.core_logic.items() if text != first.core_logic[name]
        ]
        plain = ("strategy", "version", "execution", "legs")
        rewritten += [name for name in plain if getattr(first, name) != getattr(patched, name)]
        changes += [f"core logic: '{name}' was rewritten" for name in rewritten]
    for name in sorted(set(first.parameters) | set(patched.parameters)):
        frozen = semantics.parameters.get(name)
        before, after = first.parameters.get(name), patched.parameters.get(name)
        if before == after or (frozen is not None and after == frozen.value):
            continue
        if frozen is None and after is None:
            continue  # The patch removes a name that the strategy never had.
        tolerance = 0.0
        if frozen is not None:
            tolerance = max(frozen.tolerance, 0.0 if frozen.kind == "int" else _NUMERIC)
        if before is None or after is None or abs(before - after) > tolerance:
            values = ["nothing" if value is None else f"{value:g}" for value in (before, after)]
            changes.append(f"parameter '{name}': {' became '.join(values)}")
    first_limits = msgspec.to_builtins(first.constraints)
    frozen_limits = msgspec.to_builtins(semantics.constraints)
    for name, limit in msgspec.to_builtins(patched.constraints).items():
        if limit not in (first_limits[name], frozen_limits.get(name)):
            changes.append(f"constraint '{name}': {first_limits[name]} became {limit}")
    return tuple(changes)


_ROUNDING: Final = 1e-12

Runs = Mapping[str, SubmissionRun]


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A submission and its runs on the micro-scenarios by name, from :func:`pass_gates`."""

    submission: Submission
    runs: Runs


def check_drift(
    spec: StrategySpec,
    first: Traced,
    patched: Traced,
    *,
    previous: Submission | None = None,
    justification: str = "",
) -> DriftReport:
    """Return the verdict on a patch.

    Changed lines are counted from ``previous``, and everything else is compared with ``first``
    (Iter0 of the paper).
    """
    changes: tuple[str, ...] = ()
    unknown: list[str] = []
    try:
        after_card = patched.submission.read_card()
        # If the first card cannot be read, the patch may repair it freely.
        with suppress(UserError):
            changes = card_changes(first.submission.read_card(), after_card, spec.semantics)
    except UserError as error:
        unknown.append(f"the patched card cannot be read: {error.message}")
    drifts: list[ScenarioDrift] = []
    for scenario in spec.scenarios:
        first_run, patched_run = first.runs.get(scenario.name), patched.runs.get(scenario.name)
        old = None if first_run is None else first_run.decisions
        new = None if patched_run is None else patched_run.decisions
        if new is None:
            unknown.append(f"the patched submission gave no trace on scenario {scenario.name}")
            continue
        # A first submission that did not run has no trace, so its distances are 1.
        moved, before = 1.0, 1.0
        if old is not None:
            moved, before = trace_distance(old, new), trace_distance(old, scenario.expected)
        drifts.append(
            ScenarioDrift(
                name=scenario.name,
                moved=moved,
                before=before,
                after=trace_distance(new, scenario.expected),
                ran=old is not None,
            )
        )
    means: dict[str, float | None] = dict.fromkeys(("moved", "before", "after"))
    if drifts:
        for name in means:
            means[name] = math.fsum(getattr(drift, name) for drift in drifts) / len(drifts)
    kind, reasons = _judge(tuple(drifts))
    if changes:
        kind, reasons = "drift", ("the card says something else than at first", *reasons)
    elif unknown:
        kind, reasons = "unknown", tuple(unknown)
    return DriftReport(
        kind=kind,
        reasons=reasons,
        card_changes=changes,
        scenarios=tuple(drifts),
        **means,
        budget=BUDGET,
        changed_lines=changed_lines(
            (previous or first.submission).source, patched.submission.source
        ),
        justification=justification,
    )


def _judge(scenarios: tuple[ScenarioDrift, ...]) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of drift and its reasons.

    Traces that move closer to the reference are a repair, and traces that move away are drift.
    Other moves are classified by their size.
    """
    if not scenarios:
        return "unknown", ("there are no micro-scenarios",)
    traced = tuple(drift for drift in scenarios if drift.ran)
    if len(traced) < len(scenarios):
        kind, reasons = _judge(traced) if traced else ("repair", ())
        runs = (
            f"it runs on {len(scenarios) - len(traced)} of {len(scenarios)} scenarios where it "
            "did not"
        )
        return (kind if kind in ("drift", "review") else "repair"), (runs, *reasons)
    moved, count = max(drift.moved for drift in scenarios), len(scenarios)
    before = math.fsum(drift.before for drift in scenarios)
    after = math.fsum(drift.after for drift in scenarios)
    farther = [drift for drift in scenarios if drift.after > drift.before + _ROUNDING]
    if moved <= _ROUNDING:
        return "unchanged", ()
    if after > before + _ROUNDING:
        changes = []
        for drift in farther:
            change = f"{drift.before:.3f} from the reference became {drift.after:.3f}"
            changes.append(f"scenario {drift.name}: {change}")
        return "drift", tuple(changes)
    if after < before - _ROUNDING:
        if not farther:
            change = f"{before / count:.3f} became {after / count:.3f}"
            return "repair", (f"nearer the reference: {change}",)
        names = ", ".join(drift.name for drift in farther)
        return "review", (f"nearer the reference on balance, farther on {names}",)
    if moved < SUSPICIOUS:
        kind = "allowed" if moved < ALLOWED else "review"
        return kind, (f"traces moved by {moved:.3f}, no farther from the reference",)
    return "drift", (f"traces moved by {moved:.3f} and came no nearer the reference",)
