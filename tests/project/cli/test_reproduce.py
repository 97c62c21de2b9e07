"""``reproduce``: a paper's cells with its tables, and what the data lacks for them."""

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import msgspec
import paper_values
import pytest

import tradeassay_bench.runs
from tradeassay.core.errors import UserError
from tradeassay_bench.agents.factor_models import fitting
from tradeassay_bench.agents.factor_models.fitting import RankIC, TrainedBaseline, TrainingRecipe
from tradeassay_bench.benchmarks.exhibits import exhibits
from tradeassay_bench.cli._papers import trained_agents
from tradeassay_bench.cli._run_options import after_cutoff
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.data import load_dataset
from tradeassay_bench.llm.scripted import scripted_models
from tradeassay_programs.benchmarks.systrade import load_spec
from tradeassay_programs.benchmarks.systrade.data import DaySpan, stored_year


def test_a_window_after_the_cutoff_needs_models_with_one():
    assert after_cutoff("W4", ()) == "W4"
    assert after_cutoff("after-cutoff", ["openai/gpt-4o"]).startswith("after-20")
    for models, said in (([], "needs a model"), (["nobody/nothing"], "is unknown")):
        with pytest.raises(UserError, match=said):
            after_cutoff("after-cutoff", models)


@pytest.mark.parametrize(
    ("line", "said"),
    {
        "quantcode": "name a model",
        "systrade": "-m scripted/builder-gold",
        "ama --grid": "--grid is not valid",
        "ama --seeds 2": "played once",
        "stockbench --sample 2": "no tasks to sample",
        "ktdfin --judge scripted/code-judge": "ktdfin has no --judge",
        "quantcode --symbols A": "quantcode has no --symbol",
        "ama -m scripted/sensible --data season.toml": "names its own entries",
        "ktdfin --recordings recorded/nobody": "no recording is named",
        "quantcode --recordings recorded/smollm2 --replay -m openai/gpt-5": "has no recording",
        "ktdfin --data folder": "no column for date and close",
        "ktdfin --data ./folder": "tradeassay data import folder --name NAME",
    }.items(),
)
def test_what_a_paper_does_not_have_is_refused(line, said, given, place, monkeypatch):
    (place / "folder").mkdir()
    (place / "folder/a.csv").write_text("hello,world\n1,2\n")
    monkeypatch.setattr(
        tradeassay_bench.runs, "run", lambda spec, folder, **how: SimpleNamespace(folder=folder)
    )
    monkeypatch.setattr(tradeassay_bench.runs, "load_run", lambda folder: folder)
    assert said in given(f"reproduce {line}", 2).err


def test_options_reach_the_papers_about_programs(monkeypatch, given):
    called = []

    def take(spec, folder, **how):
        called.append((spec, how))
        raise UserError("nothing is played here")

    monkeypatch.setattr(tradeassay_bench.runs, "run", take)
    builder = "reproduce systrade -m scripted/builder-gold"
    coder = "reproduce quantcode -m scripted/coder-gold --grid"
    for line in (
        f"{builder} --sample 2 --reviewer scripted/code-judge",
        f"{builder} --data synthetic/us:7",
        coder,
        f"{coder} --data public.json --judge scripted/code-judge --dataset synthetic/us:7",
    ):
        given(f"{line} --seeds 3 --max-usd 5 --workers 1 --json", 2)
    (systems, how), (stored, _), (programs, _), (judged, _) = called
    assert (systems.benchmark, systems.models) == ("systrade-v1", ("scripted/builder-gold",))
    assert len(systems.strategies) == 2 and systems.seeds == programs.seeds == (0, 1, 2)
    assert systems.reviewers == ("scripted/code-judge",)
    assert stored.dataset == "synthetic/us:7" and len(stored.symbols) >= 2
    assert programs.settings == ("single-turn", "agentic") and programs.benchmark == "quantcode-v1"
    assert (judged.judge, judged.dataset) == ("scripted/code-judge", "synthetic/us:7")
    assert judged.evaluate.decides == "language"
    assert how["workers"] == 1 and how["asking"].max_usd == 5.0


