"""The command line, through its front door: exit status, stdout for results, stderr for prose."""

import json
import re
from math import comb
from pathlib import Path
from typing import Any

import pytest

from tradeassay.cli import main
from tradeassay.cli._group import _COMMANDS, root

SMALL = ["daily-crypto-v1", "-a", "cash", "-a", "equal-weight", "--first", "2022-12-01", "--last", "2023-01-10"]


@pytest.fixture
def small_run(place: Path) -> Path:
    assert main(["run", *SMALL, "--slug", "small", "--workers", "1"]) == 0
    return place / "runs" / "small"


def test_every_command_has_help_and_a_true_line_in_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    import click

    for name in _COMMANDS:
        assert main([name, "--help"]) == 0
        command = root.get_command(click.Context(root), name)
        assert command is not None
        assert command.name == name
    shown = capsys.readouterr().out
    assert shown.count("Usage: tradeassay ") == len(_COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from tradeassay import __version__

    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["demp"], 2, "did you mean demo"),
        (["run"], 2, "Missing argument"),
        (["run", "daily-us-v1", "--sedes", "3"], 2, "--seeds"),
        (["run", "daily-us-v9"], 2, "did you mean daily-us-v1"),
        (["run", "daily-us-v1", "-a", "momentum"], 2, "did you mean momentum-12-1"),
        (["run", "daily-us-v1", "-a", "momentum-12-1:top=5"], 2, "has no parameter 'top'"),
        (["run", "daily-us-v1", "-a", "random:k"], 2, "write name:key=value"),
        (["run", "daily-us-v1", "-a", "mine/mine.py"], 2, "does not say which class (-a mine/mine.py:CLASS)"),
        (["run", "daily-us-v1", "-m", "scripted/sensible,openai/gpt-5"], 2, "give each its own -m"),
        (["arena", "health", "--db", "gone.db"], 2, "there is no database 'gone.db'"),
        (["arena", "amend", "bar", "--season", "spring", "--db", "gone.db"], 2, "there is no database 'gone.db'"),
        (["assay", "gone.csv", "--against", "market.csv"], 2, "no file gone.csv"),
        (["run", "daily-us-v1", "-a", "cash", "--first", "yesterday"], 2, "'yesterday' is not a date"),
        (["run", "daily-us-v1", "-a", "cash", "--dataset", "synthetic/mars:1"], 2, "mars"),
        (["run", "daily-us-v1", "-a", "cash", "--seeds", "1000000000"], 2, "ask for 1 to 10,000"),
        (["run", "daily-us-v1", "-a", "cash", "--seeds", "0"], 2, "0 seeds cannot be run"),
        (["run", "daily-us-v1", "-a", "cash", "--runs", "/dev/null/x"], 2, "Not a directory"),
        (["run", "missing.toml"], 2, "cannot read missing.toml"),
        (["verify", "nothing"], 2, "no recorded run 'nothing'"),
        (["resume", "nothing"], 2, "there are no runs in runs"),
        (["data", "get", "fakestock"], 2, "did you mean fakestockdata"),
        (["data", "import", "no-such-folder"], 2, "does not exist"),
        (["data", "doctor", "no-such-set"], 2, "no dataset 'no-such-set'"),
        (["data", "get", "yahoo", "--name", "x"], 2, "no source 'yahoo'"),
        (["benchmarks", "stockbrench"], 2, "no benchmark"),
    ],
)
def test_bad_input_gets_one_line_with_the_mend(
    argv: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    assert main(argv) == status
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert len([line for line in shown.err.splitlines() if line.lower().startswith("error")]) == 1
    assert not (place / "runs").exists(), "a refused command leaves nothing behind"


@pytest.mark.slow_for("command3")
@pytest.mark.parametrize("command", [["agents"], ["benchmarks"], ["data", "list"], ["doctor"]])
def test_listings_are_tables_for_people_and_json_for_programs(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    assert capsys.readouterr().out.strip()
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_benchmark_shows_its_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "daily-ashare-v1"]) == 0
    shown = capsys.readouterr().out
    assert "T+1" in shown
    assert "multiples of 100" in shown


def test_a_run_from_plan_to_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--plan", *SMALL, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["episodes"] == 2
    assert main(["run", *SMALL, "--slug", "small", "--workers", "1", "--json"]) == 0
    shown = capsys.readouterr()
    assert {row["agent"] for row in json.loads(shown.out)["agents"]} == {"cash", "equal-weight"}
    assert "runs/small/report.html" in shown.err
    assert (place / "runs/small/report.html").read_text().startswith("<!doctype html>")
    assert main(["verify", "small"]) == 0
    assert main(["report", "small", "-o", "elsewhere.html"]) == 0
    assert (place / "elsewhere.html").stat().st_size > 10_000
    assert "equal-weight" in capsys.readouterr().out


