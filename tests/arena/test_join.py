"""The season files that are printed can be played, and the five commands of the guide lead to a
decision on the page.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.arena.conftest import free_port, wait_for

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay_arena.agents import check_entries
from tradeassay_arena.rounds.feed import LiveFeed, calendar_of, is_live
from tradeassay_arena.season import Asset, load_season
from tradeassay_arena.stream.connectors import connectors_of
from tradeassay_bench.core.time import FixedClock, WallClock, midnight, parse_day

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/howto/run-an-arena.md").read_text(encoding="utf-8")


def test_the_printed_seasons_are_seasons(tmp_path):
    seasons = []
    for text in re.findall(r"```toml\n(.*?)```", GUIDE, re.S):
        (tmp_path / "season.toml").write_text(text, encoding="utf-8")
        seasons.append(load_season(tmp_path / "season.toml"))
        check_entries(seasons[-1])
        assert seasons[-1].benchmark == "ama-v1"
    spring, winter = seasons
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
        assert season.warming(asset, "2025-07-31", 91) and not season.warming(
            asset, "2025-08-01", 92
        )
    met = {(entry.architecture, entry.model) for entry in season.entries}
    assert len(met) == len(season.entries) == 6 * 2  # every architecture with every model


def test_exchanges_have_their_own_calendars():
    for symbol, kind, source, told, calendar in (
        ("600519.SS", "stock", "yfinance", "", "XSHG"),
        ("600519", "stock", "baostock", "", "XSHG"),
        ("TSLA", "stock", "yfinance", "", "XNYS"),
        ("TSLA", "stock", "x", "XSHG", "XSHG"),
        ("BTC/USDT", "crypto", "ccxt", "", "24/7"),
    ):
        asset = Asset(symbol=symbol, kind=kind, dataset=f"live/{source}", calendar=told)
        assert calendar_of(asset) == calendar, asset


def test_what_is_wrong_in_a_season_is_named(tmp_path):
    file = tmp_path / "s.toml"
    body = (
        'id = "s"\nfirst = "2022-01-03"\n[[assets]]\nsymbol = "A"\nkind = "stock"\ndataset = '
        '"live/x"\n'
    )
    entry = '[[entries]]\nid = "a"\narchitecture = "rule"\n'
    for more, words in (
        ("[budget]\nusd = 0\n", "is not a valid limit"),
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
        with pytest.raises(UserError, match=f"{more.split()[0]} = .* is out of range"):
            load_season(file)
    file.write_text(body + entry + '[news]\nrss = ["nowhere"]\n')
    with pytest.raises(UserError, match="web address"):
        connectors_of(load_season(file), WallClock())


def test_a_stopped_season_says_how_to_go_on_and_no_password_stands_in_the_list_of_processes(
    tmp_path, monkeypatch, capsys
):
    async def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("tradeassay_arena.web.serving.play", stopped)
    db = str(tmp_path / "arena.db")
    assert main(["arena", "run", "--replay", "synthetic", "--db", db]) == 130
    assert (
        capsys.readouterr().err.strip()
        == f"stopped; the same command continues season 'demo-7' in {db}"
    )
    monkeypatch.setenv("TRADEASSAY_ARENA_DB", str(tmp_path / "nowhere.db"))
    assert main(["arena", "standings"]) != 0 and "nowhere.db" in capsys.readouterr().err
    main(["arena", "standings", "--db", "postgresql://arena:hush-hush-1@127.0.0.1:1/none"])
    said = capsys.readouterr().err
    assert "list of processes" in said and "hush-hush-1" not in said


@pytest.mark.slow
def test_five_commands_lead_to_a_decision_on_the_page_and_printed_keys_work_at_once(tmp_path):
    """As printed, but for the installation, the port and the folder; and with keys for operator
    and expert.
    """
    commands = re.search(r"\$ pip install.*?```", GUIDE, re.S)[0]
    assert commands.count("$ ") == 5
    assert "tradeassay arena serve --open" in commands and "arena amend register you" in commands
    arena, said = [sys.executable, "-m", "tradeassay", "arena"], tmp_path / "said.txt"
    place = f"http://127.0.0.1:{(port := free_port())}"
    serving = [*arena, "serve", "--open", "--port", str(port), "--register", "--expert", "anna"]
    with said.open("w") as told:
        processes = [subprocess.Popen(serving, cwd=tmp_path, stderr=told)]
    tokens: list[str] = []

    def registered() -> bool:
        made = subprocess.run(
            [*arena, "amend", "register", "you"], cwd=tmp_path, capture_output=True, text=True
        )
        tokens.append(made.stdout.strip())
        return tokens[-1] != ""

    def decided() -> bool:
        found = httpx.get(f"{place}/seasons/demo-7-open/entries/you/index.json", timeout=20)
        return found.status_code == 200 and {one["entry"] for one in found.json()["decisions"]} == {
            "you"
        }

    def post(path: str, key: str, body: dict[str, str]) -> int:
        return httpx.post(
            place + path, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=20
        ).status_code

    try:
        wait_for(registered)
        environment = {**os.environ, "ARENA_URL": place, "ARENA_TOKEN": tokens[-1]}
        agent = [sys.executable, str(ROOT / "examples/agents/polling_agent.py")]
        processes.append(subprocess.Popen(agent, env=environment))
        wait_for(decided)
        keys = dict(re.findall(r"key of (\w+) '\w+': (\S+)", said.read_text()))
        you, item = (
            {"season": "demo-7-open", "entry": "you"},
            "/api/seasons/demo-7-open/items/none/reviews",
        )
        assert post("/agents", keys["operator"], you) == 422  # registered already
        assert post("/agents", keys["expert"], you) == 403
        assert post(item, "none", {"verdict": "confirm", "key": keys["expert"]}) == 404
        assert post(item, "none", {"verdict": "confirm", "key": keys["operator"]}) == 403
        processes[0].send_signal(signal.SIGINT)
        assert processes[0].wait(timeout=30) == 130
        assert said.read_text().count("stopped") == 1
    finally:
        for process in processes:
            process.terminate()
            process.wait(timeout=30)
