"""The public site: every page in both languages, numbers that agree, nothing before its time,
and whole files.
"""

import json
import re
import shutil
import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from arena_sample import FAST, make_season, play
from sqlalchemy import delete, insert, select, update

from tradeassay.core.errors import UserError
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.queries.decisions import public_event
from tradeassay_arena.queries.snapshot import SeasonSnapshot, board_of
from tradeassay_arena.rounds.health import SILENT_S, Health, Mark
from tradeassay_arena.season import BASELINE, Asset, Entry
from tradeassay_arena.standings import Filter
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.rows import SeasonEvent
from tradeassay_arena.state.store import Store, add_event
from tradeassay_arena.state.tables import bookings, decisions, events, rounds, workers
from tradeassay_arena.web.pages import asset_folders, names_of
from tradeassay_arena.web.site import PageWriter, render
from tradeassay_arena.web.words import words

HOME = "seasons/small"
ROUND = f"{HOME}/assets/AAJX/2022-06-01"
PAGES = ("", "feed/", "information/", "rules/", "published/", "assets/AAJX/", "entries/one-a/")
PAGES += ("assets/AAJX/2022-06-01/",)


def read(site: Path, path: str) -> Any:
    return json.loads((site / path).read_bytes())


def files(site: Path) -> dict[str, bytes]:
    """Return what is public: every file but those that say how the writer is."""
    found = (file for file in site.rglob("*") if file.is_file() and not file.name.startswith("."))
    return {str(file.relative_to(site)): file.read_bytes() for file in found}


@pytest.fixture(scope="module")
def snapshot(web_store):
    return SeasonSnapshot(web_store, make_season(), config=FAST)


def test_pages_are_in_both_languages_and_escape_what_others_wrote(site):
    for path, (language, lang, folder) in product(
        PAGES, (("en", "en", ""), ("zh", "zh-Hans", "zh/"))
    ):
        text = (site / f"{folder}{HOME}/{path}index.html").read_text()
        assert f'<html lang="{lang}">' in text
        assert words(language)("badge.synthetic") in text  # type: ignore[arg-type]  # one of two
        assert "<script>window" not in text and "<img src=x" not in text
        assert "&lt;script&gt;window.hacked" in text
        # Every script of ours is a file; data stands in blocks that no browser runs.
        assert all(
            "src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", text)
        )
        assert len(re.findall(r"<h1\b", text)) == 1 and "<main" in text and 'href="#main"' in text
        here = re.findall(r'(?:href|src)="(/[^"?#]*)"', text)
        gone = {one for one in here if one != "/health" and not (site / one[1:]).exists()}
        assert gone == set()  # every address that a page names is a file or a folder of the site


def test_the_front_page_lists_all_seasons_and_counts_tell_nothing_sealed(client):
    assert 'http-equiv="refresh" content="0; url=/seasons/sealed/"' in client.get("/").text
    assert 'href="/seasons/small/"' in client.get("/seasons/").text
    assert [one["id"] for one in client.get("/seasons/index.json").json()["seasons"]] == [
        "sealed",
        "small",
    ]
    assert re.search(
        r'tradeassay_slots{season="sealed",status="sealed"} [1-9]', client.get("/metrics").text
    )
    made = {"asset": "A", "session": "2022-06-01"}
    event = SeasonEvent(
        seq=1, season="s", kind="failed", at="", body={**made, "entry": "x", "action": "HOLD"}
    )
    assert (public_event(event).kind, public_event(event).body) == (
        "decided",
        {**made, "entry": "x"},
    )
    missed = SeasonEvent(
        seq=2, season="s", kind="missed", at="", body={**made, "cause": "late", "slots": 1}
    )
    assert (public_event(missed).kind, public_event(missed).body) == ("closed", made)
    everybody = SeasonEvent(
        seq=3, season="s", kind="missed", at="", body={**made, "cause": "no price"}
    )
    assert public_event(everybody) == everybody


