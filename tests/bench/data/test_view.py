"""What a view says at each phase of a session, and prices adjusted as of the clock, by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.time import DAY, HOUR, MINUTE, SECOND
from tradeassay_bench.core.view import CorporateAction, Instrument
from tradeassay_bench.data.snapshot import Snapshot, open_snapshot
from tradeassay_bench.data.source import Listing, Panel, PanelFacts, action_known_at
from tradeassay_bench.data.store.write import write_snapshot


def test_each_phase_knows_a_little_more(snapshot, panel):
    before, opened, closed = (snapshot.at(4, phase) for phase in ("pre_open", "open", "close"))
    assert before.clock == panel.open_time[4] - 1
    assert opened.clock == panel.open_time[4]
    assert closed.clock == panel.close_time[4]
    assert [len(view.sessions()) for view in (before, opened, closed)] == [4, 4, 5]
    assert [view.bars("close").shape[0] for view in (before, opened, closed)] == [4, 4, 5]
    assert before.opens() is None
    assert np.array_equal(opened.opens(), panel.bars["open"][4, :5], equal_nan=True)
    assert [view.index_levels("IDX").size for view in (before, opened, closed)] == [4, 4, 5]
    assert {view.session for view in (before, opened, closed)} == {"2024-01-05"}


def test_session_bars_after_the_close_and_not_before(snapshot, panel):
    for phase in ("pre_open", "open"):
        with pytest.raises(FutureDataError, match="not known at 2024-01-05"):
            snapshot.at(4, phase).session_bars()  # type: ignore[arg-type]
    bars = snapshot.at(4, "close").session_bars()
    assert (bars.session, bars.row, bars.symbols) == (
        "2024-01-05",
        4,
        ("S0", "S1", "S2", "S3", "S4"),
    )
    for field in ("open", "high", "low", "close", "volume", "amount"):
        assert np.array_equal(getattr(bars, field), panel.bars[field][4, :5], equal_nan=True)
    assert bars.trading.tolist() == (~panel.suspended[4, :5]).tolist()
    assert [item.symbol for item in bars.instruments] == list(bars.symbols)


def test_a_later_listing_does_not_exist_yet(snapshot):
    assert snapshot.at(7, "close").symbols == ("S0", "S1", "S2", "S3", "S4")
    with pytest.raises(DataError, match="no instrument 'S5'"):
        snapshot.at(7, "close").column("S5")
    assert snapshot.at(8, "pre_open").column("S5") == 5
    assert snapshot.at(8, "pre_open").instrument("S5").name == "Stock 5"
    assert np.isnan(snapshot.at(8, "open").bars("close")[:, 5]).all()


def test_a_delisted_name_keeps_its_column_and_is_named(snapshot):
    last = snapshot.at(7, "close")
    assert last.delisted_now() == () and last.tradable()[1] == ~np.isnan(
        last.session_bars().close[1]
    )
    gone = snapshot.at(8, "pre_open")
    assert gone.delisted_now() == ("S1",)
    assert "S1" in gone.symbols and not gone.tradable()[1]
    assert not snapshot.at(8, "close").session_bars().trading[1]


def test_tradable_is_the_last_known_state(snapshot, panel):
    for row in range(1, 7):
        yesterday, today = ~panel.suspended[row - 1, :5], ~panel.suspended[row, :5]
        assert snapshot.at(row, "pre_open").tradable().tolist() == yesterday.tolist()
        assert snapshot.at(row, "open").tradable().tolist() == today.tolist()
        assert snapshot.at(row, "close").tradable().tolist() == today.tolist()
    assert snapshot.at(0, "pre_open").tradable().all()
    assert snapshot.at(8, "pre_open").tradable()[5], "a name listed today has no earlier state"


def test_members_follow_their_dates(snapshot):
    assert snapshot.at(0, "pre_open").members("IDX") == ("S0", "S2")
    assert snapshot.at(7, "close").members("IDX") == ("S0", "S2")
    assert snapshot.at(8, "pre_open").members("IDX") == ("S0", "S3")
    assert snapshot.at(3, "open").members("IDX") is snapshot.at(5, "open").members("IDX"), (
        "worked out once"
    )
    with pytest.raises(DataError, match=r"no index 'SPX' is known \(known: IDX\)"):
        snapshot.at(3, "open").members("SPX")
    with pytest.raises(DataError, match="no index"):
        snapshot.at(3, "open").index_levels("SPX")


def test_news_newest_first_within_the_half_open_interval(snapshot, panel):
    view = snapshot.at(5, "close")
    assert [item.id for item in view.news(0)] == ["n5", "n4", "n3", "n2", "n1", "n0"]
    assert [item.id for item in view.news(0, limit=2)] == ["n5", "n4"]
    assert [item.id for item in view.news(panel.news[3].published_at)] == ["n5", "n4"]
    assert [item.id for item in view.news(0, symbols=["S0", "S1"])] == ["n4", "n3", "n1", "n0"]
    assert view.news(0, symbols=[]) == () and view.news(0, symbols=["nobody"]) == ()
    assert len(view.news(0, symbols=["S3", "S0"])) == 6, "an item about both comes once"
    assert snapshot.at(5, "open").news(0)[0].id == "n4", "n5 is published an hour after the open"


def test_fundamentals_appear_when_they_are_known(snapshot):
    assert snapshot.at(2, "pre_open").fundamentals("S0") == ()
    assert [figure.value for figure in snapshot.at(2, "open").fundamentals("S0")] == [0.0]
    with pytest.raises(DataError, match="no instrument"):
        snapshot.at(2, "open").fundamentals("nobody")


def test_announced_actions_are_news_before_they_happen(snapshot):
    view = snapshot.at(3, "open")
    assert [(a.symbol, a.kind) for a in view.actions(0)] == [("S0", "dividend"), ("S0", "split")]
    assert view.todays_actions() == ()
    assert [a.kind for a in snapshot.at(5, "pre_open").todays_actions()] == ["split"]


def test_minutes_end_at_the_clock(snapshot, panel):
    start = int(panel.open_time[2])
    times, bars = snapshot.as_of(start + 2 * MINUTE).minutes("S0", 3)
    assert times.tolist() == [
        int(panel.open_time[1]) + 3 * MINUTE,
        start + MINUTE,
        start + 2 * MINUTE,
    ]
    assert bars["close"].tolist() == panel.minutes.bars["close"][5:8, 0].tolist()  # type: ignore[union-attr]
    assert snapshot.as_of(start + MINUTE - 1).minutes("S0", 1)[0].tolist() == times.tolist()[:1]
    times, bars = snapshot.as_of(start + 2 * MINUTE).minutes("S2", 100)
    assert times.size == 6 and not np.isnan(bars["close"]).any(), (
        "minutes without a bar are left out"
    )
    with pytest.raises(DataError, match="no minute bars of 'S1'"):
        snapshot.at(2, "close").minutes("S1", 3)


def test_wrong_questions_say_what_is_right(snapshot):
    view = snapshot.at(3, "open")
    for ask, kind, said in (
        (lambda: view.news(view.clock + 1), FutureDataError, "is after the view's clock"),
        (lambda: view.actions(view.clock + 1), FutureDataError, "is after the view's clock"),
        (lambda: view.bars("vwap"), UserError, "unknown field 'vwap'"),
        (lambda: view.bars("close", adjust="both"), UserError, "unknown adjustment 'both'"),
        (lambda: view.bars("close", -1), UserError, "whole number of 0 or more"),
        (lambda: view.minutes("S0", -1), UserError, "whole number of 0 or more"),
        (lambda: snapshot.at(16, "open"), DataError, "use rows 0 to 15"),
        (lambda: snapshot.at(-1, "open"), DataError, "no session in row -1"),
        (lambda: snapshot.at(1, "noon"), UserError, "unknown phase 'noon'"),
    ):
        with pytest.raises(kind, match=said):
            ask()


def test_arrays_cannot_be_written(snapshot):
    view = snapshot.at(6, "close")
    for array in (
        view.bars("close"),
        view.bars("close", 1),
        view.sessions(),
        view.tradable(),
        view.opens(),
    ):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array


def test_an_instant_finds_its_session(snapshot, panel):
    opens, closes = panel.open_time, panel.close_time
    expected = [
        (int(opens[0]) - HOUR - 1, (-1, "close")),
        (int(opens[0]) - HOUR, (0, "pre_open")),
        (int(opens[0]), (0, "open")),
        (int(closes[0]) - 1, (0, "open")),
        (int(closes[0]), (0, "close")),
        (int(opens[1]) - HOUR - 1, (0, "close")),
        (int(opens[1]) - HOUR, (1, "pre_open")),
        (int(closes[-1]) + 10**6 * SECOND, (15, "close")),
    ]
    for clock, where in expected:
        view = snapshot.as_of(clock)
        assert (view.row, view.phase) == where


def test_before_the_first_session_there_is_nothing(snapshot):
    view = snapshot.as_of(0)
    assert view.symbols == () and view.bars("close").shape == (0, 0) and view.sessions().size == 0
    assert view.tradable().size == 0 and view.opens() is None and view.delisted_now() == ()
    assert (
        view.todays_actions() == () and view.news(-1) == () and view.index_levels("IDX").size == 0
    )
    with pytest.raises(FutureDataError):
        view.session_bars()
    with pytest.raises(DataError, match="no session has begun"):
        _ = view.session


# -- adjustment ------------------------------------------------------------------------------------

DAYS = np.busday_offset(np.datetime64("2024-01-01"), np.arange(8))
OPENS = DAYS.astype(np.int64) * DAY + 14 * HOUR
NAN = float("nan")
Store = Callable[[Panel], Snapshot]


def action(kind: Literal["split", "dividend"], row: int, value: float) -> CorporateAction:
    known = action_known_at(int(OPENS[row]))
    return CorporateAction(
        symbol="A", kind=kind, ex_date=str(DAYS[row]), known_at=known, value=value
    )


def one_stock(
    closes: list[float],
    *actions: CorporateAction,
    adjusted: Literal["none", "split", "total"] = "none",
) -> Panel:
    close = np.array(closes)[:, None]
    volume = np.where(np.isnan(close), np.nan, 100.0)
    return Panel(
        name="one",
        facts=PanelFacts(
            kind="synthetic",
            source="test",
            query="",
            currency="USD",
            calendar="XNYS",
            adjusted=adjusted,
        ),
        listings=(Listing(instrument=Instrument(symbol="A"), listed=str(DAYS[0])),),
        sessions=DAYS[: len(closes)],
        open_time=OPENS[: len(closes)],
        close_time=OPENS[: len(closes)] + 6 * HOUR,
        bars={
            **dict.fromkeys(("open", "high", "low", "close"), close),
            "volume": volume,
            "amount": volume * close,
        },
        suspended=np.isnan(close),
        actions=actions,
    )


@pytest.fixture
def store(tmp_path):
    def write(panel: Panel) -> Snapshot:
        write_snapshot(panel, tmp_path / "one", allow_faults=True)
        return open_snapshot(tmp_path / "one")

    return write


def closes(
    snapshot: Snapshot, row: int, phase: Literal["pre_open", "open", "close"], adjust: str
) -> list[float]:
    return snapshot.at(row, phase).bars("close", adjust=adjust)[:, 0].tolist()  # type: ignore[arg-type]


def test_a_split_is_undone_from_its_ex_dates_pre_open_on_and_not_before(store):
    snapshot = store(one_stock([100, 102, 52, 53], action("split", 2, 2.0)))
    assert closes(snapshot, 1, "close", "split") == [100, 102]
    assert closes(snapshot, 2, "pre_open", "split") == [50, 51]
    assert closes(snapshot, 3, "close", "split") == [50, 51, 52, 53]
    assert closes(snapshot, 3, "close", "none") == [100, 102, 52, 53]
    view = snapshot.at(3, "close")
    assert view.bars("volume")[:, 0].tolist() == [200, 200, 100, 100]
    assert view.bars("volume", adjust="total")[:, 0].tolist() == [200, 200, 100, 100]
    assert view.bars("amount")[:, 0].tolist() == [10_000, 10_200, 5_200, 5_300]


def test_a_dividend_counts_in_total_only(store: Callable[[Panel], Snapshot]) -> None:
    # 100 -> ex-dividend 10 -> 90: the holder lost nothing, so the total series is flat.
    snapshot = store(one_stock([100, 100, 90, 99], action("dividend", 2, 10.0)))
    assert closes(snapshot, 3, "close", "split") == [100, 100, 90, 99]
    assert closes(snapshot, 3, "close", "total") == pytest.approx([90, 90, 90, 99], rel=1e-15)
    assert closes(snapshot, 1, "close", "total") == [100, 100]


def test_a_dividend_with_a_split_on_one_day_is_per_old_share(
    store: Callable[[Panel], Snapshot],
) -> None:
    # 100, pays 10 per old share, then two for one: fair price (100 - 10) / 2 = 45.
    snapshot = store(one_stock([100, 45], action("dividend", 1, 10.0), action("split", 1, 2.0)))
    assert closes(snapshot, 1, "close", "total") == pytest.approx([45, 45], rel=1e-15)
    assert snapshot.at(1, "close").session_bars().prev_close.tolist() == pytest.approx(
        [45], rel=1e-15
    )
    assert [a.kind for a in snapshot.at(1, "pre_open").todays_actions()] == ["dividend", "split"]


def test_actions_during_a_suspension(store: Callable[[Panel], Snapshot]) -> None:
    # 100; suspended for three sessions in which it pays 10, splits 3:1 and pays 5; resumes at 25 = (100-10)/3 - 5.
    events = (action("dividend", 1, 10.0), action("split", 2, 3.0), action("dividend", 3, 5.0))
    snapshot = store(one_stock([100, NAN, NAN, NAN, 25], *events))
    assert closes(snapshot, 1, "pre_open", "total") == pytest.approx([90])
    assert closes(snapshot, 2, "pre_open", "total")[0] == pytest.approx(30)
    assert closes(snapshot, 4, "pre_open", "total")[0] == pytest.approx(25)
    assert closes(snapshot, 4, "pre_open", "split")[0] == pytest.approx(100 / 3)
    assert snapshot.at(4, "close").session_bars().prev_close.tolist() == pytest.approx([25])
    assert snapshot.at(3, "close").session_bars().prev_close.tolist() == pytest.approx([25])


def test_prev_close_is_exact_where_nothing_happened_today(store):
    prices = [10.01, 10.02, 9.97, 9.99]
    snapshot = store(one_stock(prices, action("dividend", 1, 0.07)))
    assert [
        float(snapshot.at(row, "close").session_bars().prev_close[0]) for row in (2, 3)
    ] == prices[1:3]
    assert np.isnan(snapshot.at(0, "close").session_bars().prev_close[0])


def test_what_the_vendor_adjusted_is_not_adjusted_or_paid_again(store):
    events = (action("split", 2, 2.0), action("dividend", 3, 1.0))
    total = store(one_stock([50, 51, 52, 53], *events, adjusted="total"))
    view = total.at(3, "close")
    assert view.bars("close", adjust="total")[:, 0].tolist() == [50, 51, 52, 53]
    assert view.bars("volume")[:, 0].tolist() == [100] * 4
    assert view.todays_actions() == () and total.at(2, "pre_open").todays_actions() == ()
    assert len(view.actions(0)) == 2, "the announcements are still news"
    assert total.facts.live_actions == () and any(
        "hindsight" in bias for bias in total.facts.biases
    )


def test_a_split_adjusted_panel_still_pays_dividends(store):
    events = (action("split", 2, 2.0), action("dividend", 3, 2.0))
    snapshot = store(one_stock([50, 50, 50, 48], *events, adjusted="split"))
    assert closes(snapshot, 3, "close", "split") == [50, 50, 50, 48]
    assert closes(snapshot, 3, "close", "total") == pytest.approx([48, 48, 48, 48])
    assert [a.kind for a in snapshot.at(3, "pre_open").todays_actions()] == ["dividend"]
    assert snapshot.at(2, "pre_open").todays_actions() == ()


def test_an_ex_date_between_sessions_takes_effect_in_the_next_one(store):
    saturday = "2024-01-06"
    split = msgspec.structs.replace(
        action("split", 5, 2.0), ex_date=saturday, known_at=int(OPENS[1])
    )
    snapshot = store(one_stock([100, 100, 100, 100, 100, 50], split))
    assert snapshot.at(4, "close").todays_actions() == ()
    assert snapshot.at(5, "pre_open").todays_actions() == (split,)
    assert closes(snapshot, 5, "pre_open", "split") == [50] * 5


def test_actions_outside_the_panel_are_known_but_have_no_effect(store):
    split = action("split", 1, 7.0)
    before = msgspec.structs.replace(split, ex_date="2020-05-05", known_at=int(OPENS[0]) - DAY)
    beyond = msgspec.structs.replace(split, ex_date="2031-05-05", known_at=int(OPENS[1]))
    snapshot = store(one_stock([100, 101, 102], before, beyond))
    for row in range(3):
        assert snapshot.at(row, "pre_open").todays_actions() == ()
        assert closes(snapshot, row, "close", "total") == [100, 101, 102][: row + 1]
    assert snapshot.at(0, "open").actions(0) == (before,)
    assert snapshot.at(1, "open").actions(0) == (before, beyond)


def test_a_split_and_its_reverse_still_adjust_what_lies_between(store):
    snapshot = store(
        one_stock([100, 50, 50, 100, 100], action("split", 1, 2.0), action("split", 3, 0.5))
    )
    assert closes(snapshot, 4, "close", "split") == [100, 100, 100, 100, 100]
    assert snapshot.at(4, "close").bars("close", 3)[:, 0].tolist() == [100, 100, 100]


def test_an_uneventful_window_is_not_copied(store):
    snapshot = store(one_stock([100, 50, 51, 52, 53], action("split", 1, 2.0)))
    view = snapshot.at(4, "close")
    raw, adjusted = view.bars("close", 4, adjust="none"), view.bars("close", 4)
    assert np.shares_memory(raw, adjusted)
    assert not np.shares_memory(view.bars("close", adjust="none"), view.bars("close"))


def test_only_touched_columns_change(make_panel, tmp_path):
    panel = make_panel(3)
    write_snapshot(panel, tmp_path / "x")
    write_snapshot(replace(panel, actions=()), tmp_path / "y", allow_faults=True)
    adjusted = open_snapshot(tmp_path / "x").at(15, "close").bars("close", adjust="total")
    plain = open_snapshot(tmp_path / "y").at(15, "close").bars("close", adjust="total")
    same = [
        i
        for i in range(adjusted.shape[1])
        if np.array_equal(adjusted[:, i], plain[:, i], equal_nan=True)
    ]
    assert same == [1, 3, 4, 5]
