"""Nobody is ranked above 20 % failed: one table of surfaces, of runs, of the five papers and of
the arena.
"""

import io
import json
import re
import shlex
from typing import ClassVar

import pytest
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.cli import main
from tradeassay_bench.api import load_run
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.llm.model import failed_reply
from tradeassay_bench.llm.scripted import Question, scripted_models
from tradeassay_bench.papers import paper_page


def asleep(text):
    """Tell whether a drowsy model sleeps through a day or a task: it does through about half of
    them.
    """
    return sum(text.encode()) % 2 == 0


@scripted_models.register("tiny-drowsy")
class Drowsy:
    """Decides as ``sensible`` does, and talks in its sleep on half of the days."""

    summary: ClassVar[str] = "has no usable answer on half of the days"

    def answer(self, request: AskModel) -> ModelReply:
        if asleep(str(Question(request).day)):
            return ModelReply(text="zzz")
        return scripted_models.get("sensible")().answer(request)


@scripted_models.register("tiny-drowsy-juror")
class DrowsyJuror(Drowsy):
    """Talks in its sleep on every second question of the arena, whose days are in the words of
    the question.
    """

    def answer(self, request: AskModel) -> ModelReply:
        if asleep(request.given.observation if request.given else ""):
            return ModelReply(text="zzz")
        return scripted_models.get("sensible")().answer(request)


class DrowsyWriter:
    """Writes as another model does, and cannot be reached for half of the tasks."""

    like: ClassVar[str]
    summary: ClassVar[str] = "has no answer for half of the tasks"

    def answer(self, request: AskModel) -> ModelReply:
        if asleep(request.messages[-1].text):
            return failed_reply("unreachable", "nobody answers at that address")
        return scripted_models.get(self.like)().answer(request)


@scripted_models.register("tiny-drowsy-coder")
class DrowsyCoder(DrowsyWriter):
    like: ClassVar[str] = "coder-gold"


@scripted_models.register("tiny-drowsy-builder")
class DrowsyBuilder(DrowsyWriter):
    like: ClassVar[str] = "builder-gold"


TRADE = (
    "-m scripted/tiny-drowsy -m scripted/sensible -a random --first 2022-03-01 --last 2022-04-14"
)
WRITE = "-m scripted/tiny-drowsy-coder -m scripted/coder-sma --sample 6"
RUNS = {
    "daily": f"run daily-us-v1 {TRADE}",
    "stockbench": f"run stockbench-v1 {TRADE}",
    "ktdfin": f"run ktdfin-v1 {TRADE}",
    "quantcode": f"code run quantcode-v1 {WRITE}",
    "agentic": f"code run quantcode-v1 {WRITE} --setting agentic",
    "systrade": (
        "code run systrade-v1 -m scripted/tiny-drowsy-builder -m scripted/builder-peeps "
        "--iterations 1 "
        "--strategy bollinger --strategy double-ma --strategy dual-thrust --strategy turtle"
    ),
}
CODE = ("quantcode", "agentic", "systrade")
AGENTS = {
    **dict.fromkeys(
        ("daily", "stockbench", "ktdfin"), ("scripted-tiny-drowsy", "scripted-sensible", "random")
    ),
    **dict.fromkeys(("quantcode", "agentic"), ("scripted/tiny-drowsy-coder", "scripted/coder-sma")),
    "systrade": ("scripted/tiny-drowsy-builder", "scripted/builder-peeps"),
}
"""Who plays: the first of each is the best by its figures, at least better than one of the
others.
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory, data_home):
    """Return a function that plays one of the runs, once, and returns its folder."""
    folder = tmp_path_factory.mktemp("unranked")

    def play(name):
        made = folder / name / name
        if not made.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TRADEASSAY_HOME", str(data_home))
                patch.setattr("sys.stdout", io.StringIO())  # what a test reads is its own command's
                main(shlex.split(f"{RUNS[name]} --runs {made.parent} --name {name} --workers 1"))
        return made

    return play


def part(text, start, end):
    """Return the part of a text between two marks."""
    assert start in text, start
    return text.partition(start)[2].partition(end)[0]


def page(given, run):
    given(f"report {run} -o page.html")
    with open("page.html", encoding="utf-8") as file:
        return file.read()


def exhibit(run, id):
    """Return the first table of a paper's exhibit, written out."""
    (shelf,) = (one for one in paper_page([load_run(run)]).exhibits if one.exhibit.id == id)
    table = shelf.ours.tables[0]
    rows = [f"{row.head.text} {row.unranked or ''}" for row in table.rows]
    return "\n".join((*rows, *table.unranked))