@pytest.mark.journey
def test_a_season_that_is_followed_has_the_pages_of_one_that_is_written_at_once(
    tmp_path, store, web_feed
):
    writer = PageWriter(store, tmp_path / "site", FAST)
    for day in ("2022-05-06", "2022-05-09"):
        play(store, make_season(), web_feed, day)
        assert writer.update() > 0 and writer.update() == 0
    # A process that dies before its pages are written: another goes on from what is on disk.
    play(store, make_season(), web_feed, "2022-05-10")
    assert PageWriter(store, tmp_path / "site", FAST).update() > 0
    # Pages of another database, or of older templates, are all made again.
    mark = tmp_path / "site" / HOME / ".written.json"
    shutil.copytree(tmp_path / "site", tmp_path / "older")
    other = msgspec.json.decode(mark.read_bytes())
    (tmp_path / "older" / HOME / ".written.json").write_bytes(
        msgspec.json.encode({**other, "look": "other"})
    )
    broken = tmp_path / "older" / HOME / "assets/AAJX/2022-05-06/index.html"
    broken.write_text("half a page")
    PageWriter(store, tmp_path / "older", FAST).update()
    PageWriter(store, tmp_path / "fresh", FAST).update()
    assert files(tmp_path / "site") == files(tmp_path / "fresh") == files(tmp_path / "older")
    assert PageWriter(store, tmp_path / "site", FAST).update(everything=True) == 0


@pytest.mark.journey
def test_pages_wait_for_agents_who_decide_and_not_for_ever(web_feed, store, tmp_path, monkeypatch):
    monkeypatch.setattr("tradeassay_arena.web.site.GIVE_WAY_S", 0.2)
    monkeypatch.setattr("tradeassay_arena.web.site.COMING_S", 0.1)
    outside = Entry(id="one-a", architecture="http", params={"url": "http://10.0.0.1/secret"})
    play(store, make_season(first="2022-06-01", entries=(outside,)), web_feed, "2022-06-02")

    def waited(api: AgentApi | None, place: str) -> float:
        writer = PageWriter(store, tmp_path / place, FAST, api=api)
        assert writer.update() > 0 and (tmp_path / place / HOME / "index.html").exists()
        return writer.waited

    quiet, busy = AgentApi(store), AgentApi(store)
    busy.last_move = float("inf")  # somebody decides all the time
    assert busy.busy and not quiet.busy
    assert (
        waited(None, "alone") == 0.0
        and 0.1 <= waited(quiet, "quiet") < 0.2 <= waited(busy, "busy") < 0.3
    )
    assert files(tmp_path / "alone") == files(tmp_path / "quiet") == files(tmp_path / "busy")


@pytest.mark.journey
def test_a_restored_backup_is_noticed_by_whoever_follows(store, tmp_path):
    """Of an older database the events' numbers begin again: pages are those of what is there
    now.
    """
    store.create_season(make_season(), "2022-06-01T00:00:00Z")
    word = {"asset": "AAJX", "by": "ann", "word": "accept"}
    with store.write("test") as db:
        for number in range(20):
            add_event(db, "small", "word", "2022-06-01T00:00:00Z", {**word, "session": f"{number}"})
    writer = PageWriter(store, tmp_path / "site", FAST)
    writer.update()
    with store.write("test") as db:  # as a backup of the day before has it, and as it goes on
        db.execute(delete(events).where(events.c.seq > 5))
        add_event(
            db,
            "small",
            "word",
            "2022-06-02T00:00:00Z",
            {**word, "session": "other", "word": "refuse"},
        )
    for again in (writer, PageWriter(store, tmp_path / "site", FAST)):
        again.update()
        mark = json.loads((tmp_path / "site/seasons/small/.written.json").read_bytes())
        assert mark["seq"] == 6
    fresh = PageWriter(store, tmp_path / "fresh", FAST)
    fresh.update()
    assert files(tmp_path / "site") == files(tmp_path / "fresh")


