"""``code run systrade-v1``, ``code eval FOLDER --spec``, ``code strategies``: what they print and refuse."""

import csv
import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tradeassay.cli import main
from tradeassay.code.gates import GateConfig
from tradeassay.code.scores import ScoreConfig
from tradeassay.sandbox import ask_kernel, open_executor, refusal

QUICK = ScoreConfig(
    gates=GateConfig(
        seeds=(42, 123),
    ),
    stresses=(),
)
needs_walls = pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)


def test_strategies_are_listed_shown_and_written(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    assert main(["code", "strategies", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 24 and listed[0]["id"] == "bollinger" and len(listed[0]["sha256"]) == 64
    assert main(["code", "strategies"]) == 0 and "Turtle breakout" in capsys.readouterr().out
    assert main(["code", "strategies", "turtle"]) == 0
    assert capsys.readouterr().out.startswith("#")
    assert main(["code", "strategies", "turtle", "--semantics"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "turtle"
    assert main(["code", "strategies", "turtle", "--reference", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": "mine", "strategy": "turtle"}
    assert (place / "mine/strategy.py").is_file() and (place / "mine/strategy_card.json").is_file()
    assert main(["code", "strategies", "turtle", "--reference", "mine"]) == 2
    assert "is there already" in capsys.readouterr().err
    for what in ("card", "semantics"):
        assert main(["code", "strategies", "--schema", what]) == 0
        assert "$defs" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
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
def test_bad_input_gets_one_line_with_the_mend(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    (place / "mine").mkdir()
    assert main(["code", *argv]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err and len(shown.err.strip().splitlines()) == 1
    assert not (place / "runs").exists()


def test_a_run_without_programs_is_reported_verified_and_resumed(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    """The builder forgets its program at first, so one iteration needs no sandbox."""
    argv = ["code", "run", "systrade-v1", "-m", "scripted/builder-mends", "--strategy", "bollinger"]
    argv += ["--iterations", "1", "--slug", "forgot"]
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "bollinger__s0: nothing handed in" in shown.err
    assert "scripted/builder-mends" in shown.out and (place / "runs/forgot/report.html").is_file()
    assert main(["verify", "forgot"]) == 0 and main(["report", "forgot"]) == 0 and main(["resume", "forgot"]) == 0
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["valid"]["value"] == 0.0
    assert main([*argv[:-4], "--iterations", "2", "--slug", "forgot"]) == 2
    assert "holds another run: its iterations differ" in capsys.readouterr().err


@pytest.mark.slow
@needs_walls
def test_a_folder_of_ones_own_passes(
    capsys: pytest.CaptureFixture[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tradeassay.benchmarks.systrade import examine as systrade_examine

    monkeypatch.setattr(systrade_examine, "ScoreConfig", lambda: QUICK)
    monkeypatch.setattr(
        systrade_examine, "open_executor", lambda kind, *, config, workers: open_executor(kind, config=config)
    )
    assert main(["code", "strategies", "double-ma", "--reference", "mine"]) == 0
    argv = ["code", "eval", "mine", "--spec", "double-ma"]
    capsys.readouterr()
    assert main([*argv, "--out", "out/card.html", "--bar-log", "out/bars.csv", "--years", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    over, alone = found["years"], found["scorecard"]["sound"]["D4"]["value"]
    assert over["n"] == 3 and over["low"] <= over["value"] <= over["high"] and over["value"] != alone
    assert found["passed"] and found["scorecard"]["sound"]["D1"]["value"] == 10.0
    assert "All 8 gates held" in (place / "out/card.html").read_text()
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
    for since, kind, status in (("mine", "drift", 1), ("patched", "unchanged", 1)):
        capsys.readouterr()
        assert main(["code", "eval", "patched", "--spec", "double-ma", "--since", since, "--json"]) == status
        assert json.loads(capsys.readouterr().out)["drift"]["kind"] == kind


def test_a_failed_gate_is_an_exit_status_and_a_report_for_the_build(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    """A program that cannot be parsed is never run, so no sandbox is opened."""
    assert main(["code", "strategies", "double-ma", "--reference", "mine"]) == 0
    argv = ["code", "eval", "mine", "--spec", "double-ma"]
    capsys.readouterr()
    card = place / "mine/strategy_card.json"
    card.write_text(card.read_text().replace('"double-ma"', '"turtle"'))
    (place / "mine/strategy.py").write_text("class TradingStrategy\n")
    assert main([*argv, "--junit", "out/gates.xml", "--sarif", "out/gates.sarif"]) == 1
    shown = capsys.readouterr()
    assert "not all gates held" in shown.out and "written: out/gates.sarif" in shown.err
    suite = ElementTree.parse(place / "out/gates.xml").getroot()[0]
    assert int(suite.attrib["failures"]) >= 1 and int(suite.attrib["tests"]) == 7
    sarif = json.loads((place / "out/gates.sarif").read_text())
    assert sarif["version"] == "2.1.0" and {one["level"] for one in sarif["runs"][0]["results"]} >= {"error"}
    assert main([*argv, "--junit", "mine/strategy.py/x.xml"]) == 2
    assert "cannot be written" in capsys.readouterr().err
