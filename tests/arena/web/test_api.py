"""The JSON interface: numbers that agree with the standings, pages of limited length, clear refusals."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tradeassay.arena.queries.reader import ArenaReader, SeasonReader, shown
from tradeassay.arena.queries.seasons import Selection
from tradeassay.arena.standings import read_lines
from tradeassay.arena.state.rows import SeasonEvent
from tradeassay.arena.state.store import Store
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.context import House
from tradeassay.arena.web.experts import Experts

BASE = "/api/seasons/small"


@pytest.fixture(scope="module")
def reader(web_store: Store) -> SeasonReader:
    found = ArenaReader(web_store).season("small")
    assert found is not None
    return found


def test_the_chart_ends_where_the_standings_say(client: TestClient) -> None:
    for query in ("", "?asset=AAJX", "?architecture=trade&first=2022-05-20"):
        rows = client.get(f"{BASE}/standings{query}").json()["rows"]
        chart = client.get(f"{BASE}/equity{query}").json()
        ends = {curve["entry"]: curve["returns"][-1] for curve in chart["curves"]}
        assert ends == pytest.approx({r["entry"]: r["measures"]["CR"]["value"] for r in rows}, abs=1e-5)
        assert len(chart["days"]) == len(chart["band"]["low"]) == chart["sessions"] + 1
        assert all(low <= high for low, high in zip(chart["band"]["low"], chart["band"]["high"], strict=True))


def test_a_selection_in_memory_is_the_selection_of_the_database(reader: SeasonReader) -> None:
    wanted = Selection(assets=("AHVQ",), models=("test/a",), first="2022-05-10", last="2022-06-02")
    lines = reader.view().lines(wanted)
    assert set(lines) == {("one-a", "AHVQ"), ("two-a", "AHVQ"), ("buy-and-hold", "AHVQ")}
    whole = read_lines(reader.store, reader.season)
    for key, line in lines.items():
        inside = [wanted.first <= day <= wanted.last for day in whole[key].sessions]  # type: ignore[operator]  # both given
        assert np.array_equal(line.earned, whole[key].earned[inside])
        assert line.tokens == (0 if key[0] == "buy-and-hold" else 12 * len(line.sessions))


def test_decisions_come_in_pages_that_join_up(client: TestClient) -> None:
    def ids(query: str) -> list[int]:
        found: list[int] = []
        before = ""
        while True:
            page = client.get(f"{BASE}/decisions?{query}&limit=40{before}").json()
            found += [item["id"] for item in page["items"]]
            assert len(page["items"]) <= 40
            if page["next"] is None:
                return found
            before = f"&before={page['next']}"

    mine = ids("entry=one-a&asset=AHVQ")
    assert mine == sorted(set(mine), reverse=True) and len(mine) == 38  # a coin's day ends at the next midnight
    assert set(ids("entry=one-a&status=failed")) < set(ids("entry=one-a"))
    assert len(ids("session=2022-06-08")) == 6


def test_an_entry_has_its_place_behaviour_positions_and_luck(client: TestClient) -> None:
    found = client.get(f"{BASE}/entries/trend").json()
    assert found["standing"]["entry"] == "trend" and set(found["luck"]) == {"AAJX", "AHVQ"}
    assert {p["asset"] for p in found["positions"]} == {"AAJX", "AHVQ"}
    memory = client.get(f"{BASE}/entries/one-a/memory").json()
    assert memory["assets"][0]["items"][0]["group"] == "short"
    assert client.get(f"{BASE}/entries/trend/memory").json()["assets"] == []


def test_the_timeline_shows_news_once_at_the_first_session_that_had_it(client: TestClient) -> None:
    found = client.get(f"{BASE}/timeline?asset=AAJX&entry=one-a&limit=400").json()
    days = [point["session"] for point in found["points"]]
    assert days == sorted(days) and not found["more"]
    ids = [event["id"] for event in found["events"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(event["published_at"] <= f"{event['session']}T23:59:59Z" for event in found["events"])
    assert client.get(f"{BASE}/timeline?asset=AAJX&entry=one-a&limit=3").json()["more"]
    assert {p["status"] for p in found["points"]} >= {"decided", "failed", "missed"}


def test_the_variance_is_split_into_shares_that_add_up(client: TestClient) -> None:
    shares = client.get(f"{BASE}/split").json()["shares"]
    assert sum(share["value"] for share in shares.values()) == pytest.approx(1.0)
    alone = client.get(f"{BASE}/split?model=test/a").json()["shares"]["model"]
    assert alone["value"] is None and "two architectures" in alone["reason"]


def test_published_figures_are_marked(client: TestClient) -> None:
    found = client.get(f"{BASE}/published").json()
    ours = [one for figure in found["figures"] for one in figure["ours"]]
    assert found["second_hand"] and ours
    assert all(one["comparable"] is False and "our data is synthetic" in one["reasons"] for one in ours)


def test_what_was_had_is_not_sent_again(client: TestClient) -> None:
    first = client.get(f"{BASE}/standings")
    again = client.get(f"{BASE}/standings", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/seasons/none", 404), (f"{BASE}/entries/none", 404), (f"{BASE}/decisions/999999", 404),
        (f"{BASE}/decisions?entry=none", 404), (f"{BASE}/timeline?asset=AAJX&entry=none", 404),
        (f"{BASE}/items/none", 404), ("/api/events/stream?season=none", 404), ("/api/none", 404),
        (f"{BASE}/standings?asset=none", 422), (f"{BASE}/standings?first=soon", 422),
        (f"{BASE}/decisions?limit=0", 422), (f"{BASE}/decisions?limit=100000", 422),
        (f"{BASE}/decisions/x", 422), (f"{BASE}/timeline", 422), (f"{BASE}/events?before=0", 422),
    ],
)  # fmt: skip
def test_refusals_are_clear(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json" and answer.json()["detail"]


def test_experts_judge_with_their_key_and_no_other(client: TestClient, experts: Experts) -> None:
    item = client.get(f"{BASE}/items?status=published&limit=1").json()["items"][0]["id"]
    where = f"{BASE}/items/{item}/reviews"
    key = experts.keys["ann"]
    said = client.post(where, json={"key": key, "verdict": "confirm", "note": "fair"})
    assert said.status_code == 200 and said.json()["expert"] == "ann"
    client.post(where, json={"key": experts.keys["bob"], "verdict": "reject"})
    page = client.get(f"/season/small/items/{item}").text
    assert "ann" in page and "fair" in page and key not in page and 'type="password"' in page
    figures = client.get(f"{BASE}/stream").json()
    assert (figures["experts"], figures["reviewed"]) == (2, 1)
    for body, status in (({"key": "x", "verdict": "confirm"}, 403), ({"key": key, "verdict": "maybe"}, 422)):
        assert client.post(where, json=body).status_code == status
    assert client.post(where, data={"key": key, "verdict": "confirm"}).status_code == 415
    assert client.post(where, json={"key": key, "verdict": "confirm", "note": "x" * 9000}).status_code == 413
    assert client.post(f"{BASE}/items/none/reviews", json={"key": key, "verdict": "confirm"}).status_code == 404
    codes = [client.post(where, json={"key": "y", "verdict": "confirm"}).status_code for _ in range(12)]
    assert codes[-1] == 429


async def _listen(app: object, query: str, headers: dict[str, str], events: int) -> list[str]:
    """Read a stream until it has given so many events, then hang up."""
    found: list[str] = []
    enough = asyncio.Event()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/api/events/stream", "raw_path": b"/api/events/stream", "query_string": query.encode(),
        "root_path": "", "client": ("test", 1), "server": ("test", 80),
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip

    async def receive() -> dict[str, object]:
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        found.append(bytes(message.get("body", b"")).decode())  # type: ignore[arg-type]  # bytes by the protocol
        enough_said = "".join(found).count("data: ") >= events if events else ": still" in found[-1]
        if enough_said:
            enough.set()

    await asyncio.wait_for(app(scope, receive, send), 20)  # type: ignore[operator]  # an ASGI application
    return [part for part in "".join(found).split("\n\n") if part]


def test_the_stream_resumes_where_a_reader_was(web_store: Store) -> None:
    app = create_app(House(reader=ArenaReader(web_store)), poll_s=0.01, heartbeat_s=0.02)
    parts = asyncio.run(_listen(app, "season=small&after=0", {}, 5))
    events = [part for part in parts if part.startswith("id:")]
    ids = [int(part.split("\n")[0][4:]) for part in events]
    assert ids == sorted(ids) and parts[0] == "retry: 2000"
    resumed = asyncio.run(_listen(app, "season=small&after=0", {"last-event-id": str(ids[2])}, 1))
    assert resumed[1].split("\n")[0] == f"id: {ids[3]}"
    told = json.loads(resumed[1].split("data: ")[1])
    assert told["seq"] == ids[3] and told["season"] == "small"
    quiet = asyncio.run(_listen(app, "season=small", {"last-event-id": "rubbish"}, 0))
    assert quiet[-1].startswith(": still")


def test_a_costly_view_is_replaced_by_one_made_beside_it(web_store: Store) -> None:
    reader = ArenaReader(web_store).season("small")
    assert reader is not None
    old = reader.view()
    board = old.board(Selection())
    old.version, old.cost_s, reader._made_at = old.version - 1, 1.0, float("-inf")
    assert (
        reader.view() is old and reader.shown_seq == old.version
    )  # nobody waits, and the page knows it is behind
    for _ in range(6000):
        if reader.view() is not old:
            break
        threading.Event().wait(0.02)
    assert reader.view() is not old and reader.shown_seq == reader.seq
    assert reader.view().board(Selection()) == board


def test_how_a_sealed_decision_ended_is_no_event() -> None:
    made = {"asset": "A", "session": "2022-06-01"}
    event = SeasonEvent(seq=1, season="s", kind="failed", at="", body={**made, "entry": "x", "action": "HOLD"})
    told = shown(event, True)
    assert (told.kind, told.body) == ("decided", {**made, "entry": "x"}) and shown(event, False) is event
    missed = SeasonEvent(seq=2, season="s", kind="missed", at="", body={**made, "cause": "late", "slots": 1})
    assert (shown(missed, True).kind, shown(missed, True).body) == ("closed", made)
    everybody = SeasonEvent(seq=3, season="s", kind="missed", at="", body={**made, "cause": "no price"})
    assert shown(everybody, True) == everybody
