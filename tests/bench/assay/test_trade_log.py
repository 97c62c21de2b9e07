"""Logs of trades: how brokers' exports are read, and the account that is made of them."""

import csv
import io
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import attribute_runs
import msgspec
import numpy as np
import polars as pl
import pytest
import runs_world as world

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.tables.trades import read_trades
from tradeassay.verdict import VerdictConfig
from tradeassay.verdict.own_account import OwnAccount
from tradeassay_bench.account import Ledger
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.events import Filled
from tradeassay_bench.examine import assay
from tradeassay_bench.examine.holdings import attribute_trades, priced

FEW = BootstrapConfig(draws=20)
QUICK = VerdictConfig(portfolios=0, draws=100)


def write(path, *rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


CLOSES = {"AAA": (10.0, 11.0, 12.5, 12.0, 13.0), "BBB": (20.0, 19.0, 21.0, 18.0, 18.0)}
DAYS = ("2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07", "2024-03-08")


def prices(path):
    rows = [
        [day, name, row[k], row[k] + 1, row[k] - 1, row[k], 10_000]
        for k, day in enumerate(DAYS)
        for name, row in CLOSES.items()
    ]
    return write(path, ["date", "symbol", "open", "high", "low", "close", "volume"], *rows)


def attributed(own, log):
    with priced(own) as snapshot:
        return attribute_trades(own, log, snapshot, FEW)


LOG = (
    ["Time", "Symbol", "Side", "Quantity", "Price", "Fees"],
    ["2024-03-04 10:00:00", "AAA", "BUY", 100, 10.2, 1.0],
    ["2024-03-05 10:00:00", "AAA", "SELL", 40, 11.5, 0.5],
    ["2024-03-05 11:00:00", "BBB", "SELL", 10, 19.5, 0.5],
    ["2024-03-07 15:00:00", "BBB", "BUY", 10, 18.5, 0.5],
    ["2024-03-08 09:45:00", "AAA", "SELL", 60, 13.2, 0.5],
)
WORTH = (
    2000 - 100 * 10.2 - 1.0 + 100 * 10.0,
    979 + 40 * 11.5 - 0.5 + 10 * 19.5 - 0.5 + 60 * 11.0 - 10 * 19.0,
    1633 + 60 * 12.5 - 10 * 21.0,
    1633 - 10 * 18.5 - 0.5 + 60 * 12.0,
    1447.5 + 60 * 13.2 - 0.5,
)
"""Cash and holdings at each close, from 2,000: 979 are left on the first day, 1,633 on the
second.
"""


def test_an_account_by_hand(tmp_path):
    own = OwnAccount(prices=str(prices(tmp_path / "bars.csv")), cash_at_start=2000.0)
    log = read_trades(write(tmp_path / "log.csv", *LOG))
    assert not log.decisions
    assert log.notes[0].endswith(
        "read as a trade log: 5 fills in 2 symbols, 2024-03-04 to 2024-03-08, fees 0.11 % of what "
        "was traded"
    )
    taken, trades = attributed(own, log)
    assert taken.daily.sessions == DAYS
    assert 2000 * np.cumprod(1 + np.array(taken.daily.total)) == pytest.approx(WORTH, abs=1e-9)
    assert taken.account_return == pytest.approx(WORTH[-1] / 2000 - 1)
    # Fees are a part of trading: each day's over the value before it.
    fees = [-1 / 2000, -1 / WORTH[0], 0.0, -0.5 / WORTH[2], -0.5 / WORTH[3]]
    assert taken.daily.trading_parts["fees"] == pytest.approx(fees, abs=1e-15)
    assert any(
        "1 name was sold beyond the holdings in the log (BBB)" in note for note in taken.notes
    )
    assert trades.names in (1, 2)
    frame = pl.read_csv(tmp_path / "log.csv")
    for table in (str(tmp_path / "log.csv"), frame, frame.to_pandas()):
        made = assay(msgspec.structs.replace(own, returns=table), QUICK)
        assert made.agents[0].total.value == pytest.approx(WORTH[-1] / 2000 - 1)


def test_refused_prices_are_mended_by_an_import(tmp_path):
    """An account has no option for a calendar or for accepted faults: the hint names the command
    that has.
    """
    file = prices(tmp_path / "bars.csv")
    file.write_text(file.read_text().replace("2024-03-08", "2024-03-09"))
    with pytest.raises(DataRefused, match="bar on a holiday") as refused:
        assay(OwnAccount(returns=str(write(tmp_path / "log.csv", *LOG)), prices=str(file)), QUICK)
    assert refused.value.hint.startswith(
        f"fix or accept them (tradeassay data import {file} --name NAME explains how)"
    )
    assert "=True" not in str(refused.value)


def test_cash_at_start_is_the_least_that_pays(tmp_path):
    """Long 1,021 on the first day; on the second 979 came in, and the short sale of 195 needs
    195 more.
    """
    own = OwnAccount(prices=str(prices(tmp_path / "bars.csv")))
    for rows, cash in ((LOG, "1,021.00"), ((LOG[0], LOG[3]), "195.50")):
        taken, _ = attributed(own, read_trades(write(tmp_path / "log.csv", *rows)))
        assert any(f"the initial cash is {cash}" in note for note in taken.notes)


def test_the_log_s_own_prices(tmp_path):
    path = write(tmp_path / "log.csv", *LOG)
    made = assay(OwnAccount(returns=str(path), cash_at_start=2000.0), QUICK).agents[0]
    assert made.total.value == pytest.approx(WORTH[-1] / 2000 - 1)  # all is sold in the end
    assert made.method == "returns"
    assert any("last trade price" in note for note in made.notes)


@pytest.mark.parametrize("venue", ["us", "us-fractional", "ashare", "ashare-qlib", "crypto"])
def test_a_run_s_own_trades_are_its_account(venue, tmp_path):
    """What was filled, with the data's dividends, splits and delistings, is the account: nothing
    else moves it.

    Margin accounts are left out: what was lent to them costs money that is no trade.
    """
    run = attribute_runs.every_venue()
    keys = [one.key for one in run.episodes if one.benchmark == f"tiny-{venue}-v1"]
    traded = 0
    for key in keys:
        records = list(run.records(key))
        rows = []
        for record in records:
            for fill in (event for event in record.events if isinstance(event, Filled)):
                numbers = map(repr, (abs(fill.quantity), fill.price, fill.fee, fill.tax))
                rows.append(
                    [record.session, fill.symbol, "BUY" if fill.quantity > 0 else "SELL", *numbers]
                )
        if not rows:
            continue
        traded += 1
        titles = ["session", "symbol", "side", "quantity", "price", "fee", "tax"]
        log = read_trades(write(tmp_path / f"{traded}.csv", titles, *rows))
        nav = {record.session: ledger.nav() for ledger, record in Ledger.steps(records)}
        start = next(ledger.deposit.cash for ledger, _ in Ledger.steps(records))
        own = OwnAccount(cash_at_start=start, until=records[-1].session)
        taken, _ = attribute_trades(own, log, run.snapshot(key), FEW)
        worth = start * np.cumprod(1 + np.array(taken.daily.total))
        assert worth == pytest.approx([nav[day] for day in taken.daily.sessions], rel=1e-12)
    assert traded


LOGS = tomllib.loads((Path(__file__).parent / "trade_logs.toml").read_text("utf-8"))["log"]


@pytest.mark.parametrize("case", LOGS, ids=lambda case: case["name"])
def test_logs_as_brokers_write_them(case, tmp_path):
    path = tmp_path / case.get("file", "log.csv")
    path.write_bytes(case["text"].encode())
    if "refused" in case:
        with pytest.raises(UserError, match=case["refused"]):
            read_trades(path)
        return
    log = read_trades(path)
    assert not log.decisions
    found = [[one.day, one.symbol, one.quantity, one.price, one.fee] for one in log.fills]
    for row, expected in zip(found, case["fills"], strict=True):
        assert row[:2] == expected[:2] and row[2:] == pytest.approx(expected[2:], rel=1e-9)
    assert [str(one.at) for one in log.fills] == case.get("at", [str(one.at) for one in log.fills])
    assert [*log.notes[1:]] == case.get("notes", [])


def test_times_choose_the_session_by_the_market_s_close(home, tmp_path):
    """14:00 to 20:00 UTC is a session: 19:59 is in it, 20:01 is in the next; a bare 15:01 is New
    York's clock.
    """
    day, after = "2024-02-01", "2024-02-02"
    for when, session in (
        (f"{day}T19:59:00Z", day),
        (f"{day}T20:01:00Z", after),
        (f"{day} 03:01:00 PM EST", after),
        (f"{day} 15:01", after),
        (str(int(datetime(2024, 2, 1, 15, tzinfo=UTC).timestamp() * 1000)), day),
        ("2024-02-03", "2024-02-05"),
    ):
        rows = ["time", "symbol", "side", "quantity", "price"], [when, "S4", "BUY", 10, 40.0]
        log = read_trades(write(tmp_path / "time.csv", *rows))
        own = OwnAccount(dataset="tiny-us", home=str(home), until="2024-02-09")
        taken, _ = attributed(own, log)
        assert taken.daily.sessions[0] == session, when


def test_a_list_of_decisions(home, tmp_path):
    """All is bought at the open after the day of the decision, and sold likewise; repeats do
    nothing.
    """
    days = [str(day) for day in world.tiny_panel().sessions]
    words = {10: "BUY", 11: "HOLD", 12: "BUY", 15: "SELL", 16: "SELL", 18: "hold"}
    path = write(
        tmp_path / "list.csv", ["date", "decision"], *([days[k], word] for k, word in words.items())
    )
    own = OwnAccount(dataset="tiny-us", home=str(home), symbol="S4")
    log = read_trades(path)
    assert log.decisions and "2 BUY, 2 SELL, 2 HOLD" in log.notes[0]
    taken, _ = attributed(own, log)
    bars, at = world.tiny_panel().bars, world.tiny_panel().symbols.index("S4")
    assert taken.account_return == pytest.approx(
        bars["open"][16, at] / bars["open"][11, at] - 1, abs=1e-9
    )
    with pytest.raises(UserError, match="has no column of the names traded"):
        assay(OwnAccount(returns=str(path), dataset="tiny-us", home=str(home)), QUICK)
    with pytest.raises(UserError, match="has no prices"):
        assay(OwnAccount(returns=str(path)), QUICK)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["2024-02-01", "S4", "BUY", 10, 400.0], "S4 traded at 400 on 2024-02-01"),
        (["2024-02-01", "XX", "BUY", 10, 40.0], "no name 'XX' in 'tiny-us'"),
        (["2031-02-03", "S4", "BUY", 10, 40.0], "is outside the prices"),
        (["2024-02-01", "S4", "BUY", 10, -40.0], "no valid quantity and price"),
    ],
)
def test_what_cannot_be_priced_is_refused(home, tmp_path, row, said):
    path = write(tmp_path / "bad.csv", ["time", "symbol", "side", "quantity", "price"], row)
    with pytest.raises(UserError, match=said):
        assay(OwnAccount(returns=str(path), dataset="tiny-us", home=str(home)), QUICK)


def test_other_tables_are_no_logs(tmp_path):
    held = write(
        tmp_path / "held.csv",
        ["date", "symbol", "quantity", "price"],
        ["2024-02-01", "A", 10, 40.0],
    )
    returns = write(tmp_path / "r.csv", ["date", "return"], ["2024-02-01", 0.01])
    assert read_trades(held) is None and read_trades(returns) is None
