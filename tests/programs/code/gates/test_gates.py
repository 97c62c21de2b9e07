"""Each gate by hand: what it lets through, what it stops, and what it says when it could not be
asked.
"""

import json
import weakref
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.programs.code import hold
from tests.programs.code.hold import semantics
from tests.programs.code.one_program import sent

from tradeassay.core.errors import UserError
from tradeassay_bench.account.shares import keep_account, realised_by
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.checks import (
    Check,
    Exhibit,
    Finding,
    convicted,
    failed,
    not_run,
    passed,
    run_checks,
)
from tradeassay_programs.code.gates import (
    GATES,
    QUESTIONS,
    GateConfig,
    GateReport,
    audit_gate,
    parse_gate,
    pass_gates,
    schema_gate,
)
from tradeassay_programs.code.lookahead.grow import LeakConfig
from tradeassay_programs.code.lookahead.trace import Trace
from tradeassay_programs.code.submission import (
    AuditLog,
    BadLog,
    StrategySpec,
    Submission,
    SubmissionRun,
    SubmissionRunner,
    TradeLog,
    decisions_of,
    market_columns,
    read_submission,
    read_trades,
    write_submission,
)
from tradeassay_programs.sandbox import TrustedCodeInProcess

SEMANTICS = semantics(tolerance=0.1)
SOURCE = """
class TradingStrategy:
    def run(self, market_data, initial_capital):
        frame = market_data["X"]
        if len(frame) < 4:
            return [], []
        t, price = frame.index[3], frame["close"].iloc[3]
        q = initial_capital / price
        trade = dict(time=t, symbol="X", side="BUY", quantity=q, price=price, signal="IN", order_id="o")
        kinds = (("signal", "s", None, 1.0), ("risk_check", "c", "s", 1.0), ("order", "o", "c", q),
                 ("position", "p", "o", q), ("pnl", "e", "p", 0.0))
        audit = [dict(kind=k, id=i, parent=p, time=t, symbol="X", value=v) for k, i, p, v in kinds]
        return [trade], audit
"""


def submission(source: str = SOURCE, **card: object) -> Submission:
    return hold.submission(source, **{"parameters": {"n": 3, "k": 2.05}, **card})


def codes(result: object) -> list[str]:
    return [finding.code for finding in result.evidence]  # type: ignore[attr-defined]


def gated(made: Submission, config: GateConfig | None = None, bars: int = 30) -> GateReport:
    spec = StrategySpec(SEMANTICS, "", ())
    feed = make_bars("us", "1d", 1, bars)
    return pass_gates(made, spec, TrustedCodeInProcess(), config, feed, trust="reference").report


def test_parse_stops_what_cannot_be_read():
    assert parse_gate(submission()).passed
    deep = Submission(source=SOURCE, card='{"a": ' + "[" * 5000 + "]" * 5000 + "}")
    with pytest.raises(UserError, match="strategy_card"):
        deep.read_card()
    for broken, code in (
        (deep, "card_no_json"),
        (Submission(source=SOURCE, card="[1"), "card_no_json"),
        (Submission(source=SOURCE, card="[1]"), "card_no_object"),
        (submission(SOURCE + "#" * 200_000), "too_long"),
        (submission("class TradingStrategy:\n  def run(self:\n"), "syntax"),
        (submission("import socket\n" + SOURCE), "forbidden_import"),
        (submission("x = 1"), "no_class"),
        (submission("class TradingStrategy:\n    pass"), "no_run"),
        (submission("class TradingStrategy:\n    def run(self): pass"), "run_arguments"),
    ):
        found = parse_gate(broken)
        assert codes(found) == [code] and (code != "syntax" or found.evidence[0].line == 2)


def test_schema_holds_the_card_against_the_frozen_semantics():
    assert schema_gate(submission(), SEMANTICS).passed
    for changed, code in (
        ({"strategy": "other"}, "strategy"),
        ({"legs": ["Y"]}, "legs"),
        ({"parameters": {"n": 3, "k": 2.2}}, "parameter_value"),
        ({"parameters": {"n": 3}}, "parameter_names"),
        ({"parameters": {"n": 3, "k": 2.0, "z": 1}}, "parameter_names"),
        ({"constraints": {"max_exposure": 2.0, "max_trades_per_bar": 1}}, "constraint"),
        ({"execution": "next-open"}, "card_schema"),
        ({"unknown": 1}, "card_schema"),
    ):
        assert codes(schema_gate(submission(**changed), SEMANTICS)) == [code]


def test_a_good_submission_passes_and_gates_without_their_needs_are_not_run():
    report = gated(submission())
    assert [gate.name for gate in report.gates] == list(GATES[:-1]), (
        "agreement is asked only with sensitivity paths"
    )
    assert report.valid
    assert report.gate("scenarios").status == "not_run" and not report.passed
    assert report.gate("audit").measures["traceable"] == 1.0
    assert msgspec.json.decode(msgspec.json.encode(report), type=GateReport) == report
    broken = gated(submission("x = 1", version=2))
    assert [gate.status for gate in broken.gates] == ["failed", "failed"] + ["not_run"] * 5
    assert all(gate.reason for gate in broken.gates)


