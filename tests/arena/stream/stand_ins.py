"""A web server on this machine that behaves as feeds and EDGAR do, on good days and on bad ones."""

import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from tradeassay_arena.stream import RawItem

DAY = "Wed, 01 Jun 2022 {} GMT"


def raw(id: str, **more: str) -> RawItem:
    usual = {"kind": "news", "asset": "ACME", "source": "Wire", "url": "", "title": "", "text": ""}
    return RawItem(id=id, **{**usual, **more})  # type: ignore[arg-type]  # a test's own mapping


def item(title: str, text: str = "", *, at: str = DAY.format("12:00:00"), guid: str = "") -> str:
    named = f"<guid>{guid}</guid>" if guid else ""
    return f"<item><title>{title}</title>{named}<description>{text}</description><pubDate>{at}</pubDate></item>"


def rss(*items: str) -> bytes:
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{"".join(items)}</channel></rss>'.encode()


GOOD = rss(
    item("Ahava sales rose 4 percent in May", "Ahava said sales rose 4 percent in May.", guid="g1"),
    item("Ahava sales rose 4 percent in May", "Ahava said sales rose 4 percent in May.", guid="g1"),
    item("Weather stays dry", "No rain this week."),
)
DATES = rss(
    item("Ahava names a treasurer", "Ahava named Lena Ott treasurer.", guid="d0"),
    item("Ahava without a date", "Ahava said nothing.", at="", guid="d1"),
    item(
        "Ahava of tomorrow",
        "Ahava will open a plant.",
        at="Sat, 01 Jan 2033 00:00:00 GMT",
        guid="d2",
    ),
    item("Ahava of long ago", "Ahava was founded.", at="Thu, 01 Jan 1970 00:00:00 GMT", guid="d3"),
    item("Ahava in no zone", "Ahava moved.", at="2022-06-01T09:00:00", guid="d4"),
    item("Ahava in year one", "Ahava was not there.", at="0001-01-01T00:00:00+14:00", guid="d5"),
    item("Ahava on no day", "Ahava fell off.", at="Wed, 41 Jun 2022 12:00:00 GMT", guid="d6"),
)
STRAY = (
    b"<rss><channel><item><title>Ahava&nbsp;&amp; Sons buys R&D "
    b"site</title><guid>s1</guid><link>https://x.example/?a=1&b=2"
    b"</link><description>Ahava bought a site for 20 million dollars\x0b.</description>"
    b"<pubDate>Wed, 01 Jun 2022 13:00:00 GMT</pubDate></item></channel></rss>"
)
CHINESE = (
    '<?xml version="1.0" encoding="gb2312"?><rss><channel>'
    + item("Ahava 五月销售额增长百分之四", "Ahava 表示，五月销售额增长百分之四。", guid="c1")
    + "</channel></rss>"
).encode("gb2312")
RDF = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    b'xmlns="http://purl.org/rss/1.0/" '
    b'xmlns:dc="http://purl.org/dc/elements/1.1/"><item><title>Ahava opens an office in '
    b"Oslo</title>"
    b"<description>Ahava opened an office in Oslo.</description>"
    b"<dc:date>2022-06-01T08:00:00Z</dc:date></item></rdf:RDF>"
)
MANY = rss(
    *(item(f"Ahava notice {n}", f"Ahava gave notice number {n}.", guid=f"m{n}") for n in range(300))
)
BOMB = gzip.compress(b"<rss>" + b" " * (9 * 2**20))
LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><rss><channel/></rss>'
FILINGS = {
    "name": "AHAVA INC",
    "filings": {
        "recent": {
            "accessionNumber": [
                "0001-22-000009",
                "0001-22-000008",
                None,
                "0001-22-000007",
                "0001-22-000006",
            ],
            "acceptanceDateTime": [
                "2022-06-01T10:00:00.000Z",
                "2022-06-01T09:00:00.000Z",
                None,
                "sometime",
                "2022-06-01T08:00:00.000Z",
            ],
            "reportDate": ["2022-03-31", None, None, "", ""],
            "form": ["10-Q", "8-K", None, "10-K", "4"],
            "primaryDocument": ["q.htm", "k.htm", None, "x.htm", "x.xml"],
            "primaryDocDescription": ["Quarterly report", None, None, "", ""],
        }
    },
}
PAGES: dict[str, bytes] = {
    "/good.xml": GOOD,
    "/dates.xml": DATES,
    "/stray.xml": STRAY,
    "/chinese.xml": CHINESE,
    "/rdf.xml": RDF,
    "/many.xml": MANY,
    "/laughs.xml": LAUGHS,
    "/html.xml": b"<!doctype html><p>Ahava soars",
    "/empty.xml": b"",
    "/page.xml": b"<html><body><p>Please log in</p></body></html>",
    "/huge.xml": b" " * (9 * 2**20),
}
MOVED = {"/moved.xml": "/good.xml", "/round.xml": "/round.xml", "/out.xml": "file:///etc/hosts"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        asked = self.server.asked  # type: ignore[attr-defined]  # the stand-in's own
        asked[self.path] += 1
        if self.path in MOVED:
            self._send(301, Location=MOVED[self.path])
        elif self.path.startswith("/busy"):
            self._send(429, b"slow down", Retry_After=unquote(self.path.partition("?")[2]) or "120")
        elif self.path == "/bomb.xml":
            self._send(200, BOMB, Content_Encoding="gzip")
        elif self.path == "/cut.xml":
            self._send(200, GOOD[:-30], Content_Length=str(len(GOOD)))
            self.close_connection = True
        elif self.path.startswith("/submissions/"):
            if "@" not in self.headers.get("User-Agent", ""):
                self._send(403, b"say who you are")
            else:
                self._send(
                    200, gzip.compress(json.dumps(FILINGS).encode()), Content_Encoding="gzip"
                )
        elif self.path not in PAGES:
            self._send(404, b"no")
        elif self.headers.get("If-None-Match") == '"1"':
            asked[f"{self.path} unchanged"] += 1
            self._send(304, ETag='"1"')
        else:
            packed = "gzip" in self.headers.get("Accept-Encoding", "")
            body = gzip.compress(PAGES[self.path], 1) if packed else PAGES[self.path]
            self._send(200, body, ETag='"1"', **({"Content_Encoding": "gzip"} if packed else {}))


@contextmanager
def sources() -> Iterator[tuple[str, Counter[str]]]:
    """Serve the stand-ins; gives their address and how often each was asked for what."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.asked = Counter()  # type: ignore[attr-defined]  # the stand-in's own
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.asked  # type: ignore[attr-defined]  # as above
    finally:
        server.shutdown()
        server.server_close()
