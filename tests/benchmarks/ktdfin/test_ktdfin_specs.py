"""The benchmarks, their windows, and the published figures beside them."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from tradeassay.account import venues
from tradeassay.benchmarks import benchmarks, find_window, protocols
from tradeassay.benchmarks.ktdfin import (
    KTDFIN,
    KTDFIN_PAPER,
    Ktdfin,
    KtdfinSetting,
    compare_with,
    paper_windows,
    published,
    windows,
)
from tradeassay.core.errors import UserError
from tradeassay.data import Snapshot, load_dataset

IDS = tuple(f"ktdfin{name}-v1" for name in ("", "-paper", "-us", "-us-real"))


@pytest.mark.parametrize("name", IDS)
def test_registered_with_a_protocol_that_takes_their_params(name):
    benchmark = benchmarks.get(name)
    kind = protocols.get(benchmark.protocol)
    assert kind is Ktdfin
    config = msgspec.convert(benchmark.protocol_params, kind.Config)
    assert config.convention == benchmark.convention
    assert (
        config.max_weight == benchmark.market.max_weight and config.max_positions == benchmark.market.max_positions
    )
    assert benchmark.market.cash == 1_000_000 and benchmark.market.decide == "pre_open"
    assert benchmark.market.fill == "open" and kind(config).config is config


@pytest.mark.parametrize("name", ["ktdfin-v1", "ktdfin-us-v1"])
def test_the_default_data_has_a_year_of_history_before_the_first_day(name, tmp_path_factory):
    benchmark = benchmarks.get(name)
    home = tmp_path_factory.getbasetemp() / "ktdfin-home"
    snapshot = load_dataset(benchmark.dataset, home)
    rows = snapshot.rows(benchmark.market.first, benchmark.market.last)
    assert rows.start >= 252 and len(rows) >= 252


def calendar(first: str, count: int) -> np.ndarray:
    days = np.arange(np.datetime64(first), np.datetime64(first) + 3 * count)
    return days[np.is_busday(days)][:count]


def data(kind: str, first: str, count: int, name: str = "XSHG", news: int = 0) -> Snapshot:
    made = SimpleNamespace(
        facts=SimpleNamespace(kind=kind), calendar=name, sessions=calendar(first, count), name="d"
    )
    made.news_begin = lambda share: news
    return made  # type: ignore[return-value]


def test_eleven_windows_as_printed():
    assert [w.code for w in paper_windows()] == [*(f"W{n}" for n in range(1, 11)), "long"]
    assert [w.sessions for w in paper_windows()] == [43, 43, 43, 43, 40, 44, 46, 50, 50, 43, 548]


def test_printed_lengths_are_those_of_the_shanghai_calendar():
    import exchange_calendars

    shanghai = exchange_calendars.get_calendar("XSHG")
    for window in paper_windows():
        assert len(shanghai.sessions_in_range(window.first, window.last)) == window.sessions


def test_real_a_shares_are_played_on_the_printed_dates():
    real = data("real", "2020-01-01", 1_700)
    by_code = {w.code: w for w in windows(real, "paper")}
    assert (by_code["W5"].first, by_code["W5"].last) == ("2024-10-21", "2024-12-13")
    assert not any(w.structural for w in by_code.values()) and by_code["W4"].label == "W4"
    sound = {w.code: w for w in windows(real, "sound")}
    assert {sound[f"W{n}"].sessions for n in range(1, 11)} == {43}
    assert sound["W8"].first == "2025-07-14" and sound["W8"].last < "2025-09-19"
    assert sound["long"].first == "2024-01-01" and sound["long"].last == "2026-04-10"


def test_other_data_gets_structural_windows_that_say_so():
    for given in (
        data("synthetic", "2023-01-01", 1_500),
        data("real", "2010-01-01", 750),
        data("real", "2020-01-01", 1_700, "XNYS"),
    ):
        found = windows(given, "sound")
        assert len(found) == 11 and all(w.structural and "structural" in w.label for w in found)
        shorts = found[:10]
        starts = [int(np.searchsorted(given.sessions, np.datetime64(w.first))) for w in shorts]
        assert {w.sessions for w in shorts} == {43} and starts == sorted(starts) and starts[0] == 252
        assert shorts[-1].last == str(given.sessions[-1]), "the ten are spread over all there is"
        assert found[-1].sessions == min(548, given.sessions.size - 252)


def test_structural_windows_have_the_printed_lengths_under_paper():
    found = windows(data("synthetic", "2021-01-01", 900), "paper")
    assert [w.sessions for w in found] == [w.sessions for w in paper_windows()]


def test_part_of_the_dates_is_enough_for_part_of_the_windows():
    found = {w.code: w for w in windows(data("real", "2020-01-01", 1_400), "paper")}
    assert not found["W6"].structural and found["W10"].structural and found["long"].structural


def test_data_too_short_for_a_window_has_none():
    assert windows(data("synthetic", "2021-01-01", 200), "sound") == ()
    assert [w.code for w in windows(data("synthetic", "2021-01-01", 270), "sound")] == ["long"]


def test_a_window_is_found_by_its_name():
    real = data("real", "2020-01-01", 1_700)
    assert find_window("ktdfin", "w4", real, "sound").code == "W4"
    with pytest.raises(UserError, match="did you mean W1"):
        find_window("ktdfin", "W11", real, "sound")


OURS = KtdfinSetting(
    data="real",
    market="ashare",
    index="CSI300",
    window="long",
    structural=False,
    convention="paper",
    mask="blinded",
    mode="open-research",
)


def test_published_figures_are_cited():
    every = published()
    assert every.second_hand and "Knowing to Doing" in every.source
    best = next(f for f in every.figure if f.who == "best language model")
    assert best.value == 0.8529 and best.where == "Table 4"
    assert {f.who: f.value for f in every.figure if f.measure == "total_return"} == {
        "CSI300 buy and hold": 0.3692,
        "best language model": 0.8529,
        "LightGBM": 0.6622,
        "SFM": 0.8658,
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"data": "synthetic"}, "synthetic"),
        ({"market": "us"}, "A-share"),
        ({"index": "IDX"}, "CSI300"),
        ({"window": "W4"}, "window long"),
        ({"structural": True}, "other dates"),
        ({"convention": "sound"}, "sound"),
        ({"mask": "bright"}, "mask blinded"),
        ({"mode": "memory-only"}, "mode open-research"),
    ],
)
def test_not_comparable_says_why(changes, why):
    figure = next(f for f in published().figure if f.who == "best language model")
    assert compare_with(figure, OURS) == ()
    (reason,) = compare_with(figure, msgspec.structs.replace(OURS, **changes))
    assert why in reason


def test_windows_of_real_data_with_news_lie_where_the_news_is():
    sessions = calendar("2006-09-01", 3000)
    found = windows(data("real", "2006-09-01", 3000, "XNYS", news=2400), "sound")
    assert found[0].first == str(sessions[2400]) and all(one.first >= found[0].first for one in found)
    assert windows(data("synthetic", "2006-09-01", 3000, "XNYS", news=2400), "sound")[0].first == str(
        sessions[252]
    )


def test_conventions_differ_in_the_volume_cap_that_the_paper_does_not_have():
    assert KTDFIN.protocol == KTDFIN_PAPER.protocol == "ktdfin" and KTDFIN.id != KTDFIN_PAPER.id
    capped, free = (venues.get(one.market.venue) for one in (KTDFIN, KTDFIN_PAPER))
    assert capped.participation.max_share == 0.10 and free.participation.max_share is None
    assert (capped.lots, capped.settlement) == (free.lots, free.settlement)
    assert capped.id == "ashare-v1" and free.era("2024-01-02") is None, (
        "the paper's rates are flat, ours have dates"
    )
