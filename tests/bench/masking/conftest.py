"""A small market with telling names, written by hand, and synthetic worlds."""

import numpy as np
import pytest

from tradeassay_bench.core.time import DAY, HOUR
from tradeassay_bench.core.view import Board, CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay_bench.data import (
    Listing,
    Membership,
    Panel,
    PanelFacts,
    Snapshot,
    open_snapshot,
    write_snapshot,
)
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.masking import Mask, MaskConfig

INSTRUMENTS = (
    Instrument(
        symbol="000001.SZ",
        name="平安银行股份有限公司",
        board=Board.MAIN,
        sector="Financials",
        lot=100,
    ),
    Instrument(
        symbol="300750.SZ", name="宁德时代", board=Board.CHINEXT, sector="Industry", lot=100
    ),
    Instrument(symbol="600519.SH", name="贵州茅台", board=Board.MAIN, sector="Staples", lot=100),
    Instrument(symbol="A", name="Agilent Technologies, Inc."),
    Instrument(symbol="AAPL", name="Apple Inc.", sector="Technology"),
    Instrument(symbol="ALL", name="The Allstate Corporation"),
    Instrument(symbol="BRK.B", name="Berkshire Hathaway Inc. Class B"),
    Instrument(symbol="COST", name="Costco Wholesale Corporation"),
    Instrument(symbol="D", name="Dominion Energy, Inc."),
    Instrument(symbol="GE", name="General Electric Company"),
    Instrument(symbol="GOOG", name="Alphabet Inc. Class C"),
    Instrument(symbol="GOOGL", name="Alphabet Inc. Class A"),
    Instrument(symbol="IT", name="Gartner, Inc."),
    Instrument(symbol="MCD", name="McDonald's Corporation"),
    Instrument(symbol="ON", name="ON Semiconductor Corporation"),
    Instrument(symbol="TGT", name="Target Corporation"),
)
LATE = Instrument(symbol="ZZNW", name="Zazonewco Systems")
FIRST = np.datetime64("2023-11-01")
START, STOP = "2024-01-02", "2024-03-28"


def real_panel() -> Panel:
    """Business days with two missing ones; one name is listed on 2024-02-01."""
    days = np.busday_offset(FIRST, np.arange(110), roll="forward")
    days = days[~np.isin(days, np.array(["2023-12-25", "2024-01-01"], dtype="datetime64[D]"))]
    rows, columns = days.size, len(INSTRUMENTS) + 1
    rng = np.random.default_rng(3)
    closes = np.exp(rng.normal(0, 0.01, (rows, columns)).cumsum(axis=0)) * rng.uniform(
        5, 900, columns
    )
    opens = closes * np.exp(rng.normal(0, 0.003, closes.shape))
    late = int(np.searchsorted(days, np.datetime64("2024-02-01")))
    for values in (opens, closes):
        values[:late, -1] = np.nan
    volume = np.where(np.isnan(closes), np.nan, rng.uniform(1e5, 1e6, closes.shape).round())
    traded = {"volume": volume, "amount": volume * closes}
    midnights, published = days.astype("datetime64[ns]").astype(np.int64), _at("2024-01-16", 22)
    listings = [Listing(instrument=item, listed=str(days[0])) for item in INSTRUMENTS]
    listings.append(Listing(instrument=LATE, listed="2024-02-01"))
    return Panel(
        name="telling",
        facts=PanelFacts(
            kind="synthetic", source="hand", query="", currency="USD", calendar="XNYS"
        ),
        listings=tuple(listings),
        sessions=days,
        open_time=midnights + 14 * HOUR,
        close_time=midnights + 21 * HOUR,
        bars={
            "open": opens,
            "high": np.fmax(opens, closes),
            "low": np.fmin(opens, closes),
            "close": closes,
            **traded,
        },
        suspended=np.zeros((rows, columns), dtype=bool),
        actions=tuple(
            CorporateAction(
                symbol=symbol, kind=kind, ex_date=day, known_at=_at(known, 12), value=value
            )
            for symbol, kind, day, known, value in (
                ("AAPL", "dividend", "2024-01-18", "2024-01-10", 0.5),
                ("D", "split", "2024-01-22", "2024-01-12", 2.0),
            )
        ),
        memberships=tuple(
            Membership(index="IDX", symbol=item.symbol, start=str(days[0]))
            for item in INSTRUMENTS[2:10]
        ),
        indices={"IDX": 3400.0 * np.exp(rng.normal(0, 0.01, rows).cumsum())},
        fundamentals=tuple(
            Fundamental(
                symbol="AAPL", field=field, period_end="2023-12-31", known_at=published, value=value
            )
            for field, value in (("eps", 2.1), ("market_cap", 3e12))
        ),
        news=(
            NewsItem(
                id="aapl-20240120",
                published_at=_at("2024-01-20", 15),
                symbols=("AAPL", "NOTX"),
                source="The Wire",
                title="Apple (AAPL) beats rival Notexco (NOTX)",
                url="https://example.org/apple",
                body="On Saturday, January 20, 2024 Apple said Q1 2024 sales rose.\n"
                "2024年1月20日，贵州茅台（600519）上涨。",
            ),
            NewsItem(
                id="later",
                published_at=_at("2024-01-22", 13),
                symbols=("ZZNW",),
                title="ZZNW plans to list",
                body="It all depends on the cost.",
            ),
        ),
    )


def _at(day: str, hour: int) -> int:
    return int(np.datetime64(day, "D").astype(np.int64)) * DAY + hour * HOUR


@pytest.fixture(scope="session")
def panel():
    return real_panel()


@pytest.fixture(scope="session")
def market(tmp_path_factory, panel):
    folder = tmp_path_factory.mktemp("telling") / "snapshot"
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Return a function that opens a small synthetic world by preset."""
    made: dict[str, Snapshot] = {}

    def make(name: str) -> Snapshot:
        if name not in made:
            some = {"names": 24, "index_members": 12, "new_listings": 3, "delistings": 1}
            config = preset(
                name, seed=5, sessions=140, minutes=1 if name == "crypto" else 0, **some
            )
            folder = tmp_path_factory.mktemp("worlds") / name
            write_snapshot(generate(config).panel, folder, allow_faults=True)
            made[name] = open_snapshot(folder)
        return made[name]

    return make


@pytest.fixture
def mask(market):
    """Return a function that opens a mask over the telling market."""

    def make(level: str = "blinded", seed: int = 0, **options: bool) -> Mask:
        config = MaskConfig(level=level, **options)  # type: ignore[arg-type]
        return Mask(config, market, START, STOP, np.random.default_rng(seed))

    return make
