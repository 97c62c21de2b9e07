"""Did a patch repair the strategy or change it? Cards by meaning, traces by edit distance, patches by lines."""

import difflib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.account.shares import DecisionList
from tradeassay.code.semantics.interpreter import Semantics
from tradeassay.code.submission import StrategyCard, StrategySpec, Submission, SubmissionRun
from tradeassay.core.errors import UserError
from tradeassay.core.measure import plain_sum

BUDGET: Final = 50
"""Lines that a patch may change."""
ALLOWED: Final = 0.05
SUSPICIOUS: Final = 0.15
"""How far traces may move sideways: the thresholds of the paper."""


def changed_lines(before: str, after: str) -> int:
    """Return the lines added or replaced, plus those removed without a replacement; blank lines do not count."""
    a, b = ([line.rstrip() for line in text.splitlines() if line.strip()] for text in (before, after))
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return sum(
        max(a_stop - a_start, b_stop - b_start)
        for tag, a_start, a_stop, b_start, b_stop in codes
        if tag != "equal"
    )


AGREEMENT: Final = 1e-6
"""Shares of equity closer than this are the same action."""


def trace_distance(left: DecisionList, right: DecisionList) -> float:
    """Return the edit distance of two lists of actions over the longer one's length. A quiet bar is not an
    action: a strategy that seldom trades could change all its trades and stay under any threshold.
    """
    a, b = (
        list(zip(*(column.tolist() for column in (one.row, one.leg, one.fraction, one.signal)), strict=True))
        for one in (left, right)
    )
    longest = max(len(a), len(b))
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            same = one[:2] == other[:2] and one[3] == other[3] and abs(one[2] - other[2]) <= AGREEMENT
            diagonal, row[j] = row[j], min(diagonal + (not same), row[j] + 1, row[j - 1] + 1)
    return row[-1] / longest if longest else 0.0


Kind = Literal["unchanged", "allowed", "repair", "review", "drift", "unknown"]


class ScenarioDrift(msgspec.Struct, frozen=True, kw_only=True):
    """One micro-scenario: how far the traces are from each other and from the frozen semantics, 0 to 1. ``moved``
    is the distance between the first and the patched submission, 1 where the first one did not run; ``before`` and
    ``after`` are their distances from the reference. ``ran`` says whether the first one ran.
    """

    name: str
    moved: float
    before: float
    after: float
    ran: bool = True


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a patch, with everything it rests on. ``unchanged``: no trace moved. ``repair``: traces moved
    nearer the reference, on no scenario away from it, or the program runs where it did not: it had no trace there
    that could have moved. ``allowed`` and ``review``: they moved, on balance no farther away, by less than the
    first or the second threshold. ``drift``: the card changed its core logic, a parameter or a constraint, or the
    traces moved away from the reference, or they moved by the second threshold or more without coming nearer.
    ``unknown``: there was no trace to compare, and ``reasons`` says why. ``justification`` is what the author
    said; it decides nothing.
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
        """Whether the patch kept to the number of lines it may change."""
        return self.changed_lines <= self.budget

    @property
    def accepted(self) -> bool:
        """Whether the patch may become the next baseline: no drift, and within the budget."""
        return self.kind not in ("drift", "unknown") and self.within_budget


_NUMERIC = 1e-6
"""A float parameter that differs by less than this is the same number written differently."""


def card_changes(first: StrategyCard, patched: StrategyCard, semantics: Semantics) -> tuple[str, ...]:
    """What a patched card says differently from the first; a change back to a frozen value does not count"""
    found: list[str] = []
    if first.core_sha256 != patched.core_sha256:
        named = [name for name, text in patched.core_logic.items() if text != first.core_logic[name]]
        plain = ("strategy", "version", "execution", "legs")
        named += [name for name in plain if getattr(first, name) != getattr(patched, name)]
        found += [f"core logic: '{name}' was rewritten" for name in named]
    for name in sorted(set(first.parameters) | set(patched.parameters)):
        frozen = semantics.parameters.get(name)
        before, after = first.parameters.get(name), patched.parameters.get(name)
        if before == after or (frozen is not None and after == frozen.value):
            continue
        if frozen is None and after is None:
            continue  # a name that the strategy never had was removed
        room = max(frozen.tolerance, 0.0 if frozen.kind == "int" else _NUMERIC) if frozen is not None else 0.0
        if before is None or after is None or abs(before - after) > room:
            shown = ("nothing" if value is None else f"{value:g}" for value in (before, after))
            found.append(f"parameter '{name}': {' became '.join(shown)}")
    said, says = msgspec.to_builtins(first.constraints), msgspec.to_builtins(patched.constraints)
    frozen_limits = msgspec.to_builtins(semantics.constraints)
    for name, value in says.items():
        if value not in (said[name], frozen_limits.get(name)):
            found.append(f"constraint '{name}': {said[name]} became {value}")
    return tuple(found)


