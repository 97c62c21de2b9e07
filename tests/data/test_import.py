"""Whole folders: what is read, what is guessed, and where the faults are."""

import os
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tradeassay.core.errors import DataRefused, UserError
from tradeassay.core.view import Board
from tradeassay.data.datasets import FilesSource, diagnose, fetch_dataset, import_files, make_source
from tradeassay.data.snapshot import open_snapshot
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.folder import read_files
from tradeassay.data.tables.layouts import unpacked

US_DAYS = ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]
CN_DAYS = ["20240102", "20240103", "20240104", "20240105", "20240108"]


def bars(days: list[str], start: float = 100.0, symbol: str | None = None, amount: bool = False) -> str:
    """CSV rows of a price that rises by one a day."""
    lines = []
    for i, day in enumerate(days):
        close = start + i
        cells = [day, f"{close - 0.5}", f"{close + 1}", f"{close - 1}", f"{close}", "1000"]
        cells += [f"{close * 1000}"] if amount else []
        lines.append(",".join(([symbol] if symbol else []) + cells))
    return "\n".join(lines) + "\n"


HEAD = "date,open,high,low,close,volume\n"
LONG = "symbol,date,open,high,low,close,volume,amount\n"


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / (name.replace("__", ".") + ("" if "__" in name else ".csv"))).write_text(content)
    return folder


def test_one_file_per_symbol(tmp_path):
    folder = write(tmp_path / "us", AAA=HEAD + bars(US_DAYS), BBB=HEAD + bars(US_DAYS[2:], 20))
    imported = read_files(FilesConfig(path=str(folder)))
    panel = imported.panel
    assert imported.diagnose() == ()
    assert panel.symbols == ("AAA", "BBB") and panel.sessions.astype(str).tolist() == US_DAYS
    assert panel.bars["close"][:, 0].tolist() == [100, 101, 102, 103, 104]
    assert np.isnan(panel.bars["close"][:2, 1]).all() and panel.listings[1].listed == "2024-01-04"
    assert panel.facts.calendar == "XNYS" and panel.facts.currency == "USD"
    assert panel.bars["amount"][0, 0] == 100_000
    assert panel.facts.biases == (
        "no traded amount in the files: taken as volume times close",
        "no dated index membership: the universe is whoever is in the files",
    )
    text = str(imported.report)
    assert "AAA.csv and 1 more: date=date, open=open" in text and "2024-01-02 to 2024-01-08" in text


def test_an_ashare_panel_imports_as_it_is(tmp_path):
    rows = LONG
    rows += bars(CN_DAYS, 10, "600000.SH", amount=True)
    rows += bars([CN_DAYS[0], CN_DAYS[1], CN_DAYS[4]], 30, "SH688981", amount=True)
    rows += bars(CN_DAYS, 20, "sz.300750", amount=True)
    folder = write(tmp_path / "cn", panel=rows)
    imported = read_files(FilesConfig(path=str(folder / "panel.csv")))
    panel = imported.panel
    assert imported.diagnose() == () and panel.facts.calendar == "XSHG" and panel.facts.currency == "CNY"
    boards = {entry.instrument.symbol: entry.instrument.board for entry in panel.listings}
    assert boards == {"600000.SH": Board.MAIN, "SH688981": Board.STAR, "sz.300750": Board.CHINEXT}
    assert all(entry.instrument.lot == 100 for entry in panel.listings)
    star = panel.symbols.index("SH688981")
    assert panel.suspended[:, star].tolist() == [False, False, True, True, False], "no row = suspended"
    assert panel.bars["amount"][0, 0] == 10_000


def test_rows_without_trade_are_suspensions(tmp_path):
    rows = LONG + bars(CN_DAYS, 10, "600000", amount=True)
    rows += "000001,20240102,9,9,9,9,100,900\n000001,20240103,0,0,0,9,0,0\n000001,20240104,9,9,9,9,100,900\n"
    panel = read_files(FilesConfig(path=str(write(tmp_path / "cn", panel=rows)))).panel
    column = panel.symbols.index("000001")
    assert panel.suspended[:3, column].tolist() == [False, True, False]
    assert np.isnan(panel.bars["close"][1, column])


