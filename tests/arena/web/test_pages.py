"""Every page opens, in both languages, shows what happened as it happened, and lets nothing run."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from tradeassay.arena.web.words import words

PAGES = ("", "/timeline", "/split", "/feed", "/information", "/rules", "/published", "/entries/one-a",
         "/entries/buy-and-hold", "/decisions/1")  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_pages_open_in_both_languages_and_escape_what_others_wrote(client: TestClient, path: str) -> None:
    for language, lang in (("en", "en"), ("zh", "zh-Hans")):
        answer = client.get(f"/season/small{path}", headers={"accept-language": language})
        assert answer.status_code == 200
        text = answer.text
        assert f'<html lang="{lang}">' in text
        assert words(language).__call__("badge.synthetic") in text  # type: ignore[arg-type]  # one of two
        assert "<script>window" not in text and "<img src=x" not in text
        assert "&lt;script&gt;window.hacked" in text
        # Every script of ours is a file; data stands in blocks that no browser runs.
        assert all("src=" in tag or "application/json" in tag for tag in re.findall(r"<script[^>]*>", text))
        assert len(re.findall(r"<h1\b", text)) == 1 and "<main" in text and 'href="#main"' in text


def test_headers_let_nothing_foreign_run(client: TestClient) -> None:
    for path in ("/season/small", "/api/seasons", "/nothing", "/static/arena.js"):
        policy = client.get(path).headers["content-security-policy"]
        assert "script-src 'self';" in policy and "default-src 'none'" in policy
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


def test_the_first_page_leads_to_the_season_and_keeps_the_query(client: TestClient) -> None:
    answer = client.get("/?asset=AAJX", follow_redirects=False)
    assert answer.status_code == 307
    assert answer.headers["location"] == "/season/small?asset=AAJX"
    assert "/season/sealed" in client.get("/seasons").text


def test_filters_narrow_the_standings_and_keep_the_baseline(client: TestClient) -> None:
    def ids(query: str) -> set[str]:
        return set(re.findall(r'<tr[^>]* data-entry="([\w-]+)"', client.get(f"/season/small?{query}").text))

    assert ids("") == {"one-a", "one-b", "two-a", "two-b", "trend", "buy-and-hold"}
    assert ids("architecture=trade") == {"two-a", "two-b", "buy-and-hold"}
    assert ids("model=test/a&architecture=trade") == {"two-a", "buy-and-hold"}
    assert ids("entry=trend&entry=one-a&first=2022-05-20&last=2022-06-01") == {"trend", "one-a", "buy-and-hold"}
    assert ids("first=2030-01-01") == set()
    blank = client.get("/season/small?first=&last=&asset=")
    assert blank.status_code == 200 and 'value="AAJX" checked' not in blank.text
    assert 'value="AAJX" checked' in client.get("/season/small?asset=AAJX").text


def test_failed_and_missed_decisions_are_seen_as_such(client: TestClient) -> None:
    failed = client.get("/season/small/entries/one-a?status=failed").text
    assert (
        "chip failed" in failed
        and 'class="act BUY"' not in failed.split('id="decisions"')[1].split("</section>")[0]
    )
    missed = client.get("/season/small/feed?status=missed").text
    assert "missed" in missed and missed.count("data-decision=") == 12  # two assets, six entries
    id = re.findall(r'data-decision="(\d+)"', missed)[0]
    assert "never filled in afterwards" in client.get(f"/season/small/decisions/{id}").text
    board = client.get("/season/small").text
    assert re.search(r"\d+ failed", board)


def test_a_decision_unfolds_to_prompt_debate_reasons_and_outcome(client: TestClient) -> None:
    listed = client.get("/api/seasons/small/decisions?entry=one-a&status=decided&limit=200").json()["items"]
    settled = next(one for one in listed if one["phase"] == "settled")
    body = client.get(f"/season/small/decisions/{settled['id']}?part=body").text
    assert "<html" not in body
    for part in ("Reasons", "Who said what", "Prompts and answers", "What it was told", "heard &lt;script"):
        assert part in body
    assert "The asset moved" in body


def test_what_is_not_settled_stays_sealed_where_outsiders_play(client: TestClient) -> None:
    page = client.get("/season/sealed/entries/one-a").text
    assert "decisions appear once settled" in page and "Closed while agents from outside play" in page
    newest = client.get("/api/seasons/sealed/decisions?entry=one-a").json()["items"]
    hidden = [one for one in newest if one["phase"] != "settled"]
    assert hidden and all(one["sealed"] and one["action"] is None and not one["gist"] for one in hidden)
    whole = client.get(f"/api/seasons/sealed/decisions/{hidden[0]['id']}").json()
    assert whole["packet"] is None and whole["talk"] == [] and whole["calls"] == [] and whole["reasoning"] == ""
    assert client.get("/api/seasons/sealed/entries/one-a/memory").json() == {
        "entry": "one-a", "sealed": True, "assets": [],
    }  # fmt: skip
    events = client.get("/api/seasons/sealed/events?limit=200").json()["items"]
    assert any(e["kind"] == "decided" for e in events) and not any("action" in e["body"] for e in events)
    # Nor how it ended: one that failed or was missed holds, and of two agents a count of changes tells which.
    assert {one["status"] for one in hidden} == {"sealed"} and whole["decided_at"] is None
    for status in ("decided", "failed", "missed"):
        found = client.get(f"/api/seasons/sealed/decisions?entry=one-a&status={status}").json()["items"]
        assert all(one["phase"] == "settled" for one in found)
    points = client.get("/api/seasons/sealed/timeline?asset=AHVQ&entry=one-a").json()["points"]
    assert {one["status"] for one in points if one["sealed"]} == {"sealed"}
    assert not {"changed", "slots"} & {name for event in events for name in event["body"]}
    told = client.get("/metrics").text
    assert re.search(r'tradeassay_slots{season="sealed",status="sealed"} [1-9]', told)
    assert "10.0.0.1" not in client.get("/season/sealed/rules").text
    assert "10.0.0.1" not in client.get("/api/seasons/sealed/rules").text


def test_wrong_addresses_are_told_so(client: TestClient) -> None:
    for path, status in (
        ("/season/none", 404), ("/season/small/entries/none", 404), ("/season/small/decisions/x", 404),
        ("/season/small/decisions/99999", 404), ("/season/small/timeline?asset=NO", 404), ("/static/none.js", 404),
        ("/season/small?asset=NO", 422), ("/season/small?first=tomorrow", 422),
        ("/season/small/feed?status=odd", 422),
        ("/season/small?first=2022-06-01&last=2022-05-01", 422), ("/season/small/feed?before=-1", 422),
        ("/season/small/items/none", 404), ("/season/small?part=body", 404),
    ):  # fmt: skip
        answer = client.get(path)
        assert (path, answer.status_code) == (path, status)
        assert "<main" in answer.text


def test_the_language_asked_for_is_remembered(client: TestClient) -> None:
    answer = client.get("/season/small/rules?lang=zh")
    assert "规则" in answer.text and "tradeassay-lang=zh" in answer.headers["set-cookie"]
    client.cookies.clear()


def test_files_may_be_kept_for_a_year(client: TestClient) -> None:
    src = re.search(r'src="(/static/charts\.js\?v=\w+)"', client.get("/season/small").text)
    assert src is not None
    answer = client.get(src[1])
    assert "immutable" in answer.headers["cache-control"] and len(answer.content) > 1_000
    assert client.get("/static/charts.js").headers["cache-control"] == "no-cache"
