"""An agent in a file of one's own, the starter folder, the ways in, and a site over all runs."""

import base64
import gzip
import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from golden import stored as played

from tradeassay.cli._group import root_commands
from tradeassay_bench.agents import own_agent
from tradeassay_bench.testing import check_agent

WEEK = "daily-us-v1 --first 2022-06-01 --last 2022-06-10 --executor inline"
RULE = """
from tradeassay_bench.core.orders import Decision, Order

class Mine:
    def answer(self, request):
        seen = request.observation
        return Decision(orders=(Order(symbol=seen.universe[0], amount=10, side="BUY"),) if seen.step == 0 else ())

class Talks:
    def reply(self, asked):
        return {"answer": {"orders": [], "reason": "nothing is worth a trade today"}}

class Breaks:
    def answer(self, request):
        return helper(request)

def helper(request):
    return request.nothing

class Forgets:
    def reply(self, asked):
        return {}["orders"]

class Neither:
    pass

class Wants:
    def __init__(self, more):
        pass
    def reply(self, asked):
        return {}
"""
ON_A_PIPE = """
import json, sys
from trend import Talks
talks = Talks()
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **talks.reply(asked)}), flush=True)
"""


@pytest.fixture
def place(place):
    (place / "trend.py").write_text(RULE)
    return place


def in_line(shown):
    """Return all that was printed as one line."""
    return " ".join((shown.out + shown.err).split())


def test_a_class_of_a_file_plays_and_the_file_is_held_to_its_word(place, given):
    argv = f"run {WEEK} -a ./trend.py:Mine -a ./trend.py:Talks --name own"
    given(argv)
    out = given("report own --format json").out
    rows = json.loads(out[out.index("[\n  {") :])[0]["rows"]
    assert {"rule from a file: Mine", "Python class: Talks"} <= {row[1]["text"] for row in rows}
    given(argv)  # the same command again is the same run
    (place / "trend.py").write_text(RULE + "\n# another file\n")
    said = given(argv, 2).err
    assert (
        "runs/own contains a different run: the file trend.py of agent 'Mine' has changed since"
        in said
    )
    assert "use a different name, or no name" in said
    other = f"run {WEEK} -a file:path=trend.py,name=Mine,sha256={'a' * 64} --name other"
    assert "has changed since the run began" in given(other, 2).err


def test_a_program_on_a_pipe_is_found_as_a_shell_would_and_has_no_unknown_price(
    place, given, monkeypatch
):
    """Without a label, from a relative script, by a Python that no default search path has."""
    monkeypatch.setenv("PATH", "/nowhere")
    (place / "piped.py").write_text(ON_A_PIPE)
    said = given(
        f"run {WEEK} -a 'pipe:command=python piped.py' -a python:class=trend:Talks --name piped"
    )
    assert "program on a pipe: piped" in said.out and "Python class: Talks" in said.out
    assert "price unknown" not in said.out + said.err
    assert "a program of the runner's own" in said.out and "model" not in said.out + said.err, (
        "none was asked"
    )
    page = (place / "runs/piped/report.html").read_text(encoding="utf-8")
    assert "price unknown" not in page
    assert "The program and what it cost" in page and "live model" not in page


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("./trend.py:Breaks", "has no attribute 'nothing' (trend.py, line 18)"),
        ("./trend.py:Forgets", "KeyError: 'orders' (trend.py, line 22)"),
        ("'pipe:command=python raises.py'", "KeyError: 'gone' (raises.py, line 2)"),
        (
            "http:url=http://127.0.0.1:9/agent",
            "program over HTTP: 127.0.0.1-9 has no result: unreachable",
        ),
    ],
)
def test_a_fault_of_an_own_agent_is_shown_with_its_place(agent, said, place, given):
    (place / "raises.py").write_text("import sys\nfor line in sys.stdin: {}['gone']\n")
    shown = given(f"run {WEEK} -a {agent} --name breaks", 1)
    assert said in " ".join(shown.out.split())
    assert said in shown.err or agent.startswith("http")


