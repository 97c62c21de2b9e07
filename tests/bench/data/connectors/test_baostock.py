"""The real baostock library against a stand-in of its server on the loopback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import iso, parse_iso
from tradeassay_bench.core.view import Board
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.calendars import sessions_between
from tradeassay_bench.data.connectors.baostock import BaostockConfig, BaostockSource
from tradeassay_bench.data.source import Panel

from .standins.baostock import Baostock, BaostockStandIn, Share, message
from .standins.http import instead

baostock = pytest.importorskip("baostock", reason="the extra 'ashare' is not installed")
constants = pytest.importorskip("baostock.common.contants")
context = pytest.importorskip("baostock.common.context")

NOW = "2024-02-01T12:00:00Z"
WEEK = ("2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08")


def share(price: float = 10.0, days: tuple[str, ...] = WEEK, **facts) -> Share:
    bars = {
        day: (
            price + i / 10,
            price + i / 10 + 0.2,
            price + i / 10 - 0.2,
            price + i / 10 + 0.1,
            1e6 + i,
            1e7 + i,
        )
        for i, day in enumerate(days)
    }
    return Share(bars, **facts)


@pytest.fixture
def load(runtime, monkeypatch, serve):
    """Load through the unpatched library; only the host and port in its constants are ours."""

    def run(service: Baostock, patience: dict | None = None, now: str = NOW, **config) -> Panel:
        run.stand_in = serve(service, BaostockStandIn)
        monkeypatch.setattr(constants, "BAOSTOCK_SERVER_IP", "127.0.0.1")
        monkeypatch.setattr(constants, "BAOSTOCK_SERVER_PORT", run.stand_in.port)
        asked = {"first": "2024-01-02", "last": "2024-01-08", **config}
        return BaostockSource(
            BaostockConfig(**asked), runtime=runtime(now, **(patience or {}))
        ).load()

    return run


def methods(load) -> list[str]:
    return [method for method, _ in load.stand_in.asked]


def test_bars_facts_and_listing(load):
    service = Baostock(
        {"sh.600000": share(), "sz.300750": share(150.0, listed="2018-06-11", industry="C38电气")}
    )
    panel = load(service, symbols=("300750", "sh.600000"))
    assert panel.symbols == ("600000.SH", "300750.SZ")
    assert [str(day) for day in panel.sessions] == list(WEEK)
    assert panel.bars["open"][:, 0].tolist() == [10.0, 10.1, 10.2, 10.3, 10.4]
    assert panel.bars["amount"][:, 1].tolist() == [1e7, 1e7 + 1, 1e7 + 2, 1e7 + 3, 1e7 + 4]
    assert panel.bars["volume"][4, 0] == 1_000_004.0
    assert panel.open_time[0] == parse_iso("2024-01-02T01:30:00Z")
    first, second = (listing.instrument for listing in panel.listings)
    assert (first.board, second.board) == (Board.MAIN, Board.CHINEXT)
    assert (second.sector, second.currency, second.lot, second.name) == (
        "C38电气",
        "CNY",
        100.0,
        "",
    )
    assert panel.listings[1].listed == "2018-06-11"
    facts = panel.facts
    assert (facts.source, facts.calendar, facts.adjusted, facts.retrieved_at) == (
        "baostock",
        "XSHG",
        "none",
        NOW,
    )
    assert "survivorship" in facts.biases[0]
    assert facts.licence


def test_the_float_is_worth_what_turnover_says(load):
    days = ("2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02")
    bars = share(days=days, circulating=2e8)
    bars.bars["2024-02-01"] = None
    service = Baostock({"sh.600000": bars, "sh.510300": share(4.0, days=days, kind="5")})
    panel = load(
        service,
        symbols=("600000", "510300"),
        first=days[0],
        last=days[-1],
        now="2024-03-01T12:00:00Z",
    )
    (cap,) = panel.fundamentals
    assert (cap.symbol, cap.field, cap.period_end) == ("600000.SH", "free_float_cap", "2024-01-30")
    assert cap.value == pytest.approx(2e8 * 10.1, rel=1e-4)
    assert iso(cap.known_at).startswith("2024-01-31T01:30"), "nobody knows it before the next open"


def test_what_is_special_about_a_stock_is_kept_or_said(load):
    halted = share(special=WEEK[3:], precloses={"2024-01-03": 8.0})
    halted.bars["2024-01-04"] = None
    late, fund = share(days=WEEK[3:], listed="2024-01-05"), share(3.5, kind="5")
    service = Baostock({"sh.600000": halted, "sh.688001": late, "sh.510300": fund})
    panel = load(service, symbols=("688001", "600000", "510300"))
    assert panel.symbols == ("510300.SH", "600000.SH", "688001.SH")
    assert panel.suspended[:, 1].tolist() == [False, False, True, False, False]
    assert np.isnan(panel.bars["close"][2, 1])
    traded, _, star = (one.instrument for one in panel.listings)
    assert (traded.kind, traded.tick, star.board, star.sector is None) == (
        "index",
        0.001,
        Board.STAR,
        False,
    )
    biases = " ".join(panel.facts.biases)
    assert "rights issues?): 600000.SH 2024-01-03" in biases and "without a bar" not in biases
    assert any(
        "special treatment (ST)" in bias and "600000.SH" in bias for bias in panel.facts.biases
    )


def test_dividends_and_bonus_shares_of_one_day(load):
    # 10.10 before: 0.5 in cash and 3 + 2 new shares for ten give a reference of (10.2 - 0.5) / 1.5 = 6.47.
    stock = share(dividends={"2024-01-04": (0.5, 0.3, 0.2)}, precloses={"2024-01-04": 6.47})
    for day in WEEK[2:]:
        stock.bars[day] = (6.5, 6.6, 6.4, 6.5, 1e6, 6.5e6)
    panel = load(Baostock({"sh.600000": stock}), symbols=("600000",))
    assert [(a.kind, a.ex_date, a.value) for a in panel.actions] == [
        ("dividend", "2024-01-04", 0.5),
        ("split", "2024-01-04", 1.5),
    ]
    assert panel.actions[0].known_at == parse_iso("2024-01-04T00:30:00Z")
    assert not any("reference prices" in bias for bias in panel.facts.biases)


def index_service() -> Baostock:
    """600001 replaces 600002 in the index on 5 January."""
    service = Baostock(
        {"sh.600000": share(), "sh.600001": share(), "sh.600002": share()},
        levels={"sh.000300": share(3400.0)},
    )
    service.members = lambda index, day: [
        "sh.600000",
        "sh.600001" if day >= "2024-01-05" else "sh.600002",
    ]
    return service


def test_an_index_is_a_dated_universe(load, tmp_path):
    panel = load(index_service(), index="hs300", symbols=("600002",))
    assert [m.symbol for m in panel.memberships] == ["600002.SH"]
    assert "survivorship" in panel.facts.biases[0]
    panel = load(index_service(), index="hs300")
    assert panel.symbols == ("600000.SH", "600001.SH", "600002.SH")
    assert [(m.symbol, m.start, m.end) for m in panel.memberships] == [
        ("600000.SH", "2024-01-02", None),
        ("600001.SH", "2024-01-05", None),
        ("600002.SH", "2024-01-02", "2024-01-04"),
    ]
    assert all(m.index == "hs300" for m in panel.memberships)
    assert panel.indices["hs300"].tolist() == [3400.1, 3400.2, 3400.3, 3400.4, 3400.5]
    assert not any("survivorship" in bias for bias in panel.facts.biases)
    manifest = write_snapshot(panel, tmp_path / "ashare")
    assert (manifest.shapes.memberships, manifest.shapes.indices) == (3, 1)
    snapshot = open_snapshot(tmp_path / "ashare")
    assert snapshot.at(2, "close").members("hs300") == ("600000.SH", "600002.SH")
    assert snapshot.at(3, "pre_open").members("hs300") == ("600000.SH", "600001.SH")


def nobody() -> Baostock:
    return replace(index_service(), members=lambda index, day: [])


def a_day_short() -> Baostock:
    return replace(index_service(), levels={"sh.000300": share(days=(*WEEK[:2], *WEEK[3:]))})


@pytest.mark.parametrize(
    ("service", "config", "said"),
    [
        (nobody(), {"index": "zz500"}, "no members of zz500 on 2024-01-02"),
        (a_day_short(), {"index": "hs300"}, r"no level of sh\.000300 on 2024-01-04"),
        (index_service(), {"symbols": ("600000", "600009")}, r"knows no stock or fund 600009\.SH"),
        (index_service(), {"symbols": ("AAPL",)}, "'AAPL' is not an A-share code"),
        (index_service(), {}, "no symbols"),
        (
            Baostock({"sh.000300": share(kind="2")}),
            {"symbols": ("sh.000300",)},
            r"not as stock or fund 000300\.SH",
        ),
        (
            Baostock({"sh.600000": share(days=("2023-12-29",))}),
            {"symbols": ("600000",)},
            r"baostock has no bars of 600000\.SH from 2024-01-02 to 2024-01-08",
        ),
    ],
)
def test_what_cannot_be_a_panel_is_refused(load, service, config, said):
    with pytest.raises((SourceError, UserError), match=said):
        load(service, **config)


def test_long_histories_come_page_by_page(load):
    days = tuple(str(day) for day in sessions_between("XSHG", "2014-01-02", "2024-01-08").days)
    panel = load(Baostock({"sh.600000": share(days=days)}), symbols=("600000",), first="2014-01-02")
    assert panel.sessions.size == len(days) > 2000
    assert np.isfinite(panel.bars["close"]).all()
    assert methods(load).count("query_history_k_data_plus") == 2

    def second_page(method: str, args: list[str]):
        return "hang up" if method == BARS and args[0] == "2" else None

    with pytest.raises(SourceError, match="the answer broke off"):  # which is no short history
        load(
            Baostock({"sh.600000": share(days=days)}, before=second_page),
            symbols=("600000",),
            first="2014-01-02",
        )


def test_many_symbols_are_asked_about_at_once(load):
    service = Baostock({f"sh.60000{i}": share() for i in range(7)})
    panel = load(service, symbols=tuple(f"60000{i}" for i in range(7)))
    assert len(panel.symbols) == 7
    assert methods(load).count("query_stock_basic") == 1
    assert methods(load).count("query_stock_industry") == 1


BARS = "query_history_k_data_plus"
WHOLE = message("96", ["0", "success", BARS, "anonymous", "1", "2000", "{}"], compressed=True)
HALF = [
    "0",
    "success",
    BARS,
    *"anonymous 1 2000".split(),
    '{"record": [["2024',
    "sh.600000",
    "date",
    "",
    "",
    "d",
    "3",
]


def at(method: str, mishap, times: int = 99):
    return instead(mishap, lambda asked, args: asked == method, times)


@pytest.mark.parametrize(
    ("method", "mishap", "patience", "said", "slept"),
    [
        # The protocol has no 429; a full server says so with a code of its own.
        (
            "login",
            ("10001005", "login limit reached"),
            {},
            "too many logins.*3 attempts",
            [2.0, 4.0],
        ),
        ("login", ("10001011", "blacklist"), {}, "10001011.*wait a day", []),
        ("login", ("10001004", "version expired"), {}, "10001004.*pip install -U baostock", []),
        (
            "login",
            "stall",
            {"timeout": 0.2, "attempts": 2},
            r"no answer within 0\.2 s \(2 attempts",
            [2.0],
        ),
        (
            BARS,
            "stall",
            {"timeout": 0.2, "attempts": 2},
            r"no answer within 0\.2 s \(2 attempts",
            [2.0],
        ),
        (
            BARS,
            WHOLE[:30] + b"\x011<![CDATA[]]>\n",
            {},
            r"600000\.SH: the answer broke off",
            [2.0, 4.0],
        ),
        (
            BARS,
            message("96", HALF, compressed=True),
            {},
            r"600000\.SH: .* not complete JSON",
            [2.0, 4.0],
        ),
        (
            BARS,
            message("96", HALF[:3], compressed=True),
            {},
            "an unexpected format: IndexError",
            [],
        ),
        (
            BARS,
            ("10004012", "unknown indicator"),
            {},
            r"bars of 600000\.SH: unknown indicator \(10004012\)",
            [],
        ),
    ],
)
def test_a_failure_is_tried_again_where_that_may_help_and_then_said(
    load, sleeps, method, mishap, patience, said, slept
):
    with pytest.raises(SourceError, match=said) as caught:
        load(
            Baostock({"sh.600000": share()}, before=at(method, mishap)),
            symbols=("600000",),
            patience=patience,
        )
    assert sleeps == slept and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "mishap", "times", "slept", "logins"),
    [
        ("login", ("10001005", "login limit reached"), 2, [2.0, 4.0], 3),
        (BARS, ("10001001", "not logged in"), 1, [2.0], 2),
    ],
)
def test_after_a_failure_it_goes_on(load, sleeps, method, mishap, times, slept, logins):
    panel = load(
        Baostock({"sh.600000": share()}, before=at(method, mishap, times)), symbols=("600000",)
    )
    assert sleeps == slept and panel.sessions.size == 5
    assert methods(load).count("login") == logins


@pytest.mark.timeout(300)  # unwatched, the library reads nothing for ever
@pytest.mark.parametrize("mishap", ["hang up", "half"])
@pytest.mark.parametrize("method", ["login", "query_stock_basic", BARS])
def test_a_body_that_breaks_off_does_not_hang(load, sleeps, method, mishap):
    with pytest.raises(SourceError, match="the answer broke off in the middle"):
        load(Baostock({"sh.600000": share()}, before=at(method, mishap)), symbols=("600000",))
    assert sleeps == [2.0, 4.0]


def test_nobody_at_the_other_end(load, runtime, sleeps):
    load(Baostock({"sh.600000": share()}), symbols=("600000",))
    load.stand_in.close()
    with pytest.raises(SourceError, match="the connection failed"):
        BaostockSource(
            BaostockConfig(symbols=("600000",), first="2024-01-02", last="2024-01-08"),
            runtime=runtime(NOW),
        ).load()
    assert sleeps == [2.0, 4.0]


@pytest.mark.parametrize("name", ["tradestatus", "ipoDate", "dividOperateDate", "industry"])
def test_a_changed_schema_names_the_field(load, sleeps, name):
    with pytest.raises(SourceError, match=f"an unexpected format: no field {name}.*pip install"):
        load(Baostock({"sh.600000": share()}, rename={name: "renamed"}), symbols=("600000",))
    assert sleeps == []


def test_the_library_is_left_as_it_was_and_says_nothing(load, capfd):
    from baostock.util.socketutil import SocketUtil

    before = SocketUtil.instance
    load(Baostock({"sh.600000": share()}), symbols=("600000",))
    assert SocketUtil.instance is before
    assert context.default_socket is None
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