@pytest.mark.journey
def test_what_is_not_settled_is_in_no_file_where_outsiders_play(web_store, site, tmp_path):
    """Whatever became of unsettled decisions, every public file has the same bytes."""
    db = tmp_path / "flipped.db"
    with web_store.engine.connect() as here:  # a copy: the store is everybody's
        with sqlite3.connect(db) as copy:
            here.connection.driver_connection.backup(copy)
    store = Store(open_engine(str(db)))
    early = select(rounds.c.id).where(rounds.c.season == "sealed", rounds.c.phase != "settled")
    mine = decisions.c.round.in_(early)
    with store.engine.begin() as here:
        ids = list(here.execute(select(decisions.c.id).where(mine)).scalars())
        assert len(ids) >= 2
        flip = {
            "action": "SELL",
            "status": "failed",
            "confidence": 0.123,
            "reasoning": "told",
            "talk": "[]",
        }
        here.execute(
            update(decisions)
            .where(mine)
            .values(**flip, failures='[{"kind":"parse","text":"x"}]', usd=9.0)
        )
        here.execute(
            update(bookings).where(bookings.c.slot.in_(ids)).values(position=-1, fee=0.5, nav=0.1)
        )
    PageWriter(store, tmp_path / "site", FAST).update()
    store.engine.dispose()
    ours = {path: content for path, content in files(site).items() if "sealed" in path}
    assert ours == {
        path: content for path, content in files(tmp_path / "site").items() if "sealed" in path
    }
    days = {path.name for path in (site / "seasons/sealed/assets/AHVQ").iterdir() if path.is_dir()}
    assert days and "2022-06-05" not in days
    listed = read(site, "seasons/sealed/entries/one-a/index.json")
    assert listed["memory"] == {"entry": "one-a", "sealed": True, "assets": []}
    hidden = [one for one in listed["decisions"] if one["phase"] != "settled"]
    assert hidden and {(one["status"], one["action"], one["gist"] or "") for one in hidden} == {
        ("sealed", None, "")
    }
    page = (site / "seasons/sealed/entries/one-a/index.html").read_text()
    assert (
        "decisions appear once settled" in page and "Hidden while outside agents take part" in page
    )
    assert not any(b"10.0.0.1" in content for content in files(site).values())


def test_headline_table_and_chart_are_of_one_snapshot_and_failures_are_seen(site):
    whole, part = (
        read(site, f"{HOME}/standings.json"),
        read(site, f"{HOME}/assets/AAJX/index.json")["standings"],
    )
    for page, data in ((HOME, whole), (f"{HOME}/assets/AAJX", part)):
        text = (site / page / "index.html").read_text()
        drawn = re.findall(r'<path class="ink [^"]*" data-entry="([^"]+)"[^>]* d="([^"]*)"', text)
        last = {
            id: -sum(int(y) for y in re.findall(r"[Ml]-?\d+ ?(-?\d+)", path)) * 1e-5
            for id, path in drawn
        }
        assert len(data["rows"]) == len(last) == 6
        for row in data["rows"]:
            assert last[row["entry"]] == pytest.approx(row["measures"]["CR"]["value"], abs=1e-5)
    chart = read(site, f"{HOME}/equity.json")
    assert len(chart["days"]) == chart["sessions"] + 1
    found = read(site, f"{HOME}/assets/AAJX/index.json")["timeline"]
    assert {act for point in found["points"] for act in point["acts"].values()} >= {
        "BUY",
        "failed",
        "missed",
    }
    missed = (site / HOME / "assets/AAJX/2022-06-08/index.html").read_text()
    assert missed.count("never added afterwards") == 6
    failed = read(site, f"{HOME}/assets/AHVQ/2022-05-09/index.json")["decisions"][0]
    assert failed["line"]["status"] == "failed" and failed["failures"][0]["kind"] == "parse"
    assert re.search(r"\d+ failed", (site / HOME / "index.html").read_text())


