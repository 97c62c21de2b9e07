"""Standings and behaviour on lines whose answers are known."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import insert

from tradeassay.metrics import BootstrapConfig
from tradeassay_arena import standings as st
from tradeassay_arena.season import Asset, Entry, Season
from tradeassay_arena.state.tables import corrections

FAST = st.BoardConfig(bootstrap=BootstrapConfig(draws=200))
EVERY = tuple(str(np.datetime64("2022-01-03") + n) for n in range(240))
DAYS = EVERY[:60]


def line(
    entry: str, asset: str, earned, positions=None, moved=None, trailing=None
) -> st.EntrySeries:
    n = len(earned)
    held = (
        np.ones(n, dtype=np.int64) if positions is None else np.asarray(positions, dtype=np.int64)
    )
    return st.EntrySeries(
        entry=entry,
        asset=asset,
        kind="crypto",
        sessions=EVERY[:n],
        actions=("BUY",) * n,
        statuses=("decided",) * n,
        before=np.concatenate((np.zeros(1, dtype=np.int64), held[:-1])),
        positions=held,
        earned=np.asarray(earned, dtype=np.float64),
        fees=np.zeros(n),
        prices=np.full(n, 100.0),
        moved=np.asarray(earned if moved is None else moved, dtype=np.float64),
        trailing=np.full(n, np.nan) if trailing is None else np.asarray(trailing),
        tokens=10,
        usd=0.5,
    )


def on_x(**earned) -> dict[tuple[str, str], st.EntrySeries]:
    """Entries that play the asset X with the model m; ``hold`` is buy and hold."""
    names = {name: "buy-and-hold" if name == "hold" else f"{name}-m" for name in earned}
    return {(names[name], "X"): line(names[name], "X", path) for name, path in earned.items()}


def season(*pairs: tuple[str, str], assets=("X",)) -> Season:
    return Season(
        id="s",
        assets=tuple(Asset(symbol=a, kind="crypto", dataset="synthetic/crypto:7") for a in assets),
        entries=tuple(Entry(id=f"{a}-{m}", architecture=a, model=m) for a, m in pairs),
        first="2022-01-01",
    )


def noise(seed: int, mean: float = 0.0, n: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.01, n)


def test_the_better_one_is_first_and_the_baseline_has_no_rank():
    market = noise(1, n=120)
    spec = season(("a", "m"), ("b", "m"))
    board = st.standings(spec, on_x(a=market - 0.01, b=market + 0.01, hold=market), FAST)
    assert [(row.rank, row.entry) for row in board.rows] == [
        (1, "b-m"),
        (None, "buy-and-hold"),
        (2, "a-m"),
    ]
    first = board.rows[0]
    assert first.best.value == 1.0 and (first.rank_low, first.rank_high) == (1, 1)
    assert first.excess.value == pytest.approx(float(np.prod(1.01 + market) - np.prod(1 + market)))
    assert first.excess.low is not None and first.excess.low > 0
    assert first.usd == 0.5


def test_ahead_is_said_only_by_bands_that_hold_at_every_look():
    spec, market = season(("a", "m"), ("b", "m")), noise(1, n=240)
    earned = {"a": market + noise(2, n=240), "b": market + noise(3, 0.006, n=240), "hold": market}

    def seen(until: int):
        lines = on_x(**{entry: path[:until] for entry, path in earned.items()})
        made = {row.entry: row for row in st.standings(spec, lines, FAST).rows}
        return made, st.pace(spec, lines, "b-m")

    early, band = seen(50)
    assert (
        early["b-m"].excess.low is None
        and "first look" in early["b-m"].excess.note
        and band is None
    )
    assert (
        early["b-m"].best.value > 0.95
        and early["b-m"].ahead_of == ()
        and early["b-m"].e_value is None
    )
    late, band = seen(240)
    assert late["b-m"].ahead_of == ("a-m",) and late["a-m"].ahead_of == ()
    assert late["b-m"].excess.low > 0 and late["b-m"].found and late["b-m"].e_value > 40
    assert not late["a-m"].found and late["a-m"].excess.low < 0 < late["a-m"].excess.high
    assert band.days[0] == EVERY[59] and band.days[-1] == EVERY[239] and band.low[-1] > 0
    assert all(np.diff(band.low) >= 0) and all(np.diff(band.high) <= 0)


def test_equals_share_rank_and_the_chance_of_being_first():
    spec = season(("a", "m"), ("b", "m"))
    chances = [
        row.best.value for row in st.standings(spec, on_x(a=noise(2), b=noise(3)), FAST).rows
    ]
    assert sum(c for c in chances if c is not None) == pytest.approx(1.0)
    assert all(c is not None and 0.02 < c < 0.98 for c in chances)
    spec = season(("a", "m"), ("b", "m"), ("c", "m"))
    rows = st.standings(spec, on_x(a=noise(2), b=noise(2), c=noise(2) - 0.01), FAST).rows
    assert [row.rank for row in rows] == [1, 1, 3]
    assert [row.best.value for row in rows] == [0.5, 0.5, 0.0]


def test_accounts_over_two_assets_few_sessions_and_two_programs():
    spec = season(("a", "m"), assets=("X", "Y"))
    lines = {("a-m", "X"): line("a-m", "X", [0.10, 0.0]), ("a-m", "Y"): line("a-m", "Y", [-0.10])}
    row = st.standings(spec, lines, FAST).rows[0]
    assert row.measures["CR"].value == pytest.approx((1.1 + 0.9) / 2 - 1)
    assert row.measures["CR"].note is not None
    spec = season(("a", "m"), ("b", "m"))
    board = st.standings(spec, on_x(a=noise(2)[:5], b=noise(3)[:5]), FAST)
    assert "no probability" in board.note
    assert board.rows[0].best.value is None
    anna, bert = (Entry(id=name, architecture="http") for name in ("anna", "bert"))
    assert (anna.shown, bert.shown) == ("http: anna", "http: bert")
    assert Entry(id="x", architecture="http", label="Bull").shown == "http: Bull"
    assert (
        Entry(id="x", architecture="analyst", model="openai/gpt-5").shown
        == "analyst · openai/gpt-5"
    )


def test_behaviour_by_hand():
    held = [1, 1, -1, 0, 1, 1]
    trailing = [0.1, 0.2, 0.3, 0.1, -0.1, 0.1]
    moved = [0.01, -0.01, -0.01, 0.01, 0.02, 0.0]
    found = st.behaviour("a", [line("a", "X", moved, held, moved, trailing)])
    shares = {
        "long": 4 / 6,
        "short": 1 / 6,
        "with_trend": 3 / 5,
        "right": 3 / 4,
        "changes": 3 / 5,
        "holding": 5 / 3,
    }
    assert {name: getattr(found, name).value for name in shares} == pytest.approx(shares)
    assert found.style == "neither"
    trend = np.where(np.arange(60) % 2, 1, -1)
    assert (
        st.behaviour("a", [line("a", "X", moved * 10, trend, trailing=trend * 0.1)]).style
        == "trend"
    )
    assert st.behaviour("b", []).style == "not scored"
    lines = {("a", "X"): line("a", "X", [0.1]), ("b", "X"): line("b", "X", [0.1])}
    assert st.first_day(lines) == {"X": {"a": "BUY", "b": "BUY"}}


@pytest.mark.parametrize("others", [(), ("Y",)])
def test_a_ruined_account_is_last_with_its_day(others):
    lost = np.full(40, 0.001)
    lost[10], lost[11:] = -1.0, 0.0
    spec = season(("gone", "m"), ("slow", "m"), ("good", "m"), assets=("X", *others))
    made = {
        "gone-m": lost,
        "slow-m": np.full(40, -0.01),
        "good-m": np.full(40, 0.001),
        "buy-and-hold": lost * 0,
    }
    lines = {
        (entry, asset): line(entry, asset, earned)
        for entry, earned in made.items()
        for asset in ("X", *others)
    }
    found = {row.entry: row for row in st.standings(spec, lines, FAST).rows}
    gone = found["gone-m"]
    assert (gone.rank, gone.ruined, gone.best.value, gone.rank_low) == (3, DAYS[10], 0.0, 3)
    assert [gone.measures[name].value for name in ("CR", "AR", "MDD")] == [-1.0, -1.0, -1.0]
    assert found["good-m"].rank == 1 and found["slow-m"].ruined is None
    assert gone.excess.value == pytest.approx(-1.0) and gone.excess.high <= 0


def test_lines_come_from_the_database_and_obey_filters(played):
    table, _ = played
    store = table.runner().store
    lines = st.read_lines(store, table.season)
    assert set(lines) == {
        (e, a) for e in ("thinker", "trend", "buy-and-hold") for a in ("AAJX", "AHVQ")
    }
    held = lines["buy-and-hold", "AHVQ"]
    assert (held.positions == 1).all()
    assert held.earned[1:] == pytest.approx(held.moved[1:])
    assert held.before[0] == 1  # bought in the warm-up, where its fee was paid
    assert held.earned[0] == pytest.approx(held.moved[0])
    part = st.read_lines(
        store, table.season, st.Filter(assets=("AHVQ",), models=("test/echo",), first="2022-06-06")
    )
    assert set(part) == {("thinker", "AHVQ")}
    assert min(part["thinker", "AHVQ"].sessions) >= "2022-06-06"
    assert st.standings(table.season, lines, FAST).rows
    assert st.standings(table.season, {}, FAST).note == "no settled session that counts yet"
    store.engine.dispose()


def test_lines_that_grew_are_those_that_are_read_at_once(table):
    runner = table.runner()
    book, seen = st.LineBook(runner.store, table.season), []

    def settled(what: str) -> None:
        if what == "settled":
            seen.append(book.lines())

    runner.store.committed = settled
    asyncio.run(runner.run())
    whole, grown = st.read_lines(runner.store, table.season), book.lines()
    assert set(whole) == set(grown) and len(seen) > 10
    for key, line in whole.items():
        lengths = [len(one[key].sessions) for one in seen if key in one]
        assert lengths == sorted(lengths)
        for name in st.EntrySeries.__dataclass_fields__:
            alone, joined = getattr(line, name), getattr(grown[key], name)
            if name == "usd" and alone is not None:  # dollars are added in another order
                assert joined == pytest.approx(alone, rel=1e-9), key
            else:
                assert np.array_equal(alone, joined), (key, name)
    with runner.store.engine.begin() as db:  # a correction lets them be read again
        made = {
            "asset": "AHVQ",
            "session": "2022-06-06",
            "old": 1.0,
            "new": 1.1,
            "known_at": "",
            "restated": 0,
        }
        db.execute(insert(corrections).values(season=table.season.id, **made))
    assert book.lines() is not grown
    runner.store.engine.dispose()


@pytest.mark.parametrize(
    ("statuses", "why"),
    [
        (("missed",) * 59 + ("failed",), "it never decided"),
        (
            ("missed",) * 6 + ("failed",) * 7 + ("decided",) * 47,
            "22% of its rounds had no decision",
        ),
        (("failed",) * 12 + ("decided",) * 48, None),
        (("failed",) * 25 + ("decided",) * 99, "20.2% of its rounds had no decision"),
    ],
)
def test_who_decided_too_seldom_has_no_rank(statuses, why):
    n = len(statuses)
    lines = on_x(a=noise(1, -0.01, n), b=noise(3, 0.05, n), c=noise(2, -0.02, n))
    lines["b-m", "X"] = replace(lines["b-m", "X"], statuses=statuses)
    played = season(("a", "m"), ("b", "m"), ("c", "m"))
    found = {row.entry: row for row in st.standings(played, lines, FAST).rows}
    ranks = [found[name].rank for name in ("b-m", "a-m", "c-m")]
    if why is None:
        assert ranks == [1, 2, 3]
        return
    assert ranks == [None, 1, 2] and list(found)[-1] == "b-m"
    assert (found["b-m"].best.reason or "").startswith(why) and "no rank" in found[
        "b-m"
    ].best.reason
    assert found["a-m"].best.value + found["c-m"].best.value == pytest.approx(1.0)
