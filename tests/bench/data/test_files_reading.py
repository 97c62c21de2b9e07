"""Columns, dates, numbers and codes as vendors spell them, and whole files as mishaps leave
them.
"""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.tables.cells import stem_of
from tradeassay_bench.core.view import Board
from tradeassay_bench.data.names import ashare_code, board_of
from tradeassay_bench.data.tables.columns import guess_columns, parse_columns
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import Imported, read_files
from tradeassay_bench.data.tables.typed import read_csv, read_stamps, read_table, to_floats


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
    # More of them, as whole files, are below.
    for cells, expected, spelling in SPELLED:
        text = "d,x\n" + "\n".join(f'"{cell}",1' for cell in cells)
        stamps, faults = read_stamps(read_csv(text.encode(), "f.csv"), "d")
        assert not faults and stamps.spelling == spelling
        assert (
            stamps.local.tolist()
            == np.array(expected, dtype="datetime64[ns]").astype(np.int64).tolist()
        )


def test_zones_and_times_of_day_are_kept():
    table = read_csv(
        b"d,x\n2024-01-02 00:00:00-05:00,1\n2024-07-02T12:00:00Z,1\n2024-07-02 12:00:00,1\n",
        "f.csv",
    )
    stamps, _ = read_stamps(table, "d")
    assert stamps.zoned.tolist() == [True, True, False]
    assert (stamps.offset // 3_600_000_000_000).tolist() == [-5, 0, 0]
    # A time of day in a column of its own.
    table = read_csv(b"d,t\n20240102,931\n20240102,1500\n20240102,93100\n", "f.csv")
    stamps, _ = read_stamps(table, "d", "t")
    found = stamps.local.astype("datetime64[ns]").astype("datetime64[m]").astype(str)
    assert found.tolist() == [f"2024-01-02T{time}" for time in ("09:31", "15:00", "09:31")]


def test_an_unreadable_date_names_its_line():
    _, faults = read_stamps(
        read_csv(b"d,x\n2024-01-02,1\nsoon,2\n2024-13-01,3\n,4\n", "f.csv"), "d"
    )
    assert [str(fault) for fault in faults] == [
        "f.csv:3: d 'soon' is not a date",
        "f.csv:4: d '2024-13-01' is not a date",
        "f.csv:5: d '' is not a date",
    ]


def test_numbers():
    table = read_csv('a\n1.5\n"1,234"\n"1,234,567.5"\n2M\n3万\n--\n\nnan\nx\n'.encode(), "f.csv")
    values, faults = to_floats(table, "a")
    assert values[:5].tolist() == [1.5, 1234, 1234567.5, 2e6, 3e4] and np.isnan(values[5:]).all()
    assert [str(fault) for fault in faults] == ["f.csv:10: a 'x' is not a number"]


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


# -- whole files: read right, or refused, never read wrongly ---------------------------------------

DAYS = ("2024-01-02", "2024-01-03", "2024-01-04")
CLOSES = (10.5, 11.25, 12.75)


def table(
    between: str = ",",
    head: str = "date,open,high,low,close,volume",
    number: Callable[[float], str] = str,
    days: tuple[str, ...] = DAYS,
    end: str = "\n",
) -> str:
    rows = [head.replace(",", between)]
    rows += [
        between.join(
            (day, number(close), number(close + 1), number(close - 1), number(close), "1000")
        )
        for day, close in zip(days, CLOSES, strict=True)
    ]
    return end.join(rows) + end


def second(close: str) -> str:
    """Spell the second close otherwise."""
    return PLAIN.replace("11.25,1000", f"{close},1000")


def dated(pattern: str) -> str:
    return table(days=tuple(pattern.format(y=day[:4], m=day[5:7], d=day[8:]) for day in DAYS))


PLAIN = table()
LINES = PLAIN.splitlines(keepends=True)
CHINESE = PLAIN.replace("date,open,high,low,close,volume", "日期,开盘,最高,最低,收盘,成交量")
LONG = "symbol,date,close\n" + "".join(
    f"AAA,{day},{close}\n" for day, close in zip(DAYS, CLOSES, strict=True)
)

READ: dict[str, str | bytes] = {
    "plain": PLAIN,
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "windows line ends": table(end="\r\n"),
    "no line end at the end": PLAIN.rstrip("\n"),
    "semicolons": table(";"),
    "tabs": table("\t"),
    "bars": table("|"),
    "gb18030": CHINESE.encode("gb18030"),
    "chinese in utf-8": CHINESE,
    "quoted cells": PLAIN.replace("2024-01-02", '"2024-01-02"').replace("10.5", '"10.5"'),
    "quoted header": PLAIN.replace("date,open", '"date","open"'),
    "spaces around cells": PLAIN.replace(",", " , "),
    "year first, no dashes": dated("{y}{m}{d}"),
    "year first as a float": dated("{y}{m}{d}.0"),
    "slashes, year first": dated("{y}/{m}/{d}"),
    "midnight beside the day": dated("{y}-{m}-{d} 00:00:00"),
    "a zone": dated("{y}-{m}-{d}T00:00:00Z"),
    "month, day, year": dated("{m}/{d}/{y}"),
    "month in words": dated('"Jan {d}, {y}"'),
    "day and month in words": dated("{d}-Jan-{y}"),
    "seconds since 1970": table(days=("1704153600", "1704240000", "1704326400")),
    "milliseconds since 1970": table(days=("1704153600000", "1704240000000", "1704326400000")),
    "newest first": "".join((LINES[0], *LINES[:0:-1])),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "comments on top": "# by a vendor\n" + PLAIN,
    "a comma at the end of every line": PLAIN.replace("1000\n", "1000,\n").replace(
        "volume\n", "volume,\n"
    ),
    "dollars": table(number=lambda value: f"${value:.2f}"),
    "volume in thousands": PLAIN.replace("1000\n", "1K\n"),
    "scientific numbers": table(number=lambda value: f"{value:.6e}"),
    "a column nobody asked for": PLAIN.replace("volume\n", "volume,note\n").replace(
        "1000\n", "1000,x\n"
    ),
    "symbols in a column": LONG,
    "symbols with spaces": LONG.replace("AAA", " AAA "),
    "only an adjusted close": PLAIN.replace("close,", "adj close,"),
    "headers in capitals": PLAIN.replace(
        "date,open,high,low,close,volume", "DATE,OPEN,HIGH,LOW,CLOSE,VOLUME"
    ),
    "headers in brackets": PLAIN.replace(
        "date,open,high,low,close,volume", "<DATE>,<O>,<H>,<L>,<CLOSE>,<VOL>"
    ),
    "utf-16": PLAIN.encode("utf-16"),
    "utf-16 without a mark": PLAIN.encode("utf-16-le"),
    "days of a spreadsheet": table(days=("45293", "45294", "45295")),
    "a comma too many in the rows": PLAIN.replace("1000\n", "1000,\n"),
    "a comment between the rows": PLAIN.replace("2024-01-03", "# late\n2024-01-03"),
    "a title on top": "Prices of AAA\n" + PLAIN,
    "old mac line ends": table(end="\r"),
}
REFUSED: dict[str, str | bytes] = {
    "decimal commas": table(";", number=lambda value: f"{value:.2f}".replace(".", ",")),
    "decimal commas, three digits": table(
        ";", number=lambda value: f"{value:.3f}".replace(".", ",")
    ),
    "decimal commas below one": table(
        ";", number=lambda value: f"{value / 100:.3f}".replace(".", ",")
    ),
    "apostrophes in thousands": table(number=lambda value: f"1'{value:06.2f}"),
    "day first, all below 13": dated("{d}/{m}/{y}"),
    "day first with dots": dated("{d}.{m}.{y}"),
    "two spellings of dates": table(days=("2024-01-02", "01/03/2024", "2024-01-04")),
    "years of two digits": table(days=("02/01/24", "03/01/24", "04/01/24")),
    "weekdays beside the days": dated("Tue {y}-{m}-{d}"),
    "a day that is none": table(days=("2024-02-28", "2024-02-30", "2024-03-01")),
    "a year that is none": table(days=("0001-01-02", "2024-01-03", "2024-01-04")),
    "digits of another script": table(days=("٢٠٢٤-٠١-٠٢", "2024-01-03", "2024-01-04")),
    "a day twice, the same": PLAIN + LINES[3],
    "a day twice, otherwise": PLAIN + LINES[3].replace("12.75", "12.5"),
    "shuffled days": "".join((LINES[0], LINES[2], LINES[3], LINES[1])),
    "a sum at the end": PLAIN + "Total,,,,,3000\n",
    "an empty file": b"",
    "a header only": LINES[0],
    "a zero byte": PLAIN.encode().replace(b"1000", b"10\x0000", 1),
    "a web page": "<html><body>404</body></html>",
    "json": '{"date": 1}',
    "euros": table(number=lambda value: f"€{value:.2f}"),
    "per cent": table(number=lambda value: f"{value}%"),
    "brackets for a minus": second("(11.25)"),
    "a minus of typography": second("\u221211.25"),
    "a negative price": second("-11.25"),
    "a price of zero": second("0"),
    "an infinite price": second("inf"),
    "a price beyond all floats": second("1e400"),
    "no price": second("nan"),
    "a hexadecimal price": second("0xB"),
    "a formula": second("=1+1"),
    "a negative volume": PLAIN.replace("1000\n", "-5\n", 1),
    "high below low": PLAIN.replace("12.25,10.25", "10.25,12.25"),
    "high and low swapped in the header": table(head="date,open,low,high,close,volume"),
    "a close above the high": second("99"),
    "a hundred times the price": PLAIN.replace("12.75,13.75,11.75,12.75", "1275,1375,1175,1275"),
    "dates as symbols": "symbol,date,close\n" + "".join(f"{day},{day},1\n" for day in DAYS),
    "twins by a space": LONG + "AAA ,2024-01-02,99\n",
    "a packed file without its ending": gzip.compress(PLAIN.encode()),
    "a cell of 200,000 letters": PLAIN.replace("2024-01-03", "x" * 200_000),
    "a quote that never ends": PLAIN.replace("2024-01-03", '"2024-01-03'),
    "another delimiter in the header": PLAIN.replace("date,open", "date\topen", 1),
}


def said_of(folder: Path, content: str | bytes) -> tuple[list[str], Imported | None]:
    (folder / "AAA.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        found = read_files(FilesConfig(path=str(folder / "AAA.csv")))
        return [str(one) for one in found.diagnose() if one.severity == "error"], found
    except TradeassayError as error:
        return [str(error)], None


def test_they_are_read_right(tmp_path):
    for habit, content in READ.items():
        said, found = said_of(tmp_path, content)
        assert not said and found is not None, (habit, said)
        assert [one.instrument.symbol for one in found.panel.listings] == ["AAA"], habit
        assert tuple(map(str, found.panel.sessions)) == DAYS, habit
        assert tuple(found.panel.bars["close"][:, 0].tolist()) == pytest.approx(CLOSES), habit


def test_they_are_refused_in_one_line(tmp_path):
    for habit, content in REFUSED.items():
        said, _ = said_of(tmp_path, content)
        assert said and "\n" not in said[0], habit
