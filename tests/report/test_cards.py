"""Cards and trackers: what leaves the house is the run's own numbers, and nothing leaves by itself."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from report_sample import report

sys.path.insert(0, str(Path(__file__).parents[1] / "recorded"))

from golden import stored as played

from tradeassay.benchmarks import benchmarks
from tradeassay.cli import main
from tradeassay.report import paste, paste_tables, tracking
from tradeassay.report.cards import BenchmarkCard, croissant, results_card, write_cards
from tradeassay.report.export_tables import PasteCell, PasteTable


def test_tiers_are_in_the_tables() -> None:
    data = report()
    ranked = [(cell, table) for cell, table in zip(data.cells, paste_tables(data), strict=True) if cell.contest]
    assert ranked, "the sample has a contest"
    for cell, table in ranked:
        assert cell.contest is not None
        assert table.columns[:2] == ("tier", "agent") and "#" not in table.columns
        for row in table.rows:
            assert row[0].value == cell.contest.tier_of(row[1].text)
        assert any("Agents of one tier cannot be told apart" in note for note in table.notes)


def test_the_results_card_holds_every_number_of_the_table() -> None:
    yaml = pytest.importorskip("yaml")
    data = report()
    card = paste(data, "card")
    _, head, body = card.split("---\n", 2)
    found = {model["name"]: model["results"] for model in yaml.safe_load(head)["model-index"]}
    for table in paste_tables(data):
        for row in table.rows:
            wanted = {t: c.value for t, c in zip(table.columns, row, strict=True) if c.value is not None}
            if set(wanted) - {"#", "tier"}:
                mine = next(r for r in found[row[1].text] if r["dataset"]["name"] == table.title)
                assert {m["type"]: m["value"] for m in mine["metrics"]} == {
                    title: value for title, value in wanted.items() if title not in ("#", "tier")
                }
    assert body.strip() == paste(data, "md").strip()


def test_hostile_names_stay_texts_in_the_card() -> None:
    yaml = pytest.importorskip("yaml")
    evil = 'x"}\n---\nmodel-index: []\n# : !!python/object'
    table = PasteTable(evil, ("model", "rate"), ((PasteCell(evil), PasteCell("1", 1.0)),), ())
    _, head, _ = results_card([table], "").split("---\n", 2)
    (model,) = yaml.safe_load(head)["model-index"]
    assert model["name"] == " ".join(evil.split())


def test_every_benchmark_version_has_both_cards(tmp_path: Path) -> None:
    written = write_cards(tmp_path)
    assert {f"{name}.md" for name in benchmarks.names()} | {"quantcode-v1.md", "systrade-v1.md"} <= {
        path.name for path in written
    }
    for path in tmp_path.glob("*.json"):
        made = json.loads(path.read_text())
        assert made["@type"] == "sc:Dataset" and made["conformsTo"].endswith("croissant/1.0")
        assert made["license"] and made["version"].endswith(".0.0")
        # A field without a source is no valid record: where no file is stored there are none.
        files = {file["@id"] for file in made.get("distribution", ())}
        fields = [field for records in made.get("recordSet", ()) for field in records["field"]]
        assert bool(files) == bool(fields) == ("variableMeasured" not in made)
        assert all(field["source"]["fileSet"]["@id"] in files for field in fields)


def test_a_stored_data_set_is_named_as_the_source_of_every_field() -> None:
    about = BenchmarkCard(
        id="a-v3",
        title="A",
        description="B",
        rules="",
        rules_sha256=None,
        dataset="c",
        kind="real",
        window="",
        licence="d",
        sha256="ab" * 32,
        biases=(),
        get="e",
        fields=(("close", "sc:Float", "last price"),),
    )
    made = croissant(about)
    (file,), (records,) = made["distribution"], made["recordSet"]
    assert "ab" * 32 in file["description"] and made["version"] == "3.0.0"
    assert [field["source"]["fileSet"] for field in records["field"]] == [{"@id": file["@id"]}]


class Mlflow(ModuleType):
    """A stand-in with the four functions that are called."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.logged: dict[str, Any] = {"files": []}

    def set_experiment(self, name: str) -> None:
        self.logged["experiment"] = name

    def start_run(self, run_name: str) -> Any:
        class Begun:
            info = SimpleNamespace(run_id="abc")

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *error: object) -> None:
                return None

        return Begun()

    def log_params(self, params: dict[str, str]) -> None:
        self.logged["params"] = params

    def log_metrics(self, numbers: dict[str, float]) -> None:
        self.logged["numbers"] = numbers

    def log_artifact(self, path: str) -> None:
        self.logged["files"].append(Path(path).name)


@pytest.fixture
def run(tmp_path: Path) -> str:
    shutil.copytree(played("stockbench"), tmp_path / "run")
    return str(tmp_path / "run")


def test_a_tracker_gets_the_numbers(
    run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    assert main(["report", run, "--to", "mlflow", "--project", "mine", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert stand_in.logged["numbers"] == told["numbers"] and told["id"] == "abc"
    assert stand_in.logged["files"] == ["report.html", "scores.json"] and stand_in.logged["experiment"] == "mine"
    assert all(
        set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. -/")
        for name in told["numbers"]
    )


def test_nothing_is_sent_unless_it_is_asked_for(
    run: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    assert main(["report", run, "--to", "nowhere"]) == 0 and stand_in.logged == {"files": []}
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert main(["report", run, "--to", "wandb"]) == 2
    assert "tradeassay[tracking]" in capsys.readouterr().err
    monkeypatch.setattr(stand_in, "set_experiment", lambda name: 1 / 0)
    assert main(["report", run, "--to", "mlflow"]) == 2
    assert "mlflow did not take the run: ZeroDivisionError" in capsys.readouterr().err


def test_names_that_a_tracker_cannot_tell_apart_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple((PasteCell(name), PasteCell("1", value)) for name, value in (("a/b", 1.0), ("a:b", 2.0)))
    monkeypatch.setattr(tracking, "paste_tables", lambda run: [PasteTable("t", ("agent", "return"), rows, ())])
    run: Any = SimpleNamespace(complete=True, episodes=(), name="r", manifest=SimpleNamespace(work_sha256="0"))
    assert tracking.tracked(run)[1] == {"a-b/return": 1.0, "a-b/return-2": 2.0}
