"""Chinese index futures IF, IC and IH, one-minute bars, 2016-2022."""

from __future__ import annotations

import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.core.time import DAY, HOUR
from tradeassay.core.view import Field, Floats
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import Market, panel_from_minutes, read_wide
from tradeassay.data.panel import MinutePanel

_FOLDER = "sc_backtest/dataset"
_FILES: dict[Field, str] = {
    "open": f"{_FOLDER}/_adj_open_price.csv",
    "high": f"{_FOLDER}/_adj_high_price.csv",
    "low": f"{_FOLDER}/_adj_low_price.csv",
    "close": f"{_FOLDER}/_adj_close_price.csv",
    "volume": f"{_FOLDER}/_volume.csv",
    "amount": f"{_FOLDER}/_value.csv",
}
_CONTRACTS = {"IF": ("CSI 300", 300.0), "IC": ("CSI 500", 200.0), "IH": ("SSE 50", 300.0)}
_SHANGHAI = 8 * HOUR  # no daylight saving since 1991

ENTRY = Entry(
    name="sc-backtest",
    title="IF IC IH index futures, 1-minute OHLCV",
    packages=(
        Package(
            name="sc-backtest",
            version="0.1.14",
            files=tuple(_FILES.values()),
            sha256="e545dcbe8a803c80ee01b687aad4b13e1ae2debce5ce57b26ba5e47b01065129",
        ),
    ),
    content="3 continuous futures, 1 minute, 240 bars a day",
    span="2016-01-04..2022-02-15",
    columns="date (end of the minute, Shanghai), IF, IC, IH; one file per field",
    flaws=("continuous contracts adjusted at every roll with hindsight: levels are not those of any contract",),
    licence="package MIT; the prices have a vendor of their own that the package does not name",
    megabytes=46.7,
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read one wide table per field."""
    tables = {field: read_wide(archive.read(path), path) for field, path in _FILES.items()}
    close = tables["close"]
    bars: dict[Field, Floats] = {}
    for field, table in tables.items():
        bars[field] = np.full(close.values.shape, np.nan)
        place = np.searchsorted(close.stamps, table.stamps)
        inside = place < close.stamps.size
        inside[inside] = close.stamps[place[inside]] == table.stamps[inside]
        order = [table.symbols.index(symbol) for symbol in close.symbols]
        bars[field][place[inside]] = table.values[inside][:, order]
    market = Market(
        calendar="XSHG",
        currency="CNY",
        adjusted="none",
        instruments={
            symbol: Instrument(
                symbol=symbol, name=name, kind="future", currency="CNY", tick=0.2, multiplier=points, root=symbol
            )
            for symbol, (name, points) in _CONTRACTS.items()
        },
    )
    minutes = MinutePanel(close.symbols, close.stamps - _SHANGHAI, bars)
    return Built(panel_from_minutes(entry, market, minutes, (close.stamps // DAY).astype("datetime64[D]")))


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
