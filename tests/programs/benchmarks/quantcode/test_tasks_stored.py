"""Public tasks on stored bars: whose, how long, in whose time, and what is refused."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.bench.benchmarks.coins import coins as coins_of

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.snapshot import Snapshot
from tradeassay_bench.data.source import Panel
from tradeassay_programs.benchmarks.quantcode import load_public_tasks, load_task
from tradeassay_programs.benchmarks.quantcode.benchmark import QuantCodeProtocol
from tradeassay_programs.benchmarks.quantcode.loading import on_stored_bars, sum_up
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.code.task import CodeTask

DAYS = 110
TEXT = "Buy when the close is above $150; sell below it."


def panel(kind: str = "real") -> Panel:
    """110 days, and the first 45 minutes of each in bars of five."""
    price = 10.0 + np.arange(DAYS * 9.0)[:, None]
    prices = {"open": price, "high": price + 2, "low": price - 2, "close": price + 1}
    prices |= {"volume": np.full_like(price, 3.0), "amount": price.copy()}
    close = 100.0 + np.arange(2.0 * DAYS).reshape(DAYS, 2)
    return coins_of("2024-06-01", close, prices, ("BTC/USDT", "ETH"), length=5, kind=kind)


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    place = tmp_path_factory.mktemp("store") / "coins"
    write_snapshot(panel(), place, allow_faults=True)
    return open_snapshot(place)


def public(folder: Path, *records: dict[str, object]) -> Path:
    file = folder / "public.json"
    file.write_text(
        json.dumps(
            [{"id": n, "reformulated_task": TEXT, **one} for n, one in enumerate(records, 1)]
        )
    )
    return file


def task(tmp_path: Path, **changes: object) -> CodeTask:
    (found,) = load_public_tasks(
        public(tmp_path, {"yf_symbol": "BTC-USD", "timeframe": "1d", **changes})
    )
    return found


def test_days_of_the_symbol_however_it_is_spelled(tmp_path, coins):
    found, bars = on_stored_bars(task(tmp_path), coins)
    assert bars.name == "coins:BTC/USDT" and bars.rows == DAYS and bars.timeframe == "1d"
    assert bars.feeds["A"]["close"][:2].tolist() == [100.0, 102.0]
    assert any("price levels" in what for what in task(tmp_path).lacks)
    assert not any(
        "price levels" in what for what in found.lacks
    )  # they are the prices that the words mean
    _, ether = on_stored_bars(task(tmp_path, yf_symbol="ETH-USD"), coins)
    assert ether.name == "coins:ETH" and ether.feeds["A"]["close"][0] == 101.0
    _, other = on_stored_bars(task(tmp_path, yf_symbol="AAPL"), coins, "ETH")
    assert other.name == "coins:ETH"
    short = msgspec.structs.replace(task(tmp_path), bars=100)
    assert on_stored_bars(short, coins)[1].times[-1] == bars.times[-1]  # the last ones


def test_an_account_can_pay_for_what_its_task_trades(tmp_path, coins):
    asked = task(tmp_path)
    assert (
        on_stored_bars(asked, coins)[0].cash == 10_000.0
    )  # 319 at the most: as the authors have it
    poor, bars = on_stored_bars(msgspec.structs.replace(asked, cash=200.0), coins)
    assert poor.cash == 10_000.0 and bars.feeds["A"]["high"].max() == 319.0
    assert "cash for a unit at 319.00: 10,000 instead of 200" in poor.lacks


def test_half_hours_are_summed_from_shorter_bars(tmp_path, coins):
    _, bars = on_stored_bars(task(tmp_path, timeframe="30m"), coins)
    assert bars.rows == 2 * DAYS and bars.timeframe == "30m" and bars.clock == "always"
    assert [str(t)[:16] for t in bars.times[:3]] == [
        "2024-06-01T00:00",
        "2024-06-01T00:30",
        "2024-06-02T00:00",
    ]
    first = {name: values[0] for name, values in bars.feeds["A"].items()}
    assert (first["open"], first["high"], first["low"], first["close"]) == (10.0, 17.0, 8.0, 16.0)
    assert first["volume"] == 18.0 and bars.feeds["A"]["volume"][1] == 9.0


def test_hours_of_an_exchange_begin_with_its_session():
    minutes = np.datetime64("2024-06-03T09:30") + np.arange(120)
    price = np.arange(120.0) + 1
    feed = {
        "time": minutes.astype("M8[ns]"),
        **dict.fromkeys(("open", "high", "low", "close", "volume"), price),
    }
    made = sum_up(feed, "1h", "exchange")
    assert [str(t)[11:16] for t in made["time"]] == ["09:30", "10:30"] and made[
        "close"
    ].tolist() == [60.0, 120.0]


def test_what_cannot_be_had_is_refused_in_one_line(tmp_path, coins):
    for changes, kind, said in (
        ({"yf_symbol": "DOGE-USD"}, UserError, "does not have 'DOGE-USD'"),
        ({"yf_symbol": None}, UserError, r"the task names no symbol .*: name one"),
        ({"timeframe": "1m"}, UserError, "bars of 5 minutes, the task needs 1m"),
        ({"yf_symbol": "ETH-USD", "timeframe": "15m"}, DataError, "no minute bars of 'ETH'"),
    ):
        with pytest.raises(kind, match=said):
            on_stored_bars(task(tmp_path, **changes), coins)
    with pytest.raises(UserError, match="judged on drawn markets"):
        on_stored_bars(load_task("d-sma-cross-long"), coins)


def test_a_run_says_which_tasks_have_no_stored_bars(tmp_path):
    write_snapshot(panel("synthetic"), tmp_path / "coins", allow_faults=True)
    file = public(tmp_path, {"yf_symbol": "BTC-USD"}, {"yf_symbol": "SPY"})
    asked = {
        "models": ("scripted/coder-sma",),
        "dataset": str(tmp_path / "coins"),
        "secret": "ab" * 16,
    }
    made = QuantCodeProtocol(QuantCodeSpec(**asked, task_file=str(file)))
    assert list(made.stored) == ["public-001"] and "data public-001" in made.facts()
    assert any("does not have 'SPY'" in what for what in made.tasks["public-002"].lacks)
    assert any(
        "price levels" in what for what in made.tasks["public-001"].lacks
    )  # a made-up market has others
    assert made.notes == (
        f"1 of 2 tasks run on synthetic bars: '{asked['dataset']}' has none for them",
    )
    with pytest.raises(UserError, match="valid only with a task file"):
        QuantCodeSpec(**asked)