def test_a_status_column_suspends_on_any_calendar(tmp_path):
    rows = "date,open,high,low,close,volume,tradestatus\n"
    rows += "2024-01-02,9,9,9,9,100,1\n2024-01-03,9,9,9,9,0,0\n2024-01-04,9,9,9,9,100,1\n"
    panel = read_files(FilesConfig(path=str(write(tmp_path / "us", AAA=rows)), calendar="XNYS")).panel
    assert panel.suspended[:, 0].tolist() == [False, True, False]
    assert all(np.isnan(values[:, 0]).tolist() == [False, True, False] for values in panel.bars.values())


def test_headerless_files_with_given_columns(tmp_path):
    rows = "20240102,0,1.0,2.0,0.5,1.5,100\n20240103,0,1.5,2.5,1.0,2.0,100\n"
    header = ("date", "ignore", "open", "high", "low", "close", "volume")
    config = FilesConfig(path=str(write(tmp_path / "x", AAA=rows)), header=header)
    panel = read_files(config).panel
    assert panel.bars["close"][:, 0].tolist() == [1.5, 2.0]
    with pytest.raises(UserError, match="no column for close among date, column 2"):
        read_files(FilesConfig(path=config.path))
    (tmp_path / "y.csv").write_bytes(b"\x00\x01")
    with pytest.raises(UserError, match="its first line holds no title of a column"):
        read_files(FilesConfig(path=str(tmp_path / "y.csv")))


def test_parquet_files(tmp_path):
    dates = pa.array(np.array(US_DAYS, dtype="datetime64[ns]"))
    table = pa.table({"Date": dates, "symbol": ["AAA"] * 5, "Close": [1.0, 1.1, 1.2, 1.3, 1.4]})
    pa.parquet.write_table(table, tmp_path / "long.parquet")
    imported = read_files(FilesConfig(path=str(tmp_path)))
    assert imported.panel.symbols == ("AAA",) and imported.diagnose() == ()
    assert "only closing prices: open, high and low are set equal to the close" in imported.panel.facts.biases
    assert imported.panel.bars["open"][:, 0].tolist() == imported.panel.bars["close"][:, 0].tolist()
    codes = pa.table({"date": [20240102, 20240103], "code": [1, 1], "close": [9.0, 9.1]})
    pa.parquet.write_table(codes, tmp_path / "codes.parquet")
    panel = read_files(FilesConfig(path=str(tmp_path / "codes.parquet"))).panel
    assert panel.symbols == ("000001",) and panel.facts.calendar == "XSHG"


def test_adjusted_closes_are_used_when_asked(tmp_path):
    rows = "Date,Open,High,Low,Close,Adj Close,Volume\n"
    rows += "2024-01-02,100,110,90,100,50,10\n2024-01-03,50,55,45,50,50,10\n"
    folder = write(tmp_path / "x", AAA=rows)
    plain = read_files(FilesConfig(path=str(folder)))
    assert [fault.check for fault in plain.diagnose()] == ["gap without corporate action"]
    assert "-o prices=adjusted" in str(plain.report)
    adjusted = read_files(FilesConfig(path=str(folder), prices="adjusted"))
    assert adjusted.panel.bars["close"][:, 0].tolist() == [50, 50] and adjusted.diagnose() == ()
    assert adjusted.panel.bars["high"][:, 0].tolist() == [55, 55] and adjusted.panel.facts.adjusted == "total"


FAULTY = HEAD + (
    "2024-01-02,10,11,9,10,100\n"
    "2024-01-03,10,9,11,10,100\n"  # line 3: high below low
    "2024-01-04,10,11,9,-10,100\n"  # line 4: negative price
    "2024-01-05,10,11,9,10,-5\n"  # line 5: negative volume
    "2024-01-05,10,11,9,10,100\n"  # line 6: duplicate
    "2024-01-09,10,11,9,10,100\n"
    "2024-01-08,10,10.5,9,10.7,100\n"  # line 8: unsorted, high below close
    "2024-01-15,10,11,9,10,100\n"  # line 9: holiday (10, 11, 12 are missing sessions)
    "2024-01-16,20,21,19,20,100\n"  # line 10: gap
    "2024-01-17,,21,19,20,100\n"  # line 11: no open
    "2024-01-18,20,21,20.5,20,x\n"  # line 12: no number, low above open
)


