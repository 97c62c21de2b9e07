"""The season files that are printed can be played, and the five commands of the guide lead to a decision on the
page.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.arena.conftest import free_port

from tradeassay.arena.agents import check_entries
from tradeassay.arena.rounds.feed import LiveFeed, calendar_of, is_live
from tradeassay.arena.season import Asset, load_season
from tradeassay.arena.stream.connectors import connectors_of
from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.core.time import FixedClock, WallClock, midnight, parse_day

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/howto/run-an-arena.md").read_text(encoding="utf-8")


def printed(tmp_path: Path) -> list[Path]:
    found = []
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", GUIDE, re.S)):
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        found.append(file)
    return found


def test_the_printed_seasons_are_seasons(tmp_path):
    spring, winter = (load_season(file) for file in printed(tmp_path))
    for season in (spring, winter):
        check_entries(season)
        assert season.benchmark == "ama-v1"
    assert not is_live(spring) and is_live(winter)
    assert winter == load_season(ROOT / "examples/arena/live.toml")
    feed, *filings = connectors_of(winter, WallClock())
    assert list(feed.items.keywords["words"]) == ["TSLA", "BMRN", "BTC/USDT", "ETH/USDT"]
    assert [one.items.keywords["asset"] for one in filings] == ["TSLA", "BMRN"]
    due = LiveFeed(clock=FixedClock(midnight(parse_day("2026-12-01")))).due(winter)
    assert due[0].session == "2026-12-01"
    stages = {winter.warming(winter.asset("TSLA"), day, 0) for day in ("2026-12-31", "2027-01-04")}
    assert stages == {True, False}


def test_the_papers_season_has_the_papers_days():
    season = load_season(ROOT / "examples/arena/paper.toml")
    check_entries(season)
    assert (season.convention, season.money.hold, season.money.fee_bp) == ("paper", "flat", 0.0)
    assert [asset.symbol for asset in season.assets] == ["TSLA", "BMRN", "BTC/USDT", "ETH/USDT"]
    for asset in season.assets:
        assert season.days(asset) == ("2025-05-01", "2025-09-30")
        assert season.warming(asset, "2025-07-31", 91) and not season.warming(asset, "2025-08-01", 92)
    met = {(entry.architecture, entry.model) for entry in season.entries}
    assert len(met) == len(season.entries) == 6 * 2  # every architecture with every model


def test_exchanges_have_their_own_calendars():
    assert calendar_of(Asset(symbol="600519.SS", kind="stock", dataset="live/yfinance")) == "XSHG"
    assert calendar_of(Asset(symbol="600519", kind="stock", dataset="live/akshare")) == "XSHG"
    assert calendar_of(Asset(symbol="TSLA", kind="stock", dataset="live/yfinance")) == "XNYS"
    assert calendar_of(Asset(symbol="TSLA", kind="stock", dataset="live/x", calendar="XSHG")) == "XSHG"
    assert calendar_of(Asset(symbol="BTC/USDT", kind="crypto", dataset="live/ccxt")) == "24/7"


def test_what_is_wrong_in_a_season_is_named(tmp_path):
    file = tmp_path / "s.toml"
    body = 'id = "s"\nfirst = "2022-01-03"\n[[assets]]\nsymbol = "A"\nkind = "stock"\ndataset = "live/x"\n'
    entry = '[[entries]]\nid = "a"\narchitecture = "rule"\n'
    for more, words in (
        ("[budget]\nusd = 0\n", "buys nothing"),
        ("[filings]\nedgar = true\n", "mail address"),
        ("[news]\nrsss = []\n", "rsss"),
        ("[prices]\napart = 0.0\n", "apart = 0"),
        ('label = "a\\u202Eb"\n', "invisible character U\\+202E"),
        ('label = "' + "x" * 10_000 + '"\n', "10000 characters"),
    ):
        file.write_text(body + entry + more)
        with pytest.raises(UserError, match=words):
            load_season(file)
    wrong = "cash = inf,fee_bp = -1,fee_bp = nan,temperature = nan,max_tokens = 0,news_days = -1"
    for more in f"{wrong},warmup = -1,window_s = 0,cash = -5.0".split(","):
        file.write_text(f"{more}\n{body}{entry}")
        with pytest.raises(UserError, match=f"{more.split()[0]} = .* makes no sense"):
            load_season(file)
    file.write_text(body + entry + '[news]\nrss = ["nowhere"]\n')
    with pytest.raises(UserError, match="web address"):
        connectors_of(load_season(file), WallClock())


def test_a_stopped_season_says_how_to_go_on_and_no_password_stands_in_the_list_of_processes(
    tmp_path, monkeypatch, capsys
):
    async def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("tradeassay.arena.web.serving.play", stopped)
    db = str(tmp_path / "arena.db")
    assert main(["arena", "run", "--replay", "synthetic", "--db", db]) == 130
    assert capsys.readouterr().err.strip() == f"stopped; the same command continues season 'demo-7' in {db}"
    monkeypatch.setenv("TRADEASSAY_ARENA_DB", str(tmp_path / "nowhere.db"))
    assert main(["arena", "standings"]) != 0 and "nowhere.db" in capsys.readouterr().err
    main(["arena", "standings", "--db", "postgresql://arena:hush-hush-1@127.0.0.1:1/none"])
    said = capsys.readouterr().err
    assert "list of processes" in said and "hush-hush-1" not in said


@pytest.mark.slow
def test_printed_keys_work_at_once(tmp_path):
    """The operator's key registers, and the expert's judges, in the process that printed them."""
    port = free_port()
    command = [sys.executable, "-m", "tradeassay", "arena", "serve", "--open", "--register", "--expert", "anna"]
    with (tmp_path / "said.txt").open("w") as told:
        served = subprocess.Popen([*command, "--port", str(port)], cwd=tmp_path, stderr=told)

    def post(path: str, key: str, body: dict[str, str]) -> tuple[int, dict[str, object]]:
        head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), head)
        try:
            with urllib.request.urlopen(asked, timeout=20) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    try:
        deadline, keys, made = time.monotonic() + 120, dict[str, str](), None
        while made is None and time.monotonic() < deadline:
            time.sleep(0.5)
            keys = dict(re.findall(r"key of (\w+) '\w+': (\S+)", (tmp_path / "said.txt").read_text()))
            with contextlib.suppress(OSError, KeyError):
                made = post("/agents", keys["operator"], {"season": "demo-7-open", "entry": "you"})
        assert made is not None and made[0] == 200 and str(made[1]["token"]).startswith("ta-"), made
        judged = "/api/seasons/demo-7-open/items/none/reviews"
        assert post(judged, "", {"verdict": "confirm", "key": keys["expert"]})[0] == 404
        assert post(judged, "", {"verdict": "confirm", "key": keys["operator"]})[0] == 403
        assert post("/agents", keys["expert"], {"season": "demo-7-open", "entry": "you"})[0] == 403
    finally:
        served.terminate()
        served.wait(timeout=30)


@pytest.mark.slow
def test_five_commands_lead_to_a_decision_on_the_page(tmp_path):
    """As printed, but for the installation, the port and the folder."""
    commands = re.search(r"\$ pip install.*?```", GUIDE, re.S)[0]
    assert commands.count("$ ") == 5
    port = free_port()
    environment = {**os.environ, "ARENA_URL": f"http://127.0.0.1:{port}"}
    tool = [sys.executable, "-m", "tradeassay"]
    assert "tradeassay arena serve --open" in commands and "arena amend register you" in commands
    said = tmp_path / "said.txt"
    with said.open("w") as told:
        serving = [*tool, "arena", "serve", "--open", "--port", str(port)]
        served = subprocess.Popen(serving, cwd=tmp_path, env=environment, stderr=told)
    agent = None
    try:
        deadline = time.monotonic() + 120
        token = ""
        while not token and time.monotonic() < deadline:
            made = subprocess.run(
                [*tool, "arena", "amend", "register", "you"], cwd=tmp_path, capture_output=True, text=True
            )
            token = made.stdout.strip()
        environment["ARENA_TOKEN"] = token
        agent = subprocess.Popen([sys.executable, str(ROOT / "examples/agents/polling_agent.py")], env=environment)
        found: list[dict[str, object]] = []
        while not found and time.monotonic() < deadline:
            time.sleep(1)
            where = f"{environment['ARENA_URL']}/seasons/demo-7-open/entries/you/index.json"
            try:
                found = json.load(urllib.request.urlopen(where, timeout=20))["decisions"]
            except OSError:
                continue
        assert found and {one["entry"] for one in found} == {"you"}
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=30) == 130
        assert said.read_text().count("stopped") == 1
    finally:
        for process in (agent, served):
            if process is not None:
                process.terminate()
                process.wait(timeout=30)
