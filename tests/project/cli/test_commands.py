"""The command line, through its front door: exit status, stdout for results, stderr for prose."""

import io
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import comb
from pathlib import Path

import click
import numpy as np
import pytest
from closed import modes_bind

import tradeassay
import tradeassay_bench
from tradeassay.cli import main, root
from tradeassay.cli._group import root_commands
from tradeassay.cli._output import say
from tradeassay.core import __version__
from tradeassay.core.errors import UserError
from tradeassay.core.machine import doctor_checks
from tradeassay_bench.cli import doctor
from tradeassay_bench.report import write_html
from tradeassay_bench.report.verifying import check_beside
from tradeassay_bench.runs import load_run
from tradeassay_bench.runs.verify.report import verify

ROOT = Path(__file__).parents[3]
WINDOW = "--first 2022-12-01 --last 2023-01-10"
SMALL = f"daily-crypto-v1 -a cash -a equal-weight {WINDOW}"


@pytest.fixture(scope="module")
def small(tmp_path_factory, data_home):
    """A run that was played once, under the path that every test gives it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(data_home))
        patch.chdir(folder := tmp_path_factory.mktemp("small"))
        assert main(f"run {SMALL} --name small --workers 1".split()) == 0
    return folder / "runs" / "small"


@pytest.fixture
def small_run(small, place):
    return shutil.copytree(small, place / "runs" / "small")


@pytest.mark.parametrize("closed", ["shut", "shut/manifest.json", "shut/scores.json"])
def test_a_site_leaves_out_what_is_closed_and_shows_the_others(given, small_run, closed):
    runs = small_run.parent
    shutil.copytree(small_run, runs / "shut")
    (runs / closed).chmod(0)
    try:
        with modes_bind():
            told = given("site runs", 1).err
    finally:
        (runs / closed).chmod(0o755)
    assert f"skipped shut: runs/{closed} cannot be read: Permission denied" in told
    assert "Traceback" not in told and "1 run)" in told


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("shut", "runs/shut is a broken link"),
        ("shut/manifest.json", "runs/shut/manifest.json is a broken link"),
        ("shut/episodes", "runs/shut/episodes is neither a file nor a folder"),
    ],
)
@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_site_leaves_out_what_is_only_a_link_to_nothing(given, small_run, lost, said, target):
    link = small_run.parent / lost
    shutil.copytree(small_run, small_run.parent / "shut")
    shutil.rmtree(link) if link.is_dir() else link.unlink()
    link.symlink_to("/nowhere/at/all" if target == "nowhere" else link)
    told = given("site runs", 1).err
    assert f"skipped shut: {said}\n" in told and told.count("shut") == 2 and "1 run)" in told


def test_a_site_leaves_out_a_run_with_a_folder_where_a_file_belongs(given, small_run):
    shutil.copytree(small_run, small_run.parent / "shut")
    events = next((small_run.parent / "shut").glob("episodes/*/events.jsonl"))
    events.unlink()
    events.mkdir()
    told = given("site runs", 1).err
    assert (
        re.search(r"skipped shut: \S+/events.jsonl cannot be read: Is a directory\n", told)
        and "1 run)" in told
    )


def test_every_command_has_help_and_a_true_line_in_the_overview(capsys, given):
    for name in root_commands():
        assert main([name, "--help"]) == 0
        assert root.get_command(click.Context(root), name).name == name
    assert capsys.readouterr().out.count("Usage: tradeassay ") == len(root_commands())
    assert __version__ in given("--version").out
    assert "RUN | FILE.csv | self-test" in given("assay", 2).err


@pytest.mark.parametrize(
    ("command", "slow"),
    [
        # Commands of other packages are found through their entry points: no command itself is imported.
        ("--help", ("tradeassay_bench.cli.runs", "json", "msgspec", "numpy")),
        ("--version", ("importlib.metadata", "json", "socket", "msgspec", "numpy")),
        ("benchmarks", ("tradeassay_bench.agents", "tradeassay_programs.sandbox", "pandas")),
        ("agents", ("pyarrow.compute", "pyarrow.parquet", "pandas")),
    ],
)
def test_a_command_that_shows_something_loads_nothing_slow_that_it_does_not_need(command, slow):
    code = (
        f"import sys; from tradeassay.cli import main; main([{command!r}]); "
        f"print(*[name for name in {slow!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


REFUSED = {
    "demp": "did you mean demo",
    "run": "Missing argument",
    "run daily-us-v1 --sedes 3": "--seeds",
    "run daily-us-v9": "did you mean daily-us-v1",
    "run daily-us-v1 -a momentum": "did you mean momentum-12-1",
    "run daily-us-v1 -a momentum-12-1:top=5": "has no parameter 'top'",
    "run daily-us-v1 -a cash --window W1": "--first and --last, or after-DAY",
    "run daily-us-v1 -a random:k": "write name:key=value",
    "run daily-us-v1 -a mine/mine.py": "has no class name (write mine/mine.py:CLASS)",
    "run daily-us-v1 -m scripted/sensible,openai/gpt-5": "use one -m per model",
    "run ktdfin-v1 -m scripted/sensible -p mask": "write KEY=VALUE",
    "run ktdfin-v1 -m scripted/sensible -p convention=paper": "follows the convention 'corrected'",
    "run ktdfin-v1 -m scripted/sensible --recordings nowhere": "no recorded run 'nowhere'",
    "arena health --db gone.db": "there is no database 'gone.db'",
    "arena amend bar --season spring --db gone.db": "there is no database 'gone.db'",
    "assay gone.csv --benchmark market.csv": "no file gone.csv",
    "code eval x.py --dataset synthetic/us:7 --symbols A,B": "once for each symbol",
    "run daily-us-v1 -a cash --first yesterday": "'yesterday' is not a date",
    "run daily-us-v1 -a cash --first 2031-01-01": "2023-12-22",
    "run daily-us-v1 -a cash --last 1999-01-01": "2022-01-10",
    "run daily-us-v1 -a cash --dataset synthetic/mars:1": "mars",
    "run daily-us-v1 -a cash --seeds 1000000000": "use 1 to 10,000",
    "run daily-us-v1 -a cash --seeds 0": "0 is not a valid number of seeds",
    "run daily-us-v1 -a cash --runs /dev/null/x": "Not a directory",
    "run missing.toml": "cannot read missing.toml",
    "verify nothing": "no recorded run 'nothing'",
    "resume nothing": "there are no runs in runs",
    "compare one": "two or more",
    "data get fakestock": "did you mean fakestockdata",
    "data get yahoo --name x": "no source 'yahoo'",
    "data import no-such-folder": "does not exist",
    "data doctor no-such-set": "no dataset 'no-such-set'",
    "leak-test cash --suite quantcode-v1": "is for models that write programs",
    "leak-test nobody/none": "nobody/none cannot be opened",
    "run quantcode-v1 -m scripted/coder-sma": "tradeassay code run quantcode-v1",
    "benchmarks ama": "is played in the arena (tradeassay arena run",
    "benchmarks stockbrench": "no benchmark",
    "benchmarks --needs synthetic/us:7": "--needs is only valid with one benchmark",
    "benchmarks stockbench-v1 --needs nowhere": "nowhere",
    "code run ktdfin -m scripted/coder-sma": "not a programming benchmark (tradeassay run ktdfin)",
    "memory probe --mask bright --hardening rebased": "or --hardening plain)",
    "code tasks --family all --draw 5 --seed 9999999999": "(--draw 10 --seed 1)",
    "models --get smollm": "no local model 'smollm' (did you mean smollm2? known: "
    "qwen2.5-coder-1.5b, smollm2)",
    "models --get local/smollm": "no local model 'smollm' (did you mean smollm2? known: ",
}


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_gets_one_line_with_the_mend(line, given, place):
    shown = given(line, 2)
    assert REFUSED[line] in shown.err
    assert "Traceback" not in shown.err and shown.out == ""
    assert len([one for one in shown.err.splitlines() if one.lower().startswith("error")]) == 1
    assert not (place / "runs").exists(), "a refused command leaves nothing behind"


@pytest.mark.slow_for("doctor")
@pytest.mark.parametrize("command", ["agents", "benchmarks", "data list", "doctor"])
def test_listings_are_tables_for_people_and_json_for_programs(command, given, told):
    assert given(command).out.strip()
    assert told(command)


def test_what_is_found_in_part_or_cannot_be_kept_is_said(
    small_run, data_home, place, given, monkeypatch
):
    home = place / "home"
    home.mkdir()
    (home / "store").symlink_to(data_home / "store")
    (small_run / "assay.json").mkdir()
    monkeypatch.setenv("TRADEASSAY_HOME", str(home))
    assert "is verified" in given("verify small --workers 1").out
    shown = given("assay small --portfolios 0")
    assert (
        "equal-weight" in shown.out and "assay.json cannot be written: Is a directory" in shown.err
    )
    assert (place / "small-assay.html").is_file()
    next(small_run.glob("episodes/*cash*/events.jsonl")).unlink()
    assert "decisions (in part)" in given("verify small", 1).out


@pytest.mark.journey
def test_a_run_whose_streams_are_closed_is_a_run(given):
    """The next file that is opened must not become what workers print to."""
    words = [sys.executable, "-m", "tradeassay", *f"run {SMALL} --name closed --workers 2".split()]
    assert (
        subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *words], check=False).returncode == 0
    )
    assert "is verified" in given("verify closed --workers 1").out


def test_a_run_from_plan_to_report_by_rules_that_are_shown(place, given, told):
    assert told(f"run --plan {SMALL}")["episodes"] == 2
    shown = given(f"run {SMALL} --name small --workers 2 --json")
    assert {row["agent"] for row in json.loads(shown.out)["agents"]} == {"cash", "equal-weight"}
    assert "runs/small/report.html" in shown.err
    assert (place / "runs/small/report.html").read_text().startswith("<!doctype html>")
    given("verify small --workers 2")
    assert "equal-weight" in given("report small -o elsewhere.html").out
    assert (place / "elsewhere.html").stat().st_size > 10_000
    shown = given("benchmarks daily-ashare-v1").out
    assert "T+1" in shown and "multiples of 100" in shown


@pytest.mark.journey
def test_a_page_names_its_run_where_it_lies(place, given):
    given(f"run {SMALL} --name small --runs elsewhere --workers 1")
    page = (place / "elsewhere/small/report.html").read_text()
    printed = dict.fromkeys(re.findall(r"<code[^>]*>tradeassay ([^<]+)</code>", page))
    assert {"verify elsewhere/small", "assay elsewhere/small"} <= set(printed)
    for command in printed:
        given(command)
    # A run may be moved, and is told then what its page says; its page cannot send readers to another run.
    (place / "elsewhere/small/report.html").write_text(page)
    (place / "elsewhere/small").rename(place / "moved")
    assert "tells its readers to verify elsewhere/small, which is not" in given("verify moved").err
    for name in ("verify", "assay"):
        other = page.replace(
            f">tradeassay {name} elsewhere/small<", f">tradeassay {name} runs/other<"
        )
        (place / "moved/report.html").write_text(other)
        assert (
            other != page
            and "report.html does not match the record" in given("verify moved", 1).out
        )


def exchanged(page, one, other):
    return page.replace(f">{one}<", ">\0<").replace(f">{other}<", f">{one}<").replace("\0", other)


def test_another_version_may_word_a_page_and_not_exchange_what_it_tells(small_run):
    run = load_run(small_run)
    found, page = verify(run.folder, workers=1), run.folder / "report.html"
    written = page.read_text()

    def checked(text, made=run, writer="0.0.1"):
        page.write_text(re.sub(r'(?<=content="tradeassay )[^"]+', writer, text))
        return next(one for one in check_beside(made, found).claims if one.claim == "page")

    worded = written.replace("Skip to", "Jump to")
    assert (
        checked(worded).outcome == "cannot be checked"
        and "may display anything" not in checked(worded).why
    )
    scripted = worded.replace("</body>", "<script>document.title = 'audited'</script></body>")
    assert "its scripts or styles differ, and may display anything" in checked(scripted).why
    for forged in (
        exchanged(written, "cash", "equal-weight"),
        written.replace(">baseline</span>", ">skill</span>"),
        written.replace(">baseline</span>", ">audited</span>"),
    ):
        assert forged != written and checked(forged).outcome == "contradicted"
    # Whoever made the run: a page of this version is what this version writes.
    older = load_run(run.folder)
    older.manifest.versions.packages["tradeassay"] = "0.0.1"
    again = write_html(older, page).read_text()
    assert checked(again, older, __version__).outcome == "re-derived"
    forged = again.replace("Skip to", "Jump to")
    assert checked(forged, older, __version__).outcome == "contradicted"
    assert checked(forged.replace("0.0%", "9.0%"), older).outcome == "cannot be checked"


def test_plays_of_several_seeds_say_how_reliable_an_agent_is(place, given, told):
    """Terminal, page and JSON say the same, and the JSON is what the journals say when counted
    by hand.
    """
    asked = f"run daily-crypto-v1 -a random -a cash {WINDOW} --workers 1"
    given(f"{asked} --seeds 4 --name four")
    given(f"{asked} --seeds 2 --name two")
    shown = told("report four")
    results = {"random": [], "cash": [], "equal-weight": []}
    for one in shown["scores"]["episodes"]:
        results[one["agent"]].append(one["measures"]["cumulative_return"]["value"])
    ahead = sum(one > results["equal-weight"][0] for one in results["random"])
    found = shown["reliability"]["passes"]["random"]["seed"]
    assert [one["value"] for one in found] == pytest.approx(
        [comb(ahead, k) / comb(4, k) for k in (1, 2, 3, 4)]
    )
    assert shown["reliability"]["spread"]["window"]["reason"] == "there is one window"
    assert (
        f"random ends ahead of its baseline in {ahead / 4:.1%} of plays" in given("report four").out
    )
    assert "How reliable" in (place / "runs/four/report.html").read_text()
    both = told("compare four two")["reliability"]
    assert (
        both["levels"] == {"model": 2, "wording": 2, "window": 1, "seed": 2}
        and both["left_out"] == 4
    )


def test_a_stop_while_the_page_is_written_says_that_the_run_is_complete(given, monkeypatch):
    def stop(*_args, **_given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tradeassay_bench.report.write_html", stop)
        said = given(f"run {SMALL} --name late --workers 1", 130).err
    assert said.strip().endswith(
        "stopped; the run is complete, show it with: tradeassay report runs/late"
    )
    assert "report: runs/late/report.html" in given("report late").err


def test_a_screen_that_is_not_in_unicode_keeps_the_minus(place, monkeypatch):
    rows = [
        f"2024-01-{day:02},{-0.01 if day % 2 else 0.004}" for day in (*range(2, 6), *range(8, 13))
    ]
    (place / "mine.csv").write_text("date,return\n" + "\n".join(rows) + "\n")
    shown = {}
    for encoding in ("utf-8", "latin-1"):
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        assert main(["assay", "mine.csv"]) == 0
        sys.stdout.flush()
        shown[encoding] = sys.stdout.buffer.getvalue().decode(encoding)
    assert "\N{MINUS SIGN}" in shown["utf-8"]
    numbers = re.findall(r"[-+]?[0-9.]+%", shown["utf-8"].replace("\N{MINUS SIGN}", "-"))
    assert re.findall(r"[-+]?[0-9.]+%", shown["latin-1"]) == numbers


@pytest.mark.slow
def test_compare_two_runs(small_run, given, told):
    given(f"run {SMALL} --name other --workers 1 --dataset synthetic/crypto:8")
    assert "data differ" in given("compare small other").out
    assert told("compare small small")


def test_a_spec_file_runs_and_takes_no_second_opinion(place, given):
    (place / "grid.toml").write_text(
        'benchmarks = ["daily-crypto-v1"]\nagents = ["cash"]\n'
        '[window]\nfirst = "2022-12-01"\nlast = "2022-12-20"\n'
    )
    given("run grid.toml --workers 1")
    assert (place / "runs/grid/scores.json").exists()
    assert "already describes the run" in given("run grid.toml -a random", 2).err


def test_an_imported_folder_is_examined_stored_and_traded(place, given):
    (place / "prices").mkdir()
    head = "Date,Open,High,Low,Close,Volume\n"
    days = ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]
    for symbol, start in (("AAA", 10), ("BBB", 20)):
        rows = [
            f"{day},{k},{k + 1},{k - 1},{k + 0.5},100000\n" for k, day in enumerate(days, start)
        ]
        (place / "prices" / f"{symbol}.csv").write_text(head + "".join(rows))
    given("data doctor prices")
    assert given("data import prices --name mine --replace").out.strip().endswith("mine")
    traded = f"-a equal-weight --dataset mine --first {days[0]} --last {days[-1]} --workers 1"
    given(f"run daily-us-real-v1 {traded} --name own")
    shown = given("report own --format csv").out
    assert (
        "mine by the rules of daily-us-real-v1" in shown
        and "2007-2009" not in shown.split("note")[0]
    )
    mend = "--index none --universe all"
    assert mend in given(f"run stockbench-v1 {traded} --index none", 2).err
    given(f"run stockbench-v1 {traded} {mend}")

    (place / "prices/AAA.csv").write_text(f"{head}2024-01-02,10,9,11,10,5\n")
    assert "AAA.csv:2" in given("data doctor prices", 1).out
    assert "AAA.csv:2" in given("data import prices --name broken", 2).err
    assert "known bias" in given("data import prices --name broken --allow-faults --replace").err


def test_the_doctor_never_dies(monkeypatch, given):
    def torn():
        raise ConnectionResetError("the sandbox hung up")
        yield

    monkeypatch.setitem(doctor.PACKAGES, "inspect_ai", "nowhere-to-be-found")
    with doctor_checks.knowing({"torn": torn}):
        shown = given("doctor", 1)
    assert "could not be checked: ConnectionResetError" in shown.out
    assert "unknown version" in shown.out
    assert "Traceback" not in shown.out + shown.err


def test_the_doctor_names_keys_and_shows_none(monkeypatch, told):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890abcdefghij")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    found = {one["part"]: one for one in told("doctor", 0)}
    assert found["OPENAI_API_KEY"] == {"part": "OPENAI_API_KEY", "state": "ok", "finding": "is set"}
    assert found["ANTHROPIC_API_KEY"]["state"] == "absent"
    assert found["sandbox"]["finding"].partition(":")[0] in ("strong", "standard")
    assert not [part for part in found if part.startswith("network")], (
        "nothing is asked without --network"
    )


def test_the_doctor_asks_whether_a_server_answers(monkeypatch, told):
    monkeypatch.setenv("NO_PROXY", "*")
    for provider in ("OPENAI", "ANTHROPIC", "GOOGLE"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, port in (("HERE", server.server_port), ("GONE", closed)):
            monkeypatch.setenv(f"{name}_API_KEY", "a7Bq2Zx9Kd4Wm1Pv")
            monkeypatch.setenv(f"{name}_BASE_URL", f"http://127.0.0.1:{port}/v1")
        states = {one["part"]: one["state"] for one in told("doctor --network", 1)}
        server.shutdown()
    assert states["network here"] == "ok" and states["network gone"] == "broken"


def test_what_is_quoted_does_not_steer_the_terminal(capsys):
    say("it said: \x1b[2J\x00, é\n\tand 90\xa0%")
    assert capsys.readouterr().err == "it said: ?[2J?, é\n\tand 90\xa0%\n"


def test_a_leak_test_states_one_bound(told, given):
    """The table's bound is the one of the sentence below it."""
    shown = given("leak-test momentum-12-1 --sessions 20")
    bounds = set(re.findall(r"\b0 ?% +([0-9.]+ ?%)", shown.out))
    [bound] = re.findall(r"leaks on more than ([0-9.]+ ?%) of days", shown.err)
    assert bounds == {bound} == {"14.0 %"}, (
        "20 sessions without a leak exclude more than 1 - 0.05 ** (1 / 20)"
    )