def test_every_fault_is_named_with_file_and_line(tmp_path):
    folder = write(tmp_path / "bad", AAA=FAULTY)
    faults = diagnose(folder)
    found = {(fault.check, fault.file, fault.row) for fault in faults if fault.severity == "error"}
    assert found == {
        ("high below low", "AAA.csv", 3),
        ("price not positive", "AAA.csv", 4),
        ("negative volume", "AAA.csv", 5),
        ("duplicate", "AAA.csv", 6),
        ("unsorted", "AAA.csv", 8),
        ("high below open or close", "AAA.csv", 8),
        ("bar on a holiday", "AAA.csv", 9),
        ("gap without corporate action", "AAA.csv", 10),
        ("incomplete bar", "AAA.csv", 11),
        ("no number", "AAA.csv", 12),
        ("low above open or close", "AAA.csv", 12),
        ("missing session", "bad/bars", None),
    }
    missing = [fault.session for fault in faults if fault.check == "missing session"]
    assert missing == ["2024-01-10", "2024-01-11", "2024-01-12"]


def test_faults_refuse_the_import_until_they_are_accepted(tmp_path):
    config = FilesConfig(path=str(write(tmp_path / "bad", AAA=FAULTY)))
    with pytest.raises(DataRefused, match="accept all faults"):
        import_files(config, home=tmp_path / "home")
    with pytest.raises(DataRefused, match=r"AAA\.csv:12: volume 'x' is not a number"):
        FilesSource(config).load()
    result = import_files(config, home=tmp_path / "home", allow_faults=True)
    assert result.manifest.faults.counts["duplicate"] == 1
    snapshot = open_snapshot(tmp_path / "home" / "store" / "bad")
    assert any(bias.startswith("data faults accepted") for bias in snapshot.facts.biases)
    assert [fault.row for fault in result.manifest.faults.listed if fault.check == "duplicate"] == [6]


def test_prices_of_which_none_can_be_read_are_no_market_whatever_is_accepted(tmp_path):
    rows = "date;open;high;low;close;volume\n" + "".join(f"{d};10,5;11,5;9,5;10,5;7\n" for d in US_DAYS)
    config = FilesConfig(path=str(write(tmp_path / "x", AAA=rows)))
    with pytest.raises(DataRefused, match=r"no price that can be read: .*decimals with a point\)$"):
        import_files(config, home=tmp_path / "home", allow_faults=True)


def test_who_is_refused_is_not_sent_to_an_option_that_does_not_help(tmp_path):
    rows = HEAD + bars(["2024-01-12", "2024-01-15", "2024-01-16"])
    with pytest.raises(DataRefused, match="calendar='XSHG'") as refused:
        import_files(FilesConfig(path=str(write(tmp_path / "x", AAA=rows))), home=tmp_path / "home")
    assert "1 bar on a holiday" in str(refused.value) and "--drop" not in str(refused.value)


def test_only_named_faults_can_be_accepted(tmp_path):
    rows = HEAD + bars(US_DAYS[:2]) + "2024-01-04,300,301,299,300,5\n2024-01-04,300,301,299,300,5\n"
    config = FilesConfig(path=str(write(tmp_path / "x", AAA=rows)))
    with pytest.raises(DataRefused, match="1 duplicate"):
        import_files(config, home=tmp_path, allow_faults=("gap without corporate action",))
    import_files(config, home=tmp_path, allow_faults=("gap without corporate action", "duplicate"))


def test_descending_files_are_fine(tmp_path):
    rows = HEAD + "\n".join(reversed(bars(US_DAYS).strip().split("\n"))) + "\n"
    imported = read_files(FilesConfig(path=str(write(tmp_path / "x", AAA=rows))))
    assert imported.diagnose() == () and imported.panel.bars["close"][0, 0] == 100


