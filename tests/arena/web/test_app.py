"""What is dynamic: experts' verdicts, health, and how the site's files are sent."""

import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from arena_sample import FAST, make_season, play
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError
from tests.arena.conftest import listening

from tradeassay.cli import main
from tradeassay_arena.api.agent_api import AgentApi
from tradeassay_arena.season import Entry, Season
from tradeassay_arena.state.store import Store
from tradeassay_arena.web.app import Arena, create_app
from tradeassay_arena.web.serving import Player, Serving
from tradeassay_arena.web.site import PageWriter, static_address
from tradeassay_bench.core.time import SECOND, FixedClock


def test_headers_let_nothing_foreign_run_and_nothing_is_sent_twice(client):
    script = re.search(r'src="(/static/arena-\w+\.js)"', client.get("/seasons/small/").text)[1]
    for path in ("/seasons/small/", "/seasons/index.json", "/nothing", script, "/health"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy and "default-src 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in client.get(script).headers["cache-control"]
    first = client.get("/seasons/small/")
    assert (
        first.headers["cache-control"] == "no-cache" and first.headers["content-encoding"] == "gzip"
    )
    again = client.get("/seasons/small/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = client.get("/seasons/small/", headers={"accept-encoding": "identity"})
    assert plain.text == first.text and "content-encoding" not in plain.headers


def test_wrong_addresses_are_told_so(client):
    paths = (
        "/seasons/none/ /seasons/small/entries/none/ /seasons/small/../../conftest.py /.lock /%00 "
        "/seasons/%00/ "
        "/seasons/small/.written.json /seasons/small/%1f /seasons/%2e%2e/x //etc/passwd "
        "/static/none.js"
    )
    assert {path: client.get(path).status_code for path in paths.split()} == dict.fromkeys(
        paths.split(), 404
    )
    assert client.get("/seasons/small", follow_redirects=False).status_code == 308
    lost = client.get("/zh/none")
    assert lost.status_code == 404 and "<main" in lost.text and 'lang="zh-Hans"' in lost.text
    for missing in ("/api/none", "/seasons/none/now.json"):
        assert client.get(missing).status_code == 404 and client.get(missing).json()["detail"]


def test_health_outages_and_owners(client):
    assert client.get("/healthz").status_code == 200 and client.get("/healthz").json()["ok"]
    assert (
        "Everything works." in client.get("/health").text
        and "运行状况" in client.get("/health?lang=zh").text
    )
    body = {"key": "ta-000000000000-" + "x" * 43, "verdict": "confirm"}
    assert client.post("/api/seasons/%00/items/%00/reviews", json=body).status_code == 404
    for address, word in (("/seat/", "Status of your agent"), ("/zh/seat/", "您的智能体的状态")):
        page = client.get(address).text
        assert word in page and 'name="token"' in page and 'data-field="status"' in page
        assert all(
            f'data-{one}="' in page for one in ("waiting", "declined", "registered", "revoked")
        )
    assert 'href="/seat/"' in client.get("/seasons/sealed/").text
    assert 'href="/seat/"' not in client.get("/seasons/small/").text


@pytest.mark.journey
def test_experts_judge_with_their_key_and_no_other(web_feed, store, tmp_path):
    play(store, make_season(), web_feed, "2022-05-13")
    api = AgentApi(
        store, FixedClock(6000 * SECOND)
    )  # a new minute would begin the count of wrong keys anew
    writer = PageWriter(store, tmp_path / "site", FAST)
    writer.update()
    client = TestClient(create_app(Arena(api=api, folder=tmp_path / "site")))
    assert client.get("/seasons/small/now.json").json()["judged"] is False
    now = "2022-06-01T00:00:00Z"
    keys = {name: api.issue_key("expert", name, now=now) for name in ("ann", "bob")}
    item = client.get("/seasons/small/information/index.json").json()["items"][0]["id"]
    where, page = f"/api/seasons/small/items/{item}/reviews", f"/seasons/small/items/{item}/"
    said = client.post(where, json={"key": keys["ann"], "verdict": "confirm", "note": "fair"})
    assert said.status_code == 200 and said.json()["expert"] == "ann"
    client.post(where, json={"key": keys["bob"], "verdict": "reject"})
    assert "ann" not in client.get(page).text
    writer.update()
    shown = client.get(page).text
    assert (
        "ann" in shown
        and "fair" in shown
        and keys["ann"] not in shown
        and 'type="password"' in shown
    )
    assert client.get("/seasons/small/now.json").json()["judged"] is True
    figures = client.get("/seasons/small/information/index.json").json()["quality"]
    assert (figures["experts"], figures["reviewed"]) == (2, 1)
    wrong = (
        ({"key": "x", "verdict": "confirm"}, 403),
        ({"key": keys["ann"], "verdict": "maybe"}, 422),
    )
    for body, status in wrong:
        assert client.post(where, json=body).status_code == status
    assert client.post(where, data={"key": keys["ann"], "verdict": "confirm"}).status_code == 415
    long = {"key": keys["ann"], "verdict": "confirm", "note": "x" * 9000}
    assert client.post(where, json=long).status_code == 413
    mine = {"key": keys["ann"], "verdict": "confirm"}
    nowhere = client.post("/api/seasons/small/items/none/reviews", json=mine)
    assert nowhere.status_code == 404 and nowhere.json()["detail"]
    codes = [
        client.post(where, json={"key": "y", "verdict": "confirm"}).status_code for _ in range(12)
    ]
    assert codes[-1] == 429


def test_only_a_named_origin_may_frame_the_pages(web_store, site, client, tmp_path, capsys):
    kept = client.get("/seasons/small/").headers
    assert (
        "frame-ancestors 'none'" in kept["content-security-policy"]
        and kept["x-frame-options"] == "DENY"
    )
    assert "access-control-allow-origin" not in kept
    blog = "https://blog.example.org"
    with TestClient(create_app(Arena(api=AgentApi(web_store), folder=site, embed=blog))) as framed:
        for path in ("/seasons/small/", "/seasons/small/equity.json"):
            shown = framed.get(path).headers
            assert shown["content-security-policy"].endswith(f"frame-ancestors {blog}")
            assert "x-frame-options" not in shown and shown["access-control-allow-origin"] == blog

    for origin in ("javascript:1", "https://a.example; script-src *", "blog.example.org"):
        assert main(["arena", "serve", "--embed", origin, "--db", str(tmp_path / "arena.db")]) == 2
        assert (
            "is not an origin" in capsys.readouterr().err and not (tmp_path / "arena.db").exists()
        )


class _Forgetful(Store):
    """A database that is away the first three times."""

    away = 3

    def create_season(self, season: Season, now: str) -> None:
        if self.away:
            self.away -= 1
            raise OperationalError("", {}, OSError("connection refused"))
        super().create_season(season, now)


def test_the_webhook_hears_what_begins_to_fail_and_that_it_is_over(store):
    heard: list[dict] = []

    class Ear(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    ear = ThreadingHTTPServer(("127.0.0.1", 0), Ear)
    threading.Thread(target=ear.serve_forever, args=(0.05,), daemon=True).start()
    entries = (Entry(id="bull", architecture="rule", params={"rule": "buy"}),)
    season = make_season(id="told", entries=entries, first="2022-06-01", last="2022-06-02")
    player = Player(
        season,
        _Forgetful(store.engine),
        Serving(speed="max", webhook=f"http://127.0.0.1:{ear.server_port}/"),
    )
    player.start()
    assert player.join(60) and player.error is None
    until = time.monotonic() + 20
    while len(heard) < 2 and time.monotonic() < until:  # posted by threads of their own
        time.sleep(0.05)
    ear.shutdown()
    ear.server_close()
    first, last = sorted((one["text"] for one in heard), key=lambda text: "well" in text)
    assert (
        "arena 'told': database: " in first
        and "connection refused" in first
        and "trying again" in first
    )
    assert last == "arena 'told': everything works again" and {one["season"] for one in heard} == {
        "told"
    }


@pytest.fixture
def port(store, tmp_path):
    PageWriter(store, tmp_path / "site").update()
    with listening(Arena(api=AgentApi(store), folder=tmp_path / "site")) as found:
        yield found


def test_head_is_get_without_its_body_and_nobody_is_sent_to_a_host_that_a_request_named(port):
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as reader:
        dynamic = ("/healthz", "/metrics", "/health")
        for path in ("/seasons/", "/seasons/now.json", static_address("arena.css"), *dynamic):
            asked, whole = reader.head(path), reader.get(path)
            assert (asked.status_code, asked.content) == (200, b"") and whole.content
            assert asked.headers["content-type"] == whole.headers["content-type"]
        sent_on = reader.get("/static?a=1", headers={"host": "elsewhere.example"})
    assert (sent_on.status_code, sent_on.headers["location"]) == (308, "/static/")


def test_a_body_with_two_lengths_hides_no_second_request(port):
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        lengths = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
        second = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        stranger.sendall(
            b"POST /agents/me/choice HTTP/1.1\r\nHost: x\r\n" + lengths + b"\r\n0\r\n\r\n" + second
        )
        stranger.settimeout(20)
        said = b""
        while part := stranger.recv(65536):
            said += part
        assert said.startswith(b"HTTP/1.1 400") and said.count(b"HTTP/1.1") == 1


def test_chinese_pages_are_made_when_they_are_asked_for(web_store, site, tmp_path):
    writer = PageWriter(web_store, tmp_path, FAST, languages=("en",))
    writer.update()
    assert not (tmp_path / "zh").exists()
    arena = Arena(api=AgentApi(web_store), folder=tmp_path, translate=writer.translate)
    with TestClient(create_app(arena)) as reader:
        versions = reader.get("/seasons/small/now.json").json()["pages"]
        assert set(versions) == {one for one in versions if not one.startswith("/zh/")}
        written = sorted(path.parent for path in (site / "zh").rglob("index.html"))
        assert len(written) > 40
        for folder in written:
            path = f"/{folder.relative_to(site)}/".replace("/./", "/")
            english = reader.get(path.removeprefix("/zh")).text
            made, whole = reader.get(path), (folder / "index.html").read_text()
            assert made.status_code == 200, path
            mark = re.compile('data-version="([0-9a-f]*)"')
            assert mark.sub("", made.text) == mark.sub("", whole), path
            assert mark.findall(made.text) == mark.findall(english)
        page = reader.get("/zh/seasons/small/")
        again = reader.get("/zh/seasons/small/", headers={"if-none-match": page.headers["etag"]})
        assert again.status_code == 304 and page.headers["cache-control"] == "no-cache"
        for path in ("/zh/seasons/none/", "/zh/seasons/small/assets/AAJX/1990-01-01/", "/zh/no/"):
            lost = reader.get(path)
            assert lost.status_code == 404 and 'lang="zh-Hans"' in lost.text
