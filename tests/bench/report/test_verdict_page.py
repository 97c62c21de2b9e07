"""Verdict pages and tables: all numbers are there, nothing of others runs, and a browser draws
it.
"""

import html
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from browser import NEEDS_BROWSER, opened
from report_sample import printed
from verdict_sample import ATTACK, sample

from tradeassay.report.verdicts import VerdictBoard
from tradeassay.verdict.record import waterfall
from tradeassay_bench.examine import assay
from tradeassay_bench.report import render_html, write_html


@pytest.fixture(scope="module")
def page():
    return render_html(sample())


def text_of(page):
    without = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


def test_every_agent_has_its_sentence_and_its_numbers(page):
    words = text_of(page)
    for one in sample().agents:
        assert one.verdict.sentence in words
    for wanted in (
        "; skill: ",
        "look-ahead",
        "failed run",
        "not distinguishable from luck",
        "31 times likelier under skill than under luck's best of 4 tries",
        "99.7%",
        "$12.40",
        "2 / 1",
        "Loss under the mask per year",
        "Benchmark's return",
        "0.08",
        "schema 3",
        "synthetic data",
        "no leak test was made",
        "2 tries disclosed",
    ):
        assert wanted in words, wanted


def test_every_agent_carries_its_own_badges_and_the_reason_of_every_gap(page):
    sections = [text_of(part) for part in page.split('<details class="card agent account')[1:]]
    rule = next(words for words in sections if "rules only, no model" in words)
    assert (
        "scripted model" not in rule and sum("scripted model" in words for words in sections) == 3
    )
    # What does not apply is not there.
    assert "Loss under the mask" not in rule and "Dollars" not in rule and "Calibration" not in rule
    assert "nearly all available names" not in text_of(page)


def test_the_waterfall_ends_at_the_return():
    for one in sample().agents:
        steps = waterfall(one)
        if one.parts:
            assert steps[-1].kind == "total"
            assert sum(step.value for step in steps[:-1]) == pytest.approx(one.total.value)
            assert [step.label for step in steps[:2]] == ["Market", "twelve-month momentum"]
    assert [bool(waterfall(one)) for one in sample().agents].count(False) == 1


def test_nothing_of_others_becomes_markup():
    page = render_html(sample(attack=True))
    assert ATTACK not in page
    assert "window.hacked = 1</script>" not in page
    assert page.count("<script") == 2  # theme, page
    assert len(page) < 200_000
    assert "http://" not in text_of(page)


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_terminal_shows_verdicts_at_any_width(width):
    shown = printed(VerdictBoard(sample()), width)
    assert "skill" in shown and "failed" in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.journey
@NEEDS_BROWSER[0]
@NEEDS_BROWSER[1]
def test_a_browser_draws_it_and_runs_nothing_else(driver, tmp_path):
    path = write_html(sample(attack=True), tmp_path / "deep" / "verdicts.html")
    for width in (360, 768, 1280):
        opened(driver, path, width)
        driver.execute_script(
            "document.querySelectorAll('details').forEach((one) => { one.open = true })"
        )
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert (
        driver.execute_script("return document.querySelectorAll('svg.drawing rect.gain').length")
        > 0
    )
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = driver.execute_script(colour)
    driver.execute_script("document.getElementById('theme').click()")
    assert driver.execute_script(colour) != before
    assert driver.execute_script("return window.hacked") is None
    assert [
        entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ] == []


OVERLAPS = """
return [...document.querySelectorAll(".forest li:not(.axis)")].filter((lane) => {
  const chip = lane.querySelector(".chip")?.getBoundingClientRect();
  const said = lane.querySelector(".lane-said")?.getBoundingClientRect();
  return chip && said && chip.right > said.left + 1 && chip.bottom > said.top + 1 && chip.top < said.bottom - 1;
}).map((lane) => lane.innerText)
"""


@pytest.mark.journey
@NEEDS_BROWSER[0]
@NEEDS_BROWSER[1]
def test_a_verdict_does_not_lie_over_its_number_on_a_telephone(driver, tmp_path):
    days = [str(day) for day in pd.bdate_range("2023-01-02", periods=400).date]
    mine, market = np.random.default_rng(8).normal(0.0004, 0.008, (2, 400))
    own = pl.DataFrame({"date": days, "return": mine, "benchmark": market})
    made = assay(own)
    assert made.agents[0].verdict.label == "not distinguishable from luck"
    opened(driver, write_html(made, tmp_path / "own.html"), 390)
    assert driver.execute_script("return document.querySelectorAll('.forest .chip').length") == 1
    assert driver.execute_script(OVERLAPS) == []
