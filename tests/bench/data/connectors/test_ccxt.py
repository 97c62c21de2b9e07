"""The real ccxt library against stand-ins of three exchanges on the loopback."""

from __future__ import annotations

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import DAY, MINUTE, FixedClock, parse_iso
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.data.connectors.ccxt import CcxtConfig, CcxtSource
from tradeassay_bench.data.source import Panel

from .standins.crypto import Binance, Bitstamp, Exchange, Kraken, Market
from .standins.http import Ask, Reply, instead

pytest.importorskip("ccxt", reason="the extra 'crypto' is not installed")

NOW = "2024-02-01T12:00:00Z"
FIRST = parse_iso("2024-01-01T00:00:00Z") // 1_000_000_000
CANDLE_PATHS = ("/api/v3/klines", "/api/v2/ohlc", "/0/public/OHLC")


def days(
    first: int, count: int, price: float = 40_000.0
) -> dict[int, tuple[float, float, float, float, float]]:
    return {
        first + 86_400 * i: (price + i, price + i + 20, price + i - 20, price + i + 10, 5.0 + i)
        for i in range(count)
    }


def minutes(first: int, count: int) -> dict[int, tuple[float, float, float, float, float]]:
    return {first + 60 * i: (100.0 + i, 101.0 + i, 99.0 + i, 100.5 + i, 1.0) for i in range(count)}


def btc(quote: str = "USDT", count: int = 31, **more) -> Market:
    return Market("BTC", quote, {"1d": days(FIRST, count), **more})


@pytest.fixture
def load(behind_proxy, runtime):
    """Load through the unpatched library; only the machine's proxy and certificate bundle are
    ours.
    """

    def run(service: Exchange, patience: dict | None = None, now: str = NOW, **config) -> Panel:
        run.stand_in = behind_proxy(service)
        name = type(service).__name__.lower()
        asked = {
            "exchange": name,
            "symbols": ("BTC/USDT",),
            "first": "2024-01-01",
            "last": "2024-01-31",
            **config,
        }
        return CcxtSource(
            CcxtConfig(**asked), runtime=runtime(now, **(patience or {})), settings={"rateLimit": 1}
        ).load()

    return run


def test_a_day_is_over_by_the_clock_of_whoever_asks(behind_proxy, runtime):
    """The arena's rounds go on by their own clock while the machine's is wrong; so must what
    they ask.
    """
    behind_proxy(Binance([btc(count=10)]))
    config = CcxtConfig(symbols=("BTC/USDT",), first="2024-01-01", last="2024-01-09")
    source = CcxtSource(config, runtime=runtime("2024-01-09T23:00:00Z"), settings={"rateLimit": 1})
    with pytest.raises((SourceError, UserError)):
        source.load()  # an hour behind: the ninth is not over
    source.go_by(FixedClock(parse_iso("2024-01-10T00:15:00Z")))
    assert len(source.load().sessions) == 9


def test_growth_since_a_close_counts_the_running_day(behind_proxy, runtime):
    behind_proxy(Binance([btc(count=10)]))
    config = CcxtConfig(symbols=("BTC/USDT",), first="2024-01-08", last="2024-01-08")
    source = CcxtSource(config, runtime=runtime("2024-01-10T05:00:00Z"), settings={"rateLimit": 1})
    assert source.growth_since("2024-01-08") == pytest.approx(40_019.0 / 40_017.0)
    assert source.growth_since("2024-01-10") is None


def candle_asks(load) -> list[Ask]:
    return [ask for ask in load.stand_in.asked if ask.path.startswith(CANDLE_PATHS)]


@pytest.mark.parametrize("kind", [Binance, Bitstamp, Kraken])
def test_bars_and_facts(load, kind):
    panel = load(
        kind([btc(), Market("ETH", "USDT", {"1d": days(FIRST, 31, 2_000.0)})]),
        symbols=("ETH/USDT", "BTC/USDT"),
    )
    assert panel.symbols == ("BTC/USDT", "ETH/USDT")
    assert panel.sessions.size == 31
    assert panel.bars["open"][:3, 0].tolist() == [40_000.0, 40_001.0, 40_002.0]
    assert panel.bars["high"][30, 1] == 2_050.0
    assert panel.bars["volume"][0, 0] == 5.0
    assert np.isnan(panel.bars["amount"]).all()
    assert panel.open_time[0] == parse_iso("2024-01-01T00:00:00Z")
    assert panel.close_time[0] == panel.open_time[0] + DAY
    instrument = panel.listings[0].instrument
    assert (instrument.kind, instrument.currency) == ("crypto", "USDT")
    if kind is Binance:
        assert (instrument.lot, instrument.step, instrument.tick) == (1e-5, 1e-5, 0.01)
    assert panel.facts.calendar == "24/7" and panel.facts.retrieved_at == NOW
    assert panel.facts.source == f"ccxt/{kind.__name__.lower()}"
    assert "survivorship" in panel.facts.biases[0]
    assert "do not redistribute" in panel.facts.licence