@scripted_models.register("tiny-repeats")
class Repeats:
    """Says the same words whenever it is asked, and calls no tool."""

    summary: ClassVar[str] = "talks about its plans and never submits an action"

    def answer(self, request: AskModel) -> ModelReply:
        return ModelReply(text="I shall think about it.")


def test_days_without_a_submission_are_parse_failures_on_every_page(place, told, given):
    window = "--first 2022-03-01 --last 2022-03-04"
    told(f"run ktdfin-paper-v1 -m scripted/tiny-repeats {window} --name talks --workers 1", 1)
    run = place / "runs/talks"
    scores = json.loads((run / "scores.json").read_text())
    (episode,) = (one for one in scores["episodes"] if "tiny-repeats" in one["key"])
    measured = episode["measures"]["parse_failure_rate"]
    assert (measured["value"], measured["n"]) == (1.0, 4)
    (table,) = (
        table
        for page in told("report runs/talks")["papers"]
        for one in page["exhibits"]
        if one["exhibit"]["id"] == "table-4"
        for table in one["ours"]["tables"]
    )
    at = table["columns"].index("parse failures") - 1
    rates = {
        name: row[at] for name, row in paper_values.cells(table).items() if "tiny-repeats" in name
    }
    assert list(rates.values()) == [1.0]
    assert "without a submission of the right form" in table["note"]
    given("verify runs/talks")
    for one in scores["episodes"]:
        one["measures"]["parse_failure_rate"]["value"] = 0.0
    (run / "scores.json").write_text(json.dumps(scores, indent=1) + "\n")
    assert "scores: the recomputed scores differ" in given("verify runs/talks", 1).out


RECORDED = "--recordings recorded/qwen2.5-coder-1.5b --recordings recorded/smollm2 --replay"
GIVEN = {
    "stockbench": "-m scripted/news-reader",
    "ktdfin": "-m scripted/sensible",
    "ama": "-m scripted/sensible",
    "quantcode": "-m scripted/coder-gold --sample 2 --grid",
    "systrade": "-m scripted/builder-gold --sample 1 --reviewer scripted/builder-mends",
}
NOT_NUMBERS = {
    "ktdfin": {
        "table-1",
        "table-6",
        "table-7",
        "table-8",
        "table-10",
        "appendix-a",
        "table-3",
        "table-11",
    },
    "systrade": {"table-2"},
}
MAIN = {
    "stockbench": "main",
    "ktdfin": "table-4",
    "ama": "main",
    "quantcode": "table-3",
    "systrade": "table-3",
}


@pytest.fixture
def reproduced(done, capsys):
    """Reproduce a paper and return what is told.

    A model whose every episode fails has its row, and status 1.
    """

    def reproduce(line):
        assert done(f"reproduce {line} --workers 1 --json") in (0, 1)
        return json.loads(capsys.readouterr().out)

    return reproduce


@pytest.mark.slow
@pytest.mark.parametrize("paper", GIVEN)
def test_recordings_and_a_script_fill_a_papers_page(paper, reproduced):
    told = reproduced(f"{paper} {RECORDED} {GIVEN[paper]}")
    page = Path(told["page"])
    html = page.read_text()
    shelves = told["paper"]["exhibits"]
    assert [one["exhibit"]["id"] for one in shelves] == [one.id for one in exhibits(paper)]
    for place, one in enumerate(shelves, 1):
        ours = one["ours"]
        assert one["exhibit"]["number"] in html and (
            ours["tables"] or ours["curves"] or ours["missing"]
        )
        for ending in ("md", "tex", "csv") if ours["tables"] else ():
            (file,) = (page.parent / "tables").glob(f"{place:02d}-*.{ending}")
            assert file.read_text()
    names = str(paper_values.tables(told, MAIN[paper]))
    assert "qwen2.5-coder-1.5b" in names and "smollm2" in names and "scripted" in names
    assert "comparable: no" in html
    if paper == "ama":  # as the seasons were recorded; other models play by the rules of the first
        closed = "positions were closed after the warm-up, but the paper keeps them"
        assert f"{closed}: march-qwen2.5-coder-1.5b, march-smollm2, paper-models<" in html
    checked = getattr(paper_values, f"check_{paper}")(told) | paper_values.check_beside(told)
    # What is not made again is words and settings, and what the grid's test makes again.
    numbers = {
        one["exhibit"]["id"] for one in shelves if one["ours"]["tables"] or one["ours"]["curves"]
    }
    assert numbers - checked <= NOT_NUMBERS.get(paper, set())


