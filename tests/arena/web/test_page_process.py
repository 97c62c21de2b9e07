"""Pages from a process of their own: the same bytes, refusals passed on, and the server goes on when it dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from tradeassay.arena.queries.reader import ArenaReader
from tradeassay.arena.state.store import Store
from tradeassay.arena.web import page_process
from tradeassay.arena.web.app import create_app
from tradeassay.arena.web.context import House
from tradeassay.arena.web.page_process import PageProcess, PagesShown

pytestmark = pytest.mark.skipif(not PageProcess.possible(), reason="needs a system that can fork")
PATHS = ("/season/small/feed?lang=zh", "/api/seasons/small/rules", "/api/seasons")


class Served:
    """A server whose pages come from another process."""

    def __init__(self, store: Store) -> None:
        self.said: list[str] = []
        self.pages = PageProcess(PagesShown(db=str(store.engine.url.database)), self.said.append)
        self.pages.start()
        self.pages.begin()
        app = create_app(House(reader=ArenaReader(store)))
        app.state.house.answers.elsewhere = self.pages.make
        self.client = TestClient(app)

    def kill(self) -> None:
        assert self.pages._process is not None
        self.pages._process.kill()
        self.pages._process.join(10)


@pytest.fixture
def served(web_store: Store) -> Iterator[Served]:
    made = Served(web_store)
    with made.client:
        yield made
    made.pages.stop()


def test_another_process_makes_the_same_pages_and_its_end_is_survived(
    served: Served, web_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(create_app(House(reader=ArenaReader(web_store)))) as here:
        for path in PATHS:
            there = served.client.get(path)
            assert there.status_code == 200 and there.content == here.get(path).content, path
            again = served.client.get(path, headers={"if-none-match": there.headers["etag"]})
            assert again.status_code == 304 and not again.content
        plain = served.client.get(PATHS[0], headers={"accept-encoding": "identity"})
        assert plain.content == here.get(PATHS[0]).content and "content-encoding" not in plain.headers
        # A reader who chose Chinese chose it for nobody else.
        here.cookies.clear()
        served.client.cookies.clear()
        for language, path in (("zh", "/season/small/published?lang=zh"), ("en", "/season/small/feed")):
            assert f'<html lang="{language}' in served.client.get(path).text
            served.client.cookies.clear()
        for path in (
            "/season/small/entries/nobody",
            "/season/small?asset=NONE",
            "/api/seasons/small/decisions/999999",
        ):
            there = served.client.get(path)
            assert there.status_code == here.get(path).status_code >= 400
            assert there.content == here.get(path).content
            assert there.headers["content-type"] == here.get(path).headers["content-type"]
        # An address that is none must not be kept as another: the question mark belongs to its path.
        sly, true = "/season/small/decisions/1%3Fpart=body", "/season/small/decisions/1"
        assert [served.client.get(path).status_code for path in (sly, f"{true}%23x", f"{true}/..")] == [
            404,
            404,
            404,
        ]
        assert served.client.get(true).content == here.get(true).content
        assert not served.said
        monkeypatch.setattr(page_process, "MOST_STARTS", 1)
        served.kill()
        assert served.client.get("/season/small/rules").content == here.get("/season/small/rules").content
        assert served.said == ["the process that makes pages ended again and again; pages are made in the server"]


@pytest.mark.slow
def test_a_process_that_ended_is_started_again(served: Served) -> None:
    assert served.client.get("/season/small/rules").status_code == 200
    served.kill()
    assert served.client.get("/season/small/published").status_code == 200
    assert served.said == ["the process that makes pages ended (-9); another is started"]
    assert served.pages._process is not None and served.pages._process.is_alive()
