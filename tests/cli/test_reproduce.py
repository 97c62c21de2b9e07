"""``reproduce`` and ``benchmarks --needs``: a paper's cells with its tables, and what the data lacks for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tradeassay.cli import main


def test_needs_are_listed_and_go_with_one_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "--needs", "synthetic/us:7"]) == 2
    assert "--needs goes with one benchmark" in capsys.readouterr().err
    assert main(["benchmarks", "stockbench-v2", "--needs", "nowhere"]) == 2


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
        (["quantcode", "--grid", "-m", "scripted/coder-gold"], "no --grid"),
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
    import tradeassay.cli

    called: list[list[str]] = []

    def take(words: list[str]) -> int:
        called.append(words)
        return 0

    monkeypatch.setattr(tradeassay.cli, "main", take)
    asked = ["-m", "scripted/builder-gold", "--sample", "2", "--seeds", "3", "--max-usd", "5", "--replay"]
    assert main(["reproduce", "systrade", *asked, "--workers", "1", "--out", str(tmp_path), "--json"]) == 0
    words = " ".join(called[0])
    assert words.startswith("code run systrade-v2 -m scripted/builder-gold") and words.count("--strategy") == 2
    assert all(part in words for part in ("--seeds 3", "--max-usd 5.0", "--replay", "--workers 1", "--json"))


@pytest.mark.slow
def test_the_main_table_of_stockbench_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["-m", "scripted/news-reader"]
    assert main(["reproduce", "stockbench", *models, "--out", str(tmp_path), "--workers", "1", "--json"]) == 0
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
        model="linear", dataset="d", data_sha256=load_dataset("synthetic/ashare:7").sha256, universe="IDX",
        features="f", window=1, train=("2021-01-04", "2021-06-01"), valid=("2021-06-02", "2021-09-01"), horizon=5,
        purge=5, size="full", settings={}, seed=0, threads=1, gpu=False, shuffled=False, versions={},
    )  # fmt: skip
    ours = TrainedBaseline(
        key="abcdef0123456789", recipe=recipe, seen_until="2021-09-01", train_samples=1, valid_samples=1,
        valid_ic=RankIC(mean=0.1, error=None, days=1), model_sha256="0", cpu_seconds=0.0,
    )  # fmt: skip
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
    assert "tradeassay baselines train" in capsys.readouterr().err
