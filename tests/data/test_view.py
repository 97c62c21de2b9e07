"""What a view says at each phase of a session, by hand."""

import numpy as np
import pytest

from tradeassay.core.errors import DataError, FutureDataError, UserError
from tradeassay.core.time import HOUR, MINUTE, SECOND


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


@pytest.mark.parametrize("phase", ["pre_open", "open"])
def test_the_sessions_bars_are_refused_before_its_close(snapshot, phase):
    with pytest.raises(FutureDataError, match="not known at 2024-01-05"):
        snapshot.at(4, phase).session_bars()  # type: ignore[arg-type]


def test_session_bars_after_the_close(snapshot, panel):
    bars = snapshot.at(4, "close").session_bars()
    assert (bars.session, bars.row, bars.symbols) == ("2024-01-05", 4, ("S0", "S1", "S2", "S3", "S4"))
    for field in ("open", "high", "low", "close", "volume", "amount"):
        assert np.array_equal(getattr(bars, field), panel.bars[field][4, :5], equal_nan=True)
    assert bars.trading.tolist() == (~panel.suspended[4, :5]).tolist()
    assert [item.symbol for item in bars.instruments] == list(bars.symbols)


def test_asking_for_a_later_instant_raises(snapshot):
    view = snapshot.at(4, "open")
    for ask in (view.news, view.actions):
        with pytest.raises(FutureDataError, match="lies after the view's clock"):
            ask(view.clock + 1)


def test_a_later_listing_does_not_exist_yet(snapshot):
    assert snapshot.at(7, "close").symbols == ("S0", "S1", "S2", "S3", "S4")
    with pytest.raises(DataError, match="no instrument 'S5'"):
        snapshot.at(7, "close").column("S5")
    assert snapshot.at(8, "pre_open").column("S5") == 5
    assert snapshot.at(8, "pre_open").instrument("S5").name == "Stock 5"
    assert np.isnan(snapshot.at(8, "open").bars("close")[:, 5]).all()


def test_a_delisted_name_keeps_its_column_and_is_named(snapshot):
    last = snapshot.at(7, "close")
    assert last.delisted_now() == () and last.tradable()[1] == ~np.isnan(last.session_bars().close[1])
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
    assert snapshot.at(3, "open").members("IDX") is snapshot.at(5, "open").members("IDX"), "worked out once"
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
    assert times.tolist() == [int(panel.open_time[1]) + 3 * MINUTE, start + MINUTE, start + 2 * MINUTE]
    assert bars["close"].tolist() == panel.minutes.bars["close"][5:8, 0].tolist()  # type: ignore[union-attr]
    assert snapshot.as_of(start + MINUTE - 1).minutes("S0", 1)[0].tolist() == times.tolist()[:1]
    times, bars = snapshot.as_of(start + 2 * MINUTE).minutes("S2", 100)
    assert times.size == 6 and not np.isnan(bars["close"]).any(), "minutes without a bar are left out"
    with pytest.raises(DataError, match="no minute bars of 'S1'"):
        snapshot.at(2, "close").minutes("S1", 3)


def test_wrong_questions_say_what_is_right(snapshot):
    view = snapshot.at(3, "open")
    with pytest.raises(UserError, match="no field 'vwap'"):
        view.bars("vwap")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no adjustment 'both'"):
        view.bars("close", adjust="both")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="whole number from 0"):
        view.bars("close", -1)
    with pytest.raises(UserError, match="whole number from 0"):
        view.minutes("S0", -1)
    with pytest.raises(DataError, match="rows are 0 to 15"):
        snapshot.at(16, "open")
    with pytest.raises(DataError, match="no session in row -1"):
        snapshot.at(-1, "open")
    with pytest.raises(UserError, match="no moment 'noon'"):
        snapshot.at(1, "noon")  # type: ignore[arg-type]


def test_arrays_cannot_be_written(snapshot):
    view = snapshot.at(6, "close")
    for array in (view.bars("close"), view.bars("close", 1), view.sessions(), view.tradable(), view.opens()):
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
        assert (view.row, view.moment) == where


def test_before_the_first_session_there_is_nothing(snapshot):
    view = snapshot.as_of(0)
    assert view.symbols == () and view.bars("close").shape == (0, 0) and view.sessions().size == 0
    assert view.tradable().size == 0 and view.opens() is None and view.delisted_now() == ()
    assert view.todays_actions() == () and view.news(-1) == () and view.index_levels("IDX").size == 0
    with pytest.raises(FutureDataError):
        view.session_bars()
    with pytest.raises(DataError, match="no session has begun"):
        _ = view.session