_ROUNDING: Final = 1e-12

Runs = Mapping[str, SubmissionRun]


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A submission and its runs on the micro-scenarios, by name, as :func:`pass_gates` returns them."""

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
    """What a patch did: lines are counted against ``previous``, everything else against ``first`` (Iter0)"""
    changes: tuple[str, ...] = ()
    unknown: list[str] = []
    try:
        after_card = patched.submission.read_card()
        with suppress(UserError):  # a first card that cannot be read may be repaired freely
            changes = card_changes(first.submission.read_card(), after_card, spec.semantics)
    except UserError as error:
        unknown.append(f"the patched card cannot be read: {error.message}")
    found: list[ScenarioDrift] = []
    for scenario in spec.scenarios:
        runs = (first.runs.get(scenario.name), patched.runs.get(scenario.name))
        old, new = (run.decisions if run is not None else None for run in runs)
        if new is None:
            unknown.append(f"the patched submission gave no trace on scenario {scenario.name}")
            continue
        far = trace_distance(new, scenario.expected)
        # A first submission that did not run there left no trace: it is marked.
        moved = near = 1.0
        if old is not None:
            moved, near = trace_distance(old, new), trace_distance(old, scenario.expected)
        found.append(ScenarioDrift(name=scenario.name, moved=moved, before=near, after=far, ran=old is not None))
    means = {
        name: plain_sum(getattr(one, name) for one in found) / len(found) if found else None
        for name in ("moved", "before", "after")
    }
    kind, reasons = _judge(tuple(found))
    if changes:
        kind, reasons = "drift", ("the card says something else than at first", *reasons)
    elif unknown:
        kind, reasons = "unknown", tuple(unknown)
    return DriftReport(
        kind=kind,
        reasons=reasons,
        card_changes=changes,
        scenarios=tuple(found),
        **means,
        budget=BUDGET,
        changed_lines=changed_lines((previous or first.submission).source, patched.submission.source),
        justification=justification,
    )


def _judge(scenarios: tuple[ScenarioDrift, ...]) -> tuple[Kind, tuple[str, ...]]:
    """Nearer the reference is a repair, farther is drift; sideways moves are judged by their size."""
    if not scenarios:
        return "unknown", ("there are no micro-scenarios",)
    traced = tuple(one for one in scenarios if one.ran)
    if len(traced) < len(scenarios):
        kind, reasons = _judge(traced) if traced else ("repair", ())
        runs = f"it runs on {len(scenarios) - len(traced)} of {len(scenarios)} scenarios where it did not"
        return (kind if kind in ("drift", "review") else "repair"), (runs, *reasons)
    moved, count = max(one.moved for one in scenarios), len(scenarios)
    before, after = (plain_sum(getattr(one, name) for one in scenarios) for name in ("before", "after"))
    farther = [one for one in scenarios if one.after > one.before + _ROUNDING]
    if moved <= _ROUNDING:
        return "unchanged", ()
    if after > before + _ROUNDING:
        gaps = ((one.name, f"{one.before:.3f} from the reference became {one.after:.3f}") for one in farther)
        return "drift", tuple(f"scenario {name}: {gap}" for name, gap in gaps)
    if after < before - _ROUNDING:
        if not farther:
            return "repair", (f"nearer the reference: {before / count:.3f} became {after / count:.3f}",)
        named = ", ".join(one.name for one in farther)
        return "review", (f"nearer the reference on balance, farther on {named}",)
    if moved < SUSPICIOUS:
        kind = "allowed" if moved < ALLOWED else "review"
        return kind, (f"traces moved by {moved:.3f}, no farther from the reference",)
    return "drift", (f"traces moved by {moved:.3f} and came no nearer the reference",)
