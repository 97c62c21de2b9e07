"""The benchmarks, their windows, and the published figures beside them."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks import benchmarks, find_window, protocols
from tradeassay_bench.benchmarks.ktdfin import (
    KTDFIN,
    KTDFIN_PAPER,
    Ktdfin,
    KtdfinSetting,
    compare_with,
    paper_windows,
    published,
    windows,
)
from tradeassay_bench.data import Snapshot, load_dataset

IDS = tuple(f"ktdfin{name}-v1" for name in ("", "-paper", "-us", "-us-real"))


@pytest.mark.parametrize("name", IDS)
def test_registered_with_a_protocol_that_takes_their_params(name, tmp_path_factory):
    benchmark = benchmarks.get(name)
    market, kind = benchmark.market, protocols.get(benchmark.protocol)
    config = msgspec.convert(benchmark.protocol_params, kind.Config)
    assert (
        kind is Ktdfin
        and kind(config).config is config
        and config.convention == benchmark.convention
    )
    assert (config.max_weight, config.max_positions) == (market.max_weight, market.max_positions)
    assert (market.cash, market.decide, market.fill) == (1_000_000, "pre_open", "open")
    if benchmark.dataset.startswith("synthetic/"):  # a year of history lies before the first day
        snapshot = load_dataset(benchmark.dataset, tmp_path_factory.getbasetemp() / "ktdfin-home")
        rows = snapshot.rows(market.first, market.last)
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


def test_eleven_windows_as_printed_have_the_lengths_of_the_shanghai_calendar():
    import exchange_calendars

    assert [w.code for w in paper_windows()] == [*(f"W{n}" for n in range(1, 11)), "long"]
    assert [w.sessions for w in paper_windows()] == [43, 43, 43, 43, 40, 44, 46, 50, 50, 43, 548]
    shanghai = exchange_calendars.get_calendar("XSHG")
    for window in paper_windows():
        assert len(shanghai.sessions_in_range(window.first, window.last)) == window.sessions


def test_real_a_shares_are_played_on_the_printed_dates():
    real = data("real", "2020-01-01", 1_700)
    by_code = {w.code: w for w in windows(real, "paper")}
    assert (by_code["W5"].first, by_code["W5"].last) == ("2024-10-21", "2024-12-13")
    assert not any(w.structural for w in by_code.values()) and by_code["W4"].label == "W4"
    corrected = {w.code: w for w in windows(real, "corrected")}
    assert {corrected[f"W{n}"].sessions for n in range(1, 11)} == {43}
    assert corrected["W8"].first == "2025-07-14" and corrected["W8"].last < "2025-09-19"
    assert corrected["long"].first == "2024-01-01" and corrected["long"].last == "2026-04-10"
    # Part of the dates is enough for part of the windows.
    found = {w.code: w for w in windows(data("real", "2020-01-01", 1_400), "paper")}
    assert not found["W6"].structural and found["W10"].structural and found["long"].structural
    assert find_window("ktdfin", "w4", real, "corrected").code == "W4"
    with pytest.raises(UserError, match="did you mean W1"):
        find_window("ktdfin", "W11", real, "corrected")


def test_other_data_gets_structural_windows_that_say_so():
    for given in (
        data("synthetic", "2023-01-01", 1_500),
        data("real", "2010-01-01", 750),
        data("real", "2020-01-01", 1_700, "XNYS"),
    ):
        found = windows(given, "corrected")
        assert len(found) == 11 and all(w.structural and "structural" in w.label for w in found)
        shorts = found[:10]
        starts = [int(np.searchsorted(given.sessions, np.datetime64(w.first))) for w in shorts]
        assert (
            {w.sessions for w in shorts} == {43} and starts == sorted(starts) and starts[0] == 252
        )
        assert shorts[-1].last == str(given.sessions[-1]), "the ten are spread over all there is"
        assert found[-1].sessions == min(548, given.sessions.size - 252)


def test_structural_windows_have_the_printed_lengths_under_paper_and_room_or_are_left_out():
    found = windows(data("synthetic", "2021-01-01", 900), "paper")
    assert [w.sessions for w in found] == [w.sessions for w in paper_windows()]
    assert windows(data("synthetic", "2021-01-01", 200), "corrected") == ()
    assert [w.code for w in windows(data("synthetic", "2021-01-01", 270), "corrected")] == ["long"]
    # On real data they lie where the news is.
    real, made = (
        windows(data(kind, "2006-09-01", 3000, "XNYS", 2400), "corrected")
        for kind in ("real", "synthetic")
    )
    sessions = calendar("2006-09-01", 3000)
    assert real[0].first == str(sessions[2400]) and all(one.first >= real[0].first for one in real)
    assert made[0].first == str(sessions[252])


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


def test_published_figures_are_cited_and_it_is_said_why_ours_are_not_comparable():
    every = published()
    assert every.second_hand and "Knowing to Doing" in every.source
    assert {f.who: f.value for f in every.figure if f.measure == "total_return"} == {
        "CSI300 buy and hold": 0.3692,
        "best language model": 0.8529,
        "LightGBM": 0.6622,
        "SFM": 0.8658,
    }
    figure = next(f for f in every.figure if f.who == "best language model")
    assert figure.where == "Table 4" and compare_with(figure, OURS) == ()
    for changes, why in (
        ({"data": "synthetic"}, "synthetic"),
        ({"market": "us"}, "A-share"),
        ({"index": "IDX"}, "CSI300"),
        ({"window": "W4"}, "window long"),
        ({"structural": True}, "other dates"),
        ({"convention": "corrected"}, "corrected"),
        ({"mask": "bright"}, "mask blinded"),
        ({"mode": "memory-only"}, "mode open-research"),
    ):
        (reason,) = compare_with(figure, msgspec.structs.replace(OURS, **changes))
        assert why in reason


def test_conventions_differ_in_the_volume_cap_that_the_paper_does_not_have():
    assert KTDFIN.protocol == KTDFIN_PAPER.protocol == "ktdfin" and KTDFIN.id != KTDFIN_PAPER.id
    capped, free = (venues.get(one.market.venue) for one in (KTDFIN, KTDFIN_PAPER))
    assert capped.participation.max_share == 0.10 and free.participation.max_share is None
    assert (capped.lots, capped.settlement) == (free.lots, free.settlement)
    assert capped.id == "ashare-v1" and free.era("2024-01-02") is None, (
        "the paper's rates are flat, ours have dates"
    )
