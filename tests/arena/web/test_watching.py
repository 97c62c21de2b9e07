"""What people watch: prices, who decides, money, trades, and how the arena is; all of it true."""

from __future__ import annotations

import re

import msgspec
import pytest
from arena_sample import FAST
from fastapi.testclient import TestClient
from sqlalchemy import delete, insert

from tradeassay.arena.queries.current import season_now
from tradeassay.arena.queries.reader import ArenaReader, SeasonReader
from tradeassay.arena.queries.seasons import Selection
from tradeassay.arena.rounds.health import SILENT_S
from tradeassay.arena.season import BASELINE
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import kept_views, workers
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.contents import names_of
from tradeassay.arena.web.context import House
from tradeassay.arena.web.words import words


@pytest.fixture
def reader(web_store: Store) -> SeasonReader:
    found = ArenaReader(web_store, config=FAST).season("small")
    assert found is not None
    return found


def test_trades_add_up_to_the_account(reader: SeasonReader) -> None:
    board = {row.entry: row for row in reader.board(Selection()).rows}
    for entry in ("one-a", "two-b", "trend", BASELINE):
        trades = reader.trades(entry)
        gained = board[entry].measures["CR"].value
        assert gained is not None and trades.value == pytest.approx(trades.start * (1 + gained), rel=1e-9)
        made = sum(one.result for one in trades.newest)
        assert trades.count == len(trades.newest)  # few enough to be listed in full
        assert made == pytest.approx(trades.value - trades.start, abs=1e-6)
        assert sum(one.fees for one in trades.newest) == pytest.approx(trades.fees, abs=1e-9)
    assert reader.trades(BASELINE).won.value is None  # it never sells
    assert (reader.trades("one-a").won.n or 0) > 3


