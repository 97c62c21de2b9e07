"""A masked view answers as the true one does, under other names and dates, whatever the future
holds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay_bench.core.agent import Observation, Rules
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.events import Filled
from tradeassay_bench.core.time import DAY
from tradeassay_bench.core.view import (
    FIELDS,
    AccountState,
    Instrument,
    MarketView,
    NewsItem,
    Position,
)
from tradeassay_bench.data import Listing, Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.masking import ANCHOR, Mask, MaskConfig, MaskedView, Truth, find_leaks

ROW = 60
LEVELS = ("stock-blind", "date-blind", "blinded")


def texts(view: MarketView) -> list[Any]:
    """Everything in a view that is text."""
    names = view.symbols
    since = view.clock - 60 * DAY
    facts: list[Any] = [*names, *view.members("IDX"), repr(view)]
    for name in names:
        facts += [msgspec.to_builtins(view.instrument(name))]
        facts += [msgspec.to_builtins(figure) for figure in view.fundamentals(name)]
    facts += [msgspec.to_builtins(item) for item in view.news(since)]
    facts += [msgspec.to_builtins(action) for action in view.actions(since)]
    return facts


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("phase", ["pre_open", "open", "close"])
def test_every_number_is_the_true_one_under_the_alias(mask, market, level, phase):
    true, made = market.at(ROW, phase), mask(level)
    seen, gate = made.view(true), made.gate(true)
    assert isinstance(seen, MaskedView)
    assert len(seen.symbols) == len(true.symbols)
    for symbol in true.symbols:
        alias = gate.alias(symbol)
        here, there = seen.column(alias), true.column(symbol)
        assert seen.symbols[here] == alias
        for field in FIELDS:
            for adjust in ("none", "split", "total"):
                np.testing.assert_array_equal(
                    seen.bars(field, 20, adjust=adjust)[:, here],
                    true.bars(field, 20, adjust=adjust)[:, there],
                )
        assert seen.tradable()[here] == true.tradable()[there]
        opens, true_opens = seen.opens(), true.opens()
        assert (opens is None) == (true_opens is None)
        if opens is not None and true_opens is not None:
            assert opens[here] == true_opens[there]
        facts, true_facts = seen.instrument(alias), true.instrument(symbol)
        for fact in ("board", "sector", "lot", "kind"):
            assert getattr(facts, fact) == getattr(true_facts, fact)
        assert [f.value for f in seen.fundamentals(alias)] == [
            f.value for f in true.fundamentals(symbol)
        ]
    assert sorted(seen.members("IDX")) == sorted(map(gate.alias, true.members("IDX")))
    np.testing.assert_array_equal(seen.index_levels("IDX"), true.index_levels("IDX"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("hardened", [False, True])
def test_no_text_of_a_view_holds_anything_real(mask, market, level, hardened):
    made = mask(level, rebase_prices=hardened, scale_volumes=hardened, scrub_news=hardened)
    true = market.at(ROW, "open")
    truth = Truth.of(true, made.config, history=80, ahead=90)
    assert find_leaks(texts(true), truth), "the true view must leak, or the scanner is blind"
    assert find_leaks(texts(made.view(true)), truth) == []


@pytest.mark.slow_for("ashare", "crypto", "us")
@pytest.mark.parametrize("preset", ["us", "ashare", "crypto"])
def test_synthetic_worlds_leak_nothing(world, preset):
    snapshot = world(preset)
    first, last = str(snapshot.sessions[80]), str(snapshot.sessions[130])
    made = Mask(MaskConfig(), snapshot, first, last, np.random.default_rng(0))
    for row in (80, 120):
        true = snapshot.at(row, "close")
        seen = made.view(true)
        assert find_leaks(texts(seen), Truth.of(true, made.config, history=200, ahead=90)) == []
        if preset == "crypto":
            symbol = next(s for s in true.symbols if _has_minutes(true, s))
            times, bars = seen.minutes(made.gate(true).alias(symbol), 5)
            true_times, true_bars = true.minutes(symbol, 5)
            np.testing.assert_array_equal(times - seen.clock, true_times - true.clock)
            np.testing.assert_array_equal(bars["close"], true_bars["close"])


def _has_minutes(view: MarketView, symbol: str) -> bool:
    try:
        view.minutes(symbol, 1)
    except DataError:
        return False
    return True


def test_dates_are_counted_from_the_anchor(mask, market):
    true = market.at(ROW, "open")
    seen = mask("date-blind").view(true)
    days = seen.sessions()
    assert days[-1] == ANCHOR + 17 and np.all(np.diff(days).astype(int) == 1)
    assert (
        seen.clock // DAY == int((ANCHOR + 18).astype(int)) and seen.clock % DAY == true.clock % DAY
    )
    assert mask("stock-blind").view(true).sessions() is not None
    assert mask("stock-blind").view(true).clock == true.clock


def test_the_columns_have_another_order_and_late_names_follow(mask, market):
    early, late = market.at(ROW, "open"), market.at(ROW + 20, "open")
    made = mask()
    before, after = made.view(early).symbols, made.view(late).symbols
    assert after[: len(before)] == before and len(after) == len(before) + 1
    gate = made.gate(late)
    assert after[-1] == gate.alias("ZZNW")
    assert before != tuple(map(gate.alias, early.symbols))
    assert mask(seed=1).view(early).symbols != before


def test_asking_in_another_order_gives_the_same_mask(mask, market):
    one, other = (
        mask(rebase_prices=True, scale_volumes=True),
        mask(rebase_prices=True, scale_volumes=True),
    )
    views = [one.view(market.at(row, "open")) for row in (45, ROW, 80)]
    again = [other.view(market.at(row, "open")) for row in (80, ROW, 45)][::-1]
    for a, b in zip(views, again, strict=True):
        assert a.symbols == b.symbols
        np.testing.assert_array_equal(a.bars("close"), b.bars("close"))
        np.testing.assert_array_equal(a.bars("volume"), b.bars("volume"))
        assert a.news(0) == b.news(0)


def test_news_by_since_and_symbol(mask, market):
    true, made = market.at(ROW, "open"), mask()
    seen, gate = made.view(true), made.gate(true)
    items = seen.news(seen.clock - 60 * DAY)
    assert len(items) == 2 and items[0].published_at > items[1].published_at
    apple, moutai = gate.alias("AAPL"), gate.alias("600519.SH")
    first = items[1]
    assert first.symbols == (apple,)
    assert first.title == f"{apple} ({apple}) beats rival Notexco ([name])"
    english, chinese = (
        f"On Saturday, day_+13 {apple} said [period] sales rose.",
        f"day_+13，{moutai}（{moutai}）上涨。",
    )
    assert first.body == f"{english}\n{chinese}"
    assert first.url == "" and first.id.startswith("news_") and "aapl" not in first.id
    assert items[0].symbols == () and items[0].title == "[name] plans to list"
    assert items[0].body == "It all depends on the cost."
    assert seen.news(first.published_at) == items[:1]
    assert seen.news(first.published_at - 1) == items
    assert seen.news(0, symbols=(apple,)) == (first,)
    with pytest.raises(FutureDataError, match="day_"):
        seen.news(seen.clock + DAY)
    thorough = mask(scrub_news=True).view(true).news(0)[-1]
    assert (first.source, thorough.source) == (
        "The Wire",
        "",
    ) and "On [weekday], day_+13" in thorough.body


def test_errors_are_masked_and_keep_their_kind(mask, market):
    true, made = market.at(ROW, "open"), mask()
    seen, gate = made.view(true), made.gate(true)
    late = mask().gate(market.at(ROW + 20, "open")).alias("ZZNW")
    asks: list[tuple[Callable[[], object], type[TradeassayError]]] = [
        (lambda: seen.column("AAPL"), DataError),
        (lambda: seen.column(late), DataError),
        (lambda: seen.instrument("AAPL"), DataError),
        (lambda: seen.fundamentals("Apple"), DataError),
        (lambda: seen.minutes(gate.alias("AAPL"), 3), DataError),
        (lambda: seen.members("NOPE"), DataError),
        (lambda: seen.bars("close", -1), UserError),
        (lambda: seen.actions(seen.clock + 1), FutureDataError),
    ]
    for ask, kind in asks:
        with pytest.raises(kind) as caught:
            ask()
        assert find_leaks(str(caught.value), Truth.of(true, made.config, ahead=90)) == []
        assert caught.value.__cause__ is None


def test_arrays_are_read_only(mask, market):
    for hardened in (False, True):
        seen = mask(rebase_prices=hardened, scale_volumes=hardened).view(market.at(ROW, "open"))
        arrays = (
            seen.bars("close"),
            seen.opens(),
            seen.tradable(),
            seen.sessions(),
            seen.index_levels("IDX"),
        )
        assert all(array is not None and not array.flags.writeable for array in arrays)


def observed(market: Snapshot) -> Observation:
    view = market.at(ROW, "open")
    universe = ("600519.SH", "A", "AAPL", "D")
    position = Position(symbol="AAPL", quantity=300.0, sellable=200.0, cost=10.0, mark=12.0, held=3)
    return Observation(
        step=18,
        session="2024-01-26",
        time=view.clock,
        universe=universe,
        columns=np.array([view.column(symbol) for symbol in universe]),
        view=view,
        account=AccountState(cash=100.0, nav=3700.0, initial=4000.0, positions={"AAPL": position}),
        rules=Rules(venue="us-v1", currency="USD", long_only=True, lot=1, t_plus_1=False),
        since_last=(
            Filled(
                order_id="0",
                symbol="AAPL",
                quantity=300,
                price=10,
                reference=10,
                fee=0,
                tax=0,
                cash=-3000,
            ),
        ),
        sessions_left=40,
    )


@pytest.mark.parametrize("hardened", [False, True])
def test_an_observation(mask, market, hardened):
    made, true = mask(rebase_prices=hardened), observed(market)
    seen, gate = made.observation(true), made.gate(true.view)
    assert seen.session == "day_+18" and seen.time == seen.view.clock
    assert seen.universe == tuple(sorted(map(gate.alias, true.universe)))
    assert [seen.view.symbols[column] for column in seen.columns] == list(seen.universe)
    apple = gate.alias("AAPL")
    position = seen.account.positions[apple]
    assert position.symbol == apple
    assert position.value == pytest.approx(3600.0) and seen.account.weight(apple) == pytest.approx(
        3600 / 3700
    )
    fill = seen.since_last[0]
    assert (
        isinstance(fill, Filled)
        and fill.quantity * fill.price == pytest.approx(3000.0)
        and fill.cash == -3000
    )
    factor = made.scales.price(true.view, "AAPL")
    assert (factor == 1.0) == (not hardened)
    assert position.mark == pytest.approx(12.0 * factor) and position.sellable == pytest.approx(
        200.0 / factor
    )
    shown = [
        *map(msgspec.to_builtins, (seen.account, *seen.since_last)),
        seen.session,
        *seen.universe,
    ]
    assert find_leaks(shown, Truth.of(true.view, made.config)) == []


def test_rebased_prices(mask, market):
    made = mask(rebase_prices=True, scale_volumes=True)
    start, true = market.at(42, "pre_open"), market.at(ROW, "open")
    assert str(market.sessions[42]) == "2024-01-02"
    shown = made.view(start).bars("close", 1, adjust="none")[0]
    assert np.all((shown >= 20) & (shown <= 200))
    seen, gate = made.view(true), made.gate(true)
    for symbol in true.symbols:
        alias = gate.alias(symbol)
        here, there = seen.column(alias), true.column(symbol)
        np.testing.assert_allclose(
            np.diff(np.log(seen.bars("close")[:, here])),
            np.diff(np.log(true.bars("close")[:, there])),
            atol=1e-12,
        )
        ratio = seen.bars("amount")[:, here] / true.bars("amount")[:, there]
        turnover = (
            made.view(start).bars("amount", 20)[:, here].mean() if symbol in start.symbols else 1e8
        )
        assert np.ptp(ratio) < 1e-9 and 1e7 <= turnover <= 1e9
        value, true_value = (v.bars("volume", 1) * v.bars("close", 1) for v in (seen, true))
        np.testing.assert_allclose(value[:, here], true_value[:, there] * ratio[0])
        assert seen.instrument(alias).lot == seen.instrument(alias).tick
    eps = {f.field: f.value for f in seen.fundamentals(gate.alias("AAPL"))}
    assert (
        eps["eps"] == pytest.approx(2.1 * made.scales.price(true, "AAPL"))
        and eps["market_cap"] == 3e12
    )
    levels = seen.index_levels("IDX") / true.index_levels("IDX")
    assert np.ptp(levels) < 1e-12 and levels[0] != 1.0
    opens = made.view(start).opens() or shown
    assert np.corrcoef(opens, market.at(42, "pre_open").bars("close", 1)[0])[0, 1] < 0.9


def test_a_later_listing_is_rebased_to_its_first_open(mask, market):
    made = mask(rebase_prices=True)
    row = int(np.searchsorted(market.sessions, np.datetime64("2024-02-01")))
    before, opened = market.at(row, "pre_open"), market.at(row, "open")
    assert np.isnan(made.view(before).bars("close", 1)[0, -1])
    opens = made.view(opened).opens()
    assert opens is not None and 20 <= opens[-1] <= 200
    later = made.view(market.at(row + 5, "close"))
    assert later.bars("open", 6, adjust="none")[0, -1] == opens[-1]


def test_an_index_keeps_its_name_and_its_fund_does_not(world):
    snapshot = world("us")
    made = Mask(MaskConfig(), snapshot, str(snapshot.sessions[80]), None, np.random.default_rng(0))
    true = snapshot.at(90, "open")
    gate = made.gate(true)
    fund = gate.alias("IDXF")
    assert gate.outgoing("IDX fell; IDXF (IDX index fund) too") == f"IDX fell; {fund} ({fund}) too"
    assert gate.outgoing({"index": "IDX", "symbol": "IDXF"}) == {"index": "IDX", "symbol": fund}
    assert find_leaks("IDX fell", Truth.of(true, made.config)) == []
    assert made.view(true).index_levels("IDX").size == 90


# -- the future ------------------------------------------------------------------------------------


def rewritten(panel: Panel, row: int, rng: np.random.Generator) -> Panel:
    """The same past up to the close of ``row``; other prices, listings and news after it."""
    today = str(panel.sessions[row])
    clock = int(panel.close_time[row])
    listings = [entry for entry in panel.listings if entry.listed <= today]
    known = len(listings)
    later = str(panel.sessions[row + 2])
    # A name that already stands in the texts of the past is listed in this future, and not in the other.
    listings += [
        Listing(
            instrument=Instrument(symbol="NOTX", name="Notexco Rival Corporation"), listed=later
        ),
        Listing(instrument=Instrument(symbol="WIRE", name="The Wire Inc."), listed=later),
    ]
    shape = (panel.sessions.size, len(listings))
    bars = {}
    for name in FIELDS:
        values = rng.uniform(1, 100, shape)
        values[: row + 1, :known] = panel.bars[name][: row + 1, :known]
        values[: row + 2, known:] = np.nan
        bars[name] = values
    levels = rng.uniform(1, 100, shape[0])
    levels[: row + 1] = panel.indices["IDX"][: row + 1]
    return replace(
        panel,
        listings=tuple(listings),
        bars=bars,
        suspended=np.zeros(shape, dtype=bool),
        indices={"IDX": levels},
        actions=tuple(action for action in panel.actions if action.known_at <= clock),
        fundamentals=tuple(figure for figure in panel.fundamentals if figure.known_at <= clock),
        news=(
            *(item for item in panel.news if item.published_at <= clock),
            NewsItem(id="new", published_at=clock + DAY, symbols=("NOTX",), title="new"),
        ),
    )


def told(snapshot: Snapshot, config: MaskConfig, row: int, phase: Any) -> list[object]:
    made = Mask(config, snapshot, "2024-01-02", "2024-03-28", np.random.default_rng(7))
    true = snapshot.at(row, phase)
    view, gate = made.view(true), made.gate(true)
    found: list[object] = [view.clock, view.symbols, view.sessions().tobytes(), view.members("IDX")]
    found += [
        view.bars(name, adjust=a).tobytes() for name in FIELDS for a in ("none", "split", "total")
    ]
    found += [view.tradable().tobytes(), view.index_levels("IDX").tobytes()]
    opens = view.opens()
    found.append(None if opens is None else opens.tobytes())
    for name in view.symbols:
        found += [
            msgspec.json.encode(view.instrument(name)),
            msgspec.json.encode(view.fundamentals(name)),
        ]
    found += [
        msgspec.json.encode(view.news(view.clock - 90 * DAY)),
        msgspec.json.encode(view.actions(0)),
    ]
    found += [
        gate.outgoing(
            "Notexco (NOTX) and ZZNW met Apple on 2024-02-01, 2024-06-03 and in 2025; The Wire "
            "said so"
        ),
        gate.incoming({"note": "Notexco day_+30 asset_0001"}),
    ]
    return found


@pytest.mark.parametrize("phase", ["pre_open", "open", "close"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("hardened", [False, True])
def test_the_future_does_not_show_through_a_mask(panel, market, tmp_path, phase, level, hardened):
    config = MaskConfig(
        level=level, rebase_prices=hardened, scale_volumes=hardened, scrub_news=hardened
    )
    write_snapshot(
        rewritten(panel, ROW, np.random.default_rng(1)), tmp_path / "other", allow_faults=True
    )
    other = open_snapshot(tmp_path / "other")
    assert told(market, config, ROW, phase) == told(other, config, ROW, phase)
    assert told(market, config, ROW + 3, phase) != told(other, config, ROW + 3, phase)
