"""``tradeassay baselines``, as far as it can be said without Qlib."""

import json

import pytest
from click.testing import CliRunner

from tradeassay.core.errors import UserError
from tradeassay_bench.cli.agents import baselines


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path))


def test_the_list_names_the_eighteen_and_nothing_trained():
    done = CliRunner().invoke(baselines, ["--json"], catch_exceptions=False)
    listed = json.loads(done.stdout)
    assert len(listed["models"]) == 18 and listed["trained"] == []
    assert "DoubleEnsemble" in CliRunner().invoke(baselines, [], catch_exceptions=False).stdout


def test_a_wrong_wish_is_one_clear_error():
    words = [
        "--dataset",
        "synthetic/ashare:7",
        "--models",
        "linear",
        "--valid",
        "2023-01-03..2023-03-31",
    ]
    for train, complaint in (
        ("2022-02-07", "is not a window"),
        ("2022-06-01..2023-02-01", "starts before"),
    ):
        with pytest.raises(UserError, match=complaint):
            CliRunner().invoke(baselines, [*words, "--train", train], catch_exceptions=False)
