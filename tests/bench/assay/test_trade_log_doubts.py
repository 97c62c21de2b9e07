"""A trade log that cannot be true of its market is doubted in words, or refused."""

import json
import re

import pytest

from tradeassay.cli import main

HEAD = ("id", "time", "symbol", "side", "quantity", "price", "fees")


@pytest.fixture(scope="module")
def fills(tmp_path_factory):
    """Return the fills of a run of half a year, as rows of a log."""
    runs = tmp_path_factory.mktemp("runs")
    words = (
        "run daily-us-v1 -a momentum-12-1:k=3 --last 2022-06-30 --name rule --executor inline "
        "--workers 1"
    )
    assert main([*words.split(), "--runs", str(runs)]) == 0
    rows = []
    (journal,) = (runs / "rule" / "episodes").glob("*momentum*/events.jsonl")
    for line in journal.read_text().splitlines():
        step = json.loads(line)
        for event in step["events"]:
            if event["type"] == "filled":
                day, amount = step["session"], event["quantity"]
                side = "BUY" if amount > 0 else "SELL"
                order = f"{day}-{event['order_id']}"
                rows.append(
                    (
                        order,
                        f"{day} 10:00:00",
                        event["symbol"],
                        side,
                        abs(amount),
                        event["price"],
                        event["fee"],
                    )
                )
    return [dict(zip(HEAD, row, strict=True)) for row in rows]


def cheaper(rows):
    rows[0]["price"] *= 0.7


def larger(rows):
    for row in rows:
        row["quantity"] *= 1e6


def unbought(rows):
    sold = next(row["symbol"] for row in rows if row["side"] == "SELL")
    rows.remove(next(row for row in rows if row["symbol"] == sold and row["side"] == "BUY"))


def at_two_prices(rows):
    rows.append({**rows[0], "price": rows[0]["price"] * 1.01})


@pytest.mark.parametrize(
    ("edit", "doubt"),
    [
        (cheaper, "range"),
        (larger, "11 of 11 fills exceed the day's volume in 'synthetic/us:7'"),
        (unbought, "short"),
        (at_two_prices, "1 fills share an id with a different fill"),
    ],
)
def test_an_impossible_log_is_doubted(edit, doubt, fills, tmp_path, capsys):
    rows = [dict(row) for row in fills]
    edit(rows)
    log = tmp_path / "trades.csv"
    log.write_text(
        "\n".join([",".join(HEAD), *(",".join(map(str, row.values())) for row in rows)]) + "\n"
    )
    status = main(["assay", str(log), "--dataset", "synthetic/us:7", "--portfolios", "0"])
    said = " ".join("".join(capsys.readouterr()).split())
    assert status == 1 or re.search(doubt, said), said