@pytest.mark.parametrize("kind", [Binance, Bitstamp])
def test_long_histories_come_page_by_page(load, kind):
    first = parse_iso("2018-01-01T00:00:00Z") // 1_000_000_000
    market = Market("BTC", "USDT", {"1d": days(first, 2_300)})
    panel = load(kind([market]), first="2018-01-01", last="2024-01-31")
    assert panel.sessions.size == 2222
    assert panel.bars["open"][:, 0].tolist() == [40_000.0 + i for i in range(2222)]
    assert len(candle_asks(load)) == 3


def test_minutes_come_page_by_page_stamped_with_their_close(load, tmp_path):
    market = btc(**{"1m": minutes(FIRST, 3 * 1440)})
    panel = load(Binance([market]), last="2024-01-02", minutes=True)
    found = panel.minutes
    assert found is not None and found.close_time.size == 2 * 1440
    assert found.close_time[0] == FIRST * 1_000_000_000 + MINUTE
    assert found.close_time[-1] == panel.close_time[-1]
    assert found.bars["open"][:, 0].tolist() == [100.0 + i for i in range(2880)]
    assert len([ask for ask in candle_asks(load) if ask.query["interval"] == "1m"]) == 3
    manifest = write_snapshot(panel, tmp_path / "crypto")
    assert (manifest.shapes.minutes, manifest.facts.source) == (2880, "ccxt/binance")


def test_a_day_without_any_minute_is_refused_or_said(load):
    market = btc(**{"1m": minutes(FIRST, 1440)})
    with pytest.raises(SourceError, match="no minutes of BTC/USDT on 2024-01-02"):
        load(Bitstamp([market]), last="2024-01-02", minutes=True)
    panel = load(Bitstamp([market]), last="2024-01-02", minutes=True, allow_partial=True)
    assert "days without minute bars: BTC/USDT 2024-01-02" in panel.facts.biases
    sparse = minutes(FIRST, 2 * 1440)
    for i in range(10, 1300):  # minutes without a trade are no bars
        del sparse[FIRST + 60 * i]
    found = load(Bitstamp([btc(**{"1m": sparse})]), last="2024-01-02", minutes=True).minutes
    assert found is not None and found.close_time.size == 2880 - 1290


def test_kraken_keeps_only_its_newest_candles(load):
    first = parse_iso("2021-01-01T00:00:00Z") // 1_000_000_000
    kraken = Kraken([Market("BTC", "USDT", {"1d": days(first, 1_128)})])
    with pytest.raises(
        SourceError, match="stores only its newest 720 1d candles of BTC/USDT, from 2022-02-13"
    ):
        load(kraken, first="2021-01-01")
    assert load(kraken, first="2022-02-13").sessions.size == 718
    forgotten = Kraken([Market("BTC", "USDT", {"1d": days(first, 1_000)})])
    with pytest.raises(
        SourceError, match=r"no bars of BTC/USDT from 2021-01-01 to 2021-02-01.*latest candles"
    ):
        load(forgotten, first="2021-01-01", last="2021-02-01")


def test_a_later_first_candle_is_refused_or_a_listing(load):
    late = Market("NEW", "USDT", {"1d": days(FIRST + 10 * 86_400, 21)})
    with pytest.raises(
        SourceError, match=r"bars of NEW/USDT begin on 2024-01-11.*first=2024-01-11"
    ):
        load(Binance([late]), symbols=("NEW/USDT",))
    panel = load(Binance([btc(), late]), symbols=("NEW/USDT", "BTC/USDT"), allow_partial=True)
    assert panel.symbols == ("BTC/USDT", "NEW/USDT")
    assert panel.listings[1].listed == "2024-01-11"
    assert any("NEW/USDT from 2024-01-11" in bias for bias in panel.facts.biases)


def half_a_list(ask: Ask) -> Reply | None:
    return Reply(b'{"symbols": [{"symbol"') if ask.path.endswith("exchangeInfo") else None


@pytest.mark.parametrize(
    ("exchange", "config", "said"),
    [
        (
            Binance([btc()]),
            {"symbols": ("BTC/USD",)},
            r"no spot market BTC/USD \(did you mean BTC/USDT",
        ),
        (Binance([btc()]), {"exchange": "binanse"}, "no exchange 'binanse'.*binance"),
        (Binance([btc(), btc("EUR")]), {"symbols": ("BTC/USDT", "BTC/EUR")}, "BTC/EUR in EUR"),
        (Binance([btc()], before=half_a_list), {}, "its markets: the answer is not complete JSON"),
        (
            Binance([Market("BTC", "USDT", {"1d": days(FIRST + 8 * 3600, 31)})]),
            {"last": "2024-01-30"},
            "do not begin at full UTC steps",
        ),
    ],
)
def test_what_cannot_be_a_panel_is_refused(load, exchange, config, said):
    with pytest.raises((SourceError, UserError), match=said):
        load(exchange, **config)