@pytest.mark.slow_for("Mine")  # behind walls, as in the tests of walled agents
@pytest.mark.parametrize("name", ["Mine", "Talks"])
def test_an_agent_of_a_file_can_be_tested_for_leaks(name, given):
    shown = given(f"leak-test ./trend.py:{name} --first 2022-06-01 --sessions 3")
    assert shown.out.startswith(f"{name}: changed decisions")


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("./trend.py:Yours", "it has Breaks, Forgets, Mine, Neither, Talks, Wants"),
        ("./trend.py:Neither", "not an agent"),
        ("./none.py:Mine", "there is no file"),
        ("./broken.py:Mine", "cannot be imported"),
        ("./broken.py:Mine", "(broken.py, line 1)"),
        ("./typo.py:Mine", "(typo.py, line 1)"),
        ("./trend.py:Wants", "called without arguments"),
        ("./trend.py", "has no class name"),
        ("'pipe:command=python gone.py'", "there is no file 'gone.py'"),
        ("'pipe:command=no-such-program trend.py'", "there is no program 'no-such-program'"),
        ("./trend.py:Mine,speed=2", "takes no parameters"),
    ],
)
def test_a_file_that_is_of_no_use_gets_one_line(agent, said, place, given):
    (place / "broken.py").write_text("import nothing_of_that_name")
    (place / "typo.py").write_text("class Mine\n    pass\n")
    shown = given(f"run {WEEK} -a {agent}", 2).err
    assert said in shown
    assert "Traceback" not in shown
    assert "walls" not in shown or "broken" in agent, (
        "only what needs to be run is run behind walls"
    )


def test_an_account_whose_orders_were_refused_says_so(place, given):
    """Nothing fails and nothing is traded: a return of zero alone would not say why."""
    (place / "short.py").write_text(
        "class Shorts:\n"
        "    def reply(self, asked):\n"
        "        order = {'symbol': asked['observation']['names'][0]['symbol'], 'unit': "
        "'target_weight'}\n"
        "        return {'answer': {'orders': [{**order, 'amount': -0.1}], 'reason': 'it falls'}}\n"
    )
    said = (
        "100% of the orders of Python class: Shorts were refused by the venue, most often: no "
        "shorting."
    )
    assert said in in_line(given(f"run {WEEK} -a ./short.py:Shorts --name short"))
    assert said in (place / "runs/short/report.html").read_text(encoding="utf-8")


def test_an_agent_that_is_mended_is_a_new_run_of_the_same_command(place, given):
    argv = f"run {WEEK} -a ./trend.py:Forgets"
    assert "if you changed your file, start a new run" in given(argv, 1).err
    (place / "trend.py").write_text(
        RULE.replace('{}["orders"]', '{"answer": {"orders": [], "reason": "no"}}')
    )
    given(argv)
    given(argv)
    assert len(list((place / "runs").iterdir())) == 2, (
        "nothing is lost, and the same file is the same run"
    )


KINDS = ("agent", "benchmark", "source", "task")


def test_starter_folders_and_the_ways_in(place, given):
    for kind in KINDS:
        given(f"new {kind} starter_{kind}")
        for path in (place / f"starter_{kind}").iterdir():
            assert "{{" not in path.read_text() and "NAME" not in path.name
            if path.suffix == ".py":
                compile(path.read_text(), path.name, "exec")
    made = sorted(path.name for path in (place / "starter_agent").iterdir())
    assert made == ["README.md", "starter_agent.py", "test_starter_agent.py"]
    for refused in (
        "agent starter_agent",
        "task starter_task",
        "agent ../up",
        "agent Bad-Name",
        "agent class",
    ):
        given(f"new {refused}", 2)
    given("new source csv", 2)
    lines = [
        line.split()
        for line in given("start").out.splitlines()
        if line.startswith("     tradeassay")
    ]
    assert len(lines) >= 8
    assert all(line[1] in root_commands() for line in lines)