def test_plays_of_several_seeds_say_how_reliable_an_agent_is(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Terminal, page and JSON say the same, and the JSON is what the journals say when counted by hand."""
    asked = ["run", *SMALL[:1], "-a", "random", "-a", "cash", *SMALL[5:], "--workers", "1"]
    assert main([*asked, "--seeds", "4", "--slug", "four"]) == 0
    assert main([*asked, "--seeds", "2", "--slug", "two"]) == 0
    capsys.readouterr()
    assert main(["report", "four", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    results = {
        name: [
            one["measures"]["cumulative_return"]["value"]
            for one in shown["scores"]["episodes"]
            if one["agent"] == name
        ]
        for name in ("random", "cash", "equal-weight")
    }
    ahead = sum(one > results["equal-weight"][0] for one in results["random"])
    found = shown["reliability"]["passes"]["random"]["seed"]
    assert [one["value"] for one in found] == pytest.approx([comb(ahead, k) / comb(4, k) for k in (1, 2, 3, 4)])
    assert shown["reliability"]["spread"]["window"]["reason"] == "there is one window"
    assert main(["report", "four"]) == 0
    assert f"random ends ahead of its baseline in {ahead / 4:.1%} of plays" in capsys.readouterr().out
    assert "How reliable" in (place / "runs/four/report.html").read_text()
    assert main(["compare", "four", "two", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)["reliability"]
    assert both["levels"] == {"model": 2, "wording": 2, "window": 1, "seed": 2} and both["left_out"] == 4


def test_the_same_command_again_changes_nothing(small_run: Path) -> None:
    before = (small_run / "scores.json").read_bytes()
    assert main(["run", *SMALL, "--slug", "small", "--workers", "1"]) == 0
    assert main(["resume", "small", "--workers", "1"]) == 0
    assert (small_run / "scores.json").read_bytes() == before


def test_another_spec_under_the_same_slug_is_refused(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *SMALL, "-a", "random", "--slug", "small"]) == 2
    assert "small" in capsys.readouterr().err


def test_verify_names_a_forged_fill_and_exits_with_1(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = next((small_run / "episodes").glob("*equal-weight*/events.jsonl"))
    text = journal.read_text()
    price = re.search(r'"price":([0-9.]+)', text)
    assert price is not None
    journal.write_text(text.replace(price[0], f'"price":{float(price[1]) * 0.9}', 1))
    assert main(["verify", "small"]) == 1
    assert "equal-weight" in capsys.readouterr().out


@pytest.mark.slow
def test_compare_two_runs(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *SMALL, "--slug", "other", "--workers", "1", "--dataset", "synthetic/crypto:8"]) == 0
    capsys.readouterr()
    assert main(["compare", "small", "other"]) == 0
    assert "data differ" in capsys.readouterr().out
    assert main(["compare", "small", "small", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_spec_file_runs_and_takes_no_second_opinion(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "grid.toml").write_text(
        'benchmarks = ["daily-crypto-v1"]\nagents = ["cash"]\n'
        '[window]\nfirst = "2022-12-01"\nlast = "2022-12-20"\n'
    )
    assert main(["run", "grid.toml", "--workers", "1"]) == 0
    assert (place / "runs/grid/scores.json").exists()
    assert main(["run", "grid.toml", "-a", "random"]) == 2
    assert "already says what to run" in capsys.readouterr().err


def test_an_imported_folder_is_examined_stored_and_traded(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "prices"
    folder.mkdir()
    days = ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]
    for symbol, start in (("AAA", 10.0), ("BBB", 20.0)):
        rows = [
            f"{day},{start + i},{start + i + 1},{start + i - 1},{start + i + 0.5},100000"
            for i, day in enumerate(days)
        ]
        (folder / f"{symbol}.csv").write_text("Date,Open,High,Low,Close,Volume\n" + "\n".join(rows) + "\n")
    assert main(["data", "doctor", "prices"]) == 0
    assert main(["data", "import", "prices", "--name", "mine", "--replace"]) == 0
    assert capsys.readouterr().out.strip().endswith("mine")
    window = ["--first", days[0], "--last", days[-1]]
    assert (
        main(["run", "daily-us-real-v1", "-a", "equal-weight", "--dataset", "mine", *window, "--workers", "1"])
        == 0
    )

    (folder / "AAA.csv").write_text("Date,Open,High,Low,Close,Volume\n2024-01-02,10,9,11,10,5\n")
    assert main(["data", "doctor", "prices"]) == 1
    assert "AAA.csv:2" in capsys.readouterr().out
    assert main(["data", "import", "prices", "--name", "broken"]) == 2
    assert "AAA.csv:2" in capsys.readouterr().err
    assert main(["data", "import", "prices", "--name", "broken", "--allow-faults", "--replace"]) == 0
    assert "known bias" in capsys.readouterr().err


def test_the_doctor_never_dies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tradeassay.cli import doctor

    def torn() -> Any:
        raise ConnectionResetError("the sandbox hung up")
        yield

    monkeypatch.setattr(doctor, "_kernel", torn)
    monkeypatch.setattr(doctor, "_plugins", torn)
    monkeypatch.setitem(doctor._PACKAGES, "inspect_ai", "nowhere-to-be-found")
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert "could not be examined: ConnectionResetError" in shown.out
    assert "unknown version" in shown.out
    assert "Traceback" not in shown.out + shown.err
