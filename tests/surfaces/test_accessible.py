"""axe-core finds nothing on any kind of page, in both themes, all of it unfolded."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from arena_sample import FAST, make_season, open_store, play
from browser import NEEDS_BROWSER, opened
from code_report_sample import code_run, coders_given
from drawn import drawn_account, drawn_masked, drawn_programs
from model_sample import model_report
from report_sample import report
from systrade_sample import builders_given, systrade_run
from verdict_sample import sample

import tradeassay
from tradeassay.verdict import VerdictConfig
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_arena.web.site import PageWriter, render_page
from tradeassay_arena.web.status import arena_health, season_books
from tradeassay_bench.examine.planted import answer_key
from tradeassay_bench.papers import paper_page
from tradeassay_bench.report import write_html, write_site
from tradeassay_bench.report.paper_page import write_paper
from tradeassay_programs.code.review import (
    Rated,
    agreement_of,
    as_reviews,
    make_form,
    read_ratings,
    review_board,
)
from tradeassay_programs.code.submission import Submission
from tradeassay_programs.report.scorecard import write_review_form, write_review_html

pytestmark = [pytest.mark.journey, *NEEDS_BROWSER]
# In the light theme every account, decision and conversation is unfolded, in the dark one the first: the same
# template wrote all of them, and colours are the only thing that differs.
EVERY = """
for (let shut; (shut = document.querySelectorAll('details:not([open])')).length; )
  shut.forEach((one) => { one.open = true });
return document.querySelectorAll('details').length;
"""
FIRST = """
const first = document.querySelector('.panel:not([hidden]) details.agent, details');
if (first) [first, ...first.querySelectorAll('details')].forEach((one) => { one.open = true });
"""
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def own_account(folder):
    drawn = drawn_account(3, folder)
    return [
        tradeassay.assay(drawn.returns, benchmark=drawn.against, portfolios=0).report(
            folder / "csv.html"
        )
    ]


def scorecards(folder):
    """Return a run of builders and its first scorecards, which lie beside it."""
    made = write_html(systrade_run(folder / "builders"), folder / "cards" / "builders.html")
    return [made, *sorted(path for path in made.parent.rglob("*.html") if path != made)[:2]]


def papers(folder):
    """Return a paper with our results in it, the form on which people mark programs, and what
    they said.
    """
    run = drawn_masked(6, folder / "paper")
    form, key = make_form(
        [("bollinger", Submission(source="x = 1", card="{}", name="vendor/model"))]
    )
    filled = "item,strategy,rater,fidelity,risk,comment\n" + "".join(
        f"{one.item},{one.strategy},ann,7,8,fine\n{one.item},{one.strategy},bob,6,8,\n"
        for one in form.entries
    )
    ratings = read_ratings(filled)
    said = Rated(raters=agreement_of(ratings), board=review_board(as_reviews(ratings, key)))
    return [
        write_paper(paper_page([run]), folder / "paper"),
        write_review_form(form, folder / "form.html"),
        write_review_html(said, folder / "said.html"),
    ]


def site(folder):
    """Return the board over traders and programs, and the conversations."""
    drawn_masked(1, folder / "site")
    drawn_programs(1, folder / "site")
    drawn_programs(2, folder / "site")
    with coders_given(), builders_given():
        made = write_site(folder / "site" / "runs", folder / "out", workers=1)
    return [made.index, made.index.with_name("conversations.html")]


def arena(folder):
    season, out = make_season(), folder / "arena"
    store = open_store(folder / "arena.db")
    play(store, season, SnapshotFeed.open(season), "2022-05-12")
    PageWriter(store, out, FAST).update()
    home = out / "seasons" / season.id
    kinds = ("", "assets/AAJX/", "entries/one-a/", "feed/", "information/", "rules/", "published/")
    days = sorted((home / "assets" / "AAJX").glob("*/index.html"))[-1:]
    health, now = out / "health.html", arena_health(store, None)
    health.write_text(render_page("en", "health", {"health": now, "books": season_books(store)}))
    items = sorted(home.glob("items/*/index.html"))[:1]
    others = [
        out / "zh" / home.relative_to(out),
        out / "seasons" / "index.html",
        out / "404.html",
        health,
    ]
    return [*(home / kind / "index.html" for kind in kinds), *days, *items, *others]


KINDS = {
    "run": lambda folder: [write_html(report(), folder / "run.html")],
    "csv": own_account,
    "models": lambda folder: [write_html(model_report(), folder / "models.html")],
    "verdicts": lambda folder: [write_html(sample(), folder / "verdicts.html")],
    "demo": lambda folder: [
        write_html(answer_key(VerdictConfig(portfolios=0)), folder / "demo.html")
    ],
    "code": lambda folder: [write_html(code_run(folder / "coders"), folder / "code" / "code.html")],
    "scorecards": scorecards,
    "papers": papers,
    "site": site,
    "arena": arena,
}
"""Every kind of page, written when it is asked for."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(scope="module")
def address(folder):
    """Serve the arena's pages, whose styles are files of their own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    (folder / "arena").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder / "arena")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield (
        lambda path: (
            f"http://127.0.0.1:{server.server_port}/{path.relative_to(folder / 'arena').as_posix()}"
        )
    )
    server.shutdown()


def violations(driver, unfold=EVERY):
    """Return what axe-core holds against the open page."""
    from selenium_axe_python import Axe

    driver.execute_script(unfold)
    axe = Axe(driver)
    axe.inject()
    return [
        f"{one['id']}: {node['target']}: {node['html'][:160]} "
        f"({node.get('failureSummary', '')[:300]})"
        for one in axe.run(options=RULES)["violations"]
        for node in one["nodes"][:3]
    ]


@pytest.mark.slow_for(*(kind for kind in KINDS if kind != "csv"))
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_on_any_kind_of_page(driver, folder, address, kind):
    wrong = []
    for page in KINDS[kind](folder):
        for dark in (False, True):
            opened(driver, address(page) if kind == "arena" else page, dark=dark)
            name = f"{page.parent.name}/{page.name}, {'dark' if dark else 'light'}"
            wrong += [f"{name}: {line}" for line in violations(driver, FIRST if dark else EVERY)]
    assert not wrong, "\n".join(wrong)


def test_what_is_wrong_is_found(driver, tmp_path):
    page = tmp_path / "wrong.html"
    body = "<img src=x><p style='color:#ccc'>pale</p>"
    page.write_text(f"<!doctype html><html data-ready=yes><body>{body}</body></html>")
    found = "\n".join(violations(opened(driver, page)))
    assert "image-alt" in found and "color-contrast" in found and "html-has-lang" in found
