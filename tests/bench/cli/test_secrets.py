"""A server that echoes the key, in whatever form, gets it onto no disk and no screen."""

import base64
import gzip
import json
import logging
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import pytest

from tradeassay.cli import main
from tradeassay.core.secrets import KNOWN, REMOVED
from tradeassay_bench.llm import RetryPolicy

pytestmark = pytest.mark.journey

KEY = "sk-ant-api03-W8rTq5ZxN2mVb7KcJ4h/g9LpD1s+a6XeU3oIi0"
DAYS = ["ktdfin-v1", "--first", "2022-02-07", "--last", "2022-02-08", "--executor", "inline"]
Reply = tuple[int, dict[str, str], bytes]


def answered(text, calls=None):
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    return json.dumps(
        {
            "id": KEY,
            "object": "chat.completion",
            "created": 0,
            "model": f"tiny {KEY}",
            "system_fingerprint": KEY,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77},
        }
    ).encode()


def pieces(size):
    return [KEY[at : at + size] for at in range(0, len(KEY), size)]


def refused(status, said):
    return (
        status,
        {},
        json.dumps({"error": {"message": said, "code": "bad_key", "param": said}}).encode(),
    )


CODED = base64.b64encode(f"Bearer {KEY}".encode()).decode()
WAYS = {
    "401-text": lambda sent: (401, {}, f"who is {sent['authorization']}?".encode()),
    "401-json": lambda sent: refused(401, f"Incorrect API key provided: {KEY}."),
    "401-headers": lambda sent: (
        401,
        {"www-authenticate": f"Bearer {KEY}"},
        json.dumps(sent).encode(),
    ),
    "401-base64": lambda sent: refused(401, CODED),
    "401-zipped": lambda sent: (
        401,
        {"content-encoding": "gzip"},
        gzip.compress(refused(401, KEY)[2]),
    ),
    "400-pieces": lambda sent: refused(
        400, {f"part {at}": piece for at, piece in enumerate(pieces(14))}
    ),
    "500-text": lambda sent: (500, {"retry-after": "0"}, f"<html>{KEY}".encode()),
    "500-json": lambda sent: (
        500,
        {"retry-after": "0"},
        json.dumps([sent, KEY.encode().hex()]).encode(),
    ),
    "500-percent": lambda sent: (500, {}, f"https://host/?{urlencode({'key': KEY})}".encode()),
    "400-ends": lambda sent: refused(400, f"{KEY[:25]}...{KEY[-12:]}"),
    "200-text": lambda sent: (
        200,
        {},
        answered(f'```json\n{{"{KEY}": "{CODED}", "orders": ["{KEY}"]}}\n```'),
    ),
    "200-broken": lambda sent: (200, {}, answered(KEY)[:-30]),
}


