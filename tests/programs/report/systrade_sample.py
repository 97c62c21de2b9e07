"""A finished SysTradeBench run whose programs were never run: what the sandbox would have found
is given.
"""

from contextlib import contextmanager
from unittest import mock

import msgspec
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.core.measure import Measure, not_scored
from tradeassay_bench.runs import run as run_spec
from tradeassay_programs.benchmarks.systrade.examine import (
    AuditStep,
    Examined,
    FollowedTrade,
    LegPath,
    Mark,
    Trail,
)
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec
from tradeassay_programs.code.checks import Exhibit, convicted, not_run, passed
from tradeassay_programs.code.gates import GATES, GateReport
from tradeassay_programs.code.scores import (
    Breach,
    CostPoint,
    Discipline,
    PaperScore,
    Robustness,
    Scorecard,
    overall,
)
from tradeassay_programs.code.submission import SubmissionRun

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} \x1b[31m"


def trail():
    closes = tuple(100.0 + (n % 7) - (n % 3) for n in range(60))
    marks = (
        Mark(
            kind="both",
            row=5,
            time="2025-01-08",
            leg="X",
            share=1.0,
            frozen=1.0,
            signal="ENTER_LONG",
        ),
        Mark(kind="other size", row=9, time="2025-01-14", leg="X", share=0.5, frozen=1.0),
        Mark(
            kind="only submission", row=20, time="2025-01-29", leg="X", share=-1.0, signal=HOSTILE
        ),
        Mark(
            kind="only frozen", row=30, time="2025-02-12", leg="X", frozen=0.0, frozen_signal="EXIT"
        ),
    )
    steps = (
        AuditStep(kind="signal", id="s-1"),
        AuditStep(kind="risk_check"),
        AuditStep(kind="order", id="o-1", claimed=10.0, own=10.0),
        AuditStep(kind="position", id="p-1", claimed=11.0, own=10.0),
        AuditStep(kind="pnl", id="g-1", claimed=0.0, own=0.0),
    )
    where = {
        "number": 0,
        "row": 5,
        "time": "2025-01-08",
        "leg": "X",
        "quantity": 10.0,
        "order_id": "o-1",
    }
    trade = FollowedTrade(**where, claimed_price=101.0, price=101.0, signal=HOSTILE, steps=steps)
    about = {"bars": "synthetic us:1 test", "rows": 60, "timeframe": "1d"}
    return Trail(
        **about,
        first="2025-01-01",
        last="2025-03-25",
        trades=3,
        counts={"both": 1, "other size": 1, "only submission": 1, "only frozen": 1},
        marks=marks,
        paths=(LegPath(leg="X", asset="A", rows=tuple(range(60)), closes=closes),),
        audit=(trade,),
    )


def robustness():
    unknown = {"per_turnover": None, "break_even_turnover": None}
    points = tuple(
        CostPoint(
            cost_bp=bp,
            total=0.05 - bp / 200.0,
            sharpe=None if bp > 10 else 0.4,
            fees=bp / 500.0,
            **unknown,
        )
        for bp in (0.1, 1.0, 5.0, 10.0, 20.0)
    )
    return Robustness(
        costs=points,
        turnover=12.5,
        break_even_bp=Measure(value=9.87),
        deflated=Measure(value=0.31),
        excess=-0.02,
        quarters=(0.01, -0.02, 0.03, 0.0),
        daily=tuple(0.001 * (n % 5 - 2) for n in range(252)),
        score=Measure(value=4.0, note="cost room 0.49"),
    )


def examined(submission, spec, executor, bars, config, scenarios=None, sensitivity=None):
    """Return what might have been found, by what the source is."""
    gates = {name: passed() for name in GATES}
    if "_Honest" in submission.source:
        found = Exhibit(code="replay", text=HOSTILE, bar=7)
        gates["leak"] = convicted(
            [found, *[Exhibit(code="x", text=f"bar {n}") for n in range(6)]], {"runs": 9}
        )
    if "raise KeyError" in submission.source:
        gates["exec"] = convicted([Exhibit(code="KeyError", text="'close'", line=12)])
        for name in ("determinism", "leak", "audit", "scenarios", "agreement"):
            gates[name] = not_run("the gate 'exec' did not hold")
    ran, honest = gates["exec"].passed, gates["leak"].passed
    report = GateReport(
        strategy=spec.id,
        semantics_sha256=spec.semantics.sha256,
        submission=submission.name,
        submission_sha256=submission.sha256,
        bars=bars.name,
        rows=60,
        tier="full",
        gates=tuple(gate.named(name) for name, gate in gates.items()),
    )
    corrected = {
        "D1": Measure(value=9.0 if honest else 1.0) if ran else not_scored("it could not be run"),
        "D2": Measure(value=10.0),
        "D3": Measure(value=10.0 if honest else 5.0),
        "D4": Measure(value=4.0) if ran and honest else not_scored("it may know the future"),
    }
    part = PaperScore(score=8.0, parts={"det": 10.0})
    none = not_scored("no peer has marked it")
    when = {"bars": 2, "first": 31, "time": "2025-02-13"}
    breach = Breach(constraint="max_exposure", worst=0.1, severity="major", logged=0, **when)
    regimes = (
        Discipline(regime="normal", decisions=10),
        Discipline(regime="gap", decisions=9, breaches=(breach,)),
        Discipline(regime="crash", decisions=0, failed=HOSTILE),
    )
    card = Scorecard(
        strategy=spec.id,
        submission=submission.name,
        submission_sha256=submission.sha256,
        gates=report,
        corrected=corrected,
        paper={"D1": none, "D2": none, "D3": Measure(value=8.0), "D4": Measure(value=8.0)},
        paper_parts={"D3": part, "D4": part},
        overall=overall(corrected),
        regimes=regimes,
        year=robustness() if ran and honest else None,
        year_reason=None if ran and honest else "a result that may know the future says nothing",
        complexity=1.5,
        data=bars.name,
    )
    traces = on_scenarios(submission, spec, executor, config)
    return Examined(scorecard=card, trail=trail() if ran else None, scenarios=traces)


def on_scenarios(submission, spec, executor, config):
    """Return the frozen decisions as traces, and none of a source that crashes."""
    if "raise KeyError" in submission.source:
        return {}
    return {one.name: SubmissionRun(cpu_s=0.0, decisions=one.expected) for one in spec.scenarios}


def systrade_run(folder, **changes):
    """Make the run: four builders, two strategies, three reviewers."""
    builders = tuple(f"scripted/builder-{name}" for name in ("gold", "mends", "peeps"))
    spec = SystradeSpec(models=(*builders, "scripted/away"), strategies=("bollinger", "double-ma"))
    spec = msgspec.structs.replace(spec, **{"reviewers": builders, **changes})
    with builders_given():
        return run_spec(spec, folder, workers=1)


@contextmanager
def builders_given():
    """Let no program run: what an examination finds is given."""
    given = {"examine_submission": examined, "run_scenarios": on_scenarios}
    with (
        mock.patch.multiple("tradeassay_programs.benchmarks.systrade.benchmark", **given),
        mock.patch(
            "tradeassay_programs.benchmarks.systrade.benchmark.SystradeProtocol.open_executor"
        ),
    ):
        yield