PRINTED = re.compile(r"<code[^>]*>(tradeassay [^<]+)</code>")
ONE_MODEL = "--recordings recorded/smollm2 --replay"


@pytest.fixture
def obeyed(done, capsys, given, told):
    """Give every command that a page prints, and return them. Models are asked by their recording.

    What a real model replied is the runner's word, so that its run is never verified with status 0;
    nothing else may stay open. A model that fails in a recording fails again.
    """

    def give(page, recording=""):
        commands = list(dict.fromkeys(map(html.unescape, PRINTED.findall(page.read_text()))))
        for command in commands:
            verb, line = command.removeprefix("tradeassay ").split(" ", 1)
            if verb == "verify":
                status = done(f"verify {line} --json")
                claims = json.loads(capsys.readouterr().out)["verification"]["claims"]
                left = [one for one in claims if one["outcome"] != "re-derived"]
                assert status == (3 if left else 0), (command, left)
                replies = ("answers", "replies")
                assert all(
                    any(word in f"{one['claim']} {one['why']}" for word in replies) for one in left
                ), left
                assert recording or not left, left
            elif verb == "resume":
                failed = set(tradeassay_bench.runs.load_run(Path(line.split()[0])).failed)
                given(f"resume {line} {recording} --workers 1", 1)
                assert set(tradeassay_bench.runs.load_run(Path(line.split()[0])).failed) == failed
            else:
                given(f"{verb} {line}")
        return commands

    return give


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "line",
    [
        *(f"{paper} {GIVEN[paper]}" for paper in GIVEN),
        f"stockbench {GIVEN['stockbench']} --grid",
        f"ktdfin {GIVEN['ktdfin']} --grid --probes 4",
    ],
)
def test_every_command_that_a_page_prints_can_be_given(line, reproduced, obeyed, given):
    paper = line.partition(" ")[0]
    told = reproduced(f"{line} {ONE_MODEL} --name q")
    assert Path(told["page"]) == Path("runs/q/paper.html")
    assert obeyed(Path(told["page"]), "a recording") == ["tradeassay verify runs/q"]
    for name in told["runs"]:
        if not Path(name).is_dir():  # a season's pages are the arena's
            continue
        given(f"report {name}")
        kind = "-agentic" if "agentic" in name else ""
        recording = (
            f"--recordings recorded/smollm2/{paper}{kind} --replay" if "smollm2" in name else ""
        )
        assert f"tradeassay verify {name}" in obeyed(Path(name) / "report.html", recording)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder"), [("--name q", "q"), ("", "replay-ktdfin-v1-smollm2")])