def test_prices_and_deciders_are_told(reader: SeasonReader, web_store: Store) -> None:
    now = season_now(web_store, reader.season, "2022-06-09T20:00:00Z")
    assert [one.asset for one in now.prices] == ["AAJX", "AHVQ"]
    assert all(one.price and one.price > 0 and one.moved is not None for one in now.prices)
    assert now.deciding or now.next_at == "2022-06-09T20:00:00Z"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_names_whoever_is_still_deciding(
    reader: SeasonReader, web_store: Store, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = season_now(web_store, reader.season, None)
    some = msgspec.structs.replace(now, deciding={"AAJX": ("one-a", "two-b")})
    monkeypatch.setattr("tradeassay.arena.queries.reader.season_now", lambda *_: some)
    with TestClient(create_app(House(reader=ArenaReader(web_store, config=FAST), current="small"))) as client:
        found = client.get(f"/season/small?lang={lang}")
    names = names_of(words(lang), reader.season)
    assert found.status_code == 200 and f"AAJX: {names['one-a']}, {names['two-b']}" in found.text


def test_a_stalled_season_is_never_shown_as_live(web_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is kept until something happens, and nothing happens in a season that stalls."""
    monkeypatch.setattr("tradeassay.arena.queries.reader.STATUS_S", 0.0)
    clock = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    row = {"season": "small", "worker": "w", "state": "live", "since": "2022-06-08T00:00:00Z", "beat": clock[0]}
    with web_store.engine.begin() as db:
        db.execute(insert(workers).values(**row, rounds=3, next_at="2030-01-01T00:00:00Z", troubles="[]"))
    try:
        with TestClient(create_app(House(reader=ArenaReader(web_store, config=FAST), current="small"))) as client:
            page = client.get("/season/small").text
            assert 'class="state live"' in page and "2030-01-01 00:00 UTC" in page
            assert client.get("/healthz").status_code == 200
            clock[0] += SILENT_S + 1
            page = client.get("/season/small").text
            assert 'class="state stalled"' in page and 'class="state live"' not in page
            assert "stalled since" in client.get("/health?lang=en").text
            assert "停滞" in client.get("/health?lang=zh").text
            assert client.get("/healthz").status_code == 503
            assert client.get("/api/seasons").json()["seasons"][-1]["progress"]["status"] == "stalled"
    finally:
        with web_store.engine.begin() as db:
            db.execute(delete(workers).where(workers.c.worker == "w"))


def test_headline_table_and_chart_are_of_one_snapshot(client: TestClient) -> None:
    page = client.get("/season/small").text
    drawn = re.findall(r'<path class="ink [^"]*" data-entry="([^"]*)"[^>]* d="([^"]*)"', page)
    last = {id: -sum(int(y) for y in re.findall(r"[Ml]-?\d+ ?(-?\d+)", path)) * 1e-5 for id, path in drawn}
    board = client.get("/api/seasons/small/standings").json()
    assert board["behind"] == 0
    for row in board["rows"]:
        assert last[row["entry"]] == pytest.approx(row["measures"]["CR"]["value"], abs=1e-5)


def test_everybody_has_a_name_of_their_own(reader: SeasonReader) -> None:
    twice = msgspec.structs.replace(
        reader.season,
        entries=(*reader.season.entries, msgspec.structs.replace(reader.season.entries[0], id="one-c")),
    )
    for language in ("en", "zh"):
        names = names_of(words(language), twice)
        assert len(set(names.values())) == len(names) == 7
    assert names_of(words("en"), twice)["one-c"] == "Investor · a (one-c)"
    assert names_of(words("zh"), twice)["two-a"] == "交易团队 · a"


def test_reasons_of_several_clauses_are_translated() -> None:
    nested = "the bar was doubted: 9 is +80% from the close before, 5; 40% is the limit"
    assert words("zh").reason(nested).isascii() is False and "close" not in words("zh").reason(nested)
    said = words("zh").reason("number '7' is not in the source; something new; name 'X' is not in the source")
    assert said == "数字“7”不在来源中；something new；名称“X”不在来源中"


def test_what_is_kept_of_one_asset_or_architecture_is_not_computed_again(
    web_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradeassay.arena.queries.view.COSTLY_S", -1.0)
    before = ArenaReader(web_store, config=FAST).season("small")
    assert before is not None and before.rests
    view, season = before.view(), before.season
    kind = season.entries[0].architecture
    wanted = [Selection(assets=(season.assets[0].symbol,)), Selection(architectures=(kind,)), Selection()]
    made = [(view.board(one), view.equity(one)) for one in wanted]
    split = view.split(Selection())
    view.keep(whole=True)
    for name in ("standings", "equity", "split_variance", "behaviour"):
        monkeypatch.setattr(f"tradeassay.arena.queries.view.{name}", None)
    after = ArenaReader(web_store, config=FAST).season("small")
    assert after is not None
    assert [(after.view().board(one), after.view().equity(one)) for one in wanted] == made
    assert after.view().split(Selection()) == split


def test_a_large_season_of_which_nothing_is_kept_is_shown_before_it_is_summed_up(
    web_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum is worked out by hand here; served, a thread does it."""
    later: list[tuple[object, ...]] = []

    class Notification:
        def __init__(self, target, args, daemon) -> None:
            later.append((target, *args))

        def start(self) -> None:
            pass

    def forget() -> None:
        with web_store.engine.begin() as db:
            db.execute(delete(kept_views))

    monkeypatch.setattr("tradeassay.arena.queries.reader.Thread", Notification)
    monkeypatch.setattr("tradeassay.arena.queries.reader.LARGE", 0)
    forget()
    seasons = ArenaReader(web_store, config=FAST, hurried=True)
    with TestClient(create_app(House(reader=seasons, current="small"))) as client:
        first = client.get("/season/small")
        assert first.status_code == 200 and "rounds were settled since these standings" in first.text
        assert client.get("/season/small/entries/one-a").status_code == 200
        renew, version = later[0]
        renew(version)
        whole = client.get("/season/small").text
        assert "rounds were settled since" not in whole
    forget()
    with TestClient(create_app(House(reader=ArenaReader(web_store, config=FAST), current="small"))) as client:
        body = re.compile(r"<tbody>.*?</tbody>", re.S)
        assert body.findall(whole) == body.findall(client.get("/season/small").text)
    forget()
