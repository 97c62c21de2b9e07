"""Against the index: an account collects dividends, so the index must have them too."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
import runs_world as world

from tradeassay_bench.core.view import CorporateAction, Instrument
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.data.synthetic.universe import ActionModel
from tradeassay_bench.runs import AgentSpec, RunSpec, run
from tradeassay_bench.runs.score import PRICE_INDEX, index_levels


def stored(panel, folder):
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def without_fund(panel):
    """The same market, whose fund is an ordinary stock."""
    listings = tuple(
        msgspec.structs.replace(
            one, instrument=msgspec.structs.replace(one.instrument, kind="stock")
        )
        for one in panel.listings
    )
    return replace(panel, listings=listings)


def days(panel, first=10, last=60):
    return tuple(str(day) for day in panel.sessions[first:last])


def held_index(market, home, *, fund=True):
    """Two years of a small world whose names pay so much that nobody can overlook it."""
    rich = ActionModel(payers=1.0, dividend_yield=0.05)
    panel = generate(
        preset(market, seed=7, names=16, index_members=12, fundamentals=False, actions=rich)
    ).panel
    panel = replace(panel if fund else without_fund(panel), name=f"small-{market}")
    write_snapshot(panel, home / "store" / panel.name, allow_faults=True)
    spec = RunSpec(
        name="held",
        benchmarks=(f"daily-{market}-v1",),
        datasets={f"daily-{market}-v1": (panel.name,)},
        agents=(AgentSpec(name="index-hold" if fund else "equal-weight"),),
        seeds=(0,),
        bootstrap=world.BOOTSTRAP,
    )
    return run(spec, home / "run", executor="inline", home=home)


@pytest.mark.slow_for("us")
@pytest.mark.parametrize("market", ["us", "ashare"])
def test_holding_the_index_does_not_beat_the_index(market, tmp_path):
    held = held_index(market, tmp_path)
    (episode,) = [one for one in held.scores.episodes if one.agent == "index-hold"]
    excess, ratio = episode.measures["excess_return"], episode.measures["information_ratio"]
    snapshot, sessions = held.snapshot(episode.key), held.series(episode.key).sessions
    rows = snapshot.rows(sessions[0], sessions[-1])
    levels = snapshot.at(rows[-1], "close").index_levels("IDX", len(rows) + 1)
    total = held.series(episode.key).index
    dividends = total[-1] / total[0] - levels[-1] / levels[0]
    assert dividends > 0.05
    assert excess.value is not None and ratio.value is not None
    # What remains is costs, dividends that lie idle, and the night before the first fill.
    assert abs(excess.value) < dividends / 5
    assert ratio.low is not None and ratio.high is not None
    assert ratio.low < 0.0 < ratio.high
    assert excess.note is None or PRICE_INDEX not in excess.note
    assert PRICE_INDEX not in str(ratio.note)


def test_a_price_index_says_so(tmp_path):
    held = held_index("us", tmp_path, fund=False)
    (episode,) = held.scores.episodes
    assert PRICE_INDEX in str(episode.measures["excess_return"].note)
    assert str(episode.measures["information_ratio"].note).endswith(f"; {PRICE_INDEX}")
    assert PRICE_INDEX not in str(episode.measures["sharpe"].note)
    (row,) = held.scores.agents
    assert PRICE_INDEX in str(row.measures["information_ratio"].median.note)


def test_the_funds_dividends_are_put_back_by_hand(tmp_path):
    panel = world.tiny_panel()
    day, column = panel.sessions, panel.symbols.index("IDXF")
    close = panel.bars["close"][:, column]
    paid = CorporateAction(
        symbol="IDXF",
        kind="dividend",
        ex_date=str(day[40]),
        known_at=int(panel.open_time[38]),
        value=1.5,
    )
    found = index_levels(
        stored(replace(panel, actions=(*panel.actions, paid)), tmp_path / "s"), "IDX", days(panel)
    )
    assert (found.note, found.levels.shape) == (None, (51,))
    assert found.levels[31:] / found.levels[30] == pytest.approx(close[40:] / (close[39] - 1.5))
    assert found.levels[:31] / found.levels[0] == pytest.approx(close[9:40] / close[9])


def test_a_fund_with_a_gap_gives_way_to_the_index(tmp_path):
    panel = world.tiny_panel()
    column = panel.symbols.index("IDXF")
    bars = {name: values.copy() for name, values in panel.bars.items()}
    suspended = panel.suspended.copy()
    suspended[20, column] = True
    for values in bars.values():
        values[20, column] = np.nan
    snapshot = stored(replace(panel, bars=bars, suspended=suspended), tmp_path / "s")
    found = index_levels(snapshot, "IDX", days(panel))
    assert found.note == PRICE_INDEX
    assert found.levels.tolist() == panel.indices["IDX"][9:].tolist()
    after = index_levels(snapshot, "IDX", days(panel, 25))
    assert after.note is None
    assert after.levels.tolist() == panel.bars["close"][24:, column].tolist()


def test_without_dividends_a_price_index_is_a_fair_mark(tmp_path):
    plain = replace(without_fund(world.tiny_panel()), actions=())
    assert index_levels(stored(plain, tmp_path / "none"), "IDX", days(plain)).note is None
    inside = replace(plain, facts=msgspec.structs.replace(plain.facts, adjusted="total"))
    assert index_levels(stored(inside, tmp_path / "inside"), "IDX", days(plain)).note == PRICE_INDEX


def test_nothing_to_compare_with(tmp_path):
    panel = world.tiny_panel()
    snapshot = stored(panel, tmp_path / "s")
    for index, sessions in (
        (None, days(panel)),
        ("IDX", ()),
        ("SPX", days(panel)),
        ("IDX", days(panel, 0)),
    ):
        found = index_levels(snapshot, index, sessions)
        assert found.levels is None and found.note is None


def test_which_fund_tracks_which_index():
    assert Instrument(symbol="SPY", kind="index", root="^GSPC").tracks("^GSPC")
    tracks = {
        name: Instrument(symbol=name, kind="index").tracks("IDX")
        for name in ("IDXF", "IDX", "OTHERF")
    }
    assert tracks == {"IDXF": True, "IDX": True, "OTHERF": False}
    assert not Instrument(symbol="IDXF").tracks("IDX")
