"""From Python: `tradeassay.assay(frame)`, figures, and what a notebook shows."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from golden import stored as played

import tradeassay
import tradeassay_bench
from tradeassay.core.errors import UserError

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    market = rng.normal(0.0004, 0.01, 300)
    days = pd.bdate_range("2022-01-03", periods=300)
    return pd.DataFrame(
        {"return": market * 1.2 + rng.normal(0, 0.002, 300), "market": market}, index=days
    )


@pytest.fixture(scope="module")
def judged(table):
    return tradeassay.assay(table, benchmark="market", title=EVIL)


def test_a_frame_is_judged_whichever_library_it_is_of(table, judged):
    plain = pl.DataFrame(
        {"date": [str(day.date()) for day in table.index], **{k: table[k].to_list() for k in table}}
    )
    again = tradeassay.assay(plain, benchmark="market", title=EVIL)
    assert again.verdict.sentence == judged.verdict.sentence
    assert "beyond the benchmark" in judged.verdict.sentence
    assert tradeassay.assay(table["return"]).verdict.kind == "no-benchmark"
    given = {"tries": np.int64(2), "interest": np.float64(0.25)}
    made = tradeassay.assay(table * 100, benchmark="market", reading={"unit": "percent"}, **given)
    assert (made.config.tries, made.config.interest) == (2, 0.25) and abs(
        made.agents[0].total.value
    ) < 1


def test_a_verdict_is_a_frame_of_either_kind(judged):
    frame, other = judged.frame("polars"), judged.frame()
    assert isinstance(frame, pl.DataFrame) and isinstance(other, pd.DataFrame)
    assert frame["agent"][0] == other["agent"][0] == EVIL
    parts = [frame[name][0] or 0.0 for name in ("market", "style", "unexplained", "trading")]
    assert sum(parts) == pytest.approx(frame["return"][0], abs=1e-9)
    tested = judged.agents[0].alpha.tested
    for table in (frame, other):
        alpha = tuple(table[name][0] for name in ("alpha", "alpha_low", "alpha_high"))
        assert alpha == (tested.value, tested.low, tested.high)
        assert alpha[1] < alpha[0] < alpha[2], "a yearly alpha comes with its interval"


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda one, here: one.frame("numpy"), "choose polars or pandas"),
        (lambda one, here: one.report(here), "is a folder (name the page too, e.g. "),
        (lambda one, here: one.agent("nobody"), "'nobody' was not judged"),
        (lambda one, here: tradeassay.plot.made_of(one).save(here), "is a folder"),
        (
            lambda one, here: tradeassay.plot.made_of(tradeassay_bench.load_run(played("daily"))),
            "a Run is not a verdict",
        ),
    ],
)
def test_what_cannot_be_shown_says_what_can(judged, tmp_path, ask, said):
    with pytest.raises(UserError, match=re.escape(said)):
        ask(judged, tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"colour": 1}, "an assay has no keyword 'colour'"),
        ({"tires": 5}, "did you mean tries"),
        ({"tries": "3"}, "tries cannot be '3'"),
        ({"dividends": 3}, "dividends cannot be 3"),
        ({"title": 3}, "title cannot be 3"),
        ({"between": "never"}, "between cannot be 'never'"),
        ({"reading": {"units": "percent"}}, "did you mean unit?"),
        ({"suite": "daily-us-v1", "names": 5}, "'suite' is valid only with a data set"),
        ({"until": "soon"}, "'until' is valid only with a log of trades"),
        ({"dataset": "no-such-data"}, "no dataset 'no-such-data'"),
    ],
)
def test_a_keyword_is_used_or_refused(table, keywords, said):
    with pytest.raises(UserError, match=re.escape(said)):
        tradeassay.assay(table, benchmark="market", **keywords)


def test_a_notebook_shows_words_and_never_runs_them(judged, tmp_path):
    piece = judged._repr_html_()
    assert "<script>alert" not in piece and "&lt;script&gt;" in piece
    assert "<svg" in piece and judged.verdict.label in piece
    for name in ("daily", "systrade-peeps"):
        piece = tradeassay_bench.load_run(played(name))._repr_html_()
        assert piece.startswith('<div class="tradeassay">') and "<table>" in piece
    drawing = tradeassay.plot.made_of(judged)
    assert "<svg" in drawing.html and 'class="whisker' in drawing.html and EVIL not in drawing.html
    assert drawing.html in drawing.save(tmp_path / "made_of.html").read_text()
    with pytest.raises(UserError, match="several accounts were judged"):
        tradeassay.plot.made_of(judged, "nobody")


@pytest.mark.parametrize(
    "wrong",
    [
        42,
        None,
        "no such file.csv",
        pd.DataFrame(),
        pd.Series([0.1, "x"], index=pd.bdate_range("2022-01-03", periods=2)),
        pd.Series([0.1] * 3, index=[datetime.date(2022, 1, 3)] * 3),
        pd.DataFrame({"a": [1.0], "b": [2.0]}),
    ],
)
def test_what_is_no_table_gets_one_line(wrong):
    with pytest.raises(UserError) as told:
        tradeassay.assay(wrong)
    assert "\n" not in str(told.value)


def test_words_for_tables_are_refused_for_runs():
    for words in ({"benchmark": "x"}, {"interest": 0.01}):
        with pytest.raises(UserError, match="is valid only with a table"):
            tradeassay.assay(played("daily"), **words)
    with pytest.raises(UserError, match="programs"):
        tradeassay.assay(played("systrade-peeps"))
