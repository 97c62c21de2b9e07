"""Corporate actions, index, fund and figures fit the prices beside them."""

import numpy as np
import pytest

from tradeassay_bench.core.time import DAY
from tradeassay_bench.data.source import action_known_at
from tradeassay_bench.data.synthetic.events import FIELDS


@pytest.mark.parametrize("name", ["us", "ashare"])
def test_a_split_shows_as_a_jump_with_its_action_beside_it(world, market, name):
    panel = world(name).panel
    seen = market(panel)
    splits = [action for action in panel.actions if action.kind == "split"]
    assert len(splits) >= 3
    for action in splits:
        row, column = seen.row[action.ex_date], seen.column[action.symbol]
        raw = panel.bars["close"][row, column] / panel.bars["close"][row - 1, column]
        assert raw * action.value == pytest.approx(1.0, abs=0.29)
        assert abs(seen.returns[row - 1, column]) < 0.29
        assert abs(raw - 1.0) > 0.05


@pytest.mark.parametrize("name", ["us", "ashare"])
def test_actions_are_known_before_they_happen(world, market, name):
    panel = world(name).panel
    seen = market(panel)
    assert sum(action.kind == "dividend" for action in panel.actions) > 50
    for action in panel.actions:
        row, column = seen.row[action.ex_date], seen.column[action.symbol]
        assert action.known_at <= action_known_at(int(panel.open_time[row]))
        assert np.isfinite(panel.bars["close"][row, column])
        if action.kind == "dividend":
            assert 0 < action.value < 0.1 * panel.bars["close"][row, column]
            assert round(action.value * 100) == pytest.approx(action.value * 100)


def test_a_dividend_leaves_the_price(world, market):
    panel = world("us").panel
    seen = market(panel)
    with_it, without = [], []
    for action in panel.actions:
        if action.kind == "dividend" and action.symbol != "IDXF":
            row, column = seen.row[action.ex_date], seen.column[action.symbol]
            gap = panel.bars["open"][row, column] - panel.bars["close"][row - 1, column]
            without.append(gap / panel.bars["close"][row - 1, column])
            with_it.append((gap + action.value) / panel.bars["close"][row - 1, column])
    error = np.std(with_it) / np.sqrt(len(with_it))
    assert abs(np.mean(with_it)) < 4 * error
    assert np.mean(without) < np.mean(with_it) - 0.003


@pytest.mark.parametrize("name", ["us", "ashare", "crypto"])
def test_the_index_changes_its_members(world, name):
    panel = world(name).panel
    first, last = str(panel.sessions[0]), str(panel.sessions[-1])
    assert all(entry.index == "IDX" for entry in panel.memberships)
    joined = [entry for entry in panel.memberships if entry.start > first]
    left = [entry for entry in panel.memberships if entry.end is not None]
    assert joined and left
    delisted = {
        entry.instrument.symbol: entry.delisted for entry in panel.listings if entry.delisted
    }
    for entry in panel.memberships:
        assert entry.symbol != "IDXF" and entry.start <= (entry.end or last)
        if entry.symbol in delisted:
            assert entry.end is not None and entry.end <= delisted[entry.symbol]
    counts = [
        sum(entry.start <= day <= (entry.end or last) for entry in panel.memberships)
        for day in panel.sessions.astype(str)[::50]
    ]
    size = {"us": 80, "ashare": 90, "crypto": 8}[name]
    assert max(counts) == size and min(counts) >= size - 2


@pytest.mark.parametrize("name", ["us", "ashare", "crypto"])
def test_the_fund_tracks_the_index_and_pays_its_dividends(world, market, name):
    panel = world(name).panel
    seen = market(panel)
    column = seen.column["IDXF"]
    assert panel.listings[column].instrument.kind == "index"
    levels = panel.indices["IDX"]
    gap = seen.returns[:, column] - np.diff(levels) / levels[:-1]
    assert np.abs(gap).max() < 0.004 and gap.std() < 3e-4
    paid = [action for action in panel.actions if action.symbol == "IDXF"]
    if name == "crypto":
        assert not paid and abs(gap.sum()) < 0.001
    else:
        assert len(paid) >= 8 and 0.01 < gap.sum() < 0.10


def test_the_index_is_the_market_value_of_its_members(world, market):
    panel = world("us").panel
    seen = market(panel)
    levels = panel.indices["IDX"]
    moves = np.diff(levels) / levels[:-1]
    day = panel.sessions.astype(str)
    for row in (1, 120, 400, 700):
        members = [
            seen.column[m.symbol]
            for m in panel.memberships
            if m.start <= day[row] <= (m.end or "9999")
        ]
        returns = seen.close[row, members] / seen.close[row - 1, members] - 1
        assert np.nanmin(returns) < moves[row - 1] < np.nanmax(returns)
        assert abs(np.nanmean(returns) - moves[row - 1]) < 0.01


@pytest.mark.parametrize("name", ["us", "ashare"])
def test_figures_are_known_late_and_fit_together(world, market, name):
    panel = world(name).panel
    seen = market(panel)
    by_report: dict[tuple[str, str], dict[str, float]] = {}
    known: dict[tuple[str, str], int] = {}
    for figure in panel.fundamentals:
        key = (figure.symbol, figure.period_end)
        ended = int(np.datetime64(figure.period_end).astype(np.int64)) * DAY
        assert 22 * DAY <= figure.known_at - ended <= 60 * DAY
        assert known.setdefault(key, figure.known_at) == figure.known_at
        assert figure.field not in by_report.setdefault(key, {})
        by_report[key][figure.field] = figure.value
    assert {field for values in by_report.values() for field in values} == set(FIELDS)
    for (symbol, _), values in by_report.items():
        row = int(np.searchsorted(panel.close_time, known[symbol, _], side="right")) - 1
        if row < 0:
            continue
        column = seen.column[symbol]
        closes = panel.bars["close"][: row + 1, column]
        price = closes[np.isfinite(closes)][-1]
        assert values["market_cap"] == pytest.approx(values["shares_outstanding"] * price, rel=0.02)
        assert ("pe" in values) == (values["eps_ttm"] > 0) or abs(values["eps_ttm"]) < 1e-3
        if "pe" in values and values["eps_ttm"] > 0.05:
            assert values["pe"] == pytest.approx(price / values["eps_ttm"], rel=0.02)
        assert values["net_income"] == pytest.approx(
            values["eps"] * values["shares_outstanding"], rel=0.02, abs=1e6
        )
        assert values["dividend_yield"] >= 0 and values["revenue"] > 0


def test_a_world_starts_with_a_known_past(world):
    panel = world("us").panel
    opened = int(panel.open_time[0])
    known = {
        f.symbol for f in panel.fundamentals if f.known_at <= opened and f.field == "market_cap"
    }
    first = str(panel.sessions[0])
    incumbents = {
        e.instrument.symbol
        for e in panel.listings
        if e.listed == first and e.instrument.kind == "stock"
    }
    assert incumbents <= known
    quarters = {f.period_end for f in panel.fundamentals if f.known_at <= opened}
    assert len(quarters) >= 4


def test_surprises_are_in_the_figures(world):
    made = world("us")
    eps = {(f.symbol, f.known_at): f.value for f in made.panel.fundamentals if f.field == "eps"}
    text = {item.id: item for item in made.panel.news}
    found = [
        (truth.symbol, text[truth.id].published_at) in eps
        for truth in made.key.facts.news
        if truth.theme == "earnings" and truth.kind != "duplicate"
    ]
    assert len(found) > 800 and all(found)