def test_exec_names_the_line_and_bad_logs():
    raising = gated(submission(SOURCE.replace('frame["close"]', 'frame["last"]')))
    assert raising.first_failure is not None and raising.first_failure.name == "exec"
    assert raising.first_failure.evidence[0].line == 7
    for old, new, text in (
        ("time=t, symbol", "time=t + t.resolution, symbol", "no bar"),
        ('side="BUY"', 'side="HOLD"', "neither BUY nor SELL"),
        ("quantity=q", "quantity=-q", "no positive number"),
        ('symbol="X", side', 'symbol="Z", side', "not among X"),
    ):
        report = gated(submission(SOURCE.replace(old, new)))
        assert report.first_failure is not None and text in report.first_failure.reason, old
    with pytest.raises(BadLog, match="without its columns"):
        read_trades({}, np.array([], "M8[ns]"), ("X",))
    assert (
        "two logs"
        in gated(submission(SOURCE.replace("return [trade], audit", "return 5")))
        .gate("exec")
        .reason
    )


def test_determinism_and_leak_name_the_bar():
    seeded = "import numpy as np\n" + SOURCE.replace(
        "q = initial", "q = np.random.uniform(0.5, 1) * initial"
    )
    report = gated(submission(seeded))
    assert (
        report.gate("determinism").status == "failed"
        and report.gate("determinism").evidence[0].bar == 3
    )
    assert report.gate("leak").status == "not_run"
    last = SOURCE.replace(
        "q = initial_capital / price", 'q = initial_capital / frame["close"].iloc[-1]'
    )
    leaky = gated(submission(last)).gate("leak")
    assert leaky.status == "failed" and leaky.evidence[0].bar == 3


def test_long_data_is_tried_on_a_short_piece_first():
    config = GateConfig(leak=LeakConfig(run_s=1e-6))
    report = gated(submission(), config, bars=20_500)
    assert codes(report.gate("exec")) == ["too_slow"]
    assert "20,500 bars would take" in report.gate("exec").reason


def trades(**changed: Any) -> TradeLog:
    usual = {
        "row": [1, 3],
        "quantity": [10.0, -10.0],
        "signal": ["IN", "OUT"],
        "price": [10.0, 14.0],
    }
    return hold.trade_log(**{**usual, "pnl": [0.0, 40.0], "equity": [1000.0, 1040.0], **changed})


def test_the_look_ahead_check_reads_only_trades():
    bars = make_bars("us", "1d", 1, 5)
    said: dict[str, Any] = {
        f"trade/{name}": np.array(["IN"], object) for name in ("symbol", "signal", "order_id")
    }
    said |= {f"trade/{name}": np.ones(1) for name in ("quantity", "price", "pnl", "equity")}
    said |= {"trade/time": bars.times[2:3], "trade/side": np.array(["BUY"], object)}
    said |= {"trade/symbol": np.array(["X"], object), "audit/time": bars.times[2:3]}
    child: Any = SimpleNamespace(
        run=lambda job: sent(said), map=lambda jobs: [sent(said) for _ in jobs]
    )
    runner = SubmissionRunner(executor=child, source="", semantics=SEMANTICS)
    columns = market_columns(bars, ("X",))
    found = runner.run(columns)
    assert isinstance(found, Trace) and found.rows.tolist() == [2] and found.share is not None
    (whole,) = runner.logs([(columns, 1)])
    assert whole.failure is not None and "audit log" in whole.failure.text


def test_frozen_decisions_are_worked_out_once_and_go_with_their_bars():
    spec, bars = StrategySpec(SEMANTICS, "", ()), make_bars("us", "1d", 1, 30).first(20)
    assert spec.frozen_decisions(bars) is spec.frozen_decisions(bars)
    left = weakref.ref(bars)
    del bars
    assert left() is None


CLOSES = np.array([[10.0, 10.0, 12.0, 14.0, 9.0]])


def audit_log(drop: str = "", **wrong: float) -> AuditLog:
    kinds = {  # its letter, its parent's, and the true values of both trades
        "signal": ("s", None, (1.0, 0.0)),
        "risk_check": ("c", "s", (1.0, 1.0)),
        "order": ("o", "c", (10.0, -10.0)),
        "position": ("p", "o", (10.0, 0.0)),
        "pnl": ("e", "p", (0.0, 40.0)),
    }
    rows = [
        (row, kind, f"{letter}{n}", parent and f"{parent}{n}", true[n] + wrong.get(kind, 0.0))
        for n, row in enumerate((1, 3))
        for kind, (letter, parent, true) in kinds.items()
        if kind != drop
    ]
    return hold.audit_log(rows)


