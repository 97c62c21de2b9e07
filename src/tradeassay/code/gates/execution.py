"""Gate: does it run to its end, on the scored bars and on every micro-scenario, and return trades that can be?"""

from __future__ import annotations

from collections.abc import Mapping

from tradeassay.code.gates.config import GateConfig
from tradeassay.code.gates.result import Finding, GateResult, failed, passed
from tradeassay.code.leak.subject import LONG, RunFailure, SpeedProbe, probe_speed
from tradeassay.code.leak.trace import Columns
from tradeassay.code.submission_run import SubmissionRun, SubmissionRunner


def exec_gate(scored: SubmissionRun, scenarios: Mapping[str, SubmissionRun]) -> GateResult:
    """Judge the runs that were made."""
    runs = {"scored bars": scored, **{f"scenario {name}": run for name, run in scenarios.items()}}
    found = tuple(_finding(where, run) for where, run in runs.items() if run.failure is not None)
    cpu_s = round(scored.cpu_s, 3)
    if found:
        return failed("exec", found, measures={"cpu_s": cpu_s})
    trades = 0 if scored.trades is None else len(scored.trades)
    return passed("exec", measures={"cpu_s": cpu_s, "trades": trades})


def probe_gate(runner: SubmissionRunner, columns: Columns, config: GateConfig) -> GateResult | None:
    """Try 5,000 and 20,000 bars of a long series first; a result only when there is no point in going on."""
    bars = len(next(iter(columns.values())))
    if bars <= LONG or not config.leak.probe:
        return None
    probe, outcomes = probe_speed(runner, columns)
    broken = outcomes[-1]
    if isinstance(broken, RunFailure):
        return failed("exec", (Finding(code=broken.kind, text=f"on the first bars: {broken.text}"),))
    if probe is not None and probe.expected_s > config.leak.run_s:
        return failed("exec", (_slow(probe, config),))
    return None


def _slow(probe: SpeedProbe, config: GateConfig) -> Finding:
    return Finding(code="too_slow", text=f"{probe.text}; {config.leak.run_s:g} s are allowed")


def _finding(where: str, run: SubmissionRun) -> Finding:
    assert run.failure is not None
    return Finding(code=run.failure.kind, text=f"{where}: {run.failure.text}", line=run.line, where=where)