def test_rounds_news_and_entries_show_what_is_known(site):
    page = (site / ROUND / "index.html").read_text()
    parts = (
        "Reasons",
        "Debate",
        "Prompts and answers",
        "Information it received",
        "The asset moved",
    )
    assert all(part in page for part in (*parts, "heard &lt;script"))
    found = read(site, f"{ROUND}/index.json")
    assert [one["line"]["entry"] for one in found["decisions"]] == [
        e.id for e in make_season().all_entries
    ]
    call = found["decisions"][0]["calls"][0]
    asked = "\n".join(found["lines"][line] for line in call["messages"][0]["lines"])
    assert asked.startswith("2022-06-01 <script>") and call["text"].startswith("heard <script>")
    assert len(found["lines"]) == len(set(found["lines"]))
    found = read(site, f"{HOME}/assets/AAJX/index.json")["timeline"]
    days = [point["session"] for point in found["points"]]
    assert days == sorted(days) and set(found["sessions"]) <= set(days)
    ids = [item["id"] for item in found["news"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(item["published_at"] <= f"{item['session']}T23:59:59Z" for item in found["news"])
    item = read(site, f"{HOME}/items/{ids[0]}/index.json")
    assert item["item"]["id"] == ids[0] and item["provenances"]
    found = read(site, f"{HOME}/entries/trend/index.json")
    assert found["standing"]["entry"] == "trend"
    assert {p["asset"] for p in found["positions"]} == {"AAJX", "AHVQ"} and found["memory"][
        "assets"
    ] == []
    memory = read(site, f"{HOME}/entries/one-a/index.json")["memory"]
    assert memory["assets"][0]["items"][0]["group"] == "short"
    prices = read(site, f"{HOME}/index.json")["prices"]
    assert [one["asset"] for one in prices] == ["AAJX", "AHVQ"]
    assert all(one["price"] > 0 and one["moved"] is not None for one in prices)
    found = read(site, f"{HOME}/published/index.json")
    ours = [one for figure in found["figures"] for one in figure["ours"]]
    assert found["second_hand"] and ours
    assert all(
        one["comparable"] is False and "our data is synthetic" in one["reasons"] for one in ours
    )


def test_trades_add_up_to_the_account(snapshot):
    board = {row.entry: row for row in snapshot.board().rows}
    for entry in ("one-a", "two-b", "trend", BASELINE):
        trades = snapshot.trades(entry)
        gained = board[entry].measures["CR"].value
        assert gained is not None and trades.value == pytest.approx(
            trades.start * (1 + gained), rel=1e-9
        )
        made = sum(one.result for one in trades.newest)
        assert trades.count == len(trades.newest)  # few enough to be listed in full
        assert made == pytest.approx(trades.value - trades.start, abs=1e-6)
        assert sum(one.fees for one in trades.newest) == pytest.approx(trades.fees, abs=1e-9)
    assert snapshot.trades(BASELINE).won.value is None  # it never sells
    assert (snapshot.trades("one-a").won.n or 0) > 3


def test_a_filter_narrows_the_standings_and_keeps_the_baseline(web_store):
    db = str(web_store.engine.url.database)

    def ids(**wanted: Any) -> set[str]:
        return {row.entry for row in board_of(db, "small", Filter(**wanted)).rows}

    assert ids() == {"one-a", "one-b", "two-a", "two-b", "trend", BASELINE}
    assert ids(architectures=("trade",)) == {"two-a", "two-b", BASELINE}
    assert ids(models=("test/a",), architectures=("trade",)) == {"two-a", BASELINE}
    assert ids(first="2030-01-01") == set()
    part = board_of(db, "small", Filter(assets=("AHVQ",), first="2022-05-10", last="2022-06-02"))
    assert (part.first, part.last) == ("2022-05-10", "2022-06-02") and part.rows[0].assets == (
        "AHVQ",
    )
    assert {row.tokens / row.sessions for row in part.rows if row.entry == "one-a"} == {12.0}
    for wrong in (
        {"assets": ("NO",)},
        {"first": "soon"},
        {"first": "2022-06-01", "last": "2022-05-01"},
    ):
        with pytest.raises(UserError):
            ids(**wrong)
    with pytest.raises(
        UserError, match="no asset 'NO0'"
    ):  # of several the first one, in every process
        ids(assets=tuple(f"NO{number}" for number in range(9)))


def test_a_stalled_season_is_never_shown_as_live(web_store, site, tmp_path, monkeypatch):
    """What workers do is in no page, only in the file that pages poll, with the time at which it
    was heard: the same journal gives the same bytes, whoever plays.
    """
    shutil.copytree(site, tmp_path, dirs_exist_ok=True)
    clock = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    row = {
        "season": "small",
        "worker": "w",
        "state": "live",
        "since": "2022-06-08T00:00:00Z",
        "beat": clock[0],
    }
    writer = PageWriter(web_store, tmp_path, FAST)
    with web_store.engine.begin() as db:
        db.execute(
            insert(workers).values(**row, rounds=3, next_at="2030-01-01T00:00:00Z", troubles="[]")
        )
    try:
        writer.update()
        state = read(tmp_path, f"{HOME}/now.json")["states"]["small"]
        assert (state["status"], state["next_at"]) == ("live", "2030-01-01T00:00:00Z")
        assert state["beat"] == "1970-01-12T13:46:40Z"
        clock[0] += SILENT_S + 1
        assert writer.update() == 2  # this season's now.json and that of all seasons
        assert read(tmp_path, "seasons/now.json")["states"]["small"]["status"] == "stalled"
        made = dict(render(SeasonSnapshot(web_store, make_season(), config=FAST)))
        there = {
            path: page
            for path, page in files(site).items()
            if re.match(r"(zh/)?seasons/small/", path)
        }
        assert {**made, f"{HOME}/now.json": there[f"{HOME}/now.json"]} == there
    finally:
        with web_store.engine.begin() as db:
            db.execute(delete(workers).where(workers.c.worker == "w"))


def test_everybody_has_a_name_and_every_asset_a_folder_of_its_own():
    season = make_season()
    twice = msgspec.structs.replace(
        season, entries=(*season.entries, msgspec.structs.replace(season.entries[0], id="one-c"))
    )
    for language in ("en", "zh"):
        names = names_of(words(language), twice)
        assert len(set(names.values())) == len(names) == 7
    assert names_of(words("en"), twice)["one-c"] == "Investor · test/a (one-c)"
    assert names_of(words("zh"), twice)["two-a"] == "交易团队 · test/a"
    odd = [
        Asset(symbol=one, kind="crypto", dataset="synthetic/crypto:7")
        for one in ("BTC/USDT", "BTC-USDT", "..")
    ]
    folders = asset_folders(msgspec.structs.replace(season, assets=tuple(odd)))
    assert list(folders.values()) == ["BTC-USDT", "BTC-USDT-", "-"]


def test_stated_confidence_is_counted_as_the_rounds_came_out(site):
    found = read(site, f"{HOME}/entries/one-a/index.json")["calibration"]
    came = []
    for file in site.glob(f"{HOME}/assets/*/2022-*/index.json"):
        round = json.loads(file.read_bytes())
        for line in (one["line"] for one in round["decisions"] if one["line"]["entry"] == "one-a"):
            counts = (
                line["phase"] == "settled"
                and line["stage"] == "live"
                and line["action"] in ("BUY", "SELL")
            )
            if counts and line["confidence"] is not None and line["moved"]:
                came.append((line["action"] == "BUY") == (line["moved"] > 0))
    (one,) = found  # it always says 0.6
    assert (one["low"], one["high"], one["stated"]) == (0.6, 0.7, pytest.approx(0.6))
    assert came and (one["right"]["n"], one["right"]["value"]) == (
        len(came),
        pytest.approx(sum(came) / len(came)),
    )
    for entry, shown in (("one-a", True), ("trend", False)):
        assert (
            'id="calibration"' in (site / f"{HOME}/entries/{entry}/index.html").read_text()
        ) == shown


def test_feed_robots_and_versions(site):
    feedparser = pytest.importorskip("feedparser")
    for season in ("small", "sealed"):
        feed = feedparser.parse(
            (site / f"seasons/{season}/feed.xml").read_bytes(), sanitize_html=False
        )
        assert feed.version == "atom10" and not feed.bozo
        assert len({one.id for one in feed.entries}) == len(feed.entries) > 0
        assert all((site / one.link[1:] / "index.html").exists() for one in feed.entries)
        settled = {
            f"/{path.parent.relative_to(site)}/"
            for path in site.glob(f"seasons/{season}/assets/*/2022-*/index.json")
            if all(
                one["line"]["phase"] == "settled"
                for one in json.loads(path.read_bytes())["decisions"]
            )
        }
        assert {one.link for one in feed.entries if "/assets/" in one.link} <= settled
        assert feed.feed.updated == max(one.updated for one in feed.entries)
        page = (site / f"seasons/{season}/index.html").read_text()
        assert (
            'type="application/atom+xml" title=' in page
            and f'href="/seasons/{season}/feed.xml"' in page
        )
    assert "<script>" not in (site / "seasons/small/feed.xml").read_text()
    from urllib.robotparser import RobotFileParser

    robots = RobotFileParser()
    robots.parse((site / "robots.txt").read_text().splitlines())
    assert robots.can_fetch("*", "/seasons/small/") and robots.can_fetch(
        "*", "/zh/seasons/small/feed/"
    )
    assert not any(
        robots.can_fetch("*", path)
        for path in ("/agents/me/packet", "/api/openapi.json", "/metrics")
    )
    now = read(site, f"{HOME}/now.json")
    some = {"/seasons/small/", "/zh/seasons/small/entries/one-a/", "/seasons/small/assets/AAJX/"}
    assert some <= now["pages"].keys()
    assert not any("2022-" in path or "/items/" in path for path in now["pages"])
    for path, version in now["pages"].items():
        assert f'data-version="{version}"' in (site / path[1:] / "index.html").read_text()
    assert len(json.dumps(now)) < 3000


def test_between_closes_accounts_are_shown_as_provisional_where_nobody_outside_plays(
    web_store, site, tmp_path
):
    held = {entry: {} for entry in ("one-a", "two-b", BASELINE)}
    for file in sorted(
        site.glob(f"{HOME}/assets/*/2022-*/index.json")
    ):  # the newest round of each asset is open
        for line in (one["line"] for one in json.loads(file.read_bytes())["decisions"]):
            if line["entry"] in held:
                held[line["entry"]][line["asset"]] = line
    growth = {"AAJX": 1.02, "AHVQ": 0.95}
    assert all(line["phase"] == "executed" for lines in held.values() for line in lines.values())
    for season, session in (("small", None), ("small", "2022-05-02"), ("sealed", None)):
        own = Health(season, "me", live=True)
        for asset, value in growth.items():
            own.marks[asset] = Mark(
                session=session or held[BASELINE][asset]["session"],
                growth=value,
                at="2022-06-08T15:00:00Z",
            )
        folder = tmp_path / f"{season}{session}"
        shutil.copytree(site, folder)
        PageWriter(web_store, folder, FAST, own=lambda own=own: own).update()
        now = read(folder, f"seasons/{season}/now.json")
        if (
            season == "sealed" or session
        ):  # positions would be told; or a mark of a close that is not the last one
            assert not now.get("provisional")
            continue
        assert now["priced_at"] == "2022-06-08T15:00:00Z"
        for entry, lines in held.items():
            worth = sum(line["nav"] for line in lines.values())
            made = sum(
                line["nav"] * line["position"] * (growth[asset] - 1)
                for asset, line in lines.items()
            )
            assert now["provisional"][entry] == pytest.approx(made / worth, abs=1e-5)
    assert 'data-moving="one-a"' in (site / f"{HOME}/index.html").read_text()
    assert "data-moving" not in (site / "seasons/sealed/index.html").read_text()
