"""D1: does it decide as the frozen semantics do, on the scenarios and on the test data?"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from tradeassay.code.engine.decisions import DecisionList
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.submission_run import SubmissionRun
from tradeassay.core.measure import Measure, not_scored

NEAR = 0.01
"""Two exposures that differ by less than this share of equity are the same decision."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions both made at the same bar, in the same leg and size, of how many either made."""

    both: int
    either: int

    @property
    def share(self) -> float:
        """1 when nobody decided anything: doing nothing where nothing is to be done is right."""
        return self.both / self.either if self.either else 1.0


def agree(ours: DecisionList, theirs: DecisionList, *, near: float = NEAR) -> Agreement:
    """Return the agreement of two decision lists; the last decision of a bar and leg counts."""
    mine, other = _by_place(ours), _by_place(theirs)
    both = sum(abs(mine[place] - other[place]) <= near for place in mine.keys() & other.keys())
    return Agreement(both=both, either=len(mine.keys() | other.keys()))


def fidelity(
    spec: StrategySpec,
    scenarios: Mapping[str, SubmissionRun],
    scored: SubmissionRun | None,
    expected: DecisionList | None,
) -> Measure:
    """Return D1, 0 to 10: half from the micro-scenarios, half from the test data.

    ``expected`` is what the frozen semantics decide on the data of ``scored``. A scenario that could not be run
    agrees in nothing. Not scored when there is no run at all.
    """
    if scored is None or scored.decisions is None or expected is None:
        return not_scored("it could not be run on the test data")
    parts = []
    for scenario in spec.scenarios:
        run = scenarios.get(scenario.name)
        found = None if run is None else run.decisions
        parts.append(0.0 if found is None else agree(found, scenario.expected).share)
    test = agree(scored.decisions, expected)
    small = float(np.mean(parts)) if parts else test.share
    note = f"scenarios {small:.3f}, test data {test.share:.3f} of {test.either} decisions"
    return Measure(value=10.0 * (small + test.share) / 2.0, n=test.either, note=note)


def _by_place(decisions: DecisionList) -> dict[tuple[int, int], float]:
    return {
        (int(row), int(leg)): float(fraction)
        for row, leg, fraction in zip(decisions.row, decisions.leg, decisions.fraction, strict=True)
    }