def judged(log: TradeLog, audit: AuditLog):
    account = keep_account(log, CLOSES, 1000.0)
    return audit_gate(
        SubmissionRun(cpu_s=0.0, trades=log, audit=audit, account=account), CLOSES, 0.95, 1e-6
    )


def test_the_account_by_hand():
    account = keep_account(trades(), CLOSES, 1000.0)
    assert account.equity.tolist() == [1000, 1000, 1020, 1040, 1040]
    assert account.position.tolist() == [10, 0] and realised_by(trades(), CLOSES).tolist() == [
        0,
        40,
    ]
    found = decisions_of(trades(), account, CLOSES, ["OUT", "IN"])
    assert found.fraction.tolist() == [0.1, 0.0] and found.signal.tolist() == [1, 0]
    turned = trades(quantity=[10.0, -15.0])
    assert realised_by(turned, CLOSES).tolist() == [0, 40]
    assert keep_account(turned, CLOSES, 1000.0).equity[-1] == 1040 + 5 * 5


def test_the_audit_follows_trades_and_finds_false_claims():
    assert judged(trades(), audit_log()).passed
    for wrong, code in (
        (judged(trades(price=[9.99, 14.0]), audit_log()), "false_price"),
        (judged(trades(price=[np.inf, 14.0]), audit_log()), "false_price"),
        (judged(trades(pnl=[0.0, 50.0]), audit_log()), "false_pnl"),
        (judged(trades(equity=[1000.0, 1050.0]), audit_log()), "false_equity"),
        (judged(trades(), audit_log(pnl=5.0)), "false_pnl"),
        (judged(trades(), audit_log(position=1.0)), "false_position"),
        (judged(trades(), audit_log(order=1.0)), "false_order"),
        (judged(trades(), audit_log(risk_check=-1.0)), "false_risk_check"),
    ):
        assert wrong.status == "failed" and codes(wrong)[0] == code
    for kind in ("signal", "risk_check", "order", "position", "pnl"):
        gate = judged(trades(), audit_log(drop=kind))
        assert gate.status == "failed" and gate.measures["traceable"] == 0.0
    nothing = hold.trade_log([], [], [], [])
    assert judged(nothing, audit_log()).measures["completeness"] is None
    unsaid = trades(pnl=[np.nan] * 2, equity=[np.nan] * 2)
    assert judged(unsaid, audit_log()).passed, "P&L and equity in the trade log may be left out"


def test_junit_and_sarif():
    shown = Exhibit(code="legs", text="a < b & \x07", file="strategy_card.json", line=4)
    found = {
        "parse": passed(),
        "schema": convicted([shown]),
        "exec": not_run("the gate 'schema' did not hold"),
    }
    names = dict.fromkeys(("semantics_sha256", "submission_sha256", "bars"), "") | {
        "tier": "strong",
        "rows": 1,
    }
    gates = tuple(finding.named(name) for name, finding in found.items())
    report = GateReport(strategy="hold", submission="mine", gates=gates, **names)
    suite = ElementTree.fromstring(report.junit())[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == (
        "3",
        "1",
        "1",
    )
    assert suite[1][0].text == "strategy_card.json:4: legs: a < b & ?"
    sarif = json.loads(report.sarif())
    assert sarif["version"] == "2.1.0"
    first, second = sarif["runs"][0]["results"]
    assert (first["ruleId"], first["level"], second["level"]) == ("schema", "error", "note")
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}


def test_a_submission_is_a_folder(tmp_path):
    write_submission(submission(), tmp_path / "mine")
    assert read_submission(tmp_path / "mine") == submission()
    with pytest.raises(UserError, match=r"strategy\.py"):
        read_submission(tmp_path)
    with pytest.raises(UserError, match="seeds"):
        GateConfig(seeds=(1,))


def test_a_check_is_asked_when_what_it_needs_has_not_failed():
    asked: list[str] = []

    def answers(name: str, finding: Finding):
        return lambda subject: asked.append(f"{name} of {subject}") or finding

    checks = (
        Check("one", "?", answers("one", passed())),
        Check("two", "?", answers("two", not_run("nobody could tell")), {"one": "one failed"}),
        Check("three", "?", answers("three", failed("no", "E")), {"two": "two failed"}),
        Check(
            "four", "?", answers("four", passed()), {"one": "one failed", "three": "three failed"}
        ),
        Check("five", "?", answers("five", passed()), {"four": "four was not asked"}),
    )
    found = run_checks(checks, "it")
    assert asked == ["one of it", "two of it", "three of it"]
    assert [one.status for one in found.values()] == [
        "passed",
        "not_run",
        "failed",
        "not_reached",
        "not_reached",
    ]
    assert [one.holds for one in found.values()] == [True, None, False, None, None]
    assert found["four"].reason == "three failed" and found["five"].reason == "four was not asked"
    assert tuple(QUESTIONS) == GATES
