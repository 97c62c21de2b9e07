"""The real akshare library against a stand-in of Eastmoney on the loopback."""

from __future__ import annotations

import pytest

from tradeassay.core.errors import SourceError
from tradeassay.core.time import parse_iso
from tradeassay.core.view import Board
from tradeassay.data.connectors.akshare import AkshareConfig, AkshareSource
from tradeassay.data.source import Panel

from .standins.eastmoney import Eastmoney, Share
from .standins.http import Reply, instead

pytest.importorskip("akshare", reason="the extra 'ashare' is not installed")

NOW = "2024-02-01T12:00:00Z"
WEEK = ("2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08")
BARS, FACTS, BONUS = "/api/qt/stock/kline/get", "/api/qt/stock/get", "/api/data/v1/get"


def share(price: float = 10.0, days: tuple[str, ...] = WEEK, **facts) -> Share:
    bars = {}
    for i, day in enumerate(days):
        base = price + i / 10
        volume = 1_000_000.0 + 100 * i
        bars[day] = (base, base + 0.2, base - 0.2, base + 0.1, volume, round(volume * base, 2))
    return Share(bars, **facts)


@pytest.fixture
def load(behind_proxy, runtime):
    """Load through the unpatched library; only the machine's proxy and certificate bundle are ours."""

    def run(service: Eastmoney, patience: dict | None = None, **config) -> Panel:
        run.stand_in = behind_proxy(service)
        asked = {"first": "2024-01-02", "last": "2024-01-08", "symbols": ("600000",), **config}
        return AkshareSource(AkshareConfig(**asked), runtime=runtime(NOW, **(patience or {}))).load()

    return run


def test_bars_facts_and_listing(load):
    service = Eastmoney({"600000": share(), "300750": share(150.0, listed=20180611, industry="电池")})
    panel = load(service, symbols=("300750.SZ", "600000.SH"))
    assert panel.symbols == ("600000.SH", "300750.SZ")
    assert [str(day) for day in panel.sessions] == list(WEEK)
    assert panel.bars["open"][:, 0].tolist() == [10.0, 10.1, 10.2, 10.3, 10.4]
    assert panel.bars["high"][:, 1].tolist() == [150.2, 150.3, 150.4, 150.5, 150.6]
    assert panel.bars["close"][0, 1] == 150.1
    assert panel.bars["amount"][1, 0] == round(1_000_100 * 10.1, 2)
    first, second = panel.listings
    assert (first.listed, second.listed) == ("1999-11-10", "2018-06-11")
    assert (second.instrument.board, second.instrument.sector) == (Board.CHINEXT, "电池")
    facts = panel.facts
    assert (facts.source, facts.calendar, facts.currency, facts.adjusted) == ("akshare", "XSHG", "CNY", "none")
    assert facts.retrieved_at == NOW and facts.licence
    assert "survivorship" in facts.biases[0]


def test_volume_is_in_shares_whatever_the_board_counts(load):
    for lot in (100.0, 1.0):
        strange = share(40.0, lot=lot, references={"2024-01-04": 32.0})
        panel = load(Eastmoney({"688001": strange}), symbols=("688001",))
        assert panel.bars["volume"][:, 0].tolist() == [1_000_000.0 + 100 * i for i in range(5)]
        assert any("rights issues?): 688001.SH 2024-01-04" in bias for bias in panel.facts.biases)


@pytest.mark.parametrize(
    ("facts", "symbols", "said"),
    [
        ({"lot": 10_000.0}, ("600000",), r"volume of 600000\.SH in another format"),
        ({}, ("600000", "600009"), r"Eastmoney has no bars of 600009\.SH from 2024-01-02 to 2024-01-08"),
        ({"listed": "-"}, ("600000",), "another format than expected: ValueError.*-"),
        ({"listed": "1999"}, ("600000",), "another format than expected: ValueError.*1999"),
    ],
)
def test_what_cannot_be_a_panel_is_refused(load, sleeps, facts, symbols, said):
    with pytest.raises(SourceError, match=said):
        load(Eastmoney({"600000": share(**facts)}), symbols=symbols)
    assert sleeps == []


