"""Columns, dates, numbers and codes as vendors spell them."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.view import Board
from tradeassay.data.names import ashare_code, board_of
from tradeassay.data.tables.cells import read_csv, read_stamps, read_table, stem_of, to_floats
from tradeassay.data.tables.columns import guess_columns, parse_columns


def test_column_names_are_guessed():
    for names, roles in {
        "Date,Open,High,Low,Close,Adj Close,Volume": "date,open,high,low,close,adj_close,volume",
        "ts_code,trade_date,open,high,low,close,vol,amount": "symbol,date,open,high,low,close,volume,amount",
        "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额": "date,symbol,open,close,high,low,volume,amount",
        "timestamp,o,h,l,c,v": "date,open,high,low,close,volume",
        "date,time,open,high,low,close": "date,time,open,high,low,close",
        "<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>": "date,time,open,high,low,close",
        "time,close": "date,close",
        "Date,Adj Close": "date,close",
        "symbol,date,open,high,low,close,volume,amount": "symbol,date,open,high,low,close,volume,amount",
        "open_time,close,quote_volume": "date,close,amount",
    }.items():
        expected = dict(zip(roles.split(","), names.split(","), strict=True))
        assert guess_columns(names.split(","), "f.csv").roles == expected
    columns = guess_columns(["date", "last", "close", "note"], "f.csv", {"close": "last"})
    assert str(columns) == "date=date, close=last; unused: close, note"


def test_missing_columns_are_one_clear_line():
    with pytest.raises(UserError) as caught:
        guess_columns(["when", "Last Price"], "a/b.csv")
    text = str(caught.value)
    assert "a/b.csv: no column for date and close among when, Last Price" in text
    assert "columns={'date': 'NAME'}" in text and "\n" not in text
    with pytest.raises(UserError, match="has no column 'px'"):
        guess_columns(["date", "close"], "f.csv", {"close": "px"})
    with pytest.raises(UserError, match="'price' is not a column role"):
        guess_columns(["date", "close"], "f.csv", {"price": "close"})


def test_the_columns_option():
    assert parse_columns("close=Last, volume=Vol") == ({"close": "Last", "volume": "Vol"}, ())
    assert parse_columns("date,ignore,open,close") == ({}, ("date", "ignore", "open", "close"))
    for wrong, message in (
        ("close=a,b", "mixes"),
        ("day,close", "'day' is not a column role"),
        (",", "not a column role"),
    ):
        with pytest.raises(UserError, match=message):
            parse_columns(wrong)


SPELLED = [
    (["1/4/1999", "12/31/2018"], ["1999-01-04", "2018-12-31"], "month/day/year"),
    (["4/1/1999", "31/12/2018"], ["1999-01-04", "2018-12-31"], "day/month/year"),
    (["31.12.2018"], ["2018-12-31"], "day/month/year"),
    (["2018年1月4日"], ["2018-01-04"], "year-month-day"),
    (["2024-01-02T09:31", "2024-01-02 09:32"], ["2024-01-02T09:31", "2024-01-02T09:32"], "ISO"),
    (["20240102093100"], ["2024-01-02T09:31"], "digits"),
    (["2024/1/2 9:31"], ["2024-01-02T09:31"], "year-month-day"),
]


def test_dates_are_read_in_many_spellings():
    # More of them, as whole files, are in test_vendor_habits.py.
    for cells, expected, spelling in SPELLED:
        text = "d,x\n" + "\n".join(f'"{cell}",1' for cell in cells)
        stamps, faults = read_stamps(read_csv(text.encode(), "f.csv"), "d")
        assert not faults and stamps.spelling == spelling
        assert stamps.local.tolist() == np.array(expected, dtype="datetime64[ns]").astype(np.int64).tolist()


def test_zones_and_times_of_day_are_kept():
    table = read_csv(b"d,x\n2024-01-02 00:00:00-05:00,1\n2024-07-02T12:00:00Z,1\n2024-07-02 12:00:00,1\n", "f.csv")
    stamps, _ = read_stamps(table, "d")
    assert stamps.zoned.tolist() == [True, True, False]
    assert (stamps.offset // 3_600_000_000_000).tolist() == [-5, 0, 0]
    # A time of day in a column of its own.
    table = read_csv(b"d,t\n20240102,931\n20240102,1500\n20240102,93100\n", "f.csv")
    stamps, _ = read_stamps(table, "d", "t")
    found = stamps.local.astype("datetime64[ns]").astype("datetime64[m]").astype(str)
    assert found.tolist() == [f"2024-01-02T{time}" for time in ("09:31", "15:00", "09:31")]


def test_an_unreadable_date_names_its_line():
    _, faults = read_stamps(read_csv(b"d,x\n2024-01-02,1\nsoon,2\n2024-13-01,3\n,4\n", "f.csv"), "d")
    assert [str(fault) for fault in faults] == [
        "f.csv:3: d 'soon' is not a date",
        "f.csv:4: d '2024-13-01' is not a date",
        "f.csv:5: d '' is not a date",
    ]


def test_numbers():
    table = read_csv('a\n1.5\n"1,234"\n2M\n3万\n--\n\nnan\nx\n'.encode(), "f.csv")
    values, faults = to_floats(table, "a")
    assert values[:4].tolist() == [1.5, 1234, 2e6, 3e4] and np.isnan(values[4:]).all()
    assert [str(fault) for fault in faults] == ["f.csv:9: a 'x' is not a number"]


def test_line_numbers_survive_comments_blank_and_broken_lines():
    text = b'#made by hand\n#\nd,x\n2024-01-02,1\n\n2024-01-03\n2024-01-04,"a\nb"\n2024-01-05,5\n'
    table = read_csv(text, "f.csv")
    assert table.rows.tolist() == [4, 7, 9]
    assert [str(fault) for fault in table.faults] == ["f.csv:6: 1 columns instead of 2"]


def test_encodings_and_packed_files(tmp_path):
    text = "日期,收盘\n20240102,1\n"
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv.bz2").write_bytes(bz2.compress(text.encode()))
    (tmp_path / "c.csv.gz").write_bytes(b"no gzip")
    for name in ("a.csv.gz", "b.csv.bz2"):
        assert list(read_table(tmp_path / name, name).columns) == ["日期", "收盘"]
    with pytest.raises(UserError, match=r"c\.csv\.gz cannot be read"):
        read_table(tmp_path / "c.csv.gz", "c.csv.gz")
    (tmp_path / "d.parquet").write_bytes(b"no parquet")
    with pytest.raises(UserError, match=r"d\.parquet is not a Parquet file"):
        read_table(tmp_path / "d.parquet", "d.parquet")
    texts = pa.table({"date": ["2024-01-02"], "close": ["10500"]})
    pa.parquet.write_table(texts, tmp_path / "f.parquet", compression="none", use_dictionary=False)
    content = (tmp_path / "f.parquet").read_bytes()
    (tmp_path / "f.parquet").write_bytes(content.replace(b"10500", b"1\xb2500"))
    with pytest.raises(UserError, match=r"f\.parquet is not a Parquet file.*UTF8"):
        read_table(tmp_path / "f.parquet", "f.parquet")
    with pytest.raises(UserError, match=r"e\.csv is empty"):
        read_csv(b"\n", "e.csv")


def test_ashare_codes_and_boards():
    for spellings, code, board in (
        ("600000 600000.SH sh.600000 SH600000 600000.XSHG 600000.sh", "600000.SH", Board.MAIN),
        ("sz.000001 000001.XSHE 000001", "000001.SZ", Board.MAIN),
        ("300750", "300750.SZ", Board.CHINEXT),
        ("301001.SZ", "301001.SZ", Board.CHINEXT),
        ("688981.SS 688981", "688981.SH", Board.STAR),
        ("689009.XSHG", "689009.SH", Board.STAR),
        ("bj430047 430047", "430047.BJ", Board.BSE),
        ("920002", "920002.BJ", Board.BSE),
        ("832000", "832000.BJ", Board.BSE),
        ("510300.SH", "510300.SH", Board.NONE),
        ("AAPL 600000.NY 12345 6000000 600000.HK", None, Board.NONE),
    ):
        for symbol in spellings.split():
            assert (ashare_code(symbol), board_of(symbol)) == (code, board)
    assert stem_of(Path("x/600000.SH.csv.gz")) == "600000.SH"
    assert stem_of(Path("BRK.B.parquet")) == "BRK.B"
