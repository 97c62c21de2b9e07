"""A tiny market with everything in it (splits, dividends, suspensions, limits, a delisting), and
runs over it.
"""

from pathlib import Path

import numpy as np

from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.time import DAY, HOUR
from tradeassay_bench.core.view import Board, CorporateAction, Instrument
from tradeassay_bench.data import Listing, Membership, Panel, PanelFacts, write_snapshot
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import AgentSpec, RunSpec

SESSIONS = 60
STOCKS = 8
WARM = 10
BOOTSTRAP = BootstrapConfig(draws=50)
VENUES = {
    "us": ("us", "IDX", 100_000.0),
    "ashare": ("ashare", "IDX", 1_000_000.0),
    "us-fractional": ("us", "IDX", 100_000.0),
    "us-margin": ("us", "IDX", 100_000.0),
    "ashare-qlib": ("ashare", "IDX", 1_000_000.0),
    "crypto": ("us", "all", 100_000.0),
}
"""Venue (without its version) to panel, universe and cash."""


def tiny_panel(seed: int = 0, *, venue: str = "us") -> Panel:
    """Sixty sessions of eight names and an index fund; S0 splits, S1 leaves, S2 pays, S3 pauses."""
    rng = np.random.default_rng(seed)
    day = np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(SESSIONS))
    opens = day.astype(np.int64) * DAY + 14 * HOUR
    close = 20 + 5 * np.arange(STOCKS) + np.cumsum(rng.normal(0, 0.3, (SESSIONS, STOCKS)), axis=0)
    open_ = close + rng.normal(0, 0.1, close.shape)
    if venue == "ashare":
        open_[20::7, 4] = close[19:-1:7, 4] * 1.1  # opens at the limit, up and down
        open_[22::7, 5] = close[21:-1:7, 5] * 0.9
        close[20::7, 4], close[22::7, 5] = open_[20::7, 4], open_[22::7, 5]
    close[30:, 0], open_[30:, 0] = close[30:, 0] / 2, open_[30:, 0] / 2
    fund = close.mean(axis=1, keepdims=True)
    close, open_ = np.hstack([close, fund]), np.hstack([open_, fund + 0.01])
    close, open_ = np.round(close, 2), np.round(open_, 2)
    bars = {
        "open": open_,
        "high": np.maximum(open_, close) + 0.05,
        "low": np.minimum(open_, close) - 0.05,
        "close": close,
        "volume": np.floor(rng.uniform(2e4, 2e5, close.shape)),
        "amount": rng.uniform(1e5, 1e6, close.shape),
    }
    names = [*(f"S{n}" for n in range(STOCKS)), "IDXF"]
    boards = [Board.MAIN, Board.CHINEXT] if venue == "ashare" else [Board.NONE]
    listings = tuple(
        Listing(
            instrument=Instrument(
                symbol=name,
                kind="index" if name == "IDXF" else "stock",
                board=boards[n % len(boards)],
                sector=("tech", "oil")[n % 2],
                lot=100.0 if venue == "ashare" else 1.0,
            ),
            listed=str(day[0]),
            delisted=str(day[44]) if name == "S1" else None,
        )
        for n, name in sorted(enumerate(names), key=lambda pair: pair[1])
    )
    order = [names.index(listing.instrument.symbol) for listing in listings]
    bars = {name: np.ascontiguousarray(values[:, order]) for name, values in bars.items()}
    suspended = np.zeros(close.shape, dtype=np.bool_)
    column = {listing.instrument.symbol: n for n, listing in enumerate(listings)}
    suspended[33:37, column["S3"]] = True
    hidden = suspended.copy()
    hidden[45:, column["S1"]] = True
    for values in bars.values():
        values[hidden] = np.nan
    return Panel(
        name=f"tiny-{venue}",
        facts=PanelFacts(
            kind="synthetic",
            source="test",
            query=f"seed {seed}",
            currency="USD",
            calendar="XNYS",
            biases=("eight names made up for a test",),
        ),
        listings=listings,
        sessions=day,
        open_time=opens,
        close_time=opens + 6 * HOUR,
        bars=bars,
        suspended=suspended,
        actions=(
            CorporateAction(
                symbol="S0", kind="split", ex_date=str(day[30]), known_at=int(opens[28]), value=2.0
            ),
            CorporateAction(
                symbol="S2",
                kind="dividend",
                ex_date=str(day[25]),
                known_at=int(opens[20]),
                value=0.4,
            ),
        ),
        memberships=tuple(
            Membership(
                index="IDX", symbol=f"S{n}", start=str(day[0]), end=str(day[44]) if n == 1 else None
            )
            for n in range(STOCKS)
        ),
        indices={"IDX": 100 * np.cumprod(1 + rng.normal(0, 0.01, SESSIONS))},
    )


def write_world(home: Path, seed: int = 0) -> None:
    """Store the tiny markets below a data home."""
    for panel in (tiny_panel(seed), tiny_panel(seed, venue="ashare")):
        write_snapshot(panel, home / "store" / panel.name, allow_faults=True)


def register() -> None:
    """Register the tiny benchmarks, once per process.

    Workers take a benchmark from their task, not from here.
    """
    day = np.busday_offset(np.datetime64("2024-01-01", "D"), [WARM, SESSIONS - 1])
    for venue, (panel, universe, cash) in VENUES.items():
        name = f"tiny-{venue}-v1"
        if name in benchmarks:
            continue
        days = {"first": str(day[0]), "last": str(day[1])}
        most = {"max_weight": 0.9, "max_positions": 5} if venue == "us-fractional" else {}
        market = MarketConfig(
            venue=f"{venue}-v1", universe=universe, cash=cash, index="IDX", **days, **most
        )
        said = {"id": name, "title": name, "description": "a test", "dataset": f"tiny-{panel}"}
        benchmarks.add(name, Benchmark(**said, market=market, takes_secret=False))


def tiny_spec(slug: str = "tiny", **changes: object) -> RunSpec:
    """Two markets, a rule, a random agent under two seeds, and the baseline."""
    register()
    fields: dict[str, object] = {
        "name": slug,
        "benchmarks": ("tiny-us-v1", "tiny-ashare-v1"),
        "agents": (
            AgentSpec(name="reversal", params={"lookback": 3, "every": 4}),
            AgentSpec(name="random", params={"every": 5}),
        ),
        "seeds": (0, 1),
        "bootstrap": BOOTSTRAP,
    }
    return RunSpec(**(fields | changes))  # type: ignore[arg-type]


def same_bytes(folder: Path) -> dict[str, bytes]:
    """Return what "same bytes" is about: every journal, and the scores."""
    files = [*sorted(folder.glob("episodes/*/events.jsonl")), folder / "scores.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