RETURNS = "date,return\n" + "".join(
    f"2023-{k // 28 + 1:02d}-{k % 28 + 1:02d},{k % 7 - 3}e-3\n" for k in range(120)
)


@pytest.mark.parametrize(
    ("line", "says"),
    {
        "power returns.csv": "returns.csv is a file, not a recorded run",
        "compare returns.csv small": "returns.csv is a file, not a recorded run",
        "compare small returns.csv": "returns.csv is a file, not a recorded run",
        "report returns.csv": "returns.csv is a file, not a recorded run",
        "power gone.csv": "no file gone.csv",
        "power folder": "folder does not contain a run",
        "assay returns.csv --benchmark small": "'small' is a recorded run, not a benchmark",
        "assay returns.csv --benchmark runs/small": "'runs/small' is a recorded run, not a "
        "benchmark",
        "assay returns.csv --benchmark folder": "'folder' is a folder, not a benchmark",
        "assay returns.csv --benchmark gone.csv": "no file gone.csv",
        "assay returns.csv --factors folder": "'folder' is a folder, not a table of returns",
        "assay returns.csv --cash runs/small": "'runs/small' is a folder, not a table of returns",
        "assay returns.csv --factors gone.csv": "no file gone.csv",
        "assay small --benchmark sp500": "--benchmark is valid only with a table, and small is a "
        "run",
        "assay small --benchmark returns.csv": "--benchmark is valid only with a table, and small "
        "is a run",
        "assay --benchmark returns.csv small": "--benchmark is valid only with a table, and small "
        "is a run",
        "assay gone --benchmark sp500": "no recorded run 'gone'",
        "assay gone.csv --leak-test": "no file gone.csv",
        "assay returns.csv --leak-test": "--leak-test is valid only with a run, and returns.csv is "
        "a table",
    }.items(),
)
def test_an_error_names_what_is_there(line, says, small_run, place, given):
    """A table, a run and a folder are called what they are, and only what is missing is called
    missing.
    """
    (place / "returns.csv").write_text(RETURNS)
    (place / "folder").mkdir()
    assert says in given(line, 2).err


