"""The page as text: safe, self-contained, well formed, the same twice."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from report_sample import ATTACK, cell, page_text, report
from verdict_sample import sample

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.report.page import AccountOnPage
from tradeassay_bench.report import render_html, write_html
from tradeassay_bench.runs.summary import RunSummary, completed_run

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}
SHAPES = {"line", "circle", "path"}


class Page(HTMLParser):
    """Collects elements and complains about what is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.tags = [tag for tag, _ in self.elements]
        self.links = [
            link
            for _, attrs in self.elements
            for name in ("href", "src")
            if (link := attrs.get(name))
        ]
        self.handlers = [
            name for _, attrs in self.elements for name in attrs if name.startswith("on")
        ]
        self.running = [
            body for attrs, body in self.scripts if attrs.get("type") != "application/json"
        ]
        packs = [body for attrs, body in self.scripts if attrs.get("type") == "application/json"]
        self.packs = [json.loads(gzip.decompress(base64.b64decode(one))) for one in packs]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID | SHAPES:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID | SHAPES:
            return
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-1:]}")
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def html():
    return page_text()


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_the_same_bytes_twice_and_few(html):
    assert html == render_html(report.__wrapped__())
    assert len(html) < 1_000_000


def test_elements_close_in_order_and_have_captions_and_names(page):
    assert (page.wrong, page.open) == ([], [])
    ids = [attrs["id"] for _, attrs in page.elements if attrs.get("id")]
    assert len(ids) == len(set(ids))
    targets = {attrs["href"] for tag, attrs in page.elements if tag == "a"}
    assert {str(target).removeprefix("#") for target in targets} <= set(ids)
    assert page.tags.count("table") == page.tags.count("caption")
    for tag, attrs in page.elements:
        if "plot" in str(attrs.get("class")).split():
            assert attrs.get("aria-label"), tag
        if tag == "th":
            assert attrs.get("scope") in ("col", "row")


def test_nothing_is_fetched_and_only_our_scripts_may_run(page):
    for tag, attrs in page.elements:
        for name in ("src", "href", "action", "poster", "data", "srcset"):
            value = attrs.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, value)
    policy = next(str(attrs["content"]) for _, attrs in page.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    assert "unsafe" not in policy.split("script-src")[1]
    assert len(page.running) == 2
    for body in page.running:
        assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in allowed
    assert not page.handlers


def test_words_of_others_stay_words(page):
    clean, attacked = page, Page(page_text(attack=True))
    assert len(attacked.running) == len(clean.running)
    assert "img" not in attacked.tags
    assert any(ATTACK in text for text in attacked.text)
    assert ATTACK in {attrs.get("data-label") for tag, attrs in attacked.elements if tag == "path"}


def test_the_answer_comes_first_and_in_words(html):
    text = html[html.index("<main") :]
    best = text.index("Which agent is best?")
    chart = text.index("Excess return per year versus buy and hold")
    assert best < chart < text.index("Leaderboard") < text.index("Return since the start")
    assert "cannot be told apart from buy and hold" in text
    assert "oracle-reader is best" in text


def test_failures_badges_hashes_versions_and_rules_are_there(page):
    words = " ".join(page.text)
    assert "no usable answer in any of 250 sessions (timeout 250)" in words
    assert "an agent that did not answer did not earn 0%" in words
    kinds = [
        attrs["class"]
        for tag, attrs in page.elements
        if tag == "li" and "badge" in str(attrs.get("class"))
    ]
    assert kinds.count("badge synthetic") == 3
    assert kinds.count("badge convention") == 3
    assert kinds.count("badge model") == 3
    words = " ".join(page.text)
    for wanted in (
        "9f" * 32,
        "numpy",
        "tradeassay verify demo",
        "The rules",
        "you start with 100,000 in cash",
    ):
        assert wanted in words


def test_a_section_says_what_can_be_checked_and_what_was():
    from tradeassay.core.measure import NOT_REDERIVABLE
    from tradeassay_bench.runs.store.outcome import ClaimOutcome, Violation
    from tradeassay_bench.runs.summary.rows import Coverage
    from tradeassay_bench.runs.verify.report import VerifyReport

    said = ClaimOutcome(
        claim="answers", outcome="cannot be checked", why=NOT_REDERIVABLE, episodes=2
    )
    data = replace(report(), coverage=Coverage(again=("rules",), not_again=(said,)))
    plain = render_html(data)
    assert (
        "was not verified when this page was written" in plain
        and f"2 episodes: {NOT_REDERIVABLE}" in plain
    )
    made = ClaimOutcome(claim="account", outcome="re-derived", episodes=4)
    found = VerifyReport(folder="r", episodes=4, steps=9, claims=(made, said), violations=())
    unsure = render_html(data, verified=found)
    assert (
        "Nothing was contradicted" in unsure
        and NOT_REDERIVABLE in unsure
        and "re-derived" in unsure
    )
    wrong = replace(found, violations=(Violation(check="scores", what="<b>other</b>"),))
    page = render_html(data, verified=wrong)
    assert "Contradicted." in page and "run: scores: &lt;b&gt;other" in page
    assert "Everything was re-derived" in render_html(data, verified=replace(found, claims=(made,)))


def test_two_hundred_judged_accounts_stay_below_two_megabytes():
    """Those behind the first are told in brief, with the command that has all of it."""
    data, judged = report(), sample()
    one, found = data.settings[0], judged.agents[0]
    players = [
        agent for agent in one.agents if not agent.baseline and agent.result.value is not None
    ]
    base = [agent for agent in one.agents if agent.baseline]
    names = [f"agent-{place}" for place in range(200)]
    renamed = [
        replace(
            players[place % len(players)],
            row=replace(players[place % len(players)].row, agent=name),
        )
        for place, name in enumerate(names)
    ]
    crowd = replace(one, agents=(*base, *renamed), contest=None)
    said = replace(
        judged, agents=tuple(replace(found, agent=name, setting=one.id) for name in names)
    )
    text = render_html(
        replace(data, settings=(crowd,), check="tradeassay verify crowd"), (), None, said
    )
    assert len(text.encode()) < 2_000_000
    assert text.count("tradeassay assay crowd --json") == 200 - 12
    alone = render_html(replace(data, settings=(one,), check="tradeassay verify crowd"))
    assert "<code data-placed>tradeassay assay crowd</code> takes the returns apart" in alone


def test_pages_of_one_cell_and_of_none(tmp_path):
    one = Page(
        render_html(completed_run(RunSummary(title="one", settings=(cell(0, 30),), draws=100)))
    )
    assert one.wrong == []
    assert "tablist" not in {attrs.get("role") for _, attrs in one.elements}
    empty = Page(render_html(RunSummary(title="empty", settings=())))
    assert empty.wrong == []
    path = write_html(RunSummary(title="empty", settings=()), tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UserError, match="give a path"):
        write_html(RunSummary(title="empty", settings=()))


def test_exposures_that_are_equal_stand_in_the_same_order_whatever_the_record_keeps():
    """A page written with an assay and one made again from its record are the same: verify
    compares them.
    """
    known = {
        "volatility": Measure(value=0.0),
        "beta": Measure(value=0.0),
        "momentum": Measure(value=0.5),
    }

    def shown(exposures):
        account = object.__new__(AccountOnPage)
        account.assayed = SimpleNamespace(exposures=exposures)
        return [one.value for _, one in account.exposures], [name for name, _ in account.exposures]

    first = shown(known)
    assert first == shown(dict(reversed(known.items()))) and first[0] == [0.5, 0.0, 0.0]