def test_the_page_of_a_replayed_grid_is_called_as_its_folder(name, folder, done, capsys, obeyed):
    """A recording has a name of its own, which is no folder here; and it has twelve settings on
    every surface.
    """
    assert done(f"run ktdfin-v1 {ONE_MODEL} {name} --workers 1") == 1
    shown = " ".join(capsys.readouterr().out.split())
    page = Path("runs") / folder / "report.html"
    recording = "--recordings recorded/smollm2/ktdfin --replay"
    assert f"tradeassay verify runs/{folder}" in obeyed(page, recording)
    assert re.search(rf"<h1[^>]*>[^<]*: {folder}</h1>", page.read_text())
    words = html.unescape(re.sub(r"<[^>]+>", " ", page.read_text()))
    assert set(re.findall(r"(\d+) settings\b", f"{words} {shown}")) == {"12"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "rules"),
    [
        (
            "stockbench",
            {"equal-weight", "momentum-weighted", "sector-equal", "sector-equal-best=3-every=21"},
        ),
        ("ktdfin", {"equal-weight", "momentum-12-1"}),
    ],
)
def test_rules_stand_in_the_table_of_recorded_models(paper, rules, reproduced):
    told = reproduced(f"{paper} {RECORDED}")
    table = paper_values.tables(told, MAIN[paper])[0]
    found = paper_values.cells(table)
    assert rules | {"local-qwen2.5-coder-1.5b", "local-smollm2"} <= set(found)
    at = [
        table["columns"].index(name) - 1
        for name in ("rank", "rank by selection")
        if name in table["columns"]
    ]
    ranks = {name: row[at[0]] for name, row in found.items() if row[at[0]] is not None}
    assert rules <= set(ranks) and sorted(ranks.values())[0] == 1
    assert MAIN[paper] in getattr(paper_values, f"check_{paper}")(told)


@pytest.mark.slow
def test_the_grids_of_the_trading_papers(reproduced):
    told = reproduced(f"ktdfin {RECORDED} {GIVEN['ktdfin']} --grid --probes 8")
    filled = {one["exhibit"]["id"] for one in told["paper"]["exhibits"] if one["ours"]["tables"]}
    assert {"table-3", "table-5", "figure-3", "table-8", "table-11", "table-12"} <= filled
    made_again = {"table-3", "table-4", "table-5", "table-8", "table-11", "figure-3", "table-12"}
    assert made_again <= paper_values.check_ktdfin(told)
    told = reproduced(f"stockbench {RECORDED} {GIVEN['stockbench']} --grid")
    filled = {one["exhibit"]["id"] for one in told["paper"]["exhibits"] if one["ours"]["tables"]}
    assert {
        "main",
        "figure-3",
        "table-3",
        "ablations",
        "figure-4",
    } <= filled & paper_values.check_stockbench(told)


@pytest.mark.slow
def test_stockbench_on_data_of_other_years(reproduced):
    told = reproduced("stockbench -m scripted/news-reader --data synthetic/us:7 --grid")
    assert {"main", "table-3", "ablations", "figure-4"} <= paper_values.check_stockbench(told)
    (sizes,) = paper_values.tables(told, "table-3")
    assert [f"return, {n} names" for n in (5, 10, 20, 30)] == sizes["columns"][1:5]


@pytest.mark.slow
def test_public_tasks_with_a_judge_and_stored_bars(place, reproduced):
    words = (
        "Buy one unit when the 10-day average crosses above the 30-day average, close when it "
        "crosses below."
    )
    task = {"reformulated_task": words, "timeframe": "1d"}
    tasks = [{"id": n, "yf_symbol": symbol, **task} for n, symbol in ((1, "AAJX"), (2, "X"))]
    (place / "public.json").write_text(json.dumps(tasks))
    given = "quantcode -m scripted/coder-sma --data public.json --grid"
    told = reproduced(f"{given} --judge scripted/code-judge --dataset synthetic/us:7")
    assert {"table-2", "table-3", "table-4", "table-5"} <= paper_values.check_quantcode(told)
    assert paper_values.cells(paper_values.tables(told, "table-1")[0])["public"][1] == 2


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twelve_strategies_on_fourteen_instruments(place, reproduced):
    sets = ("synthetic/us:7", "synthetic/ashare:7", str(paper_values.store_coins(place / "coins")))
    first = [
        load_dataset(name).at(700, "close").symbols[:n]
        for name, n in zip(sets, (5, 6, 3), strict=True)
    ]
    symbols = ",".join(symbol for some in first for symbol in some)
    told = reproduced(
        f"systrade -m scripted/builder-gold --data {','.join(sets)} --symbols {symbols}"
    )
    table = paper_values.tables(told, "section-5-4-2")[1]
    columns = table["columns"][1:]
    assert len(table["rows"]) == 12 and sorted(columns) == sorted(symbols.split(","))
    assert {"table-3", "section-5-4-2"} <= paper_values.check_systrade(told)
    ours = paper_values.cells(table)
    whole = dict(zip(columns, ours["double-ma"], strict=True))
    span = paper_values.cells(paper_values.tables(told, "table-2")[0])["test"][0].split(" to ")
    days = DaySpan(name="test", **dict(zip(("first", "last"), span, strict=True)))
    spec = load_spec("double-ma")
    for dataset, some in zip(sets, first, strict=True):
        year = stored_year(dataset, (some[0],), days)
        wanted = paper_values.earned(spec.frozen_decisions(year), year.feeds["A"]["close"])
        assert whole[some[0]] == pytest.approx(wanted, rel=1e-6, abs=1e-9), some[0]
    # Intraday strategies are run where there are minutes.
    assert [value is not None for value in ours["r-breaker"]] == [
        name in first[2] for name in columns
    ]