def test_python_knows_a_run_by_the_name_that_the_command_takes(small_run):
    """``runs/small`` is ``small`` for a command, and for Python too."""
    judged = tradeassay.assay("small", portfolios=0)
    assert {one.agent for one in judged.agents} == {"cash", "equal-weight"}
    assert tradeassay_bench.load_run("small").folder.resolve() == small_run.resolve()
    assert tradeassay_bench.verify("small", workers=1).ok
    with pytest.raises(UserError, match="no run and no table 'smal'") as caught:
        tradeassay.assay("smal")
    assert "small" in str(caught.value.hint)


def write_table(path, title, values, first):
    """Write one value a business day from ``first`` on; return the last day."""
    days = np.busday_offset(first, np.arange(len(values)), roll="forward").astype(str)
    rows = [f"{day},{value}" for day, value in zip(days, values, strict=True)]
    path.write_text("\n".join([f"Date,{title}", *rows, ""]))
    return days[-1]


@pytest.mark.parametrize("first", ["2022-01-03", "2021-01-04"])
def test_a_newer_table_is_told_which_benchmark_works(first, place, given):
    """The market by name ends in 2018: the error says so, and the command of README and hint
    judges the table.
    """
    rng = np.random.default_rng(5)
    last = write_table(
        place / "returns.csv", "return", rng.normal(0.0005, 0.01, 900).round(6), first
    )
    prices = 400 * np.cumprod(1 + rng.normal(0.0003, 0.01, 900))
    write_table(place / "spy.csv", "Close", prices.round(2), first)
    refused = given("assay returns.csv --benchmark sp500", 2).err
    assert (
        f"'sp500' is known from 1999-01-04 to 2018-12-31, the account from {first} to {last}"
        in refused
    )
    assert "data get" not in refused, "no data set has these days"
    readme = (ROOT / "README.md").read_text()
    [command] = set(re.findall(r"tradeassay (assay returns\.csv --benchmark \S+\.csv)", readme))
    assert "as a file (--benchmark FILE)" in refused
    assert "beyond spy" in given(command).out