PASTED = {
    form: lambda given, run, form=form: given(f"report {run} --format {form}").out
    for form in ("md", "latex", "csv", "json", "card")
}
SHOWN = {
    "terminal": lambda given, run: given(f"report {run}").out,
    "notebook": lambda given, run: load_run(run)._repr_html_(),
    **PASTED,
}
TRADING = {
    **SHOWN,
    "page": lambda given, run: part(page(given, run), '<table class="board"', "</table>"),
    "figure": lambda given, run: part(page(given, run), '<figure class="forest"', "</figure>"),
    "verdicts": lambda given, run: given(f"assay {run} --portfolios 0").out,
}
PROGRAMS = {**SHOWN, "page": lambda given, run: part(page(given, run), 'id="board"', "</table>")}
PAPERS = {
    "stockbench": ("main",),
    "ktdfin": ("table-4", "table-5"),
    "quantcode": ("table-3",),
    "agentic": ("table-4",),
    "systrade": ("table-3", "section-5-6"),
}
SURFACES = [
    *(
        (name, surface, show)
        for name in ("daily", "stockbench", "ktdfin")
        for surface, show in TRADING.items()
    ),
    *((name, surface, show) for name in CODE for surface, show in PROGRAMS.items()),
    *(
        (name, id, lambda given, run, id=id: exhibit(run, id))
        for name, ids in PAPERS.items()
        for id in ids
    ),
]
QUICK = [f"daily-{surface}" for surface in TRADING if surface != "verdicts"]


@pytest.mark.parametrize(
    ("name", "show"),
    [
        pytest.param(name, show, id=id, marks=() if id in QUICK else (pytest.mark.slow,))
        for name, surface, show in SURFACES
        for id in [f"{name}-{surface}"]
    ],
)
def test_whoever_failed_too_often_stands_last_with_the_reason(name, show, played, given):
    run = played(name)
    drowsy, *others = AGENTS[name]
    text = show(given, run).replace("\\_", "_").replace("\\%", "%")
    at = {one: text.index(one) for one in (drowsy, *others)}
    assert max(at, key=at.__getitem__) == drowsy, "it stands behind everybody who is ranked"
    assert re.search(r"\d+% of its (sessions had no usable|items had no) answer", text)
    assert "not ranked" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ktdfin", "systrade"])
def test_a_papers_figure_draws_it_behind_the_others(name, played):
    (page,) = [paper_page([load_run(played(name))])]
    figure = next(one for one in page.exhibits if one.exhibit.id == "figure-2").ours
    (curves,) = figure.curves
    drowsy, other = AGENTS[name][:2]
    for names in (
        [line for line, _ in curves.lines],
        *([row.head.text for row in table.rows] for table in figure.tables[:1]),
    ):
        last = max(place for place, line in enumerate(names) if line.startswith(other))
        assert last < min(place for place, line in enumerate(names) if line.startswith(drowsy))


@pytest.mark.parametrize(
    "name", ["daily", *(pytest.param(one, marks=pytest.mark.slow) for one in [*RUNS][1:])]
)
def test_json_has_no_rank_for_whoever_failed_too_often(name, played, given, told):
    run = played(name)
    drowsy, *others = AGENTS[name]
    found = told(f"report {run}")
    ((cell, reasons),) = found["unranked"].items()
    assert [*reasons] == [drowsy] and "had no" in reasons[drowsy]
    if name in CODE:
        (pair,) = (one for one in told(f"compare {run} {run}")["pairs"] if one["agent"] == drowsy)
        assert "not ranked" in pair["paired"]["difference"]["reason"]
        return
    figures = {one["agent"]: one["measures"] for one in found["scores"]["agents"]}
    returns = {
        one: figures[one]["cumulative_return"]["median"]["value"] for one in (drowsy, *others)
    }
    assert returns[drowsy] > min(returns[one] for one in others), (
        "by its figure alone it would not be last"
    )
    assert not any(drowsy in tier for tier in (found["contests"][cell] or {"tiers": ()})["tiers"])
    (pair,) = (one for one in told(f"compare {run} {run}")["pairs"] if one["agent"] == drowsy)
    assert (
        pair["paired"]["distinguishable"] is None
        and "not ranked" in pair["paired"]["difference"]["reason"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["daily", "stockbench", "ktdfin"])
def test_an_assay_ranks_nobody_who_failed_too_often(name, played, told):
    drowsy, *others = AGENTS[name]
    judged = {
        one["agent"]: one["ranks"] for one in told(f"assay {played(name)} --portfolios 0")["agents"]
    }
    assert (judged[drowsy]["by_return"], judged[drowsy]["by_selection"]) == (None, None)
    assert "had no usable answer" in judged[drowsy]["unranked"]
    places = [judged[one]["by_return"] for one in others]
    assert None not in places and max(places) <= judged[others[0]]["of"], (
        "the others are ranked without it"
    )


@pytest.mark.slow
def test_composite_and_rank_leave_it_out(played):
    """StockBench's composite is relative to a cohort, of which it is no part."""
    (page,) = [paper_page([load_run(played("stockbench"))])]
    table = next(one for one in page.exhibits if one.exhibit.id == "main").ours.tables[0]
    rows = {row.head.text: row for row in table.rows}
    composite, rank = (table.columns.index(name) - 1 for name in ("composite", "rank"))
    drowsy = rows["scripted-tiny-drowsy"]
    assert drowsy.cells[0].measure.value is not None, "its figures stay visible"
    assert {drowsy.cells[at].measure.reason for at in (composite, rank)} == {"not ranked"}
    ranks = [
        row.cells[rank].measure
        for row in rows.values()
        if row.cells[rank].measure.value is not None
    ]
    assert [one.value for one in ranks] == [1, 2, 3] and {one.n for one in ranks} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["daily", "quantcode"])
