"""Whole folders: what is read, what is guessed, and where the faults are."""

import os
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.view import Board
from tradeassay_bench.data.datasets import (
    FilesSource,
    diagnose,
    fetch_dataset,
    import_files,
    make_source,
)
from tradeassay_bench.data.snapshot import open_snapshot
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import Imported, read_files
from tradeassay_bench.data.tables.layouts import unpacked

US_DAYS = ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]
CN_DAYS = ["20240102", "20240103", "20240104", "20240105", "20240108"]


def bars(
    days: list[str], start: float = 100.0, symbol: str | None = None, amount: bool = False
) -> str:
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
        (folder / f"{name}.csv").write_text(content)
    return folder


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the folder ``x`` as an import does, after writing files into
    it.
    """

    def imported(files: dict[str, str] | None = None, **options: object) -> Imported:
        return read_files(FilesConfig(path=str(write(tmp_path / "x", **(files or {}))), **options))  # type: ignore[arg-type]

    return imported


def test_one_file_per_symbol(read):
    imported = read({"AAA": HEAD + bars(US_DAYS), "BBB": HEAD + bars(US_DAYS[2:], 20)})
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


def test_an_ashare_panel_imports_as_it_is(read):
    rows = LONG
    rows += bars(CN_DAYS, 10, "600000.SH", amount=True)
    rows += bars([CN_DAYS[0], CN_DAYS[1], CN_DAYS[4]], 30, "SH688981", amount=True)
    rows += bars(CN_DAYS, 20, "sz.300750", amount=True)
    rows = rows.replace(
        "sz.300750,20240103,20.5,22,20,21,1000,21000", "sz.300750,20240103,0,0,0,20,0,0"
    )
    imported = read({"panel": rows})
    panel = imported.panel
    assert (
        imported.diagnose() == ()
        and panel.facts.calendar == "XSHG"
        and panel.facts.currency == "CNY"
    )
    boards = {entry.instrument.symbol: entry.instrument.board for entry in panel.listings}
    assert boards == {"600000.SH": Board.MAIN, "SH688981": Board.STAR, "sz.300750": Board.CHINEXT}
    assert all(entry.instrument.lot == 100 for entry in panel.listings)
    star = panel.symbols.index("SH688981")
    assert panel.suspended[:, star].tolist() == [False, False, True, True, False], (
        "no row = suspended"
    )
    still = panel.symbols.index("sz.300750")
    assert panel.suspended[:, still].tolist() == [False, True, False, False, False], (
        "no trade = suspended"
    )
    assert np.isnan(panel.bars["close"][1, still])
    assert panel.bars["amount"][0, 0] == 10_000


def test_a_status_column_suspends_on_any_calendar(read):
    rows = "date,open,high,low,close,volume,tradestatus\n"
    rows += "2024-01-02,9,9,9,9,100,1\n2024-01-03,9,9,9,9,0,0\n2024-01-04,9,9,9,9,100,1\n"
    panel = read({"AAA": rows}, calendar="XNYS").panel
    assert panel.suspended[:, 0].tolist() == [False, True, False]
    assert all(
        np.isnan(values[:, 0]).tolist() == [False, True, False] for values in panel.bars.values()
    )


def test_headerless_files_with_given_columns(read):
    rows = "20240102,0,1.0,2.0,0.5,1.5,100\n20240103,0,1.5,2.5,1.0,2.0,100\n"
    header = ("date", "ignore", "open", "high", "low", "close", "volume")
    assert read({"AAA": rows}, header=header).panel.bars["close"][:, 0].tolist() == [1.5, 2.0]
    with pytest.raises(UserError, match="no column for close among date, column 2"):
        read()


def test_parquet_files(tmp_path):
    dates = pa.array(np.array(US_DAYS, dtype="datetime64[ns]"))
    table = pa.table({"Date": dates, "symbol": ["AAA"] * 5, "Close": [1.0, 1.1, 1.2, 1.3, 1.4]})
    pa.parquet.write_table(table, tmp_path / "long.parquet")
    imported = read_files(FilesConfig(path=str(tmp_path)))
    assert imported.panel.symbols == ("AAA",) and imported.diagnose() == ()
    assert (
        "only closing prices: open, high and low are set equal to the close"
        in imported.panel.facts.biases
    )
    assert imported.panel.bars["open"][:, 0].tolist() == imported.panel.bars["close"][:, 0].tolist()
    codes = pa.table({"date": [20240102, 20240103], "code": [1, 1], "close": [9.0, 9.1]})
    pa.parquet.write_table(codes, tmp_path / "codes.parquet")
    panel = read_files(FilesConfig(path=str(tmp_path / "codes.parquet"))).panel
    assert panel.symbols == ("000001",) and panel.facts.calendar == "XSHG"


def test_adjusted_closes_are_used_when_asked(read):
    rows = "Date,Open,High,Low,Close,Adj Close,Volume\n"
    rows += "2024-01-02,100,110,90,100,50,10\n2024-01-03,50,55,45,50,50,10\n"
    plain = read({"AAA": rows})
    assert [fault.check for fault in plain.diagnose()] == ["gap without corporate action"]
    assert "-p prices=adjusted" in str(plain.report)
    adjusted = read(prices="adjusted")
    assert adjusted.panel.bars["close"][:, 0].tolist() == [50, 50] and adjusted.diagnose() == ()
    assert (
        adjusted.panel.bars["high"][:, 0].tolist() == [55, 55]
        and adjusted.panel.facts.adjusted == "total"
    )


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
    assert [fault.row for fault in result.manifest.faults.listed if fault.check == "duplicate"] == [
        6
    ]


@pytest.mark.parametrize(
    ("rows", "accepted", "said"),
    [
        # No option accepts a file without a single price, and none is named that would not help.
        (
            "".join(f"{d},x,x,x,x,7\n" for d in US_DAYS),
            True,
            r"no readable price: .*decimals with a point\)$",
        ),
        (
            bars(["2024-01-12", "2024-01-15", "2024-01-16"]),
            False,
            "^(?!.*--drop).*1 bar on a holiday.*calendar='XSHG'",
        ),
        (
            bars(US_DAYS[:2]) + "2024-01-04,300,301,299,300,5\n" * 2,
            ("gap without corporate action",),
            "1 duplicate",
        ),
    ],
)
def test_what_was_not_accepted_by_name_is_refused(tmp_path, rows, accepted, said):
    config = FilesConfig(path=str(write(tmp_path / "x", AAA=HEAD + rows)))
    with pytest.raises(DataRefused, match=said):
        import_files(config, home=tmp_path, allow_faults=accepted)
    if isinstance(accepted, tuple):
        import_files(config, home=tmp_path, allow_faults=(*accepted, "duplicate"))


def test_crypto_days_are_guessed_from_their_weekends(read):
    days = [f"2024-01-{day:02d}" for day in range(1, 15)]
    panel = read({"BTC": HEAD + bars(days)}).panel
    assert panel.facts.calendar == "24/7" and panel.listings[0].instrument.kind == "crypto"
    assert panel.listings[0].instrument.step == 1e-8


def test_a_name_that_stops_counts_as_delisted(read):
    found = np.busday_offset("2024-01-02", np.arange(40), holidays=["2024-01-15", "2024-02-19"])
    days = found.astype(str).tolist()
    panel = read({"AAA": HEAD + bars(days), "BBB": HEAD + bars(days[:10])}).panel
    assert [entry.delisted for entry in panel.listings] == [None, days[9]]
    assert "1 delistings are inferred from a name's last bar" in panel.facts.biases
    assert [entry.delisted for entry in read(delist_after=None).panel.listings] == [None, None]


def minutes(day: str, first: str, count: int, zone: str = "") -> str:
    start = np.datetime64(f"{day}T{first}")
    return "".join(f"{start + i}:00{zone},10,11,9,{10 + i / 10:g},5\n" for i in range(count))


def test_minute_files(read, tmp_path):
    rows = HEAD + minutes("2024-01-02", "09:31", 3) + minutes("2024-01-03", "09:31", 2)
    rows += "2024-01-03T16:00:00,10,12,8,10,5\n"
    naive = [fault for fault in read({"AAA": rows}).diagnose() if fault.severity == "error"]
    assert [(f.check, f.file, f.row) for f in naive] == [("time stamp without zone", "AAA.csv", 2)]
    imported = read(timezone="America/New_York")
    assert imported.diagnose() == () and "stamped at the end of the bar" in str(imported.report)
    panel = imported.panel
    assert panel.minutes is not None and panel.minutes.close_time.size == 6
    assert np.datetime64(int(panel.minutes.close_time[0]), "ns") == np.datetime64(
        "2024-01-02T14:31"
    )
    prices = {"open": [10, 10], "high": [11, 12], "low": [9, 8], "close": [10.2, 10]}
    daily = {name: values[:, 0].tolist() for name, values in panel.bars.items()}
    assert daily == {**prices, "volume": [15, 15], "amount": [15 * 10.2, 150]}
    import_files(FilesConfig(path=str(tmp_path / "x"), timezone="America/New_York"), home=tmp_path)
    view = open_snapshot(tmp_path / "store" / "x").at(1, "close")
    assert view.minutes("AAA", 2)[1]["close"].tolist() == [10.1, 10]


def test_minute_stamps_at_the_start_of_the_bar(read):
    rows = (
        HEAD
        + minutes("2024-01-02", "09:30", 3, "-05:00")
        + minutes("2024-01-03", "09:30", 2, "-05:00")
    )
    found = read({"AAA": rows}).panel.minutes
    assert found is not None and np.datetime64(int(found.close_time[0]), "ns") == np.datetime64(
        "2024-01-02T14:31"
    )
    with pytest.raises(UserError, match="unknown time zone 'Mars'"):
        read(timezone="Mars")
    faults = read({"AAA": rows + "2024-01-03T09:32:00-05:00,10,9,11,10,5\n"}).diagnose()
    assert ("high below low", "AAA.csv", 7) in {(f.check, f.file, f.row) for f in faults}


def test_volume_in_lots_is_noticed(read):
    rows = LONG + "".join(f"600000,{day},10,11,9,10,50,50000\n" for day in CN_DAYS)
    (fault,) = read({"panel": rows}).diagnose()
    assert (fault.check, fault.severity) == (
        "volume unit",
        "error",
    ) and "-p volume_unit=100" in fault.reason
    assert read(volume_unit=100.0).diagnose() == ()
    (fault,) = read(volume_unit=1.0).diagnose()
    assert fault.severity == "warning", "who gives a unit is believed"


# One day of 600519 as a vendor writes it: 25,000 shares for 42.5 million.
AKSHARE = "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额\n"
TUSHARE = "ts_code,trade_date,open,high,low,close,vol,amount\n"


def test_lots_of_akshare_and_tushare_are_not_stored_as_shares(read):
    akshare = "".join(f"{day},600519,1690,1700,1710,1680,250,42500000\n" for day in US_DAYS)
    tushare = "".join(f"600519.SH,{day},1690,1710,1680,1700,250,42500\n" for day in CN_DAYS)
    for head, rows, said, units in (
        (AKSHARE, akshare, "-p volume_unit=100 (", {"volume_unit": 100.0}),
        (
            TUSHARE,
            tushare,
            "-p volume_unit=100 -p amount_unit=1000 (",
            {"volume_unit": 100.0, "amount_unit": 1000.0},
        ),
    ):
        (fault,) = read({"bars": head + rows}).diagnose()
        assert fault.severity == "error" and said in fault.reason
        imported = read(**units)
        assert imported.diagnose() == ()
        assert (
            imported.panel.bars["volume"][0, 0] == 25_000
            and imported.panel.bars["amount"][0, 0] == 42.5e6
        )


def test_shares_and_yuan_are_no_fault_and_volume_alone_is_said_to_be_taken_as_shares(read):
    rows = "".join(f"600519.SH,{day},1690,1710,1680,1700,25000,42500000\n" for day in CN_DAYS)
    assert read({"bars": TUSHARE + rows}).diagnose() == ()
    alone = "".join(f"600519.SH,{day},1690,1710,1680,1700,250\n" for day in CN_DAYS)
    imported = read({"bars": TUSHARE.replace(",amount", "") + alone})
    assert "-p volume_unit=100" in str(imported.report)
    assert "volume_unit" not in str(read(volume_unit=100.0).report)


LISTS = pa.table({"date": ["2024-01-02"], "close": [[1.0, 2.0]]})
LISTED_DAYS = pa.table({"date": [[1]], "close": [1.0]})


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (None, "", "does not exist"),
        ("x/empty", None, "has no CSV or Parquet file"),
        ("x", "x", "x is not a CSV, .xlsx or Parquet file"),
        ("a.csv", HEAD + "soon,1,1,1,1,1\n", "no readable row"),
        ("a.csv", "\0\1", "its first line contains no column name"),
        *(
            (f"{day}.csv", "date,close\n2024-01-02,1\n", "its name is a date")
            for day in ("20240102", "2024_01_02", "2024-01-02", "01-02-2024")
        ),
        ("a.csv", "code,day,close\n2024-01-02,2024-01-02,1\n", "contains the date '2024-01-02'"),
        ("a.csv", "symbol,date,close\n,2024-01-02,1\n", "a.csv:2: the row has no symbol"),
        (
            "a.csv",
            "symbol,date,close\nA,2024-01-02,1\n  ,2024-01-02,1\n",
            "a.csv:3: the row has no symbol",
        ),
        ("AAA.parquet", LISTS, r"AAA\.parquet: column close contains list"),
        ("AAA.parquet", LISTED_DAYS, r"AAA\.parquet: column date contains list"),
    ],
)
def test_what_is_no_table_of_bars_is_refused(tmp_path, file, content, said):
    path = tmp_path / (file or "nowhere")
    if content is None:
        path.mkdir(parents=True)
    elif isinstance(content, pa.Table):
        pa.parquet.write_table(content, path)
    elif file is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=said):
        read_files(FilesConfig(path=str(path)))


@pytest.mark.parametrize(
    ("rows", "check", "found"),
    [
        ("2024-01-02;10,5\n2024-01-03;10\n", "no number", {2: "close '10,5' is not a number"}),
        (
            "2024-01-02;10\n9999-12-31;10\n",
            "unreadable date",
            {3: "date '9999-12-31' is not a date"},
        ),
        (
            "2024-01-02;10\n2024-01-03;1e300\n",
            "impossible price",
            {3: "prices from 1e+300 to 1e+300"},
        ),
        ("2024-01-02;10\n2024-01-03;1e-320\n", "impossible price", {3: "prices from 9.99989e-321"}),
        (
            "2024-01-02;inf\n2024-01-03;1e999\n",
            "no number",
            {2: "close inf is infinite", 3: "close inf is infinite"},
        ),
        (
            pa.table({"date": [date(2024, 1, 2), None], "close": [1.0, 2.0]}),
            "unreadable date",
            {2: "date is empty"},
        ),
    ],
)
def test_what_could_be_misread_is_named_with_its_line(tmp_path, rows, check, found):
    if isinstance(rows, str):
        (tmp_path / "AAA.csv").write_text("date;close\n" + rows)
    else:
        pa.parquet.write_table(rows, tmp_path / "A.parquet")
    faults = read_files(FilesConfig(path=str(tmp_path))).diagnose()
    faults = {fault.row: fault.reason for fault in faults if fault.check == check}
    assert faults.keys() == found.keys() and all(
        reason in faults[row] for row, reason in found.items()
    )


def test_sources_take_options_by_name(tmp_path):
    folder = write(tmp_path / "x", AAA=HEAD + bars(US_DAYS))
    manifest = fetch_dataset(
        "csv", "mine", {"path": str(folder), "volume_unit": "100"}, home=tmp_path
    )
    assert manifest.name == "mine" and manifest.shapes.sessions == 5
    with pytest.raises(UserError, match="has no option 'folder'"):
        make_source("csv", {"folder": "x"})
    with pytest.raises(UserError, match="source 'csv'"):
        make_source("csv", {"path": "x", "calendar": "XLON"})
    with pytest.raises(UserError, match="no source 'cvs'"):
        make_source("cvs", {})


@pytest.mark.parametrize(("row", "lost", "closed"), [(1, 4, False), (1, 4, True), (4, 1, False)])
def test_every_line_that_a_quote_swallows_is_counted(read, row, lost, closed):
    lines = bars(US_DAYS).splitlines()
    lines[row] = lines[row].replace("2024", '"2024', 1)
    if closed:  # a second stray quote makes one row with the right number of columns of all these
        lines[-1] = lines[-1].replace(",", '",', 1)
    faults = read({"AAA": HEAD + "\n".join(lines) + "\n", "BBB": HEAD + bars(US_DAYS)}).diagnose()
    broken = [fault for fault in faults if fault.check == "broken line"]
    assert [fault.row for fault in broken] == list(range(row + 2, row + 2 + lost))


def test_what_is_named_like_a_table_and_is_no_file_is_said_and_never_waited_for(tmp_path):
    folder = write(tmp_path / "d", AAA=HEAD + bars(US_DAYS))
    os.mkfifo(folder / "BBB.csv")
    (folder / "CCC.csv").symlink_to(folder / "gone")
    said = [str(fault) for fault in diagnose(folder) if fault.check == "not a file"]
    assert said == [
        "BBB.csv: a named pipe: it was not read",
        "CCC.csv: a link to nothing: it was not read",
    ]
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
