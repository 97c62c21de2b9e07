"""Files as vendors, spreadsheets and mishaps leave them: read right, or refused; never read wrongly.

Every file says the same three closes of one name on the same three days, in a spelling of its own.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tradeassay.core.errors import TradeassayError
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.folder import Imported, read_files

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
        between.join((day, number(close), number(close + 1), number(close - 1), number(close), "1000"))
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
LONG = "symbol,date,close\n" + "".join(f"AAA,{day},{close}\n" for day, close in zip(DAYS, CLOSES, strict=True))

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
    "a comma at the end of every line": PLAIN.replace("1000\n", "1000,\n").replace("volume\n", "volume,\n"),
    "dollars": table(number=lambda value: f"${value:.2f}"),
    "volume in thousands": PLAIN.replace("1000\n", "1K\n"),
    "scientific numbers": table(number=lambda value: f"{value:.6e}"),
    "a column nobody asked for": PLAIN.replace("volume\n", "volume,note\n").replace("1000\n", "1000,x\n"),
    "symbols in a column": LONG,
    "symbols with spaces": LONG.replace("AAA", " AAA "),
    "only an adjusted close": PLAIN.replace("close,", "adj close,"),
    "headers in capitals": PLAIN.replace("date,open,high,low,close,volume", "DATE,OPEN,HIGH,LOW,CLOSE,VOLUME"),
    "headers in brackets": PLAIN.replace("date,open,high,low,close,volume", "<DATE>,<O>,<H>,<L>,<CLOSE>,<VOL>"),
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
    "decimal commas, three digits": table(";", number=lambda value: f"{value:.3f}".replace(".", ",")),
    "decimal commas below one": table(";", number=lambda value: f"{value / 100:.3f}".replace(".", ",")),
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