def test_crypto_days_are_guessed_from_their_weekends(tmp_path):
    days = [f"2024-01-{day:02d}" for day in range(1, 15)]
    panel = read_files(FilesConfig(path=str(write(tmp_path / "x", BTC=HEAD + bars(days))))).panel
    assert panel.facts.calendar == "24/7" and panel.listings[0].instrument.kind == "crypto"
    assert panel.listings[0].instrument.step == 1e-8


def test_a_name_that_stops_counts_as_delisted(tmp_path):
    days = (
        np.busday_offset("2024-01-02", np.arange(40), holidays=["2024-01-15", "2024-02-19"]).astype(str).tolist()
    )
    folder = write(tmp_path / "x", AAA=HEAD + bars(days), BBB=HEAD + bars(days[:10]))
    panel = read_files(FilesConfig(path=str(folder))).panel
    assert [entry.delisted for entry in panel.listings] == [None, days[9]]
    assert "1 delistings are inferred from a name's last bar" in panel.facts.biases
    kept = read_files(FilesConfig(path=str(folder), delist_after=None)).panel
    assert [entry.delisted for entry in kept.listings] == [None, None]


def minutes(day: str, first: str, count: int, zone: str = "") -> str:
    start = np.datetime64(f"{day}T{first}")
    return "".join(f"{start + i}:00{zone},10,11,9,{10 + i / 10:g},5\n" for i in range(count))


def test_minute_files(tmp_path):
    rows = HEAD + minutes("2024-01-02", "09:31", 3) + minutes("2024-01-03", "09:31", 2)
    rows += "2024-01-03T16:00:00,10,12,8,10,5\n"
    folder = write(tmp_path / "x", AAA=rows)
    naive = [fault for fault in read_files(FilesConfig(path=str(folder))).diagnose() if fault.severity == "error"]
    assert [(f.check, f.file, f.row) for f in naive] == [("time stamp without zone", "AAA.csv", 2)]
    imported = read_files(FilesConfig(path=str(folder), timezone="America/New_York"))
    assert imported.diagnose() == () and "stamped at the end of the bar" in str(imported.report)
    panel = imported.panel
    assert panel.minutes is not None and panel.minutes.close_time.size == 6
    assert np.datetime64(int(panel.minutes.close_time[0]), "ns") == np.datetime64("2024-01-02T14:31")
    prices = {"open": [10, 10], "high": [11, 12], "low": [9, 8], "close": [10.2, 10]}
    daily = {name: values[:, 0].tolist() for name, values in panel.bars.items()}
    assert daily == {**prices, "volume": [15, 15], "amount": [15 * 10.2, 150]}
    import_files(FilesConfig(path=str(folder), timezone="America/New_York"), home=tmp_path)
    view = open_snapshot(tmp_path / "store" / "x").at(1, "close")
    assert view.minutes("AAA", 2)[1]["close"].tolist() == [10.1, 10]


def test_minute_stamps_at_the_start_of_the_bar(tmp_path):
    rows = HEAD + minutes("2024-01-02", "09:30", 3, "-05:00") + minutes("2024-01-03", "09:30", 2, "-05:00")
    panel = read_files(FilesConfig(path=str(write(tmp_path / "x", AAA=rows)))).panel
    assert panel.minutes is not None
    assert np.datetime64(int(panel.minutes.close_time[0]), "ns") == np.datetime64("2024-01-02T14:31")
    with pytest.raises(UserError, match="no time zone 'Mars'"):
        read_files(FilesConfig(path=str(tmp_path / "x"), timezone="Mars"))


def test_a_fault_in_a_minute_names_its_line(tmp_path):
    rows = HEAD + minutes("2024-01-02", "09:30", 3, "-05:00") + "2024-01-02T09:33:00-05:00,10,9,11,10,5\n"
    faults = read_files(FilesConfig(path=str(write(tmp_path / "x", AAA=rows)))).diagnose()
    assert ("high below low", "AAA.csv", 5) in {(f.check, f.file, f.row) for f in faults}


def test_volume_in_lots_is_noticed(tmp_path):
    rows = LONG + "".join(f"600000,{day},10,11,9,10,50,50000\n" for day in CN_DAYS)
    folder = write(tmp_path / "x", panel=rows)
    assert [f.check for f in diagnose(folder)] == ["volume unit"]
    assert diagnose(FilesConfig(path=str(folder), volume_unit=100.0)) == ()


