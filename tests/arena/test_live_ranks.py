"""A live season shows accounts and no ranks, and says why; a replay under ``paper`` says when it
decides.
"""

import json
import re
import shutil

import pytest
from starlette.testclient import TestClient
from tests.arena.conftest import Table, go, seated, small_demo
from tests.arena.virtual import VirtualTime

from tradeassay_arena.agents import ConstantAction, Trend
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.queries.export import export_database
from tradeassay_arena.rounds.feed import LiveFeed
from tradeassay_arena.season import BASELINE, Asset, Entry, Season
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_bench.core.time import MINUTE, FixedClock, midnight, parse_day
from tradeassay_bench.data import load_dataset
from tradeassay_bench.data.datasets import snapshot_folder
from tradeassay_bench.report.paper_page import write_paper
from tradeassay_bench.report.verifying import PaperRecord, compose_seasons

NO_RANKS = (
    "shows accounts and no ranks, because its agents decide after the price at which they "
    "are filled is known"
)
NO_RANKS_ZH = "只显示账户，不排名"
AT_THE_PRICE = "decides at the price it is filled at"
AT_THE_PRICE_ZH = "按成交价作决策"
ENTRIES = {"trend": Trend(), "bull": ConstantAction("BUY"), "bear": ConstantAction("SELL")}


@pytest.fixture(scope="module")
def live_db(tmp_path_factory):
    """A live season of 25 days of a coin, whose vendor gives a synthetic market's prices."""
    folder = tmp_path_factory.mktemp("live")
    home = folder / "home"
    season = Season(
        id="today",
        assets=(Asset(symbol="AHVQ", kind="crypto", dataset="live/ccxt"),),
        entries=tuple(Entry(id=name, architecture="rule") for name in ENTRIES),
        first="2022-06-01",
        last="2022-06-25",
    )

    def fetch(source: str, name: str, options: dict) -> None:
        shutil.copytree(
            load_dataset("synthetic/crypto:7").folder,
            snapshot_folder(name, home),
            dirs_exist_ok=True,
        )

    first = LiveFeed(clock=FixedClock(midnight(parse_day(season.first)))).due(season)[0].at
    wall = VirtualTime(first - 5 * MINUTE)
    table = Table(str(folder / "arena.db"), season, None)
    table.play(
        agents=seated(**ENTRIES), feed=LiveFeed(home=home, clock=wall, fetch=fetch), time=wall
    )
    return folder / "arena.db"


@pytest.fixture(scope="module")
def paper_db(tmp_path_factory):
    season = small_demo(
        "trend", "investor-sensible", last="2022-03-23", id="as-printed", convention="paper"
    )
    return go(season, tmp_path_factory.mktemp("paper") / "arena.db")


def ranks_in(value: object) -> list[object]:
    """Return every rank, range of ranks, probability of being first and comparison in a JSON
    document.
    """
    if isinstance(value, list):
        return [rank for part in value for rank in ranks_in(part)]
    if not isinstance(value, dict):
        return []
    names = ("rank", "rank_low", "rank_high", "ahead_of", "e_value", "found", "pace")
    held = [value[name] for name in names if value.get(name)]
    best = value.get("best")
    if isinstance(best, dict) and best.get("value") is not None:
        held.append(best)
    return held + [rank for part in value.values() for rank in ranks_in(part)]


def test_a_live_seasons_standings_have_accounts_and_no_ranks(live_db, tell):
    text, notes = tell(["arena", "standings", "--db", str(live_db)])
    assert (text + notes).count(NO_RANKS) == 1  # once, and not again for every agent
    lines = [line for line in text.splitlines()[1:] if "%]" in line]
    assert len(lines) == 4 and not any(re.match(r"\s*\d", line) for line in lines)
    board = json.loads(tell(["arena", "standings", "--json", "--db", str(live_db)])[0])
    assert NO_RANKS in board["note"] and not ranks_in(board)
    assert all(row["measures"]["CR"]["value"] is not None for row in board["rows"])
    # Even the order of the rows is no ranking.
    assert [row["entry"] for row in board["rows"]] == [*ENTRIES, BASELINE]
    assert all(
        NO_RANKS in row["best"]["reason"] for row in board["rows"] if row["entry"] != BASELINE
    )
    assert board["lucky"]["value"] is None
    assert all(row["excess"].get("low") is None for row in board["rows"])


