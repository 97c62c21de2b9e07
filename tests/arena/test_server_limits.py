"""What a served arena answers to requests that are not as they should be."""

import socket

import httpx
import pytest
from tests.arena.conftest import listening

from tradeassay.arena.api.doors import Doors
from tradeassay.arena.web.app import Arena
from tradeassay.arena.web.site import PageWriter, static_address


@pytest.fixture
def port(store, tmp_path):
    PageWriter(store, tmp_path / "site").update()
    with listening(Arena(doors=Doors(store), folder=tmp_path / "site")) as found:
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
        stranger.sendall(b"POST /agents/me/choice HTTP/1.1\r\nHost: x\r\n" + lengths + b"\r\n0\r\n\r\n" + second)
        stranger.settimeout(20)
        said = b""
        while part := stranger.recv(65536):
            said += part
        assert said.startswith(b"HTTP/1.1 400") and said.count(b"HTTP/1.1") == 1
