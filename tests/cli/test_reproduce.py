"""``reproduce`` and ``benchmarks --needs``: a paper's cells with its tables, and what the data lacks for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tradeassay.cli import main
from tradeassay.core.errors import UserError


def test_needs_are_listed_and_go_with_one_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "--needs", "synthetic/us:7"]) == 2
    assert "--needs goes with one benchmark" in capsys.readouterr().err
    assert main(["benchmarks", "stockbench-v1", "--needs", "nowhere"]) == 2


def test_a_window_after_the_cutoff_needs_a_model_whose_cutoff_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    from tradeassay.cli._options import after_cutoff
    from tradeassay.core.errors import UserError

    assert after_cutoff("W4", ()) == "W4"
    assert after_cutoff("after-cutoff", ["openai/gpt-4o"]).startswith("after-20")
    for models, said in (([], "goes with models"), (["nobody/nothing"], "is not known")):
        with pytest.raises(UserError, match=said):
            after_cutoff("after-cutoff", models)


def test_programs_need_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "quantcode"]) == 2
    assert "name one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["systrade", "--grid", "-m", "scripted/builder-gold"], "no --grid"),
        (["ama", "--seeds", "2"], "played once"),
        (["stockbench", "--sample", "2"], "no tasks to sample"),
        (["ama", "-m", "scripted/sensible"], "names its own entries"),
        (["systrade"], "-m scripted/builder-gold"),
    ],
)
def test_options_that_a_paper_does_not_have_are_refused(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *given]) == 2
    assert said in capsys.readouterr().err


def test_options_of_asking_reach_the_papers_about_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import tradeassay.runs

    called: list[tuple[Any, dict[str, Any]]] = []

    def take(spec: Any, folder: Path, **how: Any) -> None:
        called.append((spec, how))
        raise UserError("nothing is played here")

    monkeypatch.setattr(tradeassay.runs, "run", take)
    asked = ["--seeds", "3", "--max-usd", "5", "--replay", "--workers", "1", "--runs", str(tmp_path), "--json"]
    assert main(["reproduce", "systrade", "-m", "scripted/builder-gold", "--sample", "2", *asked]) == 2
    assert main(["reproduce", "quantcode", "-m", "scripted/coder-gold", "--grid", *asked]) == 2
    (systems, how), (programs, _) = called
    assert (systems.benchmark, systems.models) == ("systrade-v1", ("scripted/builder-gold",))
    assert len(systems.strategies) == 2 and systems.seeds == programs.seeds == (0, 1, 2)
    assert programs.settings == ("single-turn", "agentic") and programs.benchmark == "quantcode-v1"
    assert how["workers"] == 1 and how["asking"].max_usd == 5.0 and how["asking"].replay


SEASON = """
id = "short"
benchmark = "ama-v1"
convention = "paper"
first = "2022-06-01"
last = "2022-06-03"
warmup = 0
assets = [{symbol = "AAJX", kind = "stock", dataset = "synthetic/us:7"}]
entries = [{id = "one", architecture = "investor", model = "scripted/sensible"}]
"""


@pytest.mark.slow
def test_a_season_stands_beside_the_figures_of_its_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "season.toml"
    file.write_text(SEASON)
    asked = ["reproduce", "ama", "--data", str(file), "--runs", str(tmp_path)]
    assert main(asked) == 0
    table = capsys.readouterr().out
    assert "40.83%" in table and "no, because our data is synthetic" in " ".join(table.split())
    assert "none of our entries is of the kind" in " ".join(table.split())
    assert main([*asked, "--json"]) == 0  # played already: only read again
    told = json.loads(capsys.readouterr().out)
    assert told["standings"]["rows"] and told["printed"]["second_hand"]
    ours = [ours for figure in told["printed"]["figures"] for ours in figure["ours"]]
    assert ours and not any(one["comparable"] for one in ours)


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "model"), [("quantcode", "coder-gold"), ("systrade", "builder-gold")])
def test_programs_stand_among_the_rows_of_their_paper(
    paper: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["reproduce", paper, "-m", f"scripted/{model}", "--sample", "1", "--workers", "1"]
    assert main([*asked, "--runs", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert f"ours: scripted/{model}" in shown.out and "no, because" in shown.out
    assert main([*asked, "--runs", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["printed"]["reasons"] and told["scores"] and Path(told["run"], "report.html").is_file()
    rows = [row for table in told["printed"]["tables"] for row in table["rows"]]
    assert any(row["ours"] for row in rows) and any(not row["ours"] for row in rows)


def test_a_folder_that_cannot_be_imported_is_sent_to_the_command_with_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("hello,world\n1,2\n")
    assert main(["reproduce", "ktdfin", "--data", str(tmp_path), "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "no column for date and close" in said and f"tradeassay data import {tmp_path} --name NAME" in said


@pytest.mark.slow
def test_the_main_table_of_stockbench_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["-m", "scripted/news-reader"]
    assert main(["reproduce", "stockbench", *models, "--runs", str(tmp_path), "--workers", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    table = told["studies"][0]
    names = [row["name"] for row in table["rows"]]
    assert {"equal-weight", "scripted-news-reader"} <= set(names) and names[-1].startswith("published baseline")
    assert "comparable: no, because our data is synthetic" in table["note"]
    assert any(one["title"].startswith("Figure 3") for one in told["studies"])
    assert all(row["reasons"] for figures in told["printed"] for row in figures["rows"])
    assert "published baseline" in (Path(told["run"]) / "report.html").read_text()


def test_factor_models_that_saw_nothing_of_the_windows_play_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import msgspec

    from tradeassay.agents.factor_models import trained
    from tradeassay.agents.factor_models.trained import RankIC, TrainedBaseline, TrainingRecipe
    from tradeassay.cli.reproduce import _trained
    from tradeassay.data import load_dataset

    recipe = TrainingRecipe(
        model="linear",
        dataset="d",
        data_sha256=load_dataset("synthetic/ashare:7").sha256,
        universe="IDX",
        features="f",
        window=1,
        train=("2021-01-04", "2021-06-01"),
        valid=("2021-06-02", "2021-09-01"),
        horizon=5,
        purge=5,
        size="full",
        settings={},
        seed=0,
        threads=1,
        gpu=False,
        shuffled=False,
        versions={},
    )
    ours = TrainedBaseline(
        key="abcdef0123456789",
        recipe=recipe,
        seen_until="2021-09-01",
        train_samples=1,
        valid_samples=1,
        valid_ic=RankIC(mean=0.1, error=None, days=1),
        model_sha256="0",
        cpu_seconds=0.0,
    )
    change = msgspec.structs.replace
    qlibs = change(ours, key="b" * 16, recipe=change(recipe, size="qlib"))
    again = change(ours, key="c" * 16, recipe=change(recipe, seed=1))
    late = change(ours, key="d" * 16, seen_until="2023-01-01")
    elsewhere = change(ours, key="e" * 16, recipe=change(recipe, data_sha256="1"))
    dealt = change(ours, key="f" * 16, recipe=change(recipe, shuffled=True))
    monkeypatch.setattr(trained, "list_trained", lambda: (ours, qlibs, again, late, elsewhere, dealt))
    played = _trained("synthetic/ashare:7", ["long"])
    assert [agent.title for agent in played] == ["linear", "linear-qlib", "linear-cccccc"]
    assert [agent.params["key"] for agent in played] == ["abcdef0123456789", "b" * 16, "c" * 16]
    assert "1 trained factor models have seen sessions" in capsys.readouterr().err
    monkeypatch.setattr(trained, "list_trained", tuple)
    assert _trained("synthetic/ashare:7", ["long"]) == []
    assert "tradeassay baselines" in capsys.readouterr().err