def test_dividends_and_bonus_shares_of_one_day(load):
    # Before: 10.20. Per ten shares 5.0 in cash and 5 new shares: (10.2 - 0.5) / 1.5 = 6.47.
    stock = share(
        dividends={"2019-06-03": (1.0, 0.0), "2024-01-04": (5.0, 5.0), "": (2.0, 0.0)},
        references={"2024-01-04": 6.47},
    )
    for day in WEEK[2:]:
        stock.bars[day] = (6.5, 6.6, 6.4, 6.5, 1e6, 6.5e6)
    panel = load(Eastmoney({"600000": stock}))
    assert [(a.kind, a.ex_date, a.value) for a in panel.actions] == [
        ("dividend", "2024-01-04", 0.5),
        ("split", "2024-01-04", 1.5),
    ]
    assert panel.actions[0].known_at == parse_iso("2024-01-04T00:30:00Z")
    assert not any("reference prices" in bias for bias in panel.facts.biases)


def at(path: str, reply: Reply, times: int = 99):
    return instead(reply, lambda ask: ask.path == path, times)


BUSY = Reply(b"<html>slow down</html>", 429, {"Retry-After": "9", "Content-Type": "text/html"})
LATE = {"timeout": 0.3, "attempts": 2}
CUT = Reply(b'{"rc": 0, "data": {"klines": ["2024-01-02' + b" " * 100, cut=True)
HALF = Reply(b'{"rc": 0, "data": {"klines": ["2024-01-02')


@pytest.mark.parametrize("path", [BARS, FACTS, BONUS])
@pytest.mark.parametrize(
    ("reply", "patience", "said", "slept"),
    [
        (BUSY, {}, "Eastmoney refused the .* 600000: .*429", [9.0, 9.0]),
        (Reply(stall=True), LATE, r"600000: nothing came within 0\.3 s \(2 attempts", [2.0]),
        (CUT, {}, "600000: the answer broke off in the middle", [2.0, 4.0]),
        (HALF, {}, "600000: the answer is not complete JSON", [2.0, 4.0]),
        (Reply(b"<html>", 403), {}, "refused the .* 600000: HTTP 403", []),
    ],
)
def test_a_failure_is_tried_again_where_that_may_help_and_then_said(
    load, sleeps, path, reply, patience, said, slept
):
    with pytest.raises(SourceError, match=said) as caught:
        load(Eastmoney({"600000": share()}, before=at(path, reply)), patience=patience)
    assert sleeps == slept and "\n" not in str(caught.value)


@pytest.mark.parametrize(("reply", "slept"), [(BUSY, [9.0]), (Reply(b"<html>", 502), [2.0])])
@pytest.mark.parametrize("path", [BARS, FACTS, BONUS])
def test_after_a_failure_it_goes_on(load, sleeps, path, reply, slept):
    assert load(Eastmoney({"600000": share()}, before=at(path, reply, 1))).sessions.size == 5
    assert sleeps == slept


def fewer(answer: dict) -> None:
    answer["data"]["klines"] = [line.rsplit(",", 2)[0] for line in answer["data"]["klines"]]


def wider(answer: dict) -> None:
    answer["result"]["data"] = [{**row, "NEW": 1} for row in answer["result"]["data"]]


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        (BARS, fewer, "bars of 600000 in another format than expected: ValueError.*pip install"),
        (BARS, lambda answer: answer.update(payload=answer.pop("data")), "format than expected: KeyError.'data'"),
        (BONUS, wider, "dividends of 600000 in another format"),
    ],
)
def test_a_changed_schema_is_named(load, sleeps, path, change, said):
    def edit(asked: str, answer: dict) -> dict:
        if asked == path:
            change(answer)
        return answer

    with pytest.raises(SourceError, match=said):
        load(Eastmoney({"600000": share(dividends={"2024-01-04": (5.0, 0.0)})}, edit=edit))
    assert sleeps == []


def test_nothing_is_printed(load, capfd):
    load(Eastmoney({"600000": share(dividends={"2024-01-04": (0.5, 0.0)}, references={"2024-01-04": 10.15})}))
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
