"""Logs of trades: how brokers' exports are read, and the account that is made of them."""

import csv
import io
from datetime import UTC, datetime

import attribute_runs
import msgspec
import numpy as np
import polars as pl
import pytest
import runs_world as world

from tradeassay.account import Ledger
from tradeassay.assay import OwnAccount, assay
from tradeassay.assay.trades import attribute_trades, priced
from tradeassay.assay.verdict import VerdictConfig
from tradeassay.core.errors import DataRefused, UserError
from tradeassay.core.events import Filled
from tradeassay.data.tables.trades import read_trades
from tradeassay.metrics import BootstrapConfig

FEW = BootstrapConfig(draws=20)
QUICK = VerdictConfig(portfolios=0, draws=100)


def write(path, *rows, delimiter=","):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
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
"""Cash and holdings at each close, from 2,000: 979 are left on the first day, 1,633 on the second."""


def test_a_log_in_german_is_no_table_of_prices(tmp_path):
    """As a bank writes it: a byte order mark, semicolons, decimal commas, a currency's sign, a time beside."""
    log = read_trades(
        _text(
            tmp_path / "umsätze.csv",
            "\ufeffDatum;Uhrzeit;ISIN;Kauf/Verkauf;Stück;Kurs;Gebühr;Währung\r\n"
            "05.01.2023;10:31:00;DE0007164600;Kauf;1.000;98,30;1,00 €;EUR\r\n"
            "01.03.2023;09:45:12;DE0007164600;Verkauf;400;106,10;1,00 €;EUR\r\n",
        )
    )
    assert not log.decisions
    assert [(one.day, one.symbol, one.quantity, one.price, one.fee) for one in log.fills] == [
        ("2023-01-05", "DE0007164600", 1000.0, 98.3, 1.0),
        ("2023-03-01", "DE0007164600", -400.0, 106.1, 1.0),
    ]
    assert [str(one.at) for one in log.fills] == ["2023-01-05 10:31:00", "2023-03-01 09:45:12"]


