"""A small market with everything in it, made from a seed."""

import numpy as np
import pytest

from tradeassay_bench.core.time import DAY, HOUR, MINUTE
from tradeassay_bench.core.view import FIELDS, CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay_bench.data.snapshot import open_snapshot
from tradeassay_bench.data.source import (
    Listing,
    Membership,
    MinutePanel,
    Panel,
    PanelFacts,
    action_known_at,
)
from tradeassay_bench.data.store.write import write_snapshot

FIRST = np.datetime64("2024-01-01", "D")


def days(count: int) -> np.ndarray:
    """Weekdays from a Monday on."""
    return np.busday_offset(FIRST, np.arange(count))


def small_panel(seed: int = 0, sessions: int = 16, stocks: int = 6, **changes: object) -> Panel:
    """A panel in which names list, leave, pause, split and pay; synthetic, so that its calendar
    is its own.
    """
    rng = np.random.default_rng(seed)
    day = days(sessions)
    opens = day.astype(np.int64) * DAY + 14 * HOUR
    late = sessions // 2
    listings = sorted(
        (
            Listing(
                instrument=Instrument(
                    symbol=f"S{i}", name=f"Stock {i}", sector=("tech", "oil")[i % 2]
                ),
                listed=str(day[late]) if i == stocks - 1 else str(day[0]),
                delisted=str(day[late - 1]) if i == 1 else None,
            )
            for i in range(stocks)
        ),
        key=lambda entry: (entry.listed, entry.instrument.symbol),
    )
    close = np.round(50 * np.exp(np.cumsum(rng.normal(0, 0.02, (sessions, stocks)), axis=0)), 2)
    close[5:, 0] = np.round(close[5:, 0] / 2, 2)  # S0 splits two for one
    open_ = np.round(close * np.exp(rng.normal(0, 0.005, close.shape)), 2)
    bars = {
        "open": open_,
        "high": np.maximum(open_, close) + 0.1,
        "low": np.minimum(open_, close) - 0.1,
        "close": close,
        "volume": rng.integers(1, 1000, close.shape).astype(float),
        "amount": rng.uniform(1e3, 1e6, close.shape),
    }
    first = np.array([entry.listed for entry in listings], dtype="datetime64[D]")
    last = np.array([entry.delisted or "9999-12-31" for entry in listings], dtype="datetime64[D]")
    suspended = rng.random(close.shape) < 0.1
    suspended &= (day[:, None] >= first) & (day[:, None] <= last)
    hidden = suspended | (day[:, None] < first) | (day[:, None] > last)
    for values in bars.values():
        values[hidden] = np.nan
    minute_times = (opens[:, None] + np.arange(1, 4) * MINUTE).ravel()
    minutes = {name: rng.uniform(10, 11, (minute_times.size, 2)) for name in FIELDS}
    minutes["high"], minutes["low"] = (
        np.full_like(minutes["high"], 12.0),
        np.full_like(minutes["low"], 9.0),
    )
    for values in minutes.values():
        values[::5, 1] = np.nan
    actions = (
        CorporateAction(
            symbol="S0", kind="split", ex_date=str(day[5]), known_at=int(opens[3]), value=2.0
        ),
        CorporateAction(
            symbol="S2",
            kind="dividend",
            ex_date=str(day[6]),
            known_at=action_known_at(int(opens[6])),
            value=1.5,
        ),
        CorporateAction(
            symbol="S0", kind="dividend", ex_date=str(day[9]), known_at=int(opens[2]), value=0.5
        ),
    )
    end = str(day[0] - 30)
    contents: dict[str, object] = {
        "name": "small",
        "facts": PanelFacts(
            kind="synthetic", source="test", query=f"seed {seed}", currency="USD", calendar="XNYS"
        ),
        "listings": tuple(listings),
        "sessions": day,
        "open_time": opens,
        "close_time": opens + 6 * HOUR,
        "bars": bars,
        "suspended": suspended,
        "minutes": MinutePanel(("S0", "S2"), minute_times, minutes),
        "actions": actions,
        "memberships": (
            Membership(index="IDX", symbol="S0", start=str(day[0])),
            Membership(index="IDX", symbol="S2", start=str(day[0]), end=str(day[7])),
            Membership(index="IDX", symbol="S3", start=str(day[8])),
        ),
        "indices": {"IDX": 1000 + np.cumsum(rng.normal(0, 1, sessions))},
        "fundamentals": tuple(
            Fundamental(
                symbol=f"S{i}",
                field="eps",
                period_end=end,
                known_at=int(opens[2 + i]),
                value=float(i),
            )
            for i in range(4)
        ),
        "news": tuple(
            NewsItem(
                id=f"n{i}",
                published_at=int(opens[i] + HOUR),
                symbols=(f"S{i % 3}", "S3"),
                title=f"title {i}",
            )
            for i in range(sessions)
        ),
    }
    return Panel(**{**contents, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def make_panel():
    return small_panel


@pytest.fixture
def panel():
    return small_panel()


@pytest.fixture
def snapshot(tmp_path, panel):
    write_snapshot(panel, tmp_path / "small")
    return open_snapshot(tmp_path / "small")