def test_a_table_that_goes_on_after_a_market_by_name_is_told_where_it_ends(place, given):
    last = write_table(
        place / "returns.csv", "return", np.full(900, 0.001) * np.arange(900) % 0.01, "2018-01-02"
    )
    refused = given("assay returns.csv --benchmark sp500", 2).err
    assert "to 2018-12-31, the account from 2018-01-02 to " + last in refused
    assert "as a file" in refused and len(refused.strip().splitlines()) == 1


@pytest.fixture
def account(place):
    """A table of 2022 to 2025: half of its market and 5 % a year, beside the market's prices."""
    rng = np.random.default_rng(5)
    market, own = rng.normal(0.0003, 0.01, 900), rng.normal(0.0, 0.003, 900)
    own += 0.05 / 252 - own.mean()
    write_table(place / "returns.csv", "return", (0.5 * market + own).round(6), "2022-01-03")
    write_table(place / "spy.csv", "Close", (400 * np.cumprod(1 + market)).round(2), "2022-01-03")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "3.8% of it may be dividends and interest, which returns alone do not show"),
        ("--dividends 0", "2.6% of it may be interest, which returns alone do not show"),
        ("--interest 0", "dividends are not excluded: they may be 1.2% of it a year"),
    ],
)
def test_a_verdict_doubts_only_what_was_not_given(options, says, account, given):
    """An account compared with a total-return benchmark is not told that dividends may explain
    it.
    """
    shown = " ".join(given(f"assay returns.csv --benchmark spy.csv {options}").out.split())
    assert says in shown


