"""``tradeassay baselines``, as far as it can be said without Qlib."""

import json

import pytest
from click.testing import CliRunner

from tradeassay.cli.agents import baselines
from tradeassay.core.errors import UserError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path))


def test_the_list_names_the_eighteen_and_nothing_trained():
    done = CliRunner().invoke(baselines, ["--json"], catch_exceptions=False)
    listed = json.loads(done.stdout)
    assert len(listed["models"]) == 18 and listed["trained"] == []
    assert "DoubleEnsemble" in CliRunner().invoke(baselines, [], catch_exceptions=False).stdout


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"--models": "lgbm"}, "no factor model 'lgbm'"),
        ({"--train": "2022-02-07"}, "is not a window"),
        ({"--valid": "2022-06-01..2022-07-01"}, "starts before"),
        ({"--horizon": "0"}, "do not make an outcome"),
    ],
)
def test_a_wrong_wish_is_one_clear_error(changes, complaint):
    words = {
        "--dataset": "synthetic/ashare:7",
        "--models": "linear",
        "--train": "2022-02-07..2022-12-30",
        "--valid": "2023-01-03..2023-03-31",
        **changes,
    }
    with pytest.raises(UserError, match=complaint):
        CliRunner().invoke(baselines, [part for pair in words.items() for part in pair], catch_exceptions=False)