def _text(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_an_account_by_hand(tmp_path):
    own = OwnAccount(prices=str(prices(tmp_path / "bars.csv")), cash_at_start=2000.0)
    log = read_trades(write(tmp_path / "log.csv", *LOG))
    assert not log.decisions
    assert log.notes[0].endswith(
        "read as a trade log: 5 fills in 2 symbols, 2024-03-04 to 2024-03-08, fees 0.11 % of what was traded"
    )
    taken, trades = attributed(own, log)
    assert taken.daily.sessions == DAYS
    assert 2000 * np.cumprod(1 + np.array(taken.daily.total)) == pytest.approx(WORTH, abs=1e-9)
    assert taken.account_return == pytest.approx(WORTH[-1] / 2000 - 1)
    # Fees are a part of trading: each day's over the value before it.
    fees = [-1 / 2000, -1 / WORTH[0], 0.0, -0.5 / WORTH[2], -0.5 / WORTH[3]]
    assert taken.daily.trading_parts["fees"] == pytest.approx(fees, abs=1e-15)
    assert any("1 name was sold beyond what the log had bought (BBB)" in note for note in taken.notes)
    assert trades.names == 1 or trades.names == 2
    made = assay(msgspec.structs.replace(own, returns=str(tmp_path / "log.csv")), QUICK)
    assert made.agents[0].total.value == pytest.approx(WORTH[-1] / 2000 - 1)


def test_refused_prices_are_mended_by_an_import(tmp_path):
    """An account has no option for a calendar or for accepted faults: the hint names the command that has."""
    file = prices(tmp_path / "bars.csv")
    file.write_text(file.read_text().replace("2024-03-08", "2024-03-09"))
    with pytest.raises(DataRefused, match="bar on a holiday") as refused:
        assay(OwnAccount(returns=str(write(tmp_path / "log.csv", *LOG)), prices=str(file)), QUICK)
    assert refused.value.hint.startswith(
        f"mend or accept them (tradeassay data import {file} --name NAME says how)"
    )
    assert "=True" not in str(refused.value)


def test_cash_at_start_is_the_least_that_pays(tmp_path):
    """Long 1,021 on the first day; on the second 979 came in, and the short sale of 195 needs 195 more."""
    own = OwnAccount(prices=str(prices(tmp_path / "bars.csv")))
    log = read_trades(write(tmp_path / "log.csv", *LOG))
    taken, _ = attributed(own, log)
    assert any("it began with 1,021.00" in note for note in taken.notes)
    short = read_trades(write(tmp_path / "short.csv", LOG[0], LOG[3]))
    taken, _ = attributed(own, short)
    assert any("it began with 195.50" in note for note in taken.notes)


def test_the_log_s_own_prices(tmp_path):
    path = write(tmp_path / "log.csv", *LOG)
    made = assay(OwnAccount(returns=str(path), cash_at_start=2000.0), QUICK).agents[0]
    assert made.total.value == pytest.approx(WORTH[-1] / 2000 - 1)  # all is sold in the end
    assert made.method == "returns"
    assert any("last traded" in note for note in made.notes)


@pytest.mark.parametrize("venue", ["us", "us-fractional", "ashare", "ashare-qlib", "crypto"])
def test_a_run_s_own_trades_are_its_account(venue, tmp_path):
    """What was filled, with the data's dividends, splits and delistings, is the account: nothing else moves it.

    Margin accounts are left out: what was lent to them costs money that is no trade.
    """
    run = attribute_runs.every_venue()
    keys = [one.key for one in run.episodes if one.benchmark == f"tiny-{venue}-v1"]
    traded = 0
    for key in keys:
        records = list(run.records(key))
        rows = [
            [
                record.session,
                event.symbol,
                "BUY" if event.quantity > 0 else "SELL",
                *map(repr, (abs(event.quantity), event.price, event.fee, event.tax)),
            ]
            for record in records
            for event in record.events
            if isinstance(event, Filled)
        ]
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


# -- ten odd logs, written from what brokers document ------------------------------------------------------------

IB = ["Trades", "Header", "DataDiscriminator", "Asset Category", "Currency", "Symbol", "Date/Time", "Quantity"]
IB += ["T. Price", "C. Price", "Proceeds", "Comm/Fee", "Basis", "Realized P/L", "MTM P/L", "Code"]


def ib_row(symbol, when, quantity, price, fee, level="Order"):
    return ["Trades", "Data", level, "Stocks", "USD", symbol, when, quantity, price, "0", "0", fee, *"0000"]


def fills(path):
    log = read_trades(path)
    return [(one.day, one.symbol, one.quantity, one.price, pytest.approx(one.fee)) for one in log.fills]


def notes(path):
    log = read_trades(path)
    return "; ".join(log.notes[1:])


def test_an_activity_statement_of_interactive_brokers(tmp_path):
    path = write(
        tmp_path / "ib.csv",
        ["Statement", "Header", "Field Name", "Field Value"],
        ["Statement", "Data", "BrokerName", "Interactive Brokers"],
        ["Deposits & Withdrawals", "Header", "Currency", "Settle Date", "Description", "Amount"],
        ["Deposits & Withdrawals", "Data", "USD", "2023-01-02", "Electronic Fund Transfer", "10000"],
        ["Deposits & Withdrawals", "Data", "Total", "", "", "10000"],
        IB,
        ib_row("AAA", "2023-01-03, 09:31:02", "1,000", "12.5", "-5"),
        ib_row("AAA", "2023-01-03, 09:31:02", "1,000", "12.5", "0", "ClosedLot"),
        ib_row("AAA", "2023-01-04, 15:59:00", "-400", "13", "-2.1"),
        ["Trades", "SubTotal", "", "Stocks", "USD", "AAA", "", "600", "", "", "", "-7.1", *"0000"],
        ["Dividends", "Header", "Currency", "Date", "Description", "Amount"],
        ["Dividends", "Data", "USD", "2023-01-05", "AAA Cash Dividend USD 0.1 per Share", "60"],
    )
    assert fills(path) == [("2023-01-03", "AAA", 1000, 12.5, 5), ("2023-01-04", "AAA", -400, 13, 2.1)]
    said = notes(path)
    assert "1 rows of money" in said and "1 dividends" in said and "1 rows of another level" in said


def test_a_flex_query_of_interactive_brokers(tmp_path):
    titles = ["ClientAccountID", "CurrencyPrimary", "AssetClass", "Symbol", "DateTime", "Quantity", "TradePrice"]
    titles += ["IBCommission", "IBCommissionCurrency", "Buy/Sell", "LevelOfDetail", "TradeID"]
    one = ["U1", "USD", "STK", "AAA", "20230103;093102", "100", "12.5", "-1", "USD", "BUY"]
    back = ["U1", "USD", "STK", "AAA", "20230104;100000", "-100", "13", "0.2", "USD", "SELL"]
    path = write(
        tmp_path / "flex.csv", titles, [*one, "ORDER", ""], [*one, "EXECUTION", "7"], [*back, "EXECUTION", "8"]
    )
    assert fills(path) == [("2023-01-03", "AAA", 100, 12.5, 1), ("2023-01-04", "AAA", -100, 13, -0.2)]
    option = ["U1", "USD", "OPT", *one[3:], "EXECUTION", "9"]
    with pytest.raises(UserError, match="'OPT', of which no account can be made"):
        read_trades(write(tmp_path / "options.csv", titles, [*one, "EXECUTION", "7"], option))
    euros = ["U1", "EUR", *one[2:], "EXECUTION", "9"]
    with pytest.raises(UserError, match="2 currencies: EUR, USD"):
        read_trades(write(tmp_path / "two.csv", titles, [*one, "EXECUTION", "7"], euros))


def test_binance_with_coins_in_the_cells(tmp_path):
    """Newest first; the fee of a purchase is in what was bought, which is less by it; ``1INCH`` is a coin."""
    titles = ["Date(UTC)", "Pair", "Side", "Price", "Executed", "Amount", "Fee"]
    sold = ["2023-05-02 23:59:59", "BTCUSDT", "SELL", "30000", "0.5000000000BTC", "15000USDT", "15.00000000USDT"]
    coin = ["2023-05-01 08:00:00", "1INCHUSDT", "BUY", "0.5", "200.00000001INCH", "100USDT", "0.20000001INCH"]
    bought = ["2023-05-01 07:00:00", "BTCUSDT", "BUY", "28000", "0.6000000000BTC", "16800USDT", "0.0006000000BTC"]
    path = write(tmp_path / "binance.csv", titles, sold, coin, bought)
    found = fills(path)
    assert found[0] == ("2023-05-01", "BTCUSDT", pytest.approx(0.5994), 28000, 16.8)
    assert found[1] == ("2023-05-01", "1INCHUSDT", pytest.approx(199.8), 0.5, 0.1)
    assert found[2] == ("2023-05-02", "BTCUSDT", -0.5, 30000, 15)
    log = read_trades(path)
    assert log.fills[2].at == datetime(2023, 5, 2, 23, 59, 59, tzinfo=UTC)
    with pytest.raises(UserError, match="a fee in BNB, the trade is in USDT"):
        read_trades(write(tmp_path / "bnb.csv", titles, [*sold[:-1], "0.05BNB"]))


def test_binance_with_a_column_of_fee_coins(tmp_path):
    titles = ["Date(UTC)", "Market", "Type", "Price", "Amount", "Total", "Fee", "Fee Coin"]
    row = ["2021-02-03 04:05:06", "ETHUSDT", "BUY", "1500", "2", "3000", "0.002", "ETH"]
    assert fills(write(tmp_path / "old.csv", titles, row)) == [
        ("2021-02-03", "ETHUSDT", pytest.approx(1.998), 1500, 3)
    ]
    with pytest.raises(UserError, match="2 currencies: BTC, USDT"):
        read_trades(write(tmp_path / "two.csv", titles, row, [row[0], "ETHBTC", *row[2:]]))


def test_alpaca_s_orders_filled_in_part_or_not_at_all(tmp_path):
    titles = ["symbol", "side", "type", "qty", "filled_qty", "filled_avg_price", "submitted_at", "filled_at"]
    titles += ["canceled_at", "status"]
    path = write(
        tmp_path / "orders.csv",
        titles,
        ["AAA", "buy", "market", 100, 100, 10.5, "2024-03-04T14:29:00Z", "2024-03-04T14:30:01.5Z", "", "filled"],
        ["AAA", "sell", "limit", 50, 20, 11, "2024-03-05T14:29:00Z", "", "2024-03-05T20:00:00Z", "canceled"],
        ["BBB", "sell_short", "limit", 50, 0, "", "2024-03-05T14:29:00Z", "", "2024-03-05T20:00:00Z", "expired"],
    )
    assert fills(path) == [("2024-03-04", "AAA", 100, 10.5, 0), ("2024-03-05", "AAA", -20, 11, 0)]
    assert "1 orders that were not filled" in notes(path)


def test_alpaca_s_activities(tmp_path):
    titles = ["id", "activity_type", "transaction_time", "type", "price", "qty", "side", "symbol", "order_id"]
    part = ["1::a", "FILL", "2024-03-04T19:00:00Z", "partial_fill", "10", "60", "sell_short", "AAA", "o1"]
    rest = ["1::b", "FILL", "2024-03-04T19:00:01Z", "fill", "10.1", "40", "sell_short", "AAA", "o1"]
    paid = ["1::c", "DIV", "2024-03-05T00:00:00Z", "", "", "", "", "AAA", ""]
    money = ["1::d", "CSD", "2024-03-01T00:00:00Z", "", "", "", "", "", ""]
    path = write(tmp_path / "activities.csv", titles, part, rest, rest, paid, money)
    assert fills(path) == [("2024-03-04", "AAA", -60, 10, 0), ("2024-03-04", "AAA", -40, 10.1, 0)]
    said = notes(path)
    assert "1 fills that were written twice" in said and "1 dividends" in said and "1 rows of money" in said


ORDERS = ["OrderNo", "Pair", "Type", "Side", "Order Price", "Order Amount"]


@pytest.mark.parametrize(
    ("titles", "row"),
    [
        (
            ["Date(UTC)", *ORDERS, "Time", "Executed", "Average Price", "Trading total", "Status"],
            "2021-09-14 09:00:00|7|BTCUSDT|LIMIT|BUY|52000|0.2BTC|2021-09-15 10:00:00|0.1BTC|50000|5000USDT|{}",
        ),
        (
            ["Date(UTC)", *ORDERS, "AvgTrading Price", "Filled", "Total", "status"],
            "2021-09-15 10:00:00|7|BTCUSDT|LIMIT|BUY|52000|0.2|50000|0.1|5000|{}",
        ),
    ],
)
def test_binance_s_orders_count_what_was_filled_when_it_was(titles, row, tmp_path):
    unfilled = row.format("CANCELED").replace("|0.1BTC|50000|5000USDT", "|0BTC|0|0USDT").replace("|0.1|", "|0|")
    path = write(tmp_path / "orders.csv", titles, row.format("CANCELED").split("|"), unfilled.split("|"))
    assert fills(path) == [("2021-09-15", "BTCUSDT", 0.1, 50000, 0)]
    assert "1 orders that were not filled" in notes(path)


def test_flex_times_with_a_zone_and_a_fill_taken_back(tmp_path):
    titles = ["CurrencyPrimary", "AssetClass", "Symbol", "DateTime", "Quantity", "TradePrice", "IBCommission"]
    titles += ["Buy/Sell", "IBExecID"]
    stock = ["USD", "STK", "AAA"]
    path = write(
        tmp_path / "flex.csv",
        titles,
        [*stock, "20230103;093102 EST", "100", "12.5", "-1", "BUY", "a"],
        [*stock, "2023-01-03;10:00:00 EST", "50", "12.5", "-1", "BUY", "b"],
        [*stock, "2023-01-03;100500", "-50", "12.5", "1", "BUY (Ca.)", "c"],
        ["USD", "CASH", "EUR.USD", "20230103;110000", "1000", "1.09", "-2", "BUY", "d"],
    )
    assert sum(one[2] for one in fills(path)) == 100 and sum(one.fee for one in read_trades(path).fills) == 1
    assert "1 rows of money paid in or out, or exchanged" in notes(path)


def test_alpaca_s_own_json(tmp_path):
    row = '{"activity_type": "FILL", "transaction_time": "2024-03-04T19:00:00.7Z", "price": "10", "qty": "6", '
    path = tmp_path / "activities.json"
    path.write_text(f'[{row} "side": "sell", "symbol": "AAA", "id": "1::a", "legs": null}}]')
    assert fills(path) == [("2024-03-04", "AAA", -6, 10, 0)]
    path.write_text("{}")
    with pytest.raises(UserError, match="Expected `array`"):
        read_trades(path)


def test_what_was_filled_not_what_was_ordered_and_fees_in_per_cent(tmp_path):
    titles = ["time", "symbol", "side", "limit price", "quantity", "filled", "price", "status", "fees"]
    path = write(tmp_path / "part.csv", titles, ["2024-03-04", "AAA", "BUY", 11, 200, 100, 10, "Partial", "0.1%"])
    assert fills(path) == [("2024-03-04", "AAA", 100, 10, 1)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["time", "symbol", "side", "quantity", "price"], ["2024-03-04", "AAA", "BUY", -5, 10]], "buys -5"),
        (
            [["time", "symbol", "side", "quantity", "amount"], ["2024-03-04", "AAA", "BUY", 5, 50]],
            "without a column for price",
        ),
        ([["date", "action"], *([day, "BUY"] for day in DAYS), [DAYS[-1], "SELL"]], "two decisions on 2024-03-08"),
        (
            [["date", "action"], *([day, "BUY"] for day in DAYS), ["2024-03-11", "strong buy"]],
            "'strong buy' is no",
        ),
    ],
)
def test_logs_that_can_be_read_in_two_ways_are_refused(rows, said, tmp_path):
    with pytest.raises(UserError, match=said):
        read_trades(write(tmp_path / "log.csv", *rows))


