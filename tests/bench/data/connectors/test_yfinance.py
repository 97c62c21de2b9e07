"""The real yfinance library against a stand-in of Yahoo on the loopback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import MINUTE, SECOND, parse_iso
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.calendars import sessions_between
from tradeassay_bench.data.connectors.yfinance import (
    YFinanceConfig,
    YFinanceSource,
    browser_session,
)
from tradeassay_bench.data.source import Panel

from .standins.http import Ask, Reply, instead
from .standins.yahoo import Stock, Yahoo, opening

yfinance = pytest.importorskip("yfinance", reason="the extra 'us' is not installed")

NOW = "2024-02-01T12:00:00Z"
WEEK = ("2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08")


def plain(start: float = 100.0, days: tuple[str, ...] = WEEK, **facts) -> Stock:
    bars = {
        day: (start + i, start + i + 1.5, start + i - 1.25, start + i + 0.75, 1000.0 * (i + 1))
        for i, day in enumerate(days)
    }
    return Stock(bars, **facts)


def split_stock() -> Stock:
    """4:1 on 8 January, a dividend before and after it, and a 1:10 later than anything asked
    for.
    """
    stock = plain(100.0, WEEK[:4], dividends={"2024-01-03": 0.24, "2024-01-09": 0.07})
    stock.days["2024-01-08"] = (25.5, 26.0, 25.0, 25.75, 9000.0)
    stock.days["2024-01-09"] = (25.7, 25.9, 25.1, 25.2, 8000.0)
    stock.days["2024-01-30"] = (252.0, 256.0, 250.0, 251.0, 700.0)
    stock.splits = {"2024-01-08": (4, 1), "2024-01-30": (1, 10)}
    return stock


@pytest.fixture
def load(serve, authority, runtime, tmp_path, monkeypatch):
    """Load through the unpatched library; only the proxy and the certificate bundle are ours."""
    yfinance.set_tz_cache_location(str(tmp_path / "yahoo"))
    yfinance.data.YfData._instances.clear()  # one conversation must not inherit another's cookies

    def source(
        yahoo: Yahoo, patience: dict | None = None, now: str = NOW, **config
    ) -> YFinanceSource:
        run.stand_in = serve(yahoo)
        proxy = {"https": f"http://127.0.0.1:{run.stand_in.port}"}
        return YFinanceSource(
            YFinanceConfig(**{"first": "2024-01-02", "last": "2024-01-08", **config}),
            runtime=runtime(now, **(patience or {})),
            session=lambda: browser_session(proxies=proxy, verify=str(authority.bundle)),
        )

    def run(*args, **config) -> Panel:
        return source(*args, **config).load()

    run.source = source
    return run


def test_growth_since_a_close_counts_the_unfinished_bar_and_a_split(load):
    config = {
        "symbols": ("NVDA",),
        "first": WEEK[3],
        "last": WEEK[3],
        "now": "2024-01-09T15:00:00Z",
    }
    source = load.source(Yahoo({"NVDA": split_stock()}), **config)
    # 25.2 of a share after 4:1 for 103.75 before it; the market is open, and tomorrow's bars are not asked for.
    assert source.growth_since("2024-01-05") == pytest.approx(25.2 * 4 / 103.75, rel=1e-6)
    assert source.growth_since("2024-01-09") is None


def test_bars_facts_and_listing(load):
    panel = load(Yahoo({"AAPL": plain(), "MSFT": plain(300.0)}), symbols=("MSFT", "AAPL"))
    assert panel.symbols == ("AAPL", "MSFT")
    assert [str(day) for day in panel.sessions] == list(WEEK)
    assert panel.bars["open"][:, 0].tolist() == [100.0, 101.0, 102.0, 103.0, 104.0]
    assert panel.bars["close"][:, 1].tolist() == [300.75, 301.75, 302.75, 303.75, 304.75]
    assert panel.bars["volume"][:, 1].tolist() == [1000.0, 2000.0, 3000.0, 4000.0, 5000.0]
    assert np.isnan(panel.bars["amount"]).all()
    assert not panel.suspended.any()
    assert panel.open_time[0] == parse_iso("2024-01-02T14:30:00Z")
    assert panel.listings[0].listed == "1999-01-04"
    assert panel.listings[0].instrument.name == "A Company, Inc."
    facts = panel.facts
    assert (facts.source, facts.currency, facts.calendar, facts.adjusted) == (
        "yfinance",
        "USD",
        "XNYS",
        "none",
    )
    assert facts.retrieved_at == NOW
    assert '"symbols":["MSFT","AAPL"]' in facts.query
    assert "survivorship" in facts.biases[0]
    assert "Yahoo" in facts.licence


def test_splits_are_undone_to_the_traded_prices(load):
    panel = load(Yahoo({"NVDA": split_stock()}), symbols=("NVDA",), last="2024-01-09")
    assert panel.bars["open"][:, 0].tolist() == [100.0, 101.0, 102.0, 103.0, 25.5, 25.7]
    assert panel.bars["low"][:, 0].tolist() == [98.75, 99.75, 100.75, 101.75, 25.0, 25.1]
    assert panel.bars["volume"][:, 0].tolist() == [1000.0, 2000.0, 3000.0, 4000.0, 9000.0, 8000.0]
    assert [(a.kind, a.ex_date, a.value) for a in panel.actions] == [
        ("dividend", "2024-01-03", 0.24),
        ("split", "2024-01-08", 4.0),
        ("dividend", "2024-01-09", 0.07),
    ]
    split = panel.actions[1]
    assert split.known_at == parse_iso("2024-01-08T13:30:00Z")


def test_index_levels_and_funds(load):
    stocks = {
        "SPY": plain(kind="ETF", capital_gains={"2024-01-04": 0.5}),
        "^GSPC": plain(4700.0, kind="INDEX"),
    }
    panel = load(Yahoo(stocks), symbols=("SPY",), indices=("^GSPC",))
    assert panel.listings[0].instrument.kind == "index"
    assert panel.indices["^GSPC"].tolist() == [4700.75, 4701.75, 4702.75, 4703.75, 4704.75]
    assert "capital-gain distributions are not stored: SPY" in panel.facts.biases


@pytest.mark.parametrize("raw", [False, True], ids=["adjusted minutes", "minutes as traded"])
def test_minutes_are_stamped_with_their_close_and_unsplit(load, raw):
    stock = plain(100.0, WEEK[:4], splits={"2024-01-08": (4, 1)}, raw_minutes=raw)
    stock.days["2024-01-08"] = (25.0, 26.0, 24.0, 25.5, 9000.0)
    for day, price in (("2024-01-05", 103.0), ("2024-01-08", 25.0)):
        for minute in range(3):
            bar = (price, price + 1, price - 1, price + 0.5, 40.0)
            stock.minutes[opening(day) + 60 * minute] = bar
    other = plain()
    other.minutes = {opening(day) + 60: (9.0, 9.5, 8.5, 9.25, 4.0) for day in WEEK[3:]}
    panel = load(
        Yahoo({"NVDA": stock, "AAPL": other}),
        symbols=("NVDA", "AAPL"),
        first="2024-01-05",
        minutes=True,
        now="2024-01-09T00:00:00Z",
    )
    minutes = panel.minutes
    assert minutes is not None and minutes.symbols == ("NVDA", "AAPL")
    assert minutes.close_time[0] == opening("2024-01-05") * SECOND + MINUTE
    assert minutes.close_time.size == 6
    assert minutes.bars["open"][:, 0].tolist() == [103.0] * 3 + [25.0] * 3
    assert minutes.bars["volume"][:, 0].tolist() == [40.0] * 6
    assert np.isfinite(minutes.bars["close"][:, 1]).tolist() == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def test_minutes_are_asked_for_week_by_week(load):
    days = tuple(str(day) for day in sessions_between("XNYS", "2024-01-02", "2024-01-24").days)
    stock = plain(100.0, days)
    stock.minutes = {opening(day): (9.0, 9.5, 8.5, 9.25, 4.0) for day in days}
    panel = load(
        Yahoo({"AAPL": stock}),
        symbols=("AAPL",),
        last="2024-01-24",
        minutes=True,
        now="2024-01-25T00:00:00Z",
    )
    asked = [ask for ask in load.stand_in.asked if ask.query.get("interval") == "1m"]
    assert len(asked) == 4
    assert panel.minutes is not None and panel.minutes.close_time.size == len(days)


def test_what_a_series_lacks_is_said(load):
    late = plain(50.0, WEEK[2:], first_trade="2024-01-04")
    gap, holed = plain(), plain()
    del gap.days["2024-01-04"]
    holed.days["2024-01-04"] = (float("nan"), 103.5, 100.75, 102.75, 3000.0)
    stocks = {"AAPL": plain(), "HALT": gap, "HOLE": holed, "NEWB": late}
    panel = load(Yahoo(stocks), symbols=("NEWB", "HOLE", "HALT", "AAPL"))
    assert panel.symbols == ("AAPL", "HALT", "HOLE", "NEWB")
    assert panel.listings[3].listed == "2024-01-04" and np.isnan(panel.bars["close"][:2, 3]).all()
    assert np.flatnonzero(panel.suspended).tolist() == [9, 10], (
        "HALT and HOLE on the third day, NEWB never"
    )
    assert np.isnan(panel.bars["high"][2, 2])
    assert "sessions without a bar, taken as suspensions: HALT 1, HOLE 1" in panel.facts.biases
    assert "incomplete bars, left out: HOLE 2024-01-04" in panel.facts.biases
    panel = load(Yahoo({"PART": plain(50.0, WEEK[:3])}), symbols=("PART",), allow_partial=True)
    assert panel.listings[0].delisted == "2024-01-04"
    assert any("PART to 2024-01-04" in bias for bias in panel.facts.biases)


SOME_MINUTES = {opening(day): (9.0, 9.5, 8.5, 9.25, 4.0) for day in WEEK[1:]}
MINUTES = {"minutes": True, "now": "2024-01-09T00:00:00Z"}


@pytest.mark.parametrize(
    ("stock", "config", "said"),
    [
        (
            replace(split_stock(), unadjusted=True),
            {"last": "2024-01-09"},
            "split 4:1 of X on 2024-01-08.*not adjust",
        ),
        (plain(minutes=SOME_MINUTES), MINUTES, "no minutes of X on 2024-01-02"),
        (plain(), {"minutes": True, "now": "2024-03-01T00:00:00Z"}, "30 days"),
        (plain(), {"symbols": ("X", "NOPE")}, "no bars of NOPE"),
        (plain(currency="CAD"), {"symbols": ("X", "AAPL")}, "X in CAD"),
    ],
)
def test_what_cannot_be_a_panel_is_refused(load, sleeps, stock, config, said):
    with pytest.raises((SourceError, UserError), match=said):
        load(Yahoo({"X": stock, "AAPL": plain()}), **{"symbols": ("X",), **config})
    assert sleeps == [] and (said != "30 days" or load.stand_in.asked == [])


def test_a_bar_on_a_holiday_is_refused(load):
    stock = plain()
    stock.days["2024-01-01"] = (99.0, 99.5, 98.5, 99.0, 10.0)
    with pytest.raises(SourceError, match="HOLI for 2024-01-01, when XNYS has no session"):
        load(Yahoo({"HOLI": stock}), symbols=("HOLI",), first="2023-12-29", allow_partial=True)
    panel = load(
        Yahoo({"HOLI": stock}),
        symbols=("HOLI",),
        first="2023-12-29",
        allow_partial=True,
        forgive=True,
    )
    assert (
        "Yahoo sent bars on days without a session, left out: HOLI 2024-01-01" in panel.facts.biases
    )
    assert str(panel.sessions[1]) == WEEK[0]


def test_the_store_takes_it_and_adjusts_as_of_the_clock(load, tmp_path):
    panel = load(Yahoo({"NVDA": split_stock()}), symbols=("NVDA",), last="2024-01-09")
    manifest = write_snapshot(panel, tmp_path / "us")
    assert manifest.facts == panel.facts and len(manifest.sha256) == 64
    snapshot = open_snapshot(tmp_path / "us")
    before, after = snapshot.at(3, "close"), snapshot.at(4, "close")
    assert before.bars("close", adjust="split")[:, 0].tolist() == [100.75, 101.75, 102.75, 103.75]
    assert after.bars("close", adjust="split")[:, 0].tolist() == [
        25.1875,
        25.4375,
        25.6875,
        25.9375,
        25.75,
    ]


def chart(ask: Ask) -> bool:
    return "period1" in ask.query


BUSY = b"Too Many Requests"
LATE = {"Retry-After": "Thu, 01 Feb 2024 13:00:00 GMT"}


@pytest.mark.parametrize(
    ("reply", "patience", "said", "slept"),
    [
        (
            Reply(BUSY, 429),
            {},
            "Yahoo refused the daily bars of AAPL: .*429.*3 attempts.*fewer symbols",
            [2.0, 4.0],
        ),
        (Reply(BUSY, 429, LATE), {}, "a pause of 3600 s", []),
        (
            Reply(stall=True),
            {"timeout": 0.2, "attempts": 2},
            r"AAPL: no answer within 0\.2 s \(2 atte",
            [2.0],
        ),
        (
            Reply(b'{"chart": {"timestamp": [1, 2' + b" " * 200, cut=True),
            {},
            "AAPL: the answer broke off",
            [2.0, 4.0],
        ),
        (
            Reply(b'{"chart": {"timestamp": [1, 2'),
            {},
            "AAPL: the answer is not complete JSON",
            [2.0, 4.0],
        ),
        (Reply(b"<html>", 503), {}, "AAPL: HTTP 503", [2.0, 4.0]),
    ],
)
def test_a_failure_is_tried_again_where_that_may_help_and_then_said(
    load, sleeps, reply, patience, said, slept
):
    with pytest.raises(SourceError, match=said) as caught:
        load(
            Yahoo({"AAPL": plain()}, before=instead(reply, chart)),
            symbols=("AAPL",),
            patience=patience,
        )
    assert sleeps == slept and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "times", "slept"),
    [
        # The library itself repeats a refused request once with another cookie: two refusals are one attempt.
        (Reply(BUSY, 429, {"Retry-After": "7"}), 2, [7.0]),
        (
            Reply(b'{"chart"', headers={"Content-Type": "application/json"}),
            1,
            [2.0],
        ),  # and is not remembered
    ],
)
def test_after_a_failure_it_goes_on(load, sleeps, reply, times, slept):
    panel = load(Yahoo({"AAPL": plain()}, before=instead(reply, chart, times)), symbols=("AAPL",))
    assert sleeps == slept and panel.bars["open"][0, 0] == 100.0


@pytest.mark.parametrize(
    ("where", "missing"), [("quote", "open"), ("quote", "volume"), ("meta", "firstTradeDate")]
)
def test_a_changed_schema_names_what_is_missing(load, sleeps, where, missing):
    def edit(chart: dict) -> dict:
        (chart["meta"] if where == "meta" else chart["indicators"]["quote"][0]).pop(missing, None)
        return chart

    with pytest.raises(
        SourceError, match=f"AAPL in an unexpected format.*KeyError.'{missing}'.*pip install"
    ):
        load(Yahoo({"AAPL": plain()}, edit=edit), symbols=("AAPL",))
    assert sleeps == []


def test_the_library_is_left_as_it_was_and_says_nothing(load, capfd):
    before = yfinance.config.debug.hide_exceptions
    load(Yahoo({"NVDA": split_stock()}), symbols=("NVDA",), last="2024-01-09")
    assert yfinance.config.debug.hide_exceptions == before
    assert capfd.readouterr() == ("", "")


PAGES = {
    "a page": b"<html><body>we are down for maintenance</body></html>",
    "an error": b'{"error": "maintenance"}',
    "an error of its own": b'{"chart": {"result": null, "error": {"code": "Bad", "description": '
    b'"no"}}}',
    "nothing": b"",
    "null": b"null",
    "no bars": b'{"chart": {"result": [], "error": null}}',
    "a list": b"[1, 2]",
}


@pytest.mark.parametrize("body", PAGES.values(), ids=list(PAGES))
def test_whatever_comes_with_status_200_is_bars_or_an_error_of_ours(load, body):
    odd = Reply(body, 200, {"Content-Type": "text/html"})
    with pytest.raises(SourceError):
        load(Yahoo({"AAPL": plain()}, before=instead(odd, chart)), symbols=("AAPL",), forgive=True)