def test_a_live_seasons_site_has_no_ranks_and_says_why(live_db, tmp_path, tell):
    tell(["site", str(live_db), "-o", str(tmp_path)])
    home = tmp_path / "seasons" / "today"
    documents = {
        file: json.loads(file.read_bytes())
        for file in tmp_path.rglob("*.json")
        if file.name[0] != "."
    }
    for file, document in documents.items():
        assert not ranks_in(document), file
    for name in (
        "standings.json",
        "index.json",
        "assets/AHVQ/index.json",
        "entries/trend/index.json",
    ):
        assert NO_RANKS in (home / name).read_text(), name
    assert NO_RANKS in (tmp_path / "seasons" / "index.json").read_text()  # among the badges
    curves = [one["entry"] for one in documents[home / "equity.json"]["curves"]]
    assert curves == [*ENTRIES, BASELINE]
    for name in ("", "assets/AHVQ/", "entries/trend/", "feed/", "rules/", "published/"):
        assert NO_RANKS in (home / name / "index.html").read_text(), name
        assert (
            NO_RANKS_ZH in (tmp_path / "zh" / "seasons" / "today" / name / "index.html").read_text()
        ), name
    assert NO_RANKS in (home / "feed.xml").read_text()
    for page in (
        tmp_path / "seasons" / "index.html",
        home / "assets" / "AHVQ" / "2022-06-07" / "index.html",
    ):
        assert NO_RANKS in page.read_text()
    first = (home / "index.html").read_text()
    assert "First is" not in first and "lead is significant" not in first
    assert set(re.findall(r'<td class="num rank">([^<]*)<', first)) == {"–"}
    for page in (first, (home / "assets" / "AHVQ" / "index.html").read_text()):
        (caption,) = re.findall("<caption>(Settled live sessions .*?)</caption>", page)
        assert (
            "anks are resampled" not in caption and "on each asset. A live season shows" in caption
        )
    other = (tmp_path / "zh" / "seasons" / "today" / "index.html").read_text()
    assert re.search(f"{NO_RANKS_ZH}[^<]*。</caption>", other) and "联合重抽样" not in other


@pytest.mark.parametrize(
    ("db", "said", "unsaid"),
    [("live_db", NO_RANKS, AT_THE_PRICE), ("paper_db", AT_THE_PRICE, NO_RANKS)],
)
def test_the_papers_page_and_its_latex_say_it(request, tmp_path, db, said, unsaid):
    file = request.getfixturevalue(db)
    page, badges = compose_seasons(file.parent, PaperRecord(runs=(file.name,)), export_database)
    assert sum(said in text for _, text in badges) == 1
    assert not any(unsaid in text for _, text in badges)
    assert said in write_paper(page, tmp_path, badges).read_text()
    latex = [file.read_text() for file in (tmp_path / "tables").glob("*.tex")]
    assert latex and all(said in " ".join(text.split()) for text in latex)


def test_a_replay_under_paper_says_when_it_decides(paper_db, tmp_path, tell):
    text, notes = tell(["arena", "standings", "--db", str(paper_db)])
    assert AT_THE_PRICE in text + notes
    board = json.loads(tell(["arena", "standings", "--json", "--db", str(paper_db)])[0])
    assert AT_THE_PRICE in board["note"]
    assert {row["rank"] for row in board["rows"]} > {None}  # a replay has ranks
    tell(["site", str(paper_db), "-o", str(tmp_path)])
    home = tmp_path / "seasons" / "as-printed"
    for name in (
        "index.html",
        "index.json",
        "standings.json",
        "feed.xml",
        "feed/index.html",
        "rules/index.html",
    ):
        assert AT_THE_PRICE in (home / name).read_text(), name
    assert (
        AT_THE_PRICE_ZH in (tmp_path / "zh" / "seasons" / "as-printed" / "index.html").read_text()
    )
    assert AT_THE_PRICE in (tmp_path / "seasons" / "index.html").read_text()


def test_a_replay_in_the_corrected_convention_says_neither(scripted_db, tmp_path, tell):
    text, notes = tell(["arena", "standings", "--db", str(scripted_db)])
    assert AT_THE_PRICE not in text + notes and NO_RANKS not in text + notes


def test_a_live_season_without_a_settled_session_says_it_too(live_db, tmp_path, tell):
    copy = tmp_path / "early.db"
    shutil.copyfile(live_db, copy)
    board = json.loads(
        tell(["arena", "standings", "--to", "2022-05-01", "--json", "--db", str(copy)])[0]
    )
    assert board["rows"] == [] and NO_RANKS in board["note"]


def test_the_owner_of_an_agent_is_told_as_well(store, tmp_path):
    season = Season(
        id="today",
        assets=(Asset(symbol="AHVQ", kind="crypto", dataset="live/ccxt"),),
        entries=(Entry(id="you", architecture="http"),),
        first="2022-06-01",
    )
    store.create_season(season, "2022-06-01T00:00:00Z")
    api = AgentApi(store)
    head = {"Authorization": f"Bearer {api.register('today', 'you', now='2022-06-01T00:00:00Z')}"}
    with TestClient(create_app(Arena(api=api, folder=tmp_path))) as web:
        assert NO_RANKS in web.get("/agents/me/status", headers=head).json()["note"]
