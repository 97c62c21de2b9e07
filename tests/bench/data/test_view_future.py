"""Rewrite everything after t at random: everything readable at t stays identical to the byte."""

import tempfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace as replaced

from tradeassay.core.errors import TradeassayError
from tradeassay_bench.core.time import DAY, HOUR
from tradeassay_bench.core.view import (
    FIELDS,
    CorporateAction,
    Fundamental,
    Instrument,
    MarketView,
    NewsItem,
)
from tradeassay_bench.data.snapshot import AsOfView, Snapshot, open_snapshot
from tradeassay_bench.data.source import Listing, Membership, MinutePanel, Panel, action_known_at
from tradeassay_bench.data.store.write import write_snapshot

PHASES = ("pre_open", "open", "close")


def frozen(value: Any) -> Any:
    """Turn an answer into something that compares to the byte."""
    if isinstance(value, np.ndarray):
        assert not value.flags.writeable, "every array of a view is read-only"
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, AsOfView):
        return ("view", value.clock, value.row, value.phase, value.symbols)
    if is_dataclass(value) and not isinstance(value, type):
        return tuple((f.name, frozen(getattr(value, f.name))) for f in fields(value))
    if isinstance(value, dict):
        return tuple((key, frozen(item)) for key, item in value.items())
    if isinstance(value, tuple):
        return tuple(frozen(item) for item in value)
    if isinstance(value, msgspec.Struct):
        return msgspec.json.encode(value)
    return value


def tried(ask: Callable[[], Any]) -> Any:
    try:
        return frozen(ask())
    except TradeassayError as error:
        return (type(error).__name__, str(error))


NAMES = ("S0", "S1", "S2", "S3", "S4", "S5", "NEW0", "NEW1", "nobody")
INDICES = ("IDX", "LATER", "nothing")
LOOKBACKS = (None, 0, 1, 3, 1000)


def questions(view: AsOfView) -> dict[str, list[Callable[[], Any]]]:
    """Every public name of a view, with the ways in which it is asked."""
    clock = view.clock
    sinces = (0, clock - 3 * DAY, clock, clock + 1, clock + DAY)
    return {
        "clock": [lambda: view.clock],
        "row": [lambda: view.row],
        "phase": [lambda: view.phase],
        "session": [lambda: view.session],
        "symbols": [lambda: view.symbols],
        "instruments": [lambda: view.instruments],
        "tradable": [view.tradable],
        "delisted_now": [view.delisted_now],
        "opens": [view.opens],
        "session_bars": [view.session_bars],
        "todays_actions": [view.todays_actions],
        "column": [lambda n=n: view.column(n) for n in NAMES],
        "instrument": [lambda n=n: view.instrument(n) for n in NAMES],
        "fundamentals": [lambda n=n: view.fundamentals(n) for n in NAMES],
        "minutes": [lambda n=n, k=k: view.minutes(n, k) for n in NAMES for k in (0, 2, 1000)],
        "sessions": [lambda k=k: view.sessions(k) for k in LOOKBACKS],
        "bars": [
            lambda f=f, k=k, a=a: view.bars(f, k, adjust=a)
            for f in (*FIELDS, "vwap")
            for k in LOOKBACKS
            for a in ("none", "split", "total")
        ],
        "members": [lambda i=i: view.members(i) for i in INDICES],
        "index_name": [lambda i=i: view.index_name(i) for i in INDICES],
        "index_levels": [
            lambda i=i, k=k: view.index_levels(i, k) for i in INDICES for k in LOOKBACKS
        ],
        "actions": [lambda s=s: view.actions(s) for s in sinces],
        "news": [
            lambda s=s, n=n, k=k: view.news(s, symbols=n, limit=k)
            for s in sinces
            for n in (None, ("S0",), ("S1", "S3", "NEW0"), ())
            for k in (None, 0, 2)
        ],
    }


def everything(view: AsOfView) -> dict[str, list[Any]]:
    return {name: [tried(ask) for ask in asks] for name, asks in questions(view).items()}


def test_no_public_name_of_a_view_is_forgotten(snapshot):
    asked = set(questions(snapshot.at(3, "close")))
    public = {name for name in dir(AsOfView) if not name.startswith("_")}
    assert public == asked
    assert {name for name in vars(MarketView) if not name.startswith("_")} <= public


