"""The pages of a SysTradeBench run: what they say, that nothing a model wrote can run, and odd
runs.
"""

import re
import shutil
from dataclasses import replace

import pytest
from systrade_sample import HOSTILE, examined, robustness, systrade_run, trail
from test_page import Page

from tradeassay_bench.report import print_code_board, write_html
from tradeassay_bench.report.verifying import check_beside
from tradeassay_bench.runs import load_run
from tradeassay_bench.runs.verify.report import verify
from tradeassay_programs.benchmarks.programs import SubmissionCard
from tradeassay_programs.benchmarks.systrade import load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.data import synthetic_year
from tradeassay_programs.benchmarks.systrade.examine import SubmissionCheck
from tradeassay_programs.code.drift import DriftReport
from tradeassay_programs.report.scorecard import (
    cost_chart,
    leg_charts,
    render_card,
    write_check_html,
)

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return systrade_run(tmp_path_factory.mktemp("systrade") / "r")


def test_the_run_page_its_scorecards_and_the_table(run, capsys):
    page = write_html(run).read_text()
    found = Page(page)
    assert found.tags.count("script") == 2 and "img" not in found.tags and not found.handlers
    cards = [link for link in found.links if link.startswith("cards/")]
    assert len(cards) == 6 and all((run.folder / link).is_file() for link in cards)
    assert all(link.startswith(("#", "cards/", "data:")) for link in found.links), (
        "nothing is fetched from elsewhere"
    )
    for words in (
        "pass the paper&#39;s six gates",
        "Submissions that run and look ahead: scripted/builder-peeps",
        "GPT-5.2 (12 of 12",
        "GLM-4.7 (7 of 12",
        "Table 4: the twelve strategies",
        "7.85",
        "these are synthetic",
        "How reliable",
        "holds all gates in",
        "2 of its 12 strategies",
        "no submission → failed at exec",
        "worth its price",
    ):
        assert words.lower() in page.lower(), words
    marks = page[
        page.rindex("Bradley-Terry") : page.rindex("Difference from the marks given by others")
    ]
    assert "Leak gate passed" in marks, "a reader may mark highest what reads tomorrow's close"
    found_again = verify(
        run.folder, programs=False
    )  # what the sandbox found is given by the sample
    assert (found_again.violations, found_again.exit_code) == ((), 3)
    assert {one.claim for one in found_again.claims if one.outcome == "re-derived"} == {
        "rules",
        "scores",
    }
    print_code_board(run)
    shown = capsys.readouterr().out
    assert "scripted/builder-gold" in shown and "overall" in shown and "\x1b[31m" not in shown


def test_scorecards_are_checked_where_there_is_no_page(run, tmp_path, tell):
    """Nobody needs ``report.html`` to hand one of them on."""
    folder = tmp_path / "handed-on"
    shutil.copytree(run.folder, folder)
    write_html(load_run(folder)).unlink()
    (leaky,) = (folder / "cards").glob("*peeps*bollinger*.html")
    honest = leaky.read_text()
    check = ["verify", str(folder), "--no-programs"]
    assert re.search("^re-derived: .*scorecards", tell(check, 3)[0], re.MULTILINE)
    leaky.write_text(honest.replace("look ahead", "look back").replace("looks ahead", "looks back"))
    assert leaky.read_text() != honest
    assert f"cards/{leaky.name} does not match the record" in tell(check, 1)[0]
    leaky.write_text(honest)
    (folder / "cards" / "openai-gpt-5__bollinger__s0.html").write_text(honest)
    assert (
        "cards/openai-gpt-5__bollinger__s0.html does not belong to the written files"
        in tell(check, 1)[0]
    )
    (folder / "cards" / "openai-gpt-5__bollinger__s0.html").unlink()
    leaky.unlink()
    (folder / "cards" / ".DS_Store").touch()
    tell(check, 3)  # one that is not there accuses nobody


