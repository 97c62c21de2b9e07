"""Gate: does it decide the same in fresh processes with other seeds?"""

from __future__ import annotations

from collections.abc import Mapping

from tradeassay.code.gates.result import Finding, GateResult, Measures, failed, passed
from tradeassay.code.leak.trace import first_difference
from tradeassay.code.submission_run import SubmissionRun


def determinism_gate(runs: Mapping[int, SubmissionRun]) -> GateResult:
    """Compare the hashes of the trades of runs by seed; the first run is the scored one."""
    first_seed, scored = next(iter(runs.items()))
    assert scored.trades is not None
    measures: Measures = {f"seed {first_seed}": scored.trades.sha256}
    found: list[Finding] = []
    for seed, run in list(runs.items())[1:]:
        if run.trades is None:
            text = run.failure.text if run.failure is not None else "no log"
            found.append(
                Finding(code="fails_with_a_seed", text=f"with seed {seed} it fails: {text}", line=run.line)
            )
            continue
        measures[f"seed {seed}"] = run.trades.sha256
        if run.trades.sha256 != scored.trades.sha256:
            found.append(_difference(first_seed, scored, seed, run))
    if found:
        return failed("determinism", tuple(found), measures=measures)
    return passed("determinism", measures=measures)


def _difference(first_seed: int, scored: SubmissionRun, seed: int, run: SubmissionRun) -> Finding:
    assert scored.trades is not None and run.trades is not None
    left, right = scored.trades.trace(), run.trades.trace()
    end = 1 + max((int(trace.rows[-1]) for trace in (left, right) if len(trace)), default=0)
    row, one, other = first_difference(left, right, end, 0.0) or (end, "more", "less")
    text = f"on bar {row} it decides {one} with seed {first_seed} and {other} with seed {seed}"
    return Finding(code="seeds_differ", text=text, bar=row, where="scored bars")