@pytest.mark.slow
def test_a_starter_folder_holds_a_sound_agent(given):
    given("new agent slow_trend")
    check_agent(*own_agent("slow_trend/slow_trend.py:SlowTrend", {"sessions": 20}))


@pytest.mark.slow
def test_a_site_over_runs_of_both_kinds(place, given):
    for name in ("daily", "ktdfin", "quantcode-frame"):
        shutil.copytree(played(name), place / "runs" / name)
    given("seal runs/daily -o runs/daily.seal")
    (place / "runs" / "torn").mkdir()
    (place / "runs" / "torn" / "manifest.json").write_text("{")
    told = given("site runs -o site --json", 1)
    assert "skipped torn" in told.err
    assert list(json.loads(told.out)["runs"]) == ["daily", "ktdfin", "quantcode-frame"]
    site = place / "site"
    index = (site / "index.html").read_text()
    assert 'href="conversations.html"' in index and "daily.seal" in index
    talk = (site / "conversations.html").read_text()
    data = re.findall(r'<script type="application/json">([^<]+)</script>', talk)
    pack = json.loads(gzip.decompress(base64.b64decode(data[0])))
    assert len(set(pack["texts"])) == len(pack["texts"]), (
        "what was said before is not written out again"
    )
    assert {row["of"].split(" ")[0] for row in pack["rows"]} == {"ktdfin", "quantcode-frame"}
    assert all(row["tokens"] and row["turns"] for row in pack["rows"])
    rows = json.loads((site / "board.json").read_bytes())
    assert {row["run"] for row in rows} == {"daily", "ktdfin", "quantcode-frame"}
    for row in rows:
        page, _, place = row["link"].partition("#")
        assert not place or f'id="{place}"' in (site / page).read_text()
        assert (
            ElementTree.parse(site / row["card"])
            .getroot()
            .get("aria-label", "")
            .startswith(row["agent"])
        )
        assert row["link"].split("/")[1] in index
    assert (
        len(ElementTree.parse(site / "feed.xml").findall("{http://www.w3.org/2005/Atom}entry")) == 3
    )
    for link in (
        "runs/daily/index.html",
        "runs/daily/daily.seal",
        "runs/quantcode-frame/table.json",
    ):
        assert (site / link).is_file()
    assert "src=" not in index.replace("img-src", ""), "nothing is fetched"
    given("site site -o no", 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_starter_folder_passes_its_own_test(kind, place, given):
    given(f"new {kind} starter_{kind}")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "."]
    done = subprocess.run(
        words, cwd=place / f"starter_{kind}", capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout


HALF_MADE = """
from tradeassay_bench.agents import PortfolioConfig, Rebalancer
from tradeassay_bench.core.orders import Decision

class Half(Rebalancer[PortfolioConfig]):
    summary = "has no targets"
    Config = PortfolioConfig

class Bare:
    def answer(self, request):
        return Decision()

class Unlicensed:
    summary = "cannot be made"
    Config = PortfolioConfig
    def __init__(self, config):
        raise ValueError("no licence")
    def begin(self, info, rng):
        pass
    def answer(self, request):
        return Decision()
"""
POINTS = """
[tradeassay.agents]
half = half_made:Half
bare = half_made:Bare
unlicensed = half_made:Unlicensed
cash = half_made:Unlicensed
[tradeassay.benchmarks]
theirs-v1 = half_made:Half
mine-v1 = tradeassay_bench.benchmarks:DAILY_US
[tradeassay.venues]
mine-v1 = tradeassay_bench.account:US
[tradeassay.sources]
half = half_made:Half
"""


def install(folder, points, version="1.0"):
    """Make a folder of modules an installed package, for processes that start in it."""
    for older in folder.glob("theirs-*.dist-info"):
        shutil.rmtree(older)
    info = folder / f"theirs-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)


TELL = """
import contextlib, io, json, sys
from tradeassay.cli import main
told = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    told.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""


def told_in(folder, *lines):
    """Give commands in one process that starts in a folder, whose packages are installed for it;
    return of each its status, and what it printed in both places as one line.
    """
    words = json.dumps([line.split() for line in lines])
    command = [sys.executable, "-c", TELL, words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [(status, " ".join((out + err).split())) for status, out, err in json.loads(done.stdout)]


@pytest.mark.journey
def test_a_run_of_what_a_package_adds_is_no_forgery_without_it_or_with_another_version(
    place, given
):
    points = "[tradeassay.agents]\ntheir-rule = their_rule:TheirRule\n"
    points += "[tradeassay.benchmarks]\ntheir-market-v1 = their_market:THEIR_MARKET\n"
    points += "their-floor-v1 = their_venue:FLOOR\n"
    points += "[tradeassay.venues]\ntheir-venue-v1 = their_venue:THEIRS\n"
    given("new benchmark their_market")
    given("new agent their_rule")
    package = place / "their_market"
    rule, market, venue = (package / f"their_{what}.py" for what in ("rule", "market", "venue"))
    shutil.copy(place / "their_rule" / "their_rule.py", rule)
    venue.write_text(
        "from msgspec.structs import replace\nfrom their_market import THEIR_MARKET\n"
        "from tradeassay_bench.account import US\n"
        "THEIRS = replace(US, id='their-venue-v1', title='Theirs')\n"
        "market = replace(THEIR_MARKET.market, venue='their-venue-v1')\n"
        "FLOOR = replace(THEIR_MARKET, id='their-floor-v1', market=market)\n"
    )
    install(package, points)
    days = "--first 2022-03-01 --last 2022-03-08 --executor inline"
    done = told_in(
        package,
        f"run daily-us-v1 -a their-rule --name rule {days}",
        f"run their-market-v1 -a cash --name market {days}",
        f"run their-floor-v1 -a their-rule --name floor {days}",
        "verify rule --workers 1",
        "verify market --workers 1",
        "verify floor --workers 2",
    )
    assert [status for status, _ in done] == [0] * 6, done
    without_their_package(place, given)

    runs = package / "runs"
    install(package, points, "2.0")
    [(status, said)] = told_in(package, "verify rule --workers 1")
    assert (
        status == 3
        and "agent 'their-rule' is from theirs 1.0" in said
        and "here it is from theirs 2.0" in said
    )
    assert "re-derived: data, decisions, account, scores, page" in said, "it decides as before"
    rule.write_text(rule.read_text().replace("closes[-1] > closes", "closes[-1] < closes"))
    market.write_text(market.read_text().replace("250_000", "500_000"))
    venue.write_text(venue.read_text().replace("'Theirs'", "'Theirs', periods_per_year=365"))
    scores = json.loads((runs / "floor" / "scores.json").read_text())
    scores["agents"][1]["measures"]["cumulative_return"]["median"]["value"] = 9.99
    (shutil.copytree(runs / "floor", runs / "forged") / "scores.json").write_text(
        json.dumps(scores)
    )
    of_rule, of_market, of_floor, of_forged = told_in(
        package, *(f"verify {slug} --workers 1" for slug in ("rule", "market", "floor", "forged"))
    )
    assert of_rule[0] == of_market[0] == 3
    assert "they differ with theirs 2.0" in of_rule[1]
    assert "the rules of 'their-market-v1' in theirs 2.0: market.cash is 250000.0" in of_market[1]
    assert (
        of_floor[0] == 3
        and "venue 'their-venue-v1' has different rules in theirs 2.0" in of_floor[1]
    )
    assert of_forged[0] == 1
    assert "but recomputed it is" in of_forged[1], (
        "what does not depend on the venue is computed all the same"
    )


def without_their_package(place, given):
    """What cannot be re-derived without the package is no lie, and a changed page is one; the
    same holds for a site of both runs.
    """
    package = place / "their_market"
    received = package / "received"
    for slug in ("market", "rule"):
        shutil.copytree(package / "runs" / slug, received / slug)
        said, _ = given(f"verify {received / slug}", 3)
        assert "nothing is contradicted" in said and "is not registered here" in said
        page = received / slug / "report.html"
        page.write_text(page.read_text().replace("equal-weight", "their-weight"))
        given(f"verify {received / slug}", 1)
    [(status, said)] = told_in(package, "site received -o ../site --workers 1")
    assert status == 0, said


STARTED = [
    "runpy.run_module('tradeassay', run_name='__main__')",
    "from tradeassay.__main__ import main; sys.exit(main())",
]


@pytest.mark.parametrize("started", STARTED, ids=["module", "script"])
@pytest.mark.parametrize(
    ("loading", "line"), [(("signal",), ""), (("typing", "click"), "stopped\n")]
)
def test_whoever_stops_a_command_while_it_is_loaded_sees_one_line_at_most(
    place, started, loading, line
):
    script = f"""
import os, runpy, sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name in {loading}:
            os.kill(os.getpid(), 2)

sys.argv = ["tradeassay", "--version"]
sys.modules.pop("signal", None)
sys.meta_path.insert(0, Stop())
{started}
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (130, "", line)
    ignoring = script.replace(
        "sys.argv", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nsys.argv"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", ignoring], capture_output=True, check=False
        ).returncode
        == 0
    )