def candles_only(reply: Reply, times: int = 99):
    return instead(reply, lambda ask: ask.path.startswith(CANDLE_PATHS), times)


JSON = {"Content-Type": "application/json"}
BUSY = Reply.of({"code": -1003, "msg": "Too many requests"}, 429, **{"Retry-After": "11"})
BANNED = Reply.of({"code": -1003, "msg": "banned"}, 418, **{"Retry-After": "7200"})
INVALID = Reply.of({"code": -1100, "msg": "Illegal characters found in a parameter."}, 400)
CUT = Reply(b'[[1704067200000, "1.0"' + b" " * 100, headers=JSON, cut=True)
HALF = Reply(b'[[1704067200000, "40000.0", "4001', headers=JSON)
LATE = {"timeout": 0.2, "attempts": 2}


@pytest.mark.parametrize(
    ("kind", "reply", "patience", "said", "slept"),
    [
        (
            Binance,
            BUSY,
            {},
            "binance refused the 1d candles of BTC/USDT.*429.*fewer symbols",
            [11.0, 11.0],
        ),
        (Binance, BANNED, {}, "a pause of 7200 s", []),
        (
            Binance,
            Reply(stall=True),
            LATE,
            r"BTC/USDT: no answer within 0\.2 s \(2 attempts",
            [2.0],
        ),
        *(
            (kind, CUT, {}, "BTC/USDT: the answer broke off", [2.0, 4.0])
            for kind in (Binance, Bitstamp, Kraken)
        ),
        *(
            (kind, HALF, {}, "BTC/USDT: .* not complete JSON", [2.0, 4.0])
            for kind in (Binance, Bitstamp, Kraken)
        ),
        (
            Binance,
            INVALID,
            {},
            "binance refused the 1d candles of BTC/USDT.*Illegal characters",
            [],
        ),
    ],
)
def test_a_failure_is_tried_again_where_that_may_help_and_then_said(
    load, sleeps, kind, reply, patience, said, slept
):
    with pytest.raises(SourceError, match=said) as caught:
        load(kind([btc()], before=candles_only(reply)), patience=patience)
    assert sleeps == slept and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "reply", "times", "slept"),
    [
        (Binance, BUSY, 1, [11.0]),
        (
            Binance,
            Reply(b"<html>bad gateway</html>", 502, {"Content-Type": "text/html"}),
            2,
            [2.0, 4.0],
        ),
        (
            Kraken,
            Reply.of({"error": ["EAPI:Rate limit exceeded"]}),
            2,
            [2.0, 4.0],
        ),  # no status of its own
    ],
)
def test_after_a_failure_it_goes_on(load, sleeps, kind, reply, times, slept):
    assert load(kind([btc()], before=candles_only(reply, times))).sessions.size == 31
    assert sleeps == slept


def renamed(answer):
    for row in answer["data"]["ohlc"]:
        row["opening"] = row.pop("open")
    return answer


@pytest.mark.parametrize(
    ("kind", "edit", "said"),
    [
        (Bitstamp, renamed, "BTC/USDT in an unexpected format: a candle reads .*None"),
        (Binance, lambda rows: [row[:4] for row in rows], "an unexpected format"),
    ],
)
def test_a_changed_schema_shows_what_came(load, sleeps, kind, edit, said):
    with pytest.raises(SourceError, match=said):
        load(kind([btc()], edit=edit))
    assert sleeps == []


PAGES = {
    "a page": b"<html><body>we are down for maintenance</body></html>",
    "an error": b'{"error": "maintenance", "status": 503}',
    "an error of its own": b'{"code": -1121, "msg": "Invalid symbol."}',
    "nothing": b"",
    "null": b"null",
    "a list of nothing": b"[[]]",
    "words for numbers": b'[[1704067200000, "", "n/a", "--", "", ""]]',
}


@pytest.mark.parametrize("body", PAGES.values(), ids=list(PAGES))
@pytest.mark.parametrize("where", ["/api/v3/klines", "/api/v3/exchangeInfo"])
def test_whatever_comes_with_status_200_is_bars_or_an_error_of_ours(load, where, body):
    odd = Reply(body, 200, {"Content-Type": "text/html"})
    with pytest.raises(SourceError):
        load(Binance([btc()], before=lambda ask: odd if ask.path == where else None), forgive=True)


def test_a_few_bars_that_are_none_can_be_forgiven(load):
    def edit(rows):
        return [*rows[:4], [*rows[4][:4], None, *rows[4][5:]], *rows[5:], rows[-1]]

    with pytest.raises(SourceError, match="a candle reads"):
        load(Binance([btc()], edit=edit))
    panel = load(Binance([btc()], edit=edit), forgive=True)
    assert np.flatnonzero(np.isnan(panel.bars["close"][:, 0])).tolist() == [4]
    assert "binance sent bars twice: BTC/USDT 1" in panel.facts.biases
    assert "incomplete bars, left out: BTC/USDT 2024-01-05" in panel.facts.biases