@pytest.mark.parametrize("option", ["--factors french", "--cash french --benchmark spy.csv"])
def test_factors_by_name_say_where_they_end(option, account, given):
    shown = given(f"assay returns.csv {option}", 2).err
    assert "'french' is known from 1926-07-31 to 2018-11-30, the account from 2022-01-0" in shown


def test_factors_of_other_years_are_refused_in_one_line(account, place, given):
    months = [
        f"19{year}-{month:02d}-28,0.01,{month}e-3,0.001"
        for year in range(80, 90)
        for month in range(1, 13)
    ]
    (place / "old.csv").write_text("\n".join(["date,Mkt-RF,SMB,RF", *months]))
    shown = given("assay returns.csv --factors old.csv", 2).err
    assert "the factors are known from 1980-01-28 to 1989-12-28" in shown


def test_the_first_way_in_judges_a_file_beside_its_market(account, given):
    [command] = re.findall(r"tradeassay (assay .*)", given("start").out)[:1]
    shown = given(command.replace("YOUR.csv", "returns.csv").replace("MARKET.csv", "spy.csv")).out
    assert "nothing to compare with" not in shown and "beyond spy" in shown


def test_a_luck_baseline_on_data_without_an_index_names_a_benchmark_that_needs_none(place, given):
    """The hint names an option that these commands have, and it works."""
    days = np.busday_offset("2024-03-04", np.arange(60), roll="forward").astype(str)
    holidays = ("2024-03-29", "2024-05-27")
    days = [day for day in days if day not in holidays]
    rows = [
        f"{day},{name},{k + 20}"
        for k, day in enumerate(days)
        for name in ("AAA", "BBB", "CCC", "DDD")
    ]
    (place / "bars.csv").write_text("\n".join(["date,symbol,close", *rows]))
    given("data import bars.csv --name no-index --replace")
    (place / "mine.csv").write_text(
        "\n".join(["date,return", *(f"{day},{k % 5 - 2}e-3" for k, day in enumerate(days))])
    )
    asked = "luck mine.csv --dataset no-index --names 2 --turnover 4 --portfolios 100 --suite"
    shown = given(f"{asked} daily-us-v1", 2).err
    assert "index='none'" not in shown
    assert "--suite daily-us-real-v1" in shown
    given(f"{asked} daily-us-real-v1")