@pytest.mark.slow
def test_the_main_table_of_stockbench_without_data(reproduced):
    told = reproduced("stockbench -m scripted/news-reader")
    (table,) = told["paper"]["exhibits"][0]["ours"]["tables"]
    names = [row["head"]["text"] for row in table["rows"]]
    assert {"equal-weight", "scripted-news-reader"} <= set(names)
    assert (
        any(name.startswith("published baseline") for name in names)
        and "stockbench-paper-v1" in table["title"]
    )
    assert "our data is synthetic" in told["paper"]["exhibits"][0]["ours"]["reasons"]


def test_factor_models_that_saw_nothing_of_the_windows_play_too(monkeypatch, capsys):
    data = load_dataset("synthetic/ashare:7").sha256
    market = {
        "dataset": "d",
        "data_sha256": data,
        "universe": "IDX",
        "features": "f",
        "window": 1,
        "horizon": 5,
    }
    days = {
        "train": ("2021-01-04", "2021-06-01"),
        "valid": ("2021-06-02", "2021-09-01"),
        "purge": 5,
    }
    how = {
        "size": "full",
        "settings": {},
        "seed": 0,
        "threads": 1,
        "gpu": False,
        "shuffled": False,
        "versions": {},
    }
    recipe = TrainingRecipe(model="linear", **market, **days, **how)
    measured = {
        "valid_ic": RankIC(mean=0.1, error=None, days=1),
        "train_samples": 1,
        "valid_samples": 1,
    }
    kept = {"recipe": recipe, "seen_until": "2021-09-01", "model_sha256": "0", "cpu_seconds": 0.0}
    ours = TrainedBaseline(key="abcdef0123456789", **measured, **kept)
    change = msgspec.structs.replace
    others = (
        change(ours, key="b" * 16, recipe=change(recipe, size="qlib")),
        change(ours, key="c" * 16, recipe=change(recipe, seed=1)),
        change(ours, key="d" * 16, seen_until="2023-01-01"),
        change(ours, key="e" * 16, recipe=change(recipe, data_sha256="1")),
        change(ours, key="f" * 16, recipe=change(recipe, shuffled=True)),
    )
    monkeypatch.setattr(fitting, "list_trained", lambda: (ours, *others))
    played = trained_agents("synthetic/ashare:7", ["long"])
    assert [agent.title for agent in played] == ["linear", "linear-qlib", "linear-cccccc"]
    assert [agent.params["key"] for agent in played] == ["abcdef0123456789", "b" * 16, "c" * 16]
    assert "skipping 1 factor model(s) trained on sessions" in capsys.readouterr().err
    monkeypatch.setattr(fitting, "list_trained", tuple)
    assert trained_agents("synthetic/ashare:7", ["long"]) == []
    assert "tradeassay baselines" in capsys.readouterr().err