def test_a_broker_with_words_and_brackets(tmp_path):
    titles = ["Date", "Action", "Symbol", "Description", "Quantity", "Price", "Fees & Comm", "Amount"]
    path = write(
        tmp_path / "words.csv",
        titles,
        ["03/28/2024", "Sell Short", "BBB", "B INC", "1,200", "$21.50", "$4.95", "$25,795.05"],
        ["03/15/2024", "Qualified Dividend", "AAA", "A INC", "", "", "", "$12.00"],
        ["03/14/2024", "Buy", "AAA", "A INC", "300", "$10.25", "", "($3,075.00)"],
        ["03/13/2024", "Wire Received", "", "", "", "", "", "$9,000.00"],
    )
    assert fills(path) == [("2024-03-14", "AAA", 300, 10.25, 0), ("2024-03-28", "BBB", -1200, 21.5, 4.95)]
    odd = [["03/28/2024", word, "AAA", "", "1", "2", "", ""] for word in ("Buy", "Expired")]
    with pytest.raises(UserError, match="'Expired' is no side of a trade"):
        read_trades(write(tmp_path / "odd.csv", titles, *odd))


def test_semicolons_and_a_decimal_comma(tmp_path):
    path = write(
        tmp_path / "comma.csv",
        ["Datum", "Symbol", "Side", "Quantity", "Price", "Commission"],
        ["04.03.2024", "AAA", "BUY", "1.000", "10,25", "-4,90"],
        ["05.03.2024", "AAA", "SELL", "1.000,5", "11,00", "-4,90"],
        delimiter=";",
    )
    assert fills(path) == [("2024-03-04", "AAA", 1000, 10.25, 4.9), ("2024-03-05", "AAA", -1000.5, 11, 4.9)]


