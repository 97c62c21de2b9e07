"""What callers of the Python calls get wrong ends in one line that says what to do, in Python's
words.
"""

import pandas as pd
import pytest
import runs_world as world

import tradeassay
import tradeassay_bench
from tradeassay.cli import main
from tradeassay.core.arguments import path_from, typed, whole_number
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.data import FilesConfig
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import Asking, Window, run
from tradeassay_bench.testing import check_agent
from tradeassay_programs import reward
from tradeassay_programs.code.collapse import collapse

TASK = "d-sma-cross-long"
DAYS = {"first": "2024-01-15", "last": "2024-01-19"}
FRAME = pd.DataFrame({"return": [0.01, -0.01] * 20}, index=pd.bdate_range("2024-01-01", periods=40))


@pytest.fixture(scope="module")
def played(home, tmp_path_factory):
    spec = world.tiny_spec(seeds=(3,), window=Window(**DAYS), benchmarks=("tiny-us-v1",))
    return run(spec, tmp_path_factory.mktemp("slips") / "r", executor="inline", home=home)


@pytest.fixture(scope="module")
def view(played):
    return played.snapshot(played.episodes[0].key).at(20, "close")


SLIPS = {
    "asking": lambda: tradeassay_bench.run("daily-us-v1", agents=["cash"], asking={"replay": True}),
    "asking of a plan": lambda: tradeassay_bench.plan(
        "daily-us-v1", agents=["cash"], asking={"replay": True}
    ),
    "asking with words": lambda: Asking(concurrency="8"),
    "money in words": lambda: Asking(max_usd="5"),
    "cash in words": lambda: MarketConfig(venue="us-v1", cash="x", **DAYS),
    "draws in words": lambda: tradeassay.BootstrapConfig(draws="x"),
    "a number as home": lambda: tradeassay_bench.list_datasets(home=3),
    "a number as folder": lambda: tradeassay_bench.run("daily-us-v1", agents=["cash"], folder=3),
    "a number as run": lambda: tradeassay_bench.load_run(3),
    "a number to resume": lambda: tradeassay_bench.resume(3),
    "a number to verify": lambda: tradeassay_bench.verify(3),
    "a number as spec": lambda: tradeassay_bench.load_spec(3),
    "a number as data": lambda: tradeassay_bench.make_spec("daily-us-v1", dataset=3),
    "a number as stored data": lambda: tradeassay_bench.get_dataset(3),
    "a number to diagnose": lambda: tradeassay_bench.diagnose(3),
    "a number to import": lambda: tradeassay_bench.import_files(3),
    "columns as text": lambda: FilesConfig(path="bars.csv", columns="close=Last"),
    "no options": lambda: tradeassay_bench.fetch_dataset("csv", "mine", None),
    "a day without dashes": lambda: tradeassay_bench.make_spec("daily-us-v1", first=20220103),
    "a late first day": lambda: tradeassay_bench.make_spec(
        "daily-us-v1", agents=["cash"], first="2099-01-01"
    ),
    "a reading in a word": lambda: tradeassay.assay(FRAME, reading=3),
    "rewards by name": lambda: reward.reward(TASK, "x = 1"),
    "no program": lambda: reward.reward(reward.load_task(TASK), None),
    "a framework": lambda: reward.reward(reward.load_task(TASK), "x = 1", framework="pandas"),
    "a judge": lambda: reward.reward(reward.load_task(TASK), "x = 1", 3),
    "a config": lambda: reward.reward(
        reward.load_task(TASK), "x = 1", config={"closeness_weight": 0.2}
    ),
    "a secret": lambda: reward.batch(["x"], TASK, secret=5),
    "no answers": lambda: reward.batch(None, TASK),
    "no tasks": lambda: reward.batch(["x"], 3),
    "a task": lambda: reward.load_task(3),
    "a list of programs": lambda: collapse(["x = 1"]),
    "an agent": lambda: check_agent(3),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_ends_in_one_line_with_the_mend(slip, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TradeassayError) as told:
        SLIPS[slip]()
    assert told.value.hint and "\n" not in str(told.value)
    assert "--" not in str(told.value), "options belong to the command line"
    assert not list(tmp_path.iterdir()), "nothing is written before it is refused"


@pytest.mark.parametrize(
    "slip",
    [
        lambda view: view.bars("close", "2"),
        lambda view: view.bars("close", 2.5),
        lambda view: view.bars("close", -1),
        lambda view: view.bars(["close"], 2),
        lambda view: view.sessions("3"),
        lambda view: view.minutes(view.symbols[0], "3"),
        lambda view: view.news("2024-01-01"),
        lambda view: view.news(0, limit="3"),
        lambda view: view.news(0, limit=-3),
        lambda view: view.actions("2024"),
    ],
)
def test_a_slip_of_who_reads_a_view(slip, view):
    with pytest.raises(UserError, match=r"give|use|one of"):
        slip(view)


def test_runs_are_named_by_folder_or_as_opened(played, home):
    for wrong in (3, None, [played]):
        with pytest.raises(UserError, match=r"a run cannot be .*give the run.s folder"):
            tradeassay_bench.compare(played, wrong)
    with pytest.raises(TradeassayError, match="no episode '0'"):
        played.records(0)
    again = tradeassay_bench.resume(played, executor="inline", progress="none", home=home)
    assert again.complete and again.folder == played.folder


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_home_that_is_a_file_is_refused(below, tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.write_text("x")
    for call in (
        tradeassay_bench.list_datasets,
        lambda home: tradeassay_bench.load_dataset("synthetic/us:7", home=home),
    ):
        with pytest.raises(UserError, match=r"home cannot be .*file.* is a file \(name a folder"):
            call(home=str(file / below))
    monkeypatch.setenv("TRADEASSAY_HOME", str(file / below))
    assert main(["data", "list"]) == 2
    assert capsys.readouterr().err.startswith("error: TRADEASSAY_HOME cannot be ")


def test_paths_and_numbers_may_come_from_elsewhere(tmp_path):
    assert Asking(recordings=str(tmp_path)).recordings == tmp_path == path_from("x", str(tmp_path))
    assert whole_number("x", pd.Series([3]).iloc[0]) == 3
    assert typed({"draws": pd.Series([30]).iloc[0]}, tradeassay.BootstrapConfig) == {"draws": 30}
    assert parse_day("2024-01-02").isoformat() == "2024-01-02"


def test_the_command_line_names_options_where_python_names_keywords(tmp_path, tell):
    returns, bars = tmp_path / "returns.csv", tmp_path / "bars.csv"
    returns.write_text("date,return %\n2024-01-02,0.01\n2024-01-03,-0.02\n2024-01-04,0.005\n")
    with pytest.raises(UserError, match=r"choose one: reading=\{'unit': 'percent'\} or reading="):
        tradeassay.assay(returns)
    assert "(choose one: --unit percent or --unit fraction)" in tell(["assay", str(returns)], 2)[1]

    bars.write_text("when,paid\n2024-01-02,1\n")
    with pytest.raises(UserError, match=r"columns=\{'date': 'NAME'\}; .* header=\('date', 'open'"):
        tradeassay_bench.import_files(bars, home=tmp_path)
    told = tell(["data", "import", str(bars)], 2)[1]
    assert (
        "e.g. --columns date=NAME; " in told
        and "e.g. --columns date,open,high,low,close,volume)" in told
    )

    with pytest.raises(UserError, match=r"\(choose an earlier first=\)"):
        tradeassay_bench.make_spec("daily-us-v1", agents=["cash"], first="2099-01-01")
    assert (
        "(choose an earlier --first)" in tell(["run", "daily-us-v1", "--first", "2099-01-01"], 2)[1]
    )

    bars.write_text("date,open,high,low,close,volume\n2024-01-02,9,1,2,3,4\n2024-01-07,1,1,1,1,4\n")
    with pytest.raises(TradeassayError, match=r"accept all faults \(allow_faults=True\)"):
        tradeassay_bench.import_files(bars, home=tmp_path)
    assert "accept all faults (--allow-faults)" in tell(["data", "import", str(bars)], 2)[1]