def test_nothing_to_read(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        read_files(FilesConfig(path=str(tmp_path / "nowhere")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no CSV or Parquet file"):
        read_files(FilesConfig(path=str(tmp_path / "empty")))
    (tmp_path / "a.docx").write_text("x")
    with pytest.raises(UserError, match=r"a\.docx is not a CSV, .xlsx or Parquet file"):
        read_files(FilesConfig(path=str(tmp_path / "a.docx")))
    with pytest.raises(UserError, match="no readable row"):
        read_files(FilesConfig(path=str(write(tmp_path / "x", AAA=HEAD + "soon,1,1,1,1,1\n"))))


def test_sources_take_options_by_name(tmp_path):
    folder = write(tmp_path / "x", AAA=HEAD + bars(US_DAYS))
    manifest = fetch_dataset("csv", "mine", {"path": str(folder), "volume_unit": "100"}, home=tmp_path)
    assert manifest.name == "mine" and manifest.shapes.sessions == 5
    with pytest.raises(UserError, match="has no option 'folder'"):
        make_source("csv", {"folder": "x"})
    with pytest.raises(UserError, match="source 'csv'"):
        make_source("csv", {"path": "x", "calendar": "XLON"})
    with pytest.raises(UserError, match="no source 'cvs'"):
        make_source("cvs", {})


@pytest.mark.parametrize("name", ["20240102", "2024-01-02", "2024_01_02", "01-02-2024"])
def test_a_file_named_after_a_day_is_not_a_symbol(tmp_path, name):
    (tmp_path / f"{name}.csv").write_text("date,close\n2024-01-02,1\n")
    with pytest.raises(UserError, match="its name is a date"):
        read_files(FilesConfig(path=str(tmp_path)))


def test_a_column_of_days_is_not_a_column_of_symbols(tmp_path):
    (tmp_path / "a.csv").write_text("code,day,close\n2024-01-02,2024-01-02,1\n")
    with pytest.raises(UserError, match="holds the date '2024-01-02'"):
        read_files(FilesConfig(path=str(tmp_path)))


def test_infinite_numbers_are_named(tmp_path):
    rows = "2024-01-02,1,1,1,1,inf\n2024-01-03,1,1,1,1,5\n2024-01-04,1,1,1,Infinity,1e999\n"
    (tmp_path / "AAA.csv").write_text("date,open,high,low,close,volume\n" + rows)
    found = [fault for fault in read_files(FilesConfig(path=str(tmp_path))).faults if fault.check == "no number"]
    assert [(fault.row, fault.reason) for fault in found] == [
        (4, "close inf is infinite"),
        (2, "volume inf is infinite"),
        (4, "volume inf is infinite"),
    ]


def test_a_column_of_lists_is_one_line(tmp_path):
    pq = pa.parquet
    pq.write_table(pa.table({"date": ["2024-01-02"], "close": [[1.0, 2.0]]}), tmp_path / "AAA.parquet")
    with pytest.raises(UserError, match=r"AAA\.parquet: column close holds list"):
        read_files(FilesConfig(path=str(tmp_path)))
    pq.write_table(pa.table({"date": [[1]], "close": [1.0]}), tmp_path / "AAA.parquet")
    with pytest.raises(UserError, match=r"AAA\.parquet"):
        read_files(FilesConfig(path=str(tmp_path)))


def test_faults_are_shown_by_kind():
    from tradeassay.data.doctor import DataFault, grouped

    faults = [DataFault(check="high below low", file=f"f{n % 3}", row=n, reason="r") for n in range(1, 1658)]
    lines = grouped(faults)
    assert lines[0] == "error: high below low: 1,657 rows in 3 files"
    assert lines[1:] == ["  f1:1: r", "  f2:2: r", "  f0:3: r", "  and 1,654 more (--all shows them)"]
    assert len(grouped(faults, limit=None)) == 1658


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("symbol,date,close\n,2024-01-02,1\n", "a.csv:2: the row has no symbol"),
        ("symbol,date,close\nA,2024-01-02,1\n  ,2024-01-02,1\n", "a.csv:3: the row has no symbol"),
    ],
)
def test_an_empty_symbol_is_refused(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UserError, match=said):
        read_files(FilesConfig(path=str(tmp_path)))


@pytest.mark.parametrize(
    ("rows", "check", "reason"),
    [
        ("2024-01-02;10,5\n2024-01-03;10\n", "no number", "close '10,5' is not a number"),
        ("2024-01-02;10\n9999-12-31;10\n", "unreadable date", "date '9999-12-31' is not a date"),
        ("2024-01-02;10\n2024-01-03;1e300\n", "impossible price", "prices from 1e+300 to 1e+300"),
        ("2024-01-02;10\n2024-01-03;1e-320\n", "impossible price", "prices from 9.99989e-321"),
    ],
)
def test_what_could_be_misread_is_named(tmp_path, rows, check, reason):
    (tmp_path / "AAA.csv").write_text("date;close\n" + rows)
    found = [fault for fault in read_files(FilesConfig(path=str(tmp_path))).diagnose() if fault.check == check]
    assert len(found) == 1
    assert reason in found[0].reason


def test_commas_group_thousands(tmp_path):
    (tmp_path / "AAA.csv").write_text('date,close,volume\n2024-01-02,"1,234.5","1,234,567"\n')
    panel = read_files(FilesConfig(path=str(tmp_path))).panel
    assert (panel.bars["close"][0, 0], panel.bars["volume"][0, 0]) == (1234.5, 1234567.0)


def test_an_empty_date_in_parquet_is_named(tmp_path):
    table = pa.table({"date": [date(2024, 1, 2), None], "close": [1.0, 2.0]})
    pa.parquet.write_table(table, tmp_path / "A.parquet")
    (fault,) = read_files(FilesConfig(path=str(tmp_path))).faults
    assert (fault.check, fault.row) == ("unreadable date", 2)


@pytest.mark.parametrize(("row", "lost"), [(1, 4), (4, 1)])
def test_every_line_that_a_quote_swallows_is_counted(tmp_path, row, lost):
    lines = bars(US_DAYS).splitlines()
    lines[row] = lines[row].replace("2024", '"2024', 1)
    write(tmp_path / "d", AAA=HEAD + "\n".join(lines) + "\n", BBB=HEAD + bars(US_DAYS))
    broken = [fault for fault in diagnose(tmp_path / "d") if fault.check == "broken line"]
    assert [fault.row for fault in broken] == list(range(row + 2, row + 2 + lost))
    closed = "\n".join([*lines[:row], lines[row], *lines[row + 1 : -1], lines[-1].replace(",", '",', 1)])
    if lost > 1:  # a second stray quote makes one row with the right number of columns of all these
        write(tmp_path / "e", AAA=HEAD + closed + "\n", BBB=HEAD + bars(US_DAYS))
        broken = [fault for fault in diagnose(tmp_path / "e") if fault.check == "broken line"]
        assert [fault.row for fault in broken] == list(range(row + 2, row + 2 + lost))


def test_what_is_named_like_a_table_and_is_no_file_is_said_and_never_waited_for(tmp_path):
    folder = write(tmp_path / "d", AAA=HEAD + bars(US_DAYS))
    os.mkfifo(folder / "BBB.csv")
    (folder / "CCC.csv").symlink_to(folder / "gone")
    said = [str(fault) for fault in diagnose(folder) if fault.check == "not a file"]
    assert said == ["BBB.csv: a named pipe: it was not read", "CCC.csv: a link to nothing: it was not read"]
    (folder / "CCC.csv").unlink()
    pipes = tmp_path / "sides"
    pipes.mkdir()
    os.mkfifo(pipes / "news.csv")
    for refused in (
        lambda: diagnose(folder / "BBB.csv"),
        lambda: read_files(FilesConfig(path=str(folder / "AAA.csv"), beside=str(pipes))),
        lambda: unpacked("wide", folder, FilesConfig(path="")).__enter__(),
    ):
        with pytest.raises(UserError, match="is a named pipe, not a file"):
            refused()
