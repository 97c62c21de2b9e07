"""Gate: does any decision depend on bars that came after it?

On the scored bars by truncation, other futures and the block-splice screen; on the micro-scenarios at every bar,
by a replay whose child never holds a bar that it has not answered for. The scored run is one of those compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tradeassay.code.gates.config import GateConfig
from tradeassay.code.gates.result import Finding, GateResult, Measures, failed, not_run, passed
from tradeassay.code.leak.check import check_leaks
from tradeassay.code.leak.report import LeakRecord
from tradeassay.code.leak.source_rules import source_advice
from tradeassay.code.leak.subject import RunFailure
from tradeassay.code.leak.trace import Columns, Trace, first_difference
from tradeassay.code.submission_run import SubmissionRun, SubmissionRunner
from tradeassay.core.hashing import sha256_bytes

REPLAY_BARS: Final = 400
"""Micro-scenarios up to this length are replayed at every bar."""


def leak_gate(
    runner: SubmissionRunner,
    columns: Columns,
    scored: SubmissionRun,
    scenarios: Mapping[str, tuple[Columns, SubmissionRun]],
    config: GateConfig,
) -> GateResult:
    """Look for a decision that changes when only later bars do. Findings on the source are advice, no verdict."""
    assert scored.trades is not None
    advice = tuple(
        Finding(code="source_rule", text=found.text, line=found.line) for found in source_advice(runner.source)
    )
    short = {name: pair for name, pair in scenarios.items() if _bars(pair[0]) <= REPLAY_BARS}
    replayed = _replay(runner, short) if config.every_bar else ()
    if replayed:
        return _with_advice(failed("leak", replayed, measures={"scenarios": len(short)}), advice)
    seed = int(sha256_bytes(runner.source.encode("utf-8", "surrogatepass"))[:8], 16)
    looked = config.leak_on(_bars(columns))
    report = check_leaks(runner, columns, looked, seed=seed, scored=scored.trades.trace(), deterministic=True)
    bars = sum(_bars(pair[0]) for pair in short.values()) if config.every_bar else 0
    return _with_advice(_judged(report.record, bars), advice)


def _judged(record: LeakRecord, replayed_bars: int) -> GateResult:
    measures: Measures = {
        "runs": record.runs,
        "cuts": len(record.cuts),
        "screened": record.screened,
        "replayed_bars": replayed_bars,
    }
    if record.verdict == "leaky":
        found = tuple(
            Finding(code=one.method.replace(" ", "_"), text=one.text, bar=one.row, where="scored bars")
            for one in record.evidence
        )
        return failed("leak", found, measures=measures)
    if record.verdict == "clean":
        return passed("leak", record.reason, measures=measures)
    if record.cause == "too_short":
        return not_run("leak", record.reason)
    text = f"look-ahead cannot be excluded: {record.reason}"
    return failed("leak", (Finding(code=record.cause or "not_checked", text=text),), measures=measures)


def _replay(
    runner: SubmissionRunner, scenarios: Mapping[str, tuple[Columns, SubmissionRun]]
) -> tuple[Finding, ...]:
    """Compare each scenario's run with its bar-by-bar replay: rows strictly before the last of every prefix."""
    replays = runner.replays([columns for columns, _ in scenarios.values()])
    found: list[Finding] = []
    for (name, (columns, run)), (prefixes, failure) in zip(scenarios.items(), replays, strict=True):
        assert run.trades is not None
        one = _first_leak(name, run.trades.trace(), prefixes)
        if one is not None:
            found.append(one)
        elif failure is not None or len(prefixes) < _bars(columns):
            why = failure.text if failure is not None else "it stopped answering"
            text = f"scenario {name}: the replay ended after {len(prefixes)} bars: {why}"
            found.append(Finding(code="replay_failed", text=text, where=f"scenario {name}"))
    return tuple(found)


def _first_leak(name: str, scored: Trace, prefixes: Sequence[Trace | RunFailure]) -> Finding | None:
    where = f"scenario {name}"
    failures = [outcome for outcome in prefixes if isinstance(outcome, RunFailure)]
    for last, outcome in enumerate(prefixes):
        if isinstance(outcome, RunFailure):
            continue
        difference = first_difference(scored, outcome, last, 1e-9)
        if difference is not None:
            row, whole, part = difference
            text = (
                f"{where}, replay: on bar {row} the whole run decides {whole}; "
                f"with no bars after {last} it decides {part}"
            )
            return Finding(code="replay", text=text, bar=row, where=where)
    if prefixes and len(failures) > len(prefixes) // 2:
        text = f"{where}: it fails on {len(failures)} of {len(prefixes)} prefixes: {failures[-1].text}"
        return Finding(code="fails_on_prefixes", text=text, where=where)
    return None


def _with_advice(result: GateResult, advice: tuple[Finding, ...]) -> GateResult:
    return msgspec.structs.replace(result, advice=advice)


def _bars(columns: Columns) -> int:
    return len(next(iter(columns.values())))