class Echo(BaseHTTPRequestHandler):
    """Answers in the way that the model is called after; every answer holds the key it was
    called with.
    """

    protocol_version = "HTTP/1.1"
    heard: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        assert KEY.encode() not in asked
        way = json.loads(asked)["model"]
        sent = {name.lower(): value for name, value in self.headers.items()}
        assert sent["authorization"] == f"Bearer {KEY}"
        Echo.heard.append(way)
        status, headers, body = WAYS[way](sent)
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "x-request-id": KEY,
            **headers,
        }.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(0, len(body), 17):  # a key never arrives whole
            self.wfile.write(body[at : at + 17])
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def echo(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("ECHO_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("ECHO_API_KEY", KEY)
        monkeypatch.setattr(RetryPolicy, "first_s", 0.0)
        Echo.heard.clear()
        yield server
        server.shutdown()
        thread.join()


def forms():
    made = [KEY, KEY.encode().hex(), KEY[13:25], KEY[-12:], KEY[20:32], quote(KEY[16:], safe="")]
    inner = (
        base64.b64encode(before + KEY.encode())[4:-4].decode() for before in (b"", b"a", b"ab")
    )
    made += [coded[at : at + 20] for coded in inner for at in (8, 24)]
    return [form.encode() for form in made]


def nowhere(folder, *shown):
    texts = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    texts |= {f"screen {at}": text.encode() for at, text in enumerate(shown)}
    assert texts
    for name, text in texts.items():
        for form in forms():
            assert form not in text, f"{name} holds {form!r}"


@pytest.mark.slow_for("every way")
@pytest.mark.parametrize(
    "ways",
    [("401-headers", "400-pieces", "500-json", "200-text", "200-broken"), tuple(WAYS)],
    ids=["some", "every way"],
)
def test_neither_disk_nor_screen_ever_holds_the_key(ways, echo, place, tell, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    models = [part for way in ways for part in ("-m", f"openai-api/echo/{way}")]
    status = main(["run", *DAYS, *models, "--name", "echoed"])
    first = capsys.readouterr()
    assert status in (0, 1), first.err
    assert set(Echo.heard) == set(ways), "every way was taken"
    shown = tell(["report", "runs/echoed"])
    nowhere(place, first.out, first.err, shown.out, shown.err, caplog.text)
    assert any(REMOVED.encode() in path.read_bytes() for path in place.rglob("*.jsonl"))
    again = main(
        ["run", *DAYS, *models, "--name", "again", "--replay", "--recordings", "runs/echoed"]
    )
    assert again == status, "redaction changes no question: the recording answers all of them"
    assert main(["verify", "runs/echoed"]) == 3, "what a live model said cannot be asked for again"


def only_in_a_file(monkeypatch, file):
    """Take the server's address and key out of the environment, and write them into a file."""
    found = {name: os.environ[name] for name in ("ECHO_BASE_URL", "ECHO_API_KEY")}
    for name in (*found, "TRADEASSAY_LOCAL_SERVER"):  # which are so taken out again after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(KNOWN, "values", ())  # the tests before this one told the key
    monkeypatch.setattr(KNOWN, "prepared", None)
    lines = [f"export {name}='{value}'  # of a server" for name, value in found.items()]
    file.write_text("\n".join(["# keys", *lines, "TRADEASSAY_LOCAL_SERVER=http://nowhere", ""]))


def test_a_key_that_is_only_in_a_file_is_used_and_never_shown(
    echo, place, tell, monkeypatch, capsys
):
    only_in_a_file(monkeypatch, place / ".env")
    (place / "below").mkdir()
    monkeypatch.chdir(place / "below")
    shown = tell(["doctor"])
    assert "ECHO_API_KEY" in shown.out
    status = main(
        [
            "run",
            *DAYS,
            "-m",
            "openai-api/echo/401-json",
            "-m",
            "openai-api/echo/200-text",
            "--name",
            "one",
        ]
    )
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert set(Echo.heard) == {"401-json", "200-text"}, "the server heard the file's key"
    nowhere(place / "below", shown.out, shown.err, out, err)
    assert any(REMOVED.encode() in path.read_bytes() for path in place.rglob("*.jsonl"))
    assert "TRADEASSAY_LOCAL_SERVER" not in os.environ, (
        "what tradeassay itself reads is not taken from the file"
    )


def test_the_environment_comes_before_the_file(echo, place, done):
    (place / ".env").write_text("ECHO_API_KEY=another-key-1234567890\n")
    done(f"run {' '.join(DAYS)} -m openai-api/echo/401-json --name one")
    assert Echo.heard, "the server heard the environment's key"


def test_a_file_of_keys_that_cannot_be_read_is_named_and_not_quoted(echo, place, tell):
    (place / ".env").write_bytes(b"ECHO_API_KEY=" + KEY.encode() + b"\xff\n")
    shown = tell(["run", *DAYS, "-m", "openai-api/echo/401-json"], 2)
    assert f"{place / '.env'} cannot be read: it is not a text file" in shown.err
    assert KEY not in shown.out + shown.err and "Traceback" not in shown.err and not Echo.heard
