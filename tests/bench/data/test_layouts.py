"""Layouts of other projects become data sets; what they do not hold is left out."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import Imported, read_files
from tradeassay_bench.data.tables.layouts import guess_layout, unpacked

DAYS = [f"2025-03-{day:02d}" for day in (3, 4, 5, 6, 7, 10, 11, 12)]


def imported(layout: str, root: Path, **options: object) -> Imported:
    with unpacked(layout, root, FilesConfig(path=str(root), **options)) as config:  # type: ignore[arg-type]
        return read_files(config)


def per_day(root: Path, symbols: tuple[str, ...]) -> None:
    for shift, symbol in enumerate(symbols):
        folder = root / symbol / "day"
        folder.mkdir(parents=True)
        for row, day in enumerate(DAYS):
            price = 100.0 + shift + row
            bar = {
                "open": price,
                "high": price + 1,
                "low": price - 1,
                "close": price,
                "volume": 1e6,
            }
            pl.DataFrame({"date": day, **bar}).write_parquet(folder / f"{day}.parquet")


def test_the_storage_of_stockbench(tmp_path):
    per_day(tmp_path / "storage" / "parquet", ("AAPL", "MSFT", "SPY"))
    cache = tmp_path / "storage" / "cache"
    (cache / "corporate_actions").mkdir(parents=True)
    paid = (("2025-03-05", 0.25), ("2012-08-09", 9))
    dividends = [{"ex_dividend_date": day, "cash_amount": amount} for day, amount in paid]
    (cache / "corporate_actions" / "AAPL.dividends.json").write_text(json.dumps(dividends))
    (cache / "news_by_day" / "AAPL").mkdir(parents=True)
    item = {
        "title": "Apple, said",
        "description": "a body",
        "published_utc": "2025-03-04T22:35:30",
        "source": "x",
    }
    (cache / "news_by_day" / "AAPL" / "2025-03-04.json").write_text(
        json.dumps({"items": [item, item]})
    )
    (cache / "financials").mkdir()
    income = {
        "diluted_earnings_per_share": {"value": 1.5},
        "diluted_average_shares": {"value": 1e9},
    }
    quarter = {"timeframe": "quarterly", "financials": {"income_statement": income}}
    quarters = [
        {**quarter, "end_date": f"2024-{month}-28", "filing_date": f"2024-{month}-29"}
        for month in ("03", "06", "09", "12")
    ]
    (cache / "financials" / "AAPL.all.json").write_text(json.dumps(quarters))
    assert guess_layout(tmp_path) == "stockbench"
    panel = imported("stockbench", tmp_path).panel
    assert panel.symbols == ("AAPL", "MSFT") and len(panel.sessions) == len(DAYS)
    assert panel.listings[0].instrument.name == "Apple Inc" and panel.facts.calendar == "XNYS"
    assert [(one.symbol, one.kind, one.value) for one in panel.actions] == [
        ("AAPL", "dividend", 0.25)
    ]
    assert [one.title for one in panel.news] == ["Apple, said"]
    figures = {(one.field, one.period_end): one.value for one in panel.fundamentals}
    assert figures["eps_ttm", "2024-12-28"] == 6.0 and ("eps_ttm", "2024-09-28") not in figures
    (cache / "corporate_actions" / "AAPL.splits.json").write_text("{broken")
    with pytest.raises(UserError, match=r"AAPL\.splits\.json"):
        imported("stockbench", tmp_path)


def test_a_qlib_store(tmp_path):
    (tmp_path / "calendars").mkdir()
    (tmp_path / "calendars" / "day.txt").write_text("\n".join(DAYS) + "\n")
    (tmp_path / "instruments").mkdir()
    (tmp_path / "instruments" / "csi300.txt").write_text(f"SH600519\t{DAYS[0]}\t{DAYS[-1]}\n")
    folders = [tmp_path / "features" / name for name in ("sh600519", "000300")]
    factor = np.array([0.5] * 4 + [1.0] * 4)
    raw = np.array([20.0, 20.5, 21.0, 20.8, 10.4, 10.5, 10.6, 10.7])
    prices = {
        name: raw * k * factor
        for name, k in (("open", 1), ("high", 1.01), ("low", 0.99), ("close", 1))
    }
    fields = {**prices, "volume": 1e6 / factor, "factor": factor}
    for folder in folders:
        folder.mkdir(parents=True)
        for name, values in fields.items():
            np.concatenate([[0.0], values]).astype("<f4").tofile(folder / f"{name}.day.bin")
    assert guess_layout(tmp_path) == "qlib"
    panel = imported("qlib", tmp_path).panel
    # Digits alone do not say which market they are of: 000300 is an index in Shanghai.
    assert panel.symbols == ("000300", "600519.SH") and panel.facts.calendar == "XSHG"
    np.testing.assert_allclose(panel.bars["close"][:, 0], raw, atol=0.01)
    assert [(one.kind, one.ex_date, one.value) for one in panel.actions] == [
        ("split", DAYS[4], 2.0)
    ] * 2
    assert [(one.index, one.symbol) for one in panel.memberships] == [("CSI300", "600519.SH")]


def test_akshare_files_per_day_files_and_a_wide_table(tmp_path):
    shares = tmp_path / "ak"
    shares.mkdir()
    rows = "\n".join(f"{day},10,10.2,10.3,9.9,1000,1020000" for day in DAYS)
    (shares / "600519.csv").write_text(f"日期,开盘,收盘,最高,最低,成交量,成交额\n{rows}\n")
    panel = imported("akshare-daily", shares).panel
    assert (
        float(panel.bars["volume"][0, 0]) == 100_000.0 and float(panel.bars["close"][0, 0]) == 10.2
    )
    days = tmp_path / "days"
    per_day(days, ("AAPL",))
    assert guess_layout(days) == "per-day"
    assert imported("per-day", days, calendar="XNYS").panel.symbols == ("AAPL",)
    wide = tmp_path / "wide.csv"
    wide.write_text(
        "date,AAPL,MSFT\n" + "\n".join(f"{day},{n + 1},{n + 2}" for n, day in enumerate(DAYS))
    )
    assert imported("wide", wide, calendar="XNYS").panel.symbols == ("AAPL", "MSFT")
    wide.write_text(
        "date,close,symbol\n" + "\n".join(f"{day},{n + 1},{n + 2}" for n, day in enumerate(DAYS))
    )
    assert imported("wide", wide, calendar="XNYS").panel.symbols == ("close", "symbol"), (
        "symbols may be called so"
    )


def test_side_files_in_the_folder_of_a_layout_are_read(tmp_path):
    shares = tmp_path / "ak"
    shares.mkdir()
    rows = "\n".join(f"{day},10,10.2,10.3,9.9,1000,1020000" for day in DAYS)
    (shares / "600519.csv").write_text(f"日期,开盘,收盘,最高,最低,成交量,成交额\n{rows}\n")
    (shares / "names.csv").write_text("symbol,name\n600519,Moutai\n")
    (shares / "indices.csv").write_text(
        "date,index,close\n" + "".join(f"{day},CSI300,4000\n" for day in DAYS)
    )
    (shares / "membership.csv").write_text(f"index,symbol,start,end\nCSI300,600519,{DAYS[0]},\n")
    imports = imported("akshare-daily", shares)
    panel = imports.panel
    assert panel.listings[0].instrument.name == "Moutai"
    assert panel.indices["CSI300"].tolist() == [4000.0] * len(DAYS)
    assert [(one.index, one.start) for one in panel.memberships] == [("CSI300", DAYS[0])]
    assert set(imports.report.side_files) >= {"indices.csv", "membership.csv"}
    (shares / "instruments.csv").write_text("symbol,name\n600519,Moutai\n")
    with pytest.raises(
        UserError, match=r"ak has instruments\.csv, and the layout also has instruments"
    ):
        imported("akshare-daily", shares)


def test_side_files_beside_a_wide_table_are_read(tmp_path):
    (tmp_path / "closes.csv").write_text(
        "date,AAPL\n" + "\n".join(f"{day},{n + 1}" for n, day in enumerate(DAYS))
    )
    (tmp_path / "indices.csv").write_text(
        "date,index,close\n" + "".join(f"{day},SPX,4000\n" for day in DAYS)
    )
    assert imported("wide", tmp_path, calendar="XNYS").panel.indices["SPX"][0] == 4000.0


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("stockbench", "no folder parquet"),
        ("qlib", "calendars/day.txt"),
        ("per-day", "SYMBOL/day/DATE"),
        ("akshare-daily", "A-share code"),
        ("wide", "0 tables"),
        ("qlip", "unknown layout 'qlip'"),
    ],
)
def test_an_empty_folder_is_refused_in_one_line(tmp_path, layout, said):
    with pytest.raises(UserError, match=said):
        imported(layout, tmp_path)
