"""Is a patch a repair, or did it change the strategy?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tradeassay.code.drift.card_changes import card_changes
from tradeassay.code.drift.patch_budget import BUDGET, changed_lines
from tradeassay.code.drift.trace_distance import trace_distance
from tradeassay.code.drift.verdict import DriftReport, Kind, ScenarioDrift
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.submission import Submission
from tradeassay.code.submission_run import SubmissionRun
from tradeassay.core.errors import UserError

_ROUNDING: Final = 1e-12

Runs = Mapping[str, SubmissionRun]


class DriftConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds of trace movement, and the number of lines that a patch may change."""

    allowed: float = 0.05
    suspicious: float = 0.15
    budget: int = BUDGET


def check_drift(
    spec: StrategySpec,
    first: Submission,
    patched: Submission,
    first_runs: Runs,
    patched_runs: Runs,
    config: DriftConfig | None = None,
    *,
    previous: Submission | None = None,
    justification: str = "",
) -> DriftReport:
    """Return what a patch did. ``first`` is Iter0; ``previous``, if not the same, is what was patched.

    The runs are those on the micro-scenarios, by name, as :func:`pass_gates` returns them. Lines are counted
    against ``previous``, all else against ``first``. A justification is kept and decides nothing.
    """
    config = config or DriftConfig()
    changes, unread = _card(spec, first, patched)
    scenarios, missing = _scenarios(spec, first_runs, patched_runs)
    moved, before, after = (
        _mean([getattr(one, name) for one in scenarios]) for name in ("moved", "before", "after")
    )
    kind, reasons = _judge(scenarios, config)
    if changes:
        kind, reasons = "drift", ("the card says something else than at first", *reasons)
    elif unread or missing:
        kind, reasons = "unknown", (*unread, *missing)
    return DriftReport(
        kind=kind,
        reasons=reasons,
        card_changes=changes,
        scenarios=scenarios,
        moved=moved,
        before=before,
        after=after,
        changed_lines=changed_lines((previous or first).source, patched.source),
        budget=config.budget,
        justification=justification,
    )


def _judge(scenarios: tuple[ScenarioDrift, ...], config: DriftConfig) -> tuple[Kind, tuple[str, ...]]:
    """Nearer the reference is a repair, farther is drift; what moved sideways goes by how much."""
    if not scenarios:
        return "unknown", ("there are no micro-scenarios",)
    moved = max(one.moved for one in scenarios)
    before, after = (sum(getattr(one, name) for one in scenarios) for name in ("before", "after"))
    farther = [one for one in scenarios if one.after > one.before + _ROUNDING]
    if moved <= _ROUNDING:
        return "unchanged", ()
    if after > before + _ROUNDING:
        return "drift", tuple(
            f"scenario {one.name}: {one.before:.3f} from the reference became {one.after:.3f}" for one in farther
        )
    if after < before - _ROUNDING:
        if not farther:
            count = len(scenarios)
            return "repair", (f"nearer the reference: {before / count:.3f} became {after / count:.3f}",)
        named = ", ".join(one.name for one in farther)
        return "review", (f"nearer the reference on balance, farther on {named}",)
    if moved < config.allowed:
        return "allowed", (f"traces moved by {moved:.3f}, no farther from the reference",)
    if moved < config.suspicious:
        return "review", (f"traces moved by {moved:.3f}, no farther from the reference",)
    return "drift", (f"traces moved by {moved:.3f} and came no nearer the reference",)


def _card(spec: StrategySpec, first: Submission, patched: Submission) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the changes, and why they cannot be told. A first card that cannot be read may be mended freely."""
    try:
        after = patched.read_card()
    except UserError as error:
        return (), (f"the patched card cannot be read: {error.message}",)
    try:
        before = first.read_card()
    except UserError:
        return (), ()
    return card_changes(before, after, spec.semantics), ()


def _scenarios(
    spec: StrategySpec, first_runs: Runs, patched_runs: Runs
) -> tuple[tuple[ScenarioDrift, ...], tuple[str, ...]]:
    """Compare scenario by scenario. A first submission that did not run there was as far away as can be."""
    found: list[ScenarioDrift] = []
    missing: list[str] = []
    for scenario in spec.scenarios:
        first, patched = first_runs.get(scenario.name), patched_runs.get(scenario.name)
        after = patched.decisions if patched is not None else None
        before = first.decisions if first is not None else None
        if after is None:
            missing.append(f"the patched submission gave no trace on scenario {scenario.name}")
            continue
        far = trace_distance(after, scenario.expected)
        if before is None:
            found.append(ScenarioDrift(name=scenario.name, moved=1.0, before=1.0, after=far))
            continue
        found.append(
            ScenarioDrift(
                name=scenario.name,
                moved=trace_distance(before, after),
                before=trace_distance(before, scenario.expected),
                after=far,
            )
        )
    return tuple(found), tuple(missing)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