def test_the_site_puts_it_last_with_the_reason(name, played, given, place):
    drowsy, *others = AGENTS[name]
    given(f"site {played(name).parent} -o site")
    rows = json.loads((place / "site/board.json").read_text())
    assert {row["agent"]: row["unranked"] is None for row in rows} == {drowsy: False} | {
        row["agent"]: True for row in rows if row["agent"] != drowsy
    }
    board = part((place / "site/index.html").read_text(), "siteboard", "</table>")
    at = {one: board.index(f">{one}</a>") for one in (drowsy, *others)}
    assert max(at, key=at.__getitem__) == drowsy and "not ranked: " in board
    (card,) = (row["card"] for row in rows if row["agent"] == drowsy)
    assert "not ranked" in (place / "site" / card).read_text()


SEASON = """
id = "drowsy"
first = "2022-06-01"
last = "2022-07-12"
warmup = 2

[[assets]]
symbol = "AAJX"
kind = "stock"
dataset = "synthetic/us:7"

[[entries]]
id = "drowsy"
architecture = "investor"
model = "scripted/tiny-drowsy-juror"

[[entries]]
id = "awake"
architecture = "investor"
model = "scripted/sensible"

[[entries]]
id = "against"
architecture = "trade"
model = "scripted/contrarian"
"""


@pytest.mark.slow
def test_the_arena_and_its_paper_rank_nobody_who_failed_too_often(told, given, place):
    (place / "season.toml").write_text(SEASON)
    found = told("reproduce ama --data season.toml --workers 1")
    (db,) = found["runs"]
    rows = told(f"arena standings --db {db}")["rows"]
    drowsy = [row for row in rows if row["model"] == "scripted/tiny-drowsy-juror"]
    assert drowsy and all(
        row["rank"] is None and "it has no rank" in row["best"]["reason"] for row in drowsy
    )
    assert all(
        row["rank"] for row in rows if row["model"] in ("scripted/sensible", "scripted/contrarian")
    )
    shelves = {one["exhibit"]["id"]: one["ours"] for one in found["paper"]["exhibits"]}
    best = shelves["pairing"]["tables"][0]
    assert "scripted/tiny-drowsy-juror" not in str(best["rows"])
    assert "had no decision of its own" in best["note"]
    for exhibit in ("figure-2a", "figure-2b"):
        (ranges,) = shelves[exhibit]["tables"]
        assert (
            "scripted/tiny-drowsy-juror" not in str(ranges["rows"])
            and "not ranked" in ranges["note"]
        )
    heads = [row["head"]["text"] for row in shelves["main"]["tables"][1]["rows"]]
    sleeping = ["scripted/tiny-drowsy-juror" in head for head in heads]
    assert sleeping == sorted(sleeping), "it stands behind everybody who is ranked"
    assert not any(
        "scripted/tiny-drowsy-juror" in name
        for name, _ in shelves["timeline"]["curves"][0]["lines"]
    )
    text = given(f"arena standings --db {db}")
    assert "it has no rank" in text.out + text.err
    html = open(found["page"], encoding="utf-8").read()
    assert "not ranked: " in html
