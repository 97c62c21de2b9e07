"""More than a hundred habits of exporting an account, each with the return it truly had: none is
misread silently.

Written from the manual's list of what can be read, not from the reader. Where nobody could tell the
return it is None: such a table must be refused, or say what is doubtful. The others may be refused
(a refusal is a question). None may be misread.
"""

import io
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

from tradeassay import assay
from tradeassay.core.errors import UserError
from tradeassay.tables.account import read_series
from tradeassay.tables.cells import read_cells

RNG = np.random.default_rng(29_100)
DAYS = [day.date() for day in pd.bdate_range("2022-11-14", periods=130)]
DAILY = np.round(RNG.normal(0.0006, 0.011, len(DAYS)), 6)
MONTHS = [date(2020 + k // 12, k % 12 + 1, 1) for k in range(36)]
ENDS = [(pd.Timestamp(day) + pd.offsets.MonthEnd(0)).date() for day in MONTHS]
MONTHLY = np.round(RNG.normal(0.006, 0.035, 36), 6)
QUIET = np.round(RNG.normal(0.0001, 0.0008, len(DAYS)), 7)
WILD = np.round(RNG.normal(0.05, 0.28, 36), 4)
NAMES = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
}


@dataclass(frozen=True)
class Ugly:
    """One file and what it truly returned; None where nobody could tell."""

    name: str
    file: str
    content: bytes
    total: float | None
    off: float = 2e-4
    said: str = ""
    """What a note must say where the table may be read although nobody can tell."""

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        path.write_bytes(self.content)
        return path


def total(returns):
    return float(np.prod(1.0 + returns) - 1.0)


TRUE = total(DAILY)


def month(day, tongue, short=False):
    name = NAMES[tongue].split()[day.month - 1]
    return name[:3] if short else name


def comma(text):
    """Return an English number in German: 1,234.5 becomes 1.234,5."""
    return text.translate(str.maketrans(",.", ".,"))


def csv(name, head, rows, true=TRUE, **more):
    """Return a text file; ``more`` are ``foot``, ``encoding``, ``off`` and ``said``."""
    foot, encoding = more.pop("foot", ""), more.pop("encoding", "utf-8")
    text = "\n".join([*([head] if head else []), *rows, *([foot] if foot else [])]) + "\n"
    return Ugly(name, "account.csv", text.encode(encoding), true, **more)


def returned(name, rows, **more):
    return csv(name, "Date,Return", rows, **more)


def each(form, *columns, days=DAYS):
    """Return a line for every day and what stands beside it: the returns where nothing is named."""
    return [form(*row) for row in zip(days, *(columns or (DAILY,)), strict=True)]


def dates():
    """Yield plain returns under every way of writing a day."""
    serial = {day: (day - date(1899, 12, 30)).days for day in DAYS}
    since = {day: int(pd.Timestamp(day, tz="UTC").timestamp()) for day in DAYS}
    forms = {
        "ISO days": lambda d: d.isoformat(),
        "German days": lambda d: f"{d:%d.%m.%Y}",
        "British days": lambda d: f"{d:%d/%m/%Y}",
        "American days": lambda d: f"{d:%m/%d/%Y}",
        "American days without zeros": lambda d: f"{d.month}/{d.day}/{d.year}",
        "short American years": lambda d: f"{d:%m/%d/%y}",
        "compact days": lambda d: f"{d:%Y%m%d}",
        "slashed ISO": lambda d: f"{d:%Y/%m/%d}",
        "dashed months": lambda d: f"{d.day:02d}-{month(d, 'en', True)}-{d:%y}",
        "English long": lambda d: f'"{month(d, "en")} {d.day}, {d.year}"',
        "weekdays before": lambda d: f'"{d:%a}, {d.day} {month(d, "en", True)} {d.year}"',
        "German long": lambda d: f"{d.day}. {month(d, 'de')} {d.year}",
        "French long": lambda d: f"{d.day} {month(d, 'fr')} {d.year}",
        "Italian long": lambda d: f"{d.day} {month(d, 'it')} {d.year}",
        "Spanish long": lambda d: f"{d.day} de {month(d, 'es')} de {d.year}",
        "Portuguese long": lambda d: f"{d.day} de {month(d, 'pt')} de {d.year}",
        "Chinese days": lambda d: f"{d.year}年{d.month}月{d.day}日",
        "closing times": lambda d: f"{d.isoformat()} 16:00:00",
        "Zulu times": lambda d: f"{d.isoformat()}T21:00:00Z",
        "times with an offset": lambda d: f"{d.isoformat()}T16:00:00-05:00",
        "milliseconds": lambda d: f"{d.isoformat()}T00:00:00.000",
        "seconds since 1970": lambda d: str(since[d]),
        "milliseconds since 1970": lambda d: f"{since[d]}000",
        "microseconds since 1970": lambda d: f"{since[d]}000000",
        "spreadsheet days": lambda d: str(serial[d]),
        "spreadsheet days with decimals": lambda d: f"{serial[d]}.0",
        "spreadsheet days with a time": lambda d: f"{serial[d]}.6875",
        "spreadsheet days from 1904": lambda d: str(serial[d] - 1462),
        "compact days, quoted": lambda d: f'"{d:%Y%m%d}"',
        "months as words before days": lambda d: f'"{d:%b %d, %Y}"',
        "long weekdays": lambda d: f'"{d:%A, %B %d, %Y}"',
    }
    for name, form in forms.items():
        yield returned(name, each(lambda d, r, form=form: f"{form(d)},{r:.6f}"))
    yield csv(
        "stamps of mail", "date;return", each(lambda d, r: f"{d:%a, %d %b %Y} 00:00:00 GMT;{r:.6f}")
    )
    rows = each(lambda d, r: f"{d:%d-%b-%Y},{100 * r:+.4f}", MONTHLY, days=ENDS)
    yield csv("what ends a month", "Month ending,Performance %", rows, true=total(MONTHLY))
    rows = each(lambda d, r: f"{d.isoformat()},{100 * r:.4f},")
    yield csv("a column for remarks", "Date,P/L %,Comment", rows)


def numbers():
    """Yield ISO days under every way of writing a return."""
    forms = {
        "per cent signs": ("Date,Return", ",", lambda r: f"{100 * r:.4f}%"),
        "spaced per cent": ("Date,Return", ",", lambda r: f"{100 * r:.4f} %"),
        "hard-spaced per cent": ("Date,Return", ",", lambda r: f"{100 * r:.4f}\u00a0%"),
        "per cent that nobody mentions": ("date,daily_return", ",", lambda r: f"{100 * r:.8f}"),
        "per cent in the title": ("Date,Return (%)", ",", lambda r: f"{100 * r:.4f}"),
        "pct in the title": ("date,ret_pct", ",", lambda r: f"{100 * r:.4f}"),
        "decimal commas": ("Datum;Rendite", ";", lambda r: comma(f"{r:.6f}")),
        "German per cent": ("Datum;Tagesrendite in %", ";", lambda r: comma(f"{100 * r:.4f}")),
        "German per cent signs": (
            "Datum;Wertentwicklung",
            ";",
            lambda r: comma(f"{100 * r:.4f} %"),
        ),
        "German per cent, three digits": (
            "Datum;Rendite",
            ";",
            lambda r: comma(f"{100 * r:.3f} %"),
        ),
        "Italian": ("Data;Rendimento", ";", lambda r: comma(f"{100 * r:.4f}%")),
        "French": ("Date;Rendement", ";", lambda r: comma(f"{100 * r:.4f} %")),
        "Spanish": ("Fecha;Rentabilidad", ";", lambda r: comma(f"{100 * r:.4f} %")),
        "Portuguese": ("Data;Rentabilidade", ";", lambda r: comma(f"{100 * r:.4f}%")),
        "Dutch": ("Datum;Rendement", ";", lambda r: comma(f"{100 * r:.4f}%")),
        "Polish": ("Data;Stopa zwrotu", ";", lambda r: comma(f"{100 * r:.4f}%")),
        "basis points": ("Date,Return (bps)", ",", lambda r: f"{1e4 * r:.2f}"),
        "basis points that nobody mentions": ("date,ret", ",", lambda r: f"{1e4 * r:.6f}"),
        "brackets": (
            "Date,Return",
            ",",
            lambda r: f"({-100 * r:.4f}%)" if r < 0 else f"{100 * r:.4f}%",
        ),
        "trailing minus": ("Date,Return", ",", lambda r: f"{abs(r):.6f}{'-' if r < 0 else ''}"),
        "typographic minus": ("Date,Return", ",", lambda r: f"{r:.6f}".replace("-", "\u2212")),
        "plus signs": ("Date,Return", ",", lambda r: f"{100 * r:+.4f}%"),
        "scientific": ("Date,Return", ",", lambda r: f"{r:.6e}"),
        "no leading zero": ("Date,Return", ",", lambda r: f"{r:.6f}".replace("0.", ".", 1)),
        "log returns": ("Date,Log Return", ",", lambda r: f"{np.log1p(r):.8f}"),
        "log return in small letters": ("date,log return", ",", lambda r: f"{np.log1p(r):.8f}"),
        "ln_ret": ("date,ln_ret", ",", lambda r: f"{np.log1p(r):.8f}"),
        "LogReturns": ("date,LogReturns", ",", lambda r: f"{np.log1p(r):.8f}"),
        "logret": ("date,logret", ",", lambda r: f"{np.log1p(r):.8f}"),
        "everything quoted": ('"Date","Return",""', '","', lambda r: f"{r:.6f}"),
        "pipes": ("Date|Return", "|", lambda r: f"{r:.6f}"),
        "tabs": ("Date\tReturn", "\t", lambda r: f"{r:.6f}"),
        "aligned by spaces": ("Date        Return", "    ", lambda r: f"{r:9.6f}"),
    }
    for name, (head, by, form) in forms.items():
        quote, end = ('"', '",""') if name == "everything quoted" else ("", "")
        rows = [f"{quote}{d}{by}{form(r)}{end}" for d, r in zip(DAYS, DAILY, strict=True)]
        yield csv(name, head, rows, off=2e-3 if "basis" in name else 3e-4)
    rows = each(lambda d, r: f"| {d} | {r:.6f} |")
    wide = str.maketrans("0123456789.", "".join(chr(0xFEE0 + ord(one)) for one in "0123456789."))
    yield returned(
        "wide digits", [row.translate(wide) for row in each(lambda d, r: f"{d},{r:.8f}")]
    )
    yield csv("a table of a chat", "| Date | Return |\n|---|---|", rows)
    yield csv("a separator line", "sep=;\nDate;Return", each(lambda d, r: f"{d};{r:.6f}"))


def levels():
    """Yield values of an account, prices and cumulative gains."""
    path = np.cumprod(1.0 + DAILY)
    start, grown = [DAYS[0] - timedelta(days=3), *DAYS], np.concatenate([[1.0], path])
    money = 1_234_567.89 * grown
    forms = {
        "net asset value": ("Date,NAV", ",", lambda v: f"{v:.4f}", 100 * grown),
        "an index from one": ("date,equity", ",", lambda v: f"{v:.6f}", grown),
        "growth of ten thousand": (
            "Date,Growth of $10000",
            ",",
            lambda v: f"{v:.2f}",
            10_000 * grown,
        ),
        "grouped dollars": ("Date,Portfolio Value", ",", lambda v: f'"${v:,.2f}"', money),
        "German euros": ("Datum;Depotwert", ";", lambda v: f"{comma(f'{v:,.2f}')} €", money),
        "French euros": (
            "Date;Valeur liquidative",
            ";",
            lambda v: f"{comma(f'{v:,.2f}')} €".replace(".", " "),
            money,
        ),
        "Italian quotas": ("Data;Valore quota", ";", lambda v: comma(f"{v:,.3f}"), 11 * grown),
        "Swiss francs": ("Datum;Kontostand", ";", lambda v: f"{v:,.2f}".replace(",", "'"), money),
        "currency before": ("Date,Net Liquidation", ",", lambda v: f"USD {v:.2f}", money),
        "curly Swiss francs": (
            "Datum;Kurs",
            ";",
            lambda v: f"{v:,.4f}".replace(",", "\u2019"),
            money,
        ),
        "Chinese value": ("日期;单位净值", ";", lambda v: f"{v:.4f}", grown),
        "Japanese value": ("日付;基準価額", ";", lambda v: f"{v:.4f}", 1e4 * grown),
        "Indian grouping": ("Date,Net Worth", ",", lambda v: f'"₹{_lakh(v)}"', money),
        "Spanish value": ("Fecha;Valor liquidativo", ";", lambda v: comma(f"{v:,.4f}"), 10 * grown),
        "other currency": ("Date,NAV (JPY)", ",", lambda v: f'"¥{v:,.0f}"', 1e9 * grown),
    }
    for name, (head, by, form, values) in forms.items():
        yield csv(
            name, head, [f"{d}{by}{form(v)}" for d, v in zip(start, values, strict=True)], off=1e-3
        )
    yield csv(
        "cumulative return",
        "Date,Cumulative Return",
        each(lambda d, v: f"{d},{v - 1:.6f}", grown, days=start),
    )
    rows = each(lambda d, v: f"{d},{100 * (v - 1):.4f}", grown, days=start)
    yield csv("cumulative per cent", "Date,Cumulative Return (%)", rows)
    yield csv("cumulative per cent called total", "Date,Total Return", [f"{row}%" for row in rows])
    bars = "{0},{1:.4f},{2:.4f},{3:.4f},{4:.4f},{5:.6f},1000"
    rows = each(
        lambda d, v: bars.format(d, *(v * scale for scale in (99, 101, 98, 100, 97))),
        grown,
        days=start,
    )
    yield csv("Yahoo", "Date,Open,High,Low,Close,Adj Close,Volume", rows)
    bars = "{0:%m/%d/%Y},${1:.4f},1000,${2:.2f},${3:.2f},${4:.2f}"
    rows = each(
        lambda d, v: bars.format(d, *(v * scale for scale in (100, 99, 101, 98))), grown, days=start
    )
    yield csv("Nasdaq", "Date,Close/Last,Volume,Open,High,Low", rows[::-1], off=1e-3)
    bars = '"{0:%m/%d/%Y}","{1:,.4f}","1","1","1","1.2M","{2:.2f}%"'
    change = each(lambda d, v, r: bars.format(d, v * 1000, 100 * r), path, DAILY)
    yield csv(
        "Investing.com",
        '"Date","Price","Open","High","Low","Vol.","Change %"',
        change[::-1],
        off=0.015,
    )
    both = each(lambda d, v: f"{d},{v * 100:.4f},{v * 91:.4f}", grown, days=start)
    yield csv("a second currency moves alike", "Date,NAV (USD),NAV (EUR)", both)
    saved = [1e4]
    for r in DAILY:
        saved.append((saved[-1] + 500.0) * (1.0 + r))
    rows = each(
        lambda d, v, paid: f"{d},{v:.2f},{paid}", saved, [0] + [500] * len(DAYS), days=start
    )
    yield csv("deposits beside", "Date,Account Value,Deposits", rows)
    yield csv("money won", "Date,P&L ($)", each(lambda d, r: f"{d},{1e4 * r:.2f}"), true=None)
    yield csv("factors of growth", "Date,Growth factor", each(lambda d, r: f"{d},{1 + r:.6f}"))
    yield csv("excess", "Date,Excess Return", each(lambda d, r: f"{d},{r:.6f}"), true=None)
    ytd = pd.Series(1 + DAILY).groupby([d.year for d in DAYS]).cumprod() - 1
    yield csv(
        "year to date", "Date,YTD Return", each(lambda d, v: f"{d},{100 * v:.4f}%", ytd), true=None
    )


def _lakh(value):
    whole, part = f"{value:.2f}".split(".")
    head, tail = whole[:-3], whole[-3:]
    groups = []
    while head:
        groups.insert(0, head[-2:])
        head = head[:-2]
    return ",".join([*groups, tail]) + f".{part}"


def encodings():
    """Yield other alphabets and other bytes."""
    rows = each(lambda d, r: f"{d:%d.%m.%Y};{comma(f'{100 * r:.4f}')}")
    plain = each(lambda d, r: f"{d},{r:.6f}")
    true = total(DAILY)
    yield csv("Russian in cp1251", "Дата;Доходность, %", rows, encoding="cp1251", off=3e-4)
    yield csv("Ukrainian in UTF-8", "Дата;Дохідність, %", rows, off=3e-4)
    yield csv("umlauts in cp1252", "Datum;Veränderung in %", rows, encoding="cp1252", off=3e-4)
    yield csv(
        "accents in latin-1", "Date;Performance réalisée (%)", rows, encoding="latin-1", off=3e-4
    )
    yield csv("Portuguese in cp1252", "Data;Variação %", rows, encoding="cp1252", off=3e-4)
    yield csv(
        "UTF-16", "Date\tReturn", [row.replace(",", "\t") for row in plain], encoding="utf-16"
    )
    yield returned("UTF-16 without a mark", plain, encoding="utf-16-le")
    yield returned("a mark before UTF-8", plain, encoding="utf-8-sig")
    yield csv("Chinese in GB18030", "日期,收益率", plain, encoding="gb18030")
    yield csv("Japanese in Shift-JIS", "日付,リターン", plain, encoding="shift_jis")
    yield csv("Greek in cp1253", "Ημερομηνία;Απόδοση (%)", rows, encoding="cp1253", off=3e-4)
    crlf = "\r\n".join(["Date,Return,", *(f"{row}," for row in plain), "", ""])
    yield Ugly("line ends of Windows", "account.csv", crlf.encode(), true)
    yield Ugly(
        "line ends of an old Macintosh",
        "account.csv",
        "\r".join(["Date,Return", *plain]).encode(),
        true,
    )
    tabs = "\n".join(["Date\tReturn", *(row.replace(",", "\t") for row in plain)])
    yield Ugly("text file", "account.txt", tabs.encode(), true)


def layouts():
    """Yield what stands around the numbers: remarks, totals, gaps, orders, more columns."""
    plain = each(lambda d, r: f"{d},{r:.6f}")
    true = total(DAILY)
    yield csv(
        "remarks above", "Account statement\nClient: 12345\nPeriod: all\n\nDate,Return", plain
    )
    yield csv("units below", "Date,Return\n(yyyy-mm-dd),(decimal)", plain)
    yield returned("a total below", plain, foot=f"Total,{true:.6f}")
    yield returned("a sum below", plain, foot=f"Sum,{DAILY.sum():.6f}")
    yield returned(
        "a disclaimer below", plain, foot='\n"Past performance is no guide, 12% of clients lose."'
    )
    foot = f"Average,{DAILY.mean():.6f}\nStd,{DAILY.std():.6f}\nMax,{DAILY.max():.6f}"
    yield returned("averages below", plain, foot=foot)
    yield csv("no titles", "", plain)
    yield csv(
        "a remark above", "# exported\n,date,My Fund", [f"{k},{row}" for k, row in enumerate(plain)]
    )
    units = each(lambda d, r: f"{d},{100 * r:.6f},")
    yield csv(
        "remarks, and units below",
        "My Fund Ltd,,\nmade by us,,\nDate,Return,Remark\n(day),(%),",
        units,
    )
    yield returned("empty rows and a total", [*plain, "Total,0.123", ",", "", " , "])
    foot = "61,Grand Total,0.1\n61,,0.2\nSource: my broker"
    yield csv(
        "totals and remarks",
        "No,Date,Return",
        [f"{k},{row}" for k, row in enumerate(plain)],
        foot=foot,
    )
    yield csv("numbered rows", ",date,return", [f"{k},{row}" for k, row in enumerate(plain)])
    yield returned("latest first", plain[::-1])
    shuffled = [plain[k] for k in RNG.permutation(len(plain))]
    yield returned("in no order", shuffled)
    yield returned(
        "blank lines", [row + ("\n" if k % 20 == 19 else "") for k, row in enumerate(plain)]
    )
    rows = [row + ("\nDate,Return" if k % 50 == 49 else "") for k, row in enumerate(plain)]
    yield returned("the title again on every page", rows)
    gaps = [row if k % 11 else f"{DAYS[k]},N/A" for k, row in enumerate(plain)]
    kept = np.array([r for k, r in enumerate(DAILY) if k % 11])
    yield returned("holidays as N/A", gaps, true=total(kept))
    yield returned(
        "holidays as dashes", [row.replace("N/A", "-") for row in gaps], true=total(kept)
    )
    yield returned("missing days", [row for k, row in enumerate(plain) if k % 11], true=total(kept))
    yield returned("a row twice", [*plain[:50], plain[49], *plain[50:]])
    yield returned(
        "a day with two returns", [*plain[:50], f"{DAYS[49]},0.05", *plain[50:]], true=None
    )
    yield returned(
        "one return is no number", [*plain[:50], f"{DAYS[50]},pending", *plain[51:]], true=None
    )
    yield csv("a remark beside each", "Date,Return,Comment", [f"{row},ok" for row in plain])
    yield csv(
        "a weekday beside", "Weekday,Date,Return", each(lambda d, row: f"{d:%A},{row}", plain)
    )
    other = np.round(RNG.normal(0.0, 0.01, len(DAYS)), 6)
    two = each(lambda d, r, b: f"{d},{r:.6f},{b:.6f}", DAILY, other)
    yield csv("a benchmark beside", "Date,Portfolio Return,Benchmark Return", two)
    yield csv("two funds", "Date,Alpha Fund,Beta Fund", two, true=None)
    rows = each(lambda d, v, r: f"{d},{v:.4f},{r:.6f}", 100 * np.cumprod(1 + DAILY), DAILY)
    yield csv("value and return", "Date,Value,Daily Return", rows)
    rows = each(lambda d, r: f"{d},{100 * r:.5f}", QUIET)
    yield csv("a quiet fund in per cent", "Date,Return (%)", rows, true=total(QUIET), off=1e-5)
    rows = each(lambda d, r: f"{d},{1e4 * r:.6f}", QUIET)
    yield csv(
        "a quiet fund in basis points", "Date,Return (bps)", rows, true=total(QUIET), off=1e-5
    )
    rows = each(lambda d, r: f"{d},{r:.7f}", QUIET)
    yield returned("a quiet fund in fractions", rows, true=total(QUIET), off=1e-5)
    rows = each(lambda d, r: f"{d.year},{d.month},{d.day},{r:.6f}")
    yield csv("day month year apart", "Year,Month,Day,Return", rows)
    ib = [
        "Statement,Header,Field Name,Field Value",
        "Statement,Data,Title,Daily Performance",
        "Performance,Header,Date,Return",
    ]
    rows = each(lambda d, r: f"Performance,Data,{d:%Y%m%d},{100 * r:.4f}%")
    yield csv("sections of a statement", "\n".join(ib), rows, off=3e-4)


def months():
    """Yield monthly accounts: rows, and grids of factsheets."""
    true = total(MONTHLY)
    forms = {
        "months as numbers": lambda d, e: f"{d:%Y-%m}",
        "months after a slash": lambda d, e: f"{d:%m/%Y}",
        "months as words": lambda d, e: f"{month(d, 'en', True)}-{d:%y}",
        "long months": lambda d, e: f"{month(d, 'en')} {d.year}",
        "German months": lambda d, e: f"{month(d, 'de')} {d.year}",
        "last days": lambda d, e: e.isoformat(),
        "first days": lambda d, e: d.isoformat(),
        "compact months": lambda d, e: f"{d:%Y%m}",
    }
    for name, form in forms.items():
        rows = [
            f"{form(d, e)},{100 * r:.4f}%" for d, e, r in zip(MONTHS, ENDS, MONTHLY, strict=True)
        ]
        yield csv(name, "Month,Return", rows, true=true, off=1e-3)
    rows = each(lambda d, r: f"{d:%Y-%m},{r:.4f}", WILD, days=MONTHS)
    yield csv("wild months", "Month,Return", rows, true=total(WILD), off=0.05)
    rows = each(lambda d, r: f"{d:%Y-%m},{100 * r:.2f}%", WILD, days=MONTHS)
    yield csv("wild months in per cent", "Month,Return", rows, true=total(WILD), off=0.05)
    quarters = np.array([total(MONTHLY[k : k + 3]) for k in range(0, 36, 3)])
    rows = [f"{2020 + k // 4}Q{k % 4 + 1},{100 * q:.4f}%" for k, q in enumerate(quarters)]
    yield csv("quarters", "Quarter,Return", rows, true=true, off=1e-3)
    years = np.array([total(MONTHLY[k : k + 12]) for k in range(0, 36, 12)])
    for name, tongue, sign, by, late in (
        ("a factsheet", "en", "", ",", False),
        ("a factsheet with signs", "en", "%", ",", False),
        ("a German factsheet", "de", "%", ";", False),
        ("a factsheet, latest first", "en", "%", ",", True),
        ("an Italian factsheet", "it", "%", ",", False),
    ):
        heads = by.join(
            [
                "Year" if tongue == "en" else "Jahr",
                *(month(d, tongue, True) for d in MONTHS[:12]),
                "YTD",
            ]
        )
        rows = []
        for k in range(3):
            cells = [f"{100 * r:.4f}{sign}" for r in (*MONTHLY[12 * k : 12 * k + 12], years[k])]
            rows.append(by.join([str(2020 + k), *(map(comma, cells) if tongue == "de" else cells)]))
        yield csv(name, heads, rows[::-1] if late else rows, true=true, off=1e-3)
    part = [*(f"{100 * r:.4f}%" for r in MONTHLY[24:31]), "", "", "", "", ""]
    whole = [
        ",".join([str(2020 + k), *(f"{100 * r:.4f}%" for r in MONTHLY[12 * k : 12 * k + 12])])
        for k in range(2)
    ]
    heads = ",".join(["", *(month(d, "en", True) for d in MONTHS[:12])])
    rows = [*whole, ",".join(["2022", *part])]
    yield csv("a factsheet of a year that goes on", heads, rows, true=total(MONTHLY[:31]), off=1e-3)


def books():
    """Yield workbooks and files of columns."""
    true = total(DAILY)

    def book(name, rows, *, first=False, old=False, form=""):
        made = openpyxl.Workbook()
        sheet = made.active
        if old:
            made.epoch = openpyxl.utils.datetime.CALENDAR_MAC_1904
        if first:
            made.create_sheet("empty", 0)
            sheet.title = "Cover"
            sheet.append(["Annual report", None])
            sheet.append(["Client", "12345"])
            sheet = made.create_sheet("Performance")
        for row in rows:
            sheet.append(row)
        if form:
            for cell in sheet["B"][1:]:
                cell.number_format = form
        written = io.BytesIO()
        made.save(written)
        return Ugly(name, "account.xlsx", written.getvalue(), true)

    pairs = each(lambda d, r: [pd.Timestamp(d).to_pydatetime(), float(r)])
    yield book("a workbook", [["Date", "Return"], *pairs])
    yield book("a workbook with a cover", [["Date", "Return"], *pairs], first=True)
    yield book("a workbook of per cent", [["Date", "Return"], *pairs], form="0.00%")
    yield book("a workbook from 1904", [["Date", "Return"], *pairs], old=True)
    texts = each(lambda d, r: [f"{d:%d.%m.%Y}", comma(f"{r:.6f}")])
    yield book("a workbook of texts", [["Date", "Return"], *texts])
    remarks = [["My fund", None], [None, None]]
    yield book("a workbook with remarks", [*remarks, ["Date", "Return"], *pairs, ["Total", true]])
    grid = [["Year", *(month(d, "en", True) for d in MONTHS[:12])]]
    grid += [[2020 + k, *map(float, MONTHLY[12 * k : 12 * k + 12])] for k in range(3)]
    yield Ugly(
        "a factsheet in a workbook", "account.xlsx", book("", grid).content, total(MONTHLY), 1e-3
    )
    frame = pd.DataFrame({"date": pd.to_datetime(DAYS), "return": DAILY})
    columns = io.BytesIO()
    frame.to_parquet(columns)
    yield Ugly("Parquet", "account.parquet", columns.getvalue(), true)
    columns = io.BytesIO()
    frame.set_index("date").to_parquet(columns)
    yield Ugly("Parquet with an index", "account.parquet", columns.getvalue(), true)


def traps():
    """Yield what is read wrongly by whoever does not look twice."""
    path, true = np.cumprod(1.0 + DAILY), total(DAILY)
    start, grown = [DAYS[0] - timedelta(days=3), *DAYS], np.concatenate([[1.0], path])
    around = np.round(1000 * grown)
    grouped = each(lambda d, v: f"{d:%d.%m.%Y};{comma(f'{v:,.0f}')}", around, days=start)
    made = float(around[-1] / around[0] - 1)
    yield csv("grouped thousands that are crossed", "Datum;Depotwert", grouped, true=made)
    broken = each(lambda d, r: f"{d},{comma(f'{100 * r:.4f}')}")
    yield csv("decimal commas between commas", "Date,Return (%)", broken, off=3e-4)
    short = [date(2021, 1, 1) + timedelta(days=31 * k) for k in range(12)]
    few = [
        f"{d.month:02d}/{d.day % 12 + 1:02d}/{d.year},{r:.6f}"
        for d, r in zip(short, MONTHLY, strict=False)
    ]
    yield returned("days that could be months", few, true=None)
    yield returned("years first and short", each(lambda d, r: f"{d:%y/%m/%d},{r:.6f}"))
    yield returned(
        "years first and short, latest first", each(lambda d, r: f"{d:%y-%m-%d},{r:.6f}")[::-1]
    )
    monthly = each(lambda d, r: f"{d:%Y-%m},{100 * r:.4f}%", MONTHLY, days=MONTHS)
    yearly = [f"{2020 + k},{100 * total(MONTHLY[12 * k : 12 * k + 12]):.4f}%" for k in range(3)]
    mixed = [row for k in range(3) for row in (*monthly[12 * k : 12 * k + 12], yearly[k])]
    yield csv(
        "totals of years between months", "Month,Return", mixed, true=total(MONTHLY), off=1e-3
    )
    rows = [
        f"{d},{r:.6f}" for d, r in zip(ENDS, np.round(RNG.normal(0.08, 0.1, 36), 4), strict=True)
    ]
    yield csv("rolling years", "Date,12M Return", rows, true=None)
    rows = each(lambda d, v: f"{d},{v:.6f}", 0.1 + DAILY.cumsum())
    yield csv("yearly rates", "Date,Annualized Return", rows, true=None)
    falls = grown / np.maximum.accumulate(grown) - 1
    yield csv(
        "drawdowns",
        "Date,Drawdown",
        each(lambda d, v: f"{d},{100 * v:.4f}%", falls, days=start),
        true=None,
    )
    ytd = pd.Series(1 + DAILY).groupby([d.year for d in DAYS]).cumprod() - 1
    yield returned(
        "year to date called return", each(lambda d, v: f"{d},{100 * v:.4f}%", ytd), true=None
    )
    yield csv(
        "volatility", "Date,Volatility", each(lambda d, v: f"{d},{abs(v) + 0.1:.6f}"), true=None
    )
    yield csv(
        "relative return", "Date,Return vs S&P 500", each(lambda d, r: f"{d},{r:.6f}"), true=None
    )
    yield csv(
        "contribution", "Date,Contribution to Return", each(lambda d, r: f"{d},{r:.6f}"), true=None
    )
    fees = each(lambda d, r: f"{d},{r + 0.0001:.6f},{r:.6f}")
    yield csv("gross and net", "Date,Gross Return,Net Return", fees)
    rows = each(
        lambda d, b, r: f"{d},{b:.6f},{r:.6f}", np.round(RNG.normal(0, 0.01, 130), 6), DAILY
    )
    yield csv("benchmark first", "Date,Benchmark,Fund", rows)
    rows = [
        f"{d},{v * (100 if k < 60 else 50):.4f}"
        for k, (d, v) in enumerate(zip(start, grown, strict=True))
    ]
    yield csv("a split", "Date,Close", rows, true=None, said="moves by")
    rows = [
        f"{d},{0 if k == 40 else 100 * v:.4f}"
        for k, (d, v) in enumerate(zip(start, grown, strict=True))
    ]
    yield csv("a value of nothing", "Date,NAV", rows, true=None)
    rows = [
        f"{d},{(1000 if k == 40 else 100) * v:.4f}"
        for k, (d, v) in enumerate(zip(start, grown, strict=True))
    ]
    yield csv("a typing error", "Date,NAV", rows, true=None, said="moves by")
    signs = [
        f"{d},{100 * r:.4f}{'%' if k % 2 else ''}"
        for k, (d, r) in enumerate(zip(DAYS, DAILY, strict=True))
    ]
    yield returned("signs on some", signs, off=3e-4)
    later = each(lambda d, v: f"{d},{100 * (v - 1):.4f}", path)
    yield csv("cumulative from the first day on", "Date,Cumulative Return (%)", later)
    yield csv("cumulative without its name", "Date,Performance (%)", later)
    sums = each(lambda d, v: f"{d},{100 * v:.4f}", DAILY.cumsum())
    yield csv("sums of returns", "Date,Cumulative Sum (%)", sums, true=None)
    rows = each(lambda d, v: f"{d},{np.log(100 * v):.6f}", grown, days=start)
    yield csv("logarithms of value", "Date,Log NAV", rows, true=None)
    held = 500 + np.arange(len(start))
    units = each(
        lambda d, v, n: f"{d},{100 * v:.4f},{n},{100 * v * n:.2f}", grown, held, days=start
    )
    yield csv("units bought", "Date,NAV per share,Shares,Total Assets", units)
    rows = [",".join((r.split(",")[0], r.split(",")[3], r.split(",")[2])) for r in units]
    yield csv("assets that grow by deposits", "Date,Total Assets,Shares", rows, true=None)
    paid = np.where(np.arange(len(start)) == 60, 2.0, 0)
    rows = each(lambda d, v, out: f"{d},{100 * v:.4f},{out}", grown, paid, days=start)
    yield csv("distributions", "Date,NAV,Dividend", rows, true=None, said="not counted")
    long = [
        *each(lambda d, r: f"{d},A1,{r:.6f}"),
        *each(lambda d, r: f"{d},B2,{r:.6f}", DAILY[::-1]),
    ]
    yield csv("two accounts below each other", "Date,Account,Return", long, true=None)
    twice = [
        f"{d} {t},{v * 100:.4f}"
        for d, v in zip(start, grown, strict=True)
        for t in ("09:30:00", "16:00:00")
    ]
    yield csv("morning and evening", "Time,Balance", twice)
    made = openpyxl.Workbook()
    made.active.title = "2022"
    made.create_sheet("2023")
    for sheet in made:
        sheet.append(["Date", "Return"])
    for d, r in zip(DAYS, DAILY, strict=True):
        made[str(d.year)].append([pd.Timestamp(d).to_pydatetime(), float(r)])
    written = io.BytesIO()
    made.save(written)
    yield Ugly("a sheet for every year", "account.xlsx", written.getvalue(), true)
    fund, market = (
        [
            f"{2020 + k}," + ",".join(f"{100 * r:.4f}%" for r in part[12 * k : 12 * k + 12])
            for k in range(3)
        ]
        for part in (MONTHLY, MONTHLY[::-1])
    )
    heads = "Year," + ",".join(month(d, "en", True) for d in MONTHS[:12])
    yield csv("two factsheets", f"Fund\n{heads}", [*fund, "Index", heads, *market], true=None)


HABITS = (dates, numbers, levels, encodings, layouts, months, books, traps)
UGLY = {made.__name__: [*made()] for made in HABITS}
REFUSED = {
    "Greek in cp1253",
    "cumulative per cent called total",
    "cumulative without its name",
    "day month year apart",
    "decimal commas between commas",
    "factors of growth",
    "holidays as N/A",
    "holidays as dashes",
    "sections of a statement",
    "totals of years between months",
    "wild months",
}
"""Tables that a person could read and that are asked about instead."""


WHEN = {TRUE: (DAYS, DAILY, 252), total(MONTHLY): (ENDS, MONTHLY, 12)}
"""The days, returns and rows a year of whole tables, by what they earned."""
ROUNDED = {
    "German per cent, three digits",
    "Italian quotas",
    "Chinese value",
    "Spanish value",
    "Investing.com",
}
"""Tables of so few digits that a return is known to 1e-4 only."""


def test_there_are_more_than_a_hundred_and_no_two_are_alike():
    every = [one for made in UGLY.values() for one in made]
    assert (
        len({one.content for one in every}) == len({one.name for one in every}) == len(every) > 150
    )
    assert {one.name for one in every} > REFUSED


@pytest.mark.parametrize("habit", UGLY)
def test_no_table_is_misread_in_silence(habit, tmp_path):
    for one in UGLY[habit]:
        path = one.write(tmp_path)
        if one.name in REFUSED or (one.total is None and not one.said):
            with pytest.raises(UserError) as refused:
                read_series(path, alone=True)
                pytest.fail(f"{one.name} was read")
            assert refused.value.hint, one.name
            continue
        found = read_series(path, alone=True)
        if one.total is None:
            assert any(one.said in note for note in found.notes), (one.name, found.notes)
            continue
        grown = float(np.prod([1.0 + earned for earned in found.returns.values()]) - 1.0)
        assert grown == pytest.approx(one.total, abs=one.off), (one.name, found.notes)
        assert found.notes, one.name
        if one.total in WHEN and one.name not in ("quarters", "first days"):
            days, earned, year = WHEN[one.total]
            assert ([*found.returns], found.year) == ([*map(str, days)], year), one.name
            near = 1e-4 if one.name in ROUNDED else 2e-6
            assert [*found.returns.values()] == pytest.approx(earned.tolist(), abs=near), one.name


def test_the_door_says_the_return_that_the_table_has(tmp_path):
    """The sheets of a workbook that share their titles are one account, also for the verdict."""
    one = next(one for one in UGLY["traps"] if one.name == "a sheet for every year")
    total = assay(one.write(tmp_path)).agents[0].total.value
    assert total == pytest.approx(one.total, abs=1e-9)


@pytest.mark.parametrize(
    ("encoding", "titles"),
    [
        ("gb18030", "时段,策略盈亏"),
        ("cp932", "取引の日,ファンドの損益"),
        ("cp1251", "Период,Прибыль за день"),
        ("cp1252", "Dátum,Größe"),
        ("cp1252", "Date,Return (€)"),
        ("cp1252", "Date,“Return” – net"),
        ("utf-16", "Date,Variação"),
    ],
)
def test_titles_that_are_not_known_keep_their_alphabet(encoding, titles, tmp_path):
    rows = [f"2024-01-{day:02d},0.01" for day in range(1, 11)]
    (tmp_path / "account.csv").write_bytes("\n".join([titles, *rows]).encode(encoding))
    cells = read_cells(tmp_path / "account.csv", "account.csv")
    assert list(cells.columns) == titles.split(",")