@pytest.mark.parametrize(
    "every", [60, pytest.param(4, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_every_number_of_a_scorecard_is_checked(run, tmp_path, every):
    """Each number that a reader sees is changed in turn, in every ``every``th place."""
    folder = tmp_path / "handed-on"
    shutil.copytree(run.folder, folder)
    write_html(load_run(folder)).unlink()
    found = verify(folder, programs=False)
    missed, changed = [], 0
    for card in sorted((folder / "cards").glob("*.html")):
        honest = card.read_text()
        shown = honest.index("<body")
        for place in list(re.finditer(r"(?<=>)[^<>]*?(\d)[^<>]*(?=<)", honest[shown:]))[::every]:
            digit = shown + place.start(1)
            card.write_text(f"{honest[:digit]}{(int(honest[digit]) + 1) % 10}{honest[digit + 1 :]}")
            changed += 1
            if check_beside(load_run(folder), found).exit_code != 1:
                missed.append((card.name, place[0]))
        card.write_text(honest)
    assert changed > 10 and not missed, missed
    assert check_beside(load_run(folder), found).exit_code == 3


def test_a_scorecard_shows_everything_and_runs_nothing_of_the_model(run):
    write_html(run)
    (leaky,) = (run.folder / "cards").glob("*peeps*bollinger*.html")
    page = leaky.read_text()
    found = Page(page)
    assert found.tags.count("script") == 2 and "img" not in found.tags and not found.handlers
    assert "alert(1)" in page and "<script>alert" not in page and "{{ 7 * 7 }}" in page
    for words in (
        "Rejected: gate &#39;leak&#39; failed",
        "3 more",
        "1 × a decision that the frozen semantics do not make",
        "a result that may know the future",
        "max exposure on 2 bars, first on bar 31",
        "risk check: missing",
        "11; the host finds 10",
        "As printed",
        "its own work, not counted",
        "Name and role",
    ):
        assert words in page, words
    (held,) = (run.folder / "cards").glob("*gold*bollinger*.html")
    page = held.read_text()
    assert (
        "All 8 gates passed." in page
        and "break-even 9.87 bp" in page
        and "evidence, not proof" in page
    )
    (mended,) = (run.folder / "cards").glob("*mends*bollinger*.html")
    page = mended.read_text()
    assert "came no nearer" not in page  # what did not run before was repaired, and did not drift


def test_the_drawings_are_where_the_numbers_are():
    (leg,) = leg_charts(trail())
    assert [mark["kind"] for mark in leg["marks"]] == [
        "both",
        "other-size",
        "only-submission",
        "only-frozen",
    ]
    xs = [mark["x"] for mark in leg["marks"]]
    assert xs == sorted(xs) and xs[0] == pytest.approx(62 + 5 / 59 * 926, abs=0.1)
    price = trail().paths[0].closes
    lowest, highest = leg["prices"][0]["at"], leg["prices"][-1]["at"]
    share = (price[5] - min(price)) / (max(price) - min(price))
    assert leg["marks"][0]["y"] == pytest.approx(lowest + share * (highest - lowest), abs=0.2)
    assert leg["exposure"] != leg["frozen"] and leg["exposure"].count(",") == leg["frozen"].count(
        ","
    )
    chart = cost_chart([(p.cost_bp, p.total) for p in robustness().costs], 9.87)
    assert chart["dots"][3]["x"] > chart["even"] > chart["dots"][2]["x"]
    falling = [dot["y"] for dot in chart["dots"]]
    assert falling == sorted(falling)
    assert cost_chart([(1.0, 0.1)], None) is None


def test_the_scorecard_of_ones_own_folder(tmp_path):
    spec, mine = load_spec("bollinger"), load_reference("bollinger")
    found = examined(mine, spec, None, synthetic_year(spec), None)
    check = SubmissionCheck(scorecard=found.scorecard, trail=found.trail, submission=mine)
    page = write_check_html(check, tmp_path / "deep" / "card.html").read_text()
    assert (
        "checked without a model" in page
        and "Back to the run" not in page
        and "class TradingStrategy" in page
    )
    assert 'id="drift"' not in page
    patched = replace(
        check, drift=DriftReport(kind="drift", card_changes=("parameter 'n': 20 became 30",))
    )
    page = write_check_html(patched, tmp_path / "patched.html").read_text()
    assert "gates passed, but it cannot replace the earlier submission" in page
    assert "since the earlier submission" in page and "20 became 30" in page
    bare = SubmissionCard(scorecard=found.scorecard, trail=None, submission=mine)
    assert "There was no run to compare" in render_card(bare)


def test_a_run_nobody_reviewed_and_nobody_answered(tmp_path):
    run = systrade_run(
        tmp_path / "r", models=("scripted/away",), reviewers=(), strategies=("bollinger",)
    )
    page = write_html(run).read_text()
    assert (
        "No model has a result." in page
        and "No submission was reviewed" in page
        and not (run.folder / "cards").exists()
    )
    assert HOSTILE not in page