def test_rows_alike_without_an_id_are_counted_and_said(tmp_path):
    path = write(tmp_path / "twice.csv", LOG[0], LOG[1], LOG[1])
    assert len(fills(path)) == 2
    assert "1 fills are like another" in notes(path)


def test_times_choose_the_session_by_the_market_s_close(home, tmp_path):
    """14:00 to 20:00 UTC is a session: 19:59 is in it, 20:01 is in the next; a bare 15:01 is New York's clock."""
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
    """All is bought at the open after the day of the decision, and sold likewise; repeats do nothing."""
    days = [str(day) for day in world.tiny_panel().sessions]
    words = {10: "BUY", 11: "HOLD", 12: "BUY", 15: "SELL", 16: "SELL", 18: "hold"}
    path = write(tmp_path / "list.csv", ["date", "decision"], *([days[k], word] for k, word in words.items()))
    own = OwnAccount(dataset="tiny-us", home=str(home), symbol="S4")
    log = read_trades(path)
    assert log.decisions and "2 BUY, 2 SELL, 2 HOLD" in log.notes[0]
    taken, _ = attributed(own, log)
    bars, at = world.tiny_panel().bars, world.tiny_panel().symbols.index("S4")
    assert taken.account_return == pytest.approx(bars["open"][16, at] / bars["open"][11, at] - 1, abs=1e-9)
    with pytest.raises(UserError, match="does not say what was traded"):
        assay(OwnAccount(returns=str(path), dataset="tiny-us", home=str(home)), QUICK)
    with pytest.raises(UserError, match="has no prices"):
        assay(OwnAccount(returns=str(path)), QUICK)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["2024-02-01", "S4", "BUY", 10, 400.0], "S4 traded at 400 on 2024-02-01"),
        (["2024-02-01", "XX", "BUY", 10, 40.0], "no name 'XX' in 'tiny-us'"),
        (["2031-02-03", "S4", "BUY", 10, 40.0], "is outside the prices"),
        (["2024-02-01", "S4", "BUY", 10, -40.0], "no quantity and price"),
    ],
)
def test_what_cannot_be_priced_is_refused(home, tmp_path, row, said):
    path = write(tmp_path / "bad.csv", ["time", "symbol", "side", "quantity", "price"], row)
    with pytest.raises(UserError, match=said):
        assay(OwnAccount(returns=str(path), dataset="tiny-us", home=str(home)), QUICK)


def test_other_tables_are_no_logs(tmp_path):
    held = write(tmp_path / "held.csv", ["date", "symbol", "quantity", "price"], ["2024-02-01", "A", 10, 40.0])
    returns = write(tmp_path / "r.csv", ["date", "return"], ["2024-02-01", 0.01])
    assert read_trades(held) is None and read_trades(returns) is None


def test_a_table_in_memory(tmp_path):
    frame = pl.read_csv(write(tmp_path / "log.csv", *LOG))
    file = str(prices(tmp_path / "bars.csv"))
    for table in (frame, frame.to_pandas()):
        made = assay(OwnAccount(returns=table, prices=file, cash_at_start=2000.0), QUICK)
        assert made.agents[0].total.value == pytest.approx(WORTH[-1] / 2000 - 1)
