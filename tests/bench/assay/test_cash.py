"""An account that only held cash is called that on every surface, and nothing else is made of
it.
"""

import json
import re
from datetime import date, timedelta

import pytest

import tradeassay
from tradeassay.cli import main


def sessions(count):
    day, found = date(2020, 1, 1), []
    while len(found) < count:
        day += timedelta(days=1)
        if day.weekday() < 5:
            found.append(day)
    return found


@pytest.fixture
def cash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{day},100000" for day in sessions(150)]
    (tmp_path / "cash.csv").write_text("\n".join(["date,value", *lines]))
    moves = [f"{day},{0.01 * (number % 5 - 2)}" for number, day in enumerate(sessions(150))]
    (tmp_path / "market.csv").write_text("\n".join(["date,return", *moves]))
    return tmp_path / "cash.csv"


@pytest.mark.parametrize("against", [(), ("--benchmark", "market.csv")])
def test_a_table_of_cash_is_cash(cash, against, capsys):
    assert main(["assay", "cash.csv", *against, "--json", "--out", "page.html"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["agents"]
    assert one["verdict"]["kind"] == "cash" and one["verdict"]["label"] == "held cash"
    assert one["verdict"]["sentence"] == "cash returned 0.0%: it held cash; nothing to judge."
    assert one["verdict"]["limits"] == []
    assert {stated["bearing"] for stated in one["statements"]} == {"neither"}
    assert "alpha" not in {stated["quantity"] for stated in one["statements"]}
    assert main(["assay", "cash.csv", *against, "--out", "page.html"]) == 0
    shown = capsys.readouterr().out
    page = " ".join(re.sub(r"<[^>]+>", " ", (cash.parent / "page.html").read_text()).split())
    for text in (shown, page):
        assert "held cash" in text and "nothing to judge" in text and "market exposure" not in text
    made = tradeassay.assay(cash, benchmark="market.csv" if against else None)
    assert made.verdict.kind == "cash" and "nothing to judge" in made._repr_html_()
    assert made.frame("polars")["verdict"].to_list() == ["cash"]


@pytest.mark.parametrize("last", ["2022-03-10", "2022-05-10"])
def test_an_agent_that_never_trades_held_cash(last, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    window = ["--first", "2022-03-01", "--last", last, "--executor", "inline"]
    assert main(["run", "daily-us-v1", "-a", "cash", *window, "--name", "c"]) == 0
    capsys.readouterr()
    assert main(["assay", "runs/c", "--portfolios", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    verdicts = {one["agent"]: one["verdict"] for one in told["agents"]}
    assert (
        verdicts["cash"]["kind"] == "cash"
        and "it held cash; nothing to judge" in verdicts["cash"]["sentence"]
    )
    assert verdicts["equal-weight"]["kind"] != "cash"