def test_a_half_made_plugin_takes_no_list_down_and_is_named(place):
    (place / "half_made.py").write_text(HALF_MADE)
    install(place, POINTS)
    lines = "agents", "benchmarks", "data list", f"run {WEEK} -a unlicensed"
    agents, benchmarks, data, refused = told_in(place, *lines)
    assert agents[0] == 0 and "momentum-12-1" in agents[1]
    assert (
        "'half' of an installed package: agent 'half' cannot be registered: it has no targets"
        in agents[1]
    )
    assert "'bare' cannot be registered: it has no summary and no Config and no begin" in agents[1]
    assert "agent 'cash' is registered twice" in agents[1]
    assert benchmarks[0] == 0 and "daily-us-v1" in benchmarks[1]
    assert "'theirs-v1' cannot be registered: expected a Benchmark" in benchmarks[1]
    assert "its id is 'daily-us-v1'. Register it under its id" in benchmarks[1]
    assert "'half' cannot be registered: it has no extra and no load" in data[1]
    assert refused[0] == 2
    assert (
        "error: agent 'unlicensed' cannot be created (its __init__ raised ValueError: no licence"
        in refused[1]
    )
    assert "Traceback" not in refused[1]


def test_a_rule_that_breaks_on_some_days_is_shown_with_its_failures(place, given):
    (place / "at_times.py").write_text(
        "from tradeassay_bench.core.orders import Decision\nclass Mine:\n    def answer(self, "
        "request):\n"
        "        if request.observation.step == 3:\n            raise RuntimeError('in the "
        "middle')\n"
        "        return Decision(reason='waits')\n"
    )
    out = given(f"run {WEEK} -a ./at_times.py:Mine --name at-times").out
    assert "failure rate" in out
    assert (
        "Mine first broke on 2022-06-06: RuntimeError: in the middle (at_times.py, line 5)" in out
    )


def test_what_is_no_run_is_called_what_it_is(place, given):
    (place / "alone").mkdir()
    (place / "alone" / "report.html").write_text("<!doctype html>")
    (place / "theirs.seal").write_bytes(b"PK")
    for line, said in {
        "verify alone": "alone does not contain a run: manifest.json is missing",
        "verify alone/report.html": "is an HTML page, which cannot be verified",
        "report theirs.seal": "theirs.seal is a sealed run",
        "assay theirs.seal": "theirs.seal is a sealed run",
        "compare theirs.seal theirs.seal": "theirs.seal is a sealed run",
        "report nobodys.seal": "no file nobodys.seal",
    }.items():
        assert said in given(line, 2).err