def after(panel: Panel, row: int, phase: str, clock: int, rng: np.random.Generator) -> Panel:
    """The same past, another future."""
    done = row + 1 if phase == "close" else row
    count = np.arange(int(rng.integers(row + 1, panel.sessions.size + 6)))
    around_the_clock = panel.facts.calendar == "24/7"
    days = (
        panel.sessions[0] + count
        if around_the_clock
        else np.busday_offset(panel.sessions[0], count)
    )
    opens = days.astype(np.int64) * DAY + int(panel.open_time[0] % DAY)
    closes = opens + int(panel.close_time[0] - panel.open_time[0])
    today = str(days[row])
    later = [str(day) for day in (*days[row + 1 :], days[-1] + 1, days[-1] + 30)]

    def future() -> int:
        return clock + 1 + int(rng.integers(0, 20 * DAY))

    def end(known: str | None) -> str | None:
        if known is not None and known < today:
            return known
        return None if rng.random() < 0.5 else str(rng.choice([today, *later]))

    listings = [
        replaced(one, delisted=end(one.delisted)) for one in panel.listings if one.listed <= today
    ]
    known = len(listings)
    fresh = [
        Listing(instrument=Instrument(symbol=s), listed=str(rng.choice(later)))
        for s in ("NEW0", "NEW1")
    ]
    fresh += [entry for entry in panel.listings if entry.listed > today and rng.random() < 0.5]
    listings += sorted(
        fresh[: int(rng.integers(0, 4))], key=lambda e: (e.listed, e.instrument.symbol)
    )
    symbols = [entry.instrument.symbol for entry in listings]

    shape = (count.size, len(listings))
    bars = {}
    for name in FIELDS:
        bars[name] = np.where(rng.random(shape) < 0.2, np.nan, rng.uniform(1, 100, shape))
        keep = row + 1 if phase == "open" and name == "open" else done
        bars[name][:keep, :known] = panel.bars[name][:keep, :known]
        bars[name][:keep, known:] = np.nan
    suspended = rng.random(shape) < 0.3
    suspended[:done, :known] = panel.suspended[:done, :known]
    if phase == "open":
        # Whether a name without an opening price is suspended is known at the open.
        told = np.isnan(bars["open"][row, :known])
        suspended[row, :known][told] = panel.suspended[row, :known][told]
    levels = rng.uniform(1, 1000, count.size)
    levels[:done] = panel.indices["IDX"][:done]

    assert panel.minutes is not None
    past, extra = panel.minutes.close_time <= clock, int(rng.integers(0, 9))
    times = np.concatenate([panel.minutes.close_time[past], clock + 1 + np.arange(extra) * HOUR])
    minutes = {
        name: np.concatenate([values[past], rng.uniform(1, 2, (extra, values.shape[1]))])
        for name, values in panel.minutes.bars.items()
    }
    actions = {(a.symbol, a.kind, a.ex_date): a for a in panel.actions if a.known_at <= clock}
    ahead = [(str(day), action_known_at(int(at))) for day, at in zip(days, opens, strict=True)]
    ahead = [(day, told_at) for day, told_at in ahead if told_at > clock]
    for _ in range(int(rng.integers(0, 6)) if ahead else 0):
        day, told_at = ahead[int(rng.integers(len(ahead)))]
        kind, symbol = str(rng.choice(["split", "dividend"])), str(rng.choice(symbols))
        one = CorporateAction(symbol=symbol, kind=kind, ex_date=day, known_at=told_at, value=0.3)  # type: ignore[arg-type]
        actions.setdefault((symbol, kind, day), one)
    spells = {
        (m.index, m.symbol): replaced(m, end=end(m.end))
        for m in panel.memberships
        if m.start <= today
    }
    for _ in range(int(rng.integers(0, 4))):
        index = str(rng.choice(["IDX", "LATER"]))
        symbol = str(rng.choice([s for s in symbols if s not in ("S0", "S2", "S3")]))
        spells.setdefault(
            (index, symbol), Membership(index=index, symbol=symbol, start=str(rng.choice(later)))
        )
    figures = [f for f in panel.fundamentals if f.known_at <= clock]
    for i in range(int(rng.integers(0, 5))):
        whose = {"symbol": str(rng.choice(symbols)), "field": "x", "period_end": "2023-01-01"}
        figures.append(Fundamental(**whose, known_at=future(), value=i))
    news = [n for n in panel.news if n.published_at <= clock]
    for i in range(int(rng.integers(0, 9))):
        about = tuple(rng.choice(symbols, 2))
        news.append(
            NewsItem(id=f"later{i}", published_at=future(), symbols=about, title="what will be")
        )
    return replace(
        panel,
        listings=tuple(listings),
        sessions=days,
        open_time=opens,
        close_time=closes,
        bars=bars,
        suspended=suspended,
        indices={"IDX": levels},
        minutes=MinutePanel(panel.minutes.symbols, times, minutes),
        actions=tuple(actions.values()),
        memberships=tuple(spells.values()),
        fundamentals=tuple(figures),
        news=tuple(news[i] for i in rng.permutation(len(news))),
    )


def compare(panel: Panel, seed: int, row: int, phase: Any) -> None:
    with tempfile.TemporaryDirectory() as temporary:

        def stored(panel: Panel, name: str) -> Snapshot:
            write_snapshot(panel, Path(temporary) / name, allow_faults=True)
            return open_snapshot(Path(temporary) / name)

        true = stored(panel, "true")
        view = true.at(row, phase)
        other = stored(after(panel, row, phase, view.clock, np.random.default_rng(seed)), "other")
        told, retold = everything(view), everything(other.at(row, phase))
        for name in told:
            assert told[name] == retold[name], name
        if true.facts.calendar != "24/7":
            assert everything(true.as_of(view.clock)) == everything(other.as_of(view.clock)) == told


@settings(max_examples=settings.default.max_examples // 2)
@given(seed=st.integers(0, 10_000), row=st.integers(0, 15), phase=st.sampled_from(PHASES))
def test_rewriting_the_future_changes_nothing_readable(make_panel, seed, row, phase):
    compare(make_panel(seed), seed, row, phase)


@pytest.mark.parametrize("phase", PHASES)
def test_nothing_leaks_where_sessions_touch(make_panel, phase):
    panel = make_panel(5)
    days = panel.sessions[0] + np.arange(panel.sessions.size)
    opens = days.astype(np.int64) * DAY
    actions = [
        replaced(a, known_at=int(opens[1]), ex_date=str(days[5 + i]))
        for i, a in enumerate(panel.actions)
    ]
    touching = replace(
        panel,
        facts=replaced(panel.facts, calendar="24/7"),
        sessions=days,
        open_time=opens,
        close_time=opens + DAY,
        actions=tuple(actions),
        minutes=replace(
            panel.minutes, close_time=(opens[:, None] + np.arange(1, 4) * HOUR).ravel()
        ),
    )
    for row in (0, 4, 6, 15):
        compare(touching, row, row, phase)
